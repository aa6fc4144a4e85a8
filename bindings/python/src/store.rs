//! Stores as Python's code holds them: those of the crate `zonda`.
//!
//! Their methods block, and leave the interpreter to other threads meanwhile. Stores that are
//! written in Python are in [`own_store`].

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyType};
use zonda::Store as _;
use zonda::store::StoreError as Failure;
use zonda_wire::Name;

use crate::number::{RecordError, RecordTypeError, Ttl, shown};
use crate::own_store;
use crate::record::read_type;

pyo3::import_exception!(zonda.errors, ConfigError);
pyo3::import_exception!(zonda.errors, ConfigTypeError);
pyo3::import_exception!(zonda.errors, StoreError);
pyo3::import_exception!(zonda.errors, ZoneError);

/// What Python calls records of a store: owner, type, time to live and data.
pub type RecordSet = (String, String, u32, Vec<String>);

/// The class of [`RecordSet`].
static RECORD_SET: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Records outside of the server, which a zone can follow.
#[pyclass(frozen, subclass, module = "zonda")]
pub struct Store {
    store: Arc<dyn zonda::Store>,
    /// Where the records are, without a password; empty for those in memory.
    place: String,
}

impl Store {
    /// What an object of a class of stores begins with.
    fn of<C>(store: impl zonda::Store + 'static, place: String, class: C) -> PyClassInitializer<C>
    where
        C: PyClass<BaseType = Self>,
    {
        PyClassInitializer::from(Self { store: Arc::new(store), place }).add_subclass(class)
    }
}

#[pymethods]
impl Store {
    /// All records of a zone, and perhaps of other zones.
    fn load<'py>(&self, py: Python<'py>, zone: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let zone = zone_name(zone)?;
        let sets = py.detach(|| self.store.load(&zone)).map_err(store_error)?;
        sets.into_iter().map(|set| record_set(py, set)).collect()
    }

    /// All records of an owner.
    fn get<'py>(&self, py: Python<'py>, owner: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let sets = py.detach(|| self.store.get(owner)).map_err(store_error)?;
        sets.into_iter().map(|set| record_set(py, set)).collect()
    }

    /// Puts records in place of all that have the same owner and type, in one step.
    fn set(
        &self,
        py: Python<'_>,
        owner: &str,
        rtype: &Bound<'_, PyAny>,
        ttl: Ttl,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let records = set_of(owner, rtype, ttl, data)?;
        py.detach(|| self.store.set(&records)).map_err(store_error)
    }

    /// Puts each of several sets in place of all that have its owner and type, in one step.
    fn set_many(&self, py: Python<'_>, sets: &Bound<'_, PyAny>) -> PyResult<()> {
        let set = |set: PyResult<Bound<'_, PyAny>>| {
            let set = set?;
            let wrong = |_| {
                let text = format!("expected (owner, rtype, ttl, data), not {}", shown(&set));
                RecordTypeError::new_err(text)
            };
            let (owner, rtype, ttl, data): Set<'_> = set.extract().map_err(wrong)?;
            set_of(&owner, &rtype, ttl, &data)
        };
        let sets = sets.try_iter()?.map(set).collect::<PyResult<Vec<_>>>()?;
        py.detach(|| self.store.set_many(&sets)).map_err(store_error)
    }

    /// Takes the records of an owner and a type away; whether there were any.
    fn remove(&self, py: Python<'_>, owner: &str, rtype: &Bound<'_, PyAny>) -> PyResult<bool> {
        let rtype = read_type(rtype).map_err(RecordError::new_err)?;
        py.detach(|| self.store.remove(owner, rtype)).map_err(store_error)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (class, place) = (slf.get_type().name()?, &slf.get().place);
        let space = if place.is_empty() { "" } else { " " };
        Ok(format!("<zonda.{class}{space}{place}>"))
    }
}

/// A store that forgets all when the process ends.
#[pyclass(frozen, extends = Store, module = "zonda")]
pub struct MemoryStore;

#[pymethods]
impl MemoryStore {
    /// One without records.
    #[new]
    fn new() -> PyClassInitializer<Self> {
        Store::of(zonda::MemoryStore::new(), String::new(), Self)
    }
}

/// A store in a file that belongs to one process at a time.
#[pyclass(frozen, extends = Store, module = "zonda")]
pub struct RedbStore;

#[pymethods]
impl RedbStore {
    /// Opens a file, or makes it.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<PyClassInitializer<Self>> {
        let place = path.display().to_string();
        let store = py.detach(|| zonda::RedbStore::open(path)).map_err(store_error)?;
        Ok(Store::of(store, place, Self))
    }
}

/// A store in a Redis server.
#[pyclass(frozen, extends = Store, module = "zonda")]
pub struct RedisStore;

#[pymethods]
impl RedisStore {
    /// In the server at a URL, which is connected to when it is needed.
    #[new]
    // `help` shows the number.
    #[pyo3(signature = (url, *, prefix="", compare_every=Interval::DEFAULT))]
    #[pyo3(text_signature = "(url, *, prefix='', compare_every=30.0)")]
    fn new(url: &str, prefix: &str, compare_every: Interval) -> PyResult<PyClassInitializer<Self>> {
        let every = compare_every.0?;
        let store = zonda::RedisStore::new(url).map_err(wrong_address)?;
        let of_prefix = if prefix.is_empty() { String::new() } else { format!(" {prefix:?}") };
        let place = store.place() + &of_prefix;
        Ok(Store::of(store.prefix(prefix).compare_every(every), place, Self))
    }
}

