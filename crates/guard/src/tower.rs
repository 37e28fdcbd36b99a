//! `GuardLayer`: requests in, refusals or the inner service's responses out. It checks keys with
//! the guard alone; the handler behind it gets values from the cache.

use crate::Key;
use http::{HeaderName, Request, Response, StatusCode};
use lanebloom::{CacheGuard, GuardFilter};
use percent_encoding::percent_decode_str;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// A tower layer that answers requests for made-up keys itself, before the handler runs.
///
/// `C` is the check: a closure that answers `Some(response)` for a request that is refused. The
/// constructors make it of three things:
///
/// - A **guard**: a [`GuardedCache`](crate::GuardedCache) of either mode, or an
///   `Arc<CacheGuard<K, F>>`.
/// - A **key** of a request: [`path`], [`header`], or a closure that returns an `Option`. A request
///   without a key passes: the handler answers it.
/// - A **response**: 404 without a body, or [the caller's](Self::with_response).
///
/// The layer reads the filter only. The handler gets the row from the cache as it would without the
/// layer, and must be ready to find none: some made-up keys pass, and so do removed ones.
///
/// Put the layer only on requests that read. It would refuse the `PUT` that creates a key.
///
/// # Counts
///
/// A refused request counts as `turned_away` in [`stats`](crate::GuardedCache::stats). One that
/// passes does not count: the handler's get does. (The counts of a bare [`CacheGuard`] have it
/// twice as `admitted`, if the handler checks again.)
///
/// # Backpressure
///
/// The layer is ready when the inner service is, and calls that very service, not a clone of it:
/// the check awaits nothing, so the request need not outlive the call. A refused request uses up
/// none of the inner service's readiness, so a permit that the inner service took in `poll_ready`
/// is there for the next request.
///
/// # Examples
///
/// ```
/// use axum::extract::{Path, State};
/// use axum::http::StatusCode;
/// use axum::{Router, routing::get};
/// use lanebloom_guard::GuardedCache;
/// use lanebloom_guard::tower::{GuardLayer, path};
/// # use axum::body::Body;
/// # use axum::http::Request;
/// # use std::convert::Infallible;
/// # use tower::ServiceExt;
///
/// type Users = GuardedCache<u64, String>;
///
/// async fn user(
///     State(users): State<Users>,
///     Path(id): Path<u64>,
/// ) -> Result<String, StatusCode> {
///     let user = users.get(&id).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
///     user.ok_or(StatusCode::NOT_FOUND)
/// }
///
/// async fn add_user(State(users): State<Users>, Path(id): Path<u64>) {
///     // ... once the store has the row:
///     users.added(&id);
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
/// # let read_user = async |id: u64| Ok::<_, Infallible>(Some(format!("user {id}")));
/// let users = Users::builder().build(read_user)?;
/// users.mark_ready(); // the store is empty
/// let guard = GuardLayer::new(users.clone(), path("/users/{id}", "id"));
/// let app = Router::new()
///     // `layer` wraps what stands before it, and `put` stands after.
///     .route("/users/{id}", get(user).layer(guard).put(add_user))
///     .with_state(users.clone());
/// # let app = |method: &str, uri: &str| {
/// #     let request = Request::builder().method(method).uri(uri).body(Body::empty());
/// #     let response = app.clone().oneshot(request.unwrap());
/// #     async { response.await.unwrap().status() }
/// # };
///
/// assert_eq!(app("GET", "/users/17").await, 404); // the handler did not run
/// assert_eq!(users.stats().turned_away, 1);
/// assert_eq!(app("PUT", "/users/17").await, 200);
/// assert_eq!(app("GET", "/users/17").await, 200);
/// # Ok(()) }
/// ```
pub struct GuardLayer<C>(Arc<C>);

impl GuardLayer<()> {
    /// A layer that answers 404 without a body, of any type that has a default.
    pub fn new<K, F, B, R>(
        guard: impl AsRef<CacheGuard<K, F>>,
        key: impl Fn(&Request<B>) -> Option<K::Owned>,
    ) -> GuardLayer<impl Fn(&Request<B>) -> Option<Response<R>>>
    where
        K: Key + ?Sized,
        F: GuardFilter,
        R: Default,
    {
        Self::with_response(guard, key, |_: &Request<B>| {
            let mut response = Response::new(R::default());
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        })
    }

