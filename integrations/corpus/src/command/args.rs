//! The command line.

use clap::{Parser, ValueEnum, ValueHint};
use lanebloom_files::args::{InputArgs, SummaryArgs, field, number, rate, share, threads};
use lanebloom_files::json::Pointer;
use lanebloom_files::pages::Shell;
use std::path::PathBuf;

/// Deduplicate text in JSON lines: documents, paragraphs, overlaps
///
/// Each line of the input is an object of JSON with a text, a document. What was seen before is
/// removed from the texts; all other bytes stay as they are. A document that becomes empty goes. A
/// line without a text (missing, null or not a string), or one that is not JSON, stays, and the
/// summary counts it. Texts that differ in their line ends only, CRLF and LF, are equal.
///
/// Built with the feature parquet, it reads and writes files of Parquet too: --text is the column.
///
/// A Bloom filter remembers hashes of the pieces, and grows as needed. It takes a new piece for one
/// that was seen with a probability of at most --rate. The first occurrence in the order of the
/// input stays. The output is the same for any number of threads.
#[derive(Debug, Parser)]
#[command(
    name = "lanebloom-corpus",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  lanebloom-corpus docs.jsonl.gz -o unique.jsonl.gz     # whole documents
  lanebloom-corpus crawl/ --output-dir clean/ --unit line
  lanebloom-corpus crawl/ --output-dir clean/ --state seen.lbf
  lanebloom-corpus a.jsonl -o b.jsonl --unit paragraph --ngrams 13
  lanebloom-corpus a.jsonl -o b.jsonl --near 0.8        # near-duplicates
  lanebloom-corpus tests/ --build tests.lbf --ngrams 13
  lanebloom-corpus crawl/ --output-dir out/ --ngrams 13 --against tests.lbf

