//! The section and keys of a zone with the names of a Kubernetes cluster.

use crate::access::Network;
use crate::kubernetes::{ClusterDns, PodNames, SnapshotPlace};
use crate::section::section;
use std::path::PathBuf;
use std::time::Duration;
use zonda_wire::Name;

section! {
    /// The source of a zone whose names are those of a Kubernetes cluster: of its services,
    /// endpoints and pods, which are followed through the cluster's API. Follows its `[[zone]]`. In
    /// a pod, no key is needed to reach the API; elsewhere, give `kubeconfig` or `endpoint`. Until
    /// all objects have been read once, the zone is SERVFAIL. `--kubernetes NAME` (else
    /// `ZONDA_KUBERNETES="NAME"`) makes such a zone, for a server in a pod.
    pub struct KubernetesKeys: Nested "zone.kubernetes", Reload;

    /// A kubeconfig file, whose user has a token, a file of a token, a client certificate, or a
    /// program (`exec`) that prints one of these. It is read anew for each connection.
    kubeconfig: Option<PathBuf>, like "/etc/zonda/kubeconfig";
    /// The context of `kubeconfig`. Unset: its current one.
    context: Option<String>, like "production";
    /// The URL of the API server, if no kubeconfig is used.
    endpoint: Option<String>, like "https://192.0.2.1:6443";
    /// A PEM file of the certificates to which that of `endpoint` must chain.
    ca_file: Option<PathBuf>, like "ca.pem";
    /// A PEM file of the client's certificate for `endpoint`.
    certificate_file: Option<PathBuf>, like "client.pem";
    /// A PEM file of that certificate's key.
    key_file: Option<PathBuf>, like "client.key";
    /// The names `1-2-3-4.NAMESPACE.pod` that exist: none, those of all addresses in a namespace
    /// that exists, or those of pods, which are followed as well then.
    pods: PodNames = "disabled";
    /// Networks whose addresses have the names of services and endpoints (PTR). Each becomes a zone
    /// below `in-addr.arpa` or `ip6.arpa`, or several where its prefix ends within a label.
    reverse: Vec<Network>, like "10.0.0.0/8, fd00::/8";
    /// The TTL of all answers. Unset: 5 seconds, or 30 with `compatible = "kube-dns"`.
    ttl: Option<Duration>, like "10s", from "0 ms" to "1h";
    /// The namespaces whose names exist. Unset: all. If there are up to eight, only their objects
    /// are followed, so that a role in each is enough; of more, those of all namespaces are.
    namespaces: Vec<String>, like "default, kube-system";
    /// A selector of labels for namespaces: names of other namespaces do not exist. Only one of
    /// `namespaces` and this key is given.
    namespace_labels: Option<String>, like "dns=public";
    /// A selector of labels for services, endpoint slices and pods.
    labels: Option<String>, like "app in (web, db)";
    /// Endpoints have names, and headless services their addresses. Without that, no endpoint slice
    /// is followed, and neither these names nor those of headless services exist.
    endpoints: bool = "true";
    /// Endpoints without a host name are called by their pods, instead of by their addresses.
    endpoint_pod_names: bool = "false";
    /// A service with an address of its own does not exist while none of its endpoints is ready.
    ignore_empty_services: bool = "false";
    /// Names `ZONE.pin._zone.SERVICE` and `ZONE.prefer._zone.SERVICE` of headless services stand
    /// for the endpoints of a topology zone.
    zonal: bool = "false";
    /// The zone has the services that are imported from a set of clusters (`ServiceImport` of
    /// `multicluster.x-k8s.io/v1alpha1`) instead of those of the cluster; an endpoint is called
    /// `ENDPOINT.CLUSTER.SERVICE`.
    multicluster: bool = "false";
    /// The zone has the external addresses of services (`externalIPs` of their specification, and
    /// addresses and host names of their load balancers) instead of those in the cluster, at
    /// `SERVICE.NAMESPACE` below it: see [names for
    /// outside](../kubernetes.md#names-for-outside-of-the-cluster).
    external: bool = "false";
    /// With `external`, headless services have the addresses of their endpoints, and endpoints are
    /// called `ENDPOINT.SERVICE.NAMESPACE`, where the service has no external address.
    external_headless: bool = "false";
    /// With `external`, the label below which the server of the zone is called, as `ns1.dns` is.
    external_apex: String = "dns";
    /// Names that the cluster lacks are answered by the next larger zone that holds them, in the
    /// zone and in those of `reverse`.
    fall_through: bool = "false";
    /// The only names that fall through with `fall-through`, with all names below them. Unset: all.
    fall_through_zones: Vec<Name>, like "in-addr.arpa, ip6.arpa";
    /// Names of the hosts file that stands beside `forward` of the zone around this one come
    /// before those of the cluster, in the zone and in those of `reverse`, and so do overridden
    /// names; these are answered before the names of the cluster are known, too. Set it only where
    /// a hosts file has names in the zone: answers of the cluster take longer then.
    hosts_first: bool = "false";
    /// The first name of a pod's search path is answered as an alias of the one that exists: see
    /// [search paths](../kubernetes.md#search-paths). Cannot stand beside a `fall-through` of the
    /// zone's own names.
    autopath: bool = "false";
    /// The search domains that pods have of their hosts, in their order, at most 32. Unset: those
    /// that `/etc/resolv.conf` has when the server starts; `"."` for none.
    search_domains: Vec<Name>, like "example.org";
    /// The cluster DNS whose answers are given where they differ: kube-dns gives a TTL of 30
    /// seconds, priority and weight 10 in SRV records, and names only to addresses of services and
    /// of endpoints with a host name.
    compatible: ClusterDns = "coredns";
    /// A file for the names of the cluster. After a start without the API they are answered from
    /// it, and names that it lacks are SERVFAIL. It is written a minute after a change at the
    /// latest, and at the end. No other zone may have the same file. `state-directory`: one that is
    /// named after the zone and where its API is, in the directory of `state`; none, which the log
    /// tells once, where that cannot be written to. Unset: none; with `--kubernetes` and of a
    /// Corefile, `state-directory`.
    snapshot: Option<SnapshotPlace>, like "/var/lib/zonda/cluster.snapshot";
}
