//! Filters: their rate, their limit, and filters to compare with.

use super::*;

/// Different documents, as lines of JSON.
fn different(count: usize) -> String {
    (0..count)
        .map(|number| format!("{{\"text\":\"{number} {number}\"}}\n"))
        .collect()
}

#[test]
fn the_report_tells_how_many_are_removed_by_mistake() {
    let shell = Shell::new();
    shell.write("in.jsonl", different(200_000));
    for options in ["", "--ngrams 2", "--ngrams 2 --min-words 2", "--expected 200000"] {
        let report = shell.report(&format!("in.jsonl -o out --rate 0.01 {options}"));
        let number = |name: &str| report[name].as_f64().unwrap();
        let removed = number("pieces_removed");
        assert_eq!(removed, number("dropped_empty"));
        assert!(removed > 0.0 && removed < 0.011 * 200_000.0, "{options}: {removed}");
        let expected = number("wrongly_removed_expected");
        assert!(
            (removed - expected).abs() < 6.0 * expected.sqrt(),
            "{options}: {removed}, {expected}"
        );
        assert!(number("fill") > 0.1 && number("fill") < 0.6, "{report}");
        assert!(
            number("memory_bytes") > 200_000.0 && number("memory_bytes") < 2e6,
            "{report}"
        );
        assert!(number("rate_now") <= 0.01, "{report}");
        assert_eq!((number("pieces"), number("hashes")), (200_000.0, 200_000.0));
        assert_eq!(number("text_bytes") as usize, different(200_000).len() - 12 * 200_000);
    }
}

#[test]
fn a_full_filter_stops_keeps_or_forgets() {
    let shell = Shell::new();
    let first = different(200_000);
    shell.write("in.jsonl", format!("{first}{first}"));
    let line = "in.jsonl -o out --memory 500k --rate 1e-6";
    shell.error(line, &["the filter is full", "--when-full", "limit of 500000 bytes"]);
    assert!(!shell.path("out").exists());
    shell.error("in.jsonl -o out --memory 1k", &["at the start", "--memory"]);

    // Those that it has are removed, and no others.
    let report = shell.report(&format!("{line} --when-full keep"));
    let number = |report: &Value, name: &str| report[name].as_u64().unwrap();
    let removed = number(&report, "pieces_removed");
    assert!((60_000..200_000).contains(&removed), "{report}");
    assert_eq!(report["full"], true);
    assert!(number(&report, "memory_bytes") <= 500_000);
    let out = shell.read("out");
    assert!(out.starts_with(first.as_bytes()));
    assert_eq!(
        out.iter().filter(|&&byte| byte == b'\n').count() as u64,
        400_000 - removed
    );

    let report = shell.report(&format!("{line} --when-full forget"));
    assert!(number(&report, "forgotten") > 50_000, "{report}");
    assert!(number(&report, "memory_bytes") <= 500_000);
    assert!(report["rate_now"].as_f64().unwrap() <= 1e-6);
    assert!(shell.read("out").starts_with(first.as_bytes()));
    // A text of a moment ago is not forgotten.
    let near: String = first.lines().flat_map(|line| [line, "\n", line, "\n"]).collect();
    shell.write("in.jsonl", near);
    let report = shell.report(&format!("{line} --when-full forget"));
    assert!(number(&report, "pieces_removed") > 199_000, "{report}");

    // Enough memory changes nothing.
    let plain = shell.ok("in.jsonl");
    assert!(shell.ok("in.jsonl --memory 8G") == plain);
    assert!(shell.ok("in.jsonl --memory 8G --when-full forget") == plain);
}

#[test]
fn decontamination() {
    let shell = Shell::new();
    shell.write(
        "bench.jsonl",
        lines(&["one two three four five", "a question", "a question"]),
    );
    shell.ok("bench.jsonl --build bench.lbf --ngrams 3 --rate 1e-9");
    let all = [
        "x y one two three four five z",
        "one two x three four y",
        "a question",
        "a  question",
        "a b",
        "a b",
    ];
    shell.write("in.jsonl", lines(&all));
    let bench = shell.read("bench.lbf");
    let left = |options: &str| texts(&shell.ok(&format!("in.jsonl --ngrams 3 --against bench.lbf {options}")));
    assert_eq!(left("--overlap 0.5"), [all[1], all[4], all[5]]);
    assert_eq!(
        left("--overlap 0.51"),
        all[..2].iter().chain(&all[4..]).copied().collect::<Vec<_>>()
    );
    let hits = shell.ok("in.jsonl --ngrams 3 --against bench.lbf --overlap 0.1 --annotate hits");
    assert!(
        hits.starts_with(
            b"{\"id\":0,\"attributes\":{\"hits\":[[0,29,0.5]]}}\n{\"id\":1,\"attributes\":{\"hits\":[]}}\n"
        )
    );
    assert!(shell.read("bench.lbf") == bench);
    shell.error(
        "in.jsonl --ngrams 4 --against bench.lbf",
        &["bench.lbf", "--ngrams 3", "--ngrams 4"],
    );
    shell.error("in.jsonl --against missing.lbf", &["missing.lbf"]);

    // `lanebloom build` makes such a filter of lines too.
    shell.write("lines", "a question\n");
    let Some(mut build) = lanebloom() else { return };
    let build = build.current_dir(&shell.0).args(["build", "lines", "-o", "lines.lbf"]);
    assert!(build.stderr(Stdio::null()).status().unwrap().success());
    assert_eq!(texts(&shell.ok("in.jsonl --against lines.lbf")).len(), 5);
}

/// The filter and the output stay as they were.
#[test]
fn a_folder_without_files_is_an_error() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.ok("a.jsonl --build filter");
    let before = shell.read("filter");
    fs::create_dir(shell.path("none")).unwrap();
    for line in ["none --build filter", "none -o out/new"] {
        shell.error(line, &["the folder none has no file to read"]);
    }
    assert_eq!(shell.read("filter"), before);
    assert!(!shell.path("out").exists());
}

/// The first layer is for a share of a large input, but not for all of --memory.
#[test]
fn a_large_input_leaves_room_in_the_memory() {
    let shell = Shell::new();
    let text = "word ".repeat(1 << 18);
    shell.write("a.jsonl", lines(&vec![text; 50]));
    let report = shell.report("a.jsonl -o o.jsonl --memory 400K");
    assert!(report["memory_bytes"].as_u64().unwrap() < 400_000);
    let report = shell.report("a.jsonl -o o.jsonl");
    assert!(report["memory_bytes"].as_u64().unwrap() > 400_000);
    assert_eq!(texts(&shell.read("o.jsonl")).len(), 1);
}
