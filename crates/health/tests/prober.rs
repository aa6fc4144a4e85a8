//! Probers with real targets.

#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use common::{refusing, server, target};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};
use zonda_health::{
    Assignment, CommandCheck, Fault, HttpCheck, Kind, Limits, Observation, Prober, Push, PushCheck,
    Start, State, TargetId, Thresholds, Timing,
};

/// The interval of these tests.
const INTERVAL: Duration = Duration::from_millis(50);

/// Returns an assignment with a short interval.
fn assignment(id: u64, address: SocketAddr, kind: Kind) -> Assignment {
    let thresholds = Thresholds { rise: 2, fall: 2, start: Start::Up, damping: None };
    let timing = Timing { interval: INTERVAL, timeout: Duration::from_millis(500), thresholds };
    Assignment { id: TargetId(id), target: target(address, kind), timing }
}

/// Starts a prober, whose observations come over a channel.
fn prober(limits: Limits) -> (Prober, UnboundedReceiver<Observation>) {
    let (sender, observations) = unbounded_channel();
    let observer = move |it: &Observation| drop(sender.send(it.clone()));
    (Prober::new(&Handle::current(), limits, observer), observations)
}

/// Waits for an observation.
async fn next(observations: &mut UnboundedReceiver<Observation>) -> Observation {
    timeout(Duration::from_secs(5), observations.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_target_of_many_ids_is_connected_to_once_an_interval() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let address = server("127.0.0.1:0", move |_| {
        count.fetch_add(1, SeqCst);
        async {}
    })
    .await;
    let (prober, mut observations) = prober(Limits::default());
    prober.set_targets((0..100).map(|id| assignment(id, address, Kind::Tcp)).collect()).unwrap();
    for _ in 0..1_000 {
        assert!(next(&mut observations).await.outcome.is_ok());
    }
    let counts = prober.counts();
    assert_eq!((counts.targets, counts.probes), (100, 1));
    assert!((9..=13).contains(&connections.load(SeqCst)), "{connections:?}");
}

#[tokio::test]
async fn a_target_goes_down_and_comes_up_and_each_change_is_observed_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (prober, mut observations) = prober(Limits::default());
    prober.set_targets(vec![assignment(7, address, Kind::Tcp)]).unwrap();
    let first = next(&mut observations).await;
    assert_eq!((first.id, first.state), (TargetId(7), State::Up));
    assert_eq!(first.changed_from, Some(State::Unknown));
    assert_eq!(first.earliest_change, 2 * INTERVAL);

    drop(listener);
    let down = loop {
        let observation = next(&mut observations).await;
        assert!(prober.now() - observation.at < 1_000_000_000, "also on a busy machine");
        if observation.changed_from.is_some() {
            break observation;
        }
    };
    assert_eq!((down.state, down.counts_as_up), (State::Down, false));
    assert_eq!(down.outcome, Err(Fault::Refused));

    let _listener = TcpListener::bind(address).await.unwrap();
    let up = loop {
        let observation = next(&mut observations).await;
        if observation.changed_from.is_some() {
            break observation;
        }
    };
    assert_eq!((up.state, up.changed_from), (State::Up, Some(State::Down)));
    let health = prober.health(TargetId(7)).unwrap();
    assert_eq!((health.changes_total(), health.since()), (3, up.at));
}

#[tokio::test]
async fn targets_that_are_left_out_are_observed_no_more_and_the_rest_keeps_its_state() {
    let (up, down) = (server("127.0.0.1:0", |_| async {}).await, refusing().await);
    let (prober, mut observations) = prober(Limits::default());
    let both = vec![assignment(1, up, Kind::Tcp), assignment(2, down, Kind::Tcp)];
    prober.set_targets(both).unwrap();
    while prober.health(TargetId(2)).unwrap().state() != State::Down {
        next(&mut observations).await;
    }
    let since = prober.health(TargetId(1)).unwrap().since();
    prober.set_targets(vec![assignment(1, up, Kind::Tcp)]).unwrap();
    while observations.try_recv().is_ok() {}
    for _ in 0..5 {
        assert_eq!(next(&mut observations).await.id, TargetId(1));
    }
    assert_eq!(prober.health(TargetId(1)).unwrap().since(), since);
    assert!(prober.health(TargetId(2)).is_none());
}

