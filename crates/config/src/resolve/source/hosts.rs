//! One zone of addresses and their names, or the names in front of a forwarded zone.

use super::{FileSource, NameRule, Writability};
use crate::Source;
use crate::error::{Contradiction, LocalMistake};

/// The source.
pub const SOURCE: FileSource = FileSource {
    key: "hosts",
    path: |keys| keys.hosts.as_ref(),
    name: NameRule::Required(|| Contradiction::Local(LocalMistake::HostsWithoutName)),
    may_lie_anywhere: true,
    writable: Writability::Never,
    make: Source::Hosts,
};
