//! Wakes a thread that waits in a [`Poller`](crate::Poller).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::check;

/// A descriptor that can be read once a thread has called [`Self::wake`].
#[derive(Debug)]
pub struct Wake {
    /// Descriptor of the eventfd.
    descriptor: OwnedFd,
}

impl Wake {
    /// Makes a descriptor that is not readable yet.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes a number and flags.
        let descriptor =
            check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the call has just made this descriptor; nothing else owns it.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// Makes the descriptor readable, if it is not so yet.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight octets that are there. It fails only at 2⁶⁴, when it is readable anyway.
        unsafe { libc::write(self.descriptor.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Makes the descriptor sleep again. What woke it must be looked for after this, not before.
    pub fn rest(&self) {
        let mut count = [0; 8];
        // SAFETY: eight octets of a local variable. The call fails only if the descriptor was not
        // woken.
        unsafe { libc::read(self.descriptor.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Poller;
    use std::time::Duration;

    #[test]
    fn it_can_be_read_from_waking_until_rest() {
        let (wake, mut poller) = (Wake::new().unwrap(), Poller::new().unwrap());
        poller.add(&wake, 7).unwrap();
        let mut is_awake = || poller.wait(Some(Duration::ZERO)).unwrap().eq([7]);
        assert!(!is_awake());
        wake.wake();
        wake.wake();
        assert!(is_awake());
        wake.rest();
        assert!(!is_awake());
        wake.rest();
    }
}
