//! Wrong command lines and unreadable input: each message names what is wrong.

use super::*;
use serde_json::json;

#[test]
fn bad_flags_and_values() {
    for (args, parts) in [
        (&["--expected", "many"][..], &["--expected", "many", "10M"][..]),
        (&["--expected", "0"], &["'0'", "from 1"]),
        (&["--expected", "1.5"], &["'1.5'", "whole number"]),
        (&["--expected", "1e16"], &["'1e16'", "1e15"]),
        (&["--expected", ""], &["--expected"]),
        (&["--expected", "1\u{20ac}"], &["1\u{20ac}"]),
        (&["--rate", "0"], &["'0'", "1e-12"]),
        (&["--rate", "51%"], &["'51%'", "0.5"]),
        (&["--rate", "nan"], &["'nan'"]),
        (&["--rate", "low"], &["'low'", "1e-6"]),
        (&["--threads", "0"], &["'0'", "1 to 256"]),
        (&["--threads", "257"], &["'257'"]),
        (&["--field", "0"], &["'0'", "from 1"]),
        (&["--field", "x"], &["'x'"]),
        (&["--delimiter", "ab", "--field", "1"], &["'ab'", "single byte"]),
        (&["--delimiter", "\u{e4}", "--field", "1"], &["single byte"]),
        (&["--delimiter", ","], &["--field", "--csv"]),
        (&["--json", "k"], &["'k'", "slash"]),
        (&["--field", "1", "--csv", "1"], &["--field", "--csv"]),
        (&["--field", "1", "--json", "/a"], &["--field", "--json"]),
        (&["--csv", "1", "--json", "/a"], &["--csv", "--json"]),
        (&["--csv", "1", "-0"], &["--csv", "--null"]),
        (&["--csv", "1", "--quotes", "maybe"], &["maybe", "yes", "no"]),
        (&["--field", "1", "--quotes", "no"], &["--quotes", "--field"]),
        (&["--field", "1,0"], &["'0'", "from 1"]),
        (&["--blanks"], &["--field"]),
        (
            &["--blanks", "--field", "1", "--delimiter", ","],
            &["--blanks", "--delimiter"],
        ),
        (&["--trim", "--json", "/a"], &["--trim", "--json"]),
        (&["--csv", "1", "--blanks"], &["--csv", "--blanks"]),
        (&["--json", "/a", "--blanks"], &["--json", "--blanks"]),
        (&["--field", "1", "--no-header"], &["--field", "--no-header"]),
        (&["--json", "/a", "--no-header"], &["--json", "--no-header"]),
        (&["--field", "1", "--ragged"], &["--field", "--ragged"]),
        (&["--json", "/a", "--quotes", "no"], &["--json", "--quotes"]),
        (&["--exact", "--state", "s"], &["--exact", "--state"]),
        (&["--colour"], &["--colour"]),
        (&["-u"], &["'-u'", "`sort -u`", "--count-each"]),
        (&["-cf1"], &["'-f'", "--field K"]),
        (&["-F,"], &["'-F'", "--delimiter D", "--blanks"]),
        (&["--state"], &["--state"]),
    ] {
        let run = Run::new(&mut dedup(args), "a\n");
        assert!(run.errors.contains("--help"), "{}", run.errors);
        assert_eq!(run.error(parts), b"", "{args:?}");
    }
    for args in [&[][..], &["dedupe"], &["--state", "x"]] {
        let run = Run::new(lanebloom().args(args), "");
        assert_eq!(run.status.code(), Some(2));
        assert!(run.errors.contains("Usage"), "{}", run.errors);
    }
    // A filter that no machine has the memory for.
    Run::new(&mut dedup(["--expected", "1e15"]), "a\n").error(&["1000000000000000 keys"]);
}

#[test]
fn rates_and_numbers_in_all_notations() {
    for args in [
        "--rate=1%",
        "--rate=0.5",
        "--rate=50%",
        "--rate=1e-12",
        "--expected=1k",
        "--expected=1.5K",
    ] {
        assert_eq!(Run::new(&mut dedup([args]), "a\na\n").output(), b"a\n", "{args}");
    }
}

#[test]
fn unreadable_input() {
    let folder = Folder::new();
    let good = folder.file("good", "a\nb\n");
    let missing = folder.path("missing");
    for flags in [&[][..], &["--exact"]] {
        let error = |file: &Path, part: &str| {
            let output = Run::new(dedup(flags).arg(&good).arg(file), "").error(&[utf8(file), part]);
            // The output before the error is whole.
            assert!([&b"a\nb\n"[..], b""].contains(&&output[..]));
        };
        error(&missing, NO_FILE);
        error(&good.join("x"), NO_FOLDER);
        #[cfg(unix)]
        unreadable_on_unix(&folder, flags, error);
    }
}

/// Windows gives no file such permissions, and opens no folder.
#[cfg(unix)]
fn unreadable_on_unix(folder: &Folder, flags: &[&str], error: impl Fn(&Path, &str)) {
    use std::os::unix::fs::PermissionsExt;
    let secret = folder.file("secret", "a\n");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&secret).is_ok() {
        eprintln!("skipped: this user may read every file");
    } else {
        error(&secret, "Permission denied");
    }
    let stdin = fs::File::open(&folder.path).unwrap();
    Run::of(dedup(flags).stdin(stdin).output().unwrap()).error(&["cannot read stdin"]);
}

