//! The running server, asked over real sockets.
#![allow(clippy::unwrap_used)]

mod admin;
mod answers;
mod forward;
mod reload;
mod server;
mod start;
mod stop;
