//! Charts as SVG: panels with two axes, one below the other, each with a legend to its right.
//!
//! `plotters` 0.3.7 was weighed: four packages, two seconds of compile time. Its colours are the
//! same on light pages and dark ones, its legends lie inside the axes, and each pair of linear and
//! logarithmic axes is a type of its own, so the calls would be about as long as `Panel::draw`.

use anyhow::{Result, bail};
use lanebloom_files::output::Output;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;
use std::path::Path;

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008), without the yellow,
/// which is too light for a line on white.
pub(crate) const COLORS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];

/// The looks, on light pages and on dark ones.
const STYLE: &str = "<style>
svg { font: 12px sans-serif } .title { font-size: 18px } .axis-title { font-size: 13px }
polyline { fill: none; stroke: currentColor; stroke-width: 2 } .dashed { stroke-dasharray: 7 5 }
.wide { stroke-width: 5 } .area { stroke: none; fill: currentColor; fill-opacity: .5 }
.mark { fill: currentColor } .axis { fill: none } .rule { stroke-width: 2 }
rect { fill: #fff } text { fill: #282828 } .gray { fill: #787878 }
.grid { stroke: #e1e1e1 } .axis { stroke: #787878 } .rule { stroke: #aaa }
@media (prefers-color-scheme: dark) {
  rect { fill: #0d1117 } text { fill: #e6e6e6 } .gray { fill: #9a9a9a }
  .grid { stroke: #2a2f36 } .axis { stroke: #8b949e } .rule { stroke: #5a6068 }
  [color=\"#0072b2\"] { color: #2f9be0 }
}
</style>";

/// Pixels from the left: both ends of an axis, and the legend.
const LEFT: f64 = 75.0;
const RIGHT: f64 = 750.0;
const LEGEND: f64 = 770.0;

/// Pixels from the top: the first panel. Then those around a panel, for labels and titles.
const TOP: f64 = 70.0;
const ABOVE: f64 = 30.0;
const BELOW: f64 = 55.0;

/// Two numbers of a chart, or a place in the picture, in pixels from the left and from the top.
type Point = (f64, f64);

/// The file for a chart. Fails unless the name ends in `.svg`, or if the file could not be written
/// in the end.
pub(crate) fn output(path: &Path) -> Result<Output> {
    if !path.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg")) {
        bail!("{}: charts are SVG, so the name must end in .svg", path.display());
    }
    Output::new(path)
}

/// A picture with a title, and a second line below it.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) below: String,
    pub(crate) panels: Vec<Panel>,
}

impl Chart {
    /// Replaces the file of a chart.
    pub(crate) fn write(&self, output: &Output) -> Result<()> {
        output.write(|writer| write!(writer, "{self}"))
    }
}

impl Display for Chart {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let heights = self.panels.iter().map(|panel| ABOVE + panel.height + BELOW);
        let height = TOP + heights.sum::<f64>();
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="{height}" viewBox="0 0 1000 {height}">
{STYLE}
<rect width="1000" height="{height}"/>"#
        )?;
        text(f, "title", "start", (20.0, 32.0), &self.title)?;
        text(f, "gray", "start", (20.0, 56.0), &self.below)?;
        let mut top = TOP + ABOVE;
        for panel in &self.panels {
            panel.draw(f, top)?;
            top += panel.height + BELOW + ABOVE;
        }
        writeln!(f, "</svg>")
    }
}

/// Writes a text. The point is the `anchor` of its base line: start, middle or end.
fn text(f: &mut Formatter<'_>, class: &str, anchor: &str, (x, y): Point, text: &str) -> fmt::Result {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    writeln!(
        f,
        r#"<text class="{class}" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{text}</text>"#
    )
}

/// Two axes, and what they measure.
pub(crate) struct Panel {
    /// The length of the vertical axis.
    pub(crate) height: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Vertical lines, with a text above each.
    pub(crate) rules: Vec<(f64, String)>,
    pub(crate) series: Vec<Series>,
    /// Lines below the legend.
    pub(crate) notes: Vec<String>,
}

