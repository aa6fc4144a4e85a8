//! The file of the zones that are members of a catalog, so that they are served at the next start
//! before the catalog was read.
//!
//! The records by which a catalog lists its members (their zones and groups) are kept as the
//! records of a zone of a primary are ([`ZoneFile`]), in the directory `catalogs` of `state`.

use crate::state_directory;
use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use zonda_config::Config;
use zonda_secondary::catalog::push_records;
use zonda_secondary::zone_file::{KeptTimers, StoredZone};
use zonda_secondary::{Member, Membership, ZoneFile};
use zonda_wire::{Name, Type};
use zonda_zone::records::TooManyRecords;
use zonda_zone::{Diff, Record, Records};

/// The file of the members of a catalog.
pub struct CatalogFile {
    /// The file; none where there is no place for it.
    file: Option<ZoneFile>,
    /// The zones about which the file is wrong, and what it says of them.
    changed: HashMap<Name, Option<Member>>,
    /// Why the members that the file has are not known, if that is so: it is left as it is then.
    unread: Option<String>,
    /// Why the file could not be written the last time, in words, if that is so.
    unwritten: Option<String>,
}

impl CatalogFile {
    /// Reads the file of a catalog; returns the records in it. What is wrong is logged.
    pub fn open(config: &Config, catalog: &Name) -> (Self, Records) {
        let directory = state_directory::path(config).and_then(|path| {
            let path = path.join("catalogs");
            state_directory::make(&path)?;
            Ok(path)
        });
        let directory = directory.inspect_err(|error| {
            tracing::error!(error, "members of catalogs are not kept on the disk");
        });
        let file = directory.ok().map(|directory| ZoneFile::new(directory, catalog));
        let mut opened = Self { file, changed: HashMap::new(), unread: None, unwritten: None };
        let records = opened.read(catalog).unwrap_or_default();
        (opened, records)
    }

    /// Reads the file; returns the records in it, or nothing if it cannot be read, which is logged.
    pub fn read(&mut self, catalog: &Name) -> Option<Records> {
        let read = self.file.as_mut().map(ZoneFile::read).transpose();
        let all = |stored: &StoredZone| {
            records(stored).map_err(|_| std::io::Error::other("it has over 4 GiB"))
        };
        let read = read.and_then(|stored| stored.flatten().as_ref().map(all).transpose());
        match read {
            Ok(records) => {
                if self.unread.take().is_some() {
                    // What was noted meanwhile did not know what the file has.
                    let path = self.file.take().map(|file| file.path());
                    let directory = path.as_deref().and_then(Path::parent);
                    self.file = directory.map(|it| ZoneFile::new(it.to_path_buf(), catalog));
                }
                Some(records.unwrap_or_default())
            }
            Err(error) => {
                let path = self.file.iter().map(|file| file.path().display().to_string());
                let path = path.collect::<String>();
                let unread = match error.kind() {
                    ErrorKind::InvalidData => format!("{path} is damaged"),
                    _ => format!("{path}: {error}"),
                };
                if self.unread.as_ref() != Some(&unread) {
                    tracing::error!(
                        %catalog,
                        error = unread,
                        "the members of a catalog cannot be read: what it lists is served, and it \
                         is not known what it has removed"
                    );
                }
                self.unread = Some(unread);
                None
            }
        }
    }

    /// Why the members that the file has are not known, if that is so.
    pub fn unread(&self) -> Option<String> {
        self.unread.as_ref().map(|error| {
            format!(
                "the members of the last start cannot be read, so that what the catalog lists is \
                 served, and it is not known what it has removed since: {error}; bring the file \
                 back, or remove it: it is looked at every 10 seconds"
            )
        })
    }

    /// Notes that a zone is no longer the member that it was, or becomes one.
    pub fn note(&mut self, zone: &Name, former: Option<&Member>) {
        self.changed.entry(zone.clone()).or_insert_with(|| former.cloned());
    }

    /// Has the disk hold what has changed, if that is not so. What is wrong is logged once, and
    /// written the next time.
    pub fn keep(&mut self, catalog: &Name, membership: &Membership) {
        let is_due = self.unread.is_none() && !self.changed.is_empty();
        let Some(file) = self.file.as_mut().filter(|_| is_due) else { return };
        let timers = KeptTimers::default();
        let own = |zone: &Name| membership.member(zone).filter(|it| it.catalog == *catalog);
        let diff = difference(catalog, &self.changed, own);
        let appended = match (file.is_to_be_written_anew(), diff) {
            (false, Ok(diff)) => file.append(&[diff], timers).is_ok(),
            _ => false,
        };
        let written = match appended {
            true => Ok(()),
            false => match membership.records(catalog) {
                Ok(records) => file.replace(&records, timers),
                Err(_) => Err(std::io::Error::other("the members take over 4 GiB")),
            },
        };
        if let Err(error) = written {
            let (path, error) = (file.path().display().to_string(), error.to_string());
            if self.unwritten.as_ref() != Some(&error) {
                tracing::error!(%catalog, path, error, "members cannot be kept on the disk");
            }
            self.unwritten = Some(error);
            return;
        }
        if self.unwritten.take().is_some() {
            tracing::info!(%catalog, "the members of a catalog are kept on the disk again");
        }
        self.changed.clear();
    }
}

/// What tells the members that a file has from those that there are.
fn difference<'m>(
    catalog: &Name,
    changed: &HashMap<Name, Option<Member>>,
    own: impl Fn(&Name) -> Option<&'m Member>,
) -> Result<Diff, TooManyRecords> {
    let mut diff = Diff::default();
    for (zone, former) in changed {
        let push = |member: Option<&Member>, records: &mut Records| match member {
            Some(it) => push_records(catalog, (&it.id, zone, &it.groups), records),
            None => Ok(()),
        };
        push(former.as_ref(), &mut diff.removed)?;
        push(own(zone), &mut diff.added)?;
    }
    Ok(diff)
}

/// The records that a file holds, with all changes.
fn records(stored: &StoredZone) -> Result<Records, TooManyRecords> {
    let key = |record: Record<'_>| (record.owner.to_vec(), record.rtype, record.rdata.to_vec());
    let mut all: BTreeSet<(Vec<u8>, Type, Vec<u8>)> = stored.records.iter().map(key).collect();
    for change in &stored.changes {
        change.removed.iter().for_each(|record| _ = all.remove(&key(record)));
        all.extend(change.added.iter().map(key));
    }
    let mut records = Records::default();
    for (owner, rtype, rdata) in &all {
        records.push(Record { owner, rtype: *rtype, ttl: 0, rdata }, 0)?;
    }
    Ok(records)
}
