//! Connections over TCP: what is reused, and what becomes of queries when a connection ends.
#![allow(clippy::unwrap_used)]

mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use server::{Manner, Server, answer, query};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zonda_client::{Connections, Fault, Protocol};

fn connections(address: SocketAddr) -> Arc<Connections> {
    Connections::new(Protocol::Tcp, vec![address])
}

/// Asks for a name and expects its answer.
async fn expect(connections: &Arc<Connections>, id: u16, name: &str) {
    let query = query(id, name);
    let message = timeout(Duration::from_secs(5), connections.ask(&query)).await.unwrap().unwrap();
    assert_eq!(message[..query.len()][12..], answer(&query, false)[12..]);
    assert_eq!(message[..2], id.to_be_bytes());
}

#[tokio::test]
async fn queries_one_after_the_other_share_a_connection() {
    let server = Server::start(Manner::Prompt, None).await;
    let connections = connections(server.address);
    for id in 0..10 {
        expect(&connections, id, "one").await;
    }
    let counts = connections.counts();
    assert_eq!((server.accepted(), counts.opened, counts.open, counts.reused), (1, 1, 1, 9));
}

#[tokio::test]
async fn answers_out_of_order_reach_their_queries_even_under_the_same_id() {
    let server = Server::start(Manner::Reversed(100), None).await;
    let connections = connections(server.address);
    let mut tasks = JoinSet::new();
    for number in 0..100 {
        let connections = Arc::clone(&connections);
        tasks.spawn(async move { expect(&connections, 7, &format!("name{number}")).await });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    assert_eq!(server.accepted(), 1, "all have waited for the same dial");
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_loses_nothing() {
    for manner in [Manner::Closing(3), Manner::Dropping(3)] {
        let server = Server::start(manner, None).await;
        let connections = connections(server.address);
        for id in 0..12 {
            expect(&connections, id, "one").await;
        }
        assert_eq!(server.accepted(), 4);
    }
}

#[tokio::test]
async fn a_server_that_died_is_queried_over_a_new_connection() {
    let server = Server::start(Manner::Dying, None).await;
    let connections = connections(server.address);
    expect(&connections, 1, "one").await;
    let lost = query(2, "two");
    assert!(timeout(Duration::from_millis(1600), connections.ask(&lost)).await.is_err());
    expect(&connections, 3, "three").await;
    assert_eq!(server.accepted(), 2);
}

/// Asks so many questions, each of which may wait for 20 seconds; returns what becomes of them.
fn ask_all(connections: &Arc<Connections>, count: u16) -> JoinSet<Result<Vec<u8>, Fault>> {
    let mut tasks = JoinSet::new();
    for id in 0..count {
        let (connections, query) = (Arc::clone(connections), query(id, "one"));
        tasks.spawn(async move {
            let answer = timeout(Duration::from_secs(20), connections.ask(&query)).await;
            answer.unwrap_or(Err(Fault::Late))
        });
    }
    tasks
}

#[tokio::test]
async fn a_server_that_accepts_connections_and_never_answers_has_no_more_than_a_few() {
    let server = Server::start(Manner::Reversed(usize::MAX), None).await;
    let connections = connections(server.address);
    let mut asking = Vec::new();
    for _ in 0..70 {
        asking.push(ask_all(&connections, 10));
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.accepted(), 8, "after 7 seconds, half a second each");
    let ended = asking.iter_mut().filter_map(JoinSet::try_join_next);
    assert_eq!(ended.map(Result::unwrap).collect::<Vec<_>>(), [], "all wait");
}

#[tokio::test]
async fn answers_to_abandoned_queries_are_counted_and_are_no_flood() {
    const GIVEN_UP: u16 = 3999;
    let server = Server::start(Manner::Reversed(usize::from(GIVEN_UP) + 1), None).await;
    let (connections, long) = (connections(server.address), "a".repeat(60));
    let mut tasks = JoinSet::new();
    for id in 0..GIVEN_UP {
        let (connections, query) = (Arc::clone(&connections), query(id, &long));
        tasks.spawn(async move {
            timeout(Duration::from_millis(400), connections.ask(&query)).await.is_err()
        });
    }
    assert!(tasks.join_all().await.iter().all(|is_given_up| *is_given_up));
    expect(&connections, 7, &long).await; // the last, which the server answers first
    let late = timeout(Duration::from_secs(5), async {
        while connections.counts().late < GIVEN_UP.into() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    let is_counted = late.await.is_ok();
    let counts = connections.counts();
    assert_eq!((counts.open, counts.flooded, &counts.fault), (1, 0, &None), "{counts:?}");
    assert!(is_counted && server.accepted() == 1, "{counts:?}");
}

#[tokio::test]
async fn a_connection_that_seemed_to_be_dead_is_used_again_once_an_answer_comes() {
    let server = Server::start(Manner::Late(Duration::from_millis(900)), None).await;
    let connections = connections(server.address);
    let first = ask_all(&connections, 10);
    sleep(Duration::from_millis(600)).await;
    let second = ask_all(&connections, 1); // over another connection
    assert!(first.join_all().await.iter().all(Result::is_ok));
    let third = timeout(Duration::from_millis(300), connections.ask(&query(1, "one"))).await;
    assert!(third.unwrap().is_ok(), "over the first connection");
    assert!(second.join_all().await.iter().all(Result::is_ok));
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_connection_that_the_server_wants_closed_carries_no_more_queries() {
    let server = Server::start(Manner::Leaving, None).await;
    let connections = connections(server.address);
    for id in 0..3 {
        expect(&connections, id, "one").await;
    }
    assert_eq!(server.accepted(), 3);
}

#[tokio::test]
async fn an_abandoned_query_frees_its_place() {
    let server = Server::start(Manner::Reversed(2), None).await;
    let connections = connections(server.address);
    let first = query(1, "one");
    assert!(timeout(Duration::from_millis(50), connections.ask(&first)).await.is_err());
    expect(&connections, 2, "two").await;
}

#[tokio::test]
async fn a_server_that_is_down_is_dialled_rarely_and_used_again_when_it_is_back() {
    let address = Server::start(Manner::Prompt, None).await.address;
    let gone: SocketAddr = format!("127.0.0.3:{}", address.port()).parse().unwrap();
    let connections = connections(gone);
    for _ in 0..100 {
        assert_eq!(connections.ask(&query(1, "one")).await, Err(Fault::Refused));
    }
    let counts = connections.counts();
    assert_eq!((counts.opened, counts.fault), (0, Some(Fault::Refused)));
    assert!(counts.failed < 10, "{}", counts.failed);
    connections.move_to(vec![address]);
    expect(&connections, 1, "one").await;
    assert_eq!(connections.counts().fault, None);
}

#[tokio::test]
async fn a_query_that_waits_for_a_connection_is_answered_once_the_server_is_back() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let connections = connections(address);
    let mut tasks = JoinSet::new();
    for id in 0..100 {
        let connections = Arc::clone(&connections);
        tasks.spawn(async move { connections.ask_when_connected(&query(id, "one")).await });
    }
    sleep(Duration::from_millis(400)).await;
    assert!(tasks.try_join_next().is_none() && connections.counts().failed < 10);
    let server = Server::start_at(address, Manner::Prompt).await;
    let limit = Duration::from_millis(400);
    while let Some(answer) = timeout(limit, tasks.join_next()).await.unwrap() {
        assert!(answer.unwrap().is_ok());
    }
    assert_eq!(server.accepted(), 1);
    let closing = Server::start(Manner::Dropping(0), None).await;
    let connections = Connections::new(Protocol::Tcp, vec![closing.address]);
    let fault = timeout(limit, connections.ask_when_connected(&query(1, "one"))).await;
    assert_eq!(fault, Ok(Err(Fault::Closed)), "there was a connection");
}

#[tokio::test]
async fn the_next_address_is_dialed_when_one_fails() {
    let server = Server::start(Manner::Prompt, None).await;
    let gone: SocketAddr = format!("127.0.0.3:{}", server.address.port()).parse().unwrap();
    let connections = Connections::new(Protocol::Tcp, vec![gone, server.address]);
    expect(&connections, 1, "one").await;
    assert_eq!(connections.counts().failed, 0);
}

#[tokio::test]
async fn queries_to_a_former_address_are_answered_while_a_server_moves() {
    let (old, new) =
        (Server::start(Manner::Reversed(2), None).await, Server::start(Manner::Prompt, None).await);
    let connections = connections(old.address);
    let waiting = {
        let connections = Arc::clone(&connections);
        tokio::spawn(async move { expect(&connections, 1, "one").await })
    };
    sleep(Duration::from_millis(50)).await;
    let held = {
        let connections = Arc::clone(&connections);
        tokio::spawn(async move { expect(&connections, 2, "two").await })
    };
    sleep(Duration::from_millis(50)).await;
    connections.move_to(vec![new.address]);
    expect(&connections, 3, "three").await;
    waiting.await.unwrap();
    held.await.unwrap();
    assert_eq!((old.accepted(), new.accepted()), (1, 1));
}
