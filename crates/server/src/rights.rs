//! What the process was started with: sockets, a limit of descriptors, rights.

use crate::run::Signals;
use std::io;
use std::os::fd::OwnedFd;
use zonda_config::Config;
use zonda_netio::privileges::{self, PrivilegeError};
use zonda_netio::process;
use zonda_netio::supervisor;

/// Becomes the user of the configuration; warns of rights that stay.
pub(crate) fn give_up(user: Option<&str>, signals: Signals) -> Result<(), PrivilegeError> {
    match user {
        Some(user) => {
            let kept = privileges::drop_privileges(user, None)?;
            if !kept.groups.is_empty() {
                let groups = kept.groups.iter().map(ToString::to_string).collect::<Vec<_>>();
                tracing::warn!(
                    groups = groups.join(" "),
                    "the process keeps groups that are not the user's, as only root can leave \
                     them: start it without them, or as root"
                );
            }
        }
        // A program that holds a server may need its rights itself.
        None if process::effective_user() == 0 && signals == Signals::Heeded => tracing::warn!(
            "the server keeps the rights of root: write `user`, or start it as another user"
        ),
        None => {}
    }
    Ok(())
}

/// The sockets that a supervisor opened. A program may have used up those that were opened for it,
/// and runs more threads than one, so its server takes none.
pub(crate) fn inherited_sockets(signals: Signals) -> io::Result<Vec<OwnedFd>> {
    if signals == Signals::Heeded {
        return supervisor::take_descriptors();
    }
    if supervisor::has_descriptors() {
        tracing::warn!(
            "sockets of systemd are not used by a server inside a program: without zonda.socket or \
             its like, it binds its addresses itself"
        );
    }
    Ok(Vec::new())
}

/// Lets the process open as many descriptors as TCP and forwarding may need; returns how many ports
/// there may be to other servers.
pub(crate) fn raise_descriptor_limit(config: &Config) -> usize {
    const BESIDES: u64 = 1024; // files, UDP sockets, the admin interface
    const PORTS_MIN: u64 = 256;
    const PORTS_MAX: u64 = 8192; // what the default of `ports` may need for two servers
    let needed = u64::from(config.tcp.connections_max) + BESIDES;
    let granted = process::raise_descriptor_limit(needed + PORTS_MAX);
    match &granted {
        Ok(granted) if *granted < needed + PORTS_MIN => tracing::warn!(
            "the system allows {granted} open descriptors, but tcp.connections-max may need \
             {needed}, and forwarding {PORTS_MIN}: raise LimitNOFILE or `ulimit -n`"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!("cannot raise the limit of open descriptors: {error}"),
    }
    let left = granted.unwrap_or(0).saturating_sub(needed);
    left.clamp(PORTS_MIN, PORTS_MAX) as usize
}
