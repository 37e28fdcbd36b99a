//! Keys to hashes: known answers, other crates as a second opinion, and which keys are the
//! same key.

use lanebloom::hash::OneKeyType;
use lanebloom::{ByHash, ConcurrentBloom, FastHash, Funnel, KeyHasher, Murmur3, Sink, SipHash13, codec};
use lanebloom_tests::number;
use proptest::prelude::*;
use serde_json::Value;
use std::borrow::{Borrow, Cow};
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

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

/// `docs/LANGUAGES.md` has them for programs in other languages.
#[test]
fn the_page_for_other_languages_has_the_hashes() {
    let page = include_str!("../../docs/LANGUAGES.md");
    let (_, page) = page.split_once("\n## Test vectors\n").unwrap();
    let (vectors, _) = page.split_once("\n## ").unwrap();
    let rows = vectors.lines().filter(|line| line.starts_with("| `"));
    let mut texts = 0;
    for row in rows.clone() {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim_matches([' ', '`'])).collect();
        let bytes = unhex(if cells[2] == "none" { "" } else { cells[2] });
        for (seed, hash) in [(0, cells[3]), (0x9e37_79b1, cells[4])] {
            let ours = Murmur3::with_seed(seed).hash_key(&bytes);
            assert_eq!(format!("{ours:016x}"), hash, "{row}");
        }
        match cells[1] {
            "17u32" => assert_eq!(bytes, 17u32.to_le_bytes()),
            "17u64" => assert_eq!(bytes, 17u64.to_le_bytes()),
            "-1i64" => assert_eq!(bytes, (-1i64).to_le_bytes()),
            text => {
                assert_eq!(format!("{:?}", String::from_utf8(bytes).unwrap()), text);
                texts += 1;
            }
        }
    }
    assert!(texts >= 5 && rows.count() >= 8);
}

/// SMHasher's VerificationTest: the hash of the hashes of the keys [], [0], [0, 1], ... [0, ...
/// 254], seeded 256, 255, ... 1.
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

/// The canonical bytes of a key. Its type says their number or nothing, and where they lie in
/// memory they are the same. (Whatever a type says of either, its hash is that of the bytes that it
/// puts: `no_hasher_sees_cuts`.)
fn bytes<K: Funnel + ?Sized>(key: &K) -> Vec<u8> {
    let (name, mut bytes) = (std::any::type_name::<K>(), Vec::new());
    key.funnel(&mut bytes);
    assert!(K::WIDTH.is_none_or(|width| width == bytes.len()), "{name}");
    assert!(key.bytes().is_none_or(|in_memory| in_memory == bytes), "{name}");
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

/// The bytes of a key whose type says that their number is `width`.
fn bytes_of_width<K: Funnel>(key: K, width: Option<usize>) -> Vec<u8> {
    assert_eq!(K::WIDTH, width, "{}", std::any::type_name::<K>());
    bytes(&key)
}

#[test]
fn addresses_have_their_octets() {
    let v4 = Ipv4Addr::new(192, 0, 2, 1);
    let v6: Ipv6Addr = "2001:db8::a:b".parse().unwrap();
    let v6_octets = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0, 0x0b];
    assert_eq!(bytes_of_width(v4, Some(4)), [192, 0, 2, 1]);
    assert_eq!(bytes_of_width(v6, Some(16)), v6_octets);
    assert_eq!(bytes_of_width(IpAddr::V4(v4), None), [192, 0, 2, 1]);
    assert_eq!(bytes_of_width(IpAddr::V6(v6), None), v6_octets);
    // An address and its number, which is little-endian, are two keys.
    assert_ne!(bytes(&v4), bytes(&v4.to_bits()));
    assert_ne!(bytes(&v6), bytes(&v6.to_bits()));

    let socket = SocketAddrV4::new(v4, 0x1f90);
    assert_eq!(bytes_of_width(socket, Some(6)), [192, 0, 2, 1, 0x90, 0x1f]);
    assert_eq!(bytes(&SocketAddr::V4(socket)), bytes(&(v4, 0x1f90u16)));
    let socket = SocketAddrV6::new(v6, 0x1f90, 0x0102_0304, 7);
    let expected = [&v6_octets[..], &[0x90, 0x1f], &[4, 3, 2, 1], &[7, 0, 0, 0]].concat();
    assert_eq!(bytes_of_width(socket, Some(26)), expected);
    assert_eq!(bytes_of_width(SocketAddr::V6(socket), None), expected);
}

