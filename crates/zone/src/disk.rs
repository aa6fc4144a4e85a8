//! Files on disk that zones are read from.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// What the system says.
    Io(io::ErrorKind),
    /// It is a directory, a device or a pipe: reading might not end.
    NotAFile,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => write!(f, "cannot be read: {kind}"),
            Self::NotAFile => f.write_str("is not a file"),
        }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}

/// Opens a file and asks for its length.
///
/// What it is is asked before, because opening a pipe waits for whoever writes into it.
pub(crate) fn open(path: &Path) -> Result<(File, u64), Unreadable> {
    if !fs::metadata(path)?.is_file() {
        return Err(Unreadable::NotAFile);
    }
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}
