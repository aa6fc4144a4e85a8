//! Keys that bound the same thing from below and above.

use std::time::Duration;

use crate::error::{Contradiction, LocalMistake};
use crate::keys::{CacheKeys, ForwardKeys, Forwarding, SecondaryKeys};
use crate::reader::Reader;
use crate::section::Keys;

/// Reads how long answers are kept.
pub(super) fn cache(reader: &mut Reader<'_, '_>) -> Option<CacheKeys> {
    let keys = CacheKeys::read(reader)?;
    let ttls = [("ttl-min", keys.ttl_min), ("ttl-max", keys.ttl_max)];
    let negative =
        [("negative-ttl-min", keys.negative_ttl_min), ("negative-ttl-max", keys.negative_ttl_max)];
    let failure =
        [("failure-ttl-min", keys.failure_ttl_min), ("failure-ttl-max", keys.failure_ttl_max)];
    [ttls, negative, failure].into_iter().for_each(|pair| refuse_above(reader, pair));
    Some(keys)
}

/// Reads how much is taken on by those that forward. What is said of one answer only must not be
/// more than of all; unless said, it may be.
pub(super) fn forwarding(reader: &mut Reader<'_, '_>) -> Option<Forwarding> {
    const OF_ONE: &str = "waiting-per-answer-max";
    let keys = Forwarding::read(reader)?;
    if keys.waiting_per_answer_max > keys.waiting_max && reader.is_set(OF_ONE) {
        reader.contradict(Some(OF_ONE), Contradiction::Above(OF_ONE, "waiting-max"));
    }
    Some(keys)
}

/// Looks at how servers are asked.
pub(super) fn forward(reader: &mut Reader<'_, '_>, keys: &ForwardKeys) {
    if !keys.private_names.is_empty() && !keys.rebinding_protection {
        let mistake = LocalMistake::PrivateNamesForNothing;
        reader.contradict(Some("private-names"), Contradiction::Local(mistake));
    }
    for (least, from, greatest, to) in [
        ("ttl-min", keys.ttl_min, "ttl-max", keys.ttl_max),
        ("negative-ttl-min", keys.negative_ttl_min, "negative-ttl-max", keys.negative_ttl_max),
    ] {
        if let Some((from, to)) = from.zip(to) {
            refuse_above(reader, [(least, from), (greatest, to)]);
        }
    }
    let interval = ("probe-interval", keys.probe_interval);
    refuse_above(reader, [interval, ("probe-interval-max", keys.probe_interval_max)]);
}

/// Looks at how a zone is transferred from primaries.
pub(super) fn secondary(reader: &mut Reader<'_, '_>, keys: &SecondaryKeys) {
    let refresh = [("refresh-min", keys.refresh_min), ("refresh-max", keys.refresh_max)];
    let retry = [("retry-min", keys.retry_min), ("retry-max", keys.retry_max)];
    [refresh, retry].into_iter().for_each(|pair| refuse_above(reader, pair));
}

/// Looks at the times to live that a right to change a zone allows.
pub(super) fn update(
    reader: &mut Reader<'_, '_>,
    ttl_min: Option<Duration>,
    ttl_max: Option<Duration>,
) {
    if let Some((least, greatest)) = ttl_min.zip(ttl_max) {
        refuse_above(reader, [("ttl-min", least), ("ttl-max", greatest)]);
    }
}

/// Reports a least time that is above the greatest.
fn refuse_above(
    reader: &mut Reader<'_, '_>,
    [(least, from), (greatest, to)]: [(&'static str, Duration); 2],
) {
    if from > to {
        reader.contradict(Some(least), Contradiction::Above(least, greatest));
    }
}
