//! Zone files with LUA records, and what is made of them.
#![allow(clippy::unwrap_used)]

use crate::memory::Memory;
use crate::{Import, powerdns};
use std::path::PathBuf;

fn import_zone(zone: &str) -> Result<Import, String> {
    let files = [("/z", zone)];
    let import = powerdns::import(&[PathBuf::from("/z")], None, &mut Memory(&files));
    import.map_err(|error| error.to_string())
}

/// Imports the zone example.com with these records.
fn import(records: &str) -> Import {
    import_zone(&format!("$ORIGIN example.com.\n$TTL 60\n@ SOA a b 1 2 3 4 5\n{records}\n"))
        .unwrap()
}

/// Imports an A record with this code; returns the lines of its pools behind their names, or why it
/// is lost.
fn pool(code: &str) -> Result<Vec<String>, String> {
    let import = import(&format!("w LUA A \"{code}\""));
    if let [line] = &import.report[..]
        && import.toml.lines().all(|line| line != "[[pool]]")
    {
        return Err(line.why.clone());
    }
    let lines = import.toml.lines().skip_while(|line| *line != "[[pool]]");
    let lines = lines.take_while(|line| *line != "[[zone]]");
    let bare = |line: &str| line.split("  #").next().unwrap().trim().to_owned();
    let is_shown = |line: &&str| {
        ["choose", "    {", "check", "when", "answers"].iter().any(|it| line.starts_with(it))
    };
    Ok(lines.filter(is_shown).map(bare).collect())
}

#[test]
fn functions_that_pick_have_no_check() {
    for (code, choose, answers) in [
        ("pickrandom({'192.0.2.1'})", "\"round-robin\"", "1"),
        ("pickrandomsample(3, {'192.0.2.1'})", "\"round-robin\"", "3"),
        ("pickhashed({'192.0.2.1'})", "\"hash\"", "1"),
        ("picknamehashed({{1, '192.0.2.1'}})", "\"hash-name\"", "1"),
        ("pickchashed({{1, '192.0.2.1'}})", "\"hash\"", "1"),
        ("pickwrandom({{1, '192.0.2.1'}})", "\"weighted\"", "1"),
        ("pickclosest({'192.0.2.1'})", "\"round-robin\"", "1"),
        ("all({'192.0.2.1'})", "\"round-robin\"", "\"all\""),
        ("'192.0.2.1'", "\"round-robin\"", "\"all\""),
        (";return {'192.0.2.1'}", "\"round-robin\"", "\"all\""),
    ] {
        let pool = pool(code).unwrap();
        assert_eq!(pool[0], format!("choose = [{choose}]"), "{code}");
        assert_eq!(pool[3], format!("answers = {answers}"), "{code}");
        assert_eq!(pool.len(), 4, "{code}: {pool:?}");
    }
}

#[test]
fn functions_that_check_have_the_defaults_of_powerdns() {
    let tcp = pool("ifportup(25, {'192.0.2.1'})").unwrap();
    let times = "interval = \"5s\", timeout = \"2s\", rise = 1, fall = 1 }";
    assert_eq!(tcp[2], format!("check = {{ tcp = 25, {times}"));
    let url = pool("ifurlup('http://a.example:81/x', {{'192.0.2.1'}}, {httpcode=204})").unwrap();
    let expected = format!(
        "check = {{ http = \"/x\", port = 81, host = \"a.example\", status = [\"204\"], {times}"
    );
    assert_eq!(url[2], expected);
}

#[test]
fn sets_of_addresses_come_one_after_the_other() {
    let code = "ifurlup('https://a.example/', {{'192.0.2.1', '192.0.2.2'}, {'192.0.2.3'}}, \
        {selector='hashed', backupSelector='hashed'})";
    let expected = [
        "choose = [\"failover\", \"hash\"]",
        "{ address = \"192.0.2.1\", priority = 1 },",
        "{ address = \"192.0.2.2\", priority = 1 },",
        "{ address = \"192.0.2.3\", priority = 2 },",
    ];
    assert_eq!(pool(code).unwrap()[..4], expected);
}

