//! The measurements of `bench`: the table that it writes as CSV, and that `plot speed` reads.

use crate::chart::{Axis, COLORS, Chart, Look, Panel, Series};
use crate::cpu_info::CpuInfo;
use crate::table;
use anyhow::{Context, Result, bail, ensure};
use csv::{Reader, Writer};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

/// The columns. Each line names the machine, so that a line means the same anywhere.
const COLUMNS: [&str; 9] = [
    "cpu",
    "instruction_set",
    "threads",
    "l1d_bytes",
    "l2_bytes",
    "l3_bytes",
    "filter_bytes",
    "operation",
    "ns_per_key",
];

/// How many operations a chart has room for.
const OPERATIONS: usize = 2 * COLORS.len();

/// The most sizes that have room below a chart.
const LABELS: usize = 10;

pub(crate) struct Speeds {
    pub(crate) machine: CpuInfo,
    pub(crate) speeds: Vec<Speed>,
}

pub(crate) struct Speed {
    pub(crate) filter_bytes: u64,
    pub(crate) operation: String,
    pub(crate) ns_per_key: f64,
}

impl Speeds {
    /// The operations, in the order of their first lines.
    pub(crate) fn operations(&self) -> Vec<&str> {
        let mut operations: Vec<&str> = Vec::new();
        for speed in &self.speeds {
            if !operations.contains(&speed.operation.as_str()) {
                operations.push(&speed.operation);
            }
        }
        operations
    }

    /// Writes the table.
    pub(crate) fn write_to(&self, writer: &mut dyn Write) -> io::Result<()> {
        let machine = &self.machine;
        let mut table = Writer::from_writer(writer);
        table.write_record(COLUMNS)?;
        for speed in &self.speeds {
            table.serialize((
                &machine.cpu,
                &machine.instruction_set,
                machine.threads,
                machine.caches,
                speed.filter_bytes,
                &speed.operation,
                format!("{:.3}", speed.ns_per_key),
            ))?;
        }
        table.flush()
    }

    /// ns per key against filter size.
    pub(crate) fn chart(&self) -> Chart {
        let machine = &self.machine;
        let mut sizes = Vec::from_iter(self.speeds.iter().map(|speed| speed.filter_bytes));
        sizes.sort();
        sizes.dedup();
        let axis = |title, value: fn(&Speed) -> f64, label| {
            let values = self.speeds.iter().map(value);
            let ends = values.fold((f64::MAX, 0.0_f64), |ends, value| {
                (ends.0.min(value), ends.1.max(value))
            });
            Axis::new(title, ends.0 / 1.5..ends.1 * 1.5, true, label)
        };
        let mut x = axis(
            "filter size",
            |speed| speed.filter_bytes as f64,
            |size| table::bytes(size as u64),
        );
        let labels = sizes.iter().step_by(sizes.len().div_ceil(LABELS));
        x.ticks = labels.map(|&size| size as f64).collect();
        let caches = CpuInfo::CACHES.into_iter().zip(machine.caches);
        let rules = caches.filter_map(|(name, size)| Some((size? as f64, format!("{name} {}", table::bytes(size?)))));
        let rules = rules.filter(|(size, _)| x.range.contains(size)).collect();
        let series = self.operations().into_iter().enumerate().map(|(i, operation)| {
            let speeds = self.speeds.iter().filter(|speed| speed.operation == operation);
            let mut points = Vec::from_iter(speeds.map(|speed| (speed.filter_bytes as f64, speed.ns_per_key)));
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            // Three colours with circles, the same with triangles, then three other colours. So an
            // operation of `bench` has the colour of its batches. Lookups of absent and present
            // keys often take the same time, so the first of three is wide.
            Series {
                name: operation.into(),
                color: i / 6 * 3 + i % 3,
                look: Look::Measured {
                    is_dashed: i / 3 % 2 == 1,
                    is_wide: i % 3 == 0,
                },
                points,
            }
        });
        Chart {
            title: format!("ConcurrentBloom on {}", machine.cpu),
            below: format!("{}, one thread of {}", machine.instruction_set, machine.threads),
            panels: vec![Panel {
                height: 390.0,
                rules,
                x,
                y: axis("ns per key", |speed| speed.ns_per_key, |ns| ns.to_string()),
                series: series.collect(),
                notes: Vec::new(),
            }],
        }
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        Self::read_table(path).with_context(|| path.display().to_string())
    }

    fn read_table(path: &Path) -> Result<Self> {
        let mut table = Reader::from_path(path).context("cannot read it")?;
        let header = table.headers().context("cannot read it")?.clone();
        let place = |column| header.iter().position(|name| name == column);
        if let Some(column) = COLUMNS.into_iter().find(|&column| place(column).is_none()) {
            bail!("line 1 has no column {column}: not a table of `lanebloom bench`");
        }
        let places = COLUMNS.map(|column| place(column).unwrap_or(0));
        let mut read: Option<Self> = None;
        for record in table.records() {
            // The error names the line.
            let record = record.context("cannot read it")?;
            let line = record.position().map_or(0, csv::Position::line);
            let (machine, speed) = parse(places.map(|at| &record[at])).with_context(|| format!("line {line}"))?;
            let read = read.get_or_insert_with(|| Self {
                machine: machine.clone(),
                speeds: Vec::new(),
            });
            ensure!(
                read.machine == machine,
                "line {line} is of another machine than the lines before"
            );
            let is_same =
                |other: &Speed| other.filter_bytes == speed.filter_bytes && other.operation == speed.operation;
            if read.speeds.iter().any(is_same) {
                bail!("line {line} has the filter_bytes and the operation of an earlier line");
            }
            read.speeds.push(speed);
            if read.operations().len() > OPERATIONS {
                bail!("line {line} brings more than {OPERATIONS} operations, the limit of a chart");
            }
        }
        read.context("the table has no lines")
    }
}

/// The content of a line, whose fields have the order of [`COLUMNS`].
fn parse(fields: [&str; COLUMNS.len()]) -> Result<(CpuInfo, Speed)> {
    let cache = |at| match fields[at] {
        "" => Ok(None),
        _ => number(fields, at, 1, 1 << 50).map(Some),
    };
    let machine = CpuInfo {
        cpu: text(fields, 0)?,
        instruction_set: text(fields, 1)?,
        threads: number(fields, 2, 1, 1 << 20)?,
        caches: [cache(3)?, cache(4)?, cache(5)?],
    };
    let speed = Speed {
        filter_bytes: number(fields, 6, 1, 1 << 50)?,
        operation: text(fields, 7)?,
        ns_per_key: number(fields, 8, 1e-3, 1e9)?,
    };
    Ok((machine, speed))
}

/// A name for the chart.
fn text(fields: [&str; COLUMNS.len()], at: usize) -> Result<String> {
    let (column, text) = (COLUMNS[at], fields[at]);
    if text.is_empty() || text.chars().count() > 80 || text.chars().any(char::is_control) {
        bail!("{column} is {text:?}, and must be a name of 1 to 80 characters");
    }
    Ok(text.into())
}

fn number<T>(fields: [&str; COLUMNS.len()], at: usize, least: T, most: T) -> Result<T>
where
    T: FromStr + PartialOrd + Display,
{
    match fields[at].parse::<T>() {
        // False for NaN, too.
        Ok(number) if least <= number && number <= most => Ok(number),
        _ => bail!(
            "{} is {:?}, and must be a number from {least} to {most}",
            COLUMNS[at],
            fields[at]
        ),
    }
}
