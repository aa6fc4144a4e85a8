//! Answers to requests about the server and its zones.

use super::metrics;
use super::reply::{Reply, json_reply, parameter, text};
use crate::control::Control;
use crate::feed::catalogs::CatalogState;
use crate::feed::cluster_state::ClusterState;
use crate::notify::NotifyCounts;
use crate::query_log::Rfc3339;
use crate::zone_set::Outcome;
use crate::zone_set_view::KnownZone;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zonda_engine::VersionOrigin;
use zonda_engine::access::NotifyReceiver;
use zonda_wire::Name;

/// Zones in one page of `/v1/zones`, unless the request wants fewer or more.
const PAGE: usize = 1000;
/// Most zones in one page.
const PAGE_MAX: usize = 100_000;

/// A reply that says that the process answers.
pub fn health() -> Reply {
    text(StatusCode::OK, "ok\n".into())
}

/// The version of the server.
pub fn version() -> Reply {
    json_reply(&json!({ "version": crate::VERSION }))
}

/// The metrics for Prometheus.
pub fn metrics_page(control: &Control) -> Reply {
    let mut reply = text(StatusCode::OK, metrics::page(control));
    let version = "text/plain; version=0.0.4; charset=utf-8";
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(version));
    reply
}

/// Ready means that every zone is served and every thread does its work; otherwise the reasons, a
/// line each. What is wrong with a file is told only if `tells_all`. A journal that cannot be
/// written is no reason: all zones are answered, and another server would answer nothing more.
pub fn ready(control: &Control, tells_all: bool, word: &str) -> Reply {
    let state = control.state();
    let unserved = state.zone_set().zones().filter(|zone| zone.data().is_none());
    let zones = unserved.filter_map(|zone| {
        let (apex, error) = (&zone.entry.apex, zone.error.as_ref()?);
        Some(match tells_all {
            true => format!("zone {apex} is not served: {error}\n"),
            false => format!("zone {apex} is not served: `zonda zone show {apex}` tells why\n"),
        })
    });
    let failures = state.zone_set().failures().filter(|failure| !failure.is_served);
    let failures = failures.map(|failure| match tells_all {
        true => format!("{}\n", failure.error),
        false => "a file of zones cannot be read: `zonda status` tells which\n".to_owned(),
    });
    let down = control.watchdog.down();
    let threads = down.iter().map(|name| format!("thread {name} is down; see the log\n"));
    let stops = control.is_stopping.load(Relaxed).then(|| "the server stops\n".to_owned());
    let reasons = stops.into_iter().chain(threads).chain(zones).chain(failures);
    match reasons.take(PAGE).collect::<String>() {
        reasons if reasons.is_empty() => match stale(control) {
            stale if stale.is_empty() => text(StatusCode::OK, word.into()),
            stale => text(StatusCode::OK, format!("{}\n{stale}", word.trim_end())),
        },
        reasons => text(StatusCode::SERVICE_UNAVAILABLE, reasons),
    }
}

/// Tells which zones have the names of a cluster at a former time, a line each.
fn stale(control: &Control) -> String {
    let states = control.stores.cluster_states();
    let since = |state: &ClusterState| Some(state.stale_since.load(Relaxed)).filter(|it| *it > 0);
    let lines = states.iter().filter_map(|(zone, state)| {
        let since = time(UNIX_EPOCH + Duration::from_secs(since(state)?));
        Some(format!(
            "zone {zone} is stale: its names are those of {since} until the API server has told \
             all objects\n"
        ))
    });
    lines.collect()
}

/// Returns the server's version, state and figures.
pub fn status(control: &Control) -> Value {
    let state = control.state();
    let zone_set = state.zone_set();
    let unserved = zone_set.zones().filter(|zone| zone.data().is_none()).count();
    let failed = zone_set.zones().filter(|zone| zone.error.is_some()).count();
    let history = &state.history;
    let failures = zone_set.failures().map(|failure| failure.error.to_string());
    let down = control.watchdog.down();
    let threads = down.iter().map(|name| format!("thread {name} is down; see the log"));
    let journal = control.state().journal.failure.clone();
    let problems: Vec<String> = history
        .config_error
        .iter()
        .cloned()
        .chain(threads)
        .chain(failures)
        .chain(journal)
        .collect();
    let journal = &state.journal;
    let unflushed = journal.sizes.map_or(0, |_| journal.counters.unflushed_zones());
    json!({
        "version": crate::VERSION,
        "pid": std::process::id(),
        "uptime_seconds": control.started.elapsed().as_secs(),
        "listeners": control.addresses().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "workers": control.listeners.worker_count(),
        "zones": zone_set.zone_count(),
        "zones_not_served": unserved,
        "zones_with_errors": failed,
        "problems": problems,
        "zones_not_flushed": unflushed,
        "tcp_connections": control.tcp.open_connections(),
        "reloads": history.reloads,
        "failed_reloads": history.failed_reloads,
        "last_reload": history.last.map(time),
    })
}

