//! Catalogs whose members Zonda serves, each catalog a file, from a primary of all zones.

use crate::primaries::Secondary;
use crate::primary::{Primary, wait_until};
use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// A zone of the primary.
const ZONE: &str = "$TTL 60\n@ SOA ns host 7 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n";

/// The zones of the primary: `z0.test` to the one before `z<count>.test`.
fn primary(count: usize) -> Primary {
    let names: Vec<String> = (0..count).map(|number| format!("z{number}.test")).collect();
    let zones: Vec<_> = names.iter().map(|name| (&**name, ZONE, "\"127.0.0.1\"")).collect();
    Primary::start(&zones, "")
}

/// The file of a catalog: a serial, a line for each member, and more lines.
fn catalog(serial: u32, members: impl IntoIterator<Item = usize>, more: &str) -> String {
    let members = members.into_iter().map(|it| format!("m{it}.zones PTR z{it}.test.\n"));
    format!(
        "$TTL 0\n@ SOA invalid. invalid. {serial} 3600 600 2147483646 0\n@ NS invalid.\n\
         version TXT \"2\"\n{}{more}",
        members.collect::<String>()
    )
}

/// A server that serves the members of a catalog in a file.
fn consumer(primary: &Primary, text: &str, more: &str) -> Secondary {
    let config = format!(
        "[[zone]]\nname = \"catalog.test\"\nfile = \"catalog.zone\"\naccess = \"refuse any\"\n\
         [[catalog]]\nname = \"catalog.test\"\n[catalog.secondary]\nfrom = [\"{}\"]\n{more}",
        primary.address
    );
    Secondary::start_with(&config, &[("catalog.zone", text)])
}

/// Has the server read another version of the catalog.
fn change(server: &Secondary, text: &str) {
    fs::write(server.folder.path().join("catalog.zone"), text).unwrap();
    server.reload();
}

/// The file of a zone of primaries in the server's state directory.
fn is_kept(server: &Secondary, zone: &str) -> bool {
    server.folder.path().join(format!("state/secondary/{zone}.secondary")).exists()
}

#[test]
fn members_of_a_catalog_come_and_go_and_survive_a_crash() {
    let primary = primary(3);
    let group = "group.m1.zones TXT internal\n";
    let more = format!(
        "[[catalog]]\nname = \"catalog.test\"\ngroups = [\"internal\"]\n\
         access = \"refuse any\"\n[catalog.secondary]\nfrom = [\"{}\"]\n",
        primary.address
    );
    let mut server = consumer(&primary, &catalog(1, [0, 1], group), &more);
    wait_until("the first member is served", || server.serial("z0.test") == Some(7));
    wait_until("the second is kept", || is_kept(&server, "z1.test"));
    assert!(server.soa_reply("z1.test").contains("REFUSED"), "its group decides who may ask");
    assert!(server.soa_reply("z2.test").contains("REFUSED"), "no catalog lists it");
    change(&server, &catalog(2, [1, 2], ""));
    wait_until("a member is added", || server.serial("z2.test") == Some(7));
    wait_until("a member has other groups", || server.serial("z1.test") == Some(7));
    wait_until("a member is removed", || server.soa_reply("z0.test").contains("REFUSED"));
    wait_until("with its file", || !is_kept(&server, "z0.test"));
    // A broken version leaves all as it is, also over a crash, and without the primary.
    let broken = catalog(3, [2], "").replace("TXT \"2\"", "TXT \"1\"");
    change(&server, &broken);
    wait_until("the log says why", || server.log().contains("is known (rfc9432)"));
    drop(primary);
    server.crash();
    for zone in ["z1.test", "z2.test"] {
        wait_until(zone, || server.serial(zone) == Some(7));
    }
}

