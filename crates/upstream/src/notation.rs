//! An upstream and how a configuration writes it.
//!
//! | written | asked over |
//! |---|---|
//! | `192.0.2.1`, `192.0.2.2:5353`, `[2001:db8::1]:53` | UDP, and TCP when truncated |
//! | `tcp://192.0.2.3` | TCP |
//! | `tls://192.0.2.4#dns.example.net`, `tls://dns.example.net` | TLS (rfc7858) |
//! | `https://dns.example.net/dns-query`, `https://192.0.2.4/q#dns.example.net` | HTTPS (rfc8484) |
//! | `quic://192.0.2.5#dns.example.net` | QUIC (rfc9250) |
//!
//! A host may be an address or a name everywhere. The name behind `#` is the one that the
//! certificate must show; without it, that is the host itself, name or address. `{?dns}` behind a
//! path, which makes it the template that providers publish (rfc8484#4.1.1), is left out.
//! An IPv6 address needs brackets only where a port follows.
//!
//! Deliberately absent: the look-up of a host that is given by name.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use zonda_wire::{Name, NameError};

/// A server that questions are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Transport of the queries.
    pub transport: Transport,
    /// Address or name of the upstream.
    pub host: Host,
    /// Port of the upstream, 1–65535.
    pub port: u16,
    /// The name that the certificate must show, where the host does not say it already; only with
    /// TLS, HTTPS and QUIC.
    pub certificate_name: Option<Name>,
    /// Path of a request, from its `/` on; empty but for HTTPS.
    pub path: String,
}

/// The transport to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// UDP, and TCP when an answer was truncated.
    Udp,
    /// TCP from the first.
    Tcp,
    /// DNS over TLS (rfc7858).
    Tls,
    /// DNS over HTTPS (rfc8484).
    Https,
    /// DNS over QUIC (rfc9250).
    Quic,
}

/// The address or name of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// The upstream's IP address.
    Address(IpAddr),
    /// The upstream's name, which must be looked up first; never the root.
    Name(Name),
}

/// Why text is not an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotationError {
    /// What stands before `://` is not a transport.
    Scheme(String),
    /// The host is missing.
    NoHost,
    /// The host is neither an address nor a name.
    Host(String),
    /// The host looks like an address that lacks a part or has one too many.
    Address(String),
    /// A bracket is not closed, or what is between brackets is not an IPv6 address.
    Brackets(String),
    /// What follows the last colon is not a port.
    Port(String),
    /// The name behind `#` is not a name.
    CertificateName(String, NameError),
    /// A name behind `#` where no certificate is shown.
    NoCertificate(Transport),
    /// A path where only a host can stand.
    NoPath(Transport),
    /// The text has white space, a control character or `@` in it.
    Character(char),
}

impl fmt::Display for NotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) => {
                write!(f, "`{scheme}://` is not known: use udp, tcp, tls, https or quic")
            }
            Self::NoHost => f.write_str("an address or a name is missing"),
            Self::Host(host) => write!(f, "`{host}` is neither an address nor a name"),
            Self::Address(host) => write!(f, "`{host}` is not a whole address"),
            Self::Brackets(host) => {
                write!(f, "`{host}` is not an IPv6 address in brackets, like [2001:db8::1]")
            }
            Self::Port(port) => write!(f, "`{port}` is not a port: use 1 to 65535"),
            Self::CertificateName(name, error) => write!(f, "`#{name}`: {error}"),
            Self::NoCertificate(transport) => write!(
                f,
                "`#` gives the name of a certificate, but {transport} shows none: use tls, https \
                 or quic"
            ),
            Self::NoPath(transport) => {
                write!(f, "a path can follow the host with https only, not with {transport}")
            }
            Self::Character(character) => write!(f, "{character:?} cannot be part of an upstream"),
        }
    }
}

impl std::error::Error for NotationError {}

impl Transport {
    /// Every transport and what stands before its `://`.
    const SCHEMES: [(Self, &'static str); 5] = [
        (Self::Udp, "udp"),
        (Self::Tcp, "tcp"),
        (Self::Tls, "tls"),
        (Self::Https, "https"),
        (Self::Quic, "quic"),
    ];

    /// Returns the port that is meant when none is given.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls | Self::Quic => 853,
            Self::Https => 443,
        }
    }

    /// Whether what is sent is safe from reading and change on the way.
    #[must_use]
    pub fn is_encrypted(self) -> bool {
        !matches!(self, Self::Udp | Self::Tcp)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::SCHEMES.iter().find(|(transport, _)| transport == self);
        f.pad(found.expect("the table has every transport").1)
    }
}

