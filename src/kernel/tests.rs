//! All instruction sets of this CPU give the answers and the bits of the plain one.

use super::plan::MOST_AHEAD;
use super::*;
use crate::geometry::layout::Shape;
use crate::geometry::pattern::MULTIPLIER;
use crate::hash::bytes::mix;
use crate::words::arrays::as_chunks;
use crate::words::bits::{Bits, OwnedRange};
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

/// Distinct hashes without a pattern, and the extreme ones.
fn hashes(from: u64, len: usize) -> Vec<u64> {
    let extremes = [0, u64::MAX, 1, 1 << 63, u64::MAX >> 1];
    let mixed = (from..).map(|i| mix(i.wrapping_mul(MULTIPLIER)));
    extremes.into_iter().chain(mixed).take(len).collect()
}

/// Around the steps of the ladder, around the words of a bitmap, and every number of hashes in the
/// last group.
const LENGTHS: [usize; 28] = [
    0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 34, 37, 38, 39, 40, 41, 57, 63, 64, 65, 72, 100, 127, 300, 700,
];

#[test]
fn blocks_beyond_32_bits_are_left_to_the_plain_code() {
    for isa in Isa::all() {
        assert_eq!(isa.for_blocks(u32::MAX as usize), isa);
        assert_eq!(isa.for_blocks(1 << 32), Isa::PLAIN);
    }
}

/// Every shape of one line.
fn shapes() -> impl Iterator<Item = Shape> {
    let words = crate::geometry::layout::WORDS_PER_KEY;
    let all = words.into_iter().flat_map(|words| Shape::with_words(1, words));
    all.filter(|shape| shape.is_known())
}

/// The first answers of a bitmap.
fn flags(bitmap: &[u64], len: usize) -> Vec<bool> {
    (0..len).map(|i| bitmap[i / 64] >> (i % 64) & 1 == 1).collect()
}

fn inserted(kernels: &Kernels, bits: &Bits, hashes: &[u64]) -> Vec<u64> {
    let mut changed = vec![u64::MAX; hashes.len().div_ceil(64)];
    kernels.insert_hashes(bits.shared(), hashes, &mut changed);
    changed
}

/// Every instruction set of this CPU, on every shape, at every length around the windows: the
/// same answers and the same bits as the plain single calls.
#[test]
fn all_instruction_sets_agree() {
    for shape in shapes() {
        let plain = Kernels::of::<One>(Layout { shape, blocks: 2 }, Isa::PLAIN);
        for isa in Isa::all() {
            // Without prefetching and with it; 32771 is the first prime above the limit.
            for blocks in [1, 7, 32_771] {
                // With lines prefetched by tiles and by groups, as on one CPU or another, and with
                // the whole ring of places in use.
                let forms = if blocks > 30_000 { &[0, usize::MAX][..] } else { &[0] };
                for &groups_from in forms {
                    let tuning = Tuning {
                        groups_from,
                        ahead: MOST_AHEAD,
                        groups_ahead: MOST_AHEAD * 8,
                        ..plan::tuning()
                    };
                    let kernels = Kernels::tuned::<One>(Layout { shape, blocks }, isa, tuning);
                    agree(shape, isa, blocks, &plain, &kernels);
                }
            }
        }
    }
}

