//! Charts as SVG. A picture is text: shapes, and letters in the reader's own font.

use anyhow::{Result, bail};
use lanebloom_files::output::Output;
use std::fmt::{self, Display, Write};
use std::ops::Range;
use std::path::Path;

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008), without the yellow,
/// which is too light for a line on white.
pub(crate) const COLORS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];
pub(crate) const TEXT: &str = "#282828";
pub(crate) const GRAY: &str = "#787878";
const LIGHT_GRAY: &str = "#aaaaaa";
const GRID: &str = "#e1e1e1";

/// Sizes of letters: the title, titles of axes, everything else.
const LARGE: f64 = 18.0;
const MIDDLE: f64 = 13.0;
pub(crate) const SMALL: f64 = 12.0;

/// The file for a chart. Fails unless the name ends in `.svg`, or if the file could not be written
/// in the end.
pub(crate) fn output(path: &Path) -> Result<Output> {
    if !path.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg")) {
        bail!("{}: charts are SVG, so the name must end in .svg", path.display());
    }
    Output::new(path)
}

/// A place in the picture, in pixels from the left and from the top.
type Point = (f64, f64);

/// The part of a text that lies at its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture.
pub(crate) struct Svg {
    size: (u32, u32),
    shapes: String,
}

impl Svg {
    /// An empty picture with a title, and a second line below it.
    pub(crate) fn new(size: (u32, u32), title: &str, below: &str) -> Self {
        let mut svg = Self {
            size,
            shapes: String::new(),
        };
        svg.text((20.0, 26.0), Anchor::Start, LARGE, TEXT, title);
        svg.text((20.0, 52.0), Anchor::Start, SMALL, GRAY, below);
        svg
    }

    /// Replaces the file of a chart.
    pub(crate) fn write(&self, output: &Output) -> Result<()> {
        output.write(|writer| write!(writer, "{self}"))
    }

    /// Adds an element. (A string takes everything.)
    fn add(&mut self, element: fmt::Arguments<'_>) {
        let _ = writeln!(self.shapes, "{element}");
    }

    /// Writes a text, whose middle in height is at the point.
    pub(crate) fn text(&mut self, at: Point, anchor: Anchor, size: f64, color: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        // Half of a small letter's height below the point.
        let (x, y, text) = (px(at.0), px(at.1 + 0.35 * size), escaped(text));
        self.add(format_args!(
            r#"<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{color}">{text}</text>"#
        ));
    }

    /// Writes a text from below to above; `at` is its middle.
    fn upright(&mut self, (x, y): Point, text: &str) {
        let (x, y, text) = (px(x), px(y), escaped(text));
        self.add(format_args!(
            r#"<text transform="translate({x} {y}) rotate(-90)" text-anchor="middle" font-size="{MIDDLE}" fill="{TEXT}">{text}</text>"#
        ));
    }

    pub(crate) fn bar(&mut self, (left, top): Point, (right, bottom): Point, color: &str) {
        let (x, y, width, height) = (px(left), px(top), px(right - left), px(bottom - top));
        self.add(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{color}" fill-opacity="0.5"/>"#
        ));
    }

    fn line(&mut self, points: &[Point], color: &str, width: u32, is_dashed: bool) {
        let dashes = if is_dashed { r#" stroke-dasharray="7 5""# } else { "" };
        let points = joined(points);
        self.add(format_args!(
            r#"<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}"{dashes}/>"#
        ));
    }

    fn mark(&mut self, (x, y): Point, mark: Mark, radius: f64, color: &str) {
        match mark {
            Mark::None => {}
            Mark::Circle => {
                let (x, y) = (px(x), px(y));
                self.add(format_args!(
                    r#"<circle cx="{x}" cy="{y}" r="{radius}" fill="{color}"/>"#
                ));
            }
            Mark::Triangle => {
                // With sides of equal length around the point.
                let (side, radius) = (0.87 * (radius + 2.0), radius + 2.0);
                let corners = [
                    (x, y - radius),
                    (x - side, y + radius / 2.0),
                    (x + side, y + radius / 2.0),
                ];
                let points = joined(&corners);
                self.add(format_args!(r#"<polygon points="{points}" fill="{color}"/>"#));
            }
        }
    }

    /// Connects points, and marks some of them.
    fn look(&mut self, look: Look, points: &[Point], marked: &[Point]) {
        let (width, radius) = if look.wide { (5, 7.0) } else { (2, 4.0) };
        match look.line {
            Line::None => {}
            line => self.line(points, look.color, width, matches!(line, Line::Dashed)),
        }
        for &at in marked {
            self.mark(at, look.mark, radius, look.color);
        }
    }

    /// Writes the names of series beside samples of their looks, from `at` downwards.
    pub(crate) fn legend<'a>(&mut self, at: Point, entries: impl IntoIterator<Item = (Look, &'a str)>) {
        for (i, (look, name)) in entries.into_iter().enumerate() {
            let y = at.1 + 26.0 * i as f64;
            let sample = [at.0, at.0 + 17.0, at.0 + 34.0].map(|x| (x, y));
            self.look(look, &sample, &sample[1..2]);
            self.text((at.0 + 44.0, y), Anchor::Start, SMALL, TEXT, name);
        }
    }
}

impl Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif">"#
        )?;
        writeln!(f, r#"<rect width="{width}" height="{height}" fill="white"/>"#)?;
        writeln!(f, "{}</svg>", self.shapes)
    }
}

