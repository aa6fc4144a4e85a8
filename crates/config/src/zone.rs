//! A zone as it is configured: its name, its source and its terms.

use crate::access::Access;
use crate::keys::{KubernetesKeys, MembersKeys, SecondaryKeys, StoreKeys};
use crate::value::SerialRule;
use crate::{Forward, SteerRule};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zonda_wire::Name;

/// A zone, or all zones of a file or a directory. There may be a hundred thousand of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The zone's apex; none: the source has the names of its zones.
    pub name: Option<Name>,
    /// Source of the zone's answers.
    pub source: Source,
    /// Clients that are answered; none: all that the listener admits.
    pub access: Option<Arc<Access>>,
    /// The other terms, which zones in a row share where they are the same.
    pub terms: Arc<ZoneTerms>,
}

/// The terms under which a zone is read and served, besides its source and its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneTerms {
    /// A hosts file whose names lie in front of a forwarded zone.
    pub hosts: Option<PathBuf>,
    /// What is made of the lines of a hosts file.
    pub hosts_terms: HostsTerms,
    /// The directory that the source's files, and those they include, must not leave.
    pub root: Arc<Path>,
    /// How the serial rises with each change, if the zone can be changed while it is served.
    pub writable: Option<SerialRule>,
    /// The names that pools answer for; none where the zone has no name.
    pub steer: Vec<SteerRule>,
}

impl ZoneTerms {
    /// The terms of a zone whose files must not leave a directory, and which has nothing special.
    #[must_use]
    pub fn new(root: Arc<Path>) -> Self {
        let (hosts, hosts_terms) = (None, HostsTerms::default());
        Self { hosts, hosts_terms, root, writable: None, steer: Vec::new() }
    }
}

/// What is made of the lines of a hosts file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostsTerms {
    /// The TTL of the records.
    pub ttl: Duration,
    /// Whether the addresses have names.
    pub has_reverse: bool,
}

impl Default for HostsTerms {
    /// A minute, and names of addresses.
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), has_reverse: true }
    }
}

impl Zone {
    /// The addresses of the listeners that the zone is at, if it is not at all of them.
    #[must_use]
    pub fn listeners(&self) -> Option<&[SocketAddr]> {
        self.access.as_ref()?.listeners.as_deref()
    }
}

/// Where the answers of zones come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// One zone in a master file (rfc1035#5), at this path.
    File(PathBuf),
    /// Zones in a JSON file, at this path.
    Json(PathBuf),
    /// Every `NAME.zone` and `NAME.json` in this directory.
    Directory(PathBuf),
    /// Addresses and their names in a hosts file, at this path.
    Hosts(PathBuf),
    /// Upstreams, to which queries are forwarded.
    Forward(Arc<Forward>),
    /// A database, whose records are followed.
    Store(Arc<StoreKeys>),
    /// Primaries, from which the zone is transferred.
    Secondary(Arc<SecondaryKeys>),
    /// The zones of this server that a catalog lists.
    Members(Arc<MembersKeys>),
    /// A Kubernetes cluster, whose objects are followed.
    Kubernetes(Arc<KubernetesKeys>),
}

impl Source {
    /// Whether names of a zone with this source can be steered.
    pub(crate) fn can_be_steered(&self) -> bool {
        matches!(self, Self::File(_) | Self::Json(_) | Self::Store(_) | Self::Secondary(_))
    }
}
