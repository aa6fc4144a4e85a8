//! The differential test as a whole: generated zones, peers, questions and the verdict.
//!
//! The environment changes its size: `TEST_ZONES` zones (220 without it) from the seed
//! `TEST_SEED` (1 without it). A failure prints both.

use std::net::SocketAddr;

use crate::differential::{AcceptedDifference, Contestant, compare};
use crate::generate::{Zone, root_zones, zones};
use crate::peer::{Peer, PeerKind};
use crate::sign::sign_in_turn;

/// How many of the peers must agree before their word counts.
const QUORUM: usize = 3;
/// Zones, unless the environment asks for another number.
const ZONES: u64 = 220;
/// The share of zones that are signed: signing takes longer than asking.
const SIGNED_SHARE: usize = 2;

/// A set of zones that one server holds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Zones of every shape.
    Plain,
    /// The root zone and one below it.
    Root,
    /// Zones of every shape, signed with NSEC, NSEC3 and opt-out in turn.
    Signed,
}

impl Suite {
    /// Returns the zones and the peers that can serve them.
    fn set_up(self, count: usize, seed: u64) -> (Vec<Zone>, &'static [PeerKind]) {
        match self {
            Self::Plain => (zones(seed, count), &PeerKind::ALL),
            Self::Root => (root_zones(), &PeerKind::ALL),
            // PowerDNS serves no signatures made elsewhere without a database of its own.
            Self::Signed => {
                let zones = zones(seed, count / SIGNED_SHARE);
                (sign_in_turn(&zones), &[PeerKind::Nsd, PeerKind::Knot, PeerKind::Bind])
            }
        }
    }

    /// Starts Zonda through `start`, which gets (name, text) of each zone and returns whatever
    /// keeps the server alive with its address; asks it and the peers; compares.
    ///
    /// # Panics
    /// When a quorum of peers says otherwise, but for what is accepted.
    pub fn judge<S>(
        self,
        accepted: &[AcceptedDifference],
        start: impl FnOnce(&[(&str, &str)]) -> (S, SocketAddr),
    ) {
        let (count, seed) = (number("TEST_ZONES", ZONES), number("TEST_SEED", 1));
        let (zones, kinds) = self.set_up(count as usize, seed);
        let pairs: Vec<(&str, &str)> =
            zones.iter().map(|zone| (zone.name.as_str(), zone.text.as_str())).collect();
        let peers: Vec<Peer> = kinds.iter().map(|kind| Peer::start(*kind, &pairs)).collect();
        let (_server, address) = start(&pairs);
        let ours = Contestant { name: "Zonda".to_owned(), address };
        let theirs: Vec<Contestant> = peers.iter().map(Peer::contestant).collect();
        let outcome = compare(&ours, &theirs, QUORUM, &zones, seed, accepted);
        let (asked, decided) = (outcome.questions, outcome.decided);
        println!("{self:?}: {asked} questions, {decided} parts of replies decided by the peers");
        println!("{self:?}: accepted differences: {:?}", outcome.accepted);
        let different = outcome.differences.len();
        assert!(
            different == 0,
            "{different} of {asked} answers differ\n{}\nTo repeat: TEST_ZONES={count} \
             TEST_SEED={seed}",
            outcome.report()
        );
    }
}

/// Returns a number from the environment.
fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")),
        Err(_) => default,
    }
}
