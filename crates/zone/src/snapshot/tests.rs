//! A changed zone is the zone that would be built from the same records.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::records::{Record, Records};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use zonda_testkit::generate::Random;
use zonda_wire::{Name, name, rdata};

const SEED: HashSeed = HashSeed(3);
/// Owners of NSEC3 records.
const HASHES: [&str; 4] = [
    "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom",
    "35mthgpgcu1qg68fab165klnsnk3dpvl",
    "2t7b4g4vsa5smi47k61mv5bv1a22bojr",
    "r53bq7cc2uvmubfu5ocmm6pers9tk9en",
];

/// Sets by owner, type and type covered, as text: the TTL and the data.
type Model = BTreeMap<(String, Type, Type), (u32, BTreeSet<String>)>;

/// A name of text, the apex if it is `@`.
fn name(text: &str) -> Name {
    match text {
        "@" => "example.".parse().unwrap(),
        text => format!("{text}.example.").parse().unwrap(),
    }
}

/// Data in wire form.
fn wire(rtype: Type, text: &str) -> Box<[u8]> {
    rdata::from_text(rtype, text).unwrap().into()
}

/// The zone of a model's records.
fn built(model: &Model) -> Result<Zone, BuildError> {
    build(&name("@"), &records_of(model), SEED)
}

/// The zone of a model's records, which come in another order, some twice and some beside the zone:
/// built by the hashes of their owners, and as it is otherwise.
fn built_both_ways(model: &Model, random: &mut Random) -> [Result<Zone, BuildError>; 2] {
    let (records, mut given) = (records_of(model), Records::default());
    let mut order: Vec<usize> = (0..records.len()).collect();
    if random.one_in(2) {
        (1..order.len()).for_each(|at| order.swap(at, random.below(at + 1)));
    }
    let outside = Record { owner: b"\x04test\0", rtype: Type::A, ttl: 1, rdata: &[1; 4] };
    for index in order {
        given.push(records.get(index), 1).unwrap();
        if random.one_in(9) {
            given.push(outside, 1).unwrap();
            given.push(records.get(index), 1).unwrap();
        }
    }
    let mut hashed = HashedRecords::new(&name("@"), SEED);
    given.iter().for_each(|record| hashed.push(record).unwrap());
    [hashed.build(), build(&name("@"), &given, SEED)]
}

/// A name of few labels out of few.
fn random_owner(random: &mut Random, breadth: usize) -> String {
    if random.one_in(12) {
        return "@".into();
    }
    let labels = ["a", "b", "*", "c", r"\000", r"\001z", "ab"];
    let mut owner = String::new();
    for depth in 0..1 + random.below(4) {
        let label = match random.below(breadth) {
            number if number < labels.len() && random.one_in(2) => labels[number].to_owned(),
            number => format!("n{number}"),
        };
        let dot = if depth > 0 { "." } else { "" };
        owner = format!("{label}{dot}{owner}");
    }
    owner
}

/// The text of data of a type.
fn random_data(random: &mut Random, rtype: Type, covered: Type) -> String {
    let number = random.below(4);
    match rtype {
        Type::A => format!("192.0.2.{number}"),
        Type::TXT => format!("t{number}"),
        Type::CNAME | Type::DNAME => "elsewhere.test.".into(),
        Type::NS if random.one_in(5) => format!("ns{number}.a."), // the same record
        Type::NS => format!("NS{number}.a."),
        Type::MX => format!("{number} Mail.a."),
        Type::DS => format!("{number} 13 99 00ff"),
        Type::SOA => format!("a. b. {} 2 3 4 5", 1 + number),
        Type::DNSKEY => "256 3 15 AAAA".into(),
        Type::NSEC => format!("n{number}. A NSEC"),
        Type::NSEC3PARAM => format!("1 0 {} -", if number == 0 { 300 } else { 0 }),
        Type::NSEC3 => format!("1 0 0 - {} A", HASHES[number]),
        _ => format!("{covered} 15 2 300 20300101000000 20200101000000 {number} example. AAAA"),
    }
}

