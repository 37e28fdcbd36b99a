//! `GuardLayer`: requests go in, refusals or the inner service's responses come out. It checks keys
//! with the guard alone; the handler behind it gets values from the cache.

use crate::filter::GuardFilter;
use crate::guard::CacheGuard;
use http::{HeaderName, Method, Request, Response, StatusCode};
use lanebloom::Funnel;
use metrics::SharedString;
use percent_encoding::percent_decode_str;
use pin_project_lite::pin_project;
use std::borrow::Borrow;
use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// A tower layer that refuses requests for made-up keys before the handler runs.
///
/// `C` is the check: a closure that returns `Some(response)` for a request that it refuses. The
/// constructors make it from three parts:
///
/// - A **guard**: a `GuardedCache` of either kind, or an `Arc<CacheGuard<K, F>>`.
/// - A **key** of a request: [`path`], [`header`], [`matched_path`], or a closure that returns an
///   `Option`. A request without a key passes on to the handler.
/// - A **response**: 404 without a body, or [the caller's](Self::with_response).
///
/// The layer reads only the filter. The handler gets the row from the cache as it would without the
/// layer, and must expect to find none: some made-up keys pass, and so do removed ones.
///
/// It checks the requests that read: `GET` and `HEAD`. All others pass, so that a `PUT` can create
/// a key. [`methods`](Self::methods) sets other methods.
///
/// # Counts
///
/// A layer with a mistyped route finds no key in any request, and refuses none.
/// [`without_key`](Self::without_key) counts the requests without a key, and so does the metric
/// `lanebloom_guard_requests_without_key_total`. Each is a debug event of
/// [`tracing`](https://docs.rs/tracing). The 100th is a warning, if no request had a key before.
///
/// A refused request counts as [`turned_away`](crate::GuardStats::turned_away). The handler's get
/// counts a request that passes. (A [`CacheGuard`] without a cache counts it twice as `admitted`,
/// if the handler checks again.)
///
/// # Backpressure
///
/// The layer is ready when the inner service is, and calls that same service, not a clone of it. A
/// refused request does not use up the inner service's readiness: a permit that the inner service
/// took in `poll_ready` stays for the next request.
///
/// # Examples
///
/// ```
/// use axum::extract::{Path, State};
/// use axum::http::StatusCode;
/// use axum::{Router, routing::get};
/// use lanebloom_guard::future::GuardedCache;
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
///     users.insert(&id);
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
/// # let read_user = async |id: u64| Ok::<_, Infallible>(Some(format!("user {id}")));
/// let users = Users::builder().build(read_user)?;
/// users.mark_ready(); // the store is empty
/// let guard = GuardLayer::new(users.clone(), path("/users/{id}", "id"));
/// let app = Router::new()
///     .route("/users/{id}", get(user).put(add_user))
///     .layer(guard)
///     .with_state(users.clone());
/// # let app = |method: &str, uri: &str| {
/// #     let request = Request::builder().method(method).uri(uri).body(Body::empty());
/// #     let response = app.clone().oneshot(request.unwrap());
/// #     async { response.await.unwrap().status() }
/// # };
///
/// assert_eq!(app("GET", "/users/17").await, 404); // the handler did not run
/// assert_eq!(users.guard().stats().turned_away, 1);
/// assert_eq!(app("PUT", "/users/17").await, 200);
/// assert_eq!(app("GET", "/users/17").await, 200);
/// # Ok(()) }
/// ```
pub struct GuardLayer<C> {
    check: Arc<C>,
    methods: Arc<[Method]>,
    keys: Arc<KeyCounts>,
}

/// The keys that a layer finds in requests.
#[derive(Default)]
struct KeyCounts {
    /// The layer's name, if it has one.
    layer: OnceLock<SharedString>,
    /// Whether a request had a key.
    found: AtomicBool,
    /// Requests without a key.
    missing: AtomicU64,
}

/// After this number of requests, all without a key, the layer's route is probably wrong.
const SUSPICIOUS: u64 = 100;

impl KeyCounts {
    /// `Relaxed`: these counts order nothing.
    fn note<B>(&self, request: &Request<B>, is_there: bool) {
        if is_there {
            // A read is cheaper than a write to a line that all threads read.
            if !self.found.load(Ordering::Relaxed) {
                self.found.store(true, Ordering::Relaxed);
            }
            return;
        }
        let missing = self.missing.fetch_add(1, Ordering::Relaxed) + 1;
        let name = "lanebloom_guard_requests_without_key_total";
        if missing == 1 {
            metrics::describe_counter!(name, metrics::Unit::Count, "Requests in which a layer found no key");
        }
        let layer = self.layer.get().cloned().unwrap_or(SharedString::const_str("default"));
        metrics::counter!(name, "layer" => layer.clone()).increment(1);
        let (method, path) = (request.method(), request.uri().path());
        tracing::debug!(%layer, %method, path, "a request without a key");
        if missing == SUSPICIOUS && !self.found.load(Ordering::Relaxed) {
            tracing::warn!(%layer, %method, path, "none of {SUSPICIOUS} requests has a key; check the layer's route");
        }
    }
}

