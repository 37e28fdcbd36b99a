//! The commands `bench` and `plot`, by the real binary: tables, charts, and errors that name the
//! file and the line.

use super::{Shell, stderr};
use std::fs;
use std::io;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::{Command, Stdio};

const HEADER: &str = "cpu,instruction_set,threads,l1d_bytes,l2_bytes,l3_bytes,filter_bytes,operation,ns_per_key\n";

const OPERATIONS: [&str; 6] = [
    "lookup, absent key",
    "lookup, present key",
    "insert, new key",
    "batch lookup, absent keys",
    "batch lookup, present keys",
    "batch insert, new keys",
];

/// A table as `bench` writes it, of a machine with a name that needs escapes.
fn table() -> String {
    let mut table = String::from(HEADER);
    for (i, operation) in OPERATIONS.iter().enumerate() {
        for size in [32 << 10, 512 << 10, 8 << 20] {
            let machine = "\"R&D <\"\"fast\"\"> 3'\",AVX-512,16,49152,1048576,";
            table += &format!("{machine},{size},\"{operation}\",{}.25\n", i + 1);
        }
    }
    table
}

/// A folder with that table.
fn with_table(name: &str) -> Shell {
    let shell = Shell::new();
    shell.write(name, table());
    shell
}

/// Runs what must fail before it prints anything, with a line in which all of `parts` stand.
#[track_caller]
fn fails(shell: &Shell, line: &str, parts: &[&str]) {
    let error = shell.error(line);
    for part in parts {
        assert!(error.contains(part), "{line}: no {part:?} in {error}");
    }
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// The texts of an SVG, which must be well-formed, and the places of its circles and triangles.
fn read_svg(path: &Path) -> (Vec<String>, [Vec<[f64; 2]>; 2]) {
    let text = fs::read_to_string(path).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    assert!(root.attribute("width").is_some() && root.attribute("viewBox").is_some());
    let named = |name: &'static str| {
        let nodes = document.descendants();
        nodes.filter(move |node| node.has_tag_name(("http://www.w3.org/2000/svg", name)))
    };
    let texts = named("text").map(|node| node.text().unwrap().trim().to_owned());
    let places = |name| {
        let places = named(name).filter_map(|node| node.attribute("transform")?.strip_prefix("translate("));
        Vec::from_iter(places.map(|at| {
            let (x, y) = at.split_once(')').unwrap().0.split_once(' ').unwrap();
            [x, y].map(|at| at.parse().unwrap())
        }))
    };
    (texts.collect(), ["circle", "path"].map(places))
}

/// Fails unless all of these are texts.
#[track_caller]
fn has<'a>(texts: &[String], expected: impl IntoIterator<Item = &'a str>) {
    for expected in expected {
        let is_there = texts.iter().any(|text| text == expected);
        assert!(is_there, "no {expected:?} in {texts:?}");
    }
}

