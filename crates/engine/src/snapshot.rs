//! What the workers answer from: zones and settings, immutable and swapped whole.

use crate::access::{AccessList, Network};
use crate::code::Handlers;
use crate::gate::cookie::Secrets;
use crate::gate::rate::RateSettings;
use crate::labels::LabelTable;
use crate::notify::NotifyQueue;
use crate::steering::Steering;
use crate::transfer::TransferSettings;
use crate::zones::{Forward, ZoneTable};
use std::sync::Arc;
use zonda_rewrite::{RewriteRules, Templates};
use zonda_wire::tsig::KeyRing;

/// Everything that an answer depends on besides the query, the client and the time.
pub struct Snapshot {
    /// The zones of the server.
    pub zones: ZoneTable,
    /// The user's code, if there is any.
    pub handlers: Option<Arc<Handlers>>,
    /// The names that pools answer for, if there are any.
    pub steering: Option<Arc<Steering>>,
    /// The settings of the engine.
    pub settings: Arc<Settings>,
    /// A number that rises when names move between zones, other names are steered, or code or
    /// settings change. A zone whose data change has another
    /// [version](crate::zones::ZoneEntry::version) instead, and a pool whose members change another
    /// plan.
    pub generation: u64,
}

/// Settings that the stages read.
#[derive(Clone)]
pub struct Settings {
    /// The largest UDP reply, octets, at least 512; also the size that replies advertise
    /// (rfc6891#6.2.3).
    pub udp_bytes_max: u16,
    /// The name server identifier, if it may be told (rfc5001).
    pub nsid: Option<Box<[u8]>>,
    /// The answer to `version.bind` and `version.server`, if it may be told.
    pub version: Option<Box<str>>,
    /// The answer to `hostname.bind` and `id.server`, if it may be told (rfc4892).
    pub server_id: Option<Box<str>>,
    /// The answers to `authors.bind`; it is refused if there are none.
    pub authors: Box<[Box<str>]>,
    /// The clients that may ask, by listener; all of them where there is no list.
    pub listener_access: Vec<Option<AccessList>>,
    /// The secrets of server cookies; without them cookies are ignored.
    pub cookies: Option<Secrets>,
    /// The resolvers that are believed when they tell the network of their client (rfc7871), by a
    /// list that allows them; without a list none is.
    pub client_subnet: Option<AccessList>,
    /// The clients that are told why an answer is what it is, if they ask for it.
    pub reasons_to: Box<[Network]>,
    /// Response rate limiting; off without it.
    pub rate: Option<RateSettings>,
    /// Whether sets of addresses begin with another record each time.
    pub rotate: bool,
    /// Whether the targets of ALIAS records are looked up although no client asks; the answer path
    /// does not read it.
    pub alias_refresh: bool,
    /// Whether a CNAME or DNAME is followed into another zone of this server.
    pub cross_zone: bool,
    /// The upstreams that are asked for targets of ALIAS records; without it, those of the zone
    /// that holds the target.
    pub alias_resolver: Option<Arc<Forward>>,
    /// The rules that change questions and replies, if there are any.
    pub rewrites: Option<Arc<RewriteRules>>,
    /// The templates that records are made from, if there are any.
    pub templates: Option<Arc<Templates>>,
    /// The keys that messages may be signed with (rfc8945).
    pub keys: Arc<KeyRing>,
    /// The bounds of transfers, and what they have done.
    pub transfers: TransferSettings,
    /// The queue of zones that primaries say have changed; none where there are no such zones.
    pub notify: Option<NotifyQueue>,
    /// The servers and zones that queries are counted by, if they are counted by labels.
    pub labels: Option<Arc<LabelTable>>,
    /// How long an idle TCP connection is kept, in units of 100 ms, if clients are told (rfc7828).
    pub keepalive: Option<u16>,
}

impl Default for Settings {
    /// The settings of a server without configuration.
    fn default() -> Self {
        Self {
            udp_bytes_max: 1232,
            nsid: None,
            version: None,
            server_id: None,
            authors: Box::default(),
            listener_access: Vec::new(),
            cookies: None,
            client_subnet: Some(AccessList::open()),
            reasons_to: Box::default(),
            rate: None,
            rotate: false,
            alias_refresh: true,
            cross_zone: false,
            alias_resolver: None,
            rewrites: None,
            templates: None,
            keys: Arc::default(),
            transfers: TransferSettings::default(),
            notify: None,
            labels: None,
            keepalive: None,
        }
    }
}
