//! Configurations of other servers, made into a `zonda.toml`.
//!
//! ```text
//! named.conf ─► lexer ─► statements ─► zones, access lists, options ─► Document ─► zonda.toml
//!
//! Corefile ─► lexer ─► plugins of blocks ─► one table of zones ─► Document ─► zonda.toml
//!
//! opengslb.yaml ─► tree of keys ──────────────┐
//! gdnsd's config ─► vscf ─► plugins, zones ───┼─► Configuration ─► Document ─► zonda.toml
//! zone with LUA records ─► calls ─────────────┘         └────────────────────► zone files
//! ```
//!
//! | module | what it reads |
//! |---|---|
//! | [`named_conf`] | BIND's configuration |
//! | [`corefile`] | CoreDNS's Corefile |
//! | [`opengslb`] | OpenGSLB's configuration in YAML |
//! | [`gdnsd`] | gdnsd's configuration, and zone files with DYNA and DYNC |
//! | [`powerdns`] | zone files with PowerDNS's LUA records |
//!
//! Each key of the result names the line that it comes from. What has no counterpart is listed by
//! its line, with what that means; text that the other server would not take either is an error.
//!
//! Deliberately absent: files, which the caller reads and writes; and a judgement of the result,
//! which `zonda check` gives.

pub mod corefile;
mod document;
mod error;
mod format;
pub mod gdnsd;
mod master;
#[cfg(test)]
mod memory;
pub mod named_conf;
pub mod opengslb;
mod pattern;
pub mod powerdns;
mod steering;
mod tree;
mod value;

pub use document::{Effect, ReportLine};
pub use error::{ImportError, Place, Problem};
pub use format::Format;

use std::io;
use std::path::{Path, PathBuf};

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
    /// New zone files, which the `zonda.toml` names.
    pub files: Vec<NewFile>,
    /// What became of statements, in the order of the files.
    pub report: Vec<ReportLine>,
    /// Whether the other server reads its configuration anew when it changes, as it is told to.
    pub is_followed: bool,
}

impl Import {
    /// Returns the statements without which the result is not what the configuration says.
    pub fn losses(&self) -> impl Iterator<Item = &ReportLine> {
        self.report.iter().filter(|line| line.effect == Effect::Lost)
    }

    /// Returns the text of the `zonda.toml` with the new files at other paths.
    pub fn toml_with_files(&self, mut path_of: impl FnMut(&NewFile) -> PathBuf) -> String {
        let quoted = |path: &Path| document::quoted(&path.to_string_lossy());
        let placed = |toml: String, file: &NewFile| {
            toml.replace(&quoted(&file.path), &quoted(&path_of(file)))
        };
        self.files.iter().fold(self.toml.clone(), placed)
    }
}

/// A file to be written.
#[derive(Debug)]
pub struct NewFile {
    /// Path of the file, below the directory of the `zonda.toml`.
    pub path: PathBuf,
    /// Text of the file.
    pub text: String,
}
