//! Changes of zones while they are served.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use zonda_config::Flags;
use zonda_server::{Edit, EditError, Options, Program, Server, Texts, read_config};
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

impl Zonda {
    fn start(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("zonda-edit-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("example.org.zone");
        fs::write(&file, ZONE).unwrap();
        let zones = vec![format!("example.org={}", file.display())];
        let listen = vec!["127.0.0.1:0".to_owned()];
        let flags = Flags { listen, zones, ..Flags::default() };
        let load = move || read_config(None, &flags, None, &Texts::default());
        let (config, read_config) = (load().unwrap(), Box::new(load));
        let options =
            Options { config, read_config, take_over: false, program: Program::default() };
        Self { server: Server::start(options).unwrap(), folder }
    }

    /// Changes the zone.
    fn edit(&self, sets: Vec<SetChange>) -> Result<Diff, EditError> {
        let zone = name("example.org");
        self.server.edit(Edit { zone, sets, if_serial: None, is_dry_run: false })
    }

    /// The last octet of the address of an owner, or nothing if it has no address.
    fn ask(&self, owner: &str) -> Option<u8> {
        let header = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0";
        let query = [&header[..], name(owner).as_wire(), &[0, 1, 0, 1]].concat();
        let zonda_server::OwnReply::Now(Some(reply)) = self.server.query(&query, None) else {
            panic!("no reply")
        };
        let has_answer = reply[3] & 15 == 0 && reply[7] > 0;
        has_answer.then(|| reply[query.len() + 15]) // behind a pointer to the name
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
        zonda.server.edit(Edit { zone, sets, if_serial: Some(serial), is_dry_run: false })
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
    let dry = Edit { zone, sets: sets.clone(), if_serial: None, is_dry_run: true };
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
    let edit = Edit { zone: name("example.net"), sets, if_serial: None, is_dry_run: false };
    let error = zonda.server.edit(edit).unwrap_err();
    assert_eq!(error, EditError::NoSuchZone(name("example.net")));
    zonda.end();
}
