//! The cache as a file, so that a restart does not begin cold.
//!
//! ```text
//! "zondaca2" 8 | saved at 8, seconds since 1970 | checksum 8
//! block        octets 4 | checksum 8 | entries
//! …
//! last block   octets 4, zero | checksum 8
//!
//! entry        name octets 1 | marks 1: kind, DO, CD, onward | qtype 2 | qclass 2 | source 4
//!              | flags 2 | extended error 2 | fresh for 4 | stale until then for 4 | counts 3 × 2
//!              | body octets 2 | name | body
//! ```
//! Numbers are big-endian, times are seconds from when the file was written, TTLs in the bodies are
//! those of that moment. A checksum covers what it stands behind and the checksum before it, so
//! that no block can be missing. Failures are not saved, nor are answers that depend on more than
//! their question. A file of the version before, "zondaca1", is refused: it had AA and TC in place
//! of onward.
//!
//! A file is taken whole or not at all: every octet is checked, whatever wrote the file. `source`
//! must mean the same when the file is loaded as when it was saved. While a file is written, no
//! writer waits for longer than some thousand entries take.

use crate::body::{change_ttl, ttl_offsets, write_message};
use crate::key::{EVERY_TYPE, denies_name};
use crate::walk::Walk;
use crate::{Answer, Cache, Entry, InsertError, Key, Kind, Lifetime, Onward, Policy, Variant};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, DirEntry, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zonda_wire::response::Response;
use zonda_wire::{Class, Ede, Type, name};

/// What the file begins with; the last octet is the version of the format.
const MAGIC: [u8; 8] = *b"zondaca2";
/// Octets of entries from which on a block is full.
const BLOCK_BYTES: usize = 64 << 10;
/// Octets that a block can have: one entry may cross the line.
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + FIXED_BYTES + 255 + 65_535;
/// Octets of an entry before its name.
const FIXED_BYTES: usize = 30;
/// Instead of an extended error's code: there is none.
const NO_EDE: u16 = u16::MAX;

/// The present by two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Seconds of the clock that the cache is used with.
    pub now_secs: u32,
    /// Seconds since 1970.
    pub unix_secs: u64,
}

/// Why a file was not loaded. The cache is empty then.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The file is no cache file, or one of another version.
    OtherFormat,
    /// The contents of the file are corrupt.
    Corrupt,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "the cache file cannot be read: {error}"),
            Self::OtherFormat => f.write_str("the file is not a cache file of this version"),
            Self::Corrupt => f.write_str("the cache file is corrupt"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Corrupt,
            _ => Self::Unreadable(error),
        }
    }
}

/// Writes what is worth keeping to a file beside `path`, and then puts it in the place of `path` at
/// once. Removes what killed processes left there. Returns the number of answers.
///
/// # Errors
/// Those of the file system; `path` is untouched then.
pub fn save(cache: &Cache, path: &Path, clocks: Clocks) -> io::Result<u64> {
    remove_leftovers(path);
    let beside = beside(path);
    // A new file, and not what a link of that name leads to; its mode is 0600, as the names that
    // were queried are private.
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = write(cache, &mut file, clocks).and_then(|count| {
        file.sync_all()?;
        fs::rename(&beside, path)?;
        Ok(count)
    });
    if written.is_err() {
        let _ = fs::remove_file(&beside); // otherwise the next start does
        return written;
    }
    File::open(directory_of(path))?.sync_all()?; // or the name may be lost
    written
}

/// What the name of a file that is being written ends with.
const BESIDE_END: &str = ".new";
/// Hexadecimal digits in such a name.
const BESIDE_DIGITS: usize = 16;
/// How old a file is that no process writes any more.
const LEFTOVER_AGE: Duration = Duration::from_secs(600);

/// Returns a path beside another one that cannot be foreseen: `PATH.0123456789abcdef.new`. It is
/// not the same for all processes: a server and its successor may write at the same time.
fn beside(path: &Path) -> PathBuf {
    let number = RandomState::new().build_hasher().finish();
    let mut beside = OsString::from(path);
    beside.push(format!(".{number:0BESIDE_DIGITS$x}{BESIDE_END}"));
    beside.into()
}

