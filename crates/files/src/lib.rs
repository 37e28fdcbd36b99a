//! The code that the commands `lanebloom` and `lanebloom-corpus` share: inputs, outputs, states,
//! and the threads between them. The items are public for these two commands only, and may change
//! in every version.
//!
//! [`args`] has the options that both commands have. [`input`] yields chunks of whole records.
//! [`pipeline`] gives them to threads, and then, in order, to a stage. [`output`] replaces files as
//! a whole, and [`unfinished`] knows them until they are whole. [`claims`] finds a file that has
//! two roles in a run before anything is written. [`state_file`] keeps a filter from one run to the
//! next, and [`journal`] what its hashes mean. [`json`] finds a value in a line.

// Not `forbid`, since the macro of ctor allows itself its own.
#![deny(unsafe_code)]

pub mod args;
pub mod claims;
pub mod identity;
pub mod input;
pub mod journal;
pub mod json;
pub mod output;
pub mod pages;
pub mod pipeline;
pub mod positioned;
pub mod progress;
pub mod seen;
pub mod state_file;
pub mod stdout;
pub mod summary;
pub mod unfinished;
mod xattrs;

use std::io::{self, Write};
use std::process::ExitCode;

/// The exit status if the reader of the output closed it: that of a program that SIGPIPE ends.
const CLOSED: u8 = 141;

/// The exit status of a command. Writes the message of an error to stderr.
pub fn exit(program: &str, result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    unfinished::wait_for_signal();
    if error.downcast_ref().map(io::Error::kind) == Some(io::ErrorKind::BrokenPipe) {
        return CLOSED.into();
    }
    note(&format!("{program}: {error:#}"));
    2.into()
}

/// Writes a line to stderr, without the control characters that names of files may have. If that
/// fails, the output and the exit status still tell the result.
pub fn note(line: &str) {
    let is_plain = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let mut plain = String::with_capacity(line.len());
    for letter in line.chars() {
        if is_plain(letter) {
            plain.push(letter);
        } else {
            plain.extend(letter.escape_default());
        }
    }
    let _ = writeln!(io::stderr(), "{plain}");
}
