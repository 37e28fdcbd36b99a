//! Hashing many keys at once against hashing them one by one: the same hashes, whatever the type of
//! the keys, their lengths and their order, under every instruction set. (`tests/bytes/hash.rs`
//! says what those hashes must be.)
//!
//! A program of its own, for ci/cross.sh: it compiles in a fraction of the time of `bytes`.

use lanebloom::internal::{Isa, instruction_sets};
use lanebloom::{FastHash, Funnel, KeyHasher, Murmur3, Sink, SipHash13};
use lanebloom_tests::{number, within};
use proptest::prelude::*;
use std::borrow::Cow;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

/// All keys in one batch, which begin `offset` into a slice and whose hashes do, too.
fn agrees_at<K: Funnel>(isa: Isa, keys: &[K], offset: usize) {
    for seed in [0, 1, u32::MAX] {
        hashes_agree(isa, &Murmur3::with_seed(seed), keys, offset);
        hashes_agree(isa, &FastHash::with_seed(seed), keys, offset);
    }
    hashes_agree(isa, &SipHash13::with_key([9; 16]), keys, offset);
}

fn hashes_agree<K: Funnel>(isa: Isa, hasher: &impl KeyHasher, keys: &[K], offset: usize) {
    let (hashes, ()) = within(offset, keys.len(), 0xa5a5_5a5a, |out| {
        hasher.hash_batch_by(isa, keys, out);
    });
    for (i, (hash, key)) in hashes.iter().zip(keys).enumerate() {
        assert_eq!(
            *hash,
            hasher.hash_key(key),
            "{isa}: key {i} of {} of {}",
            keys.len(),
            std::any::type_name::<K>()
        );
    }
}

/// Batches of keys of one type, of many lengths, that begin anywhere.
fn agrees<K: Funnel>(isa: Isa, key: impl FnMut(u64) -> K) {
    let keys: Vec<K> = (0..1007).map(number).map(key).collect();
    for len in (0..=18).chain([23, 63, 64, 65, 66, 130, 255, 256, 257, 999]) {
        let offset = len % 8;
        agrees_at(isa, &keys[offset..offset + len], offset);
    }
}

fn bytes<const N: usize>(x: u64) -> [u8; N] {
    std::array::from_fn(|i| number(x ^ i as u64) as u8)
}

fn text(x: u64) -> String {
    let text = format!("{x:x}-é-{:x}", number(x));
    let mut cut = (x % 24) as usize;
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    text[..cut].into()
}

/// A key of a user's own, that arrives in pieces, some of them empty.
struct Pieces(u64);

impl Funnel for Pieces {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        let bytes = self.0.to_le_bytes();
        let (a, b) = bytes.split_at((self.0 % 8) as usize);
        a.funnel(into);
        into.put(&[]);
        for byte in b.repeat((self.0 >> 8) as usize % 5) {
            into.put(&[byte]);
        }
        "end".funnel(into);
    }
}

/// A key of a user's own that says its width, which is right for all keys, for some, or for none.
struct Width<const WIDTH: usize>(u64);

impl<const WIDTH: usize> Funnel for Width<WIDTH> {
    const WIDTH: Option<usize> = Some(WIDTH);

    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        into.put(&self.0.to_le_bytes());
        if self.0 % 31 == 7 {
            into.put(&[1; 9]);
        }
    }
}

/// A key of a user's own whose bytes lie in memory, or do not.
struct InMemory(u64, String);

impl Funnel for InMemory {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.1.funnel(into);
    }

    fn bytes(&self) -> Option<&[u8]> {
        (self.0 % 31 != 7).then_some(self.1.as_bytes())
    }
}