/// Removes what processes have left beside `path` that were killed while they wrote it.
pub fn remove_leftovers(path: &Path) {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return };
    let is_leftover = |entry: &DirEntry| {
        let found = entry.file_name();
        let rest = found.to_str().and_then(|it| it.strip_prefix(name)?.strip_prefix('.'));
        let digits = rest.and_then(|it| it.strip_suffix(BESIDE_END)).unwrap_or_default();
        let is_name = digits.len() == BESIDE_DIGITS && u64::from_str_radix(digits, 16).is_ok();
        let written = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        is_name && written().is_some_and(|age| age > LEFTOVER_AGE)
    };
    let Ok(entries) = fs::read_dir(directory_of(path)) else { return };
    for entry in entries.flatten().filter(is_leftover) {
        let _ = fs::remove_file(entry.path()); // another start may do it as well
    }
}

/// Returns the directory that a file is in.
fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// Writes what is worth keeping; how many answers.
///
/// # Errors
/// Those of the writer.
pub fn write(cache: &Cache, mut out: impl Write, clocks: Clocks) -> io::Result<u64> {
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&clocks.unix_secs.to_be_bytes());
    let mut sum = checksum(0, &head);
    head.extend_from_slice(&sum.to_be_bytes());
    out.write_all(&head)?;
    let (mut saving, mut count, mut blocks) = (Saver::default(), 0, Vec::new());
    let mut push = |saving: &mut Saver, entry: &Entry<'_>| {
        let is_worth_it = entry.answer.kind != Kind::Failure && !entry.has_variant;
        if is_worth_it && clocks.now_secs < entry.stale_until {
            saving.push(entry, clocks.now_secs);
            count += 1;
        }
        true
    };
    for shard in cache.shards() {
        let (mut walk, mut has_more) = (Walk::new(shard), true);
        while has_more {
            has_more = walk.retain_slice(|entry| push(&mut saving, entry));
            saving.blocks(&mut sum, &mut blocks); // while the shard is unlocked
            out.write_all(&blocks)?;
        }
    }
    blocks.clear();
    push_block(&[], &mut sum, &mut blocks);
    out.write_all(&blocks)?;
    Ok(count)
}

/// The entries of a shard on their way to the file.
#[derive(Default)]
struct Saver {
    entries: Vec<u8>,
    /// Ends of the blocks.
    ends: Vec<usize>,
    /// Offsets of TTLs in a body.
    offsets: Vec<u16>,
}

impl Saver {
    /// Appends an entry.
    fn push(&mut self, entry: &Entry<'_>, now_secs: u32) {
        let out = &mut self.entries;
        let Answer { kind, flags, onward, ede, counts, body } = entry.answer;
        let marks = kind as u8
            | u8::from(entry.dnssec_ok) << 2
            | u8::from(entry.checking_disabled) << 3
            | onward.map_or(0, |onward| onward as u8) << 4;
        let fresh_secs = entry.expires_at.saturating_sub(now_secs);
        let stale_secs = entry.stale_until - entry.expires_at.max(now_secs);
        out.extend_from_slice(&[entry.name.len() as u8, marks]); // a name has at most 255 octets
        out.extend_from_slice(&entry.qtype.unwrap_or(EVERY_TYPE).0.to_be_bytes());
        out.extend_from_slice(&entry.qclass.0.to_be_bytes());
        out.extend_from_slice(&entry.source.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&ede.map_or(NO_EDE, |ede| ede.0).to_be_bytes());
        out.extend_from_slice(&fresh_secs.to_be_bytes());
        out.extend_from_slice(&stale_secs.to_be_bytes());
        out.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
        out.extend_from_slice(&(body.len() as u16).to_be_bytes()); // or it would not be kept
        out.extend_from_slice(entry.name);
        let start = out.len();
        out.extend_from_slice(body);
        let age_secs = now_secs.saturating_sub(entry.stored_at);
        let aged = |ttl: u32| ttl.saturating_sub(age_secs);
        change_ttls(&mut out[start..], counts, &mut self.offsets, aged);
        if self.entries.len() - self.ends.last().unwrap_or(&0) >= BLOCK_BYTES {
            self.ends.push(self.entries.len());
        }
    }

    /// Turns all entries into blocks, which replace what is in `out`.
    fn blocks(&mut self, sum: &mut u64, out: &mut Vec<u8>) {
        out.clear();
        self.ends.push(self.entries.len());
        let mut start = 0;
        for &end in &self.ends {
            if end > start {
                push_block(&self.entries[start..end], sum, out);
            }
            start = end;
        }
        self.entries.clear();
        self.ends.clear();
    }
}

/// Appends a block behind its length and checksum.
fn push_block(block: &[u8], sum: &mut u64, out: &mut Vec<u8>) {
    *sum = checksum(*sum, block);
    let len = block.len() as u32; // at most BLOCK_BYTES_MAX
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&sum.to_be_bytes());
    out.extend_from_slice(block);
}

