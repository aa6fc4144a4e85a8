//! Where the Unix socket of a server is, so that two servers of one user do not meet and
//! `zonda status` finds each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the default socket of a server whose first listener is on `address`.
///
/// Two servers listen on different addresses, so their sockets differ. A server that leaves its
/// port to the kernel, or listens nowhere, is named after its process instead.
pub(crate) fn default_socket(
    environment: &BTreeMap<String, String>,
    address: Option<SocketAddr>,
) -> Option<PathBuf> {
    let directory = directories(environment).into_iter().next()?;
    Some(directory.join(default_name(address)))
}

/// Returns the name of the default socket of a server whose first listener is on `address`.
fn default_name(address: Option<SocketAddr>) -> String {
    let server = match address.filter(|address| address.port() != 0) {
        Some(address) => address.to_string(),
        None => std::process::id().to_string(),
    };
    format!("zonda-{server}.sock")
}

/// Whether a socket has the default name of a server whose first listener is on `address`, and
/// another one in the same directory that of any server.
pub(crate) fn is_default_beside(
    socket: &Path,
    address: Option<SocketAddr>,
    running: &Path,
) -> bool {
    let is_default = socket.file_name().is_some_and(|name| *name == *default_name(address));
    is_default && is_socket(running) && socket.parent() == running.parent()
}

/// Returns all sockets where a server of this user puts its own by default, `environment` being
/// that of the process. Not each has a server behind it: one that was killed leaves its socket.
#[must_use]
pub fn find_sockets(environment: impl IntoIterator<Item = (String, String)>) -> Vec<PathBuf> {
    let environment = environment.into_iter().collect();
    let entries = directories(&environment)
        .into_iter()
        .filter_map(|directory| std::fs::read_dir(directory).ok());
    let paths = entries.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut sockets: Vec<PathBuf> = paths.filter(|path| is_socket(path)).collect();
    sockets.sort();
    sockets
}

/// Whether a file is named as [`default_socket`] names it.
fn is_socket(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("zonda-") && name.ends_with(".sock")
}

/// Returns the directories in which sockets are; a server takes the first.
fn directories(environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let by_variable = |name| environment.get(name).filter(|value| !value.is_empty());
    // systemd separates several directories by colons
    let systemd = by_variable("RUNTIME_DIRECTORY").and_then(|dirs| dirs.split(':').next());
    let session = by_variable("XDG_RUNTIME_DIR").map(|dir| Path::new(dir).join("zonda"));
    let system = is_root().then(|| "/run/zonda".into());
    // Whole, because a path in a printed configuration starts from where that is stored.
    let working = std::env::current_dir().ok();
    let directories = [systemd.map(PathBuf::from), system, session, working];
    directories.into_iter().flatten().collect()
}

/// Whether this process runs as root: it owns its own entry in `/proc`.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sockets_of_servers_on_different_addresses_differ_and_are_found() {
        let directory = std::env::temp_dir().join(format!("zonda-test-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let variable = ("RUNTIME_DIRECTORY".to_owned(), directory.to_str().unwrap().to_owned());
        let environment = BTreeMap::from([variable]);
        let addresses = ["127.0.0.1:53", "[::1]:53"].map(|address| address.parse().ok());
        let sockets = addresses.map(|address| default_socket(&environment, address).unwrap());
        for socket in &sockets {
            std::fs::write(socket, "").unwrap();
        }
        let found = find_sockets(environment);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(sockets.iter().filter(|socket| found.contains(socket)).count(), 2);
        assert_ne!(sockets[0], sockets[1]);
    }
}
