//! The history of a zone: what told each of its last versions from the one before, which replies to
//! IXFR are made of (rfc1995#5).
//!
//! # Invariants
//! - Each difference begins with the serial that the one before it leads to, and each leads to a
//!   greater one.
//! - Both sides of a difference begin with the SOA record.

use std::sync::Arc;
use zonda_wire::Type;
use zonda_zone::{Diff, is_greater};

/// Bounds on the history of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HistoryLimits {
    /// Most versions that are kept; 0 for no history.
    pub versions: usize,
    /// Most octets of memory that they take.
    pub bytes: usize,
}

/// What made a version of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionOrigin {
    /// A file that was read, or read again.
    File,
    /// An edit over the admin interface, by a command or by a program.
    Edit,
    /// Messages of dynamic update (rfc2136).
    Update,
    /// A command that brought the records of an earlier version back.
    Rollback,
    /// A transfer from a primary.
    Transfer,
    /// A database that the zone follows.
    Store,
    /// A program that has given the zone.
    Program,
}

/// When a version of a zone was made, and what made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionMark {
    /// The seconds since 1970 at which the version was made.
    pub made_at: u64,
    /// What made the version.
    pub origin: VersionOrigin,
}

/// The differences between the last versions of a zone, the oldest first; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneHistory {
    /// The differences, each with the next.
    diffs: Vec<Arc<Diff>>,
    /// The marks of the versions that the differences lead to, one for each; none where a former
    /// process has not kept it.
    marks: Vec<Option<VersionMark>>,
    /// The octets of memory that they take.
    bytes: usize,
}

impl VersionOrigin {
    /// The name of the origin, as the admin interface has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Edit => "edit",
            Self::Update => "update",
            Self::Rollback => "rollback",
            Self::Transfer => "transfer",
            Self::Store => "store",
            Self::Program => "program",
        }
    }
}

impl ZoneHistory {
    /// The history of a version that a difference leads to from the version of another one, within
    /// limits; none if nothing is to be kept, or the serial does not rise.
    #[must_use]
    pub fn after(
        former: Option<&Self>,
        (diff, mark): (Arc<Diff>, Option<VersionMark>),
        limits: HistoryLimits,
    ) -> Option<Self> {
        let begins_with_soa = [&diff.removed, &diff.added]
            .iter()
            .all(|records| records.iter().next().is_some_and(|record| record.rtype == Type::SOA));
        if !begins_with_soa || !is_greater(diff.to, diff.from) {
            return None;
        }
        let former = former.filter(|it| it.serial() == Some(diff.from));
        let (mut diffs, mut marks, mut bytes) = (Vec::new(), Vec::new(), diff.bytes());
        if let Some(former) = former {
            diffs.clone_from(&former.diffs);
            marks.clone_from(&former.marks);
            bytes += former.bytes;
        }
        diffs.push(diff);
        marks.push(mark);
        Self { diffs, marks, bytes }.within(limits)
    }

    /// The part of the history that is within limits; none if that is none.
    #[must_use]
    pub fn within(mut self, limits: HistoryLimits) -> Option<Self> {
        let mut dropped = 0;
        for diff in &self.diffs {
            if self.diffs.len() - dropped <= limits.versions && self.bytes <= limits.bytes {
                break;
            }
            self.bytes -= diff.bytes();
            dropped += 1;
        }
        self.diffs.drain(..dropped);
        self.marks.drain(..dropped);
        (!self.diffs.is_empty()).then_some(self)
    }

    /// The serial of the last version.
    #[must_use]
    pub fn serial(&self) -> Option<u32> {
        self.diffs.last().map(|last| last.to)
    }

    /// How many versions before the last one are known.
    #[must_use]
    pub fn versions(&self) -> usize {
        self.diffs.len()
    }

    /// The differences, the oldest first, and when and by what the version was made that each leads
    /// to.
    pub fn changes(&self) -> impl Iterator<Item = (&Arc<Diff>, Option<VersionMark>)> {
        self.diffs.iter().zip(self.marks.iter().copied())
    }

