//! Words of a filter in vectors, for x86-64: takes the numbers of words, and gives their values.
//! The kernels of the instruction sets call it.
//!
//! # Why the assembly is sound
//!
//! Other threads may write the words meanwhile. In Rust's memory model a vector load or the gather
//! intrinsic would be a data race with them. An `asm!` block may do what a function in another
//! language may do. Each block does what the same number of relaxed atomic loads do:
//!
//! - Each reads words of 8 bytes, at the given addresses and nowhere else, and writes no memory.
//!   The callers promise that the words are there.
//! - A word in memory that is shared is an `AtomicU64`, hence aligned. A processor reads 8 aligned
//!   bytes at once, whatever the instruction: Intel's manual, volume 3, "Guaranteed Atomic
//!   Operations"; AMD's, volume 2, "Access Atomicity". Compilers load an `AtomicU64` on 32-bit x86
//!   into a vector register for that reason. A snapshot's words may be unaligned, but no thread
//!   writes them.
//! - **A gather's elements are the exception.** Neither manual promises that a gather reads each
//!   element at once. The chapters above speak of single accesses. The description of VPGATHERQQ
//!   (Intel, volume 2) says that each element is one fetch of 64 bits from its own address, in any
//!   order, but does not call that fetch atomic. So the gather is used only where `plan.rs` names
//!   the processor. A torn element would mix the bytes of two values that the word had. Both have
//!   the bits of every insert that happened before (of a counter, a value above 0 in its own half
//!   of a byte), so no inserted key would be missed.
//! - **Loads of 16 and 32 bytes** ([`two_keys`], [`four_hold`]) have a word that is wanted, and
//!   others of the same line, which the block ignores. They are as many relaxed loads of words that
//!   are there. That each of the words is read at once is not promised for all processors; what was
//!   said of a gather's elements holds for them too. So it does for the loads of 32 and 64 bytes of
//!   a bank's rows ([`and_four`], [`and_eight`]), whose words are all wanted.
//! - x86-64 performs every load as an acquire. The compiler moves no fence across the block, since
//!   the block reads memory. So an [`acquire`](crate::words::bits::acquire) after it pairs with the
//!   `Release` of the bits seen, as after `AtomicU64::load`.
//! - The blocks are not `pure`: a lookup in a loop reads again each time.
//!
//! A plain load would go to a general register first. To bring it into a vector from there takes
//! two more instructions for each word.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "before Rust 1.86 a function with a target feature is unsafe, before 1.87 every intrinsic"
)]

use crate::geometry::layout::LINE_BYTES;
use crate::geometry::pattern::{BLOCK_MULTIPLIER, BitFields, MULTIPLIER, block, folded, product, words_per_product};
#[cfg(lanebloom_rust_1_89)]
use crate::kernel::pipeline::Group;
use crate::words::bits::{Lines, Load, Prefetchable};
use core::arch::asm;
use core::arch::x86_64::*;
use core::num::NonZeroU64;

/// The line of the hash.
#[inline(always)]
pub(super) fn line_of<T>(lines: Lines<'_, T>, hash: u64) -> *const T {
    // The multiplication takes the block below the number of lines, of which there is at least one
    // (`Lines`).
    let lines_at = lines.all().as_ptr();
    lines_at.wrapping_add(block(hash, lines.blocks())).cast()
}

/// A word of a line twice.
///
/// # Safety
///
/// The word is there.
#[cfg(lanebloom_rust_1_89)]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn twice<T: Load>(line: *const T, number: u64) -> __m128i {
    let words;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vpbroadcastq {words}, [{line} + 8*{number}]",
            words = out(xmm_reg) words,
            line = in(reg) line,
            number = in(reg) number,
            options(readonly, nostack, preserves_flags),
        );
    }
    if T::COUNTERS { fill_128(words) } else { words }
}

/// A word of a line four times.
///
/// # Safety
///
/// The word is there.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn four_times<T: Load>(line: *const T, number: u64) -> __m256i {
    let words;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vpbroadcastq {words}, [{line} + 8*{number}]",
            words = out(ymm_reg) words,
            line = in(reg) line,
            number = in(reg) number,
            options(readonly, nostack, preserves_flags),
        );
    }
    if T::COUNTERS { fill_256(words) } else { words }
}

