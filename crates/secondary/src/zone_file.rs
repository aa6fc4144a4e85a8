//! The file in which a zone is kept from one start to the next, with its timers.
//!
//! ```text
//! file     "zondasec" 8 | segments
//! segment  kind 1 | octets of the payload 4 | payload | checksum of all of these 8
//! kinds    1 all records: apex, then the records as `Records` has them
//!          2 a change: serial from 4 | serial to 4 | the difference as `Diff` has it
//!          3 the timers: serial 4 | in step with a primary at 8 | expires at 8
//!            | address and port of the primary that the version came from, in text
//! ```
//! Numbers are big-endian, moments are seconds since 1970. A file begins with all records; changes
//! and timers are appended. What a crash leaves half written at the end is cut off.
//!
//! # Invariants
//! - A zone is replaced as a whole, by a rename, once it is on the disk.
//! - A change is on the disk before [`ZoneFile::append`] returns; timers need not be.
//! - Nothing is appended to a file but the one that was read or written here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_journal::checksum::Checksum;
use zonda_wire::Name;
use zonda_zone::{Diff, Records, Zone};

/// The first octets of a file.
const MAGIC: &[u8; 8] = b"zondasec";
/// Octets of a segment in front of its payload.
const HEAD_BYTES: usize = 1 + 4;
/// Octets of a segment behind its payload.
const SUM_BYTES: usize = 8;
/// The kind of a segment with all records.
const ALL: u8 = 1;
/// The kind of a segment with a change.
const CHANGE: u8 = 2;
/// The kind of a segment with the timers.
const TIMERS: u8 = 3;
/// Octets of changes and timers from which on the file is written anew, if that is half of it.
const APPENDED_MIN: u64 = 64 << 10;
/// Octets of a file that are written at a time.
const WRITTEN_AT_A_TIME: usize = 64 << 10;
/// Characters of a zone's name up to which it is the name of the file.
const NAME_CHARS_MAX: usize = 200;

/// The moments that outlive a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptTimers {
    /// The serial of the version that they are of.
    pub serial: u32,
    /// The last moment at which the zone was in step with a primary, seconds since 1970.
    pub agreed_at: u64,
    /// The moment at which the zone expires, seconds since 1970.
    pub expires_at: u64,
    /// The primary that the version came from; none where that is not known.
    pub source: Option<SocketAddr>,
}

/// What a file holds.
pub struct StoredZone {
    /// All records of the version that the file begins with.
    pub records: Records,
    /// The changes that lead to the last version.
    pub changes: Vec<Diff>,
    /// The timers that were written last.
    pub timers: KeptTimers,
    /// Octets at the end of the file that are no whole segment, and are cut off.
    pub torn: u64,
}

/// The file of a zone.
#[derive(Clone, Debug)]
pub struct ZoneFile {
    apex: Name,
    /// The directory of the file, which all files there share.
    directory: Arc<Path>,
    state: FileState,
}

/// What is known of the file of a zone since it was read or written, of which a server with a
/// hundred thousand zones keeps as many.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileState {
    /// Octets of the file that are whole.
    len: u64,
    /// Octets of the segment with all records; 0 while the file is to be written anew.
    base_len: u64,
    /// The file that was read or written.
    identity: Option<FileIdentity>,
}

/// The device of a file, and its number there.
type FileIdentity = (u64, NonZeroU64);

impl FileState {
    /// Whether the file holds a version, as far as is known.
    #[must_use]
    pub fn holds_version(&self) -> bool {
        self.len > 0
    }
}

impl ZoneFile {
    /// The file of a zone in a directory; it need not exist.
    #[must_use]
    pub fn new(directory: impl Into<Arc<Path>>, apex: &Name) -> Self {
        Self::known(directory, apex, FileState::default())
    }

    /// The file of a zone in a directory, of which this is known.
    #[must_use]
    pub fn known(directory: impl Into<Arc<Path>>, apex: &Name, state: FileState) -> Self {
        Self { apex: apex.to_lowercase(), directory: directory.into(), state }
    }

