//! What those who come from BIND rely on: their configuration and their statistics.
#![allow(clippy::unwrap_used)]

mod import;
mod named;
mod statistics;
