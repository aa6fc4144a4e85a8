//! Changes of zones while they are served.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use zonda_config::Flags;
use zonda_server::{Edit, EditError, Options, Program, Server, VersionOrigin, read_config};
use zonda_wire::{Name, Type};
use zonda_zone::{Diff, SetChange};

const ZONE: &str = "$TTL 60\n@ SOA ns h 7 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nwww CNAME ns\n";

/// A server with the zone `example.org`.
struct Zonda {
    server: Server,
    folder: PathBuf,
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The change that gives an owner one address.
fn address(owner: &str, last: u8) -> SetChange {
    let data = vec![vec![192, 0, 2, last].into()];
    SetChange::Put { owner: name(owner), rtype: Type::A, ttl: 60, data }
}

/// Copies a folder and those in it.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|it| (it.path(), it.file_name())).unwrap();
        match path.is_dir() {
            true => copy_folder(&path, &to.join(name)),
            false => _ = fs::copy(&path, to.join(name)).unwrap(),
        }
    }
}

impl Zonda {
    fn start(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("zonda-edit-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("example.org.zone"), ZONE).unwrap();
        Self::start_in(folder, true).unwrap()
    }

    /// A server with the zone of a folder.
    fn start_in(folder: PathBuf, writable: bool) -> Result<Self, String> {
        let json = folder.join("all.json");
        let file = if json.exists() { json } else { folder.join("example.org.zone") };
        let zones = vec![format!("example.org={}", file.display())];
        let listen = vec!["127.0.0.1:0".to_owned()];
        let state = Some(folder.join("state").display().to_string());
        let flags = Flags { listen, zones, writable, state, ..Flags::default() };
        let load = move || read_config(None, &flags, None);
        let (config, read_config) = (load().unwrap(), Box::new(load));
        let options =
            Options { config, read_config, take_over: false, program: Program::default() };
        let server = Server::start(options).map_err(|error| error.to_string())?;
        Ok(Self { server, folder })
    }

    /// The zone's file.
    fn file(&self) -> String {
        fs::read_to_string(self.folder.join("example.org.zone")).unwrap()
    }

    /// Stops the server and starts it anew.
    fn restart(self) -> Self {
        self.server.stop().unwrap();
        Self::start_in(self.folder, true).unwrap()
    }

    /// Has the server read another text in the place of the zone's file, of a time long before any
    /// edit: in a reload, or as it starts again.
    fn deployed(self, text: &str, is_reload: bool) -> Self {
        let path = self.folder.join("example.org.zone");
        let deploy = || {
            fs::write(&path, text).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        };
        if is_reload {
            deploy();
            assert!(self.server.reload().unwrap().is_empty());
            return self;
        }
        let Self { server, folder } = self;
        server.stop().unwrap();
        deploy();
        Self::start_in(folder, true).unwrap()
    }

    /// A second server with what the disk has of this one, as if this one was killed now.
    fn crashed(&self, test: &str) -> Self {
        let pid = std::process::id();
        let folder = std::env::temp_dir().join(format!("zonda-edit-{test}-crash-{pid}"));
        copy_folder(&self.folder, &folder);
        Self::start_in(folder, true).unwrap()
    }

    /// The serial of the zone.
    fn serial(&self) -> u32 {
        let zone = name("example.org");
        let edit = Edit {
            zone,
            sets: vec![],
            if_serial: None,
            if_life: None,
            is_dry_run: true,
            origin: VersionOrigin::Edit,
        };
        self.server.edit(edit).unwrap().from
    }

    /// Changes the zone.
    fn edit(&self, sets: Vec<SetChange>) -> Result<Diff, EditError> {
        let zone = name("example.org");
        self.server.edit(Edit {
            zone,
            sets,
            if_serial: None,
            if_life: None,
            is_dry_run: false,
            origin: VersionOrigin::Edit,
        })
    }

    /// The last octet of the address of an owner, or nothing if it has no address.
    fn ask(&self, owner: &str) -> Option<u8> {
        self.ask_all(owner).first().copied()
    }

    /// The last octets of all addresses of an owner, in ascending order.
    fn ask_all(&self, owner: &str) -> Vec<u8> {
        let header = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0";
        let query = [&header[..], name(owner).as_wire(), &[0, 1, 0, 1]].concat();
        let zonda_server::OwnReply::Now(Some(reply)) = self.server.query(&query, None) else {
            panic!("no reply")
        };
        let count = if reply[3] & 15 == 0 { usize::from(reply[7]) } else { 0 };
        // Each record has a pointer to the name, and ten octets before its data.
        let records = reply[query.len()..].chunks_exact(16).take(count);
        let mut addresses: Vec<u8> = records.map(|record| record[15]).collect();
        addresses.sort_unstable();
        addresses
    }

    fn end(self) {
        self.server.stop().unwrap();
        fs::remove_dir_all(self.folder).unwrap();
    }
}

#[test]
fn a_changed_set_is_answered_once_the_edit_returns_and_the_serial_rises() {
    let zonda = Zonda::start("set");
    assert_eq!(zonda.ask("ns.example.org"), Some(1));
    let diff = zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    assert_eq!(zonda.ask("ns.example.org"), Some(9));
    let shown = format!("{diff:?}");
    assert_eq!(
        shown,
        "7 -> 8\n\
         - example.org. 60 SOA ns.example.org. h.example.org. 7 2 3 4 5\n\
         - ns.example.org. 60 A 192.0.2.1\n\
         + example.org. 60 SOA ns.example.org. h.example.org. 8 2 3 4 5\n\
         + ns.example.org. 60 A 192.0.2.9\n"
    );
    zonda.end();
}

#[test]
fn an_edit_takes_effect_whole_or_not_at_all() {
    let zonda = Zonda::start("whole");
    let error = zonda.edit(vec![address("new.example.org", 2), address("www.example.org", 3)]);
    let error = error.unwrap_err();
    assert!(matches!(&error, EditError::Refused(_)), "{error}");
    assert!(error.to_string().starts_with("www.example.org. "), "{error}");
    assert_eq!(zonda.ask("new.example.org"), None);
    let diff = zonda.edit(vec![address("new.example.org", 2)]).unwrap();
    assert_eq!((diff.from, diff.to), (7, 8));
    assert_eq!(zonda.ask("new.example.org"), Some(2));
    zonda.end();
}

#[test]
fn an_edit_for_another_serial_is_refused() {
    let zonda = Zonda::start("serial");
    let edit = |serial, last| {
        let sets = vec![address("ns.example.org", last)];
        let zone = name("Example.ORG");
        zonda.server.edit(Edit {
            zone,
            sets,
            if_serial: Some(serial),
            if_life: None,
            is_dry_run: false,
            origin: VersionOrigin::Edit,
        })
    };
    assert_eq!(edit(7, 2).unwrap().to, 8);
    assert_eq!(edit(7, 3).unwrap_err(), EditError::SerialIs(8));
    assert_eq!(zonda.ask("ns.example.org"), Some(2));
    zonda.end();
}

#[test]
fn a_dry_run_finds_the_difference_and_changes_nothing() {
    let zonda = Zonda::start("dry");
    let zone = name("example.org");
    let sets = vec![address("ns.example.org", 2)];
    let dry = Edit {
        zone,
        sets: sets.clone(),
        if_serial: None,
        if_life: None,
        is_dry_run: true,
        origin: VersionOrigin::Edit,
    };
    let found = zonda.server.edit(dry).unwrap();
    assert_eq!(zonda.ask("ns.example.org"), Some(1));
    assert_eq!(zonda.edit(sets).unwrap(), found);
    zonda.end();
}

#[test]
fn an_edit_that_changes_nothing_leaves_the_serial() {
    let zonda = Zonda::start("nothing");
    let diff = zonda.edit(vec![address("ns.example.org", 1)]).unwrap();
    assert!(diff.is_empty(), "{diff:?}");
    assert_eq!(zonda.edit(vec![address("ns.example.org", 2)]).unwrap().from, 7);
    zonda.end();
}

#[test]
fn a_zone_that_the_server_does_not_have_cannot_be_changed() {
    let zonda = Zonda::start("missing");
    let sets = vec![address("www.example.net", 1)];
    let edit = Edit {
        zone: name("example.net"),
        sets,
        if_serial: None,
        if_life: None,
        is_dry_run: false,
        origin: VersionOrigin::Edit,
    };
    let error = zonda.server.edit(edit).unwrap_err();
    assert_eq!(error, EditError::NoSuchZone(name("example.net")));
    zonda.end();
}

#[test]
fn only_zones_that_the_configuration_says_so_of_can_be_changed() {
    let zonda = Zonda::start("refused");
    let Zonda { server, folder } = zonda;
    server.stop().unwrap();
    let zonda = Zonda::start_in(folder, false).unwrap();
    let error = zonda.edit(vec![address("ns.example.org", 9)]).unwrap_err();
    assert_eq!(error, EditError::NotWritable(name("example.org")));
    assert!(!zonda.folder.join("state/journal.new").exists());
    zonda.end();
}

#[test]
fn edits_are_written_to_the_file_when_the_server_stops_and_the_first_version_is_kept() {
    let zonda = Zonda::start("stop");
    zonda.edit(vec![address("ns.example.org", 9), address("new.example.org", 8)]).unwrap();
    assert_eq!(zonda.file(), ZONE, "nothing is written before");
    let zonda = zonda.restart();
    assert_eq!((zonda.ask("ns.example.org"), zonda.ask("new.example.org")), (Some(9), Some(8)));
    assert_eq!(
        zonda.file(),
        "; example.org., written by zonda, as the zone was changed while it was served\n\
         example.org.\t60\tIN\tSOA\tns.example.org. h.example.org. 8 2 3 4 5\n\
         example.org.\t60\tIN\tNS\tns.example.org.\n\
         new.example.org.\t60\tIN\tA\t192.0.2.8\n\
         ns.example.org.\t60\tIN\tA\t192.0.2.9\n\
         www.example.org.\t60\tIN\tCNAME\tns.example.org.\n"
    );
    let original = zonda.folder.join("example.org.zone.orig");
    assert_eq!(fs::read_to_string(&original).unwrap(), ZONE);
    zonda.edit(vec![address("ns.example.org", 7)]).unwrap();
    assert_eq!(zonda.server.flush(&name("example.org")).unwrap(), Some(9));
    assert_eq!(zonda.server.flush(&name("example.org")).unwrap(), None);
    assert_eq!(fs::read_to_string(&original).unwrap(), ZONE, "the first version stays");
    zonda.end();
}

#[test]
fn a_file_that_was_edited_by_hand_gets_the_edits_of_the_server_as_well() {
    let zonda = Zonda::start("merge");
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    let by_hand = ZONE.replace("h 7 ", "h 20 ") + "by-hand A 192.0.2.44\n";
    fs::write(zonda.folder.join("example.org.zone"), by_hand).unwrap();
    assert!(zonda.server.reload().unwrap().is_empty());
    assert_eq!(
        (zonda.ask("ns.example.org"), zonda.ask("by-hand.example.org")),
        (Some(9), Some(44))
    );
    let diff = zonda.server.unflushed_diff(&name("example.org")).unwrap();
    assert_eq!((diff.from, diff.to, diff.added.len(), diff.removed.len()), (20, 21, 2, 2));
    assert_eq!(zonda.server.flush(&name("example.org")).unwrap(), Some(21));
    let zonda = zonda.restart();
    assert_eq!(
        (zonda.ask("ns.example.org"), zonda.ask("by-hand.example.org")),
        (Some(9), Some(44))
    );
    zonda.end();
}

#[test]
fn a_file_that_was_edited_by_hand_just_before_a_flush_is_not_overwritten() {
    let zonda = Zonda::start("hand");
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    let by_hand = ZONE.to_owned() + "by-hand A 192.0.2.44\n";
    fs::write(zonda.folder.join("example.org.zone"), by_hand).unwrap();
    let zonda = zonda.restart();
    assert_eq!(
        (zonda.ask("ns.example.org"), zonda.ask("by-hand.example.org")),
        (Some(9), Some(44))
    );
    assert!(zonda.file().contains("by-hand"), "{}", zonda.file());
    zonda.end();
}

#[test]
fn a_file_that_is_edited_by_hand_while_a_flush_writes_is_not_overwritten() {
    const NAMES: u32 = 300_000;
    let folder = std::env::temp_dir().join(format!("zonda-edit-during-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut text = ZONE.to_owned();
    (0..NAMES).for_each(|it| _ = writeln!(text, "n{it} A 192.0.2.2"));
    let file = folder.join("example.org.zone");
    fs::write(&file, &text).unwrap();
    let zonda = Zonda::start_in(folder, true).unwrap();
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    let unfinished = zonda.folder.join("example.org.zone.zonda-new");
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| zonda.server.flush(&name("example.org")));
        while !unfinished.exists() {
            assert!(!flush.is_finished(), "the flush was not seen to write");
            std::thread::yield_now();
        }
        text.push_str("by-hand A 192.0.2.44\n");
        let beside = zonda.folder.join("editor");
        fs::write(&beside, &text).unwrap();
        fs::rename(&beside, &file).unwrap();
        assert!(unfinished.exists(), "the flush ended before the file was edited");
        let flushed = flush.join().unwrap().unwrap();
        assert_eq!(flushed, Some(9), "the edit by hand raised the serial");
    });
    let written = zonda.file();
    for expected in ["by-hand.example.org.\t60\tIN\tA\t192.0.2.44", "\t192.0.2.9\n"] {
        assert!(written.contains(expected), "no {expected}");
    }
    assert_eq!(zonda.ask("by-hand.example.org"), Some(44));
    zonda.end();
}

