//! Lookups of a filter in Redis, of RedisBloom, of a local filter, of `SharedBloom` and of
//! `SharedWindow`, side by side. What a `SharedSet` costs beside a `SharedBloom`, and a guard that
//! opens above a lag beside one that does not. Also the bytes that the shared ones send, and the
//! time of their inserts and lookups while the server is well, and while it is not.
//!
//!     cargo bench --bench redis --features redis                       # everything, about 2 minutes
//!     cargo bench --bench redis --features redis -- --record FILE      # the tables into benches/FILE too
//!     cargo bench --bench redis --features redis -- --sets    # SharedSet and open_above_lag alone
//!     cargo bench --bench redis --features redis -- --test             # tiny, to see that it runs
//!
//! Needs `redis-server`, which it starts, on the loopback; clients and server share the machine's
//! cores. The module RedisBloom is measured where the tests find it: `redis_server.rs`
//! says where that is.
//!
//! How it measures: all filters hold the same keys at a rate of 1%, half of the lookups are hits,
//! and every answer is counted: all members must be found, and of others no more than the rate
//! allows. In a round every way of asking has its turn; the table shows the median of the rounds.
//! Bytes are what the server counts in `INFO`, the protocol's own included.

#[path = "../crates/redis/tests/servers/redis_shared/proxy.rs"]
mod proxy;
#[path = "../crates/redis/tests/servers/redis_server.rs"]
mod redis_server;

use clap::Parser;
use hdrhistogram::Histogram;
use lanebloom::{Bitmap, ConcurrentBloom, Murmur3, WindowedBloom};
use lanebloom_benches::{BenchArgs, machine, median, number, parse_size};
use lanebloom_formats::RedisBloom;
use lanebloom_guard::CacheGuard;
use lanebloom_redis::{SharedBloom, SharedSet, SharedWindow, Transfer};
use proxy::Proxy;
use redis::{Connection, Script};
use redis_server::{Redis, Server};
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Args {
    /// Keys in the filters.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    keys: u64,
    /// Rounds of which the median is taken.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds for which each way of asking is measured in a round.
    #[arg(long, default_value_t = 300)]
    milliseconds: u64,
    /// Sizes of filters whose comparison is timed: bytes with K, M or G.
    #[arg(long, value_delimiter = ',', value_parser = parse_size, default_value = "1M,8M,64M")]
    sizes: Vec<usize>,
    /// The table of SharedSet and the cost of `open_above_lag` alone.
    #[arg(long)]
    sets: bool,
    #[command(flatten)]
    bench: BenchArgs,
}

/// Bits of a plain bitmap per key, and how many of them a key sets: the textbook's for a rate of
/// 1%.
const BITS_PER_KEY: u64 = 10;
const BITS_OF_A_KEY: u64 = 7;
/// Keys of a batch.
const BATCH: u64 = 64;
const PATIENCE: Duration = Duration::from_secs(60);

/// Members are the numbers of 0.., the others are from here on.
const OTHERS: u64 = 1 << 40;

fn offsets(key: u64, bits: u64) -> impl Iterator<Item = u64> {
    let (one, other) = Murmur3::default().hash128(&key);
    (0..BITS_OF_A_KEY).map(move |i| one.wrapping_add(i.wrapping_mul(other)) % bits)
}

/// A way to ask: answers how many of these keys are there.
type Ask<'a> = Box<dyn FnMut(&[u64]) -> usize + 'a>;

/// A name, the keys of one call, and how a client is made.
struct Way<'a> {
    name: &'static str,
    batch: u64,
    client: Box<dyn Fn() -> Ask<'a> + Sync + 'a>,
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.keys, args.rounds, args.milliseconds, args.sizes) = (2000, 1, 2, vec![1 << 16]);
    }
    let module = redis_server::bloom_module();
    let mut server = Server::default();
    if let Some(module) = &module {
        server = server.module(module);
    }
    let Some(redis) = server.start() else {
        return;
    };
    let mut out = format!("{}\n", machine());
    if module.is_none() {
        out += "(RedisBloom is not there, and is not measured.)\n";
    }
    if !args.sets {
        out += &lookups(&args, &redis, module.is_some());
    }
    out += &sets(&args, &redis);
    out += &refused(&args, &redis);
    if !args.sets {
        out += &comparisons(&args, &redis);
        // Bytes are counted on a server that nobody else uses: a closed node may still push.
        let quiet = Server::default().start().expect("a second server");
        out += &wire(&args, &quiet);
        out += &idle(&args, &quiet);
        out += &faults(&args);
    }
    args.bench.add(&mut String::new(), &out);
}

