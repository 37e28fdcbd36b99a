//! States and their journals: runs that follow each other, and what does not fit.

use super::model::Model;
use super::*;

#[test]
fn a_second_run_removes_nothing_more_and_says_so() {
    let shell = Shell::new();
    let all = Random(1).texts(300);
    shell.write("in/a.jsonl", lines(&all[..100]));
    shell.write("in/b.jsonl", lines(&all[100..200]));
    let line = format!("in --output-dir out --unit line --state s.lbf {SURE}");
    shell.ok(&line);
    let first = [shell.read("out/in/a.jsonl"), shell.read("out/in/b.jsonl")];
    let state = shell.read("s.lbf");
    let again = shell.run(&line);
    assert!(again.status.success());
    assert!(
        stderr(&again).contains("2 inputs were done before"),
        "{}",
        stderr(&again)
    );
    assert!([shell.read("out/in/a.jsonl"), shell.read("out/in/b.jsonl")] == first);
    assert!(shell.read("s.lbf") == state);

    // Only what is new is read.
    shell.write("in/c.jsonl", lines(&all[200..]));
    let report = shell.report(&line);
    assert_eq!(
        (&report["inputs_skipped"], &report["documents"]),
        (&2.into(), &100.into())
    );
    let found = [&first[0][..], &first[1], &shell.read("out/in/c.jsonl")].concat();
    assert_eq!(texts(&found), Model::new(Some("\n")).all(&all));
    assert_eq!(shell.names("."), ["in", "out", "report.json", "s.lbf", "s.lbf.journal"]);
}

/// The journal's hash comes from the bytes as they are read, also by threads that unpack ahead, and
/// the next run compares it with that of the file.
#[test]
fn compressed_and_empty_inputs_are_skipped_too() {
    let shell = Shell::new();
    let all = Random(3).texts(200);
    let parts = Vec::from_iter(all.chunks(50).map(lines));
    shell.write("in/0.jsonl", "");
    shell.write(
        "in/1.jsonl.gz",
        [gzip(parts[0].as_bytes()), gzip(parts[1].as_bytes())].concat(),
    );
    shell.write("in/2.jsonl.zst", zstd::encode_all(parts[2].as_bytes(), 1).unwrap());
    shell.write("in/3.jsonl.gz", gzip(b""));
    shell.write("in/4.jsonl", &parts[3]);
    for threads in [1, 4] {
        let line = format!("in --output-dir out{threads} --unit line --state s{threads} --threads {threads}");
        shell.ok(&line);
        assert_eq!(shell.report(&line)["inputs_skipped"], 5);
    }
    assert!(shell.read("s1.journal") == shell.read("s4.journal"));
}

#[test]
fn an_output_that_would_lose_documents_is_not_replaced() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.write("b.jsonl", lines(&["b"]));
    shell.ok("a.jsonl -o out.jsonl --state s");
    let first = shell.read("out.jsonl");
    shell.error(
        "a.jsonl b.jsonl -o out.jsonl --state s",
        &["out.jsonl exists", "1 of the inputs"],
    );
    shell.error("a.jsonl -o out.jsonl --state s", &["out.jsonl exists"]);
    assert!(shell.read("out.jsonl") == first);
    shell.ok("a.jsonl b.jsonl -o more.jsonl --state s");
    assert_eq!(texts(&shell.read("more.jsonl")), ["b"]);
}

#[test]
fn an_input_that_changed_is_an_error() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.ok("a.jsonl --output-dir out --state s");
    for changed in [lines(&["a", "b"]), lines(&["c"])] {
        shell.write("a.jsonl", changed);
        shell.error("a.jsonl --output-dir out --state s", &["a.jsonl has changed"]);
    }
    shell.write("a.jsonl", lines(&["a"]));
    shell.ok("a.jsonl --output-dir out --state s");
}

