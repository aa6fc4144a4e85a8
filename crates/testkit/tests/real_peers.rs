//! The machinery of the differential test, tried on real servers without Zonda.

use std::net::{Ipv4Addr, TcpListener};

use zonda_testkit::differential::{Contestant, Part, compare};
use zonda_testkit::generate::{Zone, root_zones, zones};
use zonda_testkit::sign::sign_in_turn;
use zonda_testkit::{Peer, PeerKind, Question, ask};

/// Starts one peer with generated zones.
fn start(kind: PeerKind, zones: &[Zone]) -> Peer {
    let pairs: Vec<(&str, &str)> =
        zones.iter().map(|zone| (zone.name.as_str(), zone.text.as_str())).collect();
    Peer::start(kind, &pairs)
}

#[test]
fn real_peers_load_every_generated_zone() {
    for kind in PeerKind::ALL {
        start(kind, &zones(1, 100));
        start(kind, &root_zones());
    }
}

#[test]
fn real_peers_load_signed_zones() {
    let signed = sign_in_turn(&zones(1, 40));
    for kind in [PeerKind::Nsd, PeerKind::Knot, PeerKind::Bind] {
        let peer = start(kind, &signed);
        for zone in &signed {
            let reply = ask(peer.address, &Question::new(&zone.name, "SOA").dnssec()).unwrap();
            let types: Vec<u16> = reply.answer.iter().map(|record| record.record_type).collect();
            assert_eq!(types, [6, 46], "{kind} on {}:\n{reply}", zone.name);
        }
    }
}

#[test]
fn real_peers_outvote_a_server_with_another_record() {
    let honest = zones(3, 5);
    let mut altered = honest.clone();
    let number = altered.iter().position(|zone| zone.text.contains(" A 192.0.2.53\n")).unwrap();
    altered[number].text = altered[number].text.replace(" A 192.0.2.53\n", " A 192.0.2.54\n");

    let judged = start(PeerKind::Knot, &altered);
    let peers = [PeerKind::Nsd, PeerKind::Bind, PeerKind::Pdns].map(|kind| start(kind, &honest));
    let peers: Vec<Contestant> = peers.iter().map(Peer::contestant).collect();
    let zone = &honest[number..=number];
    let outcome = compare(&judged.contestant(), &peers, 3, zone, 1, &[]);

    let about = |part| outcome.differences.iter().find(|found| found.parts.contains(&part));
    let found = about(Part::Answer).expect("the other address is noticed").to_string();
    assert!(found.contains("A 192.0.2.53"), "{found}");
    assert!(found.contains("A 192.0.2.54"), "{found}");
}

#[test]
fn real_peers_end_when_they_are_dropped() {
    let peer = start(PeerKind::Nsd, &root_zones());
    let address = (Ipv4Addr::LOCALHOST, peer.address.port());
    assert!(TcpListener::bind(address).is_err(), "the server listens");
    drop(peer);
    TcpListener::bind(address).expect("the server is gone");
}
