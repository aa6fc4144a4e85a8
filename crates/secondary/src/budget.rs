//! The memory that all transfers have together.
//!
//! # Invariants
//! - The first [`FREE`] octets of a share never wait, and count for no other, so that no transfer
//!   holds up a small zone.
//! - All shares that are larger, but the oldest of these, are within the budget when they grow; the
//!   oldest grows in any case, so that transfers that wait for each other come to an end. It is
//!   bounded by the limits of its zone.
//! - A transfer that is known to be large waits before it begins, without a thread: it asks again
//!   now and then, with its [`Place`]. One that has asked before and could begin as well goes
//!   first; one for which there is no room is passed by those for which there is, but not for
//!   longer than [`PASSED_MAX`] if it is only those that keep it from beginning. How long it has
//!   waited is known for as long as its [`KeptPlace`] is, however seldom it asks; it keeps room if
//!   it has asked not long ago only ([`HEARD_MAX`]).
//! - One whose size is not known begins, and waits in the middle for [`WAIT_MAX`] at most.

use crate::fault::Fault;
use crate::hooks::TransferHooks;
use crate::whole_zone::FEW_OCTETS_MAX;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Octets of a share that never wait.
pub const FREE: u64 = 1 << 20;
/// Octets by which shares grow.
const STEP: u64 = 1 << 20;
/// Octets that changes, or few records of a zone, count as for each octet of them and for each
/// record: they are in memory together with what is made of them.
const OF_OCTET: u64 = 3;
const OF_RECORD: u64 = 80;
/// Octets that many records of a zone count as for each four octets of them, for each record, and
/// for all: the zone, of which its records take the place while they come, and a part of it that is
/// being made. More than few records ever count as. What names take that have names below them, or
/// very many records, comes on top.
const OF_FOUR_IN_ZONE: u64 = 5;
const OF_RECORD_IN_ZONE: u64 = 60;
const OF_ZONE: u64 = 4 << 20;
/// Octets of a place among few records.
const PLACE_BYTES: u64 = 8;
/// Octets of the longest message.
const MESSAGE_BYTES_MAX: u64 = u16::MAX as u64;
/// How long a transfer waits in the middle, all its waits together, while its connection is open
/// and not read. Knot DNS gives up a client that reads nothing for five seconds
/// (`tcp-remote-io-timeout`), and the buffers of both kernels are soon full.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// How often a share that waits looks whether its transfer is to end.
const STOP_INTERVAL: Duration = Duration::from_millis(200);
/// How long a transfer that waits is passed by those that came later and for which there is room.
/// Short of the retry times of most zones; a longer time leaves less memory unused meanwhile.
const PASSED_MAX: Duration = Duration::from_secs(30);
/// How often a transfer that waits to begin asks whether there is room, at least.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Transfers behind the first [`EARLIER_MAX`] that ask in each second: more of them ask less often.
const ASKS_MAX: usize = 1000;
/// How often one of them asks, however many there are.
const ASK_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// How long after it was to ask a transfer that has not begun keeps room for itself, at least: its
/// zone may have no thread just now. One that has asked later the last time keeps it for twice as
/// long, as its zone may have a thread as seldom again.
const HEARD_MIN: Duration = Duration::from_secs(10);
/// How long one keeps it at most: the memory may be unused meanwhile. A longer time would be of use
/// to zones that have a thread more seldom.
const HEARD_MAX: Duration = Duration::from_secs(30);
/// How long it is known that a transfer has waited that asks no more, and has no [`KeptPlace`], as
/// after a panic.
const KNOWN_MAX: Duration = Duration::from_secs(600);
/// How often transfers are forgotten that have not asked for so long.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Transfers that have waited for longest, of those that asked not long ago, which are looked at
/// before another one begins, so that thousands which ask take no time to speak of. Those behind
/// them keep no room.
const EARLIER_MAX: usize = 64;
/// Transfers that wait among which these are looked for.
const LOOKED_AT_MAX: usize = 1024;

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

