//! Requests about transfers of zones: those that run, to clients and from primaries.

use super::api::time;
use crate::control::Control;
use crate::feed::secondary_state::{MemoryWaitStatus, RunningIntake, SecondaryState};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zonda_engine::RunningTransfer;
use zonda_wire::Name;

/// The transfers that run now, those from primaries that wait for memory, and what all have done so
/// far.
pub fn list(control: &Control) -> Value {
    let state = &control.snapshot().settings.transfers.state;
    let now_nanos = control.clock.now().monotonic_nanos;
    let outgoing: Vec<Value> =
        state.running().iter().map(|running| outgoing(running, now_nanos)).collect();
    let states = control.stores.secondaries.states();
    let intake = |(apex, state): (&Name, &Arc<_>)| Some((apex.clone(), intake_of(state)?));
    let mut incoming: Vec<(Name, RunningIntake)> = states.iter().filter_map(intake).collect();
    incoming.sort_by_key(|(_, intake)| intake.began_at);
    let incoming: Vec<Value> = incoming.iter().map(|(apex, it)| incoming_json(apex, it)).collect();
    let waiting = |(apex, state): (&Name, &Arc<SecondaryState>)| {
        Some((apex.clone(), state.lock().memory_wait()?))
    };
    let mut waiting: Vec<(Name, MemoryWaitStatus)> = states.iter().filter_map(waiting).collect();
    waiting.sort_by_key(|(_, wait)| wait.since);
    let waiting: Vec<Value> = waiting.iter().map(|(apex, it)| waiting_json(apex, it)).collect();
    let counts = state.counts();
    let counters = control.stores.secondaries.counters();
    let [whole, changes, failed] =
        [&counters.whole, &counters.changes, &counters.failed_transfers].map(|it| it.load(Relaxed));
    json!({
        "to_clients": outgoing,
        "from_primaries": incoming,
        "waiting": waiting,
        "totals": {
            "to_clients": {
                "completed": counts.completed,
                "failed": counts.failed,
                "refused": counts.refused,
                "busy": counts.busy,
            },
            "from_primaries": { "completed": whole + changes, "failed": failed },
        },
    })
}

/// The transfer of a zone from a primary that runs, if one does.
fn intake_of(state: &SecondaryState) -> Option<RunningIntake> {
    state.lock().intake()
}

/// A transfer to a client, as JSON.
fn outgoing(running: &RunningTransfer, now_nanos: u64) -> Value {
    let lasted = Duration::from_nanos(now_nanos.saturating_sub(running.began_nanos));
    let began = SystemTime::now().checked_sub(lasted).unwrap_or(UNIX_EPOCH);
    json!({
        "zone": running.apex.to_string(),
        "client": running.peer.to_string(),
        "key": running.key.as_ref().map(ToString::to_string),
        "asked": running.qtype.to_string(),
        "sent": if running.is_changes.load(Relaxed) { "changes" } else { "zone" },
        "serial": running.serial,
        "began": time(began),
        "seconds": lasted.as_secs(),
        "messages": running.messages.load(Relaxed),
        "records": running.records.load(Relaxed),
        "bytes": running.octets.load(Relaxed),
    })
}

/// A transfer from a primary, as JSON.
fn incoming_json(apex: &Name, intake: &RunningIntake) -> Value {
    let began = UNIX_EPOCH + Duration::from_secs(intake.began_at);
    json!({
        "zone": apex.to_string(),
        "primary": intake.primary.to_string(),
        "asked": if intake.is_of_changes { "IXFR" } else { "AXFR" },
        "began": time(began),
        "seconds": began.elapsed().unwrap_or_default().as_secs(),
    })
}

/// A transfer from a primary that waits for memory, as JSON.
fn waiting_json(apex: &Name, wait: &MemoryWaitStatus) -> Value {
    let since = UNIX_EPOCH + Duration::from_secs(wait.since);
    json!({
        "zone": apex.to_string(),
        "primary": wait.primary.to_string(),
        "since": time(since),
        "seconds": since.elapsed().unwrap_or_default().as_secs(),
        "bytes": wait.octets,
    })
}
