//! A key to its bytes: [`Funnel`] writes a key's canonical bytes into a [`Sink`]; the hashers of `hash.rs` are
//! the sinks. Both words are Guava's.
//!
//! The bytes of the common types are those of Guava's own funnels, so that programs in other languages can
//! compute the same hash:
//!
//! | Rust | bytes | Guava |
//! |---|---|---|
//! | `i32`, `u32` | 4, little-endian | `integerFunnel()` |
//! | `i64`, `u64`, `isize`, `usize` | 8, little-endian | `longFunnel()` |
//! | other integers | their width, little-endian | |
//! | `bool` | 1: 0 or 1 | |
//! | `char` | 4, little-endian code point | |
//! | `str`, `String` | UTF-8, no length prefix | `stringFunnel(UTF_8)` |
//! | `[u8]`, `Vec<u8>`, `[u8; N]` | as they are, no length prefix | `byteArrayFunnel()` |
//! | `Option<T>` | 1: 0 for `None`, 1 for `Some`, then the value | |
//! | tuples, `[T]`, `Vec<T>`, `[T; N]` | the parts, one after another | |
//! | references, `Box`, `Rc`, `Arc`, `Cow` | those of the value | |
//! | [`UnencodedChars`] of a string, `[u16]` | UTF-16 units, each little-endian | `unencodedCharsFunnel()` |
//! | [`Utf16`] of a string | a byte order mark, then UTF-16 units, each big-endian | `stringFunnel(UTF_16)` |
//!
//! More of them, and those of a compound funnel's parts, are in [`guava`](crate::guava#which-type-is-which-funnel).
//!
//! # Concatenation has no separators
//!
//! Parts are simply written one after another, so `("ab", "c")` and `("a", "bc")` are the same key, and so are
//! `["ab"]` and `["a", "b"]`. Where two parts of varying length meet, write a length (or a byte that cannot occur)
//! between them, in a type of your own or in the tuple:
//!
//! ```
//! use lanebloom::Murmur3;
//!
//! let hash = |tenant: &str, name: &str| Murmur3::default().hash128(&(tenant, name));
//! assert_eq!(hash("ab", "c"), hash("a", "bc"));
//!
//! let hash = |tenant: &str, name: &str| Murmur3::default().hash128(&(tenant.len(), tenant, name));
//! assert_ne!(hash("ab", "c"), hash("a", "bc"));
//! ```

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// Takes the bytes of a key, in order.
///
/// How the bytes are divided among the calls has no meaning: a sink must see only their concatenation.
/// `Vec<u8>` is a sink, which shows what a key's bytes are.
///
/// # Examples
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
/// Equal keys must write equal bytes. Integers of different widths do not: `1u32` and `1u64` are two
/// keys, and so are `1` (an `i32`) and `1u64`. A filter takes keys of any type, so it cannot notice the
/// difference; a `CacheGuard` has a key type, and takes no other.
/// The table of all provided types is in the documentation of the [module](crate::funnel).
///
/// # Borrowed forms
///
/// A type that implements `Borrow<B>`, where `B` is a `Funnel` too, must write the same bytes as the
/// `B` that it borrows as, as it must hash equally for a `HashMap`. All provided types do (`String` and
/// `str`, `Vec<u8>`, `[u8; 2]` and `[u8]`, `Arc<T>` and `T`), so either can be asked for. A
/// `CacheGuard` relies on it in its batches.
///
/// # Examples
///
/// ```
/// use lanebloom::{ConcurrentBloom, Funnel, Sink};
///
/// struct Session {
///     tenant: u32,
///     name: String,
/// }
///
/// impl Funnel for Session {
///     fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
///         self.tenant.funnel(into);
///         self.name.funnel(into);
///     }
/// }
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// filter.insert(&Session { tenant: 7, name: "ann".into() });
/// assert!(filter.contains(&Session { tenant: 7, name: "ann".into() }));
/// assert!(filter.contains(&(7u32, "ann")));
/// assert!(!filter.contains(&Session { tenant: 8, name: "ann".into() }));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Funnel {
    /// Writes this key's bytes into `into`.
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S);

    /// Writes the bytes of every element of `slice`, in order.
    ///
    /// There to be overridden where that can be done at once, as `u8` does; the bytes must be the same.
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

    /// The number of bytes that every key of this type writes, where it is the same for all.
    ///
    /// With it, batches of keys of up to 16 bytes are hashed in vectors. It is a hint: a key that writes another number is
    /// hashed right all the same, but slower.
    ///
    /// ```
    /// use lanebloom::{Funnel, KeyHasher, Murmur3, Sink};
    ///
    /// struct UserId(u64);
    ///
    /// impl Funnel for UserId {
    ///     const WIDTH: Option<usize> = u64::WIDTH;
    ///
    ///     fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
    ///         self.0.funnel(into);
    ///     }
    /// }
    ///
    /// assert_eq!(UserId::WIDTH, Some(8));
    /// let mut hashes = [0; 2];
    /// Murmur3::default().hash_batch(&[UserId(1), UserId(2)], &mut hashes);
    /// assert_eq!(hashes, [1u64, 2].map(|id| Murmur3::default().hash_key(&id)));
    /// ```
    const WIDTH: Option<usize> = None;

    /// The bytes that [`funnel`](Self::funnel) writes, where they lie in memory as they are.
    ///
    /// With it, batches of keys of any length are hashed in vectors. They must be the same bytes.
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