    /// Returns what is known of the file.
    #[must_use]
    pub fn state(&self) -> FileState {
        self.state
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(file_name(&self.apex))
    }

    /// Reads the file; none if there is no such file.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged at its beginning.
    pub fn read(&mut self) -> io::Result<Option<StoredZone>> {
        let mut octets = Vec::new();
        let identity = match File::open(self.path()) {
            Ok(mut file) => {
                file.read_to_end(&mut octets)?;
                identity(&file)?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let damaged = || {
            let text =
                format!("{} is damaged: the zone is transferred anew", self.path().display());
            io::Error::new(ErrorKind::InvalidData, text)
        };
        let (kept, base_len, len) = decode(&self.apex, &octets).ok_or_else(damaged)?;
        let (base_len, len) = (base_len as u64, len as u64);
        self.state = FileState { len, base_len, identity };
        Ok(Some(kept))
    }

    /// Removes the file, if there is one; the directory is not synced.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(self) -> io::Result<()> {
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the file holds a version, as far as is known.
    #[must_use]
    pub fn holds_version(&self) -> bool {
        self.state.holds_version()
    }

    /// Whether so much was appended that the file is to be written anew.
    #[must_use]
    pub fn is_to_be_written_anew(&self) -> bool {
        let FileState { len, base_len, .. } = self.state;
        let appended = len.saturating_sub(base_len);
        base_len == 0 || appended > APPENDED_MIN.max(base_len / 2)
    }

    /// Replaces the file by one with these records.
    ///
    /// # Errors
    /// When it cannot be written; the former file is there still.
    pub fn replace(&mut self, records: &Records, timers: KeptTimers) -> io::Result<()> {
        let octets = records.as_octets();
        self.write_anew(octets.len() as u64, |file| file.add(octets), timers)
    }

    /// Replaces the file by one with the records of a version of the zone, which are written some
    /// at a time.
    ///
    /// # Errors
    /// When it cannot be written; the former file is there still.
    pub fn replace_by(&mut self, zone: &Zone, timers: KeptTimers) -> io::Result<()> {
        let len = zone.unordered_records_len();
        self.write_anew(len, |file| zone.write_unordered_records(|some| file.add(some)), timers)
    }

    /// Replaces the file by one with records of so many octets, which a function writes.
    fn write_anew(
        &mut self,
        records_len: u64,
        write_records: impl FnOnce(&mut UnfinishedFile) -> io::Result<()>,
        timers: KeptTimers,
    ) -> io::Result<()> {
        let apex = self.apex.as_wire();
        let len = u32::try_from(records_len + apex.len() as u64).map_err(|_| too_large())?;
        let path = self.path();
        let unfinished = path.with_extension("new");
        let write = || -> io::Result<_> {
            let mut file = UnfinishedFile::create(&unfinished)?;
            file.add(&[ALL])?;
            file.add(&len.to_be_bytes())?;
            file.add(apex)?;
            write_records(&mut file)?;
            let base_len = file.end_segment(u64::from(len))?;
            let mut octets = Vec::new();
            segment(&mut octets, TIMERS, &[&timers_octets(timers)])?;
            let written = file.finish(&octets)?;
            fs::rename(&unfinished, &path)?;
            Ok((base_len, written))
        };
        let (base_len, (len, identity)) = write().inspect_err(|_| {
            let _ = fs::remove_file(&unfinished); // it may be what fills the disk
        })?;
        self.state = FileState { len, base_len, identity };
        File::open(&self.directory)?.sync_all()
    }

    /// Appends changes, which follow the version that the file holds, and timers.
    ///
    /// # Errors
    /// When they cannot be written; the file holds what it did.
    pub fn append(&mut self, changes: &[Diff], timers: KeptTimers) -> io::Result<()> {
        let mut octets = Vec::new();
        for change in changes {
            let mut payload = [change.from, change.to].map(u32::to_be_bytes).concat();
            change.write_octets(&mut payload);
            segment(&mut octets, CHANGE, &[&payload])?;
        }
        segment(&mut octets, TIMERS, &[&timers_octets(timers)])?;
        if !self.state.holds_version() {
            return Err(io::Error::other("the file was not read or written yet"));
        }
        let mut file = OpenOptions::new().append(true).open(self.path())?;
        if self.state.identity != identity(&file)? || file.metadata()?.len() < self.state.len {
            self.state.base_len = 0; // so that it is written anew
            let text = "another program has changed the file: it is written anew";
            return Err(io::Error::other(text));
        }
        file.set_len(self.state.len)?; // what a crash, or a full disk, has left half written
        file.write_all(&octets)?;
        if !changes.is_empty() {
            file.sync_data()?;
        }
        self.state.len += octets.len() as u64;
        Ok(())
    }
}

/// A new file, for its owner alone, while it is written. One that is small is written at once.
struct UnfinishedFile {
    file: File,
    /// What is not written yet: less than [`WRITTEN_AT_A_TIME`], and the last segments.
    octets: Vec<u8>,
    /// The number of octets before these.
    written: u64,
    /// The checksum of the segment under way.
    sum: Checksum,
}

impl UnfinishedFile {
    /// Creates a file, which begins with a segment.
    fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Self { file, octets: MAGIC.to_vec(), written: 0, sum: new_checksum() })
    }

