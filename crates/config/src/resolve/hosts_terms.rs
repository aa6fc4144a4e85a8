//! What is made of the lines of a zone's hosts file.

use crate::HostsTerms;
use crate::error::Contradiction;
use crate::keys::ZoneKeys;
use crate::reader::Reader;

/// Returns what is made of the lines of a zone's hosts file.
pub(super) fn hosts_terms(keys: &ZoneKeys) -> HostsTerms {
    HostsTerms { ttl: keys.hosts_ttl, has_reverse: keys.hosts_reverse }
}

/// Reports other terms than usual of a zone without a hosts file, where they mean nothing.
pub(super) fn refuse_hosts_terms(reader: &mut Reader<'_, '_>, keys: &ZoneKeys) {
    let (terms, usual) = (hosts_terms(keys), HostsTerms::default());
    for (key, is_usual) in [
        ("hosts-ttl", terms.ttl == usual.ttl),
        ("hosts-reverse", terms.has_reverse == usual.has_reverse),
    ] {
        if keys.hosts.is_none() && !is_usual {
            reader.contradict(Some(key), Contradiction::Needs(key, "hosts"));
        }
    }
}
