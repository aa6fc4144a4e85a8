//! The running server, asked over real sockets.
#![allow(clippy::unwrap_used)]

mod admin;
mod answers;
mod bounds;
mod cache;
mod chains;
mod checks;
mod client_subnet;
mod connections;
mod created_zones;
mod descriptors;
mod edit_metrics;
mod edit_requests;
mod edits;
mod explain;
mod forged;
mod forward;
mod freshness;
mod hostile;
mod https_server;
mod limits;
mod local;
mod log;
mod member_states;
mod memory;
mod names;
mod promises;
mod quic_server;
mod reload;
mod server;
mod sites;
mod start;
mod steering;
mod stop;
mod stores;
mod waiting;
