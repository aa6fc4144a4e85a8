//! One refresh of a zone: which primary has a newer version, and the transfer of that.
//!
//! Changes are asked for when there is a version that they can follow. Whatever is wrong with the
//! reply but its signature, the whole zone is asked for, at once, of the same primary.

use super::secondary_state::count;
use super::secondary_zone::{
    SecondaryZone, Surroundings, ZoneWork, now_secs, secs_from_now, with_changes,
};
use super::store_feed::lock;
use super::{LoadedZone, Update};
use crate::load;
use crate::load_error::LoadError;
use crate::log_budget::LogBudget;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda_secondary::exchange::Transfer;
use zonda_secondary::{Fault, Primary, Question, SoaReply, Transferred, timers};
use zonda_zone::{Diff, is_greater, random_octets};

/// How long a primary that did not answer is asked last, where a zone has several.
const SILENT: Duration = Duration::from_secs(30);
/// How long a primary that does not know how to send changes is not asked for them.
const WITHOUT_CHANGES: Duration = Duration::from_secs(3600);
/// Bounds the lines about refreshes that failed: one dead primary may have 100,000 zones.
static FAILURES: LogBudget = LogBudget::new();

/// Refreshes a zone; a primary at `from` has said that it has changed. Returns after how long it is
/// to be refreshed again.
pub fn refresh(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    from: Option<IpAddr>,
    around: &Surroundings,
) -> Duration {
    zone.expire_if_due(work, around);
    let mut errors = Vec::new();
    let mut found = ask_all(zone, work, from, (around, &mut errors));
    while let Some((soa, primary)) = take_greatest(&mut found) {
        zone.state.lock().primary_serial = Some(soa.serial);
        let result = match work.zone.as_ref().map(|it| it.serial()) {
            Some(own) if own == soa.serial => {
                note_in_step(zone, work, &soa, around);
                Ok(())
            }
            Some(own) if !is_greater(soa.serial, own) => {
                let theirs = soa.serial;
                Err(format!("it has serial {theirs}, not greater than {own} here: it is outdated"))
            }
            _ => transfer(zone, work, primary, around),
        };
        match result {
            Ok(()) => return note_success(zone, work, primary),
            Err(error) => errors.push(format!("{}: {error}", primary.address)),
        }
    }
    if zone.is_over(around) {
        return Duration::ZERO;
    }
    note_failure(zone, work, errors.join("; "), around)
}

/// Asks the primaries for their serials, that at `from` first: where it has a newer version, no
/// other.
fn ask_all<'z>(
    zone: &'z SecondaryZone,
    work: &ZoneWork,
    from: Option<IpAddr>,
    (around, errors): (&Surroundings, &mut Vec<String>),
) -> Vec<(SoaReply, &'z Primary)> {
    let is_silent = |it: &Primary| {
        lock(&around.silent).get(&it.address).is_some_and(|until| *until > Instant::now())
    };
    let is_sender = |it: &Primary| from == Some(it.address.ip().to_canonical());
    let mut primaries: Vec<&Primary> = zone.primaries.iter().collect();
    primaries.sort_by_key(|it| (!is_sender(it), is_silent(it)));
    let mut found = Vec::new();
    for primary in primaries {
        if is_silent(primary) && !found.is_empty() {
            continue;
        }
        match primary.soa(&zone.apex, &|| zone.is_over(around)) {
            Ok(soa) => {
                count(&around.counters.checks, 1);
                lock(&around.silent).remove(&primary.address);
                let own = work.zone.as_ref().map(|it| it.serial());
                let is_newer = own.is_none_or(|own| is_greater(soa.serial, own));
                found.push((soa, primary));
                if is_newer && is_sender(primary) {
                    break;
                }
            }
            Err(fault) => {
                if fault.is_unreachable() {
                    lock(&around.silent).insert(primary.address, Instant::now() + SILENT);
                }
                errors.push(format!("{}: {fault}", primary.address));
            }
        }
    }
    found
}

