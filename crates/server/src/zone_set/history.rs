//! What is kept of the former versions of a zone, for clients that ask for changes (rfc1995).

use crate::edit::entry::StoredEdit;
use crate::edit::journal::mark_now;
use crate::units::UnitKey;
use crate::zone_set_view::KnownZone;
use std::sync::Arc;
use zonda_engine::access::AccessList;
use zonda_engine::{HistoryLimits, VersionMark, ZoneHistory};
use zonda_zone::{Diff, Zone, is_greater};

/// The bounds that an access list sets, if it allows transfers.
pub fn limits(access: Option<&AccessList>) -> Option<HistoryLimits> {
    let transfers = &access?.transfers;
    let is_kept = !transfers.to.is_empty() && transfers.history.versions > 0;
    is_kept.then_some(transfers.history)
}

/// The history of the version of a zone that follows another one, from a unit.
pub fn of_next(
    former: &KnownZone,
    (next, unit): (&Arc<Zone>, &UnitKey),
    limits: Option<HistoryLimits>,
) -> Option<Arc<ZoneHistory>> {
    let (limits, old) = (limits?, former.data()?);
    let kept = former.entry.history.as_ref();
    if Arc::ptr_eq(old, next) {
        return kept.and_then(|kept| within(kept, limits));
    }
    let (was, is) = (old.serial(), next.serial());
    if !is_greater(is, was) {
        let zone = &former.entry.apex;
        tracing::warn!(
            %zone,
            former = was,
            serial = is,
            "the zone has changed and its serial has not risen: secondaries do not follow, and \
             the history for incremental transfers begins anew"
        );
        return None;
    }
    // A difference that is larger than the zone is never sent.
    let bytes_max = limits.bytes.min(next.bytes());
    let diff = old.diff_within(next, bytes_max).ok()?;
    after(kept, (diff, Some(mark_now(unit.origin()))), limits)
}

/// The history of the version that an edit leads to.
pub fn of_edit(
    former: &KnownZone,
    (diff, mark): (&Diff, VersionMark),
    limits: Option<HistoryLimits>,
) -> Option<Arc<ZoneHistory>> {
    after(former.entry.history.as_ref(), (diff.clone(), Some(mark)), limits?)
}

/// The history of a version that some changes lead to, the oldest first.
pub fn of_all(edits: Vec<StoredEdit>, limits: HistoryLimits) -> Option<Arc<ZoneHistory>> {
    let add = |former: Option<Arc<ZoneHistory>>, edit: StoredEdit| {
        after(former.as_ref(), (edit.diff, edit.mark), limits)
    };
    edits.into_iter().fold(None, add)
}

/// The history of a version that some changes lead to which a feed has kept, the oldest first.
pub fn of_kept(changes: Vec<Diff>, limits: HistoryLimits) -> Option<Arc<ZoneHistory>> {
    let add = |former: Option<Arc<ZoneHistory>>, diff| after(former.as_ref(), (diff, None), limits);
    changes.into_iter().fold(None, add)
}

/// The history that a difference leads to from another one.
fn after(
    former: Option<&Arc<ZoneHistory>>,
    (diff, mark): (Diff, Option<VersionMark>),
    limits: HistoryLimits,
) -> Option<Arc<ZoneHistory>> {
    let former = former.map(|former| &**former);
    ZoneHistory::after(former, (Arc::new(diff), mark), limits).map(Arc::new)
}

/// The part of a history that is within limits.
fn within(kept: &Arc<ZoneHistory>, limits: HistoryLimits) -> Option<Arc<ZoneHistory>> {
    match kept.versions() <= limits.versions && kept.bytes() <= limits.bytes {
        true => Some(Arc::clone(kept)),
        false => ZoneHistory::clone(kept).within(limits).map(Arc::new),
    }
}
