//! Bytes that pass as they are; inputs and outputs of every format; what is not a document.

use super::*;

/// All bytes but the removed pieces are those of the input.
#[test]
fn other_bytes_stay() {
    let shell = Shell::new();
    let input = concat!(
        "{ \"a\" : 1.0e5 , \"text\":\t\"x\\u000ay\\nz\" ,\"b\":[ ] }\r\n",
        "{\"text\":\"y\\nnew \\ud83d\\ude00 \\/\\nx\",\"text2\":\"y\\ny\"}\n",
        "\n",
        "{\"text\":\"z\\nx\"}\n",
        "{\"text\":\"\\n\\n\"}\n",
        "{\"text\":\"\\n\\n\"}\n",
        "{\"Text\":\"x\"}\n",
        "{\"text\":\"last\\nx\"}",
    );
    shell.write("in.jsonl", input);
    let expected = concat!(
        "{ \"a\" : 1.0e5 , \"text\":\t\"x\\u000ay\\nz\" ,\"b\":[ ] }\r\n",
        "{\"text\":\"new \\ud83d\\ude00 \\/\",\"text2\":\"y\\ny\"}\n",
        "\n",
        "{\"text\":\"\\n\\n\"}\n",
        "{\"text\":\"\\n\\n\"}\n",
        "{\"Text\":\"x\"}\n",
        "{\"text\":\"last\"}",
    );
    let found = shell.ok("in.jsonl --unit line");
    assert_eq!(String::from_utf8(found).unwrap(), expected);
}

#[test]
fn what_is_no_document_passes_and_is_counted() {
    let shell = Shell::new();
    let broken: &[&[u8]] = &[
        b"{\"text\":\"x\"",
        b"{\"text\":\"x\"} }",
        b"[\"text\"]",
        b"\xff\xfe",
        b"{\"text\":\"\xff\"}",
        b"{\"text\":[\"x\"]}",
        b"{\"text\":\"\\q\"}",
        b"{\"text\":null}",
        b"\"text\"",
        &[b'['; 100_000],
    ];
    let mut input = b"{\"text\":\"x\"}\n".to_vec();
    for _ in 0..2 {
        for line in broken {
            input.extend_from_slice(line);
            input.push(b'\n');
        }
    }
    shell.write("in.jsonl", &input);
    let output = shell.run("in.jsonl --unit line");
    assert!(output.stdout == input, "{}", String::from_utf8_lossy(&output.stdout));
    let expected = "21 documents, 20 of them not compared: 8 without a text, 12 not JSON, 0 dropped";
    assert!(summary(&output).starts_with(expected), "{}", summary(&output));
}

/// JSON lines begin with no byte-order mark, and none ends without a newline before another file.
#[test]
fn the_ends_and_the_starts_of_inputs() {
    let shell = Shell::new();
    let [a, b] = ["a", "b"].map(|text| format!("{{\"text\":\"{text}\"}}"));
    shell.write("1", format!("\u{feff}{a}"));
    shell.write("2", format!("\u{feff}{a}\n{b}"));
    shell.write("3", "");
    let output = shell.run("1 2 3");
    assert_eq!(String::from_utf8(output.stdout.clone()).unwrap(), format!("{a}\n{b}\n"));
    assert!(
        summary(&output).starts_with("3 documents, 1 dropped"),
        "{}",
        stderr(&output)
    );
    shell.write("mark", "\u{feff}");
    let marked = shell.run("mark 1 mark 2 mark");
    assert_eq!(marked.stdout, output.stdout);
    assert!(summary(&marked).starts_with("3 documents, 1 dropped"));
    shell.ok("1 2 3 --output-dir out");
    assert_eq!(
        ["1", "2", "3"].map(|name| shell.read(&format!("out/{name}"))),
        [a.as_bytes(), b.as_bytes(), b""]
    );
    shell.error("empty/ -o new", &["empty"]);
}

