//! Threads that read and work on chunks side by side, and a stage that takes the chunks in the
//! order of the input. `dedup`, `build` and `query` run on it.
//!
//! A thread takes a chunk from the reader, and with it a number. It does the [`Work`] on the chunk,
//! and waits until the stage has taken all chunks before. So each chunk stays in one thread's
//! cache.

use crate::input::{Chunk, Cut, Reader};
use anyhow::Result;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// More threads would wait for a stage that inserts.
pub const MOST_THREADS: usize = 4;

/// The number of threads to [`run`] with a stage that inserts, if the user did not choose one.
pub fn threads() -> usize {
    all_threads().min(MOST_THREADS)
}

/// The number of threads to [`run`] if the stage has little to do.
pub fn all_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What threads do with chunks side by side.
pub trait Work<R>: Send + Sync + 'static {
    fn work(&self, chunk: &mut Chunk<R>);

    /// What is left to do after the stage has taken the chunk with this number.
    fn finish(&self, _: &mut Chunk<R>, _number: u64) -> Result<()> {
        Ok(())
    }
}

/// What depends on the order of the input.
pub trait Stage<R>: Send + 'static {
    /// Takes the next chunk.
    fn take(&mut self, chunk: &mut Chunk<R>) -> Result<()>;
}

/// Gives all chunks of the reader to `stage` after the work of `threads` threads, and returns the
/// stage.
///
/// # Errors
///
/// Returns the first error of the reader or of the stage. The stage has taken all chunks before it,
/// and is dropped. It returns at once: another thread may still wait for input that comes late or
/// never, so the threads own all that they use, and end with the process.
pub fn run<C: Cut, S: Stage<C::Records>>(
    reader: Reader<C>,
    work: impl Work<C::Records>,
    threads: usize,
    stage: S,
) -> Result<S> {
    let reader = reader.ahead(threads);
    let progress = reader.progress();
    let shared = Arc::new(Shared {
        work,
        source: Mutex::new(Source {
            reader,
            next: 0,
            is_over: false,
        }),
        turn: Mutex::new(Turn {
            next: 0,
            workers: threads,
            outcome: Outcome::Running(stage),
        }),
        changed: Condvar::new(),
    });
    let workers = Vec::from_iter((0..threads).map(|_| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || Worker(&shared).run())
    }));
    let is_running = |turn: &mut Turn<S>| turn.workers > 0 && matches!(turn.outcome, Outcome::Running(_));
    let turn = shared.changed.wait_while(lock(&shared.turn), is_running);
    let mut turn = turn.unwrap_or_else(PoisonError::into_inner);
    let (workers_left, outcome) = (turn.workers, turn.outcome.take());
    drop(turn);
    match outcome {
        Outcome::Running(stage) if workers_left == 0 => {
            // They are past their last chunk.
            for worker in workers {
                worker.join().expect("a panic is an outcome of its own");
            }
            Ok(stage)
        }
        Outcome::Failed(error) => {
            // The bar goes before the error message comes.
            progress.finish();
            Err(error)
        }
        // The thread has reported it. (The wait for the turn ends at once if the stage panicked.)
        Outcome::Running(_) | Outcome::Panicked => panic!("a thread of the pipeline panicked"),
    }
}

/// A thread that panics while it has the lock reports that itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Shared<C, W, S> {
    work: W,
    source: Mutex<Source<C>>,
    turn: Mutex<Turn<S>>,
    /// A chunk was taken, the outcome changed, or a worker ended.
    changed: Condvar,
}

struct Source<C> {
    reader: Reader<C>,
    /// The number of the next chunk.
    next: u64,
    is_over: bool,
}

impl<C: Cut> Source<C> {
    /// Fills the chunk, and returns its number; `None` at the end. An error has a number too.
    fn next(&mut self, chunk: &mut Chunk<C::Records>) -> Option<(u64, Result<()>)> {
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

struct Turn<S> {
    /// The number of the chunk that the stage takes next.
    next: u64,
    /// The number of threads that have not ended.
    workers: usize,
    outcome: Outcome<S>,
}

enum Outcome<S> {
    /// No failure so far.
    Running(S),
    Failed(anyhow::Error),
    Panicked,
}

impl<S> Outcome<S> {
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Panicked)
    }
}

/// A thread's part in the work. Its end is counted, also by a panic.
struct Worker<'a, C, W, S>(&'a Shared<C, W, S>);

