//! Turns a key into its bytes: [`Funnel`] writes a key's canonical bytes into a [`Sink`]. The
//! hashers of the module [`hash`](crate::hash) are the sinks. Both words are Guava's.
//!
//! The bytes of the common types are those of Guava's own funnels, so that programs in other
//! languages can compute the [same hash](crate::docs::languages):
//!
//! | Rust | bytes | Guava |
//! |---|---|---|
//! | `i32`, `u32` | 4, little-endian | `integerFunnel()` |
//! | `i64`, `u64`, `isize`, `usize` | 8, little-endian | `longFunnel()` |
//! | other integers | their width, little-endian | |
//! | `NonZero<T>` | the integer's | |
//! | `bool` | 1: 0 or 1 | |
//! | `char` | 4, little-endian code point | |
//! | `str`, `String` | UTF-8, no length prefix | `stringFunnel(UTF_8)` |
//! | `[u8]`, `Vec<u8>`, `[u8; N]` | as they are, no length prefix | `byteArrayFunnel()` |
//! | `Option<T>` | 1: 0 for `None`, 1 for `Some`, then the value | |
//! | tuples, `[T]`, `Vec<T>`, `[T; N]` | the parts, one after another | |
//! | `()` | none | |
//! | references, `Box`, `Rc`, `Arc`, `Cow` | the value's | |
//! | `Ipv4Addr`, `Ipv6Addr`, `IpAddr` | 4 or 16, the octets in network order | `byteArrayFunnel()` of `getAddress()` |
//! | `SocketAddrV4`, `SocketAddrV6`, `SocketAddr` | 6: octets, port; or 26: octets, port, flow information, scope | |
//! | `Duration` | 12: seconds as `u64`, nanoseconds as `u32` | |
//! | `SystemTime` (feature `std`) | 12: seconds since 1970 as `i64`, rounded down, nanoseconds as `u32` | |
//! | `OsStr`, `OsString` (feature `std`) | UTF-8; the system's bytes if they are not Unicode | `stringFunnel(UTF_8)` |
//! | `uuid::Uuid` (feature `uuid`) | 16, in the order of its text | |
//! | `bytes::Bytes`, `bytes::BytesMut` (feature `bytes`) | as they are | `byteArrayFunnel()` |
//!
//! The module `guava` of the crate `lanebloom-formats` has keys of strings in UTF-16, and lists the
//! parts of a compound funnel.
//!
//! # Keys are untyped
//!
//! A filter sees bytes, never types. `insert(&17)` inserts an `i32`, 4 bytes. `contains(&17u64)`
//! asks for 8 bytes and misses it. Both compile. Use one type for the keys of a filter, and name it
//! in one place. In tests, wrap the filter's hasher in [`OneKeyType`](crate::hash::OneKeyType),
//! which panics when a key has another type. (A `CacheGuard` takes one type only.)
//!
//! # Recipes
//!
//! | key | write | not the same key |
//! |---|---|---|
//! | a row's id | `17u64` | `17u32`, `"17"` |
//! | a UUID | `uuid` (feature `uuid`), `uuid.into_bytes()` | `uuid.as_u128()`, the bytes backwards; `uuid.to_string()` |
//! | a digest | `[u8; 32]`, `&digest[..]` | its text in hexadecimal digits |
//! | an address | `ip.to_canonical()` | `ip`, where IPv4 may come as `::ffff:192.0.2.1`; `u32::from(ipv4)`, the bytes backwards |
//! | a peer | `(peer.ip(), peer.port())` | `peer`: for IPv6 it has flow information and a scope, too |
//! | a domain name | `name.trim_end_matches('.').to_ascii_lowercase()` | `name`, where `example.org.` and `EXAMPLE.org` are meant alike |
//! | a tenant's row | `(tenant, id)`, of fixed widths | |
//! | two texts | `(a.len(), a, b)` | `(a, b)`: see below |
//! | a struct | [`Funnel`] for it, three lines | |
//! | an enum | `(tag as u8, value)`, the tags fixed for ever | |
//! | a set of ids | the ids sorted, as a slice | the ids in any other order |
//! | a floating-point number | `x.to_bits()` | 0.0 and -0.0 are two keys |
//! | a time | `time.duration_since(UNIX_EPOCH)?.as_secs()` | `time`, where clocks have other fractions of a second |
//! | a path | `path.as_os_str()` | equal paths like `a/b` and `a//b` are two keys |
//! | any other `T: Hash` | [`ByHash(key)`](ByHash), [`ByHash::from_slice(keys)`](ByHash::from_slice) | |
//!
//! (`Path` itself is not a key. Equal keys must have equal bytes. Two equal paths may be written
//! differently, and the rules for this differ between systems.)
//!
//! # Concatenation has no separators
//!
//! A compound key writes its parts one after another, so `("ab", "c")` and `("a", "bc")` are the
//! same key, and so are `["ab"]` and `["a", "b"]`. If a key has two parts of varying length, write
//! a length before the first (`(a.len(), a, b)`), or between them a byte that cannot occur.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use core::num::NonZero;
use core::time::Duration;
#[cfg(feature = "std")]
use std::{
    ffi::{OsStr, OsString},
    time::SystemTime,
};

