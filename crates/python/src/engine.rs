//! What each filter does with hashes, and the loops that take many keys: columns without the
//! interpreter, lists of Python objects with it.

use crate::columns::Column;
use crate::ffi::{self, Quick};
use crate::key::{Encoding, Key, key};
use lanebloom::traits::Insert;
use lanebloom::{
    BloomView, BuildError, ConcurrentBitmap, ConcurrentBloom, CuckooFilter, InsertError, KeyHasher, ScalableBloom,
    WindowedBloom,
};
use lanebloom_formats::{GuavaBloom, SplitBlockBloom};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::thread;

/// Keys whose answers are made at a time.
const CHUNK: usize = 1024;

/// Keys that are inserted at a time: so many that a batch is dense in a filter of some megabytes.
/// Their hashes take 8 MiB. With 2^17, strings of Arrow took 17 ns instead of 13.
const BULK: usize = 1 << 20;

/// Why keys were not added.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No room, or no memory.
    Insert(InsertError),
    /// Not below the bound.
    Bound(u64, u64),
    /// A view of a file.
    ReadOnly,
}

impl From<InsertError> for Fault {
    fn from(error: InsertError) -> Self {
        Self::Insert(error)
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Insert(error) if error.is_out_of_memory() => PyMemoryError::new_err(error.to_string()),
            Fault::Insert(error) => PyValueError::new_err(error.to_string()),
            Fault::Bound(value, bound) => PyValueError::new_err(format!(
                "{} is not in this bitmap, which holds integers from 0 to {}",
                // A negative number came as its two's complement.
                if value >> 63 == 1 {
                    value.cast_signed().to_string()
                } else {
                    value.to_string()
                },
                bound.saturating_sub(1)
            )),
            Fault::ReadOnly => PyTypeError::new_err("a view of a file takes no keys: copy() makes a filter that does"),
        }
    }
}

/// An exception for a filter that could not be made.
pub(crate) fn build_error(error: BuildError) -> PyErr {
    if error.is_out_of_memory() {
        PyMemoryError::new_err(error.to_string())
    } else {
        PyValueError::new_err(error.to_string())
    }
}

/// A filter, as a set of hashes that many threads share.
pub(crate) trait Engine: Send + Sync {
    /// What it sees of a key.
    type Hash: Copy + Default + Send + Sync;
    /// Which bytes its numbers have.
    const ENCODING: Encoding = Encoding::Python;
    /// It takes integers only.
    const INTEGERS: bool = false;

    fn hash_word(&self, word: u64) -> Self::Hash;
    fn hash_bytes(&self, bytes: &[u8]) -> Self::Hash;
    fn hash_words(&self, words: &[u64], out: &mut [Self::Hash]);
    fn hash_slices(&self, keys: &[&[u8]], out: &mut [Self::Hash]);

    fn contains_one(&self, hash: Self::Hash) -> bool;
    fn contains_many(&self, hashes: &[Self::Hash], out: &mut [bool]);
    /// Inserts, and answers whether the key was new.
    fn insert_one(&self, hash: Self::Hash) -> Result<bool, Fault>;
    /// Inserts, and answers how many of the keys were new.
    fn insert_many(&self, hashes: &[Self::Hash]) -> Result<usize, Fault>;
    /// Inserts the keys that are not there, and answers which.
    fn insert_flagged(&self, hashes: &[Self::Hash], new: &mut [bool]) -> Result<usize, Fault> {
        let mut total = 0;
        for (&hash, new) in hashes.iter().zip(new) {
            *new = !self.contains_one(hash) && self.insert_one(hash)?;
            total += usize::from(*new);
        }
        Ok(total)
    }

    /// [`insert_many`](Self::insert_many) for integers, if they need not be hashed first.
    fn insert_words(&self, _words: &[u64]) -> Option<Result<usize, Fault>> {
        None
    }
    /// [`contains_many`](Self::contains_many) for integers, if they need not be hashed first.
    fn contains_words(&self, _words: &[u64], _out: &mut [bool]) -> bool {
        false
    }
}

