//! The recipes of the page of `lanebloom::funnel`: the bytes of each key, and of those that are not
//! the same key.

use lanebloom::{ByHash, Funnel};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

fn bytes(key: impl Funnel) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.funnel(&mut bytes);
    bytes
}

#[test]
fn a_recipe_s_key_has_the_bytes_that_the_page_says() {
    // A row's id.
    assert_eq!(bytes(17u64), [17, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(17u32), [17, 0, 0, 0]);
    assert_eq!(bytes("17"), b"17");

    // A UUID.
    #[cfg(feature = "uuid")]
    {
        let uuid = uuid::uuid!("67e55044-10b1-426f-9247-bb680e5fe0c8");
        assert_eq!(bytes(uuid)[..4], [0x67, 0xe5, 0x50, 0x44]);
        assert_eq!(bytes(uuid), bytes(uuid.into_bytes()));
        assert_eq!(bytes(uuid.as_u128())[..4], [0xc8, 0xe0, 0x5f, 0x0e]);
        assert_eq!(bytes(uuid.to_string()), b"67e55044-10b1-426f-9247-bb680e5fe0c8");
    }

    // A digest.
    let digest = [0xabu8; 32];
    assert_eq!(bytes(digest), digest);
    assert_eq!(bytes(&digest[..]), digest);
    assert_ne!(bytes("ab".repeat(32)), digest);

    // An address.
    let (v4, mapped) = (Ipv4Addr::new(192, 0, 2, 1), "::ffff:192.0.2.1");
    let ip: IpAddr = mapped.parse().unwrap();
    assert_eq!(bytes(ip.to_canonical()), [192, 0, 2, 1]);
    assert_eq!(bytes(ip).len(), 16);
    assert_eq!(bytes(u32::from(v4)), [1, 2, 0, 192]);

    // A peer.
    let peer: SocketAddr = "[fe80::1%3]:8080".parse().unwrap();
    assert_eq!(bytes((peer.ip(), peer.port())).len(), 18);
    assert_eq!(bytes(peer).len(), 26);

    // A domain name.
    let name = "EXAMPLE.org.";
    assert_eq!(bytes(name.trim_end_matches('.').to_ascii_lowercase()), b"example.org");

    // A tenant's row.
    assert_eq!(bytes((7u32, 17u64)), [7, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0]);

    // Two texts.
    assert_eq!(bytes(("ab", "c")), bytes(("a", "bc")));
    let two = |a: &str, b: &str| bytes((a.len(), a, b));
    assert_ne!(two("ab", "c"), two("a", "bc"));

    // A set of ids.
    let mut ids = [3u16, 1, 2];
    ids.sort_unstable();
    assert_eq!(bytes(&ids[..]), [1, 0, 2, 0, 3, 0]);

    // A floating-point number.
    assert_eq!(bytes(1.0f64.to_bits()), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    assert_ne!(bytes(0.0f64.to_bits()), bytes((-0.0f64).to_bits()));

    // A time.
    let time = UNIX_EPOCH + Duration::from_millis(2500);
    assert_eq!(bytes(time.duration_since(UNIX_EPOCH).unwrap().as_secs()), bytes(2u64));
    assert_eq!(bytes(time), bytes((2i64, 500_000_000u32)));

    // A path.
    assert_eq!(bytes(Path::new("a//b").as_os_str()), b"a//b");

    // Any other `T: Hash`.
    let values = [std::cmp::Ordering::Less];
    assert_eq!(bytes(ByHash(values[0])), bytes(ByHash::from_slice(&values)[0]));
}
