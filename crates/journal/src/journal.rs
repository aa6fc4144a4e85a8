//! The journal that its owner writes.

use crate::error::Error;
use crate::history::{self, History};
use crate::index::{HistoryLimit, Index, Place, Serials, ZoneEntries};
use crate::record::{self, END_OCTETS, HEAD_OCTETS, Header, Kind};
use crate::scan::{self, Torn};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_netio::file::{append, is_unlinked, try_lock};
use zonda_wire::Name;

/// Octets of a payload at most.
pub const PAYLOAD_OCTETS_MAX: usize = 64 << 20;
/// Octets of the records of a group at most, unless it is one record: they wait in memory.
pub const GROUP_OCTETS_MAX: usize = 64 << 20;
/// Octets of a file below which it is not worth rewriting.
const COMPACTION_OCTETS_MIN: u64 = 1 << 20;
/// Least and greatest number of octets of zeros written behind a group when the file has to grow,
/// before rounding to 4 KiB. A group that takes the place of zeros costs the disk its octets alone;
/// one that makes the file longer costs a commit of the file system's own journal besides.
const ROOM_OCTETS: [u64; 2] = [4 << 10, 256 << 10];
/// Capacity of the group's buffer that is kept from one commit to the next.
const GROUP_OCTETS_KEPT: usize = 1 << 20;

/// A change that is to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'e> {
    /// The zone that changes.
    pub zone: &'e Name,
    /// The serial before the change: that of the zone's last entry, if the journal has one.
    pub from: u32,
    /// The serial after the change.
    pub to: u32,
    /// The change, at most [`PAYLOAD_OCTETS_MAX`] octets.
    pub payload: &'e [u8],
}

/// Contents found in a journal when it was opened, and the end that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The size of what was found.
    pub sizes: Sizes,
    /// The end of the file that was cut off: a commit that had not been acknowledged.
    pub torn: Option<Torn>,
}

/// How much a journal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Zones that have entries.
    pub zones: usize,
    /// Zones whose files lack some of their entries.
    pub unreleased_zones: usize,
    /// Entries of all zones.
    pub entries: u64,
    /// Octets of these entries' records.
    pub octets: u64,
    /// Octets of the file, with what is no longer needed, but without the zeros at its end.
    pub file_octets: u64,
}

/// An append-only file of zones' changes, with an index in memory. One thread owns it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Arc<File>,
    /// The id in the file's head.
    id: u64,
    /// Octets of the file that are whole and on the disk; the next group begins here.
    octets: u64,
    /// Octets of the file with the zeros at its end, which the next groups take the place of.
    file_octets: u64,
    bound: HistoryLimit,
    index: Index,
    group: Group,
    /// Whether an error has left unknown what is on the disk.
    has_failed: bool,
    /// The file beside the journal that is locked as long as it is open, and never replaced.
    _lock: File,
}

/// The records appended since the last commit.
#[derive(Debug, Default)]
struct Group {
    octets: Vec<u8>,
    records: Vec<PendingRecord>,
    /// The last serial of each zone with records in the group; `None` if its entries are void.
    last: HashMap<Box<[u8]>, Option<u32>>,
}

/// A record that waits for its commit.
#[derive(Debug)]
struct PendingRecord {
    /// The name of the zone in wire form, in lower case.
    zone: Box<[u8]>,
    /// The kind of the record.
    kind: Kind,
    /// The place of an entry; `None` of other records.
    place: Option<Place>,
    /// The serial after the change.
    to: u32,
}

/// A smaller file that takes the place of the journal's.
struct CompactedFile {
    file: File,
    /// The id in the file's head.
    id: u64,
    /// The octets of the file.
    octets: u64,
    /// The offset of each entry in the old file, in ascending order, and in the new one.
    moved: Vec<(u64, u64)>,
}

