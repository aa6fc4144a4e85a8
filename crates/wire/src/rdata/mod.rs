//! Record data: one table of types, and what follows from it.

pub mod schema;

pub use schema::{Field, Kind, NameUse, Schema};
