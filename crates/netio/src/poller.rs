//! Waiting for any of several descriptors, with a time limit finer than a millisecond.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use libc::{c_int, epoll_event};

use crate::check;

/// Descriptors reported by one call; further ones are reported by the next.
const EVENTS_MAX: usize = 64;

/// A set of descriptors, each with a number of the caller's.
pub struct Poller {
    /// The epoll instance.
    epoll: Arc<OwnedFd>,
    /// Events that the last wait wrote.
    events: Vec<epoll_event>,
}

impl Poller {
    /// Returns an empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes flags only.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the call has just made this descriptor; nothing else owns it.
        let epoll = Arc::new(unsafe { OwnedFd::from_raw_fd(epoll) });
        Ok(Self { epoll, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Shares the set with another thread, which adds to it or waits for it.
    #[must_use]
    pub fn share(&self) -> Self {
        Self { epoll: Arc::clone(&self.epoll), events: Vec::with_capacity(EVENTS_MAX) }
    }

    /// Adds a descriptor; closing it takes it out.
    pub fn add(&self, descriptor: &impl AsFd, number: usize) -> io::Result<()> {
        self.add_for(libc::EPOLLIN, descriptor, number)
    }

    /// Adds a descriptor that is reported when it can be read or written after it could not;
    /// closing it removes it.
    pub fn add_for_both(&self, descriptor: &impl AsFd, number: usize) -> io::Result<()> {
        self.add_for(libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET, descriptor, number)
    }

    /// Adds a descriptor for these events.
    fn add_for(&self, events: c_int, descriptor: &impl AsFd, number: usize) -> io::Result<()> {
        let mut event = epoll_event { events: events as u32, u64: number as u64 };
        let descriptor = descriptor.as_fd().as_raw_fd();
        // SAFETY: the kernel reads one event.
        check(unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD as c_int,
                descriptor,
                &mut event,
            )
        })?;
        Ok(())
    }

    /// Waits until a descriptor can be read or the time is over, if there is a limit; returns the
    /// numbers of those that can. A signal ends the wait early.
    pub fn wait(
        &mut self,
        limit: Option<Duration>,
    ) -> io::Result<impl Iterator<Item = usize> + '_> {
        self.events.clear();
        let count = match limit {
            None => self.poll(-1),
            Some(Duration::ZERO) => self.poll(0),
            Some(limit) => self.poll_finely(limit),
        };
        match count {
            // SAFETY: the kernel wrote this many.
            Ok(count) => unsafe { self.events.set_len(count as usize) },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(self.events.iter().map(|event| event.u64 as usize))
    }

    /// Waits for `limit` milliseconds, or without an end if it is -1: by the call that kernels
    /// before 5.11, sandboxes and `valgrind` have, too.
    fn poll(&mut self, limit: c_int) -> io::Result<c_int> {
        // SAFETY: the kernel writes at most `EVENTS_MAX` events, for which there is room.
        check(unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as c_int,
                limit,
            )
        })
    }

    /// Waits for less than milliseconds.
    fn poll_finely(&mut self, limit: Duration) -> io::Result<c_int> {
        let limit =
            libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos().into() };
        // Not every C library has the call.
        // SAFETY: the kernel writes at most `EVENTS_MAX` events, for which there is room, and
        // only reads the limit; there are no signals to mask.
        check(unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as c_int,
                &raw const limit,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            ) as c_int
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::net::UdpSocket;
    use std::time::Instant;

    #[test]
    fn only_readable_descriptors_are_reported() {
        let quiet = UdpSocket::bind("127.0.0.1:0").unwrap();
        let busy = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&quiet, 1).unwrap();
        poller.add(&busy, 2).unwrap();
        quiet.send_to(b"x", busy.local_addr().unwrap()).unwrap();
        assert_eq!(poller.wait(Some(Duration::from_secs(5))).unwrap().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_descriptor_added_for_both_is_reported_once_for_each_change() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add_for_both(&socket, 7).unwrap();
        let mut told = |limit| poller.wait(Some(Duration::from_millis(limit))).unwrap().count();
        assert_eq!((told(5000), told(20)), (1, 0));
        peer.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        assert_eq!((told(5000), told(20)), (1, 0));
    }

    #[test]
    fn a_wait_ends_at_its_time_limit() {
        let start = Instant::now();
        let mut poller = Poller::new().unwrap();
        assert_eq!(poller.wait(Some(Duration::from_micros(300))).unwrap().count(), 0);
        assert!(start.elapsed() >= Duration::from_micros(300));
    }
}
