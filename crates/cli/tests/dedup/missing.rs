//! Values that stand for no key: those that are missing, null, empty or blank, in one column or
//! several, against a plain model.

use super::records::passes;
use super::*;

/// A cell of a format: its key, unless it stands for none.
#[derive(Clone)]
struct Cell {
    /// The text in the input; `None` leaves it out.
    text: Option<&'static str>,
    /// A name that equal values have in common.
    value: Option<&'static str>,
    is_blank: bool,
}

fn value(text: &'static str, value: &'static str) -> Cell {
    Cell {
        text: Some(text),
        value: Some(value),
        is_blank: value.bytes().all(|byte| matches!(byte, b' ' | b'\t')),
    }
}

const MISSING: Cell = Cell {
    text: None,
    value: None,
    is_blank: false,
};

/// A format: how a row of cells is written, its cells, and the options that name both columns.
struct Format {
    flags: &'static [&'static str],
    one: &'static [&'static str],
    head: &'static str,
    row: fn(&[Cell]) -> Option<String>,
    cells: Vec<Cell>,
}

fn formats() -> Vec<Format> {
    let json = |cells: &[Cell]| {
        let members = ["a", "b"].iter().zip(cells);
        let members = members.filter_map(|(name, cell)| Some(format!("\"{name}\":{}", cell.text?)));
        Some(format!("{{{}}}\n", members.collect::<Vec<_>>().join(",")))
    };
    let null = Cell {
        text: Some("null"),
        ..MISSING
    };
    let texts = [
        "0", "0.0", "1", "1.0", "1e0", "false", "[]", "{}", "[null]", "\"null\"", "\"0\"", "\",\"", "\"\\\"\"",
    ];
    let mut values = Vec::from_iter(texts.map(|text| value(text, text)));
    values.extend([
        value("\"\"", ""),
        value("\" \"", " "),
        value("\"\\t\"", "\t"),
        null,
        MISSING,
    ]);
    // A field can be missing only at the end of a row. An empty line is no record of CSV.
    fn joined(cells: &[Cell], delimiter: &str) -> Option<String> {
        let texts = Vec::from_iter(cells.iter().map_while(|cell| cell.text));
        let is_possible = cells.iter().skip(texts.len()).all(|cell| cell.text.is_none());
        (is_possible && !texts.is_empty()).then(|| format!("{}\n", texts.join(delimiter)))
    }
    let plain = ["0", "0.0", "null", "NULL", "\\N", "NaN", "false", "\"", ";", "x"].map(|text| value(text, text));
    let plain = [&plain[..], &[value("", ""), value(" ", " "), MISSING]].concat();
    let quoted = [
        value("\"\"", ""),
        value("\"\"\"\"", "\""),
        value("\",\"", ","),
        value("\"\n\"", "\n"),
        value("\"x\"", "x"),
    ];
    let csv = plain.iter().filter(|cell| cell.text != Some("\""));
    let csv = [&quoted[..], &csv.cloned().collect::<Vec<_>>()].concat();
    vec![
        Format {
            flags: &["--json=/a", "--json=/b"],
            one: &["--json=/a"],
            head: "",
            row: json,
            cells: values,
        },
        Format {
            flags: &["--field=1,2"],
            one: &["--field=1"],
            head: "",
            row: |cells| joined(cells, "\t"),
            cells: plain.clone(),
        },
        Format {
            flags: &["--csv=a", "--csv=b", "--ragged"],
            one: &["--csv=a", "--ragged"],
            head: "a,b\n",
            row: |cells| joined(cells, ",").filter(|row| row != "\n"),
            cells: csv,
        },
        Format {
            flags: &["--csv=a", "--csv=b", "--ragged", "--delimiter=\\t"],
            one: &["--csv=a", "--ragged", "--delimiter=\\t"],
            head: "a\tb\n",
            row: |cells| joined(cells, "\t").filter(|row| row != "\n"),
            cells: plain,
        },
    ]
}

/// The key of a row, unless a part of it is missing.
fn key(cells: &[Cell], keeps_blank: bool) -> Option<Vec<&'static str>> {
    let values = cells
        .iter()
        .map(|cell| cell.value.filter(|_| !(keeps_blank && cell.is_blank)));
    values.collect()
}

/// Every pair of values crossed over two columns, and each row twice: what is missing is equal to
/// nothing, and nothing else is equal to another thing.
#[test]
fn rows_with_missing_parts_pass_and_equal_no_other_row() {
    for format in formats() {
        let mut rows = Vec::new();
        for a in &format.cells {
            for b in &format.cells {
                rows.push(vec![a.clone(), b.clone()]);
            }
        }
        for (flags, columns) in [(format.flags, 2), (format.one, 1)] {
            for keeps_blank in [false, true] {
                let (mut input, mut expected) = (format.head.to_owned(), format.head.to_owned());
                let (mut seen, mut missing) = (HashSet::new(), 0);
                for cells in rows.iter().chain(&rows) {
                    let Some(text) = (format.row)(cells) else { continue };
                    input += &text;
                    let key = key(&cells[..columns], keeps_blank);
                    missing += u64::from(key.is_none());
                    if key.is_none_or(|key| seen.insert(key)) {
                        expected += &text;
                    }
                }
                let keep = if keeps_blank { &["--keep-blank"][..] } else { &[] };
                passes(&[flags, keep].concat(), &input, &expected, missing);
            }
        }
    }
}