/// The place of a transfer that waits to begin; the transfer is forgotten when this is dropped, as
/// with a zone that is removed.
#[derive(Debug)]
pub struct KeptPlace {
    budget: Arc<Budget>,
    /// The place; none once it was taken for a share.
    place: Option<Place>,
}

/// What the shares have.
#[derive(Debug, Default)]
struct Shares {
    /// Octets of all shares.
    used: u64,
    /// The octets of the shares that are larger than [`FREE`], as many as threads at most; the
    /// oldest has the first place.
    large: BTreeMap<Place, u64>,
    /// The transfers that wait.
    waiting: BTreeMap<Place, Wait>,
    /// The number of the last place that was given.
    last: u64,
    /// The moment at which those that ask no more were forgotten last.
    swept: Option<Instant>,
}

/// A transfer that waits.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Octets that its share is to have.
    octets: u64,
    /// The moment at which the wait began.
    began: Instant,
    /// The moment at which the transfer asked last.
    asked: Instant,
    /// The moment until which it keeps room unless it asks again.
    heard_until: Instant,
    /// Whether there is a [`KeptPlace`] of it, so that it is not forgotten.
    is_kept: bool,
}

/// What one transfer has of a budget; given back when it is dropped.
#[derive(Debug)]
pub struct Share<'b> {
    budget: &'b Budget,
    place: Place,
    octets: u64,
    /// How long it has waited in the middle of its transfer.
    waited: Duration,
    /// The moment at which its transfer began to wait, if it has, and had room in the end.
    wait_began: Option<Instant>,
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

    /// Returns a share of nothing yet, at the place of a transfer that has waited, or else at the
    /// last one.
    pub fn share(&self, kept: Option<KeptPlace>) -> Share<'_> {
        let mut shares = self.shares();
        let place = kept.and_then(|mut kept| kept.place.take()).unwrap_or_else(|| {
            shares.last += 1;
            Place(shares.last)
        });
        shares.waiting.get_mut(&place).into_iter().for_each(|wait| wait.is_kept = false);
        Share { budget: self, place, octets: 0, waited: Duration::ZERO, wait_began: None }
    }

    /// Whether a transfer that waits to begin could begin now with so many octets; if not, it goes
    /// on waiting.
    fn has_room(&self, place: Place, octets: u64) -> bool {
        let octets = self.in_steps(octets);
        let mut shares = self.shares();
        let has_room = shares.has_room(place, octets, self.octets_max());
        if !has_room {
            self.note_wait(&mut shares, place, octets, (None, true));
        }
        has_room
    }

    /// Returns the octets that a transfer is to begin anew with, for which there were not so many:
    /// twice as many, but no more than there may be at all if so many are not needed.
    pub fn doubled(&self, octets: u64) -> u64 {
        octets.saturating_mul(2).min(octets.max(self.octets_max()))
    }

    /// Returns how often a transfer has begun to wait.
    pub fn waits(&self) -> u64 {
        self.waits.load(Relaxed)
    }

    /// Returns the octets of all shares.
    pub fn used(&self) -> u64 {
        self.shares().used
    }

    /// Octets that all large shares may have.
    fn octets_max(&self) -> u64 {
        self.octets_max.load(Relaxed)
    }

    /// The octets of a share that is to have so many: whole steps, but no more than there may be at
    /// all if so many are not needed.
    fn in_steps(&self, octets: u64) -> u64 {
        let steps = octets.checked_next_multiple_of(STEP).unwrap_or(u64::MAX);
        steps.min(octets.max(self.octets_max())).max(FREE)
    }

    /// Notes that a transfer waits until its share may have so many octets: since it began to, if
    /// it has waited before, and whether its place is kept.
    fn note_wait(
        &self,
        shares: &mut Shares,
        place: Place,
        octets: u64,
        (began, is_kept): (Option<Instant>, bool),
    ) {
        let now = Instant::now();
        let former = shares.waiting.get(&place);
        if former.is_none() && began.is_none() {
            self.waits.fetch_add(1, Relaxed);
        }
        let began = former.map(|wait| wait.began).or(began).unwrap_or(now);
        let asked = former.map_or(now, |wait| wait.asked);
        let late = 2 * now.saturating_duration_since(asked);
        let heard = shares.ask_interval(place) + late.clamp(HEARD_MIN, HEARD_MAX);
        let wait = Wait { octets, began, asked: now, heard_until: now + heard, is_kept };
        shares.waiting.insert(place, wait);
    }

    /// What the shares have.
    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptPlace {
    /// The place of a transfer that waits to begin with a share of a budget.
    #[must_use]
    pub fn new(budget: &Arc<Budget>, place: Place) -> Self {
        let mut shares = budget.shares();
        shares.waiting.get_mut(&place).into_iter().for_each(|wait| wait.is_kept = true);
        drop(shares);
        Self { budget: Arc::clone(budget), place: Some(place) }
    }

    /// Whether the transfer could begin now with so many octets; if not, it goes on waiting.
    #[must_use]
    pub fn has_room(&self, octets: u64) -> bool {
        self.place.is_none_or(|place| self.budget.has_room(place, octets))
    }

    /// Returns after how long the transfer is to ask again whether there is room: a second, or
    /// longer where thousands wait before it.
    #[must_use]
    pub fn ask_interval(&self) -> Duration {
        self.place.map_or(ASK_INTERVAL, |place| self.budget.shares().ask_interval(place))
    }

    /// Returns the place, unless it was taken for a share.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.place
    }
}

