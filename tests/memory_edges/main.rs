//! No function reads or writes beside the slices that it gets. Each slice lies between two pieces
//! of memory that may not be touched, right after the first or right before the second. (Vectors
//! read more bytes at once than a key may have.)

#![cfg(target_os = "linux")]

use lanebloom::bloom::Builder;
use lanebloom::internal::instruction_sets;
use lanebloom::{Absent, Bitmap, ConcurrentBloom, Funnel, Hashed, KeyHasher, Murmur3, SipHash13};
use lanebloom_tests::{WORDS, number};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ptr::{copy_nonoverlapping, null_mut};
use std::slice;

/// Bytes between the two edges, and of what may not be touched before and after: whole pages,
/// however large these are.
const BYTES: usize = 1 << 16;

/// Memory between two edges at which the program ends.
struct Fenced {
    /// `BYTES` that may not be touched, `BYTES` that may, `BYTES` that may not.
    start: *mut u8,
}

impl Fenced {
    fn new() -> Self {
        // SAFETY: new memory, at an address that nothing else has.
        let start = unsafe { mmap_anonymous(null_mut(), 3 * BYTES, ProtFlags::empty(), MapFlags::PRIVATE) };
        let fenced = Self {
            start: start.unwrap().cast(),
        };
        // SAFETY: the middle third of it, to which there is no reference yet.
        unsafe {
            let middle = fenced.start.add(BYTES).cast();
            mprotect(middle, BYTES, MprotectFlags::READ | MprotectFlags::WRITE).unwrap();
        }
        fenced
    }

    /// A copy of `values` whose last byte is the last that may be touched, or its first byte the
    /// first.
    fn put<T: Copy>(&mut self, values: &[T], at_the_end: bool) -> &mut [T] {
        let last = BYTES.checked_sub(size_of_val(values)).unwrap();
        self.copy(values, if at_the_end { last } else { 0 })
    }

    fn copy<T: Copy>(&mut self, values: &[T], at: usize) -> &mut [T] {
        assert!(at + size_of_val(values) <= BYTES);
        // SAFETY: these bytes are among those that may be read and written, as just asserted. They
        // are aligned: pages are, and what is before them or after them is a multiple of T's size.
        // Their values are written before the slice is made, and the slice has the borrow of
        // `self`, alone as long as it lives.
        unsafe {
            let place: *mut T = self.start.add(BYTES + at).cast();
            assert!(place.is_aligned());
            copy_nonoverlapping(values.as_ptr(), place, values.len());
            slice::from_raw_parts_mut(place, values.len())
        }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: what `new` mapped; every reference to it had a borrow of `self`.
        unsafe { munmap(self.start.cast(), 3 * BYTES).unwrap() };
    }
}

/// That the memory is what it is said to be: here a write beyond the edge must end the process.
#[test]
fn the_edges_are_edges() {
    let maps = |fenced: &Fenced| {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let rights = |address: usize| {
            let line = maps.lines().find(|line| {
                let (range, _) = line.split_once(' ').unwrap();
                let (from, to) = range.split_once('-').unwrap();
                let number = |hex| usize::from_str_radix(hex, 16).unwrap();
                (number(from)..number(to)).contains(&address)
            });
            line.map(|line| line.split(' ').nth(1).unwrap().to_owned())
        };
        let start = fenced.start as usize;
        [
            start + BYTES - 1,
            start + BYTES,
            start + 2 * BYTES - 1,
            start + 2 * BYTES,
        ]
        .map(rights)
    };
    let expected = ["---p", "rw-p", "rw-p", "---p"].map(|rights| Some(rights.to_owned()));
    assert_eq!(maps(&Fenced::new()), expected);
}

/// A filter and whether it knows each of `hashes`: it was given every other one, each by itself.
fn filter_and_answers(builder: &Builder, hashes: &[u64]) -> (ConcurrentBloom, Vec<bool>) {
    let filter = builder.clone().build().unwrap();
    hashes
        .iter()
        .step_by(2)
        .for_each(|hash| _ = filter.insert(&Hashed(*hash)));
    let answers = hashes.iter().map(|hash| filter.contains(&Hashed(*hash))).collect();
    (filter, answers)
}

/// The longest of the strings: a page, of the size that most machines have.
const LONGEST: usize = 4096;

