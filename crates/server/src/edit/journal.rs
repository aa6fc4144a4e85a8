//! The journal of writable zones: edits before they are acknowledged, and what the files of the
//! zones lack when they are read.

mod last_version;

use super::EditError;
use super::counters::EditCounters;
use super::entry::{Digests, StoredEdit, edits_held, is_raised, read};
use super::zone_digest::with_sound_digest;
use crate::feed::LoadedZone;
use crate::load::LoadError;
use crate::state_directory;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use zonda_config::{Config, SerialRule};
use zonda_engine::{VersionMark, VersionOrigin};
use zonda_journal::{Entry, Error, GROUP_OCTETS_MAX, History, HistoryLimit, Journal, Sizes};
use zonda_wire::{Name, Type};
use zonda_zone::snapshot::is_greater;
use zonda_zone::{ChangeSet, Diff, Digest, Merge, NetChange, Serial, SerialPolicy, Zone};

/// The name of the file in the state directory.
const FILE: &str = "journal";
/// Changes of a zone that are kept at most, beside those that its file lacks: each has 16 octets of
/// memory, so that the history of a thousand zones has 1.6 MB.
const HISTORY_VERSIONS_MAX: usize = 100;
/// Octets that the kept changes of a zone have at most in the journal's file: a zone whose changes
/// are large costs the disk about as much as a zone of a million records.
const HISTORY_OCTETS_MAX: u64 = 64 << 20;
/// The history kept of each zone beside the changes that its file lacks.
const HISTORY: HistoryLimit =
    HistoryLimit { versions: HISTORY_VERSIONS_MAX, octets: HISTORY_OCTETS_MAX };
/// More than the octets of two records without their payloads.
const RECORDS_OCTETS: usize = 1024;
/// Names of sets that an error lists.
const LISTED_MAX: usize = 5;

/// The journal, or why there is none.
#[derive(Default)]
enum State {
    /// No zone is writable.
    #[default]
    Unused,
    /// The journal takes edits.
    Open(Box<Journal>),
    /// The journal takes no edits, and why.
    Failed(String),
    /// A successor of this process has the journal.
    HandedOver,
}

/// The journal of the server's writable zones. The publisher owns it.
#[derive(Default)]
pub struct EditJournal {
    state: State,
    /// Zones whose files contradict the journal, by their names in lower case, and how.
    conflicts: HashMap<Name, String>,
    /// The digests of the zones that can be changed.
    digests: Digests,
    /// The zones of which the oldest change that the file lacks is no edit: it gives what the file
    /// has another serial. No file is written for it alone.
    raised: HashSet<Name>,
    /// Whether something was appended that is not committed.
    is_pending: bool,
    /// The zones of which something was appended or released since the last commit.
    touched: Vec<Name>,
    /// Why the last commit failed, if it did.
    commit_error: Option<String>,
    /// Counters of edits and of the journal.
    counters: Arc<EditCounters>,
}

/// Why the journal could not be opened.
#[derive(Debug)]
pub struct InUse(pub String);

/// Changes of a zone that the journal has, up to the version in force.
pub struct KeptChanges {
    /// The entries of the journal.
    history: History,
    /// The digest of the version in force, if it is known.
    digest: Option<Digest>,
}

impl KeptChanges {
    /// Reads the changes between versions that were served from the disk, oldest first; none if
    /// they have not led to this version, or cannot be read.
    pub fn read(self, data: &Zone) -> Vec<StoredEdit> {
        let mut edits = read(self.history).unwrap_or_default();
        let digest = self.digest.unwrap_or_else(|| data.digest());
        if edits_held(&edits, digest) != Some(edits.len()) {
            return Vec::new();
        }
        // What leads from a file was never served, and another version may have had its serial.
        let served = edits.iter().rposition(StoredEdit::leads_from_file).map_or(0, |at| at + 1);
        edits.split_off(served)
    }
}

/// A zone of a file with the changes that the file lacks.
pub struct MergedZone {
    /// The zone to serve.
    pub data: Arc<Zone>,
    /// Number of records of the zone.
    pub records: usize,
    /// Why the file and the changes could not be brought together.
    pub error: Option<LoadError>,
}

/// The mark of a version that is made now.
pub fn mark_now(origin: VersionOrigin) -> VersionMark {
    VersionMark { made_at: crate::load::unix_secs().into(), origin }
}

