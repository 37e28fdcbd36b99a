//! Unpacks compressed files before their turn, each on a thread of its own: to unpack takes longer
//! than all else.

use super::source::{Digest, opened};
use crate::progress::Progress;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// Bytes of a block, which one thread gives to another.
const BLOCK: usize = 256 << 10;

/// The most blocks of a file that wait for its turn: 16 MiB.
const BLOCKS: usize = 64;

/// Unpacked bytes, and how many compressed ones were read for them. A block without bytes says
/// first that the file is open, and then that it is at its end.
type Block = (Vec<u8>, usize);

/// The bytes of a file that a thread unpacks.
pub struct Ahead {
    blocks: Receiver<io::Result<Block>>,
    block: Vec<u8>,
    /// How much of the block was read.
    read: usize,
    is_over: bool,
    progress: Arc<Progress>,
}

impl Ahead {
    pub(super) fn start(path: PathBuf, progress: Arc<Progress>, digest: Option<Digest>) -> Self {
        let (sender, blocks) = mpsc::sync_channel(BLOCKS);
        thread::spawn(move || {
            if let Err(error) = send_all(&path, digest.as_ref(), &sender) {
                // This fails if the reader is gone.
                let _ = sender.send(Err(error));
            }
        });
        Self {
            blocks,
            block: Vec::new(),
            read: 0,
            is_over: false,
            progress,
        }
    }

    /// Waits until the file is open.
    pub(super) fn opened(mut self) -> io::Result<Self> {
        self.take_block()?;
        Ok(self)
    }

    fn take_block(&mut self) -> io::Result<()> {
        let ended = |_| Err(io::Error::other("the thread that reads it has ended"));
        let (block, packed) = self.blocks.recv().unwrap_or_else(ended)?;
        // Not before its turn: the filter grows by the share of the input whose lines it has.
        self.progress.add(packed);
        (self.block, self.read) = (block, 0);
        Ok(())
    }
}

/// Sends the bytes of a file, between two empty blocks.
fn send_all(path: &Path, digest: Option<&Digest>, to: &SyncSender<io::Result<Block>>) -> io::Result<()> {
    let progress = Arc::new(Progress::new(None, false));
    let mut file = opened(path, &progress, digest)?;
    let mut block = Vec::new();
    while to.send(Ok((block, progress.take()))).is_ok() {
        block = Vec::with_capacity(BLOCK);
        if file.by_ref().take(BLOCK as u64).read_to_end(&mut block)? == 0 {
            let _ = to.send(Ok((block, progress.take())));
            break;
        }
    }
    Ok(())
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.block.len() && !self.is_over {
            self.take_block()?;
            self.is_over = self.block.is_empty();
        }
        let len = (&self.block[self.read..]).read(buffer)?;
        self.read += len;
        Ok(len)
    }
}