impl Drop for KeptPlace {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.budget.shares().waiting.remove(&place);
            self.budget.freed.notify_all();
        }
    }
}

impl Shares {
    /// Whether a share may have so many octets.
    fn has_room(&mut self, place: Place, octets: u64, octets_max: u64) -> bool {
        let now = Instant::now();
        self.sweep(now);
        let own = self.large.get(&place).copied();
        let used = self.large.values().fold(0, |used: u64, of_one| used.saturating_add(*of_one));
        let is_within = |used: &u64| *used <= octets_max;
        let with = |used: u64, more: u64| Some(used.saturating_add(more)).filter(is_within);
        match (self.large.keys().next(), own) {
            _ if octets <= FREE => true,
            (Some(oldest), _) if *oldest == place => true,
            // A share that is large already ends the sooner the less it waits.
            (_, Some(own)) => with(used.saturating_sub(own), octets).is_some(),
            (None, _) => self.earlier(place, now).next().is_none(), // the first becomes the oldest
            (Some(_), None) => {
                let mut used = used;
                for (earlier, wait) in self.earlier(place, now) {
                    if self.is_passed_no_more(earlier, wait, (now, octets_max)) {
                        return false;
                    }
                    let own = self.large.get(earlier).copied().unwrap_or_default();
                    used = with(used.saturating_sub(own), wait.octets).unwrap_or(used);
                }
                with(used, octets).is_some()
            }
        }
    }

    /// The transfers that wait before a place, those of them that are looked at.
    fn earlier(&self, place: Place, now: Instant) -> impl Iterator<Item = (&Place, &Wait)> {
        let earlier = self.waiting.range(..place).take(LOOKED_AT_MAX);
        earlier.filter(move |(_, wait)| now < wait.heard_until).take(EARLIER_MAX)
    }

    /// Whether no transfer behind one that waits is to begin before it: it has waited for long, and
    /// could begin if it were not for large ones that came later. Where one that came before it has
    /// the memory, those behind need not be held up.
    fn is_passed_no_more(
        &self,
        place: &Place,
        wait: &Wait,
        (now, octets_max): (Instant, u64),
    ) -> bool {
        if now.saturating_duration_since(wait.began) < PASSED_MAX {
            return false;
        }
        let mut before = self.large.range(..place).map(|(_, octets)| *octets).peekable();
        before.peek().is_none() || before.fold(wait.octets, u64::saturating_add) <= octets_max
    }

    /// After how long a transfer that waits is to ask again.
    fn ask_interval(&self, place: Place) -> Duration {
        match self.waiting.range(..place).take(EARLIER_MAX).count() {
            EARLIER_MAX => {
                let times = u32::try_from(self.waiting.len() / ASKS_MAX).unwrap_or(u32::MAX);
                ASK_INTERVAL.saturating_mul(times).clamp(ASK_INTERVAL, ASK_INTERVAL_MAX)
            }
            _ => ASK_INTERVAL,
        }
    }

