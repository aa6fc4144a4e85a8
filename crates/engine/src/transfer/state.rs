//! How many transfers run, and what all have done.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use zonda_wire::tsig::KeyId;
use zonda_wire::{Name, Type};

/// The bounds of transfers, and what they have done.
#[derive(Clone)]
pub struct TransferSettings {
    /// Most transfers that run at once.
    pub at_once: usize,
    /// Most transfers to one client that run at once.
    pub at_once_per_client: usize,
    /// How long a transfer may take.
    pub time_max: Duration,
    /// The transfers that run, and what all have done.
    pub state: Arc<TransferState>,
    /// The function that is told of each transfer that a client is refused over TCP.
    pub note_refusal: fn(&RefusedTransfer<'_>),
}

/// A client of transfers, as they are counted: the holder of the key that its question is signed
/// with, from whatever addresses, or else an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedClient {
    /// The holder of a key.
    Key(KeyId),
    /// The client at an address.
    Address(IpAddr),
}

impl CountedClient {
    /// The client at an address whose question is signed with a key, or with none.
    pub(super) fn new(key: Option<KeyId>, address: IpAddr) -> Self {
        key.map_or_else(|| Self::Address(address.to_canonical()), Self::Key)
    }
}

/// A transfer that a client has asked for, and does not get.
#[derive(Clone, Copy, Debug)]
pub struct RefusedTransfer<'q> {
    /// The name of the zone.
    pub apex: &'q Name,
    /// The address and port of the client.
    pub peer: SocketAddr,
    /// The name of the key that the question was signed with, if it was.
    pub key: Option<&'q Name>,
    /// The type that the client asked for, AXFR or IXFR.
    pub qtype: Type,
    /// Why the client does not get it.
    pub refusal: TransferRefusal,
}

/// Why a client does not get a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferRefusal {
    /// The client may not transfer the zone.
    NoRight,
    /// As many transfers run as may.
    TooMany,
    /// As many transfers to the client run as may.
    TooManyOfClient,
}

impl fmt::Display for TransferRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRight => {
                "no rule of the zone's `transfer` is for the client: add it to `to` if it may have \
                 the zone"
            }
            Self::TooMany => {
                "as many transfers run as `at-once` of [transfers] says: the client may try again"
            }
            Self::TooManyOfClient => {
                "as many transfers to the client run as `at-once-per-client` of [transfers] says: \
                 it may try again"
            }
        })
    }
}

impl Default for TransferSettings {
    fn default() -> Self {
        let time_max = Duration::from_secs(7200);
        Self {
            at_once: 10,
            at_once_per_client: 8,
            time_max,
            state: Arc::default(),
            note_refusal: |_| (),
        }
    }
}

/// The transfers that run, and what all have done.
#[derive(Debug, Default)]
pub struct TransferState {
    /// Transfers that run.
    running: AtomicUsize,
    /// The clients of those that run, and how many each has; as many entries as transfers at most.
    /// Locked when one begins or ends.
    clients: Mutex<Vec<(CountedClient, usize)>>,
    /// The facts about those that run. Locked when one begins, by the connection that has asked
    /// for it, and when they are listed.
    list: Mutex<Vec<Weak<RunningTransfer>>>,
    /// Transfers of what changed instead of the whole zone.
    incremental: AtomicU64,
    /// Transfers that were whole.
    completed: AtomicU64,
    /// Transfers that ended before they were whole.
    failed: AtomicU64,
    /// Questions of clients that may not transfer the zone.
    refused: AtomicU64,
    /// Questions for which too many transfers ran.
    busy: AtomicU64,
    /// Questions of clients to which too many transfers ran.
    client_busy: AtomicU64,
    /// Messages that were sent.
    messages: AtomicU64,
    /// Octets of these messages.
    octets: AtomicU64,
    /// Records in these messages.
    records: AtomicU64,
}

/// A transfer to a client, as it is listed while it runs.
#[derive(Debug)]
pub struct RunningTransfer {
    /// The name of the zone.
    pub apex: Name,
    /// The serial of the version that the client has, if it has asked for changes.
    pub from: Option<u32>,
    /// The serial of the version that is sent.
    pub serial: u32,
    /// The address and port of the client.
    pub peer: SocketAddr,
    /// The name of the key that messages are signed with, if they are.
    pub key: Option<Name>,
    /// The type that the client asked for, AXFR or IXFR.
    pub qtype: Type,
    /// When the transfer began, nanoseconds of the monotonic clock.
    pub began_nanos: u64,
    /// Whether changes are sent instead of the whole zone.
    pub is_changes: AtomicBool,
    /// Messages so far.
    pub messages: AtomicU64,
    /// Octets of these messages.
    pub octets: AtomicU64,
    /// Records in these messages.
    pub records: AtomicU64,
}

