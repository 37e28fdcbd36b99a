//! `query`: which filters it asks, what it takes for a key, and where its answers go.
//! (`dedup/model.rs` has what is printed of each line, with every option that makes keys.)

use super::{Shell, count_lines, lines, stderr};
use lanebloom::{CuckooFilter, DLeftFilter, FastHash, Hashed, Prehashed, ScalableBloom, WindowedBloom};
use std::process::Stdio;

/// The file is replaced as a whole, also if a key is absent.
#[test]
fn answers_in_a_file() {
    let shell = Shell::new();
    shell.write("keys", "a\nb\n");
    shell.write("others", "a\nc\n");
    shell.ok("build keys -o filter --rate 1e-6");
    let output = shell.run("query filter others -o answers");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
    assert_eq!(shell.read("answers"), b"present\ta\nabsent\tc\n");
    shell.ok("query filter keys --present -o answers");
    assert_eq!(shell.read("answers"), b"a\nb\n");
    for (line, part) in [
        ("query filter keys -o filter", "filter: it is also an input"),
        ("query filter keys -o keys", "keys: it is also an input"),
        ("query filter missing -o answers", "missing"),
        ("query filter keys -q -o answers", "--quiet prints nothing"),
    ] {
        shell.fails(line, part);
    }
    assert_eq!(shell.read("answers"), b"a\nb\n");
    assert_eq!(shell.names("."), ["answers", "filter", "keys", "others"]);
}

#[test]
fn quiet_ends_at_the_first_absent_key() {
    let shell = Shell::new();
    assert!(shell.run_with("build -o filter --rate 1e-6", "").status.success());
    assert_eq!(shell.fact("filter", "keys estimated"), "0");
    // More than a pipe holds: the writer would see that it was closed early.
    let keys = "b\n".repeat(1 << 20);
    assert_eq!(shell.run_with("query --quiet filter", keys).status.code(), Some(1));
    assert_eq!(shell.run_with("query --quiet filter", "").status.code(), Some(0));
}

/// A line without a key is absent, and is told of. The header of the first file that has one is no
/// line, nor are empty lines at the end.
#[test]
fn lines_without_a_key() {
    let shell = Shell::new();
    shell.write("empty", "");
    shell.write("rows", "id,name\r\n1,a\r\n\"2,\nx\",b\r\n3\r\n\r\n\r\n");
    let built = stderr(&shell.run("build rows -o filter --csv name --ragged"));
    let told = "3 lines, about 2 unique, 1 of them without a key, ";
    assert!(built.starts_with(told), "{built}");
    let output = shell.run("query filter empty rows rows --csv name --ragged --quiet");
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(1), ""));
    let output = shell.run("query filter empty rows rows --csv name --ragged");
    let answers = "present\t1,a\r\npresent\t\"2,\nx\",b\r\nabsent\t3\r\n\r\n\r\n";
    let expected = format!("id,name\r\n{answers}{answers}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let told = "lanebloom: 2 lines without a key, taken for absent\n";
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(1), told));
}

/// Other filters than those of `build` use the same hashes.
#[test]
fn filters_of_programs_are_queried() {
    let shell = Shell::new();
    let all = lines(0..1000);
    let keys: Vec<&str> = all.lines().collect();
    let (cuckoo, d_left) = (CuckooFilter::builder().seed(9), DLeftFilter::builder().seed(4));
    let cuckoo = cuckoo.expected_keys(1000).false_positive_rate(1e-4).build().unwrap();
    let d_left = d_left.expected_keys(1000).build().unwrap();
    let scalable = ScalableBloom::with_capacity(100, 1e-4).unwrap();
    cuckoo.insert_all(&keys).unwrap();
    d_left.insert_all(&keys).unwrap();
    scalable.insert_all(&keys).unwrap();
    let windowed = WindowedBloom::with_capacity(1000, 1e-4).unwrap();
    windowed.insert_all(&keys[..500]);
    windowed.rotate();
    windowed.insert_all(&keys[500..]);
    for bytes in [
        cuckoo.snapshot().to_vec(),
        d_left.snapshot().to_vec(),
        scalable.snapshot().to_vec(),
        windowed.snapshot().to_vec(),
    ] {
        shell.write("filter", bytes);
        let present = shell.run_with("query filter --present", all.clone()).stdout;
        assert!(present == all.as_bytes());
        let others = shell.run_with("query filter --present", lines(1000..2000)).stdout;
        assert!(others.len() < 100);
    }
    assert_eq!(shell.fact("filter", "generation 2: keys expected"), "334");
    let estimate: u32 = shell.fact("filter", "generation 2: keys estimated").parse().unwrap();
    assert!((470..530).contains(&estimate));
}