    /// Adds octets to the segment.
    fn add(&mut self, octets: &[u8]) -> io::Result<()> {
        self.sum.add(octets);
        if self.octets.len() + octets.len() < WRITTEN_AT_A_TIME {
            self.octets.extend_from_slice(octets);
            return Ok(());
        }
        self.write()?;
        self.file.write_all(octets)?;
        self.written += octets.len() as u64;
        Ok(())
    }

    /// Ends the first segment, whose payload has so many octets; returns the length of the file so
    /// far.
    fn end_segment(&mut self, payload_len: u64) -> io::Result<u64> {
        let len = self.written + self.octets.len() as u64;
        if len != (MAGIC.len() + HEAD_BYTES) as u64 + payload_len {
            return Err(io::Error::other("the zone has another length than was announced"));
        }
        let sum = std::mem::replace(&mut self.sum, new_checksum()).finish();
        self.octets.extend_from_slice(&sum.to_be_bytes());
        Ok(len + SUM_BYTES as u64)
    }

    /// Ends the file with more segments, and waits until it is on the disk; returns its length, its
    /// device and its number.
    fn finish(mut self, segments: &[u8]) -> io::Result<(u64, Option<FileIdentity>)> {
        self.octets.extend_from_slice(segments);
        self.write()?;
        self.file.sync_all()?;
        Ok((self.written, identity(&self.file)?))
    }

    /// Writes what is not written yet.
    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.octets)?;
        self.written += self.octets.len() as u64;
        self.octets.clear();
        Ok(())
    }
}

/// The error of a zone that does not fit into a segment.
fn too_large() -> io::Error {
    io::Error::other("the zone has over 4 GiB")
}

/// The device and the number of a file; a file system without numbers has none.
fn identity(file: &File) -> io::Result<Option<FileIdentity>> {
    let metadata = file.metadata()?;
    Ok(NonZeroU64::new(metadata.ino()).map(|number| (metadata.dev(), number)))
}

/// Appends a segment.
fn segment(octets: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let len = u32::try_from(len).map_err(|_| too_large())?;
    let start = octets.len();
    octets.push(kind);
    octets.extend_from_slice(&len.to_be_bytes());
    parts.iter().for_each(|part| octets.extend_from_slice(part));
    let sum = checksum_of(&octets[start..]);
    octets.extend_from_slice(&sum);
    Ok(())
}

/// The checksum of a segment, or of what a name of a file is made of.
pub(crate) fn checksum_of(octets: &[u8]) -> [u8; SUM_BYTES] {
    let mut sum = new_checksum();
    sum.add(octets);
    sum.finish().to_be_bytes()
}

/// The checksum of no octets yet.
fn new_checksum() -> Checksum {
    Checksum::new(u64::from_be_bytes(*MAGIC))
}

