//! The query that is explained.

use std::net::{IpAddr, SocketAddr};
use zonda_engine::Transport;
use zonda_wire::message::{Message, Opt, Question};
use zonda_wire::query::{flag, option};
use zonda_wire::{Name, Type};

/// Octets of a reply over UDP that the query has room for.
const UDP_BYTES: u16 = 1232;
/// A query that is to be explained.
pub struct ExplainedQuery {
    /// The name that is asked for.
    pub name: Name,
    /// The type that is asked for.
    pub qtype: Type,
    /// The address that the query comes from.
    pub client: IpAddr,
    /// The network that the query names as that of the client (rfc7871).
    pub subnet: Option<(IpAddr, u8)>,
    /// The transport by which it comes.
    pub transport: Transport,
    /// The address of the listener that it comes to; none: the first.
    pub listener: Option<SocketAddr>,
    /// Whether it asks for records of DNSSEC.
    pub dnssec: bool,
}

impl ExplainedQuery {
    /// The query as the client sends it.
    pub fn message(&self) -> Message {
        let mut options = Vec::new();
        if let Some((address, bits)) = self.subnet {
            let (family, octets) = match address {
                IpAddr::V4(address) => (1, address.octets().to_vec()),
                IpAddr::V6(address) => (2, address.octets().to_vec()),
            };
            let mut data = vec![0, family, bits, 0];
            data.extend(&octets[..usize::from(bits.div_ceil(8)).min(octets.len())]);
            options.push((option::CLIENT_SUBNET, data));
        }
        let mut opt = Opt::new(UDP_BYTES);
        opt.flags = if self.dnssec { 1 << 15 } else { 0 };
        opt.options = options;
        let mut query = Message::new(1, flag::RD, Question::new(self.name.clone(), self.qtype));
        query.opt = Some(opt);
        query
    }
}