/// A page of the list of zones, in the order of their names.
pub fn zones(query: &str, control: &Control) -> Reply {
    let limit = parameter(query, "limit").map(|text| text.parse::<usize>());
    let Ok(limit) = limit.unwrap_or(Ok(PAGE)) else {
        return text(StatusCode::BAD_REQUEST, "limit must be a number\n".into());
    };
    let after = parameter(query, "after").map(|text| text.parse::<Name>());
    let Ok(after) = after.transpose() else {
        return text(StatusCode::BAD_REQUEST, "after must be the name of a zone\n".into());
    };
    let after = after.map(|name| name.to_lowercase());
    let state = control.state();
    let order = |a: &Name, b: &Name| zonda_wire::name::canonical_cmp(a.as_wire(), b.as_wire());
    let by_name = |a: &&KnownZone, b: &&KnownZone| order(&a.entry.apex, &b.entry.apex);
    let is_behind =
        |zone: &&KnownZone| after.as_ref().is_none_or(|it| order(&zone.entry.apex, it).is_gt());
    let mut zones: Vec<_> = state.zone_set().zones().filter(is_behind).collect();
    let limit = limit.min(PAGE_MAX);
    if limit < zones.len() {
        zones.select_nth_unstable_by(limit, by_name);
        zones.truncate(limit);
    }
    zones.sort_unstable_by(by_name);
    let page: Vec<_> = zones.into_iter().map(|zone| describe(zone, control)).collect();
    json_reply(&json!({ "total": state.zone_set().zone_count(), "zones": page }))
}

/// Returns one zone by its name.
pub fn zone(name: &str, control: &Control) -> Reply {
    let Ok(name) = name.parse::<Name>() else {
        return text(StatusCode::BAD_REQUEST, "not the name of a zone\n".into());
    };
    match control.state().zone_set().zone(&name) {
        Some(zone) => json_reply(&describe(zone, control)),
        None => text(StatusCode::NOT_FOUND, format!("zone {name} is not served here\n")),
    }
}

/// A zone as `/v1/zones` shows it.
fn describe(zone: &KnownZone, control: &Control) -> Value {
    let at = |secs| time(UNIX_EPOCH + Duration::from_secs(secs));
    let (name, state) = (zone.entry.apex.to_lowercase(), control.state());
    let store = control.stores.state(&name);
    let secondaries = control.stores.secondaries.states();
    let secondary = secondaries.get(&name);
    let catalogs = control.stores.catalogs.states();
    let catalog = catalogs.get(&name);
    let clusters = control.stores.cluster_states();
    let cluster = clusters.get(&name);
    let file = Some(zone.path()).filter(|path| !path.as_os_str().is_empty());
    json!({
        "name": zone.entry.apex.to_string(),
        "file": file,
        "source": zone.unit.to_string(),
        "role": role(zone),
        "frozen": state.zone_set().frozen.get(&name).map(|since| at(*since)),
        "served": zone.data().is_some(),
        "serial": zone.data().map(|data| data.serial()),
        "records": zone.records,
        "memory_bytes": zone.data().map(|data| data.bytes()),
        "loaded": zone.loaded.map(|loaded| time(loaded.time())),
        "error": zone.error.as_ref().map(ToString::to_string),
        "store": store.map(|store| store.to_json(at)),
        "notify": notify(zone, &state.notify),
        "secondary": secondary.map(|secondary| secondary.to_json(at)),
        "catalog": catalog.map(CatalogState::to_json),
        "cluster": cluster.map(|cluster| cluster.to_json(at)),
    })
}

/// The servers that are notified of new versions of a zone, and what each has not acknowledged.
fn notify(zone: &KnownZone, counts: &NotifyCounts) -> Vec<Value> {
    let name = zone.entry.apex.to_lowercase();
    let access = zone.entry.access.iter();
    let receiver = |it: &NotifyReceiver| {
        let waiting = counts.waiting(&name, it.address).map(
            |it| json!({ "serial": it.serial, "attempts": it.attempts, "refused": it.is_refused }),
        );
        json!({ "address": it.address.to_string(), "waiting": waiting })
    };
    access.flat_map(|access| &access.transfers.notify).map(receiver).collect()
}

/// Returns the role of the server for a zone: that of a secondary where the records are transferred
/// from primaries.
fn role(zone: &KnownZone) -> &'static str {
    match zone.unit.origin() {
        VersionOrigin::Transfer => "secondary",
        _ => "primary",
    }
}

/// Reloads everything that changed, or one zone.
pub fn reload(query: &str, control: &Control) -> Reply {
    let Some(name) = parameter(query, "zone") else {
        return match control.reload() {
            Ok(outcome) => outcome_reply(&outcome),
            Err(error) => text(StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")),
        };
    };
    match name.parse::<Name>() {
        Ok(name) if control.state().zone_set().zone(&name).is_some() => {
            match control.reload_zone(&name) {
                Ok(outcome) => outcome_reply(&outcome),
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            }
        }
        Ok(name) => text(StatusCode::NOT_FOUND, format!("zone {name} is not served here\n")),
        Err(error) => text(StatusCode::BAD_REQUEST, format!("{name}: {error}\n")),
    }
}

/// Returns the reply to a reload; a failure of any zone is a failure.
fn outcome_reply(outcome: &Outcome) -> Reply {
    let names = |names: &[Name]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut reply = json_reply(&json!({
        "loaded": names(&outcome.loaded),
        "unchanged": names(&outcome.unchanged),
        "removed": names(&outcome.removed),
        "failed": outcome.failed,
    }));
    if !outcome.failed.is_empty() {
        *reply.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    reply
}

/// A moment as text.
pub fn time(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    Rfc3339(u32::try_from(since.as_secs()).unwrap_or(u32::MAX)).to_string()
}