    /// The octets of memory that the differences take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The differences that lead from the version with a serial to the last one, which must be
    /// `current`; none if the history does not reach back so far.
    pub(super) fn since(&self, serial: u32, current: u32) -> Option<&[Arc<Diff>]> {
        let first = self.diffs.iter().position(|diff| diff.from == serial)?;
        (self.serial() == Some(current)).then(|| &self.diffs[first..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_zone::{Record, Records};

    const ALL: HistoryLimits = HistoryLimits { versions: 10, bytes: 1 << 20 };

    /// A difference between two serials, with an SOA record on each side.
    fn diff(from: u32, to: u32) -> Arc<Diff> {
        let soa = |serial: u32| {
            let mut records = Records::default();
            let rdata = [&[0, 0][..], &serial.to_be_bytes(), &[0; 16]].concat();
            let record = Record { owner: b"\x01a\0", rtype: Type::SOA, ttl: 60, rdata: &rdata };
            records.push(record, 0).unwrap();
            records
        };
        Arc::new(Diff { from, to, removed: soa(from), added: soa(to) })
    }

    /// The history of these serials, one after the other.
    fn history(serials: &[u32], limits: HistoryLimits) -> Option<ZoneHistory> {
        serials.windows(2).fold(None, |former: Option<ZoneHistory>, pair| {
            ZoneHistory::after(former.as_ref(), (diff(pair[0], pair[1]), None), limits)
        })
    }

    /// The serials that differences lead to from one, if the history has it.
    fn since(history: &Option<ZoneHistory>, serial: u32, current: u32) -> Option<Vec<u32>> {
        let diffs = history.as_ref()?.since(serial, current)?;
        Some(diffs.iter().map(|diff| diff.to).collect())
    }

    #[test]
    fn a_client_with_a_version_of_the_history_gets_all_that_follow() {
        let history = history(&[1, 2, 5, 9], ALL);
        assert_eq!(since(&history, 1, 9), Some(vec![2, 5, 9]));
        assert_eq!(since(&history, 5, 9), Some(vec![9]));
        assert_eq!(since(&history, 4, 9), None, "between two versions");
        assert_eq!(since(&history, 0, 9), None, "before the first one");
        assert_eq!(since(&history, 5, 10), None, "of another version");
    }

    #[test]
    fn the_oldest_versions_are_dropped_beyond_either_limit() {
        let one = diff(1, 2).bytes();
        for limits in [
            HistoryLimits { versions: 2, ..ALL },
            HistoryLimits { bytes: 2 * one, ..ALL },
            HistoryLimits { bytes: 3 * one - 1, ..ALL },
        ] {
            let history = history(&[1, 2, 3, 4, 5], limits);
            assert_eq!(since(&history, 3, 5), Some(vec![4, 5]));
            assert_eq!(since(&history, 2, 5), None);
            assert_eq!(history.map(|it| it.bytes()), Some(2 * one));
        }
        for limits in [HistoryLimits::default(), HistoryLimits { bytes: one - 1, ..ALL }] {
            assert_eq!(history(&[1, 2, 3], limits), None);
        }
    }

    #[test]
    fn a_serial_that_does_not_rise_or_does_not_follow_begins_a_history_anew() {
        assert_eq!(history(&[1, 2, 2], ALL), None);
        assert_eq!(history(&[1, 5, 3], ALL), None);
        assert_eq!(since(&history(&[1, 5, 3, 4], ALL), 3, 4), Some(vec![4]));
        let gap = ZoneHistory::after(history(&[1, 2], ALL).as_ref(), (diff(7, 8), None), ALL);
        assert_eq!((since(&gap, 1, 8), since(&gap, 7, 8)), (None, Some(vec![8])));
        let wrapped = history(&[u32::MAX, 3, 4], ALL);
        assert_eq!(since(&wrapped, u32::MAX, 4), Some(vec![3, 4]), "rfc1982");
    }
}
