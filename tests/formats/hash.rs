//! Keys to hashes: known answers, the `murmur3` crate as a second opinion, and which keys are the same key.

use lanebloom::{ByHash, ConcurrentBloom, Funnel, KeyHasher, Murmur3, Sink, SipHash13};
use proptest::prelude::*;
use serde_json::Value;
use std::borrow::{Borrow, Cow};
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/murmur3_x64_128.json")).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The 16 bytes that the reference implementation writes.
fn output(seed: u32, key: &(impl Funnel + ?Sized)) -> Vec<u8> {
    let (h1, h2) = Murmur3::with_seed(seed).hash128(key);
    [h1.to_le_bytes(), h2.to_le_bytes()].concat()
}

#[test]
fn murmur3_gives_the_known_answers() {
    let golden = golden();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() >= 6);
    for case in cases {
        let key = match case["utf8"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => unhex(case["hex"].as_str().unwrap()),
        };
        let half = |name: &str| u64::from_str_radix(case[name].as_str().unwrap(), 16).unwrap();
        let hasher = Murmur3::with_seed(case["seed"].as_u64().unwrap() as u32);
        assert_eq!(hasher.hash128(&key), (half("h1"), half("h2")), "{case}");
        assert_eq!(hasher.hash_key(&key), half("h1"), "{case}");
    }
}

#[test]
fn funnels_give_the_known_bytes() {
    let utf16: Vec<u16> = "hello".encode_utf16().collect();
    for case in golden()["output_bytes"].as_array().unwrap() {
        let ours = match case["key"].as_str().unwrap() {
            "i32 LE 1" => [output(0, &1i32), output(0, &1u32), output(0, &'\u{1}')],
            "i64 LE 1" => [output(0, &1i64), output(0, &1u64), output(0, &1usize)],
            "utf16le hello" => [
                output(0, &utf16),
                output(0, utf16.as_slice()),
                output(0, &utf16.clone()),
            ],
            "utf8 hello" => [
                output(0, "hello"),
                output(0, &String::from("hello")),
                output(0, b"hello"),
            ],
            other => panic!("no funnel for {other}"),
        };
        for ours in ours {
            assert_eq!(ours, unhex(case["hex"].as_str().unwrap()), "{case}");
        }
    }
}

/// SMHasher's VerificationTest: the hash of the hashes of the keys [], [0], [0, 1], ... [0, ... 254], seeded 256, 255, ... 1.
#[test]
fn murmur3_has_smhashers_verification_value() {
    let keys: Vec<u8> = (0..=255).collect();
    let hashes: Vec<u8> = (0..256)
        .flat_map(|len| output(256 - len as u32, &keys[..len]))
        .collect();
    let verification = u32::from_le_bytes(*output(0, &hashes).first_chunk().unwrap());
    assert_eq!(
        format!("0x{verification:08X}"),
        golden()["smhasher_verification"].as_str().unwrap()
    );
}

proptest! {
    #[test]
    fn murmur3_agrees_with_the_murmur3_crate(
        key in proptest::collection::vec(any::<u8>(), 0..=300),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        seed: u32,
    ) {
        let theirs = murmur3::murmur3_x64_128(&mut &key[..], seed).unwrap();
        let theirs = (theirs as u64, (theirs >> 64) as u64);
        prop_assert_eq!(Murmur3::with_seed(seed).hash128(&key), theirs);

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(key.len() + 1)).collect();
        cuts.sort_unstable();
        let mut sink = Murmur3::with_seed(seed).sink();
        let mut start = 0;
        for cut in cuts {
            sink.put(&key[start..cut]);
            start = cut;
        }
        sink.put(&key[start..]);
        prop_assert_eq!(sink.finish128(), theirs);
    }
}

/// Every length and every place to cut it in two, which chance may miss.
#[test]
fn murmur3_is_the_same_wherever_the_stream_is_cut() {
    let key: Vec<u8> = (0..100u8).map(|i| i.wrapping_mul(37) ^ 11).collect();
    for len in 0..=key.len() {
        let whole = murmur3::murmur3_x64_128(&mut &key[..len], 5).unwrap();
        for cut in 0..=len {
            let mut sink = Murmur3::with_seed(5).sink();
            sink.put(&key[..cut]);
            sink.put(&key[cut..len]);
            assert_eq!(
                sink.finish128(),
                (whole as u64, (whole >> 64) as u64),
                "{len} cut at {cut}"
            );
        }
    }
}

