//! A PostgreSQL server, and how it is connected to.

use super::connector;
use super::parameters::{Encryption, read};
use crate::StoreError;
use crate::tls::Trust;
use postgres::config::Host;
use postgres::{Client, Config, NoTls};
use std::net::ToSocketAddrs;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(3);
/// After so long a silence the system asks whether the other end is there.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// How long it may take to say so, or to acknowledge what was sent.
pub(super) const ANSWER: Duration = Duration::from_secs(5);
/// How long the server may take for a statement, and wait for a lock of the table, milliseconds.
const LIMITS: &str = "-c statement_timeout=60000 -c lock_timeout=5000";

/// A server that connections are made to.
pub(super) struct Server {
    /// Hosts, database, credentials and limits.
    pub config: Config,
    encryption: Encryption,
    /// Whether the log says that connections are not encrypted.
    has_warned: AtomicBool,
}

impl Server {
    /// Returns the server that parameters describe.
    ///
    /// # Errors
    /// When they are none, a file of certificates cannot be read, or the program has no TLS and the
    /// parameters require it.
    pub fn new(parameters: &str) -> Result<Self, StoreError> {
        let (mut config, encryption) = read(parameters)?;
        if let Encryption::Required(trust) = &encryption {
            trust.check().map_err(StoreError::config)?;
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("zonda");
        }
        if config.get_options().is_none() {
            config.options(LIMITS);
        }
        config.keepalives_idle(SILENCE).tcp_user_timeout(ANSWER);
        Ok(Self { config, encryption, has_warned: AtomicBool::new(false) })
    }

    /// Returns how long a connection may take to come up.
    pub fn connect_max(&self) -> Duration {
        self.config.get_connect_timeout().map_or(CONNECT, |limit| *limit)
    }

    /// Connects.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses the credentials, or is not trusted.
    pub fn connect(&self) -> Result<Client, StoreError> {
        let trust = match &self.encryption {
            Encryption::Disabled => {
                return self.config.connect(NoTls).map_err(StoreError::failed);
            }
            Encryption::Preferred => &Trust::Any,
            Encryption::Required(trust) => trust,
        };
        let (client, is_encrypted) = connector::connect(&self.config, trust)?;
        if !is_encrypted && self.must_warn() {
            let hosts = self.config.get_hosts();
            if cfg!(feature = "tls") {
                tracing::warn!(
                    ?hosts,
                    "the connection to PostgreSQL is not encrypted, as the server does not offer \
                     it; write sslmode=verify-full, or sslmode=disable if that is meant"
                );
            } else {
                tracing::warn!(
                    ?hosts,
                    "the connection to PostgreSQL is not encrypted, as the program was built \
                     without the feature `encrypted`; write sslmode=disable if that is meant"
                );
            }
        }
        Ok(client)
    }

    /// Returns whether the log must say that connections are not encrypted: once, and not where
    /// they do not leave the machine.
    fn must_warn(&self) -> bool {
        !is_local(&self.config) && !self.has_warned.swap(true, Relaxed)
    }
}

/// Whether all hosts are this machine.
fn is_local(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(|address| address.is_loopback());
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => (name.as_str(), 0)
            .to_socket_addrs()
            .is_ok_and(|mut addresses| addresses.all(|address| address.ip().is_loopback())),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_server_elsewhere_whose_connections_are_not_encrypted_is_warned_of_once() {
        for here in ["host=127.0.0.1,localhost", "postgres://[::1]/dns", "host=/run/postgresql"] {
            assert!(!Server::new(here).unwrap().must_warn(), "{here}");
        }
        for elsewhere in ["host=127.0.0.1,192.0.2.1", "host=localhost hostaddr=192.0.2.1"] {
            let server = Server::new(elsewhere).unwrap();
            assert!(server.must_warn(), "{elsewhere}");
            assert!(!server.must_warn(), "{elsewhere}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn encryption_that_is_required_is_refused_in_a_program_without_it() {
        let error = Server::new("host=db sslmode=require").map(drop).unwrap_err().to_string();
        assert!(error.contains("the feature `encrypted`"), "{error}");
        assert!(Server::new("host=db sslmode=prefer").is_ok());
    }
}
