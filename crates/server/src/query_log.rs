//! One line for each query, written by a thread of its own.
//!
//! Workers put fixed-size events into a bounded channel and never wait: what does not fit is
//! dropped and counted.

use crate::watchdog::Watchdog;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use zonda_config::{LogFormat, Output, QueryLog as Config};
use zonda_engine::handlers::Tags;
use zonda_engine::{Event, Observer, Reason, Transport};
use zonda_wire::name::{NAME_BYTES_MAX, Presentation};
use zonda_wire::{Class, Rcode, Type};

/// How long a stop waits for lines to be written.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// The log's handle: makes what workers tell of their queries.
#[derive(Clone)]
pub struct QueryLog {
    entries: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
    /// Whether the file was renamed, so that it is to be opened anew.
    is_reopen_due: Arc<AtomicBool>,
    sample: u32,
}

/// What the writer is sent.
#[expect(clippy::large_enum_variant, reason = "almost all are lines, and a box is an allocation")]
enum Entry {
    Line(Line),
    /// Nothing to write; wakes the writer, which may have to open its file anew.
    Wake,
    /// Whoever waits for what was sent before.
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
    pub fn open(config: &Config, watchdog: &Arc<Watchdog>) -> io::Result<Option<Self>> {
        let Some(output) = config.output.0.clone() else { return Ok(None) };
        let (dropped, is_reopen_due) = (Arc::<AtomicU64>::default(), Arc::default());
        let (entries, receiver) = sync_channel(config.capacity as usize);
        let mut writer = Writer {
            target: open(&output)?,
            output,
            format: config.format,
            dropped: Arc::clone(&dropped),
            is_reopen_due: Arc::clone(&is_reopen_due),
        };
        let write = move || {
            writer.run(&receiver);
            true // nothing is there any more that could send a line
        };
        watchdog.spawn("query-log", write)?;
        Ok(Some(Self { entries, dropped, is_reopen_due, sample: config.sample }))
    }

    /// What a worker tells of its queries.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(Sampler { log: self.clone(), skipped: 0 })
    }

    /// Lines that were dropped because the writer did not keep up.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Has the file opened anew, because it was renamed. Does not wait: a writer that is stuck does
    /// so once it writes again.
    pub fn reopen(&self) {
        self.is_reopen_due.store(true, Relaxed);
        let _ = self.entries.try_send(Entry::Wake); // if there is no room, other entries wake it
    }

    /// Waits until all lines are written, but not long.
    pub fn flush(&self) {
        let deadline = Instant::now() + FLUSH_MAX;
        let (written, wait) = sync_channel(1);
        let mut entry = Entry::Written(written);
        while let Err(TrySendError::Full(back)) = self.entries.try_send(entry) {
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
            tags: event.tags.clone(),
        };
        if self.log.entries.try_send(Entry::Line(line)).is_err() {
            self.log.dropped.fetch_add(1, Relaxed);
        }
    }
}

/// Where lines go. Its buffer holds whole lines, so that a killed server leaves no half of one.
type Target = BufWriter<Box<dyn Write + Send>>;

/// Opens what is configured.
fn open(output: &Output) -> io::Result<Target> {
    Ok(BufWriter::new(match output {
        Output::Stdout => Box::new(io::stdout()),
        Output::File(path) => Box::new(open_file(path)?),
    }))
}

/// Mode of a new file: names that clients ask for are for the server's user and group alone.
const MODE: u32 = 0o640;

/// Opens a file to be appended to. A process that was killed while it wrote may have left half a
/// line, which ours must not go on.
///
/// A named pipe is opened to be read, too: so neither opening it nor writing to it depends on a
/// reader being there, and lines wait in it for one until it is full.
fn open_file(path: &Path) -> io::Result<File> {
    let about = fs::symlink_metadata(path);
    if about.as_ref().is_ok_and(|it| it.is_symlink()) {
        let path = path.display();
        return Err(io::Error::other(format!(
            "query-log.output: {path} is a symbolic link; write the path that it leads to"
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
}

impl Writer {
    /// Writes what is sent until nobody can send any more.
    fn run(&mut self, entries: &Receiver<Entry>) {
        while let Ok(first) = entries.recv() {
            self.take(first);
            while let Ok(next) = entries.try_recv() {
                self.take(next);
            }
            self.flush();
        }
    }

    /// Opens the file anew, under the name that it should have.
    fn reopen(&mut self) {
        self.flush();
        match open(&self.output) {
            Ok(target) => {
                // What the former file did not take is lost with it.
                let left = self.target.buffer().iter().filter(|octet| **octet == b'\n').count();
                self.dropped.fetch_add(left as u64, Relaxed);
                self.target = target;
            }
            Err(error) => tracing::error!("the query log cannot be opened anew: {error}"),
        }
    }

    /// Does what an entry says, in a new file if one is due: looked at for each entry, since under
    /// load the queue may never be empty.
    fn take(&mut self, entry: Entry) {
        if self.is_reopen_due.swap(false, Relaxed) {
            self.reopen();
        }
        match entry {
            Entry::Line(line) => {
                let text = match self.format {
                    LogFormat::Text => line.to_text(),
                    LogFormat::Json => line.to_json(),
                };
                if self.target.write_all(text.as_bytes()).is_err() {
                    self.dropped.fetch_add(1, Relaxed);
                }
            }
            Entry::Wake => {}
            Entry::Written(waiting) => {
                self.flush();
                let _ = waiting.send(()); // who waited may have given up
            }
        }
    }

    /// Writes what is buffered; a full disk is told of once the buffer is full.
    fn flush(&mut self) {
        let _ = self.target.flush();
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

    /// The same as an object of JSON.
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
        assert!(error.to_string().contains("is a symbolic link"), "{error}");
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