/// Takes the bytes of a key, in order.
///
/// Only the concatenation of the bytes counts, however they are divided among the calls. `Vec<u8>`
/// is a sink that shows a key's bytes.
///
/// ```
/// use lanebloom::{Funnel, Sink};
///
/// let mut bytes = Vec::new();
/// (7u16, "id").funnel(&mut bytes);
/// bytes.put(b"!");
/// assert_eq!(bytes, [7, 0, b'i', b'd', b'!']);
/// ```
pub trait Sink {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A type that can be a key: it knows its canonical bytes.
///
/// Equal keys must write equal bytes; their types [do not count](crate::funnel#keys-are-untyped).
/// The [module](crate::funnel) has a table of all provided types.
///
/// # Borrowed forms
///
/// If a type implements `Borrow<B>` and `B` is a `Funnel`, both must write the same bytes, as they
/// must hash equally for a `HashMap`. All provided types do (`String` and `str`, `Vec<u8>`, `[u8;
/// 2]` and `[u8]`, `Arc<T>` and `T`), so a lookup may use either. A `CacheGuard` relies on it in
/// its batches.
///
/// # Examples
///
/// ```
/// use lanebloom::{ConcurrentBloom, Funnel, Sink};
///
/// enum Login {
///     Session { tenant: u32, name: String },
///     Phone(u64),
/// }
///
/// impl Funnel for Login {
///     fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
///         match self {
///             Self::Session { tenant, name } => (0u8, tenant, name).funnel(into),
///             Self::Phone(phone) => (1u8, phone).funnel(into),
///         }
///     }
/// }
///
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// filter.insert(&Login::Session { tenant: 7, name: "ann".into() });
/// assert!(filter.contains(&(0u8, 7u32, "ann")));
/// assert!(!filter.contains(&Login::Phone(7)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
///
/// A type without it does not compile. The compiler's note names both remedies, these lines and
/// [`ByHash`]:
///
/// ```compile_fail,E0277
/// # use lanebloom::ConcurrentBloom;
/// struct Session;
///
/// # let filter = ConcurrentBloom::builder().expected_keys(1000).build().unwrap();
/// filter.insert(&Session);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a filter key: it does not implement `Funnel`",
    label = "`Funnel` is not implemented for `{Self}`",
    note = "implement it for your own type by writing its fields one after another:\n\
            impl lanebloom::Funnel for {Self} {{\n    \
            fn funnel<S: lanebloom::Sink + ?Sized>(&self, into: &mut S) {{ self.field.funnel(into); }}\n\
            }}",
    note = "a package that depends only on `lanebloom-guard` needs `use lanebloom_guard::lanebloom;`",
    note = "wrap any `T: Hash` as `lanebloom::ByHash(key)`, and a slice of them as `ByHash::from_slice(keys)`",
    note = "keys of common types: https://docs.rs/lanebloom/latest/lanebloom/funnel/#recipes"
)]
pub trait Funnel {
    /// Writes this key's bytes into `into`.
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S);

    /// Writes the bytes of every element of `slice`, in order.
    ///
    /// Override it if the type can do that at once, as `u8` does. The bytes must be the same.
    ///
    /// ```
    /// use lanebloom::Funnel;
    ///
    /// let mut bytes = Vec::new();
    /// u16::funnel_slice(&[1, 2], &mut bytes);
    /// assert_eq!(bytes, [1, 0, 2, 0]);
    /// ```
    #[inline]
    fn funnel_slice<S: Sink + ?Sized>(slice: &[Self], into: &mut S)
    where
        Self: Sized,
    {
        for element in slice {
            element.funnel(into);
        }
    }

    /// The number of bytes that each key of this type writes, if it is the same for all.
    ///
    /// With it, vector kernels hash batches of keys of up to 16 bytes. It is a hint: a key that
    /// writes another number of bytes still gets the right hash, more slowly. A type that wraps a
    /// `u64` has `u64::WIDTH`.
    ///
    /// ```
    /// use lanebloom::Funnel;
    ///
    /// assert_eq!((<(u64, u8)>::WIDTH, String::WIDTH), (Some(9), None));
    /// ```
    const WIDTH: Option<usize> = None;

    /// The bytes that [`funnel`](Self::funnel) writes, if they lie in memory as they are.
    ///
    /// With it, vector kernels hash batches of keys of any length. They must be the same bytes.
    ///
    /// ```
    /// use lanebloom::Funnel;
    ///
    /// assert_eq!("id".as_bytes(), Funnel::bytes("id").unwrap());
    /// assert_eq!(vec![1u8, 2].bytes(), Some(&[1, 2][..]));
    /// assert_eq!((1u8, 2u8).bytes(), None);
    /// ```
    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// [`bytes`](Self::bytes) of a slice, as [`funnel_slice`](Self::funnel_slice) writes it.
    ///
    /// ```
    /// use lanebloom::Funnel;
    ///
    /// assert_eq!(u8::slice_bytes(&[1, 2]), Some(&[1, 2][..]));
    /// assert_eq!(u16::slice_bytes(&[1, 2]), None);
    /// ```
    #[inline]
    fn slice_bytes(slice: &[Self]) -> Option<&[u8]>
    where
        Self: Sized,
    {
        let _ = slice;
        None
    }
}

