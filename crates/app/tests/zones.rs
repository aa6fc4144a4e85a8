//! What a program learns of zones that cannot be loaded, and of all its other mistakes.

#![allow(clippy::unwrap_used)]

use zonda::{A, App, Error, FailedZone, MemoryStore, Query, Rcode, Reply, Running, Type};
use zonda_testkit::process::Folder;

/// Returns a zone with one address.
fn text(last: u8) -> String {
    format!("@ 300 SOA ns hostmaster 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.{last}\n")
}

/// Returns an app that is asked without sockets.
fn app() -> App {
    App::new().listen_nowhere().workers(1)
}

/// Returns what an app that must not start says.
fn refused(app: App) -> Error {
    match app.start_blocking() {
        Ok(_) => panic!("the app has started"),
        Err(error) => error,
    }
}

/// Returns the names of zones, and whether former versions of them are served.
fn names(failed: &[FailedZone]) -> Vec<(String, bool)> {
    let name = |zone: &FailedZone| zone.name.as_ref().map_or("-".into(), ToString::to_string);
    failed.iter().map(|zone| (name(zone), zone.is_served)).collect()
}

/// Response code, and the data of the first record, that a running app has for a name.
fn told(running: &Running, name: &str) -> (Rcode, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let reply = runtime.block_on(running.query(name, Type::A)).unwrap();
    (reply.rcode(), reply.records.first().map(|record| record.rdata.to_vec()).unwrap_or_default())
}

#[test]
fn a_start_returns_all_zones_given_in_code_that_cannot_be_loaded_with_all_mistakes() {
    let folder = Folder::new("failed-zones");
    let broken = folder.write("broken.zone", text(1) + "b 300 A 192.0.2\nc 300 AAAA ::x\n");
    let missing = folder.path().join("typo.zone");
    let app = app()
        .zone("broken.example", &broken)
        .zone("missing.example", &missing)
        .zone_text("good.example", text(2))
        .zone_text("Empty.example", "")
        .zone_text("text.example", "@ SOA x\n");
    let error = refused(app);
    let told = error.to_string();
    let Error::Zones(failed) = error else { panic!("{told}") };
    let expected =
        ["broken.example.", "empty.example.", "missing.example.", "text.example."].map(Into::into);
    assert_eq!(names(&failed), expected.map(|name: String| (name, false)), "{told}");
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 5, "{told}");
    assert!(lines[0].contains("broken.zone:4:"), "{told}");
    assert!(lines[1].contains("broken.zone:5:"), "{told}");
    assert!(lines[2].contains("empty.example.") && lines[2].contains("SOA"), "{told}");
    assert!(lines[3].contains("typo.zone") && lines[3].contains("no such file"), "{told}");
    assert!(lines[4].starts_with("text.example. (of the program):1:"), "{told}");
}

#[test]
fn a_start_that_was_refused_leaves_its_address_free() {
    let address = format!("127.0.0.1:{}", zonda_testkit::process::free_port());
    let start = |zone: String| {
        let app = App::new().listen(&address).workers(1);
        app.zone_text("example.org", zone).start_blocking()
    };
    assert!(start(String::new()).is_err());
    start(text(1)).unwrap().stop_blocking().unwrap();
}

#[test]
fn an_app_that_allows_it_starts_without_zones_that_fail_and_has_them_in_a_list() {
    let app = app()
        .zone_text("good.example", text(1))
        .zone_text("bad.example", "@ SOA x\n")
        .zone("missing.example", "/nonexistent/typo.zone");
    let running = app.allow_failed_zones().start_blocking().unwrap();
    let failed = running.failed_zones();
    let expected = ["bad.example.", "missing.example."].map(|name| (name.to_owned(), false));
    assert_eq!(names(&failed), expected);
    assert!(failed[1].error.contains("typo.zone"), "{}", failed[1]);
    assert_eq!(told(&running, "ns.good.example").0, Rcode::NOERROR);
    assert_eq!(told(&running, "ns.bad.example").0, Rcode::SERVFAIL);
    running.set_zone_text_blocking("bad.example", text(2)).unwrap();
    assert_eq!(names(&running.failed_zones()), expected[1..]);
    running.stop_blocking().unwrap();
}

