//! States and their journals: runs that follow each other, and what does not fit.

use super::model::Model;
use super::*;

/// A journal with the checksum of the other members.
fn sealed(mut journal: Value) -> String {
    journal.as_object_mut().unwrap().remove("checksum");
    let checksum = twox_hash::XxHash3_64::oneshot(journal.to_string().as_bytes());
    journal["checksum"] = format!("{checksum:016x}").into();
    journal.to_string()
}

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
    shell.error("b.jsonl --ngrams 3 --state s", &["not a journal"]);
    shell.write("s.journal", "x");
    shell.error("b.jsonl --ngrams 3 --state s", &["not a journal"]);
}

/// Journals of earlier versions say that something is not there, or do not name it.
#[test]
fn old_journals_are_read() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.ok("a.jsonl -o - --state s");
    shell.ok("a.jsonl --build f");
    for (name, absent) in [("s", "next"), ("f", "next"), ("f", "inputs")] {
        let path = format!("{name}.journal");
        let mut journal: Value = serde_json::from_slice(&shell.read(&path)).unwrap();
        assert_eq!(journal.get(absent), None, "{journal}");
        journal[absent] = Value::Null;
        shell.write(&path, sealed(journal));
        assert_eq!(shell.report("a.jsonl -o - --state s")["inputs_skipped"], 1);
        assert_eq!(shell.ok("a.jsonl --against f"), b"");
    }
}

/// A disk without room, as a limit on the size of files: nothing is left of the outputs, and the
/// state has not seen what they lack.
#[cfg(unix)]
#[test]
fn a_write_that_fails_saves_nothing() {
    let shell = Shell::new();
    let texts = Vec::from_iter((0..8000).map(|number| number.to_string()));
    for name in 0..8 {
        shell.write(&format!("in/{name}.jsonl"), lines(&texts));
    }
    let line = "in --output-dir out --state s --threads 8 --save-every 0 --annotate seen --quiet";
    let output = shell.run_after("trap '' XFSZ; ulimit -f 100", line);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.starts_with("lanebloom-corpus: cannot write out/in/0.jsonl: ") && errors.lines().count() == 1,
        "{errors}"
    );
    assert_eq!(shell.names("out/in"), [""; 0]);
    assert_eq!(shell.names("."), ["in", "out"]);
    shell.ok(line);
    assert_eq!(shell.names("out/in").len(), 8);
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

/// The bytes of stdin are not those of a file with the name `-`.
#[test]
fn stdin_is_in_no_journal() {
    let shell = Shell::new();
    shell.write("-", lines(&["1"]));
    for text in ["2", "3"] {
        shell.write("in", lines(&[text]));
        let mut run = shell.command("- --state s");
        let input = fs::File::open(shell.path("in")).unwrap();
        let output = run.stdin(input).output().unwrap();
        assert_eq!(texts(&output.stdout), [text], "{}", stderr(&output));
    }
    assert_eq!(texts(&shell.ok("./- --state s")), ["1"]);
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

    let Some(mut merge) = lanebloom() else { return };
    let merge = merge
        .current_dir(&shell.0)
        .args(["merge", "a.lbf", "b.lbf", "-o", "all.lbf"]);
    assert!(merge.stderr(Stdio::null()).status().unwrap().success());
    // The inputs of both are done.
    let report = shell.report("in -o d.jsonl --unit line --state all.lbf");
    assert_eq!(
        (&report["inputs_skipped"], &report["documents"]),
        (&4.into(), &0.into())
    );
    let c = shell.ok("c.jsonl --unit line --state all.lbf");
    assert_eq!(texts(&c), model.all(&all[400..]));
}

