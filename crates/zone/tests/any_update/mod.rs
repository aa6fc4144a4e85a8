//! Any octets as a message that changes a zone: what is read can be judged and made, and the zone
//! is one afterwards.

use std::path::Path;
use std::sync::LazyLock;
use zonda_wire::update::SIGNING_TYPES;
use zonda_wire::{Class, Name, Type, UpdateMessage, UpdateRecord};
use zonda_zone::update::{changes, check_prerequisites, check_updates};
use zonda_zone::{ChangeSet, HashSeed, Serial, SerialPolicy, Zone, build, file, is_greater};

/// The zone that is changed.
const ZONE: &str = "$TTL 60\n@ SOA ns h 7 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n\
                    www A 192.0.2.3\n*.w TXT x\nsub NS ns.sub\nns.sub A 192.0.2.4\nd DNAME e\n\
                    deep.er.a AAAA ::1\nalias CNAME www\n";

static BASE: LazyLock<Zone> = LazyLock::new(|| {
    let apex: Name = "a.test".parse().expect("a name");
    let options = file::Options::default();
    let (records, _) = file::read_text(ZONE.as_bytes(), Path::new("-"), &apex, &options);
    build(&apex, &records, HashSeed::random()).expect("a zone")
});

/// Reads octets as a message, and carries it out.
pub fn check(octets: &[u8]) {
    let Ok(message) = UpdateMessage::read(octets) else { return };
    let _ = check_prerequisites(&BASE, Class::IN, &message.prerequisites);
    if check_updates(BASE.apex(), Class::IN, &message.updates).is_err() {
        return;
    }
    let is_signing = |update: &UpdateRecord| SIGNING_TYPES.contains(&update.rtype);
    if message.updates.iter().any(is_signing) {
        return; // no client has a right to these
    }
    let sets = changes(&BASE, Class::IN, &message.updates);
    let serial = Serial::Bump(SerialPolicy::Increment);
    let (zone, diff) = BASE.with(&ChangeSet { sets, serial }).expect("rules were kept to");
    let has = |rtype: Type| zone.apex_node().set(rtype).is_some();
    assert!(has(Type::SOA) && has(Type::NS), "it is no zone any more");
    match diff.is_empty() {
        true => assert_eq!(zone.serial(), BASE.serial()),
        false => assert!(is_greater(zone.serial(), BASE.serial())),
    }
    let back = zone.changes_of(&diff.reversed()).expect("the zone has what was added");
    let (back, _) = zone.with(&back).expect("it was a zone before");
    assert!(back.diff(&BASE).is_ok_and(|diff| diff.is_empty()), "not all was undone");
}
