//! The engine answers as real servers do: what at least three of NSD, Knot, BIND and PowerDNS say
//! about generated zones, it says too, but for the differences below.
//!
//! The engine sits behind the plainest of sockets, so that nothing but the answers is compared.

#![allow(clippy::unwrap_used)]

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use arc_swap::ArcSwap;
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_engine::{Engine, Now, Peer, Settings, Snapshot, Transport};
use zonda_testkit::Suite;
use zonda_testkit::differential::{Accepted, Part};
use zonda_testkit::message::name_text;
use zonda_testkit::process::free_port;
use zonda_testkit::rdata::type_number;
use zonda_wire::Name;
use zonda_zone::file::{Options, read_text};
use zonda_zone::{HashSeed, build};

/// Differences that we mean; `docs/differences.md` explains each under its name.
const ACCEPTED: &[Accepted] = &[
    Accepted {
        name: "any_is_one_set_without_additional_data",
        applies: |found, part| {
            part == Part::Additional && found.question.record_type == type_number("ANY")
        },
    },
    Accepted {
        name: "a_dropped_authority_section_sets_tc",
        applies: |found, part| {
            part == Part::Flags
                && found.ours.flags & !TC == found.theirs.flags
                && found.theirs.authority.is_empty()
        },
    },
    Accepted {
        name: "names_of_many_labels_are_compressed_less",
        applies: |found, part| {
            part == Part::Flags
                && found.ours.flags & !TC == found.theirs.flags & !TC
                && found.theirs.authority.iter().any(|record| labels(&record.owner) > MANY_LABELS)
        },
    },
];

/// How many labels a name in wire form has.
fn labels(name: &[u8]) -> usize {
    name_text(name).matches('.').count()
}

/// The header's bit for a truncated reply.
const TC: u16 = 0x0200;
/// Labels beyond which the writer of replies may not remember every suffix of two names.
const MANY_LABELS: usize = 60;

#[test]
fn real_peers_agree_about_zones_of_every_shape() {
    Suite::Plain.judge(ACCEPTED, serve);
}

#[test]
fn real_peers_agree_about_the_root_zone() {
    Suite::Root.judge(ACCEPTED, serve);
}

#[test]
fn real_peers_agree_about_signed_zones() {
    Suite::Signed.judge(ACCEPTED, serve);
}

#[test]
fn every_accepted_difference_is_explained_in_the_docs() {
    let page = include_str!("../../../docs/differences.md");
    for Accepted { name, .. } in ACCEPTED {
        assert!(page.contains(&format!("`{name}`")), "docs/differences.md lacks {name}");
    }
}

/// Answers over UDP and TCP on a free port until the tests end.
fn serve(zones: &[(&str, &str)]) -> ((), SocketAddr) {
    let snapshot = Arc::new(ArcSwap::from_pointee(snapshot(zones)));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let udp = UdpSocket::bind(address).unwrap();
    let tcp = TcpListener::bind(address).unwrap();
    let mut engine = Engine::new(snapshot.clone(), Arc::default());
    thread::spawn(move || {
        let mut buffer = vec![0; 65_535];
        loop {
            let (length, client) = udp.recv_from(&mut buffer).unwrap();
            let length = answer(&mut engine, client, Transport::Udp, &mut buffer, length);
            udp.send_to(&buffer[..length], client).unwrap();
        }
    });
    let mut engine = Engine::new(snapshot, Arc::default());
    thread::spawn(move || {
        for stream in tcp.incoming() {
            // A client that goes away is no concern of the next one.
            let _ = answer_stream(&mut engine, stream.unwrap());
        }
    });
    ((), address)
}

/// The zones as the engine takes them.
fn snapshot(zones: &[(&str, &str)]) -> Snapshot {
    let seed = HashSeed(1);
    let entry = |(number, (name, text)): (u32, &(&str, &str))| {
        let apex = Name::parse(name.as_bytes(), &[0]).unwrap().to_lowercase();
        let options = Options::default();
        let (records, diagnostics) = read_text(text.as_bytes(), Path::new(name), &apex, &options);
        assert!(!diagnostics.has_errors(), "{name}: {diagnostics:?}");
        let source = Source::Data(Arc::new(build(&apex, &records, seed).unwrap()));
        Arc::new(ZoneEntry { apex, source, access: None, number })
    };
    let entries = (0..).zip(zones).map(entry).collect();
    let zones = ZoneTable::new(entries, seed);
    Snapshot { zones, settings: Settings::default(), generation: 1 }
}

/// The one question of a TCP connection.
fn answer_stream(engine: &mut Engine, mut stream: TcpStream) -> io::Result<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut buffer = vec![0; 65_535];
    let length = usize::from(u16::from_be_bytes(length));
    stream.read_exact(&mut buffer[..length])?;
    let client = stream.peer_addr()?;
    let length = answer(engine, client, Transport::Tcp, &mut buffer, length);
    stream.write_all(&u16::try_from(length).unwrap().to_be_bytes())?;
    stream.write_all(&buffer[..length])
}

/// Answers the message in the buffer; every question of the suite has a reply.
fn answer(
    engine: &mut Engine,
    address: SocketAddr,
    transport: Transport,
    buffer: &mut [u8],
    length: usize,
) -> usize {
    let now = Now { monotonic_nanos: 0, unix_secs: 0 };
    engine.answer(now, &Peer { address, transport, listener: 0 }, buffer, length)
}
