//! Addresses that ALIAS records lead to, kept fresh in the answer cache although no client asks.
//!
//! A thread looks each of them up shortly before it expires, as a client would, and has the
//! forwarder threads fetch what is due. So the answer cache stays the only place that knows
//! addresses. Names and fetches are bounded, and spread over time.

use crate::watchdog::Watchdog;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use zonda_balance::Dice;
use zonda_deferral::Clock;
use zonda_engine::zones::Source;
use zonda_engine::{AliasAddresses, AliasLookup, AliasQuestion, Now, Peer, Snapshot, Transport};
use zonda_forward::Forwarders;
use zonda_wire::{Name, Type};
use zonda_zone::LookupName;

/// The name of the thread.
const THREAD: &str = "aliases";
/// Most names whose addresses are kept fresh: looking at all of them takes 20 ms.
const NAMES_MAX: usize = 10_000;
/// The time between two turns of the thread while names are followed.
const TURN: Duration = Duration::from_millis(250);
/// Most fetches that one turn begins: 100 a second.
const FETCHES_MAX: usize = 25;
/// The least time between two looks for ALIAS records in zones that have changed.
const SCAN_NANOS: u64 = 5 * SECOND;
/// That time as a multiple of what the last look took, as each reads the list of zones, and all
/// names of a zone with such a record: 1 % of a CPU.
const SCAN_PART: u64 = 100;
/// The least and the longest time, seconds, until known addresses are looked at again.
const LOOK_SECS: (u32, u32) = (5, 300);
/// The time, seconds, until addresses are looked at that are being fetched; twice as long each time
/// in a row.
const RETRY_SECS: u32 = 2;
/// The longest such time, and that after a failure.
const RETRY_SECS_MAX: u32 = 60;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Keeps addresses fresh until it is dropped.
pub struct AliasTargets {
    /// Whether the thread is to end.
    is_closed: Arc<AtomicBool>,
    /// The thread, until it is to end.
    thread: Option<JoinHandle<()>>,
}

impl AliasTargets {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(
        (snapshot, forwarders): (&Arc<ArcSwap<Snapshot>>, &Forwarders),
        clock: Clock,
        watchdog: &Arc<Watchdog>,
    ) -> io::Result<Self> {
        let (snapshot, forwarders) = (Arc::clone(snapshot), forwarders.clone());
        let is_closed = Arc::<AtomicBool>::default();
        let closed = Arc::clone(&is_closed);
        let mut follower = Follower::new(clock.now());
        let thread = watchdog.spawn(THREAD, move || {
            follower.scanned = Weak::new(); // after a panic, what was followed is found anew
            while !closed.load(Relaxed) {
                let present = snapshot.load_full();
                follower.scan(&present, &clock);
                follower.turn(&present, clock.now(), |question| forwarders.refresh(question));
                drop(present);
                thread::park_timeout(if follower.names.is_empty() { 4 * TURN } else { TURN });
            }
            true
        })?;
        Ok(Self { is_closed, thread: Some(thread) })
    }
}

impl Drop for AliasTargets {
    /// Ends the thread, and waits for it.
    fn drop(&mut self) {
        self.is_closed.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join(); // the watchdog has its panics
        }
    }
}

/// A name with an ALIAS record, for one type of addresses.
struct FollowedName {
    /// A listener that the zone is at, by its place in the configuration: what the target leads to
    /// depends on the listener where zones do.
    listener: u16,
    /// The apex of the name's zone.
    zone: Name,
    /// The name in wire form and lower case.
    owner: Box<[u8]>,
    /// The type, A or AAAA.
    qtype: Type,
    /// When the addresses are looked at next; nanoseconds of the monotonic clock.
    due_nanos: u64,
    /// How often in a row they were to be fetched.
    fetches: u32,
}

/// The names that are followed, and when.
struct Follower {
    /// All such names, each once for either type: at most two times [`NAMES_MAX`].
    names: Vec<FollowedName>,
    /// The place in `names` at which the next turn begins, so that each name has its turn.
    place: usize,
    /// What looks addresses up, once there are names: its tables take memory.
    lookup: Option<Box<AliasLookup>>,
    /// Random numbers that spread the looks.
    dice: Dice,
    /// When zones are looked at next.
    scan_nanos: u64,
    /// The snapshot whose zones were looked at last, to be told from later ones and not kept.
    scanned: Weak<Snapshot>,
    /// Whether the log has said that there are too many names.
    has_warned: bool,
}

impl Follower {
    /// Follows nothing yet.
    fn new(now: Now) -> Self {
        let dice = Dice::new(now.monotonic_nanos ^ u64::from(now.unix_secs) << 32);
        let (names, lookup) = (Vec::new(), None);
        let (scanned, has_warned) = (Weak::new(), false);
        Self { names, place: 0, lookup, dice, scan_nanos: 0, scanned, has_warned }
    }

