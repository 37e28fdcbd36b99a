//! The cost of a get beside the calls that it is made of: a key that the filter turns away beside
//! `CacheGuard::check`, a cached one beside moka's own get; by one thread and by two.
//!
//! ```sh
//! cargo bench -p lanebloom-guard --bench gets
//! ```
//!
//! The contestants take turns within each round. The table shows the lowest decile of the rounds.

use lanebloom_guard::CacheGuard;
use lanebloom_guard::future::GuardedCache;
use std::convert::Infallible;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Cached keys, from 0 on. They are few for the filter, so that it lets none of the made-up keys
/// through, and few for the processor's caches: what is measured is the work, not memory.
const KEYS: u64 = 1000;
const MADE_UP: u64 = 1 << 40;
const CONTESTANTS: usize = 8;
/// Gets of a contestant in a round.
const GETS: u64 = 20_000;

/// Gets a number of keys, from a key on.
type Contestant<'a> = (&'static str, Box<dyn Fn(u64) + Sync + 'a>);

/// A contestant that calls `$get` with each key. The loop is within, so that it can be inlined.
macro_rules! contestant {
    ($name:literal, $get:expr) => {
        (
            $name,
            Box::new(|from| {
                (from..from + GETS).for_each(|i| {
                    black_box($get(i));
                })
            }) as _,
        )
    };
}

fn main() {
    // Only `cargo bench` names it so; `cargo test` sees that it works.
    let rounds = if std::env::args().any(|arg| arg == "--bench") {
        100
    } else {
        1
    };
    let guards = [(); 2].map(|()| CacheGuard::<u64>::with_capacity(1_000_000, 0.01).unwrap());
    for guard in &guards {
        guard.insert_batch(&Vec::from_iter(0..KEYS));
    }
    let guard = &guards[0];
    let hour = Duration::from_secs(3600);
    let moka_async = moka::future::Cache::builder()
        .max_capacity(100_000)
        .time_to_live(hour)
        .build();
    let moka = moka::sync::Cache::builder()
        .max_capacity(100_000)
        .time_to_live(hour)
        .build();
    let builder = || GuardedCache::<u64, u64>::builder().time_to_live(hour);
    let cache = builder().build(async |id| Ok::<_, Infallible>(Some(id))).unwrap();
    let blocking = builder().build_blocking(|id| Ok::<_, Infallible>(Some(id))).unwrap();
    for key in 0..KEYS {
        moka.insert(key, key);
        at_once(pin!(moka_async.insert(key, key)));
        cache.insert_value(&key, key);
        blocking.insert_value(&key, key);
    }
    cache.mark_ready();
    blocking.mark_ready();
    // The second thread's keys begin at an odd multiple of `GETS`.
    let of_thread = |i: u64| &guards[(i / GETS % 2) as usize];
    let contestants: [Contestant; CONTESTANTS] = [
        contestant!("check, turned away", |i| guard.check(&(MADE_UP + i)).is_some()),
        contestant!("check, a guard per thread", |i| of_thread(i)
            .check(&(MADE_UP + i))
            .is_some()),
        contestant!("get, turned away", |i| at_once(pin!(cache.get(&(MADE_UP + i))))
            .unwrap()),
        contestant!("blocking get, turned away", |i| blocking.get(&(MADE_UP + i)).unwrap()),
        contestant!("moka's async get", |i| at_once(pin!(moka_async.get(&(i % KEYS))))),
        contestant!("get, cached", |i| at_once(pin!(cache.get(&(i % KEYS)))).unwrap()),
        contestant!("moka's blocking get", |i| moka.get(&(i % KEYS))),
        contestant!("blocking get, cached", |i| blocking.get(&(i % KEYS)).unwrap()),
    ];
    // The contestant with which each is compared.
    let bases: [usize; CONTESTANTS] = [0, 0, 0, 0, 4, 4, 6, 6];

    let (mut alone, mut by_two) = ([const { Vec::new() }; CONTESTANTS], [const { Vec::new() }; CONTESTANTS]);
    for round in 0..rounds {
        for (at, (_, gets)) in contestants.iter().enumerate() {
            // Into the processor's caches what the contestant before has pushed out.
            gets(round * 2 * GETS);
            let began = Instant::now();
            gets(round * 2 * GETS);
            alone[at].push(began.elapsed());
            by_two[at].push(two_threads(gets, round * 2 * GETS));
        }
    }
    let of_this = cache.stats();
    assert_eq!(of_this.guard.turned_away, 6 * GETS * rounds);
    assert_eq!((of_this.hits, of_this.loads), (6 * GETS * rounds, 0));

    println!("{:28} {:>8} {:>7} {:>22}", "", "ns", "ratio", "two threads, times one");
    for (at, (name, _)) in contestants.iter().enumerate() {
        let (alone_at, base) = (decile(&alone[at]), decile(&alone[bases[at]]));
        let speedup = 2.0 * alone_at / decile(&by_two[at]);
        println!("{name:28} {:8.1} {:7.2} {speedup:22.2}", alone_at, alone_at / base);
    }
}

/// From the start of the first to the end of the last.
fn two_threads(gets: &(dyn Fn(u64) + Sync), from: u64) -> Duration {
    let start = Barrier::new(2);
    let run = |from| {
        gets(from);
        start.wait();
        let began = Instant::now();
        gets(from);
        (began, Instant::now())
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| run(from + GETS));
        let (this, other) = (run(from), other.join().unwrap());
        this.1.max(other.1) - this.0.min(other.0)
    })
}

fn at_once<T>(future: Pin<&mut impl Future<Output = T>>) -> T {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nothing is loaded"),
    }
}

/// In ns per get.
fn decile(times: &[Duration]) -> f64 {
    let mut times = Vec::from(times);
    times.sort_unstable();
    times[times.len() / 10].as_nanos() as f64 / GETS as f64
}