/// An owner and a type that may stand there, with the type that signatures cover.
fn random_set(random: &mut Random, breadth: usize) -> (String, Type, Type) {
    let signed = [Type::A, Type::TXT, Type::NSEC, Type::NSEC3, Type::SOA];
    if random.one_in(9) {
        let owner = random.pick::<&str>(&HASHES).to_string();
        return match random.below(5) {
            0 => (owner, Type::A, Type::A),
            1 => (owner, Type::RRSIG, Type::NSEC3),
            _ => (owner, Type::NSEC3, Type::NSEC3),
        };
    }
    let owner = random_owner(random, breadth);
    let at_apex = [Type::SOA, Type::DNSKEY, Type::NSEC, Type::NSEC3PARAM, Type::DNAME, Type::NS];
    let below = [
        Type::A,
        Type::A,
        Type::TXT,
        Type::CNAME,
        Type::NS,
        Type::NS,
        Type::DNAME,
        Type::MX,
        Type::DS,
        Type::NSEC,
    ];
    let rtype = match owner.as_str() {
        _ if random.one_in(6) => return (owner.clone(), Type::RRSIG, *random.pick(&signed)),
        "@" => *random.pick(&at_apex),
        _ => *random.pick(&below),
    };
    (owner, rtype, rtype)
}

/// A change, and what it does to a model.
fn random_change(random: &mut Random, breadth: usize, model: &mut Model) -> SetChange {
    let keys: Vec<_> = model.keys().collect();
    let is_removal = random.one_in(2) && !keys.is_empty();
    let (owner, rtype, covered) = match is_removal {
        true => (*random.pick(&keys)).clone(),
        false => random_set(random, breadth),
    };
    if is_removal && (rtype != Type::SOA || random.one_in(9)) {
        if rtype == Type::RRSIG && !random.one_in(3) {
            model.remove(&(owner.clone(), rtype, covered));
            return SetChange::RemoveSignatures { owner: name(&owner), covered };
        }
        model.retain(|key, _| (&key.0, key.1) != (&owner, rtype));
        return SetChange::Remove { owner: name(&owner), rtype };
    }
    let single = matches!(rtype, Type::CNAME | Type::DNAME | Type::SOA) && !random.one_in(20);
    let count = if single { 1 } else { 1 + random.below(3) };
    let texts: BTreeSet<String> = (0..count).map(|_| random_data(random, rtype, covered)).collect();
    let ttl = 300 + random.below(2) as u32;
    let data = texts.iter().map(|text| wire(rtype, text)).collect();
    model.insert((owner.clone(), rtype, covered), (ttl, texts));
    SetChange::Put { owner: name(&owner), rtype, ttl, data }
}

/// The records of a model.
fn records_of(model: &Model) -> Records {
    let mut records = Records::default();
    for ((owner, rtype, _), (ttl, texts)) in model {
        for text in texts {
            let (owner, rdata) = (&name(owner), &wire(*rtype, text));
            let record = Record { owner: owner.as_wire(), rtype: *rtype, ttl: *ttl, rdata };
            records.push(record, 1).unwrap();
        }
    }
    records
}

/// Everything that a zone says about a node.
fn write_node(out: &mut String, node: Node<'_>) {
    let owner = name::Presentation(node.relative_owner());
    write!(out, "{owner} {:#b} {}", node.flags(), node.child_count()).unwrap();
    for set in node.sets() {
        write!(out, " | {} {} {}", set.rtype, set.ttl, set.count).unwrap();
        for rdata in set.rdatas() {
            write!(out, " {}", rdata::Presentation { rtype: set.rtype, rdata }).unwrap();
        }
    }
}

/// The nodes of a zone, one a line, in one order.
fn nodes(zone: &Zone) -> Vec<String> {
    let mut lines: Vec<String> = zone
        .nodes()
        .map(|node| {
            let mut line = String::new();
            write_node(&mut line, node);
            line
        })
        .collect();
    lines.sort();
    lines
}

