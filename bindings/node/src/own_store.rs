//! Stores that are written in JavaScript.
//!
//! The thread that follows such a store asks JavaScript, and waits for the answer:
//!
//! ```text
//! mirror ─ ask ─► Calls ─ wake ─► JavaScript: load, get, watch
//!    ▲              │                 │
//!    └── receive ◄──┴──── answer ◄────┘
//! ```
//!
//! # Invariants
//! - No thread waits longer than the store's patience, whatever JavaScript does, nor once it is
//!   gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napi_derive::napi;
use zonda::store::{Announcer, StoreError, Watch};
use zonda::{RecordSet, Store, Type};
use zonda_wire::Name;

use crate::core::lock;
use crate::records::{self, normal_owner, plain_name};

/// How long a method has time, unless the store says otherwise: to load a million records takes
/// some seconds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What is asked of a store.
#[napi(object)]
pub struct StoreCall {
    /// Token of the answer.
    pub token: u32,
    /// The number of the store.
    pub store: u32,
    /// `load`, `get` or `watch`.
    pub method: String,
    /// A zone or an owner, without final dot.
    pub argument: String,
}

/// What is asked of all stores of an app.
pub struct Calls {
    state: Mutex<State>,
    /// Function that wakes JavaScript.
    wake: Box<dyn Fn() + Send + Sync>,
}

/// Calls that have not ended: at most one of each store.
#[derive(Default)]
struct State {
    /// Whether JavaScript answers.
    is_open: bool,
    last_token: u32,
    /// Calls that JavaScript has not taken yet.
    new: Vec<StoreCall>,
    /// Where answers are waited for, by their tokens.
    waiting: HashMap<u32, SyncSender<Result<String, String>>>,
    /// The numbers of stores that are gone, which JavaScript still has.
    released: Vec<u32>,
}

impl Calls {
    /// Calls of an app that does not run.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { state: Mutex::default(), wake: Box::new(wake) }
    }

    /// From now on JavaScript answers.
    pub fn open(&self) {
        lock(&self.state).is_open = true;
    }

    /// Ends all waits, now and later.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        let (last_token, released) = (state.last_token, std::mem::take(&mut state.released));
        *state = State { last_token, released, ..State::default() };
    }

    /// What JavaScript is asked.
    pub fn take(&self) -> Vec<StoreCall> {
        std::mem::take(&mut lock(&self.state).new)
    }

    /// The numbers of stores that are gone, each once.
    pub fn take_released(&self) -> Vec<u32> {
        std::mem::take(&mut lock(&self.state).released)
    }

    /// Passes an answer to the thread that waits for it, if it still does.
    pub fn answer(&self, token: u32, answer: Result<String, String>) {
        if let Some(waiting) = lock(&self.state).waiting.remove(&token) {
            let _ = waiting.try_send(answer); // it may have given up just now
        }
    }

    /// Sends a call to JavaScript and waits for the answer.
    fn ask(
        &self,
        store: u32,
        (method, argument): (&str, &str),
        patience: Duration,
    ) -> Result<String, StoreError> {
        let (sender, answer) = sync_channel(1);
        let token = {
            let mut state = lock(&self.state);
            if !state.is_open {
                return Err(StoreError::failed("the app does not run"));
            }
            state.last_token = state.last_token.wrapping_add(1);
            let token = state.last_token;
            let (method, argument) = (method.to_owned(), argument.to_owned());
            state.new.push(StoreCall { token, store, method, argument });
            state.waiting.insert(token, sender);
            token
        };
        (self.wake)();
        match answer.recv_timeout(patience) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(why)) => Err(StoreError::failed(format!("{method}(): {why}"))),
            Err(RecvTimeoutError::Disconnected) => Err(StoreError::failed("the app stops")),
            Err(RecvTimeoutError::Timeout) => {
                let mut state = lock(&self.state);
                state.waiting.remove(&token);
                state.new.retain(|call| call.token != token);
                Err(StoreError::failed(format!("{method}() has not ended within {patience:?}")))
            }
        }
    }
}

/// A store that is written in JavaScript, as a zone follows it.
pub struct OwnStore {
    number: u32,
    calls: Arc<Calls>,
    patience: Duration,
    /// Whether the store announces its changes.
    is_watched: AtomicBool,
    announcer: Announcer,
}

impl OwnStore {
    /// The one that JavaScript knows by this number.
    pub fn new(number: u32, calls: Arc<Calls>, patience: Duration) -> Self {
        let (is_watched, announcer) = (AtomicBool::new(false), Announcer::default());
        Self { number, calls, patience, is_watched, announcer }
    }

    /// Announces that records of an owner, or any, have changed.
    pub fn announce(&self, owner: Option<&str>) {
        match owner {
            Some(owner) => self.announcer.announce(&normal_owner(owner)),
            None => self.announcer.announce_all(),
        }
    }

    /// Asks for records. Owners are in one form, whichever JavaScript prefers today, so that those
    /// of `get` take the place of those of `load`.
    fn records(&self, method: &str, argument: &str) -> Result<Vec<RecordSet>, StoreError> {
        let answer = self.calls.ask(self.number, (method, argument), self.patience)?;
        let mut sets = records::read(&answer)?;
        for set in &mut sets {
            set.owner = normal_owner(&set.owner);
        }
        Ok(sets)
    }
}

impl Drop for OwnStore {
    /// JavaScript needs the store no longer.
    fn drop(&mut self) {
        lock(&self.calls.state).released.push(self.number);
        (self.calls.wake)();
    }
}

impl Store for OwnStore {
    fn load(&self, zone: &Name) -> Result<Vec<RecordSet>, StoreError> {
        self.records("load", &plain_name(zone))
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        let mut sets = self.records("get", owner)?;
        sets.retain(|set| set.owner == owner); // announced owners are in the same form
        Ok(sets)
    }

    fn set(&self, _: &RecordSet) -> Result<(), StoreError> {
        Err(StoreError::failed("JavaScript writes to it"))
    }

    fn remove(&self, _: &str, _: Type) -> Result<bool, StoreError> {
        Err(StoreError::failed("JavaScript writes to it"))
    }

    fn watch(&self, zone: &Name) -> Result<Box<dyn Watch>, StoreError> {
        let watch = self.announcer.watch(); // before, as JavaScript may announce changes at once
        if !self.is_watched.load(Ordering::Relaxed) {
            let zone = plain_name(zone);
            self.calls.ask(self.number, ("watch", &zone), self.patience)?;
            self.is_watched.store(true, Ordering::Relaxed);
        }
        Ok(watch)
    }
}
