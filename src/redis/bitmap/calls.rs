//! The commands of [`RedisBitmap`], over any link: keys to offsets, offsets to commands, replies to
//! answers.

use super::{Kept, milliseconds};
use crate::funnel::Funnel;
use crate::hash::assert_same_length;
use crate::redis::RedisBitmap;
use crate::redis::error::{BitmapError, BitmapErrorKind};
use crate::redis::link::{self, Link, Script, Talk, lossy};
use alloc::format;
use alloc::vec::Vec;
use core::slice;
use core::time::Duration;
use redis::{Cmd, Value};

/// The offsets that one round trip sends, if a key has not more of them. A server that does nothing
/// else meanwhile takes a microsecond for each (Redis 7.0, in Lua), so that other clients wait
/// about one millisecond.
const OFFSETS_PER_TRIP: usize = 1024;
/// The greatest cursor of a growing filter that is believed. (A lookup takes all bitmaps up to it.)
const GREATEST_CURSOR: u64 = 1023;

impl RedisBitmap {
    pub(super) async fn test_one<K: Funnel + ?Sized>(
        &self,
        link: &mut impl Link,
        key: &K,
    ) -> Result<bool, BitmapError> {
        let mut found = false;
        self.test_all(link, slice::from_ref(&key), slice::from_mut(&mut found))
            .await?;
        Ok(found)
    }

    pub(super) async fn set_one<K: Funnel + ?Sized>(&self, link: &mut impl Link, key: &K) -> Result<bool, BitmapError> {
        Ok(self.set_all(link, slice::from_ref(&key), None).await? == 1)
    }