/// What a zone finds for a name.
fn found(zone: &Zone, owner: &Name, at_parent: bool) -> String {
    let name = LookupName::new(owner.as_wire(), SEED);
    let mut out = String::new();
    let found = zone.find(&name, at_parent);
    let (what, node) = match found {
        LookupResult::Exact(node) => ("exact".to_owned(), Some(node)),
        LookupResult::Wildcard { node, encloser } => (format!("wildcard {encloser}"), Some(node)),
        LookupResult::Missing { encloser } => (format!("missing {encloser}"), None),
        LookupResult::Referral(node) => ("referral".to_owned(), Some(node)),
        LookupResult::Dname(node) => ("dname".to_owned(), Some(node)),
    };
    write!(out, "{what} ").unwrap();
    if let Some(node) = node {
        write_node(&mut out, node);
    }
    let start = zone.start(&name);
    let _ = (start.touch_slot(), start.touch_node());
    let again = zone.find_from(&start, &name, at_parent);
    assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(&found), "{owner}");
    out
}

/// How a zone proves that a name is missing.
fn proof(zone: &Zone, owner: &Name) -> String {
    let mut out = String::new();
    let node = match zone.denial() {
        None => return "none".to_owned(),
        Some(Denial::Nsec(owners)) => zone.nsec_at_or_before(owners, owner.as_wire()),
        Some(Denial::Nsec3(nsec3)) => {
            let found = zone.nsec3_at_or_before(nsec3, &nsec3.hash(owner.as_wire()));
            found.map(|(node, _)| node)
        }
        Some(Denial::Uncomputed(hash)) => zone.node_of_hash(hash),
    };
    match node {
        Some(node) => write_node(&mut out, node),
        None => out.push_str("nothing"),
    }
    out
}

/// A record as a line.
fn line(record: &Record<'_>) -> String {
    let mut line = Vec::new();
    crate::print::print_record(record, &mut line).unwrap();
    String::from_utf8(line).unwrap()
}

/// Compares all records of a zone, and those behind some name, with those of a model.
fn check_records(zone: &Zone, model: &Model, random: &mut Random, breadth: usize) {
    let records = records_of(model);
    let order = crate::order::canonical_without_duplicates(&records);
    let expected: Vec<String> =
        order.iter().map(|index| line(&records.get(*index as usize))).collect();
    let found: Vec<ZoneRecord<'_>> = zone.records().collect();
    assert_eq!(found.iter().map(|it| line(&it.as_record())).collect::<Vec<_>>(), expected);
    assert_eq!(found[0].rtype, Type::SOA);
    assert!(zone.to_records().unwrap().iter().eq(found.iter().map(ZoneRecord::as_record)));
    let behind = name(&random_owner(random, breadth));
    let is_behind = |it: &&ZoneRecord<'_>| {
        name::canonical_cmp(it.owner.as_wire(), behind.as_wire()) == std::cmp::Ordering::Greater
    };
    let tail = found.iter().filter(is_behind).map(|it| line(&it.as_record()));
    assert!(zone.records_behind(behind.as_wire()).map(|it| line(&it.as_record())).eq(tail));
}

/// Compares a changed zone with one that was built.
fn check_same(zone: &Zone, expected: &Zone, random: &mut Random, breadth: usize) {
    assert_eq!(nodes(zone), nodes(expected));
    assert_eq!(zone.name_count(), zone.nodes().count());
    let mut owners: Vec<Name> = (0..30).map(|_| name(&random_owner(random, breadth))).collect();
    owners.extend(HASHES.map(name));
    owners.extend(HASHES.map(|hash| name(&format!("x.{hash}"))));
    for owner in &owners {
        for at_parent in [false, true] {
            assert_eq!(found(zone, owner, at_parent), found(expected, owner, at_parent), "{owner}");
        }
        assert_eq!(proof(zone, owner), proof(expected, owner), "{owner}");
    }
    assert_eq!(zone.serial(), expected.serial());
}

