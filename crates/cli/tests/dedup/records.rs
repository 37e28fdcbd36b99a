//! Keys that are a part of a line: fields, columns of CSV, values of JSON.

use super::*;

/// Asserts what passes, by the filter and with `--exact`, and how many lines have no key.
#[track_caller]
pub(super) fn passes(flags: &[&str], input: impl AsRef<[u8]>, expected: impl AsRef<[u8]>, missing: u64) {
    for exact in [SURE, &["--exact"]] {
        for threads in ["1", "3"] {
            let mut command = dedup(exact);
            let run = Run::new(command.args(flags).args(["--threads", threads]), &input);
            let told = format!(", {missing} of them without a key");
            assert_eq!(run.errors.contains(&told), missing > 0, "{}", run.errors);
            assert_bytes(&run.output(), expected.as_ref(), (exact, flags));
        }
    }
}

#[test]
fn fields() {
    cases! { passes:
        &["--field", "2"], "1\ta\n2\ta\n3\tb\n", "1\ta\n3\tb\n", 0;
        &["--field=1"], "a\t1\na\t2\nb\na\nb\t\n", "a\t1\nb\n", 0;
        &["--field=3", "--delimiter=,"], "1,2,x\n3\n1,2,x,4\n3\n5,6,\n,,\n", "1,2,x\n3\n3\n5,6,\n", 2;
        &["--field=2", "--delimiter", "\\t", "-i"], "1\tA\n2\ta\n", "1\tA\n", 0;
        &["--field=2", "--delimiter= ", "-0"], "1 a\n\x002 a\n\x003 a\0", "1 a\n\x003 a\0", 0;
        // Two delimiters in a row have an empty field between them; the carriage return is in none.
        &["--field=2", "--delimiter=;"], ";;\n1;;2\n;\r\n;", ";;\n", 0;
        &["--field=9", "-d"], "a\nb\na\n", "", 3;
    }

    for seed in 0..8 {
        let input = Random(300 + seed).lines(400, b'\n');
        let (new, _) = reference(&input, b'\n', |line| {
            let mut fields = line.split(|&byte| byte == b'a');
            fields.next().unwrap().to_vec()
        });
        passes(&["--field=1", "--delimiter=a"], &input, new, 0);
    }
}

/// Parts that differ make different keys, though all their bytes in a row are equal.
#[test]
fn keys_of_several_parts() {
    let input = "a\tbc\t1\nab\tc\t1\na\tbc\t2\na\n";
    passes(&["--field=1,2"], input, "a\tbc\t1\nab\tc\t1\na\n", 1);
    passes(&["--field", "1", "--field", "2"], input, "a\tbc\t1\nab\tc\t1\na\n", 1);
    passes(&["--field=3,1"], input, input, 1);
    passes(&["--field=3"], input, "a\tbc\t1\na\tbc\t2\na\n", 1);
    let input = "a,b,v\n\"x,y\",z,1\nx,\"y,z\",2\n\"x,y\",z,3\n\"x\"\"\",\"\n\",4\nx,\"\"\",\n\",5\nx,\"y,z\",6\n7\n";
    let expected = "a,b,v\n\"x,y\",z,1\nx,\"y,z\",2\n\"x\"\"\",\"\n\",4\nx,\"\"\",\n\",5\n7\n";
    passes(&["--csv=a", "--csv=b", "--ragged"], input, expected, 1);
    passes(&["--csv=2", "--csv=1", "--ragged"], input, expected, 1);
    let input = "{\"a\":1,\"b\":[2]}\n{\"a\":[1,2],\"b\":3}\n{\"b\":[ 2],\"a\":1}\n{\"a\":1}\n";
    let expected = "{\"a\":1,\"b\":[2]}\n{\"a\":[1,2],\"b\":3}\n{\"a\":1}\n";
    passes(&["--json=/a", "--json=/b"], input, expected, 1);
    Run::new(&mut dedup(["--csv=a", "--csv=c"]), "a,b\n").error(&["no column \"c\""]);
    Run::new(&mut dedup(["--field=1,0"]), "").error(&["'0'", "from 1"]);
}