/// Hashers that have no batches of their own take the keys one by one, whatever their type.
#[test]
fn other_hashers() {
    fn agree<K: Funnel>(key: impl FnMut(u64) -> K) {
        let keys: Vec<K> = (0..300).map(key).collect();
        let isa = instruction_sets().last().unwrap();
        for len in [0, 1, 17, 300] {
            hashes_agree(isa, &foldhash::fast::FixedState::with_seed(3), &keys[..len], len % 8);
        }
    }
    agree(|x| number(x) as u8);
    agree(number);
    agree(|x| (number(x) as u32, text(number(x))));
    agree(|x| Pieces(number(x)));
}

#[test]
fn numbers() {
    for isa in instruction_sets() {
        agrees(isa, |x| x as u8);
        agrees(isa, |x| x as u16);
        agrees(isa, |x| x as u32);
        agrees(isa, |x| x);
        agrees(isa, |x| u128::from(x) << 64 | u128::from(number(x)));
        agrees(isa, |x| x as usize);
        agrees(isa, |x| x as i8);
        agrees(isa, |x| x as i16);
        agrees(isa, |x| x as i32);
        agrees(isa, |x| x as i64);
        agrees(isa, |x| i128::from(x as i64) << 40);
        agrees(isa, |x| x as isize);
        agrees(isa, |x| x % 2 == 1);
        agrees(isa, |x| char::from_u32(x as u32 % 0xd800).unwrap());
        let extremes = [0, 1, u64::MAX, 1 << 63, u64::MAX >> 1, u64::MAX << 32, 1 << 32];
        agrees(isa, |x| extremes[x as usize % extremes.len()]);
        agrees(isa, |x| extremes[x as usize % extremes.len()] as u32);
    }
}

#[test]
fn numbers_in_other_types() {
    let (v4, v6) = (
        |x: u64| Ipv4Addr::from(x as u32),
        |x: u64| Ipv6Addr::from(u128::from(x) << 64 | u128::from(number(x))),
    );
    for isa in instruction_sets() {
        agrees(isa, |_| ());
        agrees(isa, |x| NonZero::new(x | 1).unwrap());
        agrees(isa, |x| NonZero::new(x as u8 | 1).unwrap());
        agrees(isa, v4);
        agrees(isa, v6);
        agrees(isa, |x| {
            if x % 3 == 0 {
                IpAddr::V4(v4(x))
            } else {
                IpAddr::V6(v6(x))
            }
        });
        agrees(isa, |x| SocketAddrV4::new(v4(x), number(x) as u16));
        agrees(isa, |x| SocketAddrV6::new(v6(x), x as u16, 1, number(x) as u32));
        agrees(isa, |x| Duration::new(x, number(x) as u32 % 1_000_000_000));
        agrees(isa, |x| SystemTime::UNIX_EPOCH + Duration::from_nanos(x));
        agrees(isa, |x| OsString::from(text(x)));
        #[cfg(feature = "uuid")]
        agrees(isa, |x| {
            uuid::Uuid::from_u128(u128::from(x) << 64 | u128::from(number(x)))
        });
        #[cfg(feature = "bytes")]
        agrees(isa, |x| bytes::Bytes::from(text(x)));
    }
}

