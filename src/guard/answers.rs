//! The answers of inserts of any filter, as a guard combines those of two filters.

use crate::error::InsertError;

/// The answer of an insert: a value, or an error if there was no room.
pub trait Outcome: Sized {
    /// Whether a key was not inserted.
    fn is_refused(&self) -> bool;

    /// Whether a key found no room. (Otherwise it is there as often as it can be.)
    fn is_full(&self) -> bool;

    /// The answer of an insert into two engines: the first error, otherwise the greater value.
    fn and(self, other: Self) -> Self;
}

/// The answer of many inserts: the sum of the values, or the error of the first key that was not
/// inserted.
pub trait Total: Outcome {
    /// The answer for no keys.
    const NONE: Self;

    /// Adds the answer for the keys from position `before` on.
    fn add(&mut self, before: usize, next: Self);

    /// The position of the first key that was not inserted, and the last that was tried.
    fn refused_at(&self) -> Option<usize>;
}

macro_rules! values {
    ($($value:ty)*) => {$(
        impl Outcome for $value {
            fn is_refused(&self) -> bool {
                false
            }

            fn is_full(&self) -> bool {
                false
            }

            fn and(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}
values! { () bool usize }

impl Total for () {
    const NONE: Self = ();

    fn add(&mut self, _: usize, (): ()) {}

    fn refused_at(&self) -> Option<usize> {
        None
    }
}

impl Total for usize {
    const NONE: Self = 0;

    fn add(&mut self, _: usize, next: Self) {
        *self += next;
    }

    fn refused_at(&self) -> Option<usize> {
        None
    }
}

impl<T: Outcome> Outcome for Result<T, InsertError> {
    fn is_refused(&self) -> bool {
        self.is_err()
    }

    fn is_full(&self) -> bool {
        self.as_ref().is_err_and(InsertError::is_full)
    }

    fn and(self, other: Self) -> Self {
        Ok(self?.and(other?))
    }
}

impl<T: Total> Total for Result<T, InsertError> {
    const NONE: Self = Ok(T::NONE);

    fn add(&mut self, before: usize, next: Self) {
        if let Ok(sum) = self {
            match next {
                Ok(next) => sum.add(before, next),
                Err(error) => *self = Err(error.after(before)),
            }
        }
    }

    fn refused_at(&self) -> Option<usize> {
        self.as_ref().err().map(InsertError::inserted)
    }
}
