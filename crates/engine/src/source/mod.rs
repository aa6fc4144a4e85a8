//! Sources of answers: zone data, upstreams, local names, and the user's code.
//!
//! A source knows no other source. Where the answer of one goes on in another, it says so in what
//! it returns, and `chain.rs`, which alone knows them all, calls the next one.

pub mod chain;
pub mod code;
pub mod code_target;
pub mod data;
pub mod forward;
pub mod hot;
pub mod local;
pub mod template;
