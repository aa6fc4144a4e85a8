//! Addresses that transfers have in place of ALIAS records.

use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, PoisonError};
use zonda_engine::{AliasLookup, Snapshot};
use zonda_forward::Forwarders;
use zonda_transport::tcp::ExpandAliases;

/// Looks up addresses for transfers, in the zones and the answer cache as they are then, and has
/// the forwarder threads fetch what is not known.
pub fn expand_aliases(
    snapshot: &Arc<ArcSwap<Snapshot>>,
    forwarders: &Forwarders,
) -> Box<ExpandAliases> {
    let (snapshot, forwarders) = (Arc::clone(snapshot), forwarders.clone());
    let kept = Mutex::<Option<Box<AliasLookup>>>::default(); // its tables take memory
    let take = move |lookup| {
        std::mem::replace(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner), lookup)
    };
    Box::new(move |transfer, now| {
        let present = snapshot.load_full();
        let mut lookup = take(None).unwrap_or_default();
        let fetch = |question| forwarders.refresh(question);
        let pause = lookup.expand(&present, transfer, now, fetch);
        take(Some(lookup));
        pause
    })
}
