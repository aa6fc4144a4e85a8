//! Zones that other servers answer for: from the configuration to what workers and forwarder
//! threads see of them.

use crate::numbers::{Number, Numbers};
use crate::settings::access;
use crate::views::ListenerSet;
use arc_swap::ArcSwap;
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use zonda_cache::policy::Limits;
use zonda_cache::{Cache, Freshness, Policy};
use zonda_client::{self as streams, Connections, Protocol, Tls, Url};
use zonda_config::OptionData as Configured;
use zonda_config::{CacheKeys, Config, ForwardKeys, Forwarding, Host, Transport, Upstream};
use zonda_engine::zones::{Forward, Source, ZoneEntry};
use zonda_engine::{OptionData, UpstreamOption, UpstreamOptions};
use zonda_forward::{Bootstrap, Bounds, Group, Groups, Loops, Manner, Server, StateLog};
use zonda_upstream::{Settings, Thresholds};
use zonda_wire::{Name, name};

/// All such zones.
#[derive(Clone)]
pub struct Forwards {
    known: Vec<Arc<KnownForward>>,
    /// The upstreams that look up targets of ALIAS records, as a zone of all names that is in no
    /// table.
    alias_resolver: Option<Arc<KnownForward>>,
    /// How long answers are kept.
    policy: Policy,
    /// The answer cache of all forwarded zones.
    cache: Arc<Cache>,
    /// Whether nothing is asked for below a name that is known not to exist.
    nxdomain_cut: bool,
    /// What forwarder threads see.
    groups: Arc<ArcSwap<Groups>>,
}

/// A forwarded zone as it is configured.
#[derive(Clone, PartialEq, Eq)]
struct ForwardZone {
    /// The zone's apex, in lower case.
    name: Name,
    /// The configuration of how the zone's queries are forwarded.
    forward: Arc<zonda_config::Forward>,
    /// Clients that are answered; none: all that the listener admits.
    access: Option<Arc<zonda_config::Access>>,
    /// Whether the upstreams look up targets of ALIAS records, and no zone's names.
    is_alias_resolver: bool,
    /// The listeners that have the zone, if zones are at some listeners only; none: the table of
    /// all zones.
    at: Option<Arc<ListenerSet>>,
    /// The addresses of all listeners, by their places, if upstreams are told which of them a query
    /// came to: answers are kept by its place.
    told: Option<Arc<[SocketAddr]>>,
}

/// A forwarded zone as it is served.
pub struct KnownForward {
    /// The zone as it is configured.
    config: ForwardZone,
    /// The zone as a snapshot holds it.
    pub entry: Arc<ZoneEntry>,
    /// The number under which the zone's queries are counted.
    pub number: Number,
    /// The servers that are asked, and the number by which forwarders know them.
    group: (u32, Arc<Group>),
}

impl KnownForward {
    /// Returns the number under which forwarder threads know the zone's upstreams.
    pub fn group_number(&self) -> u32 {
        self.group.0
    }

    /// How long answers of the zone are kept.
    pub fn policy(&self) -> &Policy {
        &self.group.1.policy
    }

    /// Whether answers depend on what upstreams are told of the client.
    pub fn tells_of_client(&self) -> bool {
        self.group.1.options.tells_of_client
    }

    /// Returns the zone in the words of reports.
    pub fn label(&self) -> String {
        self.group.1.label()
    }

    /// Returns whether the upstreams may be asked for a name, in wire form.
    pub fn may_answer(&self, name: &[u8]) -> bool {
        name::is_at_or_below(name, self.entry.apex.as_wire())
    }

    /// Names that are not forwarded.
    pub fn except(&self) -> &[Name] {
        &self.config.forward.keys.except
    }

    /// Returns the zone's upstreams, in the order of the configuration: as they are written, and as
    /// they are asked.
    pub fn upstreams(&self) -> impl Iterator<Item = (&Upstream, &Server)> {
        self.config.forward.keys.to.iter().zip(&self.group.1.servers)
    }
}

impl Forwards {
    /// None yet.
    pub fn new(config: &Config) -> Self {
        Self {
            known: Vec::new(),
            alias_resolver: None,
            policy: policy(&config.cache),
            cache: Arc::new(cache(&config.cache)),
            nxdomain_cut: config.cache.nxdomain_cut,
            groups: Arc::default(),
        }
    }

    /// Answers that were kept.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// What forwarder threads see.
    pub fn groups(&self) -> &Arc<ArcSwap<Groups>> {
        &self.groups
    }

