//! Values that stand for no key, for filters of other programs and for states. (`model.rs` has them
//! in every format.)

use super::*;

/// They are not remembered.
#[test]
fn rows_without_a_key_pass_in_every_run() {
    let rows = ["{\"a\":null}\n", "{\"b\":1}\n", "{\"a\":1}\n"];
    let folder = Folder::new();
    let mut command = dedup(["--json=/a", "--state"]);
    command.arg(folder.path("state"));
    for expected in [&rows[..], &rows[..2]] {
        let run = Run::new(&mut command, rows.concat());
        assert!(run.errors.contains("2 of them without a key"), "{}", run.errors);
        assert_bytes(&run.output(), expected.concat().as_bytes(), "");
    }
}

/// In the form that another program hashes, null would be a text of four letters, and for a filter
/// of hashes an error.
#[test]
fn null_is_no_key_of_other_programs() {
    let folder = Folder::new();
    let filter = folder.path("filter");
    let rows = "{\"a\":null}\n{\"a\":7}\n{}\n{\"a\":\"\"}\n";
    for flags in [
        &["--format=guava"][..],
        &["--format=guava", "--funnel=long"],
        &["--format=redisbloom", "--redis-key=k"],
        &["--hasher=prehashed"],
        &["--hasher=prehashed", "--static"],
    ] {
        let run = |args: &[&str], input: &str| {
            let flags = ["--json=/a", "--keep-blank", "--json-summary"];
            let run = Run::new(lanebloom().args(args).args(flags), input);
            let summary = run.errors.lines().last().unwrap_or_default().to_owned();
            let summary: serde_json::Value = serde_json::from_str(&summary).expect(&run.errors);
            assert_eq!(summary["without_key"], 3, "{args:?}: {summary}");
            run.output
        };
        run(&[&["build", "-o", utf8(&filter)], flags].concat(), rows);
        let funnel = if flags.contains(&"--funnel=long") {
            &["--funnel=long"][..]
        } else {
            &[]
        };
        let answers = run(&[&["query", utf8(&filter)], funnel].concat(), rows);
        let expected = "absent\t{\"a\":null}\npresent\t{\"a\":7}\nabsent\t{}\nabsent\t{\"a\":\"\"}\n";
        assert_bytes(&answers, expected.as_bytes(), flags);
        if !flags.contains(&"--hasher=prehashed") {
            let texts = Run::new(lanebloom().args(["query", utf8(&filter)]), "null\n").output;
            assert_bytes(&texts, b"absent\tnull\n", flags);
        }
    }
}
