//! What the suite `handlers` of `zonda bench` measures: `measured ADDRESS:PORT THREADS KIND`.
//!
//! | kind | how `*.example.com A` is answered |
//! |---|---|
//! | `handler` | by a function in the worker, each time |
//! | `waiting` | by a function that may wait |
//! | `kept` | by a function, whose answers are kept for a minute |
//! | `zone` | by a wildcard in a zone |
//!
//! `beside:MICROS:NICENESS:THREADS`, for `bench/beside.py`, is `waiting`, but that it computes for
//! so long first, in so many threads of that niceness, beside a zone `example.org`.

use std::time::{Duration, Instant};
use zonda::{A, App, OwnedQuery, Query, Reply, Vary};

/// The zone of the kind that has one.
const ZONE: &str =
    "@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.53\n* 300 A 192.0.2.1\n";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, address, threads, kind] = &arguments[..] else {
        return Err("measured ADDRESS:PORT THREADS KIND: handler, waiting, kept, zone, or \
                    beside:MICROS:NICENESS:THREADS"
            .into());
    };
    let app = App::new().listen(address).workers(threads.parse()?);
    let names = "*.example.com/A";
    let app = match &**kind {
        "handler" => app.handle(names, |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]).ttl(300))
        }),
        "waiting" => app.handle_async(names, waiting),
        beside if beside.starts_with("beside:") => {
            let mut numbers = beside[7..].split(':').map(str::parse::<u16>);
            let mut next = || numbers.next().unwrap_or(Ok(0));
            let (work, niceness, threads) = (next()?, next()?, next()?);
            let app = app.async_niceness(niceness.try_into()?).async_threads(threads);
            let work = Duration::from_micros(work.into());
            let computing = move |query: OwnedQuery| async move {
                let start = Instant::now();
                while start.elapsed() < work {}
                waiting(query).await
            };
            app.handle_async(names, computing).zone_text("example.org", ZONE)
        }
        "kept" => app.handle(names, |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]).ttl(300));
            reply.cache(60, Vary::Nothing);
        }),
        "zone" => app.zone_text("example.com", ZONE),
        _ => return Err(format!("there is no kind `{kind}`").into()),
    };
    app.serve().await?;
    Ok(())
}

/// Answers, perhaps after a while.
async fn waiting(_: OwnedQuery) -> Reply {
    let mut reply = Reply::default();
    reply.answer(A::new([192, 0, 2, 1]).ttl(300));
    reply
}
