//! Listeners: those of the flags or the variable, else of the file, else one for each address of
//! the server's own interface, else one on loopback; none, if that is said.

use super::access::Lists;
use crate::Listener;
use crate::error::{Contradiction, Origin};
use crate::keys::ListenKeys;
use crate::load::Layers;
use crate::reader::{RawValue, Reader, Session};
use crate::section::Keys;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Where the server listens by default: only clients on this machine can send queries by accident.
const ADDRESS: &str = "127.0.0.1:53";
/// Where the server of a cluster listens in a pod: the addresses of a pod are those of its network.
const ADDRESSES_IN_POD: [&str; 2] = ["0.0.0.0:53", "[::]:53"];
/// The variable by which a process knows that it is in a pod.
const POD_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// Port of DNS, where no listener says otherwise.
const PORT: u16 = 53;

/// Reads all listeners, each with its place. `workers` stands in for their own; `interface` are the
/// addresses of the server's own interface.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    lists: &mut Lists<'_>,
    (workers, interface): (u16, &[IpAddr]),
) -> Vec<(Listener, Origin)> {
    let section = &ListenKeys::SECTION;
    let mut elements = Vec::new();
    for given in layers.elements(section) {
        let origin = given.origin.clone();
        elements.push((None, vec![("address", given)], origin));
    }
    if let (true, Some(origin)) = (elements.is_empty(), layers.none_of(section)) {
        session.effective.iter_mut().for_each(|effective| effective.record_none(section, &origin));
        return Vec::new();
    }
    if elements.is_empty() {
        let tables = layers.tables(section);
        elements.extend(tables.map(|(table, origin)| (Some(table), Vec::new(), origin)));
    }
    let own = if elements.is_empty() { interface } else { &[] };
    if elements.is_empty() {
        let is_in_pod = layers.environment.contains_key(POD_VARIABLE) && own.is_empty();
        let addresses = match layers.kubernetes().filter(|_| is_in_pod) {
            Some(_) => &ADDRESSES_IN_POD[..],
            None => &[ADDRESS],
        };
        for place in 0..addresses.len().max(own.len()) {
            let text = addresses.get(place).copied().unwrap_or(ADDRESS);
            let given = RawValue { text, origin: Origin::Default };
            elements.push((None, vec![("address", given)], Origin::Default));
        }
    }

    let mut taken = HashSet::new();
    let read = |(number, (table, given, origin))| {
        let mut reader = Reader::new(session, section, table, given, origin);
        let own = own.get(number).map(|address| SocketAddr::new(*address, PORT));
        listener(&mut reader, lists, &mut taken, (workers, own))
    };
    elements.into_iter().enumerate().filter_map(read).collect()
}

/// Reads one listener. `own` is its address in place of the default one.
fn listener(
    reader: &mut Reader<'_, '_>,
    lists: &mut Lists<'_>,
    taken: &mut HashSet<SocketAddr>,
    (workers, own): (u16, Option<SocketAddr>),
) -> Option<(Listener, Origin)> {
    let mut keys = ListenKeys::read(reader)?;
    if let Some(own) = own {
        keys.address = own;
        reader.derive("address", Some(Path::new(&own.to_string())));
    }
    // port 0 is another free port each time
    if keys.address.port() != 0 && !taken.insert(keys.address) {
        reader.contradict(Some("address"), Contradiction::ListenerTwice(keys.address));
    }
    if !keys.udp && !keys.tcp {
        reader.contradict(None, Contradiction::Silent);
    }
    let access = lists.resolve(reader, keys.access);
    if access.as_ref().is_some_and(|it| it.rules.iter().any(|rule| !rule.types.is_empty())) {
        reader.contradict(Some("access"), Contradiction::TypesAtListener);
    }
    let listener = Listener {
        address: keys.address,
        udp: keys.udp,
        tcp: keys.tcp,
        workers: if keys.workers == 0 { workers } else { keys.workers },
        receive_buffer_bytes: keys.receive_buffer.0,
        send_buffer_bytes: keys.send_buffer.0,
        access,
        is_closed: false,
    };
    Some((listener, reader.origin_of("address")))
}
