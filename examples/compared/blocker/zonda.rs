//! Names on a list do not lead anywhere; all other names are forwarded.

use zonda::{A, App, Query, Reply, Type};

fn block(query: &Query, reply: &mut Reply) {
    match query.qtype() {
        Type::A => reply.answer(A::new([0, 0, 0, 0]).ttl(60)),
        _ => {
            reply.no_data();
            reply.cache_negative(60);
        }
    }
}

fn main() -> Result<(), zonda::Error> {
    let mut arguments = std::env::args().skip(1);
    let mut app = App::new();
    app = app.listen(arguments.next().expect("an address"));
    app = app.forward(arguments.next().expect("an upstream"));
    for name in ["ads.example", "tracker.example", "*.ads.example", "*.tracker.example"] {
        app = app.handle(name, block);
    }
    app.run()
}