#[test]
fn a_file_and_edits_that_contradict_each_other_are_reported_and_neither_is_lost() {
    let zonda = Zonda::start("conflict");
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    let by_hand = ZONE.replace("192.0.2.1", "192.0.2.3").replace("h 7", "h 30");
    fs::write(zonda.folder.join("example.org.zone"), &by_hand).unwrap();
    let failed = zonda.server.reload().unwrap();
    assert_eq!(failed.len(), 1);
    assert_eq!(zonda.ask("ns.example.org"), Some(9), "the version in force stays");
    let error = zonda.edit(vec![address("more.example.org", 4)]).unwrap_err();
    assert!(matches!(&error, EditError::Conflict(text) if text.contains("ns.example.org. A")));
    assert!(zonda.server.flush(&name("example.org")).is_err());
    let zonda = zonda.restart();
    assert_eq!(zonda.ask_all("ns.example.org"), [3, 9], "the set has the records of both");
    assert_eq!(zonda.file(), by_hand, "and the file is kept");
    let resolved = by_hand.replace("192.0.2.3", "192.0.2.9");
    fs::write(zonda.folder.join("example.org.zone"), resolved).unwrap();
    assert!(zonda.server.reload().unwrap().is_empty());
    zonda.edit(vec![address("more.example.org", 4)]).unwrap();
    zonda.end();
}

