//! Addresses that a transfer has in place of ALIAS records, looked up for it.

use crate::alias_lookup::{AliasAddresses, AliasLookup, AliasQuestion};
use crate::message::Now;
use crate::snapshot::Snapshot;
use crate::transfer::{Transfer, TransferError};
use crate::zones::{Source, ZoneEntry};
use std::sync::Arc;
use std::time::Duration;

/// Most look-ups of one call, which take about a millisecond.
const LOOKS_MAX: usize = 500;
/// How long to wait for upstreams until addresses are looked up again.
const PAUSE: Duration = Duration::from_millis(20);
/// The time until what is not known yet is to be fetched again, nanoseconds: a fetch may have found
/// no room.
const FETCH_AGAIN_NANOS: u64 = 1_000_000_000;

impl AliasLookup {
    /// Looks up addresses that a transfer has in place of ALIAS records, some at a time: those that
    /// its client would be given now. What upstreams are to be asked for goes to `fetch`. Returns
    /// how long to wait until the next call; nothing once all addresses are known.
    ///
    /// # Errors
    /// When addresses cannot be had, or have not come in 5 s.
    pub fn expand(
        &mut self,
        snapshot: &Snapshot,
        transfer: &mut Transfer,
        now: Now,
        mut fetch: impl FnMut(AliasQuestion),
    ) -> Result<Option<Duration>, TransferError> {
        let (apex, peer) = (transfer.apex().clone(), transfer.peer());
        let snapshot = snapshot.at(peer.listener);
        let Some((zone, expansion)) = transfer.expansion() else { return Ok(None) };
        // The version that is sent, which need not be the one in force any more. Targets in zones
        // are looked up in the snapshot in force.
        let data = Arc::clone(zone);
        let entry = ZoneEntry::new(apex, Source::Data(Arc::clone(&data)), None, 0);
        let (zone, nanos) = ((snapshot, &entry), now.monotonic_nanos);
        expansion.begin(&data, nanos);
        let is_late = expansion.is_late(nanos);
        let mut pause = PAUSE;
        for _ in 0..expansion.left().min(LOOKS_MAX) {
            let Some(mut pending) = expansion.next() else { break };
            let question = (&*pending.owner, pending.qtype);
            let found = match is_late {
                true => self.look_up_known(zone, question, (now, &peer)),
                false => self.look_up(zone, question, (now, &peer)),
            };
            match found {
                AliasAddresses::Found(addresses, ttl) => expansion.note(pending, ttl, addresses),
                AliasAddresses::None(_) => {}
                AliasAddresses::Failed(_) if is_late => return Err(pending.error(None)),
                AliasAddresses::Failed(reason) => return Err(pending.error(Some(reason))),
                AliasAddresses::Due(_) if is_late => return Err(pending.error(None)),
                AliasAddresses::Due(question) => {
                    let is_other = pending.fetched != Some(question.name_hash);
                    if is_other || nanos >= pending.fetch_nanos {
                        pending.fetched = Some(question.name_hash);
                        pending.fetch_nanos = nanos + FETCH_AGAIN_NANOS;
                        fetch(question);
                    }
                    expansion.put_back(pending);
                    continue;
                }
            }
            pause = Duration::ZERO;
        }
        Ok((expansion.left() > 0).then_some(pause))
    }
}