/// The command refuses to merge them, like `corpus`: hashes or inputs would mean something else.
#[test]
fn states_that_do_not_fit_are_not_merged() {
    let shell = Shell::new();
    if lanebloom().is_none() {
        return;
    }
    let merge = |line: &str| {
        let mut merge = lanebloom().expect("it was there");
        let merge = merge.current_dir(&shell.0).arg("merge").args(line.split(' '));
        let output = merge.output().unwrap();
        (output.status.success(), stderr(&output))
    };
    shell.write("a.jsonl", lines(&["a b"]));
    shell.write("b.jsonl", lines(&["c d"]));
    shell.ok("a.jsonl --state a");
    shell.ok("b.jsonl --state b --unit line");
    let (is_ok, errors) = merge("a b -o c");
    assert!(
        !is_ok && errors.contains("--unit document") && errors.contains("--unit line"),
        "{errors}"
    );
    shell.ok("b.jsonl --state d");
    assert!(merge("a d -o a").0);
    assert_eq!(shell.report("a.jsonl b.jsonl -o - --state a")["inputs_skipped"], 2);
    // A filter without a journal gives none.
    fs::remove_file(shell.path("d.journal")).unwrap();
    assert!(merge("a d -o e").0 && !shell.path("e.journal").exists());
    shell.error("a.jsonl --state e", &["e has no journal"]);
    // Filters of --build keep their options.
    shell.ok("a.jsonl --build f --unit line");
    shell.ok("b.jsonl --build g --unit line");
    assert!(merge("f g -o h").0);
    shell.error("a.jsonl --against h", &["--unit line"]);
    assert_eq!(shell.ok("a.jsonl b.jsonl --against h --unit line"), b"");
    shell.error(
        "a.jsonl --state h --unit line",
        &["h is a filter of --build", "--against"],
    );
    // No journal of an input is replaced, and no other file by a journal.
    let journal = shell.read("a.journal");
    shell.write("k.journal", "notes");
    for (line, part) in [
        ("a b -o a.journal", "a.journal: it is also the journal of an input"),
        ("a f -o f.journal", "f.journal: it is also the journal of an input"),
        ("f g -o k", "k.journal is not a journal"),
    ] {
        let (is_ok, errors) = merge(line);
        assert!(!is_ok && errors.contains(part), "{line}: {errors}");
    }
    shell.error("a.jsonl --build k", &["cannot replace", "k.journal is not a journal"]);
    assert!(!shell.path("k").exists() && shell.read("k.journal") == b"notes");
    assert!(shell.read("a.journal") == journal);
    // Another filter than the journal's.
    fs::copy(shell.path("d"), shell.path("a")).unwrap();
    let (is_ok, errors) = merge("a b -o c");
    assert!(!is_ok && errors.contains("a.journal does not belong"), "{errors}");
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
        shell.write("s.journal", sealed(journal.clone()));
        shell.error("a.jsonl --state s", &["not a journal"]);
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
    let output = shell.run_after("ulimit -n 64", "in --output-dir out --state s");
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

/// A container may mount the folder elsewhere: the outputs of the first run stay, and only new
/// inputs are read.
#[test]
fn a_state_whose_folder_moved_knows_its_inputs() {
    let shell = Shell::new();
    let all = Random(13).texts(120);
    for (number, texts) in all.chunks(30).take(3).enumerate() {
        shell.write(&format!("one/in/{number}.jsonl"), lines(texts));
    }
    // Equal ones, and empty ones.
    for name in ["same.jsonl", "empty", "empty2"] {
        let bytes = if name == "same.jsonl" {
            lines(&all[..30])
        } else {
            String::new()
        };
        shell.write(&format!("one/in/{name}"), bytes);
    }
    let run = |folder: &str| {
        let mut run = shell.command("in --output-dir out --unit line --state st --report report.json --rate 1e-12");
        let output = run.current_dir(shell.path(folder)).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&shell.read(&format!("{folder}/report.json"))).unwrap();
        (report["inputs_skipped"].as_u64().unwrap(), stderr(&output))
    };
    assert_eq!(run("one").0, 0);
    let names = shell.names("one/out/in");
    let outputs =
        |folder: &str| Vec::from_iter(names.iter().map(|name| shell.read(&format!("{folder}/out/in/{name}"))));
    let first = outputs("one");
    fs::rename(shell.path("one"), shell.path("two")).unwrap();
    let (skipped, text) = run("two");
    assert_eq!(skipped, 6, "{text}");
    assert!(
        text.contains("6 inputs were done before (6 of them had another path then)"),
        "{text}"
    );
    assert!(outputs("two") == first);
    shell.write("two/in/new.jsonl", lines(&all[90..]));
    assert_eq!(run("two").0, 6);
    assert!(outputs("two") == first);
    let mut model = Model::new(Some("\n"));
    model.all(&all[..90]);
    assert_eq!(texts(&shell.read("two/out/in/new.jsonl")), model.all(&all[90..]));
}

