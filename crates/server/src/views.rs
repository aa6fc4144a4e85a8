//! Views: which zones, rules and templates are there at which listeners.
//!
//! Listeners at which the same is there share a view. Most servers have none: all is there at every
//! listener then, and queries are answered from one table of zones.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use zonda_config::{Config, Zone};

/// Listeners at which the same is there.
#[derive(Debug, PartialEq, Eq)]
pub struct ListenerSet {
    /// The addresses of the listeners, at least one, in the order of the configuration.
    addresses: Vec<SocketAddr>,
    /// The place of the first of them in the configuration.
    pub first: u16,
    /// The addresses as logs and reports have them.
    pub label: Box<str>,
}

impl ListenerSet {
    /// The listeners with these addresses, of which the first has this place in the configuration.
    fn new(addresses: Vec<SocketAddr>, first: u16) -> Self {
        let texts: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        Self { addresses, first, label: texts.join(", ").into() }
    }

    /// Whether a zone, rule or template is at the listeners that is at these, if it is not at all
    /// listeners.
    pub fn has(&self, listeners: Option<&[SocketAddr]>) -> bool {
        // What is at one listener of the set is at all of them.
        let first = self.addresses.first();
        listeners.is_none_or(|listeners| first.is_some_and(|first| listeners.contains(first)))
    }

    /// A number that follows from the addresses, so that the set keeps it in a reload; not 0.
    pub fn number(&self) -> u32 {
        let mut hasher = DefaultHasher::new();
        self.addresses.hash(&mut hasher);
        (hasher.finish() as u32).max(1)
    }
}

/// Listeners at which the same zones, rules and templates are there.
#[derive(Debug, PartialEq, Eq)]
pub struct View {
    /// The listeners at which these zones, rules and templates are there.
    pub listeners: ListenerSet,
    /// The listeners at which the same zones are there, among which these are: answers of upstreams
    /// are the same there. None where the zones are the same at all listeners.
    pub zones: Option<Arc<ListenerSet>>,
}

/// The views of a server; none where all is there at every listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewList {
    /// The views, in the order of their first listeners.
    pub views: Vec<Arc<View>>,
    /// The place of the view of each listener, by the listener's place in the configuration.
    pub of_listener: Vec<u16>,
}

impl ViewList {
    /// The views of the listeners of a configuration.
    pub fn new(config: &Config) -> Self {
        let (of_zones, of_rules) = (zone_lists(config), rule_lists(config));
        let (zone_sets, of_listener) = split(config, &of_zones);
        let zones_of = |listener: u16| {
            let place = of_listener.get(usize::from(listener))?;
            (zone_sets.len() > 1).then(|| zone_sets.get(usize::from(*place)).cloned())?
        };
        let all: Vec<_> = of_zones.iter().chain(&of_rules).copied().collect();
        let (sets, of_listener) = split(config, &all);
        // A list without any of the listeners, which run until a restart, is of a zone that is at
        // none of them.
        let restricts = |list: &&[SocketAddr]| {
            !config.listeners.iter().all(|listener| list.contains(&listener.address))
        };
        if !all.iter().any(restricts) {
            return Self::default();
        }
        let views = sets.into_iter().map(|set| {
            let zones = zones_of(set.first);
            let listeners = ListenerSet::new(set.addresses.clone(), set.first);
            Arc::new(View { listeners, zones })
        });
        Self { views: views.collect(), of_listener }
    }

    /// The sets of listeners that have zones of their own, each once; none where the zones are the
    /// same at all listeners.
    pub fn zone_sets(&self) -> Vec<Arc<ListenerSet>> {
        let mut sets: Vec<Arc<ListenerSet>> = Vec::new();
        for set in self.views.iter().filter_map(|view| view.zones.as_ref()) {
            if !sets.contains(set) {
                sets.push(Arc::clone(set));
            }
        }
        sets
    }
}