#[test]
fn numbers_that_are_not_zero_have_the_bytes_of_numbers() {
    fn same<T: Funnel, N: Funnel>(number: T, nonzero: Option<N>) {
        let name = std::any::type_name::<N>();
        assert_eq!(bytes_of_width(nonzero.unwrap(), T::WIDTH), bytes(&number), "{name}");
    }
    macro_rules! same {
        ($($t:ty)*) => { $(same(<$t>::MAX / 3, NonZero::<$t>::new(<$t>::MAX / 3));)* };
    }
    same!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
    assert_eq!(bytes(&NonZero::new(0x0102u16).unwrap()), [2, 1]);
}

#[test]
fn times_are_seconds_and_nanoseconds() {
    let duration = Duration::new(0x0102_0304_0506, 0x0a0b_0c0d);
    assert_eq!(
        bytes_of_width(duration, Some(12)),
        [6, 5, 4, 3, 2, 1, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a]
    );
    assert_eq!(bytes(&duration), bytes(&(duration.as_secs(), duration.subsec_nanos())));
    assert_eq!(bytes(&Duration::MAX), bytes(&(u64::MAX, 999_999_999u32)));

    assert_eq!(bytes_of_width(SystemTime::UNIX_EPOCH, Some(12)), [0; 12]);
    // (Windows has times until the year 30828, in steps of 100 ns.)
    let duration = Duration::new(0x0102_0304, 0x0a0b_0c0d / 100 * 100);
    assert_eq!(bytes(&(SystemTime::UNIX_EPOCH + duration)), bytes(&duration));
    // Before 1970: the second that has begun, so that the nanoseconds count upwards there too.
    let before = |secs, nanos| bytes(&(SystemTime::UNIX_EPOCH - Duration::new(secs, nanos)));
    assert_eq!(before(1, 0), bytes(&(-1i64, 0u32)));
    assert_eq!(before(0, 100), bytes(&(-1i64, 999_999_900u32)));
    assert_eq!(before(7, 250_000_000), bytes(&(-8i64, 750_000_000u32)));
}

/// The earliest and the latest times that Linux has.
#[cfg(target_os = "linux")]
#[test]
fn the_ends_of_time_have_bytes() {
    let epoch = SystemTime::UNIX_EPOCH;
    let latest = epoch + Duration::new(i64::MAX as u64, 999_999_999);
    assert_eq!(bytes(&latest), bytes(&(i64::MAX, 999_999_999u32)));
    let earliest = epoch - Duration::new(1 << 63, 0);
    assert_eq!(bytes(&earliest), bytes(&(i64::MIN, 0u32)));
    assert_eq!(bytes(&(earliest + Duration::new(0, 1))), bytes(&(i64::MIN, 1u32)));
}

#[test]
fn names_of_the_system_have_the_bytes_of_texts() {
    for text in ["", "name", "é😀"] {
        assert_eq!(bytes_of_width(OsStr::new(text), None), text.as_bytes());
        assert_eq!(bytes_of_width(OsString::from(text), None), text.as_bytes());
        assert_eq!(Funnel::bytes(OsStr::new(text)), Some(text.as_bytes()));
        assert_eq!(OsString::from(text).bytes(), Some(text.as_bytes()));
    }
}

#[cfg(unix)]
#[test]
fn names_of_unix_have_their_bytes_as_they_are() {
    use std::os::unix::ffi::OsStrExt;
    let name = [b'a', 0xff, 0xed, 0xa0, 0x80, b'/'];
    assert_eq!(bytes(OsStr::from_bytes(&name)), name);
}

