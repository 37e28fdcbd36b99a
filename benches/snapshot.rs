//! Saving, loading and viewing a filter: lanebloom's snapshot beside a plain copy of the same bytes
//! and fastbloom through serde and bincode (fixed-width integers).
//!
//! It takes 512 MiB, about 3 minutes, 3 GiB of memory and 2 of disk.
//!
//!     cargo bench --bench snapshot --features mmap,serde
//!     cargo bench --bench snapshot --features mmap,serde -- --size 64M --directory /on/the/disk
//!     cargo bench --bench snapshot --features mmap,serde -- --record FILE   # also into benches/FILE
//!     cargo bench --bench snapshot --features mmap,serde -- --test   # a tiny size
//!
//! In a round every contestant does the same once, in turn. The tables show medians of the rounds,
//! and of the ratios to the plain copy of the same round. Files are written anew each time. "To the
//! disk" includes `fsync`; reading is from the page cache. The bench compares the data that it read
//! with the data that it wrote.

use clap::Parser;
use fastbloom::AtomicBloomFilter;
use lanebloom::{BloomView, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Hashed, codec};
use lanebloom_benches::{BenchArgs, machine, median, number, parse_size};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Parser)]
struct Args {
    /// Size of our filter: bytes with K, M or G.
    #[arg(long, value_parser = parse_size, default_value = "512M")]
    size: usize,
    /// Where the files are written, by default the system's folder for temporary files.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Rounds of which the median is taken.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Lookups of a round.
    #[arg(long, default_value_t = 4 << 20)]
    lookups: usize,
    #[command(flatten)]
    bench: BenchArgs,
}

/// The false-positive rate that both filters are sized for.
const RATE: f64 = 0.01;

/// Hashes of a batch.
const BATCH: usize = 1024;

/// Buffer of fastbloom's files; with std's 8 KiB it is slower.
const BUFFER: usize = 1 << 20;

struct Filters {
    ours: ConcurrentBloom,
    /// A snapshot of `ours`, which the plain copies are of.
    bytes: Vec<u8>,
    fast: AtomicBloomFilter,
    directory: PathBuf,
}

impl Filters {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Does something once: how many bytes it was of.
type Way<'a> = (&'a str, Box<dyn Fn() -> usize + 'a>);

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.size, args.rounds, args.lookups) = (1 << 20, 1, 10_000);
    }
    let parent = args.directory.clone().unwrap_or_else(std::env::temp_dir);
    let directory = tempfile::tempdir_in(&parent).expect("a folder in the directory");
    let mut report = format!("{}; files in {}; {} rounds\n", machine(), parent.display(), args.rounds);
    print!("{report}");
    let ours = ConcurrentBloom::builder()
        .memory_budget(args.size)
        .false_positive_rate(RATE);
    let ours = ours.build().unwrap();
    let n = ours.expected_keys();
    let fast = AtomicBloomFilter::with_false_pos(RATE).seed(&1).expected_items(n);
    let hashes: Vec<u64> = (0..n as u64).map(number).collect();
    ours.insert_batch(Hashed::slice(&hashes));
    hashes.iter().for_each(|hash| _ = fast.insert_hash(*hash));
    drop(hashes);
    let filters = Filters {
        bytes: ours.snapshot().to_vec(),
        ours,
        fast,
        directory: directory.path().to_owned(),
    };
    let mut add = |table: String| args.bench.add(&mut report, &table);
    add(save(&args, &filters, false));
    add(save(&args, &filters, true));
    add(load(&args, &filters));
    add(open(&args, &filters));
    add(look_up(&args, &filters));
    drop(filters);
    add(deletable(&args));
}

/// A table of GB/s of several ways; of the first the others are multiples.
fn table(args: &Args, title: &str, ways: &[Way]) -> String {
    let mut seconds = vec![Vec::new(); ways.len()];
    let mut bytes = vec![0; ways.len()];
    for _ in 0..args.rounds {
        for (i, (_, way)) in ways.iter().enumerate() {
            let start = Instant::now();
            bytes[i] = way();
            seconds[i].push(start.elapsed().as_secs_f64());
        }
    }
    let mut table = format!("\n## {title}\n\n| | MiB | GB/s | the first one's time |\n|---|--:|--:|--:|\n");
    for (i, (name, _)) in ways.iter().enumerate() {
        let speed = bytes[i] as f64 / median(seconds[i].clone()) / 1e9;
        let ratios = seconds[0].iter().zip(&seconds[i]).map(|(first, own)| own / first);
        let mebibytes = bytes[i] as f64 / f64::from(1 << 20);
        writeln!(
            table,
            "| {name:50} | {mebibytes:.1} | {speed:.2} | {:.2}x |",
            median(ratios)
        )
        .unwrap();
    }
    table
}