/// Strings of every length, each by itself and in batches of many orders.
#[test]
fn strings_at_the_edges() {
    let bytes: Vec<u8> = (0..LONGEST as u64).map(|x| number(x) as u8).collect();
    for at_the_end in [true, false] {
        let cut = |len: usize| if at_the_end { LONGEST - len..LONGEST } else { 0..len };
        let hashes =
            |hasher: &dyn Fn(&[u8]) -> u64| -> Vec<u64> { (0..=LONGEST).map(|len| hasher(&bytes[cut(len)])).collect() };
        let sip = SipHash13::with_key([1; 16]);
        let siphash = hashes(&|key| sip.hash_key(key));
        let murmur3 = hashes(&|key| Murmur3::default().hash_key(key));
        let builder = ConcurrentBloom::builder().expected_keys(LONGEST);
        let (expected, answers) = filter_and_answers(&builder, &murmur3);

        let mut fenced = Fenced::new();
        let memory: &[u8] = fenced.put(&bytes, at_the_end);
        let keys: Vec<&[u8]> = (0..=LONGEST).map(|len| &memory[cut(len)]).collect();
        for isa in instruction_sets() {
            let filter = builder.clone().build().unwrap().with_isa(isa);
            filter.insert_batch(&Vec::from_iter(keys.iter().step_by(2)));
            assert!(filter == expected);
            for (len, key) in keys.iter().enumerate() {
                let (mut hash, mut sip_hash, mut answer) = ([0], [0], [false]);
                Murmur3::default().hash_batch_by(isa, &[*key], &mut hash);
                sip.hash_batch_by(isa, &[*key], &mut sip_hash);
                filter.contains_batch(&[*key], &mut answer);
                assert_eq!((hash, answer), ([murmur3[len]], [answers[len]]), "{isa}: {len} bytes");
                assert_eq!(sip_hash, [siphash[len]], "{isa}: {len} bytes");
            }
            // Ever longer and ever shorter ones, and mixed: 1000 and 4097 have no divisor in
            // common.
            let orders: [fn(usize) -> usize; 3] = [|i| i, |i| LONGEST - i, |i| i * 1000 % (LONGEST + 1)];
            for order in orders {
                let lengths = Vec::from_iter((0..=LONGEST).map(order));
                let ordered = Vec::from_iter(lengths.iter().map(|&len| keys[len]));
                // Small batches too, of which each has other keys for its last.
                for batch in [ordered.len(), 64, 13, 3] {
                    let (mut hashed, mut found) = (vec![0; ordered.len()], vec![false; ordered.len()]);
                    for (keys, hashed) in ordered.chunks(batch).zip(hashed.chunks_mut(batch)) {
                        sip.hash_batch_by(isa, keys, hashed);
                    }
                    assert!(
                        hashed.iter().zip(&lengths).all(|(hash, &len)| *hash == siphash[len]),
                        "{isa}"
                    );
                    for (keys, hashed) in ordered.chunks(batch).zip(hashed.chunks_mut(batch)) {
                        Murmur3::default().hash_batch_by(isa, keys, hashed);
                    }
                    assert!(
                        hashed.iter().zip(&lengths).all(|(hash, &len)| *hash == murmur3[len]),
                        "{isa}"
                    );
                    filter.contains_batch(&ordered, &mut found);
                    assert!(
                        found.iter().zip(&lengths).all(|(answer, &len)| *answer == answers[len]),
                        "{isa}"
                    );
                }
            }
        }
    }
}

/// Lengths around a vector or two, and around a word of the bitmap.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=20).chain([31, 32, 33, 63, 64, 65, 127, 128, 129, 200])
}

/// Slices of keys of one width at both edges, their hashes and answers at another's edge.
fn keys_of_one_width<T: Copy + Funnel>(key: impl FnMut(u64) -> T) {
    let values: Vec<T> = (0..200).map(number).map(key).collect();
    let hashes: Vec<u64> = values.iter().map(|key| Murmur3::default().hash_key(key)).collect();
    let sip = SipHash13::with_key([1; 16]);
    let sip_hashes: Vec<u64> = values.iter().map(|key| sip.hash_key(key)).collect();
    let builder = ConcurrentBloom::builder().expected_keys(200);
    for isa in instruction_sets() {
        let (filter, answers) = filter_and_answers(&builder, &hashes);
        let filter = filter.with_isa(isa);
        let empty = builder.clone().build().unwrap().with_isa(isa);
        let (mut fenced, mut out) = (Fenced::new(), Fenced::new());
        for len in lengths() {
            for at_the_end in [true, false] {
                let (values, answers) = (&values[..len], &answers[..len]);
                let keys = fenced.put(values, at_the_end);
                let hashed = out.put(&vec![0; len], true);
                Murmur3::default().hash_batch_by(isa, keys, hashed);
                assert_eq!(hashed, &hashes[..len], "{isa}");
                sip.hash_batch_by(isa, keys, hashed);
                assert_eq!(hashed, &sip_hashes[..len], "{isa}");
                let found = out.put(&vec![false; len], true);
                filter.contains_batch(keys, &mut *found);
                assert_eq!(found, answers, "{isa}");
                let filter = empty.clone();
                let changed = out.put(&vec![false; len], true);
                filter.insert_batch_into(keys, &mut *changed);
                assert!(changed.is_empty() || changed[0]);
                assert_eq!(filter.insert_batch(keys), 0, "{isa}");
            }
        }
    }
}

