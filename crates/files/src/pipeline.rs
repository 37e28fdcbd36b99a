//! Threads that read and work on chunks side by side, and a stage that takes the chunks in the
//! order of the input. `dedup`, `build` and `query` run on it.
//!
//! A thread takes a chunk from the reader, and with it a number. It does the [`Work`] on the chunk,
//! and waits until the stage has taken all chunks before. So each chunk stays in one thread's
//! cache.

use crate::input::{Chunk, Cut, Reader};
use anyhow::Result;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
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

/// The work that threads do on chunks side by side.
pub trait Work<R>: Send + Sync + 'static {
    fn work(&self, chunk: &mut Chunk<R>);

    /// The work that is left after the stage has taken the chunk with this number.
    fn finish(&self, _: &mut Chunk<R>, _number: u64) -> Result<()> {
        Ok(())
    }

    /// Wakes the threads that wait for each other in `finish`, and a stage that waits for these: a
    /// thread has failed.
    fn abandon(&self) {}
}

impl<R, F: Fn(&mut Chunk<R>) + Send + Sync + 'static> Work<R> for F {
    fn work(&self, chunk: &mut Chunk<R>) {
        self(chunk);
    }
}

/// The work that depends on the order of the input.
pub trait Stage<R>: Send + 'static {
    /// Takes the next chunk.
    fn take(&mut self, chunk: &mut Chunk<R>) -> Result<()>;
}

/// A value, and the function that changes it by each chunk.
impl<R, T: Send + 'static, F: FnMut(&mut T, &mut Chunk<R>) -> Result<()> + Send + 'static> Stage<R> for (T, F) {
    fn take(&mut self, chunk: &mut Chunk<R>) -> Result<()> {
        (self.1)(&mut self.0, chunk)
    }
}

/// Gives all chunks of the reader to `stage` after the work of `threads` threads, and returns the
/// stage.
///
/// # Errors
///
/// Returns the first error of the reader, of the stage or of the work. The stage has taken all
/// chunks before it, and is dropped. It returns at once: another thread may still wait for input
/// that comes late or never, so the threads own all that they use, and end with the process.
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
        source: Mutex::new((Some(reader), 0)),
        stage: InOrder::new(stage),
    });
    let (sender, failures) = mpsc::channel();
    for _ in 0..threads {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        thread::spawn(move || {
            let failure = match panic::catch_unwind(AssertUnwindSafe(|| shared.run())) {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(Ok(error)),
                Err(panic) => Some(Err(panic)),
            };
            // Before the end is known: the last thread takes the bar from the screen.
            drop(shared);
            // Nobody receives it after a failure of another thread.
            if let Some(failure) = failure {
                let _ = sender.send(failure);
            }
        });
    }
    drop(sender);
    match failures.recv() {
        // All threads have ended.
        Err(_) => Ok(shared.stage.end().expect("only a failure ends it before")),
        Ok(failure) => {
            shared.work.abandon();
            drop(shared.stage.end());
            // The bar goes before the error message comes.
            progress.finish();
            // The thread has reported its panic.
            Err(failure.unwrap_or_else(|panic| panic::resume_unwind(panic)))
        }
    }
}

struct Shared<C, W, S> {
    work: W,
    /// The reader until its end, and the number of its next chunk.
    source: Mutex<(Option<Reader<C>>, u64)>,
    stage: InOrder<S>,
}

impl<C: Cut, W: Work<C::Records>, S: Stage<C::Records>> Shared<C, W, S> {
    /// A thread's part in the work.
    fn run(&self) -> Result<()> {
        let mut chunk = Chunk::default();
        while let Some((number, filled)) = self.next(&mut chunk) {
            if filled.is_ok() {
                self.work.work(&mut chunk);
            }
            let take = |stage: &mut S| filled.and_then(|()| stage.take(&mut chunk));
            let Some(taken) = self.stage.turn(number, number + 1, take) else {
                break;
            };
            taken?;
            self.work.finish(&mut chunk, number)?;
        }
        Ok(())
    }

    /// Fills the chunk, and returns its number; `None` at the end. An error has a number too.
    fn next(&self, chunk: &mut Chunk<C::Records>) -> Option<(u64, Result<()>)> {
        let mut source = self.source.lock().ok()?;
        let (reader, number) = &mut *source;
        let filled = reader.as_mut()?.fill(chunk);
        if !matches!(filled, Ok(true)) {
            // Nothing is read after an error.
            *reader = None;
        }
        let filled = filled.map(|is_some| is_some.then_some(())).transpose()?;
        *number += 1;
        Some((*number - 1, filled))
    }
}

