//! The memory that a large zone takes while it is transferred in, made and kept.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::Command;
use std::time::Duration;
use zonda_secondary::budget::octets_of_zone;
use zonda_secondary::zone_file::KeptTimers;
use zonda_secondary::{Fault, Intake, Limits, Question, Transferred, WholeZone, ZoneFile};
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
/// Octets of records of each message, but for the last.
const AT_A_TIME: usize = 4_000;
/// What tells the process of a zone which zone that is.
const SHAPE: &str = "ZONDA_TEST_SHAPE";

/// A record: its owner, type and data.
type ShapeRecord = (Vec<u8>, Type, Vec<u8>);

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

/// What is taken in of messages with the zone of these records, each of which is there while it is
/// taken.
fn taken(records: impl Iterator<Item = ShapeRecord>) -> Intake {
    taken_within(LIMITS, records).unwrap()
}

/// What is taken in of such messages within limits.
fn taken_within(
    limits: Limits,
    records: impl Iterator<Item = ShapeRecord>,
) -> Result<Intake, Fault> {
    let soa = (apex().as_wire().to_vec(), Type::SOA, soa());
    let mut all = [soa.clone()].into_iter().chain(records).chain([soa]).peekable();
    let mut intake = Intake::new(&apex(), None, limits, SEED);
    let section = Question::Axfr.section(&apex());
    while all.peek().is_some() {
        let mut writer = StreamWriter::new(0);
        writer.begin([1, 2], flag::QR | flag::AA, None);
        let mut octets = 0;
        while octets < AT_A_TIME {
            let Some((owner, rtype, rdata)) = all.next() else { break };
            writer.record(&owner, (rtype, 60), &rdata).unwrap();
            octets += owner.len() + rdata.len() + 10;
        }
        let octets = writer.finish();
        let message = StreamMessage::read(octets, [1, 2], &section).unwrap();
        intake.take(message, octets.len())?;
    }
    Ok(intake)
}

