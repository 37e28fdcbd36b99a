//! CSV that is not as RFC 4180 says, and tables with tabs: quotes that are text, quotes that glue
//! records together, records with another number of fields.

use super::records::passes;
use super::*;

const TABS: [&str; 2] = ["--csv=id", "--delimiter=\\t"];

/// Asserts the error, by the filter and with `--exact`, on any number of threads, of a pipe and of
/// a file, plain and compressed.
#[track_caller]
fn fails(flags: &[&str], input: &str, parts: &[&str]) {
    let folder = Folder::new();
    let file = folder.file("rows", input);
    let packed = folder.file("packed", zstd::encode_all(input.as_bytes(), 1).unwrap());
    for exact in [SURE, &["--exact"]] {
        let run = |threads, file: Option<&Path>| {
            let mut command = dedup(exact);
            command.args(flags).arg(threads).args(file);
            Run::new(&mut command, if file.is_none() { input } else { "" })
        };
        run("--threads=3", None).error(&[&["stdin: "], parts].concat());
        run("--threads=1", Some(&file)).error(&[&[utf8(&file)], parts].concat());
        run("--threads=3", Some(&packed)).error(&[&[utf8(&packed)], parts].concat());
    }
}

/// Without quotes, two columns are the same key as two fields.
#[test]
fn a_quote_in_a_table_with_tabs_is_text() {
    let folder = Folder::new();
    let (file, filter) = (folder.file("rows", "a\"\tb\n"), folder.path("filter"));
    let run = |args: &[&str]| Run::new(lanebloom().args(args).args([&filter, &file]), "").output();
    run(&["build", "--field=1,2", "-o"]);
    let answers = run(&["query", "--csv=1", "--csv=2", "--no-header", "--delimiter=\\t"]);
    assert_bytes(&answers, b"present\ta\"\tb\n", "");
}

/// In a table with tabs either may be meant, and a filter of the one keys lacks the other ones.
#[test]
fn quotes_around_a_field_of_the_first_record_ask_for_a_decision() {
    let parts = ["line 1", "\"\\\"id\\\"\"", "--quotes yes", "--quotes no"];
    let quoted = "\"id\"\t\"v\"\n\"1\"\t\"a\"\n1\tb\n";
    fails(&["--csv=1", "--delimiter=\\t"], quoted, &parts);
    fails(&["--csv=1", "--delimiter=\\t", "--no-header"], quoted, &parts);
    let tabs = ["--csv=id", "--delimiter=\\t", "--quotes=yes"];
    passes(&tabs, quoted, "\"id\"\t\"v\"\n\"1\"\t\"a\"\n", 0);
    passes(&["--csv=1", "--delimiter=\\t", "--quotes=no"], quoted, quoted, 0);
    // One quote encloses nothing.
    for first in ["id\t\"", "id\t\"v", "id\tv\""] {
        passes(&TABS, format!("{first}\n1\t2\n"), format!("{first}\n1\t2\n"), 0);
    }
}

#[test]
fn text_behind_a_closing_quote_is_an_error() {
    for (input, line) in [
        ("k\n\"1\"x\n", "line 2 "),
        ("k,v\n1,\"a\" \n", "line 2 "),
        // (Of SQL Server.)
        ("k|v\n\"sample\"|\"A \"B\"\nA\"\n", "line 2 "),
        (
            "k,v\n1,\"unclosed\n2,\"unclosed\n",
            "line 2 has text behind a closing quote in line 3",
        ),
        ("\n\n\"k\"k,v\n", "line 3 "),
        (
            "k,v\r\n\r\n1,2\r\n\r\n3,\"4\"\"\"5\r\n",
            "line 5 has text behind a closing quote in line 5",
        ),
        ("k,v\n1,\"2\"\"\"3", "line 2 "),
        ("k,v\n1,\"2\"\0\n", "line 2 "),
    ] {
        let flags = if input.starts_with("k|") {
            &["--csv=k", "--delimiter=|"][..]
        } else {
            &["--csv=k"]
        };
        fails(flags, input, &[line, "closing quote", "--quotes no"]);
    }
    // Beyond the first bytes that are read, and cut at any place.
    let rows = "1,\"2\n\"\n".repeat(100_000);
    fails(&["--csv=k"], &format!("k,v\n{rows}2,\"a\"b\n"), &["in line 200002"]);
    // A quote within a field encloses nothing.
    let input = "k,v\na\"b,1\na\"b\"c,2\na\"b,3\n 4\",\"5\"\n";
    passes(&["--csv=k"], input, "k,v\na\"b,1\na\"b\"c,2\n 4\",\"5\"\n", 0);
}

