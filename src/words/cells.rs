//! Cells of some bits, one after another in bytes: those of a filter that does not change, or of a
//! snapshot. Lookups read them without a check of bounds.

/// Loads `N` bytes at `at`, 1, 2, 4 or 8, as a little-endian number.
///
/// # Safety
///
/// `at + N` is at most the number of bytes.
#[inline(always)]
pub(crate) unsafe fn load<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    debug_assert!(at + N <= bytes.len());
    // SAFETY: as promised; bytes have no alignment, and any are valid.
    let found: [u8; N] = unsafe { bytes.as_ptr().add(at).cast::<[u8; N]>().read() };
    let mut word = [0; 8];
    word[..N].copy_from_slice(&found);
    u64::from_le_bytes(word)
}

/// Writes the lowest `bits` bits of each value, one after another, from the lowest bit of the first
/// byte on. The values have no higher bits. They end with a byte, as `bytes` do.
pub(crate) fn pack(values: &[u32], bits: u32, bytes: &mut [u8]) {
    debug_assert_eq!(values.len() * bits as usize, 8 * bytes.len());
    // Plain loops, which the compiler makes vectors of.
    match bits {
        8 => bytes
            .iter_mut()
            .zip(values)
            .for_each(|(byte, value)| *byte = *value as u8),
        16 => pack_whole::<2>(values, bytes),
        32 => pack_whole::<4>(values, bytes),
        _ => {
            let (mut left, mut filled, mut bytes) = (0, 0, bytes.iter_mut());
            for value in values {
                left |= u64::from(*value) << filled;
                filled += bits;
                while filled >= 8 {
                    *bytes.next().expect("there is a byte for every 8 bits") = left as u8;
                    left >>= 8;
                    filled -= 8;
                }
            }
        }
    }
}

fn pack_whole<const N: usize>(values: &[u32], bytes: &mut [u8]) {
    for (bytes, value) in bytes.chunks_exact_mut(N).zip(values) {
        bytes.copy_from_slice(&value.to_le_bytes()[..N]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn packed_values_are_loaded() {
        for bits in 7..=32u32 {
            let values: Vec<u32> = (0..64u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> (32 - bits)).collect();
            let mut bytes = vec![0xff; 8 * bits as usize + 8];
            let end = 8 * bits as usize;
            pack(&values, bits, &mut bytes[..end]);
            assert!(bytes[end..].iter().all(|&byte| byte == 0xff));
            for (i, &value) in values.iter().enumerate() {
                let (at, value) = (i * bits as usize, u64::from(value));
                // SAFETY: 8 bytes follow the cells.
                let word = unsafe { load::<8>(&bytes, at / 8) };
                assert_eq!(word >> (at % 8) & ((1 << bits) - 1), value, "{bits}");
                // SAFETY: the cells are whole bytes.
                let whole = unsafe {
                    match bits {
                        8 => load::<1>(&bytes, i),
                        16 => load::<2>(&bytes, 2 * i),
                        32 => load::<4>(&bytes, 4 * i),
                        _ => value,
                    }
                };
                assert_eq!(whole, value);
            }
        }
    }
}
