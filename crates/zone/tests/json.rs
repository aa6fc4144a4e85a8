//! JSON zones: what they mean, what is said of wrong ones, and that they are master files by
//! another name.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use zonda_wire::Name;
use zonda_zone::file::{self, Options};
use zonda_zone::{JsonZone, Records, json, print};

/// Records of every type, each with its wire form; the test of record data explains them.
const TABLE: &str = include_str!("../../wire/tests/rdata.txt");

/// Data in both forms.
const DATA: &str = include_str!("json/data.txt");

/// Records that cannot be read.
const WRONG_RECORDS: &str = include_str!("json/wrong-records.txt");

/// Records in canonical print.
fn printed(records: &Records) -> String {
    let mut text = Vec::new();
    print::print(records, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// A master file's records.
fn master(text: &str) -> Records {
    let origin = "example.org".parse().unwrap();
    let options = Options::default();
    let (records, diagnostics) =
        file::read_text(text.as_bytes(), Path::new("text"), &origin, &options);
    assert!(!diagnostics.has_errors(), "{diagnostics}{text}");
    records
}

/// A JSON file's zones, and what was said of them.
fn read(text: &str) -> (Vec<JsonZone>, String) {
    let file = json::read_text(text.as_bytes(), Path::new("z"));
    (file.zones, file.diagnostics.to_string())
}

/// Zones as JSON.
fn written(zones: &[JsonZone]) -> String {
    let mut text = Vec::new();
    json::write(zones, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Records as a JSON zone and back.
fn through_json(name: &Name, records: Records) -> (String, Records) {
    let zone = JsonZone { name: name.clone(), sha: None, records, errors: None };
    let text = written(&[zone]);
    let (mut zones, said) = read(&text);
    assert_eq!(said, "", "{text}");
    assert_eq!(zones[0].name, *name);
    (text, zones.remove(0).records)
}

#[test]
fn a_file_of_erldns_loads_as_it_is_and_warnings_say_what_is_not_used() {
    let (zones, said) = read(include_str!("json/erldns.json"));
    let names: Vec<String> = zones.iter().map(|zone| zone.name.to_string()).collect();
    assert_eq!(names, ["example.com.", "example-dnssec0.com."]);
    assert!(zones[0].sha.as_deref().is_some_and(|sha| sha.starts_with("10ea56ad")));
    assert_eq!(printed(&zones[0].records), include_str!("json/erldns.zone"));
    assert_eq!(said, include_str!("json/erldns.txt"));
}

#[test]
fn every_type_goes_through_json_and_back_and_prints_the_same() {
    let origin: Name = "example.org".parse().unwrap();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let (text, _) = line.split_once('\t').unwrap();
        let records = master(&format!("x.example.org. 7 {text}\n"));
        let before = printed(&records);
        let (json, records) = through_json(&origin, records);
        assert_eq!(printed(&records), before, "{json}");
        assert_eq!(printed(&master(&before)), before, "{text}");
    }
}

#[test]
fn data_that_json_cannot_say_goes_by_number_and_base_64() {
    let origin: Name = "example.org".parse().unwrap();
    for (text, json) in [
        (r#"TXT "\255""#, r#""type": "16", "ttl": 7, "data": {"data": "Af8="}"#),
        ("TYPE65280 \\# 1 ab", r#""type": "65280", "ttl": 7, "data": {"data": "qw=="}"#),
        ("TYPE65280 \\# 0", r#""type": "65280", "ttl": 7, "data": {"data": ""}"#),
        ("NSEC3 1 3 0 - 00", r#""type": "50", "ttl": 7, "data": {"data": "AQMAAAABAA=="}"#),
    ] {
        let records = master(&format!("x 7 {text}\n"));
        let before = printed(&records);
        let (written, records) = through_json(&origin, records);
        assert!(written.contains(json), "{written}");
        assert_eq!(printed(&records), before);
    }
}

#[test]
fn data_is_written_as_erldns_writes_it() {
    for line in DATA.lines().filter(|line| !line.starts_with('#')) {
        let (text, json) = line.split_once('\t').unwrap();
        let origin: Name = "example.org".parse().unwrap();
        let records = master(&format!("x 7 {text}\n"));
        let before = printed(&records);
        let (written, records) = through_json(&origin, records);
        let data = written.lines().nth(2).unwrap().split_once("\"data\": ").unwrap().1;
        assert_eq!(data.strip_suffix('}').unwrap(), json, "{text}");
        assert_eq!(printed(&records), before);
    }
}

/// A zone with one record, whose members are given.
fn one(members: &str) -> String {
    format!("{{\"name\": \"example.org\", \"records\": [\n{{{members}}}]}}")
}

/// Asserts what becomes of the data of a record: its printed form.
#[track_caller]
fn means(rtype: &str, data: &str, printed_data: &str) {
    let text = one(&format!(r#""name": "x", "type": "{rtype}", "ttl": 7, "data": {data}"#));
    let (zones, said) = read(&text);
    assert_eq!(said, "", "{text}");
    let found = printed(&zones[0].records);
    assert_eq!(found.split('\t').nth(4), Some(&*format!("{printed_data}\n")), "{text}");
}

#[test]
fn data_may_be_given_in_more_ways_than_it_is_written() {
    means("NS", r#"{"dname": ""}"#, ".");
    means("1", r#"{"data": "wAACAQ=="}"#, "192.0.2.1");
    means(
        "DNSKEY",
        r#"{"flags":256,"protocol":3,"alg":13,"public_key":"AAAA","keytag":1}"#,
        "256 3 13 AAAA",
    );
    for rtype in ["DNSKEY", "CDNSKEY"] {
        let data =
            |alg, key| format!(r#"{{"flags":256,"protocol":3,"alg":{alg},"public_key":"{key}"}}"#);
        // An RSA key as dns_erlang writes it, and as it goes on the wire.
        let (erlang, wire) = ("AAAAAwEAAQAAAAKrzQ==", "AwEAAavN");
        means(rtype, &data(8, erlang), &format!("256 3 8 {wire}"));
        means(rtype, &data(8, wire), &format!("256 3 8 {wire}"));
        means(rtype, &data(13, erlang), &format!("256 3 13 {erlang}"));
    }
    means("NSEC", r#"{"next_dname": "b", "types": [1, "MX", "TYPE65280"]}"#, "b. A MX TYPE65280");
    means(
        "RRSIG",
        r#"{"type_covered":1,"alg":"RSASHA256","labels":0,"original_ttl":1,
        "expiration":"20231114221320","inception":0,"keytag":1,"signers_name":".",
        "signature":"AAAA"}"#,
        "A 8 0 1 20231114221320 19700101000000 1 . AAAA",
    );
    means(
        "NSEC3",
        r#"{"hash_alg":1,"flags":1,"iterations":0,"salt":"","hash":"00","types":[]}"#,
        "1 1 0 - 00",
    );
    means("IPSECKEY", r#"{"precedence":1,"alg":2,"gateway":"192.0.2.1"}"#, "1 1 2 192.0.2.1");
    means("IPSECKEY", r#"{"precedence":1,"alg":2,"gateway":"g.example"}"#, "1 3 2 g.example.");
    means("SVCB", r#"{"svc_priority":0,"target_name":"a"}"#, "0 a.");
}

/// Asserts what is said of a text, and how many records are read nevertheless.
#[track_caller]
fn says(text: &str, records: usize, expected: &str) {
    let (zones, said) = read(text);
    assert_eq!(said, expected, "{text}");
    assert_eq!(zones.iter().map(|zone| zone.records.len()).sum::<usize>(), records, "{text}");
}

#[test]
fn an_error_names_line_column_and_the_way_to_the_value() {
    says("", 0, "z:1:1: error: not JSON: EOF while parsing a value\n");
    says("[{\n\"name\": }]", 0, "z:2:9: error: not JSON: expected value\n");
    says("7", 0, "z:1:1: error: expected a list of zones, or a zone\n");
    says("[7]", 0, "z:1:2: error: [0]: expected an object\n");
    says(r#"{"records": []}"#, 0, "z:1:1: error: expected a member \"name\" in this object\n");
    says(
        r#"{"name": "a..b"}"#,
        0,
        "z:1:10: error: name: the name has an empty label (two dots in a row, or a leading dot)\n",
    );
    says(r#"{"name": "a", "records": {}}"#, 0, "z:1:26: error: records: expected a list\n");
    says(
        r#"[{"name": "a", "records": [], "owner": 1}]"#,
        0,
        "z:1:40: warning: [0].owner: unknown here, and ignored\n",
    );
}

#[test]
fn reading_goes_on_behind_a_wrong_record() {
    let record = |rest: &str| format!(r#"{{"name": "x", "ttl": 1, {rest}}}"#);
    for line in WRONG_RECORDS.lines().filter(|line| !line.starts_with('#')) {
        let (rest, said) = line.split_once('\t').unwrap();
        let good = record(r#""type": "A", "data": {"ip": "192.0.2.1"}"#);
        let text = format!("{{\"name\": \"a\", \"records\": [\n{}, {good}]}}", record(rest));
        says(&text, 1, &format!("z:2{said}\n"));
    }
}

#[test]
fn a_record_of_an_unknown_type_is_left_out_and_keeps_no_zone_from_being_whole() {
    let alias = r#"{"name": "a", "type": "POOL", "ttl": 60, "data": {"dname": "b.example"}}"#;
    let ns = r#"{"name": "a", "type": "NS", "ttl": 60, "data": {"dname": "ns.example"}}"#;
    let text = format!(r#"[{{"name": "a", "records": [{alias}, {ns}]}}]"#);
    let file = json::read_text(text.as_bytes(), Path::new("z"));
    assert_eq!((file.zones[0].records.len(), &file.zones[0].errors), (1, &None));
    let said = "z:1:50: warning: [0].records[0].type: unknown here, and the record is left out: \
                expected a type such as \"AAAA\", or its number (a.)\n";
    assert_eq!(file.diagnostics.to_string(), said);
}

#[test]
fn unknown_members_are_warned_about_and_the_record_is_kept() {
    let members =
        r#""name": "x", "type": "A", "ttl": 1, "id": 7, "data": {"ip": "192.0.2.1", "port": 1}"#;
    says(
        &one(members),
        1,
        "z:2:83: warning: records[0].data.port: unknown here, and ignored (x. A)\n\
         z:2:44: warning: records[0].id: unknown here, and ignored (x. A)\n",
    );
}

#[test]
fn places_are_right_in_whatever_order_they_are_told() {
    let members = "\"name\": \"x\",\n\"id\": 7,\n\"type\": \"TXT\", \"ttl\": 1,\n\
                   \"data\": {\n\"port\": 1,\n\"txts\": [\"a\"]},\n \"more\": 2";
    says(
        &one(members),
        1,
        "z:6:9: warning: records[0].data.port: unknown here, and ignored (x. TXT)\n\
         z:8:10: warning: records[0].more: unknown here, and ignored (x. TXT)\n\
         z:3:7: warning: records[0].id: unknown here, and ignored (x. TXT)\n",
    );
}

#[test]
fn data_and_objects_have_bounds() {
    let text = "x".repeat(255);
    let strings = vec![format!("\"{text}\""); 257].join(",");
    let members =
        format!(r#""name": "x", "type": "TXT", "ttl": 1, "data": {{"txts": [{strings}]}}"#);
    let said = "z:2:48: error: records[0].data: record data has at most 65535 octets (x. TXT)\n";
    says(&one(&members), 0, said);
    let members: Vec<String> = (0..101).map(|number| format!("\"{number}\": 0")).collect();
    let said = "z:2:1: error: records[0]: expected at most 100 members\n";
    says(&one(&members.join(",")), 0, said);
}

#[test]
fn text_that_is_not_utf8_is_refused_at_its_place() {
    let file = json::read_text(b"[\n \xff]", Path::new("z"));
    assert!(file.zones.is_empty());
    assert_eq!(file.diagnostics.to_string(), "z:2:2: error: the text is not UTF-8 from here on\n");
}

#[test]
fn an_error_belongs_to_its_zone_or_to_the_file() {
    let record = r#"{"name": "b", "type": "A", "ttl": 1, "data": {"ip": "x"}}"#;
    let text = format!(
        r#"[{{"name": "a", "records": []}}, {{"name": "b", "records": [{record}, {record}]}},
            {{"records": []}}, {{"name": "c", "records": 1}}]"#
    );
    let file = json::read_text(text.as_bytes(), Path::new("z"));
    let zones = file.zones.iter();
    let counts = zones.map(|zone| zone.errors.as_ref().map_or(0, |errors| errors.count));
    assert_eq!(counts.collect::<Vec<_>>(), [0, 2, 1]);
    let of_file = file.errors.unwrap();
    assert_eq!(of_file.count, 1);
    assert!(of_file.first.to_string().contains("[2]: expected a member"), "{}", of_file.first);
    assert_eq!(file.diagnostics.error_count(), 4);
}

#[test]
fn the_sha_of_a_zone_is_kept() {
    let (zones, _) = read(r#"[{"name": "a", "sha": "x\"y", "records": []}]"#);
    let (zones, _) = read(&written(&zones));
    assert_eq!(zones[0].sha.as_deref(), Some("x\"y"));
}
