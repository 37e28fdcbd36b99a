//! `lanebloom plan`.

use crate::args::Plan;
use anyhow::{Result, bail};

pub(crate) fn run(_: &Plan) -> Result<()> {
    bail!("not there yet")
}
