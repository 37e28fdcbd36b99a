//! The commands of [`RedisBitmap`], over any connection: keys to offsets, offsets to commands,
//! replies to answers.

use super::{Kept, Work, milliseconds};
use crate::RedisBitmap;
use crate::answers::pass_on;
use crate::connection::{self, Connection, Script, Talk, lossy};
use crate::error::{BitmapError, Kind, Report};
use crate::layout::{BitmapLayout, config_of};
use lanebloom::{Answers, Funnel, Statistics};
use redis::{Pipeline, ToRedisArgs, Value};
use std::time::Duration;
use std::{mem, ptr};

/// The offsets that one round trip sends, if a key has not more of them. A server that does nothing
/// else meanwhile takes a microsecond for each (Redis 7.0, in Lua), so that other clients wait
/// about one millisecond.
const OFFSETS_PER_TRIP: usize = 1024;
/// The greatest cursor of a growing filter that is believed. (A lookup takes all bitmaps up to it.)
const GREATEST_CURSOR: u64 = 1023;
/// How often an insert is sent to a server that has lost the script or the configuration again.
const ATTEMPTS: usize = 5;
/// The fields of a configuration of Redisson's.
const CONFIGURATION: [&str; 4] = ["size", "hashIterations", "expectedInsertions", "falseProbability"];

/// Keys of one filter on their way.
struct FilterKeys<'a> {
    filter: &'a RedisBitmap,
    /// The places of the keys in the batch.
    places: Vec<usize>,
    /// The offsets of their bits, key by key.
    offsets: Vec<u64>,
    /// Whether the server needs the whole script.
    whole: bool,
}

/// Does this work on each filter's key, in order, and passes the answers on. Returns how many are
/// true.
pub(super) async fn work_on<'a, K: Funnel + 'a>(
    connection: &mut impl Connection,
    work: Work,
    pairs: impl ExactSizeIterator<Item = (&'a RedisBitmap, &'a K)>,
    out: impl Answers,
) -> Result<usize, BitmapError> {
    out.check_room(pairs.len());
    let mut answers = vec![false; pairs.len()];
    let done = work_flagged(connection, work, pairs, &mut answers).await;
    // The keys of the round trips before an error are inserted, and no later call reports them as
    // new. A lookup can be repeated, and false for a key that was not looked up would be wrong.
    if done.is_ok() || work == Work::Set {
        pass_on(&answers, out);
    }
    done?;
    Ok(answers.into_iter().filter(|answer| *answer).count())
}

pub(super) fn each<'a, K>(
    pairs: &'a [(&'a RedisBitmap, K)],
) -> impl ExactSizeIterator<Item = (&'a RedisBitmap, &'a K)> {
    pairs.iter().map(|(filter, key)| (*filter, key))
}

