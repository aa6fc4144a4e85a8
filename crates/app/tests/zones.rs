//! What a program learns of zones that cannot be loaded, and of all its other mistakes.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda::{
    A, App, Error, FailedZone, MemoryStore, Query, Rcode, RecordSet, Reply, Running, Store, Type,
};
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

#[test]
fn zones_in_files_come_change_and_go_while_the_app_runs() {
    let folder = Folder::new("running-zones");
    let (one, other) = (folder.write("one.zone", text(1)), folder.write("other.zone", text(2)));
    let running = app().zone("first.example", &one).start_blocking().unwrap();
    assert_eq!(told(&running, "ns.late.example").0, Rcode::REFUSED);
    running.set_zone_file_blocking("Late.Example", &one).unwrap();
    assert_eq!(told(&running, "ns.late.example"), (Rcode::NOERROR, vec![192, 0, 2, 1]));
    running.set_zone_file_blocking("late.example.", &other).unwrap();
    assert_eq!(told(&running, "ns.late.example"), (Rcode::NOERROR, vec![192, 0, 2, 2]));
    folder.write("other.zone", text(3));
    running.reload_blocking().unwrap();
    assert_eq!(told(&running, "ns.late.example"), (Rcode::NOERROR, vec![192, 0, 2, 3]));
    assert!(running.remove_zone_blocking("late.example").unwrap());
    assert!(!running.remove_zone_blocking("late.example").unwrap());
    assert_eq!(told(&running, "ns.late.example").0, Rcode::REFUSED);
    // A zone that the app was started with goes in the same way.
    assert!(running.remove_zone_blocking("FIRST.example").unwrap());
    assert_eq!(told(&running, "ns.first.example").0, Rcode::REFUSED);
    running.reload_blocking().unwrap();
    assert_eq!(told(&running, "ns.first.example").0, Rcode::REFUSED);
    running.stop_blocking().unwrap();
    let stopped = running.set_zone_file_blocking("late.example", &one);
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
}

#[test]
fn a_zone_file_that_cannot_be_served_is_refused_and_the_former_one_stays() {
    let folder = Folder::new("running-zones");
    let one = folder.write("one.zone", text(1));
    let broken = folder.write("broken.zone", text(2) + "b 300 A 192.0.2\n");
    let running = app().zone("a.example", &one).start_blocking().unwrap();
    for (name, served) in [("a.example", Rcode::NOERROR), ("b.example", Rcode::REFUSED)] {
        for file in [broken.clone(), folder.path().join("missing.zone")] {
            let error = running.set_zone_file_blocking(name, &file).unwrap_err();
            assert_eq!(error.code(), "ZONDA_ZONE", "{error}");
            let Error::Zones(failed) = &error else { panic!("{error}") };
            assert_eq!(names(failed), [(format!("{name}."), false)]);
            assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
            assert_eq!(told(&running, &format!("ns.{name}")).0, served, "{name}");
        }
    }
    running.reload_blocking().unwrap(); // nothing of it is left
    let error = running.set_zone_file_blocking("a..b", &one).unwrap_err();
    assert!(matches!(error, Error::Name(..)), "{error}");
    running.stop_blocking().unwrap();
}

/// Returns a store with the records of a zone.
fn store(apex: &str, last: u8) -> MemoryStore {
    let store = MemoryStore::new();
    let name = format!("ns.{apex}");
    store.set(&RecordSet::new(apex, "NS", 60, [name.as_str()])).unwrap();
    store.set(&RecordSet::new(&name, "A", 60, [format!("192.0.2.{last}")])).unwrap();
    store
}

