//! Tests of refreshes: of transfers that wait for memory, and of what is left of those in step.

#![allow(clippy::unwrap_used)]

use super::secondary_memory::octets_max;
use super::secondary_transfer::{TransferResult, transfer};
use super::secondary_work::{Fallback, MemoryWait, WITHOUT_CHANGES, WithoutChanges, ZoneWork};
use super::secondary_zone::{FollowTerms, SecondaryZone, Surroundings, now_secs, secs_from_now};
use crate::engine_counters::EngineCounters;
use crate::feed::secondary_memory::wait_left;
use crate::feed::secondary_refresh::refresh;
use crate::feed::secondary_schedule::Prompt;
use crate::feed::secondary_state::SecondaryCounters;
use crate::feed::secondary_zone::WaitListener;
use crate::publish::Publisher;
use crate::texts::Texts;
use crate::watchdog::Watchdog;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use zonda_config::{Config, Flags};
use zonda_secondary::{Budget, KeptPlace, Place, Primary};
use zonda_zone::file::{Options, read_text};
const MIB: u64 = 1 << 20;

/// A configuration with one zone of primaries.
const CONFIG: &str = "version = 1\n[[zone]]\nname = \"one.test\"\n[zone.secondary]\n\
    from = [\"127.0.0.1:1\"]\n";

/// A primary at an address.
fn primary(address: SocketAddr) -> Primary {
    Primary { address, key: None }
}

/// A zone of primaries that nothing looks after, and what threads share that would.
fn zone(budget: &Arc<Budget>) -> (SecondaryZone, Surroundings) {
    let text = (Path::new("/zonda.toml"), CONFIG.to_owned());
    let config = Config::load_text(text, [], &Flags::default()).unwrap().config;
    let (zone, keys) = config.secondaries().next().unwrap();
    let (apex, first) = (zone.name.clone().unwrap(), sync_channel(0).0);
    let (keys, primaries) = (Arc::clone(keys), Arc::default());
    let terms = FollowTerms { number: 1, keys, is_member: false, primaries };
    let zone = SecondaryZone::new(&apex, terms.into(), &Arc::new(first));
    let (texts, stores) = (Texts::default(), Vec::new());
    let own = (Default::default(), &texts, &stores);
    let publisher = Publisher::load(config, own, EngineCounters::new(0), 1).unwrap();
    let (publisher, _units) = publisher.start(&Arc::<Watchdog>::default()).unwrap();
    let counters = Arc::<SecondaryCounters>::default();
    let note_wait: WaitListener = Box::new(|_, _| ());
    let waits = (Arc::clone(budget), note_wait);
    (zone, Surroundings::new(publisher, Err("none".to_owned()), counters, waits))
}

/// Has a zone follow one primary.
fn set_primary(zone: &mut SecondaryZone, primary: &Primary) {
    let primaries = Arc::from([primary.clone()]);
    zone.terms = Arc::new(FollowTerms { primaries, ..FollowTerms::clone(&zone.terms) });
}

/// The wait of a transfer from a primary for so many octets.
fn wait(budget: &Arc<Budget>, place: Place, octets: u64, primary: &Primary) -> MemoryWait {
    let (kept, since, primary) = (KeptPlace::new(budget, place), Some(7), primary.address);
    let (of_changes, check_at, fallback) = (0, None, None);
    MemoryWait { kept, octets, of_changes, check_at, since, primary, fallback }
}

/// What is known of a zone whose version 7 is from a primary, and expires in an hour.
fn work_from(primary: &Primary) -> ZoneWork {
    let text = "$ORIGIN one.test.\n$TTL 60\n@ SOA ns host 7 7200 3600 86400 60\n@ NS ns\n\
        ns A 192.0.2.1\n";
    let (apex, options) = ("one.test".parse().unwrap(), Options::default());
    let (records, _) = read_text(text.as_bytes(), Path::new("text"), &apex, &options);
    let zone = zonda_zone::build(&apex, &records, zonda_zone::HashSeed::random()).unwrap();
    let mut work = ZoneWork::default();
    (work.zone, work.source) = (Some(Arc::new(zone)), Some(Arc::new(primary.address)));
    (work.is_loaded, work.published_by) = (true, 1);
    work.agreed = (now_secs().into(), secs_from_now(Duration::from_secs(3600)).into());
    work
}

