//! Rules that change questions and replies, and records made from templates.
//!
//! ```text
//! question ─► RewriteRules::apply ─► new question ─► zones, upstreams ─► Change::revert ─► reply
//! question ─► Templates::find ─► records
//! ```
//!
//! Rules and templates are compiled when the configuration is loaded. Regular expressions take time
//! that grows with the length of the name only, whatever a client sends.
//!
//! Deliberately absent: where in the plan this happens, sockets, clocks, and the file's syntax.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod change;
mod error;
mod name_match;
#[cfg(not(feature = "expressions"))]
#[path = "no_regex.rs"]
mod regex;
mod rule;
mod rules;
mod scope;
pub mod template;
mod text;

#[cfg(feature = "expressions")]
use ::regex;

pub use change::{Change, Revert, replace_question};
pub use error::RuleError;
pub use name_match::{MatchKind, NameMatch, Replacement};
pub use rule::{RULES_MAX, RewriteRule};
pub use rules::{RewriteRules, Rewritten};
pub use scope::Scope;
pub use template::{FallThrough, Template, Templates};
