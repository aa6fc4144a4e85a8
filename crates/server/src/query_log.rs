//! One line for each query, written by a thread of its own.
//!
//! Workers put fixed-size events into a bounded channel and never wait: what does not fit is
//! dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use zonda_config::{Output, QueryLog as Config};
use zonda_engine::{Event, Observer, Reason, Transport};
use zonda_wire::name::{NAME_BYTES_MAX, Presentation};
use zonda_wire::{Class, Rcode, Type};

/// The writing end, shared by all workers.
#[derive(Clone)]
pub struct QueryLog {
    lines: SyncSender<Line>,
    shared: Arc<Shared>,
    sample: u32,
}

/// What workers and the writer share.
#[derive(Default)]
struct Shared {
    dropped: AtomicU64,
    /// Lines handed over and written, to know when all are.
    sent: AtomicU64,
    written: AtomicU64,
    reopen: AtomicBool,
}

/// What a line says.
struct Line {
    unix_secs: u32,
    client: SocketAddr,
    transport: Transport,
    name: [u8; NAME_BYTES_MAX],
    name_len: u8,
    qclass: Class,
    qtype: Type,
    rcode: Option<Rcode>,
    reason: Reason,
    reply_bytes: u16,
}

impl QueryLog {
    /// Opens the log that is configured, if one is.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(config: &Config) -> io::Result<Option<Self>> {
        let Some(output) = config.output.0.clone() else { return Ok(None) };
        let shared = Arc::<Shared>::default();
        let (lines, receiver) = sync_channel(config.capacity as usize);
        let mut writer =
            Writer { target: Target::open(&output)?, output, shared: Arc::clone(&shared) };
        thread::Builder::new().name("query-log".to_owned()).spawn(move || writer.run(&receiver))?;
        Ok(Some(Self { lines, shared, sample: config.sample }))
    }

    /// What a worker tells of its queries.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(Sampler { log: self.clone(), skipped: 0 })
    }

    /// Lines that were dropped because the writer did not keep up.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }

    /// Has the file opened anew, for whoever renamed it.
    pub fn reopen(&self) {
        self.shared.reopen.store(true, Relaxed);
    }

    /// Waits until all lines are written, but no longer than a second.
    pub fn flush(&self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        let behind = || self.shared.written.load(Relaxed) < self.shared.sent.load(Relaxed);
        while behind() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A worker's view of the log.
struct Sampler {
    log: QueryLog,
    skipped: u32,
}

impl Observer for Sampler {
    fn observe(&mut self, event: &Event<'_>) {
        self.skipped += 1;
        if self.skipped < self.log.sample {
            return;
        }
        self.skipped = 0;
        let mut name = [0; NAME_BYTES_MAX];
        name[..event.name.len()].copy_from_slice(event.name);
        let line = Line {
            unix_secs: event.now.unix_secs,
            client: event.peer.address,
            transport: event.peer.transport,
            name,
            name_len: event.name.len() as u8, // a name has at most 255 octets
            qclass: event.query.qclass,
            qtype: event.query.qtype,
            rcode: event.rcode,
            reason: event.reason,
            reply_bytes: event.reply_bytes as u16, // a reply has at most 65 535 octets
        };
        match self.log.lines.try_send(line) {
            Ok(()) => self.log.shared.sent.fetch_add(1, Relaxed),
            Err(_) => self.log.shared.dropped.fetch_add(1, Relaxed),
        };
    }
}

/// Where lines go.
enum Target {
    Stdout,
    File(BufWriter<File>),
}

impl Target {
    fn open(output: &Output) -> io::Result<Self> {
        match output {
            Output::Stdout => Ok(Self::Stdout),
            Output::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path)?;
                Ok(Self::File(BufWriter::new(file)))
            }
        }
    }
}

/// The thread that writes.
struct Writer {
    target: Target,
    output: Output,
    shared: Arc<Shared>,
}

impl Writer {
    /// Writes lines until no worker is left.
    fn run(&mut self, lines: &Receiver<Line>) {
        const IDLE: Duration = Duration::from_millis(200);
        loop {
            match lines.recv_timeout(IDLE) {
                Ok(line) => {
                    let mut count = self.write(&line);
                    while let Ok(line) = lines.try_recv() {
                        count += self.write(&line);
                    }
                    self.flush();
                    self.shared.written.fetch_add(count, Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.shared.reopen.swap(false, Relaxed) {
                match Target::open(&self.output) {
                    Ok(target) => self.target = target,
                    Err(error) => tracing::error!("the query log cannot be opened anew: {error}"),
                }
            }
        }
    }

    /// Writes a line; returns 1.
    fn write(&mut self, line: &Line) -> u64 {
        let written = match &mut self.target {
            Target::Stdout => write_line(&mut io::stdout().lock(), line),
            Target::File(file) => write_line(file, line),
        };
        if written.is_err() {
            self.shared.dropped.fetch_add(1, Relaxed);
        }
        1
    }

    fn flush(&mut self) {
        if let Target::File(file) = &mut self.target {
            let _ = file.flush(); // a line that is lost was counted, or the disk is full
        }
    }
}

/// Writes `time client transport name class type rcode reason octets`.
fn write_line(to: &mut impl Write, line: &Line) -> io::Result<()> {
    let rcode = line.rcode.map_or_else(|| "-".to_owned(), |rcode| rcode.to_string());
    writeln!(
        to,
        "{} {} {} {} {} {} {rcode} {} {}",
        Rfc3339(line.unix_secs),
        line.client,
        line.transport.name(),
        Presentation(&line.name[..usize::from(line.name_len)]),
        line.qclass,
        line.qtype,
        line.reason.name(),
        line.reply_bytes,
    )
}

/// Prints seconds since 1970 as a date and time of day in UTC.
pub struct Rfc3339(pub u32);

impl std::fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (days, seconds) = (self.0 / 86_400, self.0 % 86_400);
        // Years are counted from March, so that the leap day is the last of its year.
        let shifted = days + 719_468;
        let (era, day) = (shifted / 146_097, shifted % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
        let year = era * 400 + year + u32::from(month <= 2);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_238_400, "2026-11-21T05:20:00Z"),
            (u32::MAX, "2106-02-07T06:28:15Z"),
        ] {
            assert_eq!(Rfc3339(seconds).to_string(), text);
        }
    }
}
