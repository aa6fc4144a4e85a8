//! Response rate limiting: what one client prefix gets of one kind of reply.
//!
//! A server that answers forged questions is a weapon. Replies over UDP are counted by client
//! prefix, kind and name; above the limit they are dropped, but for every `slip`-th, which is sent
//! truncated so that a real client comes back over TCP.
//!
//! The count is kept as the moment at which the prefix has used up its share (the generic cell
//! rate algorithm): one word per key, no timers, no cleaning.
//!
//! ```text
//! word   tag u24 | moment u40, in units of 16 µs
//! ```
//!
//! All workers share the table. Two that meet on a word may lose one of two counts, never more.

mod table;

pub use table::{RateSettings, RateTable};

use crate::answer::Answer;
use crate::ask::Ask;
use crate::message::Transport;
use crate::reason::Reason;
use crate::resumption::Resumption;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::Verdict;
use crate::worker::Worker;
use table::MOMENT_SHIFT;
use zonda_wire::Rcode;
use zonda_wire::query::flag;
use zonda_wire::tsig::SignatureCheck;

/// The decision on a reply that is counted.
enum Share {
    /// The client has not had its share: the reply is sent.
    Left,
    /// The client has had its share: the reply is dropped.
    UsedUp,
    /// The client has had its share, and is told to come back over TCP.
    Slipped,
}

/// Lets a verdict pass, or turns it into silence or a truncated reply.
#[inline]
pub fn limit(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    verdict: Verdict,
) -> Verdict {
    let Some(settings) = &ask.snapshot.settings.rate else { return verdict };
    let Verdict::Reply(rcode, reason, _) = verdict else { return verdict };
    if ask.peer.transport != Transport::Udp || answer.is_address_proven {
        return verdict;
    }
    // A holder of a key must learn what became of its update.
    if matches!(ask.progress.resumption, Resumption::Update(_)) && is_signed(ask) {
        return verdict;
    }
    match count(ask, answer, &mut worker.slip, settings, (rcode, reason)) {
        Share::Left => verdict,
        Share::UsedUp => Verdict::Drop(Reason::RateDropped),
        Share::Slipped => {
            answer.reply.clear();
            answer.flags = flag::TC;
            let reuse = Reuse::No(NotReused::RateLimit);
            Verdict::Reply(Rcode::NOERROR, Reason::RateSlipped, reuse)
        }
    }
}

/// Whether the client has proven that it has a key.
fn is_signed(ask: &Ask<'_>) -> bool {
    ask.signature.is_some_and(|signature| signature.check == SignatureCheck::Sound)
}

/// Counts a reply; returns whether its client has had its share of such replies.
#[inline(never)] // it would only make the path of servers without a limit longer
fn count(
    ask: &Ask<'_>,
    answer: &Answer<'_>,
    slip: &mut u32,
    settings: &RateSettings,
    (rcode, reason): (Rcode, Reason),
) -> Share {
    let client = ask.peer.address.ip();
    if settings.exempt.iter().any(|network| network.contains(client)) {
        return Share::Left;
    }
    // Names that exist are counted one by one; the endless names that do not exist by the wildcard
    // or DNAME that stands for them, or else by the zone they would be in.
    let reason = kind(answer, rcode, reason);
    let by_name = matches!(reason, Reason::Answered | Reason::NoData | Reason::Identity);
    let label = match (by_name, ask.zone) {
        (true, _) => usize::from(answer.answering_label),
        (false, Some(_)) => ask.labels_below_apex(),
        (false, None) => ask.name.label_count(),
    };
    // What stands for other names shares no count with the name that it is written below.
    let stands_for_others = u64::from(by_name && label > 0);
    let kind =
        ask.name.hash(label) ^ stands_for_others << 32 ^ u64::from(rcode.0) << 8 ^ reason as u64;
    let now = ask.now.monotonic_nanos >> MOMENT_SHIFT;
    let key = settings.key(client, kind);
    if settings.table.admit(key, now, settings.interval, settings.burst) {
        return Share::Left;
    }
    *slip = slip.wrapping_add(1);
    match settings.slip {
        0 => Share::UsedUp,
        every if slip.is_multiple_of(every) => Share::Slipped,
        _ => Share::UsedUp,
    }
}

/// Returns what a reply is counted as: one about a name that exists counts as if it were of this
/// server's data, also if an upstream or code gave it, as a client cannot know where an answer
/// comes from.
fn kind(answer: &Answer<'_>, rcode: Rcode, reason: Reason) -> Reason {
    let is_from_elsewhere = matches!(
        reason,
        Reason::Cached
            | Reason::Forwarded
            | Reason::Stale
            | Reason::Overridden
            | Reason::Blocked
            | Reason::Handled
            | Reason::HandlerCached
    );
    match (is_from_elsewhere && rcode == Rcode::NOERROR, answer.reply.counts()) {
        (true, [0, ..]) => Reason::NoData,
        (true, _) => Reason::Answered,
        (false, _) => reason,
    }
}
