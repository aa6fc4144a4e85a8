//! From the configuration's words to the engine's settings.

use crate::log_budget::LogBudget;
use crate::views::{View, ViewList};
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use zonda_config::{
    Access as AccessConfig, Action, AliasTransfer, Config, CookieSecret, Edns,
    HistoryLimits as HistoryLimitsConfig, Listener, Network as NetworkConfig, RemoteServer,
    TransferClient, TransferTerms as TransferTermsConfig, UpdateGrant as UpdateGrantConfig,
    UpdateNames,
};
use zonda_engine::access::{
    Access, AccessList, AccessRule, Network, NotifyReceiver, TransferRule, TransferTerms,
    UpdateRelay,
};
use zonda_engine::gate::cookie::Secrets;
use zonda_engine::gate::rate::{RateSettings, RateTable};
use zonda_engine::grant::{GrantNames, GrantTypes, UpdateGrant};
use zonda_engine::labels::{LabelTable, SERVERS_MAX};
use zonda_engine::notify::{Notice, NotifyQueue};
use zonda_engine::{HistoryLimits, OptionCodes, RefusedTransfer, Settings};
use zonda_engine::{TransferRefusal, TransferSettings, TransferState};
use zonda_wire::Name;
use zonda_wire::tsig::{Key, KeyId, KeyRing};
use zonda_zone::random_octets;

/// Least places in the queue of zones that primaries say have changed.
const NOTICES_MIN: usize = 1024;
/// Least places in it where the members of catalogs are transferred, whose number changes.
const OF_MEMBERS_MIN: usize = 1 << 17;

/// Logs a transfer that a client does not get.
fn log_refusal(refused: &RefusedTransfer<'_>) {
    budget_of(refused.refusal).spend(|left_out| {
        tracing::warn!(
            zone = %refused.apex,
            peer = %refused.peer,
            key = refused.key.map_or_else(|| "none".to_owned(), ToString::to_string),
            transport = "tcp",
            asked = %refused.qtype,
            error = %refused.refusal,
            left_out,
            "a transfer was refused"
        );
    });
}

/// What bounds the lines about transfers that clients do not get for a reason: clients without
/// rights, which may be any, leave those about clients that have them.
fn budget_of(refusal: TransferRefusal) -> &'static LogBudget {
    static WITHOUT_RIGHT: LogBudget = LogBudget::new();
    static TOO_MANY: LogBudget = LogBudget::new();
    static TOO_MANY_OF_CLIENT: LogBudget = LogBudget::new();
    match refusal {
        TransferRefusal::NoRight => &WITHOUT_RIGHT,
        TransferRefusal::TooMany => &TOO_MANY,
        TransferRefusal::TooManyOfClient => &TOO_MANY_OF_CLIENT,
    }
}

/// The codes of options that queries to upstreams have if the client's query has them: no more than
/// there is room for, which the configuration was checked for.
fn option_codes(config: &Config) -> OptionCodes {
    let mut codes = OptionCodes::default();
    for option in config.forwards().flat_map(|(_, forward)| &forward.keys.options) {
        if option.is_conditional {
            codes.insert(option.code);
        }
    }
    codes
}

/// Makes the engine's settings of a configuration, and keeps from reload to reload what clients
/// hold (cookies) or what is costly to begin again (the counts of rate limiting).
#[derive(Default)]
pub struct SettingsBuilder {
    /// The secret of cookies when none is configured.
    cookie_secret: Option<[u8; 16]>,
    /// The counts of response rate limiting, and how many keys they have room for.
    rate_table: Option<(u32, Arc<RateTable>)>,
    /// The transfers that run, and what all have done.
    transfers: Arc<TransferState>,
    /// The zones that queries have been counted by, in the order of their places.
    label_zones: Vec<Name>,
    /// The servers that queries have been counted by, in the order of their places.
    label_servers: Vec<SocketAddr>,
    /// The queue of zones that primaries say have changed, once there are zones of primaries.
    notices: Option<NotifyQueue>,
    /// The end of the queue that the feed of these zones takes.
    received: Arc<Mutex<Option<Receiver<Notice>>>>,
}

