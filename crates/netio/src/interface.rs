//! Interfaces that have addresses of this machine and lead nowhere: dummy interfaces (ip-link(8))
//! or, where the kernel has none, bridges without ports, which are the same to clients.
//!
//! An interface is marked, in its alias, with the process that uses it: a process that ends leaves
//! an interface alone that another one has claimed meanwhile, and a bridge without such a mark is
//! never touched.
//!
//! Deliberately absent: routes, rules of packet filters, and interfaces of other kinds.

use crate::rtnetlink::{
    Answer, IFLA_IFALIAS, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, Link, Request, message_type,
    messages,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Octets that are received from the kernel at a time; what it sends is never longer.
const RECEIVED_MAX: usize = 64 << 10;
/// How often it is tried again when another process makes or removes the interface meanwhile.
const TRIES: u32 = 3;
/// The flag of an interface that is up.
const UP: u32 = libc::IFF_UP as u32;
/// A new interface or address, which must not be there yet.
const NEW: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;

/// Why an interface could not be made, changed or removed.
#[derive(Debug)]
pub enum InterfaceError {
    /// The process lacks the capability to change interfaces.
    NotPermitted,
    /// An interface of this other kind has the name.
    OtherKind(String),
    /// The kernel has neither dummy interfaces nor bridges.
    NoDummies,
    /// IPv6 is off, so that this address cannot be used.
    NoIpv6(IpAddr),
    /// Another system call failed.
    System(io::Error),
}

impl fmt::Display for InterfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted => f.write_str(
                "the process may not change interfaces: give it CAP_NET_ADMIN (in Kubernetes \
                 `securityContext.capabilities.add: [NET_ADMIN]`; elsewhere \
                 `AmbientCapabilities=` of systemd, or start it as root)",
            ),
            Self::OtherKind(kind) => write!(
                f,
                "there is an interface of this name, which is no dummy interface ({kind}): choose \
                 another name, or remove it by `ip link delete` if a server that was killed left it"
            ),
            Self::NoDummies => f.write_str(
                "the kernel has neither dummy interfaces nor bridges: load a module, as by \
                 `modprobe dummy`",
            ),
            Self::NoIpv6(address) => write!(
                f,
                "IPv6 is off on this machine, so {address} cannot be used: remove it, or switch \
                 IPv6 on by `sysctl net.ipv6.conf.default.disable_ipv6=0`"
            ),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InterfaceError {}

impl From<io::Error> for InterfaceError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM) => Self::NotPermitted,
            _ => Self::System(error),
        }
    }
}

/// An interface as a process wants it.
#[derive(Debug)]
pub struct LocalInterface {
    /// The name of the interface.
    name: String,
    /// The addresses, each with the longest prefix.
    addresses: Vec<IpAddr>,
    /// The alias that marks the interface as used by this process.
    mark: String,
}

/// The word with which the alias of each interface begins that a process here has made.
const MARK: &str = "zonda";

/// The interface as it was before a process claimed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormerInterface {
    /// There was none of the name.
    Absent,
    /// There was one of the name.
    Present {
        /// The alias of the interface, if it had one.
        alias: Option<String>,
        /// All addresses of the interface.
        addresses: Vec<IpAddr>,
        /// Whether the interface was up.
        is_up: bool,
    },
}

/// What [`LocalInterface::repair`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing was missing.
    Whole,
    /// The interface was gone, and was made again.
    Made,
    /// This many addresses were gone, or the interface was down: they were set again.
    Completed(usize),
    /// Another process has claimed the interface, which was left as it is.
    Foreign,
}

impl Link {
    /// Whether a process here has made the interface or taken it over.
    fn is_marked(&self) -> bool {
        self.alias.as_ref().is_some_and(|alias| alias.starts_with(MARK))
    }

    /// Whether the interface is up.
    fn is_up(&self) -> bool {
        self.flags & UP != 0
    }
}

