//! The products that determine the place of a hash, from docs/FORMAT.md, and the way back.
//! loom-tests, a workspace of its own, names this file by its path.

#![allow(dead_code, unreachable_pub, reason = "a library exports it, a program needs a part")]

const BLOCK: u64 = 0x45e1_0f8c_ad1e_3257;
const PATTERN: u64 = 0x28b6_4b9e_11e7_f457;

/// The product that determines the block or the bucket of a hash, and the product that determines
/// its pattern.
pub const fn products(hash: u64) -> [u64; 2] {
    let place = hash.wrapping_mul(BLOCK);
    [place, (place ^ place >> 32).wrapping_mul(PATTERN)]
}

/// The product that determines the fingerprint or the remainder of a hash.
pub const fn fingerprint_product(hash: u64) -> u64 {
    let place = hash.wrapping_mul(BLOCK);
    (place ^ place >> 24).wrapping_mul(PATTERN)
}

/// The hash of which [`fingerprint_product`] is this.
pub const fn hash_of_fingerprint_product(product: u64) -> u64 {
    let folded = product.wrapping_mul(inverse(PATTERN));
    hash_of_place(folded ^ folded >> 24 ^ folded >> 48)
}

/// The block of a hash, or its bucket.
pub const fn block(hash: u64, blocks: usize) -> usize {
    ((products(hash)[0] as u128 * blocks as u128) >> 64) as usize
}

/// The hash whose first product this is.
pub const fn hash_of_place(place: u64) -> u64 {
    place.wrapping_mul(inverse(BLOCK))
}

/// The hash whose second product this is.
pub const fn hash_of_product(product: u64) -> u64 {
    let folded = product.wrapping_mul(inverse(PATTERN));
    hash_of_place(folded ^ folded >> 32)
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration.
const fn inverse(of: u64) -> u64 {
    let (mut inverse, mut i) = (of, 0);
    while i < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(of.wrapping_mul(inverse)));
        i += 1;
    }
    inverse
}
