//! Tests of catalogs.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::engine_counters::EngineCounters;
use crate::feed::secondaries::NoticeQueue;
use crate::publish::Publisher;
use crate::texts::Texts;
use crate::watchdog::Watchdog;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// A catalog of two members.
const CATALOG_ZONE: &str = "$TTL 0\n@ SOA invalid. invalid. 1 3600 600 2147483646 0\n\
    @ NS invalid.\nversion TXT \"2\"\na.zones PTR one.test.\nb.zones PTR two.test.\n";

/// A configuration whose members have a primary that is nowhere.
const CONFIG: &str = "version = 1\nstate = \"state\"\n[[zone]]\nname = \"c.test\"\n\
    file = \"c.zone\"\n[[catalog]]\nname = \"c.test\"\n[catalog.secondary]\n\
    from = [\"127.0.0.1:1\"]\n";

/// The feeds of a folder's catalog, which has this text, and the configuration.
fn feeds(folder: &Path, text: &str) -> (CatalogFeeds, Arc<SecondaryFeeds>, Arc<Config>) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("c.zone"), text).unwrap();
    let file = folder.join("zonda.toml");
    fs::write(&file, CONFIG).unwrap();
    let flags = zonda_config::Flags::default();
    let config = Config::load(Some(&file), [], &flags).unwrap().config;
    let (texts, stores) = (Texts::default(), Vec::new());
    let own = (Default::default(), &texts, &stores);
    let first = Publisher::load(config, own, EngineCounters::new(0), 1).unwrap();
    let (publisher, _units) = first.start(&Arc::<Watchdog>::default()).unwrap();
    let config = Arc::clone(&publisher.state().config);
    let secondaries = Arc::new(SecondaryFeeds::new(NoticeQueue::default(), u64::MAX));
    let feeds = CatalogFeeds::new(publisher, Arc::clone(&secondaries));
    (feeds, secondaries, config)
}

