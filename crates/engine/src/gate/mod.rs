//! Gates: checks that each query passes before any source answers it, or that a reply passes before
//! it leaves. Their order is in `plan.rs`.
//!
//! A gate looks at the query and at the client, never at zones' data, and knows no other gate. Each
//! has a folder with its code, its tests, and a README that says what it does to queries.

pub mod access;
pub mod class_and_type;
pub mod cookie;
pub mod edns_version;
pub mod identity;
pub mod middleware;
pub mod opcode;
pub mod rate;