    /// Looks at what is due, and gives to `fetch` what upstreams are to be asked.
    fn turn(&mut self, snapshot: &Snapshot, now: Now, fetch: impl Fn(AliasQuestion)) {
        if self.names.is_empty() {
            return;
        }
        let (address, transport) = (([127, 0, 0, 1], 0).into(), Transport::Tcp);
        let (mut names, mut fetches) = (std::mem::take(&mut self.names), 0);
        let (count, mut lookup) = (names.len(), self.lookup.take().unwrap_or_default());
        for _ in 0..count {
            if fetches >= FETCHES_MAX {
                break;
            }
            self.place = (self.place + 1) % count;
            let name = &mut names[self.place];
            if name.due_nanos > now.monotonic_nanos {
                continue;
            }
            let listener = name.listener;
            let (snapshot, peer) = (snapshot.at(listener), Peer::new(address, transport, listener));
            let apex = LookupName::new(name.zone.as_wire(), snapshot.zones.seed());
            let Some(entry) = snapshot.zones.with_apex(&apex) else { continue };
            let (zone, question) = ((snapshot, &**entry), (&*name.owner, name.qtype));
            let secs = match lookup.look_up(zone, question, (now, &peer)) {
                AliasAddresses::Due(question) => {
                    fetch(question);
                    fetches += 1;
                    name.fetches += 1;
                    (RETRY_SECS << (name.fetches.min(6) - 1)).min(RETRY_SECS_MAX)
                }
                AliasAddresses::Failed(_) => RETRY_SECS_MAX,
                AliasAddresses::Found(_, ttl) | AliasAddresses::None(ttl) => {
                    // An answer is due before it expires only if it was asked for twice.
                    let is_new = std::mem::take(&mut name.fetches) > 0;
                    let (least, most) = LOOK_SECS;
                    if is_new { least } else { (ttl / 10 * 9).clamp(least, most) }
                }
            };
            name.due_nanos = now.monotonic_nanos + self.spread(secs);
        }
        (self.names, self.lookup) = (names, Some(lookup));
    }

    /// Some time about so many seconds, at most a twentieth longer.
    fn spread(&mut self, secs: u32) -> u64 {
        let nanos = u64::from(secs) * SECOND;
        nanos + self.dice.roll() % (nanos / 20).max(1)
    }

    /// Finds the names with ALIAS records, if zones have changed and it is time to look.
    fn scan(&mut self, snapshot: &Arc<Snapshot>, clock: &Clock) {
        let began_nanos = clock.now().monotonic_nanos;
        let is_same = std::ptr::eq(self.scanned.as_ptr(), Arc::as_ptr(snapshot));
        if is_same || began_nanos < self.scan_nanos {
            return;
        }
        let known = std::mem::take(&mut self.names);
        if snapshot.settings.alias_refresh && snapshot.zones.has_forwards() {
            self.find_names(snapshot, known, began_nanos);
        }
        let took = clock.now().monotonic_nanos.saturating_sub(began_nanos);
        self.scan_nanos = began_nanos + SCAN_NANOS.max(SCAN_PART * took);
        self.scanned = Arc::downgrade(snapshot);
    }

    /// Finds the names with ALIAS records in all zones; those that are known keep their time.
    fn find_names(&mut self, snapshot: &Snapshot, known: Vec<FollowedName>, due_nanos: u64) {
        let mut known: HashMap<_, _> =
            known.into_iter().map(|it| ((it.owner.clone(), it.qtype, it.listener), it)).collect();
        let entries = snapshot.with_listeners().flat_map(|(listener, snapshot)| {
            snapshot.zones.iter().map(move |entry| (listener, entry))
        });
        for (listener, entry) in entries {
            let Source::Data(zone) = &entry.source else { continue };
            for (owner, _) in zone.aliases() {
                if self.names.len() >= 2 * NAMES_MAX {
                    return self.warn();
                }
                for qtype in [Type::A, Type::AAAA] {
                    let owner: Box<[u8]> = owner.as_slice().into();
                    let same = known.remove(&(owner.clone(), qtype, listener));
                    let zone = entry.apex.clone();
                    let fetches = 0;
                    let new = FollowedName { listener, zone, owner, qtype, due_nanos, fetches };
                    self.names.push(same.filter(|it| it.zone == entry.apex).unwrap_or(new));
                }
            }
        }
    }

    /// Logs once that there are too many names.
    fn warn(&mut self) {
        if !std::mem::replace(&mut self.has_warned, true) {
            tracing::warn!(
                most = NAMES_MAX,
                "more names have ALIAS records than are kept fresh without queries"
            );
        }
    }
}
