//! The program that the README shows: `cargo run -p zonda --example hello`, then
//! `dig @127.0.0.1 -p 5300 hello.example TXT`.

use zonda::{App, Query, Reply, Txt};

#[tokio::main]
async fn main() -> Result<(), zonda::Error> {
    let mut app = App::new();
    app.handle("hello.example/TXT", |_: &Query, reply: &mut Reply| {
        reply.answer(Txt::new("Hello, world!").ttl(60))
    });
    app.listen("127.0.0.1:5300").run().await
}
