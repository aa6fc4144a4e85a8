//! What the process was started with: sockets, a limit of descriptors, rights.

use crate::signals::Signals;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use zonda_config::Config;
use zonda_netio::privileges::{self, PrivilegeError};
use zonda_netio::process;
use zonda_netio::supervisor;

/// Becomes the user of the configuration; warns of rights that stay.
pub(crate) fn give_up(config: &Config, signals: Signals) -> Result<(), PrivilegeError> {
    match config.user.as_deref() {
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
        // Interfaces need a right that goes with the user.
        None if config.node_local.is_some() => {}
        // A program that holds a server may need its rights itself.
        None if process::effective_user() == 0 && signals == Signals::Handled => tracing::warn!(
            "the server keeps the rights of root: write `user`, or start it as another user"
        ),
        None => {}
    }
    Ok(())
}

/// The sockets that a supervisor opened. A program may have used up those that were opened for it,
/// and runs more threads than one, so its server takes none.
pub(crate) fn inherited_sockets(signals: Signals) -> io::Result<Vec<OwnedFd>> {
    if signals == Signals::Handled {
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

/// Descriptors without which no server works: a small one on two CPUs has some thirty open.
const DESCRIPTORS_MIN: u64 = 64;
/// Descriptors beside TCP connections and ports: files, UDP sockets, the admin interface.
const BESIDES: u64 = 1024;
/// Ports with which forwarding is as fast as it should be.
const PORTS_MIN: u64 = 256;
/// Most ports: what the default of `ports` may need for two servers.
const PORTS_MAX: u64 = 8192;

/// The system allows fewer open descriptors than any server needs.
#[derive(Debug)]
pub struct TooFewDescriptors {
    /// Number of open descriptors that the system allows.
    granted: u64,
}

impl fmt::Display for TooFewDescriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let granted = self.granted;
        write!(
            f,
            "cannot start: the system allows {granted} open descriptors, and {DESCRIPTORS_MIN} \
             are needed at least: raise LimitNOFILE or `ulimit -n`"
        )
    }
}

/// How many probes of members of pools run at a time.
#[cfg(feature = "whole")]
fn probes(config: &Config) -> u64 {
    let checked = config.pools.iter().filter(|pool| pool.check.is_some());
    let probes: usize = checked.map(|pool| pool.members.len()).sum();
    probes.min(zonda_health::Limits::default().concurrent_max) as u64
}

/// How many probes run at a time: none, as there are no pools.
#[cfg(not(feature = "whole"))]
fn probes(_config: &Config) -> u64 {
    0
}

/// Lets the process open as many descriptors as TCP and forwarding may need; returns how many ports
/// there may be to other servers.
///
/// # Errors
/// When the system allows too few to start.
pub(crate) fn raise_descriptor_limit(config: &Config) -> Result<usize, TooFewDescriptors> {
    let needed = u64::from(config.tcp.connections_max) + BESIDES + probes(config);
    let granted = match process::raise_descriptor_limit(needed + PORTS_MAX) {
        Ok(granted) => granted,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open descriptors");
            return Ok(PORTS_MIN as usize);
        }
    };
    if granted < DESCRIPTORS_MIN {
        return Err(TooFewDescriptors { granted });
    }
    let ports = ports_within(granted, needed);
    if granted < needed + PORTS_MIN {
        tracing::warn!(
            granted,
            needed = needed + PORTS_MIN,
            ports,
            "the system allows fewer open descriptors than tcp.connections-max and forwarding may \
             need: raise LimitNOFILE or `ulimit -n`"
        );
    }
    Ok(ports as usize)
}

/// How many ports there may be to other servers, of `granted` descriptors, where all else may need
/// as many as `needed`. Where too few are left, a quarter is for ports: connections rarely need all
/// of theirs, and all clients wait for ports.
fn ports_within(granted: u64, needed: u64) -> u64 {
    let quarter = (granted / 4).min(PORTS_MIN);
    granted.saturating_sub(needed).clamp(quarter, PORTS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_take_what_is_left_of_the_descriptors_or_a_quarter_where_that_is_little() {
        let needed = 10_000 + BESIDES;
        for (granted, ports) in [
            (DESCRIPTORS_MIN, 16),
            (200, 50),
            (1024, 256),
            (needed, 256),
            (needed + 300, 300),
            (65_536, PORTS_MAX),
        ] {
            assert_eq!(ports_within(granted, needed), ports, "of {granted}");
        }
    }
}
