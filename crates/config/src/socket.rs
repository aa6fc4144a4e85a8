//! Where the Unix socket of a server is, so that two servers of one user do not meet and
//! `zonda status` finds each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories in which a server of this user puts its socket, if nobody says otherwise. A server
/// takes the first; who looks for one looks in all, for `zonda-*.sock`.
///
/// `environment` is that of the process.
#[must_use]
pub fn socket_directories(environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let by_variable = |name| environment.get(name).filter(|value| !value.is_empty());
    // systemd separates several directories by colons
    let systemd = by_variable("RUNTIME_DIRECTORY").and_then(|dirs| dirs.split(':').next());
    let session = by_variable("XDG_RUNTIME_DIR").map(|dir| Path::new(dir).join("zonda"));
    let system = is_root().then(|| "/run/zonda".into());
    let directories = [systemd.map(PathBuf::from), system, session, Some(PathBuf::new())];
    directories.into_iter().flatten().collect()
}

/// The default socket of a server whose first listener is on `address`.
pub(crate) fn default_socket(
    environment: &BTreeMap<String, String>,
    address: SocketAddr,
) -> Option<PathBuf> {
    let directory = socket_directories(environment).into_iter().next()?;
    Some(directory.join(format!("zonda-{address}.sock")))
}

/// Whether this process runs as root: it owns its own entry in `/proc`.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}
