//! From the configuration's words to the engine's settings.

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use zonda_config::{
    Access as AccessConfig, Action, Config, CookieSecret, Edns,
    HistoryLimits as HistoryLimitsConfig, Network as NetworkConfig, RemoteServer, SecondaryKeys,
    TransferClient, TransferTerms as TransferTermsConfig, UpdateGrant as UpdateGrantConfig,
    UpdateNames, Zone as ZoneConfig,
};
use zonda_engine::access::{
    Access, AccessList, Network, NotifyReceiver, TransferRule, TransferTerms,
};
use zonda_engine::gate::cookie::Secrets;
use zonda_engine::gate::rate::{RateSettings, RateTable};
use zonda_engine::grant::{GrantNames, GrantTypes, UpdateGrant};
use zonda_engine::notify::{self, Notice, NotifyTable};
use zonda_engine::{HistoryLimits, Settings, TransferSettings, TransferState};
use zonda_wire::Name;
use zonda_wire::tsig::{Key, KeyId, KeyRing};
use zonda_zone::random_octets;

/// Least places in the queue of zones that primaries say have changed.
const NOTICES_MIN: usize = 1024;

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
    /// The queue of zones that primaries say have changed, once there are zones of primaries.
    notices: Option<SyncSender<Notice>>,
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
            listener_access: config
                .listeners
                .iter()
                .map(|l| l.access.as_deref().map(access))
                .collect(),
            cookies: config.edns.cookies.then(|| self.secrets(&config.edns.cookie_secrets)),
            client_subnet: client_subnet(&config.edns),
            reasons_to: config.edns.reasons_to.iter().filter_map(network).collect(),
            rate: self.rate(config),
            rotate: config.answers.rotate,
            rewrites: config.rewrites.clone(),
            templates: config.templates.clone(),
            cross_zone: config.answers.cross_zone,
            keys: Arc::new(keys(config)),
            transfers: TransferSettings {
                at_once: config.transfers.at_once as usize,
                time_max: config.transfers.time_max,
                state: Arc::clone(&self.transfers),
            },
            notify: self.notify(config).map(Arc::new),
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

    /// The zones for which NOTIFY is taken: those of primaries.
    fn notify(&mut self, config: &Config) -> Option<NotifyTable> {
        let zones: Vec<_> = config.secondaries().filter_map(notified).collect();
        if zones.is_empty() {
            return None;
        }
        let queue = self.notices.get_or_insert_with(|| {
            let places = (2 * zones.len()).max(NOTICES_MIN);
            let (sender, receiver) = notify::queue(places);
            *self.received.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
            sender
        });
        Some(NotifyTable::new(zones, queue.clone()))
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

/// A zone of primaries, and the clients that may send NOTIFY for it.
fn notified((zone, keys): (&ZoneConfig, &Arc<SecondaryKeys>)) -> Option<(Name, Vec<TransferRule>)> {
    let primaries = keys.from.iter().map(|primary| {
        let address = primary.address.ip().to_canonical();
        let network = Network::new(address, if address.is_ipv4() { 32 } else { 128 });
        TransferRule { network, key: primary.key.as_ref().map(KeyId::of) }
    });
    let others = keys.notify_from.iter().filter_map(transfer);
    Some((zone.name.as_ref()?.to_lowercase(), primaries.chain(others).collect()))
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
        && one.secondaries().eq(other.secondaries())
}

/// An access list as the engine reads it.
pub fn access(configured: &AccessConfig) -> AccessList {
    let action = |action: Action| match action {
        Action::Allow => Access::Allow,
        Action::Refuse => Access::Refuse,
        Action::Drop => Access::Drop,
    };
    let rules = configured.rules.iter();
    AccessList {
        rules: rules
            .filter_map(|rule| Some((network(&rule.network)?, action(rule.action))))
            .collect(),
        otherwise: action(configured.otherwise),
        transfers: transfers(&configured.transfers),
        updates: configured.updates.iter().map(grant).collect(),
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

/// The terms of transfers, as the engine reads them.
fn transfers(configured: &TransferTermsConfig) -> TransferTerms {
    let key = |name: &Option<Name>| name.as_ref().map(KeyId::of);
    let receiver = |it: &RemoteServer| NotifyReceiver { address: it.address, key: key(&it.key) };
    let HistoryLimitsConfig { versions, bytes } = configured.history;
    TransferTerms {
        to: configured.to.iter().filter_map(transfer).collect(),
        notify: configured.notify.iter().map(receiver).collect(),
        history: HistoryLimits { versions, bytes },
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
fn keys(config: &Config) -> KeyRing {
    let keys = config.keys.iter();
    KeyRing::new(keys.map(|key| Key::new(&key.name, key.algorithm, key.secret.reveal())))
}

/// The resolvers that are believed when they tell the network of their client.
fn client_subnet(edns: &Edns) -> Option<AccessList> {
    let allowed = edns.client_subnet_from.iter().filter_map(network);
    let rules: Vec<_> = allowed.map(|resolvers| (resolvers, Access::Allow)).collect();
    let otherwise = if rules.is_empty() { Access::Allow } else { Access::Refuse };
    edns.client_subnet.then_some(AccessList { rules, otherwise, ..AccessList::open() })
}

/// A network as the engine reads it; the configuration has checked its prefix.
fn network(configured: &NetworkConfig) -> Option<Network> {
    Network::new(configured.address, configured.prefix)
}