impl GuardLayer<()> {
    /// Makes a layer that responds with 404 and an empty body, of any type that has a default.
    pub fn new<K, F, B, R>(
        guard: impl AsRef<CacheGuard<K, F>>,
        key: impl Fn(&Request<B>) -> Option<K::Owned>,
    ) -> GuardLayer<impl Fn(&Request<B>) -> Option<Response<R>>>
    where
        K: Funnel + ToOwned + ?Sized,
        F: GuardFilter,
        R: Default,
    {
        Self::with_response(guard, key, |_: &Request<B>| {
            let mut response = Response::new(R::default());
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        })
    }

    /// Makes a layer whose refusals are responses of `respond`, of the inner service's type.
    ///
    /// ```
    /// use lanebloom_guard::CacheGuard;
    /// use lanebloom_guard::tower::{GuardLayer, header};
    /// use http::{HeaderName, Request, Response};
    /// use std::convert::Infallible;
    /// use std::sync::Arc;
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
    /// let guard = Arc::new(CacheGuard::<str>::with_capacity(1000, 0.01)?);
    /// guard.insert("token of ann");
    ///
    /// let token = header(HeaderName::from_static("x-token"));
    /// let respond = |_: &Request<()>| {
    ///     let response = Response::builder().status(401);
    ///     response.body("no such token").unwrap()
    /// };
    /// let handler = async |_| Ok::<_, Infallible>(Response::new("welcome"));
    /// let layer = GuardLayer::with_response(guard, token, respond);
    /// let service = layer.layer(service_fn(handler));
    ///
    /// let ask = |token: &str| Request::builder().header("x-token", token).body(());
    /// let response = service.clone().oneshot(ask("token of ann")?).await?;
    /// assert_eq!(*response.body(), "welcome");
    /// let response = service.oneshot(ask("made up")?).await?;
    /// assert_eq!(response.status(), 401);
    /// assert_eq!(*response.body(), "no such token");
    /// # Ok(()) }
    /// ```
    pub fn with_response<K, F, B, R>(
        guard: impl AsRef<CacheGuard<K, F>>,
        key: impl Fn(&Request<B>) -> Option<K::Owned>,
        respond: impl Fn(&Request<B>) -> R,
    ) -> GuardLayer<impl Fn(&Request<B>) -> Option<R>>
    where
        K: Funnel + ToOwned + ?Sized,
        F: GuardFilter,
    {
        let keys = Arc::<KeyCounts>::default();
        let of_check = Arc::clone(&keys);
        let check = move |request: &Request<B>| {
            let key = key(request);
            of_check.note(request, key.is_some());
            let admission = guard.as_ref().check(Borrow::<K>::borrow(&key?));
            admission.is_none().then(|| respond(request))
        };
        GuardLayer {
            check: Arc::new(check),
            methods: Arc::new([Method::GET, Method::HEAD]),
            keys,
        }
    }
}

impl<C> GuardLayer<C> {
    /// Sets the methods of the requests to check, in place of `GET` and `HEAD`. All others pass.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().collect();
        self
    }

    /// Names the layer and its clones, for the label `layer` of its metric: `default` otherwise.
    /// The first name stays.
    ///
    /// ```
    /// use metrics_util::debugging::DebuggingRecorder;
    /// # use lanebloom_guard::tower::{GuardLayer, path};
    /// # use http::{Method, Request, Response};
    /// # use tower::{Layer, Service, service_fn};
    /// # use std::convert::Infallible;
    /// # let guard = std::sync::Arc::new(lanebloom_guard::CacheGuard::<u64>::with_capacity(10, 0.01)?);
    /// # let handler = async |_: Request<()>| Ok::<_, Infallible>(Response::new(()));
    /// let layer = GuardLayer::new(guard, path("/user/{id}", "id"))
    ///     .methods([Method::GET, Method::DELETE])
    ///     .name("users");
    /// let mut service = layer.layer(service_fn(handler));
    /// let recorder = DebuggingRecorder::new();
    /// metrics::with_local_recorder(&recorder, || {
    ///     drop(service.call(Request::delete("/users/17").body(()).unwrap()));
    ///     drop(service.call(Request::put("/users/17").body(()).unwrap()));
    /// });
    /// let metrics = recorder.snapshotter().snapshot().into_vec();
    /// let label = metrics[0].0.key().labels().next().unwrap();
    /// assert_eq!((label.key(), label.value()), ("layer", "users"));
    /// assert_eq!(layer.without_key(), 1); // of DELETE: it is `users`, not `user`
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        let _ = self.keys.layer.set(SharedString::from(name.into()));
        self
    }

    /// The number of requests so far in which this layer and its clones found no key. Only requests
    /// of the checked methods count. The example of [`name`](Self::name) calls it.
    #[must_use]
    pub fn without_key(&self) -> u64 {
        self.keys.missing.load(Ordering::Relaxed)
    }
}

