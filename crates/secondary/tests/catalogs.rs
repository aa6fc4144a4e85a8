//! The rules by which zones become members of catalogs: each row of the decision table is a test.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use zonda_secondary::membership::{MemberSteps, VersionFault};
use zonda_secondary::{CatalogFault, Member, MemberStep, Membership, VersionLimits};
use zonda_wire::{Name, Type, rdata};
use zonda_zone::{HashSeed, Record, Records, Zone, build};

const A: &str = "a.catalog";
const B: &str = "b.catalog";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A catalog zone of a schema version `2`, and more records: owner, type and data, names relative
/// to the catalog.
fn zone(apex: &str, records: &[(&str, Type, &str)]) -> Arc<Zone> {
    let own = [("version", Type::TXT, "\"2\"")];
    bare_zone(apex, &[&own[..], records].concat())
}

/// A catalog zone without a schema version.
fn bare_zone(apex: &str, records: &[(&str, Type, &str)]) -> Arc<Zone> {
    let mut all = Records::default();
    let mut push = |owner: &Name, rtype, text: &str| {
        let rdata = rdata::from_text(rtype, text).unwrap();
        all.push(Record { owner: owner.as_wire(), rtype, ttl: 0, rdata: &rdata }, 0).unwrap();
    };
    push(&name(apex), Type::SOA, "invalid. invalid. 1 3600 600 2147483646 0");
    push(&name(apex), Type::NS, "invalid.");
    for (owner, rtype, text) in records {
        push(&name(&format!("{owner}.{apex}")), *rtype, text);
    }
    Arc::new(build(&name(apex), &all, HashSeed::random()).unwrap())
}

/// Catalogs of which versions are taken one after the other.
struct Catalogs {
    membership: Membership,
    former: Vec<(String, Arc<Zone>)>,
    /// Zones that something else of the server stands for.
    taken: Vec<Name>,
    limits: VersionLimits,
}

impl Catalogs {
    fn new() -> Self {
        let mut membership = Membership::default();
        membership.order(&[name(A), name(B)]);
        let limits = VersionLimits { removals_max: Some(10), members_max: 1000 };
        Self { membership, former: Vec::new(), taken: Vec::new(), limits }
    }

    /// Takes a version, and returns what becomes of which zones in words.
    fn take(&mut self, apex: &str, zone: &Arc<Zone>) -> Result<Vec<String>, VersionFault> {
        let former = self.former.iter().find(|(it, _)| it == apex).map(|(_, zone)| &**zone);
        let taken = self.taken.clone();
        let is_taken = |zone: &Name, _| taken.contains(zone);
        let is_served = |member: &Member| !member.groups.iter().any(|group| **group == *b"none");
        let judges = (is_taken, is_served);
        let steps = self.membership.take(&name(apex), (former, zone), self.limits, judges)?;
        self.former.retain(|(it, _)| it != apex);
        self.former.push((apex.to_owned(), Arc::clone(zone)));
        Ok(self.carry_out(&steps))
    }

    fn carry_out(&mut self, steps: &MemberSteps) -> Vec<String> {
        steps.iter().for_each(|(zone, step)| self.membership.carry_out(zone, step));
        let words = steps.iter().map(|(zone, step)| match step {
            MemberStep::Add(to) => format!("add {zone} {}", to.catalog),
            MemberStep::Change(to) => format!("change {zone} {} {:?}", to.catalog, groups(to)),
            MemberStep::Reset(to) => format!("reset {zone} {}", to.catalog),
            MemberStep::Remove => format!("remove {zone}"),
            MemberStep::Yield => format!("yield {zone}"),
        });
        words.collect()
    }
}

fn groups(member: &Member) -> Vec<String> {
    member.groups.iter().map(|group| String::from_utf8_lossy(group).into_owned()).collect()
}

/// The fault of a version of the first catalog that follows a sound one, which has a member.
fn fault(version: &Arc<Zone>) -> CatalogFault {
    let mut catalogs = Catalogs::new();
    catalogs.take(A, &zone(A, &[("m1.zones", Type::PTR, "one.test.")])).unwrap();
    let Err(VersionFault::Broken(fault)) = catalogs.take(A, version) else { panic!("it is taken") };
    assert_eq!(catalogs.membership.count(&name(A)), 1, "the former version stays in force");
    fault
}

#[test]
fn a_catalog_without_a_version_is_broken() {
    assert_eq!(fault(&bare_zone(A, &[])), CatalogFault::NoVersion);
}

#[test]
fn a_catalog_with_several_versions_is_broken() {
    let versions = [("version", Type::TXT, "\"2\""), ("version", Type::TXT, "\"3\"")];
    assert_eq!(fault(&bare_zone(A, &versions)), CatalogFault::SeveralVersions);
}

