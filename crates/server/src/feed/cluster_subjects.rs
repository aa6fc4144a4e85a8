//! What the feed of a Kubernetes cluster follows, as the configuration says.

use super::search_domains::search_domains;
use std::path::PathBuf;
use std::sync::Arc;
use zonda_cluster::{ExternalNames, Kind, Options};
use zonda_config::{ClusterDns, KubernetesKeys, PodNames};
use zonda_kubernetes::{ConnectError, Place, Settings, Subject};
use zonda_wire::Name;

/// A selector of the labels of slices that belong to imports.
const IMPORTED_SLICES: &str = "multicluster.kubernetes.io/service-name";

/// What a feed follows. Feeds that are equal in this are one.
#[derive(Clone, PartialEq)]
pub(super) struct Subjects {
    /// The apex in lower case.
    pub apex: Name,
    /// Which names there are, and where the API is.
    pub keys: Arc<KubernetesKeys>,
    /// The file that keeps the names, if one does.
    pub file: Option<PathBuf>,
}

/// What the names that a former feed has left are worth to the next feed of the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormerNames {
    /// The names are all that the next feed would have, and stay as they are.
    Whole,
    /// The names are of the same cluster, of which the next feed may have more: a name that is
    /// missing may exist.
    Partial,
    /// The names are of another source: none of them stays.
    Foreign,
}

impl FormerNames {
    /// Compares the configuration of a former feed with that of the next.
    pub fn of(former: &KubernetesKeys, next: &KubernetesKeys) -> Self {
        let is_same_source = former.kubeconfig == next.kubeconfig
            && former.context == next.context
            && former.endpoint == next.endpoint
            && former.multicluster == next.multicluster
            && former.external == next.external;
        let has_all_names = former.namespaces == next.namespaces
            && former.namespace_labels == next.namespace_labels
            && former.labels == next.labels
            && former.pods == next.pods
            && former.endpoints == next.endpoints
            && former.endpoint_pod_names == next.endpoint_pod_names
            && former.external_headless == next.external_headless
            && former.ignore_empty_services == next.ignore_empty_services
            && former.zonal == next.zonal
            && former.compatible == next.compatible;
        match (is_same_source, has_all_names) {
            (false, _) => Self::Foreign,
            (true, false) => Self::Partial,
            (true, true) => Self::Whole,
        }
    }
}

