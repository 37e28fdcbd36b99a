//! `lanebloom plot`.

use crate::args::Plot;
use anyhow::{Result, bail};

pub(crate) fn run(_: &Plot) -> Result<()> {
    bail!("not there yet")
}
