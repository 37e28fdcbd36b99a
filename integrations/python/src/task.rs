//! The loops that take many keys: columns without the interpreter, lists of Python objects with it.

use crate::bytes::Encoding;
use crate::columns::{Column, Hashing, Values};
use crate::engine::{Engine, Keys};
use crate::ffi::{self, Quick};
use crate::key::{Key, key};
use crate::numpy;
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rayon::prelude::*;
use std::ops::Range;
use std::thread;

/// Keys whose answers are made at a time.
const CHUNK: usize = 1024;

/// Keys that are inserted at a time: as many as make a batch dense in a filter of some megabytes.
/// Their hashes take 8 MiB. With 2^17, strings of Arrow took 16 ns instead of 14.
pub(crate) const BULK: usize = 1 << 20;

/// Keys of an array that a thread takes between two looks at signals: 20 to 100 ms.
const PIECE: usize = 1 << 22;

/// Keys that a thread hashes at a time, where several hash a column.
const HASHED: usize = 16 * CHUNK;

/// The hash of an object that is an `int` or a `str`, which most keys are, and quickly.
#[inline(always)]
pub(crate) fn quick_hash<E: Keys>(engine: &E, object: &Bound<'_, PyAny>) -> Option<E::Hash> {
    match ffi::quick(object) {
        Quick::Int(value) => {
            let word = value.cast_unsigned();
            engine.check(word).is_ok().then(|| engine.hash_word(word))
        }
        Quick::Text(text) if engine.integers_only().is_none() => Some(engine.hash_bytes(text)),
        _ => None,
    }
}

/// The hash of any object; [`None`] for a null that the filter's system does not hash.
#[inline(never)]
pub(crate) fn hash_object<E: Keys>(engine: &E, object: &Bound<'_, PyAny>) -> PyResult<Option<E::Hash>> {
    match key(object, E::ENCODING, &mut Vec::new())? {
        Key::Word(word) => {
            // A float is a word too.
            if let Some(why) = engine.integers_only()
                && !match numpy::scalar(object)? {
                    Some(one) => one.column().is_integers(),
                    None => object.hasattr(intern!(object.py(), "__index__"))?,
                }
            {
                return Err(PyTypeError::new_err(why));
            }
            engine.check(word)?;
            Ok(Some(engine.hash_word(word)))
        }
        Key::Bytes(bytes) => match engine.integers_only() {
            None => Ok(Some(engine.hash_bytes(bytes))),
            Some(why) => Err(PyTypeError::new_err(why)),
        },
        Key::Null => Ok(None),
    }
}

/// The task for many keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Insert them.
    Add,
    /// Insert those that are not there, and say which.
    AddNew,
    /// Look them up.
    Contains,
}