/// Checks whether what is needed to reach a cluster can be read.
///
/// # Errors
/// What is missing or cannot be read. That this is no pod is no mistake of the file.
pub fn check(keys: &KubernetesKeys) -> Result<(), ConnectError> {
    match Settings::read(&place(keys)) {
        Ok(_) | Err(ConnectError::NotInPod) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What decides which names there are.
pub(super) fn options(keys: &KubernetesKeys) -> Options {
    Options {
        ttl: u32::try_from(keys.ttl().as_secs()).unwrap_or(u32::MAX),
        pods: match keys.pods {
            PodNames::Disabled => zonda_cluster::PodNames::Disabled,
            PodNames::Insecure => zonda_cluster::PodNames::Insecure,
            PodNames::Verified => zonda_cluster::PodNames::Verified,
        },
        ignores_empty_services: keys.ignore_empty_services,
        has_pod_labels: keys.endpoint_pod_names,
        has_zones: keys.zonal,
        is_multicluster: keys.multicluster,
        external: keys.external.then(|| ExternalNames {
            server_label: keys.external_apex.to_ascii_lowercase(),
            has_endpoints: keys.external_headless,
        }),
        namespaces: keys.namespaces.iter().map(|name| name.to_ascii_lowercase()).collect(),
        exposes_known_namespaces: keys.namespace_labels.is_some(),
        is_kube_dns: keys.compatible == ClusterDns::KubeDns,
        search_domains: keys.autopath.then(|| search_domains(keys)),
    }
}

/// Where the API is.
pub(super) fn place(keys: &KubernetesKeys) -> Place {
    match (&keys.kubeconfig, &keys.endpoint) {
        (Some(file), _) => Place::Kubeconfig(file.clone(), keys.context.clone()),
        (None, Some(url)) => Place::Endpoint {
            url: url.clone(),
            ca: keys.ca_file.clone(),
            client: keys.certificate_file.clone().zip(keys.key_file.clone()),
        },
        (None, None) => Place::Pod,
    }
}

/// Namespaces whose objects are followed one by one; of more, those of all namespaces are.
const NAMESPACES_MAX: usize = 8;

/// The namespaces whose objects are followed one by one; none if those of all are.
pub(super) fn namespaces(keys: &KubernetesKeys) -> Vec<String> {
    let mut namespaces: Vec<String> =
        keys.namespaces.iter().map(|name| name.to_ascii_lowercase()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    if namespaces.len() > NAMESPACES_MAX {
        namespaces.clear();
    }
    namespaces
}

/// The objects that are followed: those of each namespace, if only few of them have names.
pub(super) fn followed(keys: &KubernetesKeys) -> Vec<Subject> {
    let labels = keys.labels.clone().unwrap_or_default();
    let mut namespaces = namespaces(keys);
    if namespaces.is_empty() {
        namespaces.push(String::new());
    }
    let of_kind = |kind, namespace: &String| {
        let labels = match kind {
            Kind::Namespace => keys.namespace_labels.clone().unwrap_or_default(),
            Kind::EndpointSlice if keys.multicluster && labels.is_empty() => {
                IMPORTED_SLICES.to_owned()
            }
            Kind::EndpointSlice if keys.multicluster => format!("{labels},{IMPORTED_SLICES}"),
            _ => labels.clone(),
        };
        Subject { kind, labels, namespace: namespace.clone() }
    };
    let services = if keys.multicluster { Kind::ServiceImport } else { Kind::Service };
    let mut kinds = vec![Kind::Namespace, services];
    if keys.endpoints {
        kinds.push(Kind::EndpointSlice);
    }
    if keys.pods == PodNames::Verified {
        kinds.push(Kind::Pod);
    }
    let mut subjects = Vec::new();
    for namespace in &namespaces {
        subjects.extend(kinds.iter().map(|kind| of_kind(*kind, namespace)));
    }
    subjects
}

#[cfg(test)]
mod tests {
    use super::super::cluster_file::tests::own_keys;
    use super::*;

    #[test]
    fn few_namespaces_are_followed_one_by_one_and_many_together() {
        let of = |names: &[&str]| -> Vec<String> {
            let keys = own_keys(&format!("namespaces = {names:?}"));
            followed(&keys).into_iter().map(|it| it.namespace).collect()
        };
        assert_eq!(of(&["shop"]), ["shop"; 3]);
        assert_eq!(of(&["shop", "Bank", "shop"]), [["bank"; 3], ["shop"; 3]].concat());
        assert_eq!(of(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]), [""; 3]);
        assert_eq!(followed(&own_keys("")).len(), 3);
    }

    #[test]
    fn endpoint_slices_are_followed_unless_endpoints_have_no_names() {
        let kinds = |keys: &str| -> Vec<Kind> {
            followed(&own_keys(keys)).into_iter().map(|it| it.kind).collect()
        };
        assert!(kinds("").contains(&Kind::EndpointSlice));
        assert_eq!(kinds("endpoints = false"), [Kind::Namespace, Kind::Service]);
    }

    #[test]
    fn names_of_a_former_feed_stay_as_far_as_the_next_one_would_have_them() {
        let of = |former: &str, next: &str| FormerNames::of(&own_keys(former), &own_keys(next));
        for same in ["ttl = \"1s\"", "reverse = [\"10.0.0.0/8\"]", "autopath = true"] {
            assert_eq!(of("", same), FormerNames::Whole, "{same}");
        }
        for other in
            ["namespaces = [\"a\"]", "labels = \"a=b\"", "zonal = true", "endpoints = false"]
        {
            assert_eq!(of("", other), FormerNames::Partial, "{other}");
            assert_eq!(of(other, ""), FormerNames::Partial, "{other}");
        }
        for other in ["multicluster = true", "external = true", "kubeconfig = \"a\""] {
            assert_eq!(of("", other), FormerNames::Foreign, "{other}");
        }
        let headless = "external = true\nexternal-headless = true";
        assert_eq!(of("external = true", headless), FormerNames::Partial);
        let in_context = |name: &str| format!("kubeconfig = \"a\"\ncontext = \"{name}\"");
        assert_eq!(of(&in_context("a"), &in_context("b")), FormerNames::Foreign);
    }
}
