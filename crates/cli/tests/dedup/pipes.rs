//! Programs at the other ends of pipes: those that write slowly, and those that stop reading.

use super::*;
use std::io::pipe;

/// A line comes out before the next one is there.
#[test]
fn lines_do_not_wait_for_more() {
    for threads in ["1", "2", "4"] {
        for (flags, lines) in [
            (
                &[][..],
                &[("a\n", "a\n"), ("b\na\nc\n", "b\nc\n"), ("a\nd\ne", "d\n")][..],
            ),
            (
                &["--json", "/k"],
                &[("{\"k\":1}\n", "{\"k\":1}\n"), ("{\"k\": 1}\n\n", "\n")],
            ),
            (
                &["--csv", "k"],
                &[("k,v\r\n", "k,v\r\n"), ("1,2\r\n1,3\r\n2,3\r\n", "1,2\r\n2,3\r\n")],
            ),
            (&["-0"], &[("a\0", "a\0"), ("\n\0b", "\n\0")]),
        ] {
            let mut child = spawn(dedup(flags).args(["--threads", threads]));
            let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            for (written, expected) in lines {
                to.write_all(written.as_bytes()).unwrap();
                let mut read = vec![0; expected.len()];
                from.read_exact(&mut read).unwrap();
                assert_bytes(&read, expected.as_bytes(), (threads, flags));
            }
            drop(to);
            assert!(wait(&mut child).success());
        }
    }
}

/// It ends like other programs by SIGPIPE: at the next write, though the input goes on.
#[test]
fn a_closed_output_ends_it_quietly() {
    for threads in ["1", "2", "4"] {
        let (mut from, mut probe) = pipe().unwrap();
        let mut child = spawn_to(&mut dedup(["--threads", threads]), probe.try_clone().unwrap());
        let mut to = child.stdin.take().unwrap();
        to.write_all(b"a\n").unwrap();
        from.read_exact(&mut [0; 2]).unwrap();
        drop(from);
        // A program that another test starts at this moment holds a copy until it runs.
        while probe.write_all(b"x").is_ok() {
            thread::yield_now();
        }
        to.write_all(b"b\n").unwrap();
        assert_eq!(wait(&mut child).code(), Some(141), "{threads}");
        assert_eq!(Run::end(child).errors, "");
    }
    // Likewise in the middle of much output.
    let folder = Folder::new();
    let (file, state) = (folder.file("input", numbers(0, 300_000)), folder.path("state"));
    let state_flag = format!("--state={}", state.display());
    for flag in ["--threads=1", "--threads=4", "--exact", &state_flag] {
        let mut child = spawn(dedup([flag]).arg(&file));
        let mut line = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"000000000\n");
        assert_eq!(wait(&mut child).code(), Some(141), "{flag}");
    }
    assert!(!state.exists());
}

/// An error of the output does not wait for more input either.
#[test]
#[cfg(unix)] // A device.
fn a_full_output_ends_it() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        return eprintln!("skipped: no /dev/full");
    };
    let folder = Folder::new();
    let state = folder.path("state");
    for flags in [&["--threads=1"][..], &["--threads=3"], &["--state", utf8(&state)]] {
        let mut child = spawn_to(&mut dedup(flags), full.try_clone().unwrap());
        let mut to = child.stdin.take().unwrap();
        to.write_all(b"a\n").unwrap();
        wait(&mut child);
        Run::end(child).error(&["cannot write the output: No space left"]);
    }
    let mut command = dedup(["--help"]);
    command.stdout(full.try_clone().unwrap());
    Run::of(command.output().unwrap()).error(&["lanebloom: No space left"]);
    let file = folder.file("input", "a\n");
    for flags in [
        &["--count", "--state", utf8(&state)][..],
        &["--exact"],
        &["--exact", "--count"],
    ] {
        let mut command = dedup(flags);
        command.arg(&file).stdout(full.try_clone().unwrap());
        Run::of(command.output().unwrap()).error(&["cannot write the output: No space left"]);
    }
    assert!(!state.exists(), "a state though the output failed");
}

/// The runtime opens `/dev/null` in the place of a closed stdout, so no write fails. What the user
/// sends there on purpose is not an error.
#[test]
#[cfg(unix)] // A shell.
fn a_closed_stdout_is_an_error() {
    let folder = Folder::new();
    let (file, state) = (folder.file("input", "a\n"), folder.path("state"));
    let run = |redirection: &str, args: &[&str]| {
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_lanebloom")]).args(args);
        Run::new(shell.env("LC_ALL", "C"), "a\n")
    };
    let (file, state) = (utf8(&file), utf8(&state));
    let filter = utf8(&folder.path).to_owned() + "/filter";
    for args in [
        &["dedup", "--state", state, file][..],
        &["dedup", "--state", state, "--count", file],
        &["dedup", file],
        &["dedup", "--exact", file],
        &["build", file, "-o", "-"],
        &["plan", "--keys", "1000", "--rate", "0.01"],
        &["completions", "bash"],
        &["--version"],
        &["help", "plan"],
        &["dedup", "--help"],
    ] {
        run(">&-", args).error(&["stdout is closed"]);
    }
    assert!(!folder.path("state").exists(), "a state of lines that went nowhere");

    // A command that writes nothing needs no stdout.
    run(">&-", &["build", file, "-o", &filter]).output();
    run(">&-", &["query", "--quiet", &filter, file]).output();
    for args in [&["query", &filter, file][..], &["info", &filter]] {
        run(">&-", args).error(&["stdout is closed"]);
    }
    for redirection in [">/dev/null", "1<>/dev/null"] {
        run(redirection, &["dedup", "--state", state, file]).output();
        assert!(folder.path("state").exists());
        fs::remove_file(state).unwrap();
    }
}
