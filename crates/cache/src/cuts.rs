//! How deep in the tree names are known not to exist, so that a look-up for one above another name
//! goes only where there may be one.
//!
//! ```text
//!  labels    0    1    2    3    4   …   20   …   34   …   63 and more
//!  row 0   [ .    .    .    .    .        .       .        . ]
//!  row 1   [ .    .    .   9 s   .       7 s     8 s       . ]   ip6.arpa, and names that share
//!  the row …                       when the last denial of such a name is no longer fresh
//! ```
//! A name has its row by a hash of its last two labels, so that the depths that are common below
//! `example.com` say nothing about `ip6.arpa`. Names of one label share the first row, since those
//! below them are spread over all. A table of moments needs no clearing: what was evicted costs a
//! look-up in vain until it would have expired.
//!
//! # Invariants
//! - A denial that is in the cache and fresh is in the table.
//! - The size is fixed. Names chosen to fill a row cost look-ups in vain, which the caller bounds.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Rows: some thousand zones share them.
const ROWS: usize = 64;
/// Columns: the last one has all names of 63 labels and more, which are hardly used.
const COLUMNS: usize = 64;

/// The table: 16 KiB.
pub struct Cuts(Box<[[AtomicU32; COLUMNS]; ROWS]>);

/// A name's row.
pub struct Row<'c> {
    cells: &'c [AtomicU32; COLUMNS],
    /// Row of names with one label.
    top: &'c AtomicU32,
}

impl Cuts {
    /// Makes a table in which no name is denied.
    pub fn new() -> Self {
        Self(bytemuck::allocation::zeroed_box()) // the system hands out what is touched
    }

    /// Notes that a name, in wire form and lower case, does not exist until a moment.
    pub fn note(&self, name: &[u8], expires_at: u32) {
        let (labels, _) = ending(name);
        let row = self.row(name);
        let cell = row.cell(labels);
        if cell.load(Relaxed) < expires_at {
            cell.fetch_max(expires_at, Relaxed);
        }
    }

    /// Returns the row of a name and of all above it that have two labels or more.
    pub fn row(&self, name: &[u8]) -> Row<'_> {
        let (_, ending) = ending(name);
        Row { cells: &self.0[spread(ending) % ROWS], top: &self.0[0][1] }
    }
}

impl Row<'_> {
    /// Whether a name with so many labels may be known not to exist.
    #[inline]
    pub fn may_deny(&self, labels: usize, now_secs: u32) -> bool {
        self.cell(labels).load(Relaxed) > now_secs
    }

    /// Returns what is known of names with so many labels.
    #[inline]
    fn cell(&self, labels: usize) -> &AtomicU32 {
        if labels < 2 { self.top } else { &self.cells[labels.min(COLUMNS - 1)] }
    }
}

/// Returns how many labels a name has, and its last two.
fn ending(name: &[u8]) -> (usize, &[u8]) {
    let (mut at, mut labels, mut last) = (0, 0, [0; 2]);
    while let Some(&len) = name.get(at).filter(|&&len| len > 0) {
        last = [last[1], at];
        labels += 1;
        at += 1 + usize::from(len);
    }
    (labels, name.get(last[0]..).unwrap_or_default())
}

/// Returns a number that depends on all octets: FNV-1a, its upper half, where they are spread best.
fn spread(octets: &[u8]) -> usize {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash =
        octets.iter().fold(BASIS, |hash, &octet| (hash ^ u64::from(octet)).wrapping_mul(PRIME));
    (hash >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_number_of_labels_and_an_ending_of_two() {
        let of = |name: &'static [u8]| ending(name);
        assert_eq!(of(b"\0"), (0, &b"\0"[..]));
        assert_eq!(of(b"\x03net\0"), (1, &b"\x03net\0"[..]));
        assert_eq!(of(b"\x01a\x03net\0"), (2, &b"\x01a\x03net\0"[..]));
        assert_eq!(of(b"\x02ww\x01a\x03net\0"), (3, &b"\x01a\x03net\0"[..]));
        assert_eq!(of(b"\x3fcut off"), (1, &b"\x3fcut off"[..]));
    }

    #[test]
    fn a_cut_is_reported_at_its_depth_until_it_expires() {
        let cuts = Cuts::new();
        cuts.note(b"\x04gone\x01a\x03net\0", 60);
        cuts.note(b"\x04gone\x01a\x03net\0", 50);
        let row = cuts.row(b"\x01x\x04gone\x01a\x03net\0");
        let depths =
            |now_secs| (0..70).filter(|labels| row.may_deny(*labels, now_secs)).collect::<Vec<_>>();
        assert_eq!([depths(59), depths(60)], [vec![3], vec![]]);
        cuts.note(b"\x03net\0", 60);
        assert_eq!(depths(0), [0, 1, 3], "what has one label is above all");
    }

    #[test]
    fn endings_are_spread_over_the_rows() {
        let mut counts = [0; ROWS];
        for number in 0..6400 {
            let name = format!("\x06zone{number:02}\x03net\0");
            counts[spread(name.as_bytes()) % ROWS] += 1;
        }
        assert!(counts.iter().all(|count| (40..180).contains(count)), "{counts:?}");
    }
}