/// How a zone's serial rises now.
pub fn policy(rule: SerialRule) -> SerialPolicy {
    match rule {
        SerialRule::Increment => SerialPolicy::Increment,
        SerialRule::UnixTime => SerialPolicy::UnixTime(crate::load::unix_secs()),
        SerialRule::Date => SerialPolicy::Date(crate::load::unix_secs()),
    }
}

impl EditJournal {
    /// Opens the journal if the configuration has writable zones and it is not open yet. Where it
    /// cannot be used, edits are refused from now on.
    ///
    /// # Errors
    /// When another server uses it.
    pub fn open(&mut self, config: &Config) -> Result<(), InUse> {
        let is_needed = config.zones.iter().any(|zone| zone.terms.writable.is_some());
        if !is_needed || matches!(self.state, State::Open(_)) {
            return Ok(());
        }
        let opened = state_directory::path(config).and_then(|directory| {
            state_directory::make(&directory)?;
            Ok(Journal::open(&directory.join(FILE), HISTORY))
        });
        self.state = match opened {
            Ok(Ok((journal, opened))) => {
                let (zones, changes) = (opened.sizes.zones, opened.sizes.entries);
                if let Some(torn) = opened.torn {
                    let octets = torn.octets;
                    tracing::info!(octets, "the journal ended with an edit not acknowledged");
                }
                tracing::debug!(zones, changes, "journal opened");
                // A successor may have released what was noted before.
                self.raised.retain(|zone| is_raised(journal.unreleased(zone)));
                for (zone, _) in journal.zones() {
                    self.counters.set_unflushed(&zone, edit_count(&journal, &self.raised, &zone));
                }
                self.commit_error = None;
                State::Open(Box::new(journal))
            }
            Ok(Err(error @ Error::Locked(_))) => {
                self.state = State::Failed(error.to_string());
                return Err(InUse(error.to_string()));
            }
            Ok(Err(error)) => self.failed(error.to_string()),
            Err(error) => self.failed(error),
        };
        Ok(())
    }

    /// Closes the journal for a successor.
    pub fn hand_over(&mut self) {
        if let State::Open(_) = self.state {
            self.state = State::HandedOver;
        }
    }

    /// Opens the journal again, as the successor has gone away.
    pub fn take_back(&mut self, config: &Config) {
        if let State::HandedOver = self.state
            && let Err(InUse(error)) = self.open(config)
        {
            tracing::error!(error, "zones cannot be changed any more");
        }
    }

    /// The state of a journal that cannot be used.
    fn failed(&self, error: String) -> State {
        tracing::error!(error, "writable zones are served from their files and cannot be changed");
        State::Failed(error)
    }

    /// Why zones cannot be changed, if that is so.
    pub fn failure(&self) -> Option<String> {
        match &self.state {
            State::Failed(error) => Some(format!("writable zones cannot be changed: {error}")),
            State::Open(journal) if journal.has_failed() => {
                Some("the journal takes no more edits after an error; see the log".to_owned())
            }
            State::Open(_) => self.commit_error.as_ref().map(|error| {
                format!("zones cannot be changed, and edits are refused until that works: {error}")
            }),
            _ => None,
        }
    }

    /// Returns the counters of edits and of the journal.
    pub fn counters(&self) -> &Arc<EditCounters> {
        &self.counters
    }

    /// How much the journal holds, if it is open.
    pub fn sizes(&self) -> Option<Sizes> {
        match &self.state {
            State::Open(journal) => Some(journal.sizes()),
            _ => None,
        }
    }

    /// The journal, for an edit of a zone.
    fn journal(&mut self, zone: &Name) -> Result<&mut Journal, EditError> {
        if let Some(conflict) = self.conflicts.get(zone) {
            return Err(EditError::Conflict(conflict.clone()));
        }
        match &mut self.state {
            State::Open(journal) => Ok(journal),
            State::Failed(error) => Err(EditError::Journal(error.clone())),
            State::HandedOver => Err(EditError::HandedOver),
            State::Unused => Err(EditError::NotWritable(zone.clone())),
        }
    }

