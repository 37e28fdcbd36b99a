//! A cache's knowledge of its filter: whether it is filled, whether it lacks keys, how many it has.
//! Over rebuilds, and over restarts by a file.

use crate::common::{LONG, filter::Claims};
use crate::gets::{HOUR, builder, until_blocking};
use lanebloom::{ConcurrentBloom, KeyHasher, ScalableBloom, SipHash13};
use lanebloom_guard::{BoxError, CacheBuilder, GuardFilter, Key, Keys, Layered, Restored, future::GuardedCache, sync};
use std::convert::Infallible;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;

type Cache<F = ConcurrentBloom<SipHash13>> = sync::GuardedCache<u64, u64, F>;

/// A cache for `expected_keys` keys, over a store that has the rows 0 to 9999.
fn new(expected_keys: usize) -> Cache {
    of(builder().expected_keys(expected_keys))
}

fn of<F: GuardFilter>(builder: CacheBuilder<u64, u64, F>) -> Cache<F> {
    let read = |id: u64| Ok::<_, Infallible>((id < 10_000).then_some(id));
    builder.build_blocking(read).unwrap()
}

/// A source of keys.
fn keys(all: impl IntoIterator<Item = u64>) -> impl Fn(&mut Keys<'_, u64>) -> Result<(), BoxError> {
    let all = Vec::from_iter(all);
    move |keys| Ok(keys.insert_all(all.iter().copied())?)
}

fn admits<F: GuardFilter>(cache: &Cache<F>, key: u64) -> bool {
    cache.guard().check(&key).is_some()
}

// ---- Filled or not ----

#[test]
fn before_it_is_filled_a_cache_turns_no_key_away() {
    let cache = new(1000);
    assert!(!cache.is_ready() && cache.report().is_open && !cache.report().is_ready);
    assert_eq!(cache.get(&17).unwrap(), Some(17));
    assert_eq!(cache.get_many(&[18, 19, 20_000]).unwrap(), [Some(18), Some(19), None]);
    // Some keys are not all keys.
    cache.insert(&1);
    cache.insert_batch(&[2, 3]);
    assert!(!cache.is_ready() && admits(&cache, 4));
    assert_eq!(cache.stats().guard.turned_away, 0);

    // Neither is a rebuild that fails.
    let failing = |keys: &mut Keys<'_, u64>| {
        keys.insert(1)?;
        Err("connection lost".into())
    };
    cache.rebuild_now(failing).unwrap_err();
    assert!(!cache.is_ready() && admits(&cache, 4));

    cache.rebuild_now(keys(0..10)).unwrap();
    assert!(cache.is_ready() && cache.report().is_ready && !cache.report().is_open);
    assert!(admits(&cache, 9) && !admits(&cache, 20_000));
}

#[test]
fn each_way_to_fill_a_cache_makes_it_ready() {
    let (_directory, path) = file();
    let by_word = new(1000);
    by_word.insert_batch(&[1, 2]);
    by_word.mark_ready();
    assert!(by_word.save(&path).unwrap());
    let by_file = new(1000);
    assert_eq!(by_file.restore(&path, HOUR).unwrap(), Restored::Serves);
    let by_hand = new(1000);
    let rebuild = by_hand.guard().rebuild_with_capacity(1000, 0.01).unwrap();
    rebuild.insert_all([1, 2]);
    rebuild.commit().unwrap();
    for cache in [by_word, by_file, by_hand] {
        assert!(cache.is_ready() && !cache.report().is_open);
        assert!(admits(&cache, 1) && admits(&cache, 2) && !admits(&cache, 3));
    }
}