#[test]
fn a_state_has_its_options_and_its_journal() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a b c"]));
    shell.write("b.jsonl", lines(&["d"]));
    shell.ok("a.jsonl --ngrams 3 --state s");
    shell.error("b.jsonl --ngrams 4 --state s", &["--ngrams 3", "--ngrams 4"]);
    shell.error("b.jsonl --ngrams 3 --words ascii --state s", &["--words unicode"]);
    shell.error("b.jsonl --ngrams 3 --normalize lower --state s", &["--normalize lower"]);
    shell.error("b.jsonl --ngrams 3 --seed 1 --state s", &["the seed 0"]);
    let old = [shell.read("s"), shell.read("s.journal")];
    shell.ok("b.jsonl --ngrams 3 --overlap 0.5 --state s");
    // Another state than the journal's.
    shell.write("s", &old[0]);
    shell.error("a.jsonl --ngrams 3 --state s", &["s.journal does not belong"]);
    fs::remove_file(shell.path("s")).unwrap();
    shell.error("a.jsonl --ngrams 3 --state s", &["s.journal does not belong"]);
    shell.write("s", &old[0]);
    shell.write("s.journal", &old[1]);
    assert_eq!(texts(&shell.ok("a.jsonl b.jsonl --ngrams 3 --state s")), ["d"]);
    shell.write("s.journal", "{}");
    shell.error("b.jsonl --ngrams 3 --state s", &["no journal"]);
    shell.write("s.journal", "x");
    shell.error("b.jsonl --ngrams 3 --state s", &["no journal"]);
}

/// The layers that a run adds have the seed of the first one, or no later run could read them.
#[test]
fn a_state_with_a_seed_grows() {
    let shell = Shell::new();
    let all = Vec::from_iter((0..100_000).map(|number| number.to_string()));
    shell.write("a.jsonl", lines(&all));
    shell.write("b.jsonl", lines(&all[1..]));
    let line = "--rate 1e-9 --state s --seed 5";
    // From a pipe the size is unknown.
    let mut run = shell.command(line);
    let input = fs::File::open(shell.path("a.jsonl")).unwrap();
    assert!(run.stdin(input).output().unwrap().status.success());
    assert_eq!(shell.ok(&format!("b.jsonl {line}")), b"");
}

/// Every second file for each of two machines at a time, then what one of them has against the
/// other's filter, then both filters as one.
#[test]
fn two_machines() {
    let shell = Shell::new();
    let all = Random(5).texts(600);
    let part = |number: usize| &all[100 * number..100 * (number + 1)];
    (0..4).for_each(|number| shell.write(&format!("in/{number}.jsonl"), lines(part(number))));
    shell.write("a", "in/0.jsonl\nin/2.jsonl\n");
    shell.write("b", "in/1.jsonl\nin/3.jsonl\n");
    shell.write("c.jsonl", lines(&all[400..]));
    let runs = ["a", "b"].map(|name| {
        let size = "--expected 100000 --rate 1e-9";
        let line = format!("--files-from {name} -o {name}1.jsonl --unit line --state {name}.lbf {size}");
        shell.command(&line).stderr(Stdio::null()).spawn().unwrap()
    });
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    let b = shell.ok("b1.jsonl --unit line --against a.lbf");
    let found = [shell.read("a1.jsonl"), b].concat();
    let mut model = Model::new(Some("\n"));
    let parts = [part(0), part(2), part(1), part(3)].concat();
    assert_eq!(texts(&found), model.all(&parts));

    let mut merge = Command::new(env!("CARGO_BIN_EXE_lanebloom"));
    let merge = merge
        .current_dir(&shell.0)
        .args(["merge", "a.lbf", "b.lbf", "-o", "all.lbf"]);
    assert!(merge.stderr(Stdio::null()).status().unwrap().success());
    let c = shell.ok("c.jsonl --unit line --state all.lbf");
    assert_eq!(texts(&c), model.all(&all[400..]));
}