#[test]
fn a_catalog_of_another_version_is_broken() {
    let version = [("version", Type::TXT, "\"1\"")];
    assert_eq!(fault(&bare_zone(A, &version)), CatalogFault::OtherVersion("1".to_owned()));
}

#[test]
fn a_member_of_two_zones_breaks_the_catalog() {
    let two = [("m1.zones", Type::PTR, "one.test."), ("m1.zones", Type::PTR, "two.test.")];
    assert_eq!(fault(&zone(A, &two)), CatalogFault::SeveralZones("m1".to_owned()));
}

#[test]
fn a_member_that_moves_to_two_catalogs_breaks_the_catalog() {
    let two = [
        ("m1.zones", Type::PTR, "one.test."),
        ("coo.m1.zones", Type::PTR, "b.catalog."),
        ("coo.m1.zones", Type::PTR, "c.catalog."),
    ];
    assert_eq!(fault(&zone(A, &two)), CatalogFault::SeveralOwners("m1".to_owned()));
}

#[test]
fn a_zone_that_is_listed_twice_breaks_the_catalog_whatever_the_case_of_its_name() {
    let two = [("m1.zones", Type::PTR, "one.test."), ("m2.zones", Type::PTR, "One.TEST.")];
    assert_eq!(fault(&zone(A, &two)), CatalogFault::ListedTwice(name("one.test")));
}

#[test]
fn names_and_types_that_are_not_known_are_ignored() {
    let mut catalogs = Catalogs::new();
    let odd = zone(
        A,
        &[
            ("m1.zones", Type::PTR, "one.test."),
            ("m1.zones", Type::TXT, "\"text\""),
            ("x.ext.m1.zones", Type::TXT, "\"1\""),
            ("later.m1.zones", Type::PTR, "other."),
            ("group.m9.zones", Type::TXT, "\"of no member\""),
            ("elsewhere", Type::PTR, "two.test."),
            ("zones", Type::PTR, "three.test."),
        ],
    );
    assert_eq!(catalogs.take(A, &odd).unwrap(), ["add one.test. a.catalog."]);
}

#[test]
fn members_come_and_go_and_change_their_groups() {
    let mut catalogs = Catalogs::new();
    let one = [("m1.zones", Type::PTR, "one.test."), ("m2.zones", Type::PTR, "two.test.")];
    let added = ["add one.test. a.catalog.", "add two.test. a.catalog."];
    assert_eq!(catalogs.take(A, &zone(A, &one)).unwrap(), added);
    let two = [one[0], ("group.m1.zones", Type::TXT, "\"signed\"")];
    let changed = ["change one.test. a.catalog. [\"signed\"]", "remove two.test."];
    assert_eq!(catalogs.take(A, &zone(A, &two)).unwrap(), changed);
    assert_eq!(catalogs.take(A, &zone(A, &two)).unwrap(), Vec::<String>::new());
}

#[test]
fn a_zone_with_another_id_is_reset() {
    let mut catalogs = Catalogs::new();
    catalogs.take(A, &zone(A, &[("m1.zones", Type::PTR, "one.test.")])).unwrap();
    let other = zone(A, &[("m2.zones", Type::PTR, "one.test.")]);
    assert_eq!(catalogs.take(A, &other).unwrap(), ["reset one.test. a.catalog."]);
}

#[test]
fn two_zones_that_exchange_their_ids_are_reset() {
    let mut catalogs = Catalogs::new();
    let listed = |one, two| zone(A, &[("m1.zones", Type::PTR, one), ("m2.zones", Type::PTR, two)]);
    catalogs.take(A, &listed("one.test.", "two.test.")).unwrap();
    let steps = catalogs.take(A, &listed("two.test.", "one.test.")).unwrap();
    assert_eq!(steps, ["reset one.test. a.catalog.", "reset two.test. a.catalog."]);
}

#[test]
fn a_zone_of_two_catalogs_stays_with_the_first_that_had_it() {
    let mut catalogs = Catalogs::new();
    let of = |apex| zone(apex, &[("m1.zones", Type::PTR, "one.test.")]);
    assert_eq!(catalogs.take(B, &of(B)).unwrap(), ["add one.test. b.catalog."]);
    assert_eq!(catalogs.take(A, &of(A)).unwrap(), Vec::<String>::new());
    // Once the first lists it no more, it is a zone of the other, anew.
    assert_eq!(catalogs.take(B, &zone(B, &[])).unwrap(), ["reset one.test. a.catalog."]);
}

