//! Files that are deployed with no greater serial than their zone had: what is logged, and what
//! secondaries and clients of changes get.

use crate::commands::done;
use crate::primaries::{Secondary, zone};
use crate::primary::{Primary, client, records, wait_until};
use crate::update_clients::ZONE;
use std::fs;
use std::path::Path;

/// Keys of a zone that this address may change and transfer.
const OPEN: &str =
    "update = [{ from = \"127.0.0.1\", names = \"zone\" }]\ntransfer = { to = [\"127.0.0.1\"] }";
/// Records that make a zone one that is signed elsewhere.
const SIGNED: &str = "@ DNSKEY 256 3 15 AAAA\n@ RRSIG SOA 15 2 60 20300101000000 20200101000000 1 \
    up.test. AAAA\n";

/// A primary of `up.test` whose file has all of five edits, and serial 12.
fn primary() -> Primary {
    let primary = Primary::start_with(&[("up.test", ZONE, OPEN)], "");
    let folder = primary.folder.path().to_owned();
    (1..=5).for_each(|last| set(&folder, last));
    done(&folder, &["zone", "flush", "up.test"]);
    primary
}

/// Gives `www.up.test` an address by an edit.
fn set(folder: &Path, last: u8) {
    let data = format!("192.0.2.{last}");
    done(folder, &["zone", "set", "www.up.test", "60", "A", &data]);
}

/// Puts a file in place that has serial 8 and other records than the zone had under it.
fn deploy(primary: &Primary, more: &str) {
    let text = ZONE.replacen(" 7 ", " 8 ", 1) + "extra A 192.0.2.99\n" + more;
    fs::write(primary.folder.path().join("0.zone"), text).unwrap();
}

/// The serial that the primary has.
fn serial(primary: &Primary) -> String {
    let soa = client("dig", primary.address, &["+short", "+norec", "up.test", "SOA"]);
    soa.split_whitespace().nth(2).unwrap_or_default().to_owned()
}

/// The line of the log about the serial of a file.
fn line(primary: &Primary) -> String {
    let log = primary.log();
    let line = log.lines().find(|line| line.contains("file_serial="));
    line.unwrap_or_else(|| panic!("no such line in {log}")).to_owned()
}

#[test]
fn the_log_has_the_serials_of_a_file_of_its_zone_and_of_what_is_served() {
    for is_reload in [true, false] {
        let mut primary = primary();
        deploy(&primary, "");
        match is_reload {
            true => primary.reload(),
            false => primary.crash(),
        }
        assert_eq!(serial(&primary), "13");
        let line = line(&primary);
        assert!(line.contains("file_serial=8 former=12 serial=13"), "{line}");
        assert!(line.contains("it is served with the next serial"), "{line}");
    }
}

#[test]
fn a_signed_zone_with_no_greater_serial_is_served_as_it_is_and_the_log_says_what_to_do() {
    for is_reload in [true, false] {
        let mut primary = primary();
        deploy(&primary, SIGNED);
        match is_reload {
            true => primary.reload(),
            false => primary.crash(),
        }
        assert_eq!(serial(&primary), "8");
        let line = line(&primary);
        assert!(line.contains("file_serial=8 former=12"), "{line}");
        assert!(line.contains("sign the zone with a serial greater than"), "{line}");
    }
}

#[test]
fn a_secondary_follows_a_file_with_a_lower_serial_also_over_a_start_and_updates_behind_it() {
    let mut primary = primary();
    let section = zone("up.test", &format!("\"{}\"", primary.address), "");
    let mut secondary = Secondary::start(&format!("{section}[admin]\nsocket = \"admin.sock\"\n"));
    wait_until("the first transfer", || secondary.serial("up.test") == Some(12));
    let is_in_step = |primary: &Primary, secondary: &Secondary, serial| {
        wait_until("the secondary follows", || secondary.serial("up.test") == Some(serial));
        let [ours, theirs] =
            [primary.address, secondary.address].map(|it| records(it, "up.test", &[]));
        assert!(ours.len() > 4 && ours == theirs, "{ours:?}\n{theirs:?}");
    };
    // The primary has another port after a start, and the zone a refresh time of two hours.
    let follow = |primary: &Primary, secondary: &mut Secondary| {
        let config = secondary.folder.path().join("zonda.toml");
        let text = fs::read_to_string(&config).unwrap();
        let from = text.lines().find(|line| line.starts_with("from = [")).unwrap();
        let now = format!("from = [\"{}\"]", primary.address);
        fs::write(&config, text.replace(from, &now)).unwrap();
        secondary.restart();
        done(secondary.folder.path(), &["zone", "refresh", "up.test"]);
    };
    deploy(&primary, "");
    primary.reload();
    follow(&primary, &mut secondary);
    is_in_step(&primary, &secondary, 13);
    // Another one, while the primary does not run.
    deploy(&primary, "more A 192.0.2.98\n");
    primary.crash();
    follow(&primary, &mut secondary);
    is_in_step(&primary, &secondary, 14);
    set(primary.folder.path(), 53);
    follow(&primary, &mut secondary);
    is_in_step(&primary, &secondary, 15);
}

#[test]
fn no_changes_lead_from_the_serial_of_a_file_that_is_served_with_another_one() {
    let mut primary = primary();
    deploy(&primary, "");
    primary.crash();
    set(primary.folder.path(), 53);
    primary.crash();
    assert_eq!(serial(&primary), "14");
    // A secondary that has version 8 of before has not what the file had under that serial.
    let ixfr = |from: u32| {
        let question = format!("IXFR={from}");
        client("dig", primary.address, &["+noall", "+answer", "up.test", &question])
    };
    let whole = ixfr(8);
    assert!(whole.contains("extra.up.test.") && whole.contains(" 14 7200 "), "{whole}");
    let changes = ixfr(13);
    assert!(changes.contains("192.0.2.53") && !changes.contains("extra.up.test."), "{changes}");
}

#[test]
fn a_file_that_lacks_a_serial_alone_is_not_told_as_one_that_lacks_changes() {
    let primary = primary();
    let unflushed = "zonda_zone_unflushed_changes{zone=\"up.test.\"}";
    deploy(&primary, "");
    primary.reload();
    assert_eq!(primary.metric(unflushed), 0.0);
    let said = done(primary.folder.path(), &["zone", "flush"]);
    assert!(said.contains("have all changes"), "{said}");
    let said = done(primary.folder.path(), &["zone", "diff", "up.test"]);
    assert!(said.contains("the serial rose from 8 to 13"), "{said}");
    set(primary.folder.path(), 53);
    assert_eq!(primary.metric(unflushed), 1.0);
    let said = done(primary.folder.path(), &["zone", "flush"]);
    assert!(said.contains("up.test. 14"), "{said}");
}
