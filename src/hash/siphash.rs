//! SipHash-1-3 in plain Rust: a key and bytes in, 64 bits out. It is the specification of the
//! kernels of `kernel/`, and hashes where there is no kernel. `hash.rs` calls it.
//!
//! Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012).

use crate::funnel::Sink;
use crate::hash::bytes::{Short, below, load_below_8};
use crate::words::arrays::as_chunks;

/// The four words of a hash in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(pub(crate) [u64; 4]);

/// The state is the key twice and this text, eight bytes each.
const TEXT: [u64; 4] = [
    u64::from_be_bytes(*b"somepseu"),
    u64::from_be_bytes(*b"dorandom"),
    u64::from_be_bytes(*b"lygenera"),
    u64::from_be_bytes(*b"tedbytes"),
];

/// The constant that the last step xors into the state.
pub(crate) const END: u64 = 0xff;

impl State {
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(key);
        let (k0, k1) = (key as u64, (key >> 64) as u64);
        Self([k0 ^ TEXT[0], k1 ^ TEXT[1], k0 ^ TEXT[2], k1 ^ TEXT[3]])
    }

    /// The key of a new state.
    pub(crate) const fn key(self) -> [u8; 16] {
        let [v0, v1, ..] = self.0;
        let (k0, k1) = (v0 ^ TEXT[0], v1 ^ TEXT[1]);
        (k0 as u128 | (k1 as u128) << 64).to_le_bytes()
    }

    #[inline(always)]
    fn round(&mut self) {
        let Self([v0, v1, v2, v3]) = self;
        *v0 = v0.wrapping_add(*v1);
        *v2 = v2.wrapping_add(*v3);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.rotate_left(32);
        *v2 = v2.wrapping_add(*v1);
        *v0 = v0.wrapping_add(*v3);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.rotate_left(32);
    }

    /// Takes eight bytes.
    #[inline(always)]
    fn mix(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    /// The hash of `len` bytes; `rest` has the last `len % 8` of them.
    #[inline(always)]
    fn finish(mut self, rest: u64, len: usize) -> u64 {
        self.mix(rest | (len as u64) << 56);
        self.0[2] ^= END;
        self.round();
        self.round();
        self.round();
        let Self([v0, v1, v2, v3]) = self;
        v0 ^ v1 ^ v2 ^ v3
    }

    /// The hash of up to 16 bytes.
    #[inline(always)]
    pub(crate) fn short(mut self, key: Short) -> u64 {
        let (low, high) = key.halves();
        if key.len < 8 {
            return self.finish(low, key.len);
        }
        self.mix(low);
        if key.len < 16 {
            return self.finish(high, key.len);
        }
        self.mix(high);
        self.finish(0, key.len)
    }

    /// The hash of these bytes after `before` others, a multiple of 8.
    #[inline(always)]
    pub(crate) fn slice(mut self, before: usize, bytes: &[u8]) -> u64 {
        let (words, rest) = as_chunks(bytes);
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let rest = match bytes.last_chunk() {
            Some(last) => below(u64::from_le_bytes(*last), rest.len()),
            None => load_below_8(rest),
        };
        self.finish(rest, before + bytes.len())
    }
}

/// A hash of bytes that come in pieces.
pub(crate) struct SipSink {
    state: State,
    /// The `len % 8` bytes that do not fill a word yet, little-endian, zero above.
    rest: u64,
    len: usize,
}

impl SipSink {
    #[inline(always)]
    pub(crate) fn new(state: State) -> Self {
        Self { state, rest: 0, len: 0 }
    }

    #[inline(always)]
    pub(crate) fn finish(self) -> u64 {
        self.state.finish(self.rest, self.len)
    }
}

impl Sink for SipSink {
    #[inline(always)]
    fn put(&mut self, mut bytes: &[u8]) {
        let filled = self.len % 8;
        self.len = self.len.wrapping_add(bytes.len());
        if filled != 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(8 - filled));
            self.rest |= load_below_8(head) << (8 * filled);
            if filled + head.len() < 8 {
                return;
            }
            self.state.mix(self.rest);
            bytes = rest;
        }
        let (words, rest) = as_chunks(bytes);
        for word in words {
            self.state.mix(u64::from_le_bytes(*word));
        }
        self.rest = load_below_8(rest);
    }
}