/// The selected word of a group of `8 / W` words, and that of the next group.
///
/// # Safety
///
/// The words are there.
#[inline(always)]
pub(super) unsafe fn two<const W: usize, T: Load>(group: *const T, first: u64, second: u64) -> __m128i {
    let words;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vmovq {words}, [{group} + 8*{first}]",
            "vmovhps {words}, {words}, [{group} + 8*{second} + {next}]",
            words = out(xmm_reg) words,
            group = in(reg) group,
            first = in(reg) first,
            second = in(reg) second,
            next = const LINE_BYTES / W,
            options(readonly, nostack, preserves_flags),
        );
    }
    if T::COUNTERS { fill_128(words) } else { words }
}

/// The bits of `value` that `mask` has, together at the low end. By assembly, as [`two_hold`].
///
/// # Safety
///
/// The CPU has BMI2.
#[cfg(lanebloom_rust_1_89)]
#[inline(always)]
pub(super) unsafe fn extract_bits(value: u64, mask: u64) -> u64 {
    let bits;
    // SAFETY: reads and writes registers alone.
    unsafe {
        asm!(
            "pext {bits}, {value}, {mask}",
            bits = lateout(reg) bits,
            value = in(reg) value,
            mask = in(reg) mask,
            options(nomem, nostack, preserves_flags),
        );
    }
    bits
}

/// Whether two words hold all bits whose positions begin at `byte_shifts` in the product: eight for
/// each word.
///
/// By assembly where the caller is compiled for older CPUs, so that it is inlined there too. The
/// block is not `pure`: it runs only where the program says, after the CPU was asked. Where all are
/// compiled for this instruction set, the compiler's own choice is faster in L1: 1.1 ns
/// against 1.35 (Zen 4; `kortestw` and `setc` in the assembly took 1.25, and 12.5 against 11.4 at
/// 64 MiB).
///
/// # Safety
///
/// The CPU has AVX-512 with VBMI and BITALG.
#[cfg(lanebloom_rust_1_89)]
#[inline(always)]
pub(super) unsafe fn two_hold(words: __m128i, product: u64, byte_shifts: &[u64; 2]) -> bool {
    // SAFETY: reads the array.
    let shifts = unsafe { _mm_loadu_si128(byte_shifts.as_ptr().cast()) };
    #[cfg(all(
        target_feature = "avx512vl",
        target_feature = "avx512vbmi",
        target_feature = "avx512bitalg"
    ))]
    // SAFETY: compiled for it.
    return unsafe {
        let positions = _mm_multishift_epi64_epi8(shifts, _mm_set1_epi64x(product as i64));
        _mm_bitshuffle_epi64_mask(words, positions) == u16::MAX
    };
    #[cfg(not(all(
        target_feature = "avx512vl",
        target_feature = "avx512vbmi",
        target_feature = "avx512bitalg"
    )))]
    {
        let held: u32;
        // SAFETY: reads and writes registers alone.
        unsafe {
            asm!(
                "vpbroadcastq {positions}, {product}",
                "vpmultishiftqb {positions}, {shifts}, {positions}",
                "vpshufbitqmb k1, {words}, {positions}",
                "kmovw {held:e}, k1",
                positions = out(xmm_reg) _,
                product = in(reg) product,
                shifts = in(xmm_reg) shifts,
                words = in(xmm_reg) words,
                held = lateout(reg) held,
                out("k1") _,
                options(nomem, nostack, preserves_flags),
            );
        }
        held == u32::from(u16::MAX)
    }
}

/// The constants of a pattern of two words from one product, for [`pair_holds`] and [`pair_lacks`].
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Pair {
    /// The bits of a position.
    positions: [u8; 16],
    /// 128 in the lowest byte, which makes no bit; 64 in bytes that are positions of the second
    /// word.
    marks: [u8; 16],
    /// In the high byte of each lane of 16 bits a position: in four lanes of the first word, then
    /// of the second. In the low byte none.
    lanes: [u8; 16],
    /// The bit that a position has in its byte.
    bits: [u8; 16],
    /// The `j`th position of the first word in the lowest byte, that of the second word 8 bytes on.
    masks: [[u8; 16]; 3],
    /// The shift of the product that brings down the two bits that select the second word.
    pub(super) select: NonZeroU64,
}

