//! "Did this user do X in the last minute?" Then the user must wait. Threads serve requests from
//! many users and share one filter that forgets. The filter decides whether a user may do X. An
//! exact table holds the times at which each user did X, and the program compares every answer with
//! it. If the filter breaks a promise, the exit code says so. The filter never admits a user again
//! within the window. It holds other users back only by a false positive, or for up to a generation
//! longer.
//!
//!     cargo run --release --bin rate_window                             # simulated time: 60 windows
//!     cargo run --release --bin rate_window -- --seconds 10 --window 2  # real time

use clap::{Parser, value_parser};
use lanebloom::WindowedBloom;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Args {
    /// Users; a hundredth of them make half of the requests.
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=100_000_000))]
    users: u32,
    /// The window, in seconds.
    #[arg(long, default_value_t = 60.0)]
    window: f64,
    /// Generations of the filter. With more it forgets more exactly.
    #[arg(long, default_value_t = 7)]
    generations: usize,
    /// The rate of false positives.
    #[arg(long, default_value_t = 0.001)]
    rate: f64,
    /// Threads that serve requests.
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Requests in simulated time, spread evenly over 60 windows.
    #[arg(long, default_value_t = 10_000_000, value_parser = value_parser!(u64).range(1..))]
    requests: u64,
    /// Run for this many seconds of real time instead.
    #[arg(long)]
    seconds: Option<f64>,
}

/// The state that the threads share. Times are nanoseconds since the start.
struct Service {
    users: u32,
    filter: WindowedBloom,
    clock: Arc<Clock>,
    window: u64,
    /// The longest time that the filter may remember a user.
    longest: u64,
    end: u64,
    counts: Counts,
}

struct Clock {
    start: Instant,
    /// The simulated time, and how much of it passes between two requests; in real time nothing.
    simulated: AtomicU64,
    step: u64,
}

impl Clock {
    fn now(&self) -> u64 {
        match self.step {
            0 => self.start.elapsed().as_nanos() as u64,
            _ => self.simulated.load(Ordering::SeqCst),
        }
    }
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    served: AtomicU64,
    /// Served within the window. Must stay 0.
    broken: AtomicU64,
    /// Held back within the window; up to a generation later; and by mistake.
    held_back: [AtomicU64; 3],
    /// Requests of users that the filter should not know.
    unknown: AtomicU64,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let window = Duration::try_from_secs_f64(args.window)?;
    let end = match args.seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds)?,
        None => window.saturating_mul(60),
    };
    let end = u64::try_from(end.as_nanos())?;
    let clock = Arc::new(Clock {
        start: Instant::now(),
        simulated: AtomicU64::new(0),
        step: args.seconds.map_or((end / args.requests).max(1), |_| 0),
    });
    let filter = WindowedBloom::builder()
        // All of them may come within one generation.
        .expected_keys(args.users as usize * args.generations.saturating_sub(1))
        .false_positive_rate(args.rate)
        .generations(args.generations)
        .window(window)
        .clock({
            let clock = Arc::clone(&clock);
            move || Duration::from_nanos(clock.now())
        })
        .build()?;
    let window = filter.window().expect("it was given one").as_nanos() as u64;
    let service = Service {
        users: args.users.div_ceil(args.threads),
        longest: window + window / (args.generations as u64 - 1),
        counts: Counts::default(),
        filter,
        clock,
        window,
        end,
    };

    thread::scope(|scope| {
        for thread in 0..args.threads {
            let service = &service;
            scope.spawn(move || service.serve(thread));
        }
    });
    Ok(service.report(&args))
}

impl Service {
    /// Serves the requests of this thread's own users until the end, so that it knows their
    /// history.
    fn serve(&self, thread: u32) {
        let mut rng = SmallRng::seed_from_u64(thread.into());
        // When each user last did X: not before the first of these times, and not after the second.
        let mut last: Vec<Option<(u64, u64)>> = vec![None; self.users as usize];
        let count = |count: &AtomicU64, one: bool| count.fetch_add(one.into(), Ordering::Relaxed);
        while self.clock.now() < self.end {
            self.clock.simulated.fetch_add(self.clock.step, Ordering::SeqCst);
            let some = if rng.random() {
                self.users
            } else {
                self.users.div_ceil(100)
            };
            let user = rng.random_range(0..some);
            let id = thread * self.users + user;

            let asked = self.clock.now();
            let seen = self.filter.contains(&id);
            let answered = self.clock.now();
            if !seen {
                self.filter.insert(&id);
            }
            let done = self.clock.now();

            let last = &mut last[user as usize];
            let within = last.is_some_and(|(from, _)| answered - from <= self.window);
            let unknown = last.is_none_or(|(_, to)| asked.saturating_sub(to) >= self.longest);
            count(&self.counts.requests, true);
            count(&self.counts.unknown, unknown);
            if seen {
                let why = if within { 0 } else { 1 + usize::from(unknown) };
                count(&self.counts.held_back[why], true);
            } else {
                count(&self.counts.served, true);
                count(&self.counts.broken, within);
                *last = Some((answered, done));
            }
        }
    }

    /// Prints the results, and whether the filter kept its promises.
    fn report(&self, args: &Args) -> ExitCode {
        let took = self.clock.start.elapsed();
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (requests, unknown) = (get(&self.counts.requests), get(&self.counts.unknown));
        let [within, longer, wrongly] = self.counts.held_back.each_ref().map(get);
        println!("{requests} requests in {:.2} s", took.as_secs_f64());
        println!("{:>10} served", get(&self.counts.served));
        println!("{within:>10} held back, since they did X within {} s", args.window);
        println!("{longer:>10} held back for up to a generation longer");
        println!("{wrongly:>10} held back by mistake, of {unknown} of whom the filter should not know");
        println!("{:>10} bytes of memory", self.filter.memory_bytes());

        let broken = get(&self.counts.broken);
        // With six standard deviations of noise.
        let promised = args.rate * unknown as f64;
        if broken > 0 {
            eprintln!("FAILED: {broken} were served within {} s of their last X", args.window);
            ExitCode::FAILURE
        } else if wrongly as f64 > promised + 6.0 * promised.sqrt() + 6.0 {
            eprintln!(
                "FAILED: more were held back by mistake than the rate of {} allows",
                args.rate
            );
            ExitCode::FAILURE
        } else {
            println!("The promises were kept.");
            ExitCode::SUCCESS
        }
    }
}
