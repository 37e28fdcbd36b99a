//! Keys that are a part of a line: fields, columns of CSV, values of JSON.

use super::*;

/// Asserts what passes, by the filter and with `--exact`, and how many lines have no key.
#[track_caller]
pub(super) fn passes(flags: &[&str], input: impl AsRef<[u8]>, expected: impl AsRef<[u8]>, missing: u64) {
    for exact in [SURE, &["--exact"]] {
        let mut command = dedup(exact);
        let run = Run::new(command.args(flags).arg("--threads=3"), &input);
        let told = format!(", {missing} of them without a key");
        assert_eq!(run.errors.contains(&told), missing > 0, "{}", run.errors);
        assert_bytes(&run.output(), expected.as_ref(), (exact, flags));
    }
}

#[test]
fn columns_of_csv() {
    cases! { passes:
        // Empty lines within and at the end, and no row at all.
        &["--csv=k"], "k\n\na\n\na\nb\n\n\n", "k\n\na\nb\n\n\n", 0;
        &["--csv=k"], "k\n", "k\n", 0;
        &["--csv=k"], "k", "k", 0;
        &["--csv=k"], "", "", 0;
        // A byte order mark is not part of the first name.
        &["--csv=k"], "\u{feff}k,v\n1,2\n1,3\n\u{feff}1,4\n", "\u{feff}k,v\n1,2\n\u{feff}1,4\n", 0;
    }

    // Columns whose bytes in a row are equal.
    let input = "a,b,v\n\"x,y\",z,1\nx,\"y,z\",2\n\"x,y\",z,3\n\"x\"\"\",\"\n\",4\nx,\"\"\",\n\",5\nx,\"y,z\",6\n";
    let expected = "a,b,v\n\"x,y\",z,1\nx,\"y,z\",2\n\"x\"\"\",\"\n\",4\nx,\"\"\",\n\",5\n";
    passes(&["--csv=a", "--csv=b"], input, expected, 0);

    let run = Run::new(&mut dedup(["--csv=k", "--count"]), "k\na\na\nb\n\n");
    assert_eq!(summary(&run.errors), [5, 4, 1]);
    Run::new(&mut dedup(["--csv=no"]), "a,b\n1,2\n").error(&["stdin", "no column \"no\""]);
    Run::new(&mut dedup(["--csv=3"]), "a,b\n1,2\n").error(&["stdin", "2 columns", "number 3"]);
    Run::new(&mut dedup(["--csv=0"]), "a,b\n1,2\n").error(&["number 0"]);
    Run::new(&mut dedup(["--csv=a"]), "a,b,a\n1,2,3\n").error(&["stdin", "2 columns \"a\"", "number"]);
    Run::new(&mut dedup(["--csv=a", "--csv=c"]), "a,b\n").error(&["no column \"c\""]);
    passes(&["--csv=b", "--csv=3"], "a,b,a\n1,2,3\n4,2,3\n", "a,b,a\n1,2,3\n", 0);
}

