//! Stores: records outside of the server, which a zone follows.
//!
//! ```text
//!                    watch, load, get                      records, changes
//! database ◄─► Store ◄──────────────── feed of the server ──────────────────► zones ─► workers
//!                ▲
//!      set, remove (the user's program)
//! ```
//!
//! Queries are answered from the zone and never wait for a store. A store that cannot be reached
//! leaves the last data in service; one that was never reached leaves its zone SERVFAIL.

mod changes;
#[cfg(feature = "redb")]
mod embedded;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod escape;
#[cfg(any(feature = "postgres", feature = "redb", feature = "redis"))]
mod limit;
mod memory;
#[cfg(feature = "postgres")]
mod postgresql;
mod record_set;
#[cfg(feature = "redis")]
mod redis;
#[cfg(all(any(feature = "postgres", feature = "redis"), not(feature = "tls")))]
#[path = "no_tls.rs"]
mod tls;
#[cfg(all(any(feature = "postgres", feature = "redis"), feature = "tls"))]
mod tls;
mod watches;
mod zone_content;
mod zone_names;

pub use changes::{Announcer, Changes};
#[cfg(feature = "redb")]
pub use embedded::RedbStore;
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgresql::PostgresStore;
pub use record_set::{RecordError, RecordSet};
#[cfg(feature = "redis")]
pub use redis::RedisStore;
pub use zone_content::ZoneContent;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use zonda_wire::{Name, Type};
use zone_names::ZoneNames;

/// Keeps records outside of the server. All methods may block.
///
/// A store calls an owner what it likes, as long as that is its name in presentation format;
/// `WWW.example.org.` and `www.example.org` may be two owners of the store and are one in the zone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a store of records",
    label = "expected a store",
    note = "implement `zonda::Store` for it, or use `zonda::MemoryStore`"
)]
pub trait Store: Send + Sync {
    /// All records of a name and the names below it. Records of other names are passed over, wrong
    /// ones are left out of the zone one by one.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn load(&self, zone: &Name) -> Result<Vec<RecordSet>, StoreError>;

    /// All records of several names and the names below each. By default those below the name that
    /// all have in common are read, and what belongs to none of them is dropped.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[doc(hidden)]
    fn load_all(&self, zones: &[Name]) -> Result<Vec<RecordSet>, StoreError> {
        let names = ZoneNames::new(zones);
        let mut sets = self.load(names.common_ancestor())?;
        sets.retain(|set| names.concern(&set.owner));
        Ok(sets)
    }

    /// All records of an owner, as [`load`](Self::load) and [`Watch::wait`] call it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError>;

    /// Puts records in place of all that have the same owner and type, in one step.
    ///
    /// # Errors
    /// When a record is wrong, or the store cannot be written to.
    fn set(&self, records: &RecordSet) -> Result<(), StoreError>;

    /// Puts each of several sets in place of all records that have its owner and type. Stores of
    /// this crate do that in one step, and a wrong set changes nothing; by default, one is put
    /// after the other.
    ///
    /// # Errors
    /// When a record is wrong, or the store cannot be written to.
    fn set_many(&self, records: &[RecordSet]) -> Result<(), StoreError> {
        records.iter().try_for_each(|records| self.set(records))
    }

    /// Takes the records of an owner and a type away; whether there were any.
    ///
    /// # Errors
    /// When the owner is no name, or the store cannot be written to.
    fn remove(&self, owner: &str, rtype: Type) -> Result<bool, StoreError>;

    /// Begins to watch a name and the names below it. What changes after this call is reported,
    /// once or several times.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn watch(&self, zone: &Name) -> Result<Box<dyn Watch>, StoreError>;

    /// Begins to watch several names, and the names below each, over one connection where the store
    /// has connections. By default each name is watched by itself, and one after the other is asked
    /// for changes: those of all but one name are noticed within 50 milliseconds.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn watch_all(&self, zones: &[Name]) -> Result<Box<dyn Watch>, StoreError> {
        watches::watch_each(zones, |zone| self.watch(zone))
    }

    /// What two handles of one store have in common, and handles of different stores have not:
    /// zones of one store are followed by one thread. Nothing where that is unknown.
    #[doc(hidden)]
    fn identity(&self) -> Option<usize> {
        (size_of_val(self) > 0).then(|| std::ptr::from_ref(self).cast::<u8>() as usize)
    }
}