/// Applies a difference.
fn apply(zone: &Zone, diff: &Diff) -> Zone {
    let changes = zone.changes_of(diff).unwrap();
    let (next, again) = zone.with(&changes).unwrap();
    assert_eq!(&again, diff);
    next
}

/// Changes a zone again and again, and compares it with what would be built.
fn run(seed: u64, breadth: usize, rounds: usize, per_round: usize) {
    let mut random = Random::new(seed);
    let mut model = Model::new();
    model.insert(
        ("@".to_owned(), Type::SOA, Type::SOA),
        (300, ["a. b. 1 2 3 4 5".to_owned()].into()),
    );
    let mut zone = built(&model).unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..rounds {
        let mut next_model = model.clone();
        let count = 1 + random.below(per_round);
        let sets = (0..count).map(|_| random_change(&mut random, breadth, &mut next_model));
        let changes = ChangeSet { sets: sets.collect(), serial: Serial::Keep };
        let before = nodes(&zone);
        match built_both_ways(&next_model, &mut random) {
            [Ok(hashed), Ok(expected)] => {
                check_same(&hashed, &expected, &mut random, breadth);
                assert_eq!(hashed.bytes(), expected.bytes());
                assert_eq!(hashed.has_aliases(), expected.has_aliases());
            }
            [Err(BuildError::NotAlone(..)), Err(BuildError::NotAlone(..))] => {} // one of several
            [hashed, expected] => assert_eq!(hashed.err(), expected.err()),
        }
        if random.one_in(8) {
            zone.records().for_each(drop); // from here on the order is kept up
        }
        let (next, diff) = match (zone.with(&changes), built(&next_model)) {
            (Ok(next), Ok(expected)) => {
                check_same(&next.0, &expected, &mut random, breadth);
                check_same(&expected.packed(), &next.0, &mut random, breadth);
                let expected = built(&next_model).unwrap();
                assert_eq!(zone.diff(&expected).unwrap(), next.1, "{changes:#?}");
                if round % 10 == 0 {
                    check_records(&next.0, &next_model, &mut random, breadth);
                }
                next
            }
            (Err(error), Err(BuildError::NoSoa)) => {
                assert_eq!(error.rule, ChangeRule::NoSoa);
                refused += 1;
                continue;
            }
            (Err(error), Err(BuildError::NotAlone(..))) => {
                assert!(matches!(error.rule, ChangeRule::Owner(_) | ChangeRule::NoSoa), "{error}");
                refused += 1;
                continue;
            }
            (with, built) => panic!("{:?} {:?} {changes:#?}", with.err(), built.err()),
        };
        assert_eq!(zone.diff(&next).unwrap(), diff);
        assert_eq!(nodes(&zone), before, "the old version changed");
        assert_eq!(nodes(&apply(&next, &diff.clone().reversed())), before);
        assert_eq!(nodes(&apply(&zone, &diff)), nodes(&next));
        accepted += 1;
        let next = if random.one_in(4) { next.packed() } else { next };
        assert_eq!(nodes(&apply(&next, &diff.reversed())), before);
        (zone, model) = (next, next_model);
    }
    assert!(accepted > rounds / 4 && refused > 0, "{accepted} accepted, {refused} refused");
}

#[test]
fn a_small_zone_after_any_change_is_the_zone_of_its_records() {
    for seed in 0..12 {
        run(seed, 4, 150, 5);
    }
}

#[test]
fn a_zone_of_several_shards_after_any_change_is_the_zone_of_its_records() {
    run(100, 12, 60, 12);
    run(101, 40, 25, 400);
}

