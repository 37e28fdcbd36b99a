//! Inserts at the end of a scope.

use std::borrow::Borrow;
use std::fmt;

/// Inserts a key when it is dropped; made by `insert_on_drop` of a
/// [guard](crate::CacheGuard::insert_on_drop), whose example shows it, or of a cache.
#[must_use = "the key is inserted at once if this is not kept until the store has committed"]
pub struct InsertOnDrop<'a, K: ?Sized, Q: Borrow<K>> {
    target: &'a (dyn InsertKey<K> + Send + Sync),
    /// `None` after `abandon`.
    key: Option<Q>,
}

/// Inserts a key: a guard, or a cache behind one.
pub(crate) trait InsertKey<K: ?Sized> {
    fn insert_key(&self, key: &K);
}

impl<'a, K: ?Sized, Q: Borrow<K>> InsertOnDrop<'a, K, Q> {
    pub(crate) fn new(target: &'a (dyn InsertKey<K> + Send + Sync), key: Q) -> Self {
        Self { target, key: Some(key) }
    }

    /// Ends without an insert, for a key that the store certainly lacks. If strangers can make
    /// commits fail, this keeps their keys out of the filter. The example of the guard's
    /// [`insert_on_drop`](crate::CacheGuard::insert_on_drop) calls it.
    pub fn abandon(mut self) {
        self.key = None;
    }
}

impl<K: ?Sized, Q: Borrow<K>> Drop for InsertOnDrop<'_, K, Q> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.target.insert_key(key.borrow());
        }
    }
}

impl<K: ?Sized, Q: Borrow<K> + fmt::Debug> fmt::Debug for InsertOnDrop<'_, K, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InsertOnDrop").field(&self.key).finish()
    }
}
