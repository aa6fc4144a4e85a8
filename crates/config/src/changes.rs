//! What differs between the running configuration and the next, and what a reload takes over.

use crate::keys::{
    AdminKeys, Answers, CacheKeys, CatalogKeys, Edns, Forwarding, GeoKeys, Identity, KubeDnsKeys,
    ListenKeys, Log, Metrics, NodeLocalKeys, OVERRIDE, PoolKeys, QueryLog, RateLimit, RewriteKeys,
    SpecialNames, Tcp, TemplateKeys, Top, TransfersKeys, TsigKeys, ZoneKeys,
};
use crate::section::{Keys, Section};
use crate::{Admin, Config, Listener};
use std::mem;
use std::time::Duration;

/// The part of a [`Config`] that a section of the file makes.
struct Part {
    /// The section, which says when its changes take effect.
    section: &'static Section,
    /// Whether two configurations have alike what waits for a restart; `None` where nothing does.
    is_same_start: Option<fn(&Config, &Config) -> bool>,
    /// Takes over what a reload can change of the part; `None` where all of it waits for a restart.
    take_over: Option<fn(&mut Config, &mut Config)>,
}

/// A part that is a field of [`Config`] and takes effect at a reload.
macro_rules! reloaded {
    ($section:expr, $field:ident) => {
        Part {
            section: $section,
            is_same_start: None,
            take_over: Some(|config, next| mem::swap(&mut config.$field, &mut next.$field)),
        }
    };
}

/// A part that is a field of [`Config`] and waits for a restart.
macro_rules! restarted {
    ($section:expr, $field:ident) => {
        Part {
            section: $section,
            is_same_start: Some(|config, next| config.$field == next.$field),
            take_over: None,
        }
    };
}

/// The parts of all sections but nested ones and `[access]`, which are parts of zones, pools and
/// listeners. A test compares it with the list of sections, so that no section can be
/// forgotten.
const PARTS: &[Part] = &[
    Part {
        section: &Top::SECTION,
        is_same_start: Some(|config, next| top(config) == top(next)),
        take_over: Some(|config, next| {
            config.watch = next.watch;
            config.watch_interval = next.watch_interval;
        }),
    },
    restarted!(&NodeLocalKeys::SECTION, node_local),
    Part {
        section: &ListenKeys::SECTION,
        is_same_start: Some(|config, next| {
            kept(config, next).all(|(former, it)| former.is_alike(it))
        }),
        take_over: Some(take_over_listeners),
    },
    reloaded!(&ZoneKeys::SECTION, zones),
    reloaded!(&CatalogKeys::SECTION, catalogs),
    reloaded!(&GeoKeys::SECTION, geography),
    reloaded!(&PoolKeys::SECTION, pools),
    reloaded!(&KubeDnsKeys::SECTION, kube_dns),
    reloaded!(&Forwarding::SECTION, forwarding),
    reloaded!(&SpecialNames::SECTION, special_names),
    reloaded!(&OVERRIDE, overrides),
    reloaded!(&RewriteKeys::SECTION, rewrites),
    reloaded!(&TemplateKeys::SECTION, templates),
    reloaded!(&TsigKeys::SECTION, keys),
    reloaded!(&TransfersKeys::SECTION, transfers),
    reloaded!(&Tcp::SECTION, tcp),
    Part {
        section: &Answers::SECTION,
        is_same_start: None,
        take_over: Some(|config, next| {
            mem::swap(&mut config.answers, &mut next.answers);
            mem::swap(&mut config.alias_resolver, &mut next.alias_resolver);
        }),
    },
    Part {
        section: &CacheKeys::SECTION,
        is_same_start: Some(|config, next| cache_at_start(config) == cache_at_start(next)),
        take_over: Some(take_over_cache),
    },
    reloaded!(&Edns::SECTION, edns),
    reloaded!(&Identity::SECTION, identity),
    reloaded!(&RateLimit::SECTION, rate_limit),
    Part {
        section: &AdminKeys::SECTION,
        is_same_start: Some(|config, next| admin_at_start(config) == admin_at_start(next)),
        take_over: Some(take_over_admin),
    },
    reloaded!(&Metrics::SECTION, metrics),
    Part {
        section: &Log::SECTION,
        is_same_start: Some(|config, next| config.log.format == next.log.format),
        take_over: Some(|config, next| config.log.level = next.log.level),
    },
    reloaded!(&QueryLog::SECTION, query_log),
];

