//! `--state`: lines are remembered across runs, and no failure changes the file.

use super::*;
use lanebloom::{ConcurrentBloom, ScalableBloom};
use std::fs::File;
use std::io::Read;
#[cfg(unix)]
use std::os::unix::{
    fs::{PermissionsExt, symlink},
    process::ExitStatusExt,
};

fn with_state(state: &Path) -> Command {
    let mut command = dedup(["--state"]);
    command.arg(state);
    command
}

/// The layers of the filter in a state file.
pub(super) fn layers(state: &Path) -> Vec<ConcurrentBloom> {
    let bytes = fs::read(state).unwrap();
    let (filter, rest) = ScalableBloom::from_bytes(&bytes).unwrap();
    assert!(rest.is_empty());
    filter.into_layers()
}

#[test]
fn runs_continue_each_other() {
    let folder = Folder::new();
    for seed in 0..4 {
        let mut random = Random(500 + seed);
        let state = folder.path(&format!("state {seed}"));
        let mut seen = HashSet::new();
        for run in 0..6 {
            let mut input = random.lines(400, b'\n');
            input.push(b'\n');
            let lines = split(&input, b'\n');
            let expected: Vec<u8> = lines
                .filter(|&line| seen.insert(text(line, b'\n').to_vec()))
                .flatten()
                .copied()
                .collect();
            // The rate is that of the first run, if none is given.
            let mut command = with_state(&state);
            command
                .args(if run == 3 { &[] } else { SURE })
                .args(["--threads", *random.pick(&["1", "2", "4"])]);
            let output = Run::new(&mut command, &input).output();
            assert_bytes(&output, &expected, (seed, run));
        }
        assert!(!layers(&state).is_empty());
    }
    assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 4, "nothing else is left");

    // A path without a folder; keys that are fields.
    let mut command = dedup(["--state", "here", "--field", "1", "--count"]);
    command.current_dir(&folder.path);
    assert_eq!(Run::new(&mut command, "a\tb\na\tc\n").output(), b"1\n");
    assert_eq!(Run::new(&mut command, "a\td\nb\tc\n").output(), b"1\n");
    assert!(folder.path("here").exists());
}

#[test]
#[cfg(unix)] // Windows has no such permissions.
fn permissions_stay() {
    let folder = Folder::new();
    let state = folder.path("state");
    Run::new(&mut with_state(&state), "a\n").output();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o640)).unwrap();
    Run::new(&mut with_state(&state), "b\n").output();
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o640);
}

/// The sum of the layers' planned rates is the promise, however often they grow.
#[test]
fn the_rate_holds_over_many_runs() {
    let folder = Folder::new();
    for (name, flags, rate) in [("default", &[][..], 1e-6), ("given", &["--rate", "0.001"], 1e-3)] {
        let state = folder.path(name);
        for run in 0..8 {
            let file = folder.file("input", numbers(run * 80_000, 80_000));
            // Without the flag the state's own rate goes on.
            let flags = if run % 2 == 0 { flags } else { &[] };
            Run::new(with_state(&state).args(flags).arg("--count").arg(&file), "").output();
            let layers = layers(&state);
            let planned: f64 = layers.iter().map(ConcurrentBloom::false_positive_rate).sum();
            assert!(planned <= rate, "run {run}: {planned:.3e} in {} layers", layers.len());
            assert!(layers.len() <= 6, "{} layers", layers.len());
        }
    }
}

/// Runs the command, and asserts that it fails with these words and leaves the state.
#[track_caller]
fn fails(state: &Path, command: &mut Command, stdin: &[u8], parts: &[&str]) {
    let before = fs::read(state).unwrap();
    Run::new(command, stdin).error(parts);
    assert!(fs::read(state).unwrap() == before, "the state is another one");
}