    /// The zones.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &KnownForward> {
        self.known.iter().map(|known| &**known)
    }

    /// The zones at some listeners, or those in the table of all zones.
    pub fn of_view<'f>(
        &'f self,
        at: Option<&'f ListenerSet>,
    ) -> impl Iterator<Item = &'f KnownForward> {
        self.iter().filter(move |known| known.config.at.as_deref() == at)
    }

    /// The zones that clients ask for, and behind them the resolver for ALIAS records if there is
    /// one: without those of the table of all zones where listeners have other ones.
    pub fn iter_served(&self) -> impl Iterator<Item = &KnownForward> {
        let is_split = self.known.iter().any(|known| known.config.at.is_some());
        let is_served = move |known: &&KnownForward| {
            known.config.is_alias_resolver || known.config.at.is_some() == is_split
        };
        self.iter_with_resolver().filter(is_served)
    }

    /// The zones, and behind them the resolver for ALIAS records if there is one.
    pub fn iter_with_resolver(&self) -> impl Iterator<Item = &KnownForward> {
        self.iter().chain(self.alias_resolver.as_deref())
    }

    /// The upstreams of the resolver for ALIAS records, as the engine sees them.
    pub fn alias_resolver(&self) -> Option<Arc<Forward>> {
        match &self.alias_resolver.as_ref()?.entry.source {
            Source::Forward(forward) => Some(Arc::clone(forward)),
            _ => None,
        }
    }

    /// Puts into force what is configured; whether any zone differs from before. A zone is there
    /// once for each set of listeners with the same zones: what its answers lead to depends on
    /// these, so that none is given elsewhere. A zone whose answers come from the same servers
    /// keeps its number, and so what is kept of it, and what threads know of these. How long
    /// answers are cached holds for those that come from now on.
    pub fn update(
        &mut self,
        config: &Config,
        listener_sets: &[Arc<ListenerSet>],
        numbers: &mut Numbers,
    ) -> bool {
        let configured = configured(config, listener_sets);
        let bounds = bounds(&config.forwarding);
        let groups = self.groups.load_full();
        self.cache.set_freshness(freshness(&config.cache));
        let (policy, nxdomain_cut) = (policy(&config.cache), config.cache.nxdomain_cut);
        let is_cached_alike = (policy, nxdomain_cut) == (self.policy, self.nxdomain_cut);
        (self.policy, self.nxdomain_cut) = (policy, nxdomain_cut);
        if is_cached_alike && self.iter_with_resolver().map(|known| &known.config).eq(&configured) {
            if groups.bounds != bounds {
                let by_number = groups.by_number.clone();
                self.groups.store(Arc::new(Groups { by_number, bounds }));
            }
            return false;
        }
        let mut former = std::mem::take(&mut self.known);
        former.extend(self.alias_resolver.take());
        for config in &configured {
            let same = former.iter().position(|known| {
                known.config.name == config.name && answers(&known.config) == answers(config)
            });
            let known = match same.map(|place| former.swap_remove(place)) {
                Some(known) if is_cached_alike && known.config == *config => known,
                Some(known) => {
                    let servers = servers(config, Some(&known));
                    let state_log = Arc::clone(&known.group.1.state_log);
                    let numbers = (known.group_number(), known.number);
                    self.make(config.clone(), numbers, servers, state_log)
                }
                None => {
                    let number = group_number(config, self.known.iter().chain(&former));
                    let state_log = Arc::new(StateLog::new(config.forward.keys.to.len()));
                    let numbers = (number, numbers.take());
                    self.make(config.clone(), numbers, servers(config, None), state_log)
                }
            };
            self.known.push(known);
        }
        self.alias_resolver = self.known.pop_if(|known| known.config.is_alias_resolver);
        // Queries that were deferred under a former number are still on their way.
        let known = self.known.iter().chain(&self.alias_resolver).chain(&former);
        let groups = known.map(|known| known.group.clone());
        self.groups.store(Arc::new(Groups { by_number: groups.collect(), bounds }));
        former.into_iter().for_each(|known| numbers.give_back(known.number));
        true
    }

    /// Makes a zone of its configuration, the numbers of its servers and its own, its servers, and
    /// what the log has said of them.
    fn make(
        &self,
        config: ForwardZone,
        (group_number, number): (u32, Number),
        servers: Vec<Server>,
        state_log: Arc<StateLog>,
    ) -> Arc<KnownForward> {
        let (keys, settings) = (&config.forward.keys, settings(&config.forward.keys));
        let options = keys.options.iter().map(upstream_option).collect();
        let options =
            Arc::new(UpstreamOptions::new(options, config.told.clone().unwrap_or_default()));
        let group = Group {
            apex: config.name.clone(),
            is_alias_resolver: config.is_alias_resolver,
            listener: config.at.as_ref().map_or(u16::MAX, |listeners| listeners.first),
            view: config.at.as_ref().map(|listeners| listeners.label.clone()),
            loops: Loops::new(keys.to.len(), settings.thresholds.probe_nanos_max),
            state_log,
            servers,
            settings,
            manner: manner(keys),
            options: Arc::clone(&options),
            policy: zone_policy(self.policy, keys),
            cache: Arc::clone(&self.cache),
            private_names: keys.rebinding_protection.then(|| keys.private_names.clone()),
        };
        let (cache, nxdomain_cut) = (Arc::clone(&self.cache), self.nxdomain_cut);
        let overlays = Vec::new();
        let options = options.tells_of_client.then_some(options);
        let forward = Forward { number: group_number, cache, options, nxdomain_cut, overlays };
        let group = (forward.number, Arc::new(group));
        let source = Source::Forward(Arc::new(forward));
        let access = config.access.as_ref().map(|list| Arc::new(access(list)));
        let entry = ZoneEntry::new(config.name.clone(), source, access, number.place);
        let entry = Arc::new(entry);
        Arc::new(KnownForward { config, entry, number, group })
    }
}