#[test]
fn a_server_that_was_killed_goes_on_with_the_serial_of_the_last_edit() {
    let zonda = Zonda::start("killed");
    zonda.edit(vec![address("ns.example.org", 9), address("new.example.org", 8)]).unwrap();
    zonda.edit(vec![address("ns.example.org", 10)]).unwrap();
    let diff = zonda.server.unflushed_diff(&name("example.org")).unwrap();
    let mut last = zonda;
    for round in 0..3 {
        let next = last.crashed(&format!("killed-{round}"));
        last.end();
        assert_eq!((next.serial(), next.ask("ns.example.org")), (9, Some(10)));
        assert_eq!(next.server.unflushed_diff(&name("example.org")).unwrap(), diff);
        assert_eq!(next.file(), ZONE);
        last = next;
    }
    assert_eq!(last.edit(vec![address("ns.example.org", 11)]).unwrap().from, 9);
    assert_eq!(last.server.flush(&name("example.org")).unwrap(), Some(10));
    let next = last.crashed("killed-flushed");
    assert_eq!((next.serial(), next.ask("ns.example.org")), (10, Some(11)));
    last.end();
    next.end();
}

#[test]
fn a_server_that_was_killed_before_it_noted_a_flush_goes_on_with_the_serial_of_the_last_edit() {
    let zonda = Zonda::start("unnoted");
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    let flushed = zonda.crashed("unnoted-flushed");
    flushed.server.flush(&name("example.org")).unwrap();
    for last in [0, 1] {
        // The journal lacks the note that the file has the first edit.
        let crashed = zonda.crashed(&format!("unnoted-{last}"));
        let Zonda { server, folder } = crashed;
        server.stop().unwrap();
        fs::copy(zonda.folder.join("state/journal"), folder.join("state/journal")).unwrap();
        fs::write(folder.join("example.org.zone"), flushed.file()).unwrap();
        let crashed = Zonda::start_in(folder, true).unwrap();
        let (serial, address_of_ns) = (8 + last, Some(9 + last as u8));
        assert_eq!((crashed.serial(), crashed.ask("ns.example.org")), (serial, address_of_ns));
        let diff = crashed.server.unflushed_diff(&name("example.org")).unwrap();
        assert_eq!((diff.from, diff.to), (8, serial));
        crashed.end();
        zonda.edit(vec![address("ns.example.org", 10)]).unwrap();
    }
    flushed.end();
    zonda.end();
}