impl SettingsBuilder {
    /// The settings that a configuration amounts to.
    pub fn settings(&mut self, config: &Config) -> Settings {
        let keepalive = config.tcp.keepalive.then_some(config.tcp.idle_timeout);
        Settings {
            udp_bytes_max: config.edns.buffer_size,
            nsid: config.edns.nsid.as_ref().map(|nsid| nsid.0.clone().into()),
            version: config.identity.version.as_deref().map(Into::into),
            server_id: config.identity.server_id.as_deref().map(Into::into),
            authors: config.identity.authors.iter().map(|it| it.as_str().into()).collect(),
            listener_access: config
                .listeners
                .iter()
                .map(|l| l.access.as_deref().map(access))
                .collect(),
            cookies: config.edns.cookies.then(|| self.secrets(&config.edns.cookie_secrets)),
            client_subnet: client_subnet(&config.edns),
            option_codes: option_codes(config),
            reasons_to: config.edns.reasons_to.iter().filter_map(network).collect(),
            rate: self.rate(config),
            rotate: config.answers.rotate,
            alias_refresh: config.answers.alias_refresh,
            rewrites: config.rewrites.clone(),
            templates: config.templates.clone(),
            cross_zone: config.answers.cross_zone,
            alias_resolver: None, // the zone set has it
            keys: Arc::new(keys(config)),
            transfers: TransferSettings {
                at_once: config.transfers.at_once as usize,
                at_once_per_client: config.transfers.of_client_max() as usize,
                time_max: config.transfers.time_max,
                state: Arc::clone(&self.transfers),
                note_refusal: log_refusal,
            },
            notify: self.notify(config),
            labels: config.metrics.coredns_names.then(|| Arc::new(self.labels(config))),
            // In units of 100 ms, rfc7828#3.1.
            keepalive: keepalive
                .map(|idle| u16::try_from(idle.as_millis() / 100).unwrap_or(u16::MAX)),
        }
    }

    /// The end of the queue of zones that primaries say have changed, for the first caller after
    /// there are such zones.
    pub fn notices(&self) -> Arc<Mutex<Option<Receiver<Notice>>>> {
        Arc::clone(&self.received)
    }

    /// The queue of zones that primaries say have changed, where there are zones of primaries.
    fn notify(&mut self, config: &Config) -> Option<NotifyQueue> {
        let places = notice_places(config)?;
        match &self.notices {
            Some(queue) if queue.places() == places => Some(queue.clone()),
            _ => {
                // Zones in the former queue are taken out of it before those in this one.
                let (queue, receiver) = NotifyQueue::new(places);
                *self.received.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
                self.notices = Some(queue.clone());
                Some(queue)
            }
        }
    }

    /// The servers and zones that queries are counted by.
    fn labels(&mut self, config: &Config) -> LabelTable {
        let listed = label_zones(config);
        let places = server_places(config, &mut self.label_servers);
        LabelTable::new(places, &listed, &mut self.label_zones)
            .with_servers_so_far(&self.label_servers)
    }

    /// The secrets of cookies, made up once if there are none.
    fn secrets(&mut self, configured: &[CookieSecret]) -> Secrets {
        match configured {
            [] => {
                let current = *self.cookie_secret.get_or_insert_with(random_octets);
                Secrets { current, accepted: Vec::new() }
            }
            [current, accepted @ ..] => Secrets {
                current: current.reveal(),
                accepted: accepted.iter().map(|secret| secret.reveal()).collect(),
            },
        }
    }

    /// Response rate limiting, with the counts it had before if their number is the same.
    fn rate(&mut self, config: &Config) -> Option<RateSettings> {
        let limit = &config.rate_limit;
        let per_second = limit.responses_per_second?;
        let table = match &self.rate_table {
            Some((size, table)) if *size == limit.table_size => Arc::clone(table),
            _ => {
                let table = RateTable::new(limit.table_size as usize);
                self.rate_table = Some((limit.table_size, Arc::clone(&table)));
                table
            }
        };
        let window_secs = u32::try_from(limit.window.as_secs()).unwrap_or(u32::MAX);
        let prefixes = (limit.prefix_v4, limit.prefix_v6);
        let exempt = limit.exempt.iter().filter_map(network).collect();
        Some(RateSettings::new(
            per_second,
            window_secs,
            u32::from(limit.slip),
            prefixes,
            exempt,
            table,
        ))
    }
}

/// The settings of the engine, and those of each view.
pub struct ServedSettings {
    /// The settings with all rules and templates.
    pub whole: Arc<Settings>,
    /// The settings of each view.
    views: Vec<(Arc<View>, Arc<Settings>)>,
}