#[test]
fn a_catalog_without_servers_is_taken_and_told_once() {
    let primary = primary(2);
    let without = |serial, members: &[usize]| {
        catalog(serial, members.iter().copied(), "").replace("@ NS invalid.\n", "")
    };
    let server = consumer(&primary, &without(1, &[0]), "");
    wait_until("the member is served", || server.serial("z0.test") == Some(7));
    change(&server, &without(2, &[0, 1]));
    wait_until("the other one as well", || server.serial("z1.test") == Some(7));
    let log = server.log();
    assert_eq!(log.matches("a catalog has no NS record at its apex").count(), 1, "{log}");
}

#[test]
fn a_version_that_removes_too_much_waits_for_a_greater_share() {
    let primary = primary(12);
    let server = consumer(&primary, &catalog(1, 0..12, ""), "");
    let served = |server: &Secondary| {
        (0..12).filter(|it| server.serial(&format!("z{it}.test")) == Some(7)).count()
    };
    wait_until("all are served", || served(&server) == 12);
    change(&server, &catalog(2, 0..1, ""));
    wait_until("the log says so", || server.log().contains("removes or resets 11 of 12 members"));
    assert_eq!(served(&server), 12);
    let path = server.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    let share = "[[catalog]]\nremovals-max = \"100 %\"\n";
    fs::write(path, text.replace("[[catalog]]\n", share)).unwrap();
    server.reload();
    wait_until("the version is taken", || served(&server) == 1);
}

/// What a command about the catalog prints, and whether it succeeds.
fn confirm(server: &Secondary, zone: &str, serial: u32) -> (bool, String) {
    let socket = server.folder.path().join("admin.sock");
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["zone", "confirm", zone, &serial.to_string(), "--socket"]).arg(socket);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_version_that_removes_too_much_is_taken_when_an_operator_confirms_its_serial() {
    let primary = primary(12);
    let server = controlled(&primary, &catalog(1, 0..12, ""));
    let served = |server: &Secondary| {
        (0..12).filter(|it| server.serial(&format!("z{it}.test")) == Some(7)).count()
    };
    wait_until("all are served", || served(&server) == 12);
    for (zone, why) in [("catalog.test", "no version"), ("z0.test", "no catalog")] {
        let (is_done, said) = confirm(&server, zone, 1);
        assert!(!is_done && said.contains(why), "{said}");
    }
    change(&server, &catalog(2, 0..1, ""));
    wait_until("the log says so", || server.log().contains("removes or resets 11 of 12 members"));
    let (is_done, said) = confirm(&server, "catalog.test", 1);
    assert!(!is_done && said.contains("has serial 2"), "{said}");
    assert_eq!(served(&server), 12);
    let (is_done, said) = confirm(&server, "Catalog.test", 2);
    assert!(is_done && said.contains("serial 2 in force: 1 members"), "{said}");
    wait_until("the version is taken", || served(&server) == 1);
    // The next one is judged as any.
    change(&server, &catalog(3, 0..12, ""));
    wait_until("all are served again", || served(&server) == 12);
    change(&server, &catalog(4, 1..1, "").replace("TXT \"2\"", "TXT \"1\""));
    wait_until("the log says why", || server.log().contains("is known (rfc9432)"));
    let (is_done, said) = confirm(&server, "catalog.test", 4);
    assert!(!is_done && said.contains("cannot be confirmed"), "{said}");
    change(&server, &catalog(5, 0..1, ""));
    // A reload may look at a version twice, and log it twice.
    let is_refused = |line: &str| line.contains("serial=5") && line.contains("11 of 12 members");
    wait_until("it is refused", || server.log().lines().any(is_refused));
    assert_eq!(served(&server), 12);
}

#[test]
fn a_version_that_lists_more_zones_than_it_may_waits_for_a_greater_limit() {
    let primary = primary(3);
    let server = consumer(&primary, &catalog(1, 0..2, ""), "");
    let path = server.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    let limited = |most: &str| text.replace("[[catalog]]\n", &format!("[[catalog]]\n{most}"));
    fs::write(&path, limited("members-max = 2\n")).unwrap();
    wait_until("both are served", || {
        server.serial("z0.test") == Some(7) && server.serial("z1.test") == Some(7)
    });
    change(&server, &catalog(2, 0..3, ""));
    wait_until("the log says so", || server.log().contains("lists 3 zones and may list 2"));
    assert_eq!(server.serial("z0.test"), Some(7));
    assert!(server.soa_reply("z2.test").contains("REFUSED"));
    fs::write(&path, limited("members-max = 3\n")).unwrap();
    server.reload();
    wait_until("the version is taken", || server.serial("z2.test") == Some(7));
}

