//! `lanebloom query`.

use crate::args::Query;
use anyhow::{Result, bail};
use std::process::ExitCode;

pub(crate) fn run(_: &Query, _: bool) -> Result<ExitCode> {
    bail!("not there yet")
}