/// The rows of a filter are found, and no other row. A row without a key is in none, and is
/// counted.
#[test]
fn a_row_without_a_key_is_in_no_filter() {
    for format in formats() {
        let folder = Folder::new();
        let (filter, bank) = (folder.path("filter"), folder.path("bank"));
        for keeps_blank in [false, true] {
            let keep = if keeps_blank { &["--keep-blank"][..] } else { &[] };
            for first in &format.cells {
                let (mut inside, mut keys, mut missing) = (format.head.to_owned(), HashSet::new(), 0);
                let (mut all, mut answers) = (format.head.to_owned(), format.head.to_owned());
                let mut without = 0;
                let mut columns = answers.clone();
                for second in &format.cells {
                    let cells = [first.clone(), second.clone()];
                    let Some(text) = (format.row)(&cells) else { continue };
                    inside += &text;
                    match key(&cells, keeps_blank) {
                        Some(key) => _ = keys.insert(key),
                        None => missing += 1,
                    }
                }
                for cells in format
                    .cells
                    .iter()
                    .flat_map(|a| format.cells.iter().map(|b| [a.clone(), b.clone()]))
                {
                    let Some(text) = (format.row)(&cells) else { continue };
                    let key = key(&cells, keeps_blank);
                    without += u64::from(key.is_none());
                    let is_present = key.is_some_and(|key| keys.contains(&key));
                    answers += &format!("{}\t{text}", if is_present { "present" } else { "absent" });
                    columns += &format!("{}\t{text}", usize::from(is_present));
                    all += &text;
                }
                let inside = folder.file("inside", inside);
                let flags = [format.flags, keep].concat();
                let run = |args: &[&str], input: &str| {
                    Run::new(lanebloom().args(args).args(&flags).arg("--json-summary"), input)
                };
                let count = |run: &Run, name: &str| {
                    serde_json::from_str::<serde_json::Value>(&run.errors).unwrap()[name].as_u64()
                };
                for (kind, to) in [("--hasher=fast", &filter), ("--static", &filter), ("--bank", &bank)] {
                    let built = run(&["build", kind, "--rate=1e-8", "-o", utf8(to), utf8(&inside)], "");
                    assert_eq!(
                        count(&built, "without_key"),
                        Some(missing),
                        "{flags:?}: {}",
                        built.errors
                    );
                    assert_eq!(
                        count(&built, "unique_estimated"),
                        Some(keys.len() as u64),
                        "{flags:?}: {}",
                        built.errors
                    );
                    let (ask, expected) = if kind == "--bank" {
                        (&["which", "--count", utf8(to)][..], &columns)
                    } else {
                        (&["query", utf8(to)][..], &answers)
                    };
                    let asked = run(ask, &all);
                    assert_eq!(
                        count(&asked, "without_key"),
                        Some(without),
                        "{flags:?}: {}",
                        asked.errors
                    );
                    assert_bytes(&asked.output, expected.as_bytes(), (&flags, kind));
                }
            }
        }
    }
}

/// A row without a key occurs once, whatever is printed.
#[test]
fn rows_without_a_key_are_counted_once_each() {
    let input = "{\"a\":null,\"b\":null}\n{\"b\":1}\n{\"a\":null,\"b\":null}\n{\"b\":1}\n{\"a\":1,\"b\":1}\n{\"a\":1,\"b\":1}\n";
    let flags = ["--json=/a", "--json=/b"];
    let rows = Vec::from_iter(input.lines());
    let run = |more: &[&str]| {
        let run = Run::new(dedup(more).args(flags), input);
        assert!(run.errors.contains("4 of them without a key"), "{}", run.errors);
        String::from_utf8(run.output()).unwrap()
    };
    assert_eq!(run(&[]), format!("{}\n", rows[..5].join("\n")));
    assert_eq!(run(&["--exact"]), format!("{}\n", rows[..5].join("\n")));
    // Those that a run without `-d` drops, and no row without a key.
    for exact in [&["-d"][..], &["-d", "--exact"]] {
        assert_eq!(run(exact), format!("{}\n", rows[5]));
        assert_eq!(run(&[exact, &["-c"]].concat()), "1\n");
    }
    assert_eq!(run(&["-c"]), "5\n");
    let counts = [1, 1, 1, 1, 2]
        .iter()
        .zip(&rows)
        .map(|(count, row)| format!("{count:7} {row}\n"));
    assert_eq!(run(&["--count-each"]), counts.collect::<String>());
    let folder = Folder::new();
    let state = folder.path("state");
    assert_eq!(run(&["--state", utf8(&state)]), format!("{}\n", rows[..5].join("\n")));
    assert_eq!(run(&["--state", utf8(&state)]), format!("{}\n", rows[..4].join("\n")));
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
