//! Steps of the plan, one folder each; their order is in `plan.rs`.

pub mod access;
pub mod cookie;
pub mod forward;
pub mod handler;
pub mod identity;
pub mod local;
pub mod rate;
pub mod zone;