#[test]
fn records_with_another_number_of_fields_are_an_error() {
    let says = |fields, first| format!("has {fields}, and the first record has {first}");
    for (flags, input, line, text) in [
        (&["--csv=k"][..], "k,v\n1,2\n3\n4,5\n", "line 3 ", says("1 field", 2)),
        (&["--csv=k"], "k,v\n1,2\n3,4,5\n", "line 3 ", says("3 fields", 2)),
        (&["--csv=k"], "k\n1\n2,\n", "line 3 ", says("2 fields", 1)),
        (&["--csv=k"], "k,v\n1,2\n\n\n  \n", "line 5 ", says("1 field", 2)),
        (&["--csv=k"], "k,v\n1,\"2\n3\"\n4\n", "line 4 ", says("1 field", 2)),
        (&["--csv=k"], "k,v\n1,2\n3", "line 3 ", says("1 field", 2)),
        (&["--csv=k"], "k,v\r\n1,2\r\n3\r\n", "line 3 ", says("1 field", 2)),
        // A carriage return alone ends a record.
        (&["--csv=k"], "k,v\n1,2\r3\n", "line 2 ", says("1 field", 2)),
        (&["--csv=k"], "\u{feff}k,v\n1\n", "line 2 ", says("1 field", 2)),
        (&["--csv=1", "--no-header"], "1,2\n3\n", "line 2 ", says("1 field", 2)),
        (&TABS, "id\tv\n1\t\"a\tb\"\n", "line 2 ", says("3 fields", 2)),
    ] {
        fails(flags, input, &[line, &text, "--ragged"]);
        passes(&[flags, &["--ragged"]].concat(), input, input, 0);
    }
    fails(&TABS, "id\tv\n1\t\"a\tb\"\n", &["--quotes yes"]);
    let rows = "1,\"2\n\"\n".repeat(100_000);
    fails(&["--csv=k"], &format!("k,v\n{rows}2\n"), &["line 200002 "]);
    // A record that is too short for the key has none.
    cases! { passes:
        &["--csv=v", "--ragged"], "k,v\n1\n1,a\n1\n2,a,b\n", "k,v\n1\n1,a\n1\n", 2;
        &["--csv=3", "--no-header", "--ragged"], "1,2\n1,2\n1,2,3\n1,2,3\n", "1,2\n1,2\n1,2,3\n", 2;
    }
    Run::new(&mut dedup(["--ragged"]), "").error(&["--ragged", "--csv"]);
}

/// Every row would pass without a key.
#[test]
fn a_number_beyond_the_first_row_is_an_error() {
    let parts = ["the first record has 2 fields", "none is number 3"];
    fails(&["--csv=3", "--no-header"], "1,2\n1,2\n", &parts);
    fails(&["--csv=1", "--csv=3", "--no-header"], "\n1,2\n", &parts);
    fails(&["--csv=2", "--no-header"], "1\n", &["has 1 field,", "number 2"]);
}

/// Without a header, the first record of all inputs counts, and with an output for each input, the
/// first one of each.
#[test]
fn inputs_without_a_header_have_rows_of_one_length() {
    let folder = Folder::new();
    let (two, three) = (folder.file("two", "1,2\n1,3\n"), folder.file("three", "1,2,3\n1,2\n"));
    let whole = folder.file("whole", "1,2,3\n4,2,3\n");
    for exact in [SURE, &["--exact"]] {
        let rows = || {
            let mut command = dedup(exact);
            command.args(["--csv=1", "--no-header"]);
            command
        };
        let parts = [utf8(&whole), "line 1 ", "has 3 fields, and the first record has 2"];
        Run::new(rows().args([&two, &whole]), "").error(&parts);
        let to = folder.path("to");
        Run::new(rows().args([&two, &whole]).arg("--output-dir").arg(&to), "").output();
        assert_eq!(fs::read_to_string(to.join("two")).unwrap(), "1,2\n");
        assert_eq!(fs::read_to_string(to.join("whole")).unwrap(), "4,2,3\n");
        // An error leaves all files as they were.
        let parts = [utf8(&three), "line 2 ", "has 2 fields, and the first record has 3"];
        Run::new(rows().args([&two, &three]).arg("--in-place"), "").error(&parts);
        assert_eq!(fs::read_to_string(&two).unwrap(), "1,2\n1,3\n");
        assert_eq!(fs::read_to_string(&three).unwrap(), "1,2,3\n1,2\n");
        fs::remove_dir_all(to).unwrap();
    }
}