#[test]
fn nested_fields() {
    let shell = Shell::new();
    shell.write(
        "in.jsonl",
        "{\"a\":{\"t\":\"x\"},\"text\":\"1\"}\n{\"a\":{\"t\":\"x\"},\"text\":\"2\"}\n",
    );
    assert_eq!(
        shell.ok("in.jsonl --text /a/t"),
        b"{\"a\":{\"t\":\"x\"},\"text\":\"1\"}\n"
    );
    shell.write(
        "array",
        "{\"a\":[0,{\"t\":\"x\\ny\"}]}\n{\"a\":[1,{\"t\":\"y\\nz\"}]}\n",
    );
    let left = shell.ok("array --text /a/1/t --unit line");
    assert_eq!(
        String::from_utf8(left).unwrap(),
        "{\"a\":[0,{\"t\":\"x\\ny\"}]}\n{\"a\":[1,{\"t\":\"z\"}]}\n"
    );
}

#[test]
fn a_folder_is_mirrored_in_every_format() {
    let shell = Shell::new();
    let all = Random(7).texts(400);
    let parts = [&all[..100], &all[100..200], &all[200..300], &all[300..]].map(lines);
    shell.write("in/a.jsonl", &parts[0]);
    shell.write("in/b/a.jsonl.gz", gzip(parts[1].as_bytes()));
    shell.write("in/b/c.zst", zstd::encode_all(parts[2].as_bytes(), 1).unwrap());
    shell.write("in/d.json", &parts[3]);
    shell.write("in/empty.jsonl", "");
    shell.write("in/empty.gz", gzip(b""));
    shell.write("all.jsonl", parts.concat());
    let expected = shell.ok(&format!("all.jsonl --unit line {SURE}"));
    let names = [
        "a.jsonl",
        "b/a.jsonl.gz",
        "b/c.zst",
        "d.json",
        "empty.jsonl",
        "empty.gz",
    ];
    for threads in 1..5 {
        let folder = format!("out{threads}");
        shell.ok(&format!(
            "in --output-dir {folder} --unit line {SURE} --threads {threads}"
        ));
        let unpacked = names.map(|name| unpacked(&shell.path(&format!("{folder}/in/{name}"))));
        assert!(unpacked.concat() == expected);
        assert_eq!(shell.names(&format!("{folder}/in")).len(), 5);
        assert!(!shell.read(&format!("{folder}/in/empty.gz")).is_empty());
    }
    shell.ok(&format!("in -o out.jsonl.gz --unit line {SURE}"));
    assert!(unpacked(&shell.path("out.jsonl.gz")) == expected);
    assert!(shell.ok(&format!("in --unit line {SURE}")) == expected);
}

/// The filter grows by the share of the input that was read, and mistakes depend on its layers. So
/// a rate with many mistakes shows any difference.
#[test]
fn the_output_is_the_same_for_any_number_of_threads() {
    let shell = Shell::new();
    let mut random = Random(3);
    for file in 0..5 {
        let texts = Vec::from_iter((0..30_000).map(|_| format!("{}\n{}", random.next(), random.below(50_000))));
        let bytes = lines(&texts).into_bytes();
        let name = format!("in/{file}.gz");
        shell.write(&name, gzip(&bytes));
    }
    for options in ["--unit line", "--ngrams 1 --overlap 0.5", "--seed 9"] {
        let run = |threads: usize| {
            let output = shell.run(&format!("in --rate 0.3 --threads {threads} {options}"));
            let text = summary(&output);
            (output.stdout, text[..text.find("MB of text").unwrap()].to_owned())
        };
        let one = run(1);
        assert!(!one.0.is_empty());
        for threads in [2, 3, 5, 8] {
            assert!(run(threads) == one, "{threads} {options}");
        }
    }
}

#[test]
fn the_seed_decides_about_mistakes() {
    let shell = Shell::new();
    let texts = Vec::from_iter((0..200_000).map(|n| n.to_string()));
    shell.write("in.jsonl", lines(&texts));
    let run = |seed: u32| shell.ok(&format!("in.jsonl --rate 0.3 --seed {seed}"));
    assert!(run(1) == run(1));
    assert!(run(1) != run(2));
    assert!(run(0) == shell.ok("in.jsonl --rate 0.3"));
}

