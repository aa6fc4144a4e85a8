//! Listeners: UDP workers and TCP connections that call the engine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`udp`] | one thread per socket: receive a batch, answer, send |
//! | [`tcp`] | connections: admission, framing, deadlines |
//!
//! Deliberately absent: configuration syntax, metric names, sockets' creation (netio), and what is
//! behind the queues of deferred queries (`forward`, `runtime`).

pub mod tcp;
pub mod udp;