/// A zone of many names with an address each, and a delegation with hosts below it.
fn large_zone() -> Zone {
    let mut text = "@ SOA a. b. 1 2 3 4 5\nns.sub A 192.0.2.1\nwww.sub A 192.0.2.2\n".to_owned();
    (0..20_000).for_each(|number| writeln!(text, "h{number} A 10.0.0.1").unwrap());
    let options = crate::file::Options::default();
    let text = format!("$TTL 60\n{text}");
    let path = std::path::Path::new("zone");
    let (records, _) = crate::file::read_text(text.as_bytes(), path, &name("@"), &options);
    build(&name("@"), &records, SEED).unwrap()
}

/// Puts one record.
fn put(owner: &str, rtype: Type, text: &str) -> ChangeSet {
    let data = vec![wire(rtype, text)];
    let put = SetChange::Put { owner: name(owner), rtype, ttl: 60, data };
    ChangeSet { sets: vec![put], serial: Serial::Bump(SerialPolicy::Increment) }
}

/// How many shards two versions do not share.
fn changed_shards(one: &Zone, two: &Zone) -> usize {
    let shards = one.directory.shards().zip(two.directory.shards());
    shards.filter(|(one, two)| !std::ptr::eq(one.0, two.0)).count()
}

#[test]
fn a_change_writes_the_shard_of_its_owner_and_shares_all_others() {
    let zone = large_zone();
    assert_eq!(zone.directory.layout().shards(), 128);
    let (changed, diff) = zone.with(&put("h77", Type::A, "192.0.2.7")).unwrap();
    assert_eq!(changed_shards(&zone, &changed), 1);
    assert_eq!((diff.removed.len(), diff.added.len()), (2, 2)); // the address and the SOA record
    assert_eq!((diff.from, diff.to, changed.serial()), (1, 2, 2));
    let (changed, _) = changed.with(&put("new", Type::A, "192.0.2.7")).unwrap();
    assert_eq!(changed_shards(&zone, &changed), 2);
    let (same, diff) = changed.with(&put("new", Type::A, "192.0.2.7")).unwrap();
    assert_eq!(changed_shards(&changed, &same), 0);
    assert!(diff.is_empty() && same.serial() == changed.serial(), "{diff:?}");
}

#[test]
fn a_packed_zone_has_its_nodes_in_one_piece() {
    let text = [("@", Type::SOA, "a. b. 1 2 3 4 5"), ("a", Type::A, "192.0.2.1")];
    let model = text.map(|(owner, rtype, data)| {
        ((owner.to_owned(), rtype, rtype), (300, [data.to_owned()].into()))
    });
    let apex_alone = built(&model[..1].iter().cloned().collect());
    let zone = built(&model.into());
    let (bytes, zone) = (zone.as_ref().unwrap().bytes(), zone.unwrap().packed());
    assert_eq!((zone.bytes(), zone.apex_node.bytes()), (bytes, 0));
    let packed = zone.with(&put("b", Type::A, "192.0.2.2")).unwrap().0.packed();
    assert_eq!((packed.apex_node.bytes(), packed.nodes().count()), (0, 3));
    assert_eq!(apex_alone.unwrap().packed().nodes().count(), 1);
}

#[test]
fn names_below_a_delegation_that_comes_or_goes_change_with_it() {
    for is_sorted in [false, true] {
        let zone = large_zone();
        if is_sorted {
            zone.records().for_each(drop);
        }
        let host = name("www.sub");
        assert!(found(&zone, &host, false).starts_with("exact"));
        let (cut, _) = zone.with(&put("sub", Type::NS, "ns.sub.example.")).unwrap();
        assert!(found(&cut, &host, false).starts_with("referral"));
        let remove = SetChange::Remove { owner: name("sub"), rtype: Type::NS };
        let changes = ChangeSet { sets: vec![remove], serial: Serial::Exactly(1) };
        let (whole, _) = cut.with(&changes).unwrap();
        assert_eq!(nodes(&whole), nodes(&zone));
    }
}

