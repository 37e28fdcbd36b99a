//! Lookups of composite keys by their borrowed parts.

use equivalent::Equivalent;
use lanebloom::{Funnel, Sink};
use std::borrow::Borrow;

/// The borrowed parts of a key that is a pair or a triple: `Parts((&7, "ann"))` for the key
/// `(7u32, String::from("ann"))`. With it, a lookup needs no `String`.
///
/// [`CacheGuard::check_equivalent`](crate::CacheGuard::check_equivalent) and the caches' calls
/// `get_equivalent` take it. For your own key type, write a similar form: an [`Equivalent`] that
/// hashes like the key and writes the same bytes.
///
/// ```
/// use lanebloom_guard::sync::GuardedCache;
/// use lanebloom_guard::{Equivalent, lanebloom};
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct Session {
///     tenant: u32,
///     user: String,
/// }
///
/// /// The same fields in the same order, so the derived `Hash` is the same.
/// #[derive(Hash)]
/// struct SessionOf<'a> {
///     tenant: u32,
///     user: &'a str,
/// }
///
/// impl Equivalent<Session> for SessionOf<'_> {
///     fn equivalent(&self, key: &Session) -> bool {
///         self.tenant == key.tenant && self.user == key.user
///     }
/// }
///
/// /// A load needs the key itself.
/// impl From<&SessionOf<'_>> for Session {
///     fn from(of: &SessionOf<'_>) -> Self {
///         Session { tenant: of.tenant, user: of.user.into() }
///     }
/// }
/// # impl lanebloom::Funnel for Session {
/// #     fn funnel<S: lanebloom::Sink + ?Sized>(&self, into: &mut S) {
/// #         SessionOf { tenant: self.tenant, user: &self.user }.funnel(into);
/// #     }
/// # }
///
/// impl lanebloom::Funnel for SessionOf<'_> {
///     fn funnel<S: lanebloom::Sink + ?Sized>(&self, into: &mut S) {
///         self.tenant.funnel(into);
///         self.user.funnel(into);
///     }
/// }
///
/// # let read = |session: Session| Ok::<_, std::convert::Infallible>(Some(session.user.len()));
/// let cache = GuardedCache::<Session, usize>::builder().build_blocking(read)?;
/// cache.insert(&Session { tenant: 7, user: "ann".into() });
/// cache.mark_ready();
/// let get = |tenant| cache.get_equivalent(&SessionOf { tenant, user: "ann" });
/// assert_eq!((get(7)?, get(8)?), (Some(3), None));
/// # Ok::<(), lanebloom_guard::BoxError>(())
/// ```
#[derive(Clone, Copy, Debug, Hash)]
pub struct Parts<T>(pub T);

impl<T: Funnel> Funnel for Parts<T> {
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        self.0.funnel(into);
    }
}

impl<A, B, QA, QB> Equivalent<(A, B)> for Parts<(&QA, &QB)>
where
    A: Borrow<QA>,
    B: Borrow<QB>,
    QA: Eq + ?Sized,
    QB: Eq + ?Sized,
{
    fn equivalent(&self, key: &(A, B)) -> bool {
        self.0 == (key.0.borrow(), key.1.borrow())
    }
}

impl<A, B, C, QA, QB, QC> Equivalent<(A, B, C)> for Parts<(&QA, &QB, &QC)>
where
    A: Borrow<QA>,
    B: Borrow<QB>,
    C: Borrow<QC>,
    QA: Eq + ?Sized,
    QB: Eq + ?Sized,
    QC: Eq + ?Sized,
{
    fn equivalent(&self, key: &(A, B, C)) -> bool {
        self.0 == (key.0.borrow(), key.1.borrow(), key.2.borrow())
    }
}

impl<QA, QB> From<&Parts<(&QA, &QB)>> for (QA::Owned, QB::Owned)
where
    QA: ToOwned + ?Sized,
    QB: ToOwned + ?Sized,
{
    fn from(parts: &Parts<(&QA, &QB)>) -> Self {
        (parts.0.0.to_owned(), parts.0.1.to_owned())
    }
}

impl<QA, QB, QC> From<&Parts<(&QA, &QB, &QC)>> for (QA::Owned, QB::Owned, QC::Owned)
where
    QA: ToOwned + ?Sized,
    QB: ToOwned + ?Sized,
    QC: ToOwned + ?Sized,
{
    fn from(parts: &Parts<(&QA, &QB, &QC)>) -> Self {
        (parts.0.0.to_owned(), parts.0.1.to_owned(), parts.0.2.to_owned())
    }
}
