//! A server with a handler of each kind: `cargo run -p zonda --example server`, then
//! `dig @127.0.0.1 -p 5300 ann.users.example TXT`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use zonda::{A, App, Captures, State, Txt};

#[tokio::main]
async fn main() -> Result<(), zonda::Error> {
    let listen = std::env::args().nth(1).unwrap_or("127.0.0.1:5300".to_owned());
    App::new()
        .state(AtomicU64::new(0))
        .handle("*.dyn.example/A", || A::new([192, 0, 2, 1]).ttl(60))
        .handle(":user.users.example/TXT", |Captures([user]): Captures<1>| Txt::new(user))
        .handle("count.example/TXT", |count: State<AtomicU64>| {
            Txt::new((count.fetch_add(1, Ordering::Relaxed) + 1).to_string()).ttl(0)
        })
        .handle_async("slow.example/TXT", async || {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Txt::new("worth waiting for")
        })
        .listen(listen)
        .serve()
        .await
}
