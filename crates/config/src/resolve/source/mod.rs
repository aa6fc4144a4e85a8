//! The sources that a zone may have, a file for each.

pub mod directory;
pub mod file;
pub mod forward;
pub mod hosts;
pub mod json;
pub mod kubernetes;
pub mod store;

use crate::Source;
use crate::error::Contradiction;
use crate::keys::ZoneKeys;
use std::path::PathBuf;

/// All sources that are a file or a directory; exactly one of them, upstreams or a database is
/// given.
pub const FILE_SOURCES: &[FileSource] =
    &[file::SOURCE, json::SOURCE, directory::SOURCE, hosts::SOURCE];

/// A source that is a file or a directory.
pub struct FileSource {
    /// The key of `[[zone]]` that gives the source's path.
    pub key: &'static str,
    /// The value of that key.
    pub path: fn(&ZoneKeys) -> Option<&PathBuf>,
    /// Whether the key `name` goes with the source.
    pub name: NameRule,
    /// Whether the path may lead out of `root`: the file includes no other one.
    pub may_lie_anywhere: bool,
    /// Whether zones of the source can be changed while they are served.
    pub writable: Writability,
    /// Makes the source of the path.
    pub make: fn(PathBuf) -> Source,
}

/// Whether zones of a source can be changed while they are served, and their file be written.
pub enum Writability {
    /// Zones of the source can be changed.
    Always,
    /// Zones whose names are given can be changed.
    WithName,
    /// Zones of the source cannot be changed.
    Never,
}

/// Whether a source has one zone, whose name must be given, or several.
pub enum NameRule {
    /// The name must be given; the mistake where it is not.
    Required(fn() -> Contradiction),
    /// The name may be given, and picks one zone.
    Optional,
    /// The name must not be given; the mistake where it is.
    Refused(fn() -> Contradiction),
}

impl NameRule {
    /// Returns the mistake in giving a name or none.
    pub fn mistake(&self, is_given: bool) -> Option<Contradiction> {
        match self {
            Self::Required(mistake) if !is_given => Some(mistake()),
            Self::Refused(mistake) if is_given => Some(mistake()),
            _ => None,
        }
    }
}
