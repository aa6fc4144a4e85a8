//! Unix sockets: bound for their owner alone, and the user at the other end of one.

use std::fs::{File, Permissions};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use libc::{socklen_t, ucred, uid_t};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::check;

/// Mode of a socket that is its owner's alone.
const OWNER_ONLY: u32 = 0o600;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens at a path that is free. From its first moment on, only the owner and root may connect.
///
/// # Errors
/// Those of the system; a path that is taken is [`io::ErrorKind::AddrInUse`].
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    // Linux makes the file with the mode of the socket: no umask for the whole process is needed.
    let file = File::from(OwnedFd::from(Socket::new(Domain::UNIX, Type::STREAM, None)?));
    file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
    let socket = Socket::from(OwnedFd::from(file));
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(BACKLOG)?;
    Ok(OwnedFd::from(socket).into())
}

/// Returns the user at the other end of a connection: of the process that listened, when asked by
/// the one that connected, and the other way round (unix(7), `SO_PEERCRED`).
///
/// # Errors
/// Those of the system.
pub fn peer_user(stream: &UnixStream) -> io::Result<uid_t> {
    let mut peer = ucred { pid: 0, uid: uid_t::MAX, gid: 0 };
    let mut size = size_of::<ucred>() as socklen_t;
    // SAFETY: the call writes at most `size` octets of a value that is valid with any octets.
    check(unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut size,
        )
    })?;
    Ok(peer.uid)
}

/// Whether the process at the other end is root's or runs as this one does.
///
/// # Errors
/// Those of the system.
pub fn is_own_or_root(stream: &UnixStream) -> io::Result<bool> {
    let peer = peer_user(stream)?;
    Ok(peer == 0 || peer == crate::process::effective_user())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_socket_is_its_owners_alone_whatever_the_umask_and_says_whose_it_is() {
        let name = format!("zonda-local-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = listen(&path).unwrap();
        let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        let taken = listen(&path).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let own = crate::process::effective_user();
        assert_eq!([peer_user(&client).unwrap(), peer_user(&server).unwrap()], [own, own]);
        assert!(is_own_or_root(&client).unwrap());
        std::fs::remove_file(path).unwrap();
    }
}
