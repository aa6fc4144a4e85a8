//! Any octets sent to the engine: a reply that is a message and not too large, or silence.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use zonda_engine::Engine;

#[path = "../../crates/engine/tests/any_query/mod.rs"]
mod any_query;

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(any_query::engine());
}

fuzz_target!(|octets: &[u8]| {
    ENGINE.with_borrow_mut(|engine| any_query::check(engine, octets));
});
