//! Suites: what is measured side by side, and the measuring of it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`spec`] | a suite as its TOML file says it |
//! | [`series`] | numbered texts: zones, records and queries by the thousand |
//! | [`place`] | one place in a workload's matrix, with its settings |
//! | [`ground`] | where it runs: CPUs, and a folder for files |
//! | [`api`] | a Kubernetes API server with the objects of a workload |
//! | [`bed`] | what is started for one round: upstream, relay, server |
//! | [`dnsperf`] | rounds in which that program asks |
//! | [`measure`] | one round of one server, and its latency at a rate |
//! | [`task`] | what is done in a round |
//! | [`replicate`] | rounds of transfers, changes and starts of zones |
//! | [`judge`] | whose answers differ from its peers' |
//! | [`environment`] | the machine |
//! | [`run()`] | a whole suite, rounds interleaved between servers |
//! | `contest` | one place of a workload, with the servers that take part |
//! | `progress`, `words` | how far it is, and what is said meanwhile |
//! | [`error`] | why it did not run |
//!
//! Everything runs on 127.0.0.1. Deliberately absent: medians and ranks in the data, because they
//! are computed where they are shown; see [`crate::data`].

pub mod api;
pub mod bed;
#[cfg(test)]
mod configurations;
mod contest;
pub mod dnsperf;
pub mod environment;
pub mod error;
pub mod ground;
pub mod judge;
pub mod measure;
pub mod place;
mod progress;
pub mod replicate;
pub mod run;
pub mod series;
pub mod spec;
pub mod task;
mod words;

pub use error::SuiteError;
pub use run::{Options, Step, run};
pub use spec::{SECONDS_MAX, SpecError, Suite};
