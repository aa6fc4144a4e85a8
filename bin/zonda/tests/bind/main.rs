//! What administrators that come from BIND rely on: its configuration and its statistics.
#![allow(clippy::unwrap_used)]

mod import;
mod named;
mod statistics;