/// Changes every TTL.
fn change_ttls(
    body: &mut [u8],
    counts: [u16; 3],
    offsets: &mut Vec<u16>,
    change: impl Fn(u32) -> u32,
) {
    if ttl_offsets(body, counts, offsets).is_ok() {
        offsets.iter().for_each(|&at| change_ttl(body, at, &change));
    }
}

/// Fills an empty cache from a file; how many answers were kept. None is kept for longer than the
/// policy of its source lets it from now on, whatever was right when it was stored. `hash` hashes
/// the names of a source for the keys that this process will ask with; `None` for a source that
/// there is no more.
///
/// # Errors
/// When the file cannot be used; the cache is empty then.
pub fn read(
    cache: &Cache,
    file: impl Read,
    clocks: Clocks,
    policy: &dyn Fn(u32) -> Policy,
    hash: impl FnMut(u32, &[u8]) -> Option<u64>,
) -> Result<u64, LoadError> {
    let mut loading = Loader {
        cache,
        clocks,
        policy,
        elapsed_secs: 0,
        message: Vec::new(),
        expanded: Vec::new(),
        body: Vec::new(),
        offsets: Vec::new(),
    };
    loading.file(file, hash).inspect_err(|_| cache.clear())
}

/// A file that is being read.
struct Loader<'c> {
    cache: &'c Cache,
    clocks: Clocks,
    /// How long answers of a source may be kept.
    policy: &'c dyn Fn(u32) -> Policy,
    /// Since the file was written.
    elapsed_secs: u32,
    /// A message with the body that is checked.
    message: Vec<u8>,
    /// Names and data of it, written out.
    expanded: Vec<u8>,
    /// A body whose TTLs are being aged, and their offsets.
    body: Vec<u8>,
    offsets: Vec<u16>,
}