/// An input whose bytes another input has is done only if it was there as often.
#[test]
fn a_copy_of_an_input_that_is_done_is_another_input() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.write("b.jsonl", lines(&["a"]));
    shell.ok("a.jsonl --output-dir out --state s");
    let report = shell.report("a.jsonl b.jsonl --output-dir out --state s");
    assert_eq!(report["inputs_skipped"], 1);
    assert_eq!(texts(&shell.read("out/a.jsonl")), ["a"]);
    assert_eq!(shell.read("out/b.jsonl"), b"");
    assert_eq!(
        shell.report("a.jsonl b.jsonl a.jsonl -o - --state s")["inputs_skipped"],
        3
    );
}

/// The documents in the output are in the state, so a new one would be without them.
#[test]
fn an_output_that_the_state_may_know_is_not_replaced() {
    let shell = Shell::new();
    shell.write("one/a.jsonl", lines(&["a", "b"]));
    shell.ok("one/a.jsonl --output-dir out --state s");
    // Moved, and longer.
    shell.write("two/a.jsonl", lines(&["a", "b", "c"]));
    shell.error(
        "two/a.jsonl --output-dir out --state s",
        &["out/a.jsonl exists", "the state", "lost"],
    );
    assert_eq!(texts(&shell.read("out/a.jsonl")), ["a", "b"]);
    shell.ok("two/a.jsonl --output-dir out2 --state s");
    assert_eq!(texts(&shell.read("out2/a.jsonl")), ["c"]);
}

#[test]
fn a_state_without_its_journal_is_an_error() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.write("b.jsonl", lines(&["a", "b"]));
    shell.error("a.jsonl --new-journal", &["--state"]);
    shell.ok("a.jsonl --output-dir out --state s");
    shell.error(
        "a.jsonl --output-dir out --state s --new-journal",
        &["is there already"],
    );
    fs::remove_file(shell.path("s.journal")).unwrap();
    let line = "a.jsonl --output-dir out --state s";
    shell.error(line, &["s has no journal", "s.journal", "--new-journal"]);
    assert_eq!(texts(&shell.read("out/a.jsonl")), ["a"]);
    assert_eq!(texts(&shell.ok("b.jsonl --state s --new-journal")), ["b"]);
    assert_eq!(shell.report("b.jsonl -o - --state s")["inputs_skipped"], 1);
}

/// Wherever a digit, a letter or a brace is another one.
#[test]
fn a_journal_that_is_damaged_is_an_error() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    shell.ok("a.jsonl --output-dir out --state s --unit line");
    let journal = shell.read("s.journal");
    let (mut places, mut random) = (0, Random(14));
    while places < 60 {
        let at = random.below(journal.len());
        let mut damaged = journal.clone();
        damaged[at] = match damaged[at] {
            b'0'..=b'8' | b'a'..=b'y' => damaged[at] + 1,
            b'9' => b'0',
            b'{' | b'}' => b'x',
            _ => continue,
        };
        places += 1;
        shell.write("s.journal", damaged);
        shell.error(
            "a.jsonl --output-dir out --state s --unit line",
            &["s.journal", "journal"],
        );
        assert_eq!(texts(&shell.read("out/a.jsonl")), ["a"]);
    }
    shell.write("s.journal", &journal);
    shell.ok("a.jsonl --output-dir out --state s --unit line");
    // And the options of a filter to compare with.
    shell.ok("a.jsonl --build f --unit line");
    let options = String::from_utf8(shell.read("f.journal")).unwrap();
    shell.write("f.journal", options.replace("line", "document"));
    shell.error("a.jsonl --against f", &["f.journal is damaged"]);
    // Another filter in its place, or a run that was killed before it wrote the journal.
    shell.write("f.journal", options);
    shell.write("b.jsonl", lines(&["b"]));
    shell.ok("b.jsonl --build g");
    fs::copy(shell.path("g"), shell.path("f")).unwrap();
    shell.error("a.jsonl --against f --unit line", &["f.journal does not belong"]);
}