#[test]
fn a_zone_of_a_configuration_file_that_cannot_be_loaded_keeps_no_app_from_starting() {
    let folder = Folder::new("failed-zones");
    let zone = "[[zone]]\nname = \"missing.example\"\nfile = \"missing.zone\"\n";
    let config = folder.write("zonda.toml", format!("version = 1\n{zone}"));
    let app = app().config(config).zone_text("good.example", text(1));
    let running = app.start_blocking().unwrap();
    assert_eq!(names(&running.failed_zones()), [("missing.example.".to_owned(), false)]);
    assert_eq!(told(&running, "ns.good.example").0, Rcode::NOERROR);
    assert_eq!(told(&running, "ns.missing.example").0, Rcode::SERVFAIL);
    running.stop_blocking().unwrap();
}

#[test]
fn a_reload_returns_zones_that_cannot_be_loaded_and_their_last_version_is_served() {
    let folder = Folder::new("failed-zones");
    let (one, other) = (folder.write("one.zone", text(1)), folder.write("other.zone", text(1)));
    let app = app()
        .zone("one.example", &one)
        .zone("other.example", &other)
        .store("store.example", MemoryStore::new());
    let running = app.start_blocking().unwrap();
    running.reload_blocking().unwrap();
    folder.write("one.zone", text(2) + "b 300 A 192.0.2\nc 300 AAAA ::x\n");
    folder.write("other.zone", text(2));
    let error = running.reload_blocking().unwrap_err();
    let lines = error.to_string();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let Error::Zones(failed) = error else { panic!("{lines}") };
    assert_eq!(names(&failed), [("one.example.".to_owned(), true)]);
    assert_eq!(told(&running, "ns.one.example"), (Rcode::NOERROR, vec![192, 0, 2, 1]));
    assert_eq!(told(&running, "ns.other.example"), (Rcode::NOERROR, vec![192, 0, 2, 2]));
    // What is wrong with another zone keeps no text from being served.
    running.set_zone_text_blocking("text.example", text(3)).unwrap();
    assert_eq!(told(&running, "ns.text.example"), (Rcode::NOERROR, vec![192, 0, 2, 3]));
    assert!(running.reload_blocking().is_err(), "as long as it is wrong");
    folder.write("one.zone", text(4));
    running.reload_blocking().unwrap();
    assert!(running.failed_zones().is_empty());
    assert_eq!(told(&running, "ns.one.example"), (Rcode::NOERROR, vec![192, 0, 2, 4]));
    running.stop_blocking().unwrap();
}

#[test]
fn a_start_reports_all_mistakes_of_code_configuration_and_zones_at_once() {
    let folder = Folder::new("failed-zones");
    let app = app()
        .handle("a..b", |_: &Query, reply: &mut Reply| reply.answer(A::new([192, 0, 2, 1])))
        .handle("x/AAA", |_: &Query, _: &mut Reply| {})
        .zone_text("c..d", text(1))
        .store("e..f", MemoryStore::new())
        .zone_text("bad.example", "@ SOA x\n")
        .zone("missing.example", folder.path().join("typo"));
    let told = refused(app).to_string();
    let expected = ["route `a..b`: ", "route `x/AAA`: ", "zone `c..d`: ", "zone `e..f`: "];
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 6, "{told}");
    for (line, beginning) in lines.iter().zip(expected) {
        assert!(line.starts_with(beginning), "{told}");
    }
    assert!(told.contains("bad.example. (of the program):1:"), "{told}");
    let is_missing = |line: &&str| line.contains("typo") && line.contains("no such file");
    assert!(lines.iter().any(is_missing), "{told}");

    let config = folder.write("zonda.toml", "version = 1\nwrong = 1\n");
    let app = self::app().config(config).handle("a..b", |_: &Query, _: &mut Reply| {});
    let told = refused(app.zone_text("bad.example", "@ SOA x\n")).to_string();
    let expected = ["route `a..b`: ", "wrong", "bad.example. (of the program):1:"];
    assert!(expected.iter().all(|part| told.contains(part)), "{told}");
}
