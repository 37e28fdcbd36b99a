//! The metrics of a cache: names, help texts, values; and the dashboard, which names nothing else.

use crate::common::{LONG, filter::Claims, limit_time};
use lanebloom_guard::future;
use lanebloom_guard::sync::GuardedCache;
use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

type Cache = GuardedCache<u64, u64, Claims>;

/// A cache over a store that has the rows 0 to 99.
fn cache(filter: impl Fn() -> Claims + Send + Sync + 'static) -> Cache {
    limit_time();
    let read = |id: u64| Ok::<_, Infallible>((id < 100).then_some(id));
    let builder = GuardedCache::<u64, u64>::builder().name("users").expected_keys(1000);
    let builder = builder.filter(move |_| Ok::<_, Infallible>(filter()));
    builder.build_blocking(read).unwrap()
}

/// The recorded metrics: by name, the help text and the values.
fn recorded(snapshotter: &Snapshotter) -> BTreeMap<String, (Option<String>, Vec<DebugValue>)> {
    let mut all = BTreeMap::<_, (_, Vec<_>)>::new();
    for (key, _, help, value) in snapshotter.snapshot().into_vec() {
        let name = match key.kind() {
            // The names of Prometheus.
            MetricKind::Histogram => format!("{}_bucket", key.key().name()),
            _ => key.key().name().to_owned(),
        };
        let metric = all.entry(name).or_default();
        metric.0 = help.map(|help| help.to_string());
        metric.1.push(value);
    }
    all
}

fn gauge(snapshotter: &Snapshotter, name: &str) -> Option<f64> {
    match recorded(snapshotter).get(name)?.1[..] {
        [DebugValue::Gauge(value)] => Some(value.0),
        ref values => panic!("{name} is {values:?}"),
    }
}

/// Every metric that there is, once.
fn all_metrics() -> BTreeMap<String, (Option<String>, Vec<DebugValue>)> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let cache = cache(|| Claims::new(1000, || ()));
        cache.rebuild_now(|keys| Ok(keys.insert_all(0..101)?)).unwrap();
        for key in [17, 17, 100, 100, 1_000_017] {
            cache.get(&key).unwrap();
        }
        cache.publish();
        without_key(cache);
    });
    recorded(&snapshotter)
}

/// A request in which a layer finds no key.
fn without_key(cache: Cache) {
    use http::{Request, Response};
    use lanebloom_guard::tower::{GuardLayer, path};
    use tower::{Layer, Service, service_fn};
    let layer = GuardLayer::new(cache, path("/user/{id}", "id"));
    let inner = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(())));
    drop(layer.layer(inner).call(Request::get("/users/17").body(()).unwrap()));
    assert_eq!(layer.without_key(), 1);
}

#[test]
fn every_metric_has_a_help_text_and_is_on_the_crates_page() {
    let all = all_metrics();
    assert!(all.len() >= 25, "{:?}", all.keys());
    let page = include_str!("../../src/lib.rs");
    for (name, (help, _)) in all {
        let help = help.unwrap_or_else(|| panic!("{name} has no help text"));
        assert!(help.len() > 10 && !help.ends_with('.'), "{name}: {help}");
        let name = name.strip_suffix("_bucket").unwrap_or(&name);
        let short = name.strip_prefix("lanebloom_guard").expect("the prefix of all");
        assert!(page.contains(&format!("{short}`")), "{name} is not on the page");
    }
}