/// What filters by lanebloom's hashers share.
macro_rules! hashing {
    () => {
        type Hash = u64;

        #[inline(always)]
        fn hash_word(&self, word: u64) -> u64 {
            self.hash(&word)
        }
        #[inline(always)]
        fn hash_bytes(&self, bytes: &[u8]) -> u64 {
            self.hash(bytes)
        }
        fn hash_words(&self, words: &[u64], out: &mut [u64]) {
            self.hash_batch(words, out);
        }
        fn hash_slices(&self, keys: &[&[u8]], out: &mut [u64]) {
            self.hash_batch(keys, out);
        }
        #[inline(always)]
        fn contains_one(&self, hash: u64) -> bool {
            self.contains_hash(hash)
        }
        fn contains_many(&self, hashes: &[u64], out: &mut [bool]) {
            self.contains_hashes(hashes, out);
        }
    };
}

macro_rules! engines {
    ($($filter:ident, $flagged:expr;)*) => {$(
        impl<S: KeyHasher + Send + Sync> Engine for $filter<S> {
            hashing! {}

            #[inline(always)]
            fn insert_one(&self, hash: u64) -> Result<bool, Fault> {
                Ok(self.try_insert_hash(hash)?)
            }
            fn insert_many(&self, hashes: &[u64]) -> Result<usize, Fault> {
                Ok(self.try_insert_hashes(hashes)?)
            }
            fn insert_flagged(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Fault> {
                $flagged(self.insert_hashes_flagged(hashes, new))
            }
            fn insert_words(&self, words: &[u64]) -> Option<Result<usize, Fault>> {
                Some(self.try_insert_batch(words).map_err(Fault::from))
            }
            fn contains_words(&self, words: &[u64], out: &mut [bool]) -> bool {
                self.contains_batch(words, out);
                true
            }
        }
    )*};
}

engines! {
    ConcurrentBloom, Ok;
    WindowedBloom, Ok;
    ScalableBloom, |result: Result<usize, InsertError>| result.map_err(Fault::from);
}

impl<S: KeyHasher + Send + Sync> Engine for CuckooFilter<S> {
    hashing! {}

    fn insert_one(&self, hash: u64) -> Result<bool, Fault> {
        Ok(self.try_insert_hash(hash)?)
    }
    fn insert_many(&self, hashes: &[u64]) -> Result<usize, Fault> {
        Ok(self.try_insert_hashes(hashes)?)
    }
}

impl<S: KeyHasher + Send + Sync> Engine for BloomView<'static, S> {
    hashing! {}

    fn insert_one(&self, _: u64) -> Result<bool, Fault> {
        Err(Fault::ReadOnly)
    }
    fn insert_many(&self, _: &[u64]) -> Result<usize, Fault> {
        Err(Fault::ReadOnly)
    }
    fn insert_flagged(&self, _: &[u64], _: &mut [bool]) -> Result<usize, Fault> {
        Err(Fault::ReadOnly)
    }
    fn contains_words(&self, words: &[u64], out: &mut [bool]) -> bool {
        self.contains_batch(words, out);
        true
    }
}

/// A filter of another system, whose integers have 8 bytes or 4.
pub(crate) struct Foreign<F> {
    pub(crate) filter: F,
    /// 4 or 8.
    pub(crate) int_bytes: usize,
}

