//! The memory that all transfers have together.
//!
//! # Invariants
//! - The first [`FREE`] octets of a share never wait, so that no transfer holds up a small zone.
//! - All shares that are larger, but the oldest of these, are within the budget when they grow; the
//!   oldest grows in any case, so that transfers that wait for each other come to an end. It is
//!   bounded by the limits of its zone.
//! - A transfer that is known to be large waits before it begins, without a thread: it asks again
//!   now and then, with its [`Place`]. One that has asked before and could begin as well goes
//!   first; one for which there is no room is passed by those for which there is.
//! - One whose size is not known begins, and waits in the middle for [`WAIT_MAX`] at most.

use crate::fault::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Octets of a share that never wait.
pub const FREE: u64 = 1 << 20;
/// Octets by which shares grow.
const STEP: u64 = 1 << 20;
/// Octets that a transfer counts as for each octet of its records, and for each record: the
/// records, the zone that is made of them, and the text of its file are in memory together.
/// Measured with a million A records (174 octets each, counted as 191) and with 200,000 TXT records
/// of 200 octets (684 each, counted as 797); what the process takes besides, some 10 MiB, is not
/// counted.
const OF_OCTET: u64 = 3;
const OF_RECORD: u64 = 80;
/// Octets of the longest message.
const MESSAGE_BYTES_MAX: u64 = u16::MAX as u64;
/// How long a transfer waits in the middle, while its connection is open and not read. Knot DNS
/// gives up a client that reads nothing for five seconds (`tcp-remote-io-timeout`), and the buffers
/// of both kernels are soon full.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// How often a share that waits looks whether its transfer is to end.
const STOP_INTERVAL: Duration = Duration::from_millis(200);
/// How long after it has asked last a transfer that has not begun keeps room for itself: its zone
/// may have no thread just now, or be gone.
const ASKED_MAX: Duration = Duration::from_secs(10);

/// How often transfers are forgotten that have not asked for so long.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Transfers that have waited for longest and are looked at before another one begins, so that
/// thousands which ask each second take no time to speak of. Those behind them keep no room.
const EARLIER_MAX: usize = 64;

/// The memory that all transfers have together.
#[derive(Debug)]
pub struct Budget {
    octets_max: AtomicU64,
    shares: Mutex<Shares>,
    /// Is told when a share has become smaller, or has ended.
    freed: Condvar,
    waits: AtomicU64,
}

/// The order of a transfer among all; kept while it waits to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

/// What the shares have.
#[derive(Debug, Default)]
struct Shares {
    /// Octets of all shares.
    used: u64,
    /// The shares that are larger than [`FREE`]; the oldest has the first place.
    large: BTreeSet<Place>,
    /// The transfers that wait: the octets that each wants to have more, and when it asked last.
    waiting: BTreeMap<Place, (u64, Instant)>,
    /// The number of the last place that was given.
    last: u64,
    /// The moment at which those that ask no more were forgotten last.
    swept: Option<Instant>,
}

/// What one transfer has of a budget; given back when it is dropped.
#[derive(Debug)]
pub struct Share<'b> {
    budget: &'b Budget,
    place: Place,
    octets: u64,
    /// How long it has waited in the middle of its transfer.
    waited: Duration,
}

impl Budget {
    /// A budget of so many octets.
    #[must_use]
    pub fn new(octets_max: u64) -> Self {
        let (shares, freed, waits) = (Mutex::default(), Condvar::new(), AtomicU64::new(0));
        Self { octets_max: AtomicU64::new(octets_max), shares, freed, waits }
    }

    /// Has the budget be of so many octets from now on; shares keep what they have.
    pub fn set(&self, octets_max: u64) {
        self.octets_max.store(octets_max, Relaxed);
        self.freed.notify_all();
    }

