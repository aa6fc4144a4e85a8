//! Sources of a server block: plugins that have answers of their own.

use super::key;
use crate::document::Value;
use crate::error::Place;
use std::path::PathBuf;
use zonda_wire::Name;

/// The kinds of sources, in the order in which CoreDNS asks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Addresses of a hosts file.
    Hosts,
    /// Names of a Kubernetes cluster.
    Kubernetes,
    /// Records of a zone file, or of a primary.
    File,
    /// Answers of other servers.
    Forward,
    /// The addresses and ports of clients.
    Whoami,
}

impl Kind {
    /// Returns the name of the plugin.
    pub fn plugin(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::Kubernetes => "kubernetes",
            Self::File => "file",
            Self::Forward => "forward",
            Self::Whoami => "whoami",
        }
    }
}

/// The names that a source leaves to the next one if it does not have them.
#[derive(Clone, Debug)]
pub enum FallThrough {
    /// None of the names.
    Never,
    /// All names of its zones.
    Always,
    /// Names in these zones.
    In(Vec<Name>),
}

impl FallThrough {
    /// Whether a name is left to the next source.
    pub fn has(&self, name: &Name) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::In(zones) => zones.iter().any(|zone| key::is_in(name, zone)),
        }
    }
}

/// A key of a zone's section with its value, and the line that it comes from.
pub type ZoneKey = (&'static str, Value, Place);

/// A plugin that answers for names.
pub struct Source {
    /// Kind of the plugin.
    pub kind: Kind,
    /// Zones that it answers for.
    pub zones: Vec<Name>,
    /// Zones inside them that it leaves to the next source.
    pub except: Vec<Name>,
    /// Names that it leaves to the next source if it does not have them.
    pub fall_through: FallThrough,
    /// Line of the plugin.
    pub place: Place,
    /// Words of the line, for messages.
    pub what: String,
    /// File of the records; empty for the kinds that have none, and for zones of primaries.
    pub file: PathBuf,
    /// Keys of the section that the plugin becomes.
    pub keys: Vec<ZoneKey>,
    /// Line of an option that leaves answers to a later `forward`, which is lost.
    pub next: Option<Place>,
}

impl Source {
    /// Returns the longest of its zones that holds a name.
    pub fn zone_of(&self, name: &Name) -> Option<&Name> {
        let holds = |zone: &&Name| key::is_in(name, zone);
        self.zones.iter().filter(holds).max_by_key(|zone| zone.label_count())
    }

    /// Whether it has the records of primaries.
    pub fn is_secondary(&self) -> bool {
        self.kind == Kind::File && self.file.as_os_str().is_empty()
    }

    /// Whether it has external names of a cluster.
    pub fn is_external(&self) -> bool {
        self.keys.iter().any(|(key, ..)| *key == "external")
    }

    /// Whether it leaves a name to the next source at once.
    pub fn excepts(&self, name: &Name) -> bool {
        self.except.iter().any(|zone| key::is_in(name, zone))
    }
}

/// A rule about clients, and the names that it is for.
pub struct AccessRule {
    /// Zones of the names.
    pub zones: Vec<Name>,
    /// Rule as `access` has it.
    pub rule: String,
    /// Line of the rule.
    pub place: Place,
}
