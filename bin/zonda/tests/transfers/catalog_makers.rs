//! Catalogs that Zonda makes of its zones.

use crate::primaries::Secondary;
use crate::primary::{Primary, client, records, wait_until};
use std::fs;

/// The text of each zone.
const ZONE: &str = "$TTL 60\n@ SOA ns host 7 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n";
/// The section of the catalog.
const CATALOG: &str = "[[zone]]\nname = \"c.test\"\ntransfer = { to = [\"127.0.0.1\"] }\n\
                       [zone.members]\n";

/// The clients that a zone is transferred to.
const TRANSFER: &str = "transfer = { to = [\"127.0.0.1\"] }";

/// A primary of zones, each with the place that it has in the catalog, and of the catalog.
fn primary(zones: &[(&str, &str)], more: &str) -> Primary {
    let keys: Vec<(&str, String)> = zones
        .iter()
        .map(|(name, group)| (*name, format!("catalog = \"c.test{group}\"\n{TRANSFER}")))
        .collect();
    let zones: Vec<_> = keys.iter().map(|(name, keys)| (*name, ZONE, &**keys)).collect();
    Primary::start_with(&zones, &format!("{CATALOG}{more}"))
}

/// What the catalog lists: each zone with its id, and its groups behind it, in order of the zones.
fn listed(primary: &Primary) -> Vec<(String, String, Vec<String>)> {
    listed_in(primary, "c.test")
}

/// What a catalog lists.
fn listed_in(primary: &Primary, catalog: &str) -> Vec<(String, String, Vec<String>)> {
    let all = records(primary.address, catalog, &[]);
    let fields: Vec<Vec<&str>> = all.iter().map(|it| it.split_whitespace().collect()).collect();
    let of_type = |rtype: &'static str| fields.iter().filter(move |it| it.get(3) == Some(&rtype));
    let mut zones: Vec<_> = of_type("PTR")
        .filter(|record| !record[0].starts_with("coo."))
        .map(|record| {
            let groups = of_type("TXT").filter(|it| *it[0] == format!("group.{}", record[0]));
            let groups = groups.map(|it| it[4].trim_matches('"').to_owned()).collect();
            (record[4].to_owned(), record[0].to_owned(), groups)
        })
        .collect();
    zones.sort();
    zones
}

/// The names of the zones that the catalog lists.
fn names(primary: &Primary) -> Vec<String> {
    listed(primary).into_iter().map(|(zone, ..)| zone).collect()
}

/// The serial of the catalog.
fn serial(primary: &Primary) -> u32 {
    let soa = client("dig", primary.address, &["+short", "c.test", "SOA"]);
    soa.split_whitespace().nth(2).unwrap_or_default().parse().unwrap_or_default()
}

/// Has the server read its configuration, in which a text stands for another.
fn change(primary: &Primary, from: &str, to: &str) {
    let path = primary.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).unwrap();
    primary.reload();
}

#[test]
fn a_catalog_follows_zones_that_come_and_go_and_change_their_groups() {
    let primary = primary(&[("one.test", ""), ("Two.test", " group signed")], "");
    wait_until("both are listed", || names(&primary) == ["one.test.", "two.test."]);
    let before = listed(&primary);
    assert_eq!((&before[0].2, &before[1].2), (&vec![], &vec!["signed".to_owned()]));
    let steps = [
        ("c.test group signed", "c.test group internal", "internal"),
        ("c.test group internal", "c.test", ""),
        (
            "name = \"Two.test\"\nfile = \"1.zone\"\ncatalog = \"c.test\"",
            "name = \"Two.test\"\nfile = \"1.zone\"\ncatalog = \"c.test group late\"",
            "late",
        ),
    ];
    for (from, to, group) in steps {
        let former = serial(&primary);
        change(&primary, from, to);
        let groups: Vec<String> =
            [group].iter().filter(|it| !it.is_empty()).map(|it| (*it).into()).collect();
        wait_until("the group has changed", || listed(&primary)[1].2 == groups);
        assert!(serial(&primary) > former, "secondaries see another version");
        assert_eq!(listed(&primary)[1].1, before[1].1, "the id stays");
    }
    fs::write(primary.folder.path().join("new.zone"), ZONE).unwrap();
    let new = "[[zone]]\nname = \"new.test\"\nfile = \"new.zone\"\ncatalog = \"c.test\"\n";
    change(&primary, CATALOG, &format!("{CATALOG}{new}"));
    wait_until("a zone comes", || names(&primary) == ["new.test.", "one.test.", "two.test."]);
    change(&primary, new, "");
    wait_until("a zone goes", || names(&primary) == ["one.test.", "two.test."]);
    assert_eq!(listed(&primary)[0], before[0]);
}

#[test]
fn no_zone_is_removed_from_a_catalog_while_a_directory_cannot_be_read_and_it_is_then() {
    let directory = "[[zone]]\ndirectory = \"zones\"\n";
    let primary = primary(&[("one.test", ""), ("two.test", "")], "");
    let zones = primary.folder.path().join("zones");
    fs::create_dir(&zones).unwrap();
    change(&primary, CATALOG, &format!("{CATALOG}{directory}"));
    wait_until("both are listed", || names(&primary) == ["one.test.", "two.test."]);
    fs::rename(&zones, primary.folder.path().join("elsewhere")).unwrap();
    let two = "[[zone]]\nname = \"two.test\"\nfile = \"1.zone\"\ncatalog = \"c.test\"\n";
    fs::write(primary.folder.path().join("new.zone"), ZONE).unwrap();
    let new = two.replace("two.test", "new.test").replace("1.zone", "new.zone");
    let path = primary.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(two, &new)).unwrap();
    let (is_done, said) = primary.try_reload();
    assert!(!is_done, "{said}");
    wait_until("a zone comes, and none goes", || {
        names(&primary) == ["new.test.", "one.test.", "two.test."]
    });
    fs::create_dir(&zones).unwrap();
    primary.reload();
    wait_until("the zone goes", || names(&primary) == ["new.test.", "one.test."]);
}

