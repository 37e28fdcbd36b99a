//! The measurements of `bench`: the table that it writes as CSV, and that `plot speed` reads.

use crate::cpu_info::CpuInfo;
use anyhow::{Context, Result, bail};
use csv::{ReaderBuilder, Writer};
use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
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
const OPERATIONS: usize = 12;

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
        let [l1d, l2, l3] = machine
            .caches
            .map(|cache| cache.map_or(String::new(), |bytes| bytes.to_string()));
        let mut table = Writer::from_writer(writer);
        table.write_record(COLUMNS)?;
        for speed in &self.speeds {
            table.write_record([
                &machine.cpu,
                &machine.instruction_set,
                &machine.threads.to_string(),
                &l1d,
                &l2,
                &l3,
                &speed.filter_bytes.to_string(),
                &speed.operation,
                &format!("{:.3}", speed.ns_per_key),
            ])?;
        }
        table.flush()
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        Self::read_table(path).with_context(|| path.display().to_string())
    }

    fn read_table(path: &Path) -> Result<Self> {
        let file = File::open(path).context("cannot read it")?;
        let mut table = ReaderBuilder::new().from_reader(file);
        let header = table.headers().context("cannot read it")?.clone();
        if let Some(column) = COLUMNS.iter().find(|&&column| header.iter().all(|name| name != column)) {
            bail!("line 1 has no column {column}: not a table of `lanebloom bench`");
        }
        let mut read: Option<Self> = None;
        for record in table.records() {
            // The error names the line.
            let record = record.context("cannot read it")?;
            let line = record.position().map_or(0, csv::Position::line);
            let fields = Fields(header.iter().zip(&record).collect());
            let (machine, speed) = fields.parse().with_context(|| format!("line {line}"))?;
            let Some(speeds) = &mut read else {
                let speeds = vec![speed];
                read = Some(Self { machine, speeds });
                continue;
            };
            if speeds.machine != machine {
                bail!("line {line} is of another machine than the lines before");
            }
            let is_same =
                |other: &Speed| other.filter_bytes == speed.filter_bytes && other.operation == speed.operation;
            if speeds.speeds.iter().any(is_same) {
                bail!("line {line} has the filter_bytes and the operation of an earlier line");
            }
            speeds.speeds.push(speed);
            if speeds.operations().len() > OPERATIONS {
                bail!("line {line} brings more than {OPERATIONS} operations, the limit of a chart");
            }
        }
        read.context("the table has no lines")
    }
}

/// The fields of a line, by their columns.
struct Fields<'a>(HashMap<&'a str, &'a str>);

impl Fields<'_> {
    fn parse(&self) -> Result<(CpuInfo, Speed)> {
        let cache = |column| match self.0[column] {
            "" => Ok(None),
            _ => self.number(column, 1, 1 << 50).map(Some),
        };
        let machine = CpuInfo {
            cpu: self.text("cpu")?,
            instruction_set: self.text("instruction_set")?,
            threads: self.number("threads", 1, 1 << 20)?,
            caches: [cache("l1d_bytes")?, cache("l2_bytes")?, cache("l3_bytes")?],
        };
        let speed = Speed {
            filter_bytes: self.number("filter_bytes", 1, 1 << 50)?,
            operation: self.text("operation")?,
            ns_per_key: self.number("ns_per_key", 1e-3, 1e9)?,
        };
        Ok((machine, speed))
    }

    /// A name for the chart.
    fn text(&self, column: &str) -> Result<String> {
        let text = self.0[column];
        if text.is_empty() || text.chars().count() > 80 || text.chars().any(char::is_control) {
            bail!("{column} is {text:?}, and must be a name of 1 to 80 characters");
        }
        Ok(text.into())
    }

    fn number<T: FromStr + PartialOrd + Display>(&self, column: &str, least: T, most: T) -> Result<T> {
        let text = self.0[column];
        match text.parse::<T>() {
            // False for NaN, too.
            Ok(number) if least <= number && number <= most => Ok(number),
            _ => bail!("{column} is {text:?}, and must be a number from {least} to {most}"),
        }
    }
}
