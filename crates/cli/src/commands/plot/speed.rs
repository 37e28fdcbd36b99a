//! The chart of what `bench` measured: ns per key against filter size.

use crate::chart::{COLORS, Canvas, Chart, Drawn, GRAY, Line, Look, Mark};
use crate::cpu_info::CpuInfo;
use crate::speeds::{Speed, Speeds};
use crate::table;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

/// The most sizes that have room below the chart.
const LABELS: usize = 10;

impl Chart for Speeds {
    const SIZE: (u32, u32) = (1000, 560);

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<DB>) -> Drawn<DB> {
        let machine = &self.machine;
        canvas.title(
            &format!("ConcurrentBloom on {}", machine.cpu),
            &format!("{}, one thread of {}", machine.instruction_set, machine.threads),
        )?;
        let (left, right, top, bottom) = (75, 270, 105, 65);
        let (width, px) = (Self::SIZE.0, |pixels: u32| canvas.px(pixels as i32));

        let sizes = self.distinct(|speed| speed.filter_bytes as f64);
        let times = self.distinct(|speed| speed.ns_per_key);
        let x = sizes[0] / 1.5..sizes[sizes.len() - 1] * 1.5;
        let labels = sizes.iter().copied().step_by(sizes.len().div_ceil(LABELS)).collect();
        let y = times[0] / 1.5..times[times.len() - 1] * 1.5;
        let ticks = ticks(y.start, y.end);
        let (start, end) = (x.start, x.end);
        let (low, high) = (y.start, y.end);
        let mut chart = ChartBuilder::on(&canvas.area)
            .margin_top(px(top - 10))
            .margin_right(px(right))
            .margin_left(px(10))
            .margin_bottom(px(10))
            .x_label_area_size(px(bottom - 10))
            .y_label_area_size(px(left - 10))
            .build_cartesian_2d(
                x.log_scale().with_key_points(labels),
                y.log_scale().with_key_points(ticks),
            )?;
        let size = |bytes: &f64| table::bytes(*bytes as u64);
        canvas.mesh(&mut chart, ("filter size", &size), ("ns per key", &|ns| ns.to_string()))?;

        let caches = CpuInfo::CACHES.into_iter().zip(machine.caches);
        for (name, bytes) in caches.filter_map(|(name, bytes)| Some((name, bytes?))) {
            if (start..end).contains(&(bytes as f64)) {
                canvas.rule(&mut chart, bytes as f64, (low, high))?;
                let share = (bytes as f64 / start).ln() / (end / start).ln();
                let at = f64::from(left) + share * f64::from(width - left - right);
                let text = format!("{name} {}", table::bytes(bytes));
                canvas.text((at as i32, top as i32 - 24), HPos::Center, 15, GRAY, &text)?;
            }
        }
        let operations = self.operations();
        for (look, operation) in looks().zip(&operations) {
            let mut points = Vec::from_iter(
                (self.speeds.iter().filter(|speed| speed.operation == *operation))
                    .map(|speed| (speed.filter_bytes as f64, speed.ns_per_key)),
            );
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            canvas.series(&mut chart, look, &points)?;
        }
        canvas.legend(((width - right + 20) as i32, top as i32 + 10), looks().zip(operations))
    }
}

impl Speeds {
    /// The different values, from the least on.
    fn distinct(&self, value: impl Fn(&Speed) -> f64) -> Vec<f64> {
        let mut values = Vec::from_iter(self.speeds.iter().map(value));
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }
}

/// Looks of series: three colours with circles and solid lines, the same with triangles and dashes,
/// then the other colours. So an operation of `bench` has the colour of its batches. The first of
/// three is wide: lookups of absent and present keys often take the same time.
fn looks() -> impl Iterator<Item = Look> {
    let styles = [(Line::Solid, Mark::Circle), (Line::Dashed, Mark::Triangle)];
    COLORS.chunks(3).flat_map(move |colors| {
        styles.into_iter().flat_map(move |(line, mark)| {
            (0..).zip(colors).map(move |(i, &color)| Look {
                color,
                wide: i == 0,
                line,
                mark,
            })
        })
    })
}

/// 1, 2, 5, 10 … between two numbers.
fn ticks(from: f64, to: f64) -> Vec<f64> {
    let exponents = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let ticks = exponents.flat_map(|exponent| {
        [1, 2, 5].map(|digit| {
            // As text, so that it is the nearest number to the decimal one.
            format!("{digit}e{exponent}").parse::<f64>().expect("a number")
        })
    });
    ticks.filter(|tick| (from..to).contains(tick)).collect()
}