/// Writes a file anew; its size.
fn write(path: &Path, sync: bool, write: impl FnOnce(&mut File)) -> usize {
    let _ = fs::remove_file(path);
    let mut file = File::create(path).unwrap();
    write(&mut file);
    if sync {
        file.sync_all().unwrap();
    }
    file.metadata().unwrap().len() as usize
}

fn save(args: &Args, filters: &Filters, sync: bool) -> String {
    let plain = || {
        write(&filters.path("plain"), sync, |file| {
            file.write_all(&filters.bytes).unwrap()
        })
    };
    let chunks = || {
        write(&filters.path("chunks"), sync, |file| {
            filters
                .bytes
                .chunks(64 << 10)
                .for_each(|chunk| file.write_all(chunk).unwrap());
        })
    };
    let ours = || {
        write(&filters.path("ours"), sync, |file| {
            filters.ours.snapshot().write_to(file).unwrap()
        })
    };
    let ours_through_serde = || {
        write(&filters.path("ours through serde"), sync, |file| {
            bincode::serialize_into(BufWriter::with_capacity(BUFFER, file), &filters.ours).unwrap();
        })
    };
    let fast = || {
        write(&filters.path("fastbloom"), sync, |file| {
            bincode::serialize_into(BufWriter::with_capacity(BUFFER, file), &filters.fast).unwrap();
        })
    };
    let to_vec = || black_box(filters.ours.snapshot().to_vec()).len();
    let copy = || black_box(filters.bytes.clone()).len();
    let mut ways: Vec<Way> = vec![
        ("the same bytes, plainly", Box::new(plain)),
        ("the same bytes, 64 KiB at a time", Box::new(chunks)),
        ("`write_to`", Box::new(ours)),
        ("through serde and bincode", Box::new(ours_through_serde)),
        ("fastbloom, through serde and bincode", Box::new(fast)),
    ];
    if !sync {
        ways.push(("(in memory: a copy of the bytes)", Box::new(copy)));
        ways.push(("(in memory: `to_vec`)", Box::new(to_vec)));
    }
    let title = if sync {
        "Saving, to the disk"
    } else {
        "Saving, to the page cache"
    };
    let table = table(args, title, &ways);
    assert!(fs::read(filters.path("ours")).unwrap() == filters.bytes);
    table
}

fn load(args: &Args, filters: &Filters) -> String {
    let size = |name: &str| fs::metadata(filters.path(name)).unwrap().len() as usize;
    let open = |name: &str| File::open(filters.path(name)).unwrap();
    let plain = || black_box(fs::read(filters.path("plain")).unwrap()).len();
    let chunks = || {
        let (mut file, mut buffer, mut all) = (open("plain"), vec![0; 64 << 10], 0);
        loop {
            match file.read(&mut buffer).unwrap() {
                0 => return all,
                len => all += black_box(&buffer[..len]).len(),
            }
        }
    };
    let ours = || {
        black_box(ConcurrentBloom::read_from(open("ours"), usize::MAX).unwrap());
        size("ours")
    };
    let ours_through_serde = || {
        let reader = BufReader::with_capacity(BUFFER, open("ours through serde"));
        black_box(bincode::deserialize_from::<_, ConcurrentBloom>(reader).unwrap());
        size("ours through serde")
    };
    let fast = || {
        let reader = BufReader::with_capacity(BUFFER, open("fastbloom"));
        black_box(bincode::deserialize_from::<_, AtomicBloomFilter>(reader).unwrap());
        size("fastbloom")
    };
    let from_bytes = || {
        black_box(ConcurrentBloom::from_bytes(&filters.bytes).unwrap());
        filters.bytes.len()
    };
    let table = table(
        args,
        "Loading, from the page cache",
        &[
            ("the same bytes, into memory", Box::new(plain)),
            ("the same bytes, into a buffer of 64 KiB", Box::new(chunks)),
            ("`read_from`", Box::new(ours)),
            ("through serde and bincode", Box::new(ours_through_serde)),
            ("fastbloom, through serde and bincode", Box::new(fast)),
            ("(in memory: `from_bytes`)", Box::new(from_bytes)),
        ],
    );
    assert!(ConcurrentBloom::read_from(open("ours"), usize::MAX).unwrap() == filters.ours);
    let reader = BufReader::with_capacity(BUFFER, open("fastbloom"));
    assert!(bincode::deserialize_from::<_, AtomicBloomFilter>(reader).unwrap() == filters.fast);
    table
}