    pub(super) async fn test_all<K: Funnel>(
        &self,
        link: &mut impl Link,
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
            let mut answers = self.test(link, offsets).await?.into_iter();
            for found in out.iter_mut().filter(|placed| **placed) {
                *found = answers.next().unwrap_or_default();
            }
        }
        Ok(())
    }

    pub(super) async fn set_all<K: Funnel>(
        &self,
        link: &mut impl Link,
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
                return Err(BitmapError(BitmapErrorKind::NoText {
                    key: lossy(self.name()),
                }));
            }
            let answers = self.set(link, offsets).await?;
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
    pub(in crate::redis) fn name(&self) -> &[u8] {
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => key,
            Kept::Growing { base, .. } => base,
        }
    }

    pub(super) fn talk<'a, L: Link>(&'a self, link: &'a mut L) -> Talk<'a, L> {
        Talk { link, key: self.name() }
    }

    /// Whether all bits of each key are set.
    async fn test(&self, link: &mut impl Link, offsets: Vec<u64>) -> Result<Vec<bool>, BitmapError> {
        let functions = self.layout.functions;
        match &self.kept {
            Kept::Piped { key } => {
                let mut pipeline = redis::pipe();
                for offset in &offsets {
                    pipeline.cmd("GETBIT").arg(key).arg(offset);
                }
                let set = self.bits(link, "GETBIT", pipeline).await?;
                Ok(set
                    .chunks(functions.into())
                    .map(|bits| bits.iter().all(|set| *set))
                    .collect())
            }
            Kept::Scripted { .. } => self.ask(link, &link::TEST, &[functions.into()], offsets, None).await,
            Kept::Growing { .. } => {
                let arguments = [GREATEST_CURSOR, functions.into()];
                self.ask(link, &link::TEST_GROWING, &arguments, offsets, None).await
            }
        }
    }

    /// Sets all bits of each key; answers whether one of them was not set.
    async fn set(&self, link: &mut impl Link, offsets: Vec<u64>) -> Result<Vec<bool>, BitmapError> {
        let functions = self.layout.functions;
        match &self.kept {
            Kept::Piped { key } => {
                let mut pipeline = redis::pipe();
                for offset in &offsets {
                    pipeline.cmd("SETBIT").arg(key).arg(offset).arg(1);
                }
                if let Some(expire) = self.expire_command(key) {
                    pipeline.add_command(expire);
                }
                let mut before = self.bits(link, "SETBIT", pipeline).await?;
                before.truncate(offsets.len());
                Ok(before
                    .chunks(functions.into())
                    .map(|bits| bits.iter().any(|set| !set))
                    .collect())
            }
            Kept::Scripted { key } => {
                let expire = self.expire_command(key);
                self.ask(link, &link::SET, &[functions.into()], offsets, expire).await
            }
            Kept::Growing { .. } => {
                let expire = self.expire.unwrap_or(0);
                let arguments = [GREATEST_CURSOR, functions.into(), self.layout.bits, expire];
                self.ask(link, &link::SET_GROWING, &arguments, offsets, None).await
            }
        }
    }

    fn expire_command(&self, key: &[u8]) -> Option<Cmd> {
        self.expire.map(|after| {
            let mut command = redis::cmd("PEXPIRE");
            command.arg(key).arg(after);
            command
        })
    }

    /// The bits that the server replies to a pipeline of `command`s; none for no commands.
    async fn bits(
        &self,
        link: &mut impl Link,
        command: &'static str,
        pipeline: redis::Pipeline,
    ) -> Result<Vec<bool>, BitmapError> {
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        let mut talk = self.talk(link);
        let replies = talk.send(pipeline).await?;
        replies.iter().map(|reply| talk.bit(command, reply)).collect()
    }

    /// The script's answer for each key; none for no keys.
    async fn ask(
        &self,
        link: &mut impl Link,
        script: &Script,
        arguments: &[u64],
        offsets: Vec<u64>,
        then: Option<Cmd>,
    ) -> Result<Vec<bool>, BitmapError> {
        let keys = offsets.len() / usize::from(self.layout.functions);
        if keys == 0 {
            return Ok(Vec::new());
        }
        let arguments = [arguments, &offsets].concat();
        match self.run(link, script, &arguments, then).await? {
            Value::Array(answers) if answers.len() == keys => {
                let talk = self.talk(link);
                answers.iter().map(|answer| talk.bit(script.name, answer)).collect()
            }
            other => Err(self.talk(link).unexpected(script.name, other)),
        }
    }

    /// Runs a script on the filter's Redis keys. The script of a growing filter replies a bad
    /// cursor as it is.
    async fn run(
        &self,
        link: &mut impl Link,
        script: &Script,
        arguments: &[u64],
        then: Option<Cmd>,
    ) -> Result<Value, BitmapError> {
        let mut talk = self.talk(link);
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => talk.run(script, &[key], arguments, then).await,
            Kept::Growing { base, cursor } => match talk.run(script, &[cursor, base], arguments, then).await? {
                Value::BulkString(value) => Err(bad_cursor(cursor, &value)),
                reply => Ok(reply),
            },
        }
    }

    pub(super) async fn remove(&self, link: &mut impl Link) -> Result<(), BitmapError> {
        let removed = match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => {
                let mut pipeline = redis::pipe();
                pipeline.cmd("UNLINK").arg(key);
                self.talk(link).send(pipeline).await?.pop().unwrap_or_default()
            }
            Kept::Growing { .. } => {
                let arguments = [GREATEST_CURSOR, self.layout.bits];
                self.run(link, &link::CLEAR_GROWING, &arguments, None).await?
            }
        };
        self.talk(link).integer("UNLINK", &removed).map(|_| ())
    }

    pub(super) async fn let_expire(&self, link: &mut impl Link, after: Duration) -> Result<bool, BitmapError> {
        let after = milliseconds(after);
        let expiring = match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => {
                let mut pipeline = redis::pipe();
                pipeline.cmd("PEXPIRE").arg(key).arg(after);
                self.talk(link).send(pipeline).await?.pop().unwrap_or_default()
            }
            Kept::Growing { .. } => {
                self.run(link, &link::EXPIRE_GROWING, &[GREATEST_CURSOR, after], None)
                    .await?
            }
        };
        Ok(self.talk(link).integer("PEXPIRE", &expiring)? > 0)
    }

    /// The number of bitmaps, at least one.
    pub(in crate::redis) async fn bitmaps(&self, link: &mut impl Link) -> Result<u64, BitmapError> {
        let Kept::Growing { cursor, .. } = &self.kept else {
            return Ok(1);
        };
        let mut pipeline = redis::pipe();
        pipeline.cmd("GET").arg(cursor);
        let mut talk = self.talk(link);
        match talk.send(pipeline).await?.pop().unwrap_or_default() {
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
    pub(in crate::redis) fn most_bitmaps(&self) -> u64 {
        match self.kept {
            Kept::Piped { .. } | Kept::Scripted { .. } => 1,
            Kept::Growing { .. } => GREATEST_CURSOR + 1,
        }
    }

    /// The key of the bitmap of this number.
    pub(in crate::redis) fn bitmap_key(&self, number: usize) -> Vec<u8> {
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => key.clone(),
            Kept::Growing { base, .. } => [base, format!("-{number}").as_bytes()].concat(),
        }
    }
}

fn bad_cursor(key: &[u8], value: &[u8]) -> BitmapError {
    BitmapError(BitmapErrorKind::Cursor {
        key: lossy(key),
        // Long enough for any number. The error does not quote the rest of anything else.
        cursor: lossy(&value[..value.len().min(40)]),
        greatest: GREATEST_CURSOR,
    })
}