impl Task {
    /// Does it with hashes. `out` has an answer for each, or none for [`Task::Add`].
    fn by_hash<E: Engine>(self, engine: &E, hashes: &[E::Hash], out: &mut [u8]) -> PyResult<usize> {
        let mut total = 0;
        if self == Self::Add {
            return engine.insert_many(hashes);
        }
        let mut answers = [false; CHUNK];
        for (hashes, out) in hashes.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let answers = &mut answers[..hashes.len()];
            match self {
                Self::AddNew => total += engine.insert_flagged(hashes, answers)?,
                _ => engine.contains_many(hashes, answers),
            }
            for (out, &answer) in out.iter_mut().zip(&*answers) {
                *out = answer.into();
            }
        }
        Ok(total)
    }

    /// [`by_hash`](Self::by_hash) for a filter that skips nulls: they are not added, and their
    /// answers are 0.
    fn by_present<E: Engine>(
        self,
        engine: &E,
        hashes: &mut [E::Hash],
        is_null: impl Fn(usize) -> bool,
        out: &mut [u8],
    ) -> PyResult<usize> {
        let present: Vec<usize> = (0..hashes.len()).filter(|&i| !is_null(i)).collect();
        for (to, &from) in present.iter().enumerate() {
            hashes[to] = hashes[from];
        }
        let mut answers = vec![0; present.len().min(out.len())];
        let total = self.by_hash(engine, &hashes[..present.len()], &mut answers)?;
        for (&i, answer) in present.iter().zip(answers) {
            out[i] = answer;
        }
        Ok(total)
    }

    /// Does it with the keys of a column, by `threads` threads; returns how many were added. Takes
    /// the interpreter's lock between pieces, for the handlers of signals: their error ends it, and
    /// the pieces before are done.
    pub(crate) fn by_column<E: Engine>(
        self,
        engine: &E,
        column: &Column<'_>,
        threads: usize,
        out: &mut [u8],
    ) -> PyResult<usize> {
        let is_integers = column.is_integers() && column.valid.is_empty();
        if let (Some(why), false) = (engine.integers_only(), is_integers) {
            return Err(PyTypeError::new_err(why));
        }
        let keys = Hashing::checked(engine, column)?;
        let piece = PIECE * threads;
        // Fewer keys for each take less time than a thread: 100,000 by two took as long as by one.
        let workers = threads.min(column.len.min(piece) / (64 * CHUNK)).max(1);
        let mut pool = None;
        if self == Self::Add && engine.is_by_pool() && workers > 1 && column.len >= BULK {
            pool = Some(self::pool(workers)?);
        }
        let mut total = 0;
        let mut outs = out.chunks_mut(piece);
        for start in (0..column.len).step_by(piece) {
            if start > 0 {
                Python::attach(|py| py.check_signals())?;
            }
            let range = start..column.len.min(start + piece);
            let out = outs.next().unwrap_or_default();
            total += match &pool {
                Some(pool) => pool.install(|| add_by_pool(&keys, range, threads * BULK)),
                None if workers == 1 => self.by_part(&keys, range, out)?,
                None => self.by_threads(&keys, range, workers, out)?,
            };
        }
        Ok(total)
    }

    fn by_threads<E: Engine>(
        self,
        keys: &Hashing<'_, E>,
        range: Range<usize>,
        workers: usize,
        out: &mut [u8],
    ) -> PyResult<usize> {
        let part = range.len().div_ceil(workers);
        let mut outs = out.chunks_mut(part);
        let parts = range.clone().step_by(part).map(|start| {
            let out = outs.next().unwrap_or_default();
            let range = start..range.end.min(start + part);
            move || self.by_part(keys, range, out)
        });
        in_threads(parts).into_iter().sum()
    }

    fn by_part<E: Engine>(self, keys: &Hashing<'_, E>, range: Range<usize>, out: &mut [u8]) -> PyResult<usize> {
        let (engine, column) = (keys.engine, keys.column);
        if let (Self::Add, Values::Words(words), true) = (self, &column.values, column.valid.is_empty())
            && let Some(result) = engine.insert_words(&words[range.clone()])
        {
            return result;
        }
        let size = if self == Self::Add { BULK } else { CHUNK };
        let mut hashes = vec![E::Hash::default(); size.min(range.len())];
        let mut total = 0;
        for start in range.clone().step_by(size) {
            let hashes = &mut hashes[..size.min(range.end - start)];
            keys.hash(start, hashes);
            let out = if self == Self::Add {
                &mut [][..]
            } else {
                &mut out[start - range.start..][..hashes.len()]
            };
            total += if E::ENCODING != Encoding::Python && column.may_have_nulls() {
                self.by_present(engine, hashes, |i| column.is_null(start + i), out)?
            } else {
                self.by_hash(engine, hashes, out)?
            };
        }
        Ok(total)
    }

    /// Does it with the items of a list or of any other iterable; appends the answers to `out`, and
    /// returns how many were added. `map` is applied to each item.
    pub(crate) fn by_items<E: Engine>(
        self,
        engine: &E,
        items: &Bound<'_, PyAny>,
        map: Option<&Bound<'_, PyAny>>,
        out: &mut Vec<u8>,
    ) -> PyResult<usize> {
        let mut gathered = Gathered {
            engine,
            task: self,
            hashes: Vec::new(),
            nulls: Vec::new(),
            total: 0,
        };
        let result = gathered.items(items, map, out);
        // After an error too.
        gathered.flush(out)?;
        result.map(|()| gathered.total)
    }
}

/// Threads for one call. To make them takes as long as some 100,000 keys; those that stay would be
/// missing after a fork.
pub(crate) fn pool(threads: usize) -> PyResult<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PyOSError::new_err(format!("threads={threads}: {error}")))
}