impl Panel {
    fn draw(&self, f: &mut Formatter<'_>, top: f64) -> fmt::Result {
        let bottom = top + self.height;
        let x_of = |number| LEFT + (RIGHT - LEFT) * self.x.share(number);
        let y_of = |number| bottom - self.height * self.y.share(number);
        for &number in &self.x.ticks {
            let (x, end) = (x_of(number), bottom + 5.0);
            writeln!(f, r#"<path class="grid" d="M{x:.1} {top}V{end}"/>"#)?;
            text(f, "", "middle", (x, bottom + 20.0), &(self.x.label)(number))?;
        }
        for &number in &self.y.ticks {
            let (y, start) = (y_of(number), LEFT - 5.0);
            writeln!(f, r#"<path class="grid" d="M{start} {y:.1}H{RIGHT}"/>"#)?;
            text(f, "", "end", (LEFT - 9.0, y + 4.0), &(self.y.label)(number))?;
        }
        writeln!(f, r#"<path class="axis" d="M{LEFT} {top}V{bottom}H{RIGHT}"/>"#)?;
        let (x, y) = ((LEFT + RIGHT) / 2.0, (top + bottom) / 2.0);
        text(f, "axis-title", "middle", (x, bottom + 46.0), &self.x.title)?;
        writeln!(f, r#"<g transform="translate(22 {y}) rotate(-90)">"#)?;
        text(f, "axis-title", "middle", (0.0, 0.0), &self.y.title)?;
        writeln!(f, "</g>")?;

        for (number, label) in &self.rules {
            let x = x_of(*number);
            writeln!(f, r#"<path class="rule" d="M{x:.1} {top}V{bottom}"/>"#)?;
            text(f, "gray", "middle", (x, top - 10.0), label)?;
        }
        let mut y = top + 10.0;
        for series in &self.series {
            let points = Vec::from_iter(series.points.iter().map(|&(x, y)| (x_of(x), y_of(y))));
            series.draw(f, &points, &points, bottom)?;
            let at = if series.look == Look::Area { y - 8.0 } else { y };
            let sample = [0.0, 17.0, 34.0].map(|x| (LEGEND + x, at));
            series.draw(f, &sample, &sample[1..2], y + 8.0)?;
            text(f, "", "start", (LEGEND + 44.0, y + 4.0), &series.name)?;
            y += 26.0;
        }
        for note in &self.notes {
            text(f, "gray", "start", (LEGEND, y + 8.0), note)?;
            y += 20.0;
        }
        Ok(())
    }
}

/// An axis: its numbers from end to end, and those that are written beside it.
pub(crate) struct Axis {
    title: String,
    pub(crate) range: Range<f64>,
    is_log: bool,
    pub(crate) ticks: Vec<f64>,
    label: fn(f64) -> String,
}

impl Axis {
    /// An axis of equal steps, or a logarithmic one. Its ticks are 1, 2 or 5 times a power of ten
    /// apart, or those numbers themselves; on a long logarithmic axis only powers of ten.
    pub(crate) fn new(title: &str, range: Range<f64>, is_log: bool, label: fn(f64) -> String) -> Self {
        let (start, end) = (range.start, range.end);
        let ticks = if is_log {
            let digits: &[u8] = if end / start > 3e3 { &[1] } else { &[1, 2, 5] };
            let exponents = start.log10().floor() as i32..=end.log10().ceil() as i32;
            // By its text, so that it is the nearest number to the decimal one.
            let tick = |exponent, digit| format!("{digit}e{exponent}").parse().expect("a number");
            let ticks = exponents.flat_map(|exponent| digits.iter().map(move |digit| tick(exponent, digit)));
            // An end may be a power of ten, but for its last bit.
            ticks
                .filter(|tick| (0.999 * start..1.001 * end).contains(tick))
                .collect()
        } else {
            let least = (end - start) / 6.0;
            let power = 10_f64.powf(least.log10().floor());
            let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= least);
            let step = digit.unwrap_or(10.0) * power;
            let numbers = (start / step).ceil() as i64..=(end / step).floor() as i64;
            numbers.map(|number| number as f64 * step).collect()
        };
        Self {
            title: title.into(),
            range,
            is_log,
            ticks,
            label,
        }
    }

    /// The place of a number: 0 is the start of the axis, and 1 its end.
    fn share(&self, number: f64) -> f64 {
        let scale = |number: f64| if self.is_log { number.ln() } else { number };
        let (start, end) = (scale(self.range.start), scale(self.range.end));
        ((scale(number) - start) / (end - start)).clamp(0.0, 1.0)
    }
}

/// Points, and what connects and marks them.
pub(crate) struct Series {
    pub(crate) name: String,
    /// Its place in [`COLORS`].
    pub(crate) color: usize,
    pub(crate) look: Look,
    pub(crate) points: Vec<Point>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Look {
    Curve,
    Dots,
    /// The area below a curve.
    Area,
    /// Measurements: a curve with circles, or a dashed one with triangles. The wide one is seen
    /// below another that takes the same course.
    Measured {
        is_dashed: bool,
        is_wide: bool,
    },
}

impl Series {
    /// Draws a line through pixels, and marks on some. An area ends at `bottom`.
    fn draw(&self, f: &mut Formatter<'_>, points: &[Point], marked: &[Point], bottom: f64) -> fmt::Result {
        const CIRCLE: &str = r#"circle r="4""#;
        const TRIANGLE: &str = r#"path d="M0-6 5.2 3H-5.2z""#;
        let (class, mark) = match self.look {
            Look::Curve => (Some(""), None),
            Look::Dots => (None, Some(CIRCLE)),
            Look::Area => (Some("area"), None),
            Look::Measured { is_dashed: false, .. } => (Some(""), Some(CIRCLE)),
            Look::Measured { is_dashed: true, .. } => (Some("dashed"), Some(TRIANGLE)),
        };
        let is_wide = matches!(self.look, Look::Measured { is_wide: true, .. });
        let (wide, scale) = if is_wide { ("wide", 1.7) } else { ("", 1.0) };
        let mut line = points.to_vec();
        if let (Look::Area, &[(first, _), .., (last, _)]) = (self.look, points) {
            line.extend([(last, bottom), (first, bottom)]);
        }
        writeln!(f, r#"<g color="{}">"#, COLORS[self.color])?;
        if let Some(class) = class {
            write!(f, r#"<polyline class="{class} {wide}" points=""#)?;
            line.iter().try_for_each(|(x, y)| write!(f, "{x:.1},{y:.1} "))?;
            writeln!(f, r#""/>"#)?;
        }
        for (mark, (x, y)) in mark.iter().flat_map(|mark| marked.iter().map(move |at| (mark, at))) {
            let at = format!("translate({x:.1} {y:.1}) scale({scale})");
            writeln!(f, r#"<{mark} class="mark" transform="{at}"/>"#)?;
        }
        writeln!(f, "</g>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        let ticks = |range, is_log| Axis::new("", range, is_log, |_| String::new()).ticks;
        assert_eq!(ticks(0.0..2e6, false), [0.0, 5e5, 1e6, 1.5e6, 2e6]);
        assert_eq!(ticks(87.0..200.0, false), [100.0, 120.0, 140.0, 160.0, 180.0, 200.0]);
        assert_eq!(ticks(0.0..0.055, false), [0.0, 0.01, 0.02, 0.03, 0.04, 0.05]);
        assert_eq!(ticks(0.0..59.0, false), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(ticks(0.3..100.0, true), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let [low, high] = [-5, 0].map(|exponent| 10_f64.powi(exponent));
        assert_eq!(ticks(low..high, true), [1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0]);
    }

    #[test]
    fn an_axis_has_shares_of_its_range() {
        let [linear, log] = [false, true].map(|is_log| Axis::new("", 1.0..100.0, is_log, |_| String::new()));
        assert!((log.share(10.0) - 0.5).abs() < 1e-9);
        assert!((linear.share(50.5) - 0.5).abs() < 1e-9);
        // Values outside stay in the picture.
        assert_eq!((log.share(0.1), log.share(1e9)), (0.0, 1.0));
    }
}