impl FromStr for Upstream {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let wrong = |c: &char| c.is_whitespace() || c.is_control() || *c == '@';
        if let Some(character) = text.chars().find(wrong) {
            return Err(NotationError::Character(character));
        }
        let (transport, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (transport_of(scheme)?, rest),
            None => (Transport::Udp, text),
        };
        let (rest, certificate_name) = match rest.split_once('#') {
            Some(_) if !transport.is_encrypted() => {
                return Err(NotationError::NoCertificate(transport));
            }
            Some((rest, name)) => (rest, Some(certificate_name(name)?)),
            None => (rest, None),
        };
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = match (transport, path) {
            (Transport::Https, "") => "/dns-query", // rfc8484#4.1.1 has it in its examples
            (Transport::Https, path) => path.strip_suffix("{?dns}").unwrap_or(path),
            (_, "" | "/") => "",
            _ => return Err(NotationError::NoPath(transport)),
        };
        let (host, port) = host_and_port(place)?;
        let port = port.unwrap_or(transport.default_port());
        Ok(Self { transport, host, port, certificate_name, path: path.to_owned() })
    }
}

impl Upstream {
    /// Returns the name or address that its certificate must show, without a dot at its end.
    #[must_use]
    pub fn certificate_subject(&self) -> String {
        match (&self.certificate_name, &self.host) {
            (Some(name), _) | (None, Host::Name(name)) => without_dot(&name.to_string()).to_owned(),
            (None, Host::Address(address)) => address.to_string(),
        }
    }
}

/// Reads what stands before `://`, case ignored.
fn transport_of(scheme: &str) -> Result<Transport, NotationError> {
    let found = Transport::SCHEMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(scheme));
    found.map(|found| found.0).ok_or_else(|| NotationError::Scheme(scheme.to_owned()))
}

/// Reads the name behind `#`.
fn certificate_name(text: &str) -> Result<Name, NotationError> {
    match text.parse::<Name>() {
        Ok(name) if name != Name::root() => Ok(name),
        Ok(_) => Err(NotationError::CertificateName(text.to_owned(), NameError::EmptyLabel)),
        Err(error) => Err(NotationError::CertificateName(text.to_owned(), error)),
    }
}

/// Reads a host and the port behind it. IPv6 needs brackets only where a port follows.
fn host_and_port(text: &str) -> Result<(Host, Option<u16>), NotationError> {
    if text.is_empty() || text.starts_with(':') && text.parse::<Ipv6Addr>().is_err() {
        return Err(NotationError::NoHost);
    }
    if let Ok(address) = text.parse() {
        return Ok((Host::Address(address), None));
    }
    if let Some(inner) = text.strip_prefix('[') {
        let bad = || NotationError::Brackets(text.to_owned());
        let (address, rest) = inner.split_once(']').ok_or_else(bad)?;
        let address = address.parse::<Ipv6Addr>().map_err(|_| bad())?;
        let port = match rest.strip_prefix(':') {
            Some(digits) => Some(port(digits)?),
            None if rest.is_empty() => None,
            None => return Err(bad()),
        };
        return Ok((Host::Address(address.into()), port));
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Err(NotationError::Address(text.to_owned())),
        Some((before, digits)) => Ok((host(before)?, Some(port(digits)?))),
        None => Ok((host(text)?, None)),
    }
}

/// Reads a port.
fn port(digits: &str) -> Result<u16, NotationError> {
    let number = digits.parse().ok().filter(|&port| port != 0 && !digits.starts_with('+'));
    number.ok_or_else(|| NotationError::Port(digits.to_owned()))
}

/// Reads an IPv4 address or a name. A name whose last label is a number would be taken for an
/// address by other programs (rfc1123#2.1), so it is a mistyped address here.
fn host(text: &str) -> Result<Host, NotationError> {
    if let Ok(address) = text.parse() {
        return Ok(Host::Address(address));
    }
    let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    if !last.is_empty() && last.bytes().all(|octet| octet.is_ascii_digit()) {
        return Err(NotationError::Address(text.to_owned()));
    }
    let allowed = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    match text.parse::<Name>() {
        Ok(name) if name != Name::root() && text.bytes().all(allowed) => Ok(Host::Name(name)),
        _ => Err(NotationError::Host(text.to_owned())),
    }
}