/// A run that was killed after it replaced the state, and whose folder moved then.
#[test]
fn the_outputs_of_a_killed_run_get_their_names_after_a_move() {
    let shell = Shell::new();
    for folder in ["one/in", "one/out/in", "one/states"] {
        fs::create_dir_all(shell.path(folder)).unwrap();
    }
    shell.write("one/in/a.jsonl", lines(&["a"]));
    shell.ok("one/in --output-dir one/out --state one/states/s");
    let mut journal: Value = serde_json::from_slice(&shell.read("one/states/s.journal")).unwrap();
    let part = format!(".lanebloom-{:016x}.part", twox_hash::XxHash3_64::oneshot(b"a.jsonl"));
    fs::rename(
        shell.path("one/out/in/a.jsonl"),
        shell.path(&format!("one/out/in/{part}")),
    )
    .unwrap();
    journal["next"] = serde_json::json!({
        "state": journal["state"],
        "inputs": journal["inputs"],
        "outputs": [[format!("../out/in/{part}"), "../out/in/a.jsonl"]],
    });
    journal["state"] = Value::Null;
    journal["inputs"] = serde_json::json!([]);
    shell.write("one/states/s.journal", sealed(journal));
    fs::rename(shell.path("one"), shell.path("two")).unwrap();
    let report = shell.report("two/in --output-dir two/out --state two/states/s");
    assert_eq!(report["inputs_skipped"], 1);
    assert_eq!(texts(&shell.read("two/out/in/a.jsonl")), ["a"]);
    assert_eq!(shell.names("two/out/in"), ["a.jsonl"]);
}

/// Before, the run failed after all work: a pipe changes while it is read.
#[cfg(unix)]
#[test]
fn a_named_pipe_is_refused_with_a_state_before_it_is_read() {
    let shell = Shell::new();
    shell.write("a.jsonl", lines(&["a"]));
    let made = Command::new("mkfifo").arg(shell.path("pipe")).status().unwrap();
    assert!(made.success());
    // Nobody writes into the pipe, so a run that reads it would wait.
    shell.error(
        "a.jsonl pipe -o out.jsonl --state s",
        &["pipe is not a regular file", "stdin"],
    );
    assert_eq!(shell.names("."), ["a.jsonl", "pipe"]);
}