impl Journal {
    /// Opens the journal at a path, or makes an empty one; its directory must be there. Keeps other
    /// processes away by a lock of the file `.lock` beside it, which stays. Cuts off a torn end.
    /// Reads the whole file, with a buffer of fixed size.
    ///
    /// # Errors
    /// When the file cannot be used; it is unchanged then.
    pub fn open(path: &Path, bound: HistoryLimit) -> Result<(Self, Recovery), Error> {
        let lock = lock(path)?;
        let beside = beside(path, ".new");
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io(&beside, "removed", error));
            }
            _ => {} // what a killed process left is of no use
        }
        if matches!(fs::symlink_metadata(path), Err(error) if error.kind() == ErrorKind::NotFound) {
            create(path, &beside)?;
        }
        let failed = |action| move |error| Error::io(path, action, error);
        if !fs::metadata(path).map_err(failed("opened"))?.is_file() {
            return Err(Error::OtherFormat(path.to_owned())); // reading a pipe could last for ever
        }
        let file = File::options().read(true).write(true).open(path).map_err(failed("opened"))?;
        let mut index = Index::default();
        let extent = scan::read(&file, |found| {
            let Ok(octets) = u32::try_from(found.octets) else { return Err("a record too long") };
            match found.kind {
                Kind::Forget => index.forget(found.zone),
                Kind::Release => _ = index.release(found.zone, found.to, bound),
                Kind::Entry | Kind::End => {}
            }
            if found.kind != Kind::Entry {
                return Ok(());
            }
            let place = Place { offset: found.offset, from: found.from, octets };
            let is_next = index.push(found.zone, place, found.to);
            if is_next { Ok(()) } else { Err("a change that does not continue its zone's last") }
        });
        let extent = extent.map_err(|fault| Error::from_fault(path, fault))?;
        file.set_len(extent.octets).map_err(failed("cut"))?; // zeros, or a torn end
        file.sync_data().map_err(failed("written"))?;
        let mut journal = Self {
            path: path.to_owned(),
            file: Arc::new(file),
            id: extent.id,
            octets: extent.octets,
            file_octets: extent.octets,
            bound,
            index,
            group: Group::default(),
            has_failed: false,
            _lock: lock,
        };
        if !extent.is_ended && journal.index.entries() > 0 {
            journal.end_group();
        }
        let opened = Recovery { sizes: journal.sizes(), torn: extent.torn };
        Ok((journal, opened))
    }

    /// Appends an entry to the group of the next commit. Nothing is written yet.
    ///
    /// # Errors
    /// When the entry does not continue the zone's last one or is too long, or the group is full.
    pub fn append(&mut self, entry: Entry<'_>) -> Result<(), Error> {
        let zone = || entry.zone.clone();
        if entry.payload.len() > PAYLOAD_OCTETS_MAX {
            return Err(Error::TooLong { zone: zone(), octets: entry.payload.len() });
        }
        let name = entry.zone.to_lowercase();
        if let Some(last) = self.last(name.as_wire()).filter(|last| *last != entry.from) {
            return Err(Error::Gap { zone: zone(), last, from: entry.from });
        }
        self.push(Kind::Entry, name.as_wire(), (entry.from, entry.to), entry.payload)
    }

    /// Voids all entries of a zone with the next commit, as it is removed or replaced.
    ///
    /// # Errors
    /// When the group is full.
    pub fn forget(&mut self, zone: &Name) -> Result<(), Error> {
        let name = zone.to_lowercase();
        match self.last(name.as_wire()) {
            Some(_) => self.push(Kind::Forget, name.as_wire(), (0, 0), &[]),
            None => Ok(()),
        }
    }

    /// Returns the serial that the next entry of a zone must begin with, if the journal knows one.
    fn last(&self, zone: &[u8]) -> Option<u32> {
        match self.group.last.get(zone) {
            Some(last) => *last,
            None => self.index.zone(zone).map(ZoneEntries::last),
        }
    }

    /// Adds a record to the group.
    fn push(
        &mut self,
        kind: Kind,
        name: &[u8],
        (from, to): (u32, u32),
        payload: &[u8],
    ) -> Result<(), Error> {
        if self.has_failed {
            return Err(Error::Failed(self.path.clone()));
        }
        let group = &mut self.group;
        let name_octets = name.len() as u8; // at most 255
        let payload_octets = payload.len() as u32; // at most PAYLOAD_OCTETS_MAX
        let since_group = group.octets.len() as u32; // at most GROUP_OCTETS_MAX
        let header = Header { kind, name_octets, since_group, from, to, payload_octets };
        let octets = header.record_octets();
        if since_group > 0 && u64::from(since_group) + octets > GROUP_OCTETS_MAX as u64 {
            return Err(Error::GroupFull);
        }
        let offset = self.octets + u64::from(since_group);
        record::push(&mut group.octets, (self.id, offset), &header, name, payload);
        let place = Place { offset, from, octets: octets as u32 }; // 64 MiB and 293 at most
        let is_entry = kind == Kind::Entry;
        if kind != Kind::Release {
            group.last.insert(name.into(), is_entry.then_some(to));
        }
        let place = is_entry.then_some(place);
        group.records.push(PendingRecord { zone: name.into(), kind, place, to });
        Ok(())
    }

    /// Writes all that was appended and waits until it is on the disk; how many records there were.
    ///
    /// # Errors
    /// When it could not be written: none of it is in the journal then, unless the error says that
    /// this is not known ([`Self::has_failed`]).
    pub fn commit(&mut self) -> Result<usize, Error> {
        let mut group = std::mem::take(&mut self.group);
        if self.has_failed {
            return Err(Error::Failed(self.path.clone()));
        }
        if group.records.is_empty() {
            return Ok(0);
        }
        match is_unlinked(&self.file) {
            Ok(true) => return Err(Error::Removed(self.path.clone())),
            Ok(false) => {}
            Err(error) => return Err(Error::io(&self.path, "looked at", error)),
        }
        let octets = group.octets.len() as u64;
        self.write_group(&mut group.octets)?;
        if let Err(error) = self.file.sync_data() {
            // The kernel may have thrown the octets away, and reports that once.
            self.has_failed = true;
            return Err(Error::io(&self.path, "written to the disk", error));
        }
        self.octets += octets;
        self.end_group();
        for pending in &group.records {
            match pending.place {
                Some(place) => {
                    self.index.push(&pending.zone, place, pending.to); // `append` has compared
                    self.index.drop_oldest(&pending.zone, self.bound);
                }
                None if pending.kind == Kind::Forget => self.index.forget(&pending.zone),
                None => {} // what is released was released at once
            }
        }
        let count = group.records.len();
        self.keep_buffers(group);
        Ok(count)
    }

    /// Writes a group behind what is whole; behind it zeros, if the file has to grow.
    ///
    /// # Errors
    /// When it could not be written; nothing of it is in the file then, unless that has failed.
    fn write_group(&mut self, group: &mut Vec<u8>) -> Result<(), Error> {
        let octets = group.len();
        let end = self.octets + octets as u64 + END_OCTETS;
        if end > self.file_octets {
            let [least, most] = ROOM_OCTETS;
            let room_end = (end + end.clamp(least, most)).next_multiple_of(least);
            let with_room = usize::try_from(room_end - self.octets).unwrap_or(octets);
            group.resize(with_room, 0);
            if self.file.write_all_at(group, self.octets).is_ok() {
                self.file_octets = room_end;
                return Ok(());
            }
            group.truncate(octets); // a disk without room for zeros may have some for the group
        }
        if let Err(error) = self.file.write_all_at(group, self.octets) {
            // What was written of it must not stay, or a later group would lie behind it.
            self.has_failed = self.file.set_len(self.octets).is_err();
            self.file_octets = self.octets;
            return Err(Error::io(&self.path, "written", error));
        }
        Ok(())
    }

    /// Keeps the memory of a group that was written for the next one, unless it is large.
    fn keep_buffers(&mut self, mut group: Group) {
        if group.octets.capacity() <= GROUP_OCTETS_KEPT {
            group.octets.clear();
            group.records.clear();
            group.last.clear();
            self.group = group;
        }
    }

    /// Writes behind the last group that it is on the disk. It is no loss if that fails: the next
    /// group overwrites it, and proves as much.
    fn end_group(&mut self) {
        let mut end = Vec::new();
        push_end(&mut end, self.id, self.octets);
        if self.file.write_all_at(&end, self.octets).is_ok() {
            self.octets += end.len() as u64;
        }
    }

    /// Returns whether the journal takes no more, as an error has left unknown what is on the disk.
    /// What it holds can still be read.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns how many octets wait for the next commit.
    #[must_use]
    pub fn pending_octets(&self) -> usize {
        self.group.octets.len()
    }

    /// Records that a zone's file holds all changes up to a serial: entries up to it are kept as
    /// history within the bound only. Returns whether the serial is known; otherwise nothing is
    /// dropped. The next commit writes this down: after a crash before that, the entries are taken
    /// for changes that the file lacks.
    pub fn release(&mut self, zone: &Name, serial: u32) -> bool {
        let name = zone.to_lowercase();
        let is_known = self.index.release(name.as_wire(), serial, self.bound);
        if is_known {
            // A full group, or a disk that fails, leaves what a crash would leave.
            let _ = self.push(Kind::Release, name.as_wire(), (0, serial), &[]);
        }
        is_known
    }

    /// Returns the committed changes of a zone that its file lacks, oldest first, and the serial
    /// before the first of them; `None` if there are none.
    #[must_use]
    pub fn unreleased(&self, zone: &Name) -> Option<(u32, History)> {
        let (from, places) = self.index.zone(zone.to_lowercase().as_wire())?.unreleased()?;
        let history = History::new(Arc::clone(&self.file), self.path.clone(), self.id, places);
        Some((from, history))
    }

    /// Returns how many committed changes of a zone its file lacks.
    #[must_use]
    pub fn unreleased_count(&self, zone: &Name) -> usize {
        self.index.zone(zone.to_lowercase().as_wire()).map_or(0, ZoneEntries::unreleased_count)
    }

    /// Returns the committed changes of a zone from a serial on; `None` if the journal has none
    /// from there.
    #[must_use]
    pub fn history(&self, zone: &Name, from: u32) -> Option<History> {
        let places = self.index.zone(zone.to_lowercase().as_wire())?.places_from(from)?;
        Some(History::new(Arc::clone(&self.file), self.path.clone(), self.id, places))
    }

    /// Returns the newest committed change of a zone; `None` if the journal has none.
    #[must_use]
    pub fn newest(&self, zone: &Name) -> Option<History> {
        let places = vec![self.index.zone(zone.to_lowercase().as_wire())?.newest()?];
        Some(History::new(Arc::clone(&self.file), self.path.clone(), self.id, places))
    }

    /// Returns the serials that the committed entries of a zone lead from and to.
    #[must_use]
    pub fn serials(&self, zone: &Name) -> Option<Serials> {
        self.index.zone(zone.to_lowercase().as_wire())?.serials()
    }

    /// Returns all zones with committed entries, in lower case and in no order.
    pub fn zones(&self) -> impl Iterator<Item = (Name, Serials)> {
        self.index
            .zones()
            .filter_map(|(name, zone)| Some((Name::from_wire(name).ok()?, zone.serials()?)))
    }

    /// Returns how much the journal holds.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        Sizes {
            zones: self.index.zone_count(),
            unreleased_zones: self.index.unreleased_zones(),
            entries: self.index.entries(),
            octets: self.index.octets(),
            file_octets: self.octets,
        }
    }

    /// Returns whether more than half of a file of some size is no longer needed.
    #[must_use]
    pub fn is_compaction_due(&self) -> bool {
        self.octets > COMPACTION_OCTETS_MIN && self.octets / 2 > self.index.octets()
    }

    /// Writes what is still needed to a new file and puts it in the place of the old one at once,
    /// after committing what was appended. Takes as long as the disk needs for the octets that are
    /// kept, and 16 octets of memory an entry.
    ///
    /// # Errors
    /// When that failed. The old file goes on being used, unless [`Self::has_failed`].
    pub fn compact(&mut self) -> Result<(), Error> {
        self.commit()?;
        let beside = beside(&self.path, ".new");
        let compacted = self.write_beside(&beside).and_then(|compacted| {
            let renamed = fs::rename(&beside, &self.path);
            renamed.map_err(|error| Error::io(&self.path, "replaced", error))?;
            Ok(compacted)
        });
        let compacted = compacted.inspect_err(|_| {
            let _ = fs::remove_file(&beside); // otherwise the next start does
        })?;
        self.index.relocate(&compacted.moved);
        (self.file, self.id) = (Arc::new(compacted.file), compacted.id);
        (self.octets, self.file_octets) = (compacted.octets, compacted.octets);
        if let Err(error) = sync_directory(&self.path) {
            // After a loss of power the old file could be back, without later entries.
            self.has_failed = true;
            return Err(Error::io(&self.path, "replaced on the disk", error));
        }
        Ok(())
    }

    /// Writes all entries to a new file.
    fn write_beside(&self, beside: &Path) -> Result<CompactedFile, Error> {
        let failed = |error| Error::io(beside, "written", error);
        let entries = self.index.zones().flat_map(|(_, zone)| zone.places());
        let mut places: Vec<Place> = entries.copied().collect();
        places.sort_unstable_by_key(|place| place.offset);
        let (id, mut offset) = (record::new_id(), HEAD_OCTETS as u64);
        let file = new_file(beside).map_err(failed)?;
        let mut out = BufWriter::with_capacity(256 << 10, file);
        out.write_all(&record::head(id)).map_err(failed)?;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let mut moved = Vec::with_capacity(places.len());
        for place in &places {
            let found = history::read(&self.file, &self.path, self.id, place, &mut old)?;
            // Each record is a group: all are on the disk before the file gets its name.
            let header = Header { since_group: 0, ..found.header };
            new.clear();
            record::push(&mut new, (id, offset), &header, found.name, found.payload);
            out.write_all(&new).map_err(failed)?;
            moved.push((place.offset, offset));
            offset += new.len() as u64;
        }
        new.clear();
        for (name, zone) in self.index.zones() {
            let Some(to) = zone.released() else { continue };
            let header = Header {
                kind: Kind::Release,
                name_octets: name.len() as u8, // at most 255
                since_group: 0,
                from: 0,
                to,
                payload_octets: 0,
            };
            let at = offset + new.len() as u64;
            record::push(&mut new, (id, at), &header, name, &[]);
        }
        let end = offset + new.len() as u64;
        push_end(&mut new, id, end);
        out.write_all(&new).map_err(failed)?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        Ok(CompactedFile { file, id, octets: offset + new.len() as u64, moved })
    }
}

