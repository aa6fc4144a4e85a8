//! Changes of writable zones written to the zones' files.

use crate::control::Control;
use crate::directory_reader::DirectoryReader;
use crate::edit::entry::{self, StoredEdit};
use crate::stamp::Stamp;
use crate::unit_states::{Scope, UnitStates};
use crate::units::{Content, UnitKey};
use crate::zone_set_view::KnownZone;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use zonda_wire::Name;
use zonda_zone::{Diff, JsonZone, Zone, json, print};

/// How often a file that changes meanwhile is read again before a flush gives up.
const ATTEMPTS_MAX: usize = 5;
/// Time after which a file that is read again is known not to change at that moment.
const SETTLE: Duration = Duration::from_millis(30);
/// What the name of a zone's file is followed by in the name of its first version.
const ORIGINAL: &str = ".orig";
/// What follows the name of a file that is being written.
const UNFINISHED: &str = ".zonda-new";

/// Why the changes of a zone were not written to its file; they stay in the journal.
#[derive(Debug)]
pub enum FlushError {
    /// The server has no zone of this name.
    NoSuchZone(Name),
    /// The file and the edits contradict each other, or the file is wrong, as this text says.
    Refused(String),
    /// The file cannot be written.
    Io(PathBuf, io::Error),
}

impl std::fmt::Display for FlushError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchZone(zone) => write!(
                f,
                "the server has no zone {zone}; `zonda zone list` lists those that it has"
            ),
            Self::Refused(text) => f.write_str(text),
            Self::Io(path, error) => write!(
                f,
                "{}: cannot be written: {error}; the server's user must be able to write to the \
                 file's directory; the edits stay in the journal",
                path.display()
            ),
        }
    }
}

impl std::error::Error for FlushError {}

impl Control {
    /// Writes the changes of a zone that its file lacks into the file; the serial that the file has
    /// now, or nothing if it lacked no change. Blocks.
    ///
    /// # Errors
    /// When the file was not written.
    pub fn flush(&self, name: &Name) -> Result<Option<u32>, FlushError> {
        let flushed = self.try_flush(name);
        match &flushed {
            Ok(None) | Err(FlushError::NoSuchZone(_)) => {}
            written => self.state().journal.counters.note_flush(written.is_ok()),
        }
        flushed
    }

    /// Writes a zone's changes to its file without counting the attempt.
    fn try_flush(&self, name: &Name) -> Result<Option<u32>, FlushError> {
        let (mut units, mut reader) = (self.units(), DirectoryReader::default());
        for _ in 0..ATTEMPTS_MAX {
            let state = self.state();
            let zone = state.zone_set.zone(name);
            let zone = zone.ok_or_else(|| FlushError::NoSuchZone(name.clone()))?;
            let failed = |error: &dyn std::fmt::Display| FlushError::Refused(error.to_string());
            let is_due = self.publisher().has_unflushed_edits(name);
            let is_due = is_due.map_err(|error| failed(&error))?;
            let Some(data) = zone.data().filter(|_| is_due) else { return Ok(None) };
            if units.known.get(&zone.unit).is_none_or(|unit| unit.is_outdated(&mut reader)) {
                // The file was changed: what it says is brought together with the edits first.
                thread::sleep(SETTLE);
                let outcome = self.load_and_publish(&mut units, None, Scope::Zone(name));
                outcome.map_err(|error| failed(&error))?;
                continue;
            }
            if let Some(error) = &zone.error {
                return Err(failed(error));
            }
            if !write(&mut units, &mut reader, zone, data)? {
                continue; // it was changed while the new one was written
            }
            self.publisher().release(name, data.serial()).map_err(|error| failed(&error))?;
            let (serial, path) = (data.serial(), zone.path());
            let path = path.display();
            tracing::info!(zone = %name, serial, %path, "edits written to the file of the zone");
            return Ok(Some(serial));
        }
        let text = "the zone's file changes all the time; try again when it does not";
        Err(FlushError::Refused(text.to_owned()))
    }

    /// Writes the changes of all zones to their files; what failed is logged and returned. Blocks.
    pub fn flush_all(&self) -> Vec<(Name, Result<u32, FlushError>)> {
        let zones = self.publisher().unflushed_zones().unwrap_or_default(); // else it is down
        let state = self.state();
        let served = zones.into_iter().filter(|name| state.zone_set.zone(name).is_some());
        let flushed = served.filter_map(|name| {
            let flushed = self.flush(&name).transpose()?;
            if let Err(error) = &flushed {
                tracing::error!(zone = %name, %error, "edits could not be written to the file");
            }
            Some((name, flushed))
        });
        flushed.collect()
    }

