//! The figures of a run, as a line on stderr.

use crate::args::SummaryArgs;
use crate::{json, note};
use serde_json::Value;

/// The line for people, and the figures for programs.
pub(crate) struct Summary {
    pub(crate) text: String,
    pub(crate) figures: Vec<(&'static str, Value)>,
}

impl Summary {
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