#[test]
fn the_file_of_members_that_cannot_be_read_stays_and_its_members_come_back_with_it() {
    let pid = std::process::id();
    let folder = std::env::temp_dir().join(format!("zonda-unread-members-{pid}"));
    let (sender, _receiver) = sync_channel(1);
    let (first, secondaries, config) = feeds(&folder, CATALOG_ZONE);
    first.follow(&config, &sender).unwrap();
    assert_eq!(first.shared.work.lock().unwrap().membership.members().count(), 2);
    first.stop();
    secondaries.stop();
    let kept = fs::read_dir(folder.join("state/catalogs")).unwrap().next().unwrap();
    let file = kept.unwrap().path();
    let (sound, damaged) = (fs::read(&file).unwrap(), b"no members".as_slice());
    fs::write(&file, damaged).unwrap();
    // Meanwhile, the catalog has lost both members, and got another one.
    let (other, _) = CATALOG_ZONE.split_once("a.zones").unwrap();
    let other = format!("{other}c.zones PTR three.test.\n");
    let (next, secondaries, config) = feeds(&folder, &other);
    next.follow(&config, &sender).unwrap();
    let members = |work: &Work| -> Vec<String> {
        let mut zones: Vec<String> =
            work.membership.members().map(|(zone, _)| zone.to_string()).collect();
        zones.sort_unstable();
        zones
    };
    let state = |work: &Work| work.states().into_values().next().unwrap();
    let mut work = next.shared.work.lock().unwrap();
    assert_eq!(members(&work), ["three.test."], "what the catalog lists is served");
    let error = state(&work).error.unwrap();
    assert!(error.contains("is damaged; bring the file back, or remove it"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), damaged, "the file is left as it is");
    fs::write(&file, &sound).unwrap();
    let published = next.shared.publisher.state();
    next.shared.read_again(&mut work, &published, &sender);
    assert_eq!(members(&work), ["one.test.", "three.test.", "two.test."]);
    next.shared.look(&mut work, &sender);
    let (error, now) = (state(&work).error, members(&work));
    assert_eq!((error, now), (None, vec!["three.test.".to_owned()]), "two of few may go");
    drop(work);
    next.stop();
    secondaries.stop();
    let (last, secondaries, config) = feeds(&folder, &other);
    last.follow(&config, &sender).unwrap();
    assert_eq!(members(&last.shared.work.lock().unwrap()), ["three.test."]);
    last.stop();
    secondaries.stop();
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_file_of_members_that_the_disk_has_not_taken_is_written_at_the_next_look() {
    let pid = std::process::id();
    let folder = std::env::temp_dir().join(format!("zonda-refused-members-{pid}"));
    let (sender, _receiver) = sync_channel(1);
    let (first, secondaries, config) = feeds(&folder, CATALOG_ZONE);
    first.follow(&config, &sender).unwrap();
    first.stop();
    secondaries.stop();
    let kept = fs::read_dir(folder.join("state/catalogs")).unwrap().next().unwrap();
    let file = kept.unwrap().path();
    fs::remove_file(&file).unwrap();
    let refused = file.with_extension("new");
    fs::create_dir(&refused).unwrap(); // where the file is written at first
    let (next, secondaries, next_config) = feeds(&folder, CATALOG_ZONE);
    next.follow(&next_config, &sender).unwrap();
    assert!(!file.exists());
    fs::remove_dir(&refused).unwrap();
    let mut work = next.shared.work.lock().unwrap();
    work.looked = None; // it is time
    next.shared.look(&mut work, &sender);
    assert!(file.exists(), "though the catalog is as it was");
    drop(work);
    next.stop();
    secondaries.stop();
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_file_of_members_that_an_operator_has_removed_is_written_at_the_next_look() {
    let pid = std::process::id();
    let folder = std::env::temp_dir().join(format!("zonda-removed-members-{pid}"));
    let (sender, _receiver) = sync_channel(1);
    let (first, secondaries, config) = feeds(&folder, CATALOG_ZONE);
    first.follow(&config, &sender).unwrap();
    first.stop();
    secondaries.stop();
    let kept = fs::read_dir(folder.join("state/catalogs")).unwrap().next().unwrap();
    let file = kept.unwrap().path();
    let members = || CatalogFile::open(&config, &"c.test".parse().unwrap()).1.len();
    let listed = members();
    assert!(listed >= 2);
    fs::write(&file, "no members").unwrap();
    let (next, secondaries, next_config) = feeds(&folder, CATALOG_ZONE);
    next.follow(&next_config, &sender).unwrap();
    let mut work = next.shared.work.lock().unwrap();
    assert!(work.states().into_values().next().unwrap().error.is_some());
    fs::remove_file(&file).unwrap();
    work.looked = None; // it is time
    next.shared.look(&mut work, &sender);
    assert!(file.exists(), "though the catalog is as it was");
    assert_eq!(members(), listed);
    assert!(work.states().into_values().next().unwrap().error.is_none());
    drop(work);
    next.stop();
    secondaries.stop();
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn members_that_are_known_again_are_not_removed_by_a_catalog_that_was_emptied_meanwhile() {
    let pid = std::process::id();
    let folder = std::env::temp_dir().join(format!("zonda-emptied-catalog-{pid}"));
    let (sender, _receiver) = sync_channel(1);
    let (first, secondaries, config) = feeds(&folder, CATALOG_ZONE);
    first.follow(&config, &sender).unwrap();
    first.stop();
    secondaries.stop();
    let kept = fs::read_dir(folder.join("state/catalogs")).unwrap().next().unwrap();
    let (file, aside) = (kept.unwrap().path(), folder.join("aside"));
    fs::rename(&file, &aside).unwrap();
    fs::create_dir(&file).unwrap(); // nothing can be read there
    let (empty, _) = CATALOG_ZONE.split_once("a.zones").unwrap();
    let (next, secondaries, config) = feeds(&folder, empty);
    next.follow(&config, &sender).unwrap();
    let mut work = next.shared.work.lock().unwrap();
    assert!(work.states().into_values().next().unwrap().error.is_some());
    fs::remove_dir(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    let published = next.shared.publisher.state();
    next.shared.read_again(&mut work, &published, &sender);
    next.shared.look(&mut work, &sender);
    assert_eq!(work.membership.members().count(), 2, "the members stay");
    let error = work.states().into_values().next().unwrap().error.unwrap();
    assert!(error.contains("removes or resets 2 of 2 members"), "{error}");
    drop(work);
    next.stop();
    secondaries.stop();
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn members_are_followed_as_soon_as_the_threads_for_them_can_be_had() {
    let folder = std::env::temp_dir().join(format!("zonda-catalogs-{}", std::process::id()));
    let (feeds, secondaries, config) = feeds(&folder, CATALOG_ZONE);
    secondaries.starts_to_fail.store(2, Relaxed);
    let (sender, _receiver) = sync_channel(1);
    assert!(feeds.follow(&config, &sender).is_err());
    let until = Instant::now() + Duration::from_secs(20);
    while secondaries.states().len() < 2 {
        assert!(Instant::now() < until, "{:?}", feeds.states());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(secondaries.starts_to_fail.load(Relaxed), 0, "both have failed");
    feeds.stop();
    secondaries.stop();
    let _ = fs::remove_dir_all(folder);
}
