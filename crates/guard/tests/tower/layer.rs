//! `GuardLayer` before services of tower and routers of axum.

use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::{HeaderName, Method, Response, StatusCode, Uri};
use axum::routing::{get, put};
use axum::{Router, extract::State};
use lanebloom_guard::CacheGuard;
use lanebloom_guard::future::GuardedCache;
use lanebloom_guard::sync;
use lanebloom_guard::tower::{GuardLayer, header, path};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt, service_fn};

/// A guard of the keys 0 to 99.
fn guard() -> Arc<CacheGuard<u64>> {
    crate::common::limit_time();
    // A rate at which none of the few keys that the tests make up passes.
    let guard = CacheGuard::with_capacity(100, 1e-6).unwrap();
    guard.insert_batch(&Vec::from_iter(0..100));
    Arc::new(guard)
}

fn request(uri: &str) -> Request {
    Request::builder().uri(uri).body(Body::empty()).unwrap()
}

async fn status<S>(service: S, request: Request) -> StatusCode
where
    S: Service<Request, Response = Response<Body>, Error = Infallible>,
{
    service.oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn the_handler_runs_only_for_keys_that_pass() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let asked = asked.clone();
        move |Path(id): Path<u64>| async move { asked.lock().unwrap().push(id) }
    };
    let layer = GuardLayer::new(guard(), path("/users/{id}", "id"));
    let app = Router::new().route("/users/{id}", get(handler)).layer(layer);

    let refused = app.clone().oneshot(request("/users/100")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    assert!(axum::body::to_bytes(refused.into_body(), 1).await.unwrap().is_empty());
    assert_eq!(status(app.clone(), request("/users/99")).await, StatusCode::OK);
    // Axum's own response, since it is not a key.
    assert_eq!(status(app, request("/users/-1")).await, StatusCode::BAD_REQUEST);
    assert_eq!(*asked.lock().unwrap(), [99]);
}

#[tokio::test]
async fn a_request_counts_once_with_the_get_of_its_handler() {
    let read = async |id: u64| Ok::<_, Infallible>((id < 50).then_some(id));
    let cache = GuardedCache::<u64, u64>::builder().build(read).unwrap();
    cache.insert_batch(&Vec::from_iter(0..100));
    cache.mark_ready();
    let handler = async |State(cache): State<GuardedCache<u64, u64>>, Path(id): Path<u64>| match cache.get(&id).await {
        Ok(Some(_)) => StatusCode::OK,
        _ => StatusCode::GONE,
    };
    let layer = GuardLayer::new(cache.clone(), path("/{id}", "id"));
    let app = Router::new()
        .route("/{id}", get(handler).layer(layer))
        .with_state(cache.clone());

    for (uri, expected) in [
        ("/17", 200),
        ("/17", 200),
        ("/60", 410),
        ("/60", 410),
        ("/1000000", 404),
    ] {
        assert_eq!(status(app.clone(), request(uri)).await, expected, "{uri}");
    }
    let stats = cache.stats();
    let counts = [stats.loads, stats.hits, stats.known_misses, stats.guard.turned_away];
    assert_eq!((counts, stats.guard.false_positives), ([2, 1, 1, 1], 2));
}

#[tokio::test]
async fn routers_of_axum_see_the_layer_as_documented() {
    let layer = || GuardLayer::new(guard(), path("/users/{id}", "id"));
    let ok = || async { StatusCode::OK };
    let users = Router::new().route("/users/{id}", get(ok).layer(layer()).put(ok));
    let api = Router::new().route("/users/{id}", get(ok)).layer(layer());
    let app = users.nest("/api", api).route("/health", put(ok)).layer(layer());
    let status = |method, uri: &str| {
        let mut request = request(uri);
        *request.method_mut() = method;
        status(app.clone(), request)
    };
    // Nested: the layer sees the path without the prefix.
    assert_eq!(status(Method::GET, "/api/users/7").await, StatusCode::OK);
    assert_eq!(status(Method::GET, "/api/users/700").await, StatusCode::NOT_FOUND);
    assert_eq!(status(Method::PUT, "/health").await, StatusCode::OK);
    assert_eq!(status(Method::PUT, "/users/700").await, StatusCode::OK);
}

