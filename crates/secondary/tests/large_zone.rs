//! The memory that a large zone takes while it is transferred in, made and kept.

#![allow(clippy::unwrap_used)]

use std::time::Duration;
use zonda_secondary::zone_file::KeptTimers;
use zonda_secondary::{Intake, Limits, Question, Transferred, WholeZone, ZoneFile};
use zonda_wire::query::flag;
use zonda_wire::{Name, StreamMessage, StreamWriter, Type};
use zonda_zone::{HashSeed, Record, Records, Zone, build};

const LIMITS: Limits = Limits {
    octets_max: u64::MAX,
    records_max: u64::MAX,
    time_max: Duration::from_secs(10),
    idle_max: Duration::from_secs(10),
};
const SEED: HashSeed = HashSeed(7);
/// Records of each message.
const AT_A_TIME: usize = 300;

fn apex() -> Name {
    "example".parse().unwrap()
}

fn wire(name: &str) -> Vec<u8> {
    name.parse::<Name>().unwrap().as_wire().to_vec()
}

/// The SOA record's data.
fn soa() -> Vec<u8> {
    let numbers = [7, 3600, 600, 86_400, 300].map(u32::to_be_bytes).concat();
    [wire("ns.example"), wire("host.example"), numbers].concat()
}

/// Messages with the zone of these records.
fn messages(records: &[(Vec<u8>, Type, Vec<u8>)]) -> Vec<Vec<u8>> {
    let soa = (apex().as_wire().to_vec(), Type::SOA, soa());
    let all: Vec<_> = [&soa].into_iter().chain(records).chain([&soa]).collect();
    let message = |some: &[&(Vec<u8>, Type, Vec<u8>)]| {
        let mut writer = StreamWriter::new(0);
        writer.begin([1, 2], flag::QR | flag::AA, None);
        for (owner, rtype, rdata) in some {
            writer.record(owner, (*rtype, 60), rdata).unwrap();
        }
        writer.finish().clone()
    };
    all.chunks(AT_A_TIME).map(message).collect()
}

/// What is taken in of messages.
fn taken(messages: &[Vec<u8>]) -> WholeZone {
    let mut intake = Intake::new(&apex(), None, LIMITS, SEED);
    let section = Question::Axfr.section(&apex());
    for octets in messages {
        let message = StreamMessage::read(octets, [1, 2], &section).unwrap();
        intake.take(message, octets.len()).unwrap();
    }
    match intake.finish().unwrap() {
        Transferred::Zone(records) => records,
        other => panic!("{other:?}"),
    }
}

/// The zone of records that were taken in.
fn made(records: WholeZone) -> Zone {
    match records {
        WholeZone::Few(records) => build(&apex(), &records, SEED).unwrap(),
        WholeZone::Many(records) => records.build().unwrap(),
    }
}

/// So many addresses, each with a name of its own; if `is_deep`, every other one two labels below
/// the apex.
fn addresses(count: u32, is_deep: bool) -> Vec<(Vec<u8>, Type, Vec<u8>)> {
    let owner = |number: u32| match is_deep && number % 2 == 1 {
        true => wire(&format!("www.host-{}.example", number - 1)),
        false => wire(&format!("host-{number}.example")),
    };
    (0..count).map(|number| (owner(number), Type::A, number.to_be_bytes().to_vec())).collect()
}

/// The most memory that a zone takes from its first message until it is kept in a file, beside its
/// own, as a part of its own.
fn peak(records: &[(Vec<u8>, Type, Vec<u8>)]) -> f64 {
    let directory = std::env::temp_dir().join(format!("zonda-large-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (messages, mut octets) = (messages(records), 0);
    let info = allocation_counter::measure(|| {
        let zone = made(taken(&messages));
        let mut file = ZoneFile::new(&*directory, &apex());
        file.replace_by(&zone, KeptTimers::default()).unwrap();
        octets = zone.bytes();
    });
    std::fs::remove_dir_all(directory).unwrap();
    let peak = info.bytes_max as f64 / octets as f64;
    println!("{peak:.3} times the zone's {octets} octets");
    peak
}

#[test]
fn a_large_zone_takes_no_more_than_a_quarter_of_its_memory_besides_while_it_is_transferred() {
    assert!(peak(&addresses(200_000, false)) <= 1.25);
    assert!(peak(&addresses(400_000, true)) <= 1.25);
    let text = [&[200_u8; 1][..], &[b'a'; 200]].concat();
    let texts: Vec<_> = addresses(100_000, false)
        .into_iter()
        .map(|(owner, ..)| (owner, Type::TXT, text.clone()))
        .collect();
    assert!(peak(&texts) <= 1.25);
    let of_ten: Vec<_> = (0..300_000_u32)
        .map(|it| (wire(&format!("host-{}.example", it / 10)), Type::A, it.to_be_bytes().to_vec()))
        .collect();
    assert!(peak(&of_ten) <= 1.25);
}

#[test]
fn a_large_zone_and_its_file_have_all_records_of_the_reply() {
    let records = addresses(60_000, true);
    let taken = taken(&messages(&records));
    assert!(matches!(taken, WholeZone::Many(_)));
    assert_eq!(taken.len(), records.len() + 1);
    let zone = made(taken);
    let mut all = Records::default();
    let mut push = |owner: &[u8], rtype, rdata: &[u8]| {
        all.push(Record { owner, rtype, ttl: 60, rdata }, 0).unwrap();
    };
    push(apex().as_wire(), Type::SOA, &soa());
    records.iter().for_each(|(owner, rtype, rdata)| push(owner, *rtype, rdata));
    let expected = build(&apex(), &all, SEED).unwrap();
    assert!(zone.diff(&expected).unwrap().is_empty());
    assert_eq!((zone.name_count(), zone.bytes()), (expected.name_count(), expected.bytes()));
    let directory = std::env::temp_dir().join(format!("zonda-whole-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut file = ZoneFile::new(&*directory, &apex());
    file.replace_by(&zone, KeptTimers { serial: 7, ..KeptTimers::default() }).unwrap();
    let kept = ZoneFile::new(&*directory, &apex()).read().unwrap().unwrap();
    std::fs::remove_dir_all(directory).unwrap();
    assert_eq!((kept.timers.serial, kept.torn, kept.records.get(0).rtype), (7, 0, Type::SOA));
    let again = build(&apex(), &kept.records, SEED).unwrap();
    assert!(again.diff(&expected).unwrap().is_empty());
}