    /// Whether a zone can be changed now.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&mut self, zone: &Name) -> Result<(), EditError> {
        self.journal(zone).map(drop)
    }

    /// Appends an edit, which leads from one version of a zone to another one, to those of the next
    /// commit.
    ///
    /// # Errors
    /// When it cannot be taken.
    pub fn append(
        &mut self,
        zone: &Name,
        (diff, mark): (&Diff, VersionMark),
        (former, next): (&Arc<Zone>, &Arc<Zone>),
    ) -> Result<(), EditError> {
        let base = self.digests.of(zone, former);
        let payload = StoredEdit::octets(base, mark, diff);
        let entry = Entry { zone, from: diff.from, to: diff.to, payload: &payload };
        let appended = self.journal(zone)?.append(entry);
        appended.map_err(|error| EditError::Journal(error.to_string()))?;
        self.digests.set_pending(zone, next, base.after(diff));
        self.touch(zone);
        Ok(())
    }

    /// Has the journal lead from a file to what is served: voids the entries of a zone, and appends
    /// one, in the same group.
    fn replace(&mut self, zone: &Name, base: Digest, diff: &Diff) -> Result<(), String> {
        let payload = StoredEdit::octets(base, mark_now(VersionOrigin::File), diff);
        if payload.len() > GROUP_OCTETS_MAX - RECORDS_OCTETS {
            return Err("its file lacks more changes than the journal takes at once".to_owned());
        }
        if self.pending_octets() + payload.len() > GROUP_OCTETS_MAX - RECORDS_OCTETS {
            self.commit()?;
        }
        let State::Open(journal) = &mut self.state else { return Err("it was closed".to_owned()) };
        let entry = Entry { zone, from: diff.from, to: diff.to, payload: &payload };
        journal.forget(zone).and_then(|()| journal.append(entry)).map_err(|it| it.to_string())?;
        self.raised.remove(zone);
        self.touch(zone);
        Ok(())
    }

    /// Notes that something of a zone waits for the next commit.
    fn touch(&mut self, zone: &Name) {
        self.is_pending = true;
        if self.touched.last() != Some(zone) {
            self.touched.push(zone.clone());
        }
    }

    /// Writes what was appended and waits until it is on the disk.
    ///
    /// # Errors
    /// When that failed: none of it is in the journal.
    pub fn commit(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.is_pending) {
            return Ok(());
        }
        let State::Open(journal) = &mut self.state else { return Ok(()) };
        let started = Instant::now();
        let committed = journal.commit();
        self.counters.note_commit(committed.is_ok(), started.elapsed());
        for zone in self.touched.drain(..) {
            self.counters.set_unflushed(&zone, edit_count(journal, &self.raised, &zone));
        }
        if let Err(error) = committed {
            tracing::error!(%error, "edits could not be written to the disk and were refused");
            self.digests.roll_back();
            self.commit_error = Some(error.to_string());
            return Err(error.to_string());
        }
        self.digests.commit();
        self.commit_error = None;
        if journal.is_compaction_due()
            && let Err(error) = journal.compact()
        {
            tracing::warn!(%error, "the journal could not be made smaller");
        }
        Ok(())
    }

    /// Octets that wait for the next commit.
    pub fn pending_octets(&self) -> usize {
        match &self.state {
            State::Open(journal) => journal.pending_octets(),
            _ => 0,
        }
    }

    /// The changes of a zone that its file lacks, oldest first.
    pub fn unflushed(&self, zone: &Name) -> Option<(u32, History)> {
        match &self.state {
            State::Open(journal) => journal.unreleased(zone),
            _ => None,
        }
    }

    /// The changes that have led to a version of a zone, as far as the journal has them, oldest
    /// first; none if it has other changes, or cannot be read.
    pub fn changes_to(&self, name: &Name, data: &Arc<Zone>) -> Vec<StoredEdit> {
        let changes = self.kept_changes(name, data);
        changes.map(|changes| changes.read(data)).unwrap_or_default()
    }

    /// What the journal has of the changes that have led to a version of a zone, which is in force;
    /// nothing is read yet.
    pub fn kept_changes(&self, name: &Name, data: &Arc<Zone>) -> Option<KeptChanges> {
        let State::Open(journal) = &self.state else { return None };
        let serials = journal.serials(name).filter(|serials| serials.last == data.serial())?;
        let history = journal.history(name, serials.first)?;
        Some(KeptChanges { history, digest: self.digests.known(name, data) })
    }

    /// Whether the file of a zone lacks edits, and not only the serial with which it is served.
    pub fn has_unflushed_edits(&self, zone: &Name) -> bool {
        let State::Open(journal) = &self.state else { return false };
        edit_count(journal, &self.raised, zone) > 0
    }

    /// The zones whose files lack edits.
    pub fn unflushed_zones(&self) -> Vec<Name> {
        let State::Open(journal) = &self.state else { return Vec::new() };
        let zones = journal.zones().map(|(name, _)| name);
        zones.filter(|name| edit_count(journal, &self.raised, name) > 0).collect()
    }

    /// Notes that the file of a zone holds all changes up to a serial.
    pub fn release(&mut self, zone: &Name, serial: u32) {
        if let State::Open(journal) = &mut self.state
            && journal.release(zone, serial)
        {
            self.raised.remove(zone);
            self.touch(zone);
        }
    }

    /// Drops all that is known of a zone, as it is removed.
    pub fn forget(&mut self, zone: &Name) {
        self.conflicts.remove(zone);
        self.digests.forget(zone);
        self.raised.remove(zone);
        if let State::Open(journal) = &mut self.state
            && journal.forget(zone).is_ok()
        {
            self.touch(zone);
        }
    }

    /// Brings the changes that a file lacks into its zone. `served` is the version in force.
    pub fn merge(
        &mut self,
        name: &Name,
        file: LoadedZone,
        served: Option<(&Arc<Zone>, usize)>,
        rule: Option<SerialRule>,
    ) -> MergedZone {
        let LoadedZone { zone, records, digest, .. } = file;
        self.conflicts.remove(name);
        let State::Open(journal) = &mut self.state else {
            return MergedZone { data: zone, records, error: None };
        };
        let unreleased = journal.unreleased(name);
        if unreleased.is_none() && rule.is_none() {
            if journal.serials(name).is_some_and(|serials| serials.last != zone.serial()) {
                self.forget(name); // the next edit begins with the file's serial
            }
            return MergedZone { data: zone, records, error: None };
        }
        let file = FileVersion { digest: digest.unwrap_or_else(|| zone.digest()), zone, records };
        let merged = match unreleased {
            None => self.follow_last(name, &file, served, rule),
            Some((_, history)) => read(history).and_then(|edits| {
                self.note_oldest(name, edits.first());
                match self.continue_from(name, &file, served, &edits) {
                    Some(merged) => Ok(merged),
                    None => self.merge_edits(name, &file, served, &edits, rule),
                }
            }),
        };
        let FileVersion { zone, records, digest } = file;
        let merged = merged.map(|merged| match merged {
            MergeResult::Same => (zone.clone(), records, digest, None),
            MergeResult::Served(data, records, digest) => (data, records, digest, None),
            MergeResult::New(next, diff, error) => {
                let records = records + diff.added.len() - diff.removed.len();
                (Arc::new(*next), records, digest.after(&diff), error)
            }
        });
        match merged {
            Ok((data, records, digest, error)) => {
                self.digests.set(name, &data, digest);
                MergedZone { data, records, error }
            }
            Err(error) => {
                tracing::error!(zone = %name, error, "the file contradicts the edits");
                self.conflicts.insert(name.clone(), error.clone());
                let error = Some(LoadError { first: error, count: 1 });
                match served {
                    Some((data, records)) => MergedZone { data: Arc::clone(data), records, error },
                    None => MergedZone { data: zone, records, error },
                }
            }
        }
    }

    /// Notes whether the oldest change that the file of a zone lacks is no edit.
    fn note_oldest(&mut self, name: &Name, oldest: Option<&StoredEdit>) {
        match oldest.is_some_and(StoredEdit::only_raises) {
            true => _ = self.raised.insert(name.clone()),
            false => _ = self.raised.remove(name),
        }
        if let State::Open(journal) = &self.state {
            self.counters.set_unflushed(name, edit_count(journal, &self.raised, name));
        }
    }

    /// Brings the edits into the zone of a file that has as many of them as the server has written
    /// there, and nothing else: the serial is that of the last edit, and the journal stays. `None`
    /// if the file was changed otherwise.
    fn continue_from(
        &mut self,
        name: &Name,
        file: &FileVersion,
        served: Option<(&Arc<Zone>, usize)>,
        edits: &[StoredEdit],
    ) -> Option<MergeResult> {
        let held = edits_held(edits, file.digest)?;
        let lacked: Vec<&Diff> = edits[held..].iter().map(|edit| &edit.diff).collect();
        let merged = match served {
            _ if lacked.is_empty() => MergeResult::Same,
            Some((data, records))
                if edits_held(edits, self.digests.of(name, data)) == Some(edits.len()) =>
            {
                MergeResult::Served(Arc::clone(data), records, self.digests.of(name, data))
            }
            _ => {
                let diff = Diff::of_all(&lacked).ok()?;
                let (zone, diff) = file.zone.with(&file.zone.changes_of(&diff).ok()?).ok()?;
                MergeResult::New(Box::new(zone), diff, None)
            }
        };
        if let Some(last) = held.checked_sub(1) {
            // It was flushed, and the server ended before it knew.
            self.release(name, edits[last].diff.to);
        }
        Some(merged)
    }

    /// Brings edits into the zone of a file that was edited by hand.
    fn merge_edits(
        &mut self,
        name: &Name,
        file: &FileVersion,
        served: Option<(&Arc<Zone>, usize)>,
        edits: &[StoredEdit],
        rule: Option<SerialRule>,
    ) -> Result<MergeResult, String> {
        if edits.iter().all(StoredEdit::only_raises) {
            return self.follow_last(name, file, served, rule);
        }
        let (serial, last) = (file.zone.serial(), edits.last().map_or(0, |edit| edit.diff.to));
        let held = edits.iter().rposition(|edit| edit.diff.to == serial).map_or(0, |at| at + 1);
        let has_held = held > 0 && {
            let merge = merged(&file.zone, &edits[..held]);
            merge.changes.is_empty() && merge.conflicts.is_empty()
        };
        let lacked = if has_held { &edits[held..] } else { edits };
        if has_held {
            self.release(name, serial); // it was flushed, and edited by hand after that
        }
        let Some(first) = lacked.first() else {
            return self.follow_last(name, file, served, rule);
        };
        let merge = merged(&file.zone, lacked);
        let error = (!merge.conflicts.is_empty()).then(|| conflict_text(&merge.conflicts));
        if let (Some(error), true) = (&error, served.is_some()) {
            return Err(error.clone());
        }
        if merge.changes.is_empty() && merge.conflicts.is_empty() {
            return self.follow_last(name, file, served, rule); // the file has all of them
        }
        let greatest = if is_greater(serial, last) { serial } else { last };
        let next = policy(rule.unwrap_or(SerialRule::Increment)).next(greatest);
        let changes = ChangeSet { sets: merge.changes, serial: Serial::Exactly(next) };
        let (zone, diff) = with_sound_digest(&file.zone, &changes, true).map_err(|error| {
            format!("with the edits that its file lacks, the zone would break a rule: {error}")
        })?;
        if let (Some((data, records)), true) = (served, serial == first.diff.from)
            && holds_the_same(&zone, data)
        {
            return Ok(MergeResult::Served(Arc::clone(data), records, self.digests.of(name, data)));
        }
        self.replace(name, file.digest, &diff)?;
        let error = error.map(|error| {
            tracing::error!(zone = %name, error, "records of the file and of the edits are served");
            self.conflicts.insert(name.clone(), error.clone());
            LoadError { first: error, count: 1 }
        });
        Ok(MergeResult::New(Box::new(zone), diff, error))
    }
}