/// Notices changes of a store.
pub trait Watch: Send {
    /// What changed since this was called last; waits for so long until something does. With no
    /// patience, what is known at once.
    ///
    /// # Errors
    /// When changes may have been missed. The watch is of no use from then on.
    fn wait(&mut self, patience: Duration) -> Result<Changes, StoreError>;
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn load(&self, zone: &Name) -> Result<Vec<RecordSet>, StoreError> {
        (**self).load(zone)
    }

    fn load_all(&self, zones: &[Name]) -> Result<Vec<RecordSet>, StoreError> {
        (**self).load_all(zones)
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        (**self).get(owner)
    }

    fn set(&self, records: &RecordSet) -> Result<(), StoreError> {
        (**self).set(records)
    }

    fn set_many(&self, records: &[RecordSet]) -> Result<(), StoreError> {
        (**self).set_many(records)
    }

    fn remove(&self, owner: &str, rtype: Type) -> Result<bool, StoreError> {
        (**self).remove(owner, rtype)
    }

    fn watch(&self, zone: &Name) -> Result<Box<dyn Watch>, StoreError> {
        (**self).watch(zone)
    }

    fn watch_all(&self, zones: &[Name]) -> Result<Box<dyn Watch>, StoreError> {
        (**self).watch_all(zones)
    }

    fn identity(&self) -> Option<usize> {
        (**self).identity()
    }
}

/// Why a store did not do what it was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// What it was to keep could not be served.
    Record(RecordError),
    /// The URL, the parameters or the options of the store are wrong.
    Config(Box<dyn Error + Send + Sync>),
    /// The store cannot be reached, or reports an error.
    Failed(Box<dyn Error + Send + Sync>),
}

impl StoreError {
    /// Of what a database says.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }

    /// Of a URL, of parameters or of options that are wrong.
    pub fn config(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Config(error.into())
    }

    /// Returns the code of the error, which is the same in Rust, Node.js and Python:
    /// `ZONDA_RECORD` for what could not be served, `ZONDA_CONFIG` for a wrong URL, wrong
    /// parameters or options, or else `ZONDA_STORE`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Record(_) => "ZONDA_RECORD",
            Self::Config(_) => "ZONDA_CONFIG",
            Self::Failed(_) => "ZONDA_STORE",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(error) => error.fmt(f),
            Self::Config(error) | Self::Failed(error) => {
                let mut said = error.to_string();
                let mut source = error.source();
                while let Some(error) = source {
                    let why = error.to_string();
                    if !said.contains(&why) {
                        said = format!("{said}: {why}");
                    }
                    source = error.source();
                }
                f.write_str(&said)
            }
        }
    }
}

impl Error for StoreError {
    /// Returns the error that [`failed`](StoreError::failed) or [`config`](StoreError::config) was
    /// called with, or what is wrong with
    /// the record; the text of this error has its text, too.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Record(error) => Some(error),
            Self::Config(error) | Self::Failed(error) => Some(&**error),
        }
    }
}

impl From<RecordError> for StoreError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn the_error_of_a_database_is_the_source_and_can_be_told_by_its_type() {
        let error = StoreError::failed(io::Error::from(io::ErrorKind::ConnectionRefused));
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
        let error: StoreError =
            RecordSet::new("a..b", "A", 60, ["192.0.2.1"]).normal().map(drop).unwrap_err().into();
        assert!(error.source().is_some_and(|source| source.is::<RecordError>()), "{error}");
    }

    #[cfg(feature = "redis")]
    #[test]
    fn the_error_of_a_connection_to_redis_can_be_told_by_its_kind() {
        let error = RedisStore::new("redis://127.0.0.1:1").unwrap().get("a.test").unwrap_err();
        let of_server = error.source().and_then(Error::source);
        let of_system = of_server.and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(of_system.map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
    }
}