#[test]
fn a_huge_document() {
    let shell = Shell::new();
    // Ten million words.
    let text = Vec::from_iter((0..1_000_000).map(|n| format!("a b c d e f g h i {n}"))).join("\\n");
    let line = format!("{{\"text\":\"{text}\"}}\n");
    shell.write("in.jsonl", format!("{line}{line}{{\"text\":\"x\"}}\n"));
    shell.error("in.jsonl --max-record 1M", &["in.jsonl", "1000000"]);
    for options in ["", "--unit line", "--unit line --ngrams 3 --overlap 1", "--ngrams 3"] {
        let found = shell.ok(&format!("in.jsonl --threads 2 --rate 1e-9 {options}"));
        assert_eq!(found.len(), line.len() + 13, "{options}");
    }
}

#[test]
fn errors_leave_no_output() {
    let shell = Shell::new();
    shell.write("in/a.jsonl", lines(&["a"]));
    shell.write("in/b.gz", &gzip(&[b' '; 1 << 20])[..500]);
    shell.write("old", "old");
    for threads in [1, 3] {
        shell.error(&format!("in -o old --threads {threads}"), &["b.gz"]);
        assert_eq!(shell.read("old"), b"old");
        shell.error(&format!("in --output-dir out --threads {threads}"), &["b.gz"]);
        // The first one may be complete.
        assert!(shell.names("out/in").iter().all(|name| name == "a.jsonl"));
    }
    assert_eq!(shell.names("."), ["in", "old", "out"]);
    shell.error("in/a.jsonl -o in/a.jsonl", &["also an input"]);
    shell.error("in/a.jsonl --split (", &["--split", "unclosed"]);
    shell.error("- --output-dir out", &["stdin has no name"]);
    shell.error("missing.jsonl", &["missing.jsonl"]);
    shell.error("in/a.jsonl --ngrams 3 --overlap 0", &["above 0"]);
}

/// They lie below it, like those of a folder that is named.
#[test]
fn the_outputs_of_a_pattern_have_its_folders() {
    let shell = Shell::new();
    for (name, text) in [("in/x/a.jsonl", "a"), ("in/b.jsonl", "b"), ("in/x/c.txt", "c")] {
        shell.write(name, lines(&[text, text]));
    }
    shell.ok("in/**/*.jsonl --output-dir out");
    assert_eq!(shell.names("out/in"), ["b.jsonl", "x"]);
    assert_eq!(shell.names("out/in/x"), ["a.jsonl"]);
    assert_eq!(texts(&shell.read("out/in/x/a.jsonl")), ["a"]);
    shell.ok("*/x/?.txt --output-dir other");
    assert_eq!(texts(&shell.read("other/in/x/c.txt")), ["c"]);
    shell.error("in/*.gz --output-dir out", &["no file matches in/*.gz"]);
}

/// Half a surrogate pair is not a character. With one in its place, different texts would be equal.
#[test]
fn texts_that_differ_in_half_a_surrogate_pair_are_not_equal() {
    let shell = Shell::new();
    let halves = ["\\ud83d", "\\ud83e", "\\ude00", "\\ud83d\\ud83d", "\u{fffd}", "\\ufffd"];
    let input: String = halves.map(|half| format!("{{\"text\":\"a {half}\"}}\n")).concat();
    shell.write("in.jsonl", &input);
    let output = shell.run("in.jsonl");
    let left = input.lines().count() - 1;
    assert_eq!(
        output.stdout,
        Vec::from_iter(input.split_inclusive('\n').take(left))
            .concat()
            .as_bytes()
    );
    let text = summary(&output);
    let expected = "6 documents, 4 of them not compared: 4 with half a surrogate pair, 1 dropped";
    assert!(text.starts_with(expected), "{text}");
    // The same by `dedup --json`.
    let Some(mut dedup) = lanebloom() else { return };
    let dedup = dedup
        .current_dir(&shell.0)
        .args(["dedup", "--json", "/text", "in.jsonl"]);
    assert_eq!(dedup.output().unwrap().stdout, output.stdout);
    let report = shell.report("in.jsonl -o o.jsonl --unit line --annotate a");
    assert_eq!(
        (&report["half_surrogate"], &report["without_text"]),
        (&4.into(), &0.into())
    );
}

