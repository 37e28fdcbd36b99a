//! Near-duplicates: pairs of documents whose similarity is known.

use super::*;

/// Words of a document.
const WORDS: usize = 300;

/// A document with words of its own, and one that differs in its last words, so that the sets of
/// sequences of 5 words have this similarity, about.
fn pair(number: usize, jaccard: f64) -> (String, String) {
    let sequences = (WORDS - 4) as f64;
    let edits = (sequences * (1.0 - jaccard) / (1.0 + jaccard)).round() as usize;
    let words = |text: &str, range: std::ops::Range<usize>| {
        Vec::from_iter(range.map(|at| format!("{text}{number}x{at}"))).join(" ")
    };
    let one = words("a", 0..WORDS);
    let other = format!("{} {}", words("a", 0..WORDS - edits), words("b", 0..edits));
    (one, other)
}

fn pairs(jaccard: f64) -> (Vec<String>, Vec<String>) {
    (0..300).map(|number| pair(number, jaccard)).unzip()
}

#[test]
fn similar_documents_go_and_others_stay() {
    let shell = Shell::new();
    for (jaccard, removed) in [(0.97, 297..=300), (0.9, 250..=300), (0.6, 0..=9), (0.3, 0..=0)] {
        let (ones, others) = pairs(jaccard);
        let all = [&ones[..], &others].concat();
        shell.write("in.jsonl", lines(&all));
        let line = format!("in.jsonl --near 0.8 {SURE}");
        let found = shell.ok(&line);
        let left = texts(&found);
        assert_eq!(left[..300], ones, "{jaccard}");
        assert!(removed.contains(&(600 - left.len())), "{jaccard}: {}", 600 - left.len());
        for threads in 1..=3 {
            assert!(shell.ok(&format!("{line} --threads {threads}")) == found);
        }

        // Against a filter, and by a second run with a state, the same go.
        shell.write("ones.jsonl", lines(&ones));
        shell.write("others.jsonl", lines(&others));
        shell.ok(&format!("ones.jsonl --near 0.8 --build f {SURE}"));
        assert_eq!(texts(&shell.ok("others.jsonl --near 0.8 --against f")), left[300..]);
        let state = format!("--near 0.8 --state s{jaccard} {SURE}");
        shell.ok(&format!("ones.jsonl {state}"));
        assert_eq!(texts(&shell.ok(&format!("others.jsonl {state}"))), left[300..]);
    }
    shell.error("others.jsonl --near 0.9 --state s0.9", &["--near 0.8", "--near 0.9"]);
    shell.error(
        "others.jsonl --near 0.8 --ngrams 6 --against f",
        &["--ngrams 5", "--ngrams 6"],
    );
    shell.error("others.jsonl --ngrams 5 --against f", &["--near 0.8"]);
    shell.error("others.jsonl --near 0.8 --overlap 0.5 --ngrams 5", &["--overlap"]);
    shell.error("others.jsonl --near 0.8 --like-dolma --ngrams 5", &["--like-dolma"]);
    shell.error("others.jsonl --near 1.5", &["at most 1"]);
}

/// A document that goes leaves no bands: a chain of small changes does not reach far.
#[test]
fn only_documents_that_stay_are_remembered() {
    let shell = Shell::new();
    let all = Vec::from_iter((0..200).map(|step| {
        Vec::from_iter((0..WORDS).map(|at| if at < step { format!("b{at}") } else { format!("a{at}") })).join(" ")
    }));
    shell.write("in.jsonl", lines(&all));
    let left = texts(&shell.ok(&format!("in.jsonl --near 0.8 {SURE}")));
    // Each that stays differs from the one before in about 20 words or more.
    assert!((6..=30).contains(&left.len()), "{}", left.len());
}

/// The rate is that of a document, not of a band.
#[test]
fn few_documents_go_by_mistake() {
    let shell = Shell::new();
    let all: String = (0..100_000)
        .map(|number| format!("{{\"text\":\"{number}a {number}b {number}c {number}d {number}e {number}f\"}}\n"))
        .collect();
    shell.write("in.jsonl", all);
    for options in ["", "--expected 100000"] {
        let report = shell.report(&format!("in.jsonl -o out --near 0.8 --rate 0.01 {options}"));
        let number = |name: &str| report[name].as_f64().unwrap();
        let (removed, expected) = (number("pieces_removed"), number("wrongly_removed_expected"));
        assert!(removed > 0.0 && removed < 1050.0, "{report}");
        // A document with a mistaken band leaves none of its own, so a few less than expected.
        assert!((removed - expected).abs() < 6.0 * expected.sqrt() + 1.0, "{report}");
        assert!(number("rate_now") <= 0.01 && number("rate_now") > 0.001, "{report}");
        assert_eq!(number("hashes"), 900_000.0);
    }
}
