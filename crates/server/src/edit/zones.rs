//! Zones that clients create and remove: files in the directory `admin.zones`.

use crate::control::Control;
use crate::edit::flush;
use crate::unit_states::Scope;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zonda_wire::{Name, Type, rdata};
use zonda_zone::{BuildError, ChangeError, ChangeSet, HashSeed, Record, Records};
use zonda_zone::{Serial, SetChange, Zone, build, print};

/// Times of the SOA record of a zone that is created without one: refresh, retry, expire, and the
/// TTL of negative answers.
const SOA_TIMES: &str = "7200 1800 1209600 300";
/// The time to live of records that a zone is given when it is created.
const TTL: u32 = 3600;

/// Why a zone was not created or removed.
#[derive(Debug)]
pub enum ZoneError {
    /// The configuration names no directory for zones of clients.
    NoDirectory,
    /// The server has a zone of this name.
    Exists(Name),
    /// The name cannot be that of a file.
    Name(Name),
    /// A record that was given breaks a rule.
    Refused(ChangeError),
    /// The zone cannot be made.
    Zone(BuildError),
    /// The server has no zone of this name.
    NoSuchZone(Name),
    /// The zone was not created by a client, but is in the configuration.
    Configured(Name, PathBuf),
    /// The file cannot be written or removed.
    Io(PathBuf, io::Error),
    /// The zone could not be loaded or taken out of service, as this text says.
    NotPublished(String),
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDirectory => f.write_str(
                "zones can be created and removed where `zones = \"DIR\"` in [admin] names a \
                 directory for them",
            ),
            Self::Exists(zone) => {
                write!(f, "the server has a zone {zone}: change its records, or remove it before")
            }
            Self::Name(zone) => write!(
                f,
                "zone {zone} cannot be created: its file needs a name of letters, digits, hyphens \
                 and underscores"
            ),
            Self::Refused(error) => error.fmt(f),
            Self::Zone(error) => error.fmt(f),
            Self::NoSuchZone(zone) => write!(
                f,
                "the server has no zone {zone}; `zonda zone list` lists those that it has"
            ),
            Self::Configured(zone, path) => write!(
                f,
                "zone {zone} is from {}, which no client has created: remove it from the \
                 configuration",
                path.display()
            ),
            Self::Io(path, error) => write!(
                f,
                "{}: {error}; the server's user must be able to write to the directory of \
                 `admin.zones`",
                path.display()
            ),
            Self::NotPublished(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ZoneError {}

impl Control {
    /// Creates a zone with some records, as a file, and serves it. An SOA record and an NS record
    /// are made where none is given. Blocks.
    ///
    /// # Errors
    /// When the zone was not created.
    pub fn create_zone(&self, name: &Name, sets: &[SetChange]) -> Result<(), ZoneError> {
        let mut units = self.units();
        let state = self.state();
        let directory = state.config.admin.zones.clone().ok_or(ZoneError::NoDirectory)?;
        let name = name.to_lowercase();
        let is_forwarded = state.zone_set.forwards().iter().any(|it| it.entry.apex == name);
        if state.zone_set.zone(&name).is_some() || is_forwarded {
            return Err(ZoneError::Exists(name));
        }
        let path = file_of(&directory, &name)?;
        let zone = new_zone(&name, sets, state.seed)?;
        // An earlier zone of this name may have left changes that its file lacked.
        let failed = |error: &dyn fmt::Display| ZoneError::NotPublished(error.to_string());
        self.publisher().forget_edits(&name).map_err(|error| failed(&error))?;
        write(&path, &zone).map_err(|error| ZoneError::Io(path.clone(), error))?;
        let outcome = self.load_and_publish(&mut units, None, Scope::Watched);
        outcome.map_err(|error| failed(&error))?;
        match self.state().zone_set.zone(&name).map(|zone| zone.error.clone()) {
            Some(None) => Ok(()),
            Some(Some(error)) => Err(failed(&error)),
            None => Err(failed(&"the zone was not found in its directory; see the log")),
        }
    }

    /// Takes a zone that a client has created out of service, and removes its file. Blocks.
    ///
    /// # Errors
    /// When the zone was not removed.
    pub fn remove_zone(&self, name: &Name) -> Result<(), ZoneError> {
        let mut units = self.units();
        let state = self.state();
        let directory = state.config.admin.zones.clone().ok_or(ZoneError::NoDirectory)?;
        let name = name.to_lowercase();
        let zone = state.zone_set.zone(&name);
        let zone = zone.ok_or_else(|| ZoneError::NoSuchZone(name.clone()))?;
        let path = zone.path().into_owned();
        if path.parent() != Some(&directory) {
            return Err(ZoneError::Configured(name, path));
        }
        let removed = fs::remove_file(&path).and_then(|()| File::open(&directory)?.sync_all());
        removed.map_err(|error| ZoneError::Io(path.clone(), error))?;
        flush::remove_original(&path);
        let failed = |error: &dyn fmt::Display| ZoneError::NotPublished(error.to_string());
        let outcome = self.load_and_publish(&mut units, None, Scope::Watched);
        outcome.map_err(|error| failed(&error))?;
        self.publisher().forget_edits(&name).map_err(|error| failed(&error))
    }
}

/// The file of a zone in a directory.
fn file_of(directory: &Path, name: &Name) -> Result<PathBuf, ZoneError> {
    let text = name.to_string();
    let stem = text.strip_suffix('.').unwrap_or(&text);
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    if stem.is_empty() || stem.starts_with('.') || !stem.bytes().all(is_plain) {
        return Err(ZoneError::Name(name.clone()));
    }
    Ok(directory.join(format!("{stem}.zone")))
}

/// A new zone: an SOA record and an NS record, and what is given, in their place or beside them.
fn new_zone(name: &Name, sets: &[SetChange], seed: HashSeed) -> Result<Zone, ZoneError> {
    let server = sets.iter().find_map(|set| match set {
        SetChange::Put { owner, rtype: Type::NS, data, .. } if owner.to_lowercase() == *name => {
            Name::from_wire(data.first()?).ok()
        }
        _ => None,
    });
    let server = server.map_or_else(|| "localhost.".to_owned(), |server| server.to_string());
    let soa = format!("{server} hostmaster.{name} 1 {SOA_TIMES}");
    let mut records = Records::default();
    for (rtype, text) in [(Type::SOA, soa), (Type::NS, server)] {
        let rdata = rdata::from_text(rtype, &text).map_err(|_| ZoneError::Name(name.clone()))?;
        // Two records fit.
        let _ = records.push(Record { owner: name.as_wire(), rtype, ttl: TTL, rdata: &rdata }, 0);
    }
    let zone = build(name, &records, seed).map_err(ZoneError::Zone)?;
    let changes = ChangeSet { sets: sets.to_vec(), serial: Serial::Keep };
    zone.with(&changes).map(|(zone, _)| zone).map_err(ZoneError::Refused)
}

/// Makes a file at once: after a crash it is there, whole, or not.
fn write(path: &Path, zone: &Zone) -> io::Result<()> {
    let mut unfinished = path.to_owned().into_os_string();
    unfinished.push(".zonda-new");
    let _ = fs::remove_file(&unfinished); // what a killed process left
    let mut options = File::options();
    let mut file = options.write(true).create_new(true).mode(0o640).open(&unfinished)?;
    let mut text = Vec::new();
    zone.records().try_for_each(|it| print::print_record(&it.as_record(), &mut text))?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::hard_link(&unfinished, path)?; // fails where there is a file of this name
    fs::remove_file(&unfinished)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