impl Pair {
    pub(super) fn of(bits: usize) -> Self {
        let fields = BitFields::new(2, bits);
        let mut new = Self {
            select: NonZeroU64::new(fields.words[1].select.into()).expect("a word is before it"),
            positions: [0; 16],
            marks: [0; 16],
            lanes: [0; 16],
            bits: core::array::from_fn(|i| 1 << (i % 8)),
            masks: [[128; 16]; 3],
        };
        new.marks[0] = 128;
        for word in 0..2 {
            // (At most three of them differ, and none is 0.)
            for (j, byte) in fields.bytes[word].to_le_bytes().into_iter().enumerate() {
                new.positions[usize::from(byte)] = 63;
                new.marks[usize::from(byte)] = 64 * word as u8;
                if j < 4 {
                    new.lanes[2 * (4 * word + j) + 1] = byte;
                }
                if j < 3 {
                    new.masks[j][8 * word] = byte;
                }
            }
        }
        new
    }
}

/// Whether the two words of the hash hold the bits at the positions that are bytes of its product.
///
/// One block for the whole lookup. What a loop would keep in registers is read from memory instead,
/// but for the table of bits: callers have better uses for their registers.
///
/// # Safety
///
/// The CPU has AVX2 and BMI2.
#[inline(always)]
pub(super) unsafe fn pair_holds<T: Load>(lines: Lines<'_, T>, hash: u64, constants: &Pair) -> bool {
    let held: u8;
    // SAFETY: the constants are memory of their own. `Lines` has at least one line, the block of a
    // hash is below their number, and two bits select a word of a half of its line; see the top of
    // this file.
    unsafe {
        asm!(
            "mulx {line}, {second}, {blocks}",
            "shl {line}, 6",
            "add {line}, {all}",
            "mov {second}, [{constants} + 112]",
            "shrx {second}, {product}, {second}",
            "vmovq {positions}, {product}",
            "and {second:e}, 3",
            "shr {product}, 62",
            "vpand {positions}, {positions}, [{constants}]",
            "vpor {positions}, {positions}, [{constants} + 16]",
            "vmovq {words}, [{line} + 8*{product}]",
            "vmovhps {words}, {words}, [{line} + 8*{second} + 32]",
            "vpshufb {positions}, {positions}, [{constants} + 32]",
            "vpshufb {masks}, {bits}, {positions}",
            "vpsrlw {positions}, {positions}, 3",
            "vpshufb {words}, {words}, {positions}",
            "vptest {words}, {masks}",
            "setc {held}",
            line = out(reg) _,
            second = out(reg) _,
            product = inout(reg) product(hash) => _,
            positions = out(xmm_reg) _,
            masks = out(xmm_reg) _,
            words = out(xmm_reg) _,
            bits = in(xmm_reg) _mm_load_si128(constants.bits.as_ptr().cast()),
            all = in(reg) lines.all().as_ptr(),
            blocks = in(reg) lines.blocks(),
            in("rdx") hash.wrapping_mul(BLOCK_MULTIPLIER),
            constants = in(reg) constants,
            held = out(reg_byte) held,
            options(readonly, nostack),
        );
        is_set(held)
    }
}

/// What `setc` wrote. (A comparison with 0 would be an instruction more.)
///
/// # Safety
///
/// It is 0 or 1.
#[expect(clippy::transmute_int_to_bool, reason = "see above")]
#[inline(always)]
unsafe fn is_set(carry: u8) -> bool {
    // SAFETY: as promised.
    unsafe { core::mem::transmute::<u8, bool>(carry) }
}

/// The constants of [`four_hold`], for one number of bits.
#[derive(Debug)]
#[repr(C, align(64))]
struct FourBytes {
    /// The numbers of the bytes that are positions, four for each word, counted through both
    /// products.
    positions: [u8; 16],
    /// The numbers of the bytes whose highest bits select the words, four times each.
    selects: [u8; 16],
    /// What of a position says which byte of the word it is in.
    byte: [u8; 16],
    /// What of a byte selects.
    select: [u8; 16],
    /// What of a position says which bit of the byte it is.
    bit: [u8; 16],
    /// The bit that a position has in its byte.
    bits: [u8; 16],
}

impl FourBytes {
    /// For `bits` in each of four words, at most three.
    const fn new(bits: usize) -> Self {
        let (fields, per) = (BitFields::new(4, bits), words_per_product(4, bits));
        assert!(
            bits <= 3 && per >= 2,
            "the words have two products, and four bytes each"
        );
        let mut new = Self {
            positions: [0; 16],
            selects: [0; 16],
            byte: [0x38; 16],
            select: [0x80; 16],
            bit: [0x07; 16],
            bits: [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128],
        };
        let mut at = 0;
        while at < 16 {
            let (word, number) = (at / 4, at % 4);
            let product = 8 * (word / per);
            let number = if number < bits { number } else { bits - 1 };
            new.positions[at] = (product + fields.words[word].positions as usize / 8 + number) as u8;
            new.selects[at] = (product + fields.words[word].select as usize / 8) as u8;
            at += 1;
        }
        new
    }
}