/// Fields are those into which awk splits a line.
#[test]
fn fields_between_blanks() {
    let input = "a b\n  a\t \tb  \na  b c\r\na c\n\n \n";
    cases! { passes:
        &["--field=2", "--blanks"], input, "a b\na c\n\n \n", 2;
        &["--field=1,2", "--blanks"], "a b\nab  \na\tb\n", "a b\nab  \n", 1;
        &["--field=3", "--blanks"], input, "a b\n  a\t \tb  \na  b c\r\na c\n\n \n", 5;
    }
    Run::new(&mut dedup(["--blanks"]), "").error(&["--field"]);
    Run::new(&mut dedup(["--blanks", "--field=1", "--delimiter=,"]), "").error(&["--blanks", "--delimiter"]);
}

#[test]
fn white_space_at_the_ends_can_be_ignored() {
    passes(&["--trim"], " a\na\n\ta \r\na b\n  \n\n", " a\na b\n  \n", 0);
    passes(&["--trim", "-0"], " a\n\0a\0b", " a\n\0b", 0);
    passes(&["--trim", "-i"], "A \na\n", "A \n", 0);
    passes(&["--trim", "--field=1,2"], "a\tb\n a \tb \nab\t\n", "a\tb\nab\t\n", 0);
    passes(&["--trim", "--csv=k"], "k\n\" a\"\na\n", "k\n\" a\"\n", 0);
    Run::new(&mut dedup(["--trim", "--json=/a"]), "").error(&["--trim", "--json"]);
}

#[test]
fn blank_keys_can_pass() {
    let input = "a\n\n \t\n\na\n \r\n\r\nb\n\n";
    cases! { passes:
        &["--keep-blank"], input, "a\n\n \t\n\n \r\n\r\nb\n\n", 6;
        &["--keep-blank", "-i", "-0"], "a\0A\0\0\0", "a\0\0\0", 2;
        &["--keep-blank", "--trim"], " \n\n a\na\n", " \n\n a\n", 2;
        // A form feed is not a blank.
        &["--keep-blank"], "\x0c\n\x0c\n\n\n", "\x0c\n\n\n", 2;
        &["--keep-blank", "--field=2"], "1\t\n2\t\n3\n4\tx\n5\tx\n", "1\t\n2\t\n3\n4\tx\n", 3;
        // A blank part is a missing one, as everywhere.
        &["--keep-blank", "--field=1,2"], "1\t\n1\t\n1\n\t\n1\tx\n1\tx\n", "1\t\n1\t\n1\n\t\n1\tx\n", 4;
        &["--keep-blank", "--json=/k"], "{\"k\":\"\"}\n{\"k\":\" \\t\"}\n{\"k\":\"\"}\n{\"k\":[]}\n{\"k\":[]}\n",
            "{\"k\":\"\"}\n{\"k\":\" \\t\"}\n{\"k\":\"\"}\n{\"k\":[]}\n", 3;
        &["--json=/k"], "{\"k\":\"\"}\n{\"k\":\"\"}\n", "{\"k\":\"\"}\n", 0;
    }
    let input = "a,b\n,\n,\nx,\nx,\n \" \",\n";
    cases! { passes:
        &["--keep-blank", "--csv=a", "--csv=b"], "a,b\n,\n,\nx,\nx,\n\" \",\n1,2\n1,2\n", "a,b\n,\n,\nx,\nx,\n\" \",\n1,2\n", 5;
        &["--csv=a", "--csv=b"], input, "a,b\n,\nx,\n \" \",\n", 0;
    }
    // They are no duplicates.
    let run = Run::new(&mut dedup(["--keep-blank"]), "\n\na\n");
    assert_eq!(summary(&run.errors), [3, 3, 0]);
}