#[test]
fn bench_writes_a_table_and_a_chart() {
    let shell = Shell::new();
    let output = shell.run("bench --seconds 0.5 -o bench.csv --chart bench.svg");
    assert!(output.status.success(), "{}", stderr(&output));
    let (out, errors) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
    // The sizes for which there was no time; a fast machine measures all.
    let is_note = errors.is_empty() || errors.starts_with("Filters of ") && errors.lines().count() == 1;
    assert!(is_note, "{errors}");

    let mut rows = out.lines().skip_while(|line| !line.trim_start().starts_with("filter"));
    let columns = Vec::from_iter(rows.next().unwrap().split_whitespace());
    let expected = "filter keys absent present new absent present insert positives";
    assert_eq!(columns, Vec::from_iter(expected.split(' ')));
    let mut measured = Vec::new();
    for row in rows {
        let fields = Vec::from_iter(row.split_whitespace());
        assert_eq!(fields.len(), 10, "{row}");
        let shift = ["KiB", "MiB"].iter().position(|unit| *unit == fields[1]).unwrap() * 10 + 10;
        let bytes = fields[0].parse::<u64>().unwrap() << shift;
        let keys: f64 = fields[2].replace(',', "").parse().unwrap();
        assert!((10.5..11.1).contains(&(bytes as f64 * 8.0 / keys)), "{row}");
        let false_positives: f64 = fields[9].strip_suffix('%').unwrap().parse().unwrap();
        assert!((0.3..2.0).contains(&false_positives), "{row}");
        for (operation, ns) in OPERATIONS.iter().zip(&fields[3..9]) {
            measured.push((bytes, operation.to_string(), ns.parse::<f64>().unwrap()));
        }
    }
    assert_eq!(measured[0].0, 32 << 10);

    let text = String::from_utf8(shell.read("bench.csv")).unwrap();
    assert!(text.starts_with(HEADER), "{text}");
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let records: Vec<_> = table.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), measured.len());
    for (record, (bytes, operation, ns)) in records.iter().zip(&measured) {
        assert_eq!(record[6], bytes.to_string());
        assert_eq!(record[7], *operation);
        let precise: f64 = record[8].parse().unwrap();
        assert!(precise > 0.0 && (precise - ns).abs() < 0.0051, "{record:?}, {ns}");
        assert!(
            out.contains(&record[0]) && out.contains(&record[1]),
            "{record:?} in {out}"
        );
    }

    // The chart is that of `plot speed`.
    shell.ok("plot speed bench.csv -o plot.svg");
    let charts = ["bench.svg", "plot.svg"].map(|name| read_svg(&shell.path(name)).0);
    assert_eq!(charts[0], charts[1]);
    has(&charts[0], OPERATIONS);
}

#[test]
fn bench_is_quiet_and_ends_with_its_reader() {
    let shell = Shell::new();
    let output = shell.run("bench --quiet --seconds 0.1");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("32 KiB"), "{out}");
    assert_eq!(stderr(&output), "");

    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut bench = shell.command("bench --seconds 0.1");
    let output = bench.stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(output.stderr, b"");
}

#[test]
fn plot_speed_draws_every_operation() {
    let shell = with_table("bench.csv");
    shell.ok("plot speed bench.csv -o speed.svg");
    // An ending in capitals.
    shell.ok("plot speed bench.csv -o other.SVG");
    let [svg, other] = ["speed.svg", "other.SVG"].map(|name| shell.read(name));
    assert_eq!(svg, other);

    let (texts, [circles, triangles]) = read_svg(&shell.path("speed.svg"));
    has(&texts, OPERATIONS);
    has(
        &texts,
        ["ns per key", "filter size", "32 KiB", "512 KiB", "8 MiB", "1", "2", "5"],
    );
    has(
        &texts,
        ["ConcurrentBloom on R&D <\"fast\"> 3'", "AVX-512, one thread of 16"],
    );
    // The caches that the table names, and no third one.
    has(&texts, ["L1d 48 KiB", "L2 1 MiB"]);
    assert!(!texts.iter().any(|text| text.starts_with("L3")));
    // Circles at three sizes and in the legend, for three operations; triangles for the others. A
    // slower operation is higher, and a larger filter farther to the right.
    assert_eq!((circles.len(), triangles.len()), (3 * 4, 3 * 4));
    for places in [circles, triangles] {
        let [first, second] = [&places[..3], &places[4..7]];
        for at in 0..3 {
            assert_eq!(first[at][0], second[at][0]);
            assert!(first[at][1] > second[at][1], "{places:?}");
        }
        assert!(first[0][0] < first[1][0] && first[1][0] < first[2][0], "{places:?}");
    }

    // Each colour has two operations, one of them dashed, in the chart and in the legend.
    let svg = String::from_utf8(svg).unwrap();
    for color in ["#0072b2", "#d55e00", "#009e73"] {
        let group = format!("<g color=\"{color}\">\n<polyline class=\"");
        let curves = svg.split(&*group).skip(1);
        let dashed = curves.clone().filter(|curve| curve.starts_with("dashed"));
        assert_eq!((curves.count(), dashed.count()), (4, 2), "{color}");
    }
    let dark = svg.find("prefers-color-scheme: dark");
    assert!(dark.is_some_and(|at| at < svg.find("<rect").unwrap()), "dark pages");
}

