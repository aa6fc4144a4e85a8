//! Any octets as changes of a zone: JSON of a client, and a difference of a journal.

use std::path::Path;
use std::sync::LazyLock;
use zonda_wire::{Name, Type};
use zonda_zone::json::{read_changes, read_new_zone, read_set};
use zonda_zone::{
    ChangeSet, Diff, HashSeed, NetChange, Record, Serial, SerialPolicy, SetChange, Zone, build,
    file,
};

/// The zone that is changed.
const ZONE: &str = "$TTL 60\n@ SOA ns h 7 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n\
                    www A 192.0.2.3\n*.w TXT x\nsub NS ns.sub\nns.sub A 192.0.2.4\nd DNAME e\n\
                    deep.er.a AAAA ::1\nalias CNAME www\nlb ALIAS www\n";

static BASE: LazyLock<Zone> = LazyLock::new(|| {
    let apex: Name = "a.test".parse().expect("a name");
    let options = file::Options::default();
    let (records, _) = file::read_text(ZONE.as_bytes(), Path::new("-"), &apex, &options);
    build(&apex, &records, HashSeed::random()).expect("a zone")
});

/// Reads octets in all ways; what is read can be made, undone and kept as octets.
pub fn check(octets: &[u8]) {
    let owner: Name = "www.a.test".parse().expect("a name");
    let set = read_set(octets, &owner, Type::A).ok().map(|set| vec![set]);
    let new_zone = read_new_zone(octets).ok().map(|(_, sets)| sets);
    let all = [read_changes(octets).ok(), set, new_zone];
    all.into_iter().flatten().for_each(check_sets);
    if let Some(diff) = Diff::from_octets(7, 8, octets) {
        check_difference(&diff);
    }
}

/// Makes changes, and undoes them.
fn check_sets(sets: Vec<SetChange>) {
    let serial = Serial::Bump(SerialPolicy::Increment);
    let Ok((zone, diff)) = BASE.with(&ChangeSet { sets, serial }) else { return };
    let mut octets = Vec::new();
    diff.write_octets(&mut octets);
    assert_eq!(Diff::from_octets(diff.from, diff.to, &octets).as_ref(), Some(&diff));
    let back = zone.changes_of(&diff.reversed()).expect("the zone has what was added");
    let (back, _) = zone.with(&back).expect("it was a zone before");
    assert!(back.diff(&BASE).is_ok_and(|diff| diff.is_empty()), "not all was undone");
}

/// Brings a difference into the zone, which may contradict it.
fn check_difference(diff: &Diff) {
    if let Ok(changes) = BASE.changes_of(diff) {
        let _ = BASE.with(&changes); // the data of records may be malformed
    }
    let mut net = NetChange::default();
    net.push(diff);
    let merge = BASE.merge(&net);
    let changes = ChangeSet { sets: merge.changes, serial: Serial::Exactly(9) };
    if let Ok((zone, _)) = BASE.with(&changes) {
        let again = zone.merge(&net);
        let key = |it: &Record<'_>| (it.owner.to_ascii_lowercase(), it.rtype);
        let is_sound = diff.added.iter().all(|one| {
            let mut others = diff.added.iter().filter(|it| key(it) == key(&one));
            others.all(|other| other.ttl == one.ttl)
        });
        assert!(
            !is_sound
                || !merge.conflicts.is_empty()
                || again.conflicts.is_empty() && again.changes.is_empty(),
            "a zone with the changes lacks some: {again:?}"
        );
    }
    let _ = Diff::of_all(std::slice::from_ref(&diff));
}
