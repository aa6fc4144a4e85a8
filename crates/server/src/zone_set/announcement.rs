//! Which zones servers are to be notified of (rfc1996).

use super::ZoneSet;
use crate::notify::Cause;
use crate::zone_set_view::KnownZone;
use zonda_engine::access::NotifyReceiver;

impl ZoneSet {
    /// Why servers are to be notified of a zone, if they are: its version is new, or they are.
    pub(super) fn announcement(&self, zone: &KnownZone) -> Option<Cause> {
        let (own, serial) = (receivers(zone), zone.data()?.serial());
        let former = self.zone(&zone.entry.apex);
        match former.and_then(|it| Some((it.data()?.serial(), receivers(it) == own))) {
            _ if own.is_empty() => None,
            Some((known, is_told)) if known == serial => (!is_told).then_some(Cause::First),
            Some(_) => Some(Cause::Change),
            None => Some(Cause::First),
        }
    }
}

/// The servers that are notified of new versions of a zone.
fn receivers(zone: &KnownZone) -> &[NotifyReceiver] {
    zone.entry.access.as_ref().map_or(&[], |access| &access.transfers.notify)
}
