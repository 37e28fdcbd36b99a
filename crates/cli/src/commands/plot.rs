//! `lanebloom plot`.

mod rate;

use crate::args::{ChartKind, Plot};
use crate::chart;
use crate::speeds::Speeds;
use anyhow::Result;
use lanebloom_files::claims::{Claims, OUTPUT};

pub(crate) fn run(args: &Plot, quiet: bool) -> Result<()> {
    match &args.chart {
        ChartKind::Rate { keys, rate, output } => {
            // Before the work, which may take long.
            let output = chart::output(output)?;
            rate::chart(*keys, *rate, quiet)?.write(&output)
        }
        ChartKind::Speed { table, output } => {
            let output = chart::output(output)?;
            let mut claims = Claims::default();
            claims.reads("the table", table);
            output.claim(&mut claims, OUTPUT)?;
            Speeds::read(table)?.chart().write(&output)
        }
    }
}