/// What all transfers have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Transfers that run.
    pub running: u64,
    /// Transfers of what changed instead of the whole zone.
    pub incremental: u64,
    /// Transfers that were whole.
    pub completed: u64,
    /// Transfers that ended before they were whole.
    pub failed: u64,
    /// Questions of clients that may not transfer the zone.
    pub refused: u64,
    /// Questions for which too many transfers ran.
    pub busy: u64,
    /// Questions of clients to which too many transfers ran.
    pub client_busy: u64,
    /// Messages that were sent.
    pub messages: u64,
    /// Octets of these messages.
    pub octets: u64,
    /// Records in these messages.
    pub records: u64,
}

impl TransferState {
    /// Returns what all transfers have done so far.
    #[must_use]
    pub fn counts(&self) -> TransferCounts {
        TransferCounts {
            running: self.running.load(Relaxed) as u64,
            incremental: self.incremental.load(Relaxed),
            completed: self.completed.load(Relaxed),
            failed: self.failed.load(Relaxed),
            refused: self.refused.load(Relaxed),
            busy: self.busy.load(Relaxed),
            client_busy: self.client_busy.load(Relaxed),
            messages: self.messages.load(Relaxed),
            octets: self.octets.load(Relaxed),
            records: self.records.load(Relaxed),
        }
    }

    /// Returns the transfers that run now, in the order in which they began.
    #[must_use]
    pub fn running(&self) -> Vec<Arc<RunningTransfer>> {
        self.list().iter().filter_map(Weak::upgrade).collect()
    }

    /// Locks the list of transfers that run.
    fn list(&self) -> MutexGuard<'_, Vec<Weak<RunningTransfer>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a question of a client that may not transfer the zone.
    pub(super) fn note_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Takes a place for a transfer to a client.
    ///
    /// # Errors
    /// When `at_once` transfers run, or `of_client` to the client, which is counted.
    pub(super) fn begin(
        self: &Arc<Self>,
        (at_once, of_client): (usize, usize),
        client: CountedClient,
    ) -> Result<Slot, TransferRefusal> {
        let mut clients = self.clients();
        if self.running.load(Relaxed) >= at_once {
            self.busy.fetch_add(1, Relaxed);
            return Err(TransferRefusal::TooMany);
        }
        let place = clients.iter().position(|it| it.0 == client);
        if place.is_some_and(|place| clients[place].1 >= of_client) {
            self.client_busy.fetch_add(1, Relaxed);
            return Err(TransferRefusal::TooManyOfClient);
        }
        self.running.fetch_add(1, Relaxed); // while the clients are locked, as where it ends
        match place {
            Some(place) => clients[place].1 += 1,
            None => clients.push((client, 1)),
        }
        drop(clients);
        Ok(Slot { state: Arc::clone(self), client, listed: None, is_complete: false })
    }

    /// Locks the clients of transfers that run.
    fn clients(&self) -> MutexGuard<'_, Vec<(CountedClient, usize)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the place of a transfer to a client back.
    fn end(&self, client: CountedClient) {
        let mut clients = self.clients();
        self.running.fetch_sub(1, Relaxed);
        if let Some(place) = clients.iter().position(|it| it.0 == client) {
            clients[place].1 -= 1;
            if clients[place].1 == 0 {
                clients.swap_remove(place);
            }
        }
    }
}

/// The place of a transfer that runs; dropped when it ends.
pub(super) struct Slot {
    state: Arc<TransferState>,
    /// The client that it is counted for.
    client: CountedClient,
    /// The facts about the transfer, once they are known.
    listed: Option<Arc<RunningTransfer>>,
    /// Whether the client has all messages.
    is_complete: bool,
}

impl Slot {
    /// Has the transfer listed with these facts, until it ends.
    pub(super) fn list(&mut self, facts: RunningTransfer) {
        let facts = Arc::new(facts);
        let mut list = self.state.list();
        list.retain(|listed| listed.strong_count() > 0); // as many remain as run
        list.push(Arc::downgrade(&facts));
        drop(list);
        self.listed = Some(facts);
    }

