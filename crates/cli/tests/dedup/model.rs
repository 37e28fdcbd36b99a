//! Inputs that are made at random, beside a plain model of them: lines, fields, CSV and JSON, in
//! several files of any format, with every option that changes a key or what passes.

use super::compressed::{gzip, zstd};
use super::*;
use serde_json::Value;
use std::collections::HashMap;
use std::mem;

/// The parts of a key; `None` if one of them is missing.
type Key = Option<Vec<Vec<u8>>>;

/// A record as it is in the input, and its key. The last record may have no end.
type Row = (Vec<u8>, Key);

const MARK: &str = "\u{feff}";

/// Records, and the options that make keys of them.
#[derive(Default)]
struct Table {
    flags: Vec<String>,
    /// The first record of each file, which has no key.
    header: Option<Vec<u8>>,
    rows: Vec<Row>,
    has_zeros: bool,
}

const LINES: usize = 0;
const CSV: usize = 1;
const JSON: usize = 2;

impl Table {
    fn of(kind: usize, random: &mut Random, count: usize) -> Self {
        let mut table = [Self::lines, Self::csv, Self::json][kind](random, count);
        let ignores_case = table.flag(random, "-i");
        let keeps_blank = table.flag(random, "--keep-blank");
        let trims = kind != JSON && table.flag(random, "--trim");
        let is_blank = |part: &Vec<u8>| match kind {
            JSON => [&br#""""#[..], br#"" ""#, br#""\t""#].contains(&&part[..]),
            _ => part.iter().all(|byte| b" \t".contains(byte)),
        };
        for (_, key) in &mut table.rows {
            for part in key.iter_mut().flatten() {
                if trims {
                    *part = part.trim_ascii().to_vec();
                }
                if ignores_case {
                    part.make_ascii_lowercase();
                }
            }
            *key = key.take().filter(|key| !keeps_blank || !key.iter().any(is_blank));
        }
        table
    }

    fn end(&self) -> u8 {
        if self.has_zeros { 0 } else { b'\n' }
    }

    fn flag(&mut self, random: &mut Random, flag: &str) -> bool {
        let is_given = random.below(3) == 0;
        self.flags.extend(is_given.then(|| flag.to_owned()));
        is_given
    }

    /// Lines, or fields of lines between a byte or blanks.
    fn lines(random: &mut Random, count: usize) -> Self {
        let mut table = Self::default();
        table.has_zeros = table.flag(random, "-0");
        let end = table.end();
        let mut bytes = match random.below(3) {
            0 => random.lines(count, end),
            _ => Vec::from_iter((0..4 * count).map(|_| *random.pick(b"aAb, \t\r\xff\x0c\"\0\n\n"))),
        };
        if random.below(4) == 0 {
            // Its key is not in memory.
            let long = [&[b'l'; 70_000][..], &[end]].concat();
            bytes = [&long, &bytes[..], &[end], &long].concat();
        }
        let fields = *random.pick(&[&[][..], &[1], &[2], &[2, 1], &[1, 3, 2]]);
        let delimiter = *random.pick(&[Some(b','), Some(b'"'), Some(b'\t'), None]);
        if !fields.is_empty() {
            let names = Vec::from_iter(fields.iter().map(usize::to_string));
            table.flags.push(format!("--field={}", names.join(",")));
            table.flags.push(match delimiter {
                Some(byte) => format!("--delimiter={}", char::from(byte)).replace('\t', "\\t"),
                None => "--blanks".into(),
            });
        }
        let key = |text: &[u8]| -> Key {
            let mut all = Vec::from_iter(text.split(|&byte| match delimiter {
                Some(delimiter) => byte == delimiter,
                None => b" \t".contains(&byte),
            }));
            all.retain(|field| delimiter.is_some() || !field.is_empty());
            let parts = fields.iter().map(|field| all.get(field - 1).map(|part| part.to_vec()));
            if fields.is_empty() {
                Some(vec![text.to_vec()])
            } else {
                parts.collect()
            }
        };
        let rows = split(&bytes, end).map(|line| (line.to_vec(), key(text(line, end))));
        table.rows = rows.collect();
        table
    }

    /// Records with cells of any bytes, between quotes if they must be, and now and then longer
    /// than a chunk of the reader.
    fn csv(random: &mut Random, count: usize) -> Self {
        let mut table = Self::default();
        let delimiter = *random.pick(b",;\t");
        let quotes = *random.pick(&[None, Some("yes"), Some("no")]);
        let has_quotes = quotes.map_or(delimiter != b'\t', |quotes| quotes == "yes");
        let is_ragged = table.flag(random, "--ragged");
        let has_header = !table.flag(random, "--no-header");
        table.flags.extend(quotes.map(|quotes| format!("--quotes={quotes}")));
        table
            .flags
            .push(format!("--delimiter={}", char::from(delimiter)).replace('\t', "\\t"));
        // A name that is a number goes before a position.
        let names = ["a", "key", "1"];
        let columns = *random.pick(&[&[0][..], &[1], &[2], &[1, 0], &[0, 2, 1]]);
        for &column in columns {
            let number = (column + 1).to_string();
            let is_named = has_header && (column == 0 || random.below(2) == 0);
            table
                .flags
                .push(format!("--csv={}", if is_named { names[column] } else { &number }));
        }
        table.header = has_header.then(|| (names.join(&char::from(delimiter).to_string()) + "\r\n").into_bytes());
        let mut before = b'\n';
        for number in 0..count {
            let mut bytes = Vec::new();
            if before == b'\n' && random.below(20) == 0 {
                bytes.extend(*random.pick(&[b"\n\n", b"\r\n"]));
            }
            let letters = if has_quotes { &b"abA \",;\t\n\r"[..] } else { b"abA \"" };
            let mut cells: Vec<Vec<u8>> = Vec::new();
            for column in 0..if is_ragged && number > 0 {
                2 + random.below(3)
            } else {
                3
            } {
                let mut cell = Vec::from_iter((0..random.below(4)).map(|_| *random.pick(letters)));
                if random.below(2000) == 0 {
                    cell.extend([b'l'; 300_000]);
                }
                if !has_quotes && cell.ends_with(b"\"") {
                    // Quotes around a cell of the first record ask for a decision.
                    cell.push(b'a');
                }
                let is_special = |byte: &u8| [delimiter, b'\n', b'\r'].contains(byte);
                let is_plain = !cell.starts_with(b"\"") && !cell.iter().any(is_special);
                bytes.extend((column > 0).then_some(delimiter));
                if !has_quotes || is_plain && random.below(2) == 0 {
                    bytes.extend_from_slice(&cell);
                } else {
                    let doubled = cell.iter().flat_map(|&byte| vec![byte; 1 + usize::from(byte == b'"')]);
                    bytes.extend([b'"'].into_iter().chain(doubled).chain([b'"']));
                }
                cells.push(cell);
            }
            if number + 1 < count || random.below(2) == 0 {
                bytes.extend_from_slice(random.pick::<&[u8]>(&[b"\n", b"\r\n", b"\r"]));
            }
            before = *bytes.last().unwrap();
            let key = columns.iter().map(|&column| cells.get(column).cloned()).collect();
            table.rows.push((bytes, key));
        }
        table
    }

    /// Objects with values in any notation, and lines that are not JSON.
    fn json(random: &mut Random, count: usize) -> Self {
        const VALUES: &str = r#"0|0.0|1|1.0|1e0|-1|123456789012345678901|123456789012345678902|false|[]|{}|[null]|"null"|"0"|","|"\""|""|" "|"\t"|"a"|"A"|"{}"|[1,2]|[2,1]|{"$serde_json::private::Number":"1"}"#;
        // Values above in another notation; null and halves of a pair cannot be keys.
        const OTHERS: [(&str, &str); 9] = [
            ("1E+0", "1e0"),
            ("[ null ]", "[null]"),
            (r#""\u0061""#, r#""a""#),
            (r#""\u007b\u007D""#, r#""{}""#),
            ("[1, 2]", "[1,2]"),
            (
                r#"{ "$serde_json::private::Numbe\u0072" :"1"}"#,
                r#"{"$serde_json::private::Number":"1"}"#,
            ),
            ("null", ""),
            (r#""\ud800""#, ""),
            (r#"[1,"\udfff"]"#, ""),
        ];
        let values = VALUES.split('|').map(|value| (value, value));
        let values = Vec::from_iter(values.chain(OTHERS));
        let mut table = Self::default();
        table.has_zeros = table.flag(random, "-0");
        let pointers = *random.pick(&[&["/a"][..], &["/b/1"], &["/a", "/b/1"], &["/b/1", "/a"]]);
        table
            .flags
            .extend(pointers.iter().map(|pointer| format!("--json={pointer}")));
        for _ in 0..count {
            let cells = [0, 1].map(|_| Some(*random.pick(&values)).filter(|_| random.below(8) > 0));
            let gap = if random.below(5) > 0 { "" } else { " " };
            let mut members = vec![b"\"x\":\"\xff\"".to_vec(), b"\"c\":[{\"a\":0}]".to_vec()];
            members.extend(cells[0].map(|(text, _)| format!("\"a\"{gap}:{gap}{text}").into_bytes()));
            let second = cells[1].map_or(String::new(), |(text, _)| format!(",{text}{gap}"));
            members.push(format!("\"b\":[0{second}]").into_bytes());
            let first = random.below(members.len());
            members.rotate_left(first);
            let mut bytes = [&b"{"[..], &members.join(&b','), b"}"].concat();
            let is_json = random.below(20) > 0;
            if !is_json {
                let behind = [&bytes[..], b" 2"].concat();
                let wrong = [&bytes[1..], &bytes[..bytes.len() - 1], &behind, b"", b"no", b"7"];
                bytes = random.pick(&wrong).to_vec();
            }
            let value = |pointer: &&str| {
                let (_, value) = cells[usize::from(*pointer != "/a")].filter(|_| is_json)?;
                Some(value.as_bytes().to_vec()).filter(|value| !value.is_empty())
            };
            bytes.push(table.end());
            table.rows.push((bytes, pointers.iter().map(value).collect()));
        }
        table
    }
}

/// The records of a file.
struct Part {
    header: Option<Vec<u8>>,
    rows: Vec<Row>,
}

impl Part {
    fn bytes(&self) -> Vec<u8> {
        let rows = self.rows.iter().flat_map(|(bytes, _)| bytes);
        self.header.iter().flatten().chain(rows).copied().collect()
    }

    fn first(&mut self) -> Option<&mut Vec<u8>> {
        let first = self.rows.first_mut().map(|(first, _)| first);
        self.header.as_mut().or(first)
    }

    fn last(&mut self) -> Option<&mut Vec<u8>> {
        self.rows.last_mut().map(|(last, _)| last)
    }
}

/// The bytes as they are, or compressed, in one part or two.
fn pack(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let pack = *random.pick(&[<[u8]>::to_vec, <[u8]>::to_vec, gzip, zstd]);
    let (first, second) = bytes.split_at(random.below(2) * random.below(bytes.len() + 1));
    if first.is_empty() {
        return pack(second);
    }
    [pack(first), pack(second)].concat()
}

/// Runs `dedup` on a table, and compares what passes with the model.
fn check(kind: usize, seed: u64) {
    let mut random = Random(seed);
    let count = *random.pick(&[1, 10, 300, 1000]);
    let table = Table::of(kind, &mut random, count);
    let modes = "||-d|-c|-cd|--count-each|--count-each|--output-dir|--in-place";
    let (end, mode) = (table.end(), *random.pick(&Vec::from_iter(modes.split('|'))));
    let counts_each = mode == "--count-each" && kind != CSV;
    let is_apart = ["--output-dir", "--in-place"].contains(&mode);
    let files = 1 + random.below(4);
    let (mut parts, mut inputs, mut rest) = (Vec::new(), Vec::new(), table.rows);
    for number in 0..files {
        let is_last = number + 1 == files;
        let most = rest.len();
        let len = if is_last { most } else { random.below(most + 1) };
        let (header, left) = (table.header.clone(), rest.split_off(len));
        let mut part = Part {
            header,
            rows: mem::replace(&mut rest, left),
        };
        let is_cut = |last: &&mut Vec<u8>| last.len() > 1 && last.ends_with(&[end]) && random.below(2) == 0;
        part.last().filter(is_cut).map(Vec::pop);
        let mut bytes = part.bytes();
        // In one output, no mark is behind a line, and no line without an end before another one.
        if let Some(first) = part.first().filter(|_| random.below(4) == 0) {
            bytes.splice(0..0, MARK.bytes());
            if !counts_each && (is_apart || number == 0) {
                first.splice(0..0, MARK.bytes());
            }
        }
        let is_open = |last: &&mut Vec<u8>| !is_apart && !is_last && !last.ends_with(&[end]);
        part.last().filter(is_open).into_iter().for_each(|last| last.push(end));
        parts.push(part);
        inputs.push(bytes);
    }

    let folder = Folder::new();
    let to = folder.path(if mode == "--in-place" { "" } else { "to" });
    let mut command = dedup(*random.pick(&[SURE, &["--exact"], &["--exact", "--rate=0.5"]]));
    command
        .args(&table.flags)
        .arg(format!("--threads={}", 1 + random.below(4)));
    command.args(*random.pick(&[None, None, Some("--expected=10"), Some("--expected=1M")]));
    match mode {
        "" | "--count-each" if !counts_each => &mut command,
        "--output-dir" => command.arg(mode).arg(&to),
        _ => command.arg(mode),
    };
    let is_binary = !table.has_zeros && inputs.concat().contains(&0);
    if mode == "--in-place" && is_binary {
        return;
    }
    let is_piped = files == 1 && !is_apart && random.below(2) == 0;
    let mut stdin = Vec::new();
    for (number, bytes) in inputs.into_iter().enumerate() {
        let packed = if mode == "--in-place" {
            bytes
        } else {
            pack(&mut random, &bytes)
        };
        if is_piped {
            stdin = packed;
        } else {
            command.arg(folder.file(&number.to_string(), packed));
        }
    }
    let run = Run::new(&mut command, stdin);

    let mut counts = HashMap::new();
    let keys = parts
        .iter()
        .flat_map(|part| part.rows.iter().filter_map(|(_, key)| key.as_ref()));
    keys.for_each(|key| *counts.entry(key).or_insert(0) += 1);
    let (mut expected, mut seen) = (Vec::new(), HashSet::new());
    let (mut lines, mut unique, mut passed, mut missing) = (0, 0, 0, 0);
    for (number, part) in parts.iter().enumerate() {
        let header = part.header.iter().filter(|_| number == 0 || is_apart);
        let rows = part.rows.iter().map(|(bytes, key)| (bytes, Some(key)));
        let mut to = Vec::new();
        for (bytes, key) in header.map(|header| (header, None)).chain(rows) {
            let is_new = key.is_none_or(|key| key.as_ref().is_none_or(|key| seen.insert(key)));
            let passes = key.is_none() || is_new != mode.ends_with('d');
            missing += u64::from(key.is_some_and(Option::is_none));
            (lines, unique, passed) = (lines + 1, unique + u64::from(is_new), passed + u64::from(passes));
            if passes && counts_each {
                let count = key.and_then(Option::as_ref).map_or(1, |key| counts[key]);
                to.extend(format!("{count:7} ").bytes());
            }
            to.extend_from_slice(if passes { bytes } else { b"" });
        }
        expected.push(to);
    }
    let context = format!("{kind} {seed}: {command:?}");
    assert_eq!(
        summary(&run.errors),
        [lines, unique, lines - passed],
        "{context}: {}",
        run.errors
    );
    let told = format!(", {missing} of them without a key");
    assert_eq!(run.errors.contains(&told), missing > 0, "{context}: {}", run.errors);
    let output = run.output();
    if is_apart {
        assert_bytes(&output, b"", &context);
        for (number, expected) in expected.iter().enumerate() {
            let found = fs::read(to.join(number.to_string())).unwrap();
            assert_bytes(&found, expected, (number, &context));
        }
    } else if mode.starts_with("-c") {
        assert_bytes(&output, format!("{passed}\n").as_bytes(), context);
    } else {
        assert_bytes(&output, &expected.concat(), context);
    }
}

/// Builds a filter of some rows of a table. All of these are found, and no other row; a row without
/// a key is in none, and is counted.
fn look_up(kind: usize, seed: u64) {
    let mut random = Random(seed);
    let table = Table::of(kind, &mut random, 200);
    let folder = Folder::new();
    let inside = &table.rows[..random.below(table.rows.len() + 1)];
    let file = |name, rows: &[Row]| {
        let (header, rows) = (table.header.clone(), rows.to_vec());
        folder.file(name, Part { header, rows }.bytes())
    };
    let (some, all, to) = (file("some", inside), file("all", &table.rows), folder.path("filter"));
    let form = *random.pick(&[
        &[][..],
        &["--expected=200", "--hasher=fast"],
        &["--static"],
        &["--bank"],
    ]);
    let run = |args: &[&str], file: &Path| {
        let mut command = lanebloom();
        let run = Run::new(
            command.args(args).args(&table.flags).arg(file).arg("--json-summary"),
            "",
        );
        let context = format!("{kind} {seed}: {command:?}");
        let summary: Value = serde_json::from_str(&run.errors).unwrap_or_else(|_| panic!("{context}: {}", run.errors));
        (run, summary, context)
    };
    let (_, summary, context) = run(&[&["build", "--rate=1e-8", "-o", utf8(&to)], form].concat(), &some);
    let keys: HashSet<_> = inside.iter().filter_map(|(_, key)| key.as_ref()).collect();
    let missing = |rows: &[Row]| rows.iter().filter(|(_, key)| key.is_none()).count();
    assert_eq!(summary["without_key"], missing(inside), "{context}");
    assert_eq!(summary["unique_estimated"], keys.len(), "{context}");

    let (ask, answers) = match form {
        ["--bank"] => ("which", ["0\t", "1\t"]),
        _ => ("query", ["absent\t", "present\t"]),
    };
    let prints = match ask {
        "which" => &["--count", "--count", "--absent"][..],
        _ => &["", "", "--present", "--absent", "--quiet"],
    };
    let print = prints[seed as usize / 3 % prints.len()];
    let mut expected = table.header.clone().unwrap_or_default();
    let mut present = 0;
    for (bytes, key) in &table.rows {
        let is_present = key.as_ref().is_some_and(|key| keys.contains(key));
        match print {
            "" | "--count" => expected.extend([answers[usize::from(is_present)].as_bytes(), bytes].concat()),
            _ if is_present == (print == "--present") => expected.extend(bytes),
            _ => {}
        }
        present += usize::from(is_present);
    }
    let is_all = present == table.rows.len();
    if print == "--quiet" {
        let mut command = lanebloom();
        let run = Run::new(command.args([ask, print, utf8(&to)]).args(&table.flags).arg(all), "");
        let found = (run.status.code(), run.output, run.errors);
        assert_eq!(
            found,
            (Some(i32::from(!is_all)), Vec::new(), String::new()),
            "{command:?}"
        );
        return;
    }
    let print = Some(print).filter(|print| !print.is_empty());
    let ask = Vec::from_iter([ask, utf8(&to)].into_iter().chain(print));
    let (run, summary, context) = run(&ask, &all);
    assert_bytes(&run.output, &expected, &context);
    assert_eq!(summary["without_key"], missing(&table.rows), "{context}");
    assert_eq!(summary["present"], present, "{context}");
    assert_eq!(run.status.code(), Some(i32::from(!is_all)), "{context}");
}

#[test]
fn lines_and_fields() {
    (0..60 * SEEDS).for_each(|seed| check(LINES, 2000 + seed));
}

#[test]
fn columns_of_csv() {
    (0..60 * SEEDS).for_each(|seed| check(CSV, 3000 + seed));
}

#[test]
fn values_of_json() {
    (0..40 * SEEDS).for_each(|seed| check(JSON, 4000 + seed));
}

#[test]
fn filters_of_their_keys() {
    (0..40 * SEEDS).for_each(|seed| look_up(seed as usize % 3, 5000 + seed));
}
