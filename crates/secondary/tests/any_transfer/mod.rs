//! Any octets read as the reply to a question for a transfer: no panic, and what comes out is what
//! the rules of transfers allow. The first octet chooses the question; then each message stands
//! behind two octets of its length. A file of a zone is read from the same octets.

use std::time::Duration;
use zonda_secondary::{Intake, Limits, Question, Transferred, zone_file};
use zonda_wire::{Name, StreamMessage};
use zonda_zone::{HashSeed, is_greater};

/// The bounds of each reply.
const LIMITS: Limits = Limits {
    octets_max: 1 << 20,
    records_max: 1000,
    time_max: Duration::from_secs(1),
    idle_max: Duration::from_secs(1),
};

/// Checks what becomes of octets.
pub fn check(octets: &[u8]) {
    let apex = Name::from_wire(b"\x07example\0").unwrap_or_else(|_| Name::root());
    let _ = zone_file::decode(&apex, octets);
    let Some((first, mut rest)) = octets.split_first() else { return };
    let base = (first & 1 == 1).then_some(u32::from(first >> 1));
    let question = if base.is_some() { Question::Ixfr(&[]) } else { Question::Axfr };
    let section = question.section(&apex);
    let mut intake = Intake::new(&apex, base, LIMITS, HashSeed(7));
    while let Some((len, behind)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len));
        let Some((message, behind)) = behind.split_at_checked(len) else { return };
        rest = behind;
        let Some(id) = message.first_chunk() else { return };
        let Ok(read) = StreamMessage::read(message, *id, &section) else { return };
        match intake.take(read, message.len()) {
            Ok(false) => {}
            Ok(true) => break,
            Err(_) => return,
        }
    }
    match intake.finish() {
        Ok(Transferred::Zone(records)) => assert!(!records.is_empty()),
        Ok(Transferred::Changes(changes)) => {
            assert_eq!(changes.first().map(|it| it.from), base);
            for pair in changes.windows(2) {
                assert_eq!(pair[0].to, pair[1].from);
            }
            assert!(changes.iter().all(|it| is_greater(it.to, it.from)));
        }
        Ok(Transferred::UpToDate(serial)) => {
            assert!(base.is_some_and(|base| !is_greater(serial, base)));
        }
        Err(_) => {}
    }
}
