//! Views: which zones, rules and templates are there at which listeners.
//!
//! Listeners at which the same is there share a view. Most servers have none: all is there at every
//! listener then, and queries are answered from one table of zones.
//!
//! A query that came to a listener before that was closed may be answered afterwards. Closed
//! listeners have a view of their own without zones, rules, templates and code: such a query is
//! refused, and no upstream is asked for it, as those of its listener may be gone.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use zonda_config::{Config, Zone};
use zonda_engine::Views;

/// Listeners at which the same is there.
#[derive(Debug, PartialEq, Eq)]
pub struct ListenerSet {
    /// The addresses of the listeners, by their places; none of closed ones.
    addresses: Vec<SocketAddr>,
    /// The place of the first of them in the configuration.
    pub first: u16,
    /// The addresses as logs and reports have them.
    pub label: Box<str>,
}

impl ListenerSet {
    /// The listeners with these addresses, of which the first has this place in the configuration;
    /// without addresses, closed ones.
    fn new(addresses: Vec<SocketAddr>, first: u16) -> Self {
        let texts: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        Self { addresses, first, label: texts.join(", ").into() }
    }

    /// Whether a zone, rule or template is at the listeners that is at these, if it is not at all
    /// listeners.
    pub fn has(&self, listeners: Option<&[SocketAddr]>) -> bool {
        // What is at one listener of the set is at all of them.
        let first = self.addresses.first();
        first.is_some_and(|first| listeners.is_none_or(|listeners| listeners.contains(first)))
    }

    /// Whether these are the listeners that are closed.
    pub fn is_closed(&self) -> bool {
        self.addresses.is_empty()
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
    /// The views, in the order of their first listeners; that of closed listeners is the last.
    pub views: Vec<Arc<View>>,
    /// The view that each listener has.
    pub places: ViewPlaces,
}

/// The view that each listener has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewPlaces {
    /// The place of the view of each listener, by the listener's place in the configuration;
    /// [`Views::WHOLE`] where all is there at each listener that is answered on.
    pub of_listener: Vec<u16>,
    /// The place of the view of closed listeners, if there are any.
    pub of_closed: Option<u16>,
}

impl ViewList {
    /// The views of the listeners of a configuration.
    pub fn new(config: &Config) -> Self {
        let (of_zones, of_rules) = (zone_lists(config), rule_lists(config));
        let all: Vec<_> = of_zones.iter().chain(&of_rules).copied().collect();
        // A list without any of the listeners, such as one at an address that waits for a restart,
        // is of a zone that is at none of them.
        let restricts = |list: &&[SocketAddr]| {
            !config.open_listeners().all(|(_, listener)| list.contains(&listener.address))
        };
        let (views, of_listener) = match all.iter().any(restricts) {
            true => views_of(config, &of_zones, &all),
            false => (Vec::new(), vec![Views::WHOLE; config.listeners.len()]),
        };
        Self { views, places: ViewPlaces { of_listener, of_closed: None } }.with_closed(config)
    }

