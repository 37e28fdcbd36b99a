//! Code that several programs of tests share.

#![allow(dead_code, reason = "each program uses its part")]

pub(crate) mod filter;

use std::io::{Write, stderr};
use std::sync::Once;
use std::time::Duration;
use std::{process, thread};

/// Enough for all tests of a program, also on a machine that is slow and busy.
const LIMIT: Duration = Duration::from_secs(2700);

/// After so long, nothing will happen any more.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Ends this program after [`LIMIT`], which only a test that hangs takes: nothing else ends a
/// thread that waits for a lock. The harness has named that test by then. What makes caches and
/// guards for tests calls this.
pub(crate) fn limit_time() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        thread::spawn(|| {
            thread::sleep(LIMIT);
            // Not `eprintln`: the output of a test is kept until its end.
            let _ = writeln!(stderr(), "\nthe tests have not ended in {LIMIT:?}");
            process::exit(101);
        });
    });
}
