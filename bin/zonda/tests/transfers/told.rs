//! What the log and commands tell of transfers, each fact once.

use crate::clients::{large, question};
use crate::commands::{done, json};
use crate::decisions::{AXFR, EACH_SECOND, IXFR, Scripted};
use crate::primaries::Secondary;
use crate::primary::{KEY, PLAIN, Primary, key_argument, wait_until};
use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering::SeqCst;
use zonda_testkit::{Question, ask};

/// Timers with which a zone is checked when it is told to be.
const SELDOM: [u32; 3] = [3600, 3600, 36_000];
/// The socket of commands.
const ADMIN: &str = "[admin]\nsocket = \"admin.sock\"\n";

/// The lines of a log with these words.
fn lines<'l>(log: &'l str, words: &str) -> Vec<&'l str> {
    log.lines().filter(|line| line.contains(words)).collect()
}

/// Checks that the only line of a log with these words has facts.
#[track_caller]
fn check_line(log: &str, words: &str, facts: &[&str]) {
    let found = lines(log, words);
    assert_eq!(found.len(), 1, "{words}: {log}");
    for fact in facts {
        assert!(found[0].contains(fact), "{fact} in {}", found[0]);
    }
}

#[test]
fn a_version_that_one_of_two_primaries_does_not_send_and_the_other_does_is_no_failure() {
    let refuses = Scripted::start("two.test", EACH_SECOND, |it| it.send_error(5));
    let sends = Scripted::start("two.test", EACH_SECOND, |it| it.send_zone());
    let server = Secondary::start(&(ADMIN.to_owned() + &refuses.section(&[&sends], "")));
    refuses.await_serial(&server, 1);
    let folder = server.folder.path();
    let said = done(folder, &["zone", "refresh", "two.test"]);
    assert!(said.contains("in step"), "{said}");
    assert_eq!(json(folder, &["zone", "show", "two.test"])["secondary"]["error"], Value::Null);
    sends.set_serial(2);
    refuses.set_serial(2);
    refuses.await_serial(&server, 2);
    let log = server.log();
    assert!(!log.contains("a zone was not refreshed"), "{log}");
    assert!(!log.contains("in step with a primary again"), "{log}");
    let primary = format!("primary={}", refuses.address);
    check_line(&log, "a primary was passed over", &["zone=two.test.", &primary, "REFUSED"]);
}

#[test]
fn an_outdated_primary_is_told_once_though_another_is_in_step() {
    let newer = Scripted::start("two.test", EACH_SECOND, |it| it.send_zone());
    let older = Scripted::start("two.test", EACH_SECOND, |it| it.send_zone());
    newer.set_serial(5);
    older.set_serial(3);
    let server = Secondary::start(&(ADMIN.to_owned() + &newer.section(&[&older], "")));
    newer.await_serial(&server, 5);
    let check = |serial: u32| {
        older.set_serial(serial);
        let checks = older.checks.load(SeqCst);
        wait_until("more checks", || older.checks.load(SeqCst) > checks + 2);
    };
    check(3);
    check(4);
    let shown = json(server.folder.path(), &["zone", "show", "two.test"]);
    let error = shown["secondary"]["primaries"].to_string();
    assert!(error.contains("it has serial 4, not greater than 5 here: it is outdated"), "{shown}");
    let (words, primary) = ("a primary was passed over", format!("primary={}", older.address));
    check_line(&server.log(), words, &["zone=two.test.", &primary, "it has serial 3"]);
    check(5);
    check(4);
    assert_eq!(lines(&server.log(), words).len(), 2, "it was in step meanwhile");
}

