//! Catalogs that Zonda makes of its zones.

use crate::primary::{Primary, client, records, wait_until};
use std::fs;

/// The text of each zone.
const ZONE: &str = "$TTL 60\n@ SOA ns host 7 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n";
/// The section of the catalog.
const CATALOG: &str = "[[zone]]\nname = \"c.test\"\ntransfer = { to = [\"127.0.0.1\"] }\n\
                       [zone.members]\n";

/// A primary of zones, each with the place that it has in the catalog, and of the catalog.
fn primary(zones: &[(&str, &str)], more: &str) -> Primary {
    let keys: Vec<(&str, String)> =
        zones.iter().map(|(name, group)| (*name, format!("catalog = \"c.test{group}\""))).collect();
    let zones: Vec<_> = keys.iter().map(|(name, keys)| (*name, ZONE, &**keys)).collect();
    Primary::start_with(&zones, &format!("{CATALOG}{more}"))
}

/// What the catalog lists: each zone with its id, and its groups behind it, in order of the zones.
fn listed(primary: &Primary) -> Vec<(String, String, Vec<String>)> {
    let all = records(primary.address, "c.test", &[]);
    let fields: Vec<Vec<&str>> = all.iter().map(|it| it.split_whitespace().collect()).collect();
    let of_type = |rtype: &'static str| fields.iter().filter(move |it| it.get(3) == Some(&rtype));
    let mut zones: Vec<_> = of_type("PTR")
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