/// The sum of two widths.
const fn both(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => a.checked_add(b),
        _ => None,
    }
}

/// Keys that write the bytes of another value, and have its [`bytes`](Funnel::bytes) if the row
/// ends with `bytes`: these keys hold the value.
// These functions, and those below that only hand on, are always inlined into the function that
// makes the sink, so that the sink's `put` knows the bytes before. Otherwise the compiler calls
// them, and a u64's hash takes 80 instructions instead of 30.
macro_rules! written_as {
    ($($(#[$meta:meta])* $t:ty as $value:ty $(where [$($generics:tt)*])?, |$key:ident| $make:expr $(, $bytes:ident)?;)*) => {$(
        $(#[$meta])*
        impl$(<$($generics)*>)? Funnel for $t {
            const WIDTH: Option<usize> = <$value>::WIDTH;

            #[inline(always)]
            fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
                let $key = self;
                let value: &$value = &$make;
                value.funnel(into);
            }
            $(
                #[inline]
                fn $bytes(&self) -> Option<&[u8]> {
                    let $key = self;
                    let value: &$value = $make;
                    value.bytes()
                }
            )?
        }
    )*};
}
written_as! {
    i8 as [u8; 1], |key| key.to_le_bytes();
    i16 as [u8; 2], |key| key.to_le_bytes();
    i32 as [u8; 4], |key| key.to_le_bytes();
    i64 as [u8; 8], |key| key.to_le_bytes();
    i128 as [u8; 16], |key| key.to_le_bytes();
    u16 as [u8; 2], |key| key.to_le_bytes();
    u32 as [u8; 4], |key| key.to_le_bytes();
    u64 as [u8; 8], |key| key.to_le_bytes();
    u128 as [u8; 16], |key| key.to_le_bytes();
    isize as i64, |key| *key as i64;
    usize as u64, |key| *key as u64;
    bool as u8, |key| u8::from(*key);
    char as u32, |key| u32::from(*key);
    () as [u8; 0], |_key| [];
    NonZero<i8> as i8, |key| key.get();
    NonZero<i16> as i16, |key| key.get();
    NonZero<i32> as i32, |key| key.get();
    NonZero<i64> as i64, |key| key.get();
    NonZero<i128> as i128, |key| key.get();
    NonZero<isize> as isize, |key| key.get();
    NonZero<u8> as u8, |key| key.get();
    NonZero<u16> as u16, |key| key.get();
    NonZero<u32> as u32, |key| key.get();
    NonZero<u64> as u64, |key| key.get();
    NonZero<u128> as u128, |key| key.get();
    NonZero<usize> as usize, |key| key.get();
    Ipv4Addr as [u8; 4], |key| key.octets();
    Ipv6Addr as [u8; 16], |key| key.octets();
    SocketAddrV4 as (Ipv4Addr, u16), |key| (*key.ip(), key.port());
    /// Writes all that `==` compares.
    SocketAddrV6 as (Ipv6Addr, u16, u32, u32), |key| (*key.ip(), key.port(), key.flowinfo(), key.scope_id());
    Duration as (u64, u32), |key| (key.as_secs(), key.subsec_nanos());
    /// From 1970 on these are the bytes of the `Duration` since then. Before 1970 the seconds are
    /// rounded down.
    #[cfg(feature = "std")]
    SystemTime as (u64, u32), |key| since_1970(*key);
}

/// Seconds since 1970, negative before, and nanoseconds.
#[cfg(feature = "std")]
fn since_1970(time: SystemTime) -> (u64, u32) {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (since.as_secs(), since.subsec_nanos()),
        Err(before) => match (before.duration().as_secs(), before.duration().subsec_nanos()) {
            (secs, 0) => (secs.wrapping_neg(), 0),
            // !secs is -secs - 1.
            (secs, nanos) => (!secs, 1_000_000_000 - nanos),
        },
    }
}

