//! The layouts of other programs: what makes a [`RedisBitmap`], and its options.

use super::{Kept, RedisBitmap, milliseconds};
use crate::layout::{BitmapLayout, config_of};
use lanebloom::BuildError;
use std::time::Duration;

/// The layouts.
impl RedisBitmap {
    /// Guava's filter on Redis, with growth: the class `RedisBitmaps` that many Java programs
    /// copied from one another.
    ///
    /// Bitmaps are named after `base`, as `bloomfilter-0`, `bloomfilter-1`. The key `cursor` has
    /// the number of the last one. (In that class the two are `bloomfilter` and `cursor`.) Guava's
    /// formulas up to 2024 give the size and the number of hash functions. If more than half of the
    /// last bitmap's bits are set after an insert, the next bitmap begins. A lookup searches all
    /// bitmaps. An insert skips a key that one of them has.
    ///
    /// One script per round trip inserts the keys, checks whether to grow, and grows. So clients of
    /// this type never grow twice. (Clients of the Java class do, and may skip a number.)
    ///
    /// # Errors
    ///
    /// Fails where [`GuavaBloom::with_capacity`](lanebloom_formats::GuavaBloom::with_capacity)
    /// does, and beyond Redis's limit of 2^32 bits.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let seen = RedisBitmap::guava("bloomfilter", "cursor", 100, 0.01)?;
    /// assert_eq!((seen.bit_size(), seen.hash_functions()), (960, 7));
    /// seen.insert_batch(
    ///     &mut connection,
    ///     &(0..200).map(|i| i.to_string()).collect::<Vec<_>>(),
    /// )?;
    /// assert!(
    ///     seen.contains(&mut connection, "0")?
    ///         && seen.contains(&mut connection, "199")?
    /// );
    /// let cursor: u32 = redis::cmd("GET").arg("cursor").query(&mut connection)?;
    /// assert!(cursor >= 1);
    ///
    /// let error = RedisBitmap::guava("bloomfilter", "cursor", 1_000_000_000, 0.01)
    ///     .unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "a bitmap of 9585058432 bits is beyond Redis's limit of 4294967296 bits \
    ///      (512 MiB)"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "RedisBitmaps")]
    pub fn guava(
        base: impl Into<Vec<u8>>,
        cursor: impl Into<Vec<u8>>,
        expected_keys: usize,
        rate: f64,
    ) -> Result<Self, BuildError> {
        let cursor = cursor.into();
        let layout = BitmapLayout::guava(expected_keys as u64, rate)?;
        Ok(Self::new(layout, base, Kept::Growing { cursor }))
    }

