//! Tests of what a feed sends while a file serves its zone.

#![allow(clippy::unwrap_used)]

use super::fed_zone::FedOwner;
use super::version::Version;
use super::{Outcome, ZoneSet};
use crate::engine_counters::EngineCounters;
use crate::feed::{LoadedZone, Update};
use crate::load_error::LoadError;
use crate::units::{Unit, survey};
use std::path::Path;
use std::sync::Arc;
use zonda_config::{Config, Flags};
use zonda_engine::zones::ZoneExpiry;
use zonda_wire::Name;
use zonda_zone::file::{Options, read_text};
use zonda_zone::{ChangeSet, HashSeed, Serial, SetChange, build};

/// The serial of a version, whether it has the expiry of its feed, whether it has expired, and
/// whether there is an error.
type Facts = (Option<u32>, bool, bool, bool);

/// The name of the zone.
fn apex() -> Name {
    "a.test".parse().unwrap()
}

/// The configuration of the zone, with these lines about its source.
fn config(source: &str) -> Config {
    let text = format!("version = 1\n[[zone]]\nname = \"a.test\"\n{source}\n");
    Config::load_text((Path::new("/zonda.toml"), text), [], &Flags::default()).unwrap().config
}

/// A file that has the name of the zone.
fn file() -> Unit {
    survey(&config("file = \"/a.zone\"").zones, |_| Vec::new()).units.remove(0)
}

/// All records of a version with this serial.
fn records(serial: u32) -> Update {
    let text = format!("@ 60 SOA ns host {serial} 1 1 600 1\n@ 60 NS ns\nns 60 A 192.0.2.1\n");
    let (records, _) = read_text(text.as_bytes(), Path::new("text"), &apex(), &Options::default());
    let zone = Arc::new(build(&apex(), &records, HashSeed(1)).unwrap());
    Update::Replace(LoadedZone { zone, records: 3, digest: None, expiry: None })
}

/// A change to this serial.
fn change(serial: u32) -> Update {
    Update::Change(ChangeSet { sets: Vec::new(), serial: Serial::Exactly(serial) })
}

/// A change that the zone cannot have.
fn wrong_change() -> Update {
    let outside = SetChange::RemoveName { owner: "example.org".parse().unwrap() };
    Update::Change(ChangeSet { sets: vec![outside], serial: Serial::Keep })
}

/// What keeps a feed from having records.
fn error() -> LoadError {
    LoadError { first: "no primary answers".to_owned(), count: 0 }
}

/// What is known of a version.
fn facts(version: &Version, expiry: &Arc<ZoneExpiry>) -> Facts {
    let has_expiry = version.expiry.as_ref().is_some_and(|it| Arc::ptr_eq(it, expiry));
    let serial = version.data.as_ref().map(|data| data.serial());
    (serial, has_expiry, version.is_expired, version.error.is_some())
}

/// The updates of a feed in their order, whether each is taken, what is known of the version of
/// the feed then, and of the version that is served if the file goes then.
fn updates() -> Vec<(Update, bool, Facts, Facts)> {
    let [eight, nine] = [8, 9].map(|serial| (Some(serial), true, false, false));
    let failing = (Some(9), true, false, true);
    // The records of the file are served until the feed has some, for no longer than those had.
    let (expired, of_file) = ((None, true, true, true), (Some(100), true, false, true));
    vec![
        (records(8), true, eight, eight),
        (change(9), true, nine, nine),
        (wrong_change(), false, nine, nine),
        (Update::Unavailable(error()), true, failing, failing),
        (Update::Expired(error()), true, expired, of_file),
    ]
}

#[test]
fn what_a_feed_sends_while_a_file_serves_its_zone_is_served_once_the_file_is_gone() {
    for sent in 0..=updates().len() {
        let config = config("[zone.secondary]\nfrom = [\"192.0.2.1\"]");
        let mut zones = ZoneSet::new(HashSeed(1), EngineCounters::new(0), &config);
        let (name, mut outcome) = (apex(), Outcome::default());
        let expiry = Arc::<ZoneExpiry>::default();
        zones.add_stores(&config, &mut outcome);
        zones.adopt_feed(std::slice::from_ref(&name), 1, FedOwner::Configuration);
        zones.update_fed(&name, 1, records(7).with_expiry(&expiry)).unwrap();
        zones.put(&file(), &name, records(100), &mut outcome);
        let mut to_be_served = (Some(7), true, false, false);
        for (update, is_taken, of_feed, served) in updates().into_iter().take(sent) {
            let taken = zones.update_fed(&name, 1, update.with_expiry(&expiry));
            assert_eq!(taken.is_ok(), is_taken, "update {sent}");
            let aside = zones.fed[&name].aside.as_deref().unwrap();
            assert_eq!(facts(aside, &expiry), of_feed, "update {sent}");
            assert_eq!(zones.fed_serial(&name), of_feed.0, "update {sent}");
            assert_eq!(zones.zone(&name).unwrap().data().unwrap().serial(), 100);
            to_be_served = served;
        }
        zones.remove(&name, &mut outcome);
        let served = Version::of(zones.zone(&name).unwrap());
        assert_eq!(facts(&served, &expiry), to_be_served, "after {sent} updates");
        assert_eq!(zones.fed_serial(&name), to_be_served.0, "after {sent} updates");
        assert!(zones.fed[&name].aside.is_none(), "it is in memory once");
    }
}
