//! Transfers from a primary that wait for memory in the middle.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use zonda_secondary::exchange::Transfer;
use zonda_secondary::{
    Budget, Fault, KeptPlace, Limits, Primary, Question, Share, TransferHooks, Transferred,
};
use zonda_wire::query::flag;
use zonda_wire::{Name, StreamWriter, Type};

/// Octets of the budgets.
const MIB: u64 = 1 << 20;
/// Messages of a zone, and records of each: some 500 KB of records, which count three times.
const MESSAGES: u32 = 60;
const RECORDS_OF_EACH: u32 = 300;
/// How long a transfer may take here: less than any wait.
const TIME_MAX: Duration = Duration::from_secs(1);

/// A primary that sends a zone of so many messages to one client, as fast as it can.
fn primary(messages: u32) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut query = [0; 1000];
        assert!(stream.read(&mut query).unwrap() > 4);
        let numbers = [7, 3600, 600, 86_400, 300].map(u32::to_be_bytes).concat();
        let soa = [wire("ns.example"), wire("host.example"), numbers].concat();
        let apex = wire("example");
        let mut writer = StreamWriter::new(0);
        for number in 0..messages {
            writer.begin([query[2], query[3]], flag::QR | flag::AA, None);
            if number == 0 {
                writer.record(&apex, (Type::SOA, 60), &soa).unwrap();
            }
            for record in 0..RECORDS_OF_EACH {
                let owner = wire(&format!("host-{number}-{record}.example"));
                writer.record(&owner, (Type::A, 60), &[192, 0, 2, 1]).unwrap();
            }
            if number == messages - 1 {
                writer.record(&apex, (Type::SOA, 60), &soa).unwrap();
            }
            let message = writer.finish();
            let len = (message.len() as u16).to_be_bytes();
            if stream.write_all(&[&len[..], &message[..]].concat()).is_err() {
                return; // it is given up
            }
        }
    });
    address
}

fn wire(name: &str) -> Vec<u8> {
    name.parse::<Name>().unwrap().as_wire().to_vec()
}

/// What comes of the transfer of the zone.
fn transfer(share: &mut Share<'_>) -> Result<Transfer, Fault> {
    ask((MESSAGES, Question::Axfr), share, &TransferHooks::NONE)
}

/// What comes of a question for changes since version 6, where the whole zone, which comes, is
/// expected to take so many octets.
fn transfer_changes(share: &mut Share<'_>, whole: u64) -> Result<Transfer, Fault> {
    let numbers = [6, 3600, 600, 86_400, 300].map(u32::to_be_bytes).concat();
    let soa = [wire("ns.example"), wire("host.example"), numbers].concat();
    let hooks = TransferHooks { whole_zone_octets: &|| whole, ..TransferHooks::NONE };
    ask((MESSAGES, Question::Ixfr(&soa)), share, &hooks)
}

/// What comes of a question to a primary of a zone of so many messages.
fn ask(
    (messages, question): (u32, Question<'_>),
    share: &mut Share<'_>,
    hooks: &TransferHooks<'_>,
) -> Result<Transfer, Fault> {
    let limits = Limits {
        octets_max: u64::MAX,
        records_max: u64::MAX,
        time_max: TIME_MAX,
        idle_max: Duration::from_secs(10),
    };
    let primary = Primary { address: primary(messages), key: None };
    primary.transfer(&"example".parse().unwrap(), question, (limits, hooks), share)
}

#[test]
fn a_wait_for_memory_in_the_middle_is_no_time_of_the_transfer_and_the_question_is_older() {
    let budget = Budget::new(2 * MIB);
    let mut other = budget.share(None);
    assert!(other.reserve(2 * MIB));
    let (began, mut share) = (Instant::now(), budget.share(None));
    let taken = thread::scope(|scope| {
        let transfer = scope.spawn(|| transfer(&mut share));
        while budget.waits() == 0 {
            assert!(began.elapsed() < TIME_MAX, "it does not wait");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(2 * TIME_MAX);
        drop(other);
        transfer.join().unwrap().unwrap()
    });
    assert!(taken.asked >= began && taken.asked.elapsed() >= 2 * TIME_MAX);
    assert!(share.waited() >= 2 * TIME_MAX);
    assert!(matches!(taken.content, Transferred::Zone(_)), "{taken:?}");
    assert_eq!(taken.counts.records, u64::from(MESSAGES * RECORDS_OF_EACH) + 2);
}

#[test]
fn a_transfer_for_which_there_is_no_memory_for_seconds_is_given_up_with_what_it_needs() {
    let budget = Budget::new(2 * MIB);
    let mut other = budget.share(None);
    assert!(other.reserve(2 * MIB));
    let (began, mut share) = (Instant::now(), budget.share(None));
    let fault = transfer(&mut share).unwrap_err();
    assert!(
        matches!(fault, Fault::NoMemory { octets, is_of_whole_zone: false } if octets > MIB),
        "{fault:?}"
    );
    assert!(!fault.allows_whole_zone() && !fault.is_of_version() && !fault.is_unreachable());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_transfer_whose_memory_is_reserved_does_not_wait() {
    let budget = Budget::new(6 * MIB);
    let (mut other, mut share) = (budget.share(None), budget.share(None));
    assert!(other.reserve(2 * MIB) && share.reserve(4 * MIB));
    transfer(&mut share).unwrap();
    assert_eq!((share.waited(), budget.waits()), (Duration::ZERO, 0));
    assert_eq!(budget.used(), 6 * MIB);
}

#[test]
fn a_whole_zone_in_place_of_changes_is_given_up_at_its_first_message_if_there_is_no_room_for_it() {
    let budget = Arc::new(Budget::new(8 * MIB));
    let mut other = budget.share(None);
    assert!(other.reserve(6 * MIB));
    let (mut share, began) = (budget.share(None), Instant::now());
    let fault = transfer_changes(&mut share, 5 * MIB).unwrap_err();
    assert!(
        matches!(fault, Fault::NoMemory { octets, is_of_whole_zone: true } if octets < MIB),
        "{fault:?}"
    );
    assert!(began.elapsed() < TIME_MAX && share.waited().is_zero(), "it does not wait");
    assert_eq!((budget.used(), budget.waits()), (6 * MIB, 1));
    let kept = KeptPlace::new(&budget, share.place());
    assert!(!kept.has_room(5 * MIB), "it keeps its place");
}

#[test]
fn a_whole_zone_in_place_of_changes_takes_what_it_is_expected_to_take_if_there_is_room() {
    let budget = Budget::new(8 * MIB);
    let mut other = budget.share(None);
    assert!(other.reserve(2 * MIB));
    let mut share = budget.share(None);
    let taken = transfer_changes(&mut share, 6 * MIB).unwrap();
    assert!(matches!(taken.content, Transferred::Zone(_)), "{taken:?}");
    assert_eq!((budget.used(), budget.waits()), (8 * MIB, 0));
}

#[test]
fn what_the_last_message_brings_counts_as_well() {
    let budget = Budget::new(64 * MIB);
    let mut share = budget.share(None);
    ask((1, Question::Axfr), &mut share, &TransferHooks::NONE).unwrap();
    assert_eq!(budget.used(), MIB);
}