impl Funnel for u8 {
    const WIDTH: Option<usize> = Some(1);

    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        into.put(&[*self]);
    }

    #[inline(always)]
    fn funnel_slice<S: Sink + ?Sized>(slice: &[u8], into: &mut S) {
        into.put(slice);
    }

    #[inline]
    fn slice_bytes(slice: &[u8]) -> Option<&[u8]> {
        Some(slice)
    }
}

/// Writes no mark of the version: the length shows it, and an `IpAddr` is the same key as the
/// address in it.
impl Funnel for IpAddr {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        match self {
            Self::V4(ip) => ip.funnel(into),
            Self::V6(ip) => ip.funnel(into),
        }
    }
}

impl Funnel for SocketAddr {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        match self {
            Self::V4(address) => address.funnel(into),
            Self::V6(address) => address.funnel(into),
        }
    }
}

impl<T: Funnel> Funnel for Option<T> {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.is_some().funnel(into);
        if let Some(value) = self {
            value.funnel(into);
        }
    }
}

impl<T: Funnel> Funnel for [T] {
    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        T::funnel_slice(self, into);
    }

    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        T::slice_bytes(self)
    }
}

impl<T: Funnel, const N: usize> Funnel for [T; N] {
    const WIDTH: Option<usize> = match T::WIDTH {
        Some(width) => width.checked_mul(N),
        None => None,
    };

    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        T::funnel_slice(self, into);
    }

    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        T::slice_bytes(self)
    }
}

written_as! {
    str as [u8], |key| key.as_bytes(), bytes;
    String as [u8], |key| key.as_bytes(), bytes;
    // Text has its UTF-8 on every system. A name that is not text has its bytes on Unix, and
    // elsewhere Rust's own encoding, which may change with the version of Rust.
    #[cfg(feature = "std")]
    OsStr as [u8], |key| key.as_encoded_bytes(), bytes;
    #[cfg(feature = "std")]
    OsString as [u8], |key| key.as_encoded_bytes(), bytes;
    #[cfg(feature = "uuid")]
    uuid::Uuid as [u8; 16], |key| key.as_bytes(), bytes;
    #[cfg(feature = "bytes")]
    bytes::Bytes as [u8], |key| key, bytes;
    #[cfg(feature = "bytes")]
    bytes::BytesMut as [u8], |key| key, bytes;
    Vec<T> as [T] where [T: Funnel], |key| key, bytes;
    &T as T where [T: Funnel + ?Sized], |key| key, bytes;
    &mut T as T where [T: Funnel + ?Sized], |key| key, bytes;
    Box<T> as T where [T: Funnel + ?Sized], |key| key, bytes;
    Rc<T> as T where [T: Funnel + ?Sized], |key| key, bytes;
    Arc<T> as T where [T: Funnel + ?Sized], |key| key, bytes;
    Cow<'_, T> as T where [T: Funnel + ToOwned + ?Sized], |key| key, bytes;
}