#[test]
fn a_name_is_removed_with_all_its_sets_and_what_follows_puts_new_ones() {
    let zone = large_zone();
    let (zone, _) = zone.with(&put("h1", Type::TXT, "one")).unwrap();
    let remove = SetChange::RemoveName { owner: name("H1") };
    let [new] = <[SetChange; 1]>::try_from(put("h1", Type::AAAA, "2001:db8::1").sets).unwrap();
    let removed: Vec<_> = [vec![remove.clone()], vec![remove, new]]
        .into_iter()
        .map(|sets| {
            let (next, diff) = zone.with(&ChangeSet { sets, serial: Serial::Keep }).unwrap();
            let left: Vec<_> = next.records_at(&name("h1")).map(|it| it.rtype).collect();
            (diff.removed.len(), left)
        })
        .collect();
    assert_eq!(removed, [(2, vec![]), (2, vec![Type::AAAA])]);
    let sets = vec![SetChange::RemoveName { owner: name("@") }];
    let error = zone.with(&ChangeSet { sets, serial: Serial::Keep }).map(|_| ()).unwrap_err();
    assert_eq!(error.rule, ChangeRule::NoSoa);
    let sets = vec![SetChange::RemoveName { owner: name("nothing") }];
    let (_, diff) = zone.with(&ChangeSet { sets, serial: Serial::Keep }).unwrap();
    assert!(diff.is_empty());
}

