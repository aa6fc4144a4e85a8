//! Zones that are no files: those that follow stores, and those that are given as text.

use std::path::Path;
use std::sync::{Arc, Weak};

use napi_derive::napi;
use zonda::Store;
use zonda_server::{ConfigChangeError, ErrorCode, ProgramConfig, ProgramError, Server};
use zonda_wire::Name;

use super::{Core, error, in_thread, lock};
use crate::own_store::{OwnStore, PATIENCE, StoreCall};
use crate::store::{StoreHandle, duration};

#[napi]
impl Core {
    /// Serves a zone from the text of a master file, before it starts.
    ///
    /// # Errors
    /// When the name is none.
    #[napi]
    pub fn add_zone_text(&self, name: String, text: String) -> napi::Result<()> {
        lock(&self.texts).insert(zone_name(&name)?, text.into());
        Ok(())
    }

    /// Serves a zone from a store of the core, before it starts.
    ///
    /// # Errors
    /// When the name is none, or the store is closed.
    #[napi]
    pub fn add_store(&self, zone: String, store: &StoreHandle) -> napi::Result<()> {
        self.follow(zone_name(&zone)?, store.store()?);
        Ok(())
    }

    /// Serves a zone from a store that is written in JavaScript, before it starts; returns the
    /// number of the store. `deadline` is how long its methods have time, milliseconds.
    ///
    /// # Errors
    /// When the name or the time is none.
    #[napi]
    pub fn add_own_store(&mut self, zone: String, deadline: Option<f64>) -> napi::Result<u32> {
        let name = zone_name(&zone)?;
        let (number, store) = self.own_store(deadline)?;
        self.follow(name, store);
        Ok(number)
    }

    /// Serves a zone from a file, in place of a former file; an event of `token` follows when it is
    /// served, or with what is wrong.
    ///
    /// # Errors
    /// When the server does not run, or the name is none.
    #[napi]
    pub fn set_zone_file(&self, name: String, file: String, token: u32) -> napi::Result<()> {
        let name = zone_name(&name)?;
        self.reconfigure(token, move |config, server| {
            config.set_zone_file(server, &name, Path::new(&file)).map(|()| None)
        })
    }

    /// Serves a zone from a store of the core, in place of a former store; an event of `token`
    /// follows when it is served, or with what is wrong.
    ///
    /// # Errors
    /// When the server does not run, the name is none, or the store is closed.
    #[napi]
    pub fn set_zone_store(
        &self,
        zone: String,
        store: &StoreHandle,
        token: u32,
    ) -> napi::Result<()> {
        self.follow_now(zone_name(&zone)?, store.store()?, token)
    }

    /// Serves a zone from a store that is written in JavaScript, as
    /// [`set_zone_store`](Self::set_zone_store) does; returns the number of the store.
    ///
    /// # Errors
    /// When the server does not run, or the name or the time is none.
    #[napi]
    pub fn set_own_store(
        &mut self,
        zone: String,
        deadline: Option<f64>,
        token: u32,
    ) -> napi::Result<u32> {
        let name = zone_name(&zone)?;
        self.shared.running()?; // else JavaScript would not be told that it is released
        let (number, store) = self.own_store(deadline)?;
        self.follow_now(name, store, token)?;
        Ok(number)
    }

    /// Takes a zone of the program out of service; an event of `token` follows when that is done,
    /// with a reply if there was one.
    ///
    /// # Errors
    /// When the server does not run, or the name is none.
    #[napi]
    pub fn remove_zone(&self, name: String, token: u32) -> napi::Result<()> {
        let name = zone_name(&name)?;
        self.reconfigure(token, move |config, server| {
            Ok(config.remove_zone(server, &name)?.then(Vec::new))
        })
    }

    /// Asks these servers for all other names, in place of the former ones; an event of `token`
    /// follows when that is in force, or with what is wrong.
    ///
    /// # Errors
    /// When the server does not run.
    #[napi]
    pub fn set_forwards(&self, servers: Vec<String>, token: u32) -> napi::Result<()> {
        self.reconfigure(token, move |config, server| {
            config.set_forwards(server, &servers).map(|()| None)
        })
    }

    /// What stores that are written in JavaScript are asked.
    #[napi]
    pub fn store_calls(&self) -> Vec<StoreCall> {
        self.calls.take()
    }

    /// The numbers of stores that are written in JavaScript and that no zone follows any more, each
    /// once.
    #[napi]
    pub fn released_stores(&mut self) -> Vec<u32> {
        let released = self.calls.take_released();
        released.iter().for_each(|number| _ = self.own_stores.remove(number));
        released
    }

    /// Answers what one was asked: with record sets in JSON, or why it could not.
    #[napi]
    pub fn answer_store(&self, token: u32, error: Option<String>, answer: Option<String>) {
        let answer = error.map_or_else(|| Ok(answer.unwrap_or_default()), Err);
        self.calls.answer(token, answer);
    }