/// Runs each of these in a thread of its own; returns the results in order.
pub(crate) fn in_threads<R: Send>(all: impl Iterator<Item = impl FnOnce() -> R + Send>) -> Vec<R> {
    thread::scope(|scope| {
        let workers: Vec<_> = all.map(|run| scope.spawn(run)).collect();
        let results = workers.into_iter().map(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}

/// Adds a range of a column's keys by all threads of this pool: hashes up to `most` of them, and
/// inserts these. Returns how many were new.
fn add_by_pool<E: Engine>(keys: &Hashing<'_, E>, range: Range<usize>, most: usize) -> usize {
    let mut hashes = vec![E::Hash::default(); most.min(range.len())];
    let mut added = 0;
    for start in range.clone().step_by(most) {
        let hashes = &mut hashes[..most.min(range.end - start)];
        let parts = hashes.par_chunks_mut(HASHED).enumerate();
        parts.for_each(|(i, part)| keys.hash(start + i * HASHED, part));
        added += keys.engine.insert_many_by_pool(hashes);
    }
    added
}

/// The hashes of Python objects, until there are enough of them.
struct Gathered<'e, E: Engine> {
    engine: &'e E,
    task: Task,
    hashes: Vec<E::Hash>,
    /// The places of nulls among the hashes, in order.
    nulls: Vec<usize>,
    total: usize,
}

impl<'e, E: Engine> Gathered<'e, E> {
    fn items(&mut self, items: &Bound<'_, PyAny>, map: Option<&Bound<'_, PyAny>>, out: &mut Vec<u8>) -> PyResult<()> {
        if let (Ok(list), None) = (items.cast_exact::<PyList>(), map) {
            return self.list(list, out);
        }
        let mut held = Vec::with_capacity(CHUNK);
        let mut result = Ok(());
        for item in items.try_iter()? {
            match item.and_then(|item| map.map_or(Ok(item.clone()), |map| map.call1((item,)))) {
                Ok(key) => held.push(key),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            if held.len() == CHUNK {
                self.list(&PyList::new(items.py(), held.drain(..))?, out)?;
            }
        }
        // The keys before a bad one are in, as in a set.
        self.list(&PyList::new(items.py(), held)?, out)?;
        result
    }

    /// Takes the items of a list, which may change meanwhile.
    fn list(&mut self, list: &Bound<'_, PyList>, out: &mut Vec<u8>) -> PyResult<()> {
        let is_any = self.engine.integers_only().is_none();
        let mut i = 0;
        loop {
            // SAFETY: the result is dropped at once.
            let taken = match unsafe { ffi::quick_item(list, i, &mut Vec::new()) } {
                Quick::Int(value) if self.engine.check(value.cast_unsigned()).is_ok() => self.ints(list, i),
                Quick::Text(_) if is_any => self.texts(list, i),
                _ => {
                    // A key that may run Python code.
                    let Ok(item) = list.get_item(i) else { return Ok(()) };
                    let hash = hash_object(self.engine, &item)?;
                    if hash.is_none() {
                        self.nulls.push(self.hashes.len());
                    }
                    self.hashes.push(hash.unwrap_or_default());
                    1
                }
            };
            i += taken;
            if self.hashes.len() >= BULK {
                self.flush(out)?;
                list.py().check_signals()?;
            }
        }
    }

    /// Takes integers from the list's place `start` on; returns how many.
    fn ints(&mut self, list: &Bound<'_, PyList>, start: usize) -> usize {
        const INTS: usize = 128;
        let (mut words, mut len) = ([0; INTS], 0);
        let mut kept = Vec::new();
        // SAFETY: the result is copied.
        while let (true, Quick::Int(value)) = (len < INTS, unsafe { ffi::quick_item(list, start + len, &mut kept) }) {
            words[len] = value.cast_unsigned();
            if self.engine.check(words[len]).is_err() {
                break;
            }
            len += 1;
        }
        self.push(len, |engine, hashes| engine.hash_words(&words[..len], hashes));
        len
    }

    /// Takes strings from the list's place `start` on; returns how many.
    fn texts(&mut self, list: &Bound<'_, PyList>, start: usize) -> usize {
        const TEXTS: usize = 64;
        let (mut texts, mut len): ([&[u8]; TEXTS], usize) = ([&[]; TEXTS], 0);
        let mut kept = Vec::new();
        // SAFETY: until the end of this function `kept` loses nothing, and this thread runs no
        // Python code: hashing calls none, and neither does asking an item for its content.
        while let (true, Quick::Text(text)) = (len < TEXTS, unsafe { ffi::quick_item(list, start + len, &mut kept) }) {
            texts[len] = text;
            len += 1;
        }
        self.push(len, |engine, hashes| engine.hash_slices(&texts[..len], hashes));
        len
    }

    fn push(&mut self, len: usize, hash: impl FnOnce(&E, &mut [E::Hash])) {
        let filled = self.hashes.len();
        self.hashes.resize(filled + len, E::Hash::default());
        hash(self.engine, &mut self.hashes[filled..]);
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> PyResult<()> {
        let answered = out.len();
        if self.task != Task::Add {
            out.resize(answered + self.hashes.len(), 0);
        }
        let out = &mut out[answered..];
        self.total += if self.nulls.is_empty() {
            self.task.by_hash(self.engine, &self.hashes, out)?
        } else {
            let is_null = |i| self.nulls.binary_search(&i).is_ok();
            self.task.by_present(self.engine, &mut self.hashes, is_null, out)?
        };
        self.hashes.clear();
        self.nulls.clear();
        Ok(())
    }
}