/// Takes the primary with the greatest serial.
fn take_greatest<'z>(found: &mut Vec<(SoaReply, &'z Primary)>) -> Option<(SoaReply, &'z Primary)> {
    let mut best = 0;
    for place in 1..found.len() {
        if is_greater(found[place].0.serial, found[best].0.serial) {
            best = place;
        }
    }
    (!found.is_empty()).then(|| found.remove(best))
}

/// Transfers the version of a primary: changes where that can be, else the whole zone.
fn transfer(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    primary: &Primary,
    around: &Surroundings,
) -> Result<(), String> {
    let is_stopped = || zone.is_over(around);
    let has_no_changes = lock(&around.without_changes)
        .get(&primary.address)
        .is_some_and(|until| *until > Instant::now());
    let base = work.zone.clone().filter(|_| !has_no_changes);
    let mut fallback = None;
    if let Some(base) = base {
        let began = Instant::now();
        let question = Question::Ixfr(base.soa().0.first());
        let reply = primary.transfer(&zone.apex, question, (zone.limits(), &is_stopped));
        let error = match reply {
            Ok(reply) => match take(zone, work, reply, (primary, began, None), around) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            Err(fault) if !fault.allows_whole_zone() => {
                count(&around.counters.failed_transfers, 1);
                return Err(fault.to_string());
            }
            Err(fault) => {
                if fault.is_lack_of_changes() {
                    let until = Instant::now() + WITHOUT_CHANGES;
                    lock(&around.without_changes).insert(primary.address, until);
                }
                fault.to_string()
            }
        };
        count(&around.counters.failed_transfers, 1);
        fallback = Some(error);
    }
    let began = Instant::now();
    let reply = primary.transfer(&zone.apex, Question::Axfr, (zone.limits(), &is_stopped));
    let result = reply
        .map_err(|fault: Fault| fault.to_string())
        .and_then(|reply| take(zone, work, reply, (primary, began, fallback.as_deref()), around));
    if result.is_err() {
        count(&around.counters.failed_transfers, 1);
    }
    result
}

/// Takes a reply over: keeps it, has the server serve it, and logs the transfer.
fn take(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    reply: Transfer,
    (primary, began, fallback): (&Primary, Instant, Option<&str>),
    around: &Surroundings,
) -> Result<(), String> {
    let own = work.zone.as_ref().map(|it| it.serial());
    let (loaded, changes) = content_of(zone, work, reply.content, around)?;
    let serial = loaded.zone.serial();
    if own.is_some_and(|own| !is_greater(serial, own)) {
        return Err(format!("the transfer ends with serial {serial}, which is not greater"));
    }
    let is_whole = changes.is_empty();
    (work.zone, work.records) = (Some(Arc::clone(&loaded.zone)), loaded.records);
    let timers = zone.timers(work).map(|it| it.with_expire(reply.expire_secs));
    let expire = timers.map_or(Duration::ZERO, |it| it.expire);
    work.agreed = (now_secs(), secs_from_now(expire));
    if is_whole {
        zone.forget_file(work);
    }
    zone.keep(work, &changes); // before it is served, so that no serial goes back
    let records = loaded.records;
    zone.publish(work, Update::Replace(loaded), around);
    let counters = &around.counters;
    count(if is_whole { &counters.whole } else { &counters.changes }, 1);
    count(&counters.octets, reply.counts.octets);
    count(&counters.records, reply.counts.records);
    let key = primary.key.as_ref().map(|key| key.name().to_string());
    let outside = Some(reply.counts.outside).filter(|count| *count > 0);
    tracing::info!(
        zone = %zone.apex,
        primary = %primary.address,
        key,
        transport = "tcp",
        kind = if is_whole { "AXFR" } else { "IXFR" },
        from = own,
        serial,
        records_of_zone = records,
        messages = reply.counts.messages,
        records = reply.counts.records,
        octets = reply.counts.octets,
        seconds = began.elapsed().as_secs_f32(),
        outside,
        fallback,
        "a zone was transferred from its primary"
    );
    Ok(())
}