#[tokio::test]
async fn only_requests_that_read_are_refused_unless_others_are_named() {
    let ok = || async { StatusCode::OK };
    let layer = || GuardLayer::new(guard(), path("/users/{id}", "id"));
    let status = async |app: &Router, method: &str| {
        let request = Request::builder().method(method).uri("/users/700");
        status(app.clone(), request.body(Body::empty()).unwrap()).await
    };
    let reads = Router::new()
        .route("/users/{id}", axum::routing::any(ok))
        .layer(layer());
    for method in ["GET", "HEAD"] {
        assert_eq!(status(&reads, method).await, StatusCode::NOT_FOUND, "{method}");
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"] {
        assert_eq!(status(&reads, method).await, StatusCode::OK, "{method}");
    }
    let named = Router::new()
        .route("/users/{id}", axum::routing::any(ok))
        .layer(layer().methods([Method::DELETE, "QUERY".parse().unwrap()]));
    for (method, expected) in [("DELETE", 404), ("QUERY", 404), ("GET", 200), ("PUT", 200)] {
        assert_eq!(status(&named, method).await, expected, "{method}");
    }
}

/// The route says `product`, the service `products`.
#[tokio::test]
async fn requests_without_a_key_are_counted() {
    let recorder = metrics_util::debugging::DebuggingRecorder::new();
    let counted = || {
        let mut metrics = recorder.snapshotter().snapshot().into_vec().into_iter();
        let name = "lanebloom_guard_requests_without_key_total";
        metrics.find(|(key, ..)| key.key().name() == name).unwrap().3
    };
    let layer = GuardLayer::new(guard(), path("/product/{sku}", "sku"));
    let inner = service_fn(async |_: Request| Ok::<_, Infallible>(Response::new(Body::empty())));
    let service = layer.layer(inner);
    // The key is looked for when a service is called, so the recorder is needed only then.
    let call = |request| metrics::with_local_recorder(&recorder, || service.clone().call(request));
    for _ in 0..150 {
        assert_eq!(call(request("/products/1000")).await.unwrap().status(), StatusCode::OK);
    }
    let mut put = request("/products/1000");
    *put.method_mut() = Method::PUT;
    call(put).await.unwrap();
    let refused = call(request("/product/1000")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    assert_eq!(layer.without_key(), 150);
    assert_eq!(counted(), metrics_util::debugging::DebugValue::Counter(150));
}

#[tokio::test]
async fn the_route_that_axum_matched_has_the_key() {
    use lanebloom_guard::tower::matched_path;
    let ok = || async { StatusCode::OK };
    let layer = || GuardLayer::new(guard(), matched_path("id"));
    let nested = Router::new().route("/{id}/{*rest}", get(ok)).layer(layer());
    let files = GuardLayer::new(guard(), matched_path("id"));
    let app = Router::new()
        .route("/users/{id}", get(ok).layer(layer()))
        .route("/orgs/{org}/users/{id}/posts", get(ok))
        .route("/all/{*id}", get(ok))
        .route("/health", get(ok))
        .route_layer(files.clone())
        .nest("/deep/{org}", nested);
    for (uri, expected) in [
        ("/users/7", 200),
        ("/users/%37", 200),
        ("/users/700", 404),
        ("/users/seven", 200),
        ("/orgs/700/users/7/posts", 200),
        ("/orgs/7/users/700/posts", 404),
        ("/all/700", 404),
        ("/all/7", 200),
        ("/all/700/7", 200),
        ("/health", 200),
        ("/deep/700/7/a/b", 200),
        ("/deep/7/700/a/b", 404),
    ] {
        assert_eq!(status(app.clone(), request(uri)).await, expected, "{uri}");
    }
    // `seven`, `700/7` and `health`.
    assert_eq!(files.without_key(), 3);
}

#[test]
fn a_route_that_is_none_panics() {
    for (route, name, text) in [
        (
            "users/{id}",
            "id",
            r#""users/{id}" is not a route: it does not begin with '/'"#,
        ),
        ("/users/{id", "id", r#""/users/{id" is not a route: "#),
        ("/users/{id}", "name", r#""/users/{id}" has no parameter "name""#),
    ] {
        let panic = std::panic::catch_unwind(|| drop(path::<u64, ()>(route, name))).unwrap_err();
        let panic = panic.downcast_ref::<String>().unwrap();
        assert!(panic.starts_with(text), "{panic}");
    }
}

#[test]
fn keys_are_read_as_axum_reads_them() {
    fn key<T: std::str::FromStr>(route: &str, uri: &str) -> Option<T> {
        path::<T, Body>(route, "key")(&request(uri))
    }
    assert_eq!(key("/{key}", "/17"), Some(17u64));
    assert_eq!(key("/{key}", "/%31%37"), Some(17u64));
    assert_eq!(key::<u64>("/{key}", "/seventeen"), None);
    assert_eq!(key::<u64>("/{key}", "/"), None);
    assert_eq!(key::<u64>("/{key}", "/17/"), None);
    assert_eq!(key("/{org}/{key}", "/5/a+b%20c%2Fd"), Some("a+b c/d".to_owned()));
    assert_eq!(key::<String>("/{key}", "/%FF"), None);
    assert_eq!(key("/files/{*key}", "/files/a/b?c"), Some("a/b".to_owned()));

    let key = |value: &[u8]| {
        let mut request = Request::new(Body::empty());
        let name = HeaderName::from_static("x-key");
        request.headers_mut().append(name.clone(), value.try_into().unwrap());
        request.headers_mut().append(name.clone(), "18".try_into().unwrap());
        header::<u64, Body>(name)(&request)
    };
    assert_eq!(key(b"17"), Some(17));
    assert_eq!(key(b"\xFF"), None);
    assert_eq!(key(b""), None);
}

/// Any request and response, a cache that blocks, and a closure for keys of two parts.
#[tokio::test]
async fn a_service_need_not_be_of_axum() {
    type Pairs = sync::GuardedCache<(u32, u32), ()>;
    let read = |_| Ok::<_, Infallible>(Some(()));
    let cache: Pairs = GuardedCache::<(u32, u32), ()>::builder().build_blocking(read).unwrap();
    cache.insert(&(3, 4));
    cache.mark_ready();
    let key = |request: &Request<&[u8]>| {
        let (x, y) = request.uri().path().strip_prefix('/')?.split_once('/')?;
        Some((x.parse().ok()?, y.parse().ok()?))
    };
    let respond = |request: &Request<&[u8]>| Response::new(format!("no {:?}", request.body()));
    let inner = service_fn(async |request: Request<&[u8]>| Ok::<_, String>(Response::new(request.uri().to_string())));
    let service = GuardLayer::with_response(cache, key, respond).layer(inner);
    let ask = |uri: &'static str| {
        let mut request = Request::new(&b"ab"[..]);
        *request.uri_mut() = Uri::from_static(uri);
        let response = service.clone().oneshot(request);
        async { response.await.unwrap().into_body() }
    };
    assert_eq!(ask("/3/4").await, "/3/4");
    assert_eq!(ask("/4/3").await, "no [97, 98]");
    assert_eq!(ask("/no/key").await, "/no/key");
}

/// A service may be strict: it must be asked whether it is ready before each call, and a clone of
/// it must be asked again.
struct Strict {
    calls: Arc<AtomicUsize>,
    is_ready: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self {
            calls: self.calls.clone(),
            is_ready: false,
        }
    }
}

impl Service<Request> for Strict {
    type Response = Response<Body>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Body>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called before it was ready");
        self.calls.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Response::default()))
    }
}