impl LocalInterface {
    /// An interface of this name and with these addresses. What `process` says of the process that
    /// uses it, it says of no other one.
    #[must_use]
    pub fn new(name: String, addresses: Vec<IpAddr>, process: &str) -> Self {
        Self { name, addresses, mark: format!("{MARK} {process}") }
    }

    /// The name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the interface, or takes over the one that is there: it has these addresses besides
    /// those that it had, and the mark of this process. A failure undoes what was changed.
    ///
    /// # Errors
    /// When the system refuses, or an interface of another kind has the name.
    pub fn claim(&self) -> Result<FormerInterface, InterfaceError> {
        let netlink = Netlink::open()?;
        let (found, is_new) = self.find_or_make(&netlink)?;
        let former = match is_new {
            true => FormerInterface::Absent,
            false => FormerInterface::Present {
                alias: found.alias.clone(),
                addresses: netlink.addresses(found.index)?,
                is_up: found.is_up(),
            },
        };
        let claimed = self
            .complete(&netlink, &found)
            .and_then(|_| Ok(netlink.set_alias(found.index, &self.mark)?));
        if let Err(error) = claimed {
            self.give_back(&former);
            return Err(error);
        }
        Ok(former)
    }

    /// Puts back what [`Self::claim`] found: for a process that does not start after all.
    pub fn give_back(&self, former: &FormerInterface) {
        // What fails here is not told: what made the start fail is, and counts for more.
        let Ok(netlink) = Netlink::open() else { return };
        let Ok(Some(found)) = netlink.find(&self.name) else { return };
        let FormerInterface::Present { alias, addresses, is_up } = former else {
            let _ = self.is_own(&found).then(|| netlink.remove(found.index));
            return;
        };
        for address in self.addresses.iter().filter(|it| !addresses.contains(it)) {
            let _ = netlink.remove_address(found.index, *address);
        }
        if !is_up {
            let _ = netlink.set_up(found.index, false);
        }
        let _ = netlink.set_alias(found.index, alias.as_deref().unwrap_or_default());
    }

