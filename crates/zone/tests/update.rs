//! Dynamic updates: each rule of rfc2136 about prerequisites and updates, and what a zone becomes.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use zonda_wire::{Class, Name, Rcode, Type, UpdateRecord, rdata};
use zonda_zone::update::{UpdateFault, changes, check_prerequisites, check_updates};
use zonda_zone::{ChangeSet, HashSeed, Serial, SerialPolicy, Zone, build, file};

/// The zone that is changed.
const ZONE: &str = "$TTL 60\n@ SOA ns h 7 2 3 4 5\n@ NS ns\n@ NS ns2\n@ MX 10 Mail\n\
                    ns A 192.0.2.1\n\
                    ns2 A 192.0.2.2\nwww A 192.0.2.3\nwww A 192.0.2.4\nwww 300 TXT text\n\
                    alias CNAME www\nalias2 CNAME Www\ndname DNAME elsewhere.test.\n\
                    deep.ent A 192.0.2.5\nsub NS ns.sub\nns.sub A 192.0.2.9\n\
                    mx MX 5 Mail.Else.test.\n\
                    wks WKS 192.0.2.1 6 25\nlb ALIAS lb.else.test.\n";

fn zone() -> Zone {
    let apex: Name = "a.test".parse().unwrap();
    let options = file::Options::default();
    let (records, problems) = file::read_text(ZONE.as_bytes(), Path::new("-"), &apex, &options);
    assert!(!problems.has_errors(), "{problems:?}");
    build(&apex, &records, HashSeed::random()).unwrap()
}

/// A record of these words: class, name, TTL, type and data. Names without a dot behind them are
/// completed with the zone's.
fn record(words: &str) -> UpdateRecord {
    let mut words = words.split(' ');
    let class: Class = words.next().unwrap().parse().unwrap();
    let name = words.next().unwrap();
    let owner = Name::parse(name.as_bytes(), b"\x01a\x04test\0").unwrap().to_lowercase();
    let ttl = words.next().unwrap().parse().unwrap();
    let rtype: Type = words.next().unwrap().parse().unwrap();
    let data = words.collect::<Vec<_>>().join(" ");
    let rdata = match &*data {
        "" => Box::default(),
        data => rdata::from_text(rtype, data).unwrap().into(),
    };
    UpdateRecord { owner, rtype, class, ttl, rdata }
}

fn records(lines: &[&str]) -> Vec<UpdateRecord> {
    lines.iter().map(|line| record(line)).collect()
}

/// The response code of prerequisites.
fn met(lines: &[&str]) -> Rcode {
    let checked = check_prerequisites(&zone(), Class::IN, &records(lines));
    checked.map_or_else(|fault| fault.rcode(), |()| Rcode::NOERROR)
}

/// The response code of updates whose form is looked at.
fn form(lines: &[&str]) -> Rcode {
    let checked = check_updates(zone().apex(), Class::IN, &records(lines));
    checked.map_or_else(|fault| fault.rcode(), |()| Rcode::NOERROR)
}

/// What updates change in the zone, as lines that begin with `-` or `+`, without SOA records that
/// differ in their serial alone; and the serial then.
fn updated(lines: &[&str]) -> (u32, Vec<String>) {
    let (zone, updates) = (zone(), records(lines));
    check_updates(zone.apex(), Class::IN, &updates).unwrap();
    let sets = changes(&zone, Class::IN, &updates);
    let serial = Serial::Bump(SerialPolicy::Increment);
    let (next, diff) = zone.with(&ChangeSet { sets, serial }).unwrap();
    let text = format!("{diff:?}");
    let lines = text.lines().skip(1).filter(|line| !line.contains(" SOA "));
    (next.serial(), lines.map(|line| line.replace(".a.test.", "")).collect())
}

/// Asserts what updates change; the serial rises if anything does.
#[track_caller]
fn assert_changes(updates: &[&str], expected: &[&str]) {
    let (serial, lines) = updated(updates);
    assert_eq!(lines, expected, "{updates:?}");
    assert_eq!(serial, if expected.is_empty() { 7 } else { 8 }, "{updates:?}");
}