impl<C> Clone for GuardLayer<C> {
    fn clone(&self) -> Self {
        Self {
            check: Arc::clone(&self.check),
            methods: Arc::clone(&self.methods),
            keys: Arc::clone(&self.keys),
        }
    }
}

impl<C> fmt::Debug for GuardLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("GuardLayer");
        fields.field("methods", &self.methods).finish_non_exhaustive()
    }
}

impl<S, C> Layer<S> for GuardLayer<C> {
    type Service = GuardService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        GuardService {
            inner,
            layer: self.clone(),
        }
    }
}

/// A service behind a [`GuardLayer`].
pub struct GuardService<S, C> {
    inner: S,
    layer: GuardLayer<C>,
}

impl<S: Clone, C> Clone for GuardService<S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
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
        let is_checked = self.layer.methods.contains(request.method());
        let refusal = is_checked.then(|| (self.layer.check)(&request)).flatten();
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

/// Takes the key from a parameter of the path: `path("/users/{id}", "id")` finds 17 in `/users/17`.
///
/// `route` is in axum's syntax, and the crate that axum uses matches it. It matches the path that
/// the layer sees: within a nested router, axum has removed the prefix. The parameter is decoded as
/// axum does, and then parsed. A request has no key, and passes, if its path does not match or the
/// parameter does not parse.
///
/// # Panics
///
/// Panics if `route` is not a route, does not begin with `/`, or has no such parameter.
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
    assert!(
        route.starts_with('/'),
        "{route:?} is not a route: it does not begin with '/'"
    );
    let mut routes = matchit::Router::new();
    if let Err(error) = routes.insert(route, ()) {
        panic!("{route:?} is not a route: {error}");
    }
    let is_there = ["{", "{*"].map(|open| route.contains(&format!("{open}{parameter}}}")));
    assert!(is_there.contains(&true), "{route:?} has no parameter {parameter:?}");
    let parameter = parameter.to_owned();
    move |request| {
        let matched = routes.at(request.uri().path()).ok()?;
        parse(matched.params.get(&parameter)?)
    }
}

fn parse<T: FromStr>(encoded: &str) -> Option<T> {
    percent_decode_str(encoded).decode_utf8().ok()?.parse().ok()
}

/// Takes the key from a parameter of the route that axum has matched: `matched_path("id")` finds 17
/// in `/users/17` if a route is `/users/{id}`. Otherwise it works as [`path`] does.
///
/// It names no route, so no route can be mistyped. It reads axum's `MatchedPath`: the layer must
/// wrap routes, by `Router::layer`, `Router::route_layer` or `MethodRouter::layer`. For a nested
/// router, put it on that router: the outer router's layers run before the route is known.
///
/// # Examples
///
/// ```
/// use axum::{Router, routing::get};
/// use lanebloom_guard::future::GuardedCache;
/// use lanebloom_guard::tower::{GuardLayer, matched_path};
/// # use axum::body::Body;
/// # use axum::http::Request;
/// # use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lanebloom_guard::BoxError> {
/// # let read_user = async |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
/// let users = GuardedCache::<u64, u64>::builder().build(read_user)?;
/// users.insert(&17);
/// users.mark_ready(); // that is all of them
/// let api = Router::new()
///     .route("/users/{id}", get(async || "a user"))
///     .route("/users/{id}/posts", get(async || "posts"))
///     .layer(GuardLayer::new(users, matched_path("id")));
/// let app = Router::new().nest("/api", api);
/// # let app = |uri: &str| {
/// #     let response = app.clone().oneshot(Request::get(uri).body(Body::empty()).unwrap());
/// #     async { response.await.unwrap().status() }
/// # };
///
/// assert_eq!(app("/api/users/17/posts").await, 200);
/// assert_eq!(app("/api/users/18/posts").await, 404);
/// assert_eq!(app("/api/users/18").await, 404);
/// # Ok(()) }
/// ```
pub fn matched_path<T: FromStr, B>(parameter: &str) -> impl Fn(&Request<B>) -> Option<T> + use<T, B> {
    use axum::extract::{MatchedPath, OriginalUri};
    let [one, rest] = ["{", "{*"].map(|open| format!("{open}{parameter}}}"));
    move |request| {
        let extensions = request.extensions();
        let route = extensions.get::<MatchedPath>()?.as_str();
        // The route of a nested router has the prefix, but axum removes it from the request's path.
        let uri = extensions.get().map_or(request.uri(), |OriginalUri(uri)| uri);
        let mut path = uri.path();
        for part in route.split('/') {
            if part == rest {
                return parse(path);
            }
            let (segment, after) = path.split_once('/').unwrap_or((path, ""));
            if part == one {
                return parse(segment);
            }
            path = after;
        }
        None
    }
}

/// Takes the key from the first header of this name: see the example of
/// [`with_response`](GuardLayer::with_response). A request has no key, and passes, if it lacks the
/// header, or if the header is not ASCII or does not parse.
pub fn header<T: FromStr, B>(name: HeaderName) -> impl Fn(&Request<B>) -> Option<T> {
    move |request| request.headers().get(&name)?.to_str().ok()?.parse().ok()
}
