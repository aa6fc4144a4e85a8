//! How the names of a Kubernetes cluster are served.

use crate::access::Network;
use crate::value::Value;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use zonda_wire::Name;

/// Which names of pods exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodNames {
    /// No name of a pod.
    Disabled,
    /// Every address in a namespace that exists.
    Insecure,
    /// The addresses of pods that exist.
    Verified,
}

impl PodNames {
    /// All values, and how a configuration writes them.
    const WORDS: [(&str, Self); 3] =
        [("disabled", Self::Disabled), ("insecure", Self::Insecure), ("verified", Self::Verified)];
}

impl Value for PodNames {
    fn form() -> String {
        "one of \"disabled\", \"insecure\", \"verified\"".to_owned()
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
    }
}

/// The cluster DNS whose answers are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterDns {
    /// CoreDNS, the usual one.
    CoreDns,
    /// kube-dns, its predecessor.
    KubeDns,
}

impl Value for ClusterDns {
    fn form() -> String {
        "\"coredns\" or \"kube-dns\"".to_owned()
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "coredns" => Some(Self::CoreDns),
            "kube-dns" => Some(Self::KubeDns),
            _ => None,
        }
    }
}

/// The place of the file that keeps the names of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotPlace {
    /// A file of this path.
    File(PathBuf),
    /// A file in the directory of what the server keeps, named after the zone.
    StateDirectory,
}

impl Value for SnapshotPlace {
    fn form() -> String {
        "a path, or \"state-directory\"".to_owned()
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "state-directory" => Some(Self::StateDirectory),
            path => PathBuf::from_text(path).map(Self::File),
        }
    }

    fn relative_to(self, directory: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(path.relative_to(directory)),
            Self::StateDirectory => Self::StateDirectory,
        }
    }
}

/// Returns the names below `in-addr.arpa` or `ip6.arpa` that together hold all addresses of a
/// network; several where its prefix ends within a label, at most 128.
pub(crate) fn reverse_names(network: &Network) -> Vec<Name> {
    let (octets, bits_of_label) = match network.address {
        IpAddr::V4(v4) => (v4.octets().to_vec(), 8),
        IpAddr::V6(v6) => (v6.octets().to_vec(), 4),
    };
    let labels = usize::from(network.prefix).div_ceil(bits_of_label);
    let names = 1_u32 << (labels * bits_of_label - usize::from(network.prefix));
    let label = |place: usize, added: u32| match bits_of_label {
        8 => (u32::from(octets[place]) + added).to_string(),
        _ => {
            let octet = octets[place / 2];
            let digit = if place.is_multiple_of(2) { octet >> 4 } else { octet & 0xf };
            format!("{:x}", u32::from(digit) + added)
        }
    };
    let top = if bits_of_label == 8 { "in-addr.arpa" } else { "ip6.arpa" };
    let name = |added: u32| {
        let last = labels.saturating_sub(1);
        let labels = (0..labels).rev();
        let text = labels.map(|place| label(place, if place == last { added } else { 0 }) + ".");
        (text.collect::<String>() + top).parse().ok()
    };
    (0..names).filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a network, in one text.
    fn names(network: &str) -> String {
        let names = reverse_names(&Network::from_text(network).unwrap());
        names.iter().map(Name::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_network_has_the_names_that_hold_its_addresses() {
        assert_eq!(names("10.0.0.0/8"), "10.in-addr.arpa.");
        assert_eq!(names("10.1.2.0/24"), "2.1.10.in-addr.arpa.");
        assert_eq!(names("10.96.0.0/15"), "96.10.in-addr.arpa. 97.10.in-addr.arpa.");
        assert_eq!(names("0.0.0.0/0"), "in-addr.arpa.");
        assert_eq!(names("fd00::/8"), "d.f.ip6.arpa.");
        assert_eq!(names("fc00::/7").split(' ').count(), 2);
        assert_eq!(names("::/0"), "ip6.arpa.");
        assert_eq!(names("10.0.0.0/9").split(' ').count(), 128);
    }
}
