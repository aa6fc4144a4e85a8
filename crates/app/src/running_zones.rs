//! Zones and upstreams of an app that runs.

use crate::error::Error;
use crate::running::Running;
use crate::store::Store;
use std::path::Path;
use std::sync::Arc;
use zonda_server::{ConfigChangeError, ProgramConfig, Server};
use zonda_wire::Name;

impl Running {
    /// Serves a zone from other text, or from text for the first time, and waits until it is
    /// served. Done to the end if the future is dropped.
    ///
    /// # Errors
    /// When the name is not valid, or that of a zone that is served from a file or a store, or the
    /// text is wrong: then nothing is changed, and the former version stays in service.
    pub async fn set_zone_text(&self, name: &str, text: impl Into<Arc<str>>) -> Result<(), Error> {
        let (known, text) = (self.text_name(name)?, text.into());
        let set = move |server: &Server, _: &_| server.set_zone_text(&known, &text);
        self.blocking(set).await?.map_err(Error::ZoneText)
    }

    /// Serves a zone as [`set_zone_text`](Self::set_zone_text) does, and blocks.
    ///
    /// # Errors
    /// Those of [`set_zone_text`](Self::set_zone_text).
    pub fn set_zone_text_blocking(
        &self,
        name: &str,
        text: impl Into<Arc<str>>,
    ) -> Result<(), Error> {
        let known = self.text_name(name)?;
        self.to_change()?.0.set_zone_text(&known, &text.into()).map_err(Error::ZoneText)
    }

    /// Takes a zone that is given as text out of service; returns whether there was one. Waits as
    /// [`set_zone_text`](Self::set_zone_text).
    ///
    /// # Errors
    /// When the name is not valid, or that of a zone that follows a store.
    pub async fn remove_zone_text(&self, name: &str) -> Result<bool, Error> {
        let known = self.text_name(name)?;
        let remove = move |server: &Server, _: &_| server.remove_zone_text(&known);
        self.blocking(remove).await?.map_err(Error::ZoneText)
    }

    /// Takes a zone out of service as [`remove_zone_text`](Self::remove_zone_text) does, and
    /// blocks.
    ///
    /// # Errors
    /// Those of [`remove_zone_text`](Self::remove_zone_text).
    pub fn remove_zone_text_blocking(&self, name: &str) -> Result<bool, Error> {
        let known = self.text_name(name)?;
        self.to_change()?.0.remove_zone_text(&known).map_err(Error::ZoneText)
    }

    /// Returns the name of a zone that may be given as text.
    fn text_name(&self, name: &str) -> Result<Name, Error> {
        let known = zone_name(name)?;
        match self.to_change()?.0.follows_store(&known) {
            true => Err(Error::ZoneText(format!(
                "zone {name}: its content comes from a store; change it there"
            ))),
            false => Ok(known),
        }
    }

    /// Serves a zone from a master file, or from JSON if the file's name ends in `.json`, in place
    /// of a former file of the program, and waits until it is served. Also loads what
    /// [`reload`](Self::reload) does. Done to the end if the future is dropped.
    ///
    /// # Errors
    /// When the name is not valid, or that of a zone that is given as text or follows a store;
    /// what is wrong with the zone or the configuration: then nothing is changed, and the former
    /// version stays in service.
    pub async fn set_zone_file(&self, name: &str, file: impl AsRef<Path>) -> Result<(), Error> {
        let (name, file) = (zone_name(name)?, file.as_ref().to_owned());
        let set = move |server: &Server, config: &ProgramConfig| {
            config.set_zone_file(server, &name, &file)
        };
        self.blocking(set).await?.map_err(Error::of_change)
    }

    /// Serves a zone as [`set_zone_file`](Self::set_zone_file) does, and blocks.
    ///
    /// # Errors
    /// Those of [`set_zone_file`](Self::set_zone_file).
    pub fn set_zone_file_blocking(&self, name: &str, file: impl AsRef<Path>) -> Result<(), Error> {
        let (server, config) = self.to_change()?;
        config.set_zone_file(&server, &zone_name(name)?, file.as_ref()).map_err(Error::of_change)
    }

