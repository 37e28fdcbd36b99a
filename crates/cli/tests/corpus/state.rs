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
