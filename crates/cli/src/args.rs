//! The command line.

use anyhow::Result;
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use lanebloom_files::args::{InputArgs, SummaryArgs, field, number, rate, threads};
use lanebloom_files::json::Pointer;
use lanebloom_files::pages::{self, Shell};
use std::path::PathBuf;

/// Remove duplicate lines in little memory; build, query and plot membership filters
#[derive(Debug, Parser)]
#[command(name = "lanebloom", version, max_term_width = 100, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    /// Print errors only: no progress bar, no summary
    #[arg(long, short, global = true, display_order = 998)]
    pub(crate) quiet: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of uniq, cut and awk, and what `dedup` has in their place.
const OTHERS: [(&str, char, &str); 3] = [
    (
        "unique",
        'u',
        "as `sort -u`, dedup without an option prints each line once; --count-each prints a 1 before the lines that \
         `uniq -u` prints",
    ),
    (
        "fields",
        'f',
        "--field K uses field K as the key, as `cut -f K` does; there is no `uniq -f N`, which skips N fields",
    ),
    (
        "separator",
        'F',
        "--delimiter D splits fields at D; --blanks splits them as awk does",
    ),
];

impl Cli {
    /// Reads the command line. Ends the program after help, and after an error.
    pub(crate) fn read() -> Result<Self> {
        let other = |(name, letter, tip)| {
            let arg = Arg::new(name).short(letter).action(ArgAction::SetTrue);
            arg.hide(true).value_parser(UnknownArgumentValueParser::suggest(tip))
        };
        // Completions and pages, which have hidden options too, are made without these.
        pages::read(Self::command().mut_subcommand("dedup", |dedup| dedup.args(OTHERS.map(other))))
    }
}

const EXIT_STATUS: &str = "\
Exit status:
  0    success; `query` and `which` found every key
  1    `query` or `which` missed a key
  2    an error, with a message on stderr; states and outputs are as before,
       but for an error of --state itself
  130  Ctrl-C ended it (128 + N: signal N)
  141  the reader of the output closed it (as after SIGPIPE)";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dedup(Dedup),
    Build(Build),
    Query(Query),
    Which(Which),
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
/// A Bloom filter remembers the lines, so memory stays small. At the default rate, a different line
/// takes about 4 bytes with --expected, 4 to 8 bytes in most files, and 5 to 10 bytes in a pipe,
/// because the size of a pipe is unknown. The filter drops a new line by mistake with a probability
/// of at most --rate. With --exact it drops none by mistake.
///
/// A line without a key is never a duplicate: a value of its key is missing, or null in JSON.
///
/// Some letters differ from those of uniq and sort: --count-each is `uniq -c`, -d prints all
/// occurrences but the first, `sort -u` is `dedup` without an option, and -z is the same.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom dedup access.log -o unique.log
  lanebloom dedup --in-place words.txt
  zcat *.gz | lanebloom dedup --field 2 --delimiter '\\t'
  lanebloom dedup --csv email customers.csv.zst
  find . -name '*.log' -print0 | lanebloom dedup --files0-from -
  crawl | lanebloom dedup --json /url --state seen.lbf   # remembers them
  lanebloom dedup --exact huge.txt                       # two passes")]
pub(crate) struct Dedup {
    /// Write to FILE instead of stdout. FILE is replaced as a whole once all lines are in it, so an
    /// error or Ctrl-C leaves it as it was. It cannot be an input, nor a name of stdout or stderr
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace each input file by those of its lines that pass; one that would stay the same is not
    /// touched. All inputs together have one first occurrence of each line. An error before the end
    /// leaves all files as they were. A file that is compressed, in UTF-16 or binary (a zero byte
    /// in the first 64 KiB without -z) is refused, and so is a link in a folder. The new file keeps
    /// owner, permissions and extended attributes, as far as the system allows it. Other names
    /// (hard links) of the old file keep the old lines
    #[arg(long, conflicts_with_all = ["output", "output_dir", "count", "only_duplicates"])]
    pub(crate) in_place: bool,