#[test]
fn zones_of_stores_come_change_and_go_while_the_app_runs() {
    let running = app().start_blocking().unwrap();
    let first = Arc::new(store("a.example", 1));
    running.set_zone_store_blocking("A.example", Arc::clone(&first)).unwrap();
    assert_eq!(told(&running, "ns.a.example"), (Rcode::NOERROR, vec![192, 0, 2, 1]));
    let set = RecordSet::new("ns.a.example", "A", 60, ["192.0.2.9"]);
    first.set(&set).unwrap();
    await_address(&running, "ns.a.example", 9);
    running.set_zone_store_blocking("a.example", store("a.example", 2)).unwrap();
    assert_eq!(told(&running, "ns.a.example"), (Rcode::NOERROR, vec![192, 0, 2, 2]));
    running.set_zone_store_blocking("b.example", store("b.example", 3)).unwrap();
    assert_eq!(told(&running, "ns.b.example"), (Rcode::NOERROR, vec![192, 0, 2, 3]));
    running.reload_blocking().unwrap(); // neither comes from the configuration
    assert_eq!(told(&running, "ns.a.example"), (Rcode::NOERROR, vec![192, 0, 2, 2]));
    assert!(running.remove_zone_blocking("a.example").unwrap());
    assert!(!running.remove_zone_blocking("a.example").unwrap());
    assert_eq!(told(&running, "ns.a.example").0, Rcode::REFUSED);
    assert_eq!(told(&running, "ns.b.example"), (Rcode::NOERROR, vec![192, 0, 2, 3]));
    running.set_zone_text_blocking("a.example", text(4)).unwrap(); // its name is free
    assert_eq!(told(&running, "ns.a.example"), (Rcode::NOERROR, vec![192, 0, 2, 4]));
    running.stop_blocking().unwrap();
}

