//! Search paths of pods: which names a client asks for behind the first one.
//!
//! A pod of a namespace asks for `OUTSIDE.NAMESPACE.svc.APEX`, then for `OUTSIDE.svc.APEX`,
//! `OUTSIDE.APEX`, `OUTSIDE` below each search domain of its host, and `OUTSIDE` itself, until a
//! name exists. The namespace is in the first name, so that no pod must be known.
//!
//! A pod of another namespace asks for the same name as the second one of its path, if the last
//! label outside is that of a namespace: `SERVICE.NAMESPACE.svc.APEX` is the usual case. Names of
//! one label outside, and those below a service that exists, are therefore not searched, unless the
//! client is a pod of the namespace whose address is known.

use crate::address;
use crate::cluster::Cluster;
use std::net::IpAddr;
use std::sync::Arc;
use zonda_wire::Name;
use zonda_wire::name::{self, NAME_BYTES_MAX};
use zonda_zone::LookupName;

/// Most search domains of hosts; of more, those that follow are not searched.
pub const SEARCH_DOMAINS_MAX: usize = 32;
/// Most labels of a name that pods ask for below their search path before they ask for the name
/// itself: as many as `ndots` is in the pods of a cluster. A name of more labels has been asked for
/// before, and does not exist.
const OUTSIDE_LABELS_MAX: usize = 5;

/// A namespace.
#[derive(Clone, Debug)]
pub(crate) struct NamespaceRecord {
    /// The label in lower case.
    pub label: Arc<[u8]>,
    /// Whether search paths of its pods are left to them.
    pub opts_out_of_autopath: bool,
}

/// Returns the domains that follow the first one of search paths.
pub(crate) fn domains(apex: &Name, hosts: &[Name]) -> Vec<Name> {
    let services = format!("svc.{apex}").parse().ok();
    let hosts = hosts.iter().take(SEARCH_DOMAINS_MAX).map(Name::to_lowercase);
    // A server that is itself a pod of the cluster has its domains, too.
    let outside = hosts
        .filter(|it| it.label_count() > 0 && !name::is_at_or_below(it.as_wire(), apex.as_wire()));
    services.into_iter().chain([apex.clone()]).chain(outside).chain([Name::root()]).collect()
}

/// A name that a pod asks for below the first domain of its search path.
#[derive(Clone, Copy, Debug)]
pub struct SearchedName<'n> {
    /// The labels of the name that is searched, without the root's.
    outside: &'n [u8],
    /// The number of those labels, at least 1.
    labels: usize,
    /// The domains that follow the first one.
    domains: &'n [Name],
}

impl SearchedName<'_> {
    /// The number of names that follow the first one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.domains.len()
    }

    /// Writes the name number `step` behind the first one over `out`, in wire form; whether there
    /// is one that is no longer than a name can be.
    #[must_use]
    pub fn write(&self, step: usize, out: &mut Vec<u8>) -> bool {
        let Some(domain) = self.domains.get(step) else { return false };
        out.clear();
        out.extend_from_slice(self.outside);
        out.extend_from_slice(domain.as_wire());
        out.len() <= NAME_BYTES_MAX
    }
}

impl Cluster {
    /// Reads a name as the first one of a search path, whatever its namespace and its client say
    /// about that.
    #[must_use]
    pub fn search_names<'n>(&'n self, name: &'n LookupName) -> Option<SearchedName<'n>> {
        let domains = &*self.frame.search_path;
        let labels = name.label_count().checked_sub(self.frame.apex_labels + 2)?;
        let is_of_pod = !domains.is_empty()
            && (1..=OUTSIDE_LABELS_MAX).contains(&labels)
            && name.label(labels + 1) == b"svc";
        let all = name.as_wire();
        let outside = is_of_pod.then(|| &all[..all.len() - name.suffix(labels).len()])?;
        Some(SearchedName { outside, labels, domains })
    }

    /// Reads a name that the cluster lacks as the first one of the search path of a pod, if search
    /// paths are followed in its namespace. `client` is the address that asks, which may be known
    /// as that of a pod.
    #[must_use]
    pub fn searched<'n>(
        &'n self,
        name: &'n LookupName,
        client: Option<IpAddr>,
    ) -> Option<SearchedName<'n>> {
        let found = self.search_names(name)?;
        let (labels, seed) = (found.labels, self.frame.seed);
        let namespace = name.label(labels);
        let hash = address::hash_label(namespace, seed);
        let known = self.namespaces.all(hash).find(|it| *it.label == *namespace)?;
        if known.opts_out_of_autopath || !self.is_exposed(namespace) {
            return None;
        }
        let is_sure = match client.and_then(|client| self.is_in(client, hash)) {
            Some(false) => return None,
            Some(true) => true,
            None => false,
        };
        let is_service = self.services.all(name.hash(labels - 1)).next().is_some();
        (is_sure || labels > 1 && !is_service).then_some(found)
    }

    /// Whether an address is that of a pod in the namespace whose label has a hash; nothing if it
    /// is not known as that of a pod alone. The address of a host, which pods on its network have
    /// as well, does not tell which process asks.
    fn is_in(&self, address: IpAddr, namespace: u64) -> Option<bool> {
        let pods = self.pods.all(address::hash(address, self.frame.seed));
        let mut pods = pods.filter(|it| it.address == address && !it.is_of_host).peekable();
        pods.peek()?;
        Some(pods.any(|it| it.namespace == namespace))
    }
}