// Always inlined, as are those below that hand on at once: into the function that makes the sink, so that the sink's `put` knows what
// was put before. Left to itself, the compiler calls them, and a u64's hash takes 80 instructions instead of 30.
macro_rules! integers {
    ($($t:ty as $wide:ty),*) => {$(
        impl Funnel for $t {
            const WIDTH: Option<usize> = Some(size_of::<$wide>());

            #[inline(always)]
            fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
                into.put(&(*self as $wide).to_le_bytes());
            }
        }
    )*};
}
integers!(i8 as i8, i16 as i16, i32 as i32, i64 as i64, i128 as i128, isize as i64);
integers!(u16 as u16, u32 as u32, u64 as u64, u128 as u128, usize as u64);

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

impl Funnel for bool {
    const WIDTH: Option<usize> = Some(1);

    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        into.put(&[u8::from(*self)]);
    }
}

impl Funnel for char {
    const WIDTH: Option<usize> = Some(4);

    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        u32::from(*self).funnel(into);
    }
}

impl Funnel for str {
    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        into.put(self.as_bytes());
    }

    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        Some(self.as_bytes())
    }
}

impl Funnel for String {
    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.as_str().funnel(into);
    }

    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        Some(self.as_bytes())
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

impl<T: Funnel> Funnel for Vec<T> {
    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        T::funnel_slice(self, into);
    }

    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        T::slice_bytes(self)
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

impl<T: Funnel + ToOwned + ?Sized> Funnel for Cow<'_, T> {
    const WIDTH: Option<usize> = T::WIDTH;

    #[inline(always)]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        (**self).funnel(into);
    }

    #[inline]
    fn bytes(&self) -> Option<&[u8]> {
        (**self).bytes()
    }
}

macro_rules! pointers {
    ($($t:ty),*) => {$(
        impl<T: Funnel + ?Sized> Funnel for $t {
            const WIDTH: Option<usize> = T::WIDTH;

            #[inline(always)]
            fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
                (**self).funnel(into);
            }

            #[inline]
            fn bytes(&self) -> Option<&[u8]> {
                (**self).bytes()
            }
        }
    )*};
}
pointers!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

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

/// Makes a key of a string by its UTF-16 units, each little-endian: Guava's `unencodedCharsFunnel()`.
///
/// A character beyond the basic plane is two units, a surrogate pair, as in Java. A string of Java that holds one half of a
/// pair alone is no string of Rust: give its units, `[u16]`, which write the same bytes.
///
/// # Examples
///
/// ```
/// use lanebloom::{Funnel, Murmur3, UnencodedChars};
///
/// let mut bytes = Vec::new();
/// UnencodedChars("aé😀").funnel(&mut bytes);
/// assert_eq!(bytes, [0x61, 0, 0xe9, 0, 0x3d, 0xd8, 0, 0xde]);
///
/// let units: Vec<u16> = "aé😀".encode_utf16().collect();
/// let hash = Murmur3::default().hash128(&UnencodedChars(String::from("aé😀")));
/// assert_eq!(hash, Murmur3::default().hash128(&units));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnencodedChars<T: ?Sized>(pub T);