#[test]
fn plot_rate_draws_plan_and_measurement() {
    let shell = Shell::new();
    shell.ok("plot rate --keys 20k --rate 1% -o rate.svg");
    let (texts, [circles, _]) = read_svg(&shell.path("rate.svg"));
    has(
        &texts,
        ["ConcurrentBloom for 20,000 keys at a rate of 1%", "keys", "20,000"],
    );
    has(&texts, ["false-positive rate", "0.1%", "1%", "10%", "100%"]);
    has(
        &texts,
        ["planned", "measured", "expected", "share of blocks", "expected keys"],
    );
    has(&texts, ["bits set of the 512 of a block, at 20,000 keys"]);
    // A point for each twentieth of the keys, but for the first ones, and one in the legend.
    assert!((25..=41).contains(&circles.len()), "{}", circles.len());
    // More keys, more false positives.
    let (first, last) = (circles[0], circles[circles.len() - 2]);
    assert!(first[0] < last[0] && first[1] > last[1] + 100.0, "{circles:?}");

    // Two curves and an area, in the charts and in the legends.
    let svg = String::from_utf8(shell.read("rate.svg")).unwrap();
    let count = |class: &str| svg.matches(&format!("<polyline class=\"{class} \"")).count();
    assert_eq!((count(""), count("area")), (4, 2));

    // Again, over a file: the same bytes, since the hashes are the same.
    let before = shell.read("rate.svg");
    shell.ok("plot rate --keys 2e4 --rate 0.01 -o rate.svg");
    assert_eq!(shell.read("rate.svg"), before);

    // One key.
    shell.ok("plot rate --keys 1 --rate 0.5 -o one.svg");
    let (texts, _) = read_svg(&shell.path("one.svg"));
    has(&texts, ["ConcurrentBloom for 1 keys at a rate of 50%"]);
}

/// The filter is measured 41 times.
#[cfg(target_os = "linux")]
#[test]
fn a_rate_shows_its_progress_on_a_terminal() {
    let shell = Shell::new();
    let on_terminal = |options: &str| {
        let line = format!(
            "{} plot rate --keys 1000 --rate 0.1 -o rate.svg {options}",
            super::PROGRAM
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(&shell.0);
        script.stdin(Stdio::null()).output().ok()
    };
    let (Some(shown), Some(quiet)) = (on_terminal(""), on_terminal("--quiet")) else {
        return eprintln!("skipped: script is not there");
    };
    assert!(shown.status.success() && quiet.status.success());
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("/41"), "{text:?}");
    assert_eq!(String::from_utf8_lossy(&quiet.stdout), "");
}

