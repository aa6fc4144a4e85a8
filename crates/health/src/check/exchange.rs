//! Checks that send octets or a query and judge the reply.

use std::net::IpAddr;

use zonda_wire::{Name, Rcode, Type};

use super::{CheckError, TEXT_BYTES_MAX, TlsSettings};

/// Octets over TCP and the text that the reply must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TcpExchange {
    /// Octets that are sent once the connection is made; empty for targets that speak first.
    pub(crate) send: Box<[u8]>,
    /// Text that must lie in the first octets of the reply.
    expect: Box<[u8]>,
    /// Settings of TLS; `None` for a connection without it.
    pub(crate) tls: Option<TlsSettings>,
}

impl TcpExchange {
    /// Returns a check that sends octets, none for a target that speaks first, and expects a text
    /// in the first [`TEXT_BYTES_MAX`] octets of the reply.
    ///
    /// # Errors
    /// When the text is longer than that.
    pub fn new(send: &[u8], expect: &[u8]) -> Result<Self, CheckError> {
        Ok(Self { send: send.into(), expect: text(expect)?, tls: None })
    }

    /// Lets the check use TLS.
    #[must_use]
    pub fn with_tls(self, tls: TlsSettings) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Returns the text that must be in the reply; empty for any reply.
    #[must_use]
    pub fn expect(&self) -> &[u8] {
        &self.expect
    }
}

/// A UDP datagram and the text that the reply must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UdpExchange {
    /// Octets of the datagram.
    pub(crate) send: Box<[u8]>,
    /// Text that must lie in the first octets of the reply.
    expect: Box<[u8]>,
}

impl UdpExchange {
    /// Returns a check that sends a datagram and expects a text in the first [`TEXT_BYTES_MAX`]
    /// octets of a reply; with an empty one any reply will do.
    ///
    /// # Errors
    /// When the text is longer than that.
    pub fn new(send: &[u8], expect: &[u8]) -> Result<Self, CheckError> {
        Ok(Self { send: send.into(), expect: text(expect)? })
    }

    /// Returns the text that must be in the reply; empty for any reply.
    #[must_use]
    pub fn expect(&self) -> &[u8] {
        &self.expect
    }
}

/// Returns a text that can be found in the octets that are read.
fn text(text: &[u8]) -> Result<Box<[u8]>, CheckError> {
    if text.len() > TEXT_BYTES_MAX { Err(CheckError::TextTooLong) } else { Ok(text.into()) }
}

/// The transport of a DNS query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// UDP, and TCP where the response is truncated.
    Udp,
    /// TCP without TLS.
    Tcp,
}

/// A DNS query and what its response must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DnsCheck {
    /// Name of the question.
    pub name: Name,
    /// Type of the question.
    pub qtype: Type,
    /// Transport of the query.
    pub transport: Transport,
    /// Whether recursion is desired (RD), for targets that are resolvers.
    pub recursion_desired: bool,
    /// Codes of a response that are a success; empty for NOERROR alone.
    pub rcodes: Vec<Rcode>,
    /// Address that must be in the answer section; `None` for any answer.
    pub address: Option<IpAddr>,
}

impl DnsCheck {
    /// Returns a check by a query over UDP, for a target that is authoritative.
    #[must_use]
    pub fn new(name: Name, qtype: Type) -> Self {
        Self {
            name,
            qtype,
            transport: Transport::Udp,
            recursion_desired: false,
            rcodes: Vec::new(),
            address: None,
        }
    }
}