/// Rows under another file's header would be in columns of other names.
#[test]
fn headers_of_several_files() {
    let folder = Folder::new();
    let same = [
        folder.file("empty", ""),
        folder.file("first", "id,v\n1,a\n2,b"),
        folder.file("second", "\"id\",v\r\n1,c\r\n3,d\r\n"),
        folder.file("third", "\u{feff}id,v\n3,c\n4,\n"),
    ];
    let first = &same[1];
    for flags in [SURE, &["--exact"]] {
        let run = Run::new(dedup(flags).args(["--csv", "id"]).args(&same), "");
        assert_bytes(&run.output(), b"id,v\n1,a\n2,b\n3,d\r\n4,\n", flags);
        for (text, shown) in [
            ("v,id\nc,1\nd,3\n", "\"v,id\""),
            ("id\r\n3\r\n4\r\n", "\"id\""),
            ("id,v,w\n3,x,y\n", "\"id,v,w\""),
            // The rows of a file without a header.
            ("5,x\n6,y\n", "\"5,x\""),
        ] {
            let other = folder.file("other", text);
            let column = if text.starts_with('5') { "--csv=1" } else { "--csv=id" };
            let run = Run::new(dedup(flags).arg(column).args(&same).arg(&other), "");
            run.error(&[utf8(&other), shown, utf8(first), "\"id,v\"", "--no-header"]);
            let filter = folder.path("filter");
            let build = ["build", column, "-o", utf8(&filter), utf8(first), utf8(&other)];
            Run::new(lanebloom().args(build), "").error(&[utf8(&other), utf8(first)]);
            // With an output for each it does not matter.
            let to = folder.path("to");
            let each = [column, utf8(first), utf8(&other), "--output-dir", utf8(&to)];
            Run::new(dedup(flags).args(each), "").output();
            let kept = fs::read_to_string(to.join("other")).unwrap();
            assert_eq!(kept.lines().next(), text.lines().next(), "{flags:?}");
        }
    }
    // The first header may follow files without a line, and a mark.
    let none = ["", "\u{feff}", "\u{feff}\n"].map(|text| folder.file(&format!("none{}", text.len()), text));
    let rows = [&none[0], &none[1], &same[3], &none[1], &same[1]];
    for flags in [SURE, &["--exact"]] {
        let run = Run::new(dedup(flags).args(["--csv", "id"]).args(rows), "");
        assert_bytes(&run.output(), b"id,v\n3,c\n4,\n1,a\n2,b", flags);
        let files = [first, &none[2], &same[3]];
        let run = Run::new(dedup(flags).args(["--csv", "id"]).args(files), "");
        assert_bytes(&run.output(), b"id,v\n1,a\n2,b\n\n3,c\n4,\n", flags);
    }
    let other = folder.file("other", "x,y\n1,2\n");
    Run::new(dedup(["--csv", "id"]).args(&same).arg(&other), "").error(&[utf8(&other), "no column \"id\""]);
    let long = folder.file("long", format!("id,{}\n", "\x1b\u{fc}".repeat(500)));
    let errors = Run::new(dedup(["--csv", "id"]).args(&same).arg(&long), "").errors;
    assert!(errors.contains("\\u{1b}") && errors.len() < 1000, "{errors}");
}

/// The first line of each file is a row.
#[test]
fn csv_without_a_header() {
    let rows = "1,a\n2,b\n1,a\n";
    passes(&["--csv=1", "--no-header"], "", "", 0);
    let folder = Folder::new();
    let files = [("0", "1,a\n2,b\n3,c"), ("1", "4,d\n1,e\n")].map(|(name, text)| folder.file(name, text));
    let filter = folder.path("filter");
    let build = |more: &[&str]| {
        let args = [
            "build",
            "--csv=1",
            "-o",
            utf8(&filter),
            utf8(&files[0]),
            utf8(&files[1]),
        ];
        Run::new(lanebloom().args(args).args(more), "")
    };
    build(&[]).error(&[utf8(&files[1]), utf8(&files[0])]);
    assert!(build(&["--no-header"]).errors.starts_with("5 lines, about 4 unique"));
    Run::new(&mut dedup(["--csv=id", "--no-header"]), rows).error(&["--csv id: with --no-header", "number"]);
    Run::new(&mut dedup(["--csv=0", "--no-header"]), rows).error(&["--csv 0: with --no-header"]);
    Run::new(&mut dedup(["--no-header"]), rows).error(&["--no-header", "--csv"]);
}

#[test]
fn an_open_quote_is_an_error() {
    let folder = Folder::new();
    for (input, line) in [
        ("k,v\n1,2\n1,\"2\n2,3\n", "line 3"),
        ("k,v\r\n\"1\r\n\",2\r\n\"2\"\"\",\"", "line 4"),
        ("k,\"v", "line 1"),
        ("k\n\"\n", "line 2"),
    ] {
        let file = folder.file("rows", input);
        for flags in [SURE, &["--exact"]] {
            let mut command = dedup(flags);
            command.args(["--csv=k"]);
            Run::new(&mut command, input).error(&["stdin: ", line, "quote"]);
            Run::new(command.arg(&file), "").error(&[utf8(&file), line, "quote"]);
        }
    }
    // The last field is closed, or has a quote that opens nothing.
    for input in ["k\n\"1\"", "k\n1\"", "k\n\"1\"\n\n", "k\n\"\"", "k,v\n\"1\",", "k\n\n"] {
        passes(&["--csv=k"], input, input, 0);
    }
}

