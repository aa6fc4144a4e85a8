//! Stores that are written in Python.
//!
//! ```text
//! mirror (a thread) ─ call, an octet ─► Calls ─► load, get, watch, in a thread of Python's
//!        ▲  ▲                             │ ▲
//!        │  └────────── give, fail ◄──────┘ │
//!        └───────────── changed ◄───────────┘
//! ```
//! The thread waits for the octet with a call to the system of Python's own, so that no frame of
//! this module lies below the interpreter when it ends and halts its threads where they are.

use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use zonda::RecordSet as Records;
use zonda::store::{Announcer, Store, StoreError, Watch};
use zonda_wire::{Name, Type};

use crate::number::Ttl;

/// What a store gives: owner, type, TTL and data.
type GivenSet = (String, String, Ttl, Vec<String>);

/// After how long the log says that a call has not returned: as long as a start waits.
const LATE: Duration = Duration::from_secs(3);
/// How often it says so again.
const REMINDER: Duration = Duration::from_secs(60);

/// Has an object of Python be followed by a zone.
pub fn open(object: &Bound<'_, PyAny>, zone: &Name) -> PyResult<OwnStore> {
    let (reader, writer) = UnixStream::pair()?;
    let shared = Arc::new(Shared::default());
    let calls = Calls { reader, shared: Arc::clone(&shared) };
    let stores = object.py().import("zonda.stores")?;
    stores.call_method1("start", (object, calls))?;
    Ok(OwnStore { zone: zone.clone(), writer, shared, is_watched: AtomicBool::new(false) })
}

/// A call of a store: the method, and the name that it is called with.
type Call = (&'static str, String);
/// Result of a call, or the text of an exception.
type Outcome = Result<Vec<Records>, String>;

/// What a store and the thread that calls it have in common.
#[derive(Default)]
struct Shared {
    /// A call that the thread has not begun.
    call: Mutex<Option<Call>>,
    /// Result of the last call, until the store takes it.
    outcome: Mutex<Option<Outcome>>,
    has_ended: Condvar,
    announcer: Announcer,
}

/// A store that is written in Python. Its thread ends when it is dropped.
pub struct OwnStore {
    zone: Name,
    /// An octet for each call.
    writer: UnixStream,
    shared: Arc<Shared>,
    /// Whether the object announces changes.
    is_watched: AtomicBool,
}

impl OwnStore {
    /// Has a method be called and waits until it returns, however long that takes; the log says so
    /// if it takes long. A mirror has one call at a time.
    fn call(&self, method: &'static str, name: String) -> Result<Vec<Records>, StoreError> {
        *lock(&self.shared.call) = Some((method, name));
        (&self.writer).write_all(&[0]).map_err(StoreError::failed)?;
        let (began, mut late) = (Instant::now(), LATE);
        let mut outcome = lock(&self.shared.outcome);
        loop {
            let left = (began + late).saturating_duration_since(Instant::now());
            let ended = &self.shared.has_ended;
            let waited = ended.wait_timeout_while(outcome, left, |outcome| outcome.is_none());
            (outcome, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let zone = &self.zone;
            if let Some(outcome) = outcome.take() {
                if late > LATE {
                    let secs = began.elapsed().as_secs_f32();
                    let seconds = format_args!("{secs:.1}");
                    tracing::info!(%zone, %method, %seconds, "the store's method has ended");
                }
                return outcome.map_err(StoreError::failed);
            }
            let secs = late.as_secs();
            tracing::error!(
                %zone, %method, seconds = secs,
                "the store's method has not returned; until it does, the zone stays as it is"
            );
            late += REMINDER;
        }
    }
}

impl Store for OwnStore {
    fn load(&self, zone: &Name) -> Result<Vec<Records>, StoreError> {
        self.call("load", plain(zone))
    }

    fn get(&self, owner: &str) -> Result<Vec<Records>, StoreError> {
        self.call("get", owner.to_owned())
    }

    fn set(&self, _: &Records) -> Result<(), StoreError> {
        Err(StoreError::failed("its program writes to it"))
    }

    fn remove(&self, _: &str, _: Type) -> Result<bool, StoreError> {
        Err(StoreError::failed("its program writes to it"))
    }

    fn watch(&self, zone: &Name) -> Result<Box<dyn Watch>, StoreError> {
        let watch = self.shared.announcer.watch();
        if !self.is_watched.load(Ordering::Relaxed) {
            self.call("watch", plain(zone))?;
            self.is_watched.store(true, Ordering::Relaxed);
        }
        Ok(watch)
    }
}

/// The calls of a store, as its thread of Python takes them.
#[pyclass(frozen, module = "zonda._core")]
pub struct Calls {
    reader: UnixStream,
    shared: Arc<Shared>,
}

#[pymethods]
impl Calls {
    /// The descriptor that has an octet for each call, and ends when there will be none.
    #[getter]
    fn fd(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// The method to call, and the name to call it with.
    fn take(&self) -> Option<Call> {
        lock(&self.shared.call).take()
    }

    /// Says what the method has returned.
    fn give(&self, sets: Vec<GivenSet>) -> PyResult<()> {
        let records =
            |(owner, rtype, ttl, data): GivenSet| Ok(Records::new(owner, rtype, ttl.secs()?, data));
        self.end(Ok(sets.into_iter().map(records).collect::<PyResult<_>>()?));
        Ok(())
    }

    /// Says what the method has raised.
    fn fail(&self, why: String) {
        self.end(Err(why));
    }

    /// Announces to the zone that records of an owner changed, or any.
    #[pyo3(signature = (owner=None))]
    fn changed(&self, owner: Option<&str>) {
        match owner {
            Some(owner) => self.shared.announcer.announce(owner),
            None => self.shared.announcer.announce_all(),
        }
    }
}

impl Calls {
    /// Sets the result of the call.
    fn end(&self, outcome: Outcome) {
        *lock(&self.shared.outcome) = Some(outcome);
        self.shared.has_ended.notify_all();
    }
}

/// A name as stores write them: without its final dot.
fn plain(name: &Name) -> String {
    let text = name.to_string();
    match text.strip_suffix('.') {
        Some(plain) if !plain.is_empty() => plain.to_owned(),
        _ => text,
    }
}

/// What a lock protects, for a moment; all that are here are whole after any panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
