//! Stores of the core as JavaScript holds them.
//!
//! Each has a thread, which does what is asked of the store, in that order: calls of a database
//! block, and must keep neither JavaScript nor the threads with which Node.js reads files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;
use serde_json::{Value, json};
use zonda::store::StoreError;
use zonda::{MemoryStore, PostgresStore, RedbStore, RedisStore, Store, Type};
use zonda_wire::Name;

use crate::core::{error, lock};
use crate::records;

/// Gives JavaScript, in its thread, the result of a call.
type PromiseResolver = Box<dyn FnOnce(Env) -> napi::Result<String> + Send>;
/// A call.
type Job = Box<dyn FnOnce() + Send>;
/// A store; nothing before it was opened, and after it was closed.
type Slot = Arc<Mutex<Option<Arc<dyn Store>>>>;

/// Why a call failed: a code of the errors of JavaScript, and the text.
struct Failure {
    code: &'static str,
    message: String,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl Failure {
    /// The error with which a promise is rejected.
    fn to_error(&self) -> napi::Error {
        error(json!({ "code": self.code, "message": self.message }))
    }
}

/// A store of the core. Its methods return promises of JSON. The text of an error with which one is
/// rejected is JSON, too: an object with `code` and `message`.
#[napi]
pub struct StoreHandle {
    slot: Slot,
    /// Where a database is, without a password; nothing for other stores.
    place: Option<String>,
    /// What is still to be done: as much as the program asks at a time, which has promises of it.
    jobs: mpsc::Sender<Job>,
}

#[napi]
impl StoreHandle {
    /// One in memory.
    #[napi(factory)]
    pub fn memory() -> napi::Result<Self> {
        Self::with(Some(Arc::new(MemoryStore::new())), None)
    }

    /// One in a file that is still to be opened.
    #[napi(factory)]
    pub fn unopened() -> napi::Result<Self> {
        Self::with(None, None)
    }

    /// One in Redis.
    #[napi(factory)]
    pub fn redis(url: String, prefix: String, compare_millis: Option<f64>) -> napi::Result<Self> {
        let mut store = RedisStore::new(&url).map_err(error)?.prefix(prefix);
        if let Some(millis) = compare_millis {
            store = store.compare_every(duration(millis)?);
        }
        let place = store.place();
        Self::with(Some(Arc::new(store)), Some(place))
    }

    /// One in PostgreSQL.
    #[napi(factory)]
    pub fn postgres(parameters: String, compare_millis: Option<f64>) -> napi::Result<Self> {
        let mut store = PostgresStore::new(&parameters).map_err(error)?;
        if let Some(millis) = compare_millis {
            store = store.compare_every(duration(millis)?);
        }
        let place = store.place();
        Self::with(Some(Arc::new(store)), Some(place))
    }

    /// Where a database is, without a password.
    #[napi]
    pub fn place(&self) -> Option<String> {
        self.place.clone()
    }

    /// Opens a file, or makes it.
    #[napi]
    pub fn open_file<'env>(&self, env: &'env Env, file: String) -> napi::Result<Object<'env>> {
        let slot = Arc::clone(&self.slot);
        self.ask(env, move || {
            let store = RedbStore::open(file)?;
            *lock(&slot) = Some(Arc::new(store));
            Ok(Value::Null)
        })
    }

    /// All records of a zone.
    #[napi]
    pub fn load<'env>(&self, env: &'env Env, zone: String) -> napi::Result<Object<'env>> {
        self.ask_store(env, move |store| {
            let apex = zone.parse::<Name>().map_err(|error| Failure {
                code: "ZONDA_ZONE",
                message: format!("zone {zone}: {error}"),
            })?;
            let sets = store.load(&apex)?;
            Ok(records::write(&sets))
        })
    }

    /// All records of an owner.
    #[napi]
    pub fn get<'env>(&self, env: &'env Env, owner: String) -> napi::Result<Object<'env>> {
        self.ask_store(env, move |store| Ok(records::write(&store.get(&owner)?)))
    }

    /// Puts record sets, a list in JSON, in place of those with the same owner and type, all in one
    /// step.
    #[napi]
    pub fn set<'env>(&self, env: &'env Env, sets: String) -> napi::Result<Object<'env>> {
        self.ask_store(env, move |store| {
            store.set_many(&records::read(&sets)?)?;
            Ok(Value::Null)
        })
    }

    /// Takes records away; whether there were any.
    #[napi]
    pub fn remove<'env>(
        &self,
        env: &'env Env,
        owner: String,
        rtype: u32,
    ) -> napi::Result<Object<'env>> {
        let rtype = Type(rtype as u16); // JavaScript knows only such types
        self.ask_store(env, move |store| Ok(store.remove(&owner, rtype)?.into()))
    }

    /// Does nothing more; the file or the connections are given back once no app serves it.
    #[napi]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<Object<'env>> {
        let slot = Arc::clone(&self.slot);
        self.ask(env, move || {
            let store = lock(&slot).take();
            drop(store); // the lock is free while a connection is closed
            Ok(Value::Null)
        })
    }
}

impl StoreHandle {
    /// One with a thread of its own.
    fn with(store: Option<Arc<dyn Store>>, place: Option<String>) -> napi::Result<Self> {
        let slot = Arc::new(Mutex::new(store));
        let (jobs, asked) = mpsc::channel::<Job>();
        // The thread holds the store, so that it goes there: to close a connection takes time.
        let held = Arc::clone(&slot);
        let work = move || {
            asked.into_iter().for_each(|job| job());
            drop(held);
        };
        let thread = std::thread::Builder::new().name("store-calls".to_owned()).spawn(work);
        thread.map_err(error)?;
        Ok(Self { slot, place, jobs })
    }

    /// What an app serves.
    ///
    /// # Errors
    /// When it was closed.
    pub fn store(&self) -> napi::Result<Arc<dyn Store>> {
        open(&self.slot).map_err(error)
    }

    /// Asks the store.
    fn ask_store<'env>(
        &self,
        env: &'env Env,
        work: impl FnOnce(&dyn Store) -> Result<Value, Failure> + Send + 'static,
    ) -> napi::Result<Object<'env>> {
        let slot = Arc::clone(&self.slot);
        self.ask(env, move || work(&*open(&slot)?))
    }

    /// Has the thread do something; returns a promise of its result.
    fn ask<'env>(
        &self,
        env: &'env Env,
        work: impl FnOnce() -> Result<Value, Failure> + Send + 'static,
    ) -> napi::Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred::<String, PromiseResolver>()?;
        let job = move || match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => {
                let json = done.to_string();
                deferred.resolve(Box::new(move |_| Ok(json)));
            }
            Ok(Err(failure)) => deferred.reject(failure.to_error()),
            Err(_) => {
                let failure = Failure::from(StoreError::failed("the store panicked"));
                deferred.reject(failure.to_error());
            }
        };
        self.jobs.send(Box::new(job)).map_err(|_| error("the store's thread has ended"))?;
        Ok(promise)
    }
}

/// What a slot holds.
fn open(slot: &Slot) -> Result<Arc<dyn Store>, StoreError> {
    lock(slot).clone().ok_or_else(|| StoreError::failed("the store is closed"))
}

/// A time in milliseconds.
///
/// # Errors
/// When it is none.
pub fn duration(millis: f64) -> napi::Result<Duration> {
    Duration::try_from_secs_f64(millis / 1000.0).map_err(error)
}