/// The sets of listeners that these lists tell apart, and the place of the set of each listener.
fn split(config: &Config, lists: &[&[SocketAddr]]) -> (Vec<Arc<ListenerSet>>, Vec<u16>) {
    let mut lists = lists.to_vec();
    lists.sort_unstable();
    lists.dedup();
    let (mut sets, mut of_listener) = (Vec::<(Vec<bool>, Vec<SocketAddr>, u16)>::new(), Vec::new());
    for (listener, first) in config.listeners.iter().zip(0..) {
        let membership: Vec<bool> =
            lists.iter().map(|list| list.contains(&listener.address)).collect();
        let known = sets.iter().position(|(known, ..)| *known == membership);
        match known.and_then(|place| sets.get_mut(place)) {
            Some((_, addresses, _)) => addresses.push(listener.address),
            None => sets.push((membership, vec![listener.address], first)),
        }
        let place = known.unwrap_or(sets.len() - 1);
        of_listener.push(u16::try_from(place).unwrap_or(u16::MAX));
    }
    let sets = sets.into_iter();
    let sets = sets.map(|(_, addresses, first)| Arc::new(ListenerSet::new(addresses, first)));
    (sets.collect(), of_listener)
}

/// Checks that a configuration can be put into force while the server runs: listeners are what
/// they were until a restart, so that where zones, rules or templates are at some only, these would
/// be at wrong ones.
///
/// # Errors
/// If the addresses of listeners differ, and anything is at some of them only.
pub fn check_listeners(running: &Config, next: &Config) -> Result<(), String> {
    let addresses = |config: &Config| -> BTreeSet<SocketAddr> {
        config.listeners.iter().map(|listener| listener.address).collect()
    };
    let is_any = |config| !zone_lists(config).is_empty() || !rule_lists(config).is_empty();
    let (now, then) = (addresses(running), addresses(next));
    if now == then || !is_any(running) && !is_any(next) {
        return Ok(());
    }
    let differing: Vec<_> = now.symmetric_difference(&then).map(SocketAddr::to_string).collect();
    Err(format!(
        "the server would begin or cease to listen on {}, which takes a restart, and zones, rules \
         or templates are at some addresses only: restart it, or keep the addresses",
        differing.join(", ")
    ))
}

/// The lists of listeners that zones are restricted to, with repetitions.
fn zone_lists(config: &Config) -> Vec<&[SocketAddr]> {
    let lists = config.zones.iter().filter_map(Zone::listeners);
    lists.collect()
}

/// The lists of listeners that rules and templates are restricted to, with repetitions.
fn rule_lists(config: &Config) -> Vec<&[SocketAddr]> {
    let rules = config.rewrites.iter().flat_map(|rules| rules.listeners());
    let templates = config.templates.iter().flat_map(|templates| templates.listeners());
    rules.chain(templates).collect()
}

#[cfg(all(test, feature = "whole"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;
    use zonda_config::Flags;

    /// The views of a server with three listeners and such zones.
    fn views(zones: &str) -> Vec<(Vec<u16>, u16)> {
        let listeners: String = (1..=3_u8)
            .map(|port| format!("[[listen]]\naddress = \"127.0.0.1:{port}\"\n"))
            .collect();
        let text = format!("version = 1\n{listeners}{zones}");
        let config = Config::load_text((Path::new("/zonda.toml"), text), [], &Flags::default());
        let list = ViewList::new(&config.unwrap().config);
        let ports = |set: &ListenerSet| set.addresses.iter().map(SocketAddr::port).collect();
        list.views.iter().map(|view| (ports(&view.listeners), view.listeners.first)).collect()
    }

    /// A forwarded zone at listeners with these ports.
    fn zone(name: &str, ports: &[u16]) -> String {
        let listeners: Vec<_> = ports.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
        format!(
            "[[zone]]\nname = \"{name}\"\nlisten = [{}]\n[zone.forward]\nto = [\"192.0.2.1\"]\n",
            listeners.join(", ")
        )
    }

    #[test]
    fn listeners_with_the_same_zones_share_a_view() {
        let zones = zone("a.test", &[1, 3]) + &zone("b.test", &[3, 1]);
        assert_eq!(views(&zones), [(vec![1, 3], 0), (vec![2], 1)]);
        let zones = zone("a.test", &[1]) + &zone("b.test", &[2]);
        assert_eq!(views(&zones), [(vec![1], 0), (vec![2], 1), (vec![3], 2)]);
    }

    #[test]
    fn there_are_no_views_where_all_is_at_every_listener() {
        assert_eq!(views(&zone("a.test", &[3, 2, 1])), []);
        let rule = "[[rewrite]]\nlisten = [\"127.0.0.1:2\"]\nexact = \"a\"\nto = \"b\"\n";
        assert_eq!(views(rule).len(), 2);
    }
}