    /// Takes addresses that are not wanted from the interface, unless another process has claimed
    /// it; returns how many there were.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove_foreign(&self) -> Result<usize, InterfaceError> {
        let netlink = Netlink::open()?;
        let found = netlink.find(&self.name)?.filter(|found| self.is_own(found));
        let Some(Link { index, .. }) = found else { return Ok(0) };
        let mut addresses = netlink.addresses(index)?;
        addresses.retain(|it| !self.addresses.contains(it) && !is_of_the_kernel(*it));
        for address in &addresses {
            netlink.remove_address(index, *address)?;
        }
        Ok(addresses.len())
    }

    /// Makes anew what is missing of the interface, unless another process has claimed it.
    ///
    /// # Errors
    /// When the system refuses, or an interface of another kind has the name now.
    pub fn repair(&self) -> Result<Repair, InterfaceError> {
        let netlink = Netlink::open()?;
        let (found, is_new) = self.find_or_make(&netlink)?;
        if found.is_marked() && !self.is_own(&found) {
            return Ok(Repair::Foreign);
        }
        let completed = self.complete(&netlink, &found)?;
        if is_new {
            return Ok(Repair::Made);
        }
        Ok(if completed == 0 { Repair::Whole } else { Repair::Completed(completed) })
    }

    /// Whether an interface has the mark of this process.
    fn is_own(&self, found: &Link) -> bool {
        found.alias.as_ref() == Some(&self.mark)
    }

    /// Removes the interface, unless it is gone or another process has claimed it; returns whether
    /// it was removed.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove(&self) -> Result<bool, InterfaceError> {
        let netlink = Netlink::open()?;
        match netlink.find(&self.name)? {
            Some(found) if self.is_own(&found) => {
                netlink.remove(found.index)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Finds the interface, or makes it; whether it was made.
    fn find_or_make(&self, netlink: &Netlink) -> Result<(Link, bool), InterfaceError> {
        let mut tries = TRIES;
        loop {
            if let Some(found) = netlink.find(&self.name)? {
                return match found.kind.as_deref() {
                    Some("dummy") => Ok((found, false)),
                    Some("bridge") if found.is_marked() => Ok((found, false)),
                    kind => Err(InterfaceError::OtherKind(
                        kind.map_or("one of hardware".to_owned(), |kind| format!("kind {kind}")),
                    )),
                };
            }
            let made = match netlink.make(&self.name, "dummy", &self.mark) {
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    netlink.make(&self.name, "bridge", &self.mark)
                }
                made => made,
            };
            match made {
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    return Err(InterfaceError::NoDummies);
                }
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) && tries > 0 => {}
                made => made?,
            }
            match netlink.find(&self.name)? {
                Some(found) => return Ok((found, true)),
                None if tries > 0 => {}
                None => return Err(io::Error::from_raw_os_error(libc::ENODEV).into()),
            }
            tries -= 1;
        }
    }

    /// Gives the interface what it lacks; returns how much that was.
    fn complete(&self, netlink: &Netlink, found: &Link) -> Result<usize, InterfaceError> {
        let mut completed = 0;
        // An IPv4 address can be used on an interface that is down, and programs that look for the
        // machine's addresses leave out such an interface. An IPv6 address cannot.
        if !found.is_up() && self.addresses.iter().any(IpAddr::is_ipv6) {
            netlink.set_up(found.index, true)?;
            completed += 1;
        }
        let present = netlink.addresses(found.index)?;
        for address in self.addresses.iter().filter(|it| !present.contains(it)) {
            match netlink.add_address(found.index, *address) {
                Ok(()) => completed += 1,
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
                Err(error) if address.is_ipv6() && is_of_absent_ipv6(&error) => {
                    return Err(InterfaceError::NoIpv6(*address));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(completed)
    }
}

/// Whether the kernel refuses an address because it has no IPv6, there or at all.
fn is_of_absent_ipv6(error: &io::Error) -> bool {
    let codes = [libc::EACCES, libc::EOPNOTSUPP, libc::EAFNOSUPPORT, libc::ENOBUFS];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Whether the kernel has given an address to an interface by itself (rfc4291#2.5.6).
fn is_of_the_kernel(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// A connection to the part of the kernel that knows interfaces.
struct Netlink(Socket);

impl Netlink {
    /// Opens a connection.
    fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // A dump has one interface's addresses then; kernels before 4.20 send all of them.
        let _ = socket.set_netlink_get_strict_chk(true);
        Ok(Self(socket))
    }

    /// Asks or tells the kernel something; returns its answers.
    fn call(&self, request: Request, flags: i32) -> io::Result<Vec<Answer>> {
        self.0.send(&request.octets((libc::NLM_F_REQUEST | flags) as u16), 0)?;
        let (mut answers, mut received) = (Vec::new(), Vec::with_capacity(RECEIVED_MAX));
        loop {
            received.clear();
            self.0.recv(&mut received, 0)?;
            for octets in messages(&received) {
                match Answer::read(octets)? {
                    Answer::End => return Ok(answers),
                    answer => answers.push(answer),
                }
            }
        }
    }

    /// Tells the kernel something of interfaces or addresses.
    fn tell(&self, request: Request, flags: i32) -> io::Result<()> {
        self.call(request, libc::NLM_F_ACK | flags).map(drop)
    }

    /// Finds an interface by its name.
    fn find(&self, name: &str) -> io::Result<Option<Link>> {
        let request = Request::link(libc::RTM_GETLINK, 0, (0, 0));
        let request = request.attribute(IFLA_IFNAME, name.as_bytes());
        let answers = match self.call(request, libc::NLM_F_ACK) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
            answers => answers?,
        };
        let found = answers.into_iter().find_map(|answer| match answer {
            Answer::Link(link) => Some(link),
            _ => None,
        });
        Ok(found)
    }

    /// Makes an interface, which is down and has this alias.
    fn make(&self, name: &str, kind: &str, alias: &str) -> io::Result<()> {
        let request = Request::link(libc::RTM_NEWLINK, 0, (0, 0))
            .attribute(IFLA_IFNAME, name.as_bytes())
            .nested(IFLA_LINKINFO, (IFLA_INFO_KIND, kind.as_bytes()));
        self.tell(request, NEW)?;
        // The kernel takes no alias with a new interface.
        match self.find(name)? {
            Some(found) => self.set_alias(found.index, alias).inspect_err(|_| {
                let _ = self.remove(found.index); // without an alias, no process would take it
            }),
            None => Err(io::Error::from_raw_os_error(libc::ENODEV)),
        }
    }

    /// Sets an interface's alias; an empty one removes it.
    fn set_alias(&self, index: u32, alias: &str) -> io::Result<()> {
        let request = Request::link(libc::RTM_SETLINK, index, (0, 0));
        self.tell(request.attribute(IFLA_IFALIAS, alias.as_bytes()), 0)
    }

    /// Sets an interface up or down.
    fn set_up(&self, index: u32, is_up: bool) -> io::Result<()> {
        let flags = if is_up { UP } else { 0 };
        self.tell(Request::link(libc::RTM_SETLINK, index, (flags, UP)), 0)
    }

    /// Removes an interface.
    fn remove(&self, index: u32) -> io::Result<()> {
        self.tell(Request::link(libc::RTM_DELLINK, index, (0, 0)), 0)
    }

    /// Returns the addresses of an interface.
    fn addresses(&self, index: u32) -> io::Result<Vec<IpAddr>> {
        let request = Request::addresses(libc::RTM_GETADDR, index);
        let answers = self.call(request, libc::NLM_F_DUMP)?;
        let address = |answer| match answer {
            Answer::Address(of, address) if of == index => Some(address),
            _ => None,
        };
        Ok(answers.into_iter().filter_map(address).collect())
    }

    /// Gives an interface an address.
    fn add_address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        self.tell(Request::address(libc::RTM_NEWADDR, index, address), NEW)
    }

    /// Takes an address from an interface.
    fn remove_address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        match self.tell(Request::address(libc::RTM_DELADDR, index, address), 0) {
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Ok(()),
            told => told,
        }
    }
}

/// Groups of notices (rtnetlink(7)): of interfaces, IPv4 and IPv6 addresses.
const GROUPS: u32 = 0x1 | 0x10 | 0x100;

/// Notices of the kernel that something of some interface has changed.
pub struct InterfaceWatch(Socket);

impl InterfaceWatch {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the system has no socket left.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, GROUPS))?;
        socket.set_non_blocking(true)?;
        Ok(Self(socket))
    }

    /// Takes all notices that have come; returns whether an interface or an address was removed, or
    /// may have been.
    pub fn take(&self) -> bool {
        let (mut received, mut is_removed) = (Vec::with_capacity(RECEIVED_MAX), false);
        loop {
            received.clear();
            match self.0.recv(&mut received, 0) {
                Ok(_) => is_removed |= messages(&received).any(tells_a_loss),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return is_removed,
                // Notices were lost; which, the kernel does not tell.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => is_removed = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    }
}

impl AsFd for InterfaceWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether a message tells that an interface or an address is gone, or that an interface changed.
fn tells_a_loss(message: &[u8]) -> bool {
    message_type(message).is_some_and(|message_type| {
        [libc::RTM_NEWLINK, libc::RTM_DELLINK, libc::RTM_DELADDR].contains(&message_type)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_loopback_interface_is_found_with_its_addresses_and_is_no_dummy() {
        let netlink = Netlink::open().unwrap();
        let found = netlink.find("lo").unwrap().unwrap();
        assert_eq!(found.kind, None);
        if found.is_up() {
            let addresses = netlink.addresses(found.index).unwrap();
            assert!(addresses.contains(&IpAddr::from([127, 0, 0, 1])), "{addresses:?}");
        }
        let interface = LocalInterface::new("lo".to_owned(), Vec::new(), "test");
        assert!(matches!(interface.claim(), Err(InterfaceError::OtherKind(_))));
        assert!(!interface.remove().unwrap());
        assert!(netlink.find("no-such-device").unwrap().is_none());
    }
}