#[test]
fn a_file_in_which_no_record_differs_is_not_taken_for_one_that_was_edited_by_hand() {
    let zonda = Zonda::start("comment");
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    let text = format!("; the names of example.org\n{ZONE}");
    fs::write(zonda.folder.join("example.org.zone"), text).unwrap();
    let crashed = zonda.crashed("comment");
    assert_eq!((crashed.serial(), crashed.ask("ns.example.org")), (8, Some(9)));
    assert!(zonda.server.reload().unwrap().is_empty());
    assert_eq!((zonda.serial(), zonda.ask("ns.example.org")), (8, Some(9)));
    crashed.end();
    zonda.end();
}

#[test]
fn a_file_that_was_edited_by_hand_while_no_server_ran_raises_the_serial() {
    let zonda = Zonda::start("away");
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    // Nothing that the edit touched, and not the serial.
    let by_hand = ZONE.to_owned() + "by-hand A 192.0.2.44\n";
    fs::write(zonda.folder.join("example.org.zone"), by_hand).unwrap();
    let crashed = zonda.crashed("away");
    let answers = (crashed.ask("ns.example.org"), crashed.ask("by-hand.example.org"));
    assert_eq!((crashed.serial(), answers), (9, (Some(9), Some(44))));
    let again = crashed.crashed("away-again");
    assert_eq!((again.serial(), again.ask("by-hand.example.org")), (9, Some(44)));
    again.end();
    crashed.end();
    zonda.end();
}

