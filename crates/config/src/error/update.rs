//! What can be wrong with rights to change zones.

use std::fmt;
use zonda_wire::{Name, Type};

/// Values that are sound alone and wrong together in a right to change a zone.
#[derive(Debug)]
pub enum UpdateMistake {
    /// A right that no client has.
    FromNoClient,
    /// A right for no names.
    NoNames,
    /// A right for no types, which are listed.
    NoTypes,
    /// Names that are those of a key, for a client without one.
    NoKey,
    /// A name outside the zone, and the zone.
    Outside(Name, Name),
    /// A type whose records no client may change.
    Type(Type),
    /// A time to live that is not of whole seconds.
    Seconds,
    /// A zone whose source, by its key, takes no changes.
    Source(&'static str),
}

impl fmt::Display for UpdateMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromNoClient => f.write_str(
                "no client has the right; write `from = [\"key acme.example\"]`, or remove it",
            ),
            Self::NoNames => f.write_str(
                "the right is for no names; write `names = \"zone\"`, or the names that may be \
                 changed",
            ),
            Self::NoTypes => f.write_str(
                "the right is for no types; write which records may be changed, or remove the key",
            ),
            Self::NoKey => f.write_str(
                "these names are those of the client's key: write `key NAME` for each client in \
                 `from`, or `subdomain NAME` here",
            ),
            Self::Outside(name, zone) => write!(f, "{name} is not in the zone {zone}"),
            Self::Type(rtype) => {
                write!(f, "{rtype} records come from signing, and no client may change them")
            }
            Self::Seconds => f.write_str("a TTL has whole seconds"),
            Self::Source(key) => write!(
                f,
                "a zone with `{key}` cannot be changed by messages; remove `update`, or serve the \
                 zone from `file`, `directory`, or `json` with a `name`"
            ),
        }
    }
}
