//! The server's log on standard error, where no reader of it can stop the server.
//!
//! A reader that has gone away, a full disk and a reader that reads no more cost log lines, which
//! are counted, and nothing else: writing never fails and never waits for long ([`PATIENCE`]).

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use zonda_netio::descriptors::is_writable;

/// How long each 4 KiB of a line wait for a slow reader, and lines of other threads behind it. Any
/// thread may write a line, a UDP worker too, whose clients wait as long; once a reader has not
/// read in that time, lines wait no more until it reads again.
const PATIENCE: Duration = Duration::from_millis(100);

/// Octets that a pipe takes without blocking once it is writable (pipe(7), `PIPE_BUF`).
const PIPE_BYTES: usize = 4096;

/// Log lines of this process that could not be written.
static LINES_LOST: AtomicU64 = AtomicU64::new(0);

/// How the last line of this process was written.
static LAST: Mutex<State> = Mutex::new(State { ends_in_half_a_line: false, is_stalled: false });

/// Log lines of this process that could not be written, because the reader of standard error has
/// gone away or reads no more, or its disk is full.
pub fn lines_lost() -> u64 {
    LINES_LOST.load(Relaxed)
}

/// Standard error, for a subscriber of `tracing` that writes each event with one call. Writing
/// always succeeds; what cannot be written is counted and left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandardError;

impl Write for StandardError {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_all(line)?;
        Ok(line.len())
    }

    fn write_fmt(&mut self, arguments: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(arguments.to_string().as_bytes()) // a line at once
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if last.write(&mut io::stderr().lock(), line).is_err() {
            LINES_LOST.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // nothing is buffered
    }
}

/// How the last line was written.
struct State {
    /// Whether it was cut, so that the next one begins with a line break.
    ends_in_half_a_line: bool,
    /// Whether its reader did not read in time.
    is_stalled: bool,
}

impl State {
    /// Writes a line, waiting for a reader but not for long.
    fn write(&mut self, out: &mut (impl Write + AsFd), line: &[u8]) -> io::Result<()> {
        let line_break = if self.ends_in_half_a_line { &b"\n"[..] } else { b"" };
        for chunk in [line_break].into_iter().chain(line.chunks(PIPE_BYTES)) {
            if chunk.is_empty() {
                continue;
            }
            let patience = if self.is_stalled { Duration::ZERO } else { PATIENCE };
            self.is_stalled = !is_writable(out.as_fd(), patience);
            if self.is_stalled {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let mut left = chunk;
            while !left.is_empty() {
                match out.write(left) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => {
                        left = &left[count..];
                        self.ends_in_half_a_line = true;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.ends_in_half_a_line = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, pipe};

    fn state() -> State {
        State { ends_in_half_a_line: false, is_stalled: false }
    }

    #[test]
    fn a_reader_that_reads_no_more_costs_lines_and_no_time_and_no_half_line_stays_alone() {
        let (mut reader, mut writer) = pipe().unwrap();
        let mut state = state();
        // Five pages of the pipe's sixteen.
        let long = [&[b'x'; 4 * PIPE_BYTES][..], b"\n"].concat();
        let begin = std::time::Instant::now();
        let lost = (0..1000).filter(|_| state.write(&mut writer, &long).is_err()).count();
        assert!(lost > 900, "{lost} lost");
        assert!(begin.elapsed() < 20 * PATIENCE, "{:?}", begin.elapsed());
        assert!(state.ends_in_half_a_line);
        let mut taken = vec![0; 1 << 16];
        let mut count = reader.read(&mut taken).unwrap();
        state.write(&mut writer, b"next\n").unwrap();
        drop(writer);
        taken.truncate(count);
        count = reader.read_to_end(&mut taken).unwrap();
        assert!(count > 0 && taken.ends_with(b"x\nnext\n"));
    }

    #[test]
    fn a_reader_that_has_gone_away_is_an_error_at_once() {
        let (reader, mut writer) = pipe().unwrap();
        drop(reader);
        let error = state().write(&mut writer, b"line\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
