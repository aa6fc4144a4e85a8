//! Configuration file, environment and flags, made into one immutable [`Config`].
//!
//! ```text
//! flags ─┐
//! ZONDA_ ┼─► reader ─► keys (typed, in range) ─► resolve ─► Config
//! file  ─┘    ▲            all errors of the file in one run
//!             └── keys.rs: each key once ──► reference page, sample, --print-config
//! ```
//!
//! Deliberately absent: the files of zones (the server reads those), name look-ups, and a way to
//! change a `Config`: a reload loads another one and compares.

#![cfg_attr(
    not(feature = "file"),
    allow(dead_code, unused_imports, reason = "files ask for what flags cannot")
)]

mod access;
mod cache_keys;
mod catalog_keys;
mod changes;
mod cluster_keys;
mod document;
mod effective;
mod error;
mod geo_keys;
mod geo_value;
#[cfg(not(feature = "file"))]
#[path = "no_health.rs"]
mod health;
mod keys;
mod kube_dns;
mod kubernetes;
mod load;
mod log_keys;
mod looked_up;
mod mistake;
mod node_keys;
mod option_value;
mod page_origins;
mod places;
mod pool_keys;
mod pool_value;
mod reader;
mod reference;
mod resolve;
mod rewrite_keys;
mod rewrite_value;
mod section;
mod server_file;
mod socket;
mod special;
mod store;
#[cfg(not(feature = "file"))]
#[path = "no_toml.rs"]
mod toml;
mod transfer_keys;
mod transfer_value;
mod unknown;
mod update_keys;
mod update_value;
mod value;
mod zone;

pub use access::{Access, Action, Network, Rule, TransferTerms};
pub use document::looks_like_a_zone;
pub use effective::Effective;
pub use error::{
    Advice, CatalogMistake, ConfigError, Contradiction, GeoMistake, LocalMistake, NodeMistake,
    Origin, PoolMistake, Problem, SteerMistake, Suggestion, TransferMistake, UpdateMistake,
    Warning,
};
pub use keys::{
    Answers, CacheKeys, CatalogPlace, Edns, ForwardKeys, Forwarding, Identity, KubernetesKeys, Log,
    MembersKeys, Metrics, QueryLog, RateLimit, SECTIONS, SecondaryKeys, StoreKeys, Tcp,
    TransfersKeys,
};
pub use kube_dns::{ConfigMapError, ConfigMapMistake, KubeDns};
pub use kubernetes::{ClusterDns, PodNames, SnapshotPlace};
pub use load::{Flags, LoadedConfig};
pub use looked_up::with_addresses;
pub use mistake::Mistake;
pub use option_value::{OptionData, UpstreamOption};
pub use page_origins::PageOrigins;
pub use reference::{generated_files, man_page};
pub use section::{EffectTime, Key, Kind, Section, Shape};
pub use server_file::{ServerFileError, ServerFileMistake};
pub use socket::find_sockets;
pub use store::StoreUrl;
pub use transfer_value::{AliasTransfer, HistoryLimits, KeyAlgorithm, KeySecret};
pub use transfer_value::{RemoteServer, TransferClient};
pub use update_value::{DataType, UpdateGrant, UpdateNames, UpdatePreset};
pub use value::{
    CookieSecret, LogFormat, LogLevel, LogOutcome, Nsid, Output, Percent, PinnedKey, SerialRule,
    ServerAddress, Toggle, Token,
};
pub use zonda_client::Trust;
pub use zonda_upstream::{Host, Transport, Upstream};
pub use zone::{HostsTerms, Source, Zone, ZoneTerms};

#[cfg(feature = "file")]
use ::toml;
#[cfg(feature = "file")]
use zonda_health as health;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use zonda_wire::name::is_at_or_below;
use zonda_wire::{Name, Type};

/// Reads a duration in the form that keys have, such as `1500 ms` or `2h`; none if it is not one.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    value::Value::from_text(text)
}

