//! What a transfer sends between its first and its last SOA record: a whole zone, or what changed.

use super::expansion::AddressSet;
use std::sync::Arc;
use zonda_wire::{StreamWriter, Type};
use zonda_zone::{Diff, Record, RecordCursor, Zone};

/// Octets of differences up to which they are merged, which takes some ten milliseconds; longer
/// ones are sent as they are.
const MERGED_BYTES_MAX: usize = 4 << 20;

/// What is sent, and how much of it was.
pub(super) enum Content {
    /// All records of the zone.
    Zone(RecordCursor),
    /// All records of the zone, with addresses in place of ALIAS records.
    Expanded(Box<ExpandedZone>),
    /// The differences to the version that the client has, the oldest first (rfc1995#4).
    Changes {
        /// The differences that are sent.
        diffs: Vec<Arc<Diff>>,
        /// The number of the difference at hand.
        diff: usize,
        /// How many of its records were sent, those that are removed first.
        records: usize,
    },
}

/// Why the whole zone is sent to a client that has asked for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholeZoneReason {
    /// Nothing is kept of former versions.
    NoHistory,
    /// The history does not reach back to the version of the client.
    HistoryTooShort,
    /// The changes are longer than the zone.
    ZoneIsShorter,
    /// The zone is sent with addresses in place of ALIAS records, of which there is no history.
    AliasesExpanded,
}

impl WholeZoneReason {
    /// The reason in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoHistory => "no former version is kept",
            Self::HistoryTooShort => "the history does not reach back to the client's version",
            Self::ZoneIsShorter => "the changes are longer than the zone",
            Self::AliasesExpanded => "ALIAS records are expanded",
        }
    }
}

impl Content {
    /// These differences, or the whole zone if there are none or it is shorter. Several are merged
    /// into one where that is half as long at most (rfc1995#6).
    pub(super) fn of(diffs: &[Arc<Diff>], zone: &Zone) -> Self {
        let bytes: usize = diffs.iter().map(|diff| diff.bytes()).sum();
        let (mut diffs, mut shortest) = (diffs.to_vec(), bytes);
        if diffs.len() > 1
            && bytes <= MERGED_BYTES_MAX
            && let Ok(merged) = Diff::of_all(&diffs.iter().map(|it| &**it).collect::<Vec<_>>())
            && merged.bytes() * 2 <= bytes
        {
            shortest = merged.bytes();
            diffs = vec![Arc::new(merged)];
        }
        match diffs.is_empty() || shortest > zone.bytes() {
            true => Self::Zone(RecordCursor::default()),
            false => Self::Changes { diffs, diff: 0, records: 0 },
        }
    }

    /// Whether changes are sent instead of the whole zone.
    pub(super) fn is_changes(&self) -> bool {
        matches!(self, Self::Changes { .. })
    }

    /// Writes records until the message is full, and counts them; the type of the first one that
    /// does not fit, if not all were written.
    pub(super) fn write(
        &mut self,
        zone: &Zone,
        writer: &mut StreamWriter,
        count: &mut u64,
    ) -> Result<(), Type> {
        match self {
            Self::Zone(cursor) => write_zone(zone, cursor, (writer, count), |_| true),
            Self::Expanded(content) => content.write(zone, writer, count),
            Self::Changes { diffs, diff, records } => {
                while let Some(at_hand) = diffs.get(*diff) {
                    while let Some(Record { owner, rtype, ttl, rdata }) = record(at_hand, *records)
                    {
                        writer.record(owner, (rtype, ttl), rdata).map_err(|_| rtype)?;
                        (*records, *count) = (*records + 1, *count + 1);
                    }
                    (*diff, *records) = (*diff + 1, 0);
                }
                Ok(())
            }
        }
    }
}

/// A zone with addresses in place of ALIAS records, and how much of it was sent.
pub(super) struct ExpandedZone {
    /// The records of the zone that were sent.
    cursor: RecordCursor,
    /// The addresses, which are sent behind these records.
    sets: Vec<AddressSet>,
    /// The number of the set that is sent next.
    set: usize,
    /// How many of its addresses were sent.
    addresses: usize,
}

impl ExpandedZone {
    /// A zone with these addresses, of which nothing was sent.
    pub(super) fn new(sets: Vec<AddressSet>) -> Self {
        Self { cursor: RecordCursor::default(), sets, set: 0, addresses: 0 }
    }

    /// Writes records as [`Content::write`] does.
    fn write(
        &mut self,
        zone: &Zone,
        writer: &mut StreamWriter,
        count: &mut u64,
    ) -> Result<(), Type> {
        let sent = (&mut *writer, &mut *count);
        // A digest of the zone as it stands would be wrong for the zone that is sent.
        let is_sent = |rtype| !matches!(rtype, Type::ALIAS | Type::ZONEMD);
        write_zone(zone, &mut self.cursor, sent, is_sent)?;
        while let Some(AddressSet { owner, rtype, ttl, addresses }) = self.sets.get(self.set) {
            for address in addresses.iter().skip(self.addresses) {
                writer.record(owner, (*rtype, *ttl), address).map_err(|_| *rtype)?;
                (self.addresses, *count) = (self.addresses + 1, *count + 1);
            }
            (self.set, self.addresses) = (self.set + 1, 0);
        }
        Ok(())
    }
}

/// Writes records of a zone whose types are sent until the message is full, and counts them; the
/// type of the first one that does not fit, if not all were written.
fn write_zone(
    zone: &Zone,
    cursor: &mut RecordCursor,
    (writer, count): (&mut StreamWriter, &mut u64),
    is_sent: impl Fn(Type) -> bool,
) -> Result<(), Type> {
    let mut refused = Type::SOA;
    let is_whole = zone.take_records(cursor, |owner, fixed, rdata| {
        refused = fixed.0;
        if !is_sent(fixed.0) {
            return true;
        }
        let fits = writer.record(owner, fixed, rdata).is_ok();
        *count += u64::from(fits);
        fits
    });
    if is_whole { Ok(()) } else { Err(refused) }
}

/// A record of a difference by its number, those that are removed first; none behind the last.
fn record(diff: &Diff, number: usize) -> Option<Record<'_>> {
    let removed = diff.removed.len();
    match number.checked_sub(removed) {
        None => Some(diff.removed.get(number)),
        Some(added) => (added < diff.added.len()).then(|| diff.added.get(added)),
    }
}