/// How often all is compared, of an argument in seconds.
struct Interval(PyResult<Duration>);

impl Interval {
    /// The crate's own default.
    const DEFAULT: Self = Self(Ok(Duration::from_secs(30)));
}

impl<'py> FromPyObject<'_, 'py> for Interval {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        let given = shown(&object);
        let wrong = format!("compare_every must be a number of seconds from 0 on, not {given}");
        let secs = object.extract::<f64>().ok().filter(|_| !object.is_instance_of::<PyBool>());
        let Some(secs) = secs else { return Ok(Self(Err(ConfigTypeError::new_err(wrong)))) };
        Ok(Self(Duration::try_from_secs_f64(secs).map_err(|_| ConfigError::new_err(wrong))))
    }
}

/// A store in a PostgreSQL database.
#[pyclass(frozen, extends = Store, module = "zonda")]
pub struct PostgresStore;

#[pymethods]
impl PostgresStore {
    /// In the database that parameters name, which is connected to when it is needed.
    #[new]
    // `help` shows the number.
    #[pyo3(signature = (url, *, compare_every=Interval::DEFAULT))]
    #[pyo3(text_signature = "(url, *, compare_every=30.0)")]
    fn new(url: &str, compare_every: Interval) -> PyResult<PyClassInitializer<Self>> {
        let store = zonda::PostgresStore::new(url).map_err(wrong_address)?;
        let place = store.place();
        Ok(Store::of(store.compare_every(compare_every.0?), place, Self))
    }
}

/// The stores that zones are to follow, by the names of the zones: Zonda's own stores, and those
/// written in Python.
pub fn open(
    py: Python<'_>,
    stores: Vec<(String, Py<PyAny>)>,
) -> PyResult<Vec<(Name, Arc<dyn zonda::Store>)>> {
    let mut opened: Vec<(Name, Arc<dyn zonda::Store>)> = Vec::with_capacity(stores.len());
    for (zone, store) in stores {
        let name = zone_name(&zone)?;
        opened.retain(|(other, _)| *other != name); // the last that was given
        let store = open_one(store.bind(py), &name)?;
        opened.push((name, store));
    }
    Ok(opened)
}

/// A store that a zone is to follow: one of Zonda's own, or one written in Python.
pub fn open_one(store: &Bound<'_, PyAny>, zone: &Name) -> PyResult<Arc<dyn zonda::Store>> {
    Ok(match store.cast::<Store>() {
        Ok(ours) => Arc::clone(&ours.get().store),
        Err(_) => Arc::new(own_store::open(store, zone)?),
    })
}

/// The name of a zone, in lower case.
pub fn zone_name(text: &str) -> PyResult<Name> {
    read_zone_name(text).map_err(ZoneError::new_err)
}

/// Raises `ZoneError` for a text that is not the name of a zone.
#[pyfunction]
pub fn check_zone_name(text: &str) -> PyResult<()> {
    zone_name(text).map(drop)
}

/// The name of a zone, in lower case, or what is wrong with it.
pub fn read_zone_name(text: &str) -> Result<Name, String> {
    let name = text.parse::<Name>().map(|name| name.to_lowercase());
    name.map_err(|error| format!("zone {text:?}: {error}"))
}

/// Records as Python's code sees them.
fn record_set(py: Python<'_>, set: zonda::RecordSet) -> PyResult<Bound<'_, PyAny>> {
    let class = RECORD_SET.import(py, "zonda.stores", "RecordSet")?;
    let set: RecordSet = (set.owner, set.rtype, set.ttl_secs, set.data);
    class.call1(set)
}

/// A record set as Python's code gives it.
type Set<'py> = (String, Bound<'py, PyAny>, Ttl, Bound<'py, PyAny>);

/// A record set as stores take it.
fn set_of(
    owner: &str,
    rtype: &Bound<'_, PyAny>,
    ttl: Ttl,
    data: &Bound<'_, PyAny>,
) -> PyResult<zonda::RecordSet> {
    let rtype = read_type(rtype).map_err(RecordError::new_err)?;
    let wrong = |_| {
        let text =
            format!("{owner} {rtype}: the data must be a list of texts, not {}", shown(data));
        RecordTypeError::new_err(text)
    };
    let texts = data.extract::<Vec<String>>().map_err(wrong)?;
    Ok(zonda::RecordSet::new(owner, rtype, ttl.secs_of(rtype)?, texts))
}

/// The exception for what a store did not do.
fn store_error(error: Failure) -> PyErr {
    match error {
        Failure::Record(_) => RecordError::new_err(error.to_string()),
        _ => StoreError::new_err(error.to_string()),
    }
}

/// The exception for what names no database.
fn wrong_address(error: Failure) -> PyErr {
    ConfigError::new_err(error.to_string())
}