/// Whether the four words of the hash hold the bits at the positions that are bytes of two
/// products.
///
/// Reads the whole line: two words of each quarter, so that the same shuffle selects a word and a
/// byte in it. That takes fewer instructions than to select the words by numbers, and the loads do
/// not wait for the products.
///
/// `bits` is the number of bits in each word, at most three.
///
/// # Safety
///
/// The CPU has AVX2 and BMI2.
#[inline(always)]
pub(super) unsafe fn four_hold<T: Load>(lines: Lines<'_, T>, hash: u64, bits: usize) -> bool {
    static CONSTANTS: [FourBytes; 3] = [FourBytes::new(1), FourBytes::new(2), FourBytes::new(3)];
    let constants = &CONSTANTS[bits - 1];
    let products = [MULTIPLIER, MULTIPLIER.wrapping_mul(MULTIPLIER)].map(|by| folded(hash).wrapping_mul(by));
    let (held, masks): (__m128i, __m128i);
    // SAFETY: the constants are memory of their own. `Lines` has at least one line, and the block
    // of a hash is below their number; see the top of this file.
    unsafe {
        asm!(
            "mulx {line}, {low}, {blocks}",
            "shl {line}, 6",
            "add {line}, {all}",
            "vmovq {selects}, {first}",
            "vmovq {third}, {second}",
            "vpunpcklqdq {selects}, {selects}, {third}",
            "vpshufb {positions}, {selects}, [{constants}]",
            "vpshufb {selects}, {selects}, [{constants} + 16]",
            "vpand {masks}, {positions}, [{constants} + 64]",
            "vpand {positions}, {positions}, [{constants} + 32]",
            "vpand {selects}, {selects}, [{constants} + 48]",
            "vpsrlw {positions}, {positions}, 3",
            "vpsrlw {selects}, {selects}, 4",
            "vpshufb {masks}, {bits}, {masks}",
            "vpor {positions}, {positions}, {selects}",
            "vmovdqu {held}, [{line}]",
            "vmovdqu {selects}, [{line} + 16]",
            "vmovdqu {third}, [{line} + 32]",
            "vmovdqu {fourth}, [{line} + 48]",
            "vpshufb {held}, {held}, {positions}",
            "vpshufb {selects}, {selects}, {positions}",
            "vpshufb {third}, {third}, {positions}",
            "vpshufb {fourth}, {fourth}, {positions}",
            "vpblendd {held}, {held}, {selects}, 2",
            "vpblendd {third}, {third}, {fourth}, 8",
            "vpblendd {held}, {held}, {third}, 12",
            line = out(reg) _,
            low = out(reg) _,
            positions = out(xmm_reg) _,
            selects = out(xmm_reg) _,
            masks = out(xmm_reg) masks,
            held = out(xmm_reg) held,
            third = out(xmm_reg) _,
            fourth = out(xmm_reg) _,
            bits = in(xmm_reg) _mm_load_si128(constants.bits.as_ptr().cast()),
            all = in(reg) lines.all().as_ptr(),
            blocks = in(reg) lines.blocks(),
            in("rdx") hash.wrapping_mul(BLOCK_MULTIPLIER),
            first = in(reg) products[0],
            second = in(reg) products[1],
            constants = in(reg) constants,
            options(readonly, nostack),
        );
        // (A counter is in one byte, so the other bytes of its word change nothing.)
        let held = if T::COUNTERS { fill_128(held) } else { held };
        let all_held: u8;
        asm!(
            "vptest {held}, {masks}",
            "setc {all_held}",
            held = in(xmm_reg) held,
            masks = in(xmm_reg) masks,
            all_held = out(reg_byte) all_held,
            options(nomem, nostack),
        );
        is_set(all_held)
    }
}

/// [`pair_holds`] of two words that were loaded.
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
pub(super) unsafe fn words_hold(words: __m128i, product: u64, constants: &Pair) -> bool {
    let held: u8;
    // SAFETY: the constants are memory of their own.
    unsafe {
        asm!(
            "vmovq {positions}, {product}",
            "vpand {positions}, {positions}, [{constants}]",
            "vpor {positions}, {positions}, [{constants} + 16]",
            "vpshufb {positions}, {positions}, [{constants} + 32]",
            "vpshufb {bits}, {bits}, {positions}",
            "vpsrlw {positions}, {positions}, 3",
            "vpshufb {words}, {words}, {positions}",
            "vptest {words}, {bits}",
            "setc {held}",
            positions = out(xmm_reg) _,
            bits = inout(xmm_reg) _mm_load_si128(constants.bits.as_ptr().cast()) => _,
            words = inout(xmm_reg) words => _,
            product = in(reg) product,
            constants = in(reg) constants,
            held = out(reg_byte) held,
            options(readonly, nostack),
        );
        is_set(held)
    }
}

