//! The command `lanebloom-corpus`.

mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::main()
}
