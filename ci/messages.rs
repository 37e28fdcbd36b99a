//! A program with mistakes that users make. `ci/messages.sh` compiles it, and looks in the
//! compiler's output for each line of this file that begins with `//~`.

use lanebloom::{
    BloomView, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Prehashed, ScalableBloom, SipHash13,
    StaticFilter, TombstoneBloom, WindowedBloom,
};
use lanebloom_guard::{CacheGuard, sync::GuardedCache};

//~ error[E0277]: the keys here have type `String`, and `str` is not one of its forms
//~ = note: name the borrowed form of the keys, `str` for strings: a `GuardedCache<str, _>`
//~ not a key of type `String`
//~ = help: the trait `AsKey<String>` is not implemented for `str`
fn borrowed_form_of_a_cache(cache: &GuardedCache<String, u64>) {
    let _ = cache.get("ann");
}

//~ error[E0277]: the keys here have type `u64`, and `i32` is not one of its forms
fn other_integer(guard: &CacheGuard<u64>) {
    guard.insert(&17_i32);
}

/// A key without `Funnel`.
struct Ssn(u64);

//~ error[E0277]: `Ssn` cannot be a key of a filter with the hasher `lanebloom::Murmur3`
//~ neither a `Funnel` type, with a hasher that hashes keys, nor `Hashed`
//~ = note: implement `lanebloom::Funnel` for a type of your own, or wrap a key that has `Hash`:
fn key_without_a_funnel(filter: ConcurrentBloom) {
    filter.insert(&Ssn(17));
}

//~ error[E0277]: `u64` cannot be a key of a filter with the hasher `lanebloom::Prehashed`
//~ = note: wrap a hash: `Hashed(hash)`, `Hashed::slice(&hashes)`; `Prehashed` and `()` take no
fn hash_without_its_wrapper(filter: ConcurrentBloom<Prehashed>, hash: u64) {
    filter.contains(&hash);
}

//~ error[E0277]: the answers of a batch cannot go to `&mut [u8; 2]`
//~ = note: places for answers: `&mut [bool]`, `&mut Vec<bool>`, `Bitmap(&mut [u64])`, `Absent(|i|
fn wrong_place_for_answers(filter: ConcurrentBloom) {
    filter.contains_batch(&["ann", "bob"], &mut [0_u8; 2]);
}

//~ error[E0277]: the answers of a batch cannot go to `&mut [u64]`
fn bits_without_their_wrapper(filter: ConcurrentBloom, new: &mut [u64]) {
    filter.insert_batch_into(&["ann", "bob"], new);
}

//~ expected `Filter<Bloom>`, found `()`
fn name_of_a_bloom_filter(filter: ConcurrentBloom) {
    let () = filter;
}

//~ expected `Filter<Bloom, SipHash13>`, found `()`
fn name_with_a_hasher(filter: ConcurrentBloom<SipHash13>) {
    let () = filter;
}

//~ no method named `remove` found for struct `lanebloom::Filter<
fn hint_of_another_filter(filter: ConcurrentBloom) {
    filter.remove("ann");
}

//~ expected `Filter<Bloom<BloomCounters>>`, found `()`
fn name_of_a_counting_filter(filter: CountingBloom) {
    let () = filter;
}

//~ expected `Frozen<Bloom<BloomBytes<'_>>>`, found `()`
fn name_of_a_view(view: BloomView<'_>) {
    let () = view;
}

//~ expected `Frozen<Fuse<OwnCells>>`, found `()`
fn name_of_a_static_filter(filter: StaticFilter) {
    let () = filter;
}

//~ expected `Filter<Bucketed<CuckooTable>>`, found `()`
fn name_of_a_cuckoo_filter(filter: CuckooFilter) {
    let () = filter;
}

//~ expected `Filter<Bucketed<DLeftTable>>`, found `()`
fn name_of_a_d_left_filter(filter: DLeftFilter) {
    let () = filter;
}

//~ expected `Filter<Scalable>`, found `()`
fn name_of_a_growing_filter(filter: ScalableBloom) {
    let () = filter;
}

//~ expected `Filter<Tombstone>`, found `()`
fn name_of_a_filter_with_tombstones(filter: TombstoneBloom) {
    let () = filter;
}

//~ expected `Filter<Windowed>`, found `()`
fn name_of_a_window(filter: WindowedBloom) {
    let () = filter;
}

fn main() {}
