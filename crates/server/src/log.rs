//! The server's log on standard error, where no reader of it can stop the server.
//!
//! Lines are written by a thread of their own, out of a queue with a bound: a thread that logs
//! never waits for the reader. A reader that is slower than the log, or has gone away, and a full
//! disk cost log lines, which are counted, and nothing else.
//!
//! A line wakes that thread. Where lines go on coming, as one for each update, the thread waits for
//! a moment ([`PAUSE`]) after it has written what there is, so that they wake it a hundred times a
//! second.
//!
//! Before that thread is started ([`start_writer`]), a thread that logs writes its lines itself and
//! waits for the reader, but not for long ([`PATIENCE`]): a process that has yet to give up the
//! rights of root starts no threads.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use zonda_netio::descriptors::is_writable;

/// Octets of lines that wait for the reader of standard error; more are lost. A line that is longer
/// has room if no other line waits.
const QUEUE_BYTES_MAX: usize = 256 << 10;

/// How long each 4 KiB of a line wait for a slow reader before the writer's thread is started; once
/// a reader has not read in that time, lines wait no more until it reads again.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long the writer's thread sleeps at most while it waits for a slow reader.
const NAP: Duration = Duration::from_secs(10);

/// How long the writer's thread leaves lines in the queue at most where lines go on coming.
const PAUSE: Duration = Duration::from_millis(10);

/// How many times in a row a line comes within [`PAUSE`] of the moment from which the writer's
/// thread waits for it, before that thread leaves lines in the queue.
const WAKES_MIN: u32 = 32;

/// How long the end of the server waits for lines to be written.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Octets that a pipe takes without blocking once it is writable (pipe(7), `PIPE_BUF`).
const PIPE_BYTES: usize = 4096;

/// The log of this process.
static LOG: Log = Log::new();

/// Log lines of this process that could not be written, because the reader of standard error has
/// gone away or reads too slowly, or its disk is full.
pub fn lines_lost() -> u64 {
    LOG.lost.load(Relaxed)
}

/// Has a thread of its own write all lines from now on, once for all servers of the process.
///
/// # Errors
/// When the system has no thread left.
pub fn start_writer() -> io::Result<()> {
    let mut queue = LOG.queue();
    if !queue.has_writer {
        // What a program has the log call may panic when this thread tells of lost lines.
        let write = || while catch_unwind(|| LOG.write_queue(&io::stderr())).is_err() {};
        thread::Builder::new().name("log".to_owned()).spawn(write)?;
        queue.has_writer = true;
    }
    Ok(())
}

/// Waits until all log lines are written, but no longer than a second.
pub fn flush_log() {
    LOG.flush(FLUSH_MAX, |queue| !queue.is_written());
}

/// Waits until all log lines are written, or the reader of standard error has to read first, or a
/// tenth of a second has passed: for a line that may be the last one of the process.
pub fn flush_log_to_reader() {
    LOG.flush(PATIENCE, |queue| !queue.is_written() && !queue.awaits_reader);
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
        LOG.put(line, &io::stderr());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // `flush_log` waits
    }
}

/// A log: what is to be written, and what could not be.
struct Log {
    /// Never held while anything is waited for, but before there is a writer.
    queue: Mutex<Queue>,
    /// Told of lines that the writer's thread waits for, and threads that wait for the writer when
    /// lines are written and when the reader has to read.
    changed: Condvar,
    /// All lines that were lost.
    lost: AtomicU64,
}

/// The lines that wait to be written.
struct Queue {
    lines: VecDeque<Box<[u8]>>,
    /// The octets of all waiting lines.
    bytes: usize,
    /// Lines that were lost since the log last said so.
    left_out: u64,
    /// Whether a thread writes the lines of the queue.
    has_writer: bool,
    /// Whether that thread has a line that it has not written yet.
    is_writing: bool,
    /// Whether that thread waits for the reader.
    awaits_reader: bool,
    /// What that thread waits for.
    rest: Rest,
    /// How many times in a row a line has woken that thread soon.
    wakes: u32,
    /// Threads that wait until lines are written.
    flushing: usize,
    /// How the last line was written, while there is no thread that writes.
    last: LastLine,
}

/// What the thread that writes lines waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing: the thread writes, or waits for the reader.
    None,
    /// The end of a moment, in which lines stay in the queue unless they are many.
    Pause,
    /// The next line.
    Idle,
}

