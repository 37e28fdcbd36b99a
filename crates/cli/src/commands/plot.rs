//! `lanebloom plot`.

mod rate;
mod speed;

use crate::args::{Chart, Plot};
use crate::picture::Picture;
use crate::speeds::Speeds;
use anyhow::Result;

pub(crate) fn run(args: &Plot) -> Result<()> {
    match &args.chart {
        Chart::Rate { keys, rate, output } => {
            // Before the work, which may take long.
            let picture = Picture::new(output)?;
            picture.draw(&rate::Rates::measure(*keys, *rate)?)
        }
        Chart::Speed { table, output } => Picture::new(output)?.draw(&Speeds::read(table)?),
    }
}
