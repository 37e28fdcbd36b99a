//! `lanebloom plot`.

mod rate;
mod speed;

use crate::args::{ChartKind, Plot};
use crate::chart::ChartFile;
use crate::speeds::Speeds;
use anyhow::Result;

pub(crate) fn run(args: &Plot) -> Result<()> {
    match &args.chart {
        ChartKind::Rate { keys, rate, output } => {
            // Before the work, which may take long.
            let file = ChartFile::new(output)?;
            file.draw(&rate::Rates::measure(*keys, *rate)?)
        }
        ChartKind::Speed { table, output } => ChartFile::new(output)?.draw(&Speeds::read(table)?),
    }
}