#[test]
fn a_set_of_which_a_difference_gives_records_several_ttls_has_the_least_of_them() {
    let zone = large_zone();
    let add = |added: &[(u32, u8)], removed: &[u8]| {
        let mut diff = Diff { from: 1, to: 2, ..Diff::default() };
        let (owner, rtype) = (name("h1"), Type::A);
        for (ttl, last) in added {
            let (owner, rdata) = (owner.as_wire(), &[10, 0, 0, *last]);
            diff.added.push(Record { owner, rtype, ttl: *ttl, rdata }, 0).unwrap();
        }
        for last in removed {
            let (owner, rdata) = (owner.as_wire(), &[10, 0, 0, *last]);
            diff.removed.push(Record { owner, rtype, ttl: 60, rdata }, 0).unwrap();
        }
        let (next, _) = zone.with(&zone.changes_of(&diff).unwrap()).unwrap();
        let ttls: BTreeSet<u32> = next.records_at(&owner).map(|it| it.ttl).collect();
        (next.records_at(&owner).count(), ttls.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(add(&[(30, 2)], &[]), (2, vec![30]), "less than that of the record that stays");
    assert_eq!(add(&[(90, 2)], &[]), (2, vec![60]), "more than that");
    assert_eq!(add(&[(90, 2), (70, 3)], &[]), (3, vec![60]));
    assert_eq!(add(&[(90, 2), (70, 3)], &[1]), (2, vec![70]), "no record stays");
    assert_eq!(add(&[(90, 1)], &[1]), (1, vec![90]), "another TTL of the one record");
}

#[test]
fn an_error_names_the_record_and_the_rule() {
    let zone = large_zone();
    for (owner, rtype, text, expected) in [
        (
            "h1",
            Type::CNAME,
            "h2.",
            "h1.example. A: a name with a CNAME cannot have other records, such as this A",
        ),
        (
            "h1.example.com.",
            Type::A,
            "192.0.2.1",
            "h1.example.com. A: the name is not in this zone",
        ),
        ("new", Type::ANY, "", "new.example. ANY: no zone holds records of this type"),
    ] {
        let owner = if owner.ends_with('.') { owner.parse().unwrap() } else { name(owner) };
        let data = match rtype {
            Type::ANY => vec![[].into()],
            rtype => vec![wire(rtype, text)],
        };
        let sets = vec![SetChange::Put { owner, rtype, ttl: 60, data }];
        let error = zone.with(&ChangeSet { sets, serial: Serial::Keep }).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let put = |data: &[&[u8]]| SetChange::Put {
        owner: name("h1"),
        rtype: Type::A,
        ttl: 60,
        data: data.iter().map(|it| (*it).into()).collect(),
    };
    for (sets, expected) in [
        (vec![put(&[])], ChangeRule::NoRecords),
        (vec![SetChange::Remove { owner: name("@"), rtype: Type::SOA }], ChangeRule::NoSoa),
    ] {
        let error = zone.with(&ChangeSet { sets, serial: Serial::Keep }).map(|_| ()).unwrap_err();
        assert_eq!(error.rule, expected);
    }
    let short = ChangeSet { sets: vec![put(&[&[192, 0, 2]])], serial: Serial::Keep };
    let error = zone.with(&short).map(|_| ()).unwrap_err();
    assert!(matches!(error.rule, ChangeRule::Data(_)), "{error}");
}

/// The records that a cursor hands over, so many at a time, sorted.
fn taken(zone: &Zone, at_a_time: usize) -> Vec<(Vec<u8>, u16, u32, Vec<u8>)> {
    let (mut cursor, mut found) = (RecordCursor::default(), Vec::new());
    loop {
        let end = found.len() + at_a_time;
        let is_whole = zone.take_records(&mut cursor, |owner, (rtype, ttl), rdata| {
            let has_room = found.len() < end;
            if has_room {
                found.push((owner.to_vec(), rtype.0, ttl, rdata.to_vec()));
            }
            has_room
        });
        if is_whole {
            found.sort();
            return found;
        }
    }
}

/// All records but SOA, sorted.
fn all_but_soa(zone: &Zone) -> Vec<(Vec<u8>, u16, u32, Vec<u8>)> {
    let records = zone.records().filter(|record| record.rtype != Type::SOA).map(|record| {
        let it = record.as_record();
        (it.owner.to_vec(), it.rtype.0, it.ttl, it.rdata.to_vec())
    });
    let mut records: Vec<_> = records.collect();
    records.sort();
    records
}

#[test]
fn unordered_records_are_all_records_and_begin_with_the_soa_record() {
    let zone = large_zone();
    let mut octets = Vec::new();
    let written = zone.write_unordered_records(|some| {
        octets.extend_from_slice(some);
        Ok::<_, ()>(())
    });
    written.unwrap();
    assert_eq!(octets.len() as u64, zone.unordered_records_len());
    let records = Records::from_octets(&octets).unwrap();
    let first = records.get(0);
    assert_eq!((first.owner, first.rtype), (zone.apex(), Type::SOA));
    let rest = records.iter().skip(1);
    let rest = rest.map(|it| (it.owner.to_vec(), it.rtype.0, it.ttl, it.rdata.to_vec()));
    let mut rest: Vec<_> = rest.collect();
    rest.sort();
    assert_eq!(rest, all_but_soa(&zone));
}

#[test]
fn a_cursor_hands_over_each_record_once_however_many_at_a_time() {
    let zone = large_zone();
    assert_eq!(taken(&zone, 777), all_but_soa(&zone));
    let (zone, _) = zone.with(&put("h77", Type::TXT, "x")).unwrap();
    assert_eq!(taken(&zone, 100_000), all_but_soa(&zone));
    let hidden = format!("{}.example. ", HASHES[0]);
    let text = format!(
        "$TTL 60\n@ SOA a. b. 1 2 3 4 5\n@ NS a.\n@ DNSKEY 256 3 15 AAAA\n\
         @ NSEC3PARAM 1 0 0 -\n{hidden} NSEC3 1 0 0 - {} A\n\
         sub NS ns.sub\nns.sub A 192.0.2.1\na.b A 192.0.2.1\na.b A 192.0.2.2\n",
        HASHES[1]
    );
    let options = crate::file::Options::default();
    let path = std::path::Path::new("zone");
    let (records, _) = crate::file::read_text(text.as_bytes(), path, &name("@"), &options);
    let zone = build(&name("@"), &records, SEED).unwrap();
    for at_a_time in [1, 2, 3, 100] {
        assert_eq!(taken(&zone, at_a_time), all_but_soa(&zone), "{at_a_time}");
    }
    assert_eq!(taken(&zone, 1).len(), 8);
}
