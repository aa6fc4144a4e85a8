//! What can be wrong with a node's own DNS cache.

use std::fmt;
use std::net::IpAddr;

/// Values that are sound alone and wrong for a node's own DNS cache.
#[derive(Debug)]
pub enum NodeMistake {
    /// An address that no interface can have as its own.
    NoInterfaceAddress(IpAddr),
    /// An address of the interface that is given twice.
    AddressTwice(IpAddr),
    /// So many addresses, and the most that an interface may have.
    ManyAddresses(usize, usize),
    /// A user beside an interface.
    WithUser,
    /// An address of the interface that nothing listens on.
    WithoutListener(IpAddr),
}

impl fmt::Display for NodeMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterfaceAddress(address) => write!(
                f,
                "{address} cannot be an interface's own; write a link-local address such as \
                 \"169.254.20.10\", or one such as \"fd00::10\""
            ),
            Self::AddressTwice(address) => write!(f, "{address} is given twice; keep one"),
            Self::ManyAddresses(count, most) => {
                write!(f, "{count} addresses; an interface may have {most} here at most")
            }
            Self::WithUser => f.write_str(
                "the interface is made again and removed with CAP_NET_ADMIN, which the server \
                 gives up with `user`; remove `user`, and start it with no capabilities but \
                 NET_ADMIN and NET_BIND_SERVICE",
            ),
            Self::WithoutListener(address) => write!(
                f,
                "nothing listens on {address}; write a [[listen]] with `address = \"{}\"`, or \
                 remove all of them",
                std::net::SocketAddr::new(*address, 53)
            ),
        }
    }
}
