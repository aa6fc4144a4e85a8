//! Files that name upstreams, such as `/etc/resolv.conf` (resolv.conf(5)).
//!
//! Only lines with `nameserver` count: search lists and options are for clients. The files are read
//! when the configuration is, and again when they change; a file that cannot be used then leaves
//! the upstreams that it had.

use crate::keys::ForwardKeys;
use crate::resolve::{is_own_listener, stamp};
use crate::{Config, Forward, Source, Zone};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_upstream::pool::UPSTREAMS_MAX;
use zonda_upstream::{Host, Transport, Upstream};

/// A server, and the line that names it.
type ServerLine = (usize, SocketAddr);
/// A mistake, and its line if it has one.
type LineMistake = (Option<usize>, ServerFileMistake);

/// Octets of a file that are read; a real one has some hundred.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Port of upstreams that a file gives without one.
const DNS_PORT: u16 = 53;

/// An error of a file that names upstreams.
#[derive(Debug)]
pub struct ServerFileError {
    /// Path of the file.
    pub path: PathBuf,
    /// Line of the mistake, from 1; none if it is the file as a whole.
    pub line: Option<usize>,
    /// The mistake at that place.
    pub mistake: ServerFileMistake,
}

/// A mistake in a file that names upstreams.
#[derive(Debug)]
pub enum ServerFileMistake {
    /// A file that cannot be read.
    Unreadable(io::Error),
    /// A file that is too large to be one of upstreams.
    TooLarge,
    /// A `nameserver` with this text, which is no address.
    NoAddress(String),
    /// A file without any `nameserver` that can be asked.
    Empty,
    /// More upstreams than a zone may have.
    Many,
    /// An upstream that is this very server.
    IsSelf,
}

impl fmt::Display for ServerFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        match &self.mistake {
            ServerFileMistake::Unreadable(error) => write!(f, ": {error}"),
            ServerFileMistake::TooLarge => {
                write!(f, ": the file has over {FILE_BYTES_MAX} octets; is it a resolv.conf?")
            }
            ServerFileMistake::NoAddress(text) => {
                write!(f, ": \"{}\" is no address; write `nameserver ADDRESS`", text.escape_debug())
            }
            ServerFileMistake::Empty => f.write_str(": there is no `nameserver ADDRESS`"),
            ServerFileMistake::Many => write!(f, ": keep at most {UPSTREAMS_MAX} servers"),
            ServerFileMistake::IsSelf => f.write_str(
                ": this is an address of this server itself; write that of another server",
            ),
        }
    }
}

impl std::error::Error for ServerFileError {}

/// A number for the state that the files of a zone have now; 0 without files.
pub(crate) fn present_stamp(keys: &ForwardKeys) -> u64 {
    if keys.resolv_conf.is_empty() { 0 } else { stamp(&keys.resolv_conf) }
}

/// Appends the upstreams in the files of a zone to those that it has of its own; one that is there
/// already is not given twice.
pub(crate) fn append_servers(
    keys: &mut ForwardKeys,
    listens_on: &[SocketAddr],
) -> Result<(), ServerFileError> {
    let transport = if keys.resolv_conf_tcp { Transport::Tcp } else { Transport::Udp };
    for path in &keys.resolv_conf {
        let at = |line, mistake| ServerFileError { path: path.clone(), line, mistake };
        let text = read(path).map_err(|mistake| at(None, mistake))?;
        let servers = servers(&text).map_err(|(line, mistake)| at(line, mistake))?;
        for (line, address) in servers {
            if is_own_listener(listens_on, address) {
                return Err(at(Some(line), ServerFileMistake::IsSelf));
            }
            let (host, port) = (Host::Address(address.ip()), address.port());
            let (certificate_name, path) = (None, String::new());
            let upstream = Upstream { transport, host, port, certificate_name, path };
            if keys.to.contains(&upstream) {
                continue;
            }
            if keys.to.len() == UPSTREAMS_MAX {
                return Err(at(Some(line), ServerFileMistake::Many));
            }
            keys.to.push(upstream);
        }
    }
    Ok(())
}

