#!/usr/bin/env bash
# fastbloom 0.17.0 (crates.io): `insert` returns `true` for a key that the filter has already, the
# opposite of `HashSet::insert`, and of other filters whose method has the same name and type.
#
# Seen, for the first insert of a key and for the second:
#   HashSet::insert                           true false
#   growable-bloom-filter 2.1.1 insert        true false
#   qfilter 0.3.1 insert                      true false
#   cuckoofilter 0.5.0 test_and_add           true false
#   fastbloom 0.17.0 insert                   false true
#   fastbloom 0.17.0 AtomicBloomFilter insert false true
#   bloomfilter 3.0.2 check_and_set           false true
#
# A user of membership filters meets it who takes another filter into a program that removes
# duplicates with `if seen.insert(key) { keep(row) }`, from a HashSet or from one of the others. The
# types agree, so that it compiles. Each row that is new is dropped then, and each repeated row is
# kept.
#
# Needs cargo. Fails if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "opposites"
version = "0.0.0"
edition = "2021"

[dependencies]
bloomfilter = "=3.0.2"
cuckoofilter = "=0.5.0"
fastbloom = "=0.17.0"
growable-bloom-filter = "=2.1.1"
qfilter = "=0.3.1"
TOML
cat >src/main.rs <<'RUST'
use std::collections::hash_map::DefaultHasher;
use std::collections::HashSet;

/// What the first insert of a key returns, and what the second does.
fn check(name: &str, mut insert: impl FnMut(&str) -> bool, expected: [bool; 2]) {
    let [first, second] = [insert("a"), insert("a")];
    println!("{name:41} {first} {second}");
    assert_eq!([first, second], expected, "{name}");
}

fn main() {
    let (new, known) = ([true, false], [false, true]);
    let mut set = HashSet::new();
    check("HashSet::insert", |key| set.insert(key.to_string()), new);
    let mut growable = growable_bloom_filter::GrowableBloom::new(0.001, 1000);
    check("growable-bloom-filter 2.1.1 insert", |key| growable.insert(key), new);
    let mut quotient = qfilter::Filter::new(1000, 0.001).unwrap();
    check("qfilter 0.3.1 insert", |key| quotient.insert(key).unwrap(), new);
    let mut cuckoo = cuckoofilter::CuckooFilter::<DefaultHasher>::with_capacity(1000);
    check("cuckoofilter 0.5.0 test_and_add", |key| cuckoo.test_and_add(key).unwrap(), new);

    let mut bloom = fastbloom::BloomFilter::with_false_pos(0.001).expected_items(1000);
    check("fastbloom 0.17.0 insert", |key| bloom.insert(key), known);
    let atomic = fastbloom::AtomicBloomFilter::with_false_pos(0.001).expected_items(1000);
    check("fastbloom 0.17.0 AtomicBloomFilter insert", |key| atomic.insert(key), known);
    let mut other = bloomfilter::Bloom::new_for_fp_rate(1000, 0.001).unwrap();
    check("bloomfilter 3.0.2 check_and_set", |key| other.check_and_set(key), known);
}
RUST
cargo run --quiet
