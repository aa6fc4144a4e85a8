//! Which zone of primaries is looked after next; without threads and clocks.
//!
//! ```text
//! unread ─► being read ─┐
//!                       ▼          ┌─ notified ─┐
//!             due: by time ──────► │  a primary │ ─► running ─► due
//!                       NOTIFY ──► └─ waiting ──┘
//! ```
//! Times are milliseconds since any beginning.
//!
//! # Invariants
//! - A zone has one state, and stands in one queue at most, so that all queues together are as long
//!   as there are zones, whatever primaries send.
//! - No two threads look after a zone at a time, also where a reload has changed or removed it.
//! - Files are read by threads of their own: no zone waits for a transfer before it is served.
//! - Primaries take turns. None has more than [`OF_PRIMARY_MAX`] threads, and those that keep a
//!   thread for long have at most [`OF_SLOW_MAX`] together: some are always left for the rest.
//! - Zones that a primary says have changed go first, but for each [`TURN_OF_WAITING`]th turn.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use zonda_wire::Name;
use zonda_zone::is_greater;

/// Threads that look after zones.
pub const THREADS: usize = 16;
/// Threads that look after zones of one primary.
pub const OF_PRIMARY_MAX: usize = 8;
/// Threads that look after zones of one slow primary.
const OF_SLOW_PRIMARY_MAX: usize = 4;
/// Threads that look after zones of slow primaries.
const OF_SLOW_MAX: usize = 12;
/// A thread that looks after a zone for longer makes its primary a slow one: primaries that answer
/// take a few round trips, those that do not some seconds.
const LONG_MILLIS: u64 = 2_000;
/// How long a primary is slow after the last thread that was busy with it for long.
const SLOW_MILLIS: u64 = 60_000;
/// Which turn is for a zone that waits although other zones are notified, lest those that are
/// notified again and again leave the rest to expire.
const TURN_OF_WAITING: u64 = 4;

/// What asks for a refresh of a zone out of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A primary at an address says that the zone has changed (NOTIFY), and has this serial, if it
    /// says that.
    Notice(IpAddr, Option<u32>),
    /// An operator has the primaries asked.
    Refresh,
    /// An operator has the whole zone transferred, whatever its serial.
    Retransfer,
}

/// Which zone is due when.
#[derive(Default)]
pub struct Schedule {
    /// The zones by their apexes, and those that were removed while a thread looks after them.
    zones: HashMap<Name, Scheduled>,
    /// The zones whose files are to be read.
    unread: BTreeMap<Place, Name>,
    /// The zones by the moments at which they are due.
    due: BTreeMap<DuePlace, Name>,
    /// The zones that wait for threads, by their first primary.
    queues: HashMap<SocketAddr, PrimaryQueue>,
    /// The primaries of which zones wait, in the order of their turns: those that have said that a
    /// zone has changed, and those of which the time of a zone has come.
    turns: [VecDeque<SocketAddr>; 2],
    /// The primaries that threads are busy with, or that are slow.
    busy: HashMap<SocketAddr, BusyPrimary>,
    /// The zones that threads look after, each as one of a primary's.
    running: HashMap<Name, (SocketAddr, Run)>,
    /// Number of zones in the queues of all primaries, of either kind.
    queued: [usize; 2],
    /// Number of zones that were taken so far.
    taken: u64,
    /// The number of the last place in a queue.
    last: u64,
}

/// A place in a queue: a number that no other place has.
type Place = u64;

/// A place among the zones that are due: its moment, and behind that [`NUMBER_BITS`] of a number
/// which tells it from the other places of the moment. One integer, as each zone has it twice.
type DuePlace = u64;
/// The bits of a [`DuePlace`] that tell places of a moment apart; all other bits are the moment,
/// which leaves 557 years of milliseconds.
const NUMBER_BITS: u32 = 20;

/// A zone of the schedule, of which there may be a hundred thousand.
struct Scheduled {
    /// The first primary, whose threads look after the zone.
    primary: Arc<SocketAddr>,
    /// What becomes of the zone next.
    state: State,
    /// What has asked for a refresh out of turn since the zone was taken last; takes memory only
    /// while there is something.
    prompt: Option<Box<Prompt>>,
}

/// What a reload has made of a zone while a thread is busy with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reload {
    /// The zone has other settings.
    Changed,
    /// The zone is not to be followed any more.
    Removed,
    /// The zone was removed, and is followed again, from its file.
    Added,
}

