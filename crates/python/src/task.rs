//! The loops that take many keys: columns without the interpreter, lists of Python objects with it.

use crate::columns::{Column, Values};
use crate::engine::{Engine, Fault};
use crate::ffi::{self, Quick};
use crate::key::{Key, key};
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use rayon::prelude::*;
use std::thread;

/// Keys whose answers are made at a time.
const CHUNK: usize = 1024;

/// Keys that are inserted at a time: so many that a batch is dense in a filter of some megabytes.
/// Their hashes take 8 MiB. With 2^17, strings of Arrow took 16 ns instead of 14.
const BULK: usize = 1 << 20;

/// Keys that a thread hashes at a time, where several hash a column.
const HASHED: usize = 16 * CHUNK;

/// The hash of an object that is an `int` or a `str`, which most keys are, and quickly.
#[inline(always)]
pub(crate) fn quick_hash<E: Engine>(engine: &E, object: &Bound<'_, PyAny>) -> Option<E::Hash> {
    match ffi::quick(object) {
        Quick::Int(value) => {
            let word = value.cast_unsigned();
            engine.check(word).is_ok().then(|| engine.hash_word(word))
        }
        Quick::Text(text) if !E::INTEGERS => Some(engine.hash_bytes(text)),
        _ => None,
    }
}

/// The hash of any object.
#[inline(never)]
pub(crate) fn hash_object<E: Engine>(engine: &E, object: &Bound<'_, PyAny>) -> PyResult<E::Hash> {
    match key(object, E::ENCODING, &mut Vec::new())? {
        Key::Word(word) => {
            engine.check(word)?;
            Ok(engine.hash_word(word))
        }
        Key::Bytes(_) if E::INTEGERS => Err(not_an_integer()),
        Key::Bytes(bytes) => Ok(engine.hash_bytes(bytes)),
    }
}

fn not_an_integer() -> PyErr {
    PyTypeError::new_err("a bitmap holds integers only")
}

