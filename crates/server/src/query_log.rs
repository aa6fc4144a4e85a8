//! One line for each query, written by a thread of its own.
//!
//! Workers put fixed-size events into a bounded channel and never wait: what does not fit is
//! dropped and counted.

mod filter;

use crate::watchdog::Watchdog;
use arc_swap::ArcSwapOption;
use filter::Filter;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use zonda_config::{LogFormat, Output, QueryLog as Config};
use zonda_engine::code::Tags;
use zonda_engine::{Event, Observer, Reason, Transport};
use zonda_wire::name::{NAME_BYTES_MAX, Presentation};
use zonda_wire::{Class, Rcode, Type};

/// How long a stop waits for lines to be written.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// How long after a failure to open the file anew that is tried again.
const REOPEN_PAUSE: Duration = Duration::from_secs(10);

/// Octets that are written at once; a pipe takes so many whole (pipe(7), `PIPE_BUF`), so that no
/// line is mixed with one of the server's own log on standard error that is as short.
const CHUNK_BYTES: usize = 4096;

/// The log's handle, of which there is one whether queries are logged or not: a reload may have
/// them logged, or logged otherwise.
#[derive(Clone)]
pub struct QueryLog(Arc<Shared>);

/// What all handles of the log share.
struct Shared {
    /// Where lines go; nowhere while no queries are logged.
    current: ArcSwapOption<Sink>,
    /// Whether lines go anywhere: what `current` says, for threads that read it with each batch.
    is_on: AtomicBool,
    /// Lines that no writer so far has written.
    dropped: Arc<AtomicU64>,
    /// Watches the writers.
    watchdog: Arc<Watchdog>,
}

/// A log that is open, with the thread that writes it. The thread ends once the last sink is gone
/// that sends to it, and has written by then what was sent.
pub struct Sink {
    entries: SyncSender<Entry>,
    /// Whether the file was renamed, so that it is to be opened anew.
    is_reopen_due: Arc<AtomicBool>,
    sample: u32,
    filter: Filter,
}

/// What the writer is sent.
#[expect(clippy::large_enum_variant, reason = "almost all are lines, and a box is an allocation")]
enum Entry {
    Line(Line),
    /// An empty message that wakes the writer, which may have to open its file anew.
    Wake,
    /// A thread that waits until all that was sent before is written.
    Written(SyncSender<()>),
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
    /// What the user's code has noted.
    tags: Tags,
}