#[test]
fn keys_of_one_width_at_the_edges() {
    keys_of_one_width(|x| x as u8);
    keys_of_one_width(|x| x as u16);
    keys_of_one_width(|x| x as u32);
    keys_of_one_width(|x| x);
    keys_of_one_width(u128::from);
    keys_of_one_width(|x| (x, number(x)));
    keys_of_one_width(|x| (x as u32, x));
    keys_of_one_width(u64::to_be_bytes);
    keys_of_one_width(|x| u128::from(x).to_le_bytes());
    keys_of_one_width(|x| [x as u8; 3]);
    keys_of_one_width(|x| [x as u8; 5]);
    keys_of_one_width(|x| [x as u8; 12]);
    keys_of_one_width(|x| [x; 3]);
    keys_of_one_width(|x| [x as u8; 33]);
    // These lie elsewhere; where they lie is read at the edges.
    let text = "of one width are the slices, the pointers to them and not the texts";
    keys_of_one_width(|x| &text[..x as usize % text.len()]);
    keys_of_one_width(|x| &text.as_bytes()[..x as usize % text.len()]);
}

/// Slices of hashes at both edges, and answers right at them, on a filter that is prefetched and on
/// one that is not.
#[test]
fn hashes_and_answers_at_the_edges() {
    let hashes: Vec<u64> = (0..200).map(number).collect();
    for words in WORDS {
        for bytes in [4096, 4 << 20] {
            let builder = ConcurrentBloom::builder().memory_budget(bytes).words_per_key(words);
            let (expected, answers) = filter_and_answers(&builder, &hashes);
            for isa in instruction_sets() {
                let (mut fenced, mut out) = (Fenced::new(), Fenced::new());
                let filter = builder.clone().build().unwrap().with_isa(isa);
                filter.insert_batch(Hashed::slice(&Vec::from_iter(hashes.iter().step_by(2).copied())));
                assert!(filter == expected);
                for len in lengths() {
                    for at_the_end in [true, false] {
                        let (hashes, answers) = (&hashes[..len], &answers[..len]);
                        let asked = fenced.put(hashes, at_the_end);
                        let places = vec![false; len];
                        let found = out.put(&places, at_the_end);
                        filter.contains_batch(Hashed::slice(asked), &mut *found);
                        assert_eq!(found, answers, "{isa}: {len} hashes");
                        let places = vec![0; len.div_ceil(64)];
                        let bitmap = out.put(&places, at_the_end);
                        filter.contains_batch(Hashed::slice(asked), Bitmap(&mut *bitmap));
                        assert!((0..len).all(|i| (bitmap[i / 64] >> (i % 64) & 1 == 1) == answers[i]));
                        let mut absent = 0;
                        filter.contains_batch(Hashed::slice(asked), Absent(|_| absent += 1));
                        assert_eq!(absent, answers.iter().filter(|&&found| !found).count());
                    }
                }
                // All of them are in there by and by.
                for len in lengths() {
                    let new = fenced.put(&hashes[..len], true);
                    let changed = out.put(&vec![true; len], true);
                    let sum = filter.insert_batch_into(Hashed::slice(new), &mut *changed);
                    assert_eq!(sum, changed.iter().filter(|&&changed| changed).count());
                    assert_eq!(filter.insert_batch(Hashed::slice(new)), 0, "{isa}");
                }
            }
        }
    }
}

/// A filter takes from the system only the pages that are written to, so that a big one is there at
/// once.
#[test]
fn pages_without_keys_take_no_memory() {
    // The program's, in which no other test takes more than some megabytes.
    let resident = || -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kilobytes: usize = line.trim_end_matches("kB").trim().parse().unwrap();
        kilobytes << 10
    };
    let before = resident();
    let filter = ConcurrentBloom::builder().memory_budget(1 << 30).build().unwrap();
    assert!(filter.insert("a"));
    assert!(filter.contains("a") && !filter.contains("b"));
    assert_eq!(filter.memory_bytes(), 1 << 30);
    assert!(resident().saturating_sub(before) < 128 << 20);
}
