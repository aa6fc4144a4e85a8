//! Sockets from one process to the next, so that no query is lost while a server is replaced.
//!
//! The new process asks for the descriptors over a Unix socket beside that of the admin interface,
//! starts to answer from them, and then has the former one stop. Both answer from the same queues
//! meanwhile; closing a socket in the former does not touch what is queued in it. The sockets of
//! the admin interface and of the hand-over itself go the same way: a successor that fails while
//! it starts has changed nothing.
//!
//! ```text
//! new ──connect──► former        new ◄── descriptors ── former        new ── 'R' ──► former stops
//! ```

use crate::stop::Stop;
use crate::watchdog::Watchdog;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use zonda_config::Config;
use zonda_netio::{Poller, Wake, descriptors, local};

/// The octet that the new process sends when it answers queries.
const RELEASE: u8 = b'R';
/// The texts sent with the last descriptors, and with those before.
const LAST: &[u8] = b"last";
const MORE: &[u8] = b"more";
/// How long the former process is waited for. It writes its cache first.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long a stop waits for the sockets of an offer to be closed.
const END_MAX: Duration = Duration::from_secs(1);

/// Why no sockets can be taken over.
#[derive(Debug)]
pub enum HandOverError {
    /// The admin socket, beside which the other one lies, is off.
    NoSocket,
    /// No server answers on the socket.
    Io(PathBuf, io::Error),
}

impl fmt::Display for HandOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSocket => f.write_str(
                "--take-over needs admin.socket, through which the former server is asked",
            ),
            Self::Io(path, error) => write!(
                f,
                "cannot take over through {}: {error}; is a server running with the same \
                 admin.socket? Without one, start without --take-over",
                path.display()
            ),
        }
    }
}

impl std::error::Error for HandOverError {}

/// The socket for hand-over that lies beside an admin socket.
pub fn beside(admin: &Path) -> PathBuf {
    let mut path = admin.as_os_str().to_owned();
    path.push(".hand-over");
    path.into()
}

/// The process that handed its sockets over.
pub struct Former(UnixStream);

impl Former {
    /// Tells the former process that it may stop.
    pub fn release(mut self) {
        if let Err(error) = self.0.write_all(&[RELEASE]) {
            tracing::warn!(%error, "the former server could not be told to stop");
        }
    }
}

/// Asks the running server for its sockets.
///
/// # Errors
/// When there is none that answers.
pub fn ask(config: &Config) -> Result<(Former, Vec<OwnedFd>), HandOverError> {
    let path = beside(config.admin.socket.as_deref().ok_or(HandOverError::NoSocket)?);
    let receive = || {
        let stream = UnixStream::connect(&path)?;
        if !local::is_own_or_root(&stream)? {
            return Err(io::Error::other("a process of another user listens there"));
        }
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let mut all = Vec::new();
        loop {
            let (payload, descriptors) = descriptors::receive(&stream)?;
            all.extend(descriptors);
            match &*payload {
                LAST => return Ok((Former(stream), all)),
                MORE => {}
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    };
    receive().map_err(|error| HandOverError::Io(path, error))
}

/// What a server does when it hands its sockets over.
pub struct Hooks {
    /// Called first, for the sockets of all listeners, which do not change from then on. It waits
    /// for a reload that runs.
    pub sockets: Box<dyn Fn() -> io::Result<Vec<OwnedFd>> + Send>,
    /// Called then, before the sockets are handed over.
    pub before: Box<dyn Fn() + Send>,
    /// Called when the successor has gone away, so that this server serves on.
    pub after_failure: Box<dyn Fn() + Send>,
}

/// Sockets that are offered, until the offer ends.
pub struct Offer {
    is_over: Arc<AtomicBool>,
    wake: Arc<Wake>,
    /// Is closed when the sockets are.
    closed: Receiver<()>,
}

impl Offer {
    /// Ends the offer, and closes its sockets: those that are answered on are free then. A
    /// successor that has them already, and still starts, keeps its own.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.wake.wake();
        let _ = self.closed.recv_timeout(END_MAX); // a successor may be at work
    }
}

/// What the thread has that serves successors; closed in this order.
struct Offered {
    own: Vec<OwnedFd>,
    listener: UnixListener,
    _closed: SyncSender<()>,
}

/// Offers the sockets of listeners, and `own` beside them, to a successor that asks on `listener`,
/// and tells `stop` once one has taken over.
///
/// # Errors
/// When no thread or descriptor can be had for it, which `watchdog` watches.
pub fn offer(
    listener: UnixListener,
    own: Vec<OwnedFd>,
    hooks: Hooks,
    stop: Sender<Stop>,
    watchdog: &Arc<Watchdog>,
) -> io::Result<Offer> {
    let (is_over, wake) = (Arc::<AtomicBool>::default(), Arc::new(Wake::new()?));
    let mut poller = Poller::new()?;
    poller.add(&listener, 0)?;
    poller.add(&*wake, 1)?;
    let (closed_sender, closed) = sync_channel(0);
    let mut offered = Some(Offered { own, listener, _closed: closed_sender });
    let ends = Arc::clone(&is_over);
    let wait = move || {
        if let Some(Offered { own, listener, .. }) = &offered {
            let is_asked = || loop {
                let ready = poller.wait(None).map(|ready| ready.count());
                match ready {
                    _ if ends.load(Ordering::Acquire) => return false,
                    Ok(0) => {}
                    Ok(_) | Err(_) => return true, // an error is that of the next call, too
                }
            };
            wait_for_successor(is_asked, (listener, own), &hooks, &stop);
        }
        offered = None;
        true // the server ends now
    };
    watchdog.spawn("hand-over", wait)?;
    Ok(Offer { is_over, wake, closed })
}

/// Serves successors one after the other until one takes over, or the offer ends, which `is_asked`
/// tells when it has waited.
fn wait_for_successor(
    mut is_asked: impl FnMut() -> bool,
    (listener, own): (&UnixListener, &[OwnedFd]),
    hooks: &Hooks,
    stop: &Sender<Stop>,
) {
    while is_asked() {
        let handed_over = listener.accept().and_then(|(stream, _)| {
            let listeners = (hooks.sockets)()?;
            (hooks.before)();
            let all: Vec<_> = listeners.iter().chain(own).map(AsFd::as_fd).collect();
            hand_over(stream, &all)
        });
        match handed_over {
            Ok(true) => {
                let _ = stop.blocking_send(Stop::TakenOver); // otherwise it is stopping already
                return;
            }
            Ok(false) => tracing::warn!("the successor went away; still serving"),
            Err(error) => {
                tracing::warn!(%error, "the sockets could not be handed over");
                thread::sleep(Duration::from_secs(1)); // perhaps there are no free descriptors
            }
        }
        (hooks.after_failure)();
    }
}

/// Hands sockets over; returns whether the successor answers from them now.
fn hand_over(mut stream: UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<bool> {
    let chunks = descriptors.chunks(descriptors::DESCRIPTORS_MAX);
    let last = chunks.len().saturating_sub(1);
    for (number, chunk) in chunks.enumerate() {
        descriptors::send(&stream, if number == last { LAST } else { MORE }, chunk)?;
    }
    tracing::info!("sockets handed to a successor, which is starting");
    let mut answer = [0];
    Ok(matches!(stream.read(&mut answer), Ok(1)) && answer[0] == RELEASE)
}
