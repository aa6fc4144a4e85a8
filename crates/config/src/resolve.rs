//! From keys, each sound alone, to a [`Config`] that is sound as a whole.

mod access;
mod admin;
mod answers;
mod bounds;
mod catalogs;
mod geo;
mod geo_files;
mod hosts_terms;
mod keys;
mod kube_dns;
mod listeners;
mod local;
mod node_local;
#[cfg(feature = "file")]
mod pool_calculation;
#[cfg(feature = "file")]
mod pool_check;
#[cfg(feature = "file")]
mod pool_names;
#[cfg(feature = "file")]
mod pools;
#[cfg(not(feature = "file"))]
#[path = "resolve/no_pools.rs"]
mod pools;
mod rewrites;
mod secondary_terms;
mod secrets;
mod source;
#[cfg(feature = "file")]
mod steer_flag;
mod transfers;
mod updates;
mod zone_names;
mod zones;

use crate::access::Action;
use crate::error::{Advice, Origin, Warning};
use crate::keys::{CacheKeys, Forwarding, KubeDnsKeys, NodeLocalKeys, Top};
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::{Config, KubeDns, Listener, NodeLocal, RateLimit};
use access::Lists;
use geo::Sites;
pub(crate) use geo_files::stamp;
use keys::KeyList;
use pools::Pools;
#[cfg(not(feature = "file"))]
use pools::steer_flag;
pub(crate) use source::forward;
pub(crate) use source::forward::is_own_listener;
use std::net::IpAddr;

/// Reads all sections; none if something was wrong, which is then reported to the session.
pub(crate) fn resolve<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
) -> Option<(Config, Vec<Warning>)> {
    let top: Option<Top> = section(layers, session);
    let keys = KeyList::read(layers, session);
    let mut lists = Lists::read(layers, session, &keys);
    let workers = top.as_ref().map_or(0, |top| top.workers);
    let has_user = top.as_ref().is_some_and(|top| top.user.is_some());
    let node_local = node_local::read(&mut open::<NodeLocalKeys>(layers, session), has_user);
    let interface = node_local.iter().flatten().next();
    let listeners = listeners_beside(interface, layers, session, (&mut lists, workers));
    let root = top.as_ref().and_then(|top| top.root.clone());
    let mut sites = Sites::read(layers, session);
    let mut pools = Pools::read(layers, session, &mut sites);
    let steered = steer_flag::read(layers, session, (&mut pools, &mut sites));
    let geography = pools.map_sites(session, sites);
    let mut zones = zones::read(layers, session, (&mut lists, &mut pools, &keys), root, &listeners);
    let catalogs = catalogs::read(layers, session, (&mut lists, &keys), &zones, &listeners);
    let steered = steer_flag::place(session, &mut pools, steered, &mut zones);
    let kube_dns = kube_dns::read(&mut open::<KubeDnsKeys>(layers, session), &listeners, &zones);
    let (special_names, overrides) = local::read(layers, session);
    let rewrites = rewrites::read(layers, session, &listeners);
    let forwarding = bounds::forwarding(&mut open::<Forwarding>(layers, session));
    let cache = bounds::cache(&mut open::<CacheKeys>(layers, session));
    let (transfers, tcp) = (section(layers, session), section(layers, session));
    let (answers, edns) = (answers::read(layers, session, &listeners), section(layers, session));
    let (identity, rate_limit) = (section(layers, session), section(layers, session));
    let (admin, metrics) = (admin::read(layers, session, &listeners), section(layers, session));
    let (log, query_log) = (section(layers, session), section(layers, session));

    let (top, rate_limit, (answers, alias_resolver)) = (top?, rate_limit?, answers?);
    let (admin, mut secret_files) = admin?;
    secret_files.extend(keys.files);
    zones::add_those_of_clients(&mut zones, admin.zones.clone());
    let mut warnings = warnings(&listeners, zones.is_empty() && steered.is_empty(), &rate_limit);
    warnings.extend(secrets::warnings(layers, &secret_files));
    warnings.extend(catalogs::warnings(layers, &catalogs, &listeners));
    let mut config = Config {
        listeners: listeners.into_iter().map(|(listener, _)| listener).collect(),
        node_local: node_local?.map(|(node_local, _)| node_local),
        zones,
        catalogs,
        steered,
        geography,
        pools: pools.into_configs(),
        kube_dns: None,
        forwarding: forwarding?,
        special_names: special_names?,
        overrides,
        rewrites: rewrites.0,
        templates: rewrites.1,
        cache: cache?,
        watch: top.watch,
        watch_interval: top.watch_interval,
        state: top.state,
        flush_interval: top.flush_interval,
        user: top.user,
        keys: keys.keys,
        transfers: transfers?,
        tcp: tcp?,
        answers,
        alias_resolver,
        edns: edns?,
        identity: identity?,
        rate_limit,
        admin,
        metrics: metrics?,
        log: log?,
        query_log: query_log?,
    };
    if let Some(kube_dns) = kube_dns? {
        warnings.extend(follow_config_map(&mut config, kube_dns));
    }
    Some((config, warnings))
}

