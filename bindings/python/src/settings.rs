//! What an app of Python says of its server.

use std::path::PathBuf;

use pyo3::prelude::*;
use zonda_config::Flags;
use zonda_server::{Stores, Texts};

use crate::store::read_zone_name;

/// What the server is started with.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Settings {
    /// Addresses and ports.
    pub listen: Vec<String>,
    /// Whether nothing is listened on.
    pub listens_nowhere: bool,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Names of zones and their files.
    pub zones: Vec<(String, PathBuf)>,
    /// Names of zones and their texts.
    pub texts: Vec<(String, String)>,
    /// Names of zones and the stores that they follow.
    pub stores: Vec<(String, Py<PyAny>)>,
    /// Upstreams for all other names.
    pub forward: Vec<String>,
    /// Threads that answer UDP.
    pub workers: Option<u16>,
    /// The address of metrics.
    pub metrics: Option<String>,
    /// Time that handlers have, seconds.
    pub deadline: f64,
    /// Queries that may wait for handlers.
    pub waiting_max: usize,
    /// Whether the app starts without zones that cannot be loaded.
    pub allow_failed_zones: bool,
    /// Whether other processes answer on the same addresses.
    pub reuse_port: bool,
}

impl Settings {
    /// What takes the place of the configuration file, or comes beside it.
    pub fn flags(&self) -> Flags {
        let zone = |(name, file): &(String, PathBuf)| format!("{name}={}", file.display());
        Flags {
            listen: self.listen.clone(),
            listen_nowhere: self.listens_nowhere,
            zones: self.zones.iter().map(zone).collect(),
            forward: (!self.forward.is_empty()).then(|| self.forward.join(",")),
            workers: self.workers.map(|count| count.to_string()),
            ..Flags::default()
        }
    }

    /// Zones that are given as text, but those that follow stores. Names that are none are noted.
    pub fn texts(&self, stores: &Stores, mistakes: &mut Vec<String>) -> Texts {
        let mut texts = Texts::new();
        for (name, text) in &self.texts {
            match read_zone_name(name) {
                Ok(name) if stores.iter().any(|(other, _)| *other == name) => {}
                Ok(name) => _ = texts.insert(name, text.as_str().into()),
                Err(error) => mistakes.push(error),
            }
        }
        texts
    }
}
