//! What the command line may say. The build script makes the man pages and the completions from
//! this file, so it uses only clap and the standard library.

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Membership filters for the shell: deduplicates lines; builds, queries and plots Bloom filters
#[derive(Debug, Parser)]
#[command(name = "lanebloom", version, max_term_width = 100, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    /// No progress bar and no summary; errors only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_STATUS: &str = "\
Exit status:
  0    success; for query: every key is present
  1    query: a key is absent
  2    an error, with a message on stderr; state files and outputs are as before
  141  the reader of the output closed it (as after SIGPIPE)";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dedup(Dedup),
    Build(Build),
    Query(Query),
    Merge(Merge),
    Info(Info),
    Convert(Convert),
    Plan(Plan),
    Bench(Bench),
    Plot(Plot),
    Completions(Completions),
    Man(Man),
}

/// Print the first occurrence of each line, in order
///
/// A Bloom filter remembers the lines, so memory stays small. At the default rate, each different
/// line takes about 4 bytes with --expected, 4 to 8 in most files, and 5 to 10 in a pipe, whose
/// size is not known. A new line is wrongly dropped with a probability of at most --rate. With
/// --exact no line is wrongly dropped.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom dedup access.log > unique.log
  zcat *.gz | lanebloom dedup --field 2 --delimiter '\\t'
  lanebloom dedup --csv email customers.csv.zst
  crawl | lanebloom dedup --json /url --state seen.lbf    # remembers across runs
  lanebloom dedup --exact huge.txt                        # two passes, exact")]
pub(crate) struct Dedup {
    /// Files to read, one after another; gzip and zstd are recognized by content, and xz, bzip2 and
    /// lz4 are refused. `-` or none: stdin
    #[arg(default_value = "-", hide_default_value = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) size: SizeArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,

    /// Print only the number of lines that would pass
    #[arg(long, short)]
    pub(crate) count: bool,

    /// Pass on the lines that are otherwise dropped: every occurrence but the first
    #[arg(long, short = 'd')]
    pub(crate) only_duplicates: bool,

    /// Remember the lines in FILE across runs. It is created if missing, and replaced as a whole
    /// after all output was written. One run at a time can use it: a second one fails at once.
    /// Without --rate, later runs keep the file's rate, rounded up to a power of ten
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "exact")]
    pub(crate) state: Option<PathBuf>,

    /// Drop exactly the duplicates: the first pass marks candidates by a filter, the second
    /// compares them. A pipe or a compressed file is spilled to a temporary file. Files must not
    /// change meanwhile, but they may grow: what comes later is not read
    #[arg(long)]
    pub(crate) exact: bool,

    /// Threads that read and hash; the order of the output stays
    /// [default: the machine's, at most 4]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

/// Build a filter file from keys, one per line
///
/// A line without a key is left out. A file of the format lanebloom is also a state of `dedup
/// --state`. A Guava filter cannot grow, and one of RedisBloom is larger when it has grown. So for
/// these, without --expected, the input is read twice, the first time to count the different keys.
/// A pipe or a compressed file is spilled to a temporary file then. A string of --json is a key of
/// these by its text, without quotes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom build ids.txt -o ids.lbf --rate 0.001
  cut -f1 users.tsv | lanebloom build -o users.guava --format guava --funnel long --expected 1M
  lanebloom build ids.txt -o - --format redisbloom --redis-key ids | redis-cli --pipe")]
pub(crate) struct Build {
    /// Files of keys; `-` or none: stdin
    #[arg(default_value = "-", hide_default_value = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// The file to write, replaced as a whole once it is complete; `-`: stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    /// The format of the filter file
    #[arg(long, value_enum, default_value_t = Format::Lanebloom)]
    pub(crate) format: Format,

    /// The key in Redis that a file of the format redisbloom loads
    #[arg(long, value_name = "NAME", required_if_eq("format", "redisbloom"))]
    pub(crate) redis_key: Option<String>,

    /// The funnel of a file of the format guava. A line that the funnel does not take has no key
    /// [default: the bytes as they are, for utf8 and bytes]
    #[arg(long, value_enum)]
    pub(crate) funnel: Option<Funnel>,

    #[command(flatten)]
    pub(crate) size: SizeArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

/// Ask a filter file which keys it has
///
/// Prints for each line `present` or `absent`, a tab, and the line as it is. The exit status is 0
/// if every key is present, and 1 otherwise. A key that was never inserted can be present by
/// mistake, at the filter's rate. A line without a key is absent. With --quiet only the exit status
/// answers, as soon as it is certain.
///
/// Reads every file that `info` recognizes, if its keys' hash needs no secret. Give --ignore-case
/// to `build` and `query`, or to none of them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  echo 4711 | lanebloom query --quiet ids.lbf && echo known
  lanebloom query --absent ids.lbf requests.txt
  lanebloom query --funnel long ids.guava ids.txt")]
pub(crate) struct Query {
    /// The filter file; `-`: stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) filter: PathBuf,

