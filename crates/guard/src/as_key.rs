//! The types that calls of guards and caches take for a key.

use std::borrow::Borrow;

/// A form of a key of type `K`. Every type that borrows as `K` implements it: `str`, `String`,
/// `&str`, `Box<str>`, `Arc<str>` and `Cow<str>` for `str`; `u64` and `&u64` for `u64`.
///
/// It says what [`Borrow`] says. It exists for the compiler's message: a type that is not a key
/// gets one that names both types.
///
/// ```
/// use lanebloom_guard::{AsKey, CacheGuard};
///
/// fn is_valid(guard: &CacheGuard<str>, key: &impl AsKey<str>) -> bool {
///     guard.check(key).is_some()
/// }
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// guard.insert("ann");
/// assert!(is_valid(&guard, &String::from("ann")) && !is_valid(&guard, &"eve"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the keys here have type `{K}`, and `{Self}` is not one of its forms",
    label = "not a key of type `{K}`",
    note = "name the borrowed form of the keys, `str` for strings: a `GuardedCache<str, _>` or `CacheGuard<str>` \
            takes `&str`, `&String` and more, one of `String` takes only `&String`",
    note = "in the same way write `[u8]` in place of `Vec<u8>`"
)]
pub trait AsKey<K: ?Sized>: Borrow<K> {}

// So the message has no notes on `Borrow`, which advise against what is meant.
#[diagnostic::do_not_recommend]
impl<K: ?Sized, Q: Borrow<K> + ?Sized> AsKey<K> for Q {}