/// The runtime has one thread.
#[tokio::test]
async fn tasks_run_while_a_filter_is_completed() {
    let ran = Arc::new(AtomicUsize::new(0));
    let of_filter = Arc::clone(&ran);
    let make = move |_| {
        let ran = Arc::clone(&of_filter);
        let complete = move || {
            until_blocking(|| ran.load(Ordering::Relaxed) > 0);
            Ok(())
        };
        Ok::<_, Infallible>(Claims::new(1 << 30, || ()).completed_by(complete))
    };
    let read = async |id: u64| Ok::<_, Infallible>(Some(id));
    let cache = builder().filter(make).build(read).unwrap();
    let source = async |keys: &mut Keys<'_, u64>| {
        let ran = Arc::clone(&ran);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            ran.store(1, Ordering::Relaxed);
        });
        Ok(keys.insert_all([1, 2])?)
    };
    cache.rebuild_now(source).await.unwrap();
    assert!(cache.is_ready() && cache.guard().check(&3).is_none());
}

/// Also if the source takes no notice.
#[test]
fn a_rebuild_that_is_stopped_keeps_the_old_filter() {
    for returns_error in [true, false] {
        let cache = new(1000);
        cache.rebuild_now(keys([1])).unwrap();
        let (begin, begun) = mpsc::channel();
        let endless = move |keys: &mut Keys<'_, u64>| {
            begin.send(()).unwrap();
            loop {
                match keys.insert(2) {
                    Ok(()) => {}
                    Err(error) if returns_error => return Err(error.into()),
                    Err(_) => return Ok(()),
                }
            }
        };
        let rebuilds = cache.rebuild_every(Duration::from_millis(1), endless);
        begun.recv().unwrap();
        rebuilds.stop();
        assert!(admits(&cache, 1) && !admits(&cache, 2));
        assert_eq!((cache.stats().rebuilds, cache.stats().failed_rebuilds), (1, 1));
    }
}

// ---- The number of keys ----

/// Whether `keys` is about the number of keys, by the filter's estimate.
#[track_caller]
fn assert_about(keys: usize, expected: usize) {
    assert!(
        keys.abs_diff(expected) <= expected / 20,
        "{keys} is not about {expected}"
    );
}

#[test]
fn updates_of_rows_are_no_new_keys() {
    let cache = new(1000);
    cache.rebuild_now(keys(0..1000)).unwrap();
    for _ in 0..100 {
        (0..1000).for_each(|key| cache.insert(&key));
        cache.insert_batch(&Vec::from_iter(0..1000));
    }
    cache.insert_value(&17, 17);
    assert_eq!(cache.stats().inserted, 200_001);
    assert_about(cache.report().keys.unwrap() as usize, 1000);
    let bytes = cache.report().filter_bytes;
    let rebuilt = cache.rebuild_now(keys(0..1000)).unwrap();
    assert_about(rebuilt.capacity, 1250);
    assert!(cache.report().filter_bytes <= 2 * bytes);
    // Nor over a restart.
    let (_directory, path) = file();
    (0..1000).for_each(|key| cache.insert(&key));
    cache.save(&path).unwrap();
    let cache = new(1000);
    assert_eq!(cache.restore(&path, HOUR).unwrap(), Restored::Serves);
    assert_about(cache.report().keys.unwrap() as usize, 1000);
}

#[test]
fn keys_that_are_added_during_a_rebuild_count_after_it() {
    let cache = new(1000);
    let source = |rows: &mut Keys<'_, u64>| {
        cache.insert_batch(&Vec::from_iter(500..800));
        cache.remove(&1);
        keys(0..500)(rows)
    };
    assert_eq!(cache.rebuild_now(source).unwrap().keys, 500);
    assert_about(cache.report().keys.unwrap() as usize, 800);
    // And those that the source had read before they were added, or that are removed after.
    cache.insert(&0);
    (0..400).for_each(|key| cache.remove(&key));
    assert_about(cache.report().keys.unwrap() as usize, 400);
}

/// How often a rebuild reads a source of the keys 0 to `n`, and its capacity.
fn rebuild<F: GuardFilter>(cache: &Cache<F>, n: u64) -> (usize, usize) {
    let reads = AtomicUsize::new(0);
    let source = |rows: &mut Keys<'_, u64>| {
        let read = reads.fetch_add(1, Ordering::Relaxed);
        assert!(read < 2, "{n} keys are read again and again");
        keys(0..n)(rows)
    };
    let rebuilt = cache.rebuild_now(source).unwrap();
    assert_eq!(rebuilt.keys as u64, n);
    assert!((0..n).all(|key| admits(cache, key)));
    (reads.into_inner(), rebuilt.capacity)
}

