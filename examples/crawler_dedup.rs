//! A crawler that visits no page twice. Worker threads take URLs from a queue and follow the links
//! of each page. A shared `ScalableBloom` says which of the links are new. Nobody knows beforehand
//! how many pages there are, so the filter begins small and grows. At the end the program reports
//! pages per second, dropped duplicates, how the filter grew, and how many pages were wrongly
//! dropped, against an exact set. If that is more than promised, or a page was forgotten, the exit
//! code says so.
//!
//! ```sh
//! cargo run --release --bin crawler_dedup
//! cargo run --release --bin crawler_dedup -- --urls links.txt
//! ```

mod outcome;

use clap::{Parser, value_parser};
use crossbeam_channel::{Receiver, Sender, unbounded};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use lanebloom::ScalableBloom;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Crawls a web of made-up pages, or the links of a file, and drops the URLs that it has seen.
#[derive(Parser)]
struct Args {
    /// Threads that visit pages
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Pages of the made-up web
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u32).range(1..=100_000_000))]
    pages: u32,
    /// Links on a made-up page
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=1000))]
    links: u32,
    /// Pages that the filter is planned for; it grows beyond
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..))]
    capacity: u32,
    /// The filter's false-positive rate, however far it grows
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// Take the links from FILE instead: a page's URL and those that it links to on each line,
    /// separated by blanks. The crawl begins at the first page of the file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pages", "links"], verbatim_doc_comment)]
    urls: Option<PathBuf>,
    /// Seed of the made-up web
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    outcome::exit(run(&Args::parse()))
}

/// Returns whether the promises were kept.
fn run(args: &Args) -> Result<bool> {
    let web = Web::new(args)?;
    let seen = ScalableBloom::builder()
        .expected_keys(args.capacity as usize)
        .false_positive_rate(args.rate)
        .build()?;
    println!(
        "filter: planned for {} pages at {}",
        thousands(seen.expected_keys()),
        percent(args.rate)
    );
    let crawl = Crawl {
        web: &web,
        seen,
        queue: unbounded(),
        pending: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        urls: AtomicUsize::new(0),
        dropped: AtomicUsize::new(0),
        layers: AtomicUsize::new(0), // so that the first one is shown too
        growth: Mutex::default(),
    };
    let (visited, took) = crawl.run(args.threads)?;
    crawl.report(&visited, took, args.rate)
}

// ---- The web ----

/// Pages and their links.
enum Web {
    MadeUp {
        pages: u32,
        links: u32,
        seed: u64,
    },
    File {
        links: HashMap<String, Vec<String>>,
        start: String,
    },
}

impl Web {
    fn new(args: &Args) -> Result<Self> {
        let Some(path) = &args.urls else {
            println!(
                "web: {} made-up pages, {} links on each",
                thousands(args.pages as usize),
                args.links
            );
            return Ok(Self::MadeUp {
                pages: args.pages,
                links: args.links,
                seed: args.seed,
            });
        };
        Self::of_file(path)
    }

    fn of_file(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read links from {}: {error}", path.display()))?;
        let (mut links, mut start) = (HashMap::<_, Vec<_>>::new(), None);
        for line in text.lines() {
            let mut urls = line.split_whitespace().map(str::to_owned);
            let Some(page) = urls.next() else { continue };
            start.get_or_insert_with(|| page.clone());
            links.entry(page).or_default().extend(urls);
        }
        let start = start.ok_or_else(|| format!("no page in {}: it is empty, or all its lines are", path.display()))?;
        println!("web: {} pages from {}", thousands(links.len()), path.display());
        Ok(Self::File { links, start })
    }

    /// The first page of the crawl.
    fn start(&self) -> String {
        match self {
            Self::MadeUp { .. } => url(0),
            Self::File { start, .. } => start.clone(),
        }
    }

    /// The URLs on a page, as a crawler would get them by fetching and parsing it.
    fn fetch(&self, page: &str) -> Vec<String> {
        match self {
            Self::MadeUp { pages, links, seed } => {
                let number: u32 = page
                    .rsplit('/')
                    .next()
                    .and_then(|digits| digits.parse().ok())
                    .unwrap_or(0);
                let mut rng = SmallRng::seed_from_u64(seed.wrapping_mul(1 << 32).wrapping_add(number.into()));
                // Anywhere, the next one and another (so that all can be reached), and home.
                let mut links: Vec<u32> = (0..*links).map(|_| rng.random_range(0..*pages)).collect();
                links.extend([number + 1, 2 * (number + 1), 0]);
                links.into_iter().filter(|link| link < pages).map(url).collect()
            }
            Self::File { links, .. } => links.get(page).cloned().unwrap_or_default(),
        }
    }
}

fn url(page: u32) -> String {
    format!("https://example.org/{}/{page}", page % 97)
}

// ---- The crawl ----

struct Crawl<'a> {
    web: &'a Web,
    seen: ScalableBloom,
    queue: (Sender<String>, Receiver<String>),
    /// URLs in the queue or at a worker. When there are none, the crawl is over.
    pending: AtomicUsize,
    /// Whether a worker has given up, so that the others give up too.
    failed: AtomicBool,
    urls: AtomicUsize,
    dropped: AtomicUsize,
    layers: AtomicUsize,
    /// The table's row for each layer, from when it was first seen.
    growth: Mutex<Vec<String>>,
}

