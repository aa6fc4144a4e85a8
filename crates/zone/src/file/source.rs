//! Text that is read piece by piece, so that a file of any size needs little memory.

use super::lexer::ENTRY_BYTES_MAX;
use std::io::{self, Read};

/// How much is read at once: enough to make system calls rare, little enough to stay in the
/// processor's second-level cache.
const PIECE: usize = 256 << 10;

/// A window on a text: what is read and not yet consumed.
pub(super) struct Source<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The window within the buffer.
    start: usize,
    end: usize,
    is_last: bool,
}

impl<R: Read> Source<R> {
    /// A source that has read nothing yet of a text of `len` octets; 0 stands for one of unknown
    /// length, such as a pipe. Room for one octet more shows the end of a short text at once.
    pub(super) fn new(reader: R, len: u64) -> Self {
        let room = match usize::try_from(len) {
            Ok(len @ 1..PIECE) => len + 1,
            _ => PIECE,
        };
        Self { reader, buffer: vec![0; room], start: 0, end: 0, is_last: false }
    }

    /// The window.
    pub(super) fn text(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether nothing follows the window.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Takes octets off the beginning of the window.
    pub(super) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Enlarges the window at its end. A window that holds the longest entry need not grow, so the
    /// buffer is at most twice as long as that.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            debug_assert!(self.end <= ENTRY_BYTES_MAX, "an entry that long is consumed");
            self.buffer.resize(2 * self.end, 0);
        }
        while !self.is_last && self.end < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.is_last = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_last = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
