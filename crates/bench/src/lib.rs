//! `zonda bench`: a load generator, suites of side-by-side measurements, and their reports.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | what was measured, as it is written to JSON and read by reports |
//! | [`load`] | the load generator |
//! | [`paired`] | whether two figures differ, judged over rounds |
//! | [`primary`] | a primary of any number of zones, before servers with secondary zones |
//! | [`procfs`] | the kernel's figures of processes and the machine |
//! | [`ramp`] | the highest rate that a server holds |
//! | [`random`] | numbers that come again with their seed |
//! | [`reflector`] | the bare UDP reflector, the floor under every server |
//! | [`relay`] | a relay that loses and delays, before an upstream |
//! | [`report`] | what a run says, as JSON, text and HTML, and beside another run |
//! | [`server`] | servers under test: found, configured, started, stopped |
//! | [`soak`] | one rate for hours, and what drifts meanwhile |
//! | [`statistics`] | medians and spreads |
//! | [`suite`] | suites: what is measured side by side, and the measuring |
//! | [`template`] | text with places to fill in, for configurations and zones |
//! | [`transfer`] | a client that transfers a zone |
//!
//! Deliberately absent: unsafe code and socket options (`netio`), and any knowledge of how Zonda
//! itself answers: it is one server among many here, found and started like its rivals.

pub mod data;
pub mod load;
pub mod paired;
pub mod primary;
pub mod procfs;
pub mod ramp;
pub mod random;
pub mod reflector;
pub mod relay;
pub mod report;
pub mod server;
pub mod soak;
pub mod statistics;
pub mod suite;
pub mod template;
pub mod transfer;