/// Rows of every width around the vectors, of words that other threads could write and of bytes at
/// any address; as many rows as are read before a look at the bits that are left, and more.
#[test]
fn all_instruction_sets_and_the_same_rows() {
    // Dense words, so that bits are left after many rows.
    let dense = |i: usize| hashes(7 * i as u64, 9)[5..].iter().fold(0, |word, hash| word | hash);
    let words: Vec<u64> = (0..3000).map(dense).collect();
    let mut bits = Bits::new(words.len() / 8).unwrap();
    bits.store_words(0, words.iter().copied());
    let bytes: Vec<u8> = [0; 3]
        .into_iter()
        .chain(words.iter().flat_map(|word| word.to_le_bytes()))
        .collect();
    let shared = bits.shared().all().as_flattened();
    let stored: &[[u8; 8]] = as_chunks(&bytes[3..]).0;
    for isa in Isa::all() {
        for width in (0..=40).chain([63, 64, 65, 128]) {
            for rows in [1, 2, 6, 7, 8, 9, 16, 17, 48] {
                // The last rows end with the words.
                let starts: Vec<u64> = (0..rows)
                    .map(|i| (2999 - 37 * i as u64 - width as u64) + u64::from(i == 0))
                    .collect();
                let mut expected = vec![u64::MAX; width];
                for &start in &starts {
                    for (all, word) in expected.iter_mut().zip(&words[start as usize..]) {
                        *all &= word;
                    }
                }
                let (mut ours, mut theirs) = (vec![7; width], vec![7; width]);
                isa.and_rows(shared, &starts, &mut ours);
                isa.and_rows(stored, &starts, &mut theirs);
                assert_eq!(ours, expected, "{isa}, {rows} rows of {width}");
                assert_eq!(theirs, expected, "{isa}, {rows} rows of {width}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "do not lie within 8 words")]
fn rows_beyond_the_words_are_refused() {
    Isa::best().and_rows(
        Bits::new(1).unwrap().shared().all().as_flattened(),
        &[0, 5],
        &mut [0; 4],
    );
}

fn agree(shape: Shape, isa: Isa, blocks: usize, plain: &Kernels, kernels: &Kernels) {
    let [by_one, single, inlined, batch, own] = [(); 5].map(|()| Bits::new(blocks).unwrap());
    let mut own = own;
    for len in LENGTHS {
        let new = hashes(1000 * len as u64, len);
        let insert = |kernels: &Kernels, bits: &Bits| {
            let mut changed = vec![0; len.div_ceil(64)];
            for (i, &hash) in new.iter().enumerate() {
                changed[i / 64] |= u64::from(kernels.insert(bits.shared(), hash)) << (i % 64);
            }
            changed
        };
        let changed = insert(plain, &by_one);
        assert_eq!(insert(kernels, &single), changed);
        let mut in_loop = vec![0; len.div_ceil(64)];
        kernels.inlined::<One, _>(|calls| {
            for (i, &hash) in new.iter().enumerate() {
                in_loop[i / 64] |= u64::from(
                    kernels
                        .insert_by(calls, inlined.shared(), hash)
                        .unwrap_or_else(|| kernels.insert(inlined.shared(), hash)),
                ) << (i % 64);
            }
        });
        assert_eq!(in_loop, changed);
        assert_eq!(inserted(kernels, &batch, &new), changed);
        let mut bitmap = vec![u64::MAX; len.div_ceil(64)];
        let words = own.words_mut().unwrap();
        kernels.fill(
            &mut OwnedRange {
                words,
                first: 0,
                blocks,
            },
            &new,
            &mut bitmap,
        );
        assert_eq!(bitmap, changed);
        let asked = hashes(1000 * len as u64 + len as u64 / 2, len);
        let expected: Vec<bool> = asked
            .iter()
            .map(|&hash| plain.lookups.contains(by_one.shared(), hash))
            .collect();
        assert!(
            asked
                .iter()
                .zip(&expected)
                .all(|(&hash, &e)| kernels.lookups.contains(single.shared(), hash) == e)
        );
        let in_loop = |calls| -> Vec<bool> {
            asked
                .iter()
                .map(|&hash| kernels.contains_by(calls, inlined.shared(), hash))
                .collect()
        };
        assert_eq!(kernels.inlined::<One, _>(in_loop), expected, "{shape:?}, {isa:?}");
        let mut found = vec![u64::MAX; len.div_ceil(64)];
        kernels.lookups.contains_hashes(batch.shared(), &asked, &mut found);
        assert_eq!(
            flags(&found, len),
            expected,
            "{shape:?}, {isa:?}, {blocks} blocks, {len} hashes"
        );
        if len <= plan::TILE {
            let mut few = vec![false; len];
            let lookups = &kernels.lookups;
            lookups.contains_few(lookups.ladder.plan(len), batch.shared(), &asked, &mut few);
            assert_eq!(few, expected, "{shape:?}, {isa:?}, {blocks} blocks, {len} hashes");
        }
    }
    assert!(
        [&single, &inlined, &batch, &own]
            .iter()
            .all(|bits| by_one.words().eq(bits.words()))
    );

    // In a snapshot's bytes, wherever they begin.
    let mut bytes = vec![0; blocks % 3];
    for word in batch.words().flatten() {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let count = NonZeroUsize::new(blocks).unwrap();
    let lines = Lines::new(as_chunks(as_chunks(&bytes[blocks % 3..]).0).0, count);
    let lookups = Lookups::<[u8; 8]>::of::<One>(Layout { shape, blocks }, isa);
    for len in LENGTHS {
        let asked = hashes(1000 * len as u64 + len as u64 / 2, len);
        let [mut found, mut in_bytes] = [(); 2].map(|()| vec![u64::MAX; len.div_ceil(64)]);
        kernels.lookups.contains_hashes(batch.shared(), &asked, &mut found);
        lookups.contains_hashes(lines, &asked, &mut in_bytes);
        assert_eq!(in_bytes, found, "{shape:?}, {isa:?}, {blocks} blocks, {len} hashes");
        let single = |hash| lookups.contains(lines, hash) == plain.lookups.contains(batch.shared(), hash);
        assert!(asked.iter().all(|&hash| single(hash)));
    }
}

/// The same as a filter by hand, in place, at every length around the vectors and the words of a
/// bitmap.
#[test]
fn all_instruction_sets_pack_the_same_hashes() {
    for isa in Isa::all() {
        for len in LENGTHS {
            for bits in [0, u64::MAX, 0x8000_0800_0000_0001, 0x5a5a_1234_ffff_0000] {
                let found: Vec<u64> = (0..len.div_ceil(64) as u32).map(|i| bits.rotate_left(i)).collect();
                let mut packed = hashes(7, len);
                let kept = packed.iter().zip(flags(&found, len)).filter(|(_, found)| *found);
                let expected: Vec<u64> = kept.map(|(&hash, _)| hash).collect();
                // Bits beyond the last hash are 0, as in every bitmap of answers.
                let mut found = found;
                if let (Some(last), 1..) = (found.last_mut(), len % 64) {
                    *last &= u64::MAX >> (64 - len % 64);
                }
                let count = isa.pack(&mut packed, &found);
                assert_eq!(packed[..count], expected, "{isa}, {len} hashes, {bits:x}");
            }
        }
    }
}

/// Counters of every value from 0 to 15: vectors see the same ones above 0 as plain code does.
#[test]
fn all_instruction_sets_see_counters_above_zero() {
    for shape in shapes() {
        let counters = crate::words::counters::CounterLines::new(7).unwrap();
        let (words, layout) = (shape.words, Layout { shape, blocks: 7 });
        let plain = CounterKernels::of(layout, Isa::PLAIN);
        // Few keys, so that most counters are those of one of them.
        for (i, &hash) in hashes(words as u64, 20).iter().enumerate() {
            (0..i % 16).for_each(|_| _ = plain.change(plain.insert, counters.shared(), hash));
        }
        let asked = hashes(words as u64, 100);
        let expected: Vec<bool> = asked
            .iter()
            .map(|&hash| plain.lookups.contains(counters.shared(), hash))
            .collect();
        for kernels in Isa::all().map(|isa| CounterKernels::of(layout, isa)) {
            let lookups = &kernels.lookups;
            let mut found = [0; 2];
            lookups.contains_hashes(counters.shared(), &asked, &mut found);
            assert_eq!(flags(&found, asked.len()), expected, "{layout}");
            let single: Vec<bool> = asked
                .iter()
                .map(|&hash| lookups.contains(counters.shared(), hash))
                .collect();
            assert_eq!(single, expected, "{layout}");
        }
    }
}

/// A level exists if the compiler has its intrinsics, and is offered if the CPU has it too.
#[cfg(all(lanebloom_x86_64, feature = "std"))]
#[test]
fn instruction_sets_are_those_of_the_compiler_and_the_cpu() {
    use std::arch::is_x86_feature_detected as has;

    let has_intrinsics = rustversion::cfg!(since(1.89));
    let known: Vec<&str> = Level::ALL.iter().map(|level| level.name()).collect();
    assert_eq!(known[..2], ["plain", "AVX2"]);
    assert_eq!(known[2..], ["AVX-512"][..usize::from(has_intrinsics)]);
    assert!(Level::ALL.iter().enumerate().all(|(i, &level)| level as usize == i));

    let avx2 = has!("avx2") && has!("bmi1") && has!("bmi2") && has!("cmpxchg16b");
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    let levels = match (avx2, avx2 && avx512 && has_intrinsics) {
        (false, _) => 1,
        (true, false) => 2,
        (true, true) => 3,
    };
    let mut offered: Vec<&str> = Isa::all().map(|isa| isa.level().name()).collect();
    let mut expected = known[..levels].to_vec();
    offered.sort();
    expected.sort();
    assert_eq!(offered, expected);
}

/// Lookups touch no byte beside the lines, which begin or end where memory does.
#[cfg(target_os = "linux")]
#[test]
fn lines_at_the_edges_of_memory() {
    use core::sync::atomic::Ordering;
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    const PAGES: usize = 64 << 10;
    let map = |len| {
        // SAFETY: new memory, at an address that nothing else has.
        unsafe { mmap_anonymous(core::ptr::null_mut(), len, ProtFlags::empty(), MapFlags::PRIVATE) }.unwrap()
    };
    let fenced: *mut u8 = map(3 * PAGES).cast();
    // SAFETY: the middle third, which nothing refers to yet.
    let middle = unsafe {
        mprotect(
            fenced.add(PAGES).cast(),
            PAGES,
            MprotectFlags::READ | MprotectFlags::WRITE,
        )
        .unwrap();
        fenced.add(PAGES)
    };
    let asked = hashes(1, 100);
    for blocks in [1, 2, 3] {
        for at in [0, PAGES - 64 * blocks] {
            // SAFETY: zeroed bytes of the middle third, aligned to pages or to lines.
            let lines = unsafe {
                core::slice::from_raw_parts(
                    middle
                        .add(at)
                        .cast::<[AtomicU64; crate::geometry::layout::LINE_WORDS]>(),
                    blocks,
                )
            };
            let lines = Lines::new(lines, NonZeroUsize::new(blocks).unwrap());
            for (i, word) in lines.all().as_flattened().iter().enumerate() {
                word.store(!0x8000_0800_0000_0001_u64.rotate_left(i as u32), Ordering::Relaxed);
            }
            for shape in shapes() {
                let layout = Layout { shape, blocks };
                let plain = Lookups::<AtomicU64>::of::<One>(layout, Isa::PLAIN);
                let expected: Vec<bool> = asked.iter().map(|&hash| plain.contains(lines, hash)).collect();
                for lookups in Isa::all().map(|isa| Lookups::<AtomicU64>::of::<One>(layout, isa)) {
                    let single: Vec<bool> = asked.iter().map(|&hash| lookups.contains(lines, hash)).collect();
                    assert_eq!(single, expected, "{layout}");
                    for len in [9, asked.len()] {
                        let mut found = [0; 2];
                        lookups.contains_hashes(lines, &asked[..len], &mut found[..len.div_ceil(64)]);
                        assert_eq!(flags(&found, len), expected[..len]);
                    }
                }
            }
        }
    }
    // SAFETY: what was mapped; nothing refers to it any more.
    unsafe { munmap(fenced.cast(), 3 * PAGES).unwrap() };
}