/// What becomes of a zone next.
#[derive(Clone, Copy)]
enum State {
    /// The zone waits until its file is read, at a place.
    Unread(Place),
    /// A thread reads its file; with what a reload has made of the zone meanwhile.
    Reading(Option<Reload>),
    /// The zone is due, at the moment of a place.
    Due(DuePlace),
    /// The zone waits for a thread, at a place of one of the queues of its primary.
    Waiting(QueueKind, Place),
    /// A thread looks after it; with what a reload has made of the zone meanwhile.
    Running(Option<Reload>),
}

/// How long a thread has looked after a zone, without the time in which it waited for
/// memory of the server, for which its primary cannot be blamed.
#[derive(Clone, Copy)]
enum Run {
    /// Since a moment.
    Since(u64),
    /// For so many milliseconds, before it began to wait.
    Paused(u64),
}

/// One of the queues of a primary: an octet, as each zone has it.
type QueueKind = u8;
/// The queue of zones that the primary says have changed.
const NOTIFIED: QueueKind = 0;
/// The queue of zones whose time has come.
const WAITING: QueueKind = 1;

/// The zones of a primary that wait for threads.
#[derive(Default)]
struct PrimaryQueue {
    /// The zones of either queue.
    zones: [BTreeMap<Place, Name>; 2],
    /// Whether the primary stands among the turns of either queue.
    has_turn: [bool; 2],
}

/// A primary that threads are busy with, or that is slow.
#[derive(Default)]
struct BusyPrimary {
    /// The moments at which threads began to look after its zones, and how many did at each.
    running: BTreeMap<u64, usize>,
    /// Number of threads besides that wait for memory of the server.
    paused: usize,
    /// The moment until which the primary is slow, whatever its threads do.
    slow_until: u64,
}

/// How many zones wait for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleCounts {
    /// Zones whose files are to be read.
    pub unread: usize,
    /// Zones that primaries say have changed, and that wait for a thread.
    pub notified: usize,
    /// Zones whose time has come, and that wait for a thread.
    pub waiting: usize,
    /// Zones that threads look after.
    pub running: usize,
}

impl Schedule {
    /// Follows a zone with a first primary. One that is not known yet is read first; one that is
    /// known has other settings, and is due at once.
    pub fn add(&mut self, apex: &Name, primary: Arc<SocketAddr>) {
        self.leave_queue(apex);
        let Some(zone) = self.zones.get_mut(apex) else {
            let state = State::Unread(self.last);
            self.zones.insert(apex.clone(), Scheduled { primary, state, prompt: None });
            return self.enter_unread(apex);
        };
        zone.primary = primary;
        match &mut zone.state {
            State::Unread(_) => self.enter_unread(apex),
            State::Reading(reload) | State::Running(reload) => {
                *reload = Some(match reload {
                    None | Some(Reload::Changed) => Reload::Changed,
                    Some(Reload::Removed | Reload::Added) => Reload::Added,
                });
            }
            State::Due(_) | State::Waiting(..) => self.enter(apex, 0),
        }
    }

    /// Follows a zone no more. One that a thread is busy with is forgotten once that has finished.
    pub fn remove(&mut self, apex: &Name) {
        self.leave_queue(apex);
        match self.zones.get_mut(apex).map(|zone| &mut zone.state) {
            Some(State::Reading(reload) | State::Running(reload)) => {
                *reload = Some(Reload::Removed);
            }
            _ => _ = self.zones.remove(apex),
        }
    }

    /// Takes a zone whose file is to be read.
    pub fn take_unread(&mut self) -> Option<Name> {
        let (_, apex) = self.unread.pop_first()?;
        self.zones.get_mut(&apex)?.state = State::Reading(None);
        Some(apex)
    }

    /// Notes that a zone's file was read, and when the zone is due.
    pub fn finish_reading(&mut self, apex: &Name, due: u64) {
        self.put_back(apex, due);
    }

    /// Makes a zone due no later than at a moment.
    pub fn hasten(&mut self, apex: &Name, due: u64) {
        let state = self.zones.get(apex).map(|zone| zone.state);
        if let Some(State::Due(place)) = state
            && place >> NUMBER_BITS > due
        {
            self.leave_queue(apex);
            self.enter(apex, due);
        }
    }