/// The zones that are forwarded, once for each set of listeners that has them and once for the
/// table of all zones, which has one of a name; and the upstreams that look up targets of ALIAS
/// records.
fn configured(config: &Config, listener_sets: &[Arc<ListenerSet>]) -> Vec<ForwardZone> {
    let (mut zones, mut names) = (Vec::new(), HashSet::new());
    let listeners: Arc<[SocketAddr]> = config.listeners.iter().map(|it| it.address).collect();
    let told = |forward: &zonda_config::Forward| {
        let tells = |it: &zonda_config::UpstreamOption| {
            matches!(it.data, Configured::ServerAddress | Configured::ServerPort)
        };
        forward.keys.options.iter().any(tells).then(|| Arc::clone(&listeners))
    };
    for (zone, forward) in config.forwards() {
        let (Some(name), access) = (&zone.name, &zone.access) else { continue };
        let sets = listener_sets.iter().filter(|set| set.has(zone.listeners())).cloned().map(Some);
        let of_all = names.insert(name).then_some(None);
        zones.extend(of_all.into_iter().chain(sets).map(|at| ForwardZone {
            name: name.clone(),
            forward: Arc::clone(forward),
            access: access.clone(),
            is_alias_resolver: false,
            at,
            told: told(forward),
        }));
    }
    zones.extend(config.alias_resolver.iter().map(|forward| ForwardZone {
        name: Name::root(),
        forward: Arc::clone(forward),
        access: None,
        is_alias_resolver: true,
        at: None,
        told: told(forward),
    }));
    zones
}

/// The part of a zone's configuration that its answers depend on: when it changes, cached answers
/// are no longer right.
fn answers(config: &ForwardZone) -> impl PartialEq + Debug {
    let (name, zonda_config::Forward { keys, trust, .. }) = (&config.name, &*config.forward);
    let private = keys.rebinding_protection.then_some(&keys.private_names);
    let at = config.at.as_ref().map(|listeners| &*listeners.label);
    let place = config.is_alias_resolver.then_some("alias-resolver").or(at);
    let options = (&keys.options, &config.told);
    (name, &keys.to, &keys.bootstrap, trust, keys.trust_ad, (private, place), options)
}

/// An option of queries to upstreams, as it is written into them.
fn upstream_option(option: &zonda_config::UpstreamOption) -> UpstreamOption {
    let data = match &option.data {
        Configured::Octets(octets) => OptionData::Octets(octets.as_slice().into()),
        Configured::Name => OptionData::Name,
        Configured::Type => OptionData::Type,
        Configured::ClientAddress => OptionData::ClientAddress,
        Configured::ClientPort => OptionData::ClientPort,
        Configured::Transport => OptionData::Transport,
        Configured::ServerAddress => OptionData::ServerAddress,
        Configured::ServerPort => OptionData::ServerPort,
        Configured::ClientSubnet(of_v4, of_v6) => OptionData::ClientSubnet(*of_v4, *of_v6),
    };
    UpstreamOption { code: option.code, data, is_conditional: option.is_conditional }
}