    /// Write those lines of each input file that pass to a file in DIR with the same name, and
    /// those of a folder to a folder. DIR is created if it is missing. The ending .gz or .zst of a
    /// compressed file is left out. All inputs together have one first occurrence of each line
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["output", "count"])]
    pub(crate) output_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) size: SizeArgs,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,

    /// Print the number of lines instead of the lines
    #[arg(long, short)]
    pub(crate) count: bool,

    /// Print before each line how often it occurs, as `uniq -c` does. Reads the input three times,
    /// as --exact reads it twice. Not with --csv: the number would become part of the first column
    #[arg(long, conflicts_with_all = ["count", "in_place", "only_duplicates", "state"])]
    pub(crate) count_each: bool,

    /// Print the other lines instead: every occurrence but the first, so no line without a key. The
    /// header of CSV stays
    #[arg(long, short = 'd')]
    pub(crate) only_duplicates: bool,

    /// Remember the lines in FILE across runs. The run creates FILE if it is missing, and replaces
    /// it as a whole after all output is written: if that fails, the output stays, and the next run
    /// prints its lines again. One run at a time can use it: a second one fails at once. Without
    /// --rate, later runs keep the rate of FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "exact")]
    pub(crate) state: Option<PathBuf>,

    /// Drop no line by mistake, in two passes: the first marks candidates in a filter, the second
    /// compares them. A pipe or a compressed file is copied to a temporary file first. Files must
    /// not change during the run, but they may grow: the new lines are not read
    #[arg(long)]
    pub(crate) exact: bool,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

/// Build a filter file from keys, one per line
///
/// Lines without a key are left out. In the format lanebloom, the filter is a ConcurrentBloom, or a
/// ScalableBloom if it has grown. It also serves as a state of `dedup --state`, unless --hasher or
/// --static chose another hash or filter. Without --expected, the first layer is planned below
/// --rate, so that all layers together keep it.
///
/// A Guava filter cannot grow, and a RedisBloom filter takes more memory after it has grown. So
/// without --expected, the formats guava and redisbloom read the input twice, to count the
/// different keys first. A pipe or a compressed file is copied to a temporary file for that. In
/// these formats, the key of a JSON string is its text without the quotes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom build ids.txt -o ids.lbf --rate 0.001
  lanebloom build ids.txt -o ids.lbf --hasher fast
  lanebloom build hashes.txt -o ids.lbf --hasher prehashed
  lanebloom build --bank logs/ -o logs.bank --field 1 --blanks
  lanebloom build ids.txt -o ids.guava --format guava --funnel long
  lanebloom build a.txt -o - --format redisbloom --redis-key a > dump.resp
  redis-cli --pipe < dump.resp")]
pub(crate) struct Build {
    /// Write to FILE, which is replaced as a whole once the bytes are complete; `-`: stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    /// Write this format
    #[arg(long, value_enum, default_value_t = Format::Lanebloom)]
    pub(crate) format: Format,

    /// Hash keys by this function. The file names it, so that `query` knows it
    #[arg(long, value_enum, default_value_t = Hasher::Murmur3)]
    pub(crate) hasher: Hasher,

    /// Make a filter that does not change, in three quarters of the memory. Until it is built, it
    /// keeps the hashes of all keys, 8 bytes each
    #[arg(long = "static", conflicts_with = "expected")]
    pub(crate) is_static: bool,

    /// Make a bank: a filter for each input file, which `which` asks all at once. Other names of a
    /// file (hard links) are left out. All filters have the size that the largest file needs, and a
    /// large bank is announced. --expected is the number of different keys in the largest file;
    /// without it, the input is read twice. --rate is the bank's: a key that no file has is found
    /// in one by mistake with at most this probability. If the first input is a filter file of
    /// `build`, all are, and each is taken as it is: build them for the same number of keys and the
    /// same rate
    #[arg(long, conflicts_with = "is_static")]
    pub(crate) bank: bool,

    /// Load the filter into this key of Redis, for --format redisbloom
    #[arg(long, value_name = "NAME", required_if_eq("format", "redisbloom"))]
    pub(crate) redis_key: Option<String>,

    /// Encode keys with this funnel of Guava, for --format guava. A line that is not a value
    /// of the funnel has no key [default: the bytes of the line, which suits utf8 and bytes]
    #[arg(long, value_enum)]
    pub(crate) funnel: Option<Funnel>,

    #[command(flatten)]
    pub(crate) size: SizeArgs,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

/// Print which keys a filter file holds
///
/// Prints `present` or `absent`, a tab, and the line unchanged. Exits with 0 if every key is
/// present, and with 1 otherwise. A key that was never inserted is present by mistake at the
/// filter's rate. A line without a key is absent. With --quiet it prints nothing and exits at the
/// first absent key.
///
/// Reads every file that `info` recognizes, unless its hash needs a secret key. The file names the
/// hasher. A filter of `build --hasher prehashed` is asked for hashes; a line that is not a number
/// is an error. If you gave --ignore-case to `build`, give it to `query` too.
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

