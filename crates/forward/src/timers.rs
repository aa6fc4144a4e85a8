//! The timers of a forwarder thread, and the alarm that wakes it for the next one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use zonda_deferral::Clock;
use zonda_netio::Alarm;

use crate::cause::{FetchId, Probe};

/// Something that may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// To look at a fetch.
    Fetch(FetchId),
    /// To probe the upstreams of a group.
    Probes(u32),
    /// To wait no longer for the answer to a probe, sent from this port under this id.
    ProbeOverdue(usize, u16, Probe),
    /// To look whether the other threads have ended, too.
    Drain,
    /// To give memory back if a peak of waiting queries is over.
    EndPeak,
}

/// All timers of a thread.
pub struct Timers {
    /// The timers, the next one first; nanoseconds of the monotonic clock.
    heap: BinaryHeap<Reverse<(u64, Timer)>>,
    /// Wakes the thread when a timer may be due.
    alarm: Alarm,
}

impl Timers {
    /// None yet.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { heap: BinaryHeap::new(), alarm: Alarm::new()? })
    }

    /// The alarm, for the thread to wait for.
    pub fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Sets a timer.
    pub fn set(&mut self, at: u64, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    /// The next timer. Void ones are taken away here: the thread would wake up for each answer that
    /// came in time.
    pub fn first(&mut self, is_void: impl Fn(u64, Timer) -> bool) -> Option<(u64, Timer)> {
        loop {
            let Reverse((at, timer)) = *self.heap.peek()?;
            if !is_void(at, timer) {
                return Some((at, timer));
            }
            self.heap.pop();
        }
    }

    /// Takes out the next timer.
    pub fn pop(&mut self) {
        self.heap.pop();
    }

    /// Sets the alarm to a time; none leaves it as it is.
    ///
    /// # Errors
    /// When the system does not take it.
    pub fn set_alarm(&mut self, at: Option<u64>, clock: Clock) -> io::Result<()> {
        at.map_or(Ok(()), |at| self.alarm.set_by(at, || clock.monotonic_nanos()))
    }

    /// Takes note that the alarm has woken the thread.
    pub fn rest(&mut self) {
        self.alarm.rest();
    }

    /// Gives up the memory of timers that are gone.
    pub fn shrink(&mut self) {
        self.heap.shrink_to_fit();
    }
}