impl fmt::Display for Upstream {
    /// Writes the shortest notation that is read as the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.transport != Transport::Udp {
            write!(f, "{}://", self.transport)?;
        }
        let port = (self.port != self.transport.default_port()).then_some(self.port);
        match &self.host {
            Host::Address(IpAddr::V6(address)) if port.is_some() => write!(f, "[{address}]")?,
            Host::Address(address) => write!(f, "{address}")?,
            Host::Name(name) => f.write_str(without_dot(&name.to_string()))?,
        }
        if let Some(port) = port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)?;
        match &self.certificate_name {
            Some(name) => write!(f, "#{}", without_dot(&name.to_string())),
            None => Ok(()),
        }
    }
}

/// Returns a name as people write it, without the dot at its end.
fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_form_is_read_and_printed_the_shortest_way() {
        for (text, transport, port, printed) in [
            ("192.0.2.1", Transport::Udp, 53, "192.0.2.1"),
            ("192.0.2.2:5353", Transport::Udp, 5353, "192.0.2.2:5353"),
            ("192.0.2.2:53", Transport::Udp, 53, "192.0.2.2"),
            ("udp://192.0.2.1/", Transport::Udp, 53, "192.0.2.1"),
            ("[2001:db8::1]:53", Transport::Udp, 53, "2001:db8::1"),
            ("[2001:db8::1]:54", Transport::Udp, 54, "[2001:db8::1]:54"),
            ("::1", Transport::Udp, 53, "::1"),
            ("ns.example.net", Transport::Udp, 53, "ns.example.net"),
            ("TCP://192.0.2.3", Transport::Tcp, 53, "tcp://192.0.2.3"),
            (
                "tls://192.0.2.4#dns.example.net.",
                Transport::Tls,
                853,
                "tls://192.0.2.4#dns.example.net",
            ),
            ("tls://dns.example.net:8853", Transport::Tls, 8853, "tls://dns.example.net:8853"),
            ("https://dns.example.net", Transport::Https, 443, "https://dns.example.net/dns-query"),
            ("https://[::1]:8443/q#a.b", Transport::Https, 8443, "https://[::1]:8443/q#a.b"),
            ("https://a.example/q{?dns}", Transport::Https, 443, "https://a.example/q"),
            ("quic://192.0.2.5#a.example", Transport::Quic, 853, "quic://192.0.2.5#a.example"),
        ] {
            let upstream: Upstream = text.parse().unwrap();
            assert_eq!((upstream.transport, upstream.port), (transport, port), "{text}");
            assert_eq!(upstream.to_string(), printed, "{text}");
            assert_eq!(printed.parse(), Ok(upstream), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("", "an address or a name is missing"),
            (":53", "an address or a name is missing"),
            ("tcp://", "an address or a name is missing"),
            ("http://a/", "`http://` is not known: use udp, tcp, tls, https or quic"),
            ("192.0.2", "`192.0.2` is not a whole address"),
            ("192.0.2.1.5", "`192.0.2.1.5` is not a whole address"),
            ("2001:db8:::1", "`2001:db8:::1` is not a whole address"),
            ("[192.0.2.1]", "`[192.0.2.1]` is not an IPv6 address in brackets, like [2001:db8::1]"),
            ("[::1", "`[::1` is not an IPv6 address in brackets, like [2001:db8::1]"),
            ("[::1]53", "`[::1]53` is not an IPv6 address in brackets, like [2001:db8::1]"),
            ("192.0.2.1:0", "`0` is not a port: use 1 to 65535"),
            ("192.0.2.1:+5", "`+5` is not a port: use 1 to 65535"),
            ("192.0.2.1:", "`` is not a port: use 1 to 65535"),
            ("192.0.2.1:66000", "`66000` is not a port: use 1 to 65535"),
            ("a..b", "`a..b` is neither an address nor a name"),
            ("a!b", "`a!b` is neither an address nor a name"),
            (
                "192.0.2.1#dns.example",
                "`#` gives the name of a certificate, but udp shows none: use tls, https or quic",
            ),
            (
                "tls://192.0.2.1#",
                "`#`: the name has an empty label (two dots in a row, or a leading dot)",
            ),
            ("tls://192.0.2.1/x", "a path can follow the host with https only, not with tls"),
            ("192.0.2.1 192.0.2.2", "' ' cannot be part of an upstream"),
            ("user@192.0.2.1", "'@' cannot be part of an upstream"),
        ] {
            assert_eq!(text.parse::<Upstream>().unwrap_err().to_string(), said, "{text}");
        }
    }
}