/// A value that threads use one after another, in the order of numbers from 0 on.
pub struct InOrder<T> {
    /// The number whose turn it is, and the value until the end.
    state: Mutex<(u64, Option<T>)>,
    /// The turn is another one's, or this is the end.
    changed: Condvar,
}

impl<T> InOrder<T> {
    pub fn new(value: T) -> Self {
        Self {
            state: Mutex::new((0, Some(value))),
            changed: Condvar::new(),
        }
    }

    /// Waits until it is the turn of `number`, calls `take`, and gives the turn to `next`; returns
    /// `None` after the end. If `take` fails, the others wait until the caller calls
    /// [`end`](Self::end), so no other error comes before this one. After a panic, later calls
    /// return `None`, and those that wait do so once the caller calls `end`.
    pub fn turn<U>(&self, number: u64, next: u64, take: impl FnOnce(&mut T) -> Result<U>) -> Option<Result<U>> {
        let is_before = |(turn, value): &mut (u64, Option<T>)| *turn < number && value.is_some();
        let waited = self.changed.wait_while(self.state.lock().ok()?, is_before);
        let mut state = waited.ok()?;
        let (turn, value) = &mut *state;
        let taken = take(value.as_mut()?);
        if taken.is_ok() {
            *turn = next;
            self.changed.notify_all();
        }
        Some(taken)
    }

    /// Ends all waiting, and returns the value the first time.
    pub fn end(&self) -> Option<T> {
        let value = self.state.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        self.changed.notify_all();
        value
    }
}

// (With a file that never ends, by the name that Unix gives to a pipe.)
#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Input, LineCutter};
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
            Bytes(LineCutter::new(b'\n', 64, false)),
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

    /// Lines without a known structure.
    struct Bytes(LineCutter);

    impl Cut for Bytes {
        type Records = ();

        fn begin(&mut self, _: usize, _: &str, is_apart: bool) -> Result<bool> {
            self.0.begin(is_apart);
            Ok(false)
        }

        fn cut(&mut self, bytes: &[u8], is_end: bool, _: &mut ()) -> Result<Range<usize>> {
            Ok(self.0.cut(bytes, is_end)?.0)
        }

        fn lines(&self) -> &LineCutter {
            &self.0
        }
    }

    #[test]
    fn an_error_returns_while_another_thread_reads() {
        let (sender, dropped) = mpsc::channel();
        let stage = First(|| Err(anyhow::anyhow!("full")), Some(sender));
        assert_eq!(
            run_endless(|_: &mut Chunk<()>| {}, stage)
                .map(drop)
                .unwrap_err()
                .to_string(),
            "full"
        );
        dropped.try_recv().expect("the stage is dropped before the return");
    }

    /// Tells that it was abandoned.
    struct Abandoned(Sender<()>);

    impl Work<()> for Abandoned {
        fn work(&self, _: &mut Chunk<()>) {}

        fn abandon(&self) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn a_panic_ends_the_waiting_as_an_error_does() {
        let (abandon, abandoned) = mpsc::channel();
        let (drop, dropped) = mpsc::channel();
        let stage = First(|| panic!("of the stage"), Some(drop));
        let run = AssertUnwindSafe(|| run_endless(Abandoned(abandon), stage).map(|_| ()));
        assert!(panic::catch_unwind(run).is_err());
        abandoned.try_recv().expect("others may wait in `finish`");
        dropped.try_recv().expect("others may wait for their turn");
    }

    #[test]
    fn a_turn_waits_for_those_before_it_and_ends() {
        let order = InOrder::new(Vec::new());
        let turn = |number, result: Result<()>| {
            order.turn(number, number + 1, |taken| {
                taken.push(number);
                result
            })
        };
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let others = scope.spawn(|| {
                sender.send(turn(1, Ok(())).is_some()).unwrap();
                sender.send(turn(3, Ok(())).is_some()).unwrap();
            });
            let waits = || receiver.recv_timeout(Duration::from_millis(50)).is_err();
            assert!(waits());
            turn(0, Ok(())).unwrap().unwrap();
            assert_eq!(receiver.recv(), Ok(true));
            // After an error the turn is still the one that failed.
            turn(2, Err(anyhow::anyhow!("full"))).unwrap().unwrap_err();
            assert!(waits());
            assert_eq!(order.end(), Some(vec![0, 1, 2]));
            assert_eq!(receiver.recv(), Ok(false));
            others.join().unwrap();
        });
        assert!(order.end().is_none() && turn(4, Ok(())).is_none());
    }

    /// The thread holds no lock then, so no poison tells the others. They would wait for its chunk.
    #[test]
    #[should_panic(expected = "it has panicked")]
    fn a_panic_of_the_work_returns_while_another_thread_reads() {
        let _ = run_endless(|_: &mut Chunk<()>| panic!("of the work"), First(|| Ok(()), None));
    }
}