    /// Forgets the transfers that ask no more.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP_INTERVAL) {
            self.swept = Some(now);
            let is_known = |wait: &Wait| now.saturating_duration_since(wait.asked) < KNOWN_MAX;
            self.waiting.retain(|_, wait| wait.is_kept || is_known(wait));
        }
    }
}

impl Share<'_> {
    /// Takes so many octets before the transfer begins, or before it is known to be large, without
    /// a wait; returns whether the budget has them. If not, the transfer is to ask again with its
    /// place.
    #[must_use]
    pub fn reserve(&mut self, octets: u64) -> bool {
        let (budget, octets) = (self.budget, self.budget.in_steps(octets));
        let mut shares = budget.shares();
        let is_reserved = octets <= self.octets || self.try_grow(&mut shares, octets);
        if !is_reserved {
            budget.note_wait(&mut shares, self.place, octets, (self.wait_began, false));
        }
        is_reserved
    }

    /// Has the place keep room for so many octets once the share has ended, as the transfer begins
    /// anew at once, with another primary.
    pub fn keep_room(&self, octets: u64) {
        let (budget, octets) = (self.budget, self.budget.in_steps(octets));
        if octets > FREE {
            let mut shares = budget.shares();
            budget.note_wait(&mut shares, self.place, octets, (self.wait_began, false));
        }
    }

    /// Has the share be of so many octets at least, in the middle of its transfer; waits until the
    /// budget has them, for three seconds at most with all waits before, which are told while they
    /// last.
    ///
    /// # Errors
    /// When the budget has not had them by then: the transfer is to be given up, so that the
    /// primary need not do that, and begun anew when there is room. When it is to end.
    pub fn raise(&mut self, octets: u64, hooks: &TransferHooks<'_>) -> Result<(), Fault> {
        let (budget, wanted) = (self.budget, self.budget.in_steps(octets));
        if wanted <= self.octets || self.try_grow(&mut budget.shares(), wanted) {
            return Ok(());
        }
        let began = Instant::now();
        (hooks.note_wait)(true); // under no lock
        let raised = match self.wait_for(wanted, began, hooks.is_stopped) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Fault::NoMemory { octets, is_of_whole_zone: false }),
            Err(fault) => Err(fault),
        };
        self.waited += began.elapsed();
        (hooks.note_wait)(false);
        budget.freed.notify_all(); // the next one may go on as well
        raised
    }

    /// Waits until the share may have so many octets, and takes them; returns whether it has come
    /// to that. If not, the transfer goes on waiting at its place.
    ///
    /// # Errors
    /// When the transfer is to end.
    fn wait_for(
        &mut self,
        octets: u64,
        began: Instant,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<bool, Fault> {
        let budget = self.budget;
        let mut shares = budget.shares();
        while !self.try_grow(&mut shares, octets) {
            if is_stopped() {
                shares.waiting.remove(&self.place);
                return Err(Fault::Stopped);
            }
            budget.note_wait(&mut shares, self.place, octets, (self.wait_began, false));
            let left = WAIT_MAX.saturating_sub(self.waited + began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let waited = budget.freed.wait_timeout(shares, left.min(STOP_INTERVAL));
            shares = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(true)
    }

    /// Has the share be of so many octets, which are more than it has, if the budget has them.
    fn try_grow(&mut self, shares: &mut Shares, octets: u64) -> bool {
        let has_room = shares.has_room(self.place, octets, self.budget.octets_max());
        if has_room {
            shares.used += octets - self.octets;
            self.octets = octets;
            let wait = shares.waiting.remove(&self.place);
            self.wait_began = wait.map(|wait| wait.began).or(self.wait_began);
            if octets > FREE {
                shares.large.insert(self.place, octets);
            }
        }
        has_room
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

/// Octets that changes count as that have so many records, which take so many octets.
#[must_use]
pub fn octets_of_changes(records: u64, stored: u64) -> u64 {
    let of_records = records.saturating_mul(OF_RECORD);
    stored.saturating_mul(OF_OCTET).saturating_add(of_records).saturating_add(MESSAGE_BYTES_MAX)
}

/// Octets that a whole zone counts as that has so many records, which take so many octets, and if
/// they are not few, so many besides as a function says.
#[must_use]
pub fn octets_of_zone(records: u64, stored: u64, besides: impl FnOnce() -> u64) -> u64 {
    let kept = records.saturating_mul(PLACE_BYTES).saturating_add(stored);
    if kept <= FEW_OCTETS_MAX as u64 {
        return octets_of_changes(records, stored);
    }
    let of_records = records.saturating_mul(OF_RECORD_IN_ZONE);
    let of_octets = stored.saturating_mul(OF_FOUR_IN_ZONE) / 4;
    let of_zone = besides().saturating_add(OF_ZONE + MESSAGE_BYTES_MAX);
    of_octets.saturating_add(of_records).saturating_add(of_zone)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::thread;

    /// A transfer that is not to end.
    const RUNS: &TransferHooks<'static> = &TransferHooks::NONE;
    /// A transfer that is to end as soon as it waits.
    const ENDS: &TransferHooks<'static> =
        &TransferHooks { is_stopped: &|| true, ..TransferHooks::NONE };

    /// A share of so many steps, for which there is room.
    fn large(budget: &Budget, steps: u64) -> Share<'_> {
        let mut share = budget.share(None);
        assert!(share.reserve(steps * STEP));
        share
    }

    /// Has a transfer have begun to wait longer ago, by so much.
    fn age(budget: &Budget, place: Place, time: Duration) {
        let mut shares = budget.shares();
        let wait = shares.waiting.get_mut(&place).unwrap();
        wait.began = wait.began.checked_sub(time).unwrap();
    }

    /// Has so much time pass for a transfer that waits.
    fn pass(budget: &Budget, place: Place, time: Duration) {
        let mut shares = budget.shares();
        let wait = shares.waiting.get_mut(&place).unwrap();
        for moment in [&mut wait.began, &mut wait.asked, &mut wait.heard_until] {
            *moment = moment.checked_sub(time).unwrap();
        }
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
    fn small_transfers_take_no_room_from_large_ones() {
        let budget = Budget::new(4 * STEP);
        let (_oldest, _small) = (large(&budget, 2), [large(&budget, 1), large(&budget, 1)]);
        let _next = large(&budget, 2);
        assert_eq!((budget.used(), budget.waits()), (6 * STEP, 0));
    }

    #[test]
    fn a_transfer_that_is_known_to_be_large_begins_when_the_budget_has_room_for_it() {
        let budget = Arc::new(Budget::new(4 * STEP));
        let oldest = large(&budget, 3);
        let mut share = budget.share(None);
        assert!(!share.reserve(2 * STEP));
        let kept = KeptPlace::new(&budget, share.place());
        drop(share);
        assert!(!kept.has_room(2 * STEP));
        assert_eq!((budget.used(), budget.waits()), (3 * STEP, 1), "it has nothing meanwhile");
        drop(oldest);
        assert!(kept.has_room(2 * STEP));
        let place = kept.place();
        let mut share = budget.share(Some(kept));
        assert!(share.reserve(2 * STEP) && Some(share.place()) == place);
        drop(share);
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
        let (octets, now) = (2 * STEP, Instant::now());
        let place = budget.share(None).place();
        let is_kept = false;
        let wait = Wait { octets, began: now, asked: now, heard_until: now, is_kept };
        budget.shares().waiting.insert(place, wait);
        drop(large(&budget, 2));
        let heard_until = now + HEARD_MIN;
        budget.shares().waiting.insert(place, Wait { heard_until, ..wait });
        assert!(!budget.share(None).reserve(2 * STEP), "it asked just now");
    }

    #[test]
    fn a_transfer_that_asks_seldom_keeps_room_until_it_asks_again_and_waits_since_it_began_to() {
        let budget = Budget::new(4 * STEP);
        let (_oldest, mut waiting) = (large(&budget, 4), budget.share(None));
        assert!(!waiting.reserve(2 * STEP));
        let heard = |place| {
            let wait = budget.shares().waiting[&place];
            (wait.began, wait.heard_until.duration_since(wait.asked))
        };
        let (began, first) = heard(waiting.place());
        assert_eq!(first, ASK_INTERVAL + HEARD_MIN);
        let gap = Duration::from_secs(10);
        pass(&budget, waiting.place(), gap);
        assert!(!waiting.reserve(2 * STEP));
        let (still, next) = heard(waiting.place());
        assert_eq!(still, began.checked_sub(gap).unwrap());
        assert!(next >= ASK_INTERVAL + 2 * gap && next < HEARD_MAX, "{next:?}");
    }

    #[test]
    fn a_transfer_that_asks_no_more_leaves_memory_unused_for_half_a_minute_at_most() {
        let budget = Budget::new(4 * STEP);
        let (oldest, mut waiting) = (large(&budget, 4), budget.share(None));
        assert!(!waiting.reserve(2 * STEP));
        pass(&budget, waiting.place(), HEARD_MAX * 5);
        assert!(!waiting.reserve(2 * STEP));
        drop(oldest);
        let mut other = budget.share(None);
        assert!(!other.reserve(2 * STEP));
        pass(&budget, waiting.place(), ASK_INTERVAL + HEARD_MAX);
        assert!(other.reserve(2 * STEP));
    }

    #[test]
    fn a_wait_is_as_old_as_its_beginning_however_seldom_the_transfer_asks() {
        let budget = Arc::new(Budget::new(4 * STEP));
        let mut waiting = budget.share(None);
        let running = large(&budget, 2);
        assert!(!waiting.reserve(4 * STEP));
        let kept = KeptPlace::new(&budget, waiting.place());
        drop(waiting);
        for _ in 0..2 {
            pass(&budget, kept.place().unwrap(), KNOWN_MAX);
            budget.shares().swept = None;
            assert!(budget.share(None).reserve(FREE), "which forgets those that ask no more");
            assert!(!kept.has_room(4 * STEP));
        }
        assert!(!budget.share(None).reserve(2 * STEP), "it is passed no more");
        drop(running);
        assert!(kept.has_room(4 * STEP));
    }

    #[test]
    fn one_without_a_kept_place_is_forgotten_when_it_has_not_asked_for_long() {
        let budget = Budget::new(4 * STEP);
        let (_oldest, mut waiting) = (large(&budget, 4), budget.share(None));
        assert!(!waiting.reserve(2 * STEP));
        pass(&budget, waiting.place(), KNOWN_MAX);
        budget.shares().swept = None;
        assert!(budget.share(None).reserve(FREE));
        assert!(budget.shares().waiting.is_empty());
    }

    #[test]
    fn one_that_asks_keeps_room_though_many_before_it_ask_no_more() {
        let budget = Budget::new(4 * STEP);
        let oldest = large(&budget, 4);
        for _ in 0..2 * EARLIER_MAX {
            let place = budget.share(None).place();
            assert!(!budget.has_room(place, 2 * STEP));
            pass(&budget, place, Duration::from_secs(100));
        }
        let mut waiting = budget.share(None);
        assert!(!waiting.reserve(2 * STEP));
        drop(oldest);
        assert!(!budget.share(None).reserve(2 * STEP), "it is the turn of the other");
        assert!(waiting.reserve(2 * STEP));
    }

    #[test]
    fn room_that_is_kept_for_the_next_primary_is_not_taken_by_another_transfer() {
        let budget = Arc::new(Budget::new(4 * STEP));
        let (oldest, mut failing) = (large(&budget, 4), budget.share(None));
        assert!(!failing.reserve(3 * STEP));
        drop(oldest);
        age(&budget, failing.place(), PASSED_MAX);
        let began = budget.shares().waiting[&failing.place()].began;
        assert!(failing.reserve(3 * STEP));
        failing.keep_room(3 * STEP);
        let kept = KeptPlace::new(&budget, failing.place());
        drop(failing);
        assert!(!budget.share(None).reserve(3 * STEP));
        assert_eq!(budget.shares().waiting[&kept.place().unwrap()].began, began);
        assert!(budget.share(Some(kept)).reserve(3 * STEP));
        assert_eq!(budget.waits(), 2, "that of the other, and one of this");
    }

    #[test]
    fn a_transfer_whose_place_is_dropped_holds_up_no_other() {
        let budget = Arc::new(Budget::new(4 * STEP));
        let (_oldest, mut waiting) = (large(&budget, 2), budget.share(None));
        assert!(!waiting.reserve(3 * STEP));
        let kept = KeptPlace::new(&budget, waiting.place());
        drop(waiting);
        assert!(!budget.shares().waiting.is_empty());
        drop(kept);
        assert!(budget.shares().waiting.is_empty());
        assert!(budget.share(None).reserve(2 * STEP));
    }

    #[test]
    fn a_steady_stream_of_others_passes_a_large_transfer_for_a_time_and_no_longer() {
        for octets in [4 * STEP, 9 * STEP] {
            let budget = Budget::new(4 * STEP);
            let (mut running, mut waiting) = (vec![large(&budget, 2)], budget.share(None));
            assert!(!waiting.reserve(octets));
            for _ in 0..10 {
                running.push(large(&budget, 2)); // before the one that it follows ends
                running.remove(0);
                assert!(!budget.has_room(waiting.place(), octets));
            }
            age(&budget, waiting.place(), PASSED_MAX);
            let mut last = budget.share(None);
            assert!(!last.reserve(2 * STEP), "{octets}: it is passed no more");
            assert!(matches!(last.raise(2 * STEP, ENDS), Err(Fault::Stopped)), "it would wait");
            assert!(budget.share(None).reserve(FREE), "but by small ones");
            running.clear();
            assert!(!last.reserve(2 * STEP) && waiting.reserve(octets), "{octets}");
        }
    }

    #[test]
    fn one_that_came_before_a_large_transfer_and_takes_long_has_it_passed_for_as_long() {
        let budget = Budget::new(4 * STEP);
        let (slow, mut waiting) = (large(&budget, 2), budget.share(None));
        assert!(!waiting.reserve(3 * STEP));
        age(&budget, waiting.place(), 100 * PASSED_MAX);
        let passing = large(&budget, 2);
        drop(slow);
        assert!(!waiting.reserve(3 * STEP));
        assert!(!budget.share(None).reserve(2 * STEP), "the one that passed it is to be the last");
        drop(passing);
        assert!(waiting.reserve(3 * STEP));
    }

    #[test]
    fn a_wait_is_as_old_as_its_beginning_however_often_the_transfer_asks() {
        let budget = Budget::new(4 * STEP);
        let (_oldest, mut waiting) = (large(&budget, 4), budget.share(None));
        assert!(!waiting.reserve(2 * STEP));
        let began = |place| budget.shares().waiting[&place].began;
        let first = began(waiting.place());
        assert!(!budget.has_room(waiting.place(), 3 * STEP) && !waiting.reserve(4 * STEP));
        assert_eq!((began(waiting.place()), budget.waits()), (first, 1));
    }

    #[test]
    fn where_there_is_room_for_a_transfer_it_is_reserved_whatever_its_octets() {
        for octets_max in [4 * STEP, 4 * STEP + 1, 5 * STEP - 1] {
            let budget = Budget::new(octets_max);
            let _oldest = large(&budget, 2);
            for octets in [FREE + 1, 2 * STEP - 1, 2 * STEP, 2 * STEP + 1, 3 * STEP - 1, 3 * STEP] {
                let mut share = budget.share(None);
                let has_room = budget.has_room(share.place(), octets);
                assert_eq!(has_room, share.reserve(octets), "{octets} of {octets_max}");
                budget.shares().waiting.clear();
            }
        }
    }

    #[test]
    fn a_share_takes_all_of_a_budget_of_no_whole_steps_and_no_more() {
        let budget = Budget::new(4 * STEP + STEP / 2);
        let small = large(&budget, 2);
        let (mut all, mut next) = (budget.share(None), budget.share(None));
        assert!(!all.reserve(4 * STEP + 1));
        drop(small);
        assert!(all.reserve(4 * STEP + 1));
        assert_eq!(budget.used(), 4 * STEP + STEP / 2);
        assert!(!next.reserve(2 * STEP));
        drop(all);
        assert!(next.reserve(2 * STEP));
    }

    #[test]
    fn a_transfer_begins_anew_with_twice_the_octets_but_not_with_more_than_there_may_be() {
        let budget = Budget::new(10 * STEP);
        let doubled = [3, 5, 7, 10, 11].map(|steps| budget.doubled(steps * STEP) / STEP);
        assert_eq!(doubled, [6, 10, 10, 10, 11]);
    }

    #[test]
    fn more_records_or_octets_of_a_zone_never_count_as_less() {
        for octets_of_one in [11, 40, 300, 70_000_u64] {
            let counted = (0..200_000_u64).map(|it| octets_of_zone(it, it * octets_of_one, || 0));
            assert!(counted.is_sorted(), "{octets_of_one}");
        }
    }

    #[test]
    fn thousands_that_wait_ask_less_often_but_those_whose_turn_is_next() {
        let budget = Budget::new(4 * STEP);
        let _oldest = large(&budget, 4);
        let mut last = budget.share(None).place();
        for count in 1..=5_000_u64 {
            let place = budget.share(None).place();
            assert!(!budget.has_room(place, 2 * STEP));
            let secs = budget.shares().ask_interval(place).as_secs();
            assert_eq!(secs, (count / ASKS_MAX as u64).max(1), "{count}");
            if count == EARLIER_MAX as u64 {
                last = place;
            }
        }
        assert_eq!(budget.shares().ask_interval(last), ASK_INTERVAL);
        assert_eq!(budget.shares().waiting.len(), 5_000);
    }

    #[test]
    fn the_oldest_large_share_grows_over_the_budget_and_one_that_becomes_the_oldest_then() {
        let budget = Budget::new(4 * STEP);
        let small = budget.share(None); // older, but small
        let (mut oldest, mut next) = (large(&budget, 2), large(&budget, 2));
        oldest.raise(10 * STEP, RUNS).unwrap();
        let raised = next.raise(3 * STEP, RUNS);
        assert!(
            matches!(raised, Err(Fault::NoMemory { octets, .. }) if octets == 3 * STEP),
            "{raised:?}"
        );
        drop(oldest);
        next.raise(20 * STEP, RUNS).unwrap();
        drop((small, next));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_share_waits_in_the_middle_until_there_is_room_and_is_told_to_wait_while_it_does() {
        let budget = Budget::new(4 * STEP);
        let (oldest, told) = (large(&budget, 4), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let note_wait = |is_waiting| told.lock().unwrap().push(is_waiting);
                let mut share = budget.share(None);
                let hooks = TransferHooks { note_wait: &note_wait, ..TransferHooks::NONE };
                share.raise(FREE, &hooks).unwrap();
                share.raise(2 * STEP, &hooks).map(|()| share.waited())
            });
            while budget.waits() == 0 {
                thread::yield_now();
            }
            assert_eq!(*told.lock().unwrap(), [true]);
            thread::sleep(STOP_INTERVAL);
            drop(oldest);
            assert!(waiting.join().unwrap().unwrap() >= STOP_INTERVAL);
        });
        assert_eq!(*told.lock().unwrap(), [true, false]);
    }

    #[test]
    fn all_waits_of_a_share_in_the_middle_take_three_seconds_together_at_most() {
        let budget = Budget::new(4 * STEP);
        let (_oldest, mut share, began) = (large(&budget, 2), large(&budget, 2), Instant::now());
        share.waited = WAIT_MAX / 2;
        assert!(matches!(share.raise(3 * STEP, RUNS), Err(Fault::NoMemory { .. })));
        assert!((WAIT_MAX / 2..WAIT_MAX).contains(&began.elapsed()), "{:?}", began.elapsed());
        assert!(share.waited >= WAIT_MAX);
        assert!(matches!(share.raise(3 * STEP, ENDS), Err(Fault::Stopped)));
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
