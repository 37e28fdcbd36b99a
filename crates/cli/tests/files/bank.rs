//! `build --bank` and `which`: the columns of each key, what is printed of them, and files that are
//! not banks.

use super::{Shell, Value, count_lines, lines, stderr};
use lanebloom::bank::FilterBank;
use lanebloom::{ConcurrentBloom, ScalableBloom};
use std::io::Write;

/// A bank of the files a, b and c, at a rate that makes a wrong answer unlikely.
fn shell() -> Shell {
    let shell = Shell::new();
    shell.write("a", "1\n2\n3\n");
    shell.write("b", "");
    shell.write("c", "3\r\n4\n5");
    shell.ok("build --bank a b c -o bank --rate 1e-6");
    shell
}

fn which(shell: &Shell, options: &str, keys: &str) -> (i32, String, String) {
    let output = shell.run_with(&format!("which bank {options}"), keys);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output.status.code().unwrap(), text, stderr(&output))
}

/// Lines stay as they are, but the last one gets an end; the exit status says whether each key is
/// in a file.
#[test]
fn each_key_has_its_files() {
    let shell = shell();
    let of = |options: &str, keys: &str| {
        let (status, text, error) = which(&shell, options, keys);
        assert_eq!(error, "");
        (status, text)
    };
    assert_eq!(
        of("", "1\n3\r\n6\n3"),
        (1, "a\t1\na\t3\r\nc\t3\r\na\t3\nc\t3\n".to_owned())
    );
    assert_eq!(of("", "1\n5\n"), (0, "a\t1\nc\t5\n".into()));
    assert_eq!(of("", ""), (0, String::new()));
    assert_eq!(of("-0", "3\x005"), (0, "a\t3\0c\t3\0c\t5\0".into()));
    assert_eq!(of("--count", "1\n3\n6\n3"), (1, "1\t1\n2\t3\n0\t6\n2\t3".into()));
    assert_eq!(
        of("--json-output", "3\r\n6\n\"\n"),
        (
            1,
            "{\"line\":\"3\",\"columns\":[\"a\",\"c\"]}\n{\"line\":\"6\",\"columns\":[]}\n\
             {\"line\":\"\\\"\",\"columns\":[]}\n"
                .into()
        )
    );
    assert_eq!(of("--quiet", "1\n4\n"), (0, String::new()));
    assert_eq!(of("--quiet", "1\n6\n"), (1, String::new()));
    shell.write("keys", "2\n4\n");
    assert_eq!(of("keys -o answers", ""), (0, String::new()));
    assert_eq!(shell.read("answers"), b"a\t2\nc\t4\n");
    shell.fails("which bank keys -o bank", "bank: it is also an input");
    shell.fails("which bank keys --count --absent", "--count");
    let statistics = which(&shell, "--json-summary", "1\n6\n").2;
    let statistics: Value = serde_json::from_str(&statistics).unwrap();
    assert_eq!((&statistics["present"], &statistics["absent"]), (&1.into(), &1.into()));
}

/// A line without a key is in no file. The header of CSV passes.
#[test]
fn lines_without_a_key() {
    let shell = Shell::new();
    shell.write("a.csv", "id,name\n1,x\n2,y\n");
    // Its header is its own.
    shell.write("b.csv", "name,other\ny,1\n7\n");
    shell.ok("build --bank a.csv b.csv -o bank --csv name --ragged --rate 1e-6");
    let told = "lanebloom: 1 line without a key, taken for absent\n".to_owned();
    assert_eq!(
        which(&shell, "--ragged --csv name", "id,name\n9,y\n3\n1,x\n"),
        (1, "id,name\na.csv\t9,y\nb.csv\t9,y\na.csv\t1,x\n".into(), told.clone())
    );
    assert_eq!(
        which(&shell, "--ragged --csv name --json-output", "id,name\n3\n1,x\n"),
        (
            1,
            "{\"line\":\"3\",\"columns\":[]}\n{\"line\":\"1,x\",\"columns\":[\"a.csv\"]}\n".into(),
            told
        )
    );
}

