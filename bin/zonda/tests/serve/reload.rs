//! Zones and configuration that change while the server runs.

use crate::server::{Load, Server, wait_until, zone};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use zonda_testkit::process::Folder;

#[test]
fn a_reload_under_load_answers_every_query_from_the_old_zone_or_the_new() {
    let server = Server::start(&[], "");
    let load = [false, false, true].map(|tcp| Load::start(server.zonda.address, tcp));
    for version in 2..30 {
        server.write_zone(&zone(version));
        let (status, body) = server.post("/v1/reload");
        assert_eq!(status, 200, "{body}");
        assert_eq!(server.version(), format!("\"version {version}\""));
    }
    load.into_iter().for_each(|load| load.finish(20));
}

#[test]
fn a_zone_that_fails_to_load_keeps_its_last_good_version_and_says_so() {
    let server = Server::start(&[], "");
    server.write_zone("@ SOA broken\n");
    let (status, body) = server.post("/v1/reload");
    assert_eq!(status, 422);
    assert!(body.contains("0.zone:1:"), "{body}");
    assert_eq!(server.version(), "\"version 1\"");
    assert_eq!(server.metric("zonda_zones{state=\"stale\"}"), 1.0);
    assert_eq!(server.metric("zonda_failed_reloads_total"), 1.0);
    assert!(server.get("/v1/zones/example.org").1.contains("0.zone:1:"));
    assert_eq!(server.get("/ready").0, 200, "it is still served");
    server.write_zone(&zone(2));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(server.version(), "\"version 2\"");
    assert_eq!(server.metric("zonda_zones{state=\"stale\"}"), 0.0);
}

#[test]
fn a_failed_zone_is_tried_again_by_each_reload_that_is_asked_for() {
    let server = Server::start(&[], "");
    server.write_zone("$INCLUDE more.zone\n");
    for _ in 0..2 {
        let (status, body) = server.post("/v1/reload");
        assert_eq!(status, 422, "{body}");
    }
    fs::write(server.zonda.folder.path().join("more.zone"), zone(2)).unwrap();
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(server.version(), "\"version 2\"");
}

#[test]
fn a_change_of_an_included_file_is_noticed() {
    let server = Server::start(&[], "");
    let included = server.zonda.folder.path().join("more.zone");
    fs::write(&included, zone(2)).unwrap();
    server.write_zone("$INCLUDE more.zone\n");
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(server.version(), "\"version 2\"");
    fs::write(&included, zone(3)).unwrap();
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(server.version(), "\"version 3\"");
}

#[test]
fn a_bad_configuration_leaves_the_former_in_force() {
    let server = Server::start(&[], "[identity]\nversion = \"one\"");
    server.configure("[identity]\nversion = \"two\"\nwrong = 1");
    let (status, body) = server.post("/v1/reload");
    assert_eq!(status, 422);
    assert!(body.contains("zonda.toml:4:"), "{body}");
    assert_eq!(server.version(), "\"version 1\"");
    assert_eq!(server.metric("zonda_failed_reloads_total"), 1.0);
    assert!(server.get("/v1/status").1.contains("zonda.toml:4:"));
    assert!(server.zonda.process.log_soon("zonda.toml:4:").contains("wrong"));
    server.configure("[identity]\nversion = \"two\"");
    assert_eq!(server.post("/v1/reload").0, 200);
    assert!(server.get("/v1/status").1.contains("\"problems\": []"));
}

#[test]
fn a_reload_changes_who_is_answered_and_leaves_zones_as_they_are() {
    let keys = |access: &str| {
        let zone = "[[zone]]\nname = \"private.test\"\nfile = \"private.zone\"";
        format!("{zone}\naccess = [\"{access} any\"]")
    };
    let server = Server::start(&[], &keys("refuse"));
    let file = server.folder.write("private.zone", zone(1));
    thread::sleep(Duration::from_millis(50)); // a younger file is read once more
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(server.rcode("www.private.test", "TXT"), "REFUSED");
    server.configure(&keys("allow"));
    let (status, body) = server.post("/v1/reload");
    assert!(status == 200 && body.contains("\"loaded\": []"), "{body}");
    assert_eq!(server.rcode("www.private.test", "TXT"), "NOERROR");
    server.configure(&keys("refuse"));
    fs::remove_file(file).unwrap();
    assert_eq!(server.post("/v1/reload").0, 422);
    assert_eq!(server.rcode("www.private.test", "TXT"), "REFUSED", "its data stay, no more");
}