#[test]
fn a_rebuild_makes_room_for_the_keys_that_are_known() {
    let cache = new(1000);
    cache.insert_batch(&Vec::from_iter(0..3000));
    let (reads, capacity) = rebuild(&cache, 3000);
    assert_eq!(reads, 1, "the first filter was too small");
    assert_about(capacity, 3750);
    // The next one, from the count of the one before.
    assert_eq!(rebuild(&cache, 3000), (1, 3750));
    // And never for fewer than the builder expects.
    assert_eq!(rebuild(&cache, 10), (1, 3750));
    assert_eq!(rebuild(&cache, 10), (1, 1000));
}

#[test]
fn a_filter_that_the_store_has_outgrown_is_built_again_with_more_room() {
    let cache = new(100);
    assert_eq!(rebuild(&cache, 1000), (2, 1250));
    assert_eq!(cache.guard().filter().expected_keys(), 1250);
    assert!(cache.report().filter.false_positive_rate <= 0.01);
}

/// A filter that says it has no room is read once if it was planned for as many keys.
#[test]
fn a_rebuild_ends_whatever_the_filter_says_of_its_room() {
    let builder = GuardedCache::<u64, u64>::builder().expected_keys(1000);
    let cache = of(builder.filter(|_| Ok::<_, Infallible>(Claims::new(1000, || ()))));
    let reads = [10, 1000, 3000].map(|n| rebuild(&cache, n).0);
    assert_eq!(reads, [1, 1, 2]);
}

/// Its static part has room for any number; the small one is for a share of the expected keys.
#[test]
fn a_layered_filter_is_read_again_for_more_than_twice_the_keys() {
    let builder = GuardedCache::<u64, u64>::builder().expected_keys(1000);
    let cache = of(builder.filter(|keys| Layered::new(keys / 10, 0.01)));
    assert_eq!(rebuild(&cache, 2000), (1, 1000));
    assert_eq!(rebuild(&cache, 2500), (1, 2500));
    assert_eq!(rebuild(&cache, 6251), (2, 7813));
}

// ---- Restarts ----

/// A folder, and a file in it for a filter.
fn file() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("guard");
    (directory, path)
}

/// The file of a cache with the keys 0 to 499.
fn save(path: &Path) -> Vec<u8> {
    let cache = new(1000);
    cache.rebuild_now(keys(0..500)).unwrap();
    assert!(cache.save(path).unwrap());
    fs::read(path).unwrap()
}

#[test]
fn a_saved_filter_serves_once() {
    let (_directory, path) = file();
    assert_eq!(new(1000).restore(&path, HOUR).unwrap(), Restored::NoFile);
    save(&path);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let restored = new(1000);
    assert_eq!(restored.restore(&path, HOUR).unwrap(), Restored::Serves);
    assert!((0..500).all(|key| admits(&restored, key)));
    assert!((500..1000).filter(|key| admits(&restored, *key)).count() < 50);
    assert_about(restored.report().keys.unwrap() as usize, 500);
    assert_eq!(new(1000).restore(&path, HOUR).unwrap(), Restored::NoFile, "used twice");
}

