//! A journal in a folder of its own, and changes whose content follows from their serial.

#![allow(dead_code)] // each test file uses a part

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use zonda_journal::{Change, Entry, Error, HistoryLimit, Journal, Recovery};
use zonda_wire::Name;

/// A bound that drops nothing in these tests.
pub const WIDE: HistoryLimit = HistoryLimit { versions: 1_000_000, octets: 1 << 40 };

/// A folder that is removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = format!("zonda-journal-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn journal(&self) -> PathBuf {
        self.0.join("journal")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn open(path: &Path) -> Result<(Journal, Recovery), Error> {
    Journal::open(path, WIDE)
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The payload of the change that ends with a serial: 0 to 799 octets that follow from zone and
/// serial.
pub fn payload(zone: &Name, serial: u32) -> Vec<u8> {
    let mut state = u64::from(serial).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    state ^= zone
        .to_lowercase()
        .as_wire()
        .iter()
        .fold(0, |sum: u64, octet| sum * 31 + u64::from(*octet));
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let len = next() % 800;
    (0..len).map(|_| next() as u8).collect()
}

/// Appends the change that ends with a serial.
pub fn append(journal: &mut Journal, zone: &Name, serial: u32) -> Result<(), Error> {
    let payload = payload(zone, serial);
    journal.append(Entry { zone, from: serial - 1, to: serial, payload: &payload })
}

/// Checks all entries of a zone; the first and last serial that they lead from and to.
pub fn check_entries(journal: &Journal, zone: &Name) -> Option<(u32, u32)> {
    let serials = journal.serials(zone)?;
    let mut serial = serials.first;
    for change in journal.history(zone, serials.first).unwrap() {
        let Change { from, to, payload: octets } = change.unwrap();
        assert_eq!((from, to), (serial, serial + 1), "entries follow each other");
        assert!(octets == payload(zone, to), "entry {to} of {zone} is whole");
        serial = to;
    }
    assert_eq!(serial, serials.last);
    Some((serials.first, serials.last))
}
