//! The service: an axum server that reads users from the store, by one of three ways.

use crate::Result;
use crate::store::Store;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use lanebloom_guard::tower::{GuardLayer, path};
use lanebloom_guard::{BoxError, Keys, future::GuardedCache};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::convert::Infallible;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The way to the store.
#[derive(Clone)]
pub enum Access {
    Direct,
    /// Values are cached by moka, and loads for one id are joined.
    Cached(moka::future::Cache<u64, Bytes>),
    Guarded(GuardedCache<u64, Bytes>),
}

#[derive(Clone)]
pub struct Service {
    pub store: Arc<Store>,
    pub access: Access,
}

/// A guarded cache of at most `capacity` values, filled with all ids of the store; and the
/// task that rebuilds it every `interval`.
pub async fn guarded_cache(
    store: &Arc<Store>,
    capacity: u64,
    keys: usize,
    rate: f64,
    interval: Duration,
) -> Result<(GuardedCache<u64, Bytes>, JoinHandle<Infallible>)> {
    let loads = Arc::clone(store);
    let cache = GuardedCache::<u64, Bytes>::builder()
        .name("users")
        .expected_keys(keys)
        .false_positive_rate(rate)
        .capacity(capacity)
        .build(move |id| Arc::clone(&loads).get(id))?;
    let source = {
        let store = Arc::clone(store);
        async move |keys: &mut Keys<'_, u64>| -> std::result::Result<(), BoxError> {
            let mut ids = store.ids();
            while let Some(batch) = ids.recv().await {
                keys.insert_all(batch?)?;
            }
            Ok(())
        }
    };
    let rebuilt = cache.rebuild_now(&source).await?;
    println!(
        "filter: {} ids in {:.1} s",
        rebuilt.keys,
        rebuilt.duration.as_secs_f64()
    );
    let rebuilds = tokio::spawn(cache.rebuild_every(interval, source));
    Ok((cache, rebuilds))
}

impl Service {
    /// Serves on a free port of this machine until the runtime ends.
    pub async fn start(self) -> Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = axum::serve(listener, self.router()?);
        tokio::spawn(server.into_future());
        Ok(address)
    }

    fn router(self) -> Result<Router> {
        let mut read = get(get_user);
        let mut router = Router::new();
        if let Access::Guarded(cache) = &self.access {
            let guard = GuardLayer::new(cache.clone(), path("/users/{id}", "id"));
            read = read.layer(guard);
            let (cache, prometheus) = (cache.clone(), recorder()?);
            let metrics = async move || {
                cache.publish();
                prometheus.render()
            };
            router = router.route("/metrics", get(metrics));
        }
        Ok(router.route("/users/{id}", read.put(put_user)).with_state(self))
    }
}

/// The program's recorder of metrics.
fn recorder() -> Result<PrometheusHandle> {
    Ok(PrometheusBuilder::new().install_recorder()?)
}

async fn get_user(State(service): State<Service>, Path(id): Path<u64>) -> Result<Bytes, StatusCode> {
    let Service { store, access } = service;
    let row = match &access {
        Access::Direct => store.get(id).await.map_err(|error| error.to_string()),
        Access::Cached(cache) => {
            // An absent row is an error here, or else moka would keep it in a value's place.
            let load = async {
                let row = store.get(id).await.map_err(|error| Some(error.to_string()))?;
                row.ok_or(None)
            };
            match cache.try_get_with(id, load).await.map_err(Arc::unwrap_or_clone) {
                Ok(row) => Ok(Some(row)),
                Err(None) => Ok(None),
                Err(Some(error)) => Err(error),
            }
        }
        Access::Guarded(cache) => cache.get(&id).await.map_err(|error| error.to_string()),
    };
    match row {
        Ok(Some(row)) => Ok(row),
        Ok(None) => Err(StatusCode::NOT_FOUND),
        Err(error) => {
            eprintln!("{id}: {error}");
            Err(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

/// Adds the user's row: the store first, then the cache. A task of its own, because this future is
/// dropped if the client hangs up, and the store may commit all the same.
async fn put_user(State(service): State<Service>, Path(id): Path<u64>) -> StatusCode {
    let write = async move {
        let added = service.store.add(id).await;
        if let Access::Guarded(cache) = &service.access {
            cache.insert(&id);
        }
        added
    };
    match tokio::spawn(write).await {
        Ok(Ok(())) => StatusCode::CREATED,
        Ok(Err(error)) => {
            eprintln!("{id}: {error}");
            StatusCode::INTERNAL_SERVER_ERROR
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