#[tokio::test]
async fn the_service_that_is_called_is_the_one_that_was_ready() {
    let calls = Arc::new(AtomicUsize::new(0));
    let inner = Strict {
        calls: calls.clone(),
        is_ready: false,
    };
    let mut service = GuardLayer::new(guard(), path("/{id}", "id")).layer(inner);
    for uri in ["/1", "/100", "/2", "/101", "/102", "/3"] {
        service.ready().await.unwrap().call(request(uri)).await.unwrap();
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_busy_service_makes_its_callers_wait() {
    let (end, ended) = oneshot::channel::<()>();
    let ended = Arc::new(tokio::sync::Mutex::new(Some(ended)));
    let inner = service_fn(move |_: Request| {
        let ended = ended.clone();
        async move {
            if let Some(ended) = ended.lock().await.take() {
                ended.await.unwrap();
            }
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    });
    let layer = GuardLayer::new(guard(), path("/{id}", "id"));
    let mut service = layer.layer(ConcurrencyLimit::new(inner, 1));
    let first = tokio::spawn(service.ready().await.unwrap().call(request("/1")));

    // The one permit is taken: not ready, and not because the request is one that would be refused.
    let mut waiting = poll_ready(&mut service);
    assert!(waiting.is_pending());
    end.send(()).unwrap();
    first.await.unwrap().unwrap();
    waiting = poll_ready(&mut service);
    assert!(waiting.is_ready());
    // A refused request leaves the permit that was taken for it: to this service, and after its end
    // to others.
    let refused = service.call(request("/100")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    let mut other = service.clone();
    assert!(poll_ready(&mut other).is_pending());
    assert!(poll_ready(&mut service).is_ready());
    drop(service);
    assert!(poll_ready(&mut other).is_ready());
    assert_eq!(other.call(request("/1")).await.unwrap().status(), StatusCode::OK);
}

fn poll_ready<S: Service<Request>>(service: &mut S) -> Poll<Result<(), S::Error>> {
    service.poll_ready(&mut Context::from_waker(std::task::Waker::noop()))
}
