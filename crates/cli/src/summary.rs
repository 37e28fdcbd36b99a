//! The figures of a run, as a line on stderr.

use crate::args::SummaryArgs;
use crate::input::not_read;
use crate::{json, note};
use serde_json::Value;

/// The line for people, and the figures for programs.
pub(crate) struct Summary {
    pub(crate) text: String,
    pub(crate) figures: Vec<(&'static str, Value)>,
}

impl Summary {
    /// Adds how many files of folders were not read.
    pub(crate) fn with_skipped(mut self, skipped: usize) -> Self {
        if skipped > 0 {
            self.text += &format!("; {}", not_read(skipped));
        }
        self.figures.push(("files_not_read", skipped.into()));
        self
    }

    pub(crate) fn print(self, args: &SummaryArgs, quiet: bool) {
        let Self { text, figures } = self;
        if args.json_summary && !quiet {
            let members = figures.into_iter().map(|(name, value)| (name, value.to_string()));
            note(&json::object(members));
        } else if !quiet {
            note(&text);
        }
    }
}