/// Everything that the server is configured to do. Equal configurations make equal servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Listeners, no address twice but for those at port 0. Each keeps its place in a reload, the
    /// number of which queries carry.
    pub listeners: Vec<Listener>,
    /// The interface that the server makes; none: it makes none.
    pub node_local: Option<NodeLocal>,
    /// All zones; no name twice.
    pub zones: Vec<Zone>,
    /// Catalogs whose members are served; no name twice.
    pub catalogs: Vec<Catalog>,
    /// Names that flags steer and that lie in none of `zones`. Each has its own zone, the first
    /// name, without other data.
    pub steered: Vec<(Name, SteerRule)>,
    /// The sites, and what tells where clients are.
    pub geography: Arc<zonda_balance::geography::Geography>,
    /// The pools, by their numbers; no name twice.
    pub pools: Vec<PoolConfig>,
    /// The ConfigMap of kube-dns that is followed, if one is.
    pub kube_dns: Option<KubeDns>,
    /// Limits of all forwarded zones together.
    pub forwarding: Forwarding,
    /// Special names that are answered here where `.` is forwarded, in lower case; none twice.
    pub special_names: Vec<Name>,
    /// Names that have other addresses here, in lower case; none twice.
    pub overrides: Vec<Override>,
    /// The rules that change questions and replies, if there are any.
    pub rewrites: Option<Arc<zonda_rewrite::RewriteRules>>,
    /// The templates that records are made from, if there are any.
    pub templates: Option<Arc<zonda_rewrite::Templates>>,
    /// Answers of other servers that are kept.
    pub cache: CacheKeys,
    /// Whether the files of single zones are watched; those of directories always are.
    pub watch: bool,
    /// Interval at which watched files are checked.
    pub watch_interval: Duration,
    /// The directory of what is kept from one start to the next; none: that of the system.
    pub state: Option<PathBuf>,
    /// Interval at which changes of writable zones are written to their files.
    pub flush_interval: Duration,
    /// The user whose rights the server keeps once its sockets are bound.
    pub user: Option<String>,
    /// Keys of signed messages; their names differ.
    pub keys: Vec<TsigKey>,
    /// Bounds on transfers.
    pub transfers: TransfersKeys,
    /// Limits of DNS over TCP.
    pub tcp: Tcp,
    /// Options of answers.
    pub answers: Answers,
    /// How targets of ALIAS records are looked up, if upstreams are configured for that.
    pub alias_resolver: Option<Arc<Forward>>,
    /// Extension mechanisms (rfc6891).
    pub edns: Edns,
    /// What the server reveals about itself.
    pub identity: Identity,
    /// Response rate limiting.
    pub rate_limit: RateLimit,
    /// The administrative interface.
    pub admin: Admin,
    /// Zones that are counted one by one.
    pub metrics: Metrics,
    /// The server's log.
    pub log: Log,
    /// The log of queries.
    pub query_log: QueryLog,
}

/// An address on which queries are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Address and port.
    pub address: SocketAddr,
    /// Whether UDP is answered.
    pub udp: bool,
    /// Whether TCP is answered.
    pub tcp: bool,
    /// Threads that answer UDP; 0: one for each CPU that the server may use.
    pub workers: u16,
    /// Receive buffer asked for each UDP socket, octets.
    pub receive_buffer_bytes: u32,
    /// Send buffer asked for each UDP socket, octets.
    pub send_buffer_bytes: u32,
    /// Clients that are answered; none: all.
    pub access: Option<Arc<Access>>,
    /// Whether the address is not answered on any more: a reload has taken the listener out, and
    /// its place waits for another one.
    pub is_closed: bool,
}

/// The interface of a node's own DNS cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLocal {
    /// The name of the interface.
    pub interface: String,
    /// The addresses of the interface, at least one, each once.
    pub addresses: Vec<IpAddr>,
}

/// A catalog zone whose members are served (rfc9432).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// The name of the catalog zone, in lower case.
    pub name: Name,
    /// The share of the members that one version may remove, in percent: 0–100.
    pub removals_max: u8,
    /// The number of zones that a version may list, at least 1.
    pub members_max: u32,
    /// How members are served; at least one, at most one of them without groups.
    pub templates: Vec<MemberTemplate>,
}

/// How the members of some groups of a catalog are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberTemplate {
    /// The groups; none: all members of which no other template has a group.
    pub groups: Vec<String>,
    /// How the members are transferred from their primaries.
    pub secondary: Arc<SecondaryKeys>,
    /// Clients that are answered; none: all that the listener admits.
    pub access: Option<Arc<Access>>,
}