/// A number that follows from the configuration of a zone, so that answers in a file are found
/// under it after a restart; a zone with different answers has a different number.
fn group_number<'f>(
    config: &ForwardZone,
    others: impl Iterator<Item = &'f Arc<KnownForward>> + Clone,
) -> u32 {
    let mut hasher = DefaultHasher::new(); // a version that hashes otherwise starts cold once
    format!("{:?}", answers(config)).hash(&mut hasher);
    let first = hasher.finish() as u32;
    let is_free = |number: &u32| others.clone().all(|other| other.group_number() != *number);
    (0..=u32::MAX).map(|more| first.wrapping_add(more)).find(is_free).unwrap_or(first)
}

/// How the servers of a forwarded zone are chosen, and how long their answers may take.
fn settings(keys: &ForwardKeys) -> Settings {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let patience_nanos = nanos(keys.timeout);
    let probe_nanos_min = nanos(keys.probe_interval);
    Settings {
        policy: keys.policy,
        stale_nanos: nanos(keys.stale_after).min(patience_nanos),
        patience_nanos,
        fetch_nanos: 2 * patience_nanos,
        outstanding_max: keys.outstanding_max,
        extra_percent: keys.extra_queries.0,
        repeat_nanos_min: nanos(keys.repeat_after_min),
        thresholds: Thresholds {
            silent_max: keys.suspect_after,
            down_after_nanos: nanos(keys.down_after),
            probe_nanos_min,
            probe_nanos_max: nanos(keys.probe_interval_max).max(probe_nanos_min),
        },
    }
}

/// How servers are asked over UDP.
fn manner(keys: &ForwardKeys) -> Manner {
    let port_queries_max = keys.queries_per_port.into();
    Manner { udp_bytes: keys.buffer_size, ports_max: keys.ports, port_queries_max }
}

/// How much is taken on.
fn bounds(keys: &Forwarding) -> Bounds {
    let Forwarding { waiting_max, waiting_per_answer_max, chain_max } = *keys;
    Bounds { waiting_max, waiting_per_answer_max, chain_max }
}

