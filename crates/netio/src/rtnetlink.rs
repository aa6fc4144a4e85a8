//! Messages by which the kernel is asked and told about interfaces and their addresses (netlink(7),
//! rtnetlink(7)).
//!
//! ```text
//! message    header · body · attributes
//! header     octets of the message, 4 · type, 2 · flags, 2 · sequence number, 4 · port, 4
//! link       family, 1 · 0, 1 · type, 2 · index, 4 · flags, 4 · mask of the flags that change, 4
//! address    family, 1 · octets of the prefix, 1 · flags, 1 · scope, 1 · index, 4
//! attribute  octets with these four, 2 · type, 2 · data · zeros up to a multiple of four
//! ```
//!
//! Numbers are in the machine's order. Deliberately absent: sockets, and all that no interface of
//! [`LocalInterface`](crate::interface::LocalInterface) needs.

use std::io;
use std::net::IpAddr;

/// Octets of a message's header.
const HEADER_OCTETS: usize = 16;
/// Octets of the body of a message about an interface, and about an address.
const LINK_OCTETS: usize = 16;
const ADDRESS_OCTETS: usize = 8;
/// The bits of an attribute's type that are its number; two more say how its data are made.
const TYPE_MASK: u16 = 0x3fff;

/// Attributes of an interface: its name, what it is, and its alias (if_link.h of Linux).
pub const IFLA_IFNAME: u16 = 3;
pub const IFLA_LINKINFO: u16 = 18;
pub const IFLA_IFALIAS: u16 = 20;
/// The attribute in `IFLA_LINKINFO` that names the kind.
pub const IFLA_INFO_KIND: u16 = 1;
/// The scope of an address that is not limited to a link or to the machine.
const RT_SCOPE_UNIVERSE: u8 = 0;

/// A message to the kernel.
pub struct Request(Vec<u8>);

impl Request {
    /// One about the interface with this index, or about one that an attribute names if that is 0.
    /// Of its flags, those of `mask` are to become what they are in `flags`.
    pub fn link(message_type: u16, index: u32, (flags, mask): (u32, u32)) -> Self {
        let body = [0, index, flags, mask].map(u32::to_ne_bytes);
        Self::new(message_type, body.as_flattened())
    }

    /// One about the addresses of an interface, of either family.
    pub fn addresses(message_type: u16, index: u32) -> Self {
        Self::new(message_type, [0, index].map(u32::to_ne_bytes).as_flattened())
    }

    /// One about an address of an interface, by which nothing else is reached.
    pub fn address(message_type: u16, index: u32, address: IpAddr) -> Self {
        let (family, prefix_bits, flags) = match address {
            IpAddr::V4(_) => (libc::AF_INET, 32, 0),
            // It can be bound at once, instead of after a second.
            IpAddr::V6(_) => (libc::AF_INET6, 128, libc::IFA_F_NODAD),
        };
        let fixed = [family as u8, prefix_bits, flags as u8, RT_SCOPE_UNIVERSE];
        let body = [fixed, index.to_ne_bytes()];
        let request = Self::new(message_type, body.as_flattened());
        match address {
            IpAddr::V4(ip) => {
                let request = request.attribute(libc::IFA_ADDRESS, &ip.octets());
                request.attribute(libc::IFA_LOCAL, &ip.octets())
            }
            IpAddr::V6(ip) => request.attribute(libc::IFA_ADDRESS, &ip.octets()),
        }
    }

    /// One with this body.
    fn new(message_type: u16, body: &[u8]) -> Self {
        let mut octets = vec![0; HEADER_OCTETS];
        octets[4..6].copy_from_slice(&message_type.to_ne_bytes());
        octets.extend_from_slice(body);
        Self(octets)
    }

    /// Appends an attribute, whose data have at most a few hundred octets.
    pub fn attribute(mut self, attribute_type: u16, data: &[u8]) -> Self {
        let length = 4 + data.len() as u16;
        self.0.extend([length, attribute_type].map(u16::to_ne_bytes).as_flattened());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an attribute that holds another one.
    pub fn nested(self, attribute_type: u16, (inner_type, data): (u16, &[u8])) -> Self {
        let inner = Self(Vec::new()).attribute(inner_type, data);
        self.attribute(attribute_type, &inner.0)
    }

    /// The octets of the message, with these flags (`NLM_F_…`).
    pub fn octets(mut self, flags: u16) -> Vec<u8> {
        let length = self.0.len() as u32; // far below 4 GiB
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.0
    }
}

/// What the kernel answers.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// What it says of an interface.
    Link(Link),
    /// An address, and the index of its interface.
    Address(u32, IpAddr),
    /// The end of its answers.
    End,
    /// Something that is of no use here.
    Other,
}

