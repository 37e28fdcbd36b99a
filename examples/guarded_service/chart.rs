//! The results of the runs, as a chart: requests and store queries per second, over time.

use crate::load::Schedule;
use crate::{Result, Run, Sample};
use plotters::prelude::*;
use std::path::Path;

const REQUESTS: RGBColor = RGBColor(31, 119, 180);
const QUERIES: RGBColor = RGBColor(214, 39, 40);
const ATTACK: RGBColor = RGBColor(120, 120, 120);

type Count = fn(&Sample) -> u64;

/// A column for each server, and a row for each count.
pub fn draw(file: &Path, runs: &[Run; 3]) -> Result<()> {
    let area = SVGBackend::new(file, (960, 440)).into_drawing_area();
    area.fill(&WHITE)?;
    let counts: [(_, _, Count); 2] = [
        ("requests/s", REQUESTS, |sample| sample.answered),
        ("store queries/s", QUERIES, |sample| sample.queries.all),
    ];
    let rows = area.split_evenly((2, 1));
    for (row, (name, color, count)) in rows.iter().zip(counts) {
        let lines = runs.each_ref().map(|run| rates(&run.samples, count));
        let highest = lines.iter().flatten().map(|(_, rate)| *rate).fold(1.0, f64::max) * 1.1;
        for ((cell, run), line) in row.split_evenly((1, 3)).iter().zip(runs).zip(lines) {
            let seconds = run.samples.last().map_or(1.0, |sample| sample.at);
            let mut chart = ChartBuilder::on(cell)
                .caption(format!("{}: {name}", run.name), ("sans-serif", 15))
                .margin(8)
                .margin_right(20)
                .x_label_area_size(24)
                .y_label_area_size(52)
                .build_cartesian_2d(0.0..seconds, 0.0..highest)?;
            let [from, to] = Schedule::ATTACK.map(|fraction| fraction * seconds);
            let attack = Rectangle::new([(from, 0.0), (to, highest)], ATTACK.mix(0.15).filled());
            chart.draw_series([attack])?;
            chart
                .configure_mesh()
                .disable_x_mesh()
                .light_line_style(TRANSPARENT)
                .y_labels(5)
                .x_label_formatter(&|seconds| format!("{seconds} s"))
                .y_label_formatter(&|rate| match *rate {
                    0.0..1000.0 => format!("{rate:.0}"),
                    _ => format!("{:.0}k", rate / 1000.0),
                })
                .draw()?;
            chart.draw_series(AreaSeries::new(line, 0.0, color.mix(0.25)).border_style(color.stroke_width(2)))?;
            let label = Text::new("attack", (from + 0.01 * seconds, highest * 0.97), ("sans-serif", 12));
            chart.draw_series([label])?;
        }
    }
    area.present()?;
    Ok(())
}

/// The rate of a count between each two samples.
fn rates(samples: &[Sample], count: Count) -> Vec<(f64, f64)> {
    let rate = |pair: &[Sample]| {
        let seconds = pair[1].at - pair[0].at;
        let rate = (count(&pair[1]) - count(&pair[0])) as f64 / seconds;
        (pair[0].at + seconds / 2.0, rate)
    };
    samples.windows(2).map(rate).collect()
}