#[test]
fn a_zone_moves_with_its_state_when_both_catalogs_say_so_and_the_id_is_the_same() {
    for is_announced_first in [false, true] {
        let mut catalogs = Catalogs::new();
        let listed = ("m1.zones", Type::PTR, "one.test.");
        let moving = zone(A, &[listed, ("coo.m1.zones", Type::PTR, "B.catalog.")]);
        catalogs.take(A, &zone(A, &[listed])).unwrap();
        let (first, second) = match is_announced_first {
            true => (catalogs.take(A, &moving).unwrap(), catalogs.take(B, &zone(B, &[listed]))),
            false => (catalogs.take(B, &zone(B, &[listed])).unwrap(), catalogs.take(A, &moving)),
        };
        assert!(
            first.iter().all(|it| it.contains("a.catalog")),
            "one side is not enough: {first:?}"
        );
        let second = second.unwrap();
        assert_eq!(second, ["change one.test. b.catalog. []"]);
        assert_eq!(catalogs.take(A, &zone(A, &[])).unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_zone_that_moves_to_another_id_is_reset() {
    let mut catalogs = Catalogs::new();
    let listed = ("m1.zones", Type::PTR, "one.test.");
    catalogs.take(A, &zone(A, &[listed, ("coo.m1.zones", Type::PTR, "b.catalog.")])).unwrap();
    let other = zone(B, &[("m7.zones", Type::PTR, "one.test.")]);
    assert_eq!(catalogs.take(B, &other).unwrap(), ["reset one.test. b.catalog."]);
}

#[test]
fn a_zone_that_is_configured_otherwise_is_no_member() {
    let mut catalogs = Catalogs::new();
    catalogs.taken.push(name("one.test"));
    let listed = zone(A, &[("m1.zones", Type::PTR, "one.test.")]);
    assert_eq!(catalogs.take(A, &listed).unwrap(), Vec::<String>::new());
    let waiting: Vec<Name> = catalogs.membership.waiting().cloned().collect();
    assert_eq!(waiting, [name("one.test")], "it is looked at again");
    let steps = catalogs.membership.steps(waiting, |_, _| false);
    assert_eq!(catalogs.carry_out(&steps), ["add one.test. a.catalog."]);
    assert_eq!(catalogs.membership.waiting().len(), 0);
    let steps = catalogs.membership.steps(catalogs.membership.zones(), |_, _| true);
    assert_eq!(catalogs.carry_out(&steps), ["yield one.test."]);
    assert_eq!(catalogs.membership.waiting().len(), 1);
    // What no catalog lists waits for nothing.
    assert_eq!(catalogs.take(A, &zone(A, &[])).unwrap(), Vec::<String>::new());
    assert_eq!(catalogs.membership.waiting().len(), 0);
}

/// A catalog of so many members.
fn many(count: usize) -> Arc<Zone> {
    let names: Vec<_> =
        (0..count).map(|n| (format!("m{n}.zones"), format!("z{n}.test."))).collect();
    let records: Vec<_> = names.iter().map(|(id, zone)| (&**id, Type::PTR, &**zone)).collect();
    zone(A, &records)
}

#[test]
fn a_version_that_removes_many_members_is_not_taken() {
    let mut catalogs = Catalogs::new();
    catalogs.take(A, &many(200)).unwrap();
    let refused = catalogs.take(A, &many(179)).unwrap_err();
    assert_eq!(refused, VersionFault::TooManyRemovals(21, 200));
    assert_eq!(catalogs.membership.count(&name(A)), 200);
    assert_eq!(catalogs.take(A, &many(180)).unwrap().len(), 20, "a tenth may go");
    assert!(catalogs.take(A, &many(0)).is_err(), "an empty catalog removes all");
    assert_eq!(catalogs.take(A, &many(181)).unwrap(), ["add z180.test. a.catalog."]);
    catalogs.limits.removals_max = None;
    assert_eq!(catalogs.take(A, &many(0)).unwrap().len(), 181, "an operator has confirmed that");
}

#[test]
fn a_version_that_leaves_none_of_several_members_is_not_taken() {
    let mut catalogs = Catalogs::new();
    catalogs.take(A, &many(2)).unwrap();
    let refused = catalogs.take(A, &many(0)).unwrap_err();
    assert_eq!(refused, VersionFault::TooManyRemovals(2, 2));
    assert_eq!(catalogs.membership.count(&name(A)), 2);
    catalogs.limits.removals_max = Some(100);
    assert_eq!(catalogs.take(A, &many(0)).unwrap().len(), 2, "100 % is all of them");
}

#[test]
fn the_last_member_of_a_catalog_may_go() {
    let mut catalogs = Catalogs::new();
    catalogs.take(A, &many(2)).unwrap();
    assert_eq!(catalogs.take(A, &many(1)).unwrap(), ["remove z1.test."]);
    assert_eq!(catalogs.take(A, &many(0)).unwrap(), ["remove z0.test."]);
}

#[test]
fn a_version_that_has_other_members_instead_of_a_few_is_taken() {
    let mut catalogs = Catalogs::new();
    catalogs.take(A, &many(2)).unwrap();
    let other = zone(A, &[("other.zones", Type::PTR, "other.test.")]);
    assert_eq!(catalogs.take(A, &other).unwrap().len(), 3);
}

#[test]
fn all_members_of_a_catalog_may_move_to_another_in_one_version() {
    let mut catalogs = Catalogs::new();
    let moving = |at: &'static str, to: &'static str| {
        let records = [
            ("m0.zones", Type::PTR, "z0.test."),
            ("coo.m0.zones", Type::PTR, to),
            ("m1.zones", Type::PTR, "z1.test."),
            ("coo.m1.zones", Type::PTR, to),
        ];
        zone(at, &records)
    };
    catalogs.take(A, &many(2)).unwrap();
    let listed = [("m0.zones", Type::PTR, "z0.test."), ("m1.zones", Type::PTR, "z1.test.")];
    catalogs.take(B, &zone(B, &listed)).unwrap();
    assert_eq!(catalogs.take(A, &moving(A, "b.catalog.")).unwrap().len(), 2);
    assert_eq!(catalogs.membership.count(&name(B)), 2);
}

#[test]
fn a_version_that_takes_members_from_all_sections_is_not_taken() {
    let mut catalogs = Catalogs::new();
    let listed = |group: &str| {
        let member = |number: usize| {
            let ptr = (format!("m{number}.zones"), Type::PTR, format!("z{number}.test."));
            let txt = (format!("group.m{number}.zones"), Type::TXT, format!("\"{group}\""));
            [ptr, txt]
        };
        let records: Vec<_> = (0..40).flat_map(member).collect();
        let records: Vec<_> =
            records.iter().map(|(at, rtype, it)| (&**at, *rtype, &**it)).collect();
        zone(A, &records)
    };
    catalogs.take(A, &listed("signed")).unwrap();
    let refused = catalogs.take(A, &listed("none")).unwrap_err();
    assert_eq!(refused, VersionFault::TooManyRemovals(40, 40));
    assert_eq!(catalogs.take(A, &listed("internal")).unwrap().len(), 40);
}

#[test]
fn a_version_that_lists_more_zones_than_it_may_is_not_taken_and_one_that_lists_fewer_is() {
    let mut catalogs = Catalogs::new();
    catalogs.limits.members_max = 20;
    catalogs.take(A, &many(20)).unwrap();
    assert_eq!(catalogs.take(A, &many(21)).unwrap_err(), VersionFault::TooManyMembers(21, 20));
    assert_eq!(catalogs.membership.count(&name(A)), 20);
    assert_eq!(catalogs.membership.zones().len(), 20, "the catalog lists what it did");
    catalogs.limits.members_max = 21;
    assert_eq!(catalogs.take(A, &many(21)).unwrap(), ["add z20.test. a.catalog."]);
    // A limit that is lowered lets no more members come, and the rest go.
    catalogs.limits.members_max = 5;
    assert_eq!(catalogs.take(A, &many(22)).unwrap_err(), VersionFault::TooManyMembers(22, 5));
    assert_eq!(catalogs.take(A, &many(19)).unwrap().len(), 2);
}

#[test]
fn ten_members_of_a_small_catalog_may_go_at_once() {
    let mut catalogs = Catalogs::new();
    catalogs.take(A, &many(11)).unwrap();
    assert_eq!(catalogs.take(A, &many(1)).unwrap().len(), 10);
}

#[test]
fn members_are_kept_as_records_and_restored() {
    let mut catalogs = Catalogs::new();
    let listed = [
        ("m1.zones", Type::PTR, "one.test."),
        ("group.m1.zones", Type::TXT, "\"signed\""),
        ("group.m1.zones", Type::TXT, "\"internal\""),
        ("m2.zones", Type::PTR, "two.test."),
    ];
    catalogs.take(A, &zone(A, &listed)).unwrap();
    let records = catalogs.membership.records(&name(A)).unwrap();
    let mut again = Catalogs::new();
    let steps = again.membership.restore(&name(A), &records);
    let words = again.carry_out(&steps);
    assert_eq!(words, ["add one.test. a.catalog.", "add two.test. a.catalog."]);
    let member = again.membership.member(&name("one.test")).unwrap();
    assert_eq!(
        (&*member.id, groups(member)),
        (&b"m1"[..], vec!["internal".into(), "signed".into()])
    );
    // What has changed meanwhile is found without the former version.
    let later = zone(A, &[("m9.zones", Type::PTR, "one.test.")]);
    let steps = again.take(A, &later).unwrap();
    assert_eq!(steps, ["reset one.test. a.catalog.", "remove two.test."]);
}
