//! `--exact`: nothing but duplicates is dropped, whatever the filters say. (Most tests of other
//! modules run with this flag too.)

use super::*;
use std::fs::File;
use std::io::{Seek, SeekFrom};

/// A rate at which most keys become candidates, which are compared.
const WEAK: &[&str] = &["--exact", "--rate", "0.5"];

#[test]
fn no_new_line_is_dropped_however_weak_the_filter() {
    let folder = Folder::new();
    for seed in 0..2 * SEEDS {
        let mut random = Random(900 + seed);
        let input = random.lines(20_000, b'\n');
        let file = folder.file("input", &input);
        for more in [&[][..], &["--expected", "10"], &["--threads", "1"], &["--threads", "4"]] {
            let output = Run::new(dedup(WEAK).args(more).arg(&file), "").output();
            assert_bytes(&output, &unique(&input), (seed, more));
        }
        // Keys that are not as they are in the input.
        let (new, old) = reference(&input, b'\n', <[u8]>::to_ascii_lowercase);
        assert_bytes(&Run::new(dedup(WEAK).arg("-i").arg(&file), "").output(), &new, seed);
        assert_bytes(&Run::new(dedup(WEAK).arg("-di"), &input).output(), &old, seed);
    }
    let input = numbers(0, MANY);
    let run = Run::new(&mut dedup(WEAK), &input);
    assert_eq!(summary(&run.errors), [MANY, MANY, 0]);
    assert_bytes(&run.output(), &input, "");
}

/// Keys longer than 64 KiB are not kept in memory; they are read again from the files, also from
/// the end of a file without a final line feed.
#[test]
fn long_keys_are_read_again() {
    let folder = Folder::new();
    let mut random = Random(1000);
    let long = |len: usize, last: u8| {
        let mut line = vec![b'A'; len];
        line.push(last);
        line
    };
    let (mut all, mut files) = (Vec::new(), vec![folder.file("empty", "")]);
    for number in 0..6 {
        let lines: Vec<Vec<u8>> = (0..20)
            .map(|_| long(70_000 + random.below(3), *random.pick(b"xyz")))
            .collect();
        let bytes = lines.join(&b'\n');
        all.extend_from_slice(&bytes);
        all.push(b'\n');
        files.push(folder.file(&number.to_string(), bytes));
        files.push(folder.file(&format!("empty {number}"), ""));
    }
    let compare = |flags: &[&str], expected: &[u8]| {
        for weak in [&["--exact"][..], WEAK] {
            let output = Run::new(dedup(weak).args(flags).args(&files), "").output();
            assert_bytes(&output, expected, (weak, flags));
            let output = Run::new(dedup(weak).args(flags), &all).output();
            assert_bytes(&output, expected, (weak, flags));
        }
    };
    compare(&[], &unique(&all));
    compare(&["-i"], &unique(&all));

    compare(&["--field=1", "--delimiter=x"], &reference_field(&all, b'x'));
}

fn reference_field(bytes: &[u8], delimiter: u8) -> Vec<u8> {
    let key = |line: &[u8]| line.split(|&byte| byte == delimiter).next().unwrap().to_vec();
    reference(bytes, b'\n', key).0
}

/// More keys than the memory for them takes, so that some are read again from the input.
#[test]
fn many_keys_are_read_again() {
    let lines: Vec<String> = (0..60_000).map(|n| format!("{n:0600}")).collect();
    let once = lines.join("\n") + "\n";
    let twice = [once.as_bytes(), once.as_bytes()].concat();
    let folder = Folder::new();
    let file = folder.file("input", &twice);
    for flags in [&[][..], &["-i"]] {
        let output = Run::new(dedup(["--exact"]).args(flags).arg(&file), "").output();
        assert_bytes(&output, once.as_bytes(), flags);
    }
}

#[test]
fn as_sort_and_awk() {
    let folder = Folder::new();
    for seed in 0..4 {
        let mut random = Random(1100 + seed);
        let mut line = || -> String {
            (0..random.below(6))
                .map(|_| *random.pick(b"abcXYZ 09") as char)
                .collect()
        };
        let input = (0..3000).map(|_| line() + "\n").collect::<String>();
        let file = folder.file("input", &input);
        let output = Run::new(dedup(["--exact"]).arg(&file), "").output();
        let run = |tool: &str, args: &[&str], stdin: &[u8]| {
            Run::new(Command::new(tool).args(args).env("LC_ALL", "C"), stdin).output()
        };
        if has("sort") {
            let sorted = run("sort", &["-u"], input.as_bytes());
            assert_bytes(&run("sort", &[], &output), &sorted, seed);
        }
        if has("awk") {
            assert_bytes(&output, &run("awk", &["!seen[$0]++"], input.as_bytes()), seed);
        }
    }
}

/// A file that changes between the passes. The output's pipe is full until this test reads it, so
/// the second pass has begun, and waits far before the end of the file.
#[test]
fn changes_during_the_run() {
    let folder = Folder::new();
    let input = numbers(0, 500_000);
    let path = folder.path("input");
    type Change = fn(&mut File);
    let changes: [(Change, bool); 3] = [
        (|file| file.write_all(b"something").unwrap(), false),
        (|file| file.set_len(4_000_000).unwrap(), false),
        // Only what was there at the beginning counts.
        (
            |file| {
                file.seek(SeekFrom::End(0)).unwrap();
                file.write_all(b"one more\n").unwrap();
            },
            true,
        ),
    ];
    for (change, is_fine) in changes {
        fs::write(&path, &input).unwrap();
        let mut child = dedup(["--exact", "--threads", "1"])
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        let mut file = File::options().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(input.len() as u64 - 10)).unwrap();
        change(&mut file);
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        if is_fine {
            assert!(output.status.success(), "{errors}");
            assert_bytes(&output.stdout, &input[1..], "");
        } else {
            assert_eq!(output.status.code(), Some(2), "{errors}");
            assert!(errors.contains("changed"), "{errors}");
        }
    }
}

#[test]
fn temporary_files() {
    let folder = Folder::new();
    let missing = folder.path("missing");
    let input = Random(1200).lines(3000, b'\n');
    let file = folder.file("input", &input);

    // A file needs none, a pipe does, and so do keys that are not as they are in the input.
    let output = Run::new(dedup(["--exact"]).arg(&file).env("TMPDIR", &missing), "").output();
    assert_bytes(&output, &unique(&input), "");
    let run = Run::new(dedup(["--exact"]).env("TMPDIR", &missing), &input);
    assert_eq!(run.error(&["stdin", "temporary file", utf8(&missing)]), b"");
    let run = Run::new(dedup(["--exact", "-i"]).arg(&file).env("TMPDIR", &missing), "");
    assert_eq!(run.error(&["temporary file", utf8(&missing)]), b"");

    // No room in it.
    let more = numbers(0, 100_000);
    let run = Run::new(&mut limited(&dedup(["--exact"]), 100, true), &more);
    assert_eq!(run.error(&["stdin", "temporary file", "File too large"]), b"");
    let long = [vec![b'A'; 200_000], b"\n".to_vec(), vec![b'B'; 200_000]].join(&b'\n');
    let long = folder.file("long", [&long[..], b"\n", &long].concat());
    let run = Run::new(&mut limited(dedup(["--exact", "-i"]).arg(&long), 100, true), "");
    run.error(&["temporary file", "File too large"]);

    // Nothing is left there.
    fs::create_dir(&missing).unwrap();
    Run::new(dedup(["--exact", "-i"]).env("TMPDIR", &missing), &input).output();
    assert_eq!(fs::read_dir(&missing).unwrap().count(), 0);
}