    /// Returns a share of nothing yet, at a place that a transfer has kept, or else the last.
    pub fn share(&self, place: Option<Place>) -> Share<'_> {
        let mut shares = self.shares();
        let place = place.unwrap_or_else(|| {
            shares.last += 1;
            Place(shares.last)
        });
        Share { budget: self, place, octets: 0, waited: Duration::ZERO }
    }

    /// Whether a transfer that waits to begin could begin now with so many octets; if not, it goes
    /// on waiting.
    pub fn has_room(&self, place: Place, octets: u64) -> bool {
        let mut shares = self.shares();
        let has_room = octets <= FREE || shares.has_room(place, octets, self.octets_max());
        if !has_room {
            self.note_wait(&mut shares, place, octets);
        }
        has_room
    }

    /// Forgets a transfer that has waited: it has ended without its share, or will not begin.
    pub fn leave(&self, place: Place) {
        self.shares().waiting.remove(&place);
        self.freed.notify_all();
    }

    /// Returns how often a transfer has begun to wait.
    pub fn waits(&self) -> u64 {
        self.waits.load(Relaxed)
    }

    /// Returns the octets of all shares.
    pub fn used(&self) -> u64 {
        self.shares().used
    }

    /// Octets that all shares may have.
    fn octets_max(&self) -> u64 {
        self.octets_max.load(Relaxed)
    }

    /// Notes that a transfer waits for so many octets more.
    fn note_wait(&self, shares: &mut Shares, place: Place, more: u64) {
        if shares.waiting.insert(place, (more, Instant::now())).is_none() {
            self.waits.fetch_add(1, Relaxed);
        }
    }

    /// What the shares have.
    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shares {
    /// Whether a share may have so many octets more.
    fn has_room(&mut self, place: Place, more: u64, octets_max: u64) -> bool {
        let now = Instant::now();
        let is_heard = |asked: Instant| now.duration_since(asked) < ASKED_MAX;
        if self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP_INTERVAL) {
            self.swept = Some(now);
            self.waiting.retain(|_, (_, asked)| is_heard(*asked));
        }
        let earlier = self.waiting.range(..place).take(EARLIER_MAX);
        let mut earlier = earlier.filter(|(_, (_, asked))| is_heard(*asked)).map(|it| it.1.0);
        match self.large.first() {
            Some(oldest) if *oldest == place => true,
            None => earlier.next().is_none(), // the first of them becomes the oldest
            // A share that is large already ends the sooner the less it waits.
            Some(_) if self.large.contains(&place) => self.used.saturating_add(more) <= octets_max,
            Some(_) => {
                let fits = |used: &u64| *used <= octets_max;
                let with = |used: u64, more| Some(used.saturating_add(more)).filter(fits);
                let used = earlier.fold(self.used, |used, more| with(used, more).unwrap_or(used));
                with(used, more).is_some()
            }
        }
    }
}

