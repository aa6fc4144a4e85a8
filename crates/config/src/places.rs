//! Places of listeners: the numbers that queries have of the listeners that they came to.
//!
//! A place stays with its address as long as that is answered on. A listener that a reload takes
//! out keeps its place, closed, until another one may take it: queries that came to it may still
//! wait for their answers.

use crate::socket::is_default_beside;
use crate::{Config, Listener};
use std::net::IpAddr;

impl Config {
    /// Returns the listeners that are answered on, with their places.
    pub fn open_listeners(&self) -> impl Iterator<Item = (usize, &Listener)> {
        self.listeners.iter().enumerate().filter(|(_, listener)| !listener.is_closed)
    }

    /// Puts the listeners, which are in the order of the file, at the places that those of the same
    /// addresses have in the configuration in force. A new one takes a closed place that `is_free`,
    /// or else one behind all listeners. The socket of the admin interface keeps its default name.
    /// Where the addresses of the server's own interface differ, which wait for a restart,
    /// listeners at such addresses wait, too; returns these addresses.
    pub fn place_listeners(
        &mut self,
        running: &Self,
        is_free: impl Fn(usize) -> bool,
    ) -> Vec<IpAddr> {
        let first = self.listeners.first().map(|listener| listener.address);
        if let (Some(socket), Some(kept)) = (&mut self.admin.socket, &running.admin.socket)
            && is_default_beside(socket, first, kept)
        {
            socket.clone_from(kept); // its name is that of the first listener at the start
        }
        let waiting = self.keep_interface_listeners(running);
        let mut next: Vec<Option<Listener>> = self.listeners.drain(..).map(Some).collect();
        let mut placed: Vec<Option<Listener>> = vec![None; running.listeners.len()];
        // Of two of one address, as there may be at port 0, the first that is open goes on.
        for is_closed in [false, true] {
            let former = placed.iter_mut().zip(&running.listeners);
            for (place, former) in former.filter(|(_, it)| it.is_closed == is_closed) {
                let is_same = |it: &&mut Option<Listener>| {
                    it.as_ref().is_some_and(|it| it.address == former.address)
                };
                *place = next.iter_mut().find(is_same).and_then(Option::take);
            }
        }
        for listener in next.into_iter().flatten() {
            let is_unused = |place: &usize| {
                let former = running.listeners.get(*place);
                placed[*place].is_none() && former.is_some_and(|it| it.is_closed) && is_free(*place)
            };
            match (0..placed.len()).find(is_unused) {
                Some(place) => placed[place] = Some(listener),
                None => placed.push(Some(listener)),
            }
        }
        let closed = running.listeners.iter().map(|it| Listener { is_closed: true, ..it.clone() });
        let mut closed = closed.map(Some).chain(std::iter::repeat(None));
        let all = placed.into_iter().filter_map(|placed| {
            let former = closed.next().flatten();
            placed.or(former)
        });
        self.listeners = all.collect();
        waiting
    }

    /// Leaves listeners as they are at addresses that the server's own interface has in one of both
    /// configurations alone; returns these addresses.
    fn keep_interface_listeners(&mut self, running: &Self) -> Vec<IpAddr> {
        let addresses = |config: &Self| {
            config.node_local.as_ref().map_or_else(Vec::new, |it| it.addresses.clone())
        };
        let (now, then) = (addresses(running), addresses(self));
        let is_waiting = |ip: &IpAddr| now.contains(ip) != then.contains(ip);
        self.listeners.retain(|listener| !is_waiting(&listener.address.ip()));
        let kept = running.open_listeners().map(|(_, listener)| listener);
        self.listeners.extend(kept.filter(|it| is_waiting(&it.address.ip())).cloned());
        now.iter().chain(&then).copied().filter(is_waiting).collect()
    }
}

impl Listener {
    /// Whether the listener is answered on, and is to be in another configuration, in which it has
    /// the same place.
    pub(crate) fn goes_on_as(&self, next: &Self) -> bool {
        !self.is_closed && !next.is_closed && self.address == next.address
    }

    /// Whether a listener has the same sockets and threads.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        Self { access: None, ..self.clone() } == Self { access: None, ..other.clone() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Flags, NodeLocal};

    /// A configuration with listeners at these addresses.
    fn config(addresses: &[&str]) -> Config {
        let listen = addresses.iter().map(ToString::to_string).collect();
        let flags = Flags { listen, listen_nowhere: true, ..Flags::default() };
        Config::load(None, [], &flags).unwrap().config
    }

    /// The listeners of a configuration, by place; a closed one in parentheses.
    fn places(config: &Config) -> Vec<String> {
        let text = |it: &Listener| match it.is_closed {
            true => format!("({})", it.address),
            false => it.address.to_string(),
        };
        config.listeners.iter().map(text).collect()
    }

