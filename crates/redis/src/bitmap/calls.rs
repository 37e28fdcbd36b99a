//! The commands of [`RedisBitmap`], over any connection: keys to offsets, offsets to commands,
//! replies to answers.

use super::{Kept, milliseconds};
use crate::RedisBitmap;
use crate::connection::{self, Connection, Script, Talk, lossy};
use crate::error::{BitmapError, Kind, Report};
use crate::layout::{BitmapLayout, config_of};
use lanebloom::Funnel;
use lanebloom::internal::assert_same_length;
use redis::{Cmd, Value};
use std::slice;
use std::time::Duration;

/// The offsets that one round trip sends, if a key has not more of them. A server that does nothing
/// else meanwhile takes a microsecond for each (Redis 7.0, in Lua), so that other clients wait
/// about one millisecond.
pub(super) const OFFSETS_PER_TRIP: usize = 1024;
/// The greatest cursor of a growing filter that is believed. (A lookup takes all bitmaps up to it.)
const GREATEST_CURSOR: u64 = 1023;
/// How often an insert is sent to a server that has lost the script or the configuration again.
pub(super) const ATTEMPTS: usize = 5;
/// The fields of a configuration of Redisson's.
const CONFIGURATION: [&str; 4] = ["size", "hashIterations", "expectedInsertions", "falseProbability"];

/// The operation on the bits of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Test,
    Set,
}

impl Work {
    fn command(self) -> &'static str {
        match self {
            Self::Test => "GETBIT",
            Self::Set => "SETBIT",
        }
    }
}

impl RedisBitmap {
    pub(super) async fn test_one<K: Funnel + ?Sized>(
        &self,
        connection: &mut impl Connection,
        key: &K,
    ) -> Result<bool, BitmapError> {
        let mut found = false;
        self.test_all(connection, slice::from_ref(&key), slice::from_mut(&mut found))
            .await?;
        Ok(found)
    }

    pub(super) async fn set_one<K: Funnel + ?Sized>(
        &self,
        connection: &mut impl Connection,
        key: &K,
    ) -> Result<bool, BitmapError> {
        Ok(self.set_all(connection, slice::from_ref(&key), None).await? == 1)
    }

    pub(super) async fn test_all<K: Funnel>(
        &self,
        connection: &mut impl Connection,
        keys: &[K],
        out: &mut [bool],
    ) -> Result<(), BitmapError> {
        assert_same_length(keys.len(), out.len());
        let trip = self.keys_per_trip();
        for (keys, out) in keys.chunks(trip).zip(out.chunks_mut(trip)) {
            let mut offsets = Vec::with_capacity(keys.len() * usize::from(self.layout.functions));
            for (key, placed) in keys.iter().zip(&mut *out) {
                *placed = self.layout.offsets(key, &mut offsets);
            }
            let mut answers = self.test(connection, offsets).await?.into_iter();
            for found in out.iter_mut().filter(|placed| **placed) {
                *found = answers.next().unwrap_or_default();
            }
        }
        Ok(())
    }

    pub(super) async fn set_all<K: Funnel>(
        &self,
        connection: &mut impl Connection,
        keys: &[K],
        mut changed: Option<&mut [bool]>,
    ) -> Result<usize, BitmapError> {
        if let Some(changed) = &changed {
            assert_same_length(keys.len(), changed.len());
        }
        let mut sum = 0;
        for (i, trip) in keys.chunks(self.keys_per_trip()).enumerate() {
            let mut offsets = Vec::with_capacity(trip.len() * usize::from(self.layout.functions));
            if !trip.iter().all(|key| self.layout.offsets(key, &mut offsets)) {
                return Err(self.no_text());
            }
            let answers = self.set(connection, offsets).await?;
            sum += answers.iter().filter(|changed| **changed).count();
            if let Some(changed) = &mut changed {
                changed[i * self.keys_per_trip()..][..answers.len()].copy_from_slice(&answers);
            }
        }
        Ok(sum)
    }