    /// Has a zone refreshed out of turn, as a primary says that it has changed, or an operator asks
    /// for it. It stands among such zones once, however often that is said; the operator goes
    /// before the primary.
    pub fn prompt(&mut self, apex: &Name, prompt: Prompt) {
        let Some(zone) = self.zones.get_mut(apex) else { return };
        zone.prompt = Some(stronger(zone.prompt.as_deref().copied(), prompt).into());
        if matches!(zone.state, State::Due(_) | State::Waiting(WAITING, _)) {
            self.leave_queue(apex);
            self.enter(apex, 0);
        }
    }

    /// Takes a zone for a thread to look after, and what has asked for that out of turn.
    pub fn take(&mut self, now: u64) -> Option<(Name, Option<Prompt>)> {
        while self.next_millis().is_some_and(|moment| moment <= now)
            && let Some((_, apex)) = self.due.pop_first()
        {
            self.enter(&apex, 0);
        }
        if self.running.len() >= THREADS {
            return None;
        }
        let is_for_waiting = (self.taken + 1).is_multiple_of(TURN_OF_WAITING);
        let kinds = if is_for_waiting { [WAITING, NOTIFIED] } else { [NOTIFIED, WAITING] };
        let (apex, primary) = kinds.into_iter().find_map(|kind| self.take_of(kind, now))?;
        let zone = self.zones.get_mut(&apex)?;
        zone.state = State::Running(None);
        let prompt = zone.prompt.take().map(|prompt| *prompt);
        self.busy.entry(primary).or_default().begin(now);
        self.running.insert(apex.clone(), (primary, Run::Since(now)));
        self.taken += 1;
        Some((apex, prompt))
    }

    /// Takes a zone of a queue, of the first primary in turn that may have one more thread.
    fn take_of(&mut self, kind: QueueKind, now: u64) -> Option<(Name, SocketAddr)> {
        let kind = usize::from(kind);
        let slow = self.busy.values().filter(|primary| primary.is_slow(now));
        let of_slow: usize = slow.map(BusyPrimary::threads).sum();
        for _ in 0..self.turns[kind].len() {
            let address = self.turns[kind].pop_front()?;
            let Some(queue) = self.queues.get_mut(&address) else { continue };
            let (is_slow, threads) =
                self.busy.get(&address).map_or((false, 0), |it| (it.is_slow(now), it.threads()));
            let may_have_more = match is_slow {
                true => threads < OF_SLOW_PRIMARY_MAX && of_slow < OF_SLOW_MAX,
                false => threads < OF_PRIMARY_MAX,
            };
            queue.has_turn[kind] = false;
            let taken = if may_have_more { queue.zones[kind].pop_first() } else { None };
            self.give_turn(address);
            if let Some((_, apex)) = taken {
                self.queued[kind] -= 1;
                return Some((apex, address));
            }
        }
        None
    }

    /// Notes that a thread that looks after a zone waits for memory of the server from now on, or
    /// does so no more: no time for which its primary becomes a slow one.
    pub fn note_wait(&mut self, apex: &Name, is_waiting: bool, now: u64) {
        let Some((address, run)) = self.running.get_mut(apex) else { return };
        let Some(primary) = self.busy.get_mut(&*address) else { return };
        *run = match (*run, is_waiting) {
            (Run::Since(began), true) => {
                primary.leave(began);
                primary.paused += 1;
                Run::Paused(now.saturating_sub(began))
            }
            (Run::Paused(ran), false) => {
                primary.paused -= 1;
                primary.begin(now.saturating_sub(ran));
                Run::Since(now.saturating_sub(ran))
            }
            (run, _) => run,
        };
    }

    /// Notes that a thread has looked after a zone, and when the zone is due again.
    pub fn finish(&mut self, apex: &Name, now: u64, due: u64) {
        self.note_wait(apex, false, now); // where the thread has panicked
        let Some((address, Run::Since(began))) = self.running.remove(apex) else { return };
        if let Some(primary) = self.busy.get_mut(&address) {
            primary.end(began, now);
        }
        self.busy.retain(|_, primary| primary.threads() > 0 || primary.is_slow(now));
        self.put_back(apex, due);
    }

    /// Notes what has asked for a refresh out of turn that has not been done: it asks for the next
    /// one, which it does not hasten. Of two primaries, the one that has asked since goes before
    /// it.
    pub fn keep_prompt(&mut self, apex: &Name, prompt: Prompt) {
        if let Some(zone) = self.zones.get_mut(apex) {
            let since = zone.prompt.take();
            let kept = since.map_or(prompt, |since| stronger(Some(prompt), *since));
            zone.prompt = Some(kept.into());
        }
    }

