//! Prints where each of the real peers differs from what all other peers agree on.
//!
//! `cargo run -p zonda-testkit --example peers-differ -- [--signed] [ZONES [SEED]]`;
//! `docs/differences.md` has the results. PowerDNS does not take part in signed zones: its bind
//! backend serves no signatures made elsewhere without a database of its own.

use zonda_testkit::differential::{Contestant, compare};
use zonda_testkit::generate::{Zone, zones};
use zonda_testkit::sign::sign_in_turn;
use zonda_testkit::{Peer, PeerKind};

fn main() {
    let (options, numbers): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let signed = options.iter().any(|option| option == "--signed");
    let number = |place: usize, default: u64| match numbers.get(place) {
        Some(text) => text.parse().expect("the number of zones, then the seed"),
        None => default,
    };
    let (count, seed) = (number(0, 200), number(1, 1));
    let mut zones = zones(seed, usize::try_from(count).expect("a number of zones fits"));
    if signed {
        zones = sign_in_turn(&zones);
    }
    let kinds = &PeerKind::ALL[..if signed { 3 } else { 4 }];
    compare_each_with_the_others(kinds, &zones, seed);
}

/// Starts the peers and compares each one with all other peers.
fn compare_each_with_the_others(kinds: &[PeerKind], zones: &[Zone], seed: u64) {
    let pairs: Vec<(&str, &str)> =
        zones.iter().map(|zone| (zone.name.as_str(), zone.text.as_str())).collect();
    let peers: Vec<Peer> = kinds.iter().map(|kind| Peer::start(*kind, &pairs)).collect();
    for (place, judged) in peers.iter().enumerate() {
        let mut others: Vec<Contestant> = peers.iter().map(Peer::contestant).collect();
        let judged_one = others.remove(place);
        let outcome = compare(&judged_one, &others, others.len(), zones, seed, &[]);
        println!("######## {}: {} questions", judged.kind, outcome.questions);
        println!("{}", outcome.report());
    }
}
