//! Replaces `rows.rs` without the feature `parquet`: recognizes files of Parquet, and refuses them.

use anyhow::{Result, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Has no value, and stands for all types of `rows.rs`.
pub(super) enum Table {}

pub(super) type Batches = Table;
pub(super) type Rows = Table;
pub(super) type TableWriter = Table;

impl Table {
    pub(super) fn open(path: &Path, _: &str) -> Result<Option<Self>> {
        let mut magic = [0; 4];
        let is_parquet = path.is_file()
            && File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && magic == *b"PAR1");
        if is_parquet {
            bail!(
                "{} is a file of Parquet, and this program was built without the feature parquet: install it with --features parquet",
                path.display()
            );
        }
        Ok(None)
    }

    pub(super) fn is_like(&self, _: &Self) -> bool {
        match *self {}
    }

    pub(super) fn batches(&self, _: usize) -> Result<Batches> {
        match *self {}
    }

    pub(super) fn next(&mut self, _: &mut Vec<u8>) -> Result<Option<(Rows, usize)>> {
        match *self {}
    }

    pub(super) fn edit(&mut self, _: Vec<bool>, _: &[(usize, String)]) -> Result<()> {
        match *self {}
    }

    pub(super) fn new(like: &Table, _: File) -> Result<TableWriter> {
        match *like {}
    }

    pub(super) fn write(&mut self, _: &Rows) -> Result<()> {
        match *self {}
    }

    pub(super) fn close(self) -> Result<()> {
        match self {}
    }
}