impl Loader<'_> {
    /// Reads all blocks.
    fn file(
        &mut self,
        mut file: impl Read,
        mut hash: impl FnMut(u32, &[u8]) -> Option<u64>,
    ) -> Result<u64, LoadError> {
        let mut head = [0; 24];
        file.read_exact(&mut head)?;
        let mut fields = Fields(&head);
        let (magic, saved_at) = (fields.u64()?, fields.u64()?);
        if magic != u64::from_be_bytes(MAGIC) {
            return Err(LoadError::OtherFormat);
        }
        let mut sum = checksum(0, &head[..16]);
        if sum != fields.u64()? {
            return Err(LoadError::Corrupt);
        }
        let elapsed_secs = self.clocks.unix_secs.saturating_sub(saved_at);
        self.elapsed_secs = u32::try_from(elapsed_secs).unwrap_or(u32::MAX);
        let (mut count, mut block) = (0, Vec::new());
        loop {
            let mut head = [0; 12];
            file.read_exact(&mut head)?;
            let mut fields = Fields(&head);
            let (len, expected) = (fields.u32()? as usize, fields.u64()?);
            if len > BLOCK_BYTES_MAX {
                return Err(LoadError::Corrupt);
            }
            block.resize(len, 0);
            file.read_exact(&mut block)?;
            sum = checksum(sum, &block);
            if sum != expected {
                return Err(LoadError::Corrupt);
            }
            if len == 0 {
                break;
            }
            let mut fields = Fields(&block);
            while !fields.0.is_empty() {
                count += u64::from(self.entry(&mut fields, &mut hash)?);
            }
        }
        if file.read(&mut [0])? == 0 { Ok(count) } else { Err(LoadError::Corrupt) }
    }

    /// Reads an entry, and keeps it if it is still good for something.
    fn entry(
        &mut self,
        fields: &mut Fields<'_>,
        hash: &mut impl FnMut(u32, &[u8]) -> Option<u64>,
    ) -> Result<bool, LoadError> {
        let [name_len, marks] = fields.u16()?.to_be_bytes();
        let (qtype, qclass, source) = (Type(fields.u16()?), Class(fields.u16()?), fields.u32()?);
        let (flags, ede) = (fields.u16()?, fields.u16()?);
        let (fresh_secs, stale_secs) = (fields.u32()?, fields.u32()?);
        let counts = [fields.u16()?, fields.u16()?, fields.u16()?];
        let body_len = fields.u16()?;
        let name = fields.take(usize::from(name_len))?;
        let body = fields.take(usize::from(body_len))?;
        let kind = Kind::ALL[usize::from(marks & 3)];
        let ede = (ede != NO_EDE).then_some(Ede(ede));
        let onward = match marks >> 4 {
            0 => None,
            1 => Some(Onward::Here),
            2 => Some(Onward::Others),
            _ => return Err(LoadError::Corrupt),
        };
        let answer = Answer { kind, flags, onward, ede, counts, body };
        let (dnssec_ok, checking_disabled) = (marks & 1 << 2 != 0, marks & 1 << 3 != 0);
        let known = hash(source, name);
        let hash = known.unwrap_or_default();
        let key = Key {
            name,
            hash,
            qtype,
            qclass,
            source,
            dnssec_ok,
            checking_disabled,
            variant: Variant::default(),
        };
        if kind == Kind::Failure || !self.is_well_formed(&key, &answer) {
            return Err(LoadError::Corrupt);
        }
        let good_for = fresh_secs.saturating_add(stale_secs).saturating_sub(self.elapsed_secs);
        let fresh_for = fresh_secs.saturating_sub(self.elapsed_secs);
        let policy = (self.policy)(source);
        let ttl_secs_max = policy.ttl_secs_max(kind);
        let lifetime = Lifetime {
            now_secs: self.clocks.now_secs,
            ttl_secs: fresh_for.min(ttl_secs_max),
            stale_secs: (good_for - fresh_for).min(policy.stale_secs),
        };
        let is_useless = lifetime.ttl_secs == 0 && lifetime.stale_secs == 0;
        if is_useless || ttl_secs_max == 0 || known.is_none() {
            return Ok(false);
        }
        self.body.clear();
        self.body.extend_from_slice(body);
        let aged = |ttl: u32| ttl.saturating_sub(self.elapsed_secs).min(ttl_secs_max);
        change_ttls(&mut self.body, counts, &mut self.offsets, aged);
        let answer = Answer { body: &self.body, ..answer };
        match self.cache.insert_exactly(&key, &answer, lifetime) {
            Ok(()) => Ok(true),
            // The cache may be smaller than it was, or the system have less memory.
            Err(
                InsertError::TooLarge
                | InsertError::NoMemory
                | InsertError::Flushed
                | InsertError::NoType,
            ) => Ok(false),
            Err(InsertError::Malformed) => Err(LoadError::Corrupt),
        }
    }

    /// Whether a name is one, in lower case, and all names and data of the body are well-formed.
    fn is_well_formed(&mut self, key: &Key<'_>, answer: &Answer<'_>) -> bool {
        let is_name = name::wire_len(key.name) == Some(key.name.len())
            && !key.name.iter().any(u8::is_ascii_uppercase);
        let is_stored_so = key.stored_with(answer.kind, answer.counts) == *key;
        let is_type = key.qtype != EVERY_TYPE || denies_name(answer.kind, answer.counts);
        if !is_name || !is_stored_so || !is_type || key.qtype.is_meta() {
            return false;
        }
        self.message.clear();
        let question = (key.name, key.qtype, key.qclass);
        let start = write_message(0, question, answer.counts, answer.body, &mut self.message);
        let Self { message, expanded, offsets, .. } = self;
        if ttl_offsets(answer.body, answer.counts, offsets).is_err() {
            return false;
        }
        // TTLs change, so no name may run through one: these octets cannot begin a label.
        offsets.iter().for_each(|&at| change_ttl(&mut message[start..], at, |_| u32::MAX));
        Response::parse(message).is_ok_and(|response| {
            response.records().all(|record| {
                expanded.clear();
                record.owner_into(expanded).is_ok() && record.rdata_into(expanded).is_ok()
            })
        })
    }
}

/// Octets that are read field by field.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    /// Returns the next octets.
    fn take(&mut self, len: usize) -> Result<&'b [u8], LoadError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(LoadError::Corrupt)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads as many octets as a number has.
    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], LoadError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(LoadError::Corrupt)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Reads a number of two octets.
    fn u16(&mut self) -> Result<u16, LoadError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads a number of four octets.
    fn u32(&mut self) -> Result<u32, LoadError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a number of eight octets.
    fn u64(&mut self) -> Result<u64, LoadError> {
        self.array().map(u64::from_be_bytes)
    }
}

/// FNV-1a over octets, continued from a checksum. Detects accidents, not forgery.
fn checksum(before: u64, octets: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let octets = before.to_be_bytes().into_iter().chain(octets.iter().copied());
    octets.fold(BASIS, |sum, octet| (sum ^ u64::from(octet)).wrapping_mul(PRIME))
}
