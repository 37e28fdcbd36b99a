//! The promises of a `GuavaBloom` and of a `SparkBloom` (`contract/java.rs`).

use lanebloom_formats::{GuavaBloom, RedisBloom, RedisCuckoo, SparkBloom};

#[path = "contract"]
pub(crate) mod guava {
    use crate::guava::{hash_of, hashes, header_len, indexes};
    use lanebloom_formats::guava::{Builder, Guava as System, GuavaBloom as Bloom, Hash, Strategy as Version};

    type Int = u64;
    const NAME: &str = "GuavaBloom";
    const VERSIONS: [Version; 2] = [Version::Mitz32, Version::Mitz64];
    const UNITES_WITH_ITSELF: bool = false;
    /// Numbers of hash functions, such that there are 64 keys to a window of a batch and down to 2.
    const FUNCTIONS: &[u32] = &[1, 2, 3, 7, 15, 16, 17, 23, 33, 80, 252];
    /// Bytes of a stream that say how long its header is.
    const HEADER_START: usize = 6;

    fn builder(strategy: Version, keys: usize) -> Builder {
        Bloom::builder().expected_keys(keys).strategy(strategy)
    }

    fn header_of(strategy: Version, functions: u32, longs: usize) -> Vec<u8> {
        let strategy = u8::from(strategy == Version::Mitz64);
        [&[strategy, functions as u8][..], &(longs as u32).to_be_bytes()].concat()
    }

    #[path = "java.rs"]
    pub(crate) mod java;
}

#[path = "contract"]
pub(crate) mod spark {
    use crate::spark::{hash_of, hashes, header_len, indexes};
    use lanebloom_formats::spark::{Builder, Hash, Spark as System, SparkBloom as Bloom, Version as Format};

    type Int = i64;
    type Version = (Format, i32);
    const NAME: &str = "SparkBloom";
    const VERSIONS: [Version; 3] = [(Format::V1, 0), (Format::V2, 0), (Format::V2, -7)];
    const UNITES_WITH_ITSELF: bool = true;
    const FUNCTIONS: &[u32] = &[1, 2, 3, 7, 15, 16, 17, 23, 33, 80, 252, 513, 2773];
    const HEADER_START: usize = 4;

    fn builder((version, seed): Version, keys: usize) -> Builder {
        Bloom::builder().expected_keys(keys).version(version).seed(seed)
    }

    pub(crate) fn header_of((version, seed): Version, functions: u32, longs: usize) -> Vec<u8> {
        let ints = match version {
            Format::V1 => vec![1, functions, longs as u32],
            Format::V2 => vec![2, functions, seed as u32, longs as u32],
        };
        ints.into_iter().flat_map(u32::to_be_bytes).collect()
    }

    #[expect(clippy::duplicate_mod, reason = "the same tests for another type")]
    #[path = "java.rs"]
    pub(crate) mod java;
}

#[test]
fn they_can_be_shared_and_sent() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<GuavaBloom>();
    shared::<RedisBloom>();
    shared::<RedisCuckoo>();
    shared::<SparkBloom>();
}