#[test]
fn columns_of_csv() {
    let input = "id,name\n1,a\n2,b\n3,a\n";
    cases! { passes:
        &["--csv", "name"], input, "id,name\n1,a\n2,b\n", 0;
        &["--csv", "2"], input, "id,name\n1,a\n2,b\n", 0;
        &["--csv", "id"], input, input, 0;
        // A name that is a number goes before a position.
        &["--csv", "1"], "2,1\na,x\nb,x\n", "2,1\na,x\n", 0;
        &["--csv", "b", "--delimiter", ";"], "a;b\n1,2;3\n1;3\n", "a;b\n1,2;3\n", 0;
        &["--csv", "b", "--delimiter", "\\t", "-i"], "a\tb\n1\tX\n2\tx\n", "a\tb\n1\tX\n", 0;
        // The text after unquoting is the key; a record stays as it is.
        &["--csv=k"], "k\n\"a\"\na\n\"a\"\"b\"\n\"a\"\"b\"\n", "k\n\"a\"\n\"a\"\"b\"\n", 0;
        &["--csv=k"], "v,k\n1,\"x\ny\"\n2,\"x\ny\"\n3,\"x\ry\"\n", "v,k\n1,\"x\ny\"\n3,\"x\ry\"\n", 0;
        &["--csv=k"], "v,k\r\n1,a\r\n2,a\r\n3,\"b\"\r\n4,b", "v,k\r\n1,a\r\n3,\"b\"\r\n", 0;
        &["--csv=k"], "k\rx\rx\ry", "k\rx\ry", 0;
        // Rows that are too short, empty lines within and at the end, and no row at all.
        &["--csv=k", "--ragged"], "v,k\n1\n1,a\n1\n,\n,\n", "v,k\n1\n1,a\n1\n,\n", 2;
        &["--csv=k"], "k\n\na\n\na\nb\n\n\n", "k\n\na\nb\n\n\n", 0;
        &["--csv=k"], "k\n", "k\n", 0;
        &["--csv=k"], "k", "k", 0;
        &["--csv=k"], "", "", 0;
        &["--csv=k", "-d"], "k\na\na\nb\n", "k\na\n", 0;
        // A byte order mark is not part of the first name.
        &["--csv=k"], "\u{feff}k,v\n1,2\n1,3\n\u{feff}1,4\n", "\u{feff}k,v\n1,2\n\u{feff}1,4\n", 0;
    }

    let run = Run::new(&mut dedup(["--csv=k", "--count"]), "k\na\na\nb\n\n");
    assert_eq!(summary(&run.errors), [5, 4, 1]);
    Run::new(&mut dedup(["--csv=no"]), "a,b\n1,2\n").error(&["stdin", "no column \"no\""]);
    Run::new(&mut dedup(["--csv=3"]), "a,b\n1,2\n").error(&["stdin", "2 columns", "number 3"]);
    Run::new(&mut dedup(["--csv=0"]), "a,b\n1,2\n").error(&["number 0"]);
    Run::new(&mut dedup(["--csv=a"]), "a,b,a\n1,2,3\n").error(&["stdin", "2 columns \"a\"", "number"]);
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
            let mut build = lanebloom();
            build.args(["build", column, "-o"]).arg(&filter).args([first, &other]);
            Run::new(&mut build, "").error(&[utf8(&other), utf8(first)]);
            // With an output for each it does not matter.
            let to = folder.path("to");
            let mut each = dedup(flags);
            each.arg(column).args([first, &other]).arg("--output-dir").arg(&to);
            Run::new(&mut each, "").output();
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
        let run = Run::new(
            dedup(flags)
                .args(["--csv", "id", utf8(first)])
                .args([&none[2], &same[3]]),
            "",
        );
        assert_bytes(&run.output(), b"id,v\n1,a\n2,b\n\n3,c\n4,\n", flags);
    }
    let filter = folder.path("filter");
    let mut build = lanebloom();
    build.args(["build", "--csv=id", "-o"]).arg(&filter).arg(&same[3]);
    Run::new(&mut build, "").output();
    let mut query = lanebloom();
    query.args(["query", "--csv=id"]).arg(&filter).args(rows);
    assert_bytes(
        &Run::new(&mut query, "").output,
        b"id,v\npresent\t3,c\npresent\t4,\nabsent\t1,a\nabsent\t2,b",
        "",
    );
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
    cases! { passes:
        &["--csv=1", "--no-header"], rows, "1,a\n2,b\n", 0;
        &["--csv=2", "--no-header"], "1,a\n2,a\n", "1,a\n", 0;
        &["--csv=3", "--csv=1", "--no-header", "--ragged"], "1,a,x\n1\n1,b,x\n", "1,a,x\n1\n", 1;
        &["--csv=1", "--no-header"], "", "", 0;
        &["--csv=1", "--no-header"], "\u{feff}\"a\"\na\n", "\u{feff}\"a\"\n", 0;
        &["--csv=1", "--no-header", "-d"], rows, "1,a\n", 0;
        &["--csv=1", "--no-header"], "a\ra\rb", "a\rb", 0;
    }
    let folder = Folder::new();
    let files = ["1,a\n2,b\n3,c", "4,d\n1,e\n", "\u{feff}5,f\n4,g\n", "4,h\n"];
    let files: Vec<_> = (0..)
        .zip(files)
        .map(|(at, text)| folder.file(&format!("{at}"), text))
        .collect();
    for flags in [SURE, &["--exact"]] {
        let run = Run::new(dedup(flags).args(["--csv=1", "--no-header"]).args(&files), "");
        assert_eq!(summary(&run.errors), [8, 5, 3], "{}", run.errors);
        assert_bytes(&run.output(), b"1,a\n2,b\n3,c\n4,d\n5,f\n", flags);
    }
    let filter = folder.path("filter");
    let build = |more: &[&str]| {
        let mut build = lanebloom();
        build
            .args(["build", "--csv=1", "-o"])
            .arg(&filter)
            .args(&files[..2])
            .args(more);
        Run::new(&mut build, "")
    };
    build(&[]).error(&[utf8(&files[1]), utf8(&files[0])]);
    assert!(build(&["--no-header"]).errors.starts_with("5 lines, about 4 unique"));
    let mut query = lanebloom();
    query.arg("query").arg(&filter).args(["--csv=1", "--no-header"]);
    assert_bytes(&Run::new(&mut query, "1,x\n").output(), b"present\t1,x\n", "");
    Run::new(&mut dedup(["--csv=id", "--no-header"]), rows).error(&["--csv id: with --no-header", "number"]);
    Run::new(&mut dedup(["--csv=0", "--no-header"]), rows).error(&["--csv 0: with --no-header"]);
    Run::new(&mut dedup(["--no-header"]), rows).error(&["--no-header", "--csv"]);
}

