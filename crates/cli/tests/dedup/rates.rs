//! The rate of wrongly dropped lines, and sizes beyond any buffer.

use super::*;
use lanebloom::{ConcurrentBloom, Membership};

/// The number before " of them expected to be wrongly dropped".
fn expected_mistakes(errors: &str) -> f64 {
    let (before, _) = errors.split_once(" of them expected").unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The hash has a random key, so each run is another sample: the bounds are six standard deviations
/// wide.
#[test]
fn new_lines_are_dropped_at_the_promised_rate() {
    let lines = many().min(1_000_000);
    let folder = Folder::new();
    let input = numbers(0, lines);
    let file = folder.file("input", &input);
    let expected = lines.to_string();
    let state = folder.path("state");
    for rate in [0.001, 0.02] {
        for flags in [
            &[][..],
            &["--expected", &expected],
            &["--expected", "1000"],
            &["--state", utf8(&state)],
        ] {
            for is_file in [true, false] {
                let flag = format!("--rate={rate}");
                let mut command = dedup(flags);
                command.args(["--count", &flag]);
                let run = if is_file {
                    Run::new(command.arg(&file), "")
                } else {
                    Run::new(&mut command, &input)
                };
                let _ = fs::remove_file(&state);
                let [read, unique, dropped] = summary(&run.errors);
                assert_eq!((read, unique + dropped), (lines, lines));
                let (told, promise) = (expected_mistakes(&run.errors), rate * lines as f64);
                let dropped = dropped as f64;
                let context = format!("{rate} {flags:?} {is_file}: {}", run.errors);
                assert!(dropped <= promise + 6.0 * promise.sqrt(), "{context}");
                assert!(
                    (dropped - told).abs() <= 6.0 * told.sqrt() + 0.1 * told + 6.0,
                    "{context}"
                );
            }
        }
    }
}

/// How many of the first `keys` new keys are taken for present by mistake: a key is, if one of the
/// layers there holds it. The layers fill one after another, up to the keys that they have now.
fn model(layers: &[ConcurrentBloom], keys: f64) -> f64 {
    const STEPS: usize = 1000;
    let (mut left, mut older, mut mistakes) = (keys, 0.0, 0.0);
    for layer in layers {
        let len = left.min(layer.statistics().len as f64);
        let rate = |share: f64| layer.false_positive_rate_at((len * share) as usize);
        let mean = (0..STEPS)
            .map(|step| rate((step as f64 + 0.5) / STEPS as f64))
            .sum::<f64>()
            / STEPS as f64;
        mistakes += len * (mean + older);
        older += rate(1.0);
        left -= len;
    }
    mistakes
}

/// The estimate in the summary is the sum of the layers' rates over the new lines of this run. Each
/// layer's number of keys is an estimate here, within 0.5%, so the sum is one within 3%.
#[test]
fn the_estimate_is_the_sum_of_the_rates() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = ["--rate", "0.02", "--expected", "20000", "--count"];
    #[track_caller]
    fn assert_told(run: &Run, expected: f64) {
        let told = expected_mistakes(&run.errors);
        assert!((told / expected - 1.0).abs() < 0.04, "{expected}: {}", run.errors);
    }
    // The first run fills one layer. Its lines come again and again, which is not a mistake.
    let first = folder.file("first", numbers(0, 20_000).repeat(5));
    let run = Run::new(dedup(flags).arg("--state").arg(&state).arg(&first), "");
    let [_, mut new, _] = summary(&run.errors);
    let one = state::layers(&state);
    assert_eq!(one.len(), 1);
    assert_told(&run, model(&one, new as f64));
    // Without a state the hash has another key.
    let run = Run::new(dedup(flags).arg(&first), "");
    assert_told(&run, model(&one, summary(&run.errors)[1] as f64));

    // A run that grows.
    let (many, grown) = (folder.file("many", numbers(0, 90_000)), folder.path("grown"));
    let run = Run::new(dedup(flags).arg("--state").arg(&grown).arg(&many), "");
    let layers = state::layers(&grown);
    assert!(layers.len() > 1);
    assert_told(&run, model(&layers, summary(&run.errors)[1] as f64));

    // Later runs count their own lines only.
    for number in 1..4 {
        let more = folder.file("more", numbers(number * 100_000, 30_000).repeat(5));
        let run = Run::new(dedup(flags).arg("--state").arg(&state).arg(&more), "");
        let before = new;
        new += summary(&run.errors)[1];
        let layers = state::layers(&state);
        assert!(layers.len() > 1);
        assert_told(&run, model(&layers, new as f64) - model(&layers, before as f64));
    }
}

/// Lines that are made while they are read, half of them duplicates.
#[test]
fn many_lines_through_a_pipe() {
    for flags in [&[][..], &["--threads=1"], &["--expected=1M"], &["--exact"]] {
        let mut child = spawn(dedup(flags).arg("--count"));
        let mut pipe = std::io::BufWriter::with_capacity(1 << 16, child.stdin.take().unwrap());
        let different = many() / 2;
        let writer = thread::spawn(move || {
            for line in 0..2 * different {
                // Each number twice, far from each other.
                writeln!(pipe, "https://example.com/articles/{}", line * 7 % different).unwrap();
            }
            pipe.flush().unwrap();
        });
        let Run { output, errors, .. } = Run::end(child);
        writer.join().unwrap();
        let [lines, unique, _] = summary(&errors);
        assert_eq!((lines, output), (2 * different, format!("{unique}\n").into_bytes()));
        // At 1e-6 five are dropped wrongly on average.
        let wrong = different - unique;
        assert!(wrong <= if flags == ["--exact"] { 0 } else { 40 }, "{flags:?} {errors}");
    }
}

/// The help's figures for a different line: at most 10 bytes in a pipe, whose size is not known; 5
/// in a file in which each part brings as many new lines, unless the file is small.
#[test]
fn memory_for_different_lines() {
    let folder = Folder::new();
    for count in [70_000, 100_000, 132_000, 200_000, 265_000] {
        let input = numbers(0, count);
        let file = folder.file("input", &input);
        for (is_file, most) in [(true, if count < 150_000 { 10 } else { 5 }), (false, 10)] {
            let mut command = dedup(["--count"]);
            let run = if is_file {
                Run::new(command.arg(&file), "")
            } else {
                Run::new(&mut command, &input)
            };
            let (_, rest) = run.errors.split_once(", a filter of ").unwrap();
            let (number, unit) = rest.split_once(',').unwrap().0.split_once(' ').unwrap();
            let unit = if unit == "KiB" { 1024.0 } else { 1024.0 * 1024.0 };
            let bytes = number.parse::<f64>().unwrap() * unit / count as f64;
            assert!(bytes <= f64::from(most), "{count} {is_file}: {bytes} bytes a line");
        }
    }
}