#[test]
fn a_transfer_from_a_primary_is_listed_with_what_has_come_of_it() {
    let script = Scripted::start("slow.test", SELDOM, |asked| match asked.serial {
        1 => asked.send_zone(),
        serial => {
            asked.send(&[asked.soa(serial), asked.a("one"), asked.a("two")]);
            asked.hang(60);
        }
    });
    let section = script.section(&[], "idle-timeout = \"50s\"\n");
    let server = Secondary::start(&(ADMIN.to_owned() + &section));
    script.await_serial(&server, 1);
    script.set_serial(7);
    script.notify(&server);
    let folder = server.folder.path();
    let running = || json(folder, &["transfer", "ls"])["from_primaries"][0].clone();
    wait_until("records have come", || running()["records"].as_u64() > Some(0));
    let one = running();
    assert_eq!((&one["asked"], &one["zone"]), (&"IXFR".into(), &"slow.test.".into()));
    assert_eq!((&one["from"], &one["serial"], &one["key"]), (&1.into(), &7.into(), &Value::Null));
    assert_eq!((&one["messages"], &one["records"]), (&1.into(), &3.into()));
    assert!(one["bytes"].as_u64() > Some(100), "{one}");
    let said = done(folder, &["transfer", "ls"]);
    let line = said.lines().find(|line| line.starts_with("slow.test.")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((words[4], words[6]), ("7", "3"), "serial and records: {said}");
    assert!(!line.contains('–'), "{said}");
}

#[test]
fn one_line_tells_each_transfer_from_a_primary_also_one_that_fails_like_the_one_before() {
    let script = Scripted::start("told.test", SELDOM, |asked| match (asked.serial, asked.qtype) {
        (1, _) | (3, AXFR) => asked.send_zone(),
        (3, _) => asked.send_error(2),
        (serial, _) => asked.send(&[asked.soa(serial), asked.a("www"), asked.soa(9)]),
    });
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    let primary = format!("primary={}", script.address);
    let taken = "a zone was transferred from its primary";
    check_line(
        &server.log(),
        taken,
        &[
            "zone=told.test.",
            &primary,
            "transport=\"tcp\"",
            "kind=\"AXFR\"",
            "serial=1",
            "records_of_zone=3",
            "messages=1",
            "records=4",
            "octets=",
            "seconds=",
        ],
    );
    script.set_serial(2);
    let failed = "a zone was not transferred from its primary";
    for times in 1..3 {
        script.notify(&server);
        wait_until("another line", || lines(&server.log(), failed).len() == times);
    }
    let log = server.log();
    for fact in [
        "WARN",
        "zone=told.test.",
        &primary,
        "transport=\"tcp\"",
        "kind=\"AXFR\"",
        "from=1",
        "serial=2",
        "messages=1",
        "records=3",
        "octets=",
        "seconds=",
        "fallback=\"the SOA records at the beginning and the end differ\"",
        "error=\"the SOA records at the beginning and the end differ\"",
    ] {
        lines(&log, failed).iter().for_each(|line| assert!(line.contains(fact), "{fact}: {line}"));
    }
    assert_eq!(lines(&log, "a zone was not refreshed").len(), 1, "its state changes once: {log}");
    script.set_serial(3);
    script.notify(&server);
    script.await_serial(&server, 3);
    let log = server.log();
    let last = lines(&log, taken).pop().unwrap();
    for fact in ["from=1", "serial=3", "kind=\"AXFR\"", "the primary answers SERVFAIL"] {
        assert!(last.contains(fact), "{fact} in {last}");
    }
    assert!(last.contains("fallback="), "{last}");
    assert!(script.count(IXFR) > 2);
}

#[test]
fn the_line_of_a_signed_transfer_names_the_key_on_either_side() {
    let keyed = format!("\"127.0.0.1 key {}\"", KEY.0);
    let primary = Primary::start(&[("keyed.test", PLAIN, &keyed)], "");
    let server = Secondary::start(&format!(
        "[[key]]\nname = \"{0}\"\nsecret = \"{1}\"\n[[zone]]\nname = \"keyed.test\"\n\
         [zone.secondary]\nfrom = [\"{2} key {0}\"]\n",
        KEY.0, KEY.1, primary.address
    ));
    wait_until("the zone", || server.serial("keyed.test") == Some(7));
    let key = format!("key=\"{}.\"", KEY.0);
    check_line(&server.log(), "a zone was transferred from its primary", &[&key]);
    wait_until("the line", || primary.log().contains("a zone was transferred"));
    let facts = ["zone=keyed.test.", "peer=127.0.0.1:", &key, "asked=AXFR", "sent=\"zone\""];
    check_line(&primary.log(), "a zone was transferred", &facts);
}

/// A version of a zone of fifty texts: each version has other ones in eighteen of them.
fn texts(serial: u32) -> String {
    let head = format!("$TTL 60\n@ SOA ns host {serial} 7200 3600 1209600 60\n@ NS ns\n");
    let text = |number: u32| {
        let changed_by = 8 + number / 18;
        let of_version = if changed_by <= serial { changed_by } else { 7 };
        format!("t{number} TXT \"{of_version} {}\"\n", "x".repeat(200))
    };
    (0..50).map(text).fold(head + "ns A 192.0.2.1\n", |zone, text| zone + &text)
}

/// What dig has a server log that asks for changes of a zone since a version.
fn line_of(primary: &Primary, zone: &str, from: u32) -> String {
    let words = "a zone was transferred";
    let before = lines(&primary.log(), words).len();
    primary.ask("dig", &[zone, &format!("IXFR={from}")]);
    wait_until("the line", || lines(&primary.log(), words).len() > before);
    lines(&primary.log(), words).pop().unwrap().to_owned()
}

#[test]
fn the_line_of_a_transfer_to_a_client_has_its_serial_and_why_changes_are_the_whole_zone() {
    let to = "transfer = { to = [\"127.0.0.1\"] }\n";
    let none = format!("{to}history = {{ versions = 0 }}");
    let expanded = format!("{to}alias-transfer = \"expanded\"");
    let zones = [
        ("some.test", PLAIN, to),
        ("none.test", PLAIN, &none),
        ("expanded.test", PLAIN, &expanded),
        ("short.test", &texts(7), to),
    ];
    let resolver = "[answers]\nalias-resolver = [\"127.0.0.1:1\"]\n"; // there are no such records
    let primary = Primary::start_with(&zones, resolver);
    for serial in [8, 9] {
        let text = PLAIN.replace("host 7 ", &format!("host {serial} "));
        let text = text.replace("192.0.2.4", &format!("192.0.2.{serial}0"));
        for number in 0..3 {
            primary.folder.write(&format!("{number}.zone"), &text);
        }
        primary.folder.write("3.zone", texts(serial));
        primary.reload();
    }
    let sent = line_of(&primary, "some.test", 8);
    for fact in [
        "zone=some.test.",
        "peer=127.0.0.1:",
        "key=\"none\"",
        "transport=\"tcp\"",
        "asked=IXFR",
        "sent=\"changes\"",
        "from=8",
        "serial=9",
        "messages=1",
        "records=6",
        "octets=",
        "seconds=",
    ] {
        assert!(sent.contains(fact), "{fact} in {sent}");
    }
    assert!(!sent.contains("fallback"), "{sent}");
    for (zone, from, reason) in [
        ("some.test", 3, "the history does not reach back to the client's version"),
        ("none.test", 7, "no former version is kept"),
        ("expanded.test", 7, "ALIAS records are expanded"),
        ("short.test", 7, "the changes are longer than the zone"),
    ] {
        let sent = line_of(&primary, zone, from);
        let facts = [&format!("from={from}"), &format!("fallback=\"{reason}\"")];
        for fact in facts.into_iter().map(String::as_str).chain(["sent=\"zone\"", "serial=9"]) {
            assert!(sent.contains(fact), "{fact} in {sent}");
        }
    }
}

#[test]
fn one_line_tells_each_transfer_that_a_client_is_refused_or_that_is_one_too_many() {
    let large = large();
    let zones =
        [("large.test", &*large, "\"127.0.0.1\""), ("closed.test", PLAIN, "\"192.0.2.0/24\"")];
    let primary = Primary::start(&zones, "[transfers]\nat-once = 1\n");
    let mut idle = TcpStream::connect(primary.address).unwrap();
    idle.write_all(&question("large.test")).unwrap();
    let running = || primary.metric("zonda_transfers_running");
    wait_until("the transfer begins", || running() == 1.0);
    // The rights come before the number that may run: a client without them is told so.
    let said = primary.ask("kdig", &["closed.test", "AXFR", "-y", &key_argument()]);
    assert!(said.contains("REFUSED"), "{said}");
    let said = primary.ask("kdig", &["large.test", "AXFR"]);
    assert!(said.contains("SERVFAIL"), "{said}");
    let over_udp = ask(primary.address, &Question::new("closed.test", "AXFR")).unwrap();
    assert_eq!(over_udp.rcode_text(), "REFUSED", "which is only counted");
    let (log, words) = (primary.log(), "a transfer was refused");
    let key = format!("key=\"{}.\"", KEY.0);
    let found = lines(&log, words);
    assert_eq!(found.len(), 2, "{log}");
    for (line, facts) in found.iter().zip([
        ["zone=closed.test.", "asked=AXFR", &key, "no rule of the zone's `transfer`"],
        ["zone=large.test.", "asked=AXFR", "key=\"none\"", "`at-once` of [transfers]"],
    ]) {
        for fact in facts.iter().chain(&["WARN", "peer=127.0.0.1:", "transport=\"tcp\""]) {
            assert!(line.contains(fact), "{fact} in {line}");
        }
    }
    // Clients without the right take no place.
    drop(idle);
    wait_until("it has ended", || running() == 0.0);
    for _ in 0..3 {
        primary.ask("kdig", &["closed.test", "AXFR"]);
    }
    let said = primary.ask("dig", &["large.test", "AXFR"]);
    assert!(said.contains("XFR size: 60018 records"), "{}", said.len());
}