impl Drop for Journal {
    /// Cuts off the zeros at the end of the file, unless what is on the disk is not known.
    fn drop(&mut self) {
        if !self.has_failed {
            let _ = self.file.set_len(self.octets); // otherwise the next start does
        }
    }
}

/// Appends an end record.
fn push_end(out: &mut Vec<u8>, id: u64, offset: u64) {
    let numbers = Header {
        kind: Kind::End,
        name_octets: 0,
        since_group: 0,
        from: 0,
        to: 0,
        payload_octets: 0,
    };
    record::push(out, (id, offset), &numbers, &[], &[]);
}

/// Returns the path of a file beside the journal: `.new` is what takes its place once it is whole.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut beside = OsString::from(path);
    beside.push(suffix);
    beside.into()
}

/// Locks the file `.lock` beside the journal: a lock of the journal itself would be gone with the
/// file that a compaction replaces. A second process would cut off what this one is writing.
fn lock(path: &Path) -> Result<File, Error> {
    let beside = beside(path, ".lock");
    let file = append(&beside, 0o600).map_err(|error| Error::io(&beside, "made", error))?;
    match try_lock(&file).map_err(|error| Error::io(&beside, "locked", error))? {
        true => Ok(file),
        false => Err(Error::Locked(path.to_owned())),
    }
}

/// Makes a file that is not there yet, for its owner alone: changes of zones are private.
fn new_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Makes an empty journal, whole from the moment that it has its name.
fn create(path: &Path, beside: &Path) -> Result<(), Error> {
    let made = new_file(beside).and_then(|mut file| {
        file.write_all(&record::head(record::new_id()))?;
        file.sync_all()?;
        fs::rename(beside, path)?;
        sync_directory(path)
    });
    made.map_err(|error| Error::io(path, "made", error))
}

/// Waits until the name of a file is on the disk.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