#[test]
fn combinations() {
    for isa in instruction_sets() {
        agrees(isa, |x| (x as u32, number(x)));
        agrees(isa, |x| (x, number(x)));
        agrees(isa, |x| (x as u8, (x >> 8) as u16, (x >> 24) as u32));
        // Pieces that end and begin anywhere in 16 bytes.
        agrees(isa, |x| (x as u8, x, number(x) as u32));
        agrees(isa, |x| (x, x as u8, number(x) as u32, number(x) as u16));
        agrees(isa, |x| (x, x as u32, number(x) as u32));
        agrees(isa, |x| [x as u32, (x >> 32) as u32, number(x) as u32, 7]);
        agrees(isa, |x| [x as u16, (x >> 16) as u16, 1, 2, 3, 4, number(x) as u16]);
        agrees(isa, |x| {
            [(x as u8, x as u16), (1, (x >> 16) as u16), (2, 3), (x as u8, 4), (5, 6)]
        });
        agrees(isa, |x| (number(x) as u8, u128::from(x)));
        agrees(isa, |x| (x,));
        agrees(isa, |x| (x, (number(x), x as u8)));
        agrees(isa, |x| (x % 3 > 0).then_some(x as u32));
        agrees(isa, |x| (x % 3 > 0).then(|| text(x)));
        agrees(isa, |x| (x, text(x)));
        agrees(isa, |x| [x, number(x), number(x + 1)]);
        agrees(isa, |x| [x as u16; 3]);
        agrees(isa, |x| vec![x as u32; x as usize % 9]);
        agrees(isa, |x| vec![text(x); x as usize % 3]);
        agrees(isa, Pieces);
        agrees(isa, Width::<0>);
        agrees(isa, Width::<7>);
        agrees(isa, Width::<8>);
        agrees(isa, Width::<9>);
        agrees(isa, Width::<16>);
        agrees(isa, Width::<17>);
        agrees(isa, Width::<{ usize::MAX }>);
        agrees(isa, |x| [Width::<8>(x), Width::<8>(number(x))]);
        agrees(isa, |x| (Width::<{ usize::MAX }>(x), x));
        agrees(isa, |x| InMemory(x, text(x)));
        agrees(isa, |x| [InMemory(x, text(x)), InMemory(x, text(x + 1))]);
    }
}

#[test]
fn texts_and_bytes() {
    let texts: Vec<String> = (0..1007).map(number).map(text).collect();
    let text = |x: u64| texts[x as usize % texts.len()].as_str();
    let strs: Vec<&str> = texts.iter().map(String::as_str).collect();
    let numbers: Vec<u64> = (0..1007).map(number).collect();
    let arrays: Vec<[u8; 16]> = numbers.iter().map(|&x| bytes(x)).collect();
    for isa in instruction_sets() {
        agrees(isa, text);
        agrees(isa, |x| text(x).to_owned());
        agrees(isa, |x| text(x).to_owned().into_boxed_str());
        agrees(isa, |x| text(x).as_bytes());
        agrees(isa, |x| text(x).as_bytes().to_vec());
        agrees(isa, |x| {
            if x % 2 == 0 {
                Cow::Borrowed(text(x))
            } else {
                Cow::Owned(text(x).to_owned())
            }
        });
        agrees(isa, |x| (text(x), text(number(x))));
        agrees(isa, |x| &numbers[x as usize % numbers.len()]);
        agrees(isa, |x| &arrays[x as usize % arrays.len()]);
        agrees(isa, |x| &arrays[x as usize % arrays.len()][..]);
        agrees(isa, |x| &texts[x as usize % texts.len()]);
        agrees(isa, |x| &strs[x as usize % strs.len()]);
    }
}

/// Fixed-width keys: every length up to beyond a chunk of 16 bytes, and those around the next.
#[test]
fn arrays_of_every_width() {
    macro_rules! widths {
        ($isa:ident: $($n:literal)*) => { $(agrees($isa, bytes::<$n>);)* };
    }
    for isa in instruction_sets() {
        widths! { isa:
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 23 24 25 31 32 33 40 48 64 100
        }
    }
}

/// Bytes of which keys are cut, so that they begin anywhere.
fn soup() -> Vec<u8> {
    (0..2000).flat_map(|x| number(x).to_le_bytes()).collect()
}

/// Byte strings of these lengths, and what is asserted of them in several orders.
fn agrees_in_any_order(isa: Isa, soup: &[u8], lengths: impl IntoIterator<Item = usize>) {
    let mut keys: Vec<&[u8]> = lengths
        .into_iter()
        .enumerate()
        .map(|(i, len)| &soup[number(i as u64) as usize % (soup.len() - len)..][..len])
        .collect();
    agrees_at(isa, &keys, 1);
    keys.reverse();
    agrees_at(isa, &keys, 2);
    keys.sort_by_key(|key| key.len());
    agrees_at(isa, &keys, 3);
    keys.reverse();
    agrees_at(isa, &keys, 4);
    let shuffled = Vec::from_iter((0..keys.len()).map(|i| keys[number(i as u64) as usize % keys.len()]));
    agrees_at(isa, &shuffled, 5);
}