/// A zone file with a serial, and a record that no edit made.
fn deployment(serial: u32) -> String {
    ZONE.replace("h 7", &format!("h {serial}")) + "extra A 192.0.2.44\n"
}

/// A server whose zone has had two edits, which its file has, and serial 9.
fn flushed(test: &str) -> Zonda {
    let zonda = Zonda::start(test);
    zonda.edit(vec![address("ns.example.org", 8)]).unwrap();
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    assert_eq!(zonda.server.flush(&name("example.org")).unwrap(), Some(9));
    zonda
}

#[test]
fn a_file_with_other_records_and_no_greater_serial_is_served_with_the_next_serial() {
    for (test, serial) in [("lower", 3), ("equal", 9), ("former", 8)] {
        for is_reload in [true, false] {
            let zonda = flushed(&format!("{test}-{is_reload}"));
            let zonda = zonda.deployed(&deployment(serial), is_reload);
            let has = |zonda: &Zonda| {
                let addresses = (zonda.ask("ns.example.org"), zonda.ask("extra.example.org"));
                (zonda.serial(), addresses)
            };
            assert_eq!(has(&zonda), (10, (Some(1), Some(44))), "{test} {is_reload}");
            let next = zonda.edit(vec![address("ns.example.org", 11)]).unwrap();
            assert_eq!((next.from, next.to), (10, 11));
            let crashed = zonda.crashed(&format!("{test}-{is_reload}-crash"));
            assert_eq!(has(&crashed), (11, (Some(11), Some(44))));
            crashed.end();
            assert_eq!(zonda.server.flush(&name("example.org")).unwrap(), Some(11));
            let zonda = zonda.restart();
            assert_eq!(has(&zonda), (11, (Some(11), Some(44))));
            zonda.end();
        }
    }
}

