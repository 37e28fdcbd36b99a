//! `lanebloom plot`.

mod rate;
mod speed;

use crate::args::{ChartKind, Plot};
use crate::chart::ChartFile;
use crate::speeds::Speeds;
use anyhow::Result;
use lanebloom_files::claims::{Claims, OUTPUT};

pub(crate) fn run(args: &Plot) -> Result<()> {
    match &args.chart {
        ChartKind::Rate { keys, rate, output } => {
            // Before the work, which may take long.
            let file = ChartFile::new(output)?;
            file.draw(&rate::Rates::measure(*keys, *rate)?)
        }
        ChartKind::Speed { table, output } => {
            let file = ChartFile::new(output)?;
            let mut claims = Claims::default();
            claims.reads("the table", table);
            file.output().claim(&mut claims, OUTPUT)?;
            file.draw(&Speeds::read(table)?)
        }
    }
}
