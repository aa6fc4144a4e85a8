//! Queries over TCP and TLS: many at a time over one stream, their answers in any order.
//!
//! ```text
//! ask ─► table: a new message ID ─► channel ─► writer ─► stream
//! ask ◄─ the caller's ID restored ◄─ table ◄── reader ◄─┘
//! ```
//! One task for each connection reads, writes and watches the time. It ends, and with it all that
//! still wait, when either side closes, when nothing was asked for as long as the server allows
//! (rfc7828), or when the server has been silent for too long.
//!
//! # Invariants
//! - An id is in the table from before its query is written until its answer has come or its asker
//!   has gone. Ids count up, so that a late answer finds another asker after 65,536 queries only.
//! - An id whose asker has gone is given up until its answer comes, or another asker has it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(feature = "encrypted")]
use rustls::HandshakeKind;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
#[cfg(feature = "encrypted")]
use tokio_rustls::TlsConnector;
use zonda_wire::Response;
use zonda_wire::query::{HEADER_BYTES, option};

use crate::fault::Fault;
use crate::intake::{Intake, MeteredStream};
use crate::tls::Tls;

/// Most queries that wait at once: more than a zone lets wait for one server, and far fewer than
/// there are ids.
const WAITING_MAX: usize = 1 << 14;
/// A server that has left queries without any answer for so long is asked over another connection,
/// if it is there at all: a host that went away says nothing.
const STALLED_AFTER: Duration = Duration::from_millis(1500);
/// Silence after which a server seems dead for which many queries wait: that none of them gets an
/// answer is no slow look-up.
const STALLED_SOON_AFTER: Duration = Duration::from_millis(500);
/// Fewest waiting queries for [`STALLED_SOON_AFTER`].
const MANY: usize = 8;
/// Silence after which the connection is closed.
const DEAD_AFTER: Duration = Duration::from_secs(10);
/// How long a connection stays open unused when the server does not say how long it may: seconds,
/// not minutes (rfc7766#6.2.3).
const IDLE_MAX_UNSAID: Duration = Duration::from_secs(10);
/// The longest idle time that a server can ask for.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// Time between two looks at the clock; an error of that much does no harm.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How long closing may take.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// Octets after which queries that wait to be written are written.
const WRITE_BYTES: usize = 16 * 1024;

/// A connection over TCP or TLS.
#[derive(Debug)]
pub struct StreamSession {
    /// Table shared with the task.
    table: Arc<Table>,
    /// Queries for the task, with lengths. Dropping the sender ends the task.
    queries: UnboundedSender<Vec<u8>>,
    /// Count of received octets.
    intake: Arc<Intake>,
    /// Whether TLS has resumed an earlier session.
    is_resumed: bool,
}

