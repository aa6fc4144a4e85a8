//! A zone's file.

use crate::error::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file that holds a zone, and that can be read; [`App::zone`](crate::App::zone) takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneFile(PathBuf);

impl AsRef<Path> for ZoneFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// Returns the file of a zone, if it can be read: a master file, or JSON if its name ends in
/// `.json`. What is in it is read by [`App::start`](crate::App::start), which reports what is wrong
/// with it, and again by [`Running::reload`](crate::Running::reload) when it has changed.
///
/// # Errors
/// When the file cannot be read. A path that was given to [`App::zone`](crate::App::zone) as it is
/// is an error of [`App::start`](crate::App::start) then, among all that is wrong.
pub fn zone_from_file(file: impl AsRef<Path>) -> Result<ZoneFile, Error> {
    let file = file.as_ref();
    let opened = File::open(file).and_then(|file| file.metadata());
    match opened {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(ZoneFile(file.to_owned())),
        Err(error) => Err(error),
    }
    .map_err(|error| Error::ZoneFile(file.to_owned(), error))
}
