//! `lanebloom merge`.

use crate::args::Merge;
use anyhow::{Result, bail};

pub(crate) fn run(_: &Merge) -> Result<()> {
    bail!("not there yet")
}