#[test]
fn failures_leave_the_state() {
    let folder = Folder::new();
    let state = folder.path("state");
    Run::new(&mut with_state(&state), numbers(0, 1000)).output();

    let mut damaged = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    damaged.extend_from_slice(b"no deflate stream");
    let damaged = folder.file("damaged.gz", damaged);
    let good = folder.file("good", numbers(5000, 1000));
    let (good_path, damaged) = (utf8(&good), utf8(&damaged));
    for (args, parts) in [
        ([good_path, damaged], &["damaged.gz"][..]),
        ([good_path, "missing"], &["missing"]),
        (["--csv=x", good_path], &["\"x\""]),
        (["--rate", "1e-9"], &[utf8(&state), "--rate", "1.00e-9"]),
    ] {
        fails(&state, with_state(&state).args(args), b"x\n", parts);
    }

    let before = fs::read(&state).unwrap();
    let many = folder.file("many", numbers(5000, 100_000));
    let mut child = spawn(with_state(&state).arg(&many));
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(141));
    assert!(fs::read(&state).unwrap() == before);
    assert!(folder.leftovers().is_empty());
    // None of these lines was remembered, and the ended run left no lock file.
    assert_eq!(names(&folder), ["damaged.gz", "good", "many", "state"]);
    assert_eq!(
        Run::new(with_state(&state).arg("-c").arg(&good), "").output(),
        b"1000\n"
    );
}

#[test]
fn foreign_and_damaged_files_are_named_and_kept() {
    let folder = Folder::new();
    let good = folder.path("good");
    Run::new(&mut with_state(&good), numbers(0, 100)).output();
    let bytes = fs::read(&good).unwrap();
    let mut random = Random(600);
    let mut wrong = vec![
        Vec::new(),
        b"a\n".to_vec(),
        numbers(0, 1000),
        bytes[..bytes.len() - 1].to_vec(),
    ];
    wrong.push([&bytes[..], b"\n"].concat());
    wrong.push([&bytes[..], &bytes[..40]].concat());
    for at in [0, 4, 8, 12, 20, 30, random.below(bytes.len()), bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << random.below(8);
        wrong.push(damaged);
    }
    for (number, bytes) in wrong.iter().enumerate() {
        let state = folder.file(&format!("state {number}"), bytes);
        fails(
            &state,
            &mut with_state(&state),
            b"a\n",
            &[utf8(&state), ": it cannot be used: "],
        );
    }
    let state = folder.path("fast");
    Run::new(lanebloom().args(["build", "--hasher=fast", "-o"]).arg(&state), "a\n").output();
    let parts = [": it cannot be used: the hasher differs: FastHash"];
    fails(&state, &mut with_state(&state), b"a\n", &parts);

    let error = |path: &Path, part| Run::new(&mut with_state(path), "a\n").error(&[utf8(path), part]);
    assert_eq!(error(&folder.path, "it is a directory"), b"");
    assert_eq!(error(NULL.as_ref(), NULL), b"");
    assert_eq!(error(&folder.path("missing/state"), "folder"), b"");
    assert_eq!(error(&good.join("state"), NO_FOLDER), b"");
    if has("mkfifo") {
        let fifo = folder.path("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_eq!(error(&fifo, "not a regular file"), b"");
    }
}

#[test]
fn what_cannot_be_replaced_fails_at_the_beginning() {
    let folder = Folder::new();
    let state = folder.path("state");
    Run::new(&mut with_state(&state), "a\n").output();
    let writable = fs::metadata(&state).unwrap().permissions();
    let mut readonly = writable.clone();
    readonly.set_readonly(true);
    fs::set_permissions(&state, readonly).unwrap();
    let before = fs::read(&state).unwrap();
    assert_eq!(
        Run::new(&mut with_state(&state), "b\n").error(&[utf8(&state), "read-only"]),
        b""
    );
    assert!(fs::read(&state).unwrap() == before);

    fs::set_permissions(&state, writable).unwrap();
    #[cfg(unix)]
    in_a_read_only_folder(&folder, &state);
}

/// Windows makes files in such a folder.
#[cfg(unix)]
fn in_a_read_only_folder(folder: &Folder, state: &Path) {
    fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o555)).unwrap();
    if File::create(folder.path("probe")).is_ok() {
        eprintln!("skipped: this user may write to every folder");
    } else {
        fails(state, &mut with_state(state), b"b\n", &[utf8(state), "folder"]);
    }
    fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A run that has read a new line of eight bytes and waits for more.