/// Does this work on each filter's key, in order, and writes the answers to the same places of
/// `out`, which are false before.
async fn work_flagged<'a, K: Funnel + 'a>(
    connection: &mut impl Connection,
    work: Work,
    pairs: impl Iterator<Item = (&'a RedisBitmap, &'a K)>,
    out: &mut [bool],
) -> Result<(), BitmapError> {
    let (mut trip, mut size) = (Vec::<FilterKeys<'_>>::new(), 0);
    for (place, (filter, key)) in pairs.enumerate() {
        let mut offsets = Vec::with_capacity(filter.layout.functions.into());
        if !filter.layout.offsets(key, &mut offsets) {
            if work == Work::Set {
                return Err(filter.no_text());
            }
            continue;
        }
        if size + offsets.len() > OFFSETS_PER_TRIP {
            send(connection, work, mem::take(&mut trip), out).await?;
            size = 0;
        }
        size += offsets.len();
        match trip.last_mut() {
            Some(last) if ptr::eq(last.filter, filter) => {
                last.places.push(place);
                last.offsets.append(&mut offsets);
            }
            _ => trip.push(FilterKeys {
                filter,
                places: Vec::from([place]),
                offsets,
                whole: false,
            }),
        }
    }
    send(connection, work, trip, out).await
}

/// Sends the keys of a round trip in one pipeline. Sends those again for which the server had no
/// script, or no configuration.
async fn send(
    connection: &mut impl Connection,
    work: Work,
    mut trip: Vec<FilterKeys<'_>>,
    out: &mut [bool],
) -> Result<(), BitmapError> {
    for attempt in 0.. {
        let Some(first) = trip.first() else { break };
        let key = &*first.filter.key;
        if attempt == ATTEMPTS {
            let problem = format_args!("no script, or no configuration, after {ATTEMPTS} attempts");
            return Err(Talk { connection, key }.unexpected("EVALSHA", problem).into());
        }
        let mut pipeline = redis::pipe();
        let mut lens = Vec::with_capacity(trip.len());
        for keys in &trip {
            let before = pipeline.len();
            keys.add_commands(connection, work, &mut pipeline);
            lens.push(pipeline.len() - before);
        }
        let replies = Talk { connection, key }.try_send(&mut pipeline).await?;
        let (mut replies, mut again) = (replies.into_iter(), Vec::new());
        for (mut keys, len) in trip.into_iter().zip(lens) {
            let replies = replies.by_ref().take(len).collect();
            if !keys.take(connection, work, replies, out).await? {
                again.push(keys);
            }
        }
        trip = again;
    }
    Ok(())
}

impl FilterKeys<'_> {
    fn add_commands(&self, connection: &impl Connection, work: Work, pipeline: &mut Pipeline) {
        let filter = self.filter;
        if let Some((script, arguments)) = filter.script(connection, work) {
            let arguments = [&arguments, &*self.offsets].concat();
            pipeline.add_command(script.call(self.whole, &filter.keys(), &arguments));
        } else {
            for offset in &self.offsets {
                let command = pipeline.cmd(work.command()).arg(&filter.key).arg(offset);
                if work == Work::Set {
                    command.arg(1);
                }
            }
        }
        // (The script of a growing filter does it itself.)
        if work == Work::Set
            && let Some(after) = filter.expire
            && !matches!(filter.kept, Kept::Growing { .. })
        {
            filter.add_expiry(after, pipeline);
        }
    }

    /// Takes the replies to [`add_commands`](Self::add_commands). Returns false if the commands
    /// have to be sent again.
    async fn take(
        &mut self,
        connection: &mut impl Connection,
        work: Work,
        replies: Vec<Value>,
        out: &mut [bool],
    ) -> Result<bool, BitmapError> {
        let filter = self.filter;
        let script = filter.script(connection, work);
        if script.is_some() && replies.first().is_some_and(Script::is_unknown) {
            self.whole = true;
            return Ok(false);
        }
        let talk = filter.talk(connection);
        let replies: Result<Vec<Value>, _> = replies.into_iter().map(|reply| talk.checked(reply)).collect();
        let mut replies = replies?;
        let answers: Result<Vec<bool>, _> = if let Some((script, _)) = script {
            match filter.checked_script(replies.swap_remove(0))? {
                // There is no configuration, so no filter.
                Value::Int(0) if matches!(filter.kept, Kept::Configured { .. }) => {
                    if work == Work::Set {
                        // The filter may expire before it is sent again. Then it is made again.
                        filter.configure(connection).await?;
                    }
                    return Ok(work == Work::Test);
                }
                Value::Array(answers) if answers.len() == self.places.len() => {
                    answers.iter().map(|answer| talk.bit(script.name, answer)).collect()
                }
                other => return Err(talk.unexpected(script.name, other).into()),
            }
        } else {
            let bit = |reply| talk.bit(work.command(), reply);
            let bits = replies.iter().take(self.offsets.len()).map(bit);
            let bits: Vec<bool> = bits.collect::<Result<_, _>>()?;
            // `SETBIT` replies what the bit was.
            let all = |bits: &[bool]| bits.iter().all(|bit| *bit) == (work == Work::Test);
            Ok(bits.chunks(filter.layout.functions.into()).map(all).collect())
        };
        for (place, answer) in self.places.iter().zip(answers?) {
            out[*place] = answer;
        }
        Ok(true)
    }
}

impl RedisBitmap {
    pub(super) async fn work<K: Funnel>(
        &self,
        connection: &mut impl Connection,
        work: Work,
        keys: &[K],
        out: impl Answers,
    ) -> Result<usize, BitmapError> {
        work_on(connection, work, keys.iter().map(|key| (self, key)), out).await
    }

    pub(super) async fn work_one<K: Funnel + ?Sized>(
        &self,
        connection: &mut impl Connection,
        work: Work,
        key: &K,
    ) -> Result<bool, BitmapError> {
        Ok(self.work(connection, work, &[key], ()).await? == 1)
    }

    /// The Redis keys, as scripts take them. Those of a filter that grows are the cursor and the
    /// beginning of its bitmaps' keys.
    fn keys(&self) -> Vec<&[u8]> {
        match &self.kept {
            Kept::Piped | Kept::Scripted => Vec::from([&*self.key]),
            Kept::Configured { config, .. } => Vec::from([&*self.key, config]),
            Kept::Growing { cursor } => Vec::from([&**cursor, &self.key]),
        }
    }

    /// Adds the commands by which the keys of a filter that does not grow expire.
    fn add_expiry(&self, after: u64, pipeline: &mut Pipeline) {
        for key in self.keys() {
            pipeline.cmd("PEXPIRE").arg(key).arg(after);
        }
    }