#[test]
fn a_file_that_is_served_with_another_serial_is_not_written_and_raises_it_once() {
    for is_reload in [true, false] {
        let text = deployment(3);
        let mut zonda = flushed(&format!("once-{is_reload}")).deployed(&text, is_reload);
        for _ in 0..2 {
            assert_eq!(zonda.serial(), 10);
            assert_eq!(zonda.server.flush(&name("example.org")).unwrap(), None);
            assert_eq!(zonda.file(), text);
            // The same file once more, of another time.
            zonda = zonda.deployed(&text, is_reload);
            let crashed = zonda.crashed(&format!("once-{is_reload}"));
            assert_eq!((crashed.serial(), crashed.file()), (10, text.clone()));
            crashed.end();
        }
        let diff = zonda.server.unflushed_diff(&name("example.org")).unwrap();
        assert_eq!((diff.from, diff.to, diff.added.len(), diff.removed.len()), (3, 10, 1, 1));
        // Other records, and still the serial of the file.
        let zonda = zonda.deployed(&(text + "more A 192.0.2.45\n"), is_reload);
        assert_eq!((zonda.serial(), zonda.ask("more.example.org")), (11, Some(45)));
        let zonda = zonda.restart();
        assert_eq!((zonda.serial(), zonda.ask("more.example.org")), (11, Some(45)));
        zonda.end();
    }
}

#[test]
fn a_file_with_a_greater_serial_is_served_as_it_is_also_where_another_one_had_been_raised() {
    for is_reload in [true, false] {
        let zonda = flushed(&format!("greater-{is_reload}")).deployed(&deployment(3), is_reload);
        assert_eq!(zonda.serial(), 10);
        let zonda = zonda.deployed(&(deployment(20) + "more A 192.0.2.45\n"), is_reload);
        assert_eq!((zonda.serial(), zonda.ask("more.example.org")), (20, Some(45)));
        assert!(zonda.server.unflushed_diff(&name("example.org")).unwrap().is_empty());
        let zonda = zonda.restart();
        assert_eq!(zonda.serial(), 20);
        // The serial of the greater file is known, too.
        let zonda = zonda.deployed(&deployment(8), is_reload);
        assert_eq!((zonda.serial(), zonda.ask("more.example.org")), (21, None));
        let zonda = zonda.deployed(&deployment(30), is_reload);
        let next = zonda.edit(vec![address("ns.example.org", 11)]).unwrap();
        assert_eq!((next.from, next.to), (30, 31));
        let crashed = zonda.crashed(&format!("greater-{is_reload}"));
        assert_eq!((crashed.serial(), crashed.ask("ns.example.org")), (31, Some(11)));
        crashed.end();
        let zonda = zonda.restart();
        assert_eq!((zonda.serial(), zonda.ask("ns.example.org")), (31, Some(11)));
        assert!(zonda.file().contains(" 31 "), "{}", zonda.file());
        zonda.end();
    }
}

/// The zone's file after an operator took the edit of the server over.
fn with_edit(serial: u32) -> String {
    ZONE.replacen(" 7 ", &format!(" {serial} "), 1) + "mail A 192.0.2.80\n"
}

#[test]
fn a_file_that_has_the_edits_already_is_served_by_its_serial_and_not_written() {
    for (serial, expected) in [(20, 20), (7, 8)] {
        for is_reload in [true, false] {
            let test = format!("has-edits-{serial}-{is_reload}");
            let zonda = Zonda::start(&test);
            zonda.edit(vec![address("mail.example.org", 80)]).unwrap();
            let zonda = match is_reload {
                true => zonda.deployed(&with_edit(serial), true),
                false => {
                    // As if the server was killed before it flushed anything.
                    let folder = zonda.folder.with_extension("killed");
                    copy_folder(&zonda.folder, &folder);
                    zonda.end();
                    fs::write(folder.join("example.org.zone"), with_edit(serial)).unwrap();
                    Zonda::start_in(folder, true).unwrap()
                }
            };
            assert_eq!((zonda.serial(), zonda.ask("mail.example.org")), (expected, Some(80)));
            let zonda = zonda.restart();
            assert_eq!(zonda.serial(), expected);
            assert_eq!(zonda.file(), with_edit(serial), "a flush does not write it");
            zonda.end();
        }
    }
}