impl Queue {
    /// Whether nothing is left to be written.
    fn is_written(&self) -> bool {
        self.lines.is_empty() && !self.is_writing
    }
}

impl Log {
    /// A log without lines.
    const fn new() -> Self {
        let last = LastLine { ends_in_half_a_line: false, is_stalled: false };
        let queue = Queue {
            lines: VecDeque::new(),
            bytes: 0,
            left_out: 0,
            has_writer: false,
            is_writing: false,
            awaits_reader: false,
            rest: Rest::None,
            wakes: 0,
            flushing: 0,
            last,
        };
        Self { queue: Mutex::new(queue), changed: Condvar::new(), lost: AtomicU64::new(0) }
    }

    /// The queue, for a moment.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a line written: by the writer's thread, or at once while there is none.
    fn put<'o, O>(&self, line: &[u8], out: &'o O)
    where
        O: AsFd,
        &'o O: Write,
    {
        let mut queue = self.queue();
        if !queue.has_writer {
            if queue.last.write_with_patience(&mut &*out, out.as_fd(), line).is_err() {
                self.lose(&mut queue);
            }
        } else if queue.bytes > 0 && queue.bytes + line.len() > QUEUE_BYTES_MAX {
            self.lose(&mut queue);
        } else {
            queue.bytes += line.len();
            queue.lines.push_back(line.into());
            let is_due = match queue.rest {
                Rest::None => false,
                Rest::Pause => queue.bytes > QUEUE_BYTES_MAX / 2,
                Rest::Idle => true,
            };
            if is_due {
                self.end_rest(&mut queue);
            }
        }
    }

    /// Has the writer's thread look for lines.
    fn end_rest(&self, queue: &mut Queue) {
        queue.rest = Rest::None;
        self.changed.notify_all();
    }

    /// Counts a line that is lost.
    fn lose(&self, queue: &mut Queue) {
        queue.left_out += 1;
        self.lost.fetch_add(1, Relaxed);
    }

    /// Writes lines as they come, for as long as the process lasts.
    fn write_queue<'o, O>(&self, out: &'o O)
    where
        O: AsFd,
        &'o O: Write,
    {
        let mut last = LastLine { ends_in_half_a_line: false, is_stalled: false };
        std::mem::swap(&mut last, &mut self.queue().last);
        loop {
            let line = self.next_line();
            let written = last.write(&mut &*out, &line, || self.await_reader(out.as_fd()));
            let left_out = self.note_written(line.len(), written.is_ok());
            if left_out > 0 {
                tracing::error!(
                    lines = left_out,
                    "lines of this log were lost: standard error was not read, or took no more"
                );
            }
        }
    }

    /// Waits for the next line and takes it; its octets count until it is written.
    fn next_line(&self) -> Box<[u8]> {
        let mut queue = self.queue();
        loop {
            if let Some(line) = queue.lines.pop_front() {
                queue.is_writing = true;
                return line;
            }
            queue = self.pause(queue);
            if queue.lines.is_empty() {
                queue.rest = Rest::Idle;
                let begin = Instant::now();
                let waited = self.changed.wait_while(queue, |queue| queue.rest == Rest::Idle);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
                let is_soon = begin.elapsed() < PAUSE;
                queue.wakes = if is_soon { queue.wakes.saturating_add(1) } else { 0 };
            }
        }
    }

    /// Where lines go on coming, waits for a moment, for a thread that waits for lines to be
    /// written, or for half of the queue.
    fn pause<'q>(&self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        if queue.flushing > 0 || queue.wakes < WAKES_MIN {
            return queue;
        }
        queue.rest = Rest::Pause;
        let is_pause = |queue: &mut Queue| queue.rest == Rest::Pause;
        let waited = self.changed.wait_timeout_while(queue, PAUSE, is_pause);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.rest = Rest::None;
        queue
    }

    /// Counts a line as written or lost. Returns how many lines were lost before, once lines can be
    /// written again and half of the queue has room.
    fn note_written(&self, bytes: usize, is_written: bool) -> u64 {
        let mut queue = self.queue();
        queue.bytes -= bytes;
        queue.is_writing = false;
        if queue.flushing > 0 {
            self.changed.notify_all();
        }
        if !is_written {
            self.lose(&mut queue);
            return 0;
        }
        let has_room = queue.bytes <= QUEUE_BYTES_MAX / 2;
        if has_room { std::mem::take(&mut queue.left_out) } else { 0 }
    }

    /// Waits until the reader has read enough for a chunk to be written.
    fn await_reader(&self, out: BorrowedFd<'_>) -> bool {
        if is_writable(out, Duration::ZERO) {
            return true;
        }
        self.queue().awaits_reader = true;
        self.changed.notify_all();
        while !is_writable(out, NAP) {}
        self.queue().awaits_reader = false;
        true
    }

    /// Waits while lines are to be waited for, but no longer than `limit`.
    fn flush(&self, limit: Duration, is_pending: impl Fn(&Queue) -> bool) {
        let mut queue = self.queue();
        if queue.has_writer {
            if queue.rest == Rest::Pause {
                self.end_rest(&mut queue);
            }
            queue.flushing += 1;
            let waited = self.changed.wait_timeout_while(queue, limit, |queue| is_pending(queue));
            waited.unwrap_or_else(PoisonError::into_inner).0.flushing -= 1;
        }
    }
}

