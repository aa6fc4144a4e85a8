//! Zones that other servers answer for: from the configuration to what workers and forwarder
//! threads see of them.

use crate::numbers::{Number, Numbers};
use crate::settings::access;
use arc_swap::ArcSwap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use zonda_cache::Cache;
use zonda_config::{Config, ForwardZone};
use zonda_engine::zones::{Forward, Source, ZoneEntry};
use zonda_transport::forward::{Group, Groups};

/// All such zones.
pub struct Forwards {
    known: Vec<KnownForward>,
    /// How long kept answers may be given after they have expired.
    stale_max: Duration,
    /// Answers that were kept, of all of them.
    cache: Arc<Cache>,
    /// What forwarder threads see.
    groups: Arc<ArcSwap<Groups>>,
    /// The number of the next one.
    next_number: u32,
}

/// One of them.
pub struct KnownForward {
    /// As it is configured.
    config: ForwardZone,
    /// The zone as a snapshot holds it.
    pub entry: Arc<ZoneEntry>,
    /// Under which its queries are counted.
    pub number: Number,
    /// Who is asked, and under which number.
    group: (u32, Arc<Group>),
}

impl Forwards {
    /// None yet.
    pub fn new(config: &Config) -> Self {
        Self {
            known: Vec::new(),
            stale_max: config.cache.stale,
            cache: Arc::new(Cache::new(config.cache.bytes.0 as usize)),
            groups: Arc::default(),
            next_number: 0,
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
        self.known.iter()
    }

    /// Puts into force what is configured; whether anything differs from before. A zone that is
    /// configured as before keeps its number, and so what is kept of it.
    pub fn update(&mut self, configured: &[ForwardZone], numbers: &mut Numbers) -> bool {
        if self.known.iter().map(|known| &known.config).eq(configured) {
            return false;
        }
        let mut former = std::mem::take(&mut self.known);
        for config in configured {
            let same = former.iter().position(|known| known.config == *config);
            let known = match same {
                Some(place) => former.swap_remove(place),
                None => self.make(config.clone(), numbers.take()),
            };
            self.known.push(known);
        }
        // Queries that were deferred under a former number are still on their way.
        let groups = self.known.iter().chain(&former).map(|known| known.group.clone());
        self.groups.store(Arc::new(groups.collect()));
        former.into_iter().for_each(|known| numbers.give_back(known.number));
        true
    }

    /// Makes a zone of its configuration.
    fn make(&mut self, config: ForwardZone, number: Number) -> KnownForward {
        let group = Group {
            upstreams: config.forward.to.iter().filter_map(address).collect(),
            timeout: config.forward.timeout,
            stale_after: config.forward.stale_after,
            stale_max: self.stale_max,
            cache: Arc::clone(&self.cache),
        };
        let forward = Forward { number: self.next_number, cache: Arc::clone(&self.cache) };
        self.next_number += 1;
        let group = (forward.number, Arc::new(group));
        let entry = Arc::new(ZoneEntry {
            apex: config.name.clone(),
            source: Source::Forward(Arc::new(forward)),
            access: Some(Arc::new(access(&config.access))),
            number: number.place,
        });
        KnownForward { config, entry, number, group }
    }
}

/// Where an upstream is; the configuration has none that are given by name.
fn address(upstream: &zonda_config::Upstream) -> Option<SocketAddr> {
    match upstream.host {
        zonda_config::Host::Address(address) => Some(SocketAddr::new(address, upstream.port)),
        zonda_config::Host::Name(_) => None,
    }
}
