//! TLS to databases, in a program without it: no server is trusted. The
//! names are those of `tls`.

use std::io;
use std::path::PathBuf;

/// Which servers are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Servers whose certificate is for their name and leads to a public root.
    PublicRoots,
    /// Servers whose certificate is for their name and leads to a root in this file of PEM form.
    File(PathBuf),
    /// Any server, for a connection that might as well not be encrypted.
    #[cfg(feature = "postgres")]
    Any,
}

impl Trust {
    /// Checks whether there can be a connection.
    ///
    /// # Errors
    /// Always.
    pub fn check(&self) -> io::Result<()> {
        Err(not_built())
    }
}

/// The error of what a program without TLS cannot do.
pub(crate) fn not_built() -> io::Error {
    let why = "this program was built without TLS to databases, which the feature `encrypted` has";
    io::Error::new(io::ErrorKind::Unsupported, why)
}
