//! Files that are replaced: who opens one finds the old bytes or the new ones, also after its writer was killed.
#![cfg(feature = "std")]

use crate::common::number;
use lanebloom::ConcurrentBloom;
use lanebloom::codec::replace_file;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Tells the test below to be the program that is killed; its value is the file.
const WRITER: &str = "LANEBLOOM_TEST_REPLACES";

/// Blocks of the filters that are written in turn, of different length, so that half of one is no other.
const BLOCKS: [usize; 3] = [3000, 1, 9000];

/// The filter of a turn: its number is its first block, and all others are full of it.
fn filter_of(turn: u64) -> ConcurrentBloom {
    let blocks = BLOCKS[turn as usize % BLOCKS.len()];
    let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
    let filter = builder.expected_keys(turn as usize).words_per_key(8).build().unwrap();
    let hashes: Vec<u64> = (0..blocks as u64).map(|i| number(turn << 32 | i)).collect();
    filter.insert_hashes(&hashes);
    filter
}

/// Not a test unless [`WRITER`] is set, and then without end.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else {
        return;
    };
    // On from where the one before was killed.
    let first = read(Path::new(&path)).map_or(1, |turn| turn + 1);
    for turn in first.. {
        replace_file(&path, |file| filter_of(turn).write_to(file)).unwrap();
    }
}

/// The turn of the filter in the file, which must be all of it.
fn read(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    let filter = ConcurrentBloom::read_from(&file, 1 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), filter.snapshot_bytes() as u64);
    let turn = filter.expected_keys() as u64;
    assert!(filter == filter_of(turn), "turn {turn} is not what was written");
    Some(turn)
}

fn leftovers(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "new"))
        .collect();
    entries.sort();
    entries
}

/// This program, to be started for one of its tests; nothing where it is emulated and cannot start itself.
fn itself(test: &str) -> Option<Command> {
    let program = std::env::current_exe().unwrap();
    let listed = Command::new(&program).arg("--list").output();
    if !cfg!(target_arch = "x86_64") && !listed.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let mut command = Command::new(program);
    command.args([&format!("replace::{test}"), "--exact", "--test-threads=1"]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Some(command)
}

/// A hundred times: somewhere in a write, between two, or while the file gets its name.
#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    let Some(mut writer) = itself("writer") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let kills = if cfg!(debug_assertions) { 30 } else { 100 };
    let (mut last, mut left_beside) = (0, 0);
    for kill in 0..kills {
        let mut child = writer.env(WRITER, &path).spawn().unwrap();
        // Not before it has written something, so that each one gets on.
        let mut turn = last;
        while turn <= last {
            thread::sleep(Duration::from_millis(1));
            assert!(child.try_wait().unwrap().is_none(), "the writer ended by itself");
            turn = read(&path).unwrap_or(0);
        }
        thread::sleep(Duration::from_micros(number(kill) % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let turn = read(&path).expect("the file is there");
        assert!(turn > last, "{turn} after {last}");
        last = turn;
        // At most what this one left: it removed what the ones before had.
        let left = leftovers(directory.path());
        assert!(left.len() <= 1, "{left:?}");
        left_beside += left.len();
    }
    // Some were killed while they wrote, else this shows nothing.
    assert!(left_beside > 0);
    replace_file(&path, |file| filter_of(last).write_to(file)).unwrap();
    assert!(leftovers(directory.path()).is_empty());
    assert_eq!(read(&path), Some(last));
}

#[test]
fn a_failed_write_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let fail = |file: &mut File| -> io::Result<()> {
        file.write_all(b"half")?;
        Err(io::Error::other("the rest is not to be had"))
    };
    let error = replace_file(&path, fail).unwrap_err();
    assert_eq!(error.to_string(), "the rest is not to be had");
    assert!(!path.exists() && leftovers(directory.path()).is_empty());

    let answer = replace_file(&path, |file| file.write_all(b"whole").map(|()| 17)).unwrap();
    assert_eq!(answer, 17);
    replace_file(&path, fail).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    assert!(leftovers(directory.path()).is_empty());
}

/// The file of a writer that is at work is no leftover, and what only looks like one is somebody's.
#[test]
fn only_leftovers_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let others = [
        ".filter.mine.new",
        ".filter.1-2-3.new",
        ".filter.1.new",
        ".filter.1-.new",
        ".filters.1-2.new",
        "filter.1-2.new",
    ];
    for name in others.iter().chain(&[".filter.1-2.new"]) {
        fs::write(directory.path().join(name), b"old").unwrap();
    }
    replace_file(&path, |first| {
        first.write_all(b"first")?;
        assert_eq!(leftovers(directory.path()).len(), others.len() + 1);
        // Another one begins later, and is done earlier.
        replace_file(&path, |second| second.write_all(b"second"))?;
        assert_eq!(fs::read(&path)?, b"second");
        Ok(())
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    let mut left: Vec<_> = leftovers(directory.path())
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    left.sort();
    let mut expected = others.to_vec();
    expected.sort();
    assert_eq!(left, expected);
}

/// Threads that replace the same file do not disturb each other.
#[test]
fn writers_of_one_file_take_turns() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    thread::scope(|scope| {
        for thread in 0..3 {
            let path = &path;
            scope.spawn(move || {
                for turn in 0..10 {
                    replace_file(path, |file| filter_of(3 * turn + thread + 1).write_to(file)).unwrap();
                    read(path).unwrap();
                }
            });
        }
    });
    assert!(leftovers(directory.path()).is_empty());
}

#[test]
fn the_path_may_be_a_bare_name_and_must_be_one() {
    for path in ["", "/", "..", "somewhere/.."] {
        let error = replace_file(path, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), format!("{path} is no path of a file"));
    }
    let missing = tempfile::tempdir().unwrap().path().join("gone").join("filter");
    assert_eq!(
        replace_file(missing, |_| Ok(())).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    // In the directory that a program runs in: another one than this program's, which may be read-only.
    let directory = tempfile::tempdir().unwrap();
    let Some(mut writer) = itself("bare_name_writer") else {
        return;
    };
    let status = writer.env(WRITER, BARE_NAME).current_dir(directory.path()).status();
    assert!(status.unwrap().success());
    assert_eq!(fs::read(directory.path().join(BARE_NAME)).unwrap(), b"here");
}

const BARE_NAME: &str = "filter";

/// Not a test unless [`WRITER`] is set.
#[test]
fn bare_name_writer() {
    if std::env::var_os(WRITER).is_some() {
        replace_file(BARE_NAME, |file| file.write_all(b"here")).unwrap();
        assert_eq!(fs::read(BARE_NAME).unwrap(), b"here");
    }
}

#[cfg(unix)]
#[test]
fn permissions_stay_and_links_are_replaced() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let [path, link] = ["filter", "link"].map(|name| directory.path().join(name));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    replace_file(&path, |file| file.write_all(b"1")).unwrap();
    for wanted in [0o600, 0o640, 0o444] {
        fs::set_permissions(&path, PermissionsExt::from_mode(wanted)).unwrap();
        replace_file(&path, |file| file.write_all(b"2")).unwrap();
        assert_eq!(mode(&path), wanted);
    }
    symlink(&path, &link).unwrap();
    replace_file(&link, |file| file.write_all(b"3")).unwrap();
    assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        (fs::read(&path).unwrap(), fs::read(&link).unwrap()),
        (b"2".to_vec(), b"3".to_vec())
    );
}