    /// Serves a zone with the records of a store, and follows its changes, in place of a former
    /// store; waits until the store is read, for at most 3 seconds. Until it is, or while the store
    /// fails or has no records of a zone, queries for the zone are answered SERVFAIL, or with the
    /// records of the former store; that is no error, and the log says why. Done to the end if the
    /// future is dropped.
    ///
    /// # Errors
    /// When the name is not valid, or that of a zone with another source than a store of the
    /// program: then nothing is changed. Or when no thread can follow the store: then the zone is
    /// out of service.
    pub async fn set_zone_store(
        &self,
        zone: &str,
        store: impl Store + 'static,
    ) -> Result<(), Error> {
        let (name, store) = (zone_name(zone)?, Arc::new(store));
        let set = move |server: &Server, _: &_| server.set_zone_store(&name, store);
        self.blocking(set).await?.map_err(Error::ZoneText)
    }

    /// Serves a zone as [`set_zone_store`](Self::set_zone_store) does, and blocks.
    ///
    /// # Errors
    /// Those of [`set_zone_store`](Self::set_zone_store).
    pub fn set_zone_store_blocking(
        &self,
        zone: &str,
        store: impl Store + 'static,
    ) -> Result<(), Error> {
        let (server, _) = self.to_change()?;
        server.set_zone_store(&zone_name(zone)?, Arc::new(store)).map_err(Error::ZoneText)
    }

    /// Takes a zone out of service that the program has given as text, as a file or with a store,
    /// before the app has started or later; returns whether there was one. Zones of the
    /// configuration file stay. Done to the end if the future is dropped.
    ///
    /// # Errors
    /// When the name is not valid; or what is wrong with the configuration, which is loaded anew
    /// where the zone is given as a file: the zone stays in service then.
    pub async fn remove_zone(&self, name: &str) -> Result<bool, Error> {
        let name = zone_name(name)?;
        let remove =
            move |server: &Server, config: &ProgramConfig| config.remove_zone(server, &name);
        self.blocking(remove).await?.map_err(Error::of_change)
    }

    /// Takes a zone out of service as [`remove_zone`](Self::remove_zone) does, and blocks.
    ///
    /// # Errors
    /// Those of [`remove_zone`](Self::remove_zone).
    pub fn remove_zone_blocking(&self, name: &str) -> Result<bool, Error> {
        let (server, config) = self.to_change()?;
        config.remove_zone(&server, &zone_name(name)?).map_err(Error::of_change)
    }

    /// Forwards queries for names that neither code nor zones have to these upstreams, in place of
    /// all those that the program has said before; without any, such queries are answered REFUSED,
    /// unless the configuration file forwards them. Also loads what [`reload`](Self::reload) does.
    /// Done to the end if the future is dropped.
    ///
    /// # Errors
    /// What is wrong with the configuration or an upstream: then nothing is changed.
    pub async fn set_forwards<T: ToString>(
        &self,
        upstreams: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        let upstreams: Vec<String> = upstreams.into_iter().map(|it| it.to_string()).collect();
        let set =
            move |server: &Server, config: &ProgramConfig| config.set_forwards(server, &upstreams);
        self.blocking(set).await?.map_err(Error::of_change)
    }

    /// Forwards queries as [`set_forwards`](Self::set_forwards) says, and blocks.
    ///
    /// # Errors
    /// Those of [`set_forwards`](Self::set_forwards).
    pub fn set_forwards_blocking<T: ToString>(
        &self,
        upstreams: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        let upstreams: Vec<String> = upstreams.into_iter().map(|it| it.to_string()).collect();
        let (server, config) = self.to_change()?;
        config.set_forwards(&server, &upstreams).map_err(Error::of_change)
    }
}

/// Returns the name of a zone, in lower case.
///
/// # Errors
/// When the text is not a name.
fn zone_name(text: &str) -> Result<Name, Error> {
    let name = text.parse::<Name>().map_err(|error| Error::Name(text.to_owned(), error))?;
    Ok(name.to_lowercase())
}

impl Error {
    /// Makes the error of a change of the configuration.
    fn of_change(error: ConfigChangeError) -> Self {
        match error {
            ConfigChangeError::Config(text) => Self::Config(text),
            ConfigChangeError::Zones(failed) => Self::Zones(failed),
            ConfigChangeError::Source(text) => Self::ZoneText(text),
        }
    }
}
