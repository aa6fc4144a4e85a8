//! Zones that are no files: those that follow stores, and those that are given as text.

use std::sync::Arc;

use napi_derive::napi;
use zonda::Store;
use zonda_server::{ErrorCode, ProgramError};
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
        self.follow(&zone, store.store()?)
    }

    /// Serves a zone from a store that is written in JavaScript, before it starts; returns the
    /// number of the store. `deadline` is how long its methods have time, milliseconds.
    ///
    /// # Errors
    /// When the name or the time is none.
    #[napi]
    pub fn add_own_store(&mut self, zone: String, deadline: Option<f64>) -> napi::Result<u32> {
        let patience = deadline.map_or(Ok(PATIENCE), duration)?;
        let number = self.own_stores.len() as u32; // far fewer than 4 billion
        let store = Arc::new(OwnStore::new(number, Arc::clone(&self.calls), patience));
        self.follow(&zone, Arc::clone(&store) as Arc<_>)?;
        self.own_stores.push(store);
        Ok(number)
    }

    /// What stores that are written in JavaScript are asked.
    #[napi]
    pub fn store_calls(&self) -> Vec<StoreCall> {
        self.calls.take()
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
        if let Some(store) = self.own_stores.get(store as usize) {
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
        let name = self.text_name(&name)?;
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
        let name = self.text_name(&name)?;
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
    fn follow(&self, zone: &str, store: Arc<dyn Store>) -> napi::Result<()> {
        let name = zone_name(zone)?;
        lock(&self.texts).remove(&name);
        let mut stores = lock(&self.stores);
        stores.retain(|(other, _)| *other != name);
        stores.push((name, store));
        Ok(())
    }

    /// The name of a zone that may be given as text.
    fn text_name(&self, zone: &str) -> napi::Result<Name> {
        let name = zone_name(zone)?;
        match lock(&self.stores).iter().any(|(other, _)| *other == name) {
            true => {
                Err(error(format!("zone {zone}: its content comes from a store; change it there")))
            }
            false => Ok(name),
        }
    }
}

/// The name of a zone, in lower case.
fn zone_name(zone: &str) -> napi::Result<Name> {
    let wrong = |why| error(format!("zone {zone}: {why}"));
    Ok(zone.parse::<Name>().map_err(wrong)?.to_lowercase())
}