#[test]
fn without_any_address_that_is_up_there_may_be_no_answer() {
    let pool = pool("ifportup(25, {'192.0.2.1'}, {backupSelector='empty'})").unwrap();
    assert!(pool.contains(&"when-all-down = \"nodata\"".to_owned()), "{pool:?}");
}

#[test]
fn what_no_pool_can_stand_for_is_lost_with_the_reason() {
    for (code, expected) in [
        ("createForward()", "no pool stands for `createForward` with such arguments"),
        ("ifportup('25', {'192.0.2.1'})", "no pool stands for `ifportup` with such arguments"),
        ("ifportup(99999, {'192.0.2.1'})", "the port is above 65535"),
        ("ifportup(25, {'192.0.2.1'}, {selector='best'})", "there is no selector `best`"),
        ("ifurlup('ftp://a/', {'192.0.2.1'})", "the URL is none of HTTP"),
        ("pickrandom({})", "there are no values"),
        ("pickrandom({'2001:db8::1'})", "`2001:db8::1` is no data of type A"),
        ("pickrandom({pickrandom({'192.0.2.1'})})", "expected a list of texts"),
        ("pickwrandom({'192.0.2.1'})", "expected pairs of a weight and a text"),
        ("view({{'10.0.0.0/8'}})", "expected pairs of networks and values"),
        ("view({{{'10/8'}, {'192.0.2.1'}}})", "`10/8` is no network"),
        ("view({{{'::/0', '::/0'}, {'192.0.2.1'}}})", "a network stands in two places"),
        ("nil", "this is no answer"),
    ] {
        assert_eq!(pool(code), Err(expected.to_owned()), "{code}");
    }
}

#[test]
fn records_of_both_families_share_a_pool_where_they_are_alike() {
    let a = "w LUA A \"pickrandom({'192.0.2.1'})\"\n";
    let aaaa = "W LUA AAAA \"pickrandom({'2001:db8::1'})\"\n";
    for records in [format!("{a}{aaaa}"), format!("{aaaa}{a}")] {
        let toml = import(&records).toml;
        assert!(toml.contains("steer = { \"w A,AAAA\" = \"w.example.com\" }"), "{toml}");
    }
    let other = aaaa.replace("pickrandom", "pickhashed");
    let toml = import(&format!("{a}{other}")).toml;
    let expected = "{ \"w A\" = \"w.example.com\", \"w AAAA\" = \"w.example.com-aaaa\" }";
    assert!(toml.contains(expected), "{toml}");
}

#[test]
fn a_second_record_of_a_type_is_lost() {
    let import = import("w LUA A \"all({'192.0.2.1'})\"\nw LUA A \"all({'192.0.2.2'})\"");
    let lines: Vec<String> = import.report.iter().map(ToString::to_string).collect();
    let expected = "/z:5: lost: A: another LUA record of this name and type stands before it";
    assert_eq!(lines, [expected]);
}

#[test]
fn a_zone_whose_name_nothing_tells_is_an_error() {
    let error = import_zone("@ 60 SOA a b 1 2 3 4 5\n").unwrap_err();
    assert!(error.contains("the name of the zone is not known: write $ORIGIN"), "{error}");
    let error = import_zone("w 60 LUA A \"all({'192.0.2.1'})\"\n").unwrap_err();
    assert!(error.contains("the name of the zone is not known"), "{error}");
}

#[test]
fn several_zones_become_one_configuration() {
    let zone = |name: &str| format!("$ORIGIN {name}.\n@ 60 SOA a b 1 2 3 4 5\n");
    let (one, two) = (zone("example.com"), zone("example.net"));
    let files = [("/1", &*one), ("/2", &*two), ("/3", &*one)];
    let paths = ["/1", "/2", "/3"].map(PathBuf::from);
    let import = powerdns::import(&paths[..2], None, &mut Memory(&files)).unwrap();
    assert_eq!(import.files.len(), 2);
    let error = powerdns::import(&paths, None, &mut Memory(&files)).unwrap_err().to_string();
    assert_eq!(error, "/3:1:1: the zone example.com is given already, at /1:1");
}