#[test]
fn nothing_has_no_bytes() {
    assert!(bytes_of_width((), Some(0)).is_empty());
    assert_eq!(bytes(&((), 1u8, ())), [1]);
    assert_eq!(Murmur3::default().hash_key(&()), Murmur3::default().hash_key(""));
}

#[cfg(feature = "uuid")]
#[test]
fn a_uuid_has_its_bytes_in_order() {
    let uuid = uuid::uuid!("67e55044-10b1-426f-9247-bb680e5fe0c8");
    let expected = unhex("67e5504410b1426f9247bb680e5fe0c8");
    assert_eq!(bytes_of_width(uuid, Some(16)), expected);
    assert_eq!(uuid.bytes(), Some(&expected[..]));
    assert_eq!(bytes(&uuid), bytes(uuid.as_bytes()));
    assert_eq!(bytes(&uuid), bytes(&uuid.as_u128().to_be_bytes()));
    assert_ne!(bytes(&uuid), bytes(&uuid.as_u128()));
}

#[cfg(feature = "bytes")]
#[test]
fn bytes_are_bytes() {
    let key = bytes::Bytes::from_static(b"key");
    assert_eq!(key.bytes(), Some(&b"key"[..]));
    assert_eq!(bytes_of_width(key, None), b"key");
    let key = bytes::BytesMut::from("key");
    assert_eq!(key.bytes(), Some(&b"key"[..]));
    assert_eq!(bytes_of_width(key, None), b"key");
}

/// Where the values lie they are keys, of any length and size.
#[test]
fn a_slice_is_borrowed_as_keys_by_hash() {
    fn same<T: std::hash::Hash + PartialEq + std::fmt::Debug>(values: &[T]) {
        let keys = ByHash::from_slice(values);
        assert_eq!(keys.len(), values.len());
        assert_eq!(keys.as_ptr().addr(), values.as_ptr().addr());
        for (key, value) in keys.iter().zip(values) {
            assert_eq!(&key.0, value);
            assert_eq!(bytes(key), bytes(&ByHash(value)));
        }
    }
    same(&["a", "bc", ""].map(String::from));
    same(&[(1u8, 2u64), (3, 4)]);
    same::<u8>(&[]);
    same(&[(), ()]);
    same(&[[7u128; 3]]);
}

/// A type of another crate feeds a hasher; integers among it come out in one width and order.
#[test]
fn by_hash_takes_any_hash() {
    #[derive(Hash)]
    struct Foreign(u32, usize, i64);
    let expected = [&7u32.to_le_bytes()[..], &8u64.to_le_bytes(), &(-9i64).to_le_bytes()].concat();
    // Every integer, as the machine that has another byte order and width must write it.
    let unsigned = ByHash((1u8, 2u16, 3u32, 4u64, 5u128, 6usize));
    let signed = ByHash((-1i8, -2i16, -3i32, -4i64, -5i128, -6isize));
    assert_eq!(bytes(&unsigned), bytes(&unsigned.0));
    assert_eq!(bytes(&signed), bytes(&signed.0));
    assert_eq!(bytes(&ByHash(Foreign(7, 8, -9))), expected);
    assert_eq!(bytes(&ByHash("ab")), b"ab\xff");
    let by_reference: &ByHash<Foreign> = &ByHash(Foreign(7, 8, -9));
    assert_eq!(bytes(by_reference), expected);
}