/// A name and type of a zone that a pool answers for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteerRule {
    /// The whole name in lower case.
    pub name: Name,
    /// The type that is steered.
    pub rtype: Type,
    /// The number of the pool in [`Config::pools`].
    pub pool: u32,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// The name of the pool.
    pub name: String,
    /// The members, and how they are chosen.
    pub pool: zonda_balance::Pool,
    /// The members in words, in the same order.
    pub members: Vec<MemberConfig>,
    /// How members that have an address are checked; none: they are always up.
    pub check: Option<PoolCheck>,
    /// The name whose addresses are the members, which the configuration does not know, if they
    /// are looked up.
    pub lookup: Option<AddressLookup>,
    /// Members that must be up for the pool to count as up as a member of another one.
    pub up_min: u32,
    /// Time in which the weight of a member that has come back rises to the whole.
    pub slow_start: Duration,
    /// Time for which a member that has come back answers only when no other is up.
    pub hold_down: Duration,
    /// Whether a member that was down does so until an operator says otherwise.
    pub is_resumed_by_hand: bool,
    /// The least TTL of records.
    pub ttl_min: Duration,
    /// The greatest TTL of records, and that of a pool without check.
    pub ttl_max: Duration,
}

impl PoolConfig {
    /// Calls a function with each state that the member with a number depends on besides its
    /// probes.
    pub fn each_source(&self, member: usize, visit: &mut impl FnMut(StateSource)) {
        if let Some(pool) = self.pool.members.get(member).and_then(|member| member.pool) {
            return visit(StateSource { pool, member: None });
        }
        let calculation = self.members.get(member).and_then(|it| it.calculation.as_ref());
        if let Some(calculation) = calculation {
            calculation.formula.each_leaf(&mut |source| visit(*source));
        }
    }
}

/// A name whose addresses are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressLookup {
    /// The name that is looked up.
    pub name: Name,
    /// The servers that are asked; at least one.
    pub servers: Vec<SocketAddr>,
}

/// How the members of a pool are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolCheck {
    /// What a probe does.
    pub check: Arc<health::Check>,
    /// The port that is probed.
    pub port: u16,
    /// An address that is probed in place of each member's.
    pub address: Option<IpAddr>,
    /// The time between two probes of a member.
    pub interval: Duration,
    /// The time after which a probe has failed.
    pub timeout: Duration,
    /// When results change the state of a member.
    pub thresholds: health::Thresholds,
}

/// A member of a pool as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// The name: the address, the data, or the name of the pool.
    pub name: String,
    /// The address, if there is one: what is checked.
    pub address: Option<IpAddr>,
    /// The name of the site that the member is at.
    pub site: Option<String>,
    /// The states from which its own is calculated, if it is.
    pub calculation: Option<Calculation>,
}

/// How the state of a member is calculated from those of pools and of their members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calculation {
    /// The formula as it is written, with the names in it.
    pub text: String,
    /// The formula, with the pools and members by their numbers.
    pub formula: health::Formula<StateSource>,
}

/// A state from which states of members are calculated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSource {
    /// The number of the pool.
    pub pool: u32,
    /// The number of the member in the pool; none for the pool as a whole.
    pub member: Option<u32>,
}

/// How the queries for a zone are forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Keys of the section; `to` has the upstreams in files as well, behind its own.
    pub keys: ForwardKeys,
    /// The certificates that are trusted.
    pub trust: Trust,
    /// Number of upstreams in `to` that no file has named.
    pub own_servers: usize,
    /// State of the files that name upstreams when they were read; 0 without files.
    pub files_stamp: u64,
}

/// A name that has other addresses here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The name, perhaps of a wildcard.
    pub name: Name,
    /// All addresses of the name; at least one.
    pub addresses: Vec<IpAddr>,
}

/// A key with which messages are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TsigKey {
    /// The name in lower case.
    pub name: Name,
    /// The algorithm that the key is for.
    pub algorithm: zonda_wire::tsig::Algorithm,
    /// The secret that both sides have.
    pub secret: KeySecret,
}

impl Config {
    /// Returns the zones that follow databases, and how each follows its database.
    pub fn stores(&self) -> impl Iterator<Item = (&Zone, &Arc<StoreKeys>)> {
        self.zones.iter().filter_map(|zone| match &zone.source {
            Source::Store(store) => Some((zone, store)),
            _ => None,
        })
    }

    /// Returns the zones that are transferred from primaries, and how each is.
    pub fn secondaries(&self) -> impl Iterator<Item = (&Zone, &Arc<SecondaryKeys>)> {
        self.zones.iter().filter_map(|zone| match &zone.source {
            Source::Secondary(secondary) => Some((zone, secondary)),
            _ => None,
        })
    }

