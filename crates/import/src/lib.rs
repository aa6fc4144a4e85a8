//! Configurations of other servers, made into a `zonda.toml`.
//!
//! ```text
//! named.conf ─► lexer ─► statements ─► zones, access lists, options ─► Document ─► zonda.toml
//!                                            └──────────────────────► Left: what stays behind
//! ```
//!
//! Each key of the result names the line that it comes from. What has no counterpart is listed by
//! its line, with what that means; text that the other server would not take either is an error.
//!
//! Deliberately absent: files, which the caller reads; and a judgement of the result, which
//! `zonda check` gives.

mod document;
mod error;
pub mod named_conf;

pub use document::{Effect, Omission};
pub use error::{ImportError, Place, Problem};

use std::io;
use std::path::Path;

/// The files that a configuration is made of.
pub trait Files {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns the names of what lies in a folder, in any order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>>;
}

/// The result of an import.
#[derive(Debug)]
pub struct Import {
    /// Text of the new `zonda.toml`.
    pub toml: String,
    /// Omissions, in the order of the files.
    pub left: Vec<Omission>,
}