/// The state has the documents already, so their output waits until its name can be given: also for
/// a run from another folder.
#[cfg(unix)]
#[test]
fn an_output_without_a_name_is_not_lost() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a", "b"]));
    shell.write("c.jsonl", lines(&["a", "c"]));
    let mut run = shell.command("a.jsonl - -o out.jsonl --state s");
    let mut run = run.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !shell.names(".").iter().any(|name| name.ends_with(".part")) {
        std::thread::yield_now();
    }
    fs::create_dir(shell.path("out.jsonl")).unwrap();
    drop(run.stdin.take());
    let output = run.wait_with_output().unwrap();
    assert!(stderr(&output).contains("cannot write"), "{}", stderr(&output));
    fs::remove_dir(shell.path("out.jsonl")).unwrap();

    fs::create_dir(shell.path("in")).unwrap();
    let mut next = shell.command("../c.jsonl -o ../more.jsonl --state ../s");
    assert!(next.current_dir(shell.path("in")).output().unwrap().status.success());
    assert_eq!(texts(&shell.read("out.jsonl")), ["a", "b"]);
    assert_eq!(texts(&shell.read("more.jsonl")), ["c"]);
}

#[test]
fn a_report_or_a_filter_replaces_no_input_and_no_other_output() {
    let shell = Shell::new();
    let input = lines(&["a"]);
    shell.write("a.jsonl", &input);
    shell.error("a.jsonl -o o.jsonl --report a.jsonl", &["a.jsonl", "is also an input"]);
    shell.error("a.jsonl --build a.jsonl", &["a.jsonl", "is also an input"]);
    for report in ["o.jsonl", "s", "s.journal"] {
        let line = format!("a.jsonl -o o.jsonl --state s --report {report}");
        shell.error(&line, &["the report", report, "another output"]);
    }
    shell.error("a.jsonl --build f --report f", &["the report", "another output"]);
    shell.error("a.jsonl --report -", &["the report", "another output"]);
    assert_eq!(shell.read("a.jsonl"), input.as_bytes());
    assert_eq!(shell.names("."), ["a.jsonl"]);
}

/// A journal may come from a stranger.
#[test]
fn a_journal_moves_and_removes_outputs_only() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.ok("a.jsonl --state s");
    shell.write("other", "x");
    let mut journal: Value = serde_json::from_slice(&shell.read("s.journal")).unwrap();
    for state in [journal["state"].clone(), Value::Null] {
        let outputs = serde_json::json!([[shell.path("other"), shell.path("moved")]]);
        journal["next"] = serde_json::json!({"state": state, "inputs": [], "outputs": outputs});
        shell.write("s.journal", journal.to_string());
        shell.error("a.jsonl --state s", &["no journal"]);
        assert_eq!(shell.names("."), ["a.jsonl", "other", "s", "s.journal"]);
    }
}

/// A process may have few files open.
#[cfg(unix)]
#[test]
fn many_outputs_wait_for_their_names() {
    let shell = Shell::new();
    for number in 0..200 {
        shell.write(&format!("in/{number}.jsonl"), lines(&[number.to_string()]));
    }
    let mut run = Command::new("sh");
    run.args(["-c", "ulimit -n 64; exec \"$0\" corpus in --output-dir out --state s"]);
    let run = run.arg(env!("CARGO_BIN_EXE_lanebloom")).current_dir(&shell.0);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(shell.names("out/in").len(), 200);
}

/// A stranger could put a link where the output is written before it is complete.
#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_an_output_is_not_followed() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.write("other", "x");
    let part = format!(".lanebloom-{:016x}.part", twox_hash::XxHash3_64::oneshot(b"o.jsonl"));
    std::os::unix::fs::symlink("other", shell.path(&part)).unwrap();
    shell.error("a.jsonl -o o.jsonl", &["cannot write"]);
    assert_eq!(shell.read("other"), b"x");
}
