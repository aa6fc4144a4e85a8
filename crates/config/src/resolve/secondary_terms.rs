//! The terms of zones of primaries, which zones share where they are the same.
//!
//! A server may have a hundred thousand zones of one primary: each would have some 600 octets of
//! terms of its own.

use super::keys::KeyList;
use crate::access::Access;
use crate::keys::SecondaryKeys;
use std::sync::Arc;

/// The terms of a zone of primaries.
#[derive(Clone)]
pub struct SecondaryTerms {
    /// The access list that the configuration has for the zone.
    given: Option<Arc<Access>>,
    /// How the zone is transferred.
    pub keys: Arc<SecondaryKeys>,
    /// The access list with the clients that may send NOTIFY.
    pub access: Arc<Access>,
}

/// The terms of the zone of primaries that was read last.
#[derive(Default)]
pub struct LastSecondary(Option<SecondaryTerms>);

impl LastSecondary {
    /// The terms of the next zone: those of the last one, where they are the same.
    pub fn terms(&mut self, given: Option<Arc<Access>>, keys: SecondaryKeys) -> SecondaryTerms {
        let last = self.0.take().filter(|it| it.given == given && *it.keys == keys);
        let terms = last.unwrap_or_else(|| {
            let access = KeyList::of_secondary(given.as_deref(), &keys);
            SecondaryTerms { given, keys: keys.into(), access: access.into() }
        });
        self.0.insert(terms).clone()
    }
}
