//! What the kernel takes and returns with a datagram: addresses, and the call that sends many.

use std::io;
use std::mem::{offset_of, size_of};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_uint, mmsghdr};

use crate::headers;
use crate::udp::UdpSocket;

/// Result of sending a batch of replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendResult {
    /// Replies that the kernel took.
    pub replies: usize,
    /// Replies that the kernel refused: no route, a firewall's no, port 0, or no room for 20 ms.
    pub refused: usize,
}

/// Sends messages; one that the kernel refuses is counted and left out, the rest is sent.
///
/// # Safety
/// Each message points at memory that is there to be read until this returns.
pub(crate) unsafe fn send_all(socket: &UdpSocket, messages: &mut [mmsghdr]) -> SendResult {
    let mut sent = SendResult::default();
    let mut next = 0;
    while next < messages.len() {
        let left = &mut messages[next..];
        // SAFETY: by the contract of this function; the kernel only reads them but for `msg_len`.
        let count = crate::check(unsafe {
            libc::sendmmsg(socket.as_fd().as_raw_fd(), left.as_mut_ptr(), left.len() as c_uint, 0)
        });
        match count.map_err(|error| error.kind()) {
            Ok(count) => {
                next += count as usize;
                sent.replies += count as usize;
            }
            Err(io::ErrorKind::Interrupted) => {}
            // No room for as long as a send may wait: the rest would wait as long again.
            Err(io::ErrorKind::WouldBlock) => {
                sent.refused += messages.len() - next;
                break;
            }
            // The error belongs to the first message; sendmmsg(2) sent none.
            Err(_) => {
                next += 1;
                sent.refused += 1;
            }
        }
    }
    sent
}

/// `sockaddr_in` and `sockaddr_in6` in one: they agree on family and port, then differ.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct PeerName {
    /// `AF_INET` or `AF_INET6`.
    family: libc::sa_family_t,
    /// Port in network byte order.
    port: u16,
    /// The address of IPv4; the flow label of IPv6.
    v4: [u8; 4],
    /// The address of IPv6.
    v6: [u8; 16],
    /// Interface of a link-local IPv6 address.
    scope_id: u32,
}

const _: () = {
    assert!(size_of::<PeerName>() == size_of::<libc::sockaddr_in6>());
    assert!(offset_of!(PeerName, v4) == offset_of!(libc::sockaddr_in, sin_addr));
    assert!(offset_of!(PeerName, v6) == offset_of!(libc::sockaddr_in6, sin6_addr));
    assert!(offset_of!(PeerName, scope_id) == offset_of!(libc::sockaddr_in6, sin6_scope_id));
};

impl PeerName {
    /// Returns the address in std's form.
    #[inline]
    pub(crate) fn address(&self) -> SocketAddr {
        let port = u16::from_be(self.port);
        if i32::from(self.family) == libc::AF_INET {
            return SocketAddrV4::new(Ipv4Addr::from(self.v4), port).into();
        }
        let ip = Ipv6Addr::from(self.v6);
        // Only an adopted socket that takes both families sees these.
        match ip.to_ipv4_mapped() {
            Some(ip) => SocketAddrV4::new(ip, port).into(),
            None => SocketAddrV6::new(ip, port, 0, self.scope_id).into(),
        }
    }
}

/// The one control message, on wildcard sockets only: the address that was asked, handed back on
/// sending as the address to reply from. Holds an `in_pktinfo` or an `in6_pktinfo`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LocalAddress {
    /// Header that names the address family.
    header: libc::cmsghdr,
    /// The structure's bytes, padded as `CMSG_SPACE` pads.
    info: [u8; 24],
}

const _: () = {
    // SAFETY: arithmetic on its argument.
    let space = unsafe { libc::CMSG_SPACE(size_of::<libc::in6_pktinfo>() as c_uint) };
    assert!(size_of::<LocalAddress>() == space as usize);
    assert!(offset_of!(libc::in_pktinfo, ipi_ifindex) == 0);
    assert!(offset_of!(libc::in6_pktinfo, ipi6_addr) == 0);
    assert!(offset_of!(libc::in6_pktinfo, ipi6_ifindex) == 16);
};

impl LocalAddress {
    /// Before the first receive.
    pub(crate) const UNSET: Self = Self { header: headers::NO_CONTROL, info: [0; 24] };

    /// Clears the interface on which the query came, so that the reply takes the route that routing
    /// tables say. A link-local source means nothing without its interface and keeps it.
    pub(crate) fn leave_route_to_kernel(&mut self) {
        match (self.header.cmsg_level, self.header.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => self.info[..4].fill(0),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let link_local = self.info[0] == 0xfe && self.info[1] & 0xc0 == 0x80;
                if !link_local {
                    self.info[16..20].fill(0);
                }
            }
            _ => {}
        }
    }
}