/// The octets of timers.
fn timers_octets(timers: KeptTimers) -> Vec<u8> {
    let KeptTimers { serial, agreed_at, expires_at, source } = timers;
    let mut octets = serial.to_be_bytes().to_vec();
    octets.extend_from_slice(&agreed_at.to_be_bytes());
    octets.extend_from_slice(&expires_at.to_be_bytes());
    octets.extend(source.map(|source| source.to_string()).unwrap_or_default().bytes());
    octets
}

/// Reads the octets of a file, and how many of them are the first segment and whole segments; none
/// if the first segment is damaged, or of another zone.
#[must_use]
pub fn decode(apex: &Name, octets: &[u8]) -> Option<(StoredZone, usize, usize)> {
    let mut rest = octets.strip_prefix(MAGIC)?;
    let (kind, payload) = next_segment(&mut rest)?;
    let records = payload.strip_prefix(apex.as_wire()).filter(|_| kind == ALL)?;
    let records = Records::from_octets(records)?;
    let (changes, timers) = (Vec::new(), KeptTimers::default());
    let mut kept = StoredZone { records, changes, timers, torn: 0 };
    let base_len = octets.len() - rest.len();
    let mut len = base_len;
    while let Some((kind, payload)) = next_segment(&mut rest) {
        match kind {
            CHANGE => kept.changes.push(change_of(payload)?),
            TIMERS => kept.timers = timers_of(payload)?,
            _ => return None,
        }
        len = octets.len() - rest.len();
    }
    kept.torn = (octets.len() - len) as u64;
    Some((kept, base_len, len))
}

/// Takes the next segment, if it is whole.
fn next_segment<'o>(rest: &mut &'o [u8]) -> Option<(u8, &'o [u8])> {
    let [kind, len @ ..] = *rest.first_chunk::<HEAD_BYTES>()?;
    let end = HEAD_BYTES.checked_add(u32::from_be_bytes(len) as usize)?;
    let (segment, behind) = rest.split_at_checked(end)?;
    let (sum, behind) = behind.split_first_chunk::<SUM_BYTES>()?;
    if checksum_of(segment) != *sum {
        return None;
    }
    *rest = behind;
    Some((kind, &segment[HEAD_BYTES..]))
}

/// Reads a change.
fn change_of(payload: &[u8]) -> Option<Diff> {
    let (from, payload) = payload.split_first_chunk()?;
    let (to, payload) = payload.split_first_chunk()?;
    Diff::from_octets(u32::from_be_bytes(*from), u32::from_be_bytes(*to), payload)
}

/// Reads timers.
fn timers_of(payload: &[u8]) -> Option<KeptTimers> {
    let (serial, payload) = payload.split_first_chunk()?;
    let (agreed_at, payload) = payload.split_first_chunk()?;
    let (expires_at, payload) = payload.split_first_chunk()?;
    let source = str::from_utf8(payload).ok()?;
    Some(KeptTimers {
        serial: u32::from_be_bytes(*serial),
        agreed_at: u64::from_be_bytes(*agreed_at),
        expires_at: u64::from_be_bytes(*expires_at),
        source: source.parse().ok(),
    })
}

/// The name of a zone's file. A name of unusual characters, or a long one, is written in
/// hexadecimal or by its checksum.
pub(crate) fn file_name(apex: &Name) -> String {
    let text = apex.to_string();
    let text = text.strip_suffix('.').unwrap_or(&text);
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    let name = match text {
        "" => "%root".to_owned(),
        text if text.bytes().all(is_plain) && text.len() <= NAME_CHARS_MAX => text.to_owned(),
        _ if apex.as_wire().len() <= NAME_CHARS_MAX / 2 => hexadecimal(apex.as_wire()),
        _ => hexadecimal(&checksum_of(apex.as_wire())),
    };
    format!("{name}.secondary")
}