fn waiting(state: &Path, line: &[u8; 8]) -> (std::process::Child, std::process::ChildStdin) {
    let mut child = spawn(&mut with_state(state));
    let mut to = child.stdin.take().unwrap();
    to.write_all(line).unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut line.clone()).unwrap();
    (child, to)
}

#[test]
fn two_runs_at_once() {
    let folder = Folder::new();
    let (state, link) = state_and_link(&folder);
    Run::new(&mut with_state(&state), "a\n").output();

    let (child, to) = waiting(&state, b"waiting\n");
    for path in [&state, &link] {
        let parts = [utf8(path), "in use by another run"];
        fails(&state, &mut with_state(path), b"b\n", &parts);
    }
    drop(to);
    Run::end(child).output();
    assert_eq!(Run::new(&mut with_state(&state), "waiting\na\nb\n").output(), b"b\n");

    // Replaced by a program that takes no lock; or made during the first run.
    let other = folder.path("other");
    Run::new(&mut with_state(&other), "other\n").output();
    let bytes = fs::read(&other).unwrap();
    for state in [state, folder.path("new")] {
        let (child, to) = waiting(&state, b"another\n");
        fs::write(folder.path("copy"), &bytes).unwrap();
        fs::rename(folder.path("copy"), &state).unwrap();
        drop(to);
        Run::end(child).error(&[utf8(&state), "replaced during the run"]);
        assert!(fs::read(&state).unwrap() == bytes);
    }
}

/// The path of a state, and a link to it. (On Windows the path again: few users may make links.)
fn state_and_link(folder: &Folder) -> (PathBuf, PathBuf) {
    let state = folder.path("state");
    #[cfg(unix)]
    symlink("state", folder.path("link")).unwrap();
    let link = folder.path(if cfg!(windows) { "state" } else { "link" });
    (state, link)
}

/// The names in a folder, in order.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(&folder.path).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The lock covers a state that is not there yet, and is gone afterwards.
#[test]
fn two_first_runs_at_once() {
    let folder = Folder::new();
    let (state, link) = state_and_link(&folder);
    let (child, to) = waiting(&state, b"waiting\n");
    for path in [&state, &link] {
        let output = Run::new(&mut with_state(path), "b\n").error(&[utf8(path), "in use by another run"]);
        assert_eq!(output, b"");
    }
    assert!(!state.exists());
    // Not the lock of another state in the same folder.
    Run::new(&mut with_state(&folder.path("other")), "b\n").output();
    drop(to);
    Run::end(child).output();
    assert_eq!(Run::new(&mut with_state(&link), "waiting\nb\n").output(), b"b\n");
    if cfg!(unix) {
        assert!(link.is_symlink());
        fs::remove_file(link).unwrap();
    }
    assert_eq!(names(&folder), ["other", "state"]);

    // A killed run leaves its lock file, which the next run removes. On Windows it leaves none.
    let first = folder.path("first");
    let (mut child, _to) = waiting(&first, b"waiting\n");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(&folder).len(), if cfg!(windows) { 2 } else { 3 });
    assert_eq!(Run::new(&mut with_state(&first), "waiting\n").output(), b"waiting\n");
    assert_eq!(names(&folder), ["first", "other", "state"]);
}

