//! Prints where each of the real peers stands alone against the other three.
//!
//! `cargo run -p zonda-testkit --example peers-differ [ZONES [SEED]]`; `docs/differences.md` tells
//! what came out.

use zonda_testkit::differential::{Contestant, compare};
use zonda_testkit::generate::zones;
use zonda_testkit::{Peer, PeerKind};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| match arguments.next() {
        Some(text) => text.parse().expect("a number of zones, then a seed"),
        None => default,
    };
    let (count, seed) = (number(200), number(1));
    let zones = zones(seed, count as usize);
    let pairs: Vec<(&str, &str)> =
        zones.iter().map(|zone| (zone.name.as_str(), zone.text.as_str())).collect();
    let peers = PeerKind::ALL.map(|kind| Peer::start(kind, &pairs));
    for (place, judged) in peers.iter().enumerate() {
        let mut others: Vec<Contestant> = peers
            .iter()
            .map(|peer| Contestant { name: peer.kind.to_string(), address: peer.address })
            .collect();
        let judged_one = others.remove(place);
        let outcome = compare(&judged_one, &others, others.len(), &zones, seed, &[]);
        println!("######## {}: {} questions", judged.kind, outcome.questions);
        println!("{}", outcome.report());
    }
}
