//! Opening a big journal needs memory for the index, not for what the entries hold.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, WIDE, name};
use zonda_journal::{Entry, Journal};

#[test]
fn opening_a_journal_takes_32_octets_an_entry_and_a_buffer() {
    const ENTRIES: u32 = 20_000;
    let folder = Folder::new();
    let (mut journal, _) = Journal::open(&folder.journal(), WIDE).unwrap();
    let zones = [name("example.com."), name("example.net.")];
    let payload = [7; 2000];
    for serial in 0..ENTRIES / 2 {
        for zone in &zones {
            let entry = Entry { zone, from: serial, to: serial + 1, payload: &payload };
            journal.append(entry).unwrap();
        }
    }
    journal.commit().unwrap();
    drop(journal);
    let path = folder.journal();
    let memory = allocation_counter::measure(|| {
        let (journal, opened) = Journal::open(&path, WIDE).unwrap();
        assert_eq!(opened.sizes.entries, u64::from(ENTRIES));
        drop(journal);
    });
    // While the index of a zone grows, the former half of it is there, too.
    let max = 48 * u64::from(ENTRIES) + (300 << 10);
    assert!(memory.bytes_max < max, "{} octets, {max} at most", memory.bytes_max);
}
