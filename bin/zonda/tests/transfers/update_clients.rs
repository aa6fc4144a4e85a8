//! nsupdate and knsupdate as clients that change zones.

use crate::primary::{KEY, Primary, client, key_argument};
use std::io::Write;
use std::net::SocketAddr;
use std::process::Stdio;
use zonda_testkit::process::{bounded, has_required, required};

/// The zone of all tests.
pub const ZONE: &str = "$TTL 60\n@ SOA ns host 7 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
    www A 192.0.2.2\nwww TXT \"text\"\nalias CNAME www\n";

/// A server whose zone `up.test` this address and the key may change, and `keyed.test` the key.
fn primary() -> Primary {
    let keyed = format!("from = \"key {}\"", KEY.0);
    let zones = [
        ("up.test", ZONE, "update = [{ from = [\"127.0.0.1\"], names = \"zone\" }]"),
        ("keyed.test", ZONE, &*format!("update = [{{ {keyed}, names = \"zone\" }}]")),
        ("closed.test", ZONE, "writable = true"),
    ];
    Primary::start_with(&zones, "")
}

/// What a program prints that is given lines to send to a server, and whether it succeeds.
fn send(program: &str, primary: &Primary, options: &[&str], lines: &[&str]) -> (String, bool) {
    send_to(program, primary.address, options, lines)
}

/// What a program prints that is given lines to send to a server at an address, and whether it
/// succeeds.
pub fn send_to(
    program: &str,
    address: SocketAddr,
    options: &[&str],
    lines: &[&str],
) -> (String, bool) {
    let mut command = bounded(required(program).unwrap());
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let server = format!("server 127.0.0.1 {}", address.port());
    let script = [&[&*server], lines, &["send", "answer", ""]].concat().join("\n");
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let is_doubted = said.contains("TSIG error") || said.contains("verif");
    (said, output.status.success() && !is_doubted)
}

/// The records of a name and type, as dig prints them.
fn short(primary: &Primary, name: &str, rtype: &str) -> String {
    let said = client("dig", primary.address, &["+short", "+norec", name, rtype]);
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    lines.join(" ")
}

/// Changes zones by a program, with and without a key, over UDP and TCP.
fn check(program: &str) {
    if !has_required(&[program]) {
        return;
    }
    let primary = primary();
    let key = key_argument();
    // `-v` is TCP to both.
    for (number, options) in
        [&[][..], &["-v"], &["-y", &key], &["-y", &key, "-v"]].into_iter().enumerate()
    {
        let zone = if number < 2 { "up.test" } else { "keyed.test" };
        let (new, data) = (format!("n{number}.{zone}."), format!("192.0.2.{}", 100 + number));
        let lines = [
            &*format!("zone {zone}."),
            &*format!("prereq nxdomain {new}"),
            &*format!("update add {new} 60 A {data}"),
            &*format!("update add {new} 60 TXT \"two words\""),
        ];
        let (said, is_done) = send(program, &primary, options, &lines);
        assert!(is_done && said.contains("NOERROR"), "{options:?}: {said}");
        assert_eq!(short(&primary, &new, "A"), data);
        assert_eq!(short(&primary, &new, "TXT"), "\"two words\"");
        let (said, is_done) = send(program, &primary, options, &lines);
        assert!(!is_done && said.contains("YXDOMAIN"), "{options:?}: {said}");
        let lines = [
            &*format!("zone {zone}."),
            &*format!("prereq yxrrset {new} A {data}"),
            &*format!("prereq nxrrset {new} AAAA"),
            &*format!("update delete {new} TXT"),
            &*format!("update add {new} 60 A 192.0.2.99"),
            &*format!("update delete {new} A {data}"),
        ];
        let (said, is_done) = send(program, &primary, options, &lines);
        assert!(is_done, "{options:?}: {said}");
        assert_eq!(short(&primary, &new, "A"), "192.0.2.99");
        let lines = [&*format!("zone {zone}."), &*format!("update delete {new}")];
        let (said, is_done) = send(program, &primary, options, &lines);
        assert!(is_done, "{options:?}: {said}");
        assert_eq!(short(&primary, &new, "ANY"), "");
    }
    let soa = short(&primary, "up.test", "SOA");
    assert!(
        soa.contains(" 13 "),
        "three changes of two rounds, and the serial rose with each: {soa}"
    );
}

#[test]
fn real_peers_nsupdate_changes_zones_with_and_without_a_key_over_udp_and_tcp() {
    check("nsupdate");
}

#[test]
fn real_peers_knsupdate_changes_zones_with_and_without_a_key_over_udp_and_tcp() {
    check("knsupdate");
}

#[test]
fn real_peers_are_refused_what_they_have_no_right_to_and_can_verify_that() {
    if !has_required(&["nsupdate", "knsupdate"]) {
        return;
    }
    let primary = primary();
    let key = key_argument();
    let add =
        |zone: &str| [format!("zone {zone}."), format!("update add new.{zone}. 60 A 192.0.2.7")];
    for program in ["nsupdate", "knsupdate"] {
        for (zone, options) in
            [("keyed.test", &[][..]), ("closed.test", &[]), ("closed.test", &["-y", &key])]
        {
            let lines = add(zone);
            let lines = [&*lines[0], &*lines[1]];
            let (said, is_done) = send(program, &primary, options, &lines);
            assert!(!is_done && said.contains("REFUSED"), "{program} {zone}: {said}");
            assert!(!said.contains("verif"), "{said}");
            assert_eq!(short(&primary, &format!("new.{zone}"), "A"), "");
        }
    }
    assert_eq!(primary.metric("zonda_queries_total{reason=\"update_refused\"}"), 6.0);
}

#[test]
fn real_peers_with_a_wrong_signature_get_notauth_with_the_error_of_it() {
    if !has_required(&["nsupdate", "knsupdate"]) {
        return;
    }
    let primary = primary();
    let lines = ["zone keyed.test.", "update add new.keyed.test. 60 A 192.0.2.7"];
    for (key, error) in [
        (format!("hmac-sha256:{}:d3Jvbmc=", KEY.0), "BADSIG"),
        (format!("hmac-sha256:unknown.example:{}", KEY.1), "BADKEY"),
        (format!("hmac-sha512:{}:{}", KEY.0, KEY.1), "BADKEY"),
    ] {
        let (said, is_done) = send("nsupdate", &primary, &["-y", &key], &lines);
        assert!(!is_done && said.contains("NOTAUTH") && said.contains(error), "{key}: {said}");
        let (said, is_done) = send("knsupdate", &primary, &["-y", &key], &lines);
        assert!(!is_done, "{key}: {said}");
    }
    assert_eq!(short(&primary, "new.keyed.test", "A"), "");
    assert_eq!(primary.metric("zonda_queries_total{reason=\"bad_signature\"}"), 2.0);
    assert_eq!(primary.metric("zonda_updates_total{result=\"changed\"}"), 0.0);
}

#[test]
fn real_peers_nsupdate_finds_the_zone_of_a_name_by_itself() {
    if !has_required(&["nsupdate"]) {
        return;
    }
    let primary = primary();
    let (said, is_done) =
        send("nsupdate", &primary, &[], &["update add a.b.up.test. 60 A 192.0.2.7"]);
    assert!(is_done, "{said}");
    assert_eq!(short(&primary, "a.b.up.test", "A"), "192.0.2.7");
}