    /// Print only the lines whose keys are present, unchanged
    #[arg(long, short)]
    pub(crate) present: bool,

    /// Print only the lines whose keys are absent, unchanged
    #[arg(long, short, conflicts_with = "present")]
    pub(crate) absent: bool,

    /// Encode keys with this funnel of Guava: the one that filled the filter, which the file
    /// does not name. A line that is not a value of the funnel has no key [default: the bytes of
    /// the line, which suits utf8 and bytes]
    #[arg(long, value_enum)]
    pub(crate) funnel: Option<Funnel>,

    #[command(flatten)]
    pub(crate) lookup: LookupArgs,
}

/// Print which files of a bank hold each key
///
/// `build --bank` makes the bank of the files. For each file that may hold the key of a line, this
/// prints the name of the file, a tab, and the line unchanged. A name with control characters, or
/// one that begins with a quote, is a string of JSON. A name that is not UTF-8 is quoted for the
/// shell, as `ls` does: $'a\377'. Exits with 0 if every key is in a file, and with 1 otherwise. A
/// name may be wrong: `info` prints how many are, on average. A line without a key is in no file.
/// With --quiet it prints nothing and exits at the first key that is in no file.
///
/// The bank names the hasher, as for `query`. If you gave --ignore-case to `build`, give it to
/// `which` too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom build --bank logs/ -o logs.bank --field 1 --blanks
  echo 203.0.113.7 | lanebloom which logs.bank
  lanebloom which logs.bank addresses.txt | cut -f1 | sort -u")]
pub(crate) struct Which {
    /// The bank; `-`: stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) bank: PathBuf,

    /// Print only the lines whose keys are in no file, unchanged
    #[arg(long, short)]
    pub(crate) absent: bool,

    /// Print before each line the number of files that may hold its key, in place of their names
    #[arg(long, short, conflicts_with = "absent")]
    pub(crate) count: bool,

    /// Print for each line an object of JSON, with the line and the names of the files
    #[arg(long, conflicts_with_all = ["absent", "count"])]
    pub(crate) json_output: bool,

    #[command(flatten)]
    pub(crate) lookup: LookupArgs,
}

/// Merge filter files
///
/// Two filters with the same layout become one if all keys together fit the number of keys that it
/// was built for. The rate then stays as promised. Other Bloom filters become layers of a
/// ScalableBloom, and their rates add up. To get one layer, give `build` the --expected number of
/// all keys.
///
/// If each filter is a state of `lanebloom-corpus` with its journal, the output gets one too: the
/// inputs of all are done.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lanebloom merge monday.lbf tuesday.lbf -o week.lbf")]
pub(crate) struct Merge {
    /// Two or more filter files of the same kind; ConcurrentBloom and ScalableBloom mix. The output
    /// may be one of them
    #[arg(required = true, num_args = 2.., value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Write to FILE, which is replaced as a whole once the bytes are complete; `-`: stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

/// Describe filter files: kind, size, number of keys, false-positive rate
///
/// Recognizes files by their content: snapshots of every filter of lanebloom, streams of Guava, and
/// dumps of RedisBloom. Checks the checksums of those that have them. A filter is overfull if its
/// rate now is above the planned one: build a larger one from the keys.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lanebloom info seen.lbf")]
pub(crate) struct Info {
    /// Filter files; `-`: stdin
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Print one line of JSON for each file. Rates and fills are fractions, and the layers or
    /// generations are in an array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Convert a filter file to another format, without its keys
///
/// A filter holds bits that follow from hashes of its keys. A format with another hash or another
/// layout needs the keys: run `build` on them instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom convert state.lbf -o bloom.lbf --to lanebloom
  lanebloom convert dump.resp -o copy.resp --to redisbloom --redis-key b")]
pub(crate) struct Convert {
    /// The filter file to read; `-`: stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,

    /// Write to FILE, which is replaced as a whole once the bytes are complete; `-`: stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    /// Write this format
    #[arg(long, value_enum)]
    pub(crate) to: Target,