/// The version that a reply leads to, and the changes if there are such.
fn content_of(
    zone: &SecondaryZone,
    work: &ZoneWork,
    content: Transferred,
    around: &Surroundings,
) -> Result<(LoadedZone, Vec<Diff>), String> {
    match content {
        Transferred::UpToDate(serial) => {
            Err(format!("it sends no changes, as if {serial} were its serial"))
        }
        Transferred::Zone(records) => {
            let state = around.publisher.state();
            let made = load::make(&zone.apex, &records, false, (&state.zone_set, state.seed));
            let loaded = made.map_err(|error| error.to_string())?;
            Ok((loaded.packed(), Vec::new()))
        }
        Transferred::Changes(changes) => {
            let base = work.zone.clone().ok_or("there is no version to change")?;
            let base = LoadedZone { zone: base, records: work.records, digest: None };
            let loaded = with_changes(base, &changes).map_err(|error| error.to_string())?;
            Ok((loaded, changes))
        }
    }
}

/// Notes that the version here is that of a primary.
fn note_in_step(zone: &SecondaryZone, work: &mut ZoneWork, soa: &SoaReply, around: &Surroundings) {
    let own = zone.timers(work).map_or(Duration::ZERO, |it| it.expire);
    let expires_at = match soa.expire_secs {
        // rfc7314#4: no sooner than it was to expire.
        Some(secs) => secs_from_now(own.min(Duration::from_secs(secs.into()))).max(work.agreed.1),
        None => secs_from_now(own),
    };
    work.agreed = (now_secs(), expires_at);
    zone.keep(work, &[]);
    let is_shown_as_failed = {
        let mut status = zone.state.lock();
        (status.agreed_at, status.expires_at) = work.agreed;
        status.error.is_some() || status.is_expired
    };
    if let Some(served) = work.zone.clone().filter(|_| is_shown_as_failed) {
        let loaded = LoadedZone { zone: served, records: work.records, digest: None };
        zone.publish(work, Update::Replace(loaded), around);
    }
}

/// Notes that the zone is in step; returns when it is refreshed next.
fn note_success(zone: &SecondaryZone, work: &mut ZoneWork, primary: &Primary) -> Duration {
    work.failures = 0;
    let mut status = zone.state.lock();
    status.primary = Some(primary.address.to_string());
    if status.error.take().is_some() {
        tracing::info!(zone = %zone.apex, "a zone is in step with a primary again");
    }
    let refresh = zone.timers(work).map_or(Duration::from_secs(60), |it| it.refresh);
    timers::spread(refresh, u64::from_be_bytes(random_octets()))
}

/// Notes that no primary has a version that can be taken; returns when the zone is tried again.
fn note_failure(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    error: String,
    around: &Surroundings,
) -> Duration {
    count(&around.counters.failed_refreshes, 1);
    let is_new = zone.state.lock().error.replace(error.clone()).as_ref() != Some(&error);
    if is_new {
        FAILURES.spend(|left_out| {
            let state = if work.zone.is_some() { "served as it was" } else { "SERVFAIL" };
            tracing::warn!(zone = %zone.apex, error, state, left_out, "a zone was not refreshed");
        });
        let update = Update::Unavailable(LoadError { first: error, count: 0 }); // it was logged
        // Where the publisher fails, the server says so by itself.
        let _ = around.publisher.update(&zone.apex, zone.number, update);
    }
    let retry = match zone.timers(work) {
        Some(timers) => timers.retry,
        None => timers::first_retry(work.failures),
    };
    work.failures = work.failures.saturating_add(1);
    timers::spread(retry, u64::from_be_bytes(random_octets()))
}
