//! A server with a handler of each kind: `cargo run -p zonda --example server`, then
//! `dig @127.0.0.1 -p 5300 ann.users.example TXT`.

use std::time::Duration;
use zonda::{A, App, OwnedQuery, Query, Reply, Txt};

#[tokio::main]
async fn main() -> Result<(), zonda::Error> {
    let listen = std::env::args().nth(1).unwrap_or("127.0.0.1:5300".to_owned());
    let mut app = App::new();
    app.handle("*.dyn.example/A", |_: &Query, reply: &mut Reply| {
        reply.answer(A::new([192, 0, 2, 1]).ttl(60))
    });
    app.handle(":user.users.example/TXT", |query: &Query, reply: &mut Reply| {
        if let Some(user) = query.capture("user") {
            reply.answer(Txt::new(user))
        }
    });
    app.handle_async("slow.example/TXT", |_: OwnedQuery| async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut reply = Reply::default();
        reply.answer(Txt::new("worth waiting for"));
        reply
    });
    app.listen(listen).run().await
}