#[test]
fn a_name_that_must_be_in_use_has_records_of_its_own() {
    assert_eq!(met(&["ANY www 0 ANY"]), Rcode::NOERROR);
    assert_eq!(met(&["ANY WWW 0 ANY"]), Rcode::NOERROR);
    assert_eq!(met(&["ANY none 0 ANY"]), Rcode::NXDOMAIN);
    assert_eq!(met(&["ANY ent 0 ANY"]), Rcode::NXDOMAIN, "an empty non-terminal is not in use");
    assert_eq!(met(&["ANY ns.sub 0 ANY"]), Rcode::NOERROR, "glue is in the zone");
}

#[test]
fn a_name_that_must_not_be_in_use_has_no_records_of_its_own() {
    assert_eq!(met(&["NONE none 0 ANY"]), Rcode::NOERROR);
    assert_eq!(met(&["NONE ent 0 ANY"]), Rcode::NOERROR);
    assert_eq!(met(&["NONE www 0 ANY"]), Rcode::YXDOMAIN);
}

#[test]
fn a_set_must_exist_or_not_whatever_its_records() {
    assert_eq!(met(&["ANY www 0 A"]), Rcode::NOERROR);
    assert_eq!(met(&["ANY www 0 AAAA"]), Rcode::NXRRSET);
    assert_eq!(met(&["ANY none 0 A"]), Rcode::NXRRSET);
    assert_eq!(met(&["NONE www 0 AAAA"]), Rcode::NOERROR);
    assert_eq!(met(&["NONE none 0 A"]), Rcode::NOERROR);
    assert_eq!(met(&["NONE www 0 A"]), Rcode::YXRRSET);
}

#[test]
fn a_set_must_have_exactly_the_records_that_are_given_whatever_their_ttl() {
    let both = ["IN www 0 A 192.0.2.4", "IN www 0 A 192.0.2.3"];
    assert_eq!(met(&both), Rcode::NOERROR);
    assert_eq!(met(&[both[0], both[1], both[0]]), Rcode::NOERROR, "one is given twice");
    assert_eq!(met(&both[..1]), Rcode::NXRRSET, "one is missing");
    assert_eq!(met(&[both[0], both[1], "IN www 0 A 192.0.2.5"]), Rcode::NXRRSET);
    assert_eq!(met(&["IN none 0 A 192.0.2.4"]), Rcode::NXRRSET);
    assert_eq!(met(&["IN mx 0 MX 5 MAIL.else.TEST."]), Rcode::NOERROR, "case does not matter");
    assert_eq!(met(&["IN mx 0 MX 6 Mail.Else.test."]), Rcode::NXRRSET);
    assert_eq!(met(&["IN www 0 TXT Text"]), Rcode::NXRRSET, "text has a case");
}

#[test]
fn prerequisites_are_looked_at_in_their_order_and_whole_sets_last() {
    assert_eq!(met(&["ANY none 0 ANY", "NONE www 0 A"]), Rcode::NXDOMAIN);
    assert_eq!(met(&["NONE www 0 A", "ANY none 0 ANY"]), Rcode::YXRRSET);
    assert_eq!(met(&["IN none 0 A 192.0.2.4", "ANY none 0 ANY"]), Rcode::NXDOMAIN);
    assert_eq!(met(&["IN none 0 A 192.0.2.4", "ANY www 1 A"]), Rcode::FORMERR);
    assert_eq!(met(&[]), Rcode::NOERROR);
}

#[test]
fn a_prerequisite_with_a_ttl_or_data_or_another_class_is_formerr() {
    for wrong in [
        "ANY www 1 ANY",
        "NONE www 1 A",
        "IN www 1 A 192.0.2.3",
        "ANY www 0 A 192.0.2.3",
        "NONE www 0 A 192.0.2.3",
        "CH www 0 A 192.0.2.3",
        "IN www 0 A",
        "IN www 0 ANY",
        "ANY www 0 AXFR",
        "NONE www 0 MAILB",
        "ANY www 0 TYPE0",
    ] {
        assert_eq!(met(&[wrong]), Rcode::FORMERR, "{wrong}");
    }
}