    /// A layer that answers by `respond`, which makes a response of the inner service's type.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    /// use lanebloom_guard::tower::{GuardLayer, header};
    /// use http::{HeaderName, Request, Response, StatusCode};
    /// use std::convert::Infallible;
    /// use std::sync::Arc;
    /// use tower::{ServiceBuilder, ServiceExt, service_fn};
    ///
    /// let guard = Arc::new(CacheGuard::<str>::with_capacity(1000, 0.01)?);
    /// guard.insert("token of ann");
    ///
    /// let token = header(HeaderName::from_static("x-token"));
    /// let respond = |_: &Request<()>| {
    ///     let response = Response::builder().status(StatusCode::UNAUTHORIZED);
    ///     response.body("no such token").unwrap()
    /// };
    /// let handler = async |_| Ok::<_, Infallible>(Response::new("welcome"));
    /// let service = ServiceBuilder::new()
    ///     .layer(GuardLayer::with_response(guard, token, respond))
    ///     .service(service_fn(handler));
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn run<S>(service: S) -> Result<(), Box<dyn std::error::Error>>
    /// # where S: tower::Service<Request<()>, Response = Response<&'static str>, Error = Infallible> + Clone {
    /// let ask = |token: &str| Request::builder().header("x-token", token).body(());
    /// let response = service.clone().oneshot(ask("token of ann")?).await?;
    /// assert_eq!(*response.body(), "welcome");
    /// let response = service.oneshot(ask("made up")?).await?;
    /// assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    /// assert_eq!(*response.body(), "no such token");
    /// # Ok(()) }
    /// # run(service)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_response<K, F, B, R>(
        guard: impl AsRef<CacheGuard<K, F>>,
        key: impl Fn(&Request<B>) -> Option<K::Owned>,
        respond: impl Fn(&Request<B>) -> R,
    ) -> GuardLayer<impl Fn(&Request<B>) -> Option<R>>
    where
        K: Key + ?Sized,
        F: GuardFilter,
    {
        GuardLayer(Arc::new(move |request: &Request<B>| {
            let key = key(request)?;
            let admission = guard.as_ref().check::<K::Owned>(&key);
            admission.is_none().then(|| respond(request))
        }))
    }
}

impl<C> Clone for GuardLayer<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for GuardLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer").finish_non_exhaustive()
    }
}

impl<S, C> Layer<S> for GuardLayer<C> {
    type Service = GuardService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        GuardService {
            inner,
            check: Arc::clone(&self.0),
        }
    }
}

/// A service behind a [`GuardLayer`].
pub struct GuardService<S, C> {
    inner: S,
    check: Arc<C>,
}

impl<S: Clone, C> Clone for GuardService<S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            check: Arc::clone(&self.check),
        }
    }
}

impl<S: fmt::Debug, C> fmt::Debug for GuardService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("GuardService");
        fields.field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, C, B> Service<Request<B>> for GuardService<S, C>
where
    S: Service<Request<B>>,
    C: Fn(&Request<B>) -> Option<S::Response>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let refusal = (self.check)(&request);
        ResponseFuture {
            passed: refusal.is_none().then(|| self.inner.call(request)),
            refusal,
        }
    }
}

pin_project! {
    /// The future of a [`GuardService`].
    #[derive(Debug)]
    pub struct ResponseFuture<F, R> {
        #[pin]
        passed: Option<F>,
        refusal: Option<R>,
    }
}

impl<F, R, E> Future for ResponseFuture<F, R>
where
    F: Future<Output = Result<R, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        match this.passed.as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Ready(Ok(this.refusal.take().expect("not polled after it was ready"))),
        }
    }
}

/// The key is a parameter of the path: of `/users/17`, by `path("/users/{id}", "id")`, it is 17.
///
/// `route` is in axum's syntax, and is matched by the crate that axum uses. It is the path that the
/// layer sees: within a nested router axum has taken the prefix off. The parameter is decoded as
/// axum does, and parsed. A request has no key, and passes, if its path is another or does not
/// parse.
///
/// # Panics
///
/// If `route` is no route, or has no such parameter.
///
/// # Examples
///
/// ```
/// use http::Request;
/// use lanebloom_guard::tower::path;
///
/// let key = path::<String, ()>("/users/{name}/posts", "name");
/// let key = |uri| key(&Request::builder().uri(uri).body(()).unwrap());
/// assert_eq!(key("/users/ann/posts?page=2").unwrap(), "ann");
/// assert_eq!(key("/users/jos%C3%A9/posts").unwrap(), "josé");
/// assert_eq!(key("/users/ann"), None);
/// ```
pub fn path<T: FromStr, B>(route: &str, parameter: &str) -> impl Fn(&Request<B>) -> Option<T> + use<T, B> {
    let mut routes = matchit::Router::new();
    if let Err(error) = routes.insert(route, ()) {
        panic!("{route:?} is not a route: {error}");
    }
    let is_there = ["{", "{*"].map(|open| route.contains(&format!("{open}{parameter}}}")));
    assert!(is_there.contains(&true), "{route:?} has no parameter {parameter:?}");
    let parameter = parameter.to_owned();
    move |request| {
        let matched = routes.at(request.uri().path()).ok()?;
        let encoded = matched.params.get(&parameter)?;
        percent_decode_str(encoded).decode_utf8().ok()?.parse().ok()
    }
}

/// The key is a header, the first one of that name. A request without it has no key, and passes; as
/// does one whose header is not ASCII or does not parse.
///
/// ```
/// use http::{Request, header::HOST};
/// use lanebloom_guard::tower::header;
///
/// let key = header::<String, ()>(HOST);
/// let request = Request::builder().header("Host", "ann.example.com").body(());
/// assert_eq!(key(&request?).unwrap(), "ann.example.com");
/// assert_eq!(key(&Request::new(())), None);
/// # Ok::<(), http::Error>(())
/// ```
pub fn header<T: FromStr, B>(name: HeaderName) -> impl Fn(&Request<B>) -> Option<T> {
    move |request| request.headers().get(&name)?.to_str().ok()?.parse().ok()
}
