//! A store of coupons behind a filter that can delete. Workers check baskets of codes, many of
//! which are made up or used already. They ask the filter first, and a code that it does not know
//! never reaches the store. A worker that redeems a coupon removes it from the filter, while all
//! others go on checking. Meanwhile new coupons are issued.
//!
//!     cargo run --release --bin coupons                          # a million coupons, all cores
//!     cargo run --release --bin coupons -- --rate 0.001 --threads 2
//!
//! The exit status says whether the filter kept its promise: no valid coupon is ever refused, every
//! used one is removed, and the coupons left at the end are the unused ones.

use clap::Parser;
use lanebloom::{BuildError, CountingBloom};
use std::collections::HashMap;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

#[derive(Parser)]
struct Args {
    /// Coupons in all. Half of them are there when the shop opens.
    #[arg(long, default_value_t = 1_000_000)]
    coupons: u64,
    /// Baskets of 16 codes that customers bring for every 100 coupons.
    #[arg(long, default_value_t = 10)]
    baskets: u64,
    /// The filter's false-positive rate.
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// Threads; by default as many as there are cores.
    #[arg(long, default_value_t = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN))]
    threads: NonZero<usize>,
}

/// The source of truth, the state of each coupon. Workers ask it as seldom as possible.
struct Store {
    coupons: HashMap<u64, AtomicU8>,
    asked: AtomicUsize,
}

const PRINTED: u8 = 0;
const ISSUED: u8 = 1;
const USED: u8 = 2;

impl Store {
    /// Makes coupons valid, once the filter knows them.
    fn issue(&self, codes: &[u64]) {
        for code in codes {
            self.coupons[code].store(ISSUED, Ordering::Release);
        }
    }

    /// Uses a coupon; returns whether it was valid and this call used it.
    fn redeem(&self, code: u64) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.coupons.get(&code).is_some_and(|coupon| {
            let used = coupon.compare_exchange(ISSUED, USED, Ordering::AcqRel, Ordering::Acquire);
            used.is_ok()
        })
    }

    /// For the proof alone. (Acquire: pairs with the thread that issued or used the coupon.)
    fn is_valid(&self, code: u64) -> bool {
        let coupon = self.coupons.get(&code);
        coupon.is_some_and(|coupon| coupon.load(Ordering::Acquire) == ISSUED)
    }
}

/// The code of the i-th coupon. Codes beyond the last coupon are made up.
fn code(i: u64) -> u64 {
    let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// A customer's basket: codes of coupons, used or not, and every fourth made up.
fn basket(args: &Args, number: u64) -> [u64; 16] {
    core::array::from_fn(|i| {
        let random = code(u64::MAX - (16 * number + i as u64)) >> 8;
        code(match i % 4 {
            3 => args.coupons + random,
            _ => random % args.coupons,
        })
    })
}

#[derive(Default)]
struct Counts {
    checked: usize,
    turned_away: usize,
    redeemed: usize,
    made_up: usize,
    /// Made-up codes that the filter took for coupons.
    mistaken: usize,
    /// Valid coupons that the filter did not know, or could not remove.
    broken: usize,
}

/// A worker of the shop: checks baskets, and before each issues some coupons more.
fn serve(
    args: &Args,
    filter: &CountingBloom,
    store: &Store,
    baskets: impl Iterator<Item = u64>,
    printed: &[u64],
) -> Counts {
    let mut counts = Counts::default();
    let mut printed = printed.chunks(16);
    for number in baskets {
        if let Some(new) = printed.next() {
            filter.insert_batch(new);
            store.issue(new);
        }
        let codes = basket(args, number);
        let valid_before = codes.map(|code| store.is_valid(code));
        let mut known = [false; 16];
        filter.contains_batch(&codes, &mut known);
        counts.checked += codes.len();
        for (i, &code) in codes.iter().enumerate() {
            counts.made_up += usize::from(i % 4 == 3);
            counts.mistaken += usize::from(i % 4 == 3 && known[i]);
            if !known[i] {
                counts.turned_away += 1;
                // Another worker has used it meanwhile. Otherwise the filter should have known it.
                counts.broken += usize::from(valid_before[i] && store.is_valid(code));
            } else if store.redeem(code) {
                counts.redeemed += 1;
                // Only the worker that used it removes it, so it is removed once.
                counts.broken += usize::from(!filter.remove(&code));
            }
        }
    }
    counts
}

fn main() -> Result<ExitCode, BuildError> {
    let args = Args::parse();
    let codes = Vec::from_iter((0..args.coupons).map(code));
    let filter = CountingBloom::builder()
        .expected_keys(codes.len())
        .false_positive_rate(args.rate)
        .build()?;
    let store = Store {
        coupons: codes.iter().map(|&code| (code, AtomicU8::new(PRINTED))).collect(),
        asked: AtomicUsize::new(0),
    };
    let (first, later) = codes.split_at(codes.len() / 2);
    filter.insert_batch(first);
    store.issue(first);

    let (start, threads) = (Instant::now(), args.threads.get());
    let baskets = args.coupons * args.baskets / 100;
    let counts = thread::scope(|scope| {
        let worker = |i: usize| {
            let (args, filter, store) = (&args, &filter, &store);
            let part = later.len().div_ceil(threads);
            let printed = &later[(i * part).min(later.len())..((i + 1) * part).min(later.len())];
            scope.spawn(move || serve(args, filter, store, (i as u64..baskets).step_by(threads), printed))
        };
        let workers = Vec::from_iter((0..threads).map(worker));
        workers.into_iter().fold(Counts::default(), |sum, worker| {
            let counts = worker.join().unwrap();
            Counts {
                checked: sum.checked + counts.checked,
                turned_away: sum.turned_away + counts.turned_away,
                redeemed: sum.redeemed + counts.redeemed,
                made_up: sum.made_up + counts.made_up,
                mistaken: sum.mistaken + counts.mistaken,
                broken: sum.broken + counts.broken,
            }
        })
    });
    let seconds = start.elapsed().as_secs_f64();

    let left = Vec::from_iter(codes.into_iter().filter(|&code| store.is_valid(code)));
    println!(
        "{threads} threads: {} codes checked in {seconds:.2} s, {} turned away, the store asked {} times; {} redeemed, {} left",
        counts.checked,
        counts.turned_away,
        store.asked.into_inner(),
        counts.redeemed,
        left.len(),
    );
    println!(
        "of {} made-up codes {} were taken for coupons, {:.3}%; the filter says that it would be {:.3}% now",
        counts.made_up,
        counts.mistaken,
        100.0 * counts.mistaken as f64 / counts.made_up as f64,
        100.0 * filter.statistics().false_positive_rate,
    );
    println!("{filter:?} says that it has {} keys", filter.statistics().len);
    // The rest can be removed, and then the filter is empty.
    let missing = left.len() - filter.remove_batch(&left);
    let rest = filter.statistics().len;
    println!(
        "valid coupons refused or not removed: {}; of those left {missing} missing; {rest} keys too many",
        counts.broken
    );
    let kept = counts.broken == 0 && missing == 0 && (rest == 0 || filter.stuck_counters() > 0);
    Ok(ExitCode::from(u8::from(!kept)))
}