#[test]
fn a_zone_that_moves_to_a_broken_file_keeps_its_last_good_version() {
    let keys = |file: &str| format!("[[zone]]\nname = \"moves.test\"\nfile = \"{file}\"");
    let server = Server::start(&[], &keys("good"));
    server.folder.write("good", zone(1));
    assert_eq!(server.post("/v1/reload").0, 200);
    server.configure(&keys("missing"));
    assert_eq!(server.post("/v1/reload").0, 422);
    assert_eq!(server.rcode("www.moves.test", "TXT"), "NOERROR");
    server.configure("");
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(server.rcode("www.moves.test", "TXT"), "REFUSED");
}

#[test]
fn what_takes_a_restart_is_told_at_every_reload_until_then() {
    let server = Server::start(&[], "");
    server.configure("[log]\nformat = \"json\"");
    for times in 1..3 {
        assert_eq!(server.post("/v1/reload").0, 200);
        let lines = |about: &str| server.zonda.process.log(about).lines().count();
        wait_until("the log has the reload", || lines("zones reloaded") == times);
        assert_eq!(lines("take effect at the next start section=\"[log]\""), times);
    }
}

#[test]
fn hangups_without_end_lose_no_query() {
    let server = Server::start(&[], "");
    let load = [false, true].map(|tcp| Load::start(server.zonda.address, tcp));
    for version in 2..20 {
        server.write_zone(&zone(version));
        (0..5).for_each(|_| server.zonda.process.signal("HUP"));
    }
    wait_until("the last version is served", || server.version() == "\"version 19\"");
    load.into_iter().for_each(|load| load.finish(20));
}

#[test]
fn a_hangup_signal_reloads() {
    let server = Server::start(&[], "");
    server.write_zone(&zone(2));
    server.zonda.process.signal("HUP");
    wait_until("the new version is served", || server.version() == "\"version 2\"");
}

#[test]
fn a_watched_file_is_reloaded_when_it_changes() {
    let server = Server::start(&[], "watch = true\nwatch-interval = \"100 ms\"");
    server.write_zone(&zone(2));
    wait_until("the new version is served", || server.version() == "\"version 2\"");
}

#[test]
fn a_zone_that_failed_for_want_of_an_included_file_is_loaded_when_that_appears() {
    let server = Server::start(&[], "watch = true\nwatch-interval = \"100 ms\"");
    server.write_zone("$INCLUDE more.zone\n");
    wait_until("the failure is told", || server.metric("zonda_zones{state=\"stale\"}") == 1.0);
    let failed = server.metric("zonda_failed_reloads_total");
    thread::sleep(Duration::from_millis(500));
    let again = server.metric("zonda_failed_reloads_total");
    assert!(again <= failed + 1.0, "read {again} times, though nothing changed");
    fs::write(server.zonda.folder.path().join("more.zone"), zone(2)).unwrap();
    wait_until("the new version is served", || server.version() == "\"version 2\"");
}

#[test]
fn a_directory_that_a_reload_adds_is_watched_from_then_on() {
    let folder = Folder::new("zones");
    let root = std::env::temp_dir();
    let server = Server::start(&[], "");
    let directory = format!("[[zone]]\ndirectory = {:?}", folder.path());
    server.configure(&format!("root = {root:?}\nwatch-interval = \"100 ms\"\n{directory}"));
    assert_eq!(server.post("/v1/reload").0, 200);
    folder.write("example.net.zone", zone(1));
    wait_until("the zone is served", || server.rcode("www.example.net", "TXT") == "NOERROR");
}

#[test]
fn zones_of_a_directory_come_and_go_with_their_files() {
    let folder = Folder::new("zones");
    let directory = format!("[[zone]]\ndirectory = {:?}", folder.path());
    let server = Server::start(
        &[],
        &format!("root = {:?}\nwatch-interval = \"100 ms\"\n{directory}", std::env::temp_dir()),
    );
    let rcode = || server.rcode("www.example.net", "TXT");
    assert_eq!(rcode(), "REFUSED");
    let file = folder.write("example.net.zone", zone(1));
    wait_until("the zone is served", || rcode() == "NOERROR");
    fs::remove_file(file).unwrap();
    wait_until("the zone is gone", || rcode() == "REFUSED");
}

/// A directory of zones beside the server's first zone, and the keys for it.
fn add_directory(server: &Server) -> (PathBuf, String) {
    let root = server.zonda.folder.path();
    let directory = root.join("zones");
    fs::create_dir(&directory).unwrap();
    let keys = format!("root = {root:?}\n[[zone]]\ndirectory = {directory:?}");
    (directory, keys)
}