    /// Puts a zone that no thread is busy with any more where it belongs.
    fn put_back(&mut self, apex: &Name, due: u64) {
        let reload = match self.zones.get(apex).map(|zone| zone.state) {
            Some(State::Reading(reload) | State::Running(reload)) => reload,
            Some(State::Unread(_) | State::Due(_) | State::Waiting(..)) => None,
            None => return,
        };
        match reload {
            None => self.enter(apex, due),
            Some(Reload::Changed) => self.enter(apex, 0),
            Some(Reload::Removed) => _ = self.zones.remove(apex),
            Some(Reload::Added) => self.enter_unread(apex),
        }
    }

    /// Puts a zone among those whose files are to be read.
    fn enter_unread(&mut self, apex: &Name) {
        let place = next_place(&mut self.last);
        if let Some(zone) = self.zones.get_mut(apex) {
            zone.state = State::Unread(place);
            self.unread.insert(place, apex.clone());
        }
    }

    /// Puts a zone among those that are due at a moment, or into a queue of its primary if that
    /// says that it has changed, or the moment is 0.
    fn enter(&mut self, apex: &Name, due: u64) {
        let Some(zone) = self.zones.get_mut(apex) else { return };
        if zone.prompt.is_none() && due > 0 {
            let place = next_due_place(&mut self.last, due, &self.due);
            zone.state = State::Due(place);
            self.due.insert(place, apex.clone());
            return;
        }
        let place = next_place(&mut self.last);
        let kind = if zone.prompt.is_some() { NOTIFIED } else { WAITING };
        zone.state = State::Waiting(kind, place);
        let (address, kind) = (*zone.primary, usize::from(kind));
        self.queues.entry(address).or_default().zones[kind].insert(place, apex.clone());
        self.queued[kind] += 1;
        self.give_turn(address);
    }

    /// Takes a zone out of the queue in which it stands, if it stands in one.
    fn leave_queue(&mut self, apex: &Name) {
        let Some(zone) = self.zones.get(apex) else { return };
        match zone.state {
            State::Unread(place) => _ = self.unread.remove(&place),
            State::Due(place) => _ = self.due.remove(&place),
            State::Waiting(kind, place) => {
                let kind = usize::from(kind);
                let queue = self.queues.get_mut(&*zone.primary);
                let removed = queue.and_then(|queue| queue.zones[kind].remove(&place));
                self.queued[kind] -= usize::from(removed.is_some());
            }
            State::Reading(_) | State::Running(_) => {}
        }
    }

    /// Has a primary take turns while zones of it wait.
    fn give_turn(&mut self, address: SocketAddr) {
        let Some(queue) = self.queues.get_mut(&address) else { return };
        for kind in [NOTIFIED, WAITING].map(usize::from) {
            if !queue.has_turn[kind] && !queue.zones[kind].is_empty() {
                queue.has_turn[kind] = true;
                self.turns[kind].push_back(address);
            }
        }
        if queue.has_turn == [false; 2] {
            self.queues.remove(&address);
        }
    }

    /// The moment at which the next zone is due, if any is.
    pub fn next_millis(&self) -> Option<u64> {
        self.due.keys().next().map(|place| place >> NUMBER_BITS)
    }

    /// How many zones wait for what.
    pub fn counts(&self) -> ScheduleCounts {
        let [notified, waiting] = self.queued;
        ScheduleCounts { unread: self.unread.len(), notified, waiting, running: self.running.len() }
    }
}

/// Of what has asked for a refresh before and now, the one that asks for more.
fn stronger(former: Option<Prompt>, prompt: Prompt) -> Prompt {
    match (former, prompt) {
        (Some(Prompt::Retransfer), _) => Prompt::Retransfer,
        (Some(Prompt::Refresh), Prompt::Notice(..)) => Prompt::Refresh,
        (Some(Prompt::Notice(_, former)), Prompt::Notice(from, None)) => {
            Prompt::Notice(from, former)
        }
        (Some(Prompt::Notice(_, Some(former))), Prompt::Notice(from, Some(serial))) => {
            let serial = if is_greater(former, serial) { former } else { serial };
            Prompt::Notice(from, Some(serial))
        }
        _ => prompt,
    }
}