impl ServedSettings {
    /// The settings with the rules and templates that each view has.
    pub fn new(whole: Settings, config: &Config, views: &ViewList) -> Self {
        let whole = Arc::new(whole);
        let rules = config.rewrites.as_deref();
        let templates = config.templates.as_deref();
        let is_restricted = rules.is_some_and(|rules| rules.listeners().next().is_some())
            || templates.is_some_and(|templates| templates.listeners().next().is_some());
        let of_view = |view: &Arc<View>| {
            if !is_restricted && !view.listeners.is_closed() {
                return (Arc::clone(view), Arc::clone(&whole));
            }
            let has = |listeners: &[SocketAddr]| view.listeners.has(Some(listeners));
            // Those without a list are at all listeners, but not at closed ones.
            let (rules, templates) = match view.listeners.is_closed() {
                true => (None, None),
                false => (rules, templates),
            };
            let rewrites = rules.and_then(|rules| rules.of_listeners(has)).map(Arc::new);
            let templates = templates.and_then(|it| it.of_listeners(has)).map(Arc::new);
            let settings = Settings { rewrites, templates, ..Settings::clone(&whole) };
            (Arc::clone(view), Arc::new(settings))
        };
        Self { views: views.views.iter().map(of_view).collect(), whole: Arc::clone(&whole) }
    }

    /// The settings of a view. After a panic there may be none yet: those of the server stand in,
    /// without its rules and templates, which may be those of other listeners.
    pub fn of_view(&self, view: &View) -> Arc<Settings> {
        let found = self.views.iter().find(|(known, _)| **known == *view);
        found.map_or_else(
            || {
                let (rewrites, templates) = (None, None);
                Arc::new(Settings { rewrites, templates, ..Settings::clone(&self.whole) })
            },
            |(_, settings)| Arc::clone(settings),
        )
    }
}

/// The zones that queries are counted by under CoreDNS's names, in lower case.
pub fn label_zones(config: &Config) -> Vec<Name> {
    match &config.metrics.coredns_zones[..] {
        [] => vec![Name::root()],
        zones => zones.iter().map(Name::to_lowercase).collect(),
    }
}

/// The places of the servers that CoreDNS would have, by listener: the addresses that stand for all
/// of a family, at one port, are one server. `known` has the servers that had places before, and
/// then all that have; a server keeps its place, and no other one gets it.
fn server_places(config: &Config, known: &mut Vec<SocketAddr>) -> Vec<u8> {
    let place = |(listener, number): (&Listener, u16)| {
        let mut server = listener.address;
        if server.port() == 0 {
            // Each of them is a server: the port of the key is the place of the listener.
            server = SocketAddr::from(([0; 8], number));
        } else if server.ip().is_unspecified() {
            server = SocketAddr::from(([0; 4], server.port()));
        }
        let found = known.iter().position(|it| *it == server);
        let place = found.unwrap_or_else(|| {
            if known.len() <= SERVERS_MAX {
                known.push(server);
            }
            known.len() - 1
        });
        place.min(SERVERS_MAX - 1) as u8
    };
    config.listeners.iter().zip(0_u16..).map(place).collect()
}

/// Whether two configurations amount to the same settings: [`SettingsBuilder::settings`] reads
/// nothing else of them.
pub fn are_same(one: &Config, other: &Config) -> bool {
    one.listeners == other.listeners
        && one.tcp == other.tcp
        && one.edns == other.edns
        && one.identity == other.identity
        && one.answers == other.answers
        && one.rewrites == other.rewrites
        && one.templates == other.templates
        && one.rate_limit == other.rate_limit
        && one.keys == other.keys
        && one.transfers == other.transfers
        && one.metrics == other.metrics
        && notice_places(one) == notice_places(other)
}

/// The places of the queue of zones that primaries say have changed: a power of two, so that few
/// reloads change it. None where no zones are transferred from primaries, and none can come.
fn notice_places(config: &Config) -> Option<usize> {
    let least = match (config.secondaries().next(), &config.catalogs[..]) {
        (None, []) => return None,
        (Some(_), []) => NOTICES_MIN,
        (_, [_, ..]) => {
            let most = config.catalogs.iter().map(|catalog| catalog.members_max).max();
            usize::try_from(most.unwrap_or_default()).unwrap_or(usize::MAX).min(OF_MEMBERS_MIN)
        }
    };
    let zones = config.secondaries().count().saturating_mul(2);
    Some(zones.max(least).max(NOTICES_MIN).next_power_of_two())
}