macro_rules! tuples {
    ($(($($name:ident)+))*) => {$(
        impl<$($name: Funnel),+> Funnel for ($($name,)+) {
            const WIDTH: Option<usize> = {
                let width = Some(0);
                $(let width = both(width, $name::WIDTH);)+
                width
            };

            #[inline(always)]
            fn funnel<Into: Sink + ?Sized>(&self, into: &mut Into) {
                #[expect(non_snake_case, reason = "the parts are named after their types")]
                let ($($name,)+) = self;
                $($name.funnel(into);)+
            }
        }
    )*};
}
tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));

/// Makes a key of any `T: Hash`, by the bytes that its `Hash` implementation feeds to a hasher.
///
/// For types of other crates. Their bytes may differ between versions of the crate, and slices of
/// integers feed them in the machine's byte order. If a filter outlives the process or leaves the
/// machine, write a [`Funnel`] of your own.
///
/// ```
/// use lanebloom::{ByHash, ConcurrentBloom};
/// use std::path::Path;
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// filter.insert(&ByHash(Path::new("/srv/a")));
/// assert!(filter.contains(&ByHash(Path::new("/srv//a")))); // they are equal
/// assert!(!filter.contains(&ByHash(Path::new("/srv/b"))));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ByHash<T: ?Sized>(pub T);

impl<T> ByHash<T> {
    /// The values of a slice as keys, without a copy: for batches of a type that is `Hash`.
    ///
    /// ```
    /// use lanebloom::{ByHash, ConcurrentBloom};
    /// use std::path::PathBuf;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let paths = ["/srv/a", "/srv/b", "/srv/a"].map(PathBuf::from);
    /// assert_eq!(filter.insert_batch(ByHash::from_slice(&paths)), 2);
    /// assert!(filter.contains(&ByHash(&paths[1])));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_slice(values: &[T]) -> &[Self] {
        let values: *const [T] = values;
        // SAFETY: `repr(transparent)`: a `ByHash<T>` has the layout of its `T` and no invariant of
        // its own, so a slice of `T` is a slice of `ByHash<T>`, with the same length and lifetime.
        // (Without this line the caller copies every key, or wraps a reference to each.)
        unsafe { &*(values as *const [Self]) }
    }
}

impl<T: Hash + ?Sized> Funnel for ByHash<T> {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.0.hash(&mut SinkHasher(into));
    }
}

/// A `Hasher` that hands every write on to a sink. It orders and widens integers as [`Funnel`]
/// does; the defaults of `Hasher` would use the machine's byte order and width.
struct SinkHasher<'a, S: ?Sized>(&'a mut S);

impl<S: Sink + ?Sized> Hasher for SinkHasher<'_, S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.put(bytes);
    }

    // (`Hasher` writes an `i16` by `write_u16`, and so on. An `isize` of 32 bits has a sign.)
    #[inline]
    fn write_u16(&mut self, i: u16) {
        i.funnel(self.0);
    }

    #[inline]
    fn write_u32(&mut self, i: u32) {
        i.funnel(self.0);
    }

    #[inline]
    fn write_u64(&mut self, i: u64) {
        i.funnel(self.0);
    }

    #[inline]
    fn write_u128(&mut self, i: u128) {
        i.funnel(self.0);
    }

    #[inline]
    fn write_usize(&mut self, i: usize) {
        i.funnel(self.0);
    }

    #[inline]
    fn write_isize(&mut self, i: isize) {
        i.funnel(self.0);
    }

    /// 0, since the sink has the bytes and nothing was computed here.
    fn finish(&self) -> u64 {
        0
    }
}