/// The zone of a file.
struct FileVersion {
    /// The zone as the file has it.
    zone: Arc<Zone>,
    /// Number of records of the zone.
    records: usize,
    /// The digest of the zone's records.
    digest: Digest,
}

/// The result of merging a file and the changes that it lacks.
enum MergeResult {
    /// The file has all of the changes.
    Same,
    /// The version in force is the result of the changes, with this number of records and this
    /// digest.
    Served(Arc<Zone>, usize, Digest),
    /// A zone that is to be served, what tells it from the file, and how the file and the changes
    /// contradict each other if they do.
    New(Box<Zone>, Diff, Option<LoadError>),
}

/// Returns how many edits the file of a zone lacks.
fn edit_count(journal: &Journal, raised: &HashSet<Name>, zone: &Name) -> usize {
    journal.unreleased_count(zone).saturating_sub(usize::from(raised.contains(zone)))
}

/// What edits change in a zone. Edits remove a digest of the zone, of which the file has another
/// where a program has made it anew: both are right, and none is left.
fn merged(zone: &Zone, edits: &[StoredEdit]) -> Merge {
    let mut merge = zone.merge(&net(edits));
    merge.conflicts.retain(|(_, rtype)| *rtype != Type::ZONEMD);
    merge
}

/// Returns the net change of edits.
fn net(edits: &[StoredEdit]) -> NetChange {
    let mut net = NetChange::default();
    edits.iter().for_each(|edit| net.push(&edit.diff));
    net
}