/// Its end included, so that a record without one may have a byte more.
#[test]
fn records_have_a_limit() {
    let folder = Folder::new();
    let limited = |flags: &[&str], passing: &str, long: &str, line: &str| {
        let flags = &[&["--max-record=10"], flags].concat()[..];
        passes(flags, passing, passing, 0);
        let all = [passing, long, passing].concat();
        let (all, first) = (folder.file("all", all), folder.file("first", passing));
        let compressed = zstd::encode_all(&fs::read(&all).unwrap()[..], 1).unwrap();
        for exact in [SURE, &["--exact"]] {
            for threads in ["--threads=1", "--threads=3"] {
                let mut command = dedup(exact);
                command.args(flags).arg(threads);
                let parts = |name| [name, line, "than 10 bytes", "--max-record"];
                Run::new(&mut command, &compressed).error(&parts("stdin: "));
                // Each file has lines of its own.
                command.args([&first, &all]);
                Run::new(&mut command, "").error(&parts(&format!("{}: ", utf8(&all))));
            }
        }
    };
    limited(&[], "a\nbbbbbbbbb\n\n", "cccccccccc\n", "line 4 ");
    limited(&["-0"], "a\nb\0bbbbbbbbb\0", "cccccccccc\0", "line 3 ");
    limited(&["--field=2"], "a\tb\na\tcccccc\n", "a\tddddddddd\n", "line 3 ");
    limited(&["--json=/k"], "{\"k\":123}\n", "{\"k\":1234}\n", "line 2 ");
    limited(&["--csv=k"], "k,v\n\"1\n\",\"\"\n", "2,\"\n567\n9\"\n", "line 4 ");
    limited(&["--csv=k"], "k,v\r\n\"1\r\n\",3\r\n", "2,3456789\r\n", "line 4 ");
    passes(&["--max-record=10"], "a\ncccccccccc", "a\ncccccccccc", 0);

    // Beyond the first bytes that are read, and with the limit that holds without the option.
    let lines = numbers(0, 60_000);
    let input = [&lines[..], b"0123456789"].concat();
    for end in ["", "\n", "0123456789".repeat(100_000).as_str()] {
        let run = Run::new(&mut dedup(["--max-record=10"]), [&input, end.as_bytes()].concat());
        if end.is_empty() {
            assert_bytes(&run.output(), &input, "");
        } else {
            run.error(&["line 60001 ", "10 bytes"]);
        }
    }
    let long = [&b"a\nb\n"[..], &vec![b'c'; 64_000_000], b"\n"].concat();
    let long = zstd::encode_all(&long[..], 1).unwrap();
    let run = Run::new(&mut dedup(["--count"]), &long);
    run.error(&["stdin: line 3 is longer than 64000000 bytes", "--max-record"]);
    Run::new(&mut dedup(["--count", "--max-record=64000001"]), &long).output();
}

/// A record is in memory once. The memory of a line is given back.
#[test]
fn memory_for_long_records() {
    let long = "0123456789abcde\t".repeat(2 << 20);
    let csv = |key: u32| format!("{key},\"{long}\"\n");
    let rows: String = (10..100_000).map(|key| format!("{key},\n")).collect();
    let csv = format!("k,v\n{}{}{rows}", csv(1), csv(2));
    let names = format!("k{}\n1\n", ",".repeat(2 << 20));
    // More than is read at a time.
    let short = String::from_utf8(numbers(0, 100_000)).unwrap();
    for (flags, records, is_given_back) in [
        (&[][..], format!("{long}1\n{long}2\n{short}"), true),
        (&["--field=2"], format!("a\t1{long}\na\t2{long}\n"), false),
        (&["--csv=k"], csv, true),
        (&["--csv=k", "--ragged"], names, false),
    ] {
        let mut command = dedup(flags);
        let (output, memory) = memory(command.args(SURE).arg("--threads=1"), records.as_bytes(), records.len());
        assert_bytes(&output, records.as_bytes(), flags);
        let Some(Memory { peak, now }) = memory else {
            return eprintln!("skipped: no /proc tells the memory");
        };
        let most = long.len() as u64 + (24 << 20);
        assert!(peak <= most, "{flags:?}: {peak} bytes, more than {most}");
        assert!(!is_given_back || now <= 24 << 20, "{flags:?}: {now} bytes are left");
    }
}

