//! Zones whose names are those of a Kubernetes cluster.

use crate::error::Contradiction;
use crate::keys::KubernetesKeys;
use crate::reader::Reader;
use crate::section::Keys;
use zonda_wire::Name;

/// Most search domains: as many as Kubernetes lets a pod have.
const SEARCH_DOMAINS_MAX: usize = 32;

/// Keys that only names inside of a cluster have.
const INSIDE_KEYS: [&str; 6] =
    ["pods", "multicluster", "zonal", "autopath", "ignore-empty-services", "compatible"];

/// Reads how a cluster is followed whose names are in a zone. Keys of which one excludes the other,
/// or means nothing without it, are reported.
pub fn read(reader: &mut Reader<'_, '_>, zone: Option<&Name>) -> Option<KubernetesKeys> {
    let keys = KubernetesKeys::read(reader)?;
    for (key, other) in
        [("kubeconfig", "endpoint"), ("namespaces", "namespace-labels"), ("multicluster", "pods")]
    {
        if reader.is_set(key) && reader.is_set(other) {
            reader.contradict(Some(other), Contradiction::Excludes(key, other));
        }
    }
    for (key, needed) in [
        ("fall-through-zones", "fall-through"),
        ("context", "kubeconfig"),
        ("ca-file", "endpoint"),
        ("certificate-file", "endpoint"),
        ("certificate-file", "key-file"),
        ("key-file", "certificate-file"),
        ("search-domains", "autopath"),
        ("external-headless", "external"),
        ("external-apex", "external"),
    ] {
        if reader.is_set(key) && !reader.is_set(needed) {
            reader.contradict(Some(key), Contradiction::Needs(key, needed));
        }
    }
    if keys.autopath && zone.is_some_and(|zone| keys.falls_through(zone)) {
        // What a search path is tried for could not be told from what falls through.
        reader
            .contradict(Some("fall-through"), Contradiction::Excludes("autopath", "fall-through"));
    }
    if keys.search_domains.len() > SEARCH_DOMAINS_MAX {
        let (key, max) = ("search-domains", SEARCH_DOMAINS_MAX);
        reader.contradict(Some(key), Contradiction::MoreThan(key, max));
    }
    if keys.multicluster && reader.is_set("pods") {
        reader.contradict(Some("pods"), Contradiction::Excludes("pods", "multicluster"));
    }
    for (key, is_set) in [
        ("zonal", keys.zonal),
        ("external-headless", keys.external_headless),
        ("ignore-empty-services", keys.ignore_empty_services),
        ("endpoint-pod-names", keys.endpoint_pod_names),
    ] {
        if is_set && !keys.endpoints {
            reader.contradict(Some(key), Contradiction::Needs(key, "endpoints"));
        }
    }
    if keys.external {
        for other in INSIDE_KEYS {
            if reader.is_set(other) {
                reader.contradict(Some(other), Contradiction::Excludes("external", other));
            }
        }
        let label = &keys.external_apex;
        let is_label = label.parse::<Name>().is_ok_and(|name| name.label_count() == 1);
        if !is_label {
            reader.contradict(Some("external-apex"), Contradiction::NotLabel("external-apex"));
        }
    }
    Some(keys)
}
