//! Replies to questions for transfers: what is taken, and why the rest is not.

#![allow(clippy::unwrap_used)]

use std::time::Duration;
use zonda_secondary::{ChangesLack, Fault, Intake, Limits, Question, Transferred, WholeZone};
use zonda_wire::query::flag;
use zonda_wire::{Name, StreamMessage, StreamWriter, Type};
use zonda_zone::HashSeed;

const LIMITS: Limits = Limits {
    octets_max: 100_000,
    records_max: 20,
    time_max: Duration::from_secs(10),
    idle_max: Duration::from_secs(10),
};

/// A record in words: `owner SOA 3` or `owner A 1`.
struct RecordText(&'static str, Type, u32);

const fn soa(serial: u32) -> RecordText {
    RecordText("example", Type::SOA, serial)
}

const fn a(owner: &'static str, octet: u32) -> RecordText {
    RecordText(owner, Type::A, octet)
}

fn wire(name: &str) -> Vec<u8> {
    name.parse::<Name>().unwrap().as_wire().to_vec()
}

/// The data of a record.
fn data(given: &RecordText) -> Vec<u8> {
    match given.1 {
        Type::SOA => {
            let numbers = [given.2, 3600, 600, 86_400, 300].map(u32::to_be_bytes).concat();
            [wire("ns.example"), wire("host.example"), numbers].concat()
        }
        _ => given.2.to_be_bytes().to_vec(),
    }
}

fn apex() -> Name {
    "example".parse().unwrap()
}

/// Messages with these records, as many in each as are given.
fn messages(of_each: &[&[RecordText]]) -> Vec<Vec<u8>> {
    let message = |records: &&[RecordText]| {
        let mut writer = StreamWriter::new(0);
        writer.begin([1, 2], flag::QR | flag::AA, None);
        for record in *records {
            writer.record(&wire(record.0), (record.1, 60), &data(record)).unwrap();
        }
        writer.finish().clone()
    };
    of_each.iter().map(message).collect()
}

/// What becomes of a reply that ends behind these messages.
fn outcome(base: Option<u32>, of_each: &[&[RecordText]]) -> Result<Transferred, Fault> {
    let mut intake = Intake::new(&apex(), base, LIMITS, HashSeed(7));
    let question = match base {
        Some(_) => Question::Ixfr(&[]),
        None => Question::Axfr,
    };
    let section = question.section(&apex());
    for octets in messages(of_each) {
        let message = StreamMessage::read(&octets, [1, 2], &section)?;
        if intake.take(message, octets.len())? {
            break;
        }
    }
    intake.finish()
}

/// The records of a whole zone, without the data.
fn zone(base: Option<u32>, of_each: &[&[RecordText]]) -> Vec<String> {
    match outcome(base, of_each).unwrap() {
        Transferred::Zone(WholeZone::Few(records)) => {
            let name = |owner: &[u8]| Name::from_wire(owner).unwrap().to_string();
            records.iter().map(|it| format!("{} {}", name(it.owner), it.rtype)).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// The serials of changes, with how many records each removes and adds.
fn changes(base: u32, of_each: &[&[RecordText]]) -> Vec<(u32, u32, usize, usize)> {
    match outcome(Some(base), of_each).unwrap() {
        Transferred::Changes(changes) => {
            let counts =
                changes.iter().map(|it| (it.from, it.to, it.removed.len(), it.added.len()));
            counts.collect()
        }
        other => panic!("{other:?}"),
    }
}

/// The words in which a reply is refused.
fn refusal(base: Option<u32>, of_each: &[&[RecordText]]) -> String {
    outcome(base, of_each).unwrap_err().to_string()
}

#[test]
fn a_whole_zone_is_taken_from_one_message_and_from_several() {
    let expected = ["example. SOA", "www.example. A"];
    assert_eq!(zone(None, &[&[soa(1), a("www.Example", 1), soa(1)]]), expected);
    assert_eq!(zone(None, &[&[soa(1)], &[], &[a("www.example", 1)], &[soa(1)]]), expected);
}

#[test]
fn a_zone_of_nothing_but_its_soa_record_is_taken() {
    assert_eq!(zone(None, &[&[soa(1), soa(1)]]), ["example. SOA"]);
    assert_eq!(zone(Some(0), &[&[soa(1), soa(1)]]), ["example. SOA"]);
}

#[test]
fn a_whole_zone_may_answer_a_question_for_changes() {
    assert_eq!(zone(Some(1), &[&[soa(5), a("www.example", 1), soa(5)]]).len(), 2);
}

#[test]
fn one_soa_record_with_a_serial_that_is_not_greater_says_that_nothing_has_changed() {
    for serial in [5, 4] {
        let outcome = outcome(Some(5), &[&[soa(serial)]]);
        assert!(matches!(outcome, Ok(Transferred::UpToDate(it)) if it == serial), "{outcome:?}");
    }
}

#[test]
fn one_soa_record_with_a_greater_serial_waits_for_more() {
    assert!(matches!(outcome(Some(5), &[&[soa(6)]]), Err(Fault::Closed)));
    let rest: &[RecordText] = &[soa(5), a("old.example", 1), soa(6), soa(6)];
    assert_eq!(changes(5, &[&[soa(6)], rest]), [(5, 6, 2, 1)]);
}

#[test]
fn changes_of_several_versions_follow_each_other() {
    let reply: &[RecordText] = &[
        soa(7),
        soa(5),
        a("old.example", 1),
        soa(6),
        a("new.example", 1),
        soa(6),
        soa(7),
        a("newer.example", 1),
        a("newest.example", 1),
        soa(7),
    ];
    assert_eq!(changes(5, &[reply]), [(5, 6, 2, 2), (6, 7, 1, 3)]);
}

#[test]
fn changes_with_a_gap_backwards_or_from_another_version_are_refused() {
    let gap = refusal(Some(5), &[&[soa(9), soa(5), soa(6), soa(7), soa(9), soa(9)]]);
    assert_eq!(gap, "changes are missing between serial 6 and serial 7");
    let back = refusal(Some(5), &[&[soa(9), soa(5), soa(4), soa(4), soa(9), soa(9)]]);
    assert_eq!(back, "the changes lead from serial 5 to 4, which is not greater");
    let same = refusal(Some(5), &[&[soa(9), soa(5), soa(5), soa(5), soa(9), soa(9)]]);
    assert_eq!(same, "the changes lead from serial 5 to 5, which is not greater");
    let base = refusal(Some(5), &[&[soa(9), soa(3), soa(9), soa(9)]]);
    assert_eq!(base, "the changes begin with serial 3, which was not asked for");
}

#[test]
fn soa_records_that_differ_at_the_ends_are_refused() {
    let differ = "the SOA records at the beginning and the end differ";
    assert_eq!(refusal(None, &[&[soa(1), a("www.example", 1), soa(2)]]), differ);
    assert_eq!(refusal(None, &[&[soa(1), soa(2)]]), differ);
}

#[test]
fn a_reply_that_ends_early_or_goes_on_too_long_is_refused() {
    let closed = "the connection was closed before the reply was whole";
    assert_eq!(refusal(None, &[&[soa(1), a("www.example", 1)]]), closed);
    assert_eq!(refusal(Some(5), &[&[soa(6), soa(5), soa(6)]]), closed);
    let surplus = refusal(None, &[&[soa(1), a("a.example", 1), soa(1), a("b.example", 1)]]);
    assert_eq!(surplus, "records follow the end of the zone");
}

#[test]
fn a_reply_that_does_not_begin_with_the_zones_soa_record_is_refused() {
    assert_eq!(refusal(None, &[&[]]), "the reply has no records");
    let no_soa = "the first record is not the SOA record of the zone";
    assert_eq!(refusal(None, &[&[a("www.example", 1)]]), no_soa);
    assert_eq!(refusal(None, &[&[RecordText("other", Type::SOA, 1)]]), no_soa);
}

#[test]
fn a_record_outside_the_zone_is_left_out_and_counted() {
    let reply: &[RecordText] = &[soa(1), a("www.other", 1), a("www.example", 1), soa(1)];
    assert_eq!(zone(None, &[reply]).len(), 2);
    let mut intake = Intake::new(&apex(), None, LIMITS, HashSeed(7));
    let octets = &messages(&[reply])[0];
    let section = Question::Axfr.section(&apex());
    let message = StreamMessage::read(octets, [1, 2], &section).unwrap();
    assert!(intake.take(message, octets.len()).unwrap());
    assert_eq!(intake.counts().outside, 1);
}

#[test]
fn a_record_of_a_type_that_no_zone_holds_is_refused() {
    let any = refusal(None, &[&[soa(1), RecordText("www.example", Type::ANY, 1), soa(1)]]);
    assert_eq!(any, "www.example. ANY: no zone holds records of this type");
}

#[test]
fn more_records_or_octets_than_the_limits_are_refused() {
    let one = || [a("www.example", 1)];
    let records = [one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), one()];
    let mut reply: Vec<&[RecordText]> = records.iter().map(|it| &it[..]).collect();
    let first = [soa(1)];
    reply.insert(0, &first);
    let twice = [reply.clone(), reply[1..].to_vec()].concat();
    let text = refusal(None, &twice);
    assert_eq!(text, "the zone has more than 20 records: raise `records-max` of [zone.secondary]");
    let mut intake = Intake::new(&apex(), None, LIMITS, HashSeed(7));
    let octets = &messages(&[&first])[0];
    let section = Question::Axfr.section(&apex());
    let message = StreamMessage::read(octets, [1, 2], &section).unwrap();
    let error = intake.take(message, 100_001).unwrap_err();
    assert!(error.to_string().contains("more than 100000 octets"), "{error}");
}

#[test]
fn an_error_of_the_primary_is_told() {
    let mut octets = messages(&[&[]]).remove(0);
    octets[3] |= 5;
    let message = StreamMessage::read(&octets, [1, 2], &Question::Axfr.section(&apex())).unwrap();
    let error =
        Intake::new(&apex(), None, LIMITS, HashSeed(7)).take(message, octets.len()).unwrap_err();
    assert!(error.to_string().starts_with("the primary answers REFUSED"), "{error}");
    assert!(error.allows_whole_zone() && error.without_changes() == Some(ChangesLack::Possible));
    assert!(!error.is_lack_of_changes(), "it may send those of another zone");
}

/// What becomes of a reply within limits of its own.
fn outcome_within(
    limits: Limits,
    base: Option<u32>,
    all: &[Vec<u8>],
) -> Result<Transferred, Fault> {
    let mut intake = Intake::new(&apex(), base, limits, HashSeed(7));
    let question = if base.is_some() { Question::Ixfr(&[]) } else { Question::Axfr };
    let section = question.section(&apex());
    for octets in all {
        if intake.take(StreamMessage::read(octets, [1, 2], &section)?, octets.len())? {
            break;
        }
    }
    intake.finish()
}

#[test]
fn octets_are_counted_as_they_are_stored_whatever_compression_makes_of_them() {
    let long = "a2345678901234567890123456789012345678901234567890.b234567890123456789012345678901\
        234567890123456789.c2345678901234567890123456789012345678901234567890.example";
    let records: Vec<RecordText> = (0..10).map(|octet| a(long, octet)).collect();
    let (first, last) = ([soa(1)], [soa(1)]);
    let all = messages(&[&first, &records, &last]);
    let octets: usize = all.iter().map(Vec::len).sum();
    assert!(octets < 800, "{octets}");
    let limits = Limits { octets_max: 1000, ..LIMITS };
    let error = outcome_within(limits, None, &all).unwrap_err();
    assert!(matches!(error, Fault::TooManyOctets(1000)), "{error}");
    let limits = Limits { octets_max: 3000, ..LIMITS };
    assert!(outcome_within(limits, None, &all).is_ok());
}

#[test]
fn changes_may_be_twice_as_large_as_the_zone_and_larger_ones_have_the_whole_zone_asked_for() {
    let limits = Limits { records_max: 4, ..LIMITS };
    let reply = |count: usize| {
        let mut records = vec![soa(6), soa(5), soa(6)];
        records.extend((0..count).map(|octet| a("www.example", octet as u32)));
        records.push(soa(6));
        messages(&[&records])
    };
    assert!(outcome_within(limits, Some(5), &reply(5)).is_ok(), "nine records");
    let error = outcome_within(limits, Some(5), &reply(6)).unwrap_err();
    assert!(matches!(error, Fault::ChangesOfTooManyRecords(8)), "{error}");
    assert!(error.allows_whole_zone() && !error.is_of_version());
    let limits = Limits { octets_max: 100, ..LIMITS };
    let error = outcome_within(limits, Some(5), &reply(6)).unwrap_err();
    assert!(matches!(error, Fault::ChangesOfTooManyOctets(200)), "in the first message: {error}");
    assert!(error.allows_whole_zone() && !error.is_of_version());
}

#[test]
fn a_whole_zone_in_place_of_changes_may_be_no_larger_than_one_that_was_asked_for() {
    let mut records = vec![soa(6)];
    records.extend((0..9).map(|octet| a("www.example", octet)));
    records.push(soa(6));
    let limits = Limits { records_max: 5, ..LIMITS };
    let error = outcome_within(limits, Some(5), &messages(&[&records])).unwrap_err();
    assert!(matches!(error, Fault::TooManyRecords(5)), "{error}");
    assert!(!error.allows_whole_zone() && error.is_of_version());
}

#[test]
fn a_step_of_exactly_half_of_all_serials_is_no_step_forwards() {
    const FAR: u32 = 5 + (1 << 31); // rfc1982#3.2 leaves it undefined
    let text = refusal(Some(5), &[&[soa(FAR), soa(5), soa(FAR), soa(FAR)]]);
    assert_eq!(text, "the changes lead from serial 5 to 2147483653, which is not greater");
    let taken = outcome(Some(5), &[&[soa(FAR)]]);
    assert!(matches!(taken, Ok(Transferred::UpToDate(FAR))), "{taken:?}");
    assert_eq!(changes(5, &[&[soa(FAR - 1), soa(5), soa(FAR - 1), soa(FAR - 1)]]).len(), 1);
}

#[test]
fn changes_of_more_versions_than_are_taken_one_by_one_have_the_whole_zone_asked_for() {
    let last = 10_006;
    let mut records = vec![soa(last)];
    for serial in 5..last {
        records.extend([soa(serial), soa(serial + 1)]);
    }
    let all: Vec<&[RecordText]> = records.chunks(100).collect();
    let limits = Limits { octets_max: 1 << 30, records_max: 1 << 30, ..LIMITS };
    let error = outcome_within(limits, Some(5), &messages(&all)).unwrap_err();
    assert!(matches!(error, Fault::TooManyChanges(10_000)), "{error}");
    assert!(error.allows_whole_zone() && !error.is_of_version());
}

#[test]
fn changes_that_come_back_to_a_serial_or_repeat_one_are_refused() {
    let circle = [soa(9), soa(5), soa(6), soa(6), soa(7), soa(7), soa(6), soa(6), soa(9), soa(9)];
    let text = refusal(Some(5), &[&circle]);
    assert_eq!(text, "the changes lead from serial 7 to 6, which is not greater");
    let twice = [soa(9), soa(5), soa(6), soa(5), soa(6), soa(6), soa(9), soa(9)];
    let text = refusal(Some(5), &[&twice]);
    assert_eq!(text, "changes are missing between serial 6 and serial 5");
}

#[test]
fn a_record_of_another_class_is_refused_and_no_other_question_is_asked() {
    let mut octets = messages(&[&[soa(1), a("www.example", 1), soa(1)]]).remove(0);
    let class_in = [0, 1, 0, 1, 0, 0, 0, 60, 0, 4];
    let at = octets.windows(10).position(|it| it == class_in).unwrap();
    octets[at + 3] = 3; // CH
    let error = outcome_within(LIMITS, None, &[octets]).unwrap_err();
    assert_eq!(error.to_string(), "a record has the class 3, not IN");
    assert!(!error.allows_whole_zone());
}

#[test]
fn soa_records_at_the_ends_may_differ_in_the_case_of_letters() {
    let mut all = messages(&[&[soa(1)], &[a("www.example", 1)], &[soa(1)]]);
    let host = all[2].windows(4).position(|it| it == b"host").unwrap();
    all[2][host..host + 4].copy_from_slice(b"HosT");
    let taken = outcome_within(LIMITS, None, &all);
    assert!(matches!(&taken, Ok(Transferred::Zone(records)) if records.len() == 2), "{taken:?}");
    all[2][host] = b'm';
    assert!(matches!(outcome_within(LIMITS, None, &all), Err(Fault::SoaDiffers)));
}

#[test]
fn faults_say_whether_the_whole_zone_and_the_same_version_are_asked_for_again() {
    use zonda_wire::Rcode;
    let long = Duration::from_secs(1);
    let (possible, certain) = (Some(ChangesLack::Possible), Some(ChangesLack::Certain));
    // The fault, whether the whole zone is asked for, whether it is remembered that the primary
    // sends no changes of the zone, and whether the version is.
    let table = [
        (Fault::Refused(Rcode::NOTIMP), true, certain, false),
        (Fault::Refused(Rcode::FORMERR), true, certain, false),
        (Fault::Refused(Rcode::SERVFAIL), true, possible, false),
        (Fault::Refused(Rcode::REFUSED), true, possible, false),
        (Fault::NotReady(Rcode::SERVFAIL), true, None, false),
        (Fault::RefusedUnsigned(Rcode::NOTAUTH), true, certain, false),
        (Fault::RefusedUnsigned(Rcode::SERVFAIL), true, possible, false),
        (Fault::Closed, true, possible, false),
        (Fault::Silence(long), true, possible, false),
        (Fault::Message(zonda_wire::StreamFault::OtherId), true, certain, false),
        (Fault::Message(zonda_wire::StreamFault::OtherQuestion), true, certain, false),
        (Fault::NoSoa, true, certain, true),
        (Fault::NoRecords, true, certain, true),
        (Fault::Gap(1, 2), true, None, false),
        (Fault::Backwards(2, 1), true, None, false),
        (Fault::OtherBase(1), true, None, false),
        (Fault::SoaDiffers, true, None, true),
        (Fault::Surplus, true, None, true),
        (Fault::Signature(zonda_wire::tsig::SignatureFault::Missing), false, None, false),
        (Fault::TooManyRecords(1), false, None, true),
        (Fault::TooManyOctets(1), false, None, true),
        (Fault::ChangesOfTooManyRecords(1), true, None, false),
        (Fault::ChangesOfTooManyOctets(1), true, None, false),
        (Fault::TooSlow(long), false, None, true),
        (Fault::TooFewOctets(1, long), false, None, true),
        (Fault::Stopped, false, None, false),
    ];
    for (fault, whole, without_changes, version) in table {
        let found = (fault.allows_whole_zone(), fault.without_changes(), fault.is_of_version());
        assert_eq!(found, (whole, without_changes, version), "{fault}");
    }
}
