//! What a run says: JSON for machines, text for a terminal, one HTML file for everybody else.
//!
//! | module | what it holds |
//! |---|---|
//! | [`json`] | writing a run and reading it back, the form's version checked |
//! | [`text`](text()) | tables for a terminal |
//! | [`compare`] | what changed between two runs beyond noise |
//! | [`statistics`] | median, spread, and whether two figures differ |
//!
//! Deliberately absent: measuring, and any figure that is not computed from a [`Run`].
//!
//! [`Run`]: crate::data::Run

pub mod compare;
mod figures;

pub mod json;
mod numbers;
pub mod statistics;
mod text;
mod verdict;

#[cfg(test)]
mod sample;

pub use text::text;