#[test]
fn changes_are_asked_for_while_the_whole_zone_from_another_primary_waits_for_memory() {
    let budget = Arc::new(Budget::new(4 * MIB));
    let (zone, around) = zone(&budget);
    let place = budget.share(None).place();
    let (mut running, other) = (budget.share(None), primary(([127, 0, 0, 2], 1).into()));
    assert!(running.reserve(4 * MIB));
    let source = primary(([127, 0, 0, 1], 1).into());
    let mut work = work_from(&source);
    work.rare_mut().wait = Some(wait(&budget, place, 3 * MIB, &other).into());
    let transferred = transfer(&zone, &mut work, &source, &around);
    assert!(matches!(transferred, Ok(TransferResult::Postponed)));
    let kept = work.rare().unwrap().wait.as_ref().unwrap();
    assert!(kept.fallback.is_some(), "changes were asked for, of a port that is closed");
    assert_eq!((kept.kept.place(), kept.octets), (Some(place), 3 * MIB));
    let transferred = transfer(&zone, &mut work, &other, &around);
    assert!(matches!(transferred, Ok(TransferResult::Postponed)), "the whole zone waits");
    let kept = work.rare_mut().wait.take().unwrap();
    assert_eq!((kept.kept.place(), kept.octets), (Some(place), 3 * MIB));
}

