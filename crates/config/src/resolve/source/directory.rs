//! The zones whose files lie in a directory, each by the name of its file.

use super::{FileSource, NameRule, Writability};
use crate::Source;
use crate::error::Contradiction;

/// The source.
pub const SOURCE: FileSource = FileSource {
    key: "directory",
    path: |keys| keys.directory.as_ref(),
    name: NameRule::Refused(|| Contradiction::DirectoryWithName),
    may_lie_anywhere: false,
    writable: Writability::Always,
    make: Source::Directory,
};
