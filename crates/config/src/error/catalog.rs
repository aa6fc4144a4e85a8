//! What can be wrong with catalog zones.

use std::fmt;
use zonda_wire::Name;

/// Values that are sound alone and wrong beside those of zones or other catalogs.
#[derive(Debug)]
pub enum CatalogMistake {
    /// A catalog that is no zone of this server.
    NoZone(Name),
    /// A catalog that does not come from primaries, and whose members come from none either.
    NoPrimaries(Name),
    /// A second section for all other members of a catalog.
    Twice(Name),
    /// A catalog that lists a zone, and that the server does not make.
    NotMade(Name),
    /// A zone that no catalog can list, by its source.
    Source(&'static str),
    /// A second section for the members of a group.
    GroupTwice(String),
    /// A key of the whole catalog that another section of the catalog gives another value.
    Differs(&'static str, Name),
}

impl fmt::Display for CatalogMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoZone(name) => write!(
                f,
                "the catalog {name} is no zone of this server; write a [[zone]] of this `name` \
                 with [zone.secondary]"
            ),
            Self::NoPrimaries(name) => write!(
                f,
                "the catalog {name} comes from no primary, and its members need one; write \
                 [catalog.secondary] with `from = [\"192.0.2.1\"]`"
            ),
            Self::Twice(name) => write!(
                f,
                "there is a [[catalog]] {name} without `groups` already; remove one of them, or \
                 write the `groups` that this one is for"
            ),
            Self::NotMade(name) => write!(
                f,
                "{name} is no catalog that this server makes; write a [[zone]] of this `name` with \
                 [zone.members]"
            ),
            Self::Source(key) => write!(
                f,
                "secondaries cannot transfer a zone with `{key}`, so that no catalog lists it; \
                 remove `catalog`"
            ),
            Self::GroupTwice(group) => {
                write!(f, "another [[catalog]] is for the group \"{group}\"; keep one of them")
            }
            Self::Differs(key, name) => write!(
                f,
                "another [[catalog]] {name} has another `{key}`, which is the whole catalog's; \
                 write it in one of them"
            ),
        }
    }
}