/// An access list as the engine reads it.
pub fn access(configured: &AccessConfig) -> AccessList {
    let action = |action: Action| match action {
        Action::Allow => Access::Allow,
        Action::Refuse => Access::Refuse,
        Action::Filter => Access::Filter,
        Action::Drop => Access::Drop,
    };
    let rules = configured.rules.iter();
    AccessList {
        rules: rules
            .filter_map(|rule| {
                let key = rule.key.as_ref().map(KeyId::of);
                Some(AccessRule {
                    network: network(&rule.network)?,
                    key,
                    types: (!rule.types.is_empty()).then(|| rule.types.as_slice().into()),
                    access: action(rule.action),
                })
            })
            .collect(),
        otherwise: action(configured.otherwise),
        transfers: transfers(&configured.transfers),
        updates: configured.updates.iter().map(grant).collect(),
        listeners: configured.listeners.clone(),
    }
}

/// A right to change a zone, as the engine reads it.
fn grant(configured: &UpdateGrantConfig) -> UpdateGrant {
    let names = |names: &UpdateNames| match names {
        UpdateNames::Zone => GrantNames::Zone,
        UpdateNames::Own => GrantNames::Own,
        UpdateNames::OwnAndBelow => GrantNames::OwnAndBelow,
        UpdateNames::BelowOwn => GrantNames::BelowOwn,
        UpdateNames::Name(name) => GrantNames::Name(name.clone()),
        UpdateNames::Subdomain(name) => GrantNames::Subdomain(name.clone()),
        UpdateNames::Below(name) => GrantNames::Below(name.clone()),
    };
    UpdateGrant {
        from: configured.from.iter().filter_map(transfer).collect(),
        names: configured.names.iter().map(names).collect(),
        is_acme: configured.is_acme,
        types: match &configured.types[..] {
            [] => GrantTypes::Any,
            types => GrantTypes::Listed(types.to_vec()),
        },
        records_max: configured.records_max,
        ttl_min: configured.ttl_min,
        ttl_max: configured.ttl_max,
    }
}

/// The terms under which updates are forwarded, as the engine reads them.
fn relay(configured: &TransferTermsConfig) -> Option<Box<UpdateRelay>> {
    let is_any = !configured.update_from.is_empty();
    is_any.then(|| {
        let from = configured.update_from.iter().filter_map(transfer).collect();
        Box::new(UpdateRelay { from, to: configured.primaries.clone() })
    })
}

/// The terms of transfers, as the engine reads them.
fn transfers(configured: &TransferTermsConfig) -> TransferTerms {
    let key = |name: &Option<Name>| name.as_ref().map(KeyId::of);
    let receiver = |it: &RemoteServer| NotifyReceiver { address: it.address, key: key(&it.key) };
    let HistoryLimitsConfig { versions, bytes } = configured.history;
    TransferTerms {
        to: configured.to.iter().filter_map(transfer).collect(),
        notify: configured.notify.iter().map(receiver).collect(),
        notify_from: configured.notify_from.iter().filter_map(transfer).collect(),
        relay: relay(configured),
        history: HistoryLimits { versions, bytes },
        expands_aliases: configured.aliases == AliasTransfer::Expanded,
        catalog: configured
            .catalog
            .as_ref()
            .map(|place| (place.catalog.clone(), place.group.as_deref().map(Into::into))),
    }
}

/// A rule for clients that may transfer or change a zone, as the engine reads it.
fn transfer(client: &TransferClient) -> Option<TransferRule> {
    let network = match &client.network {
        Some(configured) => Some(network(configured)?), // never a rule without its network
        None => None,
    };
    Some(TransferRule { network, key: client.key.as_ref().map(KeyId::of) })
}

/// The keys of signed messages.
#[cfg(not(feature = "whole"))]
fn keys(_config: &Config) -> KeyRing {
    KeyRing::default() // only a file has keys
}

/// The keys of signed messages.
#[cfg(feature = "whole")]
fn keys(config: &Config) -> KeyRing {
    let keys = config.keys.iter();
    KeyRing::new(keys.map(|key| Key::new(&key.name, key.algorithm, key.secret.reveal())))
}

/// The resolvers that are believed when they tell the network of their client.
fn client_subnet(edns: &Edns) -> Option<AccessList> {
    let allowed = edns.client_subnet_from.iter().filter_map(network);
    let rule = |network| AccessRule { network, key: None, types: None, access: Access::Allow };
    let rules: Vec<_> = allowed.map(rule).collect();
    let otherwise = if rules.is_empty() { Access::Allow } else { Access::Refuse };
    edns.client_subnet.then_some(AccessList { rules, otherwise, ..AccessList::open() })
}

