//! Listeners: those of the flags or the variable, else of the file, else one on loopback; none, if
//! that is said.

use super::access::Lists;
use crate::Listener;
use crate::error::{Contradiction, Origin};
use crate::keys::ListenKeys;
use crate::load::Layers;
use crate::reader::{RawValue, Reader, Session};
use crate::section::Keys;
use std::collections::HashSet;
use std::net::SocketAddr;

/// Where the server listens by default: only clients on this machine can send queries by accident.
const ADDRESS: &str = "127.0.0.1:53";
/// Where the server of a cluster listens in a pod: the addresses of a pod are those of its network.
const ADDRESSES_IN_POD: [&str; 2] = ["0.0.0.0:53", "[::]:53"];
/// The variable by which a process knows that it is in a pod.
const POD_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// Reads all listeners, each with its place. `workers` stands in for their own.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    lists: &mut Lists,
    workers: u16,
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
    if elements.is_empty() {
        let is_in_pod = layers.environment.contains_key(POD_VARIABLE);
        let addresses = match layers.kubernetes().filter(|_| is_in_pod) {
            Some(_) => &ADDRESSES_IN_POD[..],
            None => &[ADDRESS],
        };
        for text in addresses {
            let given = RawValue { text, origin: Origin::Default };
            elements.push((None, vec![("address", given)], Origin::Default));
        }
    }

    let mut taken = HashSet::new();
    let read = |(table, given, origin)| {
        let mut reader = Reader::new(session, section, table, given, origin);
        listener(&mut reader, lists, &mut taken, workers)
    };
    elements.into_iter().filter_map(read).collect()
}

/// Reads one listener.
fn listener(
    reader: &mut Reader<'_, '_>,
    lists: &mut Lists,
    taken: &mut HashSet<SocketAddr>,
    workers: u16,
) -> Option<(Listener, Origin)> {
    let keys = ListenKeys::read(reader)?;
    // port 0 is another free port each time
    if keys.address.port() != 0 && !taken.insert(keys.address) {
        reader.contradict(Some("address"), Contradiction::ListenerTwice(keys.address));
    }
    if !keys.udp && !keys.tcp {
        reader.contradict(None, Contradiction::Silent);
    }
    let listener = Listener {
        address: keys.address,
        udp: keys.udp,
        tcp: keys.tcp,
        workers: if keys.workers == 0 { workers } else { keys.workers },
        receive_buffer_bytes: keys.receive_buffer.0,
        send_buffer_bytes: keys.send_buffer.0,
        access: lists.resolve(reader, keys.access),
    };
    Some((listener, reader.origin_of("address")))
}
