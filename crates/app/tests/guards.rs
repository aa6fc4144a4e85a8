//! Middleware for the names of a pattern, and handlers behind handlers.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;
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
            let name = String::from_utf8_lossy(query.name().label(0)).into_owned();
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
async fn a_router_has_the_names_below_a_suffix() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let notes = Arc::clone(&seen);
    let app =
        App::new().listen_nowhere().handle("*.example", answers(9)).route("eu.example", |eu| {
            eu.handle("www", answers(1))
                .handle("@/A", answers(2))
                .handle_async(":user.users/A", async |query: OwnedQuery| {
                    let user = String::from_utf8_lossy(query.capture("user").unwrap()).into_owned();
                    A::new([192, 0, 2, user.parse().unwrap()])
                })
                .middleware_async(move |query: OwnedQuery| {
                    notes.lock().unwrap().push(query.name().to_string());
                    async {}
                })
                .middleware_for("closed", |_: &Query<'_>, reply: &mut Reply| reply.refused())
                .route("inner", |inner| inner.handle("*", answers(4)))
        });
    let running = app.start().await.unwrap();
    for (name, last) in [
        ("www.eu.example", 1),
        ("eu.example", 2),
        ("3.users.eu.example", 3),
        ("a.b.inner.eu.example", 4),
        ("us.example", 9),
    ] {
        assert_eq!(ask(&running, name).await, (Rcode::NOERROR, Some(last)), "{name}");
    }
    assert_eq!(ask(&running, "closed.eu.example").await, (Rcode::REFUSED, None));
    // What the worker itself refuses comes to no asynchronous code.
    let passed = ["www.eu", "eu", "3.users.eu", "a.b.inner.eu"];
    assert_eq!(*seen.lock().unwrap(), passed.map(|name| format!("{name}.example.")));
    running.stop().await.unwrap();

    for suffix in ["a..b", "*.example", "*", ".", "eu.example/A"] {
        let app = App::new().listen_nowhere().route(suffix, |router| router);
        let told = app.start().await.unwrap_err().to_string();
        assert!(told.contains(suffix), "{suffix}: {told}");
    }
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

#[tokio::test]
async fn middleware_that_waits_is_passed_by_the_names_of_its_pattern_the_widest_first() {
    let calls = Arc::<Mutex<Vec<String>>>::default();
    let guard = |word: &'static str, refused: &'static str| {
        let calls = Arc::clone(&calls);
        move |query: OwnedQuery, zonda::Captures([first]): zonda::Captures<1>| {
            calls.lock().unwrap().push(format!("{word} {first}"));
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                query.name().to_string().starts_with(refused).then_some(Rcode::REFUSED)
            }
        }
    };
    let app = App::new()
        .listen_nowhere()
        .middleware_for_async("*.:first.example", guard("wide", "no."))
        .middleware_for_async(":first.b.example", guard("narrow", "never."))
        .handle("a.b.example", answers(1))
        .handle_async("*.example", async || A::new([192, 0, 2, 2]));
    let running = app.start().await.unwrap();
    for (name, expected, called) in [
        ("a.b.example", (Rcode::NOERROR, Some(1)), &["wide b", "narrow a"][..]),
        ("c.b.example", (Rcode::NOERROR, Some(2)), &["wide b", "narrow c"]),
        ("no.b.example", (Rcode::REFUSED, None), &["wide b"]),
        ("never.b.example", (Rcode::REFUSED, None), &["wide b", "narrow never"]),
        ("c.example", (Rcode::NOERROR, Some(2)), &[]),
        ("a.c.test", (Rcode::REFUSED, None), &[]),
    ] {
        assert_eq!(ask(&running, name).await, expected, "{name}");
        assert_eq!(std::mem::take(&mut *calls.lock().unwrap()), called, "{name}");
    }
    running.stop().await.unwrap();
    let lacks = App::new().middleware_for_async("a.test", async |_: zonda::Captures<1>| {});
    assert!(lacks.start().await.unwrap_err().to_string().contains("`a.test`"));
}

#[tokio::test]
async fn the_deadline_is_that_of_the_query_and_not_of_each_handler_it_falls_through() {
    let slow = |answer: Option<u8>| {
        move || async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            answer.map(|last| A::new([192, 0, 2, last]))
        }
    };
    let app = App::new()
        .listen_nowhere()
        .deadline(Duration::from_millis(400))
        .handle_async("a.example", slow(None))
        .handle_async("*.example", slow(Some(1)));
    let running = app.start().await.unwrap();
    assert_eq!(ask(&running, "b.example").await, (Rcode::NOERROR, Some(1)));
    assert_eq!(ask(&running, "a.example").await, (Rcode::SERVFAIL, None));
    running.stop().await.unwrap();
}
