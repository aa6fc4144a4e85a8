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
    let mut app = App::new();
    app.listen_nowhere();
    for pattern in ["*.eu.example", "only.test"] {
        let notes = Arc::clone(&seen);
        app.middleware_for(pattern, move |query: &Query<'_>, _: &mut Reply| {
            let name = String::from_utf8_lossy(query.name.label(0)).into_owned();
            notes.lock().unwrap().push(name);
        });
    }
    app.handle("*.example", answers(1));
    let running = app.start().unwrap();
    assert_eq!(ask(&running, "www.eu.example").await, (Rcode::NOERROR, Some(1)));
    assert_eq!(ask(&running, "us.example").await, (Rcode::NOERROR, Some(1)));
    assert_eq!(ask(&running, "only.test").await, (Rcode::REFUSED, None));
    assert_eq!(*seen.lock().unwrap(), ["www", "only"]);
    running.stop().unwrap();
    assert!(App::new().middleware_for("a..b", answers(1)).start().is_err());
}

#[tokio::test]
async fn a_query_that_a_handler_leaves_goes_to_that_of_the_next_wider_pattern() {
    let calls = Arc::<Mutex<Vec<&str>>>::default();
    let mut app = App::new();
    app.listen_nowhere();
    let note = |word: &'static str| {
        let calls = Arc::clone(&calls);
        move || calls.lock().unwrap().push(word)
    };
    let [passes, exact, close, wide] =
        [note("middleware"), note("exact"), note("close"), note("wide")];
    app.middleware_async(move |_: OwnedQuery| {
        passes();
        async { Reply::default() }
    });
    app.handle_async("a.b.example", move |_: OwnedQuery| {
        exact();
        async { Reply::default() }
    });
    app.handle("*.b.example", move |_: &Query<'_>, reply: &mut Reply| {
        close();
        reply.pass_on();
    });
    app.handle_async("*.example", move |query: OwnedQuery| {
        wide();
        async move {
            let mut reply = Reply::default();
            if query.name().to_string() != "c.b.example." {
                reply.answer(A::new([192, 0, 2, 1]));
            }
            reply
        }
    });
    app.handle("*", answers(2));
    let running = app.start().unwrap();
    for (name, last, expected) in [
        ("a.b.example", 1, &["middleware", "exact", "close", "wide"][..]),
        ("c.b.example", 2, &["middleware", "close", "wide"]),
        ("test", 2, &["middleware"]),
    ] {
        assert_eq!(ask(&running, name).await, (Rcode::NOERROR, Some(last)), "{name}");
        assert_eq!(std::mem::take(&mut *calls.lock().unwrap()), expected, "{name}");
    }
    running.stop().unwrap();
}
