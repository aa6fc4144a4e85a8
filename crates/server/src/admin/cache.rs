//! What is kept of a name, and forgetting it.

use crate::control::Control;
use crate::query_log::Rfc3339;
use serde_json::{Value, json};
use std::sync::Arc;
use zonda_cache::{Cache, DENIES_BELOW, Entry, Key, Kind, Variant};
use zonda_engine::Now;
use zonda_wire::name;
use zonda_wire::rdata::Presentation;
use zonda_wire::{Class, Ede, Message, Name, Rcode, Type};
use zonda_zone::LookupName;

/// Answers of a name that are shown of those that depend on the client.
const OF_CLIENTS_MAX: usize = 1000;

/// Returns the cached answers for a name, and those which say that a name above it does not exist.
pub fn show(name: &Name, control: &Control) -> Value {
    let (name, now) = (name.to_lowercase(), control.clock.now());
    let state = control.state();
    let looked_up = LookupName::new(name.as_wire(), state.seed);
    let forwards = state.zone_set().forwards();
    let (cache, cuts) = (Arc::clone(forwards.cache()), state.config().cache.nxdomain_cut);
    let zones = forwards.iter_with_resolver().filter(|it| it.may_answer(name.as_wire()));
    let zones: Vec<_> =
        zones.map(|it| (it.label(), it.group_number(), it.tells_of_client())).collect();
    drop(state);
    let mut answers = Vec::new();
    for (zone, source, tells_of_client) in &zones {
        if *tells_of_client {
            // Only a walk finds what is kept for clients of which something is told.
            cache.for_each(|entry| {
                let is_of_name = entry.source == *source && entry.name == name.as_wire();
                if is_of_name && entry.has_variant && answers.len() < OF_CLIENTS_MAX {
                    answers.push(describe(entry, zone, now));
                }
            });
        }
        for label in 0..looked_up.label_count().max(1) {
            if label > 0 && !cuts {
                break;
            }
            let (octets, hash) = (looked_up.suffix(label), looked_up.hash(label));
            for_each_of(&cache, *source, octets, hash, |entry| {
                let denies_below = entry.qtype.is_none() && entry.answer.flags & DENIES_BELOW != 0;
                if label == 0 || denies_below {
                    answers.push(describe(entry, zone, now));
                }
            });
        }
    }
    json!({ "name": name.to_string(), "answers": answers })
}

/// Shows the answers of a source for a name, with and without DO and CD.
fn for_each_of(
    cache: &Cache,
    source: u32,
    name: &[u8],
    hash: u64,
    mut visit: impl FnMut(&Entry<'_>),
) {
    let (qtype, qclass) = (Type::A, Class::IN); // one type stands for all
    for dnssec_ok in [false, true] {
        for checking_disabled in [false, true] {
            let variant = Variant::default();
            let key =
                Key { name, hash, qtype, qclass, source, dnssec_ok, checking_disabled, variant };
            cache.for_each_type(&key, &mut visit);
        }
    }
}

/// An answer of a zone as it is shown.
fn describe(entry: &Entry<'_>, zone: &str, now: Now) -> Value {
    let now_secs = now.monotonic_secs();
    let text = match entry.answer.kind {
        Kind::Failure => String::from_utf8_lossy(entry.answer.body).into_owned(),
        _ => String::new(),
    };
    let stale_until = now.unix_secs.saturating_add(entry.stale_until.saturating_sub(now_secs));
    json!({
        "name": name::Presentation(entry.name).to_string(),
        "type": entry.qtype.map(|qtype| qtype.to_string()),
        "zone": zone,
        "dnssec_ok": entry.dnssec_ok,
        "checking_disabled": entry.checking_disabled,
        "of_client": entry.has_variant,
        "kind": kind(entry.answer.kind),
        "rcode": Rcode(entry.answer.flags & 0x000f).to_string(),
        "extended_error": entry.answer.ede.map(|Ede(code)| code),
        "text": text,
        "ttl": entry.expires_at.saturating_sub(now_secs),
        "stale": now_secs >= entry.expires_at,
        "stale_until": Rfc3339(stale_until).to_string(),
        "bytes": entry.bytes,
        "records": records(entry, now_secs),
    })
}

/// What an answer says, in a word.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Positive => "positive",
        Kind::NoData => "nodata",
        Kind::NxDomain => "nxdomain",
        Kind::Failure => "failure",
    }
}

/// The records of an answer in presentation format.
fn records(entry: &Entry<'_>, now_secs: u32) -> Vec<String> {
    let message = Message::parse(&entry.to_message(now_secs));
    let records = message.map(|message| message.records).unwrap_or_default();
    let text = |record: &zonda_wire::message::Record| {
        let data = Presentation { rtype: record.rtype, rdata: &record.rdata };
        format!("{} {} {} {} {data}", record.owner, record.ttl, record.class, record.rtype)
    };
    records.iter().map(text).collect()
}

/// Forgets what is kept of a name, and with `tree` of all names below it; how many answers.
pub fn flush(name: &Name, tree: bool, control: &Control) -> Value {
    let name = name.to_lowercase();
    let cache = Arc::clone(control.state().zone_set().forwards().cache());
    let removed = match tree {
        true => cache.remove_tree(name.as_wire()),
        false => cache.remove_name(name.as_wire()),
    };
    if let Some(file) = &control.cache_file {
        file.write_soon(); // or it would come back after a crash
    }
    tracing::info!(%name, tree, removed, "answers removed from the cache");
    json!({ "removed": removed })
}
