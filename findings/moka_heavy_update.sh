#!/usr/bin/env bash
# moka 0.12.16, the cache of many Rust services: a value that is heavier than the whole cache
# (`max_capacity` with a `weigher`) empties the cache if its key is already cached. If the key is
# not cached, moka rejects the value and keeps all others.
#
# Seen: a cache of capacity 100 holds 40 keys of weight 2. After an insert of weight 101 for an
# absent key, 40 values are held. After the same insert for a cached key, none is held, not even the
# heavy one. The first insert is judged by the admission policy; an update is not: it adds its
# weight, and the least recently used values leave until the rest fits, which the heavy value, the
# last one in the queue, never does.
#
# A service that puts a membership filter before such a cache meets this when one row grows, a
# user with a very long list, say: each refresh of that row sends the whole service to its store.
# A caller can weigh the value first, and `invalidate` the key in place of the insert.
#
# Needs cargo and crates.io. Fails if the behaviour changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "moka-heavy-update"
version = "0.0.0"
edition = "2021"

[dependencies]
moka = { version = "=0.12.16", features = ["sync"] }
TOML
cat > src/main.rs <<'RUST'
use moka::sync::Cache;

/// The values that are held after an insert of weight 101 for `key`, and the heavy one.
fn held_after_heavy_insert(key: u32) -> (u64, Option<u32>) {
    let cache = Cache::builder()
        .max_capacity(100)
        .weigher(|_: &u32, weight: &u32| *weight)
        .build();
    for key in 0..40 {
        cache.insert(key, 2);
    }
    cache.run_pending_tasks();
    assert_eq!((cache.entry_count(), cache.weighted_size()), (40, 80));
    cache.insert(key, 101);
    cache.run_pending_tasks();
    cache.run_pending_tasks();
    (cache.entry_count(), cache.get(&key))
}

fn main() {
    let (absent, cached) = (held_after_heavy_insert(1000), held_after_heavy_insert(7));
    println!("an absent key: {} of 40 are held, the heavy value: {:?}", absent.0, absent.1);
    println!("a cached key:  {} of 40 are held, the heavy value: {:?}", cached.0, cached.1);
    assert_eq!(absent, (40, None));
    assert_eq!(cached, (0, None));
}
RUST
cargo run --quiet
