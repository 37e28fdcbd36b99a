//! The chart of what `bench` measured: ns per key against filter size.

use crate::chart::{Axis, COLORS, Frame, Line, Look, Mark, Svg};
use crate::cpu_info::CpuInfo;
use crate::speeds::{Speed, Speeds};
use crate::table;

const SIZE: (u32, u32) = (1000, 560);

/// The most sizes that have room below the chart.
const LABELS: usize = 10;

impl Speeds {
    pub(crate) fn draw(&self) -> Svg {
        let machine = &self.machine;
        let mut svg = Svg::new(
            SIZE,
            &format!("ConcurrentBloom on {}", machine.cpu),
            &format!("{}, one thread of {}", machine.instruction_set, machine.threads),
        );
        let sizes = self.distinct(|speed| speed.filter_bytes as f64);
        let times = self.distinct(|speed| speed.ns_per_key);
        let around = |numbers: &[f64]| numbers[0] / 1.5..numbers[numbers.len() - 1] * 1.5;
        let (bytes, ns) = (around(&sizes), around(&times));
        let labels = sizes.iter().step_by(sizes.len().div_ceil(LABELS));
        let x = Axis {
            title: "filter size".into(),
            range: bytes.clone(),
            is_log: true,
            ticks: labels.map(|&size| (size, table::bytes(size as u64))).collect(),
        };
        let y = Axis {
            title: "ns per key".into(),
            ticks: ticks(ns.start, ns.end)
                .into_iter()
                .map(|ns| (ns, ns.to_string()))
                .collect(),
            range: ns,
            is_log: true,
        };
        let frame = Frame::new(&mut svg, (75.0, 105.0), (730.0, 495.0), x, y);

        let caches = CpuInfo::CACHES.into_iter().zip(machine.caches);
        for (name, size) in caches.filter_map(|(name, bytes)| Some((name, bytes?))) {
            if bytes.contains(&(size as f64)) {
                frame.rule(&mut svg, size as f64, &format!("{name} {}", table::bytes(size)));
            }
        }
        let operations = self.operations();
        for (look, operation) in looks().zip(&operations) {
            let mut points = Vec::from_iter(
                (self.speeds.iter().filter(|speed| speed.operation == *operation))
                    .map(|speed| (speed.filter_bytes as f64, speed.ns_per_key)),
            );
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            frame.series(&mut svg, look, &points);
        }
        svg.legend((750.0, 115.0), looks().zip(operations));
        svg
    }

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
            // By its text, so that it is the nearest number to the decimal one.
            format!("{digit}e{exponent}").parse::<f64>().expect("a number")
        })
    });
    ticks.filter(|tick| (from..to).contains(tick)).collect()
}
