//! The pieces that are removed: against the model, for every unit, with and without n-grams.

use super::model::Model;
use super::*;

/// Asserts that the command does what the model does, on random texts.
#[track_caller]
fn check(options: &str, model: Model) {
    let mut random = Random(options.len() as u64);
    let shell = Shell::new();
    for count in [0, 1, 30, 600] {
        let all = random.texts(count);
        shell.write("in.jsonl", lines(&all));
        let expected = model.clone().all(&all);
        for threads in [1, 2, 3] {
            let found = shell.ok(&format!("in.jsonl {SURE} --threads {threads} {options}"));
            assert_eq!(texts(&found), expected, "{options} {count}");
        }
    }
}

#[test]
fn documents() {
    check("", Model::new(None));
}

#[test]
fn lines_and_paragraphs() {
    check("--unit line", Model::new(Some("\n")));
    check("--unit paragraph", Model::new(Some("\n\n")));
    check("--split the", Model::new(Some("the")));
}

#[test]
fn ngrams_that_overlap() {
    for (len, overlap) in [(1, 0.5), (3, 0.8), (5, 1.0), (5, 0.01)] {
        let options = format!("--unit line --words ascii --ngrams {len} --overlap {overlap}");
        check(&options, Model::ngrams(len, overlap));
        let model = Model {
            like_dolma: true,
            ..Model::ngrams(len, overlap)
        };
        check(&format!("{options} --like-dolma"), model);
    }
    let model = Model {
        separator: None,
        ..Model::ngrams(4, 0.6)
    };
    check("--words ascii --ngrams 4 --overlap 0.6", model);
}

#[test]
fn short_pieces_stay_and_short_documents_go() {
    let lines = Model::new(Some("\n"));
    let model = |min_words, keep_short, model: &Model| Model {
        min_words,
        keep_short,
        ..model.clone()
    };
    check("--unit line --words ascii --min-words 1", model(1, 0, &lines));
    check("--unit line --words ascii --min-words 9", model(9, 0, &lines));
    check("--unit line --words ascii --keep-short 5", model(0, 5, &lines));
    let ngrams = Model::ngrams(3, 0.8);
    let options = "--unit line --words ascii --ngrams 3";
    check(&format!("{options} --min-words 12"), model(12, 0, &ngrams));
    check(&format!("{options} --keep-short 4"), model(0, 4, &ngrams));
    check(
        &format!("{options} --min-words 12 --keep-short 4"),
        model(12, 4, &ngrams),
    );
}

/// Unicode's words: a mark is a word of its own, and a word may have one in it.
#[test]
fn words_by_unicode() {
    let shell = Shell::new();
    let texts = ["can't stop, 3.14", "can't stop ,3.14", "can 't stop, 3.14"];
    shell.write("in.jsonl", lines(&texts));
    let found = super::texts(&shell.ok("in.jsonl --ngrams 2 --overlap 1"));
    assert_eq!(found, [texts[0], texts[2]]);
}

#[test]
fn differences_that_count_for_nothing() {
    let shell = Shell::new();
    let all = ["A b", "a B", "a, b", "a  b", "a 1", "a 2", "e\u{301}", "\u{e9}"];
    shell.write("in.jsonl", lines(&all));
    let left = |list: &str| texts(&shell.ok(&format!("in.jsonl --normalize {list}")));
    assert_eq!(texts(&shell.ok("in.jsonl")), all);
    assert_eq!(
        left("lower"),
        ["A b", "a, b", "a  b", "a 1", "a 2", "e\u{301}", "\u{e9}"]
    );
    assert_eq!(left("lower,punctuation")[1], "a  b");
    assert_eq!(left("whitespace").len(), 8);
    assert_eq!(
        left("lower,punctuation,whitespace,digits,nfc"),
        ["A b", "a 1", "e\u{301}"]
    );
}

/// Marks between words separate them; all others count for nothing.
#[test]
fn numbers_that_differ_in_their_marks_are_different() {
    let shell = Shell::new();
    let all = ["1.23", "12.3", "123", "1,23", "(12.3)", "a, b.", "a b", "a-b", "ab"];
    shell.write("in.jsonl", lines(&all));
    let left = ["1.23", "12.3", "123", "a, b.", "ab"];
    assert_eq!(texts(&shell.ok("in.jsonl --normalize punctuation")), left);
    assert_eq!(
        texts(&shell.ok("in.jsonl --normalize punctuation --ngrams 1 --overlap 1")),
        left
    );
}