#[test]
fn a_zone_of_the_configuration_is_no_member_and_becomes_one_when_that_names_it_no_more() {
    let primary = primary(1);
    let listed = catalog(1, [0], "");
    let own = "[[zone]]\nname = \"z0.test\"\nfile = \"own.zone\"\n";
    let server = consumer(&primary, &listed, own);
    wait_until("the log says so", || server.log().contains("a zone is no member"));
    assert_eq!(server.serial("z0.test"), Some(1), "the file's serial");
    let path = server.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(own, "")).unwrap();
    server.reload();
    wait_until("it is a member", || server.serial("z0.test") == Some(7));
    fs::write(&path, text).unwrap();
    server.reload();
    wait_until("the configuration has it again", || server.serial("z0.test") == Some(1));
    assert!(is_kept(&server, "z0.test"), "its file stays");
}

#[test]
fn a_member_that_is_removed_and_comes_back_with_its_id_is_served_without_a_transfer() {
    let primary = primary(2);
    let server = consumer(&primary, &catalog(1, [0, 1], ""), "");
    wait_until("both are kept", || is_kept(&server, "z0.test") && is_kept(&server, "z1.test"));
    change(&server, &catalog(2, [0], ""));
    wait_until("a member is removed", || server.soa_reply("z1.test").contains("REFUSED"));
    wait_until("with its file", || !is_kept(&server, "z1.test"));
    drop(primary);
    change(&server, &catalog(3, [0, 1], ""));
    wait_until("it is served from its file", || server.serial("z1.test") == Some(7));
    assert!(is_kept(&server, "z1.test"));
    wait_until("it is asked for what is new", || server.log().contains("zone=z1.test. error="));
}

#[test]
fn a_catalog_that_is_empty_at_once_waits_for_an_operator() {
    let primary = primary(2);
    let server = controlled(&primary, &catalog(1, [0, 1], ""));
    wait_until("both are kept", || is_kept(&server, "z0.test") && is_kept(&server, "z1.test"));
    change(&server, &catalog(2, [], ""));
    wait_until("the log says so", || server.log().contains("removes or resets 2 of 2 members"));
    assert_eq!(server.serial("z0.test"), Some(7));
    let (is_done, said) = confirm(&server, "catalog.test", 2);
    assert!(is_done && said.contains("serial 2 in force: 0 members"), "{said}");
    wait_until("none is served", || server.soa_reply("z0.test").contains("REFUSED"));
}

#[test]
fn another_id_has_a_member_transferred_anew() {
    let primary = primary(1);
    let server = consumer(&primary, &catalog(1, [0], ""), "");
    wait_until("the member is served", || server.serial("z0.test") == Some(7));
    let transfers = |server: &Secondary| server.log().matches("a zone was transferred").count();
    let before = transfers(&server);
    change(&server, &catalog(2, [0], "").replace("m0.zones", "other.zones"));
    wait_until("it is transferred anew", || transfers(&server) == before + 1);
    wait_until("and served", || server.serial("z0.test") == Some(7));
}

/// A server with a socket for hand-overs that serves the members of a catalog in a file.
fn controlled(primary: &Primary, text: &str) -> Secondary {
    consumer(primary, text, "[admin]\nsocket = \"admin.sock\"\naddress = \"off\"\n")
}

/// Asks for the sockets of a server as a successor does, has something done, and goes away.
fn with_successor(server: &Secondary, work: impl FnOnce()) {
    let path = server.folder.path().join("admin.sock.hand-over");
    let stream = UnixStream::connect(path).unwrap();
    wait_until("the sockets are handed over", || server.log().contains("handed to a successor"));
    work();
    drop(stream);
    wait_until("it is gone", || server.log().contains("the successor went away"));
}