    fn keys_per_trip(&self) -> usize {
        OFFSETS_PER_TRIP / usize::from(self.layout.functions)
    }

    /// The Redis key that errors name.
    pub(crate) fn name(&self) -> &[u8] {
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } | Kept::Configured { key, .. } => key,
            Kept::Growing { base, .. } => base,
        }
    }

    /// The Redis keys of a filter that does not grow; none of one that does.
    fn keys(&self) -> Vec<&[u8]> {
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => Vec::from([&**key]),
            Kept::Configured { key, config, .. } => Vec::from([&**key, config]),
            Kept::Growing { .. } => Vec::new(),
        }
    }

    pub(super) fn talk<'a, C: Connection>(&'a self, connection: &'a mut C) -> Talk<'a, C> {
        Talk {
            connection,
            key: self.name(),
        }
    }

    /// The script that does this work, with its first arguments. (The others are offsets.)
    pub(super) fn script(&self, connection: &impl Connection, work: Work) -> Option<(&'static Script, Vec<u64>)> {
        let functions = u64::from(self.layout.functions);
        let (test, set, arguments) = match &self.kept {
            Kept::Piped { .. } if connection.pipelines() => return None,
            Kept::Piped { .. } | Kept::Scripted { .. } => (&connection::TEST, &connection::SET, Vec::from([functions])),
            Kept::Configured { .. } => (
                &connection::TEST_CONFIGURED,
                &connection::SET_CONFIGURED,
                Vec::from([functions, self.layout.bits]),
            ),
            Kept::Growing { .. } => {
                let mut arguments = Vec::from([GREATEST_CURSOR, functions]);
                if work == Work::Set {
                    arguments.extend([self.layout.bits, self.expire.unwrap_or(0)]);
                }
                (&connection::TEST_GROWING, &connection::SET_GROWING, arguments)
            }
        };
        Some((if work == Work::Test { test } else { set }, arguments))
    }

    /// The Redis keys that a script takes.
    fn script_keys(&self) -> Vec<&[u8]> {
        match &self.kept {
            Kept::Growing { base, cursor } => Vec::from([&**cursor, base]),
            _ => self.keys(),
        }
    }

    /// The commands that do this work on one key, or by a script on several.
    pub(super) fn add_commands(
        &self,
        connection: &impl Connection,
        work: Work,
        offsets: &[u64],
        pipeline: &mut redis::Pipeline,
    ) {
        if let Some((script, arguments)) = self.script(connection, work) {
            pipeline.add_command(script.call(&self.script_keys(), &[&arguments, offsets].concat()));
        } else {
            for offset in offsets {
                match work {
                    Work::Test => pipeline.cmd("GETBIT").arg(self.name()).arg(offset),
                    Work::Set => pipeline.cmd("SETBIT").arg(self.name()).arg(offset).arg(1),
                };
            }
        }
        if work == Work::Set {
            for expire in self.expire_commands() {
                pipeline.add_command(expire);
            }
        }
    }

    /// The answer for one key in the replies to [`add_commands`](Self::add_commands), or `None` if
    /// the filter has no configuration.
    pub(super) fn answer(
        &self,
        connection: &mut impl Connection,
        work: Work,
        replies: Vec<Value>,
    ) -> Result<Option<bool>, BitmapError> {
        let script = self.script(connection, work);
        let talk = self.talk(connection);
        let replies: Result<Vec<Value>, _> = replies.into_iter().map(|reply| talk.checked(reply)).collect();
        let mut replies = replies?;
        if let Some((script, _)) = script {
            let reply = self.checked_script(replies.swap_remove(0))?;
            return match reply {
                Value::Int(0) if matches!(self.kept, Kept::Configured { .. }) => Ok(None),
                reply => Ok(self.answers(connection, script, reply, 1)?.pop()),
            };
        }
        let bits = &replies[..self.layout.functions.into()];
        let mut bits = bits.iter().map(|reply| talk.bit(work.command(), reply));
        // `SETBIT` replies what the bit was.
        let all = bits.try_fold(true, |all, bit| Ok::<_, BitmapError>(all & bit?))?;
        Ok(Some(all == (work == Work::Test)))
    }

    /// Whether all bits of each key are set.
    async fn test(&self, connection: &mut impl Connection, offsets: Vec<u64>) -> Result<Vec<bool>, BitmapError> {
        let keys = offsets.len() / usize::from(self.layout.functions);
        match self.work(connection, Work::Test, &offsets).await? {
            Some(found) => Ok(found),
            None => Ok(vec![false; keys]),
        }
    }

    /// Sets all bits of each key; returns whether one of them was not set.
    async fn set(&self, connection: &mut impl Connection, offsets: Vec<u64>) -> Result<Vec<bool>, BitmapError> {
        for _ in 0..ATTEMPTS {
            match self.work(connection, Work::Set, &offsets).await? {
                Some(changed) => return Ok(changed),
                // The filter may expire between the two. Then it is made again.
                None => self.configure(connection).await?,
            };
        }
        Err(self.gave_up(connection))
    }

    /// The error after [`ATTEMPTS`].
    pub(super) fn gave_up(&self, connection: &mut impl Connection) -> BitmapError {
        let problem = format_args!("no script, or no configuration, after {ATTEMPTS} attempts");
        self.talk(connection).unexpected("EVALSHA", problem)
    }

    /// The answer for each key, or `None` if the filter has no configuration.
    async fn work(
        &self,
        connection: &mut impl Connection,
        work: Work,
        offsets: &[u64],
    ) -> Result<Option<Vec<bool>>, BitmapError> {
        if offsets.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let functions = usize::from(self.layout.functions);
        let Some((script, arguments)) = self.script(connection, work) else {
            let mut pipeline = redis::pipe();
            self.add_commands(connection, work, offsets, &mut pipeline);
            let mut talk = self.talk(connection);
            let mut replies = talk.send(pipeline).await?;
            replies.truncate(offsets.len());
            let bits: Result<Vec<bool>, _> = replies.iter().map(|reply| talk.bit(work.command(), reply)).collect();
            let all = |bits: &[bool]| bits.iter().all(|bit| *bit) == (work == Work::Test);
            return Ok(Some(bits?.chunks(functions).map(all).collect()));
        };
        let arguments = [&arguments, offsets].concat();
        let expire = if work == Work::Set {
            self.expire_commands()
        } else {
            Vec::new()
        };
        match self.run(connection, script, &arguments, &expire).await? {
            Value::Int(0) if matches!(self.kept, Kept::Configured { .. }) => Ok(None),
            reply => self
                .answers(connection, script, reply, offsets.len() / functions)
                .map(Some),
        }
    }

    /// The commands after an insert that set the time to live of the filter's Redis keys.
    fn expire_commands(&self) -> Vec<Cmd> {
        let expire = |after| self.keys().into_iter().map(move |key| expire_command(key, after));
        self.expire.into_iter().flat_map(expire).collect()
    }

    /// Writes the configuration, if there is none; returns whether there was none.
    pub(super) async fn configure(&self, connection: &mut impl Connection) -> Result<bool, BitmapError> {
        let Kept::Configured {
            key,
            config,
            expected,
            rate,
        } = &self.kept
        else {
            return Ok(false);
        };
        let numbers = [self.layout.bits.to_string(), self.layout.functions.to_string()];
        let values = [&numbers[0], &numbers[1], expected, rate];
        let fields: Vec<&str> = CONFIGURATION
            .into_iter()
            .zip(values)
            .flat_map(|(name, value)| [name, value])
            .collect();
        let mut talk = self.talk(connection);
        let keys: [&[u8]; 2] = [key, config];
        let reply = talk.run(&connection::CONFIGURE, &keys, &fields, &[]).await?;
        let reply = self.checked_script(reply)?;
        self.talk(connection).bit(connection::CONFIGURE.name, &reply)
    }

    /// The filter that a configuration on the server describes, if there is one.
    pub(super) async fn open(connection: &mut impl Connection, name: &[u8]) -> Result<Option<Self>, BitmapError> {
        let config = config_of(name);
        let mut talk = Talk {
            connection,
            key: &config,
        };
        let mut command = redis::cmd("HMGET");
        command.arg(&config).arg(&CONFIGURATION);
        let (reply, has_bitmap) = talk.send_beside(command, name).await?;
        let bad = |reply: &Value| talk.unexpected("HMGET", reply);
        let Value::Array(values) = &reply else {
            return Err(bad(&reply));
        };
        if values.iter().all(|value| *value == Value::Nil) {
            return if has_bitmap {
                Err(unconfigured(name, &config))
            } else {
                Ok(None)
            };
        }
        let text = |i: usize| match values.get(i) {
            Some(Value::BulkString(text)) => str::from_utf8(text).map_err(|_| bad(&reply)),
            _ => Err(bad(&reply)),
        };
        let bits = text(0)?.parse().map_err(|_| bad(&reply))?;
        let functions = text(1)?.parse().map_err(|_| bad(&reply))?;
        let layout = BitmapLayout::redisson_of(bits, functions).map_err(|_| bad(&reply))?;
        let (expected, rate) = (text(2)?.into(), text(3)?.into());
        Ok(Some(Self {
            layout,
            kept: Kept::Configured {
                key: name.into(),
                config,
                expected,
                rate,
            },
            expire: None,
        }))
    }

    /// Fails if the filter has a configuration with other numbers.
    async fn check_configuration(&self, connection: &mut impl Connection) -> Result<(), BitmapError> {
        let BitmapLayout { bits, functions, .. } = self.layout;
        let Kept::Configured { .. } = self.kept else {
            return Ok(());
        };
        let found = Self::open(connection, self.name()).await?;
        match found.map(|found| (found.layout.bits, found.layout.functions)) {
            Some(other) if other != (bits, functions) => Err(self.other_configuration(&numbers(other.0, other.1))),
            _ => Ok(()),
        }
    }

    /// The Redis key of the configuration.
    fn config(&self) -> &[u8] {
        match &self.kept {
            Kept::Configured { config, .. } => config,
            _ => self.name(),
        }
    }

    pub(super) fn no_text(&self) -> BitmapError {
        let key = lossy(self.name());
        BitmapError(Report::other(format!(
            "a key for {key:?} is not UTF-8, but its layout hashes characters"
        )))
    }

    fn no_cursor(&self, cursor: &[u8]) -> BitmapError {
        let (key, bitmap) = (lossy(cursor), lossy(&self.bitmap_key(1)));
        BitmapError(Report::other(format!(
            "the cursor {key:?} is missing, and there is a bitmap {bitmap:?}: set the cursor to the number of the last bitmap, or delete the bitmaps"
        )))
    }

    fn unconfigured(&self) -> BitmapError {
        unconfigured(self.name(), self.config())
    }

    fn other_configuration(&self, found: &str) -> BitmapError {
        let wanted = numbers(self.layout.bits, self.layout.functions);
        let key = lossy(self.config());
        let text = format!("the configuration {key:?} says {found}, and the caller {wanted}");
        BitmapError(Report::new(Kind::Configuration, text))
    }

    /// The script's answers, one for each key.
    fn answers(
        &self,
        connection: &mut impl Connection,
        script: &Script,
        reply: Value,
        keys: usize,
    ) -> Result<Vec<bool>, BitmapError> {
        let talk = self.talk(connection);
        match reply {
            Value::Array(answers) if answers.len() == keys => {
                answers.iter().map(|answer| talk.bit(script.name, answer)).collect()
            }
            other => Err(talk.unexpected(script.name, other)),
        }
    }

    /// Runs a script on the filter's Redis keys.
    async fn run(
        &self,
        connection: &mut impl Connection,
        script: &Script,
        arguments: &[u64],
        then: &[Cmd],
    ) -> Result<Value, BitmapError> {
        let reply = self
            .talk(connection)
            .run(script, &self.script_keys(), arguments, then)
            .await?;
        self.checked_script(reply)
    }

    /// The reply of a script. That of a growing filter replies a bad cursor as it is, and that of
    /// one with a configuration what the configuration says, or that a bitmap lacks it.
    fn checked_script(&self, reply: Value) -> Result<Value, BitmapError> {
        match (&self.kept, reply) {
            (Kept::Configured { .. }, Value::Int(-1)) => Err(self.unconfigured()),
            (Kept::Configured { .. }, Value::BulkString(found)) => {
                Err(self.other_configuration(&lossy(&found[..found.len().min(80)])))
            }
            (Kept::Growing { cursor, .. }, Value::Int(-1)) => Err(self.no_cursor(cursor)),
            (Kept::Growing { cursor, .. }, Value::BulkString(value)) => Err(bad_cursor(cursor, &value)),
            (_, reply) => Ok(reply),
        }
    }

    pub(super) async fn remove(&self, connection: &mut impl Connection) -> Result<(), BitmapError> {
        let removed = match &self.kept {
            Kept::Growing { .. } => {
                let arguments = [GREATEST_CURSOR, self.layout.bits];
                self.run(connection, &connection::CLEAR_GROWING, &arguments, &[])
                    .await?
            }
            _ => {
                let mut pipeline = redis::pipe();
                pipeline.cmd("UNLINK").arg(self.keys());
                self.talk(connection).send(pipeline).await?.pop().unwrap_or_default()
            }
        };
        self.talk(connection).integer("UNLINK", &removed).map(|_| ())
    }

    pub(super) async fn let_expire(
        &self,
        connection: &mut impl Connection,
        after: Duration,
    ) -> Result<bool, BitmapError> {
        let after = milliseconds(after);
        let expiring = match &self.kept {
            Kept::Growing { .. } => {
                let arguments = [GREATEST_CURSOR, after];
                Vec::from([self
                    .run(connection, &connection::EXPIRE_GROWING, &arguments, &[])
                    .await?])
            }
            _ => {
                let mut pipeline = redis::pipe();
                for key in self.keys() {
                    pipeline.add_command(expire_command(key, after));
                }
                self.talk(connection).send(pipeline).await?
            }
        };
        let talk = self.talk(connection);
        let expiring = expiring.iter().map(|reply| talk.integer("PEXPIRE", reply));
        Ok(expiring.sum::<Result<i64, _>>()? > 0)
    }

    /// Gives the filter's Redis keys the names of those of `to`; returns whether there were any.
    pub(super) async fn give_name(&self, connection: &mut impl Connection, to: &Self) -> Result<bool, BitmapError> {
        if self.layout == to.layout {
            // Part of a filter is not renamed.
            self.check_configuration(connection).await?;
        }
        let mut talk = self.talk(connection);
        let renamed = match (&self.kept, &to.kept) {
            _ if self.layout != to.layout => None,
            (
                Kept::Growing { base, cursor },
                Kept::Growing {
                    base: new_base,
                    cursor: new_cursor,
                },
            ) => {
                let keys: [&[u8]; 4] = [cursor, base, new_cursor, new_base];
                let reply = talk
                    .run(&connection::RENAME_GROWING, &keys, &[GREATEST_CURSOR], &[])
                    .await?;
                Some(self.checked_script(reply)?)
            }
            _ if self.keys().len() != to.keys().len() => None,
            _ => {
                let pairs = self.keys().into_iter().zip(to.keys());
                let keys: Vec<&[u8]> = pairs.flat_map(|(old, new)| [old, new]).collect();
                Some(talk.run(&connection::RENAME, &keys, &[0u64; 0], &[]).await?)
            }
        };
        match renamed {
            Some(renamed) => Ok(talk.integer("RENAME", &renamed)? > 0),
            None => Err(BitmapError(Report::other(format!(
                "{:?} has a layout that differs from that of the new filter",
                lossy(self.name())
            )))),
        }
    }

    /// The number of keys that set as many bits in the mean as are set.
    pub(super) async fn estimate(&self, connection: &mut impl Connection) -> Result<u64, BitmapError> {
        let mut pipeline = redis::pipe();
        for number in 0..self.bitmaps(connection).await? {
            pipeline.cmd("BITCOUNT").arg(self.bitmap_key(number as usize));
        }
        let mut talk = self.talk(connection);
        let mut keys = 0u64;
        for ones in talk.send(pipeline).await? {
            let ones = talk.integer("BITCOUNT", &ones)?;
            keys = keys.saturating_add(self.layout.keys_for(ones as u64));
        }
        Ok(keys)
    }

    /// The number of bitmaps, at least one. Fails if the filter has another configuration.
    pub(crate) async fn bitmaps(&self, connection: &mut impl Connection) -> Result<u64, BitmapError> {
        let cursor = match &self.kept {
            Kept::Piped { .. } | Kept::Scripted { .. } => return Ok(1),
            Kept::Configured { .. } => return self.check_configuration(connection).await.map(|()| 1),
            Kept::Growing { cursor, .. } => cursor,
        };
        let mut command = redis::cmd("GET");
        command.arg(cursor);
        let mut talk = self.talk(connection);
        let (reply, has_grown) = talk.send_beside(command, &self.bitmap_key(1)).await?;
        match reply {
            Value::Nil if has_grown => Err(self.no_cursor(cursor)),
            Value::Nil => Ok(1),
            Value::BulkString(value) => {
                let digits = value.iter().all(u8::is_ascii_digit);
                let number = str::from_utf8(&value).ok().filter(|_| digits);
                match number.and_then(|number| number.parse::<u64>().ok()) {
                    Some(number) if number <= GREATEST_CURSOR => Ok(number + 1),
                    _ => Err(bad_cursor(cursor, &value)),
                }
            }
            other => Err(talk.unexpected("GET", other)),
        }
    }

    /// The most bitmaps that there can be.
    pub(crate) fn most_bitmaps(&self) -> u64 {
        match self.kept {
            Kept::Piped { .. } | Kept::Scripted { .. } | Kept::Configured { .. } => 1,
            Kept::Growing { .. } => GREATEST_CURSOR + 1,
        }
    }

    /// The key of the bitmap of this number.
    pub(crate) fn bitmap_key(&self, number: usize) -> Vec<u8> {
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } | Kept::Configured { key, .. } => key.clone(),
            Kept::Growing { base, .. } => [base, format!("-{number}").as_bytes()].concat(),
        }
    }
}

fn numbers(bits: u64, functions: u8) -> String {
    format!("{bits} bits and {functions} hash functions")
}

fn unconfigured(name: &[u8], config: &[u8]) -> BitmapError {
    let (key, config) = (lossy(name), lossy(config));
    let text = format!(
        "the bitmap {key:?} has no configuration {config:?}, so it is a part of a filter that is gone: `clear` removes it"
    );
    BitmapError(Report::new(Kind::Unconfigured, text))
}

fn expire_command(key: &[u8], after: u64) -> Cmd {
    let mut command = redis::cmd("PEXPIRE");
    command.arg(key).arg(after);
    command
}

fn bad_cursor(key: &[u8], value: &[u8]) -> BitmapError {
    // Long enough for any number. The error does not quote the rest of anything else.
    let (key, cursor) = (lossy(key), lossy(&value[..value.len().min(40)]));
    BitmapError(Report::other(format!(
        "the cursor {key:?} is {cursor:?}, which is not a number in 0 to {GREATEST_CURSOR}"
    )))
}
