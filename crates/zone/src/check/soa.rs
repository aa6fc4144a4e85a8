//! The SOA record.

use super::Findings;
use super::problem::{CheckProblem, SoaFault};
use super::view::{Owner, View};
use zonda_wire::{Type, name};

/// How long names may be taken not to exist, seconds (rfc2308#5).
const MINIMUM_MAX: u64 = 86_400;

/// A zone begins with its SOA record.
pub(super) fn missing(view: &View<'_>, findings: &mut Findings<'_>) {
    if !view.find(view.apex).is_some_and(|apex| apex.has(Type::SOA)) {
        findings.zone(view.apex, CheckProblem::NoSoa);
    }
}

/// Values that secondaries and resolvers suffer from.
pub(super) fn values(owner: Owner<'_>, findings: &mut Findings<'_>) {
    let Some((index, record)) = owner.of(Type::SOA).next().filter(|_| owner.is_apex()) else {
        return;
    };
    let Some((names, numbers)) = record.rdata.split_last_chunk::<20>() else { return };
    let number = |at: usize| numbers[at..at + 4].iter().fold(0, |n, &o| n << 8 | u64::from(o));
    let [refresh, retry, expire, minimum] = [4, 8, 12, 16].map(number);
    let mailbox = name::wire_len(names).and_then(|len| names.get(len..)).unwrap_or_default();
    for (is_wrong, fault) in [
        (mailbox.contains(&b'@'), SoaFault::AtSign),
        (refresh == 0 || retry == 0, SoaFault::Zero),
        (retry > refresh, SoaFault::RetryAboveRefresh),
        (expire < refresh + retry, SoaFault::ExpireTooShort),
        (minimum > MINIMUM_MAX, SoaFault::MinimumTooLong),
    ] {
        if is_wrong {
            findings.record(index, CheckProblem::Soa(fault));
        }
    }
}