/// It lacks keys of the store, so the next process must not turn keys away by it.
#[test]
fn a_restart_does_not_close_an_open_guard() {
    let (_directory, path) = file();
    save(&path);
    let full = |keys| {
        let builder = ScalableBloom::builder().expected_keys(keys).max_layers(1);
        builder.hasher(SipHash13::random()).build()
    };
    let new = || of(builder().expected_keys(100).filter(full));
    let cache = new();
    cache.rebuild_now(keys(0..50)).unwrap();
    (50..1000).for_each(|key| cache.insert(&key));
    assert!(cache.report().is_open && cache.report().is_ready);
    assert_eq!(cache.get_many(&[0, 999, 5000]).unwrap(), [0, 999, 5000].map(Some));
    assert!(!cache.save(&path).unwrap());
    assert!(!path.exists(), "the older file lacks keys as well");
    // Nor is it an error that there is none.
    assert!(!cache.save(&path).unwrap());

    let next = new();
    assert_eq!(next.restore(&path, HOUR).unwrap(), Restored::NoFile);
    for key in 0..1000 {
        assert_eq!(next.get(&key).unwrap(), Some(key));
    }
    assert!(next.report().is_open);
    next.rebuild_now(keys(0..1000)).unwrap();
    assert!(!next.report().is_open && next.save(&path).unwrap());
}

/// Keys that the file may lack.
#[test]
fn a_restore_loses_no_key_that_the_cache_has() {
    type Fill = fn(&Cache);
    let ways: [(&str, Fill); 6] = [
        ("added", |cache| cache.insert(&1000)),
        ("inserted", |cache| cache.insert_value(&1000, 1)),
        ("by the guard", |cache| cache.guard().insert(&1000)),
        ("rebuilt", |cache| _ = cache.rebuild_now(keys([1000])).unwrap()),
        ("rebuilt by the guard", |cache| {
            let rebuild = cache.guard().rebuild_with_capacity(10, 0.01).unwrap();
            rebuild.insert_all([1000]);
            rebuild.commit().unwrap();
        }),
        ("an empty store", |cache| cache.mark_ready()),
    ];
    let (_directory, path) = file();
    for (name, fill) in ways {
        save(&path);
        let cache = new(1000);
        fill(&cache);
        let error = cache.restore(&path, HOUR).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
        let text = "this cache was filled before, or keys were inserted into it; restore a new cache";
        assert_eq!(error.to_string(), text, "{name}");
        assert!(name == "an empty store" || admits(&cache, 1000), "{name}");
        assert_eq!(admits(&cache, 17), !cache.is_ready(), "{name}");
        assert!(!path.exists());
    }
    // A rebuild that failed has put nothing in.
    save(&path);
    let cache = new(1000);
    let failing = |keys: &mut Keys<'_, u64>| {
        keys.insert(1000)?;
        Err("no".into())
    };
    cache.rebuild_now(failing).unwrap_err();
    assert_eq!(cache.restore(&path, HOUR).unwrap(), Restored::Serves);
}

#[test]
fn a_file_of_other_keys_or_of_another_filter_is_refused() {
    fn restore<K: Key + ?Sized>(path: &Path) -> String {
        let read = |_| Ok::<_, Infallible>(Some(()));
        let cache = GuardedCache::<K, ()>::builder().build_blocking(read).unwrap();
        let error = cache.restore(path, HOUR).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(!cache.is_ready());
        error.to_string()
    }
    let (_directory, path) = file();
    save(&path);
    let text = "the saved guard has keys of the type u64 (8 bytes), but this cache has keys of the type ";
    assert_eq!(restore::<str>(&path), format!("{text}str"));
    assert!(!path.exists());
    save(&path);
    assert_eq!(restore::<u32>(&path), format!("{text}u32 (4 bytes)"));
    save(&path);
    assert_eq!(restore::<(u32, u32)>(&path), format!("{text}(u32, u32) (8 bytes)"));

    save(&path);
    let scalable = |keys| {
        let builder = ScalableBloom::builder().expected_keys(keys);
        builder.hasher(SipHash13::random()).build()
    };
    let cache = of(builder().filter(scalable));
    let error = cache.restore(&path, HOUR).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let text = "the bytes are of kind 1 (a ConcurrentBloom), not 2 (a ScalableBloom)";
    assert!(error.to_string().contains(text), "{error}");
}

/// Bytes of the header: 48 of fields, the key type, a hash.
const KEY_TYPE: &str = "u64 (8 bytes)";
const HASH: usize = 48 + KEY_TYPE.len();

