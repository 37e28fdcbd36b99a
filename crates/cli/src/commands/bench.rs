//! `lanebloom bench`.

use crate::args::Bench;
use anyhow::{Result, bail};

pub(crate) fn run(_: &Bench, _: bool) -> Result<()> {
    bail!("not there yet")
}