/// Octets in hexadecimal, behind a character that no plain name has.
fn hexadecimal(octets: &[u8]) -> String {
    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("%{digits}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_wire::Type;
    use zonda_zone::Record;

    fn records(octet: u8) -> Records {
        let mut records = Records::default();
        let owner = b"\x07example\0";
        records.push(Record { owner, rtype: Type::A, ttl: 1, rdata: &[octet; 4] }, 0).unwrap();
        records
    }

    fn timers(serial: u32) -> KeptTimers {
        let source = Some(SocketAddr::from(([192, 0, 2, 1], 53)));
        KeptTimers { serial, agreed_at: 1_700_000_000, expires_at: 1_700_086_400, source }
    }

    /// A file in a directory of its own with a zone and two changes.
    fn written(name: &str) -> (PathBuf, ZoneFile) {
        let directory = std::env::temp_dir().join(format!("zonda-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let mut file = ZoneFile::new(&*directory, &"Example".parse().unwrap());
        assert!(file.is_to_be_written_anew() && file.read().unwrap().is_none());
        assert!(file.append(&[], timers(1)).is_err());
        file.replace(&records(1), timers(1)).unwrap();
        for from in [1, 2] {
            let change =
                Diff { from, to: from + 1, removed: records(from as u8), added: records(9) };
            file.append(&[change], timers(from + 1)).unwrap();
        }
        assert!(!file.is_to_be_written_anew());
        (directory, file)
    }

    #[test]
    fn a_zone_is_read_with_its_changes_and_timers_as_they_were_written() {
        let (directory, file) = written("kept");
        let mut again = ZoneFile::new(&*directory, &"example".parse().unwrap());
        let kept = again.read().unwrap().unwrap();
        assert!(kept.records.iter().eq(records(1).iter()));
        let serials: Vec<_> = kept.changes.iter().map(|it| (it.from, it.to)).collect();
        assert_eq!((serials, kept.timers), (vec![(1, 2), (2, 3)], timers(3)));
        let lens = |file: &ZoneFile| (file.state.len, file.state.base_len);
        assert_eq!(lens(&again), lens(&file));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn what_a_crash_has_torn_is_cut_off_and_written_over() {
        let (directory, file) = written("torn");
        let whole = fs::read(file.path()).unwrap();
        for end in (file.state.base_len as usize..whole.len()).rev() {
            fs::write(file.path(), &whole[..end]).unwrap();
            let mut torn = ZoneFile::new(&*directory, &"example".parse().unwrap());
            let kept = torn.read().unwrap().unwrap();
            assert!(kept.timers.serial < 3 && kept.changes.len() <= 2, "{end}");
            assert_eq!(kept.torn, end as u64 - torn.state.len, "{end}");
            torn.append(&[], timers(7)).unwrap();
            let kept = torn.read().unwrap().unwrap();
            assert_eq!(kept.timers, timers(7), "{end}");
        }
        fs::write(file.path(), &whole[..file.state.base_len as usize - 1]).unwrap();
        assert!(file.clone().read().is_err(), "nothing is left of the zone");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn nothing_is_appended_to_a_file_that_another_program_has_replaced_or_cut() {
        let (directory, mut file) = written("replaced");
        let mut other = file.clone();
        other.replace(&records(5), timers(8)).unwrap();
        assert!(file.append(&[], timers(4)).is_err());
        let kept = other.clone().read().unwrap().unwrap();
        assert_eq!((kept.timers, kept.torn), (timers(8), 0), "it is as the other has left it");
        assert!(file.is_to_be_written_anew() && file.state.holds_version());
        fs::write(other.path(), b"").unwrap();
        assert!(other.append(&[], timers(9)).is_err());
        assert_eq!(fs::read(other.path()).unwrap(), b"", "no zeros in front of what is new");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn files_have_the_names_of_their_zones() {
        let name = |text: &str| file_name(&text.parse().unwrap());
        assert_eq!(name("example.com"), "example.com.secondary");
        assert_eq!(name("."), "%root.secondary");
        assert_eq!(name("a/b"), "%03612f6200.secondary");
        let long = [["a"; 60].concat().as_str(); 4].join(".");
        assert_eq!(name(&long).len(), "%0123456789abcdef.secondary".len());
    }
}