    pub(super) fn talk<'a, C: Connection>(&'a self, connection: &'a mut C) -> Talk<'a, C> {
        Talk {
            connection,
            key: &self.key,
        }
    }

    /// The script that does this work, with its first arguments. (The others are offsets.)
    fn script(&self, connection: &impl Connection, work: Work) -> Option<(&'static Script, Vec<u64>)> {
        let functions = u64::from(self.layout.functions);
        let (test, set, arguments) = match &self.kept {
            Kept::Piped if connection.pipelines() => return None,
            Kept::Piped | Kept::Scripted => (&connection::TEST, &connection::SET, Vec::from([functions])),
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

    /// Writes the configuration, if there is none; returns whether there was none.
    pub(super) async fn configure(&self, connection: &mut impl Connection) -> Result<bool, BitmapError> {
        let Kept::Configured { expected, rate, .. } = &self.kept else {
            return Ok(false);
        };
        let numbers = [self.layout.bits.to_string(), self.layout.functions.to_string()];
        let values = [&numbers[0], &numbers[1], expected, rate];
        let fields: Vec<&str> = CONFIGURATION
            .into_iter()
            .zip(values)
            .flat_map(|(name, value)| [name, value])
            .collect();
        let reply = self
            .run(connection, &connection::CONFIGURE, &self.keys(), &fields)
            .await?;
        Ok(self.talk(connection).bit(connection::CONFIGURE.name, &reply)?)
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
        let (reply, has_bitmap) = talk.ask_beside(command, name).await?;
        let bad = |reply: &Value| BitmapError::from(talk.unexpected("HMGET", reply));
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
            key: name.into(),
            kept: Kept::Configured { config, expected, rate },
            expire: None,
        }))
    }

    /// Fails if the filter has a configuration with other numbers.
    async fn check_configuration(&self, connection: &mut impl Connection) -> Result<(), BitmapError> {
        let Kept::Configured { config, .. } = &self.kept else {
            return Ok(());
        };
        match Self::open(connection, &self.key).await? {
            Some(found) if found.layout != self.layout => {
                Err(self.other_configuration(config, &numbers(&found.layout)))
            }
            _ => Ok(()),
        }
    }

    fn no_text(&self) -> BitmapError {
        let key = lossy(&self.key);
        BitmapError::other(format!(
            "a key for {key:?} is not UTF-8, but its layout hashes characters"
        ))
    }

    fn no_cursor(&self, cursor: &[u8]) -> BitmapError {
        let (key, bitmap) = (lossy(cursor), lossy(&self.bitmap_key(1)));
        BitmapError::other(format!(
            "the cursor {key:?} is missing, and there is a bitmap {bitmap:?}: set the cursor to the number of the last bitmap, or delete the bitmaps"
        ))
    }

    fn other_configuration(&self, config: &[u8], found: &str) -> BitmapError {
        let (key, wanted) = (lossy(config), numbers(&self.layout));
        let text = format!("the configuration {key:?} says {found}, and the caller {wanted}");
        Report::new(Kind::Configuration, text).into()
    }

    async fn run(
        &self,
        connection: &mut impl Connection,
        script: &Script,
        keys: &[&[u8]],
        arguments: &[impl ToRedisArgs],
    ) -> Result<Value, BitmapError> {
        let reply = self.talk(connection).run(script, keys, arguments).await?;
        self.checked_script(reply)
    }

    /// The reply of a script. That of a growing filter replies a bad cursor as it is, and that of
    /// one with a configuration what the configuration says, or that a bitmap lacks it.
    fn checked_script(&self, reply: Value) -> Result<Value, BitmapError> {
        match (&self.kept, reply) {
            (Kept::Configured { config, .. }, Value::Int(-1)) => Err(unconfigured(&self.key, config)),
            (Kept::Configured { config, .. }, Value::BulkString(found)) => {
                Err(self.other_configuration(config, &lossy(&found[..found.len().min(80)])))
            }
            (Kept::Growing { cursor }, Value::Int(-1)) => Err(self.no_cursor(cursor)),
            (Kept::Growing { cursor }, Value::BulkString(value)) => Err(bad_cursor(cursor, &value)),
            (_, reply) => Ok(reply),
        }
    }

    pub(super) async fn remove(&self, connection: &mut impl Connection) -> Result<(), BitmapError> {
        let removed = match &self.kept {
            Kept::Growing { .. } => {
                let arguments = [GREATEST_CURSOR, self.layout.bits];
                self.run(connection, &connection::CLEAR_GROWING, &self.keys(), &arguments)
                    .await?
            }
            _ => {
                let command = redis::cmd("UNLINK").arg(self.keys()).take();
                self.talk(connection).ask(command).await?
            }
        };
        self.talk(connection).integer("UNLINK", &removed)?;
        Ok(())
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
                let script = &connection::EXPIRE_GROWING;
                Vec::from([self.run(connection, script, &self.keys(), &arguments).await?])
            }
            _ => {
                let mut pipeline = redis::pipe();
                self.add_expiry(after, &mut pipeline);
                self.talk(connection).send(pipeline).await?
            }
        };
        let talk = self.talk(connection);
        let expiring = expiring.iter().map(|reply| talk.integer("PEXPIRE", reply));
        Ok(expiring.sum::<Result<i64, _>>()? > 0)
    }

    /// Gives the filter's Redis keys the names of those of `to`; returns whether there were any.
    pub(super) async fn give_name(&self, connection: &mut impl Connection, to: &Self) -> Result<bool, BitmapError> {
        let (old, new) = (self.keys(), to.keys());
        if self.layout != to.layout || old.len() != new.len() {
            return Err(BitmapError::other(format!(
                "{:?} has a layout that differs from that of the new filter",
                lossy(&self.key)
            )));
        }
        // Part of a filter is not renamed.
        self.check_configuration(connection).await?;
        let renamed = match &self.kept {
            Kept::Growing { .. } => {
                let (script, keys) = (&connection::RENAME_GROWING, [old, new].concat());
                self.run(connection, script, &keys, &[GREATEST_CURSOR]).await?
            }
            _ => {
                let keys: Vec<&[u8]> = old.into_iter().zip(new).flat_map(<[_; 2]>::from).collect();
                self.run(connection, &connection::RENAME, &keys, &[0_u64; 0]).await?
            }
        };
        Ok(self.talk(connection).integer("RENAME", &renamed)? > 0)
    }

    pub(super) async fn count(&self, connection: &mut impl Connection) -> Result<Statistics, BitmapError> {
        let mut pipeline = redis::pipe();
        for number in 0..self.bitmaps(connection).await? {
            pipeline.cmd("BITCOUNT").arg(self.bitmap_key(number as usize));
        }
        let mut talk = self.talk(connection);
        let replies = talk.send(pipeline).await?;
        let ones = replies.iter().map(|ones| Ok(talk.integer("BITCOUNT", ones)? as u64));
        let ones: Vec<u64> = ones.collect::<Result<_, Report>>()?;
        Ok(self.layout.statistics(ones))
    }

    /// The number of bitmaps, at least one. Fails if the filter has another configuration.
    pub(crate) async fn bitmaps(&self, connection: &mut impl Connection) -> Result<u64, BitmapError> {
        let cursor = match &self.kept {
            Kept::Piped | Kept::Scripted => return Ok(1),
            Kept::Configured { .. } => return self.check_configuration(connection).await.map(|()| 1),
            Kept::Growing { cursor } => cursor,
        };
        let mut command = redis::cmd("GET");
        command.arg(cursor);
        let mut talk = self.talk(connection);
        let (reply, has_grown) = talk.ask_beside(command, &self.bitmap_key(1)).await?;
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
            other => Err(talk.unexpected("GET", other).into()),
        }
    }

    /// The most bitmaps that there can be.
    pub(crate) fn most_bitmaps(&self) -> u64 {
        match self.kept {
            Kept::Growing { .. } => GREATEST_CURSOR + 1,
            _ => 1,
        }
    }

    /// The key of the bitmap of this number.
    pub(crate) fn bitmap_key(&self, number: usize) -> Vec<u8> {
        match &self.kept {
            Kept::Growing { .. } => [&self.key, format!("-{number}").as_bytes()].concat(),
            _ => self.key.clone(),
        }
    }
}

fn numbers(layout: &BitmapLayout) -> String {
    let BitmapLayout { bits, functions, .. } = layout;
    format!("{bits} bits and {functions} hash functions")
}

fn unconfigured(name: &[u8], config: &[u8]) -> BitmapError {
    let (key, config) = (lossy(name), lossy(config));
    let text = format!(
        "the bitmap {key:?} has no configuration {config:?}, so it is a part of a filter that is gone: `clear` removes it"
    );
    Report::new(Kind::Unconfigured, text).into()
}

fn bad_cursor(key: &[u8], value: &[u8]) -> BitmapError {
    // Long enough for any number. The error does not quote the rest of anything else.
    let (key, cursor) = (lossy(key), lossy(&value[..value.len().min(40)]));
    BitmapError::other(format!(
        "the cursor {key:?} is {cursor:?}, which is not a number in 0 to {GREATEST_CURSOR}"
    ))
}