#[test]
fn a_serial_is_compared_as_serial_numbers_are() {
    for is_reload in [true, false] {
        let zonda = flushed(&format!("wrap-{is_reload}"));
        let zonda = zonda.deployed(&deployment(2_000_000_000), is_reload);
        let zonda = zonda.deployed(&deployment(4_000_000_000), is_reload);
        assert_eq!(zonda.serial(), 4_000_000_000);
        let zonda = zonda.deployed(&(deployment(5) + "more A 192.0.2.45\n"), is_reload);
        assert_eq!((zonda.serial(), zonda.ask("more.example.org")), (5, Some(45)));
        let zonda = zonda.deployed(&deployment(4_000_000_000), is_reload);
        assert_eq!((zonda.serial(), zonda.ask("more.example.org")), (6, None));
        zonda.end();
    }
}

#[test]
fn a_file_with_the_records_of_the_last_version_and_a_lower_serial_keeps_that_versions_serial() {
    for is_reload in [true, false] {
        let text = ZONE.replace("192.0.2.1", "192.0.2.9").replace("h 7", "h 5");
        let zonda = flushed(&format!("same-{is_reload}")).deployed(&text, is_reload);
        assert_eq!((zonda.serial(), zonda.ask("ns.example.org")), (9, Some(9)));
        let diff = zonda.server.unflushed_diff(&name("example.org")).unwrap();
        assert_eq!((diff.from, diff.to, diff.added.len(), diff.removed.len()), (5, 9, 1, 1));
        let zonda = zonda.restart();
        assert_eq!((zonda.serial(), zonda.file()), (9, text));
        zonda.end();
    }
}

#[test]
fn a_zone_that_was_never_edited_keeps_its_serial_from_going_back_once_a_reload_has_raised_it() {
    let text = ZONE.replace("192.0.2.1", "192.0.2.2");
    let zonda = Zonda::start("unedited").deployed(&text, true);
    assert_eq!((zonda.serial(), zonda.ask("ns.example.org")), (8, Some(2)));
    let zonda = zonda.restart();
    assert_eq!((zonda.serial(), zonda.ask("ns.example.org")), (8, Some(2)));
    assert_eq!(zonda.file(), text);
    zonda.end();
}

#[test]
fn a_zone_that_is_signed_elsewhere_keeps_the_serial_of_its_file() {
    let signed = "@ DNSKEY 256 3 15 AAAA\n@ RRSIG SOA 15 2 60 20300101000000 20200101000000 1 \
                  example.org. AAAA\n";
    for serial in [3, 9] {
        for is_reload in [true, false] {
            let text = deployment(serial) + signed;
            let zonda = flushed(&format!("signed-{serial}-{is_reload}"));
            let zonda = zonda.deployed(&text, is_reload);
            let addresses = (zonda.ask("ns.example.org"), zonda.ask("extra.example.org"));
            assert_eq!((zonda.serial(), addresses), (serial, (Some(1), Some(44))));
            let zonda = zonda.restart();
            assert_eq!((zonda.serial(), zonda.file()), (serial, text));
            // The next edit begins with the serial of the file.
            let next = zonda.edit(vec![address("ns.example.org", 11)]).unwrap();
            assert_eq!((next.from, next.to), (serial, serial + 1));
            zonda.end();
        }
    }
}

#[test]
fn a_digest_of_the_zone_is_removed_where_another_serial_makes_it_wrong() {
    let digest = format!("@ ZONEMD 3 1 1 {}\n", "ab".repeat(48));
    let text = deployment(3) + &digest;
    let zonda = flushed("zonemd").deployed(&text, false);
    assert_eq!((zonda.serial(), zonda.ask("extra.example.org")), (10, Some(44)));
    let diff = zonda.server.unflushed_diff(&name("example.org")).unwrap();
    assert_eq!((diff.removed.len(), diff.added.len()), (2, 1), "{diff:?}");
    let zonda = zonda.restart();
    assert_eq!((zonda.serial(), zonda.file()), (10, text), "it is no edit");
    zonda.end();
}