#[tokio::test]
async fn no_more_probes_than_the_limit_are_under_way() {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now_open, most_open) = (Arc::clone(&open), Arc::clone(&most));
    let address = server("127.0.0.1:0", move |stream| {
        let (open, most) = (Arc::clone(&open), Arc::clone(&most));
        async move {
            most.fetch_max(open.fetch_add(1, SeqCst) + 1, SeqCst);
            sleep(Duration::from_millis(100)).await;
            open.fetch_sub(1, SeqCst);
            drop(stream);
        }
    })
    .await;
    let (prober, mut observations) = prober(Limits { concurrent_max: 3, ..Limits::default() });
    let check = |id: u64| {
        let check = HttpCheck::new(&format!("/{id}")).unwrap();
        assignment(id, address, Kind::Http(check))
    };
    prober.set_targets((0..12).map(check).collect()).unwrap();
    for _ in 0..24 {
        next(&mut observations).await;
    }
    assert_eq!(most_open.load(SeqCst), 3);
    assert!(prober.counts().postponed > 0);
    assert!(prober.counts().running <= 3 && now_open.load(SeqCst) <= 3);
}

#[tokio::test]
async fn programs_wait_for_one_another_and_none_runs_out_of_time_for_it() {
    let (prober, mut observations) = prober(Limits { programs_max: 1, ..Limits::default() });
    let sleep_for = |id: u64| {
        let check = CommandCheck::new(&["sleep", "0.2", &format!("0.000{id}")]).unwrap();
        assignment(id, "127.0.0.1:1".parse().unwrap(), Kind::Command(check))
    };
    let begun = Instant::now();
    prober.set_targets((1..=5).map(sleep_for).collect()).unwrap();
    for _ in 0..5 {
        let observation = next(&mut observations).await;
        assert!(observation.outcome.is_ok(), "{:?}", observation.outcome);
        assert!(observation.took < Duration::from_millis(450), "without the time of waiting");
    }
    assert!(begun.elapsed() >= Duration::from_secs(1), "one after the other");
}

#[tokio::test]
async fn a_pushed_value_is_observed_before_the_push_returns() {
    let (prober, mut observations) = prober(Limits::default());
    let kind = Kind::Push(PushCheck { name: "deploy".into() });
    prober.set_targets(vec![assignment(1, "192.0.2.1:80".parse().unwrap(), kind)]).unwrap();
    let push = |is_up, milliseconds| {
        let expires_in = Duration::from_millis(milliseconds);
        prober.push(&Push { name: "deploy", address: None, is_up, text: "v2", expires_in })
    };
    assert_eq!(push(true, 10_000), 1);
    assert_eq!(observations.try_recv().unwrap().state, State::Up);
    assert_eq!(push(false, 10_000), 1);
    let down = observations.try_recv().unwrap();
    assert_eq!((down.state, down.outcome), (State::Down, Err(Fault::Pushed("v2".into()))));
    assert_eq!(push(true, 20), 1);
    assert_eq!(observations.try_recv().unwrap().state, State::Up);
    let begun = Instant::now();
    let expired = next(&mut observations).await;
    assert_eq!((expired.state, expired.outcome), (State::Down, Err(Fault::Expired)));
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(expired.earliest_change, Duration::ZERO);
}

#[tokio::test]
async fn a_prober_ends_with_its_last_handle() {
    let address = server("127.0.0.1:0", |_| async {}).await;
    let (prober, mut observations) = prober(Limits::default());
    prober.set_targets(vec![assignment(1, address, Kind::Tcp)]).unwrap();
    next(&mut observations).await;
    let clone = prober.clone();
    drop(prober);
    next(&mut observations).await;
    drop(clone);
    let begun = Instant::now();
    while timeout(Duration::from_secs(2), observations.recv()).await.unwrap().is_some() {
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}