    /// Guava's hashing on one bitmap through Jedis or Codis: the class `RedisBloomFilter` that many
    /// Java programs copied from one another.
    ///
    /// The bitmap's key is `bf:` and `key`. Guava's formula gives the number of bits, which is not
    /// rounded and fits an `int` of Java: at most 2,147,483,647. If the formula gives more, the
    /// filter's rate is higher than `rate`. Commands go in pipelines. The Java class lets the key
    /// expire some time after the last insert; [`expire_on_insert`](Self::expire_on_insert) does
    /// the same.
    ///
    /// # Errors
    ///
    /// Fails where [`GuavaBloom::with_capacity`](lanebloom_formats::GuavaBloom::with_capacity)
    /// does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// use std::time::Duration;
    /// let read = RedisBitmap::jedis("read:ann", 3000, 0.03)?
    ///     .expire_on_insert(Duration::from_secs(60));
    /// assert_eq!((read.bit_size(), read.hash_functions()), (21_895, 5));
    /// read.insert(&mut connection, "article 17")?;
    /// assert!(
    ///     read.contains(&mut connection, "article 17")?
    ///         && !read.contains(&mut connection, "article 18")?
    /// );
    /// let seconds: i64 =
    ///     redis::cmd("TTL").arg("bf:read:ann").query(&mut connection)?;
    /// assert!((1..=60).contains(&seconds));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn jedis(key: impl AsRef<[u8]>, expected_keys: usize, rate: f64) -> Result<Self, BuildError> {
        let key = [b"bf:", key.as_ref()].concat();
        let layout = BitmapLayout::jedis(expected_keys as u64, rate)?;
        Ok(Self::new(layout, key, Kept::Piped))
    }

    /// go-zero's `bloom.Filter`: a bitmap of `bits` bits. A key sets 14 of them, by a script.
    /// go-zero recommends 20 bits for each key.
    ///
    /// # Errors
    ///
    /// Fails if `bits` is outside 1..=2^32, Redis's limit.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBitmap::go_zero("filter", 20_480)?;
    /// filter.insert(&mut connection, "world")?;
    /// let bit: u8 =
    ///     redis::cmd("GETBIT").arg("filter").arg(9159).query(&mut connection)?;
    /// assert_eq!((bit, filter.hash_functions()), (1, 14));
    ///
    /// assert_eq!(
    ///     RedisBitmap::go_zero("filter", 0).unwrap_err().to_string(),
    ///     "a bitmap of 0 bits, 14 of each key, is none: both must be at least 1"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn go_zero(key: impl Into<Vec<u8>>, bits: u64) -> Result<Self, BuildError> {
        Ok(Self::new(BitmapLayout::go_zero(bits)?, key, Kept::Scripted))
    }

    /// The filter of the Python package `scrapy-redis-bloomfilter`: a bitmap of `2^bit` bits
    /// (`BLOOMFILTER_BIT`, by default 30). A key sets `hash_number` of them
    /// (`BLOOMFILTER_HASH_NUMBER`, by default 6). `key` is `<spider>:bloomfilter`, unless
    /// `SCHEDULER_DUPEFILTER_KEY` was set.
    ///
    /// Keys are texts: for Scrapy, the 40 hexadecimal digits of a request's fingerprint. A key
    /// whose bytes are not UTF-8 cannot be inserted, and no lookup finds it. (The package never
    /// finds the empty string. Here it is a key like any other.)
    ///
    /// **The hash is bad.** The hash functions are weighted sums of the characters. The first one
    /// is the plain sum, which takes only some hundred values for fingerprints. Soon all of these
    /// bits are set, and the function says nothing any more. With 40,000 random fingerprints in
    /// 2^20 bits the rate is 2.1e-4, where six good functions have 7.3e-5; with 110,000 it is 1.13%
    /// and not 1.04%. Short keys do far worse, since all their sums are small: after 110,000 words
    /// of 5 random letters, 94% of the other words are false positives
    /// (`crates/redis/tests/servers/redis_bitmaps.rs` measures it). An attacker can also write keys
    /// whose sums are all the same. Use this layout to read existing filters, and another layout
    /// for new ones.
    ///
    /// # Errors
    ///
    /// Fails if `hash_number` is 0, or `bit` exceeds 32: Redis has at most 2^32 bits.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBitmap::scrapy("spider:bloomfilter", 30, 6)?;
    /// filter.insert(&mut connection, "hello")?;
    /// let bit: u8 = redis::cmd("GETBIT")
    ///     .arg("spider:bloomfilter")
    ///     .arg(532)
    ///     .query(&mut connection)?;
    /// assert_eq!(bit, 1);
    /// // A sum does not know the order of what it sums; the other functions do.
    /// assert!(
    ///     RedisBitmap::scrapy("spider:bloomfilter", 30, 1)?
    ///         .contains(&mut connection, "olleh")?
    /// );
    /// assert!(!filter.contains(&mut connection, "olleh")?);
    ///
    /// assert!(filter.insert(&mut connection, &[0xff_u8]).is_err());
    /// assert!(RedisBitmap::scrapy("spider:bloomfilter", 33, 6).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scrapy(key: impl Into<Vec<u8>>, bit: u32, hash_number: u8) -> Result<Self, BuildError> {
        Ok(Self::new(BitmapLayout::scrapy(bit, hash_number)?, key, Kept::Piped))
    }

    /// [`go_zero`](Self::go_zero) with the bits for `expected_keys` at this rate: 14 × keys / −ln(1
    /// − rate^(1/14)), rounded up. 1% takes 11.0 bits per key, and 1e-4 takes 19.2.
    ///
    /// # Errors
    ///
    /// Fails if the rate is not between 0 and 1, or the bits exceed 2^32.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let filter = RedisBitmap::go_zero_sized("filter", 1000, 0.01)?;
    /// assert_eq!(filter.bit_size(), 11_008);
    /// assert!(RedisBitmap::go_zero_sized("filter", 1000, 1.0).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn go_zero_sized(key: impl Into<Vec<u8>>, expected_keys: usize, rate: f64) -> Result<Self, BuildError> {
        let layout = BitmapLayout::go_zero_sized(expected_keys as u64, rate)?;
        Ok(Self::new(layout, key, Kept::Scripted))
    }

    /// Redisson's `RBloomFilter`: a bitmap under `name`, and its configuration, a hash under
    /// `{name}:config` (under `name:config` if the name has a `{`).
    ///
    /// Size and number of hash functions are those of Redisson's `tryInit(expectedInsertions,
    /// falseProbability)`. A call fails if the configuration on the server has others
    /// ([`is_other_configuration`](crate::BitmapError::is_other_configuration)). The first insert
    /// writes the configuration if there is none, as [`try_init`](Self::try_init) does. (Redisson
    /// fails then.) A bitmap whose configuration is gone is an error
    /// ([`is_unconfigured`](crate::BitmapError::is_unconfigured)). If the configuration expires and
    /// the bitmap does not, an insert makes the bitmap expire with it.
    /// [`open_redisson`](Self::open_redisson) takes the numbers from the server.
    ///
    /// The hash is HighwayHash-128 of the bytes that Redisson's codec makes of an object:
    ///
    /// | Redisson's codec | keys here |
    /// |---|---|
    /// | `StringCodec` | `str`: UTF-8 |
    /// | `LongCodec`, `IntegerCodec` | the decimal text: `17.to_string()`, not `&17` |
    /// | `ByteArrayCodec` | `[u8]` |
    /// | others (`Kryo5Codec`, the default; `JsonJacksonCodec`) | the bytes of the codec's encoder, as `[u8]` |
    ///
    /// # Errors
    ///
    /// Fails if `expected_keys` is 0, the rate is not between 0 and 1, the size is 0 or beyond
    /// Redisson's limit of 4,294,967,294 bits, or a key would have more than 255 hash functions.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// // bloom.tryInit(55_000_000L, 0.03); bloom.add("ann")
    /// let users = RedisBitmap::redisson("users", 55_000_000, 0.03)?;
    /// assert_eq!((users.bit_size(), users.hash_functions()), (401_414_246, 5));
    /// assert!(users.insert(&mut connection, "ann")?);
    /// assert!(users.contains(&mut connection, "ann")?);
    ///
    /// let size: u64 = redis::cmd("HGET")
    ///     .arg("{users}:config")
    ///     .arg("size")
    ///     .query(&mut connection)?;
    /// assert_eq!(size, 401_414_246);
    /// let other = RedisBitmap::redisson("users", 1000, 0.03)?;
    /// let error = other.contains(&mut connection, "ann").unwrap_err();
    /// assert!(error.is_other_configuration());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "RBloomFilter")]
    pub fn redisson(name: impl Into<Vec<u8>>, expected_keys: usize, rate: f64) -> Result<Self, BuildError> {
        let key = name.into();
        let kept = Kept::Configured {
            config: config_of(&key),
            expected: expected_keys.to_string(),
            rate: rate.to_string(),
        };
        let layout = BitmapLayout::redisson(expected_keys as u64, rate)?;
        Ok(Self::new(layout, key, kept))
    }

    fn new(layout: BitmapLayout, key: impl Into<Vec<u8>>, kept: Kept) -> Self {
        Self {
            layout,
            key: key.into(),
            kept,
            expire: None,
        }
    }

    /// Each insert makes the whole filter expire after this time, rounded up to milliseconds.
    ///
    /// By default inserts do not change when it expires. An expired filter is empty.
    pub fn expire_on_insert(mut self, after: Duration) -> Self {
        self.expire = Some(milliseconds(after));
        self
    }

    /// The number of bits of the bitmap. Each bitmap of a growing filter has as many.
    #[must_use]
    pub fn bit_size(&self) -> u64 {
        self.layout.bits
    }

    /// The number of hash functions. A key has as many bits, of which two may be the same.
    #[must_use]
    pub fn hash_functions(&self) -> u8 {
        self.layout.functions
    }
}