impl Share<'_> {
    /// Takes so many octets before the transfer begins, without a wait; returns whether the budget
    /// has them. If not, the transfer is to ask again with its place.
    #[must_use]
    pub fn reserve(&mut self, octets: u64) -> bool {
        let mut shares = self.budget.shares();
        let more = octets.max(FREE).next_multiple_of(STEP).saturating_sub(self.octets);
        let may_have =
            octets <= FREE || shares.has_room(self.place, more, self.budget.octets_max());
        match may_have {
            true => self.grow(&mut shares, more),
            false => self.budget.note_wait(&mut shares, self.place, more),
        }
        may_have
    }

    /// Has the share be of so many octets at least, in the middle of its transfer; waits until the
    /// budget has them, for three seconds at most.
    ///
    /// # Errors
    /// When the budget has not had them by then: the transfer is to be given up, so that the
    /// primary need not do that, and begun anew when there is room. When it is to end.
    pub fn raise(&mut self, octets: u64, is_stopped: &dyn Fn() -> bool) -> Result<(), Fault> {
        let more = octets.next_multiple_of(STEP).saturating_sub(self.octets);
        if more == 0 {
            return Ok(());
        }
        let (budget, began) = (self.budget, Instant::now());
        let (mut shares, mut has_waited) = (budget.shares(), false);
        while octets > FREE && !shares.has_room(self.place, more, budget.octets_max()) {
            if is_stopped() {
                shares.waiting.remove(&self.place);
                return Err(Fault::Stopped);
            }
            let left = WAIT_MAX.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(Fault::NoMemory(octets)); // it will ask again, at its place
            }
            budget.note_wait(&mut shares, self.place, more);
            has_waited = true;
            let waited = budget.freed.wait_timeout(shares, left.min(STOP_INTERVAL));
            shares = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.grow(&mut shares, more);
        drop(shares);
        if has_waited {
            self.waited += began.elapsed();
            budget.freed.notify_all(); // the next one may go on as well
        }
        Ok(())
    }

    /// Gives back all but the octets that never wait, as what they were for is dropped; the share
    /// keeps its place.
    pub fn give_back(&mut self) {
        let mut shares = self.budget.shares();
        shares.large.remove(&self.place);
        let surplus = self.octets.saturating_sub(FREE);
        shares.used -= surplus;
        self.octets -= surplus;
        drop(shares);
        self.budget.freed.notify_all();
    }

    /// Returns the place of the transfer among all.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns how long the transfer has waited in the middle.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Has the share be of so many octets more.
    fn grow(&mut self, shares: &mut Shares, more: u64) {
        shares.used += more;
        self.octets += more;
        shares.waiting.remove(&self.place);
        if self.octets > FREE {
            shares.large.insert(self.place);
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut shares = self.budget.shares();
        shares.used -= self.octets;
        shares.large.remove(&self.place);
        drop(shares);
        self.budget.freed.notify_all();
    }
}

