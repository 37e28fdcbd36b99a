//! `lanebloom info`.

use crate::args::Info;
use anyhow::{Result, bail};

pub(crate) fn run(_: &Info) -> Result<()> {
    bail!("not there yet")
}