/// A filter of glued rows would lack keys, and a guard would refuse them.
#[test]
fn every_command_that_cuts_csv_refuses_what_dedup_refuses() {
    let folder = Folder::new();
    let [filter, bank, state] = ["filter", "bank", "state"].map(|name| folder.path(name));
    let good = folder.file("good", "id,v\n1,a\n2,b\n");
    let wrong = [
        "id,v\n1,\"a\n2,b\n3,\"c\n",
        "id,v\n1,a\n2\n",
        "id,v\n1,\"a\"b\n",
        "id,v\n1,\"a\n",
    ];
    let wrong = [0, 1, 2, 3].map(|at| folder.file(&format!("wrong{at}"), wrong[at]));
    let run = |args: &[&str]| Run::new(lanebloom().args(args), "");
    run(&["build", "--csv=id", "-o", utf8(&filter), utf8(&good)]).output();
    run(&[
        "build",
        "--bank",
        "--csv=id",
        "-o",
        utf8(&bank),
        utf8(&good),
        utf8(&good),
    ])
    .output();
    run(&["dedup", "--csv=id", "--state", utf8(&state), utf8(&good)]).output();
    let before = [&filter, &bank, &state].map(|path| fs::read(path).unwrap());
    for wrong in &wrong {
        let wrong = utf8(wrong);
        for args in [
            &["build", "-o", utf8(&filter)][..],
            &["build", "-o", utf8(&filter), "--static"],
            &["build", "-o", utf8(&filter), "--format=guava"],
            &["build", "--bank", "-o", utf8(&bank)],
            &["query", utf8(&filter)],
            &["which", utf8(&bank)],
            &["dedup", "--state", utf8(&state)],
            &["dedup", "--only-duplicates"],
            &["dedup", "--count"],
        ] {
            run(&[args, &["--csv=id", utf8(&good), wrong]].concat()).error(&[wrong, "line "]);
        }
    }
    let after = [&filter, &bank, &state].map(|path| fs::read(path).unwrap());
    assert!(before == after, "an error changed a file");
    // With tabs all keys are there.
    let table = folder.file("table", "id\tv\n1\t\"a\n2\tb\n3\t\"c\n");
    let tabs = ["--csv=id", "--delimiter=\\t"];
    run(&[&["build", "-o", utf8(&filter), utf8(&table)], &tabs[..]].concat()).output();
    let found = run(&[&["query", "--quiet", utf8(&filter), utf8(&table)], &tabs[..]].concat());
    assert_eq!(found.status.code(), Some(0));
    let ids = Run::new(lanebloom().args(["query", utf8(&filter)]), "1\n2\n3\n").output();
    assert_bytes(&ids, b"present\t1\npresent\t2\npresent\t3\n", "");
}

#[test]
fn bytes_that_end_a_field_and_more_are_no_delimiters_of_csv() {
    for delimiter in ["\"", "\r"] {
        let mut command = dedup(["--csv=1"]);
        Run::new(command.args(["--delimiter", delimiter]), "").error(&["--delimiter", "--csv"]);
    }
    passes(
        &["--csv=1", "--quotes=no", "--delimiter=\""],
        "a\"b\na\"c\n",
        "a\"b\na\"c\n",
        0,
    );
}

/// Otherwise a part could have it once its case is ignored: `x,ay` and `xa,y` would be one key.
#[test]
fn no_letter_is_between_the_parts_of_a_key_without_case() {
    for key in [&["--field=1,2"][..], &["--csv=1", "--csv=2", "--no-header"]] {
        let mut command = dedup(key);
        let run = Run::new(command.args(["--exact", "-i", "--delimiter=A"]), "xAay\nxaAy\n");
        assert_eq!(run.error(&["--delimiter \"A\"", "--ignore-case"]), b"");
    }
    passes(
        &["--field=2", "-i", "--delimiter=T"],
        "aTx\naTX\naTy\n",
        "aTx\naTy\n",
        0,
    );
}