/// The bank is the one that the library makes of the same filters. Files are read in any form, and
/// each has the name that was given.
#[test]
fn the_bank_is_the_librarys() {
    let shell = Shell::new();
    let all = lines(0..6000);
    let all: Vec<&str> = all.lines().collect();
    // More files than are filled at a time.
    std::fs::create_dir(shell.path("logs")).unwrap();
    let builder = ConcurrentBloom::builder()
        .expected_keys(101)
        .false_positive_rate(0.01 / 150.0);
    let mut filters = Vec::new();
    for (number, keys) in all.chunks(40).enumerate() {
        let name = format!("logs/{number:03}");
        match number {
            7 => {
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                packed.write_all(keys.join("\n").as_bytes()).unwrap();
                shell.write(&name, packed.finish().unwrap());
            }
            _ => shell.write(&name, keys.join("\n")),
        }
        let filter = builder.clone().build().unwrap();
        filter.insert_batch(keys);
        filters.push(filter);
    }
    let made = FilterBank::from_filters(&filters).unwrap();
    for threads in [1, 3] {
        shell.ok(&format!("build --bank logs -o bank --expected 101 --threads {threads}"));
        // The names follow, which this leaves.
        let bank = FilterBank::read_from(&shell.read("bank")[..], usize::MAX).unwrap();
        assert!(bank == made && bank.len() == 150);
        for number in [0, 63, 64, 149] {
            assert!(bank.to_filter(number).unwrap() == filters[number]);
        }
    }
    let keys: String = all.iter().map(|key| format!("{key}\n")).collect();
    shell.write("keys", &keys);
    let answers = shell.ok("which bank keys --threads 3");
    let right = all.chunks(40).enumerate().flat_map(|(number, keys)| {
        let name = format!("logs{}{number:03}\t", std::path::MAIN_SEPARATOR);
        keys.iter().map(move |key| name.clone() + key)
    });
    let answers: Vec<&str> = answers.lines().collect();
    let answered: std::collections::HashSet<&str> = answers.iter().copied().collect();
    assert!(right.clone().all(|line| answered.contains(&line[..])));
    // 6,000 keys at a rate of 1% for all.
    assert!(answers.len() < 6000 + 100, "{}", answers.len());
    assert_eq!(shell.fact("bank", "columns in use"), "150");
}