/// The file names the hasher that `build` was given, or that another program chose.
#[test]
fn hashers() {
    let shell = Shell::new();
    let (all, others) = (lines(0..20_000), lines(20_000..40_000));
    shell.write("keys", &all);
    shell.write("others", &others);
    for (options, hasher) in [
        ("", "Murmur3, seed 0"),
        ("--hasher murmur3", "Murmur3, seed 0"),
        ("--hasher fast", "FastHash, seed 0"),
        ("--hasher fast --expected 20000", "FastHash, seed 0"),
        ("--hasher fast --expected 20000 --threads 8", "FastHash, seed 0"),
    ] {
        shell.ok(&format!("build keys -o filter --rate 0.001 {options}"));
        assert_eq!(shell.fact("filter", "hasher"), hasher);
        assert_eq!(shell.ok("query filter keys --present"), all);
        let found = shell.run("query filter others --present").stdout;
        assert!(count_lines(&found) < 60, "{options}");
    }
    // The bits are the library's.
    let library = ScalableBloom::builder().hasher(FastHash::default()).hint(20_000);
    let library = library.false_positive_rate(0.001).build().unwrap();
    library.insert_all(all.lines()).unwrap();
    assert_eq!(shell.fact("filter", "hasher"), "FastHash, seed 0");
    assert!(shell.read("filter") == library.into_layers()[0].snapshot().to_vec());
    // A seed of another program's.
    let seeded = CuckooFilter::builder().hasher(FastHash::with_seed(7));
    let seeded = seeded.expected_keys(100).build().unwrap();
    seeded.insert("a").unwrap();
    shell.write("seeded", seeded.snapshot().to_vec());
    assert_eq!(shell.fact("seeded", "hasher"), "FastHash, seed 7");
    assert_eq!(shell.run_with("query seeded --present", "a\nb\n").stdout, b"a\n");

    let error = shell.error("build keys -o filter --hasher siphash");
    assert!(error.contains("'siphash'") && error.contains("prehashed"), "{error}");
    for format in ["guava", "redisbloom --redis-key a"] {
        let error = shell.error(&format!("build keys -o filter --hasher fast --format {format}"));
        assert!(
            error.starts_with("lanebloom: --hasher is for --format lanebloom"),
            "{error}"
        );
    }
}

