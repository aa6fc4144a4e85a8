//! The sections and keys of a DNS cache on each node of a Kubernetes cluster.

use crate::section::section;
use crate::value::{ServerAddress, Value};
use std::net::IpAddr;
use std::path::PathBuf;

section! {
    /// Addresses of a node's own DNS cache, on an interface that the server makes before it
    /// listens, makes again when it is gone, and removes when it stops. Needs CAP_NET_ADMIN.
    /// `ZONDA_NODE_LOCAL_ADDRESS` and `ZONDA_NODE_LOCAL_INTERFACE` set the keys as well.
    pub struct NodeLocalKeys: Table "node-local", Restart;

    /// The addresses of the interface: a link-local one, or one of a private network. Without
    /// `[[listen]]` and `--listen`, the server listens on port 53 of each. Unset: no interface is
    /// made.
    address: Vec<IpAddr>, like "169.254.20.10";
    /// The name of the interface. A dummy interface of this name is taken over, and keeps none but
    /// these addresses. Where the kernel has no dummy interfaces, it is a bridge without ports.
    interface: InterfaceName = "nodelocaldns";
}

section! {
    /// Zones and upstreams in a ConfigMap of kube-dns, which is followed, at `watch-interval`: its
    /// `stubDomains` are forwarded as zones with all defaults of `[zone.forward]`, and its
    /// `upstreamNameservers` take the place of the upstreams of `.`. One that cannot be used leaves
    /// the former in force, and the log says why; when the server starts, it has none then.
    pub struct KubeDnsKeys: Table "kube-dns", Reload;

    /// The directory in which the ConfigMap is mounted. The files `stubDomains` and
    /// `upstreamNameservers` in it are JSON, as kube-dns has them; one that is not there says
    /// nothing.
    config_map: Option<PathBuf>, like "/etc/kube-dns";
    /// The addresses of servers that resolve the names of upstreams in the ConfigMap, if any is
    /// given by name: the cluster's own DNS.
    bootstrap: Vec<ServerAddress>, like "10.96.0.10";
}

/// The name of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceName(pub String);

/// Octets of the longest name of an interface.
const NAME_OCTETS_MAX: usize = 15;

impl Value for InterfaceName {
    fn form() -> String {
        "the name of an interface: 1 to 15 printable ASCII characters but `/` and `:`".to_owned()
    }

    fn from_text(text: &str) -> Option<Self> {
        let is_fit = |octet: u8| octet.is_ascii_graphic() && octet != b'/' && octet != b':';
        let is_name = (1..=NAME_OCTETS_MAX).contains(&text.len())
            && ![".", ".."].contains(&text)
            && text.bytes().all(is_fit);
        is_name.then(|| Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_takes_are_told_from_those_that_it_refuses() {
        for name in ["nodelocaldns", "a", "fifteen-octets0", "dns.0"] {
            assert!(InterfaceName::from_text(name).is_some(), "{name}");
        }
        for name in ["", ".", "..", "sixteen-octets-0", "a/b", "a b", "a:b", "ä"] {
            assert!(InterfaceName::from_text(name).is_none(), "{name}");
        }
    }
}
