//! Files that are replaced: a reader that opens one finds the old bytes or the new ones, also after
//! the writer was killed.

use lanebloom::codec::{remove_file, replace_file};
use lanebloom::{ConcurrentBloom, Hashed};
use lanebloom_tests::number;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Tells the test below to be the program that is killed; its value is the file.
const WRITER: &str = "LANEBLOOM_TEST_REPLACES";

/// Blocks of the filters that are written in turn, of different length, so that half of one is no
/// other.
const BLOCKS: [usize; 3] = [3000, 1, 9000];

/// The filter of a turn: its number is its first block, and all others are full of it.
fn filter_of(turn: u64) -> ConcurrentBloom {
    let blocks = BLOCKS[turn as usize % BLOCKS.len()];
    let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
    let filter = builder.expected_keys(turn as usize).words_per_key(8).build().unwrap();
    let hashes: Vec<u64> = (0..blocks as u64).map(|i| number(turn << 32 | i)).collect();
    filter.insert_batch(Hashed::slice(&hashes));
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
        replace_file(&path, |file| filter_of(turn).snapshot().write_to(file)).unwrap();
    }
}

/// The turn of the filter in the file, which must be all of it.
fn read(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    let filter = ConcurrentBloom::read_from(&file, 1 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), filter.snapshot().len() as u64);
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

/// This program, to be started for one of its tests; nothing where it is emulated and cannot start
/// itself.
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
    let (mut last, mut left_beside) = (0, 0);
    for kill in 0..100 {
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
    replace_file(&path, |file| filter_of(last).snapshot().write_to(file)).unwrap();
    assert!(leftovers(directory.path()).is_empty());
    assert_eq!(read(&path), Some(last));
}

#[test]
fn a_failed_write_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let fail = |file: &mut File| -> io::Result<()> {
        file.write_all(b"half")?;
        Err(io::Error::other("the disk is full"))
    };
    let error = replace_file(&path, fail).unwrap_err();
    assert_eq!(error.to_string(), "the disk is full");
    assert!(!path.exists() && leftovers(directory.path()).is_empty());

    let answer = replace_file(&path, |file| file.write_all(b"whole").map(|()| 17)).unwrap();
    assert_eq!(answer, 17);
    replace_file(&path, fail).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    assert!(leftovers(directory.path()).is_empty());
}

/// The leftover of a killed writer of `path`.
fn leftover_of(path: &Path) -> PathBuf {
    let directory = path.parent().unwrap();
    let mut written = PathBuf::new();
    let before = leftovers(directory);
    let stop = |_: &mut File| -> io::Result<()> {
        let mut now = leftovers(directory);
        now.retain(|path| !before.contains(path));
        written = now.pop().unwrap();
        Err(io::Error::other("only its name was wanted"))
    };
    replace_file(path, stop).unwrap_err();
    assert!(!written.exists());
    written
}

/// The file of a writer that is at work is no leftover, and what only looks like one is somebody's.
#[test]
fn only_leftovers_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let leftover = leftover_of(&path);
    let of_another = leftover_of(&directory.path().join("filters"));
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (start, end) = leftover
        .to_str()
        .unwrap()
        .split_at(leftover.to_str().unwrap().len() - 5);
    let cut = name(Path::new(&format!(
        "{start}{}",
        end.trim_start_matches(|c: char| c != '.')
    )));
    let others = [
        ".filter.1-2.new",
        ".filter.mine.new",
        "filter.1-2.new",
        &name(&of_another),
        &cut,
        // (On Windows that is the name of the leftover.)
        #[cfg(not(windows))]
        &name(&leftover).to_uppercase().replace(".NEW", ".new"),
        &format!("x{}", name(&leftover)),
    ];
    for name in others.iter().chain(&[&*name(&leftover)]) {
        fs::write(directory.path().join(name), b"old").unwrap();
    }
    assert_eq!(leftovers(directory.path()).len(), others.len() + 1);
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
    let mut left: Vec<_> = leftovers(directory.path()).iter().map(|path| name(path)).collect();
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
                    replace_file(path, |file| filter_of(3 * turn + thread + 1).snapshot().write_to(file)).unwrap();
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
        assert_eq!(error.to_string(), format!("{path} is not the path of a file"));
    }
    let missing = tempfile::tempdir().unwrap().path().join("gone").join("filter");
    assert_eq!(
        replace_file(missing, |_| Ok(())).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    // In the directory that a program runs in: another one than this program's, which may be
    // read-only.
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

/// The longest name that a file system allows, and the longest that leaves no room for anything
/// beside it.
#[test]
fn names_may_be_as_long_as_a_file_s() {
    let directory = tempfile::tempdir().unwrap();
    for len in [200, 240, 250, 255] {
        let path = directory.path().join("x".repeat(len));
        if File::create(&path).is_err() {
            println!("skipped: the file system takes no name of {len} bytes");
            continue;
        }
        replace_file(&path, |file| file.write_all(b"long")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"long");
    }
    assert!(leftovers(directory.path()).is_empty());
}

/// If a leftover's name belongs to no file, the call neither waits for it nor follows nor removes
/// it.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_a_link_and_a_directory_are_no_leftovers() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let [pipe, link, folder] = [(); 3].map(|()| leftover_of(&path));
    let file = directory.path().join("somebody's");
    fs::write(&file, b"kept").unwrap();
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    fs::create_dir(&folder).unwrap();

    let (done, is_done) = std::sync::mpsc::channel();
    let replaced = path.clone();
    thread::spawn(move || done.send(replace_file(replaced, |file| file.write_all(b"new"))));
    let result = is_done.recv_timeout(Duration::from_secs(120));
    result.expect("it waits for the pipe's other end").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(leftovers(directory.path()).len(), 3);
    assert_eq!(fs::read(&link).unwrap(), b"kept");
}

