//! An address for each user.

use std::collections::HashMap;
use zonda::{A, App, Captures, Query, Reply, Type};

fn main() -> Result<(), zonda::Error> {
    let users = HashMap::from([("ann", [192, 0, 2, 10]), ("bob", [192, 0, 2, 11])]);
    let answer = move |query: &Query, reply: &mut Reply, Captures([user]): Captures<1>| {
        match users.get(user.as_str()) {
            Some(&address) if query.qtype() == Type::A => {
                return reply.answer(A::new(address).ttl(60));
            }
            Some(_) => reply.no_data(),
            None => reply.nxdomain(),
        }
        reply.cache_negative(60);
    };
    let address = std::env::args().nth(1).expect("an address");
    App::new().listen(address).handle(":user.users.example", answer).run()
}