/// What two words of a line lack of the bits that [`pair_holds`] tests; `None` if nothing.
///
/// # Safety
///
/// The CPU has AVX2. The words are there.
#[inline(always)]
pub(super) unsafe fn pair_lacks<T: Load>(
    line: *const T,
    first: u64,
    second: u64,
    product: u64,
    constants: &Pair,
) -> Option<[u64; 2]> {
    let held: u8;
    let lacks: __m128i;
    // SAFETY: as in `pair_holds`.
    unsafe {
        asm!(
            "vmovq {a}, {product}",
            "vpand {a}, {a}, [{constants}]",
            "vmovq {words}, [{line} + 8*{first}]",
            "vmovhps {words}, {words}, [{line} + 8*{second} + 32]",
            "vpshufb {b}, {a}, [{constants} + 64]",
            "vpshufb {c}, {a}, [{constants} + 80]",
            "vpshufb {a}, {a}, [{constants} + 96]",
            "vpsllvq {b}, {one}, {b}",
            "vpsllvq {c}, {one}, {c}",
            "vpsllvq {a}, {one}, {a}",
            "vpor {b}, {b}, {c}",
            "vpor {a}, {a}, {b}",
            "vptest {words}, {a}",
            "vpandn {words}, {words}, {a}",
            "setc {held}",
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            words = out(xmm_reg) lacks,
            one = in(xmm_reg) _mm_set1_epi64x(1),
            product = in(reg) product,
            line = in(reg) line,
            first = in(reg) first,
            second = in(reg) second,
            constants = in(reg) constants,
            held = out(reg_byte) held,
            options(readonly, nostack),
        );
        if is_set(held) {
            return None;
        }
        Some([
            _mm_cvtsi128_si64(lacks) as u64,
            _mm_cvtsi128_si64(_mm_unpackhi_epi64(lacks, lacks)) as u64,
        ])
    }
}

/// Two words by their numbers, as they are in memory.
///
/// # Safety
///
/// They are there, counted from `all` on.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn numbered<T>(all: *const T, low: u64, high: u64) -> __m128i {
    let words;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vmovq {words}, [{all} + 8*{low}]",
            "vmovhps {words}, {words}, [{all} + 8*{high}]",
            words = out(xmm_reg) words,
            all = in(reg) all,
            low = in(reg) low,
            high = in(reg) high,
            options(readonly, nostack, preserves_flags),
        );
    }
    words
}

/// The four words with these numbers.
///
/// # Safety
///
/// They are there, counted from `all` on.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn four<T: Load>(all: *const T, numbers: &[u64; 4]) -> __m256i {
    // SAFETY: as promised.
    let (low, high) = unsafe {
        (
            numbered(all, numbers[0], numbers[1]),
            numbered(all, numbers[2], numbers[3]),
        )
    };
    let words = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
    if T::COUNTERS { fill_256(words) } else { words }
}

/// The words of two keys, a key in each half: the first word of a line's first half, and the second
/// word of its second half.
///
/// Joined by blends, which most processors do at any of three ports. Skylake has one port for
/// shuffles, which the test of the words needs. (By llvm-mca there 2.35 cycles for a key in place
/// of 3.26 by `vmovhps`; on Zen 3 the blends were 4% faster.)
///
/// # Safety
///
/// The words are there, counted from `all` on. The second ones are in the second halves of lines
/// that are there.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn two_keys<T: Load>(all: *const T, first: [u64; 2], second: [u64; 2]) -> __m256i {
    let words;
    // SAFETY: see the top of this file. The loads of 16 and 32 bytes end with a word of the second
    // half of a line, so they begin in that line.
    unsafe {
        asm!(
            "vmovq {words:x}, [{all} + 8*{low}]",
            "vpblendd {words:x}, {words:x}, [{all} + 8*{low_second} - 8], 12",
            "vpbroadcastq {high_words}, [{all} + 8*{high}]",
            "vpblendd {high_words}, {high_words}, [{all} + 8*{high_second} - 24], 192",
            "vpblendd {words}, {words}, {high_words}, 240",
            words = out(ymm_reg) words,
            high_words = out(ymm_reg) _,
            all = in(reg) all,
            low = in(reg) first[0],
            low_second = in(reg) second[0],
            high = in(reg) first[1],
            high_second = in(reg) second[1],
            options(readonly, nostack, preserves_flags),
        );
    }
    if T::COUNTERS { fill_256(words) } else { words }
}