/// A device that is replaced by a file is lost to every program: `/dev/null`, say. `/dev/stdout` is
/// a link to one.
#[cfg(target_os = "linux")]
#[test]
fn what_is_not_a_regular_file_is_neither_replaced_nor_removed() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let directory = tempfile::tempdir().unwrap();
    let [pipe, folder, link, dangling] = ["pipe", "folder", "link", "dangling"].map(|name| directory.path().join(name));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&pipe, &link).unwrap();
    std::os::unix::fs::symlink("/nowhere", &dangling).unwrap();
    for path in [&pipe, &folder, &link] {
        let before = fs::symlink_metadata(path).unwrap();
        for result in [replace_file(path, |file| file.write_all(b"new")), remove_file(path)] {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(error.to_string(), format!("{} is not a regular file", path.display()));
        }
        assert_eq!(fs::symlink_metadata(path).unwrap().file_type(), before.file_type());
    }
    assert!(leftovers(directory.path()).is_empty());
    replace_file(&dangling, |file| file.write_all(b"new")).unwrap();
    assert_eq!(fs::read(&dangling).unwrap(), b"new");
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// No program opens the new file before it has the old file's permissions and all of its bytes.
#[cfg(unix)]
#[test]
fn a_file_is_its_owners_until_it_is_whole() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let [path, plain] = ["filter", "plain"].map(|name| directory.path().join(name));
    // A file that was not there is like any other that is created.
    replace_file(&path, |file| file.write_all(b"1")).unwrap();
    fs::write(&plain, b"1").unwrap();
    assert_eq!(mode(&path), mode(&plain));
    for wanted in [0o644, 0o666, 0o640] {
        fs::set_permissions(&path, PermissionsExt::from_mode(wanted)).unwrap();
        replace_file(&path, |file| {
            file.write_all(b"2")?;
            assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
            assert_eq!(
                leftovers(directory.path())
                    .iter()
                    .map(|path| mode(path))
                    .collect::<Vec<_>>(),
                [0o600]
            );
            Ok(())
        })
        .unwrap();
        assert_eq!(mode(&path), wanted);
    }
}

/// Whether this program may do as it likes, as root: what needs that is skipped otherwise, and says
/// so.
#[cfg(unix)]
fn is_root(what: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let is_root = fs::metadata(directory.path()).unwrap().uid() == 0;
    if !is_root {
        println!("skipped, since it takes root: {what}");
    }
    is_root
}

#[cfg(unix)]
#[test]
fn root_leaves_a_file_to_its_owner() {
    use std::os::unix::fs::{MetadataExt, chown};
    if !is_root("a file of another owner") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    fs::write(&path, b"1").unwrap();
    if let Err(error) = chown(&path, Some(12_345), Some(54_321)) {
        return println!("skipped, since this root gives no file away: {error}");
    }
    replace_file(&path, |file| file.write_all(b"2")).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (12_345, 54_321));
    assert_eq!(fs::read(&path).unwrap(), b"2");
}

/// Tells the test below to be what an ordinary user runs; its value is a directory.
#[cfg(unix)]
const UNREADABLE: &str = "LANEBLOOM_TEST_UNREADABLE";

/// Not a test unless [`UNREADABLE`] is set: names in the directory may be changed, but it cannot be
/// opened to bring that to the disk.
#[cfg(unix)]
#[test]
fn in_an_unreadable_directory() {
    let Some(directory) = std::env::var_os(UNREADABLE).map(PathBuf::from) else {
        return;
    };
    let path = directory.join("filter");
    let error = replace_file(&path, |_| -> io::Result<()> { panic!("it is written") }).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

/// An error means that the old file is there.
#[cfg(unix)]
#[test]
fn what_cannot_be_brought_to_the_disk_is_not_replaced() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("unreadable");
    fs::create_dir(&directory).unwrap();
    let path = directory.join("filter");
    fs::write(&path, b"old").unwrap();
    fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    fs::set_permissions(&directory, PermissionsExt::from_mode(0o300)).unwrap();
    let Some(mut child) = itself("in_an_unreadable_directory") else {
        return;
    };
    child.env(UNREADABLE, &directory).stdout(Stdio::piped());
    // Permissions bind others than root.
    if fs::read_dir(&directory).is_ok() {
        if let Err(error) = chown(&directory, Some(NOBODY), Some(NOBODY)) {
            return println!("skipped, since this root gives no directory away: {error}");
        }
        child.uid(NOBODY).gid(NOBODY);
    }
    let output = child.output();
    fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).unwrap();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        }
        Err(error) => println!("skipped, since an ordinary user cannot run this program: {error}"),
    }
    assert!(leftovers(&directory).is_empty());
}

#[cfg(unix)]
#[test]
fn permissions_stay_and_links_are_replaced() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let [path, link] = ["filter", "link"].map(|name| directory.path().join(name));
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