impl<T: AsRef<str> + ?Sized> Funnel for UnencodedChars<T> {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        put_units(self.0.as_ref(), u16::to_le_bytes, into);
    }
}

/// Makes a key of a string by the bytes of Java's charset `UTF_16`: Guava's `stringFunnel(UTF_16)`.
///
/// They are a byte order mark, `FE FF`, and then the UTF-16 units, each big-endian. An empty string has no bytes, and no mark.
///
/// # Examples
///
/// ```
/// use lanebloom::{Funnel, Utf16};
///
/// let mut bytes = Vec::new();
/// Utf16("aé😀").funnel(&mut bytes);
/// assert_eq!(bytes, [0xfe, 0xff, 0, 0x61, 0, 0xe9, 0xd8, 0x3d, 0xde, 0]);
///
/// let mut bytes = Vec::new();
/// Utf16("").funnel(&mut bytes);
/// assert!(bytes.is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Utf16<T: ?Sized>(pub T);

impl<T: AsRef<str> + ?Sized> Funnel for Utf16<T> {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        let text = self.0.as_ref();
        if !text.is_empty() {
            into.put(&0xfeff_u16.to_be_bytes());
        }
        put_units(text, u16::to_be_bytes, into);
    }
}

/// The string's UTF-16 units as bytes, many at a time: to put each alone takes several times as long.
fn put_units<S: Sink + ?Sized>(text: &str, to_bytes: fn(u16) -> [u8; 2], into: &mut S) {
    let mut bytes = [0; 64];
    let mut len = 0;
    for unit in text.encode_utf16() {
        if len == bytes.len() {
            into.put(&bytes);
            len = 0;
        }
        bytes[len..len + 2].copy_from_slice(&to_bytes(unit));
        len += 2;
    }
    into.put(&bytes[..len]);
}

/// Makes a key of any `T: Hash`, by the bytes that its `Hash` implementation feeds to a hasher.
///
/// For types of other crates. What those bytes are is the type's own affair: they may differ between versions
/// of the crate that defines it, and slices of integers feed them in the machine's byte order. A filter that
/// outlives the process or leaves the machine is better served by a [`Funnel`] of your own.
///
/// # Examples
///
/// ```
/// use lanebloom::{ByHash, ConcurrentBloom};
/// use std::net::{IpAddr, Ipv4Addr};
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// filter.insert(&ByHash(IpAddr::V4(Ipv4Addr::LOCALHOST)));
/// assert!(filter.contains(&ByHash(IpAddr::V4(Ipv4Addr::LOCALHOST))));
/// assert!(!filter.contains(&ByHash(IpAddr::V4(Ipv4Addr::BROADCAST))));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByHash<T: ?Sized>(pub T);

impl<T: Hash + ?Sized> Funnel for ByHash<T> {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.0.hash(&mut SinkHasher(into));
    }
}

/// A `Hasher` that hands every write on to a sink. Integers are widened and ordered as [`Funnel`] does it, where
/// the defaults of `Hasher` would take the machine's order and width.
struct SinkHasher<'a, S: ?Sized>(&'a mut S);

macro_rules! write_integers {
    ($($write:ident($t:ty)),*) => {$(
        #[inline]
        fn $write(&mut self, i: $t) {
            i.funnel(self.0);
        }
    )*};
}

impl<S: Sink + ?Sized> Hasher for SinkHasher<'_, S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.put(bytes);
    }

    write_integers!(
        write_u8(u8),
        write_u16(u16),
        write_u32(u32),
        write_u64(u64),
        write_u128(u128),
        write_usize(usize)
    );
    write_integers!(
        write_i8(i8),
        write_i16(i16),
        write_i32(i32),
        write_i64(i64),
        write_i128(i128),
        write_isize(isize)
    );

    /// The bytes have gone to the sink; nothing was computed that could be answered here.
    fn finish(&self) -> u64 {
        0
    }
}