    /// Load the filter into this key of Redis, for --to redisbloom [default: as in the input]
    #[arg(long, value_name = "NAME")]
    pub(crate) redis_key: Option<String>,

    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

/// Compare filter types for a number of keys: memory, bits per key, cache lines per lookup
///
/// A cache line has 64 bytes. The columns of lines say how many of them a lookup reads, for a
/// present key and for an absent one. The rate is the filter's own at that number of keys, at most
/// the wanted one. Two types are left out because their rate cannot be chosen: ConcurrentBitmap
/// takes one bit for each possible number, and RedisCuckoo takes one byte a key at a rate above
/// 1.5%. A second table says which hasher suits.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom plan --keys 10M --rate 0.001
  lanebloom plan --keys 10M                # for many rates")]
pub(crate) struct Plan {
    /// Plan for N keys, such as 5000, 10M or 1e9
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) keys: usize,

    /// Plan for this false-positive rate, such as 0.01, 1% or 1e-6 [default: a table of many rates]
    #[arg(long, value_name = "P", value_parser = rate)]
    pub(crate) rate: Option<f64>,

    /// Print one line of JSON for each filter type and rate
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure this machine: ns per key by filter size, as a table
///
/// The filters are for a rate of 1% and have 32 KiB to 512 MiB. A filter is left out if it would
/// take more than a quarter of the free memory, or if there is no time left for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom bench
  lanebloom bench --output bench.csv --chart bench.svg")]
pub(crate) struct Bench {
    /// Measure for about S seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    pub(crate) seconds: f64,

    /// Also write the table to FILE, as CSV
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Also draw a chart to FILE, whose name ends in .svg
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) chart: Option<PathBuf>,
}

/// Draw a chart as SVG
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom plot rate --keys 1M --rate 0.01 -o rate.svg
  lanebloom plot speed bench.csv -o speed.svg")]
pub(crate) struct Plot {
    #[command(subcommand)]
    pub(crate) chart: ChartKind,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChartKind {
    /// Draw the false-positive rate against the number of keys, planned and measured, and the fill
    /// of the blocks
    Rate {
        /// Build the filter for N keys, such as 10M
        #[arg(long, value_name = "N", value_parser = number)]
        keys: usize,

        /// Build the filter for this false-positive rate, such as 0.01, 1% or 1e-6
        #[arg(long, value_name = "P", value_parser = rate)]
        rate: f64,

        /// Write the chart to FILE
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: PathBuf,
    },
    /// Draw ns per key against filter size, from the table of `lanebloom bench --output`
    Speed {
        /// The table, as CSV
        #[arg(value_hint = ValueHint::FilePath)]
        table: PathBuf,

        /// Write the chart to FILE
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: PathBuf,
    },
}

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lanebloom completions bash > lanebloom.bash && . ./lanebloom.bash
  mkdir -p ~/.zfunc && lanebloom completions zsh > ~/.zfunc/_lanebloom
  lanebloom completions fish | source
  lanebloom completions powershell >> $PROFILE")]
pub(crate) struct Completions {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Write the man pages, one for each command
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lanebloom man ~/.local/share/man/man1
  man -M ~/.local/share/man lanebloom-dedup")]
pub(crate) struct Man {
    /// Write to this folder, which is created if it is missing
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

/// The keys that are looked up, and where the answers go.
#[derive(Args, Debug)]
pub(crate) struct LookupArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,

    /// Write to FILE instead of stdout. FILE is replaced as a whole once all lines are in it. It
    /// cannot be an input
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

/// How many threads work.
#[derive(Args, Debug)]
pub(crate) struct ThreadArgs {
    /// Work with N threads; the order of the output stays the same [default: the number of CPUs, at
    /// most 4 for dedup and for build without --expected]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

/// How large a filter is.
#[derive(Args, Debug)]
pub(crate) struct SizeArgs {
    /// Size the filter for N different keys, such as 5000, 10M or 1e9. The filter grows if
    /// there are more [default: start small and grow]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) expected: Option<usize>,

    /// Take a new key for an old one with at most this probability, such as 0.01, 1% or 1e-6
    /// [default: 1e-6 for dedup, 1% for build]
    #[arg(long, value_name = "P", value_parser = rate)]
    pub(crate) rate: Option<f64>,
}

/// The key of a line: the whole line by default.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyArgs {
    /// Use field K of each line as the key, counted from 1; several, such as 1,3, for a key of
    /// several fields
    #[arg(long, value_name = "K", value_parser = field, value_delimiter = ',', group = "columns", conflicts_with_all = ["csv", "json"])]
    pub(crate) field: Vec<usize>,

