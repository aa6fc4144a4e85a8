//! Probes of targets, and the states that follow from them.
//!
//! | file | what |
//! |---|---|
//! | `check` | what a probe does, as plain data |
//! | `probe` | one probe of a target, over real sockets |
//! | `prober` | probes on a schedule: a probe for each target, bounds, observations |
//! | `decode` | what targets send that no library decodes |
//! | `random` | random numbers for schedules and identifiers |
//! | `text` | a text in a reply that comes in parts |
//! | `outcome` | what a probe found: a success or a fault, in words |
//! | `state` | results in a row → up, down or unknown, with damping of targets that flap |
//! | `formula` | several states → one: at least N of them, all, any |
//!
//! Deliberately absent: DNS zones, pools, and what answers follow from a state.

mod check;
pub mod decode;
mod formula;
mod outcome;
mod probe;
mod prober;
mod random;
mod state;
mod text;

pub use check::{
    Check, CheckError, CommandCheck, DnsCheck, FileCheck, GrpcCheck, HttpCheck, HttpVersion,
    Identity, Kind, PushCheck, Roots, TEXT_BYTES_MAX, Target, TcpExchange, TlsError, TlsSettings,
    Transport, Trust, UdpExchange,
};
pub use formula::{Formula, FormulaError};
pub use outcome::{Distrust, Fault, Outcome, Proof, Step, Success};
pub use probe::Probe;
pub use prober::{
    Assignment, AssignmentCause, AssignmentError, Counts, Limits, Observation, Prober, Push,
    TargetId, TargetStatus, Timing,
};
pub use state::{CHANGES_KEPT, Change, Damping, Health, LastResult, Start, State, Thresholds};
