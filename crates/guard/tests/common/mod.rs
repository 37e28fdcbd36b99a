//! A limit on the time of a test: one that hangs ends with a message.

use std::io::{Write, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{process, thread};

/// Enough for every test that is not ignored, also on a machine that is slow and busy.
const LONG: Duration = Duration::from_secs(300);

/// Keep it for the length of the test: `let _limit = Limit::new();`.
pub(crate) struct Limit {
    _end: Sender<()>,
}

impl Limit {
    pub(crate) fn new() -> Self {
        Self::of(LONG)
    }

    /// Ends the process if it is not dropped in `time`: nothing else ends a thread that waits for
    /// a lock.
    pub(crate) fn of(time: Duration) -> Self {
        let test = thread::current().name().unwrap_or("of this thread").to_owned();
        let (end, ended) = channel();
        thread::spawn(move || {
            if ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                // Not `eprintln`: the output of a test is kept until its end.
                let _ = writeln!(stderr(), "\nthe test {test} has not ended in {time:?}");
                process::exit(101);
            }
        });
        Self { _end: end }
    }
}