    /// The listeners once these addresses are in force in place of those of a configuration.
    fn follow(running: &Config, addresses: &[&str], is_free: fn(usize) -> bool) -> Config {
        let mut next = config(addresses);
        next.place_listeners(running, is_free);
        let mut config = running.clone();
        config.take_over(next.clone());
        assert_eq!(config.listeners, next.listeners);
        config
    }

    #[test]
    fn a_listener_keeps_its_place_and_a_new_one_comes_behind_all() {
        let running = config(&["127.0.0.1:1", "127.0.0.1:2"]);
        let next = follow(&running, &["127.0.0.1:3", "127.0.0.1:2", "127.0.0.1:1"], |_| true);
        assert_eq!(places(&next), ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]);
    }

    #[test]
    fn a_listener_that_is_gone_keeps_its_place_until_it_is_free() {
        let running = config(&["127.0.0.1:1", "127.0.0.1:2"]);
        let closed = follow(&running, &["127.0.0.1:2", "127.0.0.1:3"], |_| true);
        assert_eq!(places(&closed), ["(127.0.0.1:1)", "127.0.0.1:2", "127.0.0.1:3"]);
        let more = ["127.0.0.1:2", "127.0.0.1:4"];
        let next = follow(&closed, &more, |_| false);
        let expected = ["(127.0.0.1:1)", "127.0.0.1:2", "(127.0.0.1:3)", "127.0.0.1:4"];
        assert_eq!(places(&next), expected);
        let next = follow(&closed, &more, |place| place == 0);
        assert_eq!(places(&next), ["127.0.0.1:4", "127.0.0.1:2", "(127.0.0.1:3)"]);
    }

    #[test]
    fn an_address_that_comes_back_has_its_former_place_at_once() {
        let running = config(&["127.0.0.1:1", "127.0.0.1:2"]);
        let closed = follow(&running, &["127.0.0.1:1"], |_| false);
        let next = follow(&closed, &["127.0.0.1:2", "127.0.0.1:1"], |_| false);
        assert_eq!(next.listeners, running.listeners);
    }

    #[test]
    fn listeners_at_port_0_keep_their_places_by_number() {
        let running = config(&["127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:7"]);
        let fewer = follow(&running, &["127.0.0.1:0", "127.0.0.1:7"], |_| true);
        assert_eq!(places(&fewer), ["127.0.0.1:0", "(127.0.0.1:0)", "127.0.0.1:7"]);
        let more = follow(&fewer, &["127.0.0.1:0", "127.0.0.1:7", "127.0.0.1:0"], |_| false);
        assert_eq!(more.listeners, running.listeners);
    }

    #[test]
    fn the_socket_that_is_named_after_the_first_listener_keeps_its_name() {
        let running = config(&["127.0.0.1:1"]);
        let mut next = config(&["127.0.0.1:2"]);
        assert_eq!(running.restart_sections(&next), ["[admin]"]);
        next.place_listeners(&running, |_| true);
        assert!(running.restart_sections(&next).is_empty());
    }

    #[test]
    fn sockets_of_a_listener_that_goes_on_wait_for_a_restart_and_those_of_a_new_one_do_not() {
        let running = config(&["127.0.0.1:1"]);
        let mut next = config(&["127.0.0.1:1", "127.0.0.1:2"]);
        next.listeners.iter_mut().for_each(|listener| listener.workers = 3);
        next.place_listeners(&running, |_| true);
        assert_eq!(running.restart_sections(&next), ["[[listen]]"]);
        let mut config = running.clone();
        config.take_over(next);
        assert_eq!(config.listeners.iter().map(|it| it.workers).collect::<Vec<_>>(), [0, 3]);
        let mut alone = running.clone();
        alone.listeners.clear();
        alone.place_listeners(&config, |_| true);
        assert!(config.restart_sections(&alone).is_empty(), "a listener that is gone");
    }

    #[test]
    fn listeners_wait_with_the_addresses_of_the_interface_that_they_are_at() {
        let with = |own: &str, addresses: &[&str]| {
            let addresses_of_interface = vec![own.parse().unwrap()];
            let node_local =
                NodeLocal { interface: "own".to_owned(), addresses: addresses_of_interface };
            Config { node_local: Some(node_local), ..config(addresses) }
        };
        let running = with("192.0.2.1", &["192.0.2.1:53"]);
        let mut next = with("192.0.2.2", &["192.0.2.2:53", "127.0.0.1:1"]);
        let waiting = next.place_listeners(&running, |_| true);
        assert_eq!(places(&next), ["192.0.2.1:53", "127.0.0.1:1"]);
        assert_eq!(waiting, ["192.0.2.1", "192.0.2.2"].map(|it| it.parse::<IpAddr>().unwrap()));
    }
}