/// A length in pixels, with one digit behind the point.
fn px(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

fn joined(points: &[Point]) -> String {
    let points = points.iter().map(|&(x, y)| format!("{},{}", px(x), px(y)));
    Vec::from_iter(points).join(" ")
}

/// A text in which no character begins a tag or an entity.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An axis: what it shows, between which numbers, and the numbers that are written beside it.
pub(crate) struct Axis {
    pub(crate) title: String,
    pub(crate) range: Range<f64>,
    pub(crate) is_log: bool,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Where a number lies: 0 is the start of the axis, and 1 its end.
    fn share(&self, number: f64) -> f64 {
        let scale = |number: f64| if self.is_log { number.ln() } else { number };
        let (start, end) = (scale(self.range.start), scale(self.range.end));
        ((scale(number) - start) / (end - start)).clamp(0.0, 1.0)
    }
}

/// Round numbers between two, with at most `most` steps between them: 1, 2 or 5 times a power of
/// ten apart.
pub(crate) fn round_ticks(range: &Range<f64>, most: f64) -> Vec<f64> {
    let least = (range.end - range.start) / most;
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power);
    let step = step.into_iter().find(|&step| step >= least).unwrap_or(least);
    let (first, last) = ((range.start / step).ceil() as i64, (range.end / step).floor() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

/// A frame with axes, and what they measure inside.
pub(crate) struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Axis,
    y: Axis,
}

impl Frame {
    /// Draws axes and a grid between two corners.
    pub(crate) fn new(svg: &mut Svg, (left, top): Point, (right, bottom): Point, x: Axis, y: Axis) -> Self {
        let frame = Self {
            left,
            right,
            top,
            bottom,
            x,
            y,
        };
        for (number, label) in &frame.x.ticks {
            let at = frame.at((*number, frame.y.range.start)).0;
            svg.line(&[(at, top), (at, bottom)], GRID, 1, false);
            svg.line(&[(at, bottom), (at, bottom + 5.0)], GRAY, 1, false);
            svg.text((at, bottom + 16.0), Anchor::Middle, SMALL, TEXT, label);
        }
        for (number, label) in &frame.y.ticks {
            let at = frame.at((frame.x.range.start, *number)).1;
            svg.line(&[(left, at), (right, at)], GRID, 1, false);
            svg.line(&[(left - 5.0, at), (left, at)], GRAY, 1, false);
            svg.text((left - 9.0, at), Anchor::End, SMALL, TEXT, label);
        }
        svg.line(&[(left, top), (left, bottom), (right, bottom)], GRAY, 1, false);
        let middle = (left + right) / 2.0;
        svg.text((middle, bottom + 42.0), Anchor::Middle, MIDDLE, TEXT, &frame.x.title);
        svg.upright((22.0, (top + bottom) / 2.0), &frame.y.title);
        frame
    }

    /// The place of two numbers in the picture.
    pub(crate) fn at(&self, (x, y): (f64, f64)) -> Point {
        (
            self.left + (self.right - self.left) * self.x.share(x),
            self.bottom - (self.bottom - self.top) * self.y.share(y),
        )
    }

    /// Draws points and what connects them.
    pub(crate) fn series(&self, svg: &mut Svg, look: Look, points: &[(f64, f64)]) {
        let points = Vec::from_iter(points.iter().map(|&point| self.at(point)));
        svg.look(look, &points, &points);
    }

    /// Draws a vertical line, with a text above it.
    pub(crate) fn rule(&self, svg: &mut Svg, x: f64, text: &str) {
        let (at, _) = self.at((x, self.y.range.start));
        svg.line(&[(at, self.top), (at, self.bottom)], LIGHT_GRAY, 2, false);
        svg.text((at, self.top - 14.0), Anchor::Middle, SMALL, GRAY, text);
    }
}

/// How a series looks.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) color: &'static str,
    /// Wider than others, so that it is seen below one that takes the same course.
    pub(crate) wide: bool,
    pub(crate) line: Line,
    pub(crate) mark: Mark,
}

#[derive(Clone, Copy)]
pub(crate) enum Line {
    None,
    Solid,
    Dashed,
}

#[derive(Clone, Copy)]
pub(crate) enum Mark {
    None,
    Circle,
    Triangle,
}

impl Look {
    pub(crate) fn line(color: &'static str) -> Self {
        Self {
            color,
            wide: false,
            line: Line::Solid,
            mark: Mark::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(round_ticks(&(0.0..2e6), 6.0), [0.0, 5e5, 1e6, 1.5e6, 2e6]);
        assert_eq!(
            round_ticks(&(87.0..215.0), 8.0),
            [100.0, 120.0, 140.0, 160.0, 180.0, 200.0]
        );
        assert_eq!(round_ticks(&(0.0..0.055), 6.0), [0.0, 0.01, 0.02, 0.03, 0.04, 0.05]);
    }

    #[test]
    fn an_axis_has_shares_of_its_range() {
        let axis = |is_log| Axis {
            title: String::new(),
            range: 1.0..100.0,
            is_log,
            ticks: Vec::new(),
        };
        assert!((axis(true).share(10.0) - 0.5).abs() < 1e-9);
        assert!((axis(false).share(50.5) - 0.5).abs() < 1e-9);
        // Values outside stay in the picture.
        assert_eq!((axis(true).share(0.1), axis(true).share(1e9)), (0.0, 1.0));
    }
}
