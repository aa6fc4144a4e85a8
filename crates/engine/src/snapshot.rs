//! What the workers answer from: zones and settings, immutable and swapped whole.

use crate::access::{AccessList, Network};
use crate::code::Handlers;
use crate::gate::cookie::Secrets;
use crate::gate::rate::RateSettings;
use crate::labels::LabelTable;
use crate::message::Batch;
use crate::notify::NotifyQueue;
use crate::option_codes::OptionCodes;
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
    /// plan. Views of one snapshot have numbers of their own.
    pub generation: u64,
    /// A number that follows from the listeners of a view, so that it has the same one after a
    /// change; 0 of a snapshot that is no view.
    pub view: u32,
    /// What is answered at each listener, where zones, rules or templates are at some listeners
    /// only; this snapshot has all of them then.
    pub views: Option<Box<Views>>,
}

/// What is answered at each listener.
pub struct Views {
    /// The place in `snapshots` of the view of each listener, by the listener's place in the
    /// configuration; [`Views::WHOLE`] of a listener at which all is there.
    pub of_listener: Box<[u16]>,
    /// The views, of which no two are alike. None has views itself.
    pub snapshots: Box<[Snapshot]>,
    /// The place of the view of listeners that are closed, which has no zones; none where all
    /// listeners are answered on.
    pub of_closed: Option<u16>,
}

impl Views {
    /// The place of a view in which all is there, so that the snapshot of all zones stands for it.
    pub const WHOLE: u16 = u16::MAX;

    /// The view of a listener, by its place in the configuration; none for a question of the server
    /// itself, and where all is there. A listener that the configuration lacks, or whose view is
    /// missing, would have the first view, never all zones.
    fn at(&self, listener: u16) -> Option<&Snapshot> {
        if listener == u16::MAX {
            return None;
        }
        let place = self.of_listener.get(usize::from(listener)).copied().unwrap_or(0);
        match self.snapshots.get(usize::from(place)) {
            None if place != Self::WHOLE => self.snapshots.first(),
            found => found,
        }
    }
}

impl Snapshot {
    /// A snapshot of zones alone, of generation 1: without code, pools and views, with the settings
    /// of a server without configuration.
    #[must_use]
    pub fn of(zones: ZoneTable) -> Self {
        let (handlers, steering, settings) = (None, None, Arc::default());
        Self { zones, handlers, steering, settings, generation: 1, view: 0, views: None }
    }

    /// Whether an alias may lead to what zone data alone do not tell: to upstreams, or to code.
    #[inline]
    pub(crate) fn leads_on(&self) -> bool {
        self.zones.has_forwards() | self.handlers.is_some()
    }

    /// What queries to a listener are answered from, by the listener's place in the configuration:
    /// its view, or this snapshot where there are no views. Questions of the server itself come to
    /// no listener and have all zones.
    #[inline]
    #[must_use]
    pub fn at(&self, listener: u16) -> &Self {
        match &self.views {
            None => self,
            Some(views) => views.at(listener).unwrap_or(self),
        }
    }

    /// What the messages of a batch are answered from.
    #[inline]
    pub(crate) fn of_batch(&self, batch: &mut impl Batch) -> &Self {
        match &self.views {
            Some(views) if !batch.is_empty() => {
                views.at(batch.get(0).peer.listener).unwrap_or(self)
            }
            _ => self,
        }
    }

    /// The snapshots that queries are answered from, each with one of its listeners; without that
    /// of closed listeners.
    pub fn with_listeners(&self) -> impl Iterator<Item = (u16, &Self)> {
        let views = self.views.iter().flat_map(|views| {
            let open = views.snapshots.iter().zip(0_u16..);
            let open = open.filter(|(_, place)| views.of_closed != Some(*place));
            open.filter_map(|(snapshot, place)| {
                let listener = views.of_listener.iter().position(|it| *it == place)?;
                Some((u16::try_from(listener).ok()?, snapshot))
            })
        });
        let listener_of_whole = match &self.views {
            None => Some(0),
            // Closed listeners alone have a view. All may be closed.
            Some(views) if views.of_closed == Some(0) => {
                let open = views.of_listener.iter().position(|it| *it == Views::WHOLE);
                Some(open.and_then(|it| u16::try_from(it).ok()).unwrap_or(u16::MAX))
            }
            Some(_) => None,
        };
        listener_of_whole.map(|listener| (listener, self)).into_iter().chain(views)
    }
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
    /// The codes of options that are replaced in queries to upstreams where the client's query has
    /// one.
    pub option_codes: OptionCodes,
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
            option_codes: OptionCodes::default(),
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
