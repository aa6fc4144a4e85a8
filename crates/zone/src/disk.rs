//! Files on disk that zones are read from.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// What the system says.
    Io(io::ErrorKind),
    /// The path leads to a directory, a device or a pipe: reading might not end.
    NotAFile,
    /// The file lies, symbolic links followed, where no zone may be read from.
    Outside,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => write!(f, "cannot be read: {}", in_words(*kind)),
            Self::NotAFile => f.write_str("is not a file"),
            Self::Outside => {
                f.write_str("lies outside its directory and `root`, symbolic links followed")
            }
        }
    }
}

/// What went wrong, in the words of the system where the library has its own.
fn in_words(kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        kind => kind.to_string(),
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}

/// Opens a file and asks for its length.
///
/// What it is is asked before, because opening a pipe waits for a program that writes into it.
pub(crate) fn open(path: &Path) -> Result<(File, u64), Unreadable> {
    if !fs::metadata(path)?.is_file() {
        return Err(Unreadable::NotAFile);
    }
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// Opens a file that lies, symbolic links followed, in the directory of its path, below that, or
/// below `root`.
pub(crate) fn open_confined(path: &Path, root: Option<&Path>) -> Result<(File, u64), Unreadable> {
    let own = path.parent().map(|it| if it.as_os_str().is_empty() { Path::new(".") } else { it });
    let directories: Vec<PathBuf> =
        own.into_iter().chain(root).filter_map(|it| fs::canonicalize(it).ok()).collect();
    let directories: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
    open_below(path, &directories)
}

/// Opens a file that lies below one of these directories, whose paths hold no symbolic links.
///
/// Where it lies is asked of the file that was opened: a link that changes meanwhile gains nothing.
pub(crate) fn open_below(path: &Path, directories: &[&Path]) -> Result<(File, u64), Unreadable> {
    let (file, len) = open(path)?;
    // Without /proc, a link that changes at the right moment is followed.
    let opened = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let place = opened.or_else(|_| fs::canonicalize(path))?;
    if directories.iter().any(|directory| place.starts_with(directory)) {
        Ok((file, len))
    } else {
        Err(Unreadable::Outside)
    }
}