/// Records of any shape, cut into chunks at any place, against the csv crate's rules in the small.
#[test]
fn random_csv() {
    for seed in 0..2 * SEEDS {
        let mut random = Random(200 + seed);
        let (mut input, mut expected, mut seen) = (b"a,key,b\n".to_vec(), b"a,key,b\n".to_vec(), HashSet::new());
        for _ in 0..2000 {
            let mut fields = Vec::new();
            let mut key = Vec::new();
            for column in 0..3 {
                let len = if random.below(500) == 0 {
                    300_000
                } else {
                    random.below(4)
                };
                let text: Vec<u8> = (0..len).map(|_| *random.pick(b"ab\",\n\r")).collect();
                let is_plain = !text.is_empty() && !text.iter().any(|byte| b"\",\n\r".contains(byte));
                let quoted = if is_plain && random.below(2) == 0 {
                    text.clone()
                } else {
                    let doubled = text.iter().flat_map(|&byte| vec![byte; 1 + usize::from(byte == b'"')]);
                    [b"\"".to_vec(), doubled.collect(), b"\"".to_vec()].concat()
                };
                if column == 1 {
                    key = text;
                }
                fields.push(quoted);
            }
            let mut record = fields.join(&b',');
            record.extend_from_slice(random.pick(&["\n", "\r\n"]).as_bytes());
            input.extend_from_slice(&record);
            if seen.insert(key) {
                expected.extend_from_slice(&record);
            }
        }
        passes(&["--csv", "key"], &input, &expected, 0);
    }
}

