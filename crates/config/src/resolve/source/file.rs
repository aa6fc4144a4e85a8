//! One zone in a master file (rfc1035#5).

use super::{FileSource, NameRule, Writability};
use crate::Source;
use crate::error::Contradiction;

/// The source.
pub const SOURCE: FileSource = FileSource {
    key: "file",
    path: |keys| keys.file.as_ref(),
    name: NameRule::Required(|| Contradiction::ZoneWithoutName),
    may_lie_anywhere: false,
    writable: Writability::Always,
    make: Source::File,
};
