//! A moment to wait for in a [`Poller`](crate::Poller), beside descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{itimerspec, timespec};

use crate::check;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// A descriptor that can be read once a moment has come, or an earlier one for which it was set.
///
/// With a limit on each wait, the kernel sets and cancels a timer each time, and programs the
/// processor's interrupt for it; that costs a good part of what a message costs. This timer stays
/// set while the moments that are waited for move on.
#[derive(Debug)]
pub struct Alarm {
    /// Descriptor of the timerfd.
    descriptor: OwnedFd,
    /// Moment for which the alarm is set, by the caller's clock.
    set_for: Option<u64>,
}

impl Alarm {
    /// Makes an alarm that is not set.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes a clock and flags.
        let descriptor = check(unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, flags) })?;
        // SAFETY: the call has just made this descriptor; nothing else owns it.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) }, set_for: None })
    }

    /// Makes the descriptor readable at `at` if it would not be so before; both are nanoseconds of
    /// one monotonic clock, which is read only if it is to be set.
    pub fn set_by(&mut self, at: u64, now: impl FnOnce() -> u64) -> io::Result<()> {
        if self.set_for.is_some_and(|set_for| set_for <= at) {
            return Ok(());
        }
        let left = at.saturating_sub(now()).max(1); // 0 would unset it
        let left = timespec { tv_sec: (left / SECOND) as i64, tv_nsec: (left % SECOND) as i64 };
        let never = timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = itimerspec { it_interval: never, it_value: left };
        // SAFETY: the kernel reads one setting and writes none.
        check(unsafe {
            libc::timerfd_settime(self.descriptor.as_raw_fd(), 0, &setting, ptr::null_mut())
        })?;
        self.set_for = Some(at);
        Ok(())
    }

    /// Records that the descriptor was readable: the timer is not set any more.
    pub fn rest(&mut self) {
        let mut count = [0; 8];
        // SAFETY: eight octets of a local variable. The call fails only if no moment has come.
        unsafe { libc::read(self.descriptor.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        self.set_for = None;
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Poller;
    use std::time::{Duration, Instant};

    #[test]
    fn an_alarm_is_readable_at_the_earliest_moment_it_was_set_for() {
        let (mut alarm, mut poller) = (Alarm::new().unwrap(), Poller::new().unwrap());
        poller.add(&alarm, 3).unwrap();
        let start = Instant::now();
        let now = || start.elapsed().as_nanos() as u64;
        for millis in [60_000, 20, 40_000] {
            alarm.set_by(millis * 1_000_000, now).unwrap();
        }
        assert!(poller.wait(Some(Duration::from_secs(30))).unwrap().eq([3]));
        assert!(start.elapsed() >= Duration::from_millis(20));
        alarm.rest();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap().count(), 0);
        alarm.set_by(0, now).unwrap();
        assert!(poller.wait(None).unwrap().eq([3]), "a moment that is over comes at once");
    }
}
