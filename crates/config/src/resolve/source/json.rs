//! Zones in a JSON file; a name picks one of them.

use super::{FileSource, NameRule, Writability};
use crate::Source;

/// The source.
pub const SOURCE: FileSource = FileSource {
    key: "json",
    path: |keys| keys.json.as_ref(),
    name: NameRule::Optional,
    may_lie_anywhere: false,
    writable: Writability::WithName,
    make: Source::Json,
};