impl Crawl<'_> {
    /// Follows all links; returns the visited pages and the time.
    fn run(&self, threads: u16) -> Result<(Vec<String>, Duration)> {
        let began = Instant::now();
        let style = ProgressStyle::with_template("{spinner} {human_pos} pages, {per_sec}")?;
        let progress = ProgressBar::new_spinner().with_style(style);
        self.enqueue_new(vec![self.web.start()], began)?;
        let visited = thread::scope(|scope| {
            let work = || self.work(began, &progress);
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let parts = workers
                .into_iter()
                .map(|worker| worker.join().map_err(|_| "a worker panicked")?);
            parts.collect::<Result<Vec<_>>>()
        })?;
        progress.finish_and_clear();
        Ok((visited.concat(), began.elapsed()))
    }

    fn work(&self, began: Instant, progress: &ProgressBar) -> Result<Vec<String>> {
        let mut visited = Vec::new();
        while self.pending.load(Ordering::Acquire) > 0 && !self.failed.load(Ordering::Relaxed) {
            let Ok(page) = self.queue.1.recv_timeout(Duration::from_millis(1)) else {
                continue;
            };
            self.enqueue_new(self.web.fetch(&page), began)
                .inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?;
            self.pending.fetch_sub(1, Ordering::Release);
            visited.push(page);
            if visited.len().is_multiple_of(256) {
                progress.inc(256);
            }
        }
        Ok(visited)
    }

    /// Asks the filter which of a page's links are new, all at once, and puts those into the queue.
    fn enqueue_new(&self, urls: Vec<String>, began: Instant) -> Result<()> {
        let mut new = vec![false; urls.len()];
        let news = self.seen.insert_batch_into(&urls, &mut new)?;
        self.pending.fetch_add(news, Ordering::Release);
        self.urls.fetch_add(urls.len(), Ordering::Relaxed);
        self.dropped.fetch_add(urls.len() - news, Ordering::Relaxed);
        for (url, _) in urls.into_iter().zip(new).filter(|(_, new)| *new) {
            self.queue.0.send(url)?;
        }
        let layers = self.seen.layers().len();
        if self.layers.load(Ordering::Relaxed) < layers && self.layers.fetch_max(layers, Ordering::Relaxed) < layers {
            let (capacity, kib) = (
                thousands(self.seen.expected_keys()),
                thousands(self.seen.memory_bytes() >> 10),
            );
            let row = format!(
                "{layers:>8}{capacity:>16}{kib:>14}{:>10.3}",
                began.elapsed().as_secs_f64()
            );
            self.growth.lock().map_err(|_| "a worker panicked")?.push(row);
        }
        Ok(())
    }

    /// Prints the results; returns whether the filter kept its promises.
    fn report(&self, visited: &[String], took: Duration, rate: f64) -> Result<bool> {
        let (urls, dropped) = (self.urls.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed));
        println!("\n{:>8}{:>16}{:>14}{:>10}", "layers", "for pages", "KiB", "after s");
        for row in self.growth.lock().map_err(|_| "a worker panicked")?.iter() {
            println!("{row}");
        }
        // The exact sets: the visited pages, and all URLs on these pages.
        let exact: HashSet<&str> = visited.iter().map(String::as_str).collect();
        let mut linked: HashSet<String> = visited.iter().flat_map(|page| self.web.fetch(page)).collect();
        linked.insert(self.web.start());
        let lost = linked.iter().filter(|url| !exact.contains(url.as_str())).count();
        let twice = visited.len() - exact.len();
        let per_second = visited.len() as f64 / took.as_secs_f64();

        println!();
        let row = |name: &str, value: String| println!("{name:<34}{value:>14}");
        row("pages visited", thousands(visited.len()));
        row("  per second", thousands(per_second as usize));
        row("URLs seen on them", thousands(urls));
        row("duplicates dropped", thousands(dropped - lost.min(dropped)));
        row("visited twice (racing workers)", thousands(twice));
        row("wrongly dropped, never visited", thousands(lost));
        let wrong = lost as f64 / linked.len() as f64;
        row("  of the distinct URLs", percent(wrong));
        row("  promised at most", percent(rate));
        row(
            "filter, bits per distinct URL",
            format!("{:.1}", self.seen.memory_bytes() as f64 * 8.0 / linked.len() as f64),
        );
        println!();

        // Chance: four standard deviations, and one more.
        let most = rate * linked.len() as f64;
        let kept = lost as f64 <= most + 4.0 * most.sqrt() + 1.0;
        let remembered = visited.iter().all(|page| self.seen.contains(page));
        if !kept {
            eprintln!(
                "FAILED: {} URLs were wrongly dropped, {:.0} were promised at most",
                thousands(lost),
                most
            );
        }
        if !remembered {
            eprintln!("FAILED: the filter has forgotten a page that was visited");
        }
        if kept && remembered {
            println!("No visited page was forgotten, and no more were dropped than promised.");
        }
        Ok(kept && remembered)
    }
}

fn percent(fraction: f64) -> String {
    format!("{:.3}%", fraction * 100.0)
}

/// The number with its digits in groups of three.
fn thousands(number: usize) -> String {
    HumanCount(number as u64).to_string()
}
