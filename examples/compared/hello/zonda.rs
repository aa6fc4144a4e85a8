//! One TXT record.

use zonda::{App, Txt};

fn main() -> Result<(), zonda::Error> {
    let address = std::env::args().nth(1).expect("an address");
    App::new()
        .listen(address)
        .handle("hello.example/TXT", || Txt::new("Hello, world!").ttl(60))
        .run()
}