/// A record of many bytes, between quotes.
#[test]
fn long_records_of_csv() {
    let long = "a line\n".repeat(1_000_000);
    let input = format!("k,v\n1,\"{long}\"\n1,2\n2,\"{long}\"");
    let expected = format!("k,v\n1,\"{long}\"\n2,\"{long}\"");
    let output = Run::new(&mut dedup(["--csv=k"]), &input).output();
    assert_bytes(&output, expected.as_bytes(), "");
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
    // More than is read at a time.
    let short = String::from_utf8(numbers(0, 100_000)).unwrap();
    for (flags, records, is_given_back) in [
        (&[][..], format!("{long}1\n{long}2\n{short}"), true),
        (&["--field=2"], format!("a\t1{long}\na\t2{long}\n"), false),
        (&["--csv=k"], csv, true),
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
        "/id", "{\"id\":1}\n{\"id\": 1, \"x\":2}\n{\"id\":\"1\"}\n", "{\"id\":1}\n{\"id\":\"1\"}\n", 0;
        "/a/b/1", "{\"a\":{\"b\":[0,7]}}\n{\"a\":{\"b\":[1,7]}}\n", "{\"a\":{\"b\":[0,7]}}\n", 0;
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
        "/k", "{\"k\":null}\n{\"k\":null}\n{}\n{}\n", "{\"k\":null}\n{\"k\":null}\n{}\n{}\n", 4;
        "/k", "{\"k\":[null]}\n{\"k\":[ null ]}\n{\"k\":1,\"k\":null}\n", "{\"k\":[null]}\n{\"k\":1,\"k\":null}\n", 1;
        "", "null\n null\n\"null\"\n\"null\"\n", "null\n null\n\"null\"\n", 2;
        "", "[1, 2]\n[1,2]\n[2,1]\n\"x\"\n \"x\"\r\n", "[1, 2]\n[2,1]\n\"x\"\n", 0;
    }
    // Numbers beyond 64 bits, which a float would round to the same.
    let numbers = "{\"k\":123456789012345678901}\n{\"k\":123456789012345678902}\n{\"k\":0.12345678901234567891}\n\
                   {\"k\":0.12345678901234567892}\n";
    json("/k", numbers, numbers, 0);
    json("", "1e5\n1E5\n1e+5\n1E+5\n1e-5\n1.0\n1\n", "1e5\n1e-5\n1.0\n1\n", 0);
    // An object is not a number, whatever the names in it.
    let tokens = "{\"k\":5}\n{\"k\":{\"$serde_json::private::Number\":\"5\"}}\n\
                  {\"k\":{\"$serde_json::private::RawValue\":\"5\"}}\n";
    cases! { json:
        "/k", tokens, tokens, 0;
        "/k/$serde_json::private::Number", "{\"k\":5}\n{\"k\":5}\n", "{\"k\":5}\n{\"k\":5}\n", 2;
    }
    // Half a surrogate pair is not text, and nothing of such a value is in the next key.
    let half = "{\"k\":[1,\"\\ud800\"]}\n";
    json(
        "/k",
        &[half, "{\"k\":2}\n", half, "{\"k\":3}\n{\"k\":2}\n"].concat(),
        &[half, "{\"k\":2}\n", half, "{\"k\":3}\n"].concat(),
        2,
    );
    // Other strings may be no UTF-8.
    let (first, without) = (b"{\"k\":1,\"x\":\"\xff\"}\n", b"{\"k\":\"\xff\"}\n");
    let input = [&first[..], b"{\"k\":1}\n", without].concat();
    passes(&["--json=/k"], input, [&first[..], without].concat(), 1);
    // Lines that are no JSON or have no such value pass.
    let input = "{\"k\":1}\nno\n\n{\"k\":1\n[]\n{\"k\":1}\nno\n{\"k\":1} 2\n";
    json("/k", input, "{\"k\":1}\nno\n\n{\"k\":1\n[]\nno\n{\"k\":1} 2\n", 6);
    cases! { passes:
        &["--json=/k", "-i"], "{\"k\":\"A\"}\n{\"k\":\"a\"}\n{\"K\":\"a\"}\n", "{\"k\":\"A\"}\n{\"K\":\"a\"}\n", 1;
        &["--json=/k", "-0"], "{\"k\":\n1}\0{\"k\":1}\0", "{\"k\":\n1}\0", 0;
    }

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
