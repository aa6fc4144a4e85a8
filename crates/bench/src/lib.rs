//! `zonda bench`: a load generator, suites of side-by-side measurements, and their reports.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | what was measured, as it is written to JSON and read by reports |
//!
//! Deliberately absent: unsafe code and socket options (`netio`), and any knowledge of how Zonda
//! itself answers: it is one server among others here, found and started like its rivals.

pub mod data;