    /// Announces that a store has other records: of an owner, or any.
    #[napi]
    pub fn store_changed(&self, store: u32, owner: Option<String>) {
        if let Some(store) = self.own_stores.get(&store).and_then(Weak::upgrade) {
            store.announce(owner.as_deref());
        }
    }

    /// Serves a zone from other text, or from text for the first time; an event of `token` follows
    /// when it is served, or with what is wrong.
    ///
    /// # Errors
    /// When the server does not run, or the zone cannot be given as text.
    #[napi]
    pub fn set_zone_text(&self, name: String, text: String, token: u32) -> napi::Result<()> {
        let (running, shared) = (self.shared.running()?, Arc::clone(&self.shared));
        let name = text_name(&running, &name)?;
        in_thread(move || {
            let served = running.set_zone_text(&name, &text);
            drop(running);
            let wrong = |error| ProgramError::new(ErrorCode::Zone, error);
            shared.tell_end(token, served.err().map(wrong));
        })
    }

    /// Takes a zone that is given as text out of service; an event of `token` follows when that is
    /// done, with a reply if there was one.
    ///
    /// # Errors
    /// As [`set_zone_text`](Self::set_zone_text).
    #[napi]
    pub fn remove_zone_text(&self, name: String, token: u32) -> napi::Result<()> {
        let (running, shared) = (self.shared.running()?, Arc::clone(&self.shared));
        let name = text_name(&running, &name)?;
        in_thread(move || {
            let removed = running.remove_zone_text(&name);
            drop(running);
            let was_there = *removed.as_ref().unwrap_or(&false);
            let wrong = |error| ProgramError::new(ErrorCode::Zone, error);
            let error = removed.err().map(wrong);
            shared.tell_end_with(token, error, was_there.then(Vec::new));
        })
    }
}

impl Core {
    /// Has a zone follow a store.
    fn follow(&self, name: Name, store: Arc<dyn Store>) {
        lock(&self.texts).remove(&name);
        let mut stores = lock(&self.stores);
        stores.retain(|(other, _)| *other != name);
        stores.push((name, store));
    }

    /// A new store that is written in JavaScript, and its number.
    fn own_store(&mut self, deadline: Option<f64>) -> napi::Result<(u32, Arc<OwnStore>)> {
        let patience = deadline.map_or(Ok(PATIENCE), duration)?;
        let number = self.next_store;
        self.next_store += 1; // far fewer than 4 billion
        let store = Arc::new(OwnStore::new(number, Arc::clone(&self.calls), patience));
        self.own_stores.insert(number, Arc::downgrade(&store));
        Ok((number, store))
    }

    /// Has a zone follow a store while the server runs; an event of `token` tells the end of that.
    fn follow_now(&self, name: Name, store: Arc<dyn Store>, token: u32) -> napi::Result<()> {
        let (running, shared) = (self.shared.running()?, Arc::clone(&self.shared));
        in_thread(move || {
            let served = running.set_zone_store(&name, store);
            drop(running);
            let wrong = |error| ProgramError::new(ErrorCode::Zone, error);
            shared.tell_end(token, served.err().map(wrong));
        })
    }

    /// Changes what the running server is configured with; an event of `token` tells the end of
    /// that, with a reply if `change` gives one.
    fn reconfigure(
        &self,
        token: u32,
        change: impl FnOnce(&ProgramConfig, &Server) -> Result<Option<Vec<u8>>, ConfigChangeError>
        + Send
        + 'static,
    ) -> napi::Result<()> {
        let (running, config) = self.shared.to_configure()?;
        let shared = Arc::clone(&self.shared);
        in_thread(move || {
            let changed = change(&config, &running);
            drop(running);
            let (reply, error) = match changed {
                Ok(reply) => (reply, None),
                Err(error) => (None, Some(change_error(&error))),
            };
            shared.tell_end_with(token, error, reply);
        })
    }
}

/// What JavaScript is told of a change that was not made.
fn change_error(error: &ConfigChangeError) -> ProgramError {
    let code = match error {
        ConfigChangeError::Config(_) => ErrorCode::Config,
        ConfigChangeError::Zones(_) | ConfigChangeError::Source(_) => ErrorCode::Zone,
    };
    ProgramError::new(code, error.to_string())
}

/// The name of a zone that may be given as text.
fn text_name(running: &Server, zone: &str) -> napi::Result<Name> {
    let name = zone_name(zone)?;
    match running.follows_store(&name) {
        true => Err(error(format!("zone {zone}: its content comes from a store; change it there"))),
        false => Ok(name),
    }
}

/// The name of a zone, in lower case.
fn zone_name(zone: &str) -> napi::Result<Name> {
    let wrong = |why| error(format!("zone {zone}: {why}"));
    Ok(zone.parse::<Name>().map_err(wrong)?.to_lowercase())
}
