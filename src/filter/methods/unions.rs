//! Comparison, for the types whose content does not depend on the order of the inserts.

use crate::filter::Filter;
use crate::filter::traits::Union;
use crate::hash::FilterHasher;

/// Same layout, same hasher and same content. Beside inserts, reads each word at some moment.
impl<E: Union, S: FilterHasher> PartialEq for Filter<E, S> {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}