/// A network as the engine reads it; the configuration has checked its prefix.
fn network(configured: &NetworkConfig) -> Option<Network> {
    Network::new(configured.address, configured.prefix)
}

#[cfg(all(test, feature = "whole"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;
    use zonda_config::Flags;

    /// A configuration with so many zones of a primary.
    fn config(zones: usize) -> Config {
        let zone = |number| {
            format!(
                "[[zone]]\nname = \"z{number}.test\"\n[zone.secondary]\nfrom = [\"192.0.2.1\"]\n"
            )
        };
        let text = format!("version = 1\n{}", (0..zones).map(zone).collect::<String>());
        let text = (Path::new("/zonda.toml"), text);
        Config::load_text(text, [], &Flags::default()).unwrap().config
    }

    #[test]
    fn a_flood_of_clients_without_rights_leaves_the_lines_about_those_that_get_no_place() {
        let is_written = |refusal| {
            let mut is_written = false;
            budget_of(refusal).spend(|_| is_written = true);
            is_written
        };
        let written = (0..100).filter(|_| is_written(TransferRefusal::NoRight)).count();
        assert!(written < 100, "they are bounded");
        assert!(is_written(TransferRefusal::TooMany));
        assert!(is_written(TransferRefusal::TooManyOfClient));
    }

    #[test]
    fn the_queue_of_notify_has_the_size_that_the_zones_of_a_reload_need() {
        let mut builder = SettingsBuilder::default();
        let [few, more, many] = [2, 3, 2000].map(config);
        let places = |builder: &mut SettingsBuilder, config| {
            builder.settings(config).notify.unwrap().places()
        };
        assert_eq!(places(&mut builder, &few), 1024);
        assert!(builder.notices().lock().unwrap().take().is_some(), "the feed takes its end");
        assert_eq!(places(&mut builder, &more), 1024);
        assert!(builder.notices().lock().unwrap().is_none(), "the queue is as it was");
        assert_eq!(places(&mut builder, &many), 4096);
        assert!(builder.notices().lock().unwrap().take().is_some(), "there is another one");
        assert!(are_same(&few, &more) && !are_same(&few, &many), "so that settings are made anew");
        assert!(builder.settings(&config(0)).notify.is_none());
    }

    #[test]
    fn closed_listeners_have_no_rules_and_templates_even_of_all_listeners() {
        let text = "version = 1\n[[listen]]\naddress = \"127.0.0.1:1\"\n\
                    [[rewrite]]\nexact = \"a\"\nto = \"b\"\n\
                    [[template]]\nzones = [\"made.test\"]\n\
                    answer = [\"{{ .Name }} 60 IN A 192.0.2.5\"]\n";
        let text = (Path::new("/zonda.toml"), text.to_owned());
        let mut config = Config::load_text(text, [], &Flags::default()).unwrap().config;
        config.listeners[0].is_closed = true;
        let list = ViewList::new(&config);
        let settings = SettingsBuilder::default().settings(&config);
        let served = ServedSettings::new(settings, &config, &list);
        assert!(served.whole.rewrites.is_some() && served.whole.templates.is_some());
        let of_closed = served.of_view(&list.views[0]);
        assert!(of_closed.rewrites.is_none() && of_closed.templates.is_none());
    }

    #[test]
    fn a_server_keeps_the_place_of_its_counters_and_gives_it_to_no_other_one() {
        let with = |addresses: &[&str]| {
            let listen: String =
                addresses.iter().map(|it| format!("[[listen]]\naddress = \"{it}\"\n")).collect();
            let text = (Path::new("/zonda.toml"), format!("version = 1\n{listen}"));
            Config::load_text(text, [], &Flags::default()).unwrap().config
        };
        let mut known = Vec::new();
        let first = with(&["0.0.0.0:53", "127.0.0.1:0", "[::]:53", "127.0.0.1:0", "127.0.0.1:54"]);
        assert_eq!(server_places(&first, &mut known), [0, 1, 0, 2, 3]);
        let second = with(&["127.0.0.1:55", "[::]:53", "127.0.0.1:54", "127.0.0.1:0"]);
        assert_eq!(server_places(&second, &mut known), [4, 0, 3, 2]);
        let many: Vec<_> = (1..20).map(|port| format!("127.0.0.1:{port}")).collect();
        let many = with(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(server_places(&many, &mut known)[..5], [5, 6, 7, 7, 7]);
        assert_eq!(known.len(), SERVERS_MAX + 1);
    }
}
