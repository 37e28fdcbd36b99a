//! Threads that read, cut and hash chunks side by side, and a stage that takes the chunks in the
//! order of the input.
//!
//! A thread takes a chunk from the reader, and with it a number. It cuts and hashes the chunk, and
//! waits until the stage has taken all chunks before. So each chunk stays in one thread's cache.

use crate::input::{Chunk, Reader};
use crate::keys::KeySpec;
use crate::progress::Progress;
use anyhow::Result;
use lanebloom::hash::KeyHasher;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{process, thread};

/// More threads would wait for the stage.
const MOST_THREADS: usize = 4;

/// The number of threads to [`run`] if none was asked for.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}

/// What depends on the order of the input.
pub(crate) trait Stage: Send {
    /// Takes the next chunk.
    fn take(&mut self, chunk: &mut Chunk) -> Result<()>;
}

/// Gives all chunks of the reader to `stage`, whose records and hashes `threads` threads find.
/// Returns the first error of the reader; the stage has taken all chunks before it. An error of the
/// stage ends the process: another thread may be waiting for input that comes late or never.
pub(crate) fn run<H: KeyHasher + Sync>(
    reader: &mut Reader,
    keys: &KeySpec,
    hasher: &H,
    threads: usize,
    stage: &mut impl Stage,
) -> Result<()> {
    let progress = reader.progress();
    let source = Mutex::new(Source {
        reader,
        next: 0,
        is_over: false,
    });
    let turn = Turn {
        state: Mutex::new(TurnState {
            next: 0,
            stage,
            progress,
            result: Ok(()),
            is_over: false,
        }),
        passed: Condvar::new(),
    };
    let work = || {
        let mut chunk = Chunk::default();
        // (A lock in the condition of a `while let` would be held during its body.)
        let next = |chunk: &mut Chunk| lock(&source).next(chunk);
        while let Some((number, filled)) = next(&mut chunk) {
            // A panic in this thread must not leave the others waiting.
            let mine = Mine { turn: &turn, number };
            if filled.is_ok() {
                let (bytes, keyed) = chunk.parts();
                keys.hash(bytes, keyed, hasher);
            }
            if !mine.take(filled, &mut chunk) {
                break;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    turn.state.into_inner().unwrap_or_else(PoisonError::into_inner).result
}

/// A panic is reported by the thread that has it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Source<'a> {
    reader: &'a mut Reader,
    /// The number of the next chunk.
    next: u64,
    is_over: bool,
}

impl Source<'_> {
    /// Fills the chunk, and returns its number; `None` at the end. An error has a number too.
    fn next(&mut self, chunk: &mut Chunk) -> Option<(u64, Result<()>)> {
        if self.is_over {
            return None;
        }
        let filled = match self.reader.fill(chunk) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.is_over = true;
                return None;
            }
            Err(error) => {
                self.is_over = true;
                Err(error)
            }
        };
        self.next += 1;
        Some((self.next - 1, filled))
    }
}

struct Turn<'a, S> {
    state: Mutex<TurnState<'a, S>>,
    passed: Condvar,
}

struct TurnState<'a, S> {
    /// The number of the chunk that the stage takes next.
    next: u64,
    stage: &'a mut S,
    progress: Arc<Progress>,
    result: Result<()>,
    /// Set by an error or a panic: the stage takes nothing more.
    is_over: bool,
}

/// The turn of a chunk.
struct Mine<'a, 'b, S> {
    turn: &'a Turn<'b, S>,
    number: u64,
}

impl<S: Stage> Mine<'_, '_, S> {
    /// Waits for the turn, and gives the chunk to the stage. Returns whether more may come.
    fn take(self, filled: Result<()>, chunk: &mut Chunk) -> bool {
        let is_before = |state: &mut TurnState<'_, S>| state.next < self.number && !state.is_over;
        let state = lock(&self.turn.state);
        let mut state = self
            .turn
            .passed
            .wait_while(state, is_before)
            .unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            match filled.map(|()| state.stage.take(chunk)) {
                Ok(Ok(())) => state.next += 1,
                Ok(Err(error)) => {
                    state.progress.finish();
                    process::exit(crate::report(&error).into());
                }
                Err(error) => {
                    state.result = Err(error);
                    state.is_over = true;
                }
            }
        }
        !state.is_over
    }
}

impl<S> Drop for Mine<'_, '_, S> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(&self.turn.state).is_over = true;
        }
        self.turn.passed.notify_all();
    }
}