#[test]
fn strings_of_every_length() {
    let soup = soup();
    for isa in instruction_sets() {
        agrees_in_any_order(isa, &soup, 0..=300);
        // Neighbours that differ by a chunk, by more than one, and by less.
        agrees_in_any_order(isa, &soup, (0..=300).map(|i| i * 16 % 301));
        agrees_in_any_order(isa, &soup, (0..=300).map(|i| i * 151 % 301));
        agrees_in_any_order(isa, &soup, (0..130).map(|i| number(i) as usize % 4097));
        agrees_in_any_order(isa, &soup, (0..400).map(|i| number(i) as usize % 33));
    }
}

#[test]
fn strings_of_one_length() {
    let soup = soup();
    for isa in instruction_sets() {
        for len in (0..=70).chain([127, 128, 129, 255, 256, 4096]) {
            let keys: Vec<&[u8]> = (0..19).map(|i| &soup[i * 13..][..len]).collect();
            agrees_at(isa, &keys, 0);
            agrees_at(isa, &vec![&soup[7..][..len]; 17], 1);
        }
    }
}

/// Where keys are hashed side by side, those that are longer than the others keep them waiting, or
/// go on alone.
#[test]
fn some_strings_unlike_the_others() {
    let soup = soup();
    for isa in instruction_sets() {
        let lengths = [0, 15, 16, 17, 31, 33, 255, 256, 300, 511, 512, 513, 4096];
        for one in lengths {
            for others in lengths {
                for unlike in 1..8 {
                    for place in [0, 1, 7, 8, 16] {
                        let length = |i: usize| {
                            if (place..place + unlike).contains(&i) {
                                one
                            } else {
                                others
                            }
                        };
                        let keys: Vec<&[u8]> = (0..19).map(|i| &soup[i * 11..][..length(i)]).collect();
                        hashes_agree(isa, &Murmur3::with_seed(1), &keys, 0);
                        hashes_agree(isa, &SipHash13::with_key([9; 16]), &keys, 0);
                    }
                }
            }
        }
        // Sorted by length where one of 64 is long: that keys come back to their places.
        for place in (0..200).step_by(9) {
            let length = |i: usize| {
                if i == place {
                    600
                } else {
                    number(i as u64) as usize % 90
                }
            };
            let keys: Vec<&[u8]> = (0..200).map(|i| &soup[i * 11..][..length(i)]).collect();
            hashes_agree(isa, &Murmur3::with_seed(1), &keys, 0);
            hashes_agree(isa, &SipHash13::with_key([9; 16]), &keys, 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_strings(
        keys in prop_oneof![
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..200),
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..40),
        ],
        seed: u32,
        offset in 0..8usize,
    ) {
        for isa in instruction_sets() {
            hashes_agree(isa, &Murmur3::with_seed(seed), &keys, offset);
            hashes_agree(isa, &FastHash::with_seed(seed), &keys, offset);
            hashes_agree(isa, &SipHash13::with_key([seed as u8; 16]), &keys, offset);
        }
    }
}

/// Each kind of hasher has a batch of its own.
#[test]
fn lengths_that_differ_are_refused() {
    fn refused<const OUT: usize>(hasher: impl KeyHasher, keys: &[u64]) {
        let panic = catch_unwind(AssertUnwindSafe(|| hasher.hash_batch(keys, &mut [0; OUT]))).unwrap_err();
        let expected = format!("`keys` has {} elements, but `out` has {OUT}", keys.len());
        assert_eq!(panic.downcast_ref(), Some(&expected));
    }
    refused::<2>(Murmur3::default(), &[1, 2, 3]);
    refused::<2>(FastHash::default(), &[1, 2, 3]);
    refused::<2>(SipHash13::default(), &[1]);
    refused::<1>(foldhash::fast::FixedState::with_seed(3), &[]);
}
