//! Wakes an event loop that watches a socket.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// A socket that can be read from when there is something to do.
#[derive(Debug)]
pub struct Wake {
    reader: UnixStream,
    writer: UnixStream,
    /// Whether an octet lies in the socket, so that one call to the system serves many wakes.
    is_awake: AtomicBool,
}

impl Wake {
    /// Makes one that no reader watches yet.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { reader, writer, is_awake: AtomicBool::new(false) })
    }

    /// What to watch.
    pub fn descriptor(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// Wakes the reader. Does not block.
    pub fn wake(&self) {
        if !self.is_awake.swap(true, Ordering::AcqRel) {
            let _ = (&self.writer).write(&[0]); // it holds one octet at most, so there is room
        }
    }

    /// Makes it sleep. What is looked for afterwards is not missed.
    pub fn clear(&self) {
        if self.is_awake.load(Ordering::Acquire) {
            let _ = (&self.reader).read(&mut [0; 8]); // nothing there yet: it comes, and is a wake
            self.is_awake.store(false, Ordering::Release);
        }
    }
}