/// A filter of hashes takes numbers, and no other key.
#[test]
fn hashes_as_keys() {
    let shell = Shell::new();
    let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let decimal = |numbers: std::ops::Range<u64>| numbers.map(|i| format!("{}\n", hash(i))).collect::<String>();
    let hexadecimal: String = (0..2000).map(|i| format!("0x{:X}\n", hash(i))).collect();
    let all = decimal(0..2000);
    shell.write("keys", &all);
    for options in ["", "--expected 2000", "--expected 2000 --threads 8"] {
        shell.ok(&format!(
            "build keys -o filter --rate 0.001 --hasher prehashed {options}"
        ));
        assert_eq!(shell.fact("filter", "hasher"), "Prehashed");
        assert_eq!(shell.ok("query filter keys --present"), all);
        let answers = shell.run_with("query filter --present", &hexadecimal[..]);
        assert_eq!(
            (answers.status.code(), answers.stdout),
            (Some(0), hexadecimal.clone().into())
        );
        let found = shell.run_with("query filter --present", decimal(2000..4000)).stdout;
        assert!(count_lines(&found) < 20);
    }
    let library = ScalableBloom::builder().hasher(Prehashed).hint(2000);
    let library = library.false_positive_rate(0.001).build().unwrap();
    library
        .insert_batch(Hashed::slice(&(0..2000).map(hash).collect::<Vec<u64>>()))
        .unwrap();
    assert!(shell.read("filter") == library.into_layers()[0].snapshot().to_vec());
    // The hash may be a field, a column or a value of JSON, and may ask another program's filter.
    let last = hash(1999);
    let present = |line: &str, text: String| assert_eq!(shell.run_with(line, text).status.code(), Some(0), "{line}");
    present("query filter --field 2", format!("x\t{last}\n"));
    present("query filter --csv hash", format!("id,hash\n1,{last}\n"));
    present("query filter --json /hash", format!("{{\"hash\": {last}}}\n"));
    present("query filter --json /hash", format!("{{\"hash\": \"{last:#x}\"}}\n"));
    present("query filter --trim", format!(" {last} \n"));
    let cuckoo = CuckooFilter::builder()
        .hasher(Prehashed)
        .expected_keys(100)
        .build()
        .unwrap();
    cuckoo.insert(&Hashed(u64::MAX)).unwrap();
    shell.write("cuckoo", cuckoo.snapshot().to_vec());
    present("query cuckoo", "18446744073709551615\n0xffffffffffffffff\n".into());

    // A key that is not a number of 64 bits is refused, wherever it stands. No file is written.
    for key in [
        "a",
        "",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "0x",
        "0x+1",
        "0xg",
        "18446744073709551616",
        "0x10000000000000000",
    ] {
        let text = format!("1\n{key}\n2\n");
        for line in [
            "query filter",
            "query cuckoo --quiet",
            "build -o new --hasher prehashed",
            "build -o new --hasher prehashed --expected 5 --threads 8",
        ] {
            let output = shell.run_with(line, &text[..]);
            let said = format!("\"{key}\" is not a hash. The filter's hasher is `prehashed`");
            // With --quiet, an absent key ends it before.
            let ended = line.ends_with("--quiet") && output.status.code() == Some(1);
            assert!(
                ended || stderr(&output).contains(&said),
                "{line} {key}: {}",
                stderr(&output)
            );
            assert!(ended || output.status.code() == Some(2), "{line} {key}");
        }
        assert!(!shell.path("new").exists());
    }
    let error = stderr(&shell.run_with("query filter", "customer\n"));
    assert!(error.contains("from 0 to 18446744073709551615 or 0x"), "{error}");
}

/// A reader that closes the output is not an error.
#[test]
fn a_closed_output() {
    let shell = Shell::new();
    shell.write("keys", lines(0..200_000));
    shell.ok("build keys -o filter --expected 10000000");
    for line in ["query filter keys", "query filter keys --present", "build keys -o -"] {
        let mut command = shell.command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // More than a pipe holds is still to come.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), stderr(&output)),
            (Some(141), String::new()),
            "{line}"
        );
    }
}