    /// Files of keys; `-` or none: stdin
    #[arg(default_value = "-", hide_default_value = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Print only the lines whose keys are present, as they are
    #[arg(long, short)]
    pub(crate) present: bool,

    /// Print only the lines whose keys are absent, as they are
    #[arg(long, short, conflicts_with = "present")]
    pub(crate) absent: bool,

    /// The funnel that a Guava filter was made with, which its file does not say. A line that the
    /// funnel does not take has no key [default: the bytes as they are, for utf8 and bytes]
    #[arg(long, value_enum)]
    pub(crate) funnel: Option<Funnel>,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

/// Merge filter files
///
/// Snapshots with the same layout become one by union, if that keeps their rate: as long as all
/// keys fit into the number that they are for. Others follow one another in the file, and their
/// rates add up. So give --expected for all keys to each `build` whose files are merged later.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lanebloom merge monday.lbf tuesday.lbf -o week.lbf")]
pub(crate) struct Merge {
    /// Filter files of the same kind
    #[arg(required = true, num_args = 2.., value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// The file to write, replaced as a whole once it is complete; `-`: stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// Describe filter files: kind, size, number of keys, false-positive rate
///
/// Recognizes snapshots of every filter of lanebloom, Guava's streams and dumps of RedisBloom by
/// their content.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lanebloom info seen.lbf")]
pub(crate) struct Info {
    /// Filter files; `-`: stdin
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
}

/// Convert a filter file to another format, if that needs no keys
///
/// A filter holds bits that follow from hashes of its keys. So a format with another hash or
/// another layout cannot be made from it: run `build` on the keys instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom convert scalable.lbf -o seen.lbf --to lanebloom      # for dedup --state
  lanebloom convert sessions.lbf -o small.lbf --to compact-cuckoo
  lanebloom convert dump.resp -o copy.resp --to redisbloom --redis-key copy")]
pub(crate) struct Convert {
    /// The filter file to read; `-`: stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,

    /// The file to write, replaced as a whole once it is complete; `-`: stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    /// The format to write
    #[arg(long, value_enum)]
    pub(crate) to: Target,

    /// The key in Redis that a file of the format redisbloom loads [default: as in the input]
    #[arg(long, value_name = "NAME")]
    pub(crate) redis_key: Option<String>,
}

/// Compare filter types for a number of keys and a rate: memory, bits per key, lines touched
///
/// The lines are those of the cache, of 64 bytes, that a lookup of a present or an absent key
/// reads. The rate is the filter's own at that number of keys; some can have only certain ones. Two
/// types have no rate to choose, and are left out: ConcurrentBitmap takes a bit for each possible
/// number, and RedisCuckoo has one byte a key and more than 1.5%.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom plan --keys 10M --rate 0.001
  lanebloom plan --keys 10M                # for many rates")]
pub(crate) struct Plan {
    /// The number of keys, such as 5000, 10M or 1e9
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) keys: usize,

    /// The false-positive rate, such as 0.01, 1% or 1e-6. Without it: a table over rates
    #[arg(long, value_name = "P", value_parser = rate)]
    pub(crate) rate: Option<f64>,
}

/// Measure this machine for ten seconds: ns per key by filter size, as a table
///
/// The filters are for a rate of 1%, and of 32 KiB to 512 MiB. A filter for which there is no time
/// left, or that would take more than a quarter of the free memory, is left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom bench
  lanebloom bench --output bench.csv && lanebloom plot speed bench.csv -o bench.svg")]
pub(crate) struct Bench {
    /// About how long it takes, in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    pub(crate) seconds: f64,

    /// Also write the table to FILE, as CSV
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Also draw a chart: SVG or PNG, by the name's ending
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) chart: Option<PathBuf>,
}

/// Draw a chart: SVG or PNG, by the ending of the output's name
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom plot rate --keys 1M --rate 0.01 -o rate.svg
  lanebloom plot speed bench.csv -o speed.png")]
pub(crate) struct Plot {
    #[command(subcommand)]
    pub(crate) chart: ChartKind,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChartKind {
    /// The false-positive rate against the number of keys, planned and measured, and the fill of
    /// the lines
    Rate {
        /// The number of keys that the filter is for
        #[arg(long, value_name = "N", value_parser = number)]
        keys: usize,

        /// The false-positive rate at that number
        #[arg(long, value_name = "P", value_parser = rate)]
        rate: f64,

        /// The file to write
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: PathBuf,
    },
    /// ns per key against filter size, from the table of `lanebloom bench --output`
    Speed {
        /// The table
        #[arg(value_hint = ValueHint::FilePath)]
        table: PathBuf,

        /// The file to write
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: PathBuf,
    },
}

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom completions bash > ~/.local/share/bash-completion/completions/lanebloom
  lanebloom completions zsh > ~/.zfunc/_lanebloom
  lanebloom completions fish > ~/.config/fish/completions/lanebloom.fish")]
pub(crate) struct Completions {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Write the man pages, one for each command
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lanebloom man ~/.local/share/man/man1 && man lanebloom-dedup")]
pub(crate) struct Man {
    /// The folder to write to; created if missing
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// How large a filter is.
#[derive(Args, Debug)]
pub(crate) struct SizeArgs {
    /// The expected number of different keys, such as 5000, 10M or 1e9. More keys are no error: the
    /// filter grows. Without it, the filter grows from small
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) expected: Option<usize>,

