//! The configuration of a program: a file, and what the program says in place of it or beside it,
//! also while its server runs.

use crate::check::check_zones;
use crate::failed_zones::{FailedZone, failed_text};
use crate::program::read_config;
use crate::running::Server;
use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zonda_config::{Config, Flags};
use zonda_wire::Name;

/// The configuration of a program. Clones are one: what changes one of them changes all.
#[derive(Clone, Debug)]
pub struct ProgramConfig(Arc<Parts>);

/// What a program's configuration is made of.
#[derive(Debug)]
struct Parts {
    /// The configuration file, if there is one.
    file: Option<PathBuf>,
    /// The address of metrics, in place of that of the file.
    metrics: Option<SocketAddr>,
    /// What takes the place of the file, or comes beside it.
    flags: Mutex<Flags>,
    /// Lock held while flags are changed and put into force, one change after the other.
    changing: Mutex<()>,
}

/// Why a configuration was not changed.
#[derive(Debug)]
pub enum ConfigChangeError {
    /// The configuration is wrong; all that is wrong with it, a line each.
    Config(String),
    /// The zone cannot be loaded.
    Zones(Vec<FailedZone>),
    /// The zone has another source.
    Source(String),
}

impl fmt::Display for ConfigChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(text) | Self::Source(text) => f.write_str(text),
            Self::Zones(failed) => f.write_str(&failed_text(failed)),
        }
    }
}

impl std::error::Error for ConfigChangeError {}

impl ProgramConfig {
    /// Makes the configuration of a file, of flags, and of an address of metrics.
    #[must_use]
    pub fn new(file: Option<PathBuf>, flags: Flags, metrics: Option<SocketAddr>) -> Self {
        let (flags, changing) = (Mutex::new(flags), Mutex::default());
        Self(Arc::new(Parts { file, metrics, flags, changing }))
    }

    /// Reads the configuration as [`read_config`] does.
    ///
    /// # Errors
    /// All that is wrong with it, a line each.
    pub fn read(&self) -> Result<Config, String> {
        let flags = self.flags().clone(); // files are read without the lock
        self.read_with(&flags)
    }

    /// Reads the configuration with other flags.
    fn read_with(&self, flags: &Flags) -> Result<Config, String> {
        read_config(self.0.file.as_deref(), flags, self.0.metrics)
    }

    /// Locks the flags, for a moment.
    fn flags(&self) -> MutexGuard<'_, Flags> {
        self.0.flags.lock().unwrap_or_else(PoisonError::into_inner) // they are replaced as a whole
    }

    /// Waits until no other change of the flags is made.
    fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().unwrap_or_else(PoisonError::into_inner) // it protects nothing itself
    }

    /// Serves a zone, whose name is in lower case, from a file, in place of a former file of the
    /// program. Reads the configuration file and changed zones, too, as [`Server::reload`] does.
    /// Blocks until the zone is served.
    ///
    /// # Errors
    /// What is wrong with the configuration or the zone, or what the zone is served from instead;
    /// nothing is changed then.
    pub fn set_zone_file(
        &self,
        server: &Server,
        name: &Name,
        file: &Path,
    ) -> Result<(), ConfigChangeError> {
        let _one_at_a_time = self.lock_changes();
        if let Some(other) = server.fed_source(name) {
            let text = format!("zone {name} is already served from {other}; remove that first");
            return Err(ConfigChangeError::Source(text));
        }
        let flag = zone_flag(name, file).map_err(ConfigChangeError::Config)?;
        let former = self.flags().clone();
        let mut flags = former.clone();
        flags.zones.retain(|zone| !is_zone(zone, name));
        flags.zones.push(flag);
        let config = self.read_with(&flags).map_err(ConfigChangeError::Config)?;
        let names = HashSet::from([name.clone()]);
        let failed = check_zones(&config.zones, &names);
        if !failed.is_empty() {
            return Err(ConfigChangeError::Zones(failed));
        }
        let mut failed = self.put_into_force(server, flags)?;
        failed.retain(|zone| zone.name.as_ref() == Some(name));
        if failed.is_empty() {
            return Ok(());
        }
        self.put_into_force(server, former)?; // the file has changed since it was checked
        Err(ConfigChangeError::Zones(failed))
    }

    /// Takes a zone of the program, whose name is in lower case, out of service: one that is given
    /// as text or as a file, or that follows a store. Returns whether there was one. Blocks.
    ///
    /// # Errors
    /// What is wrong with the configuration, which is read anew where the zone is given as a file:
    /// the zone is served on then. Or why the server cannot make the change.
    pub fn remove_zone(&self, server: &Server, name: &Name) -> Result<bool, ConfigChangeError> {
        let _one_at_a_time = self.lock_changes();
        let mut flags = self.flags().clone();
        let before = flags.zones.len();
        flags.zones.retain(|zone| !is_zone(zone, name));
        if flags.zones.len() < before {
            self.read_with(&flags).map_err(ConfigChangeError::Config)?;
            self.put_into_force(server, flags.clone())?;
        }
        let is_removed = server.remove_zone(name).map_err(ConfigChangeError::Source)?;
        Ok(is_removed || flags.zones.len() < before)
    }

    /// Forwards queries for names that neither code nor zones have to these upstreams, in place of
    /// the former ones; to none of the program's, without any. Reads the configuration file and
    /// changed zones, too. Blocks until that is in force.
    ///
    /// # Errors
    /// What is wrong with the configuration; nothing is changed then.
    pub fn set_forwards(
        &self,
        server: &Server,
        upstreams: &[String],
    ) -> Result<(), ConfigChangeError> {
        let _one_at_a_time = self.lock_changes();
        let forward = (!upstreams.is_empty()).then(|| upstreams.join(","));
        let flags = Flags { forward, ..self.flags().clone() };
        self.read_with(&flags).map_err(ConfigChangeError::Config)?;
        self.put_into_force(server, flags).map(drop)
    }

    /// Has the server run with other flags, with which the configuration was read; returns the
    /// zones that cannot be loaded.
    fn put_into_force(
        &self,
        server: &Server,
        flags: Flags,
    ) -> Result<Vec<FailedZone>, ConfigChangeError> {
        let former = std::mem::replace(&mut *self.flags(), flags);
        server.reload().map_err(|error| {
            *self.flags() = former;
            ConfigChangeError::Config(error)
        })
    }
}

/// The flag `NAME=FILE` for a zone and its file.
///
/// # Errors
/// When the name or the file cannot be written so.
fn zone_flag(name: &Name, file: &Path) -> Result<String, String> {
    let file = file.to_str().ok_or_else(|| {
        format!("zone {name}: the path {} is not UTF-8: rename the file", file.display())
    })?;
    let name = name.to_string();
    match name.contains('=') {
        true => Err(format!("zone {name}: a name with `=` cannot be served from a file")),
        false => Ok(format!("{name}={file}")),
    }
}

/// Whether a flag `NAME=FILE` is for a zone, whose name is in lower case.
fn is_zone(flag: &str, name: &Name) -> bool {
    let flag = flag.split_once('=').and_then(|(name, _)| name.parse::<Name>().ok());
    flag.is_some_and(|it| it.to_lowercase() == *name)
}