#[test]
fn a_link_that_leaves_the_root_is_not_read() {
    let server = Server::start(&[], "");
    let (directory, keys) = add_directory(&server);
    let elsewhere = Folder::new("secrets");
    let secret = elsewhere.write("token", "admin-token-S3CR3T-0123456789\n");
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let outside = elsewhere.write("outside.zone", zone(1));
    symlink(&secret, directory.join("evil.example.zone")).unwrap();
    symlink(&secret, directory.join("evil.test.json")).unwrap();
    symlink(&outside, directory.join("outside.example.zone")).unwrap();
    // As a ConfigMap of Kubernetes: links that stay below.
    fs::create_dir(directory.join("..data")).unwrap();
    fs::write(directory.join("..data/inside.example.zone"), zone(1)).unwrap();
    symlink("..data/inside.example.zone", directory.join("inside.example.zone")).unwrap();
    server.configure(&keys);
    let reload = server.post("/v1/reload").1;
    assert_eq!(server.rcode("www.inside.example", "TXT"), "NOERROR", "{reload}");
    assert!(!server.zonda.process.log_soon("zones reloaded").is_empty());
    let told = [reload, server.get("/v1/zones").1, server.zonda.process.log("")].concat();
    assert!(!told.to_lowercase().contains("s3cr3t"), "{told}");
    for name in ["evil.example", "evil.test", "outside.example"] {
        assert_eq!(server.rcode(name, "SOA"), "SERVFAIL", "{name}");
    }
    assert!(told.contains("evil.example.zone: error: lies outside"), "{told}");
}

#[test]
fn a_file_that_is_no_zone_is_not_quoted() {
    let server = Server::start(&[], "");
    let (directory, keys) = add_directory(&server);
    for (name, text) in [
        ("token.example.zone", "admin-token-S3CR3T-0123456789\n"),
        ("shadow.example.zone", "root:$y$S3CR3T$hash:19000:0:99999:7:::\n"),
        ("words.example.zone", "password S3CR3T words\n S3CR3T 1\n$S3CR3T x\n"),
        ("config.example.zone", "token = \"S3CR3T\"\n\"S3CR3T\" A\n"),
        ("json.example.json", "{\"name\": \"json.example\", \"S3CR3T\": S3CR3T}"),
    ] {
        fs::write(directory.join(name), text).unwrap();
    }
    server.configure(&keys);
    assert_eq!(server.post("/v1/reload").0, 422);
    assert!(!server.zonda.process.log_soon("zones reloaded").is_empty());
    let told = [server.get("/v1/zones").1, server.zonda.process.log("")].concat();
    assert!(!told.to_lowercase().contains("s3cr3t"), "{told}");
}

#[test]
fn zones_of_a_directory_stay_while_it_cannot_be_read() {
    let folder = Folder::new("zones");
    let directory = folder.path().join("here");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("example.net.zone"), zone(1)).unwrap();
    let keys = format!(
        "root = {:?}\nwatch-interval = \"100 ms\"\n[[zone]]\ndirectory = {directory:?}",
        std::env::temp_dir()
    );
    let server = Server::start(&[], &keys);
    let is_told = || server.get("/v1/status").1.contains("cannot read the directory");
    fs::rename(&directory, folder.path().join("gone")).unwrap();
    wait_until("the failure is told", is_told);
    assert_eq!(server.rcode("www.example.net", "TXT"), "NOERROR");
    assert_eq!(server.get("/ready").0, 200, "they are still served");
    assert_eq!(server.post("/v1/reload").0, 422);
    fs::rename(folder.path().join("gone"), &directory).unwrap();
    wait_until("the failure is over", || !is_told());
    assert_eq!(server.post("/v1/reload").0, 200);
}

#[test]
fn memory_does_not_grow_from_one_reload_to_the_next() {
    let server = Server::start(&[], "");
    let hosts: String = (0..300_000).map(|host| format!("host{host} A 192.0.2.1\n")).collect();
    let resident_after = |version| {
        server.write_zone(&format!("{}{hosts}", zone(version)));
        assert_eq!(server.post("/v1/reload").0, 200);
        server.metric("process_resident_memory_bytes")
    };
    let first = resident_after(2);
    let last = (3..12).map(resident_after).fold(0.0, |_, next| next);
    assert!(last < 1.7 * first, "{first} octets, and after nine more reloads {last}");
}
