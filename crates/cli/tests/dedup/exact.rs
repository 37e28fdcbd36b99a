//! `--exact`: nothing but duplicates is dropped, whatever the filters say. (Most tests of other
//! modules run with this flag too.)

use super::*;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::time::{Duration, Instant};

/// A rate at which most keys become candidates, which are compared.
const WEAK: &[&str] = &["--exact", "--rate", "0.5"];

#[test]
fn no_new_line_is_dropped_however_weak_the_filter() {
    // So many that the bits of a hash which a place has beside it are often those of another key.
    let lines = many().max(1_000_000);
    let input = numbers(0, lines);
    let run = Run::new(&mut dedup(WEAK), &input);
    assert_eq!(summary(&run.errors), [lines, lines, 0]);
    assert_bytes(&run.output(), &input, "");
}

/// Keys longer than 64 KiB are not kept in memory; they are read again from the files, also from
/// the end of a file without a final line feed. A carriage return at the end is a part of the key.
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
            .map(|_| long(70_000 + random.below(3), *random.pick(b"xyz\r")))
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
        let mut child = spawn(dedup(["--exact", "--threads", "1"]).arg(&path));
        let mut first = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        let mut file = File::options().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(input.len() as u64 - 10)).unwrap();
        change(&mut file);
        let run = Run::end(child);
        if is_fine {
            assert_bytes(&run.output(), &input[1..], "");
        } else {
            run.error(&["changed"]);
        }
    }
}

/// A line that the second pass has read is read again to be compared. The test changes it in
/// between: in place, or by another file in its place.
#[test]
fn changes_after_the_second_pass_read_it() {
    let folder = Folder::new();
    // Longer than the keys in memory. The output's pipe is full before the line comes again.
    let long = |letter: u8| [&[letter; 70_000][..], b"\n"].concat();
    let input = [long(b'A'), long(b'B'), numbers(0, 30_000), long(b'A')].concat();
    let expected = &input[..input.len() - long(b'A').len()];
    type Change = fn(&Path, &[u8]);
    let in_place: Change = |path, _| {
        let mut file = File::options().write(true).open(path).unwrap();
        file.write_all(b"B").unwrap();
    };
    let swapped: Change = |path, input| {
        let mut file = File::options().write(true).open(path).unwrap();
        let (first, second) = input[..2 * 70_001].split_at(70_001);
        file.write_all(&[second, first].concat()).unwrap();
    };
    let another: Change = |path, input| {
        let new = path.with_extension("new");
        let mut changed = input.to_vec();
        changed[0] = b'B';
        fs::write(&new, changed).unwrap();
        fs::rename(new, path).unwrap();
    };
    // A line more, for example of a log; and other times.
    let append: Change = |path, _| {
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(b"one more\n").unwrap();
    };
    let rewrite: Change = |path, input| {
        let mut file = File::options().write(true).open(path).unwrap();
        file.write_all(&input[..10]).unwrap();
    };
    // With many other files, each file is opened when it is read.
    let others: Vec<PathBuf> = (0..40).map(|n| folder.file(&n.to_string(), format!("{n}\n"))).collect();
    let before = (0..40).map(|n| format!("{n}\n")).collect::<String>();
    let path = folder.path("input");
    for (others, before) in [(&[][..], ""), (&others, &before)] {
        let is_open = others.is_empty();
        // A file that is open is still the old one.
        let changed = Some("changed during the run");
        let moved = (!is_open).then_some("another file has its name");
        for (change, error) in [
            (in_place, changed),
            (swapped, changed),
            (another, moved),
            (append, None),
            (rewrite, None),
        ] {
            fs::write(&path, &input).unwrap();
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            let mut child = spawn(dedup(["--exact", "--threads", "1"]).args(others).arg(&path));
            // Until the second pass has written the line.
            let mut written = vec![0; before.len() + 1];
            child.stdout.as_mut().unwrap().read_exact(&mut written).unwrap();
            assert_eq!(written.last(), Some(&b'A'));
            change(&path, &input);
            // The file system's clock may be coarse.
            let start = Instant::now();
            while fs::metadata(&path).unwrap().modified().unwrap() == modified {
                assert!(start.elapsed() < Duration::from_secs(60), "its clock stands still");
                thread::sleep(Duration::from_millis(1));
                change(&path, &input);
            }
            let run = Run::end(child);
            if let Some(error) = error {
                run.error(&[utf8(&path), error]);
            } else {
                assert_bytes(&run.output(), &expected[1..], is_open);
            }
        }
    }
}

