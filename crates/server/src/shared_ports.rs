//! Sockets that share their ports for a while, so that listeners can be bound beside them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use zonda_netio::share_port;

/// Handles on sockets that share their ports with later ones until this is dropped.
#[derive(Default)]
pub struct SharedPorts(Vec<OwnedFd>);

impl SharedPorts {
    /// Has sockets that are bound from now on have the port of a socket. One that shared it before
    /// goes on so.
    ///
    /// # Errors
    /// When the kernel refuses it, or the process has no descriptor left.
    pub fn share(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let kept = socket.try_clone_to_owned()?;
        if share_port(socket, true)? {
            self.0.push(kept);
        }
        Ok(())
    }

    /// Adds a socket that was bound beside these.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn add(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.0.push(socket.try_clone_to_owned()?);
        Ok(())
    }

    /// Has the sockets share their ports for good.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for SharedPorts {
    fn drop(&mut self) {
        // Or another process of the user might share the port unnoticed.
        self.0.iter().for_each(|socket| _ = share_port(socket.as_fd(), false));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use zonda_netio::tcp::{TcpOptions, listen};

    #[test]
    fn a_port_is_shared_until_that_ends_unless_it_was_before_or_is_kept() {
        for (before, keeps, after) in
            [(false, false, false), (false, true, true), (true, false, true)]
        {
            let options = TcpOptions { reuse_port: before, ..TcpOptions::default() };
            let socket = listen("127.0.0.1:0".parse().unwrap(), &options).unwrap();
            let mut shared = SharedPorts::default();
            shared.share(socket.as_fd()).unwrap();
            let beside = TcpOptions { reuse_port: true, ..TcpOptions::default() };
            assert!(listen(socket.local_addr().unwrap(), &beside).is_ok());
            if keeps {
                shared.keep()
            } else {
                drop(shared)
            }
            assert_eq!(share_port(socket.as_fd(), false).unwrap(), after, "it differs");
        }
    }
}
