//! Lines of all kinds, from files and stdin, on several threads.

use super::*;
use std::fs::File;

/// Lines longer than any buffer, which a pipe gives in small pieces.
#[test]
fn long_lines() {
    let long = vec![b'l'; 3_000_000];
    let mut longer = long.clone();
    longer.push(b'l');
    let input = [&long[..], b"\n", &longer, b"\nshort\n", &longer, b"\nshort\n", &long].concat();
    let expected = &input[..2 * long.len() + 9];
    let folder = Folder::new();
    let file = folder.file("long", &input);
    for flags in [SURE, &["--exact"]] {
        for threads in ["1", "3"] {
            let mut command = dedup(flags);
            command.args(["--threads", threads]);
            assert_bytes(&Run::new(&mut command, &input).output(), expected, flags);
            assert_bytes(&Run::new(command.arg(&file), "").output(), expected, flags);
        }
    }
}

#[test]
fn small_inputs() {
    for (input, expected) in [
        ("", ""),
        ("\n", "\n"),
        ("\n\n\n", "\n"),
        ("a", "a"),
        ("a\na", "a\n"),
        ("a\n\na\n\nb", "a\n\nb"),
        ("a\r\na\na\r\n", "a\r\n"),
        // One carriage return ends a line, at the end of the input too.
        ("a\na\r\r\na\r\nb\nb\r", "a\na\r\r\nb\n"),
        ("\r\n\n\r", "\r\n"),
        ("a\0b\na\0b\na\0c\n", "a\0b\na\0c\n"),
        // A byte-order mark does not belong to the first line, but to any other.
        ("\u{feff}a\na\n", "\u{feff}a\n"),
        ("a\n\u{feff}a\na\n", "a\n\u{feff}a\n"),
        ("\u{feff}\n\n", "\u{feff}\n"),
        ("\u{feff}", "\u{feff}"),
        // The first bytes of gzip and zstd, no more.
        ("\x1f\n\x1f\n", "\x1f\n"),
        ("\x1f", "\x1f"),
        ("((\n((\n", "((\n"),
    ] {
        for flags in [&[][..], &["--exact"]] {
            let run = Run::new(&mut dedup(flags), input);
            let [lines, unique, dropped] = summary(&run.errors);
            assert_eq!(lines, split(input.as_bytes(), b'\n').count() as u64, "{input:?}");
            assert_eq!(unique, split(expected.as_bytes(), b'\n').count() as u64, "{input:?}");
            assert_eq!(dropped, lines - unique, "{input:?}");
            assert_bytes(&run.output(), expected.as_bytes(), (input, flags));
        }
    }
    // The case of letters of ASCII alone can be ignored.
    let input = "\u{e4}\n\u{c4}\nk\n\u{212a}\nK\n";
    let output = Run::new(&mut dedup(["--ignore-case"]), input).output();
    assert_eq!(output, "\u{e4}\n\u{c4}\nk\n\u{212a}\n".as_bytes());
    let bytes = b"(\xb5/\n(\xb5/\n\xff\xfe\n\xff\xfe\n";
    assert_bytes(
        &Run::new(&mut dedup::<&str>([]), bytes).output(),
        b"(\xb5/\n\xff\xfe\n",
        "",
    );
}