/// Reading would not end: each record that is written is read again.
#[test]
fn the_output_is_no_input() {
    let folder = Folder::new();
    let file = folder.file("lines", "a\na\nb\n");
    let open = |appends: bool| fs::File::options().read(!appends).append(appends).open(&file).unwrap();
    for flags in [&[][..], &["-d"], &["--exact"], &["--exact", "-d"]] {
        let by_name = dedup(flags).arg(&file).stdout(open(true)).output().unwrap();
        let by_stdin = dedup(flags).stdin(open(false)).stdout(open(true)).output().unwrap();
        for (output, name) in [(by_name, utf8(&file)), (by_stdin, "stdin")] {
            Run::of(output).error(&[name, "also the output"]);
            assert_eq!(fs::read(&file).unwrap(), b"a\na\nb\n", "{flags:?}");
        }
    }
}

#[test]
fn a_summary_and_nothing_else() {
    let input = "a\nb\na\n";
    let run = Run::new(&mut dedup::<&str>([]), input);
    let line = run.errors.strip_suffix('\n').unwrap();
    assert!(!line.contains(['\n', '\r', '\x1b']), "{line:?}");
    assert!(line.starts_with("3 lines, 2 unique, 1 dropped, 0.00 of them expected to be wrongly dropped, "));
    assert!(line.contains(", a filter of ") && line.ends_with(" s"), "{line}");
    run.output();
    // Statistics that few lines, or none, give a meaning.
    let summary = |command: &mut Command| Run::new(command, "").errors;
    let text = summary(&mut dedup::<&str>([]));
    let memory =
        text.strip_prefix("0 lines, 0 unique, 0 dropped, 0.00 of them expected to be wrongly dropped, a filter of ");
    let (memory, _) = memory.unwrap_or_else(|| panic!("{text}")).split_once(" KiB, ").unwrap();
    assert!((200.0..400.0).contains(&memory.parse().unwrap()), "{text}");
    let text = summary(lanebloom().args(["build", "-o", "-"]));
    assert!(text.starts_with("0 lines, about 0 unique, 1 filter of "), "{text}");
    assert!(text.contains(" KiB, rate 0, ") && !text.contains("per key"), "{text}");

    let run = Run::new(&mut dedup(["--exact"]), input);
    assert!(
        run.errors.starts_with("3 lines, 2 unique, 1 dropped, none wrongly"),
        "{}",
        run.errors
    );
    for (flags, output) in [
        (&["--quiet"][..], "a\nb\n"),
        (&["-q", "--exact"], "a\nb\n"),
        (&["-q", "-c"], "2\n"),
    ] {
        let run = Run::new(&mut dedup(flags), input);
        assert_eq!((&run.errors[..], &run.output[..]), ("", output.as_bytes()));
    }
    // Errors come with --quiet too.
    Run::new(&mut dedup(["-q", "missing/file"]), "").error(&["missing/file"]);
}

#[test]
fn a_summary_for_programs() {
    let folder = Folder::new();
    let (file, filter) = (folder.file("file", "a\tx\nb\ta\nb\n"), folder.path("filter"));
    let summary = |args: &[&str]| -> serde_json::Value {
        let run = Run::new(lanebloom().args(args).arg("--json-summary"), "");
        let line = run.errors.strip_suffix('\n').unwrap();
        assert!(!line.contains('\n'), "{line}");
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let (file, filter) = (utf8(&file), utf8(&filter));
    let has = |args: &[&str], expected: serde_json::Value| {
        let value = summary(args);
        for (name, expected) in expected.as_object().unwrap() {
            assert_eq!(value[name], *expected, "{name} of {value}");
        }
        value
    };
    let expected = json!({"lines": 3, "unique": 3, "without_key": 1, "dropped": 0});
    let value = has(&["dedup", "--field=2", file], expected);
    assert!(value["wrongly_dropped_expected"].as_f64().unwrap() < 1e-6, "{value}");
    assert!(
        value["memory_bytes"].as_u64().unwrap() > 100_000 && value["seconds"].is_f64(),
        "{value}"
    );
    let expected = json!({"dropped": 1, "wrongly_dropped_expected": 0});
    let value = has(&["dedup", "--exact", "--field=1", file], expected);
    assert!(value["candidates"].as_u64().unwrap() >= 1, "{value}");
    let expected = json!({"lines": 3, "unique_estimated": 2, "filters": 1});
    let value = has(&["build", "--field=1", file, "-o", filter], expected);
    assert!(
        value["rate"].as_f64().unwrap() < 1e-6 && value["memory_bytes"].is_u64(),
        "{value}"
    );
    let expected = json!({"lines": 3, "present": 1, "absent": 1, "without_key": 1});
    has(&["query", "--field=2", filter, file], expected);
    let copy = utf8(&folder.path).to_owned() + "/copy";
    let expected = json!({"files": 2, "kind": "ConcurrentBloom", "keys_estimated": 2});
    has(&["merge", filter, filter, "-o", &copy], expected);
    has(
        &["convert", filter, "-o", &copy, "--to=lanebloom"],
        json!({"keys_estimated": 2}),
    );
    let quiet = Run::new(&mut dedup(["--json-summary", "-q", file]), "");
    assert_eq!(quiet.errors, "");
}

/// A closed or full stderr changes no result.
#[test]
#[cfg(unix)] // A device.
fn stderr_may_be_full() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        return eprintln!("skipped: no /dev/full");
    };
    let folder = Folder::new();
    let file = folder.file("input", "a\na\n");
    let output = dedup([&file]).stderr(full.try_clone().unwrap()).output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"a\n"[..]));
    let output = dedup(["missing"]).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn colours_only_on_a_terminal() {
    for (name, value) in [("NO_COLOR", "1"), ("COLORTERM", "truecolor"), ("TERM", "dumb")] {
        for args in [&["dedup", "--help"][..], &["dedup", "--no"], &["--help"]] {
            let run = Run::new(lanebloom().args(args).env(name, value), "");
            let text = [String::from_utf8(run.output).unwrap(), run.errors].concat();
            assert!(!text.is_empty() && !text.contains('\x1b'), "{text:?}");
        }
    }
}