impl QueryLog {
    /// Opens the log that is configured, if one is; its thread is watched by `watchdog`.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(config: &Config, watchdog: &Arc<Watchdog>) -> io::Result<Self> {
        let log = Self(Arc::new(Shared {
            current: ArcSwapOption::empty(),
            is_on: AtomicBool::new(false),
            dropped: Arc::default(),
            watchdog: Arc::clone(watchdog),
        }));
        log.replace(log.sink(config)?);
        Ok(log)
    }

    /// Opens another log, for [`replace`](Self::replace); none where queries are not to be logged.
    ///
    /// # Errors
    /// When the file cannot be opened, or the system has no thread left.
    pub fn sink(&self, config: &Config) -> io::Result<Option<Sink>> {
        let Some(output) = config.output.0.clone() else { return Ok(None) };
        let is_reopen_due = Arc::<AtomicBool>::default();
        let (entries, receiver) = sync_channel(config.capacity as usize);
        let mut writer = Writer {
            target: Target::open(&output)?,
            output,
            format: config.format,
            dropped: Arc::clone(&self.0.dropped),
            is_reopen_due: Arc::clone(&is_reopen_due),
            failed_reopen: None,
        };
        let write = move || {
            writer.run(&receiver);
            true // nothing is there any more that could send a line
        };
        self.0.watchdog.spawn("query-log", write)?;
        Ok(Some(Sink {
            entries,
            is_reopen_due,
            sample: config.sample,
            filter: Filter::new(config),
        }))
    }

    /// Has lines go into another log from now on, or nowhere.
    pub fn replace(&self, sink: Option<Sink>) {
        let is_on = sink.is_some();
        self.0.current.store(sink.map(Arc::new));
        self.0.is_on.store(is_on, Relaxed);
    }

    /// Returns an observer that writes the queries of a worker to the log.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(Sampler { log: self.clone(), skipped: 0 })
    }

    /// Whether queries are logged.
    pub fn is_on(&self) -> bool {
        self.0.is_on.load(Relaxed)
    }

    /// Lines that were dropped because a writer did not keep up.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Relaxed)
    }

    /// Has the file opened anew, because it was renamed. Does not wait: a writer that is stuck does
    /// so once it writes again.
    pub fn reopen(&self) {
        if let Some(sink) = &*self.0.current.load() {
            sink.is_reopen_due.store(true, Relaxed);
            // If there is no room, other entries wake it.
            let _ = sink.entries.try_send(Entry::Wake);
        }
    }

    /// Waits until all lines are written, but not long.
    pub fn flush(&self) {
        let Some(sink) = self.0.current.load_full() else { return };
        let deadline = Instant::now() + FLUSH_MAX;
        let (written, wait) = sync_channel(1);
        let mut entry = Entry::Written(written);
        while let Err(TrySendError::Full(back)) = sink.entries.try_send(entry) {
            if Instant::now() > deadline {
                return;
            }
            entry = back;
            thread::sleep(Duration::from_millis(5));
        }
        let _ = wait.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// A worker's view of the log.
struct Sampler {
    log: QueryLog,
    skipped: u32,
}

impl Observer for Sampler {
    fn is_active(&self) -> bool {
        self.log.is_on()
    }

    fn observe(&mut self, event: &Event<'_>) {
        let sink = self.log.0.current.load();
        let Some(sink) = &*sink else { return };
        if !sink.filter.admits(event) {
            return;
        }
        self.skipped = self.skipped.saturating_add(1);
        if self.skipped < sink.sample {
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
            tags: event.tags.clone(),
        };
        if sink.entries.try_send(Entry::Line(line)).is_err() {
            self.log.0.dropped.fetch_add(1, Relaxed);
        }
    }
}

/// Where lines go. Its buffer holds whole lines, so that a killed server leaves no half of one.
struct Target(BufWriter<File>);

impl Target {
    /// Opens what is configured. Standard output and error are written to beside their locks, which
    /// a reader that does not read would have held for ever.
    fn open(output: &Output) -> io::Result<Self> {
        let file = match output {
            Output::Stdout => io::stdout().as_fd().try_clone_to_owned()?.into(),
            Output::Stderr => io::stderr().as_fd().try_clone_to_owned()?.into(),
            Output::File(path) => open_file(path)?,
        };
        Ok(Self(BufWriter::with_capacity(CHUNK_BYTES, file)))
    }

    /// Whether the output is a file that has no name any more, so that lines written to it are
    /// lost.
    fn is_deleted(&self) -> bool {
        self.0.get_ref().metadata().is_ok_and(|about| about.is_file() && about.nlink() == 0)
    }

    /// Gives it up. Returns how many lines it has not taken, which are lost with it.
    fn close(self) -> u64 {
        // A buffer that is dropped would try to write what is counted here.
        let left = self.0.into_parts().1.unwrap_or_default();
        left.iter().filter(|octet| **octet == b'\n').count() as u64
    }
}

/// Mode of a new file: names that clients ask for are for the server's user and group alone.
const MODE: u32 = 0o640;

/// Opens a file to be appended to. A process that was killed while it wrote may have left half a
/// line, which the first new line must not continue.
///
/// A named pipe is opened to be read, too: so neither opening it nor writing to it depends on a
/// reader being there, and lines wait in it for one until it is full.
fn open_file(path: &Path) -> io::Result<File> {
    let about = fs::symlink_metadata(path);
    if about.as_ref().is_ok_and(|it| it.is_symlink()) {
        let target = fs::read_link(path).unwrap_or_default();
        let (path, target) = (path.display(), target.display());
        return Err(io::Error::other(format!(
            "query-log.output: {path} is a symbolic link to {target}; write the path of the file \
             itself, or \"stdout\" or \"stderr\" for those of the server"
        )));
    }
    if about.as_ref().is_ok_and(|it| it.file_type().is_fifo()) {
        return OpenOptions::new().read(true).write(true).open(path);
    }
    let ends_in_half_a_line =
        about.is_ok_and(|it| it.is_file() && it.len() > 0) && last_octet(path)? != b'\n';
    let mut file = zonda_netio::file::append(path, MODE)?;
    if ends_in_half_a_line {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// The last octet of a file that is not empty.
fn last_octet(path: &Path) -> io::Result<u8> {
    let mut file = File::open(path)?;
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last[0])
}

/// The thread that writes.
struct Writer {
    target: Target,
    output: Output,
    format: LogFormat,
    dropped: Arc<AtomicU64>,
    is_reopen_due: Arc<AtomicBool>,
    /// The last failure to open the file anew, if it was not opened since.
    failed_reopen: Option<FailedReopen>,
}

/// A file that could not be opened anew, so that lines go into the former one.
struct FailedReopen {
    /// When that is tried again.
    next: Instant,
    /// Whether the former file is deleted.
    loses_lines: bool,
}

impl Writer {
    /// Writes what is sent until all senders are gone.
    fn run(&mut self, entries: &Receiver<Entry>) {
        loop {
            match self.next_entry(entries) {
                Ok(first) => self.take(first),
                Err(RecvTimeoutError::Timeout) => self.reopen_if_due(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(next) = entries.try_recv() {
                self.take(next);
            }
            self.flush();
        }
    }

    /// Waits for an entry, or for the time to open the file anew.
    fn next_entry(&self, entries: &Receiver<Entry>) -> Result<Entry, RecvTimeoutError> {
        match &self.failed_reopen {
            Some(failed) => {
                entries.recv_timeout(failed.next.saturating_duration_since(Instant::now()))
            }
            None => entries.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Opens the file anew if that was asked for, or has failed before and is to be tried again.
    fn reopen_if_due(&mut self) {
        let is_asked_for = self.is_reopen_due.swap(false, Relaxed);
        let is_retry = || self.failed_reopen.as_ref().is_some_and(|it| it.next <= Instant::now());
        if is_asked_for || is_retry() {
            self.reopen();
        }
    }

    /// Opens the file anew, under the name that it should have.
    fn reopen(&mut self) {
        self.flush();
        match Target::open(&self.output) {
            Ok(target) => {
                let former = std::mem::replace(&mut self.target, target);
                self.dropped.fetch_add(former.close(), Relaxed);
                if self.failed_reopen.take().is_some() {
                    tracing::info!("the query log could be opened anew");
                }
            }
            Err(error) => {
                if self.failed_reopen.is_none() {
                    tracing::error!(
                        %error,
                        "the query log cannot be opened anew: lines go into the former file, \
                         until a later try succeeds"
                    );
                }
                let next = Instant::now() + REOPEN_PAUSE;
                let loses_lines = self.target.is_deleted();
                self.failed_reopen = Some(FailedReopen { next, loses_lines });
            }
        }
    }

    /// Does what an entry says, in a new file if one is due: looked at for each entry, since under
    /// load the queue may never be empty.
    fn take(&mut self, entry: Entry) {
        self.reopen_if_due();
        match entry {
            Entry::Line(line) => {
                let text = match self.format {
                    LogFormat::Text => line.to_text(),
                    #[cfg(feature = "whole")]
                    LogFormat::Json => line.to_json(),
                    #[cfg(not(feature = "whole"))] // only a file asks for JSON
                    LogFormat::Json => line.to_text(),
                };
                let written = self.target.0.write_all(text.as_bytes());
                if written.is_err() || self.failed_reopen.as_ref().is_some_and(|it| it.loses_lines)
                {
                    self.dropped.fetch_add(1, Relaxed);
                }
            }
            Entry::Wake => {}
            Entry::Written(waiting) => {
                self.flush();
                let _ = waiting.send(()); // the waiting thread may be gone
            }
        }
    }

    /// Writes what is buffered; a full disk is told of once the buffer is full.
    fn flush(&mut self) {
        let _ = self.target.0.flush();
    }
}

impl Line {
    /// `time client transport name class type rcode reason octets`, then what code has noted.
    fn to_text(&self) -> String {
        let rcode = self.rcode.map_or_else(|| "-".to_owned(), |rcode| rcode.to_string());
        let tags = self.tags.iter().map(|(key, value)| {
            // A value with line breaks must not look like a line of its own.
            format!(" {}={}", key.escape_debug(), value.escape_debug())
        });
        format!(
            "{} {} {} {} {} {} {rcode} {} {}{}\n",
            Rfc3339(self.unix_secs),
            self.client,
            self.transport.name(),
            self.name(),
            self.qclass,
            self.qtype,
            self.reason.name(),
            self.reply_bytes,
            tags.collect::<String>(),
        )
    }

    /// Returns the line as an object of JSON.
    #[cfg(feature = "whole")]
    fn to_json(&self) -> String {
        let mut object = serde_json::json!({
            "time": Rfc3339(self.unix_secs).to_string(),
            "client": self.client.ip().to_string(),
            "port": self.client.port(),
            "transport": self.transport.name(),
            "name": self.name().to_string(),
            "class": self.qclass.to_string(),
            "type": self.qtype.to_string(),
            "rcode": self.rcode.map(|rcode| rcode.to_string()),
            "reason": self.reason.name(),
            "bytes": self.reply_bytes,
        });
        let tags: serde_json::Map<_, _> =
            self.tags.iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        if !tags.is_empty() {
            object["tags"] = tags.into();
        }
        format!("{object}\n")
    }

    /// The name asked for.
    fn name(&self) -> Presentation<'_> {
        Presentation(&self.name[..usize::from(self.name_len)])
    }
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
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    #[test]
    fn a_line_says_the_same_as_text_and_as_json() {
        let mut name = [0; NAME_BYTES_MAX];
        name[..7].copy_from_slice(b"\x03a\"b\x01c\0");
        let line = Line {
            unix_secs: 0,
            client: "[2001:db8::1]:53".parse().expect("an address"),
            transport: Transport::Udp,
            name,
            name_len: 7,
            qclass: Class::IN,
            qtype: Type::AAAA,
            rcode: None,
            reason: Reason::NotAQuery,
            reply_bytes: 0,
            tags: Tags::default(),
        };
        let text = "1970-01-01T00:00:00Z [2001:db8::1]:53 udp a\\\"b.c. IN AAAA - not_a_query 0\n";
        assert_eq!(line.to_text(), text);
        let json =
            r#"{"bytes":0,"class":"IN","client":"2001:db8::1","name":"a\\\"b.c.","port":53,"#;
        assert!(line.to_json().starts_with(json), "{}", line.to_json());
        assert!(line.to_json().ends_with("\"type\":\"AAAA\"}\n"), "{}", line.to_json());
    }

    #[test]
    fn what_code_has_noted_stands_behind_the_rest_and_stays_on_one_line() {
        let mut tags = Tags::default();
        tags.set("user".into(), &"anna");
        tags.set("why".into(), &"a\nb");
        let client = "192.0.2.1:53".parse().expect("an address");
        let mut line = Line {
            unix_secs: 0,
            client,
            transport: Transport::Udp,
            name: [0; NAME_BYTES_MAX],
            name_len: 1,
            qclass: Class::IN,
            qtype: Type::A,
            rcode: Some(Rcode::NOERROR),
            reason: Reason::Handled,
            reply_bytes: 12,
            tags,
        };
        assert!(line.to_text().ends_with(" 12 user=anna why=a\\nb\n"), "{}", line.to_text());
        let json = r#","tags":{"user":"anna","why":"a\nb"},"#;
        assert!(line.to_json().contains(json), "{}", line.to_json());
        line.tags = Tags::default();
        assert!(!line.to_json().contains("tags"), "{}", line.to_json());
    }

    /// A line for the root.
    fn line() -> Entry {
        Entry::Line(Line {
            unix_secs: 0,
            client: "192.0.2.1:53".parse().expect("an address"),
            transport: Transport::Udp,
            name: [0; NAME_BYTES_MAX],
            name_len: 1,
            qclass: Class::IN,
            qtype: Type::A,
            rcode: Some(Rcode::NOERROR),
            reason: Reason::Answered,
            reply_bytes: 12,
            tags: Tags::default(),
        })
    }

    /// A writer to a file that is there.
    fn writer(path: &Path) -> Writer {
        let output = Output::File(path.to_owned());
        Writer {
            target: Target::open(&output).expect("the folder is writable"),
            output,
            format: LogFormat::Text,
            dropped: Arc::default(),
            is_reopen_due: Arc::default(),
            failed_reopen: None,
        }
    }

    /// An empty folder for one test.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("zonda-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder); // of a process of the same number
        fs::create_dir(&folder).expect("the folder for temporary files is writable");
        folder
    }

    /// The lines in a file.
    fn lines(path: &Path) -> usize {
        fs::read_to_string(path).expect("it is there").lines().count()
    }

    #[test]
    fn a_file_that_cannot_be_opened_anew_is_tried_again_and_lines_that_are_lost_are_counted() {
        let folder = folder("reopen");
        let (logs, moved) = (folder.join("logs"), folder.join("moved"));
        fs::create_dir(&logs).expect("the folder is writable");
        let mut writer = writer(&logs.join("queries"));
        writer.take(line());
        fs::rename(&logs, &moved).expect("both are in one folder");
        writer.is_reopen_due.store(true, Relaxed);
        writer.take(line());
        writer.flush();
        assert_eq!(lines(&moved.join("queries")), 2, "lines go on into the former file");
        assert_eq!(writer.dropped.load(Relaxed), 0);
        fs::remove_dir_all(&moved).expect("it is this test's");
        let retry_now = |writer: &mut Writer| {
            let failed = writer.failed_reopen.as_mut().expect("it has failed");
            failed.next = Instant::now();
        };
        retry_now(&mut writer);
        writer.take(line());
        assert_eq!(writer.dropped.load(Relaxed), 1, "the former file is deleted");
        fs::create_dir(&logs).expect("the folder is writable");
        retry_now(&mut writer);
        writer.take(line());
        writer.flush();
        assert_eq!((lines(&logs.join("queries")), writer.dropped.load(Relaxed)), (1, 1));
        assert!(writer.failed_reopen.is_none());
        let _ = fs::remove_dir_all(&folder); // it is in the way of no other test
    }

    #[test]
    fn a_line_is_either_written_or_counted_as_dropped() {
        let folder = folder("dropped");
        let path = folder.join("queries");
        let mut writer = writer(&path);
        // A file that takes nothing now, and something once its peer has read.
        let (peer, full) = UnixStream::pair().expect("a pair of sockets");
        full.set_nonblocking(true).expect("a socket need not block");
        peer.set_nonblocking(true).expect("a socket need not block");
        writer.target.0 = BufWriter::with_capacity(CHUNK_BYTES, OwnedFd::from(full).into());
        let mut sent = 0;
        while writer.dropped.load(Relaxed) < 10 {
            writer.take(line());
            sent += 1;
        }
        let former = std::mem::replace(
            &mut writer.target,
            Target::open(&writer.output).expect("the folder is writable"),
        );
        let mut read = vec![0; 1 << 20];
        let mut taken = (&peer).read(&mut read).expect("there is much");
        let left = former.0.buffer().len();
        assert!(left > 0, "there is room now, but the file is given up");
        writer.dropped.fetch_add(former.close(), Relaxed);
        while let Ok(more @ 1..) = (&peer).read(&mut read[taken..]) {
            taken += more;
        }
        let written = read[..taken].iter().filter(|octet| **octet == b'\n').count() as u64;
        assert_eq!(written + writer.dropped.load(Relaxed), sent);
        let _ = fs::remove_dir_all(&folder); // it is in the way of no other test
    }

    #[test]
    fn a_log_is_its_users_and_groups_alone_and_is_not_where_a_link_leads() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let path = std::env::temp_dir().join(format!("zonda-query-log-{}", std::process::id()));
        let (log, link) = (path.with_extension("log"), path.with_extension("link"));
        let file = open_file(&log).expect("the folder for temporary files is writable");
        let mode = file.metadata().expect("it is open").permissions().mode();
        assert_eq!(mode & 0o137, 0, "{mode:o}");
        symlink(&log, &link).expect("there is no such link yet");
        let error = open_file(&link).expect_err("it is a link");
        let error = error.to_string();
        assert!(
            error.contains("is a symbolic link to /") && error.contains("\"stdout\""),
            "{error}"
        );
        for path in [log, link] {
            let _ = fs::remove_file(path); // it is in the way of no other test
        }
    }

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