/// What to do with many keys.
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
    fn by_hash<E: Engine>(self, engine: &E, hashes: &[E::Hash], out: &mut [u8]) -> Result<usize, Fault> {
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

    /// Does it with the keys of a column, by `threads` threads; returns how many were added.
    pub(crate) fn by_column<E: Engine>(
        self,
        engine: &E,
        column: &Column<'_>,
        threads: usize,
        out: &mut [u8],
    ) -> PyResult<usize> {
        if E::INTEGERS && (!column.is_integers() || column.valid.is_some()) {
            return Err(not_an_integer());
        }
        column.check(engine)?;
        let dictionary = column.prepare(engine);
        // Fewer keys take less time than a thread.
        let part = column.len.div_ceil(threads).max(4 * CHUNK);
        if part >= column.len {
            return Ok(self.by_part(engine, column, &dictionary, 0..column.len, out)?);
        }
        // Made for the call: threads that stay would be missing after a fork.
        if self == Self::Add && E::BY_POOL {
            // Made for the call: threads that stay would be missing after a fork.
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(column.len.div_ceil(part))
                .build();
            let pool = pool.map_err(|error| PyOSError::new_err(format!("threads={threads}: {error}")))?;
            return Ok(pool.install(|| add_by_pool(engine, column, &dictionary, threads * BULK)));
        }
        let mut outs = out.chunks_mut(part);
        let result: Result<usize, Fault> = thread::scope(|scope| {
            let workers: Vec<_> = (0..column.len)
                .step_by(part)
                .map(|start| {
                    let (out, dictionary) = (outs.next().unwrap_or_default(), &dictionary);
                    let range = start..column.len.min(start + part);
                    scope.spawn(move || self.by_part(engine, column, dictionary, range, out))
                })
                .collect();
            let results = workers.into_iter().map(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            // All are joined, also after an error.
            results.collect::<Vec<_>>().into_iter().sum()
        });
        Ok(result?)
    }

    fn by_part<E: Engine>(
        self,
        engine: &E,
        column: &Column<'_>,
        dictionary: &[E::Hash],
        range: std::ops::Range<usize>,
        out: &mut [u8],
    ) -> Result<usize, Fault> {
        if let (Values::Words(words), None) = (&column.values, column.valid) {
            let words = &words[range.clone()];
            if self == Self::Add {
                if let Some(result) = engine.insert_words(words) {
                    return result;
                }
            } else if self == Self::Contains {
                let mut answers = [false; CHUNK];
                let mut chunks = words.chunks(CHUNK).zip(out.chunks_mut(CHUNK));
                if chunks.all(|(words, out)| {
                    let answers = &mut answers[..words.len()];
                    let done = engine.contains_words(words, answers);
                    for (out, &answer) in out.iter_mut().zip(&*answers) {
                        *out = answer.into();
                    }
                    done
                }) {
                    return Ok(0);
                }
            }
        }
        let size = if self == Self::Add { BULK } else { CHUNK };
        let mut hashes = vec![E::Hash::default(); size.min(range.len())];
        let mut total = 0;
        for start in range.clone().step_by(size) {
            let len = size.min(range.end - start);
            column.hash(engine, dictionary, start, &mut hashes[..len]);
            let out = if self == Self::Add {
                &mut [][..]
            } else {
                &mut out[start - range.start..][..len]
            };
            total += self.by_hash(engine, &hashes[..len], out)?;
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
            total: 0,
        };
        let result = gathered.items(items, map, out);
        // After an error too.
        gathered.flush(out)?;
        result.map(|()| gathered.total)
    }
}

/// Adds the keys of a column by all threads of this pool: hashes up to `most` of them, and inserts
/// these. Returns how many were new.
fn add_by_pool<E: Engine>(engine: &E, column: &Column<'_>, dictionary: &[E::Hash], most: usize) -> usize {
    if let (Values::Words(words), None) = (&column.values, column.valid) {
        return engine.insert_words_by_pool(words);
    }
    let mut hashes = vec![E::Hash::default(); most.min(column.len)];
    let mut added = 0;
    for start in (0..column.len).step_by(most) {
        let hashes = &mut hashes[..most.min(column.len - start)];
        let parts = hashes.par_chunks_mut(HASHED).enumerate();
        parts.for_each(|(i, part)| column.hash(engine, dictionary, start + i * HASHED, part));
        added += engine.insert_many_by_pool(hashes);
    }
    added
}

/// The hashes of Python objects, until there are enough of them.
struct Gathered<'e, E: Engine> {
    engine: &'e E,
    task: Task,
    hashes: Vec<E::Hash>,
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
        // As in a set, the keys before a bad one are in.
        self.list(&PyList::new(items.py(), held)?, out)?;
        result
    }

    /// Takes the items of a list, which may change meanwhile.
    fn list(&mut self, list: &Bound<'_, PyList>, out: &mut Vec<u8>) -> PyResult<()> {
        let mut i = 0;
        loop {
            // SAFETY: the result is dropped at once.
            let taken = match unsafe { ffi::quick_item(list, i) } {
                Quick::Int(value) if self.engine.check(value.cast_unsigned()).is_ok() => self.ints(list, i),
                Quick::Text(_) if !E::INTEGERS => self.texts(list, i),
                _ => {
                    // A key that may run Python code.
                    let Ok(item) = list.get_item(i) else { return Ok(()) };
                    let hash = hash_object(self.engine, &item)?;
                    self.hashes.push(hash);
                    1
                }
            };
            i += taken;
            if self.hashes.len() >= BULK {
                self.flush(out)?;
            }
        }
    }

    /// Takes integers from the list's place `start` on; returns how many.
    fn ints(&mut self, list: &Bound<'_, PyList>, start: usize) -> usize {
        const INTS: usize = 128;
        let (mut words, mut len) = ([0; INTS], 0);
        // SAFETY: the result is copied.
        while let (true, Quick::Int(value)) = (len < INTS, unsafe { ffi::quick_item(list, start + len) }) {
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
        // SAFETY: until the end of this function no Python code runs: hashing calls none, and
        // neither does asking an item for its content.
        while let (true, Quick::Text(text)) = (len < TEXTS, unsafe { ffi::quick_item(list, start + len) }) {
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
        self.total += self.task.by_hash(self.engine, &self.hashes, &mut out[answered..])?;
        self.hashes.clear();
        Ok(())
    }
}