/// All files of a run are compared, those too whose names follow from others.
#[test]
fn no_file_has_two_roles() {
    let shell = Shell::new();
    let input = lines(&["a"]);
    for name in ["a.jsonl", "x.journal", "list"] {
        shell.write(name, if name == "list" { "a.jsonl\n" } else { &input });
    }
    shell.ok("a.jsonl --build f");
    shell.write("sub/f", &input);
    shell.write("sub/f.journal", &input);
    fs::hard_link(shell.path("f"), shell.path("hard")).unwrap();
    fs::hard_link(shell.path("a.jsonl"), shell.path("hard.jsonl")).unwrap();
    let mut cases = vec![
        ("x.journal --build x", "also an input"),
        ("x.journal -o o --state x", "also an input"),
        ("a.jsonl x.journal --state x.journal -o o", "also an input"),
        ("a.jsonl --build hard.jsonl", "also an input"),
        ("a.jsonl --against f -o f", "also the filter of --against"),
        ("a.jsonl --against f -o ./sub/../f", "also the filter of --against"),
        ("a.jsonl --against f -o hard", "also the filter of --against"),
        ("a.jsonl --against f -o f.journal", "also the journal of --against"),
        ("a.jsonl --against f -o o --report f", "also the filter of --against"),
        (
            "a.jsonl --against f -o o --report f.journal",
            "also the journal of --against",
        ),
        ("sub/f --against f --output-dir .", "also the filter of --against"),
        (
            "sub/f.journal --against f --output-dir .",
            "also the journal of --against",
        ),
        ("a.jsonl --build b --report b.journal", "also the journal of --build"),
        (
            "a.jsonl --build b --report sub/../b.journal",
            "also the journal of --build",
        ),
        ("a.jsonl -o s.journal --state s", "also an output"),
        ("a.jsonl -o s --state s", "also an output"),
        ("sub/f --output-dir out --state out/f", "also an output"),
        ("sub/f.journal --output-dir out --state out/f", "also an output"),
        (
            "a.jsonl -o o --state s --report s.journal",
            "also the journal of the state",
        ),
        ("--files-from list -o list", "also the list of inputs"),
        ("--files-from list -o o --report list", "also the list of inputs"),
        ("--files-from list --state list -o o", "also the list of inputs"),
        (
            "a.jsonl -o o --report a.jsonl",
            "the report a.jsonl: it is also an input",
        ),
        ("a.jsonl -o o --report o", "the report o: it is also an output"),
        (
            "a.jsonl -o o --state s --report s",
            "the report s: it is also the state",
        ),
        (
            "a.jsonl --build b --report b",
            "the report b: it is also the filter of --build",
        ),
        ("a.jsonl --build -", "--build needs a file"),
        ("a.jsonl --report -", "-: this file is also the output"),
    ];
    if cfg!(unix) {
        #[cfg(unix)]
        for (link, to) in [("to_f", "f"), ("to_b", "b.journal")] {
            std::os::unix::fs::symlink(to, shell.path(link)).unwrap();
        }
        cases.extend([
            ("a.jsonl --against f -o to_f", "also the filter of --against"),
            ("a.jsonl --against to_f -o f", "also the filter of --against"),
            ("a.jsonl --build b --report to_b", "also the journal of --build"),
        ]);
    }
    let contents = |names: &[String]| {
        let is_file = |name: &&String| shell.path(name).is_file();
        Vec::from_iter(names.iter().filter(is_file).map(|name| shell.read(name)))
    };
    let names = Vec::from_iter(shell.names(".").into_iter().filter(|name| name != "out"));
    let before = contents(&names);
    for (line, part) in cases {
        let cannot = if part.starts_with('-') { "" } else { "cannot write" };
        shell.error(line, &[cannot, part]);
        let now = Vec::from_iter(shell.names(".").into_iter().filter(|name| name != "out"));
        assert_eq!(now, names, "{line}");
        assert!(contents(&now) == before, "{line}");
    }
}

/// An output that a killed run left is not read, nor is the file that is being written.
#[test]
fn an_unfinished_output_is_not_an_input() {
    let shell = Shell::new();
    shell.write("in/a.jsonl", lines(&["x", "y"]));
    let of = |name: &[u8], end: &str| format!("in/.lanebloom-{:016x}{end}", twox_hash::XxHash3_64::oneshot(name));
    let left = [
        of(b"a.jsonl", "-e013256f298dfe78.new"),
        of(b"o.jsonl", ".part"),
        of(b"s.lbf", ".lock"),
    ];
    for name in &left {
        shell.write(name, format!("{}half", lines(&["x"])));
    }
    for line in [
        "in --output-dir out",
        "in/* --output-dir out",
        "in --output-dir out --state s",
    ] {
        let output = shell.run(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        assert!(
            summary(&output).contains("; 3 files not read"),
            "{line}: {}",
            summary(&output)
        );
        assert_eq!(texts(&shell.read("out/in/a.jsonl")), ["x", "y"], "{line}");
        assert_eq!(shell.names("out/in"), ["a.jsonl"], "{line}");
        std::fs::remove_dir_all(shell.path("out")).unwrap();
    }
    for name in &left {
        shell.error(&format!("in/a.jsonl {name}"), &[name, "an unfinished file"]);
        shell.write("list", name);
        shell.error(
            "--files-from list",
            &["the list of files list", name, "an unfinished file"],
        );
    }
    // Its own is not read either, and is replaced.
    assert_eq!(shell.ok("in -o in/o.jsonl"), b"");
    assert_eq!(texts(&shell.read("in/o.jsonl")), ["x", "y"]);
    assert!(!shell.path(&left[1]).exists());
}