/// Puts the hash of a changed header right.
fn hash(bytes: &mut [u8]) {
    let secret = SipHash13::with_key(bytes[32..48].try_into().unwrap());
    let hash = secret.hash_key(&bytes[..HASH]).to_le_bytes();
    bytes[HASH..HASH + 8].copy_from_slice(&hash);
}

#[test]
fn a_file_that_is_too_old_or_from_the_future_does_not_serve() {
    let (_directory, path) = file();
    let bytes = save(&path);
    for (shift, text) in [
        (-7200i64, "the saved guard is too old: 7"),
        (7200, "the clock was wrong then, or is now"),
        (-1800, "the saved guard serves"),
    ] {
        let mut bytes = bytes.clone();
        let saved = i64::from_le_bytes(bytes[8..16].try_into().unwrap()) + shift;
        bytes[8..16].copy_from_slice(&saved.to_le_bytes());
        hash(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        // The time since the file was saved is some seconds.
        let about = |time: Duration| (7200 - LONG.as_secs()..=7200 + LONG.as_secs()).contains(&time.as_secs());
        let restored = new(1000).restore(&path, HOUR).unwrap();
        assert!(restored.to_string().contains(text), "{restored}");
        match (shift, restored) {
            (-7200, Restored::TooOld { age }) => assert!(about(age)),
            (7200, Restored::FromFuture { ahead }) => assert!(about(ahead)),
            (-1800, Restored::Serves) => {}
            other => panic!("{other:?}"),
        }
        assert!(!path.exists());
    }
}

/// Every byte of the header counts, those of the filter, and their number.
#[test]
fn a_damaged_file_is_an_error() {
    let (_directory, path) = file();
    let bytes = save(&path);
    let check = |bytes: &[u8], what: &str, at: usize| {
        fs::write(&path, bytes).unwrap();
        let cache = new(1000);
        let error = cache.restore(&path, HOUR).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{what} at {at}");
        assert!(!cache.is_ready() && !path.exists());
    };
    let places = |step| (HASH + 8..bytes.len()).step_by(step).chain([bytes.len() - 1]);
    for at in (0..HASH + 8).chain(places(61)) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        check(&flipped, "a flipped bit", at);
    }
    for at in (0..HASH + 8).step_by(8).chain(places(97)) {
        check(&bytes[..at], "the end", at);
    }
}

/// Such a file has not been written by `save`, but it is whole. No count follows from it that
/// overflows, and no rebuild for more keys than a filter can have.
#[test]
fn an_absurd_number_of_keys_harms_nothing() {
    let (_directory, path) = file();
    for number in [u64::MAX, u64::MAX / 2, 1 << 40] {
        let mut bytes = save(&path);
        bytes[16..24].copy_from_slice(&number.to_le_bytes());
        hash(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        let cache = new(1000);
        assert_eq!(cache.restore(&path, HOUR).unwrap(), Restored::Serves);
        cache.insert(&600);
        assert_about(cache.report().keys.unwrap() as usize, 500);
        assert_eq!(rebuild(&cache, 600), (1, 1000));
    }
}

/// Nothing waits for the other end of a pipe, and no link stays to a file that was used.
#[cfg(unix)]
#[test]
fn only_a_regular_file_is_restored() {
    let (directory, path) = file();
    let restore = |path: &Path, text: &str| {
        let (send, receive) = mpsc::channel();
        let cache = new(1000);
        let (its_cache, its_path) = (cache.clone(), path.to_owned());
        std::thread::spawn(move || send.send(its_cache.restore(&its_path, HOUR)));
        let error = receive.recv_timeout(LONG).expect("it hangs").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = format!("{} is {text}; a saved guard is a regular file", path.display());
        assert_eq!(error.to_string(), text);
        assert!(path.symlink_metadata().is_ok() && !cache.is_ready());
    };
    restore(directory.path(), "a directory");

    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        restore(&pipe, "not a regular file");
    }

    save(&path);
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    restore(&link, "a symbolic link");
    assert!(path.exists());
}