    /// Returns the catalogs that the server makes, and how each is made.
    pub fn made_catalogs(&self) -> impl Iterator<Item = (&Zone, &Arc<MembersKeys>)> {
        self.zones.iter().filter_map(|zone| match &zone.source {
            Source::Members(members) => Some((zone, members)),
            _ => None,
        })
    }

    /// Returns the zones of clusters, and how each cluster is followed.
    pub fn clusters(&self) -> impl Iterator<Item = (&Zone, &Arc<KubernetesKeys>)> {
        self.zones.iter().filter_map(|zone| match &zone.source {
            Source::Kubernetes(cluster) => Some((zone, cluster)),
            _ => None,
        })
    }

    /// Returns the forwarded zones, and how each is forwarded.
    pub fn forwards(&self) -> impl Iterator<Item = (&Zone, &Arc<Forward>)> {
        self.zones.iter().filter_map(|zone| match &zone.source {
            Source::Forward(forward) => Some((zone, forward)),
            _ => None,
        })
    }

    /// Whether upstreams are configured that look up what ALIAS records lead to, if that is this
    /// name in wire form.
    #[must_use]
    pub fn looks_up_alias(&self, target: &[u8]) -> bool {
        let holds = |(zone, _): (&Zone, _)| {
            zone.name.as_ref().is_some_and(|apex| is_at_or_below(target, apex.as_wire()))
        };
        self.alias_resolver.is_some() || self.forwards().any(holds)
    }
}

impl KubernetesKeys {
    /// Returns the TTL of all answers.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        let of_kind = match self.compatible {
            ClusterDns::CoreDns => 5,
            ClusterDns::KubeDns => 30,
        };
        self.ttl.unwrap_or(Duration::from_secs(of_kind))
    }

    /// Returns the names of the zones in which addresses have the names of the cluster, each once.
    #[must_use]
    pub fn reverse_zones(&self) -> Vec<Name> {
        let mut names = Vec::new();
        for name in self.reverse.iter().flat_map(kubernetes::reverse_names) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Whether names that the cluster lacks are left to the zone around one of its zones.
    #[must_use]
    pub fn falls_through(&self, zone: &Name) -> bool {
        let is_in = |named: &Name| is_at_or_below(zone.as_wire(), named.as_wire());
        let named = &self.fall_through_zones;
        self.fall_through && (named.is_empty() || named.iter().any(is_in))
    }
}

/// The administrative interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Address and port of its HTTP server; none: it is off.
    pub address: Option<SocketAddr>,
    /// Addresses at which the health of the process is told, to all clients.
    pub health: Vec<SocketAddr>,
    /// Addresses at which it is told whether the server is ready, to all clients.
    pub ready: Vec<SocketAddr>,
    /// Addresses at which metrics are told, to all clients.
    pub metrics: Vec<SocketAddr>,
    /// The places of these three keys.
    pub page_origins: PageOrigins,
    /// Time for which a server that is to stop goes on answering.
    pub lameduck: Duration,
    /// The bearer token with which all requests are answered at `address`.
    pub token: Option<Token>,
    /// The bearer token with which requests are answered at `address` that change nothing.
    pub read_token: Option<Token>,
    /// The key with which requests of PowerDNS's HTTP API are answered at `address`; none: they are
    /// not answered at all.
    pub powerdns_api_key: Option<Token>,
    /// Whether `address` serves nothing but metrics and the server's health, token or not.
    pub is_metrics_only: bool,
    /// The Unix socket for `zonda reload` and the like; none: it is off.
    pub socket: Option<PathBuf>,
    /// The directory of zones that clients create and remove; none: they cannot.
    pub zones: Option<PathBuf>,
    /// Address of BIND's JSON statistics; none: they are off.
    pub bind_statistics: Option<SocketAddr>,
    /// Networks that may read the statistics, besides loopback addresses.
    pub bind_statistics_clients: Vec<Network>,
}

impl Admin {
    /// Returns the address of the HTTP server, if it needs a token, being none of a loopback
    /// interface, and has none.
    #[must_use]
    pub fn address_without_token(&self) -> Option<SocketAddr> {
        let has_token = self.token.is_some() || self.read_token.is_some();
        self.address.filter(|address| !address.ip().is_loopback() && !has_token)
    }
}