/// Reads the listeners, beside the interface of a node's cache if there is one.
fn listeners_beside<'a>(
    interface: Option<&(NodeLocal, Origin)>,
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    (lists, workers): (&mut Lists<'_>, u16),
) -> Vec<(Listener, Origin)> {
    let own = interface.map_or(&[][..], |(it, _)| &it.addresses);
    let listeners = listeners::read(layers, session, lists, (workers, own));
    if let Some(interface) = interface {
        node_local::refuse_silent(session, interface, &listeners);
    }
    listeners
}

/// Takes over what the ConfigMap of kube-dns says; returns what of it cannot be.
fn follow_config_map(
    config: &mut Config,
    (kube_dns, origin): (KubeDns, Origin),
) -> impl Iterator<Item = Warning> + use<> {
    let errors = config.follow_config_map(kube_dns);
    let warning = move |error| Warning { origin: origin.clone(), advice: Advice::ConfigMap(error) };
    errors.into_iter().map(warning)
}

/// Reads a section that stands in a file at most once.
fn section<'a, K: Keys>(layers: &Layers<'a>, session: &mut Session<'a>) -> Option<K> {
    K::read(&mut open::<K>(layers, session))
}

/// Begins to read a section that stands in a file at most once.
fn open<'s, 'a, K: Keys>(layers: &Layers<'a>, session: &'s mut Session<'a>) -> Reader<'s, 'a> {
    let (table, origin) = layers.section(&K::SECTION);
    Reader::new(session, &K::SECTION, table, layers.given(&K::SECTION), origin)
}

/// Returns what a sound configuration still leaves to think about.
fn warnings(
    listeners: &[(Listener, Origin)],
    no_zones: bool,
    rate_limit: &RateLimit,
) -> Vec<Warning> {
    let unlimited = |(listener, origin): &(Listener, Origin)| {
        let open = listener.access.as_ref().is_none_or(|list| list.otherwise == Action::Allow);
        let limited = rate_limit.responses_per_second.is_some();
        (open && !limited && listener.udp && is_public(listener.address.ip())).then(|| Warning {
            origin: origin.clone(),
            advice: Advice::Unlimited(listener.address),
        })
    };
    let of_all = |advice| Warning { origin: Origin::Default, advice };
    let no_listeners = listeners.is_empty().then(|| of_all(Advice::NoListeners));
    let no_zones = no_zones.then(|| of_all(Advice::NoZones));
    listeners.iter().filter_map(unlimited).chain(no_listeners).chain(no_zones).collect()
}

/// Whether strangers may reach an address: it is a wildcard, or of none of the private kinds
/// (rfc1918, rfc3927, rfc4193, rfc4291#2.5.6).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_private() || v4.is_link_local()),
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local()),
    }
}