impl StreamSession {
    /// Connects, with `tls` encrypted.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open(address: SocketAddr, tls: Option<&Tls>) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let intake = Arc::new(Intake::default());
        let stream = MeteredStream::new(stream, &intake);
        let Some(tls) = tls else { return Ok(Self::over(stream, intake, false)) };
        Self::encrypted(stream, intake, tls).await
    }

    /// Completes the handshake of TLS, and starts the task.
    #[cfg(feature = "encrypted")]
    async fn encrypted(
        stream: MeteredStream<TcpStream>,
        intake: Arc<Intake>,
        tls: &Tls,
    ) -> Result<Self, Fault> {
        let connector = TlsConnector::from(Arc::clone(tls.config()));
        let stream = connector.connect(tls.name().clone(), stream).await?;
        let is_resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
        intake.begin();
        Ok(Self::over(stream, intake, is_resumed))
    }

    /// Never called, as there are no settings of TLS.
    #[cfg(not(feature = "encrypted"))]
    async fn encrypted<S>(_stream: S, _intake: Arc<Intake>, tls: &Tls) -> Result<Self, Fault> {
        tls.never()
    }

    /// Starts the task.
    fn over(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        intake: Arc<Intake>,
        is_resumed: bool,
    ) -> Self {
        let table = Arc::new(Table(Mutex::new(Waiters::new())));
        let (queries, to_write) = unbounded_channel();
        tokio::spawn(drive(stream, to_write, Arc::clone(&table), Arc::clone(&intake)));
        Self { table, queries, intake, is_resumed }
    }

    /// Sends a query; see [`Session::ask`](crate::Session::ask).
    pub async fn ask(&self, query: &[u8]) -> Result<Vec<u8>, Fault> {
        let len = u16::try_from(query.len()).map_err(|_| Fault::Malformed)?;
        let asked_as = *query.first_chunk::<2>().ok_or(Fault::Malformed)?;
        let (sender, answer) = oneshot::channel();
        let (place, mut asking) = (self.table.enter(sender)?, self.intake.ask());
        let mut framed = [&len.to_be_bytes(), query].concat();
        framed[2..4].copy_from_slice(&place.id.to_be_bytes());
        self.queries.send(framed).map_err(|_| Fault::Closed)?;
        let mut message = answer.await.map_err(|_| self.table.fault())?;
        asking.answered(message.len());
        message[..2].copy_from_slice(&asked_as); // the reader takes whole headers only
        Ok(message)
    }

    /// Says whether queries are taken; see [`Session::is_open`](crate::Session::is_open).
    pub fn is_open(&self) -> bool {
        let waiting = self.table.lock();
        waiting.ended.is_none() && !waiting.is_leaving && !waiting.is_stalled()
    }

    /// Says whether the server seems dead; see [`Session::is_stalled`](crate::Session::is_stalled).
    pub fn is_stalled(&self) -> bool {
        let waiting = self.table.lock();
        waiting.ended.is_none() && !waiting.is_leaving && waiting.is_stalled()
    }

    /// Counts waiting queries; see [`Session::waiting`](crate::Session::waiting).
    pub fn waiting(&self) -> usize {
        self.table.lock().askers.len()
    }

    /// Counts late answers; see [`Session::late`](crate::Session::late).
    pub fn late(&self) -> u64 {
        self.table.lock().late
    }

    /// Says whether the server sent too much; see
    /// [`Session::is_flooded`](crate::Session::is_flooded).
    pub fn is_flooded(&self) -> bool {
        self.intake.is_flooded()
    }

    /// Says whether TLS resumed a session; see [`Session::is_resumed`](crate::Session::is_resumed).
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}

/// The waiting queries, shared by their callers and the task.
#[derive(Debug)]
struct Table(Mutex<Waiters>);

/// Queries that wait for answers.
#[derive(Debug)]
struct Waiters {
    /// Channels of waiting queries, by id.
    askers: HashMap<u16, oneshot::Sender<Vec<u8>>>,
    /// Ids of abandoned queries without an answer yet: at most as many as there are ids.
    given_up: HashSet<u16>,
    /// Number of answers to abandoned queries.
    late: u64,
    /// Id of the next query, unless it is in use.
    next_id: u16,
    /// Since when queries wait and nothing has come; `None` while none waits.
    silent_since: Option<Instant>,
    /// Time of the last query or answer.
    used_at: Instant,
    /// Time that the connection may be unused.
    idle_max: Duration,
    /// Whether the server wants the connection closed once all queries are answered.
    is_leaving: bool,
    /// Fault that closed the connection.
    ended: Option<Fault>,
}

/// An id in use, until it is dropped.
struct Place<'t> {
    table: &'t Table,
    id: u16,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.table.lock();
        if waiting.askers.remove(&self.id).is_some() {
            waiting.given_up.insert(self.id);
        }
    }
}

impl Table {
    /// Locks the table for a moment; no caller waits while holding it.
    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an asker an id.
    fn enter(&self, asker: oneshot::Sender<Vec<u8>>) -> Result<Place<'_>, Fault> {
        let mut waiting = self.lock();
        if let Some(fault) = &waiting.ended {
            return Err(fault.clone());
        }
        if waiting.askers.len() >= WAITING_MAX {
            return Err(Fault::Busy);
        }
        while waiting.askers.contains_key(&waiting.next_id) {
            waiting.next_id = waiting.next_id.wrapping_add(1);
        }
        let id = waiting.next_id;
        waiting.next_id = id.wrapping_add(1);
        waiting.given_up.remove(&id);
        waiting.askers.insert(id, asker);
        waiting.used_at = Instant::now();
        waiting.silent_since.get_or_insert_with(Instant::now);
        Ok(Place { table: self, id })
    }

    /// Gives a message to its asker, if there is one still; returns whether the query was given up.
    fn answer(&self, message: Vec<u8>) -> bool {
        let id = message.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
        let keepalive = keepalive(&message);
        let mut waiting = self.lock();
        let asker = waiting.askers.remove(&id);
        let is_late = asker.is_none() && waiting.given_up.remove(&id);
        waiting.late += u64::from(is_late);
        waiting.used_at = Instant::now();
        waiting.silent_since = (!waiting.askers.is_empty()).then_some(waiting.used_at);
        if let Some(idle_max) = keepalive {
            waiting.idle_max = idle_max.min(IDLE_MAX);
            waiting.is_leaving = idle_max.is_zero();
        }
        drop(waiting);
        if let Some(asker) = asker {
            let _ = asker.send(message); // the caller may have dropped the query this moment
        }
        is_late
    }

    /// Ends all that wait.
    fn end(&self, fault: Fault) {
        let mut waiting = self.lock();
        waiting.ended = Some(fault);
        waiting.askers.clear();
    }

    /// Returns the fault that ended the connection.
    fn fault(&self) -> Fault {
        self.lock().ended.clone().unwrap_or(Fault::Closed)
    }
}