#[test]
fn values_of_json() {
    let json = |pointer: &str, input: &str, expected: &str, missing| {
        passes(&["--json", pointer], input, expected, missing);
    };
    cases! { json:
        // An index has no sign and no zero before it; an object may have any name.
        "/0", "[1,2,3]\n[1,4]\n{\"0\":1}\n", "[1,2,3]\n", 0;
        "/+1", "[1,2]\n[1,2]\n{\"+1\":1}\n{\"+1\":1}\n", "[1,2]\n[1,2]\n{\"+1\":1}\n", 2;
        "/01", "[1,2]\n[1,2]\n", "[1,2]\n[1,2]\n", 2;
    }
    // The last one counts of members with the same name.
    json(
        "/a/b",
        "{\"a\":{\"b\":1}}\n{\"a\":5,\"a\":{\"b\":2,\"b\":1}}\n{\"a\":{\"b\":1},\"a\":5}\n",
        "{\"a\":{\"b\":1}}\n{\"a\":{\"b\":1},\"a\":5}\n",
        1,
    );
    // Escapes in the text and in the pointer.
    cases! { json:
        "/k", "{\"k\":\"\\u0061\"}\n{\"k\":\"a\"}\n{\"\\u006b\":\"a\"}\n", "{\"k\":\"\\u0061\"}\n", 0;
        "/a~1b/m~0n", "{\"a/b\":{\"m~n\":1}}\n{\"a/b\":{\"m~n\":1,\"x\":0}}\n", "{\"a/b\":{\"m~n\":1}}\n", 0;
        // Objects are equal in any order of their keys. A null is missing, but not within a value.
        "/o", "{\"o\":{\"a\":1,\"b\":[]}}\n{\"o\":{\"b\":[],\"a\":1}}\n", "{\"o\":{\"a\":1,\"b\":[]}}\n", 0;
        "", "null\n null\n\"null\"\n\"null\"\n", "null\n null\n\"null\"\n", 2;
        "", "[1, 2]\n[1,2]\n[2,1]\n\"x\"\n \"x\"\r\n", "[1, 2]\n[2,1]\n\"x\"\n", 0;
    }
    // An object is not a number, whatever the names in it.
    let tokens = "{\"k\":5}\n{\"k\":{\"$serde_json::private::Number\":\"5\"}}\n\
                  {\"k\":{\"$serde_json::private::RawValue\":\"5\"}}\n";
    cases! { json:
        "/k", tokens, tokens, 0;
        "/k/$serde_json::private::Number", "{\"k\":5}\n{\"k\":5}\n", "{\"k\":5}\n{\"k\":5}\n", 2;
    }
    // Lines that are no JSON or have no such value pass.
    let input = "{\"k\":1}\nno\n\n{\"k\":1\n[]\n{\"k\":1}\nno\n{\"k\":1} 2\n";
    json("/k", input, "{\"k\":1}\nno\n\n{\"k\":1\n[]\nno\n{\"k\":1} 2\n", 6);
    let run = Run::new(&mut dedup(["--json=/k", "-d"]), "{\"k\":1}\nno\n{\"k\":1}\n");
    assert!(
        run.errors
            .starts_with("3 lines, 2 unique, 1 of them without a key, 2 dropped"),
        "{}",
        run.errors
    );
    assert_eq!(run.output(), b"{\"k\":1}\n");
}

/// Only the line and its key are in memory, not all of its values.
#[test]
fn memory_for_a_long_line_of_json() {
    let long = |id: u32| format!("{{\"skipped\":[{}0],\"id\":{id}}}\n", "0,".repeat(2 << 20));
    let (first, second) = (long(1), long(2));
    let input = [&first[..], "{\"id\":1}\n", &second, &second].concat();
    let expected = [&first[..], &second].concat();
    let mut command = dedup(["--json=/id", "--threads=1"]);
    let (output, memory) = memory(&mut command, input.as_bytes(), expected.len());
    assert_bytes(&output, expected.as_bytes(), "");
    let Some(Memory { peak, .. }) = memory else {
        return eprintln!("skipped: no /proc tells the memory");
    };
    let most = 2 * first.len() as u64 + (24 << 20);
    assert!(peak <= most, "{peak} bytes, more than {most}");
}