Exit status:
  0    success
  2    an error, with a message on stderr; states and outputs are as before
  130  Ctrl-C ended it (128 + N: signal N)
  141  the reader of the output closed it (as after SIGPIPE)"
)]
pub(super) struct Args {
    /// Write to FILE instead of stdout, compressed if its name ends in .gz or .zst. FILE is
    /// replaced as a whole once all documents are in it. It cannot be an input, nor a name of
    /// stdout or stderr
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) output: Option<PathBuf>,

    /// Write the documents of each input file to a file in DIR with the same name, and those of a
    /// folder to a folder. Each file is written as a whole, compressed as its name says
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "output")]
    pub(super) output_dir: Option<PathBuf>,

    /// Only put all pieces into FILE, a filter for --against; write no documents
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["output", "output_dir", "annotate", "state", "against"])]
    pub(super) build: Option<PathBuf>,

    /// Write what would be removed, and no texts: for each document its id and the spans of its
    /// pieces that were seen, in characters, each with the share that was seen. (The attributes of
    /// dolma, under this name)
    #[arg(long, value_name = "NAME")]
    pub(super) annotate: Option<String>,

    /// The field with the text: a name, or a JSON pointer such as /document/text
    #[arg(long, value_name = "FIELD", value_parser = field_of_text, default_value = "text")]
    pub(super) text: String,

    /// Compare and remove whole documents, paragraphs (between empty lines), or lines
    #[arg(long, value_enum, default_value_t = Unit::Document, conflicts_with = "split")]
    pub(super) unit: Unit,

    /// Compare and remove what is between the matches of this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(super) split: Option<String>,

    /// Compare by overlap: a piece goes if enough of its sequences of N words were seen. A piece of
    /// fewer words is one sequence. The sequences of pieces that stay are remembered
    #[arg(long, value_name = "N", value_parser = field)]
    pub(super) ngrams: Option<usize>,

    /// Remove a piece if at least this share of its sequences was seen before it
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.8", requires = "ngrams")]
    pub(super) overlap: f64,

    /// Remove near-duplicates: a piece goes if its set of sequences (of 5 words, or --ngrams) is
    /// about as similar to that of a piece before it as SHARE, by Jaccard. Those of pieces that
    /// stay are remembered. --rate is for a whole piece
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["overlap", "like_dolma"])]
    pub(super) near: Option<f64>,

    /// The rules for words
    #[arg(long, value_enum, default_value_t = WordRules::Unicode)]
    pub(super) words: WordRules,

    /// Ignore differences when pieces are compared; several, such as lower,punctuation
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub(super) normalize: Vec<Difference>,

    /// Drop a document with fewer than N words left
    #[arg(long, value_name = "N", value_parser = number)]
    pub(super) min_words: Option<usize>,

    /// Keep a piece of fewer than N words, whatever was seen
    #[arg(long, value_name = "N", value_parser = number)]
    pub(super) keep_short: Option<usize>,

    /// Decide as dolma 1.2 does: remember the sequences of removed pieces too; take a sequence that
    /// repeats inside of its piece for seen; compare a piece with less than two sequences as a
    /// whole
    #[arg(long, requires = "ngrams")]
    pub(super) like_dolma: bool,

    /// Remove what FILE holds, and nothing else: FILE is only read, and nothing is remembered
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["state", "expected", "rate", "memory", "seed", "like_dolma"])]
    pub(super) against: Option<PathBuf>,

    /// Remember the pieces in FILE across runs, and in FILE.journal the inputs that are done, by
    /// size and hash. An input that was done is not read again, wherever it lies now. With
    /// --output-dir, the run saves its work every now and then: after it was killed, the same
    /// command goes on from there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) state: Option<PathBuf>,

    /// Begin a journal for a --state that has none, such as a filter of `build`. No input counts as
    /// done: all documents of an input that the state has seen would be removed
    #[arg(long, requires = "state")]
    pub(super) new_journal: bool,

    /// Share one filter among machines: it is in this server, as redis://HOST:6379, under
    /// --redis-key, for --expected pieces of all machines together. Of equal pieces, the one whose
    /// machine asks first stays. An input that the filter has seen is an error. Not for overlaps
    #[cfg(feature = "redis")]
    #[arg(long, value_name = "URL", requires_all = ["redis_key", "expected"], conflicts_with_all = ["ngrams", "near", "state", "against", "build", "memory"])]
    pub(super) redis: Option<String>,

    /// The name of the filter that --redis shares
    #[cfg(feature = "redis")]
    #[arg(long, value_name = "NAME", requires = "redis")]
    pub(super) redis_key: Option<String>,

    /// Size the filter for N different pieces, such as 5000, 10M or 1e9. The filter grows if there
    /// are more [default: start small and grow]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(super) expected: Option<usize>,

    /// Remove a new piece by mistake with at most this probability, such as 0.01, 1% or 1e-6
    /// [default: 1e-6]
    #[arg(long, value_name = "P", value_parser = rate)]
    pub(super) rate: Option<f64>,

    /// Let the filter take at most N bytes, such as 8G
    #[arg(long, value_name = "N", value_parser = number)]
    pub(super) memory: Option<usize>,

    /// The action once the filter has --memory and is full
    #[arg(long, value_enum, default_value_t = WhenFull::Stop, requires = "memory")]
    pub(super) when_full: WhenFull,

    /// Vary the hashes, and so which pieces are removed by mistake
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u32>,

    #[command(flatten)]
    pub(super) input: InputArgs,

    /// Refuse a line with more than N bytes, or whose pieces and words take more than 6 N bytes of
    /// memory. A thread takes at most about 12 N
    #[arg(long, value_name = "N", value_parser = number, default_value = "64M")]
    pub(super) max_record: usize,

    /// Work with N threads; the output stays the same [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(super) threads: Option<usize>,

    /// Write the statistics of the run to FILE, as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) report: Option<PathBuf>,

    #[command(flatten)]
    pub(super) summary: SummaryArgs,

    /// Print errors only: no progress bar, no summary
    #[arg(long, short)]
    pub(super) quiet: bool,

    /// Print the completions for a shell, and do nothing else
    #[arg(long, value_name = "SHELL", value_enum, exclusive = true)]
    pub(super) completions: Option<Shell>,

    /// Write the man page to a file in DIR, and do nothing else
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, exclusive = true)]
    pub(super) man: Option<PathBuf>,

    /// Save the work of --state after at most this many seconds
    #[arg(long, hide = true, default_value_t = 30.0)]
    pub(super) save_every: f64,
}

/// The pieces of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Unit {
    /// The whole text
    Document,
    /// Between two newlines in a row
    Paragraph,
    /// Between newlines
    Line,
}

/// The action when a filter may grow no more.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum WhenFull {
    /// The run fails
    Stop,
    /// Nothing more is remembered; what is new from then on stays, however often it occurs
    Keep,
    /// The oldest part of the filter is forgotten
    Forget,
}

/// How text is cut into words.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum WordRules {
    /// By Unicode's rules, as in bff and dolma: a punctuation mark is a word
    Unicode,
    /// Letters, digits and underscores in a row, and all characters beyond ASCII; faster
    Ascii,
}

/// A difference between texts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Difference {
    /// The composition of characters: Unicode's form NFC
    Nfc,
    /// The case of letters
    Lower,
    /// Punctuation marks: those between two words are a space
    Punctuation,
    /// Digits: all are equal
    Digits,
    /// The amount of white space
    Whitespace,
}

fn field_of_text(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        Pointer::parse(text)?;
    }
    Ok(text.into())
}