/// How the last line was written.
struct LastLine {
    /// Whether the last line was cut, so that the next one begins with a line break.
    ends_in_half_a_line: bool,
    /// Whether the reader of the log did not read in time.
    is_stalled: bool,
}

impl LastLine {
    /// Writes a line, waiting for a reader but not for long.
    fn write_with_patience(
        &mut self,
        out: &mut impl Write,
        descriptor: BorrowedFd<'_>,
        line: &[u8],
    ) -> io::Result<()> {
        let mut is_stalled = self.is_stalled;
        let written = self.write(out, line, || {
            let patience = if is_stalled { Duration::ZERO } else { PATIENCE };
            is_stalled = !is_writable(descriptor, patience);
            !is_stalled
        });
        self.is_stalled = is_stalled;
        written
    }

    /// Writes a line, a chunk at a time, each once `is_ready` says that there is room for it.
    fn write(
        &mut self,
        out: &mut impl Write,
        line: &[u8],
        mut is_ready: impl FnMut() -> bool,
    ) -> io::Result<()> {
        let line_break = if self.ends_in_half_a_line { &b"\n"[..] } else { b"" };
        for chunk in [line_break].into_iter().chain(line.chunks(PIPE_BYTES)) {
            if chunk.is_empty() {
                continue;
            }
            if !is_ready() {
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
    use std::io::{PipeReader, PipeWriter, Read, pipe};

    fn last_line() -> LastLine {
        LastLine { ends_in_half_a_line: false, is_stalled: false }
    }

    /// Writes as a process does whose log has no thread of its own yet.
    fn write(last: &mut LastLine, out: &PipeWriter, line: &[u8]) -> io::Result<()> {
        last.write_with_patience(&mut &*out, out.as_fd(), line)
    }

    /// A log with a thread of its own, which lasts as long as the test's process, and the pipe that
    /// it writes to.
    fn log_to_pipe() -> (&'static Log, &'static PipeWriter, PipeReader) {
        let (reader, writer) = pipe().unwrap();
        let (log, writer): (&Log, &PipeWriter) =
            (Box::leak(Box::new(Log::new())), Box::leak(Box::new(writer)));
        log.queue().has_writer = true;
        thread::spawn(|| log.write_queue(writer));
        (log, writer, reader)
    }

    /// Lines of this many octets, the longest that a pipe takes at once.
    fn numbered_line(number: usize) -> Vec<u8> {
        format!("{number:0width$}\n", width = PIPE_BYTES - 1).into_bytes()
    }

    #[test]
    fn a_slow_reader_delays_no_thread_that_logs_and_gets_what_the_queue_holds_in_order() {
        const LINES: usize = 1000;
        let (log, out, mut reader) = log_to_pipe();
        let slow = thread::spawn(move || {
            let mut taken = Vec::new();
            let mut chunk = [0; PIPE_BYTES];
            while !taken.ends_with(b"last\n") {
                thread::sleep(Duration::from_millis(5));
                let count = reader.read(&mut chunk).unwrap();
                taken.extend_from_slice(&chunk[..count]);
            }
            taken
        });
        let begin = Instant::now();
        (0..LINES).for_each(|number| log.put(&numbered_line(number), out));
        let took = begin.elapsed();
        assert!(took < Duration::from_millis(5 * LINES as u64 / 4), "{took:?}");
        let lost = log.lost.load(Relaxed) as usize;
        assert!(lost > LINES / 2, "{lost} lost of {LINES}");
        log.flush(Duration::from_secs(60), |queue| !queue.is_written());
        log.put(b"last\n", out);
        let taken = String::from_utf8(slow.join().unwrap()).unwrap();
        let numbers: Vec<usize> = taken.lines().filter_map(|line| line.parse().ok()).collect();
        assert!(numbers.is_sorted() && numbers.len() == LINES - lost, "{}", numbers.len());
    }

    #[test]
    fn where_lines_go_on_coming_they_wait_for_a_moment_and_a_flush_waits_for_no_longer() {
        let (log, out, mut reader) = log_to_pipe();
        let mut read = |line: &str| {
            let mut read = vec![0; line.len()];
            reader.read_exact(&mut read).unwrap();
            assert_eq!(read, line.as_bytes());
        };
        let rest = |expected: Rest| {
            while log.queue().rest != expected {
                thread::yield_now();
            }
        };
        let mut waited = 0;
        for number in 0..1000 {
            // A thread that gets no CPU for long begins anew.
            let (line, pauses) = (format!("{number:04}\n"), log.queue().wakes >= WAKES_MIN);
            if !pauses {
                rest(Rest::Idle);
            }
            log.put(line.as_bytes(), out);
            waited += usize::from(log.queue().rest == Rest::Pause);
            if number % 2 == 0 {
                log.flush(Duration::from_secs(60), |queue| !queue.is_written());
                assert!(log.queue().is_written());
            }
            read(&line);
        }
        assert!(waited > 0, "no line has waited");
        rest(Rest::Idle);
        thread::sleep(2 * PAUSE);
        log.put(b"late\n", out);
        read("late\n");
        assert_eq!(log.queue().wakes, 0);
    }

    #[test]
    fn the_log_says_how_many_lines_were_lost_once_there_is_room_again() {
        let (log, out, mut reader) = log_to_pipe();
        let line = numbered_line(1);
        while log.lost.load(Relaxed) < 3 {
            log.put(&line, out);
        }
        assert_eq!(log.queue().left_out, 3);
        let is_stuck = || log.queue().awaits_reader;
        while !is_stuck() {
            thread::sleep(Duration::from_millis(1));
        }
        log.flush(PATIENCE, |queue| !queue.is_written() && !queue.awaits_reader); // returns
        thread::spawn(move || {
            let mut chunk = [0; 1 << 16];
            while reader.read(&mut chunk).is_ok_and(|count| count > 0) {}
        });
        log.flush(Duration::from_secs(60), |queue| !queue.is_written());
        assert_eq!(log.queue().left_out, 0, "it was said");
        assert_eq!((log.queue().bytes, log.lost.load(Relaxed)), (0, 3));
    }

    #[test]
    fn a_reader_that_has_gone_away_costs_lines_and_the_log_says_nothing_of_them() {
        let (log, out, reader) = log_to_pipe();
        drop(reader);
        (0..100).for_each(|_| log.put(b"line\n", out));
        log.flush(Duration::from_secs(60), |queue| !queue.is_written());
        assert_eq!((log.queue().left_out, log.lost.load(Relaxed)), (100, 100));
    }

    #[test]
    fn a_reader_that_reads_no_more_costs_lines_and_no_time_and_no_half_line_stays_alone() {
        let (mut reader, writer) = pipe().unwrap();
        let mut state = last_line();
        // Five pages of the pipe's sixteen.
        let long = [&[b'x'; 4 * PIPE_BYTES][..], b"\n"].concat();
        let begin = Instant::now();
        let lost = (0..1000).filter(|_| write(&mut state, &writer, &long).is_err()).count();
        assert!(lost > 900, "{lost} lost");
        assert!(begin.elapsed() < 20 * PATIENCE, "{:?}", begin.elapsed());
        assert!(state.ends_in_half_a_line);
        let mut taken = vec![0; 1 << 16];
        let mut count = reader.read(&mut taken).unwrap();
        write(&mut state, &writer, b"next\n").unwrap();
        drop(writer);
        taken.truncate(count);
        count = reader.read_to_end(&mut taken).unwrap();
        assert!(count > 0 && taken.ends_with(b"x\nnext\n"));
    }

    #[test]
    fn a_reader_that_has_gone_away_is_an_error_at_once() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let error = write(&mut last_line(), &writer, b"line\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