/// A file that has nothing else is empty, and no key has one.
#[test]
fn byte_order_marks() {
    let folder = Folder::new();
    let texts = ["\u{feff}2\t{\"a\":1}\n1\n", "\u{feff}2\t{\"a\":1}\r\n\u{feff}3\n"];
    let files = [0, 1].map(|at| folder.file(&at.to_string(), texts[at]));
    let expected = "\u{feff}2\t{\"a\":1}\n1\n\u{feff}3\n";
    // A file that has nothing else is empty.
    let only = folder.file("only", "\u{feff}");
    for flags in [SURE, &["--exact"], &["--field=1"], &["--trim"]] {
        let run = Run::new(dedup(flags).args([&only, &files[0], &only, &files[1], &only]), "");
        assert_eq!(summary(&run.errors)[0], 4, "{flags:?}");
        assert_bytes(&run.output(), &expected.as_bytes()[3..], flags);
    }
    let filter = folder.path("filter");
    let built = Run::new(lanebloom().args(["build", "-o"]).args([&filter, &files[0]]), "");
    assert!(built.errors.starts_with("2 lines"));
    let query = Run::new(lanebloom().arg("query").arg(&filter), "2\t{\"a\":1}\n");
    assert!(query.output().starts_with(b"present"));
    let query = Run::new(lanebloom().arg("query").arg(&filter).args(&files), "");
    let found = "present\t2\t{\"a\":1}\npresent\t1\npresent\t2\t{\"a\":1}\r\nabsent\t\u{feff}3\n";
    assert_bytes(&query.output, found.as_bytes(), "");
}

/// A pipe, a file by redirection, its rest from the position of the shell on, and `-` among files.
#[test]
fn stdin() {
    let folder = Folder::new();
    let input = Random(7).lines(2000, b'\n');
    let file = folder.file("input", &input);
    for flags in [SURE, &["--exact"]] {
        assert_bytes(&Run::new(&mut dedup(flags), &input).output(), &unique(&input), flags);
        for dash in [&[][..], &["-"]] {
            let output = dedup(flags)
                .args(dash)
                .stdin(File::open(&file).unwrap())
                .output()
                .unwrap();
            assert!(output.status.success());
            assert_bytes(&output.stdout, &unique(&input), flags);
        }

        let (first, last) = (folder.file("first", "a\nb"), folder.file("last", "c\nd\nb\n"));
        let run = Run::new(dedup(flags).arg(&first).arg("-").arg(&last), "c\na\ne");
        assert_eq!(run.output(), b"a\nb\nc\ne\nd\n");
        // The second time it is at its end.
        let run = Run::new(dedup(flags).args(["-", "-"]).arg(&first), "x\nx\na\n");
        assert_eq!(run.output(), b"x\na\nb");

        // The rest of a file.
        let mut rest = File::open(&last).unwrap();
        rest.read_exact(&mut [0; 2]).unwrap();
        let output = dedup(flags).stdin(rest).output().unwrap();
        assert_eq!(output.stdout, b"d\nb\n", "{flags:?}");
    }
}

/// The kernel makes them while they are read.
#[test]
fn files_without_a_size() {
    let path = "/proc/version";
    let Ok(bytes) = fs::read(path) else {
        return eprintln!("skipped: no {path}");
    };
    for flags in [&[][..], &["--exact"]] {
        assert_bytes(&Run::new(dedup(flags).args([path, path]), "").output(), &bytes, flags);
    }
}

/// Counts as `uniq -c` does for sorted lines, but in the order of their first occurrences.
#[test]
fn counts_of_each_line() {
    let folder = Folder::new();
    // Lines without a key count as one each; the lines of several inputs together.
    let (a, b) = (folder.file("a", "1\tx\n2\n3\tx\n2\n"), folder.file("b", "4\tx\n5\ty"));
    let run = Run::new(dedup(["--count-each", "--field=2"]).args([&a, &b]), "");
    assert_eq!(summary(&run.errors), [6, 4, 2]);
    let expected = "      3 1\tx\n      1 2\n      1 2\n      1 5\ty";
    assert_bytes(&run.output(), expected.as_bytes(), "");
    let to = folder.path("to");
    Run::new(
        dedup(["--count-each", "--field=2", "--output-dir"]).args([&to, &a, &b]),
        "",
    )
    .output();
    assert_eq!(
        fs::read_to_string(to.join("a")).unwrap(),
        "      3 1\tx\n      1 2\n      1 2\n"
    );
    assert_eq!(fs::read_to_string(to.join("b")).unwrap(), "      1 5\ty");
    for flag in ["--count", "--in-place", "-d", "--state=s"] {
        Run::new(&mut dedup(["--count-each", flag]), "").error(&["--count-each", "cannot be used with"]);
    }
    let text = ["--count-each cannot be used with --csv", "part of the first column"];
    Run::new(&mut dedup(["--count-each", "--csv=a"]), "a\n1\n").error(&text);
}