macro_rules! foreign {
    ($($filter:ident: $hash:ty),*) => {$(
        impl Engine for Foreign<$filter> {
            type Hash = $hash;
            const ENCODING: Encoding = Encoding::Plain;

            fn hash_word(&self, word: u64) -> $hash {
                if self.int_bytes == 4 { self.filter.hash(&(word as u32)) } else { self.filter.hash(&word) }
            }
            fn hash_bytes(&self, bytes: &[u8]) -> $hash {
                self.filter.hash(bytes)
            }
            fn hash_words(&self, words: &[u64], out: &mut [$hash]) {
                if self.int_bytes == 8 {
                    return self.filter.hash_batch(words, out);
                }
                for (&word, out) in words.iter().zip(out) {
                    *out = self.hash_word(word);
                }
            }
            fn hash_slices(&self, keys: &[&[u8]], out: &mut [$hash]) {
                self.filter.hash_batch(keys, out);
            }
            fn contains_one(&self, hash: $hash) -> bool {
                self.filter.contains_hash(hash)
            }
            fn contains_many(&self, hashes: &[$hash], out: &mut [bool]) {
                self.filter.contains_hashes(hashes, out);
            }
            fn insert_one(&self, hash: $hash) -> Result<bool, Fault> {
                Ok(self.filter.insert_hash(hash))
            }
            fn insert_many(&self, hashes: &[$hash]) -> Result<usize, Fault> {
                Ok(self.filter.insert_hashes(hashes))
            }
            fn insert_flagged(&self, hashes: &[$hash], new: &mut [bool]) -> Result<usize, Fault> {
                Ok(self.filter.insert_hashes_flagged(hashes, new))
            }
        }
    )*};
}

foreign! { GuavaBloom: (u64, u64), SplitBlockBloom: u64 }

/// An integer is its own hash.
impl Engine for ConcurrentBitmap {
    type Hash = u64;
    const INTEGERS: bool = true;

    fn hash_word(&self, word: u64) -> u64 {
        word
    }
    fn hash_bytes(&self, _: &[u8]) -> u64 {
        unreachable!("integers only")
    }
    fn hash_words(&self, words: &[u64], out: &mut [u64]) {
        out.copy_from_slice(words);
    }
    fn hash_slices(&self, _: &[&[u8]], _: &mut [u64]) {
        unreachable!("integers only")
    }
    fn contains_one(&self, hash: u64) -> bool {
        self.contains(hash)
    }
    fn contains_many(&self, hashes: &[u64], out: &mut [bool]) {
        self.contains_batch(hashes, out);
    }
    fn insert_one(&self, hash: u64) -> Result<bool, Fault> {
        self.insert(hash)
            .map_err(|error| Fault::Bound(error.position(), self.bound()))
    }
    fn insert_many(&self, hashes: &[u64]) -> Result<usize, Fault> {
        self.insert_batch(hashes)
            .map_err(|error| Fault::Bound(error.position(), self.bound()))
    }
    fn insert_flagged(&self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Fault> {
        self.insert_batch_flagged(hashes, new)
            .map_err(|error| Fault::Bound(error.position(), self.bound()))
    }
}

/// The hash of an object that is an `int` or a `str`, which most keys are, and quickly.
#[inline(always)]
pub(crate) fn quick_hash<E: Engine>(engine: &E, object: &Bound<'_, PyAny>) -> Option<E::Hash> {
    match ffi::quick(object) {
        Quick::Int(value) => Some(engine.hash_word(value.cast_unsigned())),
        Quick::Text(text) if !E::INTEGERS => Some(engine.hash_bytes(text)),
        _ => None,
    }
}

/// The hash of any object.
#[inline(never)]
pub(crate) fn hash_object<E: Engine>(engine: &E, object: &Bound<'_, PyAny>) -> PyResult<E::Hash> {
    match key(object, E::ENCODING, &mut Vec::new())? {
        Key::Word(word) => Ok(engine.hash_word(word)),
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
        let dictionary = column.prepare(engine);
        // Fewer keys take less time than a thread.
        let part = column.len.div_ceil(threads.max(1)).max(4 * CHUNK);
        if part >= column.len {
            return Ok(self.by_part(engine, column, &dictionary, 0..column.len, out)?);
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
        if let (crate::columns::Values::Words(words), None) = (&column.values, column.valid) {
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
                Quick::Int(_) => self.ints(list, i),
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