/// The next place in a queue, behind all that there were.
fn next_place(last: &mut u64) -> Place {
    *last += 1;
    *last
}

/// The next place among zones that are due at a moment: the first free one from that of the next
/// number on. Where a million zones are due at one moment, it may be a millisecond later.
fn next_due_place(last: &mut u64, moment: u64, due: &BTreeMap<DuePlace, Name>) -> DuePlace {
    let moment = moment.min((u64::MAX >> NUMBER_BITS) - 1);
    let number = next_place(last) & ((1 << NUMBER_BITS) - 1);
    let mut place = moment << NUMBER_BITS | number;
    while due.contains_key(&place) {
        place += 1;
    }
    place
}

impl BusyPrimary {
    /// Number of threads that look after zones of the primary.
    fn threads(&self) -> usize {
        self.running.values().sum::<usize>() + self.paused
    }

    /// Whether the primary keeps a thread for long, or did a moment ago.
    fn is_slow(&self, now: u64) -> bool {
        let first = self.running.keys().next();
        now < self.slow_until || first.is_some_and(|began| began + LONG_MILLIS <= now)
    }

    /// Notes that a thread looks after one of its zones since a moment.
    fn begin(&mut self, began: u64) {
        *self.running.entry(began).or_default() += 1;
    }

    /// Forgets a thread that began at a moment.
    fn leave(&mut self, began: u64) {
        if let Some(count) = self.running.get_mut(&began) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(&began);
            }
        }
    }

    /// Notes that a thread that began at a moment has finished.
    fn end(&mut self, began: u64, now: u64) {
        self.leave(began);
        if began + LONG_MILLIS <= now {
            self.slow_until = now + SLOW_MILLIS;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The address of a primary by its number.
    fn primary(number: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, number], 53))
    }

    /// The name of a zone of a primary.
    fn zone(number: u8, of_it: usize) -> Name {
        format!("z{of_it}.p{number}.test").parse().unwrap()
    }

    /// Which primary a name's zone has.
    fn primary_of(apex: &Name) -> String {
        apex.to_string().split('.').nth(1).unwrap().to_owned()
    }

    /// A primary that says that a zone has changed.
    const NOTICE: Prompt = Prompt::Notice(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), None);

    /// A schedule with so many zones of each primary, all read and due.
    fn schedule(zones: &[(u8, usize)]) -> Schedule {
        let mut schedule = Schedule::default();
        for (number, count) in zones {
            (0..*count).for_each(|it| schedule.add(&zone(*number, it), primary(*number).into()));
        }
        while let Some(apex) = schedule.take_unread() {
            schedule.finish_reading(&apex, 0);
        }
        schedule
    }

    /// Takes all zones that may be taken at a moment.
    fn take_all(schedule: &mut Schedule, now: u64) -> Vec<Name> {
        std::iter::from_fn(|| schedule.take(now)).map(|(apex, _)| apex).collect()
    }

    #[test]
    fn a_zone_that_waits_for_memory_is_due_later_with_what_has_asked_for_its_refresh() {
        let mut schedule = schedule(&[(1, 1)]);
        schedule.prompt(&zone(1, 0), Prompt::Retransfer);
        assert_eq!(schedule.take(0), Some((zone(1, 0), Some(Prompt::Retransfer))));
        schedule.finish(&zone(1, 0), 10, 1_010);
        schedule.keep_prompt(&zone(1, 0), Prompt::Retransfer);
        assert_eq!((schedule.take(1_009), schedule.next_millis()), (None, Some(1_010)));
        assert_eq!(schedule.take(1_010), Some((zone(1, 0), Some(Prompt::Retransfer))));
        schedule.prompt(&zone(1, 0), NOTICE);
        schedule.finish(&zone(1, 0), 1_010, 2_010);
        schedule.keep_prompt(&zone(1, 0), Prompt::Retransfer);
        assert_eq!(schedule.take(1_010), Some((zone(1, 0), Some(Prompt::Retransfer))));
    }

    #[test]
    fn of_several_messages_for_a_zone_the_greatest_serial_is_kept() {
        let notice = |serial| Prompt::Notice(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), serial);
        for (serials, kept) in [
            ([Some(7), Some(8)], Some(8)),
            ([Some(8), Some(7)], Some(8)),
            ([Some(8), None], Some(8)),
            ([None, Some(7)], Some(7)),
            ([Some(u32::MAX), Some(3)], Some(3)),
        ] {
            let mut schedule = schedule(&[(1, 1)]);
            serials.iter().for_each(|it| schedule.prompt(&zone(1, 0), notice(*it)));
            assert_eq!(schedule.take(0), Some((zone(1, 0), Some(notice(kept)))), "{serials:?}");
        }
    }

    #[test]
    fn of_two_primaries_that_have_asked_the_one_that_did_so_last_is_asked_first_after_a_wait() {
        let mut schedule = schedule(&[(1, 1)]);
        let later = Prompt::Notice(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), None);
        schedule.prompt(&zone(1, 0), NOTICE);
        assert_eq!(schedule.take(0), Some((zone(1, 0), Some(NOTICE))));
        schedule.prompt(&zone(1, 0), later);
        schedule.finish(&zone(1, 0), 10, 1_010);
        schedule.keep_prompt(&zone(1, 0), NOTICE);
        assert_eq!(schedule.take(1_010), Some((zone(1, 0), Some(later))));
    }

    #[test]
    fn a_primary_whose_zones_wait_for_memory_of_ours_is_not_slow_for_that() {
        let mut schedule = schedule(&[(1, 30)]);
        let first = take_all(&mut schedule, 0);
        assert_eq!(first.len(), OF_PRIMARY_MAX);
        first.iter().for_each(|apex| schedule.note_wait(apex, true, 100));
        schedule.finish(&first[0], LONG_MILLIS, 1_000_000); // as after a panic
        let next = take_all(&mut schedule, LONG_MILLIS);
        assert_eq!(next.len(), 1, "those that wait count as threads, and as quick ones");
        let until = 2 * LONG_MILLIS;
        first[1..].iter().for_each(|apex| schedule.note_wait(apex, false, until));
        schedule.finish(&next[0], until - 1, 1_000_000);
        first[1..].iter().for_each(|apex| schedule.finish(apex, until, 1_000_000));
        assert_eq!(take_all(&mut schedule, until).len(), OF_PRIMARY_MAX, "it is quick");
        assert_eq!(schedule.busy[&primary(1)].paused, 0);
    }

    #[test]
    fn a_primary_whose_zones_take_long_besides_a_wait_for_memory_is_slow() {
        let mut schedule = schedule(&[(1, 1)]);
        let first = take_all(&mut schedule, 0);
        schedule.note_wait(&first[0], true, LONG_MILLIS / 2);
        schedule.note_wait(&first[0], false, 2 * LONG_MILLIS);
        let end = 2 * LONG_MILLIS + LONG_MILLIS / 2;
        schedule.finish(&first[0], end, 1_000_000);
        assert!(schedule.busy[&primary(1)].is_slow(end));
    }

    #[test]
    fn files_are_read_whatever_threads_are_busy_with() {
        let mut schedule = schedule(&[(1, 20), (2, 20)]);
        assert_eq!(take_all(&mut schedule, 0).len(), THREADS);
        schedule.add(&zone(3, 0), primary(3).into());
        assert_eq!(schedule.counts().unread, 1);
        assert_eq!(schedule.take_unread(), Some(zone(3, 0)));
        schedule.finish_reading(&zone(3, 0), 500);
        assert_eq!((schedule.counts().unread, schedule.next_millis()), (0, Some(500)));
    }

    #[test]
    fn two_dead_primaries_with_a_thousand_zones_each_leave_threads_to_a_third() {
        let mut schedule = schedule(&[(1, 1000), (2, 1000), (3, 5)]);
        let (mut now, mut of_third, mut running) = (0, 0, VecDeque::new());
        for _ in 0..4 {
            for apex in take_all(&mut schedule, now) {
                if primary_of(&apex) == "p3" {
                    of_third += 1;
                    schedule.finish(&apex, now + 20, 1_000_000);
                } else {
                    running.push_back(apex);
                }
            }
            now += 5000; // what each zone of the other primaries takes
            running.drain(..).for_each(|apex| schedule.finish(&apex, now, now + 30_000));
        }
        assert_eq!(of_third, 5);
        let busy = take_all(&mut schedule, now);
        assert_eq!(busy.len(), 2 * OF_SLOW_PRIMARY_MAX, "they are slow");
    }

    #[test]
    fn slow_primaries_together_leave_some_threads_free() {
        let all: Vec<_> = (1..=20).map(|number| (number, 10)).collect();
        let mut schedule = schedule(&all);
        let first = take_all(&mut schedule, 0);
        assert_eq!(first.len(), THREADS, "they are not known to be slow");
        for apex in &first {
            schedule.finish(apex, 10_000, 1_000_000);
        }
        let known: Vec<String> = first.iter().map(primary_of).collect();
        let second = take_all(&mut schedule, 10_000);
        let of_known = second.iter().filter(|apex| known.contains(&primary_of(apex)));
        assert_eq!((second.len(), of_known.count()), (THREADS, OF_SLOW_MAX));
    }

    #[test]
    fn a_primary_that_keeps_a_thread_for_long_gets_no_more_than_a_few_and_recovers() {
        let mut schedule = schedule(&[(1, 30)]);
        let first = take_all(&mut schedule, 0);
        assert_eq!(first.len(), OF_PRIMARY_MAX);
        schedule.finish(&first[0], LONG_MILLIS, 1_000_000);
        assert_eq!(take_all(&mut schedule, LONG_MILLIS).len(), 0, "the rest still runs");
        first[1..].iter().for_each(|apex| schedule.finish(apex, LONG_MILLIS, 1_000_000));
        let second = take_all(&mut schedule, LONG_MILLIS);
        assert_eq!(second.len(), OF_SLOW_PRIMARY_MAX);
        second.iter().for_each(|apex| schedule.finish(apex, LONG_MILLIS + 10, 1_000_000));
        let later = LONG_MILLIS + SLOW_MILLIS;
        assert_eq!(take_all(&mut schedule, later).len(), OF_PRIMARY_MAX, "it was quick since");
    }

    #[test]
    fn a_zone_that_is_notified_a_million_times_stands_in_one_queue_once_and_goes_first() {
        let mut schedule = schedule(&[(1, 100)]);
        let first = take_all(&mut schedule, 0);
        let before = schedule.counts();
        for _ in 0..1_000_000 {
            schedule.prompt(&zone(1, 99), NOTICE);
        }
        let after = schedule.counts();
        assert_eq!((before.waiting, before.notified), (92, 0));
        assert_eq!((after.waiting, after.notified), (91, 1));
        schedule.finish(&first[0], 10, 1000);
        assert_eq!(schedule.take(10), Some((zone(1, 99), Some(NOTICE))));
        assert_eq!(schedule.take(10), None, "all threads of the primary are busy");
    }

    #[test]
    fn a_notice_that_comes_while_a_thread_looks_after_the_zone_has_it_looked_after_once_more() {
        let mut schedule = schedule(&[(1, 1)]);
        schedule.take(0).unwrap();
        schedule.prompt(&zone(1, 0), NOTICE);
        schedule.prompt(&zone(1, 0), NOTICE);
        assert_eq!(schedule.take(0), None);
        schedule.finish(&zone(1, 0), 5, 1000);
        assert_eq!(schedule.take(5), Some((zone(1, 0), Some(NOTICE))));
        schedule.finish(&zone(1, 0), 6, 1000);
        assert_eq!((schedule.take(6), schedule.next_millis()), (None, Some(1000)));
    }

    #[test]
    fn what_an_operator_asks_for_is_done_whatever_primaries_say_meanwhile() {
        let mut schedule = schedule(&[(1, 1)]);
        for (prompts, taken) in [
            ([NOTICE, Prompt::Refresh], Prompt::Refresh),
            ([Prompt::Refresh, NOTICE], Prompt::Refresh),
            ([Prompt::Retransfer, NOTICE], Prompt::Retransfer),
            ([Prompt::Retransfer, Prompt::Refresh], Prompt::Retransfer),
            ([Prompt::Refresh, Prompt::Retransfer], Prompt::Retransfer),
        ] {
            prompts.into_iter().for_each(|prompt| schedule.prompt(&zone(1, 0), prompt));
            assert_eq!(schedule.take(0), Some((zone(1, 0), Some(taken))));
            schedule.finish(&zone(1, 0), 0, 1000);
        }
    }

    #[test]
    fn zones_that_are_notified_again_and_again_leave_a_fourth_of_the_turns_to_those_that_wait() {
        let mut schedule = schedule(&[(1, 40)]);
        let mut of_waiting = 0;
        for now in 0..32 {
            (0..9).for_each(|it| schedule.prompt(&zone(1, it), NOTICE));
            let (apex, from) = schedule.take(now).unwrap();
            of_waiting += usize::from(from.is_none());
            schedule.finish(&apex, now, 1_000_000);
        }
        assert_eq!(of_waiting, 8);
    }

    #[test]
    fn zones_that_wait_are_taken_though_those_that_ran_and_waited_before_them_are_removed() {
        let mut schedule = schedule(&[(1, 20)]);
        let running = take_all(&mut schedule, 0);
        assert_eq!(running.len(), 8);
        let waiting: Vec<Name> =
            (0..20).map(|it| zone(1, it)).filter(|it| !running.contains(it)).collect();
        running.iter().chain(&waiting[..8]).for_each(|apex| schedule.remove(apex));
        running.iter().for_each(|apex| schedule.finish(apex, 10, 0));
        assert_eq!(schedule.counts().waiting, 4);
        assert_eq!(take_all(&mut schedule, 10), waiting[8..]);
        assert_eq!((schedule.zones.len(), schedule.counts().waiting), (4, 0));
    }

    #[test]
    fn no_two_threads_look_after_a_zone_that_a_reload_changes_or_removes_and_adds() {
        let mut schedule = schedule(&[(1, 2)]);
        let (changed, added) = (zone(1, 0), zone(1, 1));
        assert_eq!(take_all(&mut schedule, 0).len(), 2);
        schedule.add(&changed, primary(2).into());
        schedule.remove(&added);
        schedule.add(&added, primary(2).into());
        assert_eq!((schedule.take(1), schedule.take_unread()), (None, None));
        schedule.finish(&changed, 2, 1_000_000);
        schedule.finish(&added, 2, 1_000_000);
        assert_eq!(schedule.take(2), Some((changed, None)), "at once, with its other settings");
        assert_eq!(schedule.take_unread(), Some(added), "from its file");
    }

    #[test]
    fn a_zone_is_due_when_it_was_said_to_be_and_sooner_where_that_is_asked_for() {
        let mut schedule = schedule(&[(1, 2)]);
        let all = take_all(&mut schedule, 0);
        all.iter().for_each(|apex| schedule.finish(apex, 0, 1000));
        schedule.hasten(&all[0], 2000);
        assert_eq!((schedule.take(999), schedule.next_millis()), (None, Some(1000)));
        schedule.hasten(&all[1], 10);
        assert_eq!(schedule.take(10), Some((all[1].clone(), None)));
        schedule.hasten(&all[1], 11);
        assert_eq!(schedule.take(999), None, "a thread looks after it");
        assert_eq!(schedule.take(1000), Some((all[0].clone(), None)));
    }

    #[test]
    fn zones_of_one_moment_have_places_of_their_own_also_when_the_numbers_begin_anew() {
        let mut schedule = schedule(&[(1, 3)]);
        let all = take_all(&mut schedule, 0);
        for apex in &all {
            schedule.last = 1 << NUMBER_BITS; // so that each would get the number of the first
            schedule.finish(apex, 0, 1000);
        }
        assert_eq!((schedule.take(999), schedule.next_millis()), (None, Some(1000)));
        assert_eq!(take_all(&mut schedule, 1000), all, "in the order in which they came");
        for apex in &all {
            schedule.finish(apex, 1000, u64::MAX);
        }
        assert_eq!(schedule.take(u64::MAX >> (NUMBER_BITS + 1)), None, "no moment overflows");
        schedule.hasten(&all[1], 2000);
        assert_eq!(schedule.take(2000), Some((all[1].clone(), None)));
    }

    #[test]
    fn a_storm_of_notices_for_all_zones_is_taken_with_turns_of_each_primary() {
        let mut schedule = schedule(&[(1, 500), (2, 500)]);
        for number in [1, 2] {
            (0..500).for_each(|it| schedule.prompt(&zone(number, it), NOTICE));
        }
        let mut taken = HashMap::new();
        for now in 0..1000 {
            let (apex, from) = schedule.take(now).unwrap();
            assert_eq!(from, Some(NOTICE));
            *taken.entry(primary_of(&apex)).or_insert(0) += 1;
            schedule.finish(&apex, now, 1_000_000);
            let [one, two] = ["p1", "p2"].map(|it| *taken.get(it).unwrap_or(&0));
            assert!(i32::abs_diff(one, two) <= 1, "{one} {two}");
        }
        assert_eq!(schedule.counts(), ScheduleCounts::default());
        assert!(schedule.queues.is_empty() && schedule.busy.is_empty());
        assert!(schedule.turns.iter().all(VecDeque::is_empty));
    }
}
