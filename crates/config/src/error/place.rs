//! Mistakes in the listeners that zones, rules and templates are at.

use super::Origin;
use std::fmt;
use std::net::SocketAddr;
use zonda_wire::Name;

/// A mistake in `listen` of a zone, a rule or a template.
#[derive(Debug)]
pub enum PlaceMistake {
    /// A second zone of the same name with data of its own, at other listeners.
    DataTwice(Name, Origin),
    /// Several zones `.`, of which the ConfigMap of kube-dns would have one forwarded otherwise.
    SeveralRoots,
    /// An empty list of listeners.
    Nowhere,
    /// An address that none of the server's listeners has, which are named.
    NoListener(SocketAddr, Vec<SocketAddr>),
}

impl fmt::Display for PlaceMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataTwice(name, first) => write!(
                f,
                "zone {name} already has data at {first}; of the zones of a name at different \
                 listeners, one may have data, and the others may be forwarded"
            ),
            Self::SeveralRoots => f.write_str(
                "there are several zones \".\" at different listeners, and the ConfigMap says how \
                 one is forwarded; keep one of them, or remove `config-map`",
            ),
            Self::Nowhere => f.write_str(
                "the list is empty, so that it would be at no listener; remove `listen` for all \
                 of them",
            ),
            Self::NoListener(address, known) => {
                let known: Vec<_> = known.iter().map(SocketAddr::to_string).collect();
                let known = known.join(", ");
                write!(f, "the server does not listen on {address}; it listens on {known}")
            }
        }
    }
}