/// The names in the queries of the dashboard.
fn names_of_dashboard() -> BTreeSet<String> {
    let dashboard: serde_json::Value = serde_json::from_str(include_str!("../../grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let queries = queries.chain(variables.map(|variable| variable["query"].as_str().unwrap()));
    let is_of_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let words = queries.flat_map(|query| query.split(|c| !is_of_name(c)));
    words
        .filter(|word| word.starts_with("lanebloom"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let mut shown = names_of_dashboard();
    // The parts of a histogram.
    assert!(shown.remove("lanebloom_guard_load_seconds_sum"));
    assert!(shown.remove("lanebloom_guard_load_seconds_count"));
    let published: BTreeSet<_> = all_metrics().into_keys().collect();
    assert_eq!(
        shown.symmetric_difference(&published).collect::<Vec<_>>(),
        <[&String; 0]>::default()
    );
}

#[test]
fn the_values_are_those_of_the_cache() {
    let all = all_metrics();
    let values = |name: &str| &all[&format!("lanebloom_guard_{name}")].1;
    let count = |name| match values(name)[..] {
        [DebugValue::Counter(value)] => value,
        ref values => panic!("{name} is {values:?}"),
    };
    let gauge = |name| match values(name)[..] {
        [DebugValue::Gauge(value)] => value.0,
        ref values => panic!("{name} is {values:?}"),
    };
    assert_eq!(values("gets_total").len(), 5);
    assert_eq!((count("rebuilds_total"), count("failed_rebuilds_total")), (1, 0));
    // The row of 100 is missing: asked of the store, and then remembered.
    assert_eq!(count("false_positives_total"), 2);
    assert_eq!(gauge("keys"), 101.0);
    assert_eq!((gauge("capacity"), gauge("filter_bytes")), (1000.0, 1000.0));
    assert_eq!((gauge("ready"), gauge("open"), gauge("lag_seconds")), (1.0, 0.0, 1.5));
    // The loads of 17 and of 100.
    match &values("load_seconds_bucket")[..] {
        [DebugValue::Histogram(times)] => {
            assert_eq!(times.len(), 2);
            assert!(times.iter().all(|time| (0.0..60.0).contains(&time.0)), "{times:?}");
        }
        values => panic!("{values:?}"),
    }
}

#[test]
fn the_age_of_the_keys_is_that_of_the_last_rebuild_that_succeeded() {
    let cache = cache(|| Claims::new(1000, || ()));
    let age = || cache.report().keys_age;
    let made = Instant::now();
    // It grows from the beginning, also while rebuilds fail.
    let until = |least| {
        while age() < least {
            std::thread::yield_now()
        }
    };
    until(Duration::from_millis(20));
    cache.rebuild_now(|_| Err("connection lost".into())).unwrap_err();
    assert!(age() >= Duration::from_millis(20));
    let began = Instant::now();
    let slowly = cache.rebuild_now(|keys| {
        while began.elapsed() < Duration::from_millis(20) {}
        Ok(keys.insert(17)?)
    });
    slowly.unwrap();
    // Since it began: what the store got later may be missing.
    assert!(age() >= Duration::from_millis(20) && age() <= began.elapsed());
    assert!(age() < made.elapsed());
}

/// A large filter is read by a thread: `publish` returns while the thread reads.
#[test]
fn publish_does_not_wait_for_a_large_filter() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let reads = Arc::new(AtomicUsize::new(0));
    let of_filter = Arc::clone(&reads);
    let cache = cache(move || {
        let (wait, reads) = (Arc::clone(&wait), Arc::clone(&of_filter));
        Claims::new(1 << 30, move || {
            reads.fetch_add(1, Ordering::Relaxed);
            // Until the other end is dropped.
            let _ = wait.lock().unwrap().recv();
        })
    });
    cache.insert_batch(&Vec::from_iter(0..50));
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let publish = || metrics::with_local_recorder(&recorder, || cache.publish());
    let keys = || gauge(&snapshotter, "lanebloom_guard_filter_keys");
    // The thread has not ended: the rest is published, and no second thread begins.
    // (A snapshot resets the gauges.)
    for (name, value) in [("ready", 0.0), ("open", 1.0)] {
        publish();
        assert_eq!(gauge(&snapshotter, &format!("lanebloom_guard_{name}")), Some(value));
    }
    publish();
    assert_eq!(keys(), None);
    while reads.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    publish();
    let bytes = gauge(&snapshotter, "lanebloom_guard_filter_bytes");
    assert_eq!(bytes, Some((1 << 30) as f64));
    assert_eq!((keys(), reads.load(Ordering::Relaxed)), (None, 1));
    drop(go);
    let about_50 = |keys: f64| (45.0..55.0).contains(&keys);
    while !keys().is_some_and(about_50) {
        publish();
    }
    // `report` waits, and is exact.
    let before = reads.load(Ordering::Relaxed);
    assert!(about_50(cache.report().filter.len as f64));
    assert!(reads.load(Ordering::Relaxed) > before);
}

/// A thread reads the old filter for an awaited rebuild: other tasks run meanwhile.
#[tokio::test]
async fn a_rebuild_does_not_hold_up_other_tasks() {
    let (go, wait) = mpsc::channel();
    let wait = Arc::new(Mutex::new(wait));
    let builder = future::GuardedCache::<u64, u64>::builder().expected_keys(1000);
    let builder = builder.filter(move |_| {
        let wait = Arc::clone(&wait);
        let read = move || wait.lock().unwrap().recv_timeout(LONG).expect("the other task runs");
        Ok::<_, Infallible>(Claims::new(1 << 30, read))
    });
    let cache = builder.build(async |id| Ok::<_, Infallible>(Some(id))).unwrap();
    cache.insert_batch(&Vec::from_iter(0..2000));
    let rebuild = cache.rebuild_now(async |keys| Ok(keys.insert(17)?));
    let (rebuilt, ()) = tokio::join!(rebuild, async { go.send(()).unwrap() });
    // Made for as many keys as the old filter had.
    let capacity = rebuilt.unwrap().capacity;
    assert!((2000..2700).contains(&capacity), "{capacity}");
}
