//! What holds for any octets read as a file of queries: no panic, and only queries come of them.

use std::path::Path;

use zonda_bench::load::{Form, Queries};
use zonda_wire::Message;

/// Reads octets as a file; returns how many queries came of them.
pub fn check(octets: &[u8]) -> u64 {
    let Ok(queries) = Queries::from_reader(octets, Path::new("any"), &Form::default()) else {
        return 0;
    };
    let mut scratch = Vec::new();
    for place in 0..queries.count() {
        let message = Message::parse(queries.message(place as u32, &mut scratch));
        assert_eq!(message.map(|message| message.questions.len()), Ok(1));
    }
    queries.count()
}