/// What the kernel says of an interface.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The number of the interface.
    pub index: u32,
    /// The bits of its state, such as `IFF_UP`.
    pub flags: u32,
    /// The kind of interface that it is; nothing for hardware.
    pub kind: Option<String>,
    /// The text that administrators give it.
    pub alias: Option<String>,
}

impl Answer {
    /// Reads a whole message of the kernel's.
    ///
    /// # Errors
    /// The error that the kernel answers, or that the message ends early.
    pub fn read(message: &[u8]) -> io::Result<Self> {
        let message_type = message_type(message).ok_or_else(cut)?;
        let body = message.get(HEADER_OCTETS..).ok_or_else(cut)?;
        match message_type {
            libc::RTM_NEWLINK => read_link(body).map(Self::Link),
            libc::RTM_NEWADDR => read_address(body),
            it if i32::from(it) == libc::NLMSG_ERROR => {
                match number_at(body, 0).ok_or_else(cut)? as i32 {
                    0 => Ok(Self::End),
                    code => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
                }
            }
            it if i32::from(it) == libc::NLMSG_DONE => Ok(Self::End),
            _ => Ok(Self::Other),
        }
    }
}

/// The type of a message.
pub fn message_type(message: &[u8]) -> Option<u16> {
    message.get(4..6)?.first_chunk().map(|octets| u16::from_ne_bytes(*octets))
}

/// Cuts what was received into messages; a torn one at the end is left out.
pub fn messages(mut octets: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = number_at(octets, 0)? as usize;
        let message = octets.get(..length).filter(|_| length >= HEADER_OCTETS)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Reads the body of a message about an interface.
fn read_link(body: &[u8]) -> io::Result<Link> {
    let (Some(index), Some(flags)) = (number_at(body, 4), number_at(body, 8)) else {
        return Err(cut());
    };
    let mut link = Link { index, flags, ..Link::default() };
    for (attribute_type, data) in attributes(body.get(LINK_OCTETS..).ok_or_else(cut)?) {
        match attribute_type {
            IFLA_IFALIAS => link.alias = Some(text(data)),
            IFLA_LINKINFO => {
                let kind = attributes(data).find(|(inner, _)| *inner == IFLA_INFO_KIND);
                link.kind = kind.map(|(_, data)| text(data));
            }
            _ => {}
        }
    }
    Ok(link)
}

/// Reads the body of a message about an address: the interface's own, where a peer's is told, too.
fn read_address(body: &[u8]) -> io::Result<Answer> {
    let index = number_at(body, 4).ok_or_else(cut)?;
    let rest = body.get(ADDRESS_OCTETS..).ok_or_else(cut)?;
    let of = |wanted: u16| attributes(rest).find(|(it, _)| *it == wanted).map(|(_, data)| data);
    let address = of(libc::IFA_LOCAL).or_else(|| of(libc::IFA_ADDRESS)).and_then(address_of);
    Ok(address.map_or(Answer::Other, |address| Answer::Address(index, address)))
}

/// The address that octets are.
fn address_of(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => octets.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        16 => octets.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
        _ => None,
    }
}

/// The types and data of attributes; a torn one at the end is left out.
fn attributes(mut octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [a, b, c, d] = *octets.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let data = octets.get(4..length)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & TYPE_MASK, data))
    })
}

/// A number of 32 bits at a place.
fn number_at(octets: &[u8], place: usize) -> Option<u32> {
    octets.get(place..)?.first_chunk().map(|octets| u32::from_ne_bytes(*octets))
}

/// A text, which may end with a zero.
fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data.strip_suffix(b"\0").unwrap_or(data)).into_owned()
}