/// The file that `save` left, and that nothing changes any more.
fn map(filters: &Filters) -> BloomView<'static> {
    // SAFETY: the file is in a folder of this program's own, and is not written again.
    unsafe { BloomView::map(&File::open(filters.path("ours")).unwrap()) }.unwrap()
}

fn open(args: &Args, filters: &Filters) -> String {
    let micros = |work: &dyn Fn()| {
        let times = (0..args.rounds.max(20)).map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e6
        });
        median(times)
    };
    let mapped = micros(&|| drop(black_box(map(filters))));
    let borrowed = micros(&|| drop(black_box(BloomView::from_bytes(&filters.bytes).unwrap())));
    let view = map(filters);
    let start = Instant::now();
    codec::verify(view.bytes()).unwrap();
    let verified = filters.bytes.len() as f64 / start.elapsed().as_secs_f64() / 1e9;
    format!(
        "\n## Opening a view\n\n| | |\n|---|--:|\n| mapped: open, map, check the header, unmap | {mapped:.1} µs |\n\
         | of borrowed bytes | {borrowed:.1} µs |\n| `verify` of the mapped file | {verified:.1} GB/s |\n"
    )
}

fn look_up(args: &Args, filters: &Filters) -> String {
    let keys = filters.ours.expected_keys() as u64;
    // Half of them were inserted.
    let hashes: Vec<u64> = (0..args.lookups as u64)
        .map(|i| number(number(i + (1 << 50)) % keys + if i % 2 == 0 { 0 } else { 1 << 40 }))
        .collect();
    let (mapped, (borrowed, _)) = (map(filters), BloomView::from_bytes(&filters.bytes).unwrap());
    // A process that has served for a while finds it so.
    codec::verify(mapped.bytes()).unwrap();
    type Lookup<'a> = Box<dyn Fn(&[u64], &mut [bool]) + 'a>;
    let mut found = vec![false; hashes.len()];
    let mut table = format!(
        "\n## Lookups, {} pre-hashed keys, half of them present: ns per key (the filter's time)\n\n\
         | | call by call | batches of {BATCH} |\n|---|--:|--:|\n",
        hashes.len()
    );
    let ways: [(&str, [Lookup; 2]); 3] = [
        (
            "the filter in memory",
            [
                Box::new(|hashes, found| {
                    for (hash, found) in hashes.iter().zip(found) {
                        *found = filters.ours.contains(&Hashed(*hash));
                    }
                }),
                Box::new(|hashes, found| filters.ours.contains_batch(Hashed::slice(hashes), found)),
            ],
        ),
        (
            "the mapped view",
            [
                Box::new(|hashes, found| {
                    for (hash, found) in hashes.iter().zip(found) {
                        *found = mapped.contains(&Hashed(*hash));
                    }
                }),
                Box::new(|hashes, found| mapped.contains_batch(Hashed::slice(hashes), found)),
            ],
        ),
        (
            "a view of borrowed bytes",
            [
                Box::new(|hashes, found| {
                    for (hash, found) in hashes.iter().zip(found) {
                        *found = borrowed.contains(&Hashed(*hash));
                    }
                }),
                Box::new(|hashes, found| borrowed.contains_batch(Hashed::slice(hashes), found)),
            ],
        ),
    ];
    let mut nanos = vec![[Vec::new(), Vec::new()]; ways.len()];
    let mut expected = vec![false; hashes.len()];
    filters.ours.contains_batch(Hashed::slice(&hashes), &mut expected);
    let positives = expected.iter().filter(|found| **found).count();
    assert!(
        (hashes.len() / 2..hashes.len() * 52 / 100).contains(&positives),
        "{positives}"
    );
    for _ in 0..args.rounds {
        for ((name, forms), nanos) in ways.iter().zip(&mut nanos) {
            for (form, nanos) in forms.iter().zip(nanos) {
                found.fill(false);
                let start = Instant::now();
                for (hashes, found) in hashes.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
                    form(hashes, found);
                }
                nanos.push(start.elapsed().as_nanos() as f64 / hashes.len() as f64);
                assert!(found == expected, "{name}");
            }
        }
    }
    for (i, (name, _)) in ways.iter().enumerate() {
        write!(table, "| {name:25} |").unwrap();
        for (first, own) in nanos[0].iter().zip(&nanos[i]) {
            let ratios = first.iter().zip(own).map(|(first, own)| own / first);
            write!(table, " {:.2} ({:.2}x) |", median(own.clone()), median(ratios)).unwrap();
        }
        table.push('\n');
    }
    writeln!(
        table,
        "\nThe mapped view's blocks begin with a line: {}; the borrowed one's: {}.",
        mapped.is_aligned(),
        borrowed.is_aligned()
    )
    .unwrap();
    table
}

