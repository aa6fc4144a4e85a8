//! A store in a file, without a server: redb.
//!
//! ```text
//! table "records": (owner, type) in normal form -> (TTL, data of each record)
//! ```

use super::limit::{READ_MAX, ReadLimit};
use super::record_set::{normal, normal_owner, owners};
use super::zone_names::ZoneNames;
use super::{Announcer, RecordSet, Store, StoreError, Watch};
use redb::{Database, ReadableDatabase, TableDefinition};
use std::error::Error;
use std::fmt;
use std::path::Path;
use zonda_wire::{Name, Type};

/// Owner and type, in normal form.
type Key = (&'static str, &'static str);
/// Time to live in seconds, and the data of each record.
type Data = (u32, Vec<&'static str>);

/// Result of an operation on the file; errors of redb are large, and of many types.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// All records.
const RECORDS: TableDefinition<'static, Key, Data> = TableDefinition::new("records");

/// A store in a file that belongs to one process at a time.
///
/// A change is whole and on the disk when [`set`](Store::set) or [`remove`](Store::remove) returns,
/// whatever becomes of the process then.
pub struct RedbStore {
    database: Database,
    read_max: u64,
    announcer: Announcer,
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    /// When it cannot be opened, is no database, or another process has it.
    pub fn open(file: impl AsRef<Path>) -> Result<Self, StoreError> {
        let file = file.as_ref();
        let open = || -> Outcome<Self> {
            let database = Database::create(file)?;
            let announcer = Announcer::default();
            let store = Self { database, read_max: READ_MAX, announcer };
            store.make_table()?;
            Ok(store)
        };
        open().map_err(|error| StoreError::failed(format!("{}: {error}", file.display())))
    }

    /// Sets how many octets are read at a time at most, as the configuration says.
    #[doc(hidden)]
    #[must_use]
    pub fn read_max(mut self, octets: u64) -> Self {
        self.read_max = octets;
        self
    }

    /// Makes the table, so that it can be read before it is written to.
    fn make_table(&self) -> Outcome<()> {
        let transaction = self.database.begin_write()?;
        transaction.open_table(RECORDS)?;
        transaction.commit()?;
        Ok(())
    }

    /// The records of one owner, or of all that concern some zones.
    fn read(&self, owner: Option<&str>, zones: &ZoneNames) -> Outcome<Vec<RecordSet>> {
        let table = self.database.begin_read()?.open_table(RECORDS)?;
        let (mut sets, mut limit) = (Vec::new(), ReadLimit::new(self.read_max));
        for entry in table.range((owner.unwrap_or_default(), "")..)? {
            let (key, value) = entry?;
            let (of, rtype) = key.value();
            if owner.is_some_and(|owner| owner != of) {
                break;
            }
            if owner.is_none() && !zones.concern(of) {
                continue;
            }
            let (ttl_secs, data) = value.value();
            let octets: usize = data.iter().map(|data| data.len()).sum();
            limit.count(of.len() + rtype.len() + octets)?;
            sets.push(RecordSet::new(of, rtype, ttl_secs, data));
        }
        Ok(sets)
    }

    /// Writes sets of records.
    fn write(&self, sets: &[RecordSet]) -> Outcome<()> {
        let transaction = self.database.begin_write()?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for set in sets {
                let data: Vec<&str> = set.data.iter().map(String::as_str).collect();
                let key = (set.owner.as_str(), set.rtype.as_str());
                table.insert(key, (set.ttl_secs, data))?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Takes records away; whether there were any.
    fn take(&self, owner: &str, rtype: &str) -> Outcome<bool> {
        let transaction = self.database.begin_write()?;
        let was_there = transaction.open_table(RECORDS)?.remove((owner, rtype))?.is_some();
        transaction.commit()?;
        Ok(was_there)
    }
}

impl Store for RedbStore {
    fn load(&self, zone: &Name) -> Result<Vec<RecordSet>, StoreError> {
        self.load_all(std::slice::from_ref(zone))
    }

    fn load_all(&self, zones: &[Name]) -> Result<Vec<RecordSet>, StoreError> {
        self.read(None, &ZoneNames::new(zones)).map_err(StoreError::Failed)
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        let no_zones = ZoneNames::new(&[]);
        self.read(Some(&normal_owner(owner)?), &no_zones).map_err(StoreError::Failed)
    }

    fn set(&self, records: &RecordSet) -> Result<(), StoreError> {
        self.set_many(std::slice::from_ref(records))
    }

    fn set_many(&self, records: &[RecordSet]) -> Result<(), StoreError> {
        let records = normal(records)?;
        self.write(&records).map_err(StoreError::Failed)?;
        self.announcer.announce_many(&owners(&records));
        Ok(())
    }

    fn remove(&self, owner: &str, rtype: Type) -> Result<bool, StoreError> {
        let owner = normal_owner(owner)?;
        let was_there = self.take(&owner, &rtype.to_string()).map_err(StoreError::Failed)?;
        self.announcer.announce(&owner);
        Ok(was_there)
    }

    fn watch(&self, _: &Name) -> Result<Box<dyn Watch>, StoreError> {
        Ok(self.announcer.watch())
    }

    fn watch_all(&self, _: &[Name]) -> Result<Box<dyn Watch>, StoreError> {
        self.watch(&Name::root()) // a watch hears of all names
    }
}