/// The filter grows by what it reads, so none of these shapes may exhaust its rate: new lines only
/// at the end of a file, or few bytes that unpack to many lines.
#[test]
fn growth_follows_the_input() {
    let folder = Folder::new();
    let mut skewed = b"the same line again and again, so that there is nothing to grow for\n".repeat(30_000);
    skewed.extend_from_slice(&numbers(0, 2 * many().min(1_000_000)));
    let file = folder.file("skewed", &skewed);
    let count = 2 * many().min(1_000_000) + 1;
    for flags in [&["--threads", "1"][..], &["--exact"], &["--rate", "1e-9"]] {
        let run = Run::new(dedup(flags).arg("--count").arg(&file), "");
        let unique = summary(&run.errors)[1];
        assert!((count - 20..=count).contains(&unique), "{flags:?} {}", run.errors);
        run.output();
    }
}

/// Its lines end in the middle of a letter, and no key in it is that of a text in UTF-8.
#[test]
fn text_in_utf16_is_refused() {
    let folder = Folder::new();
    for order in [u16::to_le_bytes, u16::to_be_bytes] {
        let bytes = Vec::from_iter("\u{feff}k,v\r\n1,2\r\n1,3\r\n".encode_utf16().flat_map(order));
        let file = folder.file("file", &bytes);
        for flags in [
            SURE,
            &["--exact"],
            &["--csv=k"],
            &["--json=/k"],
            &["--field=1"],
            &["--count-each"],
        ] {
            let parts = ["begins like text in UTF-16", "`iconv -f UTF-16 -t UTF-8`"];
            let output = Run::new(dedup(flags).arg(&file), "").error(&[utf8(&file), parts[0], parts[1]]);
            assert_bytes(&output, b"", flags);
            Run::new(&mut dedup(flags), &bytes).error(&["stdin", parts[0]]);
        }
        let filter = folder.path("filter");
        Run::new(lanebloom().args(["build", "-o"]).args([&filter, &file]), "").error(&["UTF-16"]);
        Run::new(&mut dedup(["--files-from", "-"]), &bytes).error(&["the list of files stdin", "UTF-16"]);
        // Lines that end with zeros may be anything, and so may a later line.
        assert_bytes(
            &Run::new(dedup(SURE).arg("-z"), b"\xff\xfe\0").output(),
            b"\xff\xfe\0",
            "",
        );
        let later = [b"a\n", &bytes[..2], b"\n"].concat();
        assert_bytes(&Run::new(&mut dedup(SURE), &later).output(), &later, "");
    }
}

/// A log whose bytes were copied away is such a file: the rest was not read. The output's pipe is
/// full until this test reads it, so the run waits far before the end of the file.
#[test]
fn a_file_that_becomes_shorter_is_an_error() {
    let folder = Folder::new();
    let input = numbers(0, 500_000);
    for (flags, is_stdin) in [
        (&["--threads=1"][..], false),
        (&["--threads=4"], false),
        (&["--threads=1"], true),
        (&["--exact", "--threads=1"], false),
    ] {
        let path = folder.file("input", &input);
        let mut command = dedup(flags);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if is_stdin {
            command.stdin(fs::File::open(&path).unwrap());
        } else {
            command.stdin(Stdio::null()).arg(&path);
        }
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(20)
            .unwrap();
        let name = if is_stdin { "stdin" } else { utf8(&path) };
        let output = Run::end(child).error(&[name, "changed during the run"]);
        assert!(input[1..].starts_with(&output) && output.len() < 4_000_000);
    }
    // A file that grows is read as far as it goes.
    let path = folder.file("input", &input);
    let mut child = spawn(dedup(SURE).arg("--threads=1").arg(&path));
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let more = fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"more\n");
    more.unwrap();
    assert_bytes(&Run::end(child).output()[..], &[&input[1..], b"more\n"].concat(), "");
}
