//! PowerDNS's HTTP API, for the clients that speak no other: ACME clients, octoDNS, external-dns,
//! Terraform, and web pages that administer PowerDNS.
//!
//! ```text
//! request ─► routes ─► zones · commands · search · server ─► objects (zone_object, rrsets)
//!                       │ changes: list of rrsets ─► content ─► SetChange ─► the edits of all
//! ```
//! Paths, members and codes are those of PowerDNS 4.9. What the server cannot do is refused with
//! the reason, and what it does otherwise is told in `docs/powerdns-api.md`.
//!
//! Deliberately absent: a way to change zones of its own, and anything that is kept for this API
//! alone, such as comments, accounts and metadata.

mod api_error;
mod body;
mod changes;
mod commands;
mod content;
mod names;
mod new_zone;
mod pieces;
mod routes;
mod rrset_change;
mod rrsets;
mod search;
mod server;
mod settings;
mod zone_object;
mod zones;

pub use api_error::problem;
pub use routes::ROUTES;

/// Whether a path is one of this API.
pub fn is_path(segments: &[&str]) -> bool {
    segments.first() == Some(&"api")
}
