#!/usr/bin/env bash
# quick_cache 0.7.0 (crates.io): gets of one key wait for one load if it succeeds. If it fails, the
# error goes to the first get alone: the next one loads, the others wait for it, and so on. With
# five gets and a load that fails after 0.2 s, the last get waits 1 s. One expects either one error
# for all, or five loads side by side.
#
# Seen: moka 0.12.16 `try_get_with`: 1 load, 5 errors, the last one after 0.2 s. quick_cache
# `get_or_insert_with`: 5 loads, 5 errors, the last one after 1.0 s.
#
# A user of membership filters meets it while the store times out: every key that passes the filter
# is loaded, and a popular one collects gets. With a timeout of 5 s the twentieth get of the key
# waits 100 s, and holds its thread and its connection.
#
# Needs cargo. Fails if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "errors-in-turn"
version = "0.0.0"
edition = "2021"

[dependencies]
moka = { version = "=0.12.16", features = ["sync"] }
quick_cache = "=0.7.0"
TOML
cat >src/main.rs <<'RUST'
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_millis(200);
const GETS: u32 = 5;

/// The loads, and the timeouts that the slowest of five gets waited for.
fn gets_of_a_key(get: impl Fn(&dyn Fn() -> Result<u64, String>) -> bool + Sync) -> (u32, u32) {
    let (loads, begin) = (AtomicU32::new(0), Barrier::new(GETS as usize));
    let load = || {
        loads.fetch_add(1, Ordering::Relaxed);
        thread::sleep(TIMEOUT);
        Err(String::from("the store timed out"))
    };
    let one = || {
        begin.wait();
        let began = Instant::now();
        assert!(!get(&load), "the load fails");
        began.elapsed()
    };
    let waits: Vec<Duration> = thread::scope(|scope| {
        let gets: Vec<_> = (0..GETS).map(|_| scope.spawn(one)).collect();
        gets.into_iter().map(|get| get.join().unwrap()).collect()
    });
    let slowest = waits.into_iter().max().unwrap();
    println!("loads: {}, the last error after {:.1} s", loads.load(Ordering::Relaxed), slowest.as_secs_f64());
    (loads.into_inner(), (slowest.as_secs_f64() / TIMEOUT.as_secs_f64()) as u32)
}

fn main() {
    let moka = moka::sync::Cache::<u64, u64>::new(100);
    print!("moka: ");
    let (loads, timeouts) = gets_of_a_key(|load| moka.try_get_with(1, load).is_ok());
    assert!(loads < GETS && timeouts < GETS);

    let quick = quick_cache::sync::Cache::<u64, u64>::new(100);
    print!("quick_cache: ");
    let in_turn = gets_of_a_key(|load| quick.get_or_insert_with(&1, load).is_ok());
    assert!(in_turn.0 == GETS && in_turn.1 >= GETS);
}
RUST
cargo run --quiet