    /// The chance that a new key is taken for one seen before, such as 0.01, 1% or 1e-6
    /// [default: 1e-6 for dedup, 1% for build]
    #[arg(long, value_name = "P", value_parser = rate)]
    pub(crate) rate: Option<f64>,
}

/// What the key of a line is: the whole line by default.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyArgs {
    /// The key is field K of each line, from 1
    #[arg(long, value_name = "K", value_parser = field, group = "columns", conflicts_with_all = ["csv", "json"])]
    pub(crate) field: Option<usize>,

    /// The character between the fields of --field and --csv, or `\t`
    /// [default: tab for --field, comma for --csv]
    #[arg(long, value_name = "D", value_parser = delimiter, requires = "columns")]
    pub(crate) delimiter: Option<u8>,

    /// The key is a column of CSV (RFC 4180): a name of the header line, or a number from 1. The
    /// header line passes on; those of later files are dropped
    #[arg(long, value_name = "COLUMN", group = "columns", conflicts_with_all = ["json", "null"])]
    pub(crate) csv: Option<String>,

    /// The key is a value of each line's JSON, by its JSON pointer (RFC 6901), such as /user/id
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    pub(crate) json: Option<String>,

    /// Lines end with a zero byte instead of a newline
    #[arg(long, short = '0')]
    pub(crate) null: bool,

    /// The most bytes of a line or a record of CSV, its end included. A longer one is an error,
    /// since each thread holds one in memory
    #[arg(long, value_name = "N", value_parser = number, default_value = "64M")]
    pub(crate) max_record: usize,

    /// ASCII letters count as equal in upper and lower case
    #[arg(long, short)]
    pub(crate) ignore_case: bool,
}

/// A file format for filters.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// Snapshots of ConcurrentBloom, one after another
    Lanebloom,
    /// The stream of Guava's BloomFilter.writeTo (of the strategy MURMUR128_MITZ_64)
    Guava,
    /// Commands BF.LOADCHUNK of RedisBloom, for `redis-cli --pipe`
    Redisbloom,
}

/// How Guava makes bytes of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Funnel {
    /// longFunnel() of a decimal number
    Long,
    /// integerFunnel() of a decimal number
    Int,
    /// stringFunnel(UTF_8)
    Utf8,
    /// unencodedCharsFunnel(), stringFunnel(UTF_16LE); not UTF_16
    Utf16,
    /// byteArrayFunnel()
    Bytes,
}

/// What `convert` makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Target {
    /// Snapshots of ConcurrentBloom: of a ScalableBloom, or alike ones made one
    Lanebloom,
    /// A CuckooFilter, of a CompactCuckoo
    Cuckoo,
    /// A CompactCuckoo, which takes no inserts, of a CuckooFilter
    CompactCuckoo,
    /// Commands BF.LOADCHUNK of RedisBloom, of a dump of it
    Redisbloom,
}

fn number(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        Some(b'G') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = digits.parse().map_err(|_| "not a number such as 5000, 10M or 1e9")?;
    let number = number * unit;
    if number.fract() != 0.0 || !(1.0..=1e15).contains(&number) {
        return Err("not a whole number from 1 to 1e15".into());
    }
    Ok(number as usize)
}

fn rate(text: &str) -> Result<f64, String> {
    let (digits, unit) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    let rate: f64 = digits.parse().map_err(|_| "not a rate such as 0.01, 1% or 1e-6")?;
    let rate = rate / unit;
    if (1e-12..=0.5).contains(&rate) {
        Ok(rate)
    } else {
        Err("not from 1e-12 to 0.5".into())
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("not from 0.1 to 3600".into())
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=256) => Ok(threads),
        _ => Err("not a number from 1 to 256".into()),
    }
}

fn field(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("fields are numbered from 1".into()),
        Ok(field) => Ok(field),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        &[byte] if byte != b'\n' => Ok(byte),
        _ => Err("not a single byte".into()),
    }
}

fn pointer(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.into())
    } else {
        Err("a JSON pointer begins with a slash, such as /user/id".into())
    }
}