#[test]
fn a_bad_table_is_an_error_with_its_line() {
    let shell = Shell::new();
    shell.write("old.svg", "old");
    let fails_with = |text: &str, part: &str| {
        shell.write("bad.csv", text);
        fails(&shell, "plot speed bad.csv -o old.svg", &["bad.csv", part]);
    };
    let line =
        |cpu: &str, bytes: &str, operation: &str, ns: &str| format!("{cpu},AVX2,2,,,,{bytes},{operation},{ns}\n");
    let good = line("X", "32768", "lookup", "1.5");
    // The second line.
    let bad_line = |line: String, part: &str| fails_with(&format!("{HEADER}{good}{line}"), part);
    let bad = |bytes: &str, operation: &str, ns: &str, part: &str| {
        bad_line(line("X", bytes, operation, ns), &format!("line 3: {part}"));
    };
    let many: String = (0..12)
        .map(|i| line("X", "32768", &format!("operation {i}"), "1"))
        .collect();
    let other = format!("{HEADER}{good}").replace(",threads", ",t");
    cases! { fails_with:
        "", "line 1 has no column cpu";
        HEADER, "has no lines";
        "a,b\n1,2\n", "line 1 has no column cpu";
        &other, "line 1 has no column threads";
    }
    cases! { bad_line:
        "X,AVX2\n".into(), "line: 3";
        line("Y", "65536", "lookup", "1"), "line 3 is of another machine";
        good.clone(), "line 3 has the filter_bytes";
        many, "line 14 brings more than 12 operations";
    }
    cases! { bad:
        "65536", "lookup", "fast", "ns_per_key is \"fast\"";
        "65536", "lookup", "NaN", "ns_per_key is \"NaN\"";
        "65536", "lookup", "inf", "ns_per_key is \"inf\"";
        "65536", "lookup", "0", "ns_per_key is \"0\"";
        "65536", "lookup", "-1", "ns_per_key is \"-1\"";
        "", "lookup", "1", "filter_bytes is \"\"";
        "0", "lookup", "1", "filter_bytes is \"0\"";
        "18446744073709551615", "lookup", "1", "filter_bytes";
        "65536", "", "1", "operation is \"\"";
        "65536", "a\x01b", "1", "operation is \"a\\u{1}b\"";
        "65536", "\"a\nb\"", "1", "operation";
    }
    let bytes = [HEADER.as_bytes(), b"\xff,AVX2,2,,,,1,a,1\n"].concat();
    shell.write("bytes.csv", bytes);
    for parts in [["bytes.csv", "line 2"], ["none.csv", "cannot read it"], [".", "."]] {
        fails(&shell, &format!("plot speed {} -o old.svg", parts[0]), &parts);
    }
    assert_eq!(shell.read("old.svg"), b"old");

    // Not errors: other orders of columns, another column, a byte order mark, one line.
    let other = "\u{feff}operation,ns_per_key,note,filter_bytes,l1d_bytes,l2_bytes,l3_bytes,threads,instruction_set,cpu\r\n\
                 a,1,x,4096,,,,2,AVX2,X\r\n";
    shell.write("other.csv", other);
    shell.ok("plot speed other.csv -o new.svg");
    has(&read_svg(&shell.path("new.svg")).0, ["a", "4 KiB", "1"]);
}

/// Before the work, which would be in vain. A table and its chart are two files: one would replace
/// the other.
#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let shell = with_table("t.svg");
    fs::create_dir(shell.path("folder.svg")).unwrap();
    let each = |name: &str, parts: &[&str]| {
        fails(&shell, &format!("plot speed t.svg -o {name}"), parts);
        fails(&shell, &format!("plot rate --keys 1e8 --rate 0.01 -o {name}"), parts);
        fails(&shell, &format!("bench --seconds 60 --chart {name}"), parts);
    };
    for name in ["a.png", "a", "a.svg.gz", ".svg"] {
        each(name, &[&*format!("{name}: "), "must end in .svg"]);
    }
    for name in ["none/speed.svg", "folder.svg"] {
        each(name, &["cannot write", name]);
    }
    cases! { fails:
        &shell, "plot speed t.svg -o ./t.svg", &["t.svg: it is also the table"];
        &shell, "bench --seconds 60 -o new.svg --chart ./new.svg", &["the chart", "new.svg: it is also the table"];
        &shell, "bench --seconds 60 -o none/b.csv", &["cannot write none/b.csv"];
        // More memory than a machine has.
        &shell, "plot rate --keys 1e15 --rate 1e-12 -o r.svg", &["a filter for 1000000000000000 keys"];
    }
    assert_eq!(shell.read("t.svg"), table().as_bytes());
    assert_eq!(shell.names("."), ["folder.svg", "t.svg"]);
}