#[test]
fn a_name_outside_the_zone_is_notzone_before_all_but_the_ttl() {
    assert_eq!(met(&["ANY elsewhere.test. 0 ANY"]), Rcode::NOTZONE);
    assert_eq!(met(&["CH test. 0 A"]), Rcode::NOTZONE);
    assert_eq!(met(&["ANY elsewhere.test. 1 ANY"]), Rcode::FORMERR);
    assert_eq!(form(&["IN elsewhere.test. 60 A 192.0.2.3"]), Rcode::NOTZONE);
    assert_eq!(form(&["IN xa.test. 60 A 192.0.2.3"]), Rcode::NOTZONE);
    assert_eq!(form(&["IN ns.sub 60 A 192.0.2.3"]), Rcode::NOERROR, "glue is in the zone");
}

#[test]
fn an_update_that_is_not_of_the_form_is_formerr() {
    for wrong in [
        "IN www 60 ANY",
        "IN www 60 AXFR",
        "IN www 60 MAILA",
        "IN www 60 TYPE0",
        "IN www 60 A",
        "IN www 2147483648 A 192.0.2.3",
        "ANY www 1 A",
        "ANY www 0 A 192.0.2.3",
        "ANY www 0 AXFR",
        "NONE www 1 A 192.0.2.3",
        "NONE www 0 ANY",
        "NONE www 0 A",
        "CH www 0 A 192.0.2.3",
    ] {
        assert_eq!(form(&["IN new 60 A 192.0.2.3", wrong]), Rcode::FORMERR, "{wrong}");
    }
    assert_eq!(form(&["IN www 60 A", "IN elsewhere.test. 60 A 192.0.2.3"]), Rcode::FORMERR);
    let long = check_updates(zone().apex(), Class::IN, &records(&["ANY www 0 MAILB"]));
    assert!(matches!(long, Err(UpdateFault::Format(..))), "{long:?}");
}

#[test]
fn records_are_added_and_what_is_there_already_changes_nothing() {
    assert_changes(&["IN new 60 A 192.0.2.7"], &["+ new 60 A 192.0.2.7"]);
    assert_changes(&["IN WWW 60 A 192.0.2.7"], &["+ www 60 A 192.0.2.7"]);
    assert_changes(&["IN www 60 A 192.0.2.3"], &[]);
    assert_changes(&["IN mx 60 MX 5 MAIL.ELSE.TEST."], &[]);
    assert_changes(&["IN x.new.ent 60 TXT t"], &["+ x.new.ent 60 TXT \"t\""]);
}

#[test]
fn another_ttl_becomes_that_of_the_whole_set() {
    assert_changes(
        &["IN www 90 A 192.0.2.3"],
        &[
            "- www 60 A 192.0.2.3",
            "- www 60 A 192.0.2.4",
            "+ www 90 A 192.0.2.3",
            "+ www 90 A 192.0.2.4",
        ],
    );
    assert_changes(&["IN www 90 A 192.0.2.3", "IN www 60 A 192.0.2.4"], &[]);
}

#[test]
fn a_cname_beside_data_and_data_beside_a_cname_are_left_out_in_silence() {
    assert_changes(&["IN www 60 CNAME ns"], &[]);
    assert_changes(&["IN alias 60 A 192.0.2.7"], &[]);
    assert_changes(&["IN a.test. 60 CNAME ns"], &[]);
    assert_changes(&["IN lb 60 CNAME ns"], &[]);
    assert_changes(&["IN www 60 CNAME ns", "IN new 60 A 192.0.2.7"], &["+ new 60 A 192.0.2.7"]);
    assert_changes(
        &["ANY alias 0 CNAME", "IN alias 60 A 192.0.2.7"],
        &["- alias 60 CNAME www", "+ alias 60 A 192.0.2.7"],
    );
}

#[test]
fn a_cname_or_dname_takes_the_place_of_the_former_one() {
    assert_changes(
        &["IN alias 60 CNAME ns.a.test."],
        &["- alias 60 CNAME www", "+ alias 60 CNAME ns"],
    );
    assert_changes(
        &["IN dname 60 DNAME other.test."],
        &["- dname 60 DNAME elsewhere.test.", "+ dname 60 DNAME other.test."],
    );
    assert_changes(
        &["IN lb 60 ALIAS new.else.test."],
        &["- lb 60 ALIAS lb.else.test.", "+ lb 60 ALIAS new.else.test."],
    );
    assert_changes(&["IN lb 60 MX 1 lb.else.test."], &["+ lb 60 MX 1 lb.else.test."]);
    let wks = ["- wks 60 WKS 192.0.2.1 6 25", "+ wks 60 WKS 192.0.2.1 6 53"];
    assert_changes(&["IN wks 60 WKS 192.0.2.1 6 53"], &wks);
    assert_changes(&["IN wks 60 WKS 192.0.2.1 17 53"], &["+ wks 60 WKS 192.0.2.1 17 53"]);
}