/// A primary that says over UDP that its serial is 7, and counts the questions. It does not answer
/// over TCP: its port is closed there.
fn primary_of_serial_7(asked: Arc<AtomicUsize>) -> Primary {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let primary = primary(socket.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((_, client)) = socket.recv_from(&mut query) {
            asked.fetch_add(1, SeqCst);
            let end = 12 + "one.test".len() + 2 + 4; // of the question
            let mut reply = query[..end].to_vec();
            reply[2..12].copy_from_slice(&[0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
            reply.extend([0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 60, 0, 22, 0, 0, 0, 0, 0, 7]);
            reply.extend([7200_u32, 3600, 86400, 60].iter().flat_map(|it| it.to_be_bytes()));
            socket.send_to(&reply, client).unwrap();
        }
    });
    primary
}

#[test]
fn a_zone_in_step_does_not_expire_while_a_transfer_that_an_operator_asked_for_waits() {
    let budget = Arc::new(Budget::new(4 * MIB));
    let (mut zone, around) = zone(&budget);
    let place = budget.share(None).place();
    let mut running = budget.share(None);
    assert!(running.reserve(4 * MIB));
    let asked = Arc::<AtomicUsize>::default();
    let source = primary_of_serial_7(Arc::clone(&asked));
    set_primary(&mut zone, &source);
    let mut work = work_from(&source);
    let former = work.agreed.1.secs();
    let waits = MemoryWait {
        check_at: Some(Instant::now() + Duration::from_secs(60)),
        ..wait(&budget, place, 4 * MIB, &source)
    };
    work.rare_mut().wait = Some(waits.into());
    let prompt = Some(Prompt::Retransfer);
    let left = refresh(&zone, &mut work, prompt, &around);
    assert!(left <= Duration::from_secs(1) && asked.load(SeqCst) == 0, "it is not yet time");
    work.rare_mut().wait.as_mut().unwrap().check_at = Some(Instant::now());
    for _ in 0..2 {
        let left = refresh(&zone, &mut work, prompt, &around);
        assert!(left <= Duration::from_secs(1) && !left.is_zero(), "{left:?}");
        assert_eq!(asked.load(SeqCst), 1, "once, until the retry time has passed");
    }
    assert!(work.agreed.1.secs() > former + 3600, "it expires a day from now");
    let kept = work.rare_mut().wait.take().unwrap();
    assert_eq!((kept.kept.place(), kept.octets, kept.since), (Some(place), 4 * MIB, Some(7)));
    assert!(zone.state.lock().memory_wait().is_some());
}

#[test]
fn a_refresh_that_finds_the_zone_in_step_leaves_nothing_that_most_zones_do_not_have() {
    let budget = Arc::new(Budget::new(4 * MIB));
    let (mut zone, around) = zone(&budget);
    let source = primary_of_serial_7(Arc::default());
    set_primary(&mut zone, &source);
    let mut work = work_from(&source);
    refresh(&zone, &mut work, None, &around);
    assert!(work.rare().is_none(), "there was nothing");
    let now = Instant::now();
    let past = now.checked_sub(WITHOUT_CHANGES).unwrap();
    for (until, is_left) in [(past, false), (now + Duration::from_secs(60), true)] {
        let rare = work.rare_mut();
        rare.expired_soa = Some(Box::default()); // of the version before an outage
        let (primary, pause) = (source.address, WITHOUT_CHANGES);
        rare.without_changes = Some(WithoutChanges { primary, until, pause }.into());
        let bounds = (Duration::from_secs(60), Duration::from_secs(60));
        rare.refused.add((source.address, 6), "too large", bounds, now);
        refresh(&zone, &mut work, None, &around);
        assert_eq!(work.rare().is_some(), is_left, "the primary has sent no changes");
    }
    assert!(work.rare().unwrap().expired_soa.is_none());
}

#[test]
fn a_primary_that_answers_over_udp_alone_leaves_nothing_that_most_zones_do_not_have() {
    let budget = Arc::new(Budget::new(4 * MIB));
    let (mut zone, around) = zone(&budget);
    let source = primary_of_serial_7(Arc::default());
    set_primary(&mut zone, &source);
    let mut work = ZoneWork::default();
    (work.is_loaded, work.published_by) = (true, 1);
    for failures in 1..3 {
        refresh(&zone, &mut work, None, &around);
        assert_eq!(work.failures, failures);
        assert!(work.rare().is_none(), "it may have 100,000 zones");
    }
    let status = zone.state.lock();
    assert!(status.error().is_some_and(|error| error.contains("refused")), "{:?}", status.error());
}

#[test]
fn a_transfer_goes_on_waiting_where_no_primary_answers_meanwhile() {
    let budget = Arc::new(Budget::new(4 * MIB));
    let (mut zone, around) = zone(&budget);
    let place = budget.share(None).place();
    let mut running = budget.share(None);
    assert!(running.reserve(4 * MIB));
    let gone = primary(([127, 0, 0, 1], 1).into());
    set_primary(&mut zone, &gone);
    let mut work = work_from(&gone);
    let check_at = Some(Instant::now());
    let waits = MemoryWait { check_at, ..wait(&budget, place, 4 * MIB, &gone) };
    work.rare_mut().wait = Some(waits.into());
    let left = refresh(&zone, &mut work, Some(Prompt::Retransfer), &around);
    assert!(left <= Duration::from_secs(1) && work.failures == 1, "{left:?}");
    assert_eq!(work.rare().unwrap().wait.as_ref().unwrap().kept.place(), Some(place));
    drop(running);
    let left = refresh(&zone, &mut work, Some(Prompt::Retransfer), &around);
    assert!(left > Duration::from_secs(60) && work.rare_mut().wait.is_none(), "{left:?}");
}

#[test]
fn a_transfer_waits_for_no_more_than_its_zone_may_take_after_a_reload() {
    let budget = Arc::new(Budget::new(4 * MIB));
    let (zone, _around) = zone(&budget);
    let place = budget.share(None).place();
    let mut running = budget.share(None);
    assert!(running.reserve(4 * MIB));
    let mut work = ZoneWork::default();
    let of = primary(([127, 0, 0, 1], 1).into());
    work.rare_mut().wait = Some(wait(&budget, place, u64::MAX, &of).into());
    assert!(wait_left(&zone, &mut work).is_some());
    assert_eq!(work.rare_mut().wait.take().unwrap().octets, octets_max(&zone));
    assert_eq!(zone.state.lock().memory_wait().unwrap().octets, octets_max(&zone));
}

#[test]
fn a_transfer_from_the_next_primary_has_the_place_and_the_size_of_the_one_that_has_failed() {
    let budget = Arc::new(Budget::new(4 * MIB));
    let (zone, around) = zone(&budget);
    let (place, octets, since) = (budget.share(None).place(), 3 * MIB, Some(7));
    let gone = primary(([127, 0, 0, 1], 1).into());
    let mut work = ZoneWork::default();
    work.rare_mut().wait = Some(wait(&budget, place, octets, &gone).into());
    assert!(transfer(&zone, &mut work, &gone, &around).is_err());
    let mut other = budget.share(None);
    assert!(!other.reserve(4 * MIB), "the room is kept for the next primary");
    let next = primary(([127, 0, 0, 2], 1).into());
    assert!(transfer(&zone, &mut work, &next, &around).is_err());
    let wait = work.rare_mut().wait.take().unwrap();
    assert_eq!((wait.kept.place(), wait.octets, wait.since), (Some(place), octets, since));
    assert_eq!(wait.primary, next.address);
}

#[test]
fn the_whole_zone_has_what_changes_have_left_of_the_time_also_if_it_has_waited_in_between() {
    let budget = Arc::new(Budget::new(4 * MIB));
    let (zone, around) = zone(&budget);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let primary = primary(listener.local_addr().unwrap());
    let (error, spent) = ("a gap".to_owned(), zone.limits().time_max);
    let fallback = Some(Fallback { error, without_changes: None, spent });
    let place = budget.share(None).place();
    let mut work = ZoneWork::default();
    let waits = MemoryWait { fallback, ..wait(&budget, place, 0, &primary) };
    work.rare_mut().wait = Some(waits.into());
    let error = transfer(&zone, &mut work, &primary, &around).err().unwrap().error;
    assert!(error.contains("was not whole after"), "{error}");
    assert!(error.ends_with("before that, with changes: a gap"), "{error}");
}