/// A Guava file does not name its funnel.
#[test]
fn funnels_of_guava() {
    let shell = Shell::new();
    let told = "a Guava file does not name its funnel";
    let funneled = |funnel: &str, build: &str, keys: &[u8]| {
        let line = format!("build -o guava --format guava --expected 100 --rate 1e-6 {build} --funnel {funnel}");
        let output = shell.run_with(&line, keys);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        assert!(!stderr(&output).contains(told));
        stderr(&output)
    };
    let query = |options: &str, keys: &[u8]| {
        let output = shell.run_with(&format!("query guava {options}"), keys);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code().unwrap(), text, stderr(&output))
    };
    let missing = |lines: &str| format!("lanebloom: {lines} without a key, taken for absent\n");

    // Texts that the funnel does not take are not keys: not a number, one that is too large, not
    // UTF-8.
    let numbers = b"1\n-2\n9223372036854775808\n+03\n4.0\n 5\n\n9223372036854775807\n";
    let summary = funneled("long", "", numbers);
    assert!(summary.contains(", 4 of them without a key, "), "{summary}");
    let answers = "present\t1\npresent\t-2\nabsent\t9223372036854775808\npresent\t+03\n\
                   absent\t4.0\nabsent\t 5\nabsent\t\npresent\t9223372036854775807\n";
    assert_eq!(query("--funnel long", numbers), (1, answers.into(), missing("4 lines")));
    assert_eq!(query("--funnel long -q", b"3\n-2\n"), (0, String::new(), String::new()));
    funneled("int", "", b"-2147483648\n2147483648\n");
    assert_eq!(
        query("--funnel int", b"-2147483648\n2147483648\n"),
        (
            1,
            "present\t-2147483648\nabsent\t2147483648\n".into(),
            missing("1 line")
        )
    );
    for funnel in ["utf8", "utf16"] {
        let keys = "e\u{301}\n\u{20ac}\n\u{1f600}\n\n".as_bytes();
        let summary = funneled(funnel, "", &[keys, b"\xff\n"].concat());
        assert!(summary.contains(", 1 of them without a key, "), "{summary}");
        let answer = query(&format!("--funnel {funnel} --present"), &[keys, b"\xff\n"].concat());
        assert_eq!(
            answer,
            (1, String::from_utf8(keys.to_vec()).unwrap(), missing("1 line"))
        );
    }

    // Fields, columns, and values of JSON, of which a string is its text.
    funneled("long", "--field 2", b"a\t1\n");
    assert_eq!(query("--funnel long --csv id -q", b"n,id\r\na,\"1\"\r\n").0, 0);
    assert_eq!(
        query("--funnel long --json /id -q", b"{\"id\":1}\n{\"id\":\"1\"}\n").0,
        0
    );
    assert_eq!(query("--funnel long --json /id -q", b"{\"id\":[1]}\n").0, 1);
    // The bytes of UTF-16 are not those of letters.
    funneled("utf16", "-i", "A\u{4142}\u{c4}\n".as_bytes());
    assert_eq!(query("--funnel utf16 -qi", "a\u{4142}\u{c4}\n".as_bytes()).0, 0);
    assert_eq!(query("--funnel utf16 -q", "a\u{4142}\u{c4}\n".as_bytes()).0, 0);

    // Without the option it is said what was assumed.
    let line = "--format guava --expected 100 --json /id";
    let built = shell.run_with(&format!("build -o guava {line}"), "{\"id\":\"\\u00e4\"}\n");
    assert!(stderr(&built).contains(told), "{}", stderr(&built));
    let (status, answers, errors) = query("", "\u{e4}\n".as_bytes());
    assert_eq!((status, answers.as_str()), (0, "present\t\u{e4}\n"));
    assert!(errors.contains(told) && errors.contains("--funnel"), "{errors}");
    assert_eq!(
        query("--quiet", "\u{e4}\n".as_bytes()),
        (0, String::new(), String::new())
    );
    let quiet = shell.run_with(&format!("build -q -o guava {line}"), "{\"id\":\"\"}\n");
    assert_eq!(stderr(&quiet), "");

    // RedisBloom has no funnels: a string of JSON is its text there too.
    let line = "build -o redis --format redisbloom --redis-key ids --json /id";
    assert!(shell.run_with(line, "{\"id\":\"a\"}\n").status.success());
    assert_eq!(shell.run_with("query redis", "a\n").stdout, b"present\ta\n");

    // Other filters have none.
    shell.write("keys", "a\n");
    for line in [
        "build keys -o filter --funnel utf8",
        "build keys -o filter --funnel utf8 --format redisbloom --redis-key a",
        "query redis keys --funnel bytes",
    ] {
        shell.fails(line, "--funnel is for");
    }
    shell.fails("query guava keys --funnel utf-32", "utf16");
}
