//! Charts as files: SVG, or PNG with letters of an embedded font, since a machine may have none.

use anyhow::{Result, anyhow, bail};
use lanebloom_files::output::Output;
use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::element::{DashedPathElement, DynElement, IntoDynElement};
use plotters::prelude::*;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// A PNG has as many times the pixels of an SVG, so its letters are sharp on any display.
const PNG_SCALE: u32 = 2;

/// In SVG, the reader's own font without serifs.
const FONT: &str = "sans-serif";

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008), without the yellow,
/// which is too light for a line on white.
pub(crate) const COLORS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
pub(crate) const TEXT: RGBColor = RGBColor(40, 40, 40);
pub(crate) const GRAY: RGBColor = RGBColor(120, 120, 120);
const LIGHT_GRAY: RGBColor = RGBColor(170, 170, 170);
const GRID: RGBColor = RGBColor(225, 225, 225);

pub(crate) type Area<DB> = DrawingArea<DB, Shift>;
pub(crate) type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// What can be drawn.
pub(crate) trait Chart {
    /// Width and height in pixels of the SVG.
    const SIZE: (u32, u32);

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<DB>) -> Drawn<DB>;
}

/// A file for a chart.
pub(crate) struct ChartFile {
    output: Output,
    format: ImageFormat,
}

enum ImageFormat {
    Svg,
    Png,
}

impl ChartFile {
    /// Fails if the ending of the name is no format for charts, or if the file could not be
    /// written in the end.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        let format = match ending.to_str() {
            Some("svg") => ImageFormat::Svg,
            Some("png") => ImageFormat::Png,
            _ => bail!("{}: the name must end in .svg or .png", path.display()),
        };
        let output = Output::new(path)?;
        Ok(Self { output, format })
    }

    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// Draws a chart and replaces the file.
    pub(crate) fn draw<C: Chart>(&self, chart: &C) -> Result<()> {
        let bytes = match self.format {
            ImageFormat::Svg => svg(chart)?,
            ImageFormat::Png => png(chart)?,
        };
        self.output.write(|writer| writer.write_all(&bytes))
    }
}

fn svg<C: Chart>(chart: &C) -> Result<Vec<u8>> {
    let mut text = String::new();
    draw_on(SVGBackend::with_string(&mut text, C::SIZE), 1, 0.0, chart)?;
    Ok(text.into_bytes())
}

fn png<C: Chart>(chart: &C) -> Result<Vec<u8>> {
    let (width, height) = (C::SIZE.0 * PNG_SCALE, C::SIZE.1 * PNG_SCALE);
    let mut pixels = vec![0; (width * height * 3) as usize];
    draw_on(
        BitMapBackend::with_buffer(&mut pixels, (width, height)),
        PNG_SCALE,
        // It takes a line's height for less than it is.
        0.15,
        chart,
    )?;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(bytes)
}

fn draw_on<DB: DrawingBackend, C: Chart>(backend: DB, scale: u32, sinks: f64, chart: &C) -> Result<()> {
    // In SVG this font only measures texts. Registered once or twice is the same.
    plotters::style::register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT)
        .map_err(|_| anyhow!("the embedded font is damaged"))?;
    let canvas = Canvas {
        area: backend.into_drawing_area(),
        scale: scale as i32,
        sinks,
    };
    let draw = || {
        canvas.area.fill(&WHITE)?;
        chart.draw(&canvas)?;
        canvas.area.present()
    };
    draw().map_err(|error| anyhow!("cannot draw the chart: {error}"))
}

/// A part of a chart.
pub(crate) struct Canvas<DB: DrawingBackend> {
    pub(crate) area: Area<DB>,
    /// Pixels of the file for each pixel of the SVG.
    scale: i32,
    /// By how much of its size a text is too high if centered.
    sinks: f64,
}

impl<DB: DrawingBackend> Canvas<DB> {
    /// Pixels of the file for pixels of the SVG.
    pub(crate) fn px(&self, pixels: i32) -> i32 {
        pixels * self.scale
    }

    /// The part of `height` from `top`, in pixels of the SVG.
    pub(crate) fn rows(&self, top: i32, height: i32) -> Self {
        let area = self.area.margin(self.px(top), 0, 0, 0);
        let (area, _) = area.split_vertically(self.px(height));
        Self {
            area,
            scale: self.scale,
            sinks: self.sinks,
        }
    }