/// The rate is for all files together, and `info` says it.
#[test]
fn the_rate_is_the_banks() {
    let shell = Shell::new();
    let files: Vec<String> = (0..100).map(|file| format!("f{file}")).collect();
    for (number, name) in files.iter().enumerate() {
        let first = 1000 * number as u32;
        shell.write(name, lines(first..first + 300 + number as u32));
    }
    let build = |options: &str| {
        let output = shell.run(&format!(
            "build --bank {} -o bank --rate 20% {options}",
            files.join(" ")
        ));
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let summary = build("");
    let (start, rest) = summary.split_once(" unique within their file, ").unwrap();
    let unique = start.strip_prefix("34950 lines of 100 files, about ").unwrap();
    assert!((34_800..=34_950).contains(&unique.parse::<u32>().unwrap()) && rest.contains(" wrong columns per key, "));
    assert!(!summary.contains("more keys"), "{summary}");
    let expected = shell.fact("bank", "keys per column").parse::<u32>().unwrap();
    assert!((399..=402).contains(&expected), "{expected}");
    let wrong: f64 = shell.fact("bank", "wrong columns per key when full").parse().unwrap();
    assert!((0.1..=0.2).contains(&wrong), "{wrong}");
    let others = shell.run_with("which bank", lines(200_000..230_000)).stdout;
    let found = count_lines(&others) as f64 / 30_000.0;
    // Most files have fewer keys than the largest one.
    assert!(found > 0.3 * wrong && found < wrong, "{found} of {wrong}");
    let info: Value = serde_json::from_str(&shell.ok("info bank --json")).unwrap();
    assert_eq!(info["names"], serde_json::json!(files));
    assert_eq!((&info["kind"], &info["columns"]), (&"FilterBank".into(), &128.into()));
    assert_eq!(shell.fact("bank", "names"), "f0, f1, f2, f3, f4, and 95 more");
    // Too few expected keys.
    let summary = build("--expected 100");
    assert!(
        summary.contains("100 files with more keys than the 100 of --expected"),
        "{summary}"
    );
    let summary: Value = serde_json::from_str(&build("--expected 100 --json-summary")).unwrap();
    assert!(summary["wrong_columns_per_key"].as_f64().unwrap() > 1.0 && summary["overfull"] == 100);
}

/// Filter files become columns as they are, and a larger one is folded.
#[test]
fn filters_become_columns() {
    let shell = Shell::new();
    for (name, keys) in [("a", 0..500), ("b", 250..750)] {
        shell.write(name, lines(keys));
        shell.ok(&format!(
            "build {name} -o {name}.lbf --expected 1000 --rate 1e-4 --hasher fast"
        ));
    }
    shell.ok("build --bank a.lbf b.lbf -o bank");
    assert_eq!(
        which(&shell, "", "key 400\n"),
        (0, "a.lbf\tkey 400\nb.lbf\tkey 400\n".into(), String::new())
    );
    assert!(shell.fact("bank", "hasher").starts_with("FastHash"));
    shell.ok("build a -o slow.lbf --expected 1000 --rate 1e-4");
    shell.ok("build a -o other.lbf --expected 1300 --rate 1e-4 --hasher fast");
    shell.ok("build a -o many.lbf --expected 50000 --rate 1e-4");
    shell.write("one", "1\n");
    shell.ok("build one -o one.lbf --expected 10 --rate 1e-4");
    shell.write(
        "scalable.lbf",
        ScalableBloom::with_capacity(9, 0.1).unwrap().snapshot().to_vec(),
    );
    for (line, parts) in [
        (
            "a.lbf b.lbf slow.lbf",
            &["slow.lbf: build all filters with the same", "hasher"][..],
        ),
        ("a.lbf other.lbf", &["other.lbf", "does not fit"]),
        ("a.lbf scalable.lbf", &["scalable.lbf: it is a ScalableBloom"]),
        ("a.lbf a", &["a.lbf is a filter file and a is not"]),
        ("a a.lbf", &["a.lbf is a filter file and a is not"]),
        ("a.lbf bank", &["bank: it is a bank of filters"]),
        (
            "one.lbf many.lbf",
            &["many.lbf: ", "it has too many keys for this bank"],
        ),
        ("a.lbf --rate 0.1", &["--rate", "a.lbf is a filter"]),
        ("a.lbf --hasher fast", &["--hasher"]),
        ("--format guava a", &["--bank is for --format lanebloom"]),
        ("--static a", &["--bank"]),
        (
            "a --rate 1e-12 --expected 1e15",
            &["a bank of 1 filters for 1000000000000000 keys each"],
        ),
    ] {
        let error = shell.error(&format!("build --bank {line} -o x"));
        assert!(parts.iter().all(|part| error.contains(part)), "{line}: {error}");
    }
    shell.write("nothing", "\n");
    shell.says(
        "build --bank --files-from nothing -o x",
        "a bank has a filter for each input file, and the list names none",
    );
    assert!(!shell.path("x").exists());
}

/// Every command says what to run instead.
#[test]
fn a_bank_is_no_filter() {
    let shell = shell();
    shell.ok("build a -o filter");
    let instead = "it is a bank of filters: `which` says which of them hold a key, `build --bank` makes another one";
    for line in [
        "query bank a",
        "merge bank filter -o x",
        "merge filter bank -o x",
        "convert bank --to lanebloom -o x",
    ] {
        let error = shell.error(line);
        assert!(error.contains(instead) && error.contains("bank"), "{line}: {error}");
    }
    shell.says(
        "which filter a",
        "filter: it is a ConcurrentBloom, not a bank: run `query` on it",
    );
}

/// A bank without names has numbers. Whatever else follows it is an error.
#[test]
fn names_are_checked() {
    let shell = shell();
    let bytes = shell.read("bank");
    let end = bytes.windows(2).rposition(|two| two == b"[\"").unwrap();
    assert_eq!(&bytes[end..], b"[\"a\",\"b\",\"c\"]\n");
    let bank = &bytes[..end];
    shell.write("bank", bank);
    assert_eq!(which(&shell, "", "3\n"), (0, "0\t3\n2\t3\n".into(), String::new()));
    let many = format!("{:?}", vec!["x"; 65]);
    for (rest, part) in [
        (
            "[\"a\",\"b\"",
            "the bytes after the bank are not the names of its columns",
        ),
        ("{}", "the bytes after the bank are not the names of its columns"),
        ("[\"a\"] x", "the bytes after the bank are not the names of its columns"),
        (&many, "65 names are too many for 64 columns"),
    ] {
        shell.write("bank", [bank, rest.as_bytes()].concat());
        for command in ["info bank", "which bank a"] {
            let error = shell.error(command);
            assert!(
                error.starts_with("lanebloom: bank: ") && error.contains(part),
                "{rest}: {error}"
            );
        }
    }
}

/// A name would end the line or reach the terminal. It is a string of JSON then, and if it begins
/// like one.
#[cfg(unix)] // Windows has no such names.
#[test]
fn names_are_part_of_a_line() {
    let shell = Shell::new();
    let names = ["a\tb\nc", "\u{1b}[2J", "\u{9b}2J", "\"q\"", "ü \\n"];
    let list = names.map(|name| {
        shell.write(name, "k\n");
        format!("{name}\0")
    });
    shell.write("list", list.concat());
    shell.ok("build --bank --files0-from list -o bank --rate 1e-6");
    let printed = [r#""a\tb\nc""#, r#""\u001b[2J""#, r#""\u009b2J""#, r#""\"q\"""#, r"ü \n"];
    let expected = printed.map(|name| format!("{name}\tk\n")).concat();
    assert_eq!(which(&shell, "", "k\n").1, expected);
    let shown = shell.fact("bank", "names");
    assert_eq!(shown, printed.join(", "));
    // Messages are lines too.
    let text = shell.error("dedup \u{1b}[2J/x");
    assert!(text.contains("\\u{1b}[2J") && !text.contains('\u{1b}'), "{text}");
}

/// The shell takes such a name as it is printed. Another file could have that text as its name, so
/// each name that begins like it is quoted.
#[cfg(target_os = "linux")] // Elsewhere such names may be refused.
#[test]
fn names_that_are_not_utf_8_differ() {
    use std::os::unix::ffi::OsStrExt;

    let shell = Shell::new();
    let names: [&[u8]; 5] = [b"a\xff", b"a\xfe", b"\xc3\xa9'\\\n\xe9", br"$'a\377'", b"$x"];
    let printed = [r"$'a\377'", r"$'a\376'", r"$'é\'\\\012\351'", r"$'$\'a\\377\''", "$x"];
    for name in names {
        std::fs::write(shell.path("").join(std::ffi::OsStr::from_bytes(name)), "k\n").unwrap();
    }
    shell.write("list", names.join(&0));
    shell.ok("build --bank --files0-from list -o bank --rate 1e-6");
    let expected = printed.map(|name| format!("{name}\tk\n")).concat();
    assert_eq!(which(&shell, "", "k\n").1, expected);
    assert_eq!(shell.fact("bank", "names"), printed.join(", "));
    for (name, printed) in names.iter().zip(&printed[..4]) {
        let output = std::process::Command::new("bash")
            .args(["-c", &format!("printf %s {printed}")])
            .output();
        assert_eq!(output.unwrap().stdout, *name, "{printed}");
    }
}

/// Each file has one column, whatever names it has.
#[test]
fn a_file_is_one_column() {
    let shell = Shell::new();
    shell.write("a", "1\n");
    shell.write("b", "2\n");
    std::fs::hard_link(shell.path("a"), shell.path("c")).unwrap();
    let output = shell.run("build --bank a b ./a c b -o bank --rate 1e-6");
    let text = stderr(&output);
    assert!(text.contains("2 lines of 2 files") && text.contains(", 3 other names of the same files left out"));
    assert_eq!(shell.fact("bank", "names"), "a, b");
    assert_eq!(which(&shell, "", "1\n2\n").1, "a\t1\nb\t2\n");
    let output = shell.run("build --bank b c a -o bank --rate 1e-6 --json-summary");
    let json: Value = serde_json::from_str(&stderr(&output)).unwrap();
    assert_eq!((&json["filters"], &json["names_left_out"]), (&2.into(), &1.into()));
    // Filter files too.
    shell.ok("build a -o f --expected 10");
    let output = shell.run("build --bank f f -o bank");
    assert!(
        stderr(&output).starts_with("1 filter, 1 other name"),
        "{}",
        stderr(&output)
    );
    // One without a key has no wrong column.
    shell.write("none", "");
    assert!(stderr(&shell.run("build --bank none -o bank")).contains(", 0.000 wrong columns per key, "));
    // Other files with the same bytes are other files.
    shell.write("d", "1\n");
    assert!(stderr(&shell.run("build --bank a d -o bank")).contains("2 lines of 2 files"));
}

/// One large file makes every filter large, which is said before it is made.
#[test]
fn a_large_bank_is_announced() {
    let shell = Shell::new();
    shell.write("large", lines(0..450_000));
    let names = Vec::from_iter((0..60).map(|number| format!("{number}")));
    for name in &names {
        shell.write(name, format!("{name}\n"));
    }
    let files = names.join(" ");
    let build = |options: &str| stderr(&shell.run(&format!("build --bank -o bank large {files} {options}")));
    let text = build("");
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("lanebloom: each of the 61 filters has room for the 450")
            && first.contains(" keys of the largest file: the bank takes "),
        "{text}"
    );
    let size = std::fs::metadata(shell.path("bank")).unwrap().len() as f64;
    let said = first.split_once("takes ").unwrap().1.split_once(" MiB").unwrap().0;
    let said = said.parse::<f64>().unwrap() * f64::from(1 << 20);
    assert!((0.99..1.01).contains(&(said / size)), "{said} of {size}");
    assert!(build("--expected 450k").contains("for the 450000 keys of --expected"));
    assert_eq!(build("--quiet"), "");
    assert!(!build("--expected 1k").contains("has room for"));
}

/// Without --expected there is room for all keys: a filter above its rate has other reasons.
#[test]
fn why_a_file_is_above_the_planned_rate() {
    let shell = Shell::new();
    // The inverse of the blocks' multiplier: all its small multiples lie in one block.
    let hash = |number: u64| number.wrapping_mul(8624540351740434791);
    shell.write(
        "a",
        (0..97).map(|number| format!("{}\n", hash(number))).collect::<String>(),
    );
    let build = |options: &str| stderr(&shell.run(&format!("build --bank a -o bank {options}")));
    let text = build("--hasher prehashed");
    assert!(
        text.contains(", 1 file above the planned rate: the hashes are not random") && !text.contains("--expected"),
        "{text}"
    );
    assert!(
        build("--hasher prehashed --expected 50").contains(", 1 file with more keys than the 50 of --expected, or")
    );
    assert!(build("--expected 50").contains(", 1 file with more keys than the 50 of --expected, "));
    assert!(!build("").contains("above"));
}