#[test]
fn a_catalog_whose_file_cannot_be_read_is_not_made_with_other_ids_and_comes_with_its_file() {
    let mut primary = primary(&[("one.test", "")], "");
    wait_until("the zone is listed", || names(&primary) == ["one.test."]);
    let (before, former) = (listed(&primary), serial(&primary));
    let file = primary.folder.path().join("state/members/c.test.secondary");
    let aside = primary.folder.path().join("aside");
    // A directory cannot be read as a file, whatever the rights of the server's user.
    fs::rename(&file, &aside).unwrap();
    fs::create_dir(&file).unwrap();
    primary.restart();
    wait_until("the log says why", || primary.log().contains("its file cannot be read"));
    assert_eq!(serial(&primary), 0, "the catalog is not served");
    let one = client("dig", primary.address, &["+short", "one.test", "SOA"]);
    assert!(one.contains(" 7 "), "its zones are: {one}");
    fs::remove_dir(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    wait_until("the catalog is served", || names(&primary) == ["one.test."]);
    assert_eq!((listed(&primary), serial(&primary)), (before, former));
}

/// The new owners of members of a catalog: the names of their records, and the catalogs.
fn owners(primary: &Primary, catalog: &str) -> Vec<(String, String)> {
    let all = records(primary.address, catalog, &[]);
    let fields = all.iter().map(|it| it.split_whitespace().collect::<Vec<_>>());
    let own = fields.filter(|it| it[0].starts_with("coo."));
    own.map(|it| (it[0].to_owned(), it[4].to_owned())).collect()
}

/// The section of another catalog, and how long the first one lists what moves there.
fn other_catalog(listed_for: &str) -> String {
    format!("ownership-change = \"{listed_for}\"\n{}", CATALOG.replace("c.test", "d.test"))
}

/// The keys of a zone in the first catalog, and in the other one.
const PLACES: [&str; 2] = ["catalog = \"c.test group signed\"", "catalog = \"d.test\""];

#[test]
fn a_zone_that_moves_to_another_catalog_keeps_its_id_and_the_former_one_tells_its_owner() {
    let mut primary =
        primary(&[("one.test", " group signed"), ("two.test", "")], &other_catalog("1d"));
    wait_until("both are listed", || names(&primary) == ["one.test.", "two.test."]);
    let before = listed(&primary);
    let id = before[0].1.trim_end_matches("zones.c.test.").to_owned();
    change(&primary, PLACES[0], PLACES[1]);
    wait_until("the other catalog lists it", || listed_in(&primary, "d.test").len() == 1);
    let (zone, own, groups) = listed_in(&primary, "d.test").remove(0);
    assert_eq!((&*zone, own, groups), ("one.test.", format!("{id}zones.d.test."), vec![]));
    let owner = [(format!("coo.{}", before[0].1), "d.test.".to_owned())];
    wait_until("the former one tells it", || owners(&primary, "c.test") == owner);
    assert_eq!(listed(&primary), before, "the former catalog lists it as it was");
    primary.crash();
    assert_eq!(owners(&primary, "c.test"), owner, "also after a crash");
    // Back again, so that the other one tells the first as the owner.
    change(&primary, PLACES[1], PLACES[0]);
    wait_until("the first is its owner again", || owners(&primary, "c.test").is_empty());
    let owner = [(format!("coo.{id}zones.d.test."), "c.test.".to_owned())];
    wait_until("and the other one tells it", || owners(&primary, "d.test") == owner);
    // A zone that no catalog is to list goes at once.
    change(&primary, PLACES[0], "");
    wait_until("it is gone", || names(&primary) == ["two.test."]);
    wait_until("everywhere", || listed_in(&primary, "d.test").is_empty());
    assert_eq!(owners(&primary, "d.test"), []);
}

#[test]
fn a_secondary_of_both_catalogs_keeps_a_zone_that_moves_from_one_to_the_other() {
    let zones = [("one.test", " group signed"), ("two.test", "")];
    let primary = primary(&zones, &other_catalog("5s"));
    let from = primary.address;
    let section = |name: &str| {
        format!(
            "[[zone]]\nname = \"{name}\"\naccess = \"refuse any\"\n[zone.secondary]\n\
             from = [\"{from}\"]\nrefresh-min = \"1s\"\nrefresh-max = \"1s\"\n[[catalog]]\n\
             name = \"{name}\"\n"
        )
    };
    let config = section("c.test") + &section("d.test");
    let secondary = Secondary::start(&config);
    wait_until("the zone is served", || secondary.serial("one.test") == Some(7));
    let transfers = || secondary.log().matches("from its primary zone=one.test").count();
    let before = transfers();
    assert!(before > 0, "{}", secondary.log());
    change(&primary, PLACES[0], PLACES[1]);
    wait_until("the former catalog does not list it any more", || names(&primary) == ["two.test."]);
    std::thread::sleep(std::time::Duration::from_secs(3)); // the secondary sees that as well
    assert_eq!(secondary.serial("one.test"), Some(7));
    assert_eq!(transfers(), before, "it is not transferred anew: {}", secondary.log());
}
