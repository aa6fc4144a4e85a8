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
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use zonda_config::Config;
use zonda_netio::{descriptors, local};

/// The octet that the new process sends when it answers queries.
const RELEASE: u8 = b'R';
/// The texts sent with the last descriptors, and with those before.
const LAST: &[u8] = b"last";
const MORE: &[u8] = b"more";
/// How long the former process is waited for. It writes its cache first.
const ANSWER_MAX: Duration = Duration::from_secs(30);

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

/// What a server does beside handing its sockets over.
pub struct Hooks {
    /// Called before the sockets are handed over.
    pub before: Box<dyn Fn() + Send>,
    /// Called when the successor has gone away, so that this server serves on.
    pub after_failure: Box<dyn Fn() + Send>,
}

/// Offers sockets to a successor that asks on `listener`, and tells `stop` once one has taken over.
///
/// # Errors
/// When no thread can be started for it, which `watchdog` watches.
pub fn offer(
    listener: UnixListener,
    own: Vec<OwnedFd>,
    hooks: Hooks,
    stop: Sender<Stop>,
    watchdog: &Arc<Watchdog>,
) -> io::Result<()> {
    let wait = move || {
        wait_for_successor(&listener, &own, &hooks, &stop);
        true // the server ends now
    };
    watchdog.spawn("hand-over", wait).map(drop)
}

/// Serves successors one after the other until one takes over.
fn wait_for_successor(
    listener: &UnixListener,
    own: &[OwnedFd],
    hooks: &Hooks,
    stop: &Sender<Stop>,
) {
    loop {
        let asked = listener.accept().inspect(|_| (hooks.before)());
        match asked.and_then(|(stream, _)| hand_over(stream, own)) {
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
fn hand_over(mut stream: UnixStream, own: &[OwnedFd]) -> io::Result<bool> {
    let descriptors: Vec<BorrowedFd<'_>> = own.iter().map(AsFd::as_fd).collect();
    let chunks = descriptors.chunks(descriptors::DESCRIPTORS_MAX);
    let last = chunks.len().saturating_sub(1);
    for (number, chunk) in chunks.enumerate() {
        descriptors::send(&stream, if number == last { LAST } else { MORE }, chunk)?;
    }
    tracing::info!("sockets handed to a successor, which is starting");
    let mut answer = [0];
    Ok(matches!(stream.read(&mut answer), Ok(1)) && answer[0] == RELEASE)
}
