//! What can be wrong with forwarded zones and with what they leave to this server.

use std::fmt;
use zonda_upstream::Upstream;
use zonda_wire::{Name, NameError};

/// Values that are sound alone and wrong beside those of zones.
#[derive(Debug)]
pub enum LocalMistake {
    /// A `forward` to this very server.
    ForwardToSelf(Upstream),
    /// A name in `except` that the zone does not hold anyway, or its own.
    ExceptOutside(Name, Name),
    /// A `hosts` without `name`.
    HostsWithoutName,
    /// Names that may have private addresses, where all may.
    PrivateNamesForNothing,
    /// A name that is forwarded anyway.
    NotSpecial(Name),
    /// A key of `[override]` that is not a name.
    OverrideName(NameError),
    /// An override without an address.
    OverrideWithoutAddress,
    /// A second override of the same name.
    OverrideTwice(Name),
}

impl fmt::Display for LocalMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForwardToSelf(upstream) => write!(
                f,
                "{upstream} is this server, so that each question would come back; write the \
                 address of another one"
            ),
            Self::ExceptOutside(name, zone) => {
                write!(f, "{name} is not below {zone}, so there is nothing to except; remove it")
            }
            Self::HostsWithoutName => f.write_str(
                "a hosts file needs the zone it is for; write `name = \".\"` for all its names",
            ),
            Self::PrivateNamesForNothing => f.write_str(
                "all names may have private addresses; write `rebinding-protection = true`, or \
                 remove the names that are left out of it",
            ),
            Self::NotSpecial(name) => write!(
                f,
                "{name} is forwarded like any other name, and no special name is below it; remove \
                 it"
            ),
            Self::OverrideName(error) => write!(
                f,
                "{error}; write a name in quotes, such as \"www.example.com\" or \"*.example.com\""
            ),
            Self::OverrideWithoutAddress => {
                f.write_str("no address; write one, such as \"192.0.2.7\", or remove the name")
            }
            Self::OverrideTwice(name) => {
                write!(f, "{name} is given twice; keep one, with all of its addresses")
            }
        }
    }
}