/// The canonical bytes of a key.
fn bytes(key: &(impl Funnel + ?Sized)) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.funnel(&mut bytes);
    bytes
}

#[test]
fn every_type_has_its_bytes() {
    assert_eq!(bytes(&-2i8), [0xfe]);
    assert_eq!(bytes(&-2i16), [0xfe, 0xff]);
    assert_eq!(bytes(&0x0102_0304i32), [4, 3, 2, 1]);
    assert_eq!(bytes(&0x0102_0304_0506_0708i64), [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(bytes(&-2i128), (-2i128).to_le_bytes());
    assert_eq!(bytes(&-2isize), (-2i64).to_le_bytes());
    assert_eq!(bytes(&7u8), [7]);
    assert_eq!(bytes(&0x0102u16), [2, 1]);
    assert_eq!(bytes(&0x0102_0304u32), [4, 3, 2, 1]);
    assert_eq!(bytes(&7u64), [7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(&7u128), 7u128.to_le_bytes());
    assert_eq!(bytes(&7usize), 7u64.to_le_bytes());
    assert_eq!((bytes(&false), bytes(&true)), (vec![0], vec![1]));
    assert_eq!(bytes(&'€'), [0xac, 0x20, 0, 0]);
    assert_eq!(bytes("€"), "€".as_bytes());
    assert_eq!(bytes(&[1u8, 2]), [1, 2]);
    assert_eq!(bytes(&[1u16, 2][..]), [1, 0, 2, 0]);
    assert_eq!(bytes(&vec!["a", "bc"]), b"abc");
    assert_eq!((bytes(&None::<u8>), bytes(&Some(5u8))), (vec![0], vec![1, 5]));
    assert_eq!(bytes(&(1u8,)), [1]);
    assert_eq!(bytes(&(1u8, 2u8, "c", 4u8, [5u8], 6u8)), [1, 2, b'c', 4, 5, 6]);
    assert_eq!(bytes(&((1u8, 2u8), (3u8, (4u8, 5u8)))), [1, 2, 3, 4, 5]);
    for key in [
        bytes(&"key"),
        bytes(&&"key"),
        bytes(&&mut String::from("key")),
        bytes(&Box::<str>::from("key")),
        bytes(&Rc::<str>::from("key")),
        bytes(&Arc::<str>::from("key")),
        bytes(&Cow::Borrowed("key")),
        bytes(&Cow::<str>::Owned("key".into())),
        bytes(&Cow::<[u8]>::Borrowed(b"key")),
        bytes(b"key"),
        bytes(b"key".as_slice()),
        bytes(&b"key".to_vec()),
        bytes(&Box::new(*b"key")),
    ] {
        assert_eq!(key, b"key");
    }
}

/// A type of another crate feeds a hasher; integers among it come out in one width and order.
#[test]
fn by_hash_takes_any_hash() {
    #[derive(Hash)]
    struct Foreign(u32, usize, i64);
    let expected = [&7u32.to_le_bytes()[..], &8u64.to_le_bytes(), &(-9i64).to_le_bytes()].concat();
    assert_eq!(bytes(&ByHash(Foreign(7, 8, -9))), expected);
    assert_eq!(bytes(&ByHash("ab")), b"ab\xff");
    let by_reference: &ByHash<Foreign> = &ByHash(Foreign(7, 8, -9));
    assert_eq!(bytes(by_reference), expected);
}

/// Whoever relies on it (`HashMap`s do for hashes, a guard's batches for these bytes) may take either form: also by the bytes
/// that a batch copies or points to.
#[test]
fn what_a_key_borrows_as_has_its_bytes() {
    fn same<B: Funnel + ?Sized, K: Borrow<B> + Funnel>(key: K) {
        let borrowed = key.borrow();
        assert_eq!(bytes(&key), bytes(borrowed));
        for (own, direct) in [(bytes(&key), key.bytes()), (bytes(borrowed), borrowed.bytes())] {
            assert!(direct.is_none_or(|direct| direct == own));
        }
        for width in [K::WIDTH, B::WIDTH] {
            assert!(width.is_none_or(|width| width == bytes(borrowed).len()));
        }
        let expected = [Murmur3::default().hash_key(borrowed)];
        let mut hash = [0];
        Murmur3::default().hash_batch(&[key], &mut hash);
        assert_eq!(hash, expected);
    }
    fn pointers<B: Funnel + ToOwned + ?Sized>(key: &B, boxed: fn(&B) -> Box<B>)
    where
        B::Owned: Funnel,
    {
        same::<B, _>(key);
        same::<B, B::Owned>(key.to_owned());
        same::<B, _>(boxed(key));
        same::<B, Rc<B>>(Rc::from(boxed(key)));
        same::<B, Arc<B>>(Arc::from(boxed(key)));
        same::<B, _>(Cow::Borrowed(key));
        same::<B, Cow<B>>(Cow::Owned(key.to_owned()));
        same::<B, _>(&mut *boxed(key));
    }
    for text in ["", "ann", "seventeen letters"] {
        pointers(text, |text| text.into());
        pointers(text.as_bytes(), |bytes| bytes.into());
    }
    pointers(&[1u16, 2, 3][..], |units| units.into());
    pointers(&["a", "bc"][..], |parts| parts.into());
    pointers(&[1u8, 2, 3], |array| Box::new(*array));
    pointers(&17u64, |number| Box::new(*number));
    pointers(&(1u32, true), |pair| Box::new(*pair));
    same::<[u8], [u8; 3]>([1, 2, 3]);
    same::<[u8], [u8; 0]>([]);
    same::<[u32], [u32; 2]>([1, 2]);
    same::<[bool], [bool; 2]>([true, false]);
    same::<[String], Vec<String>>(vec!["a".into(), "bc".into()]);
}

#[test]
fn concatenation_has_no_separators() {
    assert_eq!(bytes(&("ab", "c")), bytes(&("a", "bc")));
    assert_ne!(bytes(&(2usize, "ab", "c")), bytes(&(1usize, "a", "bc")));
}

/// The pair of keys that collides under every seed is no obstacle for a keyed hash.
#[test]
fn a_seed_does_not_protect_murmur3_and_a_key_protects_siphash() {
    let golden = golden();
    let pair = &golden["seed_independent_collision"];
    let [a, b] = ["a_hex", "b_hex"].map(|name| unhex(pair[name].as_str().unwrap()));
    assert_ne!(a, b);
    assert_eq!(
        format!("{:016x}", Murmur3::default().hash_key(&a)),
        pair["h1_seed0"].as_str().unwrap()
    );
    for seed in 0..1000 {
        let hasher = Murmur3::with_seed(seed);
        assert_eq!(hasher.hash128(&a), hasher.hash128(&b), "seed {seed}");
    }
    for seed in [0, 1, 2, 0xdead_beef, u32::MAX] {
        let filter = ConcurrentBloom::builder()
            .expected_keys(1000)
            .seed(seed)
            .build()
            .unwrap();
        filter.insert(&a);
        assert!(filter.contains(&b), "seed {seed}");
    }
    for key in 0..1000u128 {
        let hasher = SipHash13::with_key(key.to_le_bytes());
        assert_ne!(hasher.hash_key(&a), hasher.hash_key(&b), "key {key}");
    }
    let filter = ConcurrentBloom::builder()
        .expected_keys(1000)
        .hasher(SipHash13::random())
        .build()
        .unwrap();
    filter.insert(&a);
    assert!(!filter.contains(&b));
}

/// In agreement with std's own SipHash-1-3 (`DefaultHasher`, whose key is zero), and however the bytes arrive.
#[test]
fn siphash13_is_siphash13() {
    fn std_hash(bytes: &[u8]) -> u64 {
        use std::hash::{DefaultHasher, Hasher};
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        hasher.finish()
    }
    let key: Vec<u8> = (0..64).collect();
    let hasher = SipHash13::with_key([0; 16]);
    for len in 0..key.len() {
        assert_eq!(hasher.hash_key(&key[..len]), std_hash(&key[..len]));
        let (a, b) = key[..len].split_at(len / 3);
        assert_eq!(hasher.hash_key(&(a, b)), std_hash(&key[..len]));
    }
    assert_ne!(SipHash13::with_key([1; 16]).hash_key("a"), hasher.hash_key("a"));
    assert!(!format!("{:?}", SipHash13::with_key([77; 16])).contains("77"));
}

#[test]
fn a_build_hasher_is_fed_the_canonical_bytes() {
    let foldhash = foldhash::fast::FixedState::with_seed(3);
    let expected = {
        use std::hash::Hasher;
        let mut hasher = foldhash.build_hasher();
        hasher.write(&7u32.to_le_bytes());
        hasher.finish()
    };
    assert_eq!(foldhash.hash_key(&7u32), expected);
    let filter = ConcurrentBloom::builder()
        .expected_keys(1000)
        .hasher(foldhash)
        .build()
        .unwrap();
    assert_eq!(filter.hash(&7u32), expected);
}
