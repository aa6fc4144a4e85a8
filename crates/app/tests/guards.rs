//! Middleware for the names of a pattern, and handlers behind handlers.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use zonda::{A, App, OwnedQuery, Query, Rcode, Reply, Running, Type};

/// The response code and the last octet of the address that a name gets.
async fn ask(running: &Running, name: &str) -> (Rcode, Option<u8>) {
    let reply = running.query(name, Type::A).await.unwrap();
    (reply.rcode(), reply.records.first().and_then(|record| record.rdata.last().copied()))
}

/// A function that answers with an address.
fn answers(last: u8) -> impl Fn(&Query<'_>, &mut Reply) + Send + Sync {
    move |_, reply| reply.answer(A::new([192, 0, 2, last]))
}

#[tokio::test]
async fn middleware_for_a_pattern_sees_its_names_alone_and_hides_no_handler() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let mut app = App::new().listen_nowhere();
    for pattern in ["*.eu.example", "only.test"] {
        let notes = Arc::clone(&seen);
        app = app.middleware_for(pattern, move |query: &Query<'_>, _: &mut Reply| {
            let name = String::from_utf8_lossy(query.name.label(0)).into_owned();
            notes.lock().unwrap().push(name);
        });
    }
    let running = app.handle("*.example", answers(1)).start().await.unwrap();
    assert_eq!(ask(&running, "www.eu.example").await, (Rcode::NOERROR, Some(1)));
    assert_eq!(ask(&running, "us.example").await, (Rcode::NOERROR, Some(1)));
    assert_eq!(ask(&running, "only.test").await, (Rcode::REFUSED, None));
    assert_eq!(*seen.lock().unwrap(), ["www", "only"]);
    running.stop().await.unwrap();
    assert!(App::new().middleware_for("a..b", answers(1)).start().await.is_err());
}

#[tokio::test]
async fn a_query_that_a_handler_leaves_goes_to_that_of_the_next_wider_pattern() {
    let calls = Arc::<Mutex<Vec<&str>>>::default();
    let note = |word: &'static str| {
        let calls = Arc::clone(&calls);
        move || calls.lock().unwrap().push(word)
    };
    let [passes, exact, close, wide] =
        [note("middleware"), note("exact"), note("close"), note("wide")];
    let app = App::new()
        .listen_nowhere()
        .middleware_async(move |_: OwnedQuery| {
            passes();
            async {}
        })
        .handle_async("a.b.example", move |_: OwnedQuery| {
            exact();
            async { Reply::default() }
        })
        .handle("*.b.example", move |_: &Query<'_>, reply: &mut Reply| {
            close();
            reply.pass_on();
        })
        .handle_async("*.example", move |query: OwnedQuery| {
            wide();
            let is_left = query.name().to_string() == "c.b.example.";
            async move { (!is_left).then(|| A::new([192, 0, 2, 1])) }
        })
        .handle("*", answers(2));
    let running = app.start().await.unwrap();
    for (name, last, expected) in [
        ("a.b.example", 1, &["middleware", "exact", "close", "wide"][..]),
        ("c.b.example", 2, &["middleware", "close", "wide"]),
        ("test", 2, &["middleware"]),
    ] {
        assert_eq!(ask(&running, name).await, (Rcode::NOERROR, Some(last)), "{name}");
        assert_eq!(std::mem::take(&mut *calls.lock().unwrap()), expected, "{name}");
    }
    running.stop().await.unwrap();
}