    /// Split fields at D, one byte or `\t` [default: tab for --field, comma for --csv]
    #[arg(long, value_name = "D", value_parser = delimiter, requires = "columns")]
    pub(crate) delimiter: Option<u8>,

    /// Split fields at runs of spaces and tabs, as awk does; those at the ends of a line count for
    /// nothing
    #[arg(long, requires = "field", conflicts_with_all = ["delimiter", "csv", "json"])]
    pub(crate) blanks: bool,

    /// Use a column of CSV (RFC 4180) as the key: a name of the header line, or a number from 1.
    /// Give it several times for a key of several columns. The header line is printed once. A later
    /// file with another header is an error, unless each file has an output of its own
    #[arg(long, value_name = "COLUMN", group = "columns", conflicts_with_all = ["json", "null"])]
    pub(crate) csv: Vec<String>,

    /// Read CSV without a header line: the first line of each file is a row, and --csv is a number
    /// of a field in it
    #[arg(long, requires = "csv", conflicts_with_all = ["field", "json"])]
    pub(crate) no_header: bool,

    /// Let a quote enclose a field of CSV that begins with it, or take all quotes for text
    /// [default: no if the delimiter is a tab, yes otherwise]
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no, requires = "csv", conflicts_with_all = ["field", "json"])]
    pub(crate) quotes: Option<bool>,

    /// Allow records of CSV with more or fewer fields than the first one, instead of an error
    #[arg(long, requires = "csv", conflicts_with_all = ["field", "json"])]
    pub(crate) ragged: bool,

    /// Use a value of each line's JSON as the key, by its JSON pointer (RFC 6901), such as
    /// /user/id. Give it several times for a key of several values. null is a missing value; 1, 1.0
    /// and "1" are different ones
    #[arg(long, value_name = "POINTER", value_parser = Pointer::parse)]
    pub(crate) json: Vec<Pointer>,

    /// Ignore white space at both ends of a key, or of each of its fields
    #[arg(long, conflicts_with = "json")]
    pub(crate) trim: bool,

    /// Take a blank value for a missing one: a line, field or text that is empty or has only spaces
    /// and tabs. A line has no key if a value of its key is missing
    #[arg(long)]
    pub(crate) keep_blank: bool,

    /// Read and write lines that end with a zero byte instead of a newline. (Otherwise a carriage
    /// return before the newline is not a part of the key)
    #[arg(long, short = '0', visible_short_alias = 'z')]
    pub(crate) null: bool,

    /// Refuse a line or a record of CSV with more than N bytes, its end included. Each thread holds
    /// one in memory
    #[arg(long, value_name = "N", value_parser = number, default_value = "64M")]
    pub(crate) max_record: usize,

    /// Ignore the case of ASCII letters in keys
    #[arg(long, short)]
    pub(crate) ignore_case: bool,
}

/// A file format for filters.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// Snapshots of ConcurrentBloom, one after another
    Lanebloom,
    /// The stream of Guava's BloomFilter.writeTo (strategy MURMUR128_MITZ_64)
    Guava,
    /// Commands BF.LOADCHUNK for RedisBloom, to be piped into `redis-cli --pipe`
    Redisbloom,
}

/// The hash function of the keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Hasher {
    /// Murmur3 x64_128, which every language has. Anyone can make keys that collide
    Murmur3,
    /// FastHash of lanebloom: half the time. Anyone can make keys that collide
    Fast,
    /// None: the keys are hashes, numbers from 0 to 18446744073709551615 or 0x and hexadecimal
    /// digits. All 64 bits must vary
    Prehashed,
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
    /// unencodedCharsFunnel() and stringFunnel(UTF_16LE), but not UTF_16
    Utf16,
    /// byteArrayFunnel()
    Bytes,
}

/// The format that `convert` writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Target {
    /// A snapshot of a ConcurrentBloom, from a ScalableBloom with one layer
    Lanebloom,
    /// Commands BF.LOADCHUNK for RedisBloom, from a dump of RedisBloom
    Redisbloom,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds")?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("must be from 0.1 to 3600".into())
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("must be yes or no".into()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        &[byte] if byte != b'\n' => Ok(byte),
        _ => Err("must be a single byte other than a newline".into()),
    }
}
