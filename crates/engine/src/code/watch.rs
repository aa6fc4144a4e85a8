//! What a worker is calling at the moment, for the thread that watches it.

use std::cell::Cell;
use std::ptr::from_ref;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// The address of the watch of the worker that is calling code in this thread; 0 where none is.
    static CALLING: Cell<usize> = const { Cell::new(0) };
}

/// The code that a worker is calling at the moment.
///
/// Written by the worker alone, with two stores a call: the watching thread looks now and
/// then, and a call that is still there was long.
#[derive(Debug, Default)]
pub struct Watch {
    /// The number of the call, 48 bits, above the handler's place plus one; the latter is 0 between
    /// calls.
    state: AtomicU64,
}

/// Bits of the handler's place.
const PLACE_BITS: u32 = 16;

/// A call of the user's code, as another thread sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Number that tells the call from all other calls of the worker.
    pub number: u64,
    /// The place of the route; places above 65,534 are not told apart.
    pub route: usize,
}

/// The worker that was calling code in this thread before: code may itself have a query answered.
#[derive(Debug)]
pub(crate) struct CallAround(usize);

impl Watch {
    /// Notes that the code of a route is called; returns what [`end`](Self::end) takes.
    #[inline]
    pub(crate) fn begin(&self, route: usize) -> CallAround {
        let number = (self.state.load(Ordering::Relaxed) >> PLACE_BITS).wrapping_add(1);
        let place = (route as u64 + 1).min((1 << PLACE_BITS) - 1);
        self.state.store(number << PLACE_BITS | place, Ordering::Relaxed);
        CallAround(CALLING.replace(from_ref(self).addr()))
    }

    /// Records that the code has returned.
    #[inline]
    pub(crate) fn end(&self, around: CallAround) {
        CALLING.set(around.0);
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state >> PLACE_BITS << PLACE_BITS, Ordering::Relaxed);
    }

    /// Whether the worker is calling code in this thread.
    #[must_use]
    pub fn is_current(&self) -> bool {
        CALLING.get() == from_ref(self).addr()
    }

    /// The call that has not returned.
    #[must_use]
    pub fn call(&self) -> Option<Call> {
        let state = self.state.load(Ordering::Relaxed);
        let place = state & ((1 << PLACE_BITS) - 1);
        let route = usize::try_from(place.checked_sub(1)?).ok()?;
        Some(Call { number: state >> PLACE_BITS, route })
    }
}
