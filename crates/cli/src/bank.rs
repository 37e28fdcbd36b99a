//! A bank as a file: the snapshot of a `FilterBank`, and after it the names of its columns, as a
//! line of JSON. Programs read the snapshot by `FilterBank::read_from`, which leaves the line.

use crate::keys::Keyed;
use anyhow::{Context, Result, bail};
use lanebloom::Hashed;
use lanebloom::bank::{FilterBank, columns};
use lanebloom::codec::{self, SnapshotHeader};
use lanebloom::hash::AnyHasher;
use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, Read, Write};

/// The advice for a bank that is given to `query`, `merge` or `convert`.
pub(crate) const INSTEAD: &str = "it is a bank of filters: `which` says which of them hold a key, `build --bank` makes \
                                  another one of more files";

pub(crate) struct BankFile {
    pub(crate) header: SnapshotHeader,
    pub(crate) bank: FilterBank<AnyHasher>,
    pub(crate) names: Names,
}

/// The names of the first columns. The others have numbers.
#[derive(Clone, Default)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl Names {
    pub(crate) fn of(&self, column: usize) -> Cow<'_, str> {
        let name = self.0.get(column);
        name.map_or_else(|| column.to_string().into(), Into::into)
    }
}

impl BankFile {
    /// Reads the bank that this header begins, and the names up to the end.
    pub(crate) fn read(header: SnapshotHeader, mut reader: impl Read) -> Result<Self> {
        let hasher = header.any_hasher().context("the bank has no hasher")?;
        let bank = codec::read_from::<FilterBank<_>>(&mut reader, usize::MAX, hasher)?;
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).context("cannot read it")?;
        let names: Vec<String> = match &rest[..] {
            [] => Vec::new(),
            names => serde_json::from_slice(names)
                .context("the bytes after the bank are not the names of its columns, an array of JSON")?,
        };
        if names.len() > bank.columns() {
            bail!("{} names are too many for {} columns", names.len(), bank.columns());
        }
        let names = Names(names);
        Ok(Self { header, bank, names })
    }

    /// Finds the columns that have each key.
    pub(crate) fn find(&self, keyed: &mut Keyed) {
        let Keyed {
            hashes,
            found,
            columns: all,
            column_ends,
            ..
        } = keyed;
        self.bank.which_batch(Hashed::slice(hashes), |_, bitmap| {
            let before = all.len();
            all.extend(columns(bitmap));
            column_ends.push(all.len());
            found.push(all.len() > before);
        });
    }
}

/// Writes a bank, whose first columns have these names.
pub(crate) fn write(bank: &FilterBank<AnyHasher>, names: &[String], mut writer: impl Write) -> io::Result<()> {
    bank.snapshot().write_to(&mut writer)?;
    if names.is_empty() {
        return Ok(());
    }
    writeln!(writer, "{}", Value::from(names))
}