/// Python writes NaN and Infinity, which are not JSON.
#[test]
fn the_summary_tells_which_lines_are_not_json() {
    let shell = Shell::new();
    let lines = [
        "{\"text\":\"a\",\"x\":NaN}",
        "{\"text\":\"a\",\"x\":-Infinity}",
        "{\"text\":\"NaN\"}",
        "x",
        "",
        "1",
    ];
    shell.write("in.jsonl", lines.map(|line| format!("{line}\n")).concat());
    let output = shell.run("in.jsonl");
    let expected = "6 documents, 5 of them not compared: 2 without a text, 3 not JSON (2 with NaN or Infinity), ";
    assert!(summary(&output).starts_with(expected), "{}", summary(&output));
    let report = shell.report("in.jsonl -o o.jsonl");
    assert_eq!(report["not_json"], 3);
    assert_eq!(report["not_json_with_nan"], 2);
    assert_eq!(report["without_text"], 2);
}

/// A line of 5 MB of newlines would take 230 MB.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_document_is_bounded_whatever_its_pieces() {
    let shell = Shell::new();
    let run = |options: &str| {
        let line = format!("in.jsonl -o out --max-record 5100k --threads 1 {options}");
        let output = shell.run_after("ulimit -v 307200", &line);
        assert_eq!(shell.path("out").exists(), output.status.success());
        let _ = fs::remove_file(shell.path("out"));
        output
    };
    let options = ["--unit line", "--unit line --annotate a", "--ngrams 3"];
    for (piece, count) in [("\\n", 2_500_000), ("a\\n", 1_650_000), ("! ", 2_500_000)] {
        let text = piece.repeat(count);
        shell.write("in.jsonl", format!("{{\"text\":\"b\"}}\n{{\"text\":\"{text}\"}}\n"));
        let limit = "in.jsonl: the pieces and words of the document at byte 13 take more than 30600000 bytes";
        let mut refused = 0;
        for options in options {
            let output = run(options);
            let errors = stderr(&output);
            match output.status.code() {
                Some(0) => {}
                Some(2) => {
                    assert!(errors.contains(limit) && errors.contains("above 5100000"), "{errors}");
                    refused += 1;
                }
                other => panic!("{other:?} {piece} {options}: {errors}"),
            }
        }
        assert!(refused > 0, "{piece}");
        // One piece, whose words are not wanted.
        let output = run("--unit document");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    // Text that people write passes.
    let text = "这是一个很长的文本，没有空格。\\n".repeat(106_000);
    shell.write("in.jsonl", format!("{{\"text\":\"{text}\"}}\n"));
    for options in options {
        let output = run(options);
        assert_eq!(output.status.code(), Some(0), "{options}: {}", stderr(&output));
    }
}

/// They are not lines of JSON, and would pass as such.
#[test]
fn archives_and_text_in_utf16_are_refused() {
    let shell = Shell::new();
    shell.write("z.jsonl", lines(&["a"]));
    let utf16 = format!("\u{feff}{}", lines(&["a"]));
    shell.write("utf16", Vec::from_iter(utf16.encode_utf16().flat_map(u16::to_le_bytes)));
    shell.error("utf16 z.jsonl", &["utf16: ", "UTF-16", "iconv"]);
    let mut tar = vec![0; 2048];
    tar[..7].copy_from_slice(b"a.jsonl");
    tar[257..262].copy_from_slice(b"ustar");
    tar[512..][..lines(&["a"]).len()].copy_from_slice(lines(&["a"]).as_bytes());
    shell.write("x.tar.gz", gzip(&tar));
    shell.error("x.tar.gz z.jsonl", &["x.tar.gz", "a tar archive", "`tar xzf`"]);
    shell.write("x.zip", "PK\x03\x04\n");
    shell.error("x.zip z.jsonl --output-dir out", &["x.zip", "a zip archive"]);
}

/// A name of stderr leads to the log behind it, whose lines would be lost.
#[cfg(target_os = "linux")]
#[test]
fn an_open_descriptor_is_not_replaced() {
    let shell = Shell::new();
    shell.write("in", lines(&["a", "a"]));
    shell.write("log", "old\n");
    let output = shell.run_after("exec 2>>log", "in -o out --report /dev/stderr");
    assert_eq!(output.status.code(), Some(2));
    let log = String::from_utf8(shell.read("log")).unwrap();
    assert!(
        log.starts_with("old\nlanebloom-corpus: cannot write /dev/stderr: stderr goes to this file"),
        "{log}"
    );
    assert!(!shell.path("out").exists());
}
