//! The program that the README shows: `cargo run -p zonda --example hello`, then
//! `dig @127.0.0.1 -p 5300 hello.example TXT`.

use zonda::{App, Txt};

fn main() -> Result<(), zonda::Error> {
    App::new()
        .handle("hello.example/TXT", || Txt::new("Hello, world!").ttl(60))
        .listen("127.0.0.1:5300")
        .run()
}