    /// What the file of a zone lacks. Blocks.
    ///
    /// # Errors
    /// When the server has no such zone, or the journal cannot be read.
    pub fn unflushed_diff(&self, name: &Name) -> Result<Diff, FlushError> {
        let state = self.state();
        let zone = state.zone_set.zone(name).ok_or_else(|| FlushError::NoSuchZone(name.clone()))?;
        let refused = FlushError::Refused;
        let history = self.publisher().unflushed(name).map_err(|it| refused(it.to_string()))?;
        let edits = history.map_or(Ok(Vec::new()), entry::read).map_err(refused)?;
        let diffs: Vec<&Diff> = edits.iter().map(|StoredEdit { diff, .. }| diff).collect();
        let mut diff = Diff::of_all(&diffs)
            .map_err(|_| refused("the difference takes more than 4 GiB".to_owned()))?;
        if diffs.is_empty() {
            diff.from = zone.data().map_or(0, |data| data.serial());
            diff.to = diff.from;
        }
        Ok(diff)
    }
}

/// Writes a zone to its file, and notes the file's new state; not if the file is no longer as it
/// was when it was read. Whether it was written.
fn write(
    units: &mut UnitStates,
    reader: &mut DirectoryReader,
    zone: &KnownZone,
    data: &Zone,
) -> Result<bool, FlushError> {
    let path = zone.path();
    let is_unchanged = || units.known.get(&zone.unit).is_some_and(|unit| !unit.is_outdated(reader));
    let is_written = write_file(&zone.unit, &zone.entry.apex, data, is_unchanged)
        .map_err(|error| FlushError::Io(path.to_path_buf(), error))?;
    if is_written && let Some(mut known) = units.known.remove(&zone.unit) {
        known.note_written(Stamp::of_written(&path));
        units.known.insert(known);
    }
    Ok(is_written)
}

/// Keeps the first version of a file beside it, whatever is written later.
fn keep_original(path: &Path, original: &Path) -> io::Result<()> {
    match fs::hard_link(path, original) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Ok(()) => Ok(()),
        // Some file systems have no hard links.
        Err(_) => fs::copy(path, original).map(drop),
    }
}

/// Replaces the file of a zone at once: after a crash it is the former one or the new one. Asks
/// `is_unchanged` of the former one just before; whether it was replaced.
fn write_file(
    unit: &UnitKey,
    apex: &Name,
    data: &Zone,
    is_unchanged: impl FnOnce() -> bool,
) -> io::Result<bool> {
    let path = fs::canonicalize(unit.path())?; // the file that a symbolic link leads to
    let beside = |suffix: &str| {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    let unfinished = beside(UNFINISHED);
    let written = write_beside(&unfinished, &path, unit, apex, data).and_then(|()| {
        if !is_unchanged() {
            return Ok(false);
        }
        keep_original(&path, &beside(ORIGINAL))?;
        fs::rename(&unfinished, &path).map(|()| true)
    });
    if !matches!(written, Ok(true)) {
        let _ = fs::remove_file(&unfinished); // the next flush replaces it
        return written;
    }
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all().map(|()| true)
}

/// Removes the first version of a file that no longer is.
pub fn remove_original(path: &Path) {
    let mut name = path.to_owned().into_os_string();
    name.push(ORIGINAL);
    let _ = fs::remove_file(name); // most files were never written
}

/// Writes a zone to a new file with the mode and, where possible, the owner of the former one.
fn write_beside(
    unfinished: &Path,
    former: &Path,
    unit: &UnitKey,
    apex: &Name,
    data: &Zone,
) -> io::Result<()> {
    let _ = fs::remove_file(unfinished); // what a killed process left
    let metadata = fs::metadata(former)?;
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(0o600).open(unfinished)?;
    let mut out = BufWriter::with_capacity(1 << 16, &file);
    match &unit.content {
        Content::Json(_) => write_json(&unit.path(), apex, data, &mut out)?,
        _ => write_master(apex, data, &mut out)?,
    }
    out.flush()?;
    drop(out);
    file.set_permissions(metadata.permissions())?;
    let _ = fchown(&file, Some(metadata.uid()), Some(metadata.gid())); // for root alone
    file.sync_all()
}

/// Writes a zone as a master file.
fn write_master(apex: &Name, data: &Zone, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "; {apex}, written by zonda, as the zone was changed while it was served")?;
    let mut records = data.records();
    records.try_for_each(|record| print::print_record(&record.as_record(), out))
}

/// Writes a zone together with the other zones of its JSON file.
fn write_json(path: &Path, apex: &Name, data: &Zone, out: &mut impl Write) -> io::Result<()> {
    let records = data.to_records().map_err(|_| io::Error::from(ErrorKind::FileTooLarge))?;
    let mut file = json::read(path);
    if file.errors.is_some() {
        return Err(io::Error::other("the file is no longer JSON with zones"));
    }
    let own = file.zones.iter_mut().find(|zone| zone.name.to_lowercase() == *apex);
    match own {
        Some(own) => own.records = records,
        None => {
            let (name, sha) = (apex.clone(), None);
            file.zones.push(JsonZone { name, sha, records, errors: None });
        }
    }
    json::write(file.zones.iter(), out)
}

/// A handle of the server, for a thread that flushes.
pub async fn flush_in_background(control: &Arc<Control>) {
    let control = Arc::clone(control);
    let _ = tokio::task::spawn_blocking(move || control.flush_all()).await; // what fails is logged
}