impl Waiters {
    /// Makes a table without waiting queries.
    fn new() -> Self {
        Self {
            askers: HashMap::new(),
            given_up: HashSet::new(),
            late: 0,
            next_id: 0,
            silent_since: None,
            used_at: Instant::now(),
            idle_max: IDLE_MAX_UNSAID,
            is_leaving: false,
            ended: None,
        }
    }

    /// Returns how long nothing has come although queries waited.
    fn silent_for(&self) -> Duration {
        self.silent_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether the connection seems to be dead.
    fn is_stalled(&self) -> bool {
        let many_wait = self.askers.len() >= MANY;
        self.silent_for() >= if many_wait { STALLED_SOON_AFTER } else { STALLED_AFTER }
    }

    /// Returns the fault for which the connection must end now, if any.
    fn is_due(&self) -> Option<Fault> {
        if self.silent_for() >= DEAD_AFTER {
            Some(Fault::Late)
        } else if self.askers.is_empty() && self.used_at.elapsed() >= self.idle_max {
            Some(Fault::Closed)
        } else {
            None
        }
    }
}

/// Returns how long the server lets the connection be unused (rfc7828#3.1), if it says so.
fn keepalive(message: &[u8]) -> Option<Duration> {
    let opt = Response::parse(message).ok()?.opt?;
    let units = opt.option(option::KEEPALIVE)?.first_chunk::<2>()?;
    Some(Duration::from_millis(100) * u16::from_be_bytes(*units).into())
}

/// Reads, writes and watches the time until one of them ends.
async fn drive(
    stream: impl AsyncRead + AsyncWrite,
    to_write: UnboundedReceiver<Vec<u8>>,
    table: Arc<Table>,
    intake: Arc<Intake>,
) {
    let (reader, mut writer) = tokio::io::split(stream);
    let fault = tokio::select! {
        error = read(reader, &table, &intake) => error.into(),
        ended = write(&mut writer, to_write) => ended.map_or_else(Fault::from, |()| Fault::Closed),
        fault = watch(&table) => fault,
    };
    table.end(fault);
    let _ = timeout(CLOSE_MAX, writer.shutdown()).await; // the server may have gone first
}

/// Gives messages to their askers until the stream ends.
async fn read(reader: impl AsyncRead + Unpin, table: &Table, intake: &Intake) -> io::Error {
    let mut reader = BufReader::new(reader);
    loop {
        match read_message(&mut reader).await {
            Ok(message) => {
                let octets = message.len();
                if table.answer(message) {
                    intake.answered_late(octets);
                }
            }
            Err(error) => return error,
        }
    }
}

/// Reads a message; one that is shorter than a header ends the stream.
async fn read_message(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let len = usize::from(reader.read_u16().await?);
    if len < HEADER_BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut message = vec![0; len];
    reader.read_exact(&mut message).await?;
    Ok(message)
}

/// Writes queries, as many at a time as there are, until no caller can send one any more.
async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    mut queries: UnboundedReceiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(mut octets) = queries.recv().await {
        while octets.len() < WRITE_BYTES
            && let Ok(query) = queries.try_recv()
        {
            octets.extend_from_slice(&query);
        }
        writer.write_all(&octets).await?;
        writer.flush().await?;
    }
    Ok(())
}

/// Waits until the time is up.
async fn watch(table: &Table) -> Fault {
    loop {
        sleep_until(Instant::now() + WATCH_EVERY).await;
        if let Some(fault) = table.lock().is_due() {
            return fault;
        }
    }
}