#[test]
fn members_stay_what_the_catalog_says_when_a_successor_that_has_changed_them_goes_away() {
    let primary = primary(3);
    let server = controlled(&primary, &catalog(1, [0, 1], ""));
    wait_until("both are kept", || is_kept(&server, "z0.test") && is_kept(&server, "z1.test"));
    let members = server.folder.path().join("state/catalogs/catalog.test.secondary");
    // The successor knows no member: the catalog that this server has lists both.
    with_successor(&server, || fs::remove_file(&members).unwrap());
    wait_until("both are members again, and were served meanwhile", || {
        assert_eq!(server.serial("z0.test"), Some(7));
        members.exists()
    });
    assert!(!server.log().contains("a zone is no member"), "{}", server.log());
    change(&server, &catalog(2, [0], ""));
    wait_until("a member is removed", || server.soa_reply("z1.test").contains("REFUSED"));
    wait_until("with its file", || !is_kept(&server, "z1.test"));
    assert_eq!(server.serial("z0.test"), Some(7));
}

#[test]
fn a_member_that_a_successor_has_removed_before_it_went_away_is_taken_out_of_service() {
    let primary = primary(2);
    let server = controlled(&primary, &catalog(1, [0, 1], ""));
    wait_until("both are kept", || is_kept(&server, "z0.test") && is_kept(&server, "z1.test"));
    let members = server.folder.path().join("state/catalogs/catalog.test.secondary");
    with_successor(&server, || {
        change(&server, &catalog(2, [0], ""));
        wait_until("the catalog is read", || server.log().contains("zones reloaded"));
        fs::remove_file(&members).unwrap();
    });
    wait_until("the member is gone", || server.soa_reply("z1.test").contains("REFUSED"));
    assert_eq!(server.serial("z0.test"), Some(7));
}

#[test]
fn the_file_of_a_member_that_no_section_is_for_is_removed_with_the_member() {
    let primary = primary(1);
    let config = format!(
        "[[zone]]\nname = \"catalog.test\"\nfile = \"catalog.zone\"\n[[catalog]]\n\
         name = \"catalog.test\"\ngroups = [\"served\"]\n[catalog.secondary]\n\
         from = [\"{}\"]\n",
        primary.address
    );
    let served = catalog(1, [0], "group.m0.zones TXT served\n");
    let server = Secondary::start_with(&config, &[("catalog.zone", &served)]);
    wait_until("the member is kept", || is_kept(&server, "z0.test"));
    change(&server, &catalog(2, [0], ""));
    wait_until("it is not served", || server.soa_reply("z0.test").contains("REFUSED"));
    assert!(is_kept(&server, "z0.test"), "it is a member still");
    change(&server, &catalog(3, [], ""));
    wait_until("its file is removed", || !is_kept(&server, "z0.test"));
}

#[test]
fn a_catalog_that_the_configuration_has_no_more_leaves_the_files_of_members_and_takes_them_up() {
    let primary = primary(2);
    let server = consumer(&primary, &catalog(1, [0, 1], ""), "");
    wait_until("both are kept", || is_kept(&server, "z0.test") && is_kept(&server, "z1.test"));
    let path = server.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (zone, _) = text.split_once("[[catalog]]").unwrap();
    fs::write(&path, zone).unwrap();
    server.reload();
    for name in ["z0.test", "z1.test"] {
        wait_until("no member is served", || server.soa_reply(name).contains("REFUSED"));
        assert!(is_kept(&server, name), "{name}");
    }
    assert_eq!(server.serial("own.test"), Some(1), "all else is served");
    drop(primary);
    fs::write(&path, text).unwrap();
    server.reload();
    for name in ["z0.test", "z1.test"] {
        wait_until("each is served from its file", || server.serial(name) == Some(7));
    }
}
