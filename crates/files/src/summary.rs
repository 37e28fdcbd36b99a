//! The summary of a run: statistics, as a line on stderr.

use crate::args::SummaryArgs;
use crate::note;
use serde_json::Value;
use std::time::Instant;

/// A line for people, and statistics for programs.
pub struct Summary {
    pub text: String,
    pub statistics: Vec<(&'static str, Value)>,
}

impl Summary {
    /// Adds how long the run took.
    pub fn with_seconds(mut self, start: Instant) -> Self {
        let seconds = start.elapsed().as_secs_f64();
        self.text += &format!(", {seconds:.2} s");
        self.statistics.push(("seconds", seconds.into()));
        self
    }

    /// Adds how many files of folders were not read.
    pub fn with_skipped(mut self, skipped: usize) -> Self {
        if skipped > 0 {
            self.text += &format!("; {}", not_read(skipped));
        }
        self.statistics.push(("files_not_read", skipped.into()));
        self
    }

    pub fn print(self, args: &SummaryArgs, quiet: bool) {
        let Self { text, statistics } = self;
        if args.json_summary && !quiet {
            let members = statistics.into_iter().map(|(name, value)| (name, value.to_string()));
            note(&object(members));
        } else if !quiet {
            note(&text);
        }
    }
}

/// An object with these members, whose values are JSON already, in this order.
pub fn object<N: AsRef<str>>(members: impl IntoIterator<Item = (N, String)>) -> String {
    let mut text = Vec::from(b"{");
    for (number, (name, value)) in members.into_iter().enumerate() {
        text.extend((number > 0).then_some(b','));
        serde_json::to_writer(&mut text, name.as_ref()).expect("a vector takes everything");
        text.push(b':');
        text.extend_from_slice(value.as_bytes());
    }
    text.push(b'}');
    String::from_utf8(text).expect("names and values are texts")
}

/// Says how many files of folders were skipped.
pub fn not_read(skipped: usize) -> String {
    let files = count(skipped, "file");
    format!("{files} not read: pipes, devices, links that lead back or again, unfinished files of other runs")
}

/// A number of things.
pub fn count(number: usize, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}