    /// The views with that of closed listeners behind them, if there are any.
    fn with_closed(mut self, config: &Config) -> Self {
        let of_closed = u16::try_from(self.views.len()).unwrap_or(0); // there are fewer
        let mut first = None;
        let views = self.places.of_listener.iter_mut().zip(0_u16..);
        for (listener, (view, place)) in config.listeners.iter().zip(views) {
            if listener.is_closed {
                *view = of_closed;
                first.get_or_insert(place);
            }
        }
        let Some(first) = first else {
            return if self.views.is_empty() { Self::default() } else { self };
        };
        self.places.of_closed = Some(of_closed);
        let none = || ListenerSet::new(Vec::new(), first);
        self.views.push(Arc::new(View { listeners: none(), zones: Some(Arc::new(none())) }));
        self
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

/// The views that lists of listeners tell apart, those of zones and all, and the place of the view
/// of each listener.
fn views_of(
    config: &Config,
    of_zones: &[&[SocketAddr]],
    all: &[&[SocketAddr]],
) -> (Vec<Arc<View>>, Vec<u16>) {
    let (zone_sets, of_listener) = split(config, of_zones);
    let zones_of = |listener: u16| {
        let place = of_listener.get(usize::from(listener))?;
        (zone_sets.len() > 1).then(|| zone_sets.get(usize::from(*place)).cloned())?
    };
    let (sets, of_listener) = split(config, all);
    let views = sets.into_iter().map(|set| {
        let zones = zones_of(set.first);
        let listeners = ListenerSet::new(set.addresses.clone(), set.first);
        Arc::new(View { listeners, zones })
    });
    (views.collect(), of_listener)
}

/// The sets of open listeners that these lists tell apart, and the place of the set of each
/// listener.
fn split(config: &Config, lists: &[&[SocketAddr]]) -> (Vec<Arc<ListenerSet>>, Vec<u16>) {
    let mut lists = lists.to_vec();
    lists.sort_unstable();
    lists.dedup();
    let mut sets = Vec::<(Vec<bool>, Vec<SocketAddr>, u16)>::new();
    let mut of_listener = vec![u16::MAX; config.listeners.len()];
    for (at, listener) in config.open_listeners() {
        let membership: Vec<bool> =
            lists.iter().map(|list| list.contains(&listener.address)).collect();
        let known = sets.iter().position(|(known, ..)| *known == membership);
        let place = known.unwrap_or_else(|| {
            sets.push((membership, Vec::new(), u16::try_from(at).unwrap_or(u16::MAX)));
            sets.len() - 1
        });
        sets[place].1.push(listener.address);
        of_listener[at] = u16::try_from(place).unwrap_or(u16::MAX);
    }
    let sets = sets.into_iter();
    let sets = sets.map(|(_, addresses, first)| Arc::new(ListenerSet::new(addresses, first)));
    (sets.collect(), of_listener)
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

    /// A server with three listeners and such zones.
    fn config(zones: &str) -> Config {
        let listeners: String = (1..=3_u8)
            .map(|port| format!("[[listen]]\naddress = \"127.0.0.1:{port}\"\n"))
            .collect();
        let text = format!("version = 1\n{listeners}{zones}");
        let config = Config::load_text((Path::new("/zonda.toml"), text), [], &Flags::default());
        config.unwrap().config
    }

    /// The views of such a server: ports, and the first place.
    fn views(zones: &str) -> Vec<(Vec<u16>, u16)> {
        let list = ViewList::new(&config(zones));
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

    #[test]
    fn nothing_is_at_closed_listeners() {
        for (zones, of_open, count) in [
            (zone("a.test", &[1, 3]), [0, 1], 3),
            (zone("a.test", &[1]) + &zone("b.test", &[2]), [0, 1], 3),
            (zone("a.test", &[1, 2]), [Views::WHOLE; 2], 1),
            (String::new(), [Views::WHOLE; 2], 1),
        ] {
            let mut config = config(&zones);
            config.listeners[2].is_closed = true;
            let list = ViewList::new(&config);
            assert_eq!((list.views.len(), &list.places.of_listener[..2]), (count, &of_open[..]));
            let place = list.places.of_listener[2];
            assert_eq!(list.places.of_closed, Some(place), "{zones}");
            let view = &list.views[usize::from(place)];
            let closed = [config.listeners[2].address];
            let lists = [None, Some(&closed[..])];
            assert!(!lists.iter().any(|list| view.listeners.has(*list)), "{zones}");
            assert!(view.zones.as_ref().is_some_and(|zones| !zones.has(None)), "{zones}");
        }
    }

    #[test]
    fn closed_listeners_leave_the_views_of_others_as_they_are() {
        let zones = zone("a.test", &[1]);
        let (mut config, open) = (config(&zones), ViewList::new(&config(&zones)));
        config.listeners.push(config.listeners[0].clone());
        config.listeners[3].is_closed = true;
        let list = ViewList::new(&config);
        assert_eq!(list.views[..2], open.views[..]);
        assert_eq!(list.places.of_listener, [0, 1, 1, 2]);
        assert_eq!(list.zone_sets()[..2], open.zone_sets()[..]);
    }
}