/// Octets that a transfer counts as that has so many records, which take so many octets.
#[must_use]
pub fn octets_of(records: u64, stored: u64) -> u64 {
    let of_records = records.saturating_mul(OF_RECORD);
    stored.saturating_mul(OF_OCTET).saturating_add(of_records).saturating_add(MESSAGE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::thread;

    /// A transfer that is not to end.
    const RUNS: &dyn Fn() -> bool = &|| false;

    /// A share of so many steps, for which there is room.
    fn large(budget: &Budget, steps: u64) -> Share<'_> {
        let mut share = budget.share(None);
        assert!(share.reserve(steps * STEP));
        share
    }

    #[test]
    fn the_first_mib_of_a_share_never_waits_however_much_others_have() {
        let budget = Budget::new(4 * STEP);
        let _slow = large(&budget, 10);
        let (mut small, began) = (budget.share(None), Instant::now());
        assert!(small.reserve(0));
        small.raise(FREE, RUNS).unwrap();
        assert!(began.elapsed() < WAIT_MAX / 2);
        assert_eq!((budget.used(), budget.waits()), (11 * STEP, 0));
    }

    #[test]
    fn a_transfer_that_is_known_to_be_large_begins_when_the_budget_has_room_for_it() {
        let budget = Budget::new(4 * STEP);
        let oldest = large(&budget, 3);
        let mut share = budget.share(None);
        assert!(!share.reserve(2 * STEP));
        let place = share.place();
        drop(share);
        assert!(!budget.has_room(place, 2 * STEP));
        assert_eq!((budget.used(), budget.waits()), (3 * STEP, 1), "it has nothing meanwhile");
        drop(oldest);
        assert!(budget.has_room(place, 2 * STEP));
        assert!(budget.share(Some(place)).reserve(2 * STEP));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn of_two_transfers_that_wait_the_one_that_came_first_begins_first() {
        let budget = Budget::new(4 * STEP);
        let _oldest = large(&budget, 2);
        let second = large(&budget, 2);
        let (mut first_waiting, mut last) = (budget.share(None), budget.share(None));
        assert!(!first_waiting.reserve(2 * STEP) && !last.reserve(2 * STEP));
        drop(second);
        assert!(!last.reserve(2 * STEP), "the room is for the first");
        assert!(first_waiting.reserve(2 * STEP));
    }

    #[test]
    fn one_that_needs_more_than_the_budget_begins_before_those_behind_it_once_no_other_is_large() {
        let budget = Budget::new(4 * STEP);
        let oldest = large(&budget, 2);
        let mut huge = budget.share(None);
        assert!(!huge.reserve(9 * STEP));
        drop(oldest);
        assert!(!budget.share(None).reserve(2 * STEP), "it is the turn of the other");
        assert!(huge.reserve(9 * STEP));
    }

    #[test]
    fn a_transfer_passes_one_for_which_there_is_no_room_and_one_that_asks_no_more() {
        let budget = Budget::new(4 * STEP);
        let _slow = large(&budget, 2);
        assert!(!budget.share(None).reserve(9 * STEP));
        let passing = large(&budget, 2);
        drop(passing);
        let place = budget.share(None).place();
        let long_ago = Instant::now().checked_sub(ASKED_MAX).unwrap();
        budget.shares().waiting.insert(place, (2 * STEP, long_ago));
        drop(large(&budget, 2));
        budget.shares().waiting.insert(place, (2 * STEP, Instant::now()));
        assert!(!budget.share(None).reserve(2 * STEP), "it asked just now");
        budget.leave(place);
    }

    #[test]
    fn the_oldest_large_share_grows_over_the_budget_and_one_that_becomes_the_oldest_then() {
        let budget = Budget::new(4 * STEP);
        let small = budget.share(None); // older, but small
        let (mut oldest, mut next) = (large(&budget, 2), large(&budget, 2));
        oldest.raise(10 * STEP, RUNS).unwrap();
        let raised = next.raise(3 * STEP, RUNS);
        assert!(matches!(raised, Err(Fault::NoMemory(octets)) if octets == 3 * STEP), "{raised:?}");
        drop(oldest);
        next.raise(20 * STEP, RUNS).unwrap();
        drop((small, next));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_share_waits_in_the_middle_until_there_is_room_and_three_seconds_at_most() {
        let budget = Budget::new(4 * STEP);
        let oldest = large(&budget, 4);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut share = budget.share(None);
                share.raise(2 * STEP, RUNS).map(|()| share.waited())
            });
            while budget.waits() == 0 {
                thread::yield_now();
            }
            thread::sleep(STOP_INTERVAL);
            drop(oldest);
            assert!(waiting.join().unwrap().unwrap() >= STOP_INTERVAL);
        });
        let (_oldest, began, mut share) = (large(&budget, 4), Instant::now(), budget.share(None));
        assert!(matches!(share.raise(2 * STEP, RUNS), Err(Fault::NoMemory(_))));
        assert!((WAIT_MAX..2 * WAIT_MAX).contains(&began.elapsed()), "{:?}", began.elapsed());
        assert!(matches!(share.raise(2 * STEP, &|| true), Err(Fault::Stopped)));
    }

    #[test]
    fn what_is_given_back_is_there_for_others_and_the_share_keeps_its_place() {
        let budget = Budget::new(4 * STEP);
        let _oldest = large(&budget, 1 + 1);
        let mut share = large(&budget, 2);
        let place = share.place();
        share.give_back();
        assert_eq!(budget.used(), 3 * STEP);
        assert!(share.reserve(2 * STEP) && share.place() == place);
        assert_eq!(budget.used(), 4 * STEP, "not what it had before as well");
    }

    #[test]
    fn a_greater_budget_lets_transfers_go_on() {
        let budget = Budget::new(2 * STEP);
        let _oldest = large(&budget, 2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.share(None).raise(2 * STEP, RUNS));
            while budget.waits() == 0 {
                thread::yield_now();
            }
            budget.set(4 * STEP);
            waiting.join().unwrap().unwrap();
        });
    }
}