/// Seconds; what is less than one counts as none.
fn secs(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

/// Where answers are kept.
fn cache(keys: &CacheKeys) -> Cache {
    Cache::with(keys.bytes.0 as usize, freshness(keys))
}

/// When answers are refreshed, and what TTL stale ones have.
fn freshness(keys: &CacheKeys) -> Freshness {
    Freshness {
        prefetch_percent: keys.prefetch.0,
        prefetch_ttl_secs_min: secs(keys.prefetch_ttl_min),
        stale_ttl_secs: secs(keys.stale_ttl),
    }
}

/// How long answers are kept.
fn policy(keys: &CacheKeys) -> Policy {
    let within = |least, greatest| Limits { secs_min: secs(least), secs_max: secs(greatest) };
    let negative = within(keys.negative_ttl_min, keys.negative_ttl_max);
    Policy {
        positive: within(keys.ttl_min, keys.ttl_max),
        nodata: negative,
        nxdomain: negative,
        failure: within(keys.failure_ttl_min, keys.failure_ttl_max),
        stale_secs: secs(keys.stale),
    }
}

/// How long answers of a zone are kept, where it says otherwise than all do.
fn zone_policy(of_all: Policy, keys: &ForwardKeys) -> Policy {
    // Less than a second is not none at all.
    let secs_up = |time: Duration| secs(time).max(u32::from(!time.is_zero()));
    let within = |all: Limits, least: Option<Duration>, greatest: Option<Duration>| {
        let secs_max = greatest.map_or(all.secs_max, secs_up);
        Limits { secs_min: least.map_or(all.secs_min, secs).min(secs_max), secs_max }
    };
    let negative = |all| within(all, keys.negative_ttl_min, keys.negative_ttl_max);
    Policy {
        positive: within(of_all.positive, keys.ttl_min, keys.ttl_max),
        nodata: negative(of_all.nodata),
        nxdomain: negative(of_all.nxdomain),
        failure: of_all.failure,
        stale_secs: keys.stale.map_or(of_all.stale_secs, secs),
    }
}

/// The servers of a zone as forwarder threads see them. Those of the zone that it was before, if
/// there is one, stay as they are unless their connections have other limits now.
fn servers(config: &ForwardZone, former: Option<&KnownForward>) -> Vec<Server> {
    let limits =
        |zone: &ForwardZone| (zone.forward.keys.connections_max, zone.forward.keys.pipeline_max);
    let known = former.map_or(&[][..], |former| &former.group.1.servers);
    if former.is_some_and(|former| limits(&former.config) == limits(config)) {
        return known.to_vec();
    }
    let servers: Vec<Server> = config.forward.keys.to.iter().map(|to| server(to, config)).collect();
    for (server, known) in servers.iter().zip(known) {
        server.connections.move_to(known.connections.addresses().to_vec());
    }
    servers
}

/// A server as forwarder threads see it. Where it is, if it is given by name, is looked up from now
/// on.
fn server(upstream: &Upstream, config: &ForwardZone) -> Server {
    const SOUND: &str = "the configuration was found to be sound";
    let subject = upstream.certificate_subject();
    let tls = || Arc::new(Tls::new(&subject, &config.forward.trust).expect(SOUND));
    let url = || Url::new(&subject, upstream.port, &upstream.path).expect(SOUND);
    let protocol = match upstream.transport {
        Transport::Udp | Transport::Tcp => Protocol::Tcp,
        Transport::Tls => Protocol::Tls(tls()),
        Transport::Https => Protocol::Https { tls: tls(), url: url() },
        Transport::Quic => Protocol::Quic(tls()),
    };
    let over_udp = upstream.transport == Transport::Udp;
    let limits = streams::Limits {
        connections_max: config.forward.keys.connections_max.into(),
        pipeline_max: config.forward.keys.pipeline_max.into(),
    };
    let connections = match &upstream.host {
        Host::Address(address) => {
            let addresses = vec![SocketAddr::new(*address, upstream.port)];
            Connections::within(limits, protocol, addresses)
        }
        Host::Name(name) => {
            let connections = Connections::within(limits, protocol, Vec::new());
            let servers = config.forward.keys.bootstrap.iter().map(|server| server.0).collect();
            let bootstrap = Bootstrap { name: name.clone(), port: upstream.port, servers };
            zonda_forward::follow(bootstrap, &connections);
            connections
        }
    };
    let is_trusted = config.forward.keys.trust_ad && upstream.transport.is_encrypted();
    Server { name: upstream.to_string().into(), over_udp, is_trusted, connections }
}

#[cfg(all(test, feature = "whole"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::engine_counters::EngineCounters;
    use std::path::Path;
    use zonda_config::Flags;
    use zonda_engine::{Client, OptionCodes};
    use zonda_wire::Type;
    use zonda_zone::HashSeed;

    /// A server with listeners at these addresses, which forwards all names with such keys.
    fn config(listeners: &[&str], keys: &str) -> Config {
        let listen: String =
            listeners.iter().map(|it| format!("[[listen]]\naddress = \"{it}:53\"\n")).collect();
        let zone = format!("[[zone]]\nname = \".\"\n[zone.forward]\nto = [\"192.0.2.1\"]\n{keys}");
        let text = (Path::new("/zonda.toml"), format!("version = 1\n{listen}{zone}"));
        Config::load_text(text, [], &Flags::default()).unwrap().config
    }

    /// The data of the option that upstreams get for a client of a listener.
    fn told(forwards: &Forwards, listener: u16) -> Vec<u8> {
        let options = &forwards.iter().next().unwrap().group.1.options;
        let client = Client { address: ([192, 0, 2, 9], 5).into(), is_over_tcp: false, listener };
        let facts = options.facts(&client, &OptionCodes::default(), HashSeed(1));
        let mut all = Vec::new();
        options.write(&facts, (&[0], Type::A), |_, data| all.extend_from_slice(data));
        all
    }

    #[test]
    fn upstreams_are_told_the_listener_that_has_the_place_now() {
        let keys = "options = [\"65001 {server-address}\"]\n";
        let first = config(&["127.0.0.1"], keys);
        let mut numbers = Numbers::new(EngineCounters::new(0));
        let mut forwards = Forwards::new(&first);
        let number = |forwards: &Forwards| forwards.iter().next().unwrap().group_number();
        assert!(forwards.update(&first, &[], &mut numbers));
        assert_eq!((told(&forwards, 0), told(&forwards, 1)), (vec![127, 0, 0, 1], vec![]));
        let kept_under = number(&forwards);
        let second = config(&["127.0.0.3", "127.0.0.2"], keys);
        assert!(forwards.update(&second, &[], &mut numbers));
        assert_eq!([0, 1].map(|it| told(&forwards, it)), [[127, 0, 0, 3], [127, 0, 0, 2]]);
        assert_ne!(number(&forwards), kept_under, "answers are kept by the place of a listener");
    }

    #[test]
    fn other_listeners_leave_what_is_kept_where_upstreams_are_not_told_of_them() {
        let first = config(&["127.0.0.1"], "");
        let mut numbers = Numbers::new(EngineCounters::new(0));
        let mut forwards = Forwards::new(&first);
        assert!(forwards.update(&first, &[], &mut numbers));
        assert!(!forwards.update(&config(&["127.0.0.2"], ""), &[], &mut numbers));
    }
}