#[test]
fn an_included_file_that_was_edited_by_hand_while_no_server_ran_raises_the_serial() {
    let zonda = Zonda::start("included");
    let (main, hosts) = (format!("{ZONE}$INCLUDE hosts\n"), "mail A 192.0.2.5\n");
    fs::write(zonda.folder.join("hosts"), hosts).unwrap();
    fs::write(zonda.folder.join("example.org.zone"), main).unwrap();
    assert!(zonda.server.reload().unwrap().is_empty());
    assert_eq!(zonda.serial(), 8, "the reload has brought a record under the serial of before");
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    fs::write(zonda.folder.join("hosts"), hosts.replace(".5", ".6")).unwrap();
    let crashed = zonda.crashed("included");
    let answers = (crashed.ask("ns.example.org"), crashed.ask("mail.example.org"));
    assert_eq!((crashed.serial(), answers), (10, (Some(9), Some(6))));
    crashed.end();
    zonda.end();
}

#[test]
fn a_second_server_with_the_same_state_directory_does_not_start() {
    let zonda = Zonda::start("two");
    let error = Zonda::start_in(zonda.folder.clone(), true).err().unwrap();
    assert!(error.contains("state/journal: in use by another process"), "{error}");
    zonda.end();
}

#[test]
fn a_zone_of_a_json_file_is_written_beside_the_others_of_the_file() {
    const FILE: &str = r#"[
        {"name": "example.org", "sha": "1", "records": [
            {"name": "example.org", "type": "SOA", "ttl": 60, "data": {"mname": "ns.example.org",
             "rname": "h.example.org", "serial": 7, "refresh": 2, "retry": 3, "expire": 4,
             "minimum": 5}},
            {"name": "example.org", "type": "NS", "ttl": 60, "data": {"dname": "ns.example.org"}},
            {"name": "ns.example.org", "type": "A", "ttl": 60, "data": {"ip": "192.0.2.1"}}]},
        {"name": "other.test", "sha": "2", "records": [
            {"name": "other.test", "type": "A", "ttl": 60, "data": {"ip": "192.0.2.2"}}]}]"#;
    let folder = std::env::temp_dir().join(format!("zonda-edit-json-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("all.json"), FILE).unwrap();
    let zonda = Zonda::start_in(folder, true).unwrap();
    zonda.edit(vec![address("ns.example.org", 9)]).unwrap();
    let crashed = zonda.crashed("json");
    assert_eq!((crashed.serial(), crashed.ask("ns.example.org")), (8, Some(9)));
    crashed.end();
    let zonda = zonda.restart();
    assert_eq!((zonda.serial(), zonda.ask("ns.example.org")), (8, Some(9)));
    let file = fs::read_to_string(zonda.folder.join("all.json")).unwrap();
    assert!(file.contains("other.test") && file.contains("192.0.2.9"), "{file}");
    assert!(!file.contains("192.0.2.1\""), "{file}");
    zonda.end();
}

#[test]
fn a_damaged_journal_is_reported_and_the_zone_served_from_its_file() {
    let zonda = Zonda::start("damaged");
    for last in [2, 3, 4] {
        zonda.edit(vec![address("ns.example.org", last)]).unwrap();
    }
    let Zonda { server, folder } = zonda;
    server.stop().unwrap();
    let journal = folder.join("state/journal");
    let mut octets = fs::read(&journal).unwrap();
    octets[70] ^= 1;
    fs::write(&journal, &octets).unwrap();
    let zonda = Zonda::start_in(folder, true).unwrap();
    assert_eq!(zonda.ask("ns.example.org"), Some(4), "the file has all changes");
    let error = zonda.edit(vec![address("ns.example.org", 5)]).unwrap_err();
    assert!(
        matches!(&error, EditError::Journal(text) if text.contains("damaged at octet")),
        "{error}"
    );
    assert_eq!(fs::read(&journal).unwrap(), octets, "nothing is changed in it");
    zonda.end();
}
