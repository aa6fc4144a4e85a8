//! What differs between the running configuration and the next.

use crate::keys::{
    AdminKeys, Answers, CacheKeys, Edns, Identity, ListenKeys, Log, Metrics, QueryLog, RateLimit,
    Tcp, Top,
};
use crate::section::{EffectTime, Keys, Section};
use crate::{Config, Listener, Zone};
use std::collections::HashSet;

/// What a reload has to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes<'a> {
    /// Sources to load. One whose access or root changed is both here and in `removed`.
    pub added: Vec<&'a Zone>,
    /// Sources that are gone.
    pub removed: Vec<&'a Zone>,
    /// Headers of the sections whose changes wait for a restart; empty: the top of the file.
    pub restart: Vec<String>,
}

impl Config {
    /// Takes over what `next` says and a reload can change. A listener that `next` lacks keeps its
    /// access list, for it is answered on until the restart.
    pub fn take_over(&mut self, next: Self) {
        for listener in &mut self.listeners {
            if let Some(same) = next.listeners.iter().find(|it| it.address == listener.address) {
                listener.access.clone_from(&same.access);
            }
        }
        self.zones = next.zones;
        self.forwards = next.forwards;
        self.forwarding = next.forwarding;
        self.special_names = next.special_names;
        self.overrides = next.overrides;
        self.answers = next.answers;
        self.edns = next.edns;
        self.identity = next.identity;
        self.rate_limit = next.rate_limit;
        self.metrics = next.metrics;
    }

    /// What `next` does differently. Costs time in proportion to the number of zones.
    #[must_use]
    pub fn changes<'a>(&'a self, next: &'a Self) -> Changes<'a> {
        let before: HashSet<&Zone> = self.zones.iter().collect();
        let after: HashSet<&Zone> = next.zones.iter().collect();
        Changes {
            added: next.zones.iter().filter(|zone| !before.contains(zone)).collect(),
            removed: self.zones.iter().filter(|zone| !after.contains(zone)).collect(),
            restart: self.restart(next),
        }
    }

    /// Headers of the sections in which `next` differs, and which say that this takes a restart.
    fn restart(&self, next: &Self) -> Vec<String> {
        let watching = |config: &Self| (config.user.clone(), config.watch, config.watch_interval);
        let sections = [
            (Top::SECTION, watching(self) == watching(next)),
            (ListenKeys::SECTION, sockets(self).eq(sockets(next))),
            (Tcp::SECTION, self.tcp == next.tcp),
            (Answers::SECTION, self.answers == next.answers),
            (CacheKeys::SECTION, self.cache == next.cache),
            (Edns::SECTION, self.edns == next.edns),
            (Identity::SECTION, self.identity == next.identity),
            (RateLimit::SECTION, self.rate_limit == next.rate_limit),
            (AdminKeys::SECTION, self.admin == next.admin),
            (Metrics::SECTION, self.metrics == next.metrics),
            (Log::SECTION, self.log == next.log),
            (QueryLog::SECTION, self.query_log == next.query_log),
        ];
        let waits =
            |(section, same): &(Section, bool)| !same && section.takes == EffectTime::Restart;
        sections.iter().filter(|section| waits(section)).map(|(it, _)| it.header()).collect()
    }
}

/// The listeners without their access lists, which take effect at once.
fn sockets(config: &Config) -> impl Iterator<Item = Listener> {
    config.listeners.iter().map(|listener| Listener { access: None, ..listener.clone() })
}
