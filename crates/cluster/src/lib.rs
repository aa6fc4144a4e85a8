//! Names of a Kubernetes cluster.
//!
//! What services, endpoints and pods are called (the cluster's DNS specification, version 1.1.0),
//! and what these names answer. Pure: a [`Builder`] takes objects as they come, and makes an
//! immutable [`Cluster`] of them, which workers read. Deliberately absent: connections to the API,
//! clocks, and the writing of messages.

mod address;
mod builder;
mod cluster;
mod data;
pub mod object;
mod objects;
mod search;
mod service;
mod table;
mod transfer;
mod versions;

pub use builder::{Builder, Change, Kind};
pub use cluster::{AddressMatch, Cluster, ClusterMatch, ExternalNames, Options, PodNames};
pub use search::{SEARCH_DOMAINS_MAX, SearchedName};
pub use service::{
    Addresses, EndpointFilter, EndpointRecord, Selection, ServiceRecord, SliceRecord,
};
pub use zonda_zone::HashSeed;