    pub(crate) fn style(&self, size: i32, color: RGBColor) -> TextStyle<'static> {
        TextStyle {
            font: (FONT, self.px(size)).into_font(),
            color: color.to_backend_color(),
            pos: Pos::default(),
        }
    }

    fn sink(&self, size: i32) -> i32 {
        (self.sinks * f64::from(self.px(size))).round() as i32
    }

    /// Writes a text; `at` is its left or right end or its middle, and its middle in height.
    pub(crate) fn text(&self, at: (i32, i32), align: HPos, size: i32, color: RGBColor, text: &str) -> Drawn<DB> {
        let style = self.style(size, color).pos(Pos::new(align, VPos::Center));
        let at = (self.px(at.0), self.px(at.1) + self.sink(size));
        self.area.draw_text(text, &style, at)
    }

    /// The title, and a second line below it.
    pub(crate) fn title(&self, title: &str, below: &str) -> Drawn<DB> {
        self.text((20, 26), HPos::Left, 22, TEXT, title)?;
        self.text((20, 52), HPos::Left, 15, GRAY, below)
    }

    /// Lines and axes of a chart.
    pub(crate) fn mesh<'a, X, Y>(
        &self,
        chart: &mut ChartContext<'a, DB, Cartesian2d<X, Y>>,
        (x_title, x_label): (&str, &dyn Fn(&f64) -> String),
        (y_title, y_label): (&str, &dyn Fn(&f64) -> String),
    ) -> Drawn<DB>
    where
        X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
    {
        chart
            .configure_mesh()
            .bold_line_style(GRID.stroke_width(self.scale as u32))
            .light_line_style(TRANSPARENT)
            .axis_style(GRAY.stroke_width(self.scale as u32))
            .label_style(self.style(15, TEXT))
            .axis_desc_style(self.style(16, TEXT))
            .y_label_offset(self.sink(15))
            .x_labels(6)
            .x_label_formatter(x_label)
            .y_label_formatter(y_label)
            .x_desc(x_title)
            .y_desc(y_title)
            .draw()
    }

    /// Draws points and what connects them.
    pub(crate) fn series<X, Y>(
        &self,
        chart: &mut ChartContext<'_, DB, Cartesian2d<X, Y>>,
        look: Look,
        points: &[(f64, f64)],
    ) -> Drawn<DB>
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        chart.draw_series(look.elements(points, points, self.scale))?;
        Ok(())
    }

    /// Draws a vertical line at an `x` that a text above the chart explains.
    pub(crate) fn rule<X, Y>(
        &self,
        chart: &mut ChartContext<'_, DB, Cartesian2d<X, Y>>,
        x: f64,
        (bottom, top): (f64, f64),
    ) -> Drawn<DB>
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let style = LIGHT_GRAY.stroke_width(2 * self.scale as u32);
        chart.draw_series([PathElement::new([(x, bottom), (x, top)], style)])?;
        Ok(())
    }

    /// Writes the names of series beside samples of their looks, from `at` downwards.
    pub(crate) fn legend<'a>(&self, at: (i32, i32), entries: impl IntoIterator<Item = (Look, &'a str)>) -> Drawn<DB> {
        for (i, (look, name)) in (0..).zip(entries) {
            let y = at.1 + 26 * i;
            let sample = [at.0, at.0 + 17, at.0 + 34].map(|x| (self.px(x), self.px(y)));
            for element in look.elements(&sample, &sample[1..2], self.scale) {
                self.area.draw(&element)?;
            }
            self.text((at.0 + 44, y), HPos::Left, 15, TEXT, name)?;
        }
        Ok(())
    }
}

/// How a series looks.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) color: RGBColor,
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
    pub(crate) fn line(color: RGBColor, line: Line) -> Self {
        Self {
            color,
            wide: false,
            line,
            mark: Mark::None,
        }
    }

    /// The connection of the points, then the marks on them.
    fn elements<DB: DrawingBackend, C: Clone + 'static>(
        self,
        points: &[C],
        marked: &[C],
        scale: i32,
    ) -> Vec<DynElement<'static, DB, C>> {
        let (width, mark) = if self.wide { (5, 7) } else { (2, 4) };
        let style = self.color.stroke_width(width * scale as u32);
        let points = points.to_vec();
        let line = match self.line {
            Line::None => None,
            Line::Solid => Some(PathElement::new(points, style).into_dyn()),
            Line::Dashed => Some(DashedPathElement::new(points, 7 * scale, 5 * scale, style).into_dyn()),
        };
        let marks = marked.iter().filter_map(|at| match self.mark {
            Mark::None => None,
            Mark::Circle => Some(Circle::new(at.clone(), mark * scale, self.color.filled()).into_dyn()),
            Mark::Triangle => Some(TriangleMarker::new(at.clone(), (mark + 2) * scale, self.color.filled()).into_dyn()),
        });
        line.into_iter().chain(marks).collect()
    }
}