#[target_feature(enable = "avx2")]
#[inline]
unsafe fn fill_256(words: __m256i) -> __m256i {
    let words = _mm256_or_si256(words, _mm256_srli_epi64::<1>(words));
    let words = _mm256_or_si256(words, _mm256_srli_epi64::<2>(words));
    let lowest = _mm256_and_si256(words, _mm256_set1_epi8(0x11));
    _mm256_sub_epi64(_mm256_slli_epi64::<4>(lowest), lowest)
}

/// The eight words with these numbers.
///
/// # Safety
///
/// They are there, counted from `all` on.
#[cfg(lanebloom_rust_1_89)]
#[clippy::msrv = "1.89"]
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) unsafe fn eight<const GATHER: bool, T: Load>(all: *const T, numbers: &Group) -> __m512i {
    let words = if GATHER {
        // SAFETY: as promised.
        unsafe { gathered(all, numbers) }
    } else {
        // SAFETY: as promised.
        let two = |i: usize| unsafe { numbered(all, numbers[i], numbers[i + 1]) };
        let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(two(0)), two(2));
        let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(two(4)), two(6));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    };
    if !T::COUNTERS {
        return words;
    }
    let words = _mm512_or_si512(words, _mm512_srli_epi64::<1>(words));
    let words = _mm512_or_si512(words, _mm512_srli_epi64::<2>(words));
    let lowest = _mm512_and_si512(words, _mm512_set1_epi64(0x1111_1111_1111_1111));
    _mm512_sub_epi64(_mm512_slli_epi64::<4>(lowest), lowest)
}

/// The eight words by the processor's gather: one instruction, faster than eight loads on few
/// processors.
///
/// # Safety
///
/// They are there, counted from `all` on.
#[cfg(lanebloom_rust_1_89)]
#[clippy::msrv = "1.89"]
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn gathered<T>(all: *const T, numbers: &Group) -> __m512i {
    let words;
    // SAFETY: `numbers` has 64 bytes; for the rest see the top of this file. (An output that is not
    // late has a register of its own, as the instruction requires.)
    unsafe {
        asm!(
            "kxnorw {mask}, {mask}, {mask}",
            "vpxorq {words}, {words}, {words}",
            "vpgatherqq {words}{{{mask}}}, [{all} + 8*{numbers}]",
            words = out(zmm_reg) words,
            mask = out(kreg) _,
            numbers = in(zmm_reg) _mm512_loadu_si512(numbers.as_ptr().cast()),
            all = in(reg) all,
            options(readonly, nostack, preserves_flags),
        );
    }
    words
}

/// Four words, ANDed with others.
///
/// # Safety
///
/// The words are there.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn and_four<T: Load>(others: __m256i, words: *const T) -> __m256i {
    let all;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vpand {all}, {others}, [{words}]",
            all = lateout(ymm_reg) all,
            others = in(ymm_reg) others,
            words = in(reg) words,
            options(readonly, nostack, preserves_flags),
        );
    }
    all
}

/// Eight words, ANDed with others.
///
/// # Safety
///
/// The words are there.
#[cfg(lanebloom_rust_1_89)]
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn and_eight<T: Load>(others: __m512i, words: *const T) -> __m512i {
    let all;
    // SAFETY: see the top of this file.
    unsafe {
        asm!(
            "vpandq {all}, {others}, [{words}]",
            all = lateout(zmm_reg) all,
            others = in(zmm_reg) others,
            words = in(reg) words,
            options(readonly, nostack, preserves_flags),
        );
    }
    all
}

/// All bits of every counter of 4 bits that is above 0, as in [`Load::load`].
#[inline(always)]
unsafe fn fill_128(words: __m128i) -> __m128i {
    let words = _mm_or_si128(words, _mm_srli_epi64::<1>(words));
    let words = _mm_or_si128(words, _mm_srli_epi64::<2>(words));
    let lowest = _mm_and_si128(words, _mm_set1_epi8(0x11));
    _mm_sub_epi64(_mm_slli_epi64::<4>(lowest), lowest)
}