/// The same as without the flag: more files than the process can have open, plain or compressed.
/// All have long lines, which are read again.
#[test]
#[cfg(unix)] // A limit of the shell.
fn more_files_than_can_be_open() {
    let folder = Folder::new();
    let long = |n: usize| format!("{}{n}\n", "A".repeat(70_000));
    let (mut all, mut files) = (String::new(), Vec::new());
    for n in 0..110 {
        let text = format!("{}{}{n}\n", long(n % 60), long((n * 7) % 60));
        let bytes = if n % 3 == 0 {
            zstd::encode_all(text.as_bytes(), 1).unwrap()
        } else {
            text.clone().into_bytes()
        };
        files.push(folder.file(&n.to_string(), bytes));
        all += &text;
    }
    let with_few = |command: &Command| after("ulimit -n 64", command);
    let expected = unique(all.as_bytes());
    for flags in [SURE, &["--exact"], WEAK, &["--exact", "-i"]] {
        let output = Run::new(&mut with_few(dedup(flags).args(&files)), "").output();
        assert_bytes(&output, &expected, flags);
    }
    // It counts the keys in a first pass.
    let filter = folder.path("filter");
    let mut build = lanebloom();
    build
        .args(["build", "--format", "guava", "-o"])
        .arg(&filter)
        .args(&files);
    Run::new(&mut with_few(&build), "").output();
    assert!(filter.exists());
}

/// The variable that names the folder of temporary files.
const TEMPORARY: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

#[test]
fn temporary_files() {
    let folder = Folder::new();
    let missing = folder.path("missing");
    let input = Random(1200).lines(3000, b'\n');
    let file = folder.file("input", &input);

    // A file needs none, a pipe does, and so do keys that are not as they are in the input.
    let output = Run::new(dedup(["--exact"]).arg(&file).env(TEMPORARY, &missing), "").output();
    assert_bytes(&output, &unique(&input), "");
    let run = Run::new(dedup(["--exact"]).env(TEMPORARY, &missing), &input);
    assert_eq!(run.error(&["stdin", "temporary file", utf8(&missing)]), b"");
    let run = Run::new(dedup(["--exact", "-i"]).arg(&file).env(TEMPORARY, &missing), "");
    assert_eq!(run.error(&["temporary file", utf8(&missing)]), b"");

    #[cfg(unix)]
    no_room_for_temporary_files(&folder);

    // Nothing is left there.
    fs::create_dir(&missing).unwrap();
    Run::new(dedup(["--exact", "-i"]).env(TEMPORARY, &missing), &input).output();
    assert_eq!(fs::read_dir(&missing).unwrap().count(), 0);
}

#[cfg(unix)]
fn no_room_for_temporary_files(folder: &Folder) {
    let more = numbers(0, 100_000);
    let run = Run::new(&mut limited(&dedup(["--exact"]), 100, true), &more);
    assert_eq!(run.error(&["stdin", "temporary file", "File too large"]), b"");
    let long = [vec![b'A'; 200_000], b"\n".to_vec(), vec![b'B'; 200_000]].join(&b'\n');
    let long = folder.file("long", [&long[..], b"\n", &long].concat());
    let run = Run::new(&mut limited(dedup(["--exact", "-i"]).arg(&long), 100, true), "");
    run.error(&["temporary file", "File too large"]);
}