/// The zone that was taken in.
fn whole(intake: Intake) -> WholeZone {
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
fn addresses(count: u32, is_deep: bool) -> impl Iterator<Item = ShapeRecord> {
    let owner = move |number: u32| match is_deep && number % 2 == 1 {
        true => wire(&format!("www.host-{}.example", number - 1)),
        false => wire(&format!("host-{number}.example")),
    };
    (0..count).map(move |number| (owner(number), Type::A, number.to_be_bytes().to_vec()))
}

/// The records of a zone of some shape.
fn records_of(shape: &str) -> Box<dyn Iterator<Item = ShapeRecord>> {
    let numbers = |count: u32| (0..count).map(|number| (number, number.to_be_bytes().to_vec()));
    let host = |number: u32| wire(&format!("host-{number}.example"));
    let long = |(number, address): (u32, Vec<u8>)| (number, [address, vec![7; 8_000]].concat());
    match shape {
        "addresses in one branch" => Box::new(addresses(60_000, false)),
        "addresses" => Box::new(addresses(200_000, false)),
        "a million addresses" => Box::new(addresses(1_000_000, false)), // see bench/NOTES.md
        "addresses of deep names" => Box::new(addresses(400_000, true)),
        "texts" => Box::new(
            addresses(100_000, false)
                .map(|(owner, ..)| (owner, Type::TXT, [&[100_u8][..], &[b'a'; 100]].concat())),
        ),
        "ten addresses of each name" => {
            Box::new(numbers(300_000).map(move |(number, it)| (host(number / 10), Type::A, it)))
        }
        "ten addresses of each name, apart" => {
            Box::new(numbers(300_000).map(move |(number, it)| (host(number % 30_000), Type::A, it)))
        }
        "few names with long records" => Box::new(
            numbers(3_000).map(long).map(move |(number, it)| (host(number % 200), Type::NULL, it)),
        ),
        "one name with long records" => {
            Box::new(numbers(3_000).map(long).map(move |(_, it)| (host(0), Type::NULL, it)))
        }
        "one name with many records" => Box::new(
            numbers(400_000)
                .map(move |(number, it)| (host(0), Type(1_000 + (number % 50) as u16), it)),
        ),
        "two names with many records, apart" => {
            Box::new(numbers(400_000).map(move |(number, it)| {
                (host(number % 2), Type(1_000 + (number % 50) as u16), it)
            }))
        }
        "the apex with many records" => Box::new(numbers(400_000).map(|(number, it)| {
            (apex().as_wire().to_vec(), Type(1_000 + (number % 50) as u16), it)
        })),
        "names of many labels" => Box::new(numbers(6_000).map(|(number, it)| {
            (wire(&format!("{}h{number}.example", "a.".repeat(100))), Type::A, it)
        })),
        other => panic!("there is no shape {other}"),
    }
}

/// KiB of this process, as the system says.
fn status_kib(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "it is the process that the other tests start for each zone"]
fn process_of_a_zone() {
    let Ok(shape) = std::env::var(SHAPE) else { return };
    let directory = std::env::temp_dir().join(format!("zonda-large-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let before = status_kib("VmRSS:");
    let intake = taken(records_of(&shape));
    let (records, stored) = (intake.counts().records, intake.octets_stored());
    let counted = octets_of_zone(records, stored, || intake.octets_besides());
    let zone = made(whole(intake));
    let mut file = ZoneFile::new(&*directory, &apex());
    let kept = file.replace_by(&zone, KeptTimers::default());
    let peak = (status_kib("VmHWM:") - before) << 10;
    fs::remove_dir_all(directory).unwrap();
    kept.unwrap();
    println!("\nOCTETS {peak} {} {counted}", zone.bytes());
}

/// The octets of memory that a zone of a shape takes at most from its first message until it is
/// kept in a file, those that it takes then, and those that it is counted as. A process of its own
/// takes them, whose allocator gives back large pieces of memory, as that of the server does: what
/// counts is what the system has handed out.
fn memory(shape: &str) -> [f64; 3] {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_of_a_zone", "--ignored", "--nocapture"])
        .env(SHAPE, shape)
        .env("MALLOC_MMAP_THRESHOLD_", "20480")
        .env("MALLOC_MMAP_MAX_", "1024")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("OCTETS "));
    let line = line.unwrap_or_else(|| panic!("{shape}: {text}"));
    let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
    let octets = [(); 3].map(|()| numbers.next().unwrap());
    let [peak, zone, counted] = octets.map(|it: f64| it / f64::from(1 << 20));
    println!("{shape}: {peak:.1} MiB at most of {counted:.1}, {:.3} × {zone:.1}", peak / zone);
    octets
}

#[test]
fn a_large_zone_takes_no_more_than_a_quarter_of_its_memory_besides_while_it_is_transferred() {
    for shape in ["addresses", "addresses of deep names", "texts", "ten addresses of each name"] {
        let [peak, zone, _] = memory(shape);
        assert!(peak <= 1.25 * zone, "{shape}: {peak} octets, {:.3} times the zone", peak / zone);
    }
}

#[test]
fn no_zone_takes_more_memory_while_it_is_transferred_than_it_is_counted_as() {
    for shape in [
        "addresses in one branch",
        "addresses",
        "addresses of deep names",
        "texts",
        "ten addresses of each name, apart",
        "few names with long records",
        "one name with long records",
        "one name with many records",
        "two names with many records, apart",
        "the apex with many records",
        "names of many labels",
    ] {
        let [peak, _, counted] = memory(shape);
        assert!(peak <= counted, "{shape}: {peak} octets where {counted} were counted");
    }
}

#[test]
fn the_limit_of_octets_is_for_the_records_and_for_the_names_between_their_owners() {
    for shape in ["addresses in one branch", "names of many labels"] {
        let intake = taken(records_of(shape));
        let stored = intake.octets_stored();
        let of_names = whole(intake).parents_bytes_least();
        assert_eq!(of_names > 10 * stored, shape == "names of many labels", "{of_names} octets");
        let limit = stored.max(of_names);
        let within = |octets_max| taken_within(Limits { octets_max, ..LIMITS }, records_of(shape));
        assert!(within(limit).is_ok(), "{shape}");
        assert!(matches!(within(limit - 1), Err(Fault::TooManyOctets(_))), "{shape}");
    }
}

#[test]
fn a_large_zone_and_its_file_have_all_records_of_the_reply() {
    let taken = whole(taken(addresses(60_000, true)));
    assert!(matches!(taken, WholeZone::Many(_)));
    assert_eq!(taken.len(), 60_001);
    let zone = made(taken);
    let mut all = Records::default();
    let mut push = |owner: &[u8], rtype, rdata: &[u8]| {
        all.push(Record { owner, rtype, ttl: 60, rdata }, 0).unwrap();
    };
    push(apex().as_wire(), Type::SOA, &soa());
    addresses(60_000, true).for_each(|(owner, rtype, rdata)| push(&owner, rtype, &rdata));
    let expected = build(&apex(), &all, SEED).unwrap();
    assert!(zone.diff(&expected).unwrap().is_empty());
    assert_eq!((zone.name_count(), zone.bytes()), (expected.name_count(), expected.bytes()));
    let directory = std::env::temp_dir().join(format!("zonda-whole-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let mut file = ZoneFile::new(&*directory, &apex());
    file.replace_by(&zone, KeptTimers { serial: 7, ..KeptTimers::default() }).unwrap();
    let kept = ZoneFile::new(&*directory, &apex()).read().unwrap().unwrap();
    fs::remove_dir_all(directory).unwrap();
    assert_eq!((kept.timers.serial, kept.torn, kept.records.get(0).rtype), (7, 0, Type::SOA));
    let again = build(&apex(), &kept.records, SEED).unwrap();
    assert!(again.diff(&expected).unwrap().is_empty());
}
