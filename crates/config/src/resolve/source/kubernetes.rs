//! Zones whose names are those of a Kubernetes cluster.

use crate::error::Contradiction;
use crate::keys::KubernetesKeys;
use crate::reader::Reader;
use crate::section::Keys;

/// Reads how a cluster is followed. Keys of which one excludes the other, or means nothing without
/// it, are reported.
pub fn read(reader: &mut Reader<'_, '_>) -> Option<KubernetesKeys> {
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
    ] {
        if reader.is_set(key) && !reader.is_set(needed) {
            reader.contradict(Some(key), Contradiction::Needs(key, needed));
        }
    }
    if keys.multicluster && reader.is_set("pods") {
        reader.contradict(Some("pods"), Contradiction::Excludes("pods", "multicluster"));
    }
    Some(keys)
}
