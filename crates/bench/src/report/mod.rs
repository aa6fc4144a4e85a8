//! What a run says: JSON for machines, text for a terminal, one HTML file for browsers.
//!
//! | module | what it holds |
//! |---|---|
//! | [`json`] | writing a run and reading it back, the form's version checked |
//! | [`text`](text()) | tables for a terminal |
//! | [`html`](html()) | one self-contained page with tables and charts |
//! | [`index`] | a page that links those of several runs |
//! | [`compare`] | what changed between two runs beyond noise |
//!
//! Deliberately absent: measuring, and any figure that is not computed from a [`Run`].
//!
//! [`Run`]: crate::data::Run

mod aims;
mod caveats;
pub mod compare;
mod figures;
mod html;
pub mod json;
mod numbers;
mod text;
mod verdict;

#[cfg(test)]
mod sample;

pub use html::{html, index};
pub(crate) use numbers::short;
pub use numbers::time;
pub use text::text;