#[test]
fn an_soa_record_is_taken_only_if_it_is_newer_and_only_at_the_apex() {
    let soa = |serial: u32| format!("IN a.test. 60 SOA ns.a.test. h.a.test. {serial} 2 3 4 5");
    for (serial, expected) in [(6, 7), (7, 7), (8, 8), (100, 100), (0x8000_0008, 7)] {
        assert_eq!(updated(&[&soa(serial)]).0, expected, "{serial}");
    }
    let both = [&*soa(50), "IN new 60 A 192.0.2.7"];
    assert_eq!(updated(&both), (50, vec!["+ new 60 A 192.0.2.7".into()]));
    let older = [&*soa(3), "IN new 60 A 192.0.2.7"];
    assert_eq!(updated(&older).0, 8, "the serial rises by itself");
    assert_eq!(updated(&["IN www 60 SOA ns.a.test. h.a.test. 99 2 3 4 5"]), (7, Vec::new()));
}

#[test]
fn sets_names_and_single_records_are_removed() {
    let addresses = ["- www 60 A 192.0.2.3", "- www 60 A 192.0.2.4"];
    assert_changes(&["ANY www 0 A"], &addresses);
    assert_changes(&["NONE www 0 A 192.0.2.3"], &addresses[..1]);
    assert_changes(&["NONE mx 0 MX 5 mail.ELSE.test."], &["- mx 60 MX 5 Mail.Else.test."]);
    assert_changes(&["ANY www 0 ANY"], &[addresses[0], addresses[1], "- www 300 TXT \"text\""]);
    for nothing in ["ANY none 0 ANY", "ANY www 0 AAAA", "NONE www 0 A 192.0.2.99", "ANY ent 0 ANY"]
    {
        assert_changes(&[nothing], &[]);
    }
}

#[test]
fn the_soa_record_and_the_last_ns_record_of_the_apex_survive() {
    for kept in [
        "ANY a.test. 0 SOA",
        "ANY a.test. 0 NS",
        "NONE a.test. 0 SOA ns.a.test. h.a.test. 7 2 3 4 5",
    ] {
        assert_changes(&[kept], &[]);
    }
    let servers = ["NONE a.test. 0 NS ns.a.test.", "NONE a.test. 0 NS ns2.a.test."];
    assert_eq!(updated(&servers).1, ["- a.test. 60 NS ns"], "the second one is the last");
    assert_eq!(updated(&["ANY a.test. 0 ANY"]).1, ["- a.test. 60 MX 10 Mail"]);
    let moved = ["IN a.test. 60 NS ns.new.test.", servers[0], servers[1]];
    let expected = ["- a.test. 60 NS ns", "- a.test. 60 NS ns2", "+ a.test. 60 NS ns.new.test."];
    assert_eq!(updated(&moved).1, expected);
    assert_changes(&["NONE sub 0 NS ns.sub.a.test."], &["- sub 60 NS ns.sub"]);
    assert_changes(&["ANY sub 0 ANY"], &["- sub 60 NS ns.sub"]);
}

#[test]
fn what_is_removed_and_added_again_in_one_message_changes_nothing() {
    let text = ["ANY www 0 TXT", "IN www 300 TXT text"];
    assert_changes(&text, &[]);
    let all = ["ANY www 0 ANY", "IN www 60 A 192.0.2.3", "IN www 60 A 192.0.2.4", text[1]];
    assert_changes(&all, &[]);
    assert_changes(&["IN new 60 A 192.0.2.7", "ANY new 0 ANY"], &[]);
    assert_changes(
        &["ANY www 0 TXT", "IN www 300 TXT other"],
        &["- www 300 TXT \"text\"", "+ www 300 TXT \"other\""],
    );
}