/// The filters that can delete, a quarter of the size each, with as many keys as they are for: what
/// is read of them is looked through.
fn deletable(args: &Args) -> String {
    let bytes = args.size / 4;
    let hashes = |keys: usize| (0..keys as u64).map(number).collect::<Vec<_>>();
    let bloom = ConcurrentBloom::builder().memory_budget(bytes).build().unwrap();
    bloom.insert_batch(Hashed::slice(&hashes(bloom.expected_keys())));
    let counting = CountingBloom::builder().memory_budget(bytes).build().unwrap();
    counting.insert_batch(Hashed::slice(&hashes(counting.expected_keys())));
    let cuckoo = CuckooFilter::builder()
        .memory_budget(bytes)
        .fingerprint_bits(12)
        .build()
        .unwrap();
    cuckoo
        .insert_batch(Hashed::slice(&hashes(cuckoo.expected_keys())))
        .unwrap();
    let d_left = DLeftFilter::builder().memory_budget(bytes).build().unwrap();
    d_left
        .insert_batch(Hashed::slice(&hashes(d_left.expected_keys())))
        .unwrap();
    let written = [
        bloom.snapshot().to_vec(),
        counting.snapshot().to_vec(),
        cuckoo.snapshot().to_vec(),
        d_left.snapshot().to_vec(),
    ];
    let saved = table(
        args,
        "Filters that can delete, full: `to_vec`",
        &[
            (
                "`ConcurrentBloom`",
                Box::new(|| black_box(bloom.snapshot().to_vec()).len()),
            ),
            (
                "`CountingBloom`",
                Box::new(|| black_box(counting.snapshot().to_vec()).len()),
            ),
            (
                "`CuckooFilter`, fingerprints of 12 bits",
                Box::new(|| black_box(cuckoo.snapshot().to_vec()).len()),
            ),
            (
                "`DLeftFilter`",
                Box::new(|| black_box(d_left.snapshot().to_vec()).len()),
            ),
        ],
    );
    let loaded = table(
        args,
        "And `from_bytes`",
        &[
            (
                "`ConcurrentBloom`",
                Box::new(|| {
                    assert!(ConcurrentBloom::from_bytes(&written[0]).is_ok());
                    written[0].len()
                }),
            ),
            (
                "`CountingBloom`",
                Box::new(|| {
                    assert!(CountingBloom::from_bytes(&written[1]).is_ok());
                    written[1].len()
                }),
            ),
            (
                "`CuckooFilter`, fingerprints of 12 bits",
                Box::new(|| {
                    assert!(CuckooFilter::from_bytes(&written[2]).is_ok());
                    written[2].len()
                }),
            ),
            (
                "`DLeftFilter`",
                Box::new(|| {
                    assert!(DLeftFilter::from_bytes(&written[3]).is_ok());
                    written[3].len()
                }),
            ),
        ],
    );
    saved + &loaded
}
