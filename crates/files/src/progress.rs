//! A progress bar on stderr, if that is a terminal; how much of the input was read.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the bytes that were read, before decompression.
pub struct Progress {
    read: AtomicU64,
    /// The bytes of all inputs, or 0 if they are not known.
    total: AtomicU64,
    bar: ProgressBar,
}

impl Progress {
    pub fn new(total: Option<u64>, is_shown: bool) -> Self {
        // The target hides itself where stderr is not a terminal.
        let target = if is_shown {
            ProgressDrawTarget::stderr_with_hz(5)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target);
        let style = match total {
            Some(_) => "{wide_bar} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
            None => "{spinner} {binary_bytes}, {binary_bytes_per_sec}",
        };
        bar.set_style(ProgressStyle::with_template(style).expect("the templates are valid"));
        let read = AtomicU64::new(0);
        let total = AtomicU64::new(total.unwrap_or(0));
        Self { read, total, bar }
    }

    pub fn add(&self, bytes: usize) {
        // Relaxed: a count for display and for estimates, which orders nothing.
        let read = self.read.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.bar.set_position(read);
    }

    /// How much was read since the last call.
    pub fn take(&self) -> usize {
        // Relaxed: as in `add`.
        self.read.swap(0, Ordering::Relaxed) as usize
    }

    /// The share of the input that was read, if its size is known.
    pub fn share(&self) -> Option<f64> {
        // Relaxed: as in `add`.
        let (read, total) = (self.read.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        (total > 0).then(|| (read as f64 / total as f64).min(1.0))
    }

    /// Begins another pass over the input, which has `total` bytes.
    pub fn restart(&self, total: u64) {
        // Relaxed: as in `add`; no thread is reading now.
        self.read.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.bar.set_length(total);
    }

    /// Takes the bar from the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The bar goes before an error message comes.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