/// The error of a message that ends early.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message of the kernel ends early")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Returns a message of the kernel's with this body, and attributes behind it.
    fn message(message_type: u16, body: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let start = Request::new(message_type, body);
        let whole = attributes.iter().fold(start, |it, (kind, data)| it.attribute(*kind, data));
        whole.octets(0)
    }

    #[test]
    fn what_was_received_is_cut_into_messages_and_a_torn_end_is_left_out() {
        let message = |length: u32| {
            let mut octets = length.to_ne_bytes().to_vec();
            octets.resize(length.max(4) as usize, 0);
            octets
        };
        let whole = [message(17), vec![0; 3], message(16)].concat();
        assert_eq!(messages(&whole).map(<[u8]>::len).collect::<Vec<_>>(), [17, 16]);
        let torn = [message(16), message(20)].concat();
        assert_eq!(messages(&torn[..34]).map(<[u8]>::len).collect::<Vec<_>>(), [16]);
        for length in [0, 3, 15] {
            assert_eq!(messages(&message(length)).count(), 0);
        }
    }

    #[test]
    fn a_request_is_written_as_the_kernel_reads_it() {
        let kind = (IFLA_INFO_KIND, &b"dummy"[..]);
        let request = Request::link(libc::RTM_NEWLINK, 0, (0, 0))
            .attribute(IFLA_IFNAME, b"dns")
            .nested(IFLA_LINKINFO, kind);
        let octets = request.octets(0x601);
        assert_eq!(number_at(&octets, 0).unwrap() as usize, octets.len());
        let numbers = |at: usize| u16::from_ne_bytes([octets[at], octets[at + 1]]);
        assert_eq!((numbers(4), numbers(6)), (libc::RTM_NEWLINK, 0x601));
        assert_eq!(octets[8..32], [0; 24]);
        assert_eq!((numbers(32), numbers(34), &octets[36..40]), (7, 3, &b"dns\0"[..]));
        assert_eq!((numbers(40), numbers(42)), (16, 18), "the inner one is filled up");
        assert_eq!((numbers(44), numbers(46), &octets[48..]), (9, 1, &b"dummy\0\0\0"[..]));
    }

    #[test]
    fn an_interface_is_read_with_its_kind_and_its_alias() {
        let body = [0, 7, 0x41, 0].map(u32::to_ne_bytes);
        let kind = Request(Vec::new()).attribute(IFLA_INFO_KIND, b"dummy\0");
        let attributes = [
            (IFLA_IFNAME, &b"dns\0"[..]),
            (IFLA_LINKINFO | 0x8000, &kind.0),
            (IFLA_IFALIAS, b"zonda 1\0"),
        ];
        let octets = message(libc::RTM_NEWLINK, body.as_flattened(), &attributes);
        let (kind, alias) = (Some("dummy".to_owned()), Some("zonda 1".to_owned()));
        let link = Link { index: 7, flags: 0x41, kind, alias };
        assert_eq!(Answer::read(&octets).unwrap(), Answer::Link(link));
    }

    #[test]
    fn an_address_is_that_of_the_interface_where_a_peer_is_told_too() {
        let body = [0, 7].map(u32::to_ne_bytes);
        let read = |attributes: &[(u16, &[u8])]| {
            Answer::read(&message(libc::RTM_NEWADDR, body.as_flattened(), attributes)).unwrap()
        };
        let (own, peer) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let both = [(libc::IFA_ADDRESS, &peer[..]), (libc::IFA_LOCAL, &own[..])];
        assert_eq!(read(&both), Answer::Address(7, own.into()));
        assert_eq!(read(&both[..1]), Answer::Address(7, peer.into()));
        let ip: [u8; 16] = std::array::from_fn(|place| place as u8);
        assert_eq!(read(&[(libc::IFA_ADDRESS, &ip)]), Answer::Address(7, ip.into()));
        assert_eq!(read(&[]), Answer::Other);
    }

    #[test]
    fn an_error_of_the_kernel_is_told_and_none_is_the_end() {
        let answer = |code: i32| {
            let octets = message(libc::NLMSG_ERROR as u16, &code.to_ne_bytes(), &[]);
            Answer::read(&octets).map_err(|error| error.raw_os_error())
        };
        assert_eq!(answer(0), Ok(Answer::End));
        assert_eq!(answer(-libc::ENODEV), Err(Some(libc::ENODEV)));
    }

    #[test]
    fn no_torn_message_is_read_beyond_its_end() {
        for message_type in [libc::RTM_NEWLINK, libc::RTM_NEWADDR, libc::NLMSG_ERROR as u16] {
            let octets = message(message_type, &[0; 20], &[(IFLA_IFALIAS, b"zonda")]);
            for length in 0..octets.len() {
                let _ = Answer::read(&octets[..length]);
            }
            assert!(Answer::read(&octets[..17]).is_err());
        }
    }
}
