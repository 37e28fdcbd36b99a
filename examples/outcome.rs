//! How a program ends: its exit status says whether what it measured is what it promises.

use std::fmt::Display;
use std::process::ExitCode;

/// The exit status for a verdict. Prints an error to stderr.
pub fn exit(verdict: Result<bool, impl Display>) -> ExitCode {
    match verdict {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", env!("CARGO_BIN_NAME"));
            ExitCode::FAILURE
        }
    }
}