/// However they meet, each of them fails or is remembered.
#[test]
fn many_first_runs_at_once() {
    let folder = Folder::new();
    for trial in 0..20 {
        let state = &folder.path(&format!("state {trial}"));
        let line = |run: u64| format!("the line of run {run}\n");
        let runs: Vec<Run> = thread::scope(|scope| {
            let start = |run| scope.spawn(move || Run::new(&mut with_state(state), line(run)));
            let runs: Vec<_> = (0..4).map(start).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        let mut remembered = String::new();
        for (run, of) in (0..).zip(runs) {
            if of.status.success() {
                remembered += &line(run);
            } else {
                assert_eq!(of.error(&["in use by another run"]), b"");
            }
        }
        assert!(!remembered.is_empty(), "none was the first");
        let output = Run::new(&mut with_state(state), &remembered).output();
        assert_bytes(&output, b"", (trial, &remembered));
    }
    assert_eq!(names(&folder).len(), 20, "only the states are left");
}

/// The new state would take the place of the output.
#[test]
fn the_output_is_no_state() {
    let folder = Folder::new();
    let state = folder.path("state");
    Run::new(&mut with_state(&state), "a\n").output();
    let before = fs::read(&state).unwrap();
    let to_state = File::options().append(true).open(&state).unwrap();
    let output = with_state(&state).stdin(Stdio::null()).stdout(to_state).output();
    Run::of(output.unwrap()).error(&[utf8(&state), "also the output"]);
    assert!(fs::read(&state).unwrap() == before);
}

/// The link stays, and the file behind it is replaced.
#[test]
#[cfg(unix)] // Few users of Windows may make links.
fn links() {
    let folder = Folder::new();
    let (state, link) = (folder.path("there/state"), folder.path("link"));
    fs::create_dir(folder.path("there")).unwrap();
    Run::new(&mut with_state(&state), "a\n").output();
    symlink("there/state", &link).unwrap();
    assert_eq!(Run::new(&mut with_state(&link), "a\nb\n").output(), b"b\n");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("there/state"));
    assert_eq!(Run::new(&mut with_state(&state), "a\nb\nc\n").output(), b"c\n");
    assert_eq!(layers(&link).len(), 1);

    // The file behind it is not there yet, and the link is relative to its own folder.
    let early = folder.path("early");
    symlink("later", folder.path("there/link to early")).unwrap();
    symlink("there/link to early", &early).unwrap();
    Run::new(&mut with_state(&early), "a\n").output();
    assert!(early.is_symlink() && folder.path("there/link to early").is_symlink());
    assert_eq!(layers(&folder.path("there/later")).len(), 1);
}

/// A limit for the size of files stands for a full disk: the write fails, or kills the program.
#[test]
#[cfg(unix)] // Windows has no such limit.
fn no_room_for_the_new_state() {
    let folder = Folder::new();
    let state = folder.path("state");
    Run::new(&mut with_state(&state), numbers(0, 100)).output();
    let before = fs::read(&state).unwrap();
    assert!(before.len() > 64 << 10, "more than the limit");

    let run = Run::new(&mut limited(&with_state(&state), 50, true), "new\n");
    assert_eq!(
        run.error(&["cannot replace the state", utf8(&state), "File too large"]),
        b"new\n"
    );
    assert!(fs::read(&state).unwrap() == before);
    assert!(folder.leftovers().is_empty());

    let run = Run::new(&mut limited(&with_state(&state), 50, false), "new\n");
    assert!(run.status.signal().is_some(), "{}", run.status);
    assert!(fs::read(&state).unwrap() == before);
    assert_eq!(folder.leftovers().len(), 1, "the killed run leaves its file");
    assert_eq!(Run::new(&mut with_state(&state), "new\n").output(), b"new\n");
    assert!(folder.leftovers().is_empty());

    // Without an old state there is none afterwards.
    let first = folder.path("first");
    Run::new(&mut limited(&with_state(&first), 50, true), "new\n").error(&[utf8(&first)]);
    assert!(!first.exists());

    let [filter] = &layers(&state)[..] else {
        panic!("several layers")
    };
    assert!(filter.contains("new") && filter.contains("000000042"));
}