/// Spans count characters, and have the separator with them, as in dolma.
#[test]
fn annotations() {
    let shell = Shell::new();
    let all = ["é\nb\nb", "b\né", "x", "", "é\n\nb\n"];
    shell.write("in.jsonl", lines(&all));
    // (However large, the option of tests is a time.)
    let output = shell.run("in.jsonl --unit line --annotate dups --state s --save-every inf");
    let told = "5 documents, 2 to be dropped, 1 to be shortened; 8 pieces, 5 marked; ";
    assert!(summary(&output).starts_with(told), "{}", stderr(&output));
    let found = output.stdout;
    let found = Vec::from_iter(found.split(|&b| b == b'\n').map(|line| String::from_utf8_lossy(line)));
    let line = |id: usize, spans: &str| format!(r#"{{"id":{id},"attributes":{{"dups":[{spans}]}}}}"#);
    let expected = ["[4,5,1]", "[0,2,1],[2,3,1]", "", "", "[0,2,1],[3,5,1]"];
    for (id, spans) in expected.into_iter().enumerate() {
        assert_eq!(found[id], line(id, spans));
    }
    // An overlap's score is the share that was seen.
    shell.write("in.jsonl", lines(&["a b c d e f", "a b c d e x"]));
    let found = shell.ok("in.jsonl --ngrams 2 --overlap 0.5 --annotate n");
    assert!(found.ends_with(b"{\"id\":1,\"attributes\":{\"n\":[[0,11,0.8]]}}\n"));
    // A line without an id or a text keeps its place.
    shell.write("in.jsonl", "{\"text\":\"a\"}\nno JSON\n{\"id\":{\"a\": 1}}\n");
    let found = String::from_utf8(shell.ok("in.jsonl --annotate n")).unwrap();
    let attributes = r#","attributes":{"n":[]}}"#;
    let ids = ["null", "null", "{\"a\": 1}"].map(|id| format!("{{\"id\":{id}{attributes}\n"));
    assert_eq!(found, ids.concat());
}

/// A document as it is written on Windows is that of Unix, for every unit. It keeps its line ends.
#[test]
fn line_ends_count_for_nothing_and_stay() {
    let shell = Shell::new();
    let all = ["aaa\r\nbbb", "bbb\r\naaa\r\nc"];
    shell.write("in.jsonl", lines(&all));
    assert_eq!(texts(&shell.ok("in.jsonl --unit line")), [all[0], "c"]);
    let all = [
        "a\r\nb",
        "a\nb",
        "a\nb\r\n\r\nc\r\nd\r\n\r\nb",
        "c\nd\n\nx\n\r\ny",
        "a\rb",
    ];
    shell.write("in.jsonl", lines(&all));
    assert_eq!(texts(&shell.ok("in.jsonl")), [all[0], all[2], all[3], all[4]]);
    let left = ["a\r\nb", "c\r\nd\r\n\r\nb", "x\n\r\ny", "a\rb"];
    assert_eq!(texts(&shell.ok("in.jsonl --unit paragraph")), left);
    // A return is a part of a short piece, as in dolma.
    shell.write("in.jsonl", lines(&["aaa\r\nbbb", "bbb\r\naaa\r\nc"]));
    let left = texts(&shell.ok("in.jsonl --unit line --ngrams 3 --like-dolma"));
    assert_eq!(left, ["aaa\r\nbbb", "bbb\r\nc"]);
    // A span has the separator with it.
    shell.write("in.jsonl", lines(&["é\r\nb\r\nb", "b\r\né"]));
    let found = String::from_utf8(shell.ok("in.jsonl --unit line --annotate n")).unwrap();
    assert!(
        found.contains("[[6,7,1]]") && found.contains("[[0,3,1],[3,4,1]]"),
        "{found}"
    );

    let mut random = Random(17);
    let plain = random.texts(400);
    let mixed = plain.iter().map(|text| {
        let whole = random.below(3);
        let mut mixed = String::new();
        for line in text.split_inclusive('\n') {
            let is_crlf = whole == 0 || whole == 1 && random.below(2) == 0;
            mixed += &if is_crlf {
                line.replace('\n', "\r\n")
            } else {
                line.to_owned()
            };
        }
        mixed
    });
    let mixed = Vec::from_iter(mixed);
    shell.write("plain.jsonl", lines(&plain));
    shell.write("mixed.jsonl", lines(&mixed));
    for options in [
        "",
        "--unit line",
        "--unit paragraph",
        "--split \\n",
        "--unit line --ngrams 3",
        "--unit line --normalize lower,punctuation",
        "--near 0.8",
    ] {
        let expected = texts(&shell.ok(&format!("plain.jsonl {SURE} {options}")));
        let found = texts(&shell.ok(&format!("mixed.jsonl {SURE} {options}")));
        let plain = Vec::from_iter(found.iter().map(|text| text.replace("\r\n", "\n")));
        assert_eq!(plain, expected, "{options}");
        // No end of a line comes from another text.
        let is_unix = |text: &&String| !text.contains('\r');
        let unix = |texts: &[String]| texts.iter().filter(is_unix).count();
        assert!(
            unix(&found) >= found.len() / 4 && found.len() > unix(&found),
            "{options}"
        );
    }
}

/// A document without a text passes each time, and so does a blank text.
#[test]
fn texts_that_are_missing_null_or_blank_pass() {
    let shell = Shell::new();
    let all = [
        "{}",
        "{\"text\":null}",
        "{\"text\":0}",
        "{\"text\":[\"a\"]}",
        "null",
        "",
        "{\"text\":\"\"}",
        "{\"text\":\" \\t\"}",
    ];
    let once: String = all.iter().map(|line| format!("{line}\n")).collect();
    shell.write(
        "in.jsonl",
        once.repeat(2) + "{\"text\":\"null\"}\n{\"text\":\"null\"}\n",
    );
    for options in ["", "--unit line", "--unit paragraph --ngrams 2", "--near 0.8"] {
        let report = shell.report(&format!("in.jsonl -o out.jsonl {SURE} {options}"));
        let expected = once.repeat(2) + "{\"text\":\"null\"}\n";
        assert_eq!(
            String::from_utf8(shell.read("out.jsonl")).unwrap(),
            expected,
            "{options}"
        );
        assert_eq!(
            (&report["without_text"], &report["pieces"]),
            (&12.into(), &2.into()),
            "{options}"
        );
    }
    // No filter has them: other texts of these shapes are not found.
    shell.write("blank.jsonl", once);
    shell.ok("blank.jsonl --build filter");
    shell.write("in.jsonl", lines(&["null", "0", "a", "{}"]));
    assert_eq!(texts(&shell.ok("in.jsonl --against filter")), ["null", "0", "a", "{}"]);
}