    /// Counts a message.
    pub(super) fn note_message(&self, octets: usize, records: u64) {
        if let Some(listed) = &self.listed {
            listed.messages.fetch_add(1, Relaxed);
            listed.octets.fetch_add(octets as u64, Relaxed);
            listed.records.fetch_add(records, Relaxed);
        }
        self.state.messages.fetch_add(1, Relaxed);
        self.state.octets.fetch_add(octets as u64, Relaxed);
        self.state.records.fetch_add(records, Relaxed);
    }

    /// Counts a transfer of what changed.
    pub(super) fn note_changes(&self) {
        self.listed.iter().for_each(|listed| listed.is_changes.store(true, Relaxed));
        self.state.incremental.fetch_add(1, Relaxed);
    }

    /// Says that the client has all messages.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.state.end(self.client);
        match self.is_complete {
            true => self.state.completed.fetch_add(1, Relaxed),
            false => self.state.failed.fetch_add(1, Relaxed),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_transfers_run_at_once_as_may_and_each_gives_its_place_back() {
        let state = Arc::<TransferState>::default();
        let of = CountedClient::new(None, IpAddr::from([192, 0, 2, 1]));
        let mut first = state.begin((2, 9), of).unwrap();
        let second = state.begin((2, 9), of).unwrap();
        assert_eq!(state.begin((2, 9), of).err(), Some(TransferRefusal::TooMany));
        first.list(RunningTransfer {
            apex: Name::root(),
            from: None,
            serial: 1,
            peer: SocketAddr::from(([192, 0, 2, 1], 53)),
            key: None,
            qtype: Type::AXFR,
            began_nanos: 0,
            is_changes: AtomicBool::new(false),
            messages: AtomicU64::new(0),
            octets: AtomicU64::new(0),
            records: AtomicU64::new(0),
        });
        first.note_message(100, 7);
        let listed: Vec<u64> =
            state.running().iter().map(|listed| listed.octets.load(Relaxed)).collect();
        assert_eq!(listed, [100]);
        first.complete();
        drop((first, second));
        assert!(state.running().is_empty());
        assert!(state.begin((1, 9), of).is_ok());
        let counts = state.counts();
        assert_eq!((counts.running, counts.completed, counts.failed, counts.busy), (0, 1, 2, 1));
        assert_eq!((counts.messages, counts.octets, counts.records), (1, 100, 7));
    }

    #[test]
    fn one_client_cannot_take_the_places_of_all_and_has_its_own_again_when_a_transfer_ends() {
        let state = Arc::<TransferState>::default();
        let [one, other] = [1, 2].map(|octet| IpAddr::from([192, 0, 2, octet]));
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        let begin = |client| state.begin((3, 2), CountedClient::new(None, client));
        let [first, _second] = [one, mapped].map(|client| begin(client).unwrap());
        assert_eq!(begin(one).err(), Some(TransferRefusal::TooManyOfClient));
        assert_eq!(begin(mapped).err(), Some(TransferRefusal::TooManyOfClient));
        let third = begin(other).unwrap();
        assert_eq!(begin(other).err(), Some(TransferRefusal::TooMany));
        drop((first, third));
        let _again = begin(one).unwrap();
        let counts = state.counts();
        assert_eq!((counts.running, counts.busy, counts.client_busy), (2, 1, 2));
        assert_eq!(state.clients().len(), 1, "nothing is kept of a client without transfers");
    }

    #[test]
    fn a_client_with_a_key_is_one_at_all_its_addresses_and_another_than_those_without() {
        let state = Arc::<TransferState>::default();
        let [one, other] = [1, 2].map(|octet| IpAddr::from([192, 0, 2, octet]));
        let [key, next] = ["k.test", "l.test"].map(|name| KeyId::of(&name.parse().unwrap()));
        let begin = |key, address| state.begin((9, 2), CountedClient::new(key, address));
        let _running = [one, other].map(|address| begin(Some(key), address).unwrap());
        assert_eq!(begin(Some(key), one).err(), Some(TransferRefusal::TooManyOfClient));
        assert_eq!(begin(Some(key), other).err(), Some(TransferRefusal::TooManyOfClient));
        let _others = [begin(Some(next), one).unwrap(), begin(None, one).unwrap()];
    }
}