impl<C: Cut, W: Work<C::Records>, S: Stage<C::Records>> Worker<'_, C, W, S> {
    fn run(self) {
        let shared = self.0;
        let mut chunk = Chunk::default();
        // (A lock in the condition of a `while let` would be held during its body.)
        let next = |chunk: &mut Chunk<C::Records>| lock(&shared.source).next(chunk);
        while let Some((number, filled)) = next(&mut chunk) {
            if filled.is_ok() {
                shared.work.work(&mut chunk);
            }
            if !self.take(number, filled, &mut chunk) {
                break;
            }
            if let Err(error) = shared.work.finish(&mut chunk, number) {
                self.fail(error);
                break;
            }
        }
    }

    /// Ends the run. The first error stays.
    fn fail(&self, error: anyhow::Error) {
        let mut turn = lock(&self.0.turn);
        if matches!(turn.outcome, Outcome::Running(_)) {
            turn.outcome = Outcome::Failed(error);
        }
        self.0.changed.notify_all();
    }

    /// Waits for the turn, and gives the chunk to the stage. Returns whether more may come.
    fn take(&self, number: u64, filled: Result<()>, chunk: &mut Chunk<C::Records>) -> bool {
        let is_before = |turn: &mut Turn<S>| turn.next < number && matches!(turn.outcome, Outcome::Running(_));
        let turn = self.0.changed.wait_while(lock(&self.0.turn), is_before);
        let mut turn = turn.unwrap_or_else(PoisonError::into_inner);
        let is_mine = turn.next == number;
        let Outcome::Running(stage) = &mut turn.outcome else {
            return false;
        };
        if !is_mine {
            // The stage panicked.
            return false;
        }
        let taken = filled.and_then(|()| stage.take(chunk));
        match taken {
            Ok(()) => turn.next += 1,
            Err(error) => turn.outcome = Outcome::Failed(error),
        }
        self.0.changed.notify_all();
        matches!(turn.outcome, Outcome::Running(_))
    }
}

impl<C, W, S> Drop for Worker<'_, C, W, S> {
    fn drop(&mut self) {
        let mut turn = lock(&self.0.turn);
        turn.workers -= 1;
        if thread::panicking() {
            turn.outcome = Outcome::Panicked;
        }
        self.0.changed.notify_all();
    }
}

// (With a file that never ends, by the name that Unix gives to a pipe.)
#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Input, Lines};
    use crate::progress::Progress;
    use std::fs::File;
    use std::io::Write;
    use std::ops::Range;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;
    use std::sync::mpsc::{self, RecvTimeoutError, Sender};
    use std::time::Duration;

    /// Does something with the first chunk, and tells when it is dropped.
    struct First(fn() -> Result<()>, Option<Sender<()>>);

    impl Stage<()> for First {
        fn take(&mut self, _: &mut Chunk<()>) -> Result<()> {
            self.0()
        }
    }

    impl Drop for First {
        fn drop(&mut self) {
            if let Some(dropped) = self.1.take() {
                dropped.send(()).unwrap();
            }
        }
    }

    /// Runs on two threads with an input of one line whose end never comes.
    fn run_endless(work: impl Work<()>, stage: First) -> Result<First> {
        let (end, writer) = rustix::pipe::pipe().unwrap();
        let mut writer = File::from(writer);
        writer.write_all(b"a\n").unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", end.as_raw_fd()));
        let inputs = [Input::Path(path)].into_iter().collect();
        let reader = Reader::new(
            inputs,
            Bytes(Lines::new(b'\n', 64, false)),
            Arc::new(Progress::new(None, false)),
        );
        let (done, result) = mpsc::channel();
        thread::spawn(move || done.send(run(reader, work, 2, stage)));
        let result = result.recv_timeout(Duration::from_secs(60));
        drop(writer);
        assert!(
            !matches!(result, Err(RecvTimeoutError::Timeout)),
            "it waits for the input"
        );
        result.expect("it has panicked")
    }

    /// Lines of which nothing is known.
    struct Bytes(Lines);

    impl Cut for Bytes {
        type Records = ();

        fn begin(&mut self, _: usize, _: &str, is_apart: bool) -> Result<bool> {
            self.0.begin(is_apart);
            Ok(false)
        }

        fn cut(&mut self, bytes: &[u8], is_end: bool, _: &mut ()) -> Result<Range<usize>> {
            Ok(self.0.cut(bytes, is_end)?.0)
        }

        fn lines(&self) -> &Lines {
            &self.0
        }
    }

    struct Nothing;

    impl Work<()> for Nothing {
        fn work(&self, _: &mut Chunk<()>) {}
    }

    #[test]
    fn an_error_returns_while_another_thread_reads() {
        let (sender, dropped) = mpsc::channel();
        let stage = First(|| Err(anyhow::anyhow!("full")), Some(sender));
        assert_eq!(run_endless(Nothing, stage).map(drop).unwrap_err().to_string(), "full");
        dropped.try_recv().expect("the stage is dropped before the return");
    }

    #[test]
    #[should_panic(expected = "it has panicked")]
    fn a_panic_returns_while_another_thread_reads() {
        let _ = run_endless(Nothing, First(|| panic!("of the stage"), None));
    }

    struct Panics;

    impl Work<()> for Panics {
        fn work(&self, _: &mut Chunk<()>) {
            panic!("of the work");
        }
    }

    /// The thread holds no lock then, so only `Outcome::Panicked` tells the others. They would wait
    /// for its chunk.
    #[test]
    #[should_panic(expected = "it has panicked")]
    fn a_panic_of_the_work_returns_while_another_thread_reads() {
        let _ = run_endless(Panics, First(|| Ok(()), None));
    }
}
