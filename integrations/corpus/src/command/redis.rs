//! One filter in Redis that several machines fill. The server does one insert after another, so
//! exactly one of two machines with an equal piece hears that the piece is new.
//!
//! Beside the filter, a hash holds the options that decide about hashes, and the inputs that were
//! begun, by size and hash. The filter remembers the pieces of an input that a killed run has not
//! written, so the same input again is an error.

use super::decide::{Shared, Statistics};
use super::journal::done_now;
use anyhow::{Context, Result, bail};
use lanebloom_files::journal;
use lanebloom_redis::RedisBitmap;
use lanebloom_redis::redis::{self, Client, Connection};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest wait for the server.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Other machines insert too. So the server is asked for the number of keys whenever this share of
/// the expected keys was inserted here.
const STEPS: u64 = 64;

pub(super) struct RedisFilter {
    connection: Connection,
    filter: RedisBitmap,
    name: String,
    expected: u64,
    /// The number of keys when the server was asked last, and those inserted here since.
    len: u64,
    since: u64,
}

impl RedisFilter {
    /// Opens the filter, or makes one.
    pub(super) fn open(url: &str, name: &str, expected: usize, rate: f64, settings: &str) -> Result<Self> {
        let failed = || format!("cannot use the filter {name} in Redis");
        let filter = RedisBitmap::redisson(name, expected, rate).with_context(failed)?;
        let client = Client::open(url).context("--redis")?;
        let connect = || {
            let connection = client.get_connection_with_timeout(TIMEOUT)?;
            connection.set_read_timeout(Some(TIMEOUT))?;
            connection.set_write_timeout(Some(TIMEOUT))?;
            Ok::<_, redis::RedisError>(connection)
        };
        let mut shared = Self {
            connection: connect().context("cannot connect to Redis")?,
            filter,
            name: name.into(),
            expected: expected as u64,
            len: 0,
            since: 0,
        };
        shared.filter.try_init(&mut shared.connection).with_context(failed)?;
        shared.ask().with_context(failed)?;
        shared.agree(settings).with_context(failed)?;
        Ok(shared)
    }

    /// The hash beside the filter, in the same slot of a cluster.
    fn notes(&self) -> String {
        format!("{{{}}}:corpus", self.name)
    }

    /// Fails if the hashes of other machines mean something else.
    fn agree(&mut self, settings: &str) -> Result<()> {
        let notes = self.notes();
        let mut set = redis::cmd("HSETNX");
        set.arg(&notes)
            .arg("settings")
            .arg(settings)
            .exec(&mut self.connection)?;
        let mut get = redis::cmd("HGET");
        let theirs: String = get.arg(&notes).arg("settings").query(&mut self.connection)?;
        journal::compare(Path::new(&self.name), &theirs, settings)
    }

    /// Writes down the inputs. Fails if one was begun before, by any machine.
    pub(super) fn begin(&mut self, inputs: &[PathBuf]) -> Result<()> {
        let notes = self.notes();
        let mut names = BTreeMap::new();
        for path in inputs {
            if let Some(done) = done_now(path)?.filter(|done| done.bytes > 0) {
                names
                    .entry(format!("{} {:016x}", done.bytes, done.hash))
                    .or_insert(path);
            }
        }
        // All are looked up first, so that this error leaves nothing behind.
        for (command, expected) in [("HEXISTS", 0), ("HSETNX", 1)] {
            for (name, path) in &names {
                let mut command = redis::cmd(command);
                command.arg(&notes).arg(name);
                if expected == 1 {
                    command.arg(path.to_string_lossy().as_ref());
                }
                let answer: u8 = command.query(&mut self.connection).context("cannot ask Redis")?;
                if answer != expected {
                    bail!(
                        "{} was given to the filter {} in Redis before: all of its documents would be removed. If that \
                         run failed, delete the keys {0}, {{{0}}}:config and {notes}, and begin anew on all machines",
                        path.display(),
                        self.name,
                    );
                }
            }
        }
        Ok(())
    }

    /// Asks the server how many keys the filter has. Fails if it is full.
    fn ask(&mut self) -> Result<()> {
        self.len = self.filter.statistics(&mut self.connection)?.len as u64;
        self.since = 0;
        // It is an estimate.
        if self.len > self.expected + self.expected / STEPS {
            bail!(
                "the filter {} in Redis is full: it has about {} pieces, and is for {}. Begin anew with a higher \
                 --expected and another --redis-key",
                self.name,
                self.len,
                self.expected
            );
        }
        Ok(())
    }

    /// The share of the bits that are set.
    fn fill(&self) -> f64 {
        let bits = (self.len + self.since) as f64 * f64::from(self.filter.hash_functions());
        -(-bits / self.filter.bit_size() as f64).exp_m1()
    }
}

impl Shared for RedisFilter {
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<f64> {
        let keys = Vec::from_iter(hashes.iter().map(|hash| hash.to_le_bytes()));
        let inserted = self.filter.insert_batch_into(&mut self.connection, &keys, new);
        self.since += inserted.with_context(|| {
            format!(
                "the filter {} in Redis may have pieces of documents that are not written: begin anew without it",
                self.name
            )
        })? as u64;
        if self.since > self.expected / STEPS {
            self.ask()?;
        }
        Ok(self.statistics().rate)
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            memory: self.filter.bit_size() as usize / 8,
            fill: self.fill(),
            rate: self.fill().powi(self.filter.hash_functions().into()),
        }
    }
}
