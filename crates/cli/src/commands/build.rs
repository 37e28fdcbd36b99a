//! `lanebloom build`.

use crate::args::Build;
use anyhow::{Result, bail};

pub(crate) fn run(_: &Build, _: bool) -> Result<()> {
    bail!("not there yet")
}