/// Waits until the last octet of a name's address is this one.
fn await_address(running: &Running, name: &str, last: u8) {
    let since = Instant::now();
    while told(running, name).1.last() != Some(&last) {
        assert!(since.elapsed() < Duration::from_secs(20), "{:?}", told(running, name));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_zone_with_one_source_gets_no_other_one_before_it_is_removed() {
    let folder = Folder::new("running-zones");
    let file = folder.write("file.zone", text(1));
    let app = app()
        .zone("file.example", &file)
        .zone_text("text.example", text(2))
        .store("store.example", store("store.example", 3));
    let running = app.start_blocking().unwrap();
    for name in ["file.example", "text.example", "store.example"] {
        let refused = [
            (running.set_zone_file_blocking(name, &file), "file.example"),
            (running.set_zone_text_blocking(name, text(4)), "text.example"),
            (running.set_zone_store_blocking(name, store(name, 5)), "store.example"),
        ];
        for (result, own) in refused {
            let is_refused = matches!(result, Err(Error::ZoneText(_)));
            assert_eq!(is_refused, own != name, "{name} {own}: {result:?}");
        }
    }
    for name in ["file.example", "text.example", "store.example"] {
        assert!(running.remove_zone_blocking(name).unwrap(), "{name}");
        assert_eq!(told(&running, &format!("ns.{name}")).0, Rcode::REFUSED);
        running.set_zone_file_blocking(name, &file).unwrap();
        assert_eq!(told(&running, &format!("ns.{name}")).1, [192, 0, 2, 1], "{name}");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn upstreams_come_change_and_go_while_the_app_runs() {
    let upstream = |last: u8| {
        let app = App::new().listen("127.0.0.1:0").workers(1);
        app.handle("*", move || A::new([192, 0, 2, last]).ttl(0)).start_blocking().unwrap()
    };
    let (one, other) = (upstream(1), upstream(2));
    let running = app().start_blocking().unwrap();
    assert_eq!(told(&running, "a.example").0, Rcode::REFUSED);
    running.set_forwards_blocking(one.addresses()).unwrap();
    assert_eq!(told(&running, "a.example"), (Rcode::NOERROR, vec![192, 0, 2, 1]));
    running.set_forwards_blocking([other.addresses()[0]]).unwrap();
    assert_eq!(told(&running, "b.example"), (Rcode::NOERROR, vec![192, 0, 2, 2]));
    let error = running.set_forwards_blocking(["nowhere"]).unwrap_err();
    assert_eq!(error.code(), "ZONDA_CONFIG", "{error}");
    assert_eq!(told(&running, "c.example"), (Rcode::NOERROR, vec![192, 0, 2, 2]));
    running.set_forwards_blocking::<String>([]).unwrap();
    assert_eq!(told(&running, "d.example").0, Rcode::REFUSED);
    for app in [running, one, other] {
        app.stop_blocking().unwrap();
    }
}

#[test]
fn a_configuration_that_became_wrong_refuses_changes_and_keeps_what_is_served() {
    let folder = Folder::new("running-zones");
    let one = folder.write("one.zone", text(1));
    let config = folder.write("zonda.toml", "version = 1\n");
    let running = app().config(config).zone("a.example", &one).start_blocking().unwrap();
    folder.write("zonda.toml", "version = 1\nwrong = 1\n");
    let refused = [
        running.set_zone_file_blocking("b.example", &one),
        running.remove_zone_blocking("a.example").map(drop),
        running.set_forwards_blocking(["192.0.2.1"]),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Config(_))), "{refused:?}");
    }
    folder.write("zonda.toml", "version = 1\n");
    running.reload_blocking().unwrap();
    assert_eq!(told(&running, "ns.a.example").0, Rcode::NOERROR);
    assert_eq!(told(&running, "ns.b.example").0, Rcode::REFUSED);
    assert_eq!(told(&running, "other.example").0, Rcode::REFUSED, "nothing is forwarded");
    running.stop_blocking().unwrap();
}

#[test]
fn a_store_that_comes_while_the_configuration_is_read_is_followed() {
    let running = app().start_blocking().unwrap();
    for round in 0..10 {
        let (zone, own) =
            (format!("z{round}.example"), Arc::new(store(&format!("z{round}.example"), 1)));
        let host = format!("ns.{zone}");
        std::thread::scope(|scope| {
            scope.spawn(|| running.reload_blocking().unwrap());
            running.set_zone_store_blocking(&zone, Arc::clone(&own)).unwrap();
        });
        own.set(&RecordSet::new(&host, "A", 60, ["192.0.2.2"])).unwrap();
        await_address(&running, &host, 2);
    }
    running.stop_blocking().unwrap();
}

#[test]
fn of_a_text_and_a_store_that_come_at_once_for_one_zone_one_is_refused() {
    let running = app().start_blocking().unwrap();
    for _ in 0..10 {
        let (is_text, is_store) = std::thread::scope(|scope| {
            let set = scope.spawn(|| running.set_zone_text_blocking("a.example", text(1)).is_ok());
            let store = store("a.example", 2);
            let is_store = running.set_zone_store_blocking("a.example", store).is_ok();
            (set.join().unwrap(), is_store)
        });
        assert_ne!(is_text, is_store);
        let last = if is_text { 1 } else { 2 };
        assert_eq!(told(&running, "ns.a.example"), (Rcode::NOERROR, vec![192, 0, 2, last]));
        assert!(running.remove_zone_blocking("a.example").unwrap());
    }
    running.stop_blocking().unwrap();
}

#[test]
fn a_zone_file_whose_path_or_name_cannot_be_written_down_is_refused() {
    let folder = Folder::new("running-zones");
    let file = folder.write("one.zone", text(1));
    let running = app().start_blocking().unwrap();
    let unwritable = folder.path().join(OsStr::from_bytes(b"\xff.zone"));
    std::fs::copy(&file, &unwritable).unwrap();
    for (name, file, wrong) in
        [("a.example", &unwritable, "is not UTF-8"), ("a=b.example", &file, "a name with `=`")]
    {
        let error = running.set_zone_file_blocking(name, file).unwrap_err();
        assert!(matches!(&error, Error::Config(text) if text.contains(wrong)), "{error}");
    }
    running.stop_blocking().unwrap();
}