/// Whether two versions of a zone have the same records but for the serial.
fn holds_the_same(one: &Zone, other: &Zone) -> bool {
    one.diff(other).is_ok_and(|diff| {
        let mut net = NetChange::default();
        net.push(&diff);
        net.is_empty()
    })
}

/// Returns a text that names the sets in which a file and edits contradict each other.
fn conflict_text(conflicts: &[(Name, Type)]) -> String {
    let listed = conflicts.iter().take(LISTED_MAX);
    let listed: Vec<_> = listed.map(|(name, rtype)| format!("{name} {rtype}")).collect();
    let more = match conflicts.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "the file and the edits that it lacks give different records to {}{more}: write into the \
         file the records that `zonda zone diff` adds there, and reload",
        listed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;
    use zonda_zone::{Record, Records};

    /// Octets of a record's data in these tests.
    const RDATA_OCTETS: usize = 60_000;

    /// An edit journal in a directory.
    fn open(directory: &Path) -> EditJournal {
        std::fs::create_dir_all(directory).unwrap();
        let (journal, _) = Journal::open(&directory.join(FILE), HISTORY).unwrap();
        EditJournal { state: State::Open(Box::new(journal)), ..EditJournal::default() }
    }

    /// A difference with records of at least so many octets.
    fn diff(from: u32, to: u32, octets: usize) -> Diff {
        let (mut added, rdata) = (Records::default(), vec![0; RDATA_OCTETS]);
        let record = Record { owner: b"\0", rtype: Type(65280), ttl: 1, rdata: &rdata };
        (0..octets.div_ceil(RDATA_OCTETS)).for_each(|_| added.push(record, 0).unwrap());
        Diff { from, to, added, removed: Records::default() }
    }

    /// The serials of the changes that the journal in a directory has of a zone.
    fn serials(directory: &Path, zone: &Name) -> Vec<(u32, u32)> {
        let journal = open(directory);
        let history = journal.unflushed(zone).map(|(_, history)| history);
        history.into_iter().flatten().map(|it| it.unwrap()).map(|it| (it.from, it.to)).collect()
    }

    /// Appends a change to a journal.
    fn append(journal: &mut EditJournal, zone: &Name, diff: &Diff) {
        let mark = mark_now(VersionOrigin::Edit);
        let payload = StoredEdit::octets(Digest::from_u64(0), mark, diff);
        let State::Open(open) = &mut journal.state else { panic!("it is not open") };
        open.append(Entry { zone, from: diff.from, to: diff.to, payload: &payload }).unwrap();
        journal.touch(zone);
    }

    #[test]
    fn a_change_that_the_journal_cannot_take_voids_none_of_those_that_it_was_to_replace() {
        let directory = std::env::temp_dir().join(format!("zonda-void-{}", std::process::id()));
        let (zone, digest): (Name, _) = ("example.org".parse().unwrap(), Digest::from_u64(0));
        let mut journal = open(&directory);
        append(&mut journal, &zone, &diff(1, 2, 1));
        journal.commit().unwrap();
        assert!(journal.replace(&zone, digest, &diff(1, 3, GROUP_OCTETS_MAX)).is_err());
        append(&mut journal, &"example.net".parse().unwrap(), &diff(1, 2, 1));
        journal.commit().unwrap();
        drop(journal);
        assert_eq!(serials(&directory, &zone), [(1, 2)]);
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_change_is_committed_together_with_the_end_of_those_that_it_replaces() {
        let directory = std::env::temp_dir().join(format!("zonda-group-{}", std::process::id()));
        let [zone, other] = ["example.org", "example.net"].map(|it| it.parse::<Name>().unwrap());
        let mut journal = open(&directory);
        append(&mut journal, &zone, &diff(1, 2, 1));
        // The group has room for the record that voids this entry, but not for the next entry.
        append(&mut journal, &other, &diff(1, 2, GROUP_OCTETS_MAX - 4 * RDATA_OCTETS));
        let next = diff(7, 8, 10 * RDATA_OCTETS);
        journal.replace(&zone, Digest::from_u64(0), &next).unwrap();
        journal.commit().unwrap();
        drop(journal);
        assert_eq!(serials(&directory, &zone), [(7, 8)]);
        assert_eq!(serials(&directory, &other), [(1, 2)]);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
