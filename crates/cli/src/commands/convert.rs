//! `lanebloom convert`.

use crate::args::Convert;
use anyhow::{Result, bail};

pub(crate) fn run(_: &Convert) -> Result<()> {
    bail!("not there yet")
}