/// Whoever relies on it (`HashMap`s do for hashes, a guard's batches for these bytes) may take
/// either form: also by the bytes that a batch copies or points to.
#[test]
fn what_a_key_borrows_as_has_its_bytes() {
    fn same<B: Funnel + ?Sized, K: Borrow<B> + Funnel>(key: K) {
        let borrowed = key.borrow();
        assert_eq!(bytes(&key), bytes(borrowed));
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

/// Computed from `docs/HASHES.md` by a program in Python, with the reference implementation of
/// XXH3: the first bytes of 11, 48, 85, ...
#[test]
fn fast_hash_gives_the_known_answers() {
    let bytes: Vec<u8> = (0..1000).map(|i| (i * 37 + 11) as u8).collect();
    // The length, and the hashes by the seeds 0 and 0x9e37_79b1.
    let golden = [
        (0, 0x9db0_4c55_6625_4743, 0xd3e1_1802_7320_0865),
        (1, 0x0b6c_5c20_1b3d_be67, 0x5c0f_a33b_55dd_e590),
        (2, 0x2fe2_935a_361b_0245, 0x8620_61ad_38e4_47f9),
        (3, 0xa4c1_bb68_26ec_5c41, 0x6e1f_95c7_256d_e9f8),
        (4, 0x4553_ce40_5fe1_0eb9, 0x4e0d_36f3_f5bd_3f88),
        (5, 0x7ebe_2273_9b6b_4c3e, 0xc5ad_0086_3468_b579),
        (7, 0xf5ad_6e18_988f_a9fb, 0x57c9_fb21_5467_90a1),
        (8, 0xf9e7_6e07_721b_99de, 0xee51_1a8e_4e12_614f),
        (9, 0x05b2_fd4d_97ed_cdae, 0xd43d_1978_155b_dd5e),
        (13, 0x98a6_5a04_4e7b_0b5a, 0x715c_8e98_849b_6b9b),
        (16, 0x2e43_59e2_a04a_5e32, 0x718e_abb1_bb45_d5ba),
        (17, 0xf60c_5368_4bbc_489d, 0xfe83_723f_1277_6470),
        (24, 0xdc03_d183_f997_ccc3, 0xe4a9_40a1_0f73_08f0),
        (32, 0x6648_64df_0876_efc6, 0x2e67_ed81_a8cc_598e),
        (33, 0xaa99_8d61_31d9_56aa, 0xa7bb_107a_b7e5_8d9a),
        (64, 0x8e74_64ff_df82_c775, 0x99ad_c479_63b5_0a6b),
        (128, 0x5c6a_b7b5_b236_0539, 0xfe1b_5b94_4d39_22f5),
        (129, 0x45fa_bbd1_83de_7649, 0xaac1_adac_6940_635e),
        (240, 0xc079_6428_068c_d12e, 0xb460_6223_c98a_ae7f),
        (241, 0x859d_c8ab_6dd8_5c7c, 0xe7cf_e8a5_28cb_77eb),
        (1000, 0x35b9_0186_550d_bb50, 0x4922_7998_9432_8271),
    ];
    for (len, zero, golden_ratio) in golden {
        let hash = |seed| FastHash::with_seed(seed).hash_key(&bytes[..len]);
        assert_eq!([hash(0), hash(0x9e37_79b1)], [zero, golden_ratio], "{len} bytes");
    }
}

/// The avalanche test: to change a bit of a key changes each bit of its hash in half of the cases.
/// By chance alone, none of the 50,000 figures would be so far from it.
#[test]
fn every_bit_of_a_key_reaches_every_bit_of_its_fast_hash() {
    const KEYS: u64 = 4000;
    let hasher = FastHash::with_seed(3);
    for (len, counts_up) in [1, 2, 3, 4, 5, 8, 9, 16, 17, 24, 32]
        .into_iter()
        .flat_map(|len| [(len, false), (len, true)])
    {
        let keys = Vec::from_iter((0..KEYS).map(|i| {
            let mut key = [0; 32];
            for (at, word) in key.chunks_exact_mut(8).enumerate() {
                let word_of = if counts_up {
                    u64::from(at == 0) * i
                } else {
                    number(i << 3 | at as u64)
                };
                word.copy_from_slice(&word_of.to_le_bytes());
            }
            key
        }));
        for bit in 0..8 * len {
            let mut changed = [0u64; 64];
            for key in &keys {
                let mut other = *key;
                other[bit / 8] ^= 1 << (bit % 8);
                let differs = hasher.hash_key(&key[..len]) ^ hasher.hash_key(&other[..len]);
                for (i, changed) in changed.iter_mut().enumerate() {
                    *changed += differs >> i & 1;
                }
            }
            for (i, changed) in changed.into_iter().enumerate() {
                let share = changed as f64 / KEYS as f64;
                assert!(
                    (0.35..0.65).contains(&share),
                    "{len} bytes, counting {counts_up}: bit {bit} changes bit {i} of the hash in {share} of the cases"
                );
            }
        }
    }
}

/// The hash by `hasher` of `bytes` as the module `hash` documents: in pieces of 128, the last one
/// shorter, and an empty key as one empty piece.
fn fed(hasher: &impl BuildHasher, bytes: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    let pieces = bytes.chunks(128);
    for piece in pieces.chain(bytes.is_empty().then_some(bytes)) {
        hasher.write(piece);
    }
    hasher.finish()
}

/// A hasher to which "ab" written at once is not "a" and "b" written one after the other, and
/// neither is an empty write nothing.
#[derive(Default)]
struct Divided(u64);

impl Hasher for Divided {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied().chain([0x80, bytes.len() as u8]) {
            self.0 = (self.0 ^ u64::from(byte))
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(29);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A key that puts its bytes in pieces of these lengths, and says a width that may be wrong.
struct Cut<'a, const WIDTH: usize>(&'a [u8], &'a [usize]);

impl<const WIDTH: usize> Funnel for Cut<'_, WIDTH> {
    const WIDTH: Option<usize> = Some(WIDTH);

    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        let mut rest = self.0;
        for len in self.1 {
            let (piece, after) = rest.split_at(*len.min(&rest.len()));
            into.put(piece);
            rest = after;
        }
        into.put(rest);
    }
}

/// However a key of these bytes is cut, and whether or not its type says how many there are, it has
/// this hash; alone and in a batch.
fn cut_is_not_seen(hasher: &impl KeyHasher, key: &[u8], pieces: &[usize], expected: u64) {
    let hashes = [
        hasher.hash_key(key),
        hasher.hash_key(&Cut::<{ usize::MAX }>(key, pieces)),
        hasher.hash_key(&Cut::<8>(key, pieces)),
        hasher.hash_key(&Cut::<16>(key, pieces)),
        hasher.hash_key(&Cut::<24>(key, pieces)),
    ];
    assert_eq!(hashes, [expected; 5], "{} bytes by {pieces:?}", key.len());
    let mut hashes = [0; 3];
    hasher.hash_batch(&[0; 3].map(|_| Cut::<9>(key, pieces)), &mut hashes);
    assert_eq!(hashes, [expected; 3], "{} bytes by {pieces:?}", key.len());
}

/// The hash of another crate, or of bytes in one piece.
fn no_hasher_sees_cuts(seed: u32, key: &[u8], pieces: &[usize]) {
    let murmur3 = Murmur3::with_seed(seed);
    let both = murmur3::murmur3_x64_128(&mut &key[..], seed).unwrap();
    let both = (both as u64, (both >> 64) as u64);
    assert_eq!(
        [murmur3.hash128(key), murmur3.hash128(&Cut::<8>(key, pieces))],
        [both; 2]
    );
    cut_is_not_seen(&murmur3, key, pieces, both.0);

    let secret = [seed as u8; 16];
    let mut theirs = siphasher::sip::SipHasher13::new_with_key(&secret);
    theirs.write(key);
    cut_is_not_seen(&SipHash13::with_key(secret), key, pieces, theirs.finish());

    // (Keys of up to 8 bytes have a hash of their own.)
    let fast = FastHash::with_seed(seed);
    let theirs = twox_hash::XxHash3_64::oneshot_with_seed(seed.into(), key);
    let expected = if key.len() > 8 { theirs } else { fast.hash_key(key) };
    cut_is_not_seen(&fast, key, pieces, expected);

    let fold = foldhash::fast::FixedState::with_seed(3);
    cut_is_not_seen(&fold, key, pieces, fed(&fold, key));
    let divided = BuildHasherDefault::<Divided>::default();
    cut_is_not_seen(&divided, key, pieces, fed(&divided, key));
}

/// About the pieces of each hasher, at every length, wherever the key begins. (`hash_batch` has the
/// batches of every instruction set.)
#[test]
fn no_hasher_sees_how_a_key_of_any_length_is_cut() {
    let bytes: Vec<u8> = (0..616).map(|i| number(i) as u8).collect();
    for len in (0..=300).chain([511, 512, 513, 600]) {
        for cuts in [
            &[1; 40][..],
            &[8, 8, 8, 8],
            &[31, 1, 1],
            &[127, 1, 1],
            &[200, 41],
            &[len],
        ] {
            no_hasher_sees_cuts(len as u32, &bytes[len * 7 % 16..][..len], cuts);
        }
    }
}

proptest! {
    #[test]
    fn no_hasher_sees_how_a_key_is_cut(
        key in proptest::collection::vec(any::<u8>(), 0..=300),
        pieces in prop_oneof![
            proptest::collection::vec(0..5usize, 0..100),
            proptest::collection::vec(0..200usize, 0..6),
        ],
        seed: u32,
    ) {
        no_hasher_sees_cuts(seed, &key, &pieces);
    }
}

/// The message with which `wrong` is refused after `first`, if it is, under a hasher of its own.
fn refused<A: Funnel + ?Sized, B: Funnel + ?Sized>(first: &A, wrong: &B) -> Option<String> {
    let hasher = OneKeyType::new(Murmur3::with_seed(5));
    assert_eq!(hasher.hash_key(first), Murmur3::with_seed(5).hash_key(first));
    let outcome = catch_unwind(AssertUnwindSafe(|| hasher.hash_key(wrong)));
    match outcome {
        Ok(hash) => assert_eq!(hash, Murmur3::with_seed(5).hash_key(wrong)),
        // The first key still decides.
        Err(_) => assert_eq!(hasher.hash_key(first), Murmur3::with_seed(5).hash_key(first)),
    }
    outcome.err().map(|payload| *payload.downcast::<String>().unwrap())
}

#[test]
fn one_key_type_takes_a_key_in_all_its_forms() {
    fn both<A: Funnel + ?Sized, B: Funnel + ?Sized>(a: &A, b: &B) {
        assert_eq!(refused(a, b).or(refused(b, a)), None);
    }
    both("a", &String::from("bc"));
    both("a", &&&Box::<str>::from(""));
    both(b"abc".as_slice(), "a");
    both(&vec![1u8, 2], &[3u8; 7][..]);
    both(&[1u8; 16], &[2u8; 16][..]);
    both(&1u64, &-1i64);
    both(&1usize, &NonZero::new(1u64).unwrap());
    both(&1u64, &&2u64);
    both(&(1u32, 2u32), &3u64);
    both(&[1u16, 2], &vec![3u16, 4]);
    both(&(1u8, "a"), &(2u8, String::from("bc")));
    both(&Some(1u8), &None::<u8>);
    both(&ByHash("a"), &ByHash(7));
    // Keys of one type are of one type, although the type's width is wrong.
    both(&Cut::<3>(b"abcd", &[]), &Cut::<3>(b"a", &[]));
}

#[test]
fn one_key_type_refuses_another_type_by_both_names() {
    fn both<A: Funnel + ?Sized, B: Funnel + ?Sized>(a: &A, b: &B) {
        let names = [std::any::type_name::<A>(), std::any::type_name::<B>()];
        for message in [refused(a, b), refused(b, a)] {
            let message = message.unwrap_or_else(|| panic!("{names:?} are taken for one type"));
            assert!(
                names.iter().all(|name| message.contains(&format!("`{name}`"))),
                "{message}"
            );
        }
    }
    both(&17i32, &17u64);
    both(&17u64, "17");
    both(&17u64, "12345678");
    both(&17u64, &String::from("17"));
    both(&17u64, &17u64.to_le_bytes());
    both(&1u64, &Some(1u64));
    both(&1u64, &(1u64, 1u8));
    both(&(1u32, 2u64), &(1u64, 2u64));
    both(&[1u8; 32], "3132");
    both(&[1u8; 16], &[1u8; 20]);
    both(&1u128, &[1u8; 16]);
    both(&1u32, &ByHash(1u64));
    both(&Ipv4Addr::LOCALHOST, "127.0.0.1");
    #[cfg(feature = "uuid")]
    both(&uuid::Uuid::nil(), &0u128);
    #[cfg(feature = "uuid")]
    both(&uuid::Uuid::nil(), &uuid::Uuid::nil().to_string());
    assert_eq!(
        refused(&17i32, &17u64).unwrap(),
        "a key of type `u64` (8 bytes) in a filter whose first key was of type `i32` (4 bytes): keys of two types never meet"
    );
}

#[test]
fn one_key_type_looks_at_every_key_of_a_batch_and_lets_clones_agree() {
    let hasher = OneKeyType::new(SipHash13::with_key([1; 16]));
    let mut hashes = [0; 2];
    hasher.clone().hash_batch(&["a", "bc"], &mut hashes);
    assert_eq!(
        hashes,
        ["a", "bc"].map(|key| SipHash13::with_key([1; 16]).hash_key(key))
    );
    for keys in [&[1u32, 2][..], &[1]] {
        let outcome = catch_unwind(AssertUnwindSafe(|| hasher.hash_batch(keys, &mut hashes[..keys.len()])));
        assert!(outcome.is_err());
    }
    // One key of a batch that is not like the first: an address of the other version.
    let hasher = OneKeyType::new(Murmur3::default());
    hasher.hash_key(&Ipv4Addr::LOCALHOST);
    let keys = ["127.0.0.1", "::1"].map(|ip| ip.parse::<IpAddr>().unwrap());
    let outcome = catch_unwind(AssertUnwindSafe(|| hasher.hash_batch(&keys, &mut [0; 2])));
    assert!(outcome.is_err());
    assert!(format!("{:?}", OneKeyType::new(SipHash13::with_key([77; 16]))).contains("secret"));
}

/// In every filter, a key of another type panics. A filter's own questions to its hasher are no
/// keys.
#[test]
fn every_filter_takes_one_key_type() {
    macro_rules! checked {
        ($($filter:ident)*) => {$(
            let builder = lanebloom::$filter::builder().expected_keys(1000);
            let filter = builder.clone().hasher(OneKeyType::new(Murmur3::default())).build().unwrap();
            let _ = filter.snapshot().to_vec();
            let _ = filter.insert(&17i32);
            assert!(filter.contains(&17i32), stringify!($filter));
            let plain = builder.hasher(Murmur3::default()).build().unwrap();
            assert_eq!(filter.hash(&17i32), plain.hash(&17i32));
            for outcome in [
                catch_unwind(AssertUnwindSafe(|| assert!(!filter.contains(&17u64)))),
                catch_unwind(AssertUnwindSafe(|| filter.contains_batch(&["17"], lanebloom::Absent(|_| unreachable!())))),
                catch_unwind(AssertUnwindSafe(|| filter.contains_batch(&[17u64], &mut [false]))),
            ] {
                let message = *outcome.expect_err(stringify!($filter)).downcast::<String>().unwrap();
                assert!(message.contains("`i32` (4 bytes)"), "{message}");
            }
        )*};
    }
    checked! { ConcurrentBloom CountingBloom TombstoneBloom CuckooFilter DLeftFilter ScalableBloom WindowedBloom }
}

/// A filter's snapshot does not know whether its keys were looked at.
#[test]
fn one_key_type_is_the_hasher_that_it_wraps_to_a_snapshot() {
    let builder = ConcurrentBloom::builder().expected_keys(1000);
    let plain = builder.clone().hasher(Murmur3::with_seed(3)).build().unwrap();
    plain.insert("a");
    let checked = OneKeyType::new(Murmur3::with_seed(3));
    let (same, _) = codec::from_bytes::<ConcurrentBloom<_>>(&plain.snapshot().to_vec(), checked).unwrap();
    assert!(same.contains("a"));
    assert_eq!(same.snapshot().to_vec(), plain.snapshot().to_vec());
    let other = OneKeyType::new(Murmur3::with_seed(4));
    assert!(codec::from_bytes::<ConcurrentBloom<_>>(&plain.snapshot().to_vec(), other).is_err());
}