/// Reads a file, within bounds.
fn read(path: &Path) -> Result<String, ServerFileMistake> {
    let mut octets = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut octets))
        .map_err(ServerFileMistake::Unreadable)?;
    if octets.len() as u64 > FILE_BYTES_MAX {
        return Err(ServerFileMistake::TooLarge);
    }
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// Returns the servers of a text with their lines; at least one. An address of one interface alone
/// (`fe80::1%eth0`) is left out.
fn servers(text: &str) -> Result<Vec<ServerLine>, LineMistake> {
    let mut servers = Vec::new();
    for (row, line) in text.lines().zip(1..) {
        let row = row.split(['#', ';']).next().unwrap_or_default();
        let mut words = row.split_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        let word = words.next().unwrap_or_default();
        let is_of_interface =
            word.split_once('%').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
        if is_of_interface {
            continue;
        }
        let bare = word.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
        let address = bare.or_else(|_| word.parse()).ok().filter(|it| it.port() != 0);
        let no_address = || (Some(line), ServerFileMistake::NoAddress(word.to_owned()));
        servers.push((line, address.ok_or_else(no_address)?));
    }
    if servers.is_empty() { Err((None, ServerFileMistake::Empty)) } else { Ok(servers) }
}

impl Forward {
    /// Whether files name upstreams of the zone that have changed since they were read.
    fn is_outdated(&self) -> bool {
        present_stamp(&self.keys) != self.files_stamp
    }

    /// Returns the zone with the upstreams that its files name now.
    fn with_present_servers(&self, listens_on: &[SocketAddr]) -> Result<Self, ServerFileError> {
        let mut forward = self.clone();
        forward.files_stamp = present_stamp(&forward.keys); // a change from now on is another state
        forward.keys.to.truncate(forward.own_servers);
        append_servers(&mut forward.keys, listens_on)?;
        Ok(forward)
    }
}

impl Config {
    /// Whether files name upstreams of any zone.
    #[must_use]
    pub fn has_server_files(&self) -> bool {
        self.forwards().any(|(_, forward)| !forward.keys.resolv_conf.is_empty())
    }

    /// A number for the state of all files that name upstreams, if one of them is not as it was
    /// read.
    #[must_use]
    pub fn changed_server_files(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let mut is_outdated = false;
        for (_, forward) in self.forwards() {
            is_outdated |= forward.is_outdated();
            present_stamp(&forward.keys).hash(&mut hasher);
        }
        is_outdated.then(|| hasher.finish())
    }

    /// Returns this configuration with the upstreams that changed files name now, and the files
    /// that cannot be used: their zones keep the upstreams that they have.
    #[must_use]
    pub fn with_present_servers(&self) -> (Self, Vec<ServerFileError>) {
        let listens_on: Vec<_> = self.open_listeners().map(|(_, it)| it.address).collect();
        let (mut config, mut errors) = (self.clone(), Vec::new());
        for Zone { source, access, .. } in &mut config.zones {
            let Source::Forward(forward) = source else { continue };
            if !forward.is_outdated() {
                continue;
            }
            let own = access.as_ref().and_then(|access| access.listeners.as_deref());
            match forward.with_present_servers(own.unwrap_or(&listens_on)) {
                Ok(present) => *forward = Arc::new(present),
                Err(error) => errors.push(error),
            }
        }
        (config, errors)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The servers of a text, or the line of the mistake.
    fn read_text(text: &str) -> Result<String, Option<usize>> {
        let servers = servers(text).map_err(|(line, _)| line)?;
        let servers: Vec<String> = servers.iter().map(|(_, it)| it.to_string()).collect();
        Ok(servers.join(" "))
    }

    #[test]
    fn name_servers_are_read_and_all_else_is_passed_over() {
        let text = "# by a program\nsearch example.org\nnameserver 192.0.2.1\noptions ndots:5\n\
                    nameserver\t2001:db8::1 # the second\n;nameserver 192.0.2.9\n\
                    nameserver fe80::1%eth0\nnameserver 192.0.2.3:5353\n";
        assert_eq!(read_text(text).unwrap(), "192.0.2.1:53 [2001:db8::1]:53 192.0.2.3:5353");
    }

    #[test]
    fn a_wrong_address_is_told_by_its_line_and_an_empty_file_as_a_whole() {
        assert_eq!(read_text("search a\nnameserver 192.0.2\n"), Err(Some(2)));
        assert_eq!(read_text("nameserver\n"), Err(Some(1)));
        assert_eq!(read_text("nameserver 192.0.2.1:0\n"), Err(Some(1)));
        assert_eq!(read_text("search example.org\n"), Err(None));
    }
}
