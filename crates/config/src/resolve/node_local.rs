//! The interface that a node's own DNS cache has.

use crate::error::{Contradiction, NodeMistake, Origin, Problem};
use crate::node_keys::NodeLocalKeys;
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::{Listener, NodeLocal};
use std::collections::HashSet;
use std::net::IpAddr;

/// Most addresses of the interface.
const ADDRESSES_MAX: usize = 16;

/// Reads which interface the server makes, and the place of its addresses; none within, if it makes
/// none.
pub(super) fn read(
    reader: &mut Reader<'_, '_>,
    has_user: bool,
) -> Option<Option<(NodeLocal, Origin)>> {
    let NodeLocalKeys { address: addresses, interface } = NodeLocalKeys::read(reader)?;
    let fail = |reader: &mut Reader<'_, '_>, key, mistake| {
        reader.contradict(Some(key), Contradiction::Node(mistake));
    };
    if addresses.is_empty() {
        return Some(None);
    }
    if addresses.len() > ADDRESSES_MAX {
        fail(reader, "address", NodeMistake::ManyAddresses(addresses.len(), ADDRESSES_MAX));
    }
    let mut seen = HashSet::new();
    for address in &addresses {
        if !can_be_of_an_interface(*address) {
            fail(reader, "address", NodeMistake::NoInterfaceAddress(*address));
        }
        if !seen.insert(*address) {
            fail(reader, "address", NodeMistake::AddressTwice(*address));
        }
    }
    if has_user {
        fail(reader, "address", NodeMistake::WithUser);
    }
    let origin = reader.origin_of("address");
    Some(Some((NodeLocal { interface: interface.0, addresses }, origin)))
}

/// Reports addresses of the interface that no listener has.
pub(super) fn refuse_silent(
    session: &mut Session<'_>,
    (node_local, origin): &(NodeLocal, Origin),
    listeners: &[(Listener, Origin)],
) {
    let is_answered = |address: &IpAddr| {
        listeners.iter().any(|(listener, _)| {
            let own = listener.address.ip();
            own == *address || own.is_unspecified() && own.is_ipv4() == address.is_ipv4()
        })
    };
    for address in node_local.addresses.iter().filter(|it| !is_answered(it)) {
        let silent = Contradiction::Node(NodeMistake::WithoutListener(*address));
        session.fail(origin.clone(), Problem::Together(silent));
    }
}

/// Whether an interface beside that of loopback can have an address as its own. Of addresses of
/// IPv6, those of `fe80::/10` are reached on that interface only.
fn can_be_of_an_interface(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            !(v4.is_unspecified() || v4.is_loopback() || v4.is_multicast() || v4.is_broadcast())
        }
        IpAddr::V6(v6) => {
            !(v6.is_unspecified()
                || v6.is_loopback()
                || v6.is_multicast()
                || v6.is_unicast_link_local()
                || v6.to_ipv4_mapped().is_some())
        }
    }
}
