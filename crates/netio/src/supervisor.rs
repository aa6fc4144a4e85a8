//! Socket activation and state notices of systemd: sd_listen_fds(3), sd_notify(3).

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::check;

/// Descriptors taken from a supervisor at most.
const DESCRIPTORS_MAX: RawFd = 1024;

/// Returns how many descriptors the supervisor opened for this process, if it says so.
fn announced() -> Option<RawFd> {
    let number = |name| env::var(name).ok().and_then(|value| value.parse::<RawFd>().ok());
    let process = number("LISTEN_PID").and_then(|pid| u32::try_from(pid).ok());
    number("LISTEN_FDS").filter(|_| process == Some(process::id()))
}

/// Whether the supervisor opened descriptors for this process that were not taken yet.
#[must_use]
pub fn has_descriptors() -> bool {
    announced().is_some_and(|count| count > 0)
}

/// Takes the descriptors that the supervisor opened for this process, once; none if it did not.
///
/// Clears the variables that described them and sets close-on-exec. Call it first in `main`: while
/// other threads run it fails with [`io::ErrorKind::ResourceBusy`]. A descriptor that is closed on
/// exec was opened by this process, whatever the environment says: it is not touched, and this
/// fails with [`io::ErrorKind::InvalidData`].
pub fn take_descriptors() -> io::Result<Vec<OwnedFd>> {
    /// First passed descriptor, sd_listen_fds(3): SD_LISTEN_FDS_START.
    const FIRST: RawFd = 3;
    static TAKEN: AtomicBool = AtomicBool::new(false);

    let Some(count) = announced() else { return Ok(Vec::new()) };
    if !(0..=DESCRIPTORS_MAX).contains(&count) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    for descriptor in FIRST..FIRST + count {
        // SAFETY: fcntl takes integers; it fails on a descriptor that is not open.
        let flags = check(unsafe { libc::fcntl(descriptor, libc::F_GETFD) })?;
        if flags & libc::FD_CLOEXEC != 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
        // SAFETY: this is the only thread, so no code reads the environment meanwhile.
        unsafe { env::remove_var(name) };
    }
    (FIRST..FIRST + count)
        .map(|descriptor| {
            // SAFETY: fcntl takes integers; it fails on a descriptor that is not open.
            check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) })?;
            // SAFETY: it is open and came through exec, so nothing in this process owns it; `TAKEN`
            // lets only one caller have it.
            Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
        })
        .collect()
}

/// A state of this process, as reported to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Serving, at first or again after a reload.
    Ready,
    /// A reload has begun; [`State::Ready`] ends it.
    Reloading,
    /// The process is shutting down.
    Stopping,
}

/// Reports a state to the supervisor; does nothing without one.
pub fn notify(state: State) -> io::Result<()> {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let message = match state {
        State::Ready => "READY=1".to_owned(),
        State::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_micros()?),
        State::Stopping => "STOPPING=1".to_owned(),
    };
    send_notice(&path, &message)
}

/// Sends one notice to a path, or to an abstract name written as `@name`.
fn send_notice(path: &OsStr, message: &str) -> io::Result<()> {
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address).map(drop)
}

/// Microseconds of `CLOCK_MONOTONIC`, by which the supervisor orders reloads.
fn monotonic_micros() -> io::Result<i64> {
    // SAFETY: a zeroed timespec is valid, and the call writes it.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        check(libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time))?;
        time
    };
    Ok(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_notice_reaches_an_abstract_socket() {
        let name = format!("zonda-notice-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let supervisor = UnixDatagram::bind_addr(&address).unwrap();
        send_notice(OsStr::new(&format!("@{name}")), "READY=1").unwrap();
        let mut buffer = [0; 64];
        let len = supervisor.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"READY=1");
    }

    #[test]
    fn without_a_supervisor_there_are_no_descriptors() {
        assert!(take_descriptors().unwrap().is_empty());
    }
}