impl Config {
    /// Takes over what `next` says and a reload can change. The listeners of `next` have their
    /// [places](Self::place_listeners).
    pub fn take_over(&mut self, mut next: Self) {
        for take_over in PARTS.iter().filter_map(|part| part.take_over) {
            take_over(self, &mut next);
        }
    }

    /// Headers of the sections in which `next` differs, and whose changes wait for a restart; an
    /// empty one is the top of the file.
    #[must_use]
    pub fn restart_sections(&self, next: &Self) -> Vec<String> {
        let waits = |part: &&Part| part.is_same_start.is_some_and(|is_same| !is_same(self, next));
        PARTS.iter().filter(waits).map(|part| part.section.header()).collect()
    }
}

/// Returns the keys of the top that a restart changes; `root` is part of each zone, and `workers`
/// of each listener.
fn top(config: &Config) -> impl PartialEq {
    (config.user.clone(), config.state.clone(), config.flush_interval)
}

/// Returns the keys of the administrative interface that a restart changes.
fn admin_at_start(config: &Config) -> impl PartialEq {
    let (health, ready, metrics) = (Vec::new(), Vec::new(), Vec::new());
    Admin { health, ready, metrics, lameduck: Duration::ZERO, ..config.admin.clone() }
}

/// Takes over the other keys of the interface: the addresses of single pages, and the time for
/// which a server that is to stop goes on answering.
fn take_over_admin(config: &mut Config, next: &mut Config) {
    let (admin, next) = (&mut config.admin, &mut next.admin);
    mem::swap(&mut admin.health, &mut next.health);
    mem::swap(&mut admin.ready, &mut next.ready);
    mem::swap(&mut admin.metrics, &mut next.metrics);
    mem::swap(&mut admin.page_origins, &mut next.page_origins);
    admin.lameduck = next.lameduck;
}

/// Returns the keys of the cache that a restart changes.
fn cache_at_start(config: &Config) -> impl PartialEq {
    let CacheKeys { bytes, persist, persist_interval, .. } = &config.cache;
    (*bytes, persist.clone(), *persist_interval)
}

/// Takes over the other keys of the cache.
fn take_over_cache(config: &mut Config, next: &mut Config) {
    mem::swap(&mut config.cache, &mut next.cache);
    let former = &mut next.cache;
    config.cache.bytes = former.bytes;
    config.cache.persist = former.persist.take();
    config.cache.persist_interval = former.persist_interval;
}

/// Returns the listeners that go on at their places, as they are and as they are to be.
fn kept<'c>(
    config: &'c Config,
    next: &'c Config,
) -> impl Iterator<Item = (&'c Listener, &'c Listener)> {
    config.listeners.iter().zip(&next.listeners).filter(|(former, it)| former.goes_on_as(it))
}

/// Takes over listeners, which have their places already. Sockets and threads of those that go on
/// wait for a restart.
fn take_over_listeners(config: &mut Config, next: &mut Config) {
    for (former, listener) in config.listeners.iter().zip(&mut next.listeners) {
        if former.goes_on_as(listener) {
            *listener = Listener { access: listener.access.take(), ..former.clone() };
        }
    }
    mem::swap(&mut config.listeners, &mut next.listeners);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{ACCESS, SECTIONS};
    use crate::section::EffectTime;

    #[test]
    fn each_section_is_compared_and_taken_over_when_it_says_so() {
        let is_own = |section: &&&Section| !section.kind.is_nested() && section.name != ACCESS.name;
        let sections: Vec<_> = SECTIONS.iter().filter(is_own).map(|it| it.header()).collect();
        let parts: Vec<_> = PARTS.iter().map(|part| part.section.header()).collect();
        assert_eq!(parts, sections);
        for part in PARTS {
            let is_reloaded = part.section.takes == EffectTime::Reload;
            assert_eq!(part.take_over.is_some(), is_reloaded, "{}", part.section.header());
        }
    }
}