fn fill(args: &Args, redis: &Redis, module: bool) -> ConcurrentBloom {
    let filter = ConcurrentBloom::builder()
        .expected_keys(args.keys as usize)
        .build()
        .unwrap();
    let bits = BITS_PER_KEY * args.keys;
    let mut bitmap = vec![0u8; bits.div_ceil(8) as usize];
    let mut connection = redis.connection();
    if module {
        redis::cmd("BF.RESERVE")
            .arg("bf")
            .arg(0.01)
            .arg(args.keys)
            .exec(&mut connection)
            .unwrap();
    }
    let keys: Vec<u64> = (0..args.keys).map(number).collect();
    for keys in keys.chunks(1000) {
        filter.insert_batch(keys);
        for offset in keys.iter().flat_map(|&key| offsets(key, bits)) {
            bitmap[(offset / 8) as usize] |= 0x80 >> (offset % 8);
        }
        if module {
            redis::cmd("BF.MADD").arg("bf").arg(keys).exec(&mut connection).unwrap();
        }
    }
    redis::cmd("SET")
        .arg("bitmap")
        .arg(bitmap)
        .exec(&mut connection)
        .unwrap();
    filter
}

fn lookups(args: &Args, redis: &Redis, module: bool) -> String {
    let filter = fill(args, redis, module);
    let bits = BITS_PER_KEY * args.keys;
    let script = Script::new(
        "local n, found = tonumber(ARGV[1]), 0
        for i = 2, #ARGV, n do
            local all = 1
            for j = i, i + n - 1 do
                if redis.call('GETBIT', KEYS[1], ARGV[j]) == 0 then all = 0 break end
            end
            found = found + all
        end
        return found",
    );
    let (script, filter) = (&script, &filter);
    let shared = SharedBloom::builder("shared")
        .connect(redis.client(), filter.clone())
        .unwrap();
    let shared = &shared;
    let forgetting = &window(args, "window", redis.client(), Duration::from_secs(3600));
    for keys in (0..args.keys).map(number).collect::<Vec<_>>().chunks(1000) {
        forgetting.insert_batch(keys);
    }
    let bitmap = move || -> Ask<'_> {
        let mut connection = redis.connection();
        Box::new(move |keys| {
            let mut pipe = redis::pipe();
            for offset in keys.iter().flat_map(|&key| offsets(key, bits)) {
                pipe.cmd("GETBIT").arg("bitmap").arg(offset);
            }
            let bits: Vec<u8> = pipe.query(&mut connection).unwrap();
            bits.chunks(BITS_OF_A_KEY as usize)
                .filter(|bits| !bits.contains(&0))
                .count()
        })
    };
    let lua = move || -> Ask<'_> {
        let mut connection = redis.connection();
        Box::new(move |keys| {
            let mut call = script.key("bitmap");
            call.arg(BITS_OF_A_KEY);
            call.arg(keys.iter().flat_map(|&key| offsets(key, bits)).collect::<Vec<_>>());
            call.invoke(&mut connection).unwrap()
        })
    };
    let exists = move || -> Ask<'_> {
        let mut connection = redis.connection();
        Box::new(move |keys| {
            let mut pipe = redis::pipe();
            for key in keys {
                pipe.cmd("BF.EXISTS").arg("bf").arg(key);
            }
            let found: Vec<bool> = pipe.query(&mut connection).unwrap();
            found.into_iter().filter(|&found| found).count()
        })
    };
    let mexists = move || -> Ask<'_> {
        let mut connection = redis.connection();
        Box::new(move |keys| {
            let mut call = redis::cmd("BF.MEXISTS");
            let found: Vec<bool> = call.arg("bf").arg(keys).query(&mut connection).unwrap();
            found.into_iter().filter(|&found| found).count()
        })
    };
    fn single(filter: &ConcurrentBloom) -> Ask<'_> {
        Box::new(|keys| keys.iter().filter(|key| filter.contains(*key)).count())
    }
    fn batched(filter: &ConcurrentBloom) -> Ask<'_> {
        Box::new(|keys| {
            let mut found = [false; BATCH as usize];
            let found = &mut found[..keys.len()];
            filter.contains_batch(keys, &mut *found);
            found.iter().filter(|&&found| found).count()
        })
    }
    // The module's own filter, taken out of Redis; its keys are the numbers' digits, as the clients
    // of the module send them.
    let fetched = module.then(|| RedisBloom::fetch(&mut redis.connection(), "bf", 1 << 30).unwrap());
    let fetched = &fetched;
    let dumped = move || -> Ask<'_> {
        let (filter, mut digits) = (fetched.as_ref().unwrap(), Vec::new());
        Box::new(move |keys| {
            let mut found = 0;
            for key in keys {
                digits.clear();
                write!(digits, "{key}").unwrap();
                found += usize::from(filter.contains(&digits));
            }
            found
        })
    };
    let way = |name, batch, client| Way { name, batch, client };
    let mut ways: Vec<Way<'_>> = vec![
        way("Redis bitmap, one key", 1, Box::new(bitmap)),
        way("Redis bitmap, pipelined 64", BATCH, Box::new(bitmap)),
        way("Redis bitmap, Lua, one key", 1, Box::new(lua)),
        way("Redis bitmap, Lua, 64", BATCH, Box::new(lua)),
    ];
    if module {
        ways.push(way("BF.EXISTS", 1, Box::new(exists)));
        ways.push(way("BF.EXISTS, pipelined 64", BATCH, Box::new(exists)));
        ways.push(way("BF.MEXISTS, 64", BATCH, Box::new(mexists)));
        ways.push(way("RedisBloom, fetched, one key", 1, Box::new(dumped)));
    }
    ways.push(way("local filter, one key", 1, Box::new(|| single(filter))));
    ways.push(way("local filter, batches of 64", BATCH, Box::new(|| batched(filter))));
    ways.push(way("SharedBloom, one key", 1, Box::new(|| single(shared))));
    ways.push(way("SharedBloom, batches of 64", BATCH, Box::new(|| batched(shared))));
    ways.push(way(
        "SharedWindow, one key",
        1,
        Box::new(|| Box::new(|keys| keys.iter().filter(|key| forgetting.contains(*key)).count())),
    ));
    ways.push(way(
        "SharedWindow, batches of 64",
        BATCH,
        Box::new(|| {
            Box::new(|keys| {
                let mut found = [false; BATCH as usize];
                let found = &mut found[..keys.len()];
                forgetting.contains_batch(keys, &mut *found);
                found.iter().filter(|&&found| found).count()
            })
        }),
    ));

    // Meanwhile another node pushes 10000 keys a second, which this one pulls, so that its
    // background thread is at work too.
    let other = SharedBloom::builder("shared")
        .connect(redis.client(), filter.clone())
        .unwrap();
    let done = AtomicBool::new(false);
    let mut times = vec![[Vec::new(), Vec::new()]; ways.len()];
    thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            // Keys of their own, that fill the filter no further than these do: rounds are short.
            for i in 0..args.keys / 100 {
                let due = Duration::from_micros(100 * i);
                thread::sleep(due.saturating_sub(began.elapsed()));
                other.insert(&number(2 * OTHERS + i));
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..args.rounds {
            for (way, times) in ways.iter().zip(&mut times) {
                for (threads, times) in (1..).zip(times) {
                    times.push(measure(args, way, threads));
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let mut out = format!(
        "\nLookups a second, {} keys at a rate of 1%, half of them hits:\n\n| | one thread | two threads |\n|---|--:|--:|\n",
        args.keys
    );
    for (way, [one, two]) in ways.iter().zip(times) {
        writeln!(out, "| {} | {:.0} | {:.0} |", way.name, median(one), median(two)).unwrap();
    }
    out
}

/// Lookups a second of this many threads.
fn measure(args: &Args, way: &Way<'_>, threads: u64) -> f64 {
    let barrier = Barrier::new(threads as usize);
    let counts = thread::scope(|scope| {
        let clients: Vec<_> = (0..threads)
            .map(|thread| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut ask = (way.client)();
                    let mut keys = Vec::new();
                    let (mut asked, mut found, mut members) = (0, 0, 0);
                    barrier.wait();
                    let began = Instant::now();
                    let time = Duration::from_millis(args.milliseconds);
                    while began.elapsed() < time || asked < 2 * BATCH {
                        // Many calls between looks at the clock would be too many over a network;
                        // keys are made here in any case.
                        for _ in 0..if way.name.contains("Redis bitmap") || way.name.contains("BF.") {
                            1
                        } else {
                            64
                        } {
                            keys.clear();
                            for _ in 0..way.batch {
                                let i = number(asked ^ thread << 32);
                                let member = i & 1 == 0;
                                let key = number((i >> 1) % args.keys + if member { 0 } else { OTHERS });
                                members += u64::from(member);
                                keys.push(key);
                                asked += 1;
                            }
                            found += ask(&keys) as u64;
                        }
                    }
                    (asked as f64 / began.elapsed().as_secs_f64(), asked, found, members)
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect::<Vec<_>>()
    });
    let asked: u64 = counts.iter().map(|count| count.1).sum();
    let (found, members) = (
        counts.iter().map(|count| count.2).sum::<u64>(),
        counts.iter().map(|count| count.3).sum::<u64>(),
    );
    let allowed = members as f64 + 0.02 * (asked - members) as f64 + 10.0;
    assert!(
        found >= members && found as f64 <= allowed,
        "{}: {found} of {asked} keys found, of which {members} are members",
        way.name
    );
    counts.iter().map(|count| count.0).sum()
}

/// The calls that a `SharedSet` and a `SharedBloom` have in common, and a filter.
macro_rules! calls {
    ($set:expr) => {
        calls!($set, |keys: &[u64], found: &mut [u64]| $set
            .contains_batch(keys, Bitmap(found)))
    };
    ($set:expr, $contains_batch:expr) => {
        Calls {
            contains: &|keys| keys.iter().filter(|key| $set.contains(*key)).count(),
            contains_batch: &|keys| {
                let mut found = [0u64];
                let keys = keys.chunks(BATCH as usize).map(|keys| {
                    $contains_batch(keys, &mut found);
                    found[0].count_ones() as usize
                });
                keys.sum()
            },
            insert: &|keys| keys.iter().filter(|key| $set.insert(*key)).count(),
            insert_batch: &|keys| keys.chunks(BATCH as usize).map(|keys| $set.insert_batch(keys)).sum(),
        }
    };
}

/// Each takes many keys, and returns how many of them are found, or new.
struct Calls<'a> {
    contains: &'a dyn Fn(&[u64]) -> usize,
    contains_batch: &'a dyn Fn(&[u64]) -> usize,
    insert: &'a dyn Fn(&[u64]) -> usize,
    insert_batch: &'a dyn Fn(&[u64]) -> usize,
}

/// A set that can be rebuilt, beside one that cannot and a local filter: ns per key, by one thread.
fn sets(args: &Args, redis: &Redis) -> String {
    let keys = args.keys as usize;
    let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    let local = build(keys).unwrap();
    let builder = |name: &str| SharedBloom::builder(name).interval(Duration::from_secs(100_000));
    let bloom = builder("bloom").connect(redis.client(), build(keys).unwrap()).unwrap();
    let set = builder("set").connect_set(redis.client(), keys, build).unwrap();
    let subjects: [(&str, Calls<'_>); 3] = [
        ("local filter", calls!(local)),
        ("SharedBloom", calls!(bloom)),
        (
            "SharedSet",
            calls!(set, |keys: &[u64], found: &mut [u64]| set
                .contains_batch(keys, Bitmap(found))),
        ),
    ];
    let sync = || {
        bloom.sync(PATIENCE).unwrap();
        set.sync(PATIENCE).unwrap();
    };
    let time = |call: &dyn Fn(&[u64]) -> usize, keys: &[u64]| {
        let began = Instant::now();
        let count = std::hint::black_box(call(keys));
        (began.elapsed().as_nanos() as f64 / keys.len() as f64, count)
    };
    let half =
        |found: usize, asked: usize| assert!((asked / 2..=asked * 53 / 100).contains(&found), "{found} of {asked}");
    let others: Vec<u64> = (0..args.keys).map(|i| number(OTHERS + i)).collect();
    let each = keys / args.rounds / 2;
    let mut times = [(); 3].map(|()| [(); 5].map(|()| Vec::new()));
    let mut members = Vec::new();
    for round in 0..args.rounds {
        let new: Vec<u64> = (0..2 * each).map(|i| number((2 * each * round + i) as u64)).collect();
        for ((_, calls), times) in subjects.iter().zip(&mut times) {
            let (one, new_ones) = time(calls.insert, &new[..each]);
            let (again, of_old) = time(calls.insert, &new[..each]);
            let (batch, new_batch) = time(calls.insert_batch, &new[each..]);
            assert!(of_old == 0 && new_ones > each * 9 / 10 && new_batch > each * 9 / 10);
            for (times, time) in times.iter_mut().zip([one, again, batch]) {
                times.push(time);
            }
        }
        sync();
        members.extend(new);
    }
    // Half of them are members, in no order.
    let mixed = |len: usize| -> Vec<u64> {
        let key = |i: u64| match i & 1 {
            0 => members[(number(i) % members.len() as u64) as usize],
            _ => others[(number(i) % args.keys) as usize],
        };
        (0..len as u64).map(key).collect()
    };
    let asked = mixed(2 * each);
    let lookups = |times: &mut [Vec<f64>; 5], calls: &Calls<'_>| {
        for _ in 0..args.rounds {
            for (times, call) in times[3..].iter_mut().zip([calls.contains, calls.contains_batch]) {
                let (took, found) = time(call, &asked);
                half(found, asked.len());
                times.push(took);
            }
        }
    };
    for ((_, calls), times) in subjects.iter().zip(&mut times) {
        lookups(times, calls);
    }
    // It has two generations, and the newer one is empty.
    let fill = |set: &SharedSet| {
        let filled = set.fill_once(PATIENCE, |newest| {
            newest.insert_batch(&members);
            Ok::<_, std::convert::Infallible>(())
        });
        filled.unwrap();
    };
    fill(&set);
    let began = Instant::now();
    set.rebuild(keys, PATIENCE).unwrap();
    let announced = began.elapsed();
    let mut rebuilt = [(); 5].map(|()| Vec::new());
    lookups(&mut rebuilt, &subjects[2].1);
    let began = Instant::now();
    fill(&set);
    let filled = began.elapsed();
    let mut out = format!(
        "\nA set of {keys} keys at 1%, ns per key by one thread, batches of {BATCH}, half of the lookups hits:\n\n\
        | | insert, new | insert, present | new, batches | lookup | lookups, batches |\n|---|--:|--:|--:|--:|--:|\n"
    );
    let rows = subjects.iter().map(|(name, _)| *name).zip(times);
    for (name, times) in rows.chain([("SharedSet, while it is rebuilt", rebuilt)]) {
        let cell = |times: Vec<f64>| {
            if times.is_empty() {
                String::new()
            } else {
                format!("{:.1}", median(times))
            }
        };
        writeln!(out, "| {name} | {} |", times.map(cell).join(" | ")).unwrap();
    }
    writeln!(
        out,
        "\nThe rebuild: {:.1} ms until it was announced, {:.0} ms for the fill and its push; {} bytes of filters meanwhile.",
        announced.as_secs_f64() * 1e3,
        filled.as_secs_f64() * 1e3,
        2 * local.memory_bytes(),
    )
    .unwrap();
    out
}

/// The cost of a guard's look at the lag of its filter.
fn refused(args: &Args, redis: &Redis) -> String {
    let builder = SharedBloom::builder("refused").interval(Duration::from_secs(100_000));
    let guards = [builder.clone(), builder.open_above_lag(Duration::from_secs(2))].map(|builder| {
        let filter = ConcurrentBloom::builder().expected_keys(args.keys as usize).build();
        let shared = builder.connect(redis.client(), filter.unwrap()).unwrap();
        CacheGuard::<u64, _>::new(shared)
    });
    let members = Vec::from_iter((0..args.keys).map(number));
    let others = Vec::from_iter((0..args.keys).map(|i| number(OTHERS + i)));
    for guard in &guards {
        guard.insert_batch(&members);
        while guard.is_open() {
            thread::sleep(Duration::from_millis(10));
        }
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..args.rounds {
        for (guard, times) in guards.iter().zip(&mut times) {
            let began = Instant::now();
            let refused = others.iter().filter(|key| guard.check(key).is_none()).count();
            times.push(began.elapsed().as_nanos() as f64 / others.len() as f64);
            assert!((others.len() * 97 / 100..others.len()).contains(&refused), "{refused}");
        }
    }
    let [without, with] = times.map(median);
    format!(
        "\nA guard's check of a made-up key over a SharedBloom of {} keys: {without:.1} ns, with `open_above_lag` \
        {with:.1} ns.\n",
        args.keys
    )
}

/// A node that exchanges only by `sync`.
fn node(redis: &Redis, name: &str, filter: ConcurrentBloom) -> SharedBloom {
    let builder = SharedBloom::builder(name).interval(Duration::from_secs(100_000));
    builder.connect(redis.client(), filter).unwrap()
}

/// The bytes that the server has received and sent so far.
fn traffic(connection: &mut Connection) -> [u64; 2] {
    let info: String = redis::cmd("INFO").arg("stats").query(connection).unwrap();
    ["total_net_input_bytes:", "total_net_output_bytes:"].map(|field| {
        let value = info.lines().find_map(|line| line.strip_prefix(field));
        value.unwrap().parse().unwrap()
    })
}

/// The bytes from one look at the traffic to the next, without those of the look.
fn between(start: [u64; 2], end: [u64; 2], question: [u64; 2]) -> [u64; 2] {
    [0, 1].map(|way| {
        (end[way] - start[way])
            .checked_sub(question[way])
            .expect("more bytes than the question's")
    })
}

/// The bytes of a look at the traffic: the least of several, whose digits vary.
fn question(connection: &mut Connection) -> [u64; 2] {
    let looks: Vec<[u64; 2]> = (0..5).map(|_| traffic(connection)).collect();
    [0, 1].map(|way| {
        let costs = looks.windows(2).map(|looks| looks[1][way] - looks[0][way]);
        costs.min().expect("five looks")
    })
}

fn wire(args: &Args, redis: &Redis) -> String {
    let mut out = format!(
        "\nBytes on the wire per inserted key, a filter for {} keys at 1%, exchanged 10 times a second:\n\n\
        | keys a second | keys of a push | pushed, per key | pulled by another, per key | of the pushed, bits |\n|--:|--:|--:|--:|--:|\n",
        args.keys
    );
    let mut connection = redis.connection();
    for each in [1, 10, 100, 1000, 10_000, 100_000u64]
        .into_iter()
        .filter(|&each| each <= args.keys / 4)
    {
        let filter = || {
            ConcurrentBloom::builder()
                .expected_keys(args.keys as usize)
                .build()
                .unwrap()
        };
        let name = format!("wire {each}");
        let (one, other) = (node(redis, &name, filter()), node(redis, &name, filter()));
        let pushes = (args.keys / 2 / each).min(20);
        let (mut pushed, mut pulled) = (0, 0);
        // The first messages of the nodes to each other.
        one.sync(PATIENCE).unwrap();
        other.sync(PATIENCE).unwrap();
        let question = question(&mut connection);
        let before = one.stats().pushed_bytes;
        for push in 0..pushes {
            let keys: Vec<u64> = (push * each..(push + 1) * each).map(number).collect();
            let start = traffic(&mut connection);
            one.insert_batch(&keys);
            one.sync(PATIENCE).unwrap();
            let middle = traffic(&mut connection);
            other.sync(PATIENCE).unwrap();
            let end = traffic(&mut connection);
            pushed += between(start, middle, question).iter().sum::<u64>();
            pulled += between(middle, end, question).iter().sum::<u64>();
        }
        assert!(
            **one.filter() == **other.filter(),
            "what was pulled is not what was pushed"
        );
        let per_key = |bytes: u64| bytes as f64 / (pushes * each) as f64;
        let payload = per_key(one.stats().pushed_bytes - before);
        // At most 6 bits of 2 bytes, and a record's 6 bytes; never a chunk for less than a quarter
        // of its bytes.
        assert!(payload <= 4.0 * 18.0, "{payload} bytes a key");
        writeln!(
            out,
            "| {} | {each} | {:.1} | {:.1} | {payload:.1} |",
            10 * each,
            per_key(pushed),
            per_key(pulled)
        )
        .unwrap();
    }
    out
}

/// The time of an exchange without news: a comparison of the filter with the pushed bits, and a
/// call.
fn comparisons(args: &Args, redis: &Redis) -> String {
    let mut out = "\nAn exchange with nothing new, by the size of the filter:\n\n| | ms |\n|---|--:|\n".to_owned();
    for &size in &args.sizes {
        let filter = ConcurrentBloom::builder().memory_budget(size).build().unwrap();
        let keys: Vec<u64> = (0..filter.expected_keys() as u64).map(number).collect();
        filter.insert_batch(&keys);
        let one = node(redis, &format!("size {size}"), filter);
        let pushed = one.stats().pushed_bytes;
        let times = (0..args.rounds.max(3)).map(|_| {
            let began = Instant::now();
            one.sync(PATIENCE).unwrap();
            began.elapsed().as_secs_f64() * 1e3
        });
        let times = median(times);
        assert_eq!(one.stats().pushed_bytes, pushed);
        writeln!(out, "| {} KiB | {times:.3} |", size >> 10).unwrap();
    }
    out
}

/// A node of a window of four generations, each of which takes all keys.
fn window(args: &Args, name: &str, server: redis::Client, window: Duration) -> SharedWindow {
    let builder = WindowedBloom::builder()
        .expected_keys(3 * args.keys as usize)
        .window(window);
    let shared = SharedBloom::builder(name);
    shared
        .connect_window(server, builder.time_of_day().build().unwrap())
        .unwrap()
}

/// The cost of an interval without news.
fn idle(args: &Args, redis: &Redis) -> String {
    let mut out =
        "\nBytes on the wire of an exchange that has nothing to say:\n\n| | to the server | back |\n|---|--:|--:|\n"
            .to_owned();
    let filter = ConcurrentBloom::builder()
        .expected_keys(args.keys as usize)
        .build()
        .unwrap();
    let one = node(redis, "idle", filter);
    let builder = WindowedBloom::builder().expected_keys(3 * args.keys as usize);
    let forgetting = builder.window(Duration::from_secs(3600)).time_of_day().build().unwrap();
    let shared = SharedBloom::builder("idle window").interval(Duration::from_secs(100_000));
    let forgetting = shared.connect_window(redis.client(), forgetting).unwrap();
    let mut connection = redis.connection();
    for (name, sync) in [
        ("SharedBloom", &(|| one.sync(PATIENCE)) as &dyn Fn() -> _),
        ("SharedWindow, 4 generations", &|| forgetting.sync(PATIENCE)),
    ] {
        // The first messages of the node.
        sync().unwrap();
        let question = question(&mut connection);
        let start = traffic(&mut connection);
        sync().unwrap();
        let bytes = between(start, traffic(&mut connection), question);
        writeln!(out, "| {name} | {} | {} |", bytes[0], bytes[1]).unwrap();
    }
    out
}

/// How long an insert with a lookup takes while something is wrong with the server. Exchanges are
/// every 2 ms, the window rotates five times a second, and one key in 256 is new.
fn faults(args: &Args) -> String {
    let Some(mut redis) = Server::default().start() else {
        return String::new();
    };
    let proxy = Proxy::to(redis.port());
    let (interval, timeout) = (Duration::from_millis(2), Duration::from_millis(500));
    // A filter that is full has nothing to push, and feels no fault.
    let keys = args.keys.max(1_000_000) as usize;
    let filter = ConcurrentBloom::builder().expected_keys(keys).build().unwrap();
    let shared = SharedBloom::builder("lasting").interval(interval).timeout(timeout);
    let lasting = shared.connect(proxy.client(), filter).unwrap();
    let builder = WindowedBloom::builder().expected_keys(3 * keys);
    let filter = builder
        .window(Duration::from_millis(600))
        .time_of_day()
        .build()
        .unwrap();
    let shared = SharedBloom::builder("forgetting").interval(interval).timeout(timeout);
    let forgetting = shared.connect_window(proxy.client(), filter).unwrap();

    let mut out = "\nAn insert and a lookup, ns, meanwhile:\n\n\
        | the server | SharedBloom p50 | p99 | p99.9 | SharedWindow p50 | p99 | p99.9 |\n|---|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let limit = |redis: &Redis, bytes: &str| {
        let mut command = redis::cmd("CONFIG");
        command
            .arg(&["SET", "maxmemory", bytes])
            .exec(&mut redis.connection())
            .unwrap();
    };
    let mut new = 0..u64::MAX;
    for fault in ["is well", "was killed", "is silent", "is full", "is well again"] {
        match fault {
            "was killed" => redis.kill(),
            "is silent" => proxy.stall(true),
            "is full" => limit(&redis, "1"),
            _ => {}
        }
        let faulty = !fault.starts_with("is well");
        let one = latencies(args, &mut new, faulty.then_some(&|| lasting.stats().failures), |key| {
            lasting.insert(key);
            lasting.contains(key)
        });
        let other = latencies(
            args,
            &mut new,
            faulty.then_some(&|| forgetting.stats().failures),
            |key| {
                forgetting.insert(key);
                forgetting.contains(key)
            },
        );
        match fault {
            "was killed" => redis.restart(),
            "is silent" => proxy.stall(false),
            "is full" => limit(&redis, "0"),
            _ => {}
        }
        lasting.sync(PATIENCE).unwrap();
        forgetting.sync(PATIENCE).unwrap();
        let cells = [one, other].map(|times| {
            [0.5, 0.99, 0.999]
                .map(|q| times.value_at_quantile(q).to_string())
                .join(" | ")
        });
        writeln!(out, "| {fault} | {} |", cells.join(" | ")).unwrap();
    }
    out
}

/// The times of `ask`, in ns. The first is for a new key, and so is one in 256 after it. It lasts
/// as long as all rounds and, during a fault, until a further exchange has failed.
fn latencies(
    args: &Args,
    new: &mut Range<u64>,
    failures: Option<&dyn Fn() -> u64>,
    ask: impl Fn(&u64) -> bool,
) -> Histogram<u64> {
    let mut times = Histogram::new(3).unwrap();
    let felt = failures.map(|failures| (failures, failures()));
    let began = Instant::now();
    let time = Duration::from_millis(args.milliseconds * args.rounds as u64);
    let mut key = 0;
    for i in 0u64.. {
        if i % 256 == 0 {
            key = number(new.next().unwrap());
            let due = felt.as_ref().is_none_or(|(failures, before)| failures() > *before);
            if due && began.elapsed() >= time && i >= 1000 {
                break;
            }
        }
        let before = Instant::now();
        assert!(ask(&key), "a key that was just inserted is missing");
        times.record(before.elapsed().as_nanos() as u64).unwrap();
    }
    times
}
