//! One refresh of a zone: which primary has a newer version, and what comes of it.

use super::Update;
use super::secondary_memory::{end_wait, go_on_waiting, wait_left};
use super::secondary_schedule::Prompt;
use super::secondary_state::count;
use super::secondary_transfer::{TransferResult, transfer};
use super::secondary_work::ZoneWork;
use super::secondary_zone::{
    KeptVersion, SecondaryZone, SilentPrimary, Surroundings, now_secs, secs_from_now,
};
use super::store_feed::lock;
use crate::load_error::LoadError;
use crate::log_budget::LogBudget;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use zonda_secondary::{Fault, Primary, SoaReply, Timers, timers};
use zonda_wire::Name;
use zonda_zone::{is_greater, random_octets};

/// How long after a question without an answer one zone asks the primary again; until then the
/// primary counts, for all other zones, as one that does not answer.
const SILENT: Duration = Duration::from_secs(10);
/// How long a primary that no zone has asked any more is remembered as silent.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// The refresh time of a zone whose SOA record is not known.
const REFRESH: Duration = Duration::from_secs(3600);
/// Bounds the lines about refreshes that failed: one dead primary may have 100,000 zones.
static FAILURES: LogBudget = LogBudget::new();
/// Bounds the lines about primaries that do not answer.
static SILENCES: LogBudget = LogBudget::new();

/// Refreshes a zone; with what has asked for that out of turn, if anything has. Returns after how
/// long it is to be refreshed again; where its transfer waits for memory, with the same prompt.
pub fn refresh(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    prompt: Option<Prompt>,
    around: &Surroundings,
) -> Duration {
    zone.begin_refresh(work, around);
    if let Some(left) = wait_left(zone, work) {
        return left;
    }
    let Some(next) = ask_and_transfer(zone, work, prompt, around) else {
        return wait_left(zone, work).unwrap_or_default();
    };
    if work.failures > 0
        && let Some(left) = go_on_waiting(zone, work, next)
    {
        return left;
    }
    end_wait(zone, work);
    next
}

/// Asks the primaries, and transfers the version of one; returns when the zone is refreshed next,
/// or nothing where the transfer waits for memory.
fn ask_and_transfer(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    prompt: Option<Prompt>,
    around: &Surroundings,
) -> Option<Duration> {
    work.takes_any_serial = prompt == Some(Prompt::Retransfer);
    let mut errors = Vec::new();
    let mut found = ask_all(zone, work, prompt, (around, &mut errors));
    // In step with one primary is not enough where another has a newer version.
    let mut is_behind = false;
    let mut is_first = true;
    while let Some((soa, primary)) = take_greatest(&mut found, work.source()) {
        if std::mem::take(&mut is_first) {
            zone.state.lock().primary_serial = Some(soa.serial);
        }
        let own = work.zone.as_ref().map(|it| it.serial());
        if own == Some(soa.serial) {
            note_in_step(zone, work, soa.expire_secs, around); // also if it is transferred anew
        }
        let error = match own.filter(|_| !work.takes_any_serial) {
            Some(own) if own == soa.serial => {
                if is_behind {
                    break;
                }
                return Some(note_success(zone, work, (primary, false), around));
            }
            Some(own) if !is_greater(soa.serial, own) => {
                let theirs = soa.serial;
                format!("it has serial {theirs}, not greater than {own} here: it is outdated")
            }
            _ => match take_version(zone, work, (primary, soa.serial), prompt, around) {
                Ok(TransferResult::Postponed) => return None,
                Ok(TransferResult::Version) if is_behind => break,
                Ok(TransferResult::Version) => {
                    return Some(note_success(zone, work, (primary, true), around));
                }
                Ok(TransferResult::InStep(expire_secs)) => {
                    note_in_step(zone, work, expire_secs, around);
                    let next = note_success(zone, work, (primary, false), around);
                    return Some(next.min(zone.timers(work).map_or(next, |it| it.retry)));
                }
                Err(error) => {
                    is_behind = true;
                    error
                }
            },
        };
        errors.push(format!("{}: {error}", primary.address));
    }
    if zone.is_over(around) {
        return Some(Duration::ZERO);
    }
    errors.sort(); // which primary was asked first says nothing
    Some(note_failure(zone, work, errors.join("; "), around))
}

/// Transfers a primary's version, unless it was refused not long ago; one that the primary has just
/// told of, or that an operator asks for, is tried again in any case.
fn take_version(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (primary, serial): (&Primary, u32),
    prompt: Option<Prompt>,
    around: &Surroundings,
) -> Result<TransferResult, String> {
    let (address, now) = (primary.address, Instant::now());
    let refused = work.rare().and_then(|rare| rare.refused.reason(address, serial, now));
    if let Some(error) = refused.filter(|_| prompt.is_none()) {
        return Err(error.to_owned());
    }
    transfer(zone, work, primary, around).map_err(|refusal| {
        if refusal.is_of_version && !zone.is_over(around) {
            let (least, most) = match zone.timers(work) {
                Some(Timers { retry, refresh, .. }) => (retry, refresh),
                None => (timers::first_retry(0), REFRESH),
            };
            let bounds = (least, most);
            work.rare_mut().refused.add((address, serial), &refusal.error, bounds, Instant::now());
        }
        refusal.error
    })
}

/// Asks the primaries for their serials, that which has sent a NOTIFY first: where it has a newer
/// version, only the one besides that the version here came from, whose changes can be had.
fn ask_all<'z>(
    zone: &'z SecondaryZone,
    work: &ZoneWork,
    prompt: Option<Prompt>,
    (around, errors): (&Surroundings, &mut Vec<String>),
) -> Vec<(SoaReply, &'z Primary)> {
    let from = match prompt {
        Some(Prompt::Notice(from)) => Some(from),
        Some(Prompt::Refresh | Prompt::Retransfer) | None => None,
    };
    let is_of_operator = matches!(prompt, Some(Prompt::Refresh | Prompt::Retransfer));
    let is_sender = |it: &Primary| from == Some(it.address.ip().to_canonical());
    let source = work.source();
    let is_source = |it: &Primary| work.zone.is_none() || source == Some(it.address);
    let mut primaries: Vec<&Primary> = zone.terms.primaries.iter().collect();
    primaries.sort_by_key(|it| (!is_sender(it), !is_source(it)));
    let (mut found, mut is_found) = (Vec::new(), false);
    for primary in primaries {
        if is_found && !is_source(primary) {
            continue;
        }
        let is_prompted = is_sender(primary) || is_of_operator;
        let address = around.addresses.shared(primary.address);
        if let Err(error) = may_ask(around, primary.address, is_prompted) {
            zone.state.lock().note_primary(address, Err(&error));
            errors.push(format!("{}: {error}", primary.address));
            continue;
        }
        match primary.soa(&zone.apex, &|| zone.is_over(around)) {
            Ok(soa) => {
                count(&around.counters.checks, 1);
                note_answer(around, &zone.apex, primary.address);
                zone.state.lock().note_primary(address, Ok(soa.serial));
                let own = work.zone.as_ref().map(|it| it.serial());
                let is_newer = own.is_none_or(|own| is_greater(soa.serial, own));
                found.push((soa, primary));
                is_found |= is_newer && is_sender(primary);
                if is_found && is_source(primary) {
                    break;
                }
            }
            Err(fault) => {
                if fault.is_of_signature() {
                    count(&around.counters.signature_faults, 1);
                }
                note_fault(around, &zone.apex, primary.address, &fault);
                zone.state.lock().note_primary(address, Err(&fault.to_string()));
                errors.push(format!("{}: {fault}", primary.address));
            }
        }
    }
    found
}

/// Whether a primary may be asked: of one that does not answer, one zone finds that out at a time,
/// and the rest knows at once, unless the primary or an operator has prompted the question.
fn may_ask(around: &Surroundings, address: SocketAddr, is_prompted: bool) -> Result<(), String> {
    let (now, mut silent) = (Instant::now(), lock(&around.silent));
    match silent.get_mut(&address) {
        Some(primary) if primary.until > now && !is_prompted => Err(primary.error.clone()),
        Some(primary) => {
            primary.until = now + SILENT;
            Ok(())
        }
        None => Ok(()),
    }
}

/// Notes that a primary has answered.
fn note_answer(around: &Surroundings, apex: &Name, address: SocketAddr) {
    if lock(&around.silent).remove(&address).is_some() {
        tracing::info!(zone = %apex, primary = %address, "a primary answers again");
    }
}

/// Notes that a primary's reply was none.
fn note_fault(around: &Surroundings, apex: &Name, address: SocketAddr, fault: &Fault) {
    if !fault.is_unreachable() {
        if !matches!(fault, Fault::Stopped) {
            note_answer(around, apex, address);
        }
        return;
    }
    let (now, error) = (Instant::now(), fault.to_string());
    let mut silent = lock(&around.silent);
    silent.retain(|_, primary| primary.until + REMEMBERED > now);
    let primary = SilentPrimary { until: now + SILENT, error: error.clone() };
    if silent.insert(address, primary).is_none() {
        SILENCES.spend(|left_out| {
            let primary = address;
            tracing::warn!(zone = %apex, %primary, error, left_out, "a primary does not answer");
        });
    }
}

/// Takes the primary with the greatest serial; of several the one that the version here came from.
fn take_greatest<'z>(
    found: &mut Vec<(SoaReply, &'z Primary)>,
    source: Option<SocketAddr>,
) -> Option<(SoaReply, &'z Primary)> {
    let mut best = 0;
    for place in 1..found.len() {
        let [serial, best_serial] = [place, best].map(|it| found[it].0.serial);
        let is_source = source == Some(found[place].1.address);
        if is_greater(serial, best_serial) || serial == best_serial && is_source {
            best = place;
        }
    }
    (!found.is_empty()).then(|| found.remove(best))
}

/// Notes that the version here is that of a primary; with the seconds until it expires there, if
/// the primary says that.
fn note_in_step(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    expire_secs: Option<u32>,
    around: &Surroundings,
) {
    let Some(own) = work.zone.clone() else { return };
    let expire = zone.timers(work).map_or(Duration::ZERO, |it| it.expire);
    let expires_at = match expire_secs {
        // rfc7314#4: no sooner than it was to expire, and within the time of the SOA record.
        Some(secs) => secs_from_now(Duration::from_secs(secs.into()))
            .max(work.agreed.1)
            .min(secs_from_now(expire)),
        None => secs_from_now(expire),
    };
    work.agreed = (now_secs(), expires_at);
    let (agreed, source) = (work.agreed, work.source());
    let kept = KeptVersion { zone: &own, changes: Some(&[]), agreed, source };
    // What the disk holds is this version, or none; where it takes no timers, that is logged.
    let _ = zone.keep(work, &kept, around);
    {
        let mut status = zone.state.lock();
        (status.agreed_at, status.expires_at) = agreed;
    }
    zone.state.expiry.set(expires_at);
    around.note_expiry(expires_at);
}

/// Notes that the zone is in step with a primary, and whether its version was published just now;
/// returns when it is refreshed next.
fn note_success(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (primary, is_published): (&Primary, bool),
    around: &Surroundings,
) -> Duration {
    work.failures = 0;
    work.rare_mut().refused.clear();
    let (has_failed, is_expired) = {
        let mut status = zone.state.lock();
        status.primary = Some(around.addresses.shared(primary.address));
        (status.rare_mut().error.take().is_some(), status.is_expired)
    };
    if has_failed {
        tracing::info!(zone = %zone.apex, "a zone is in step with a primary again");
    }
    if (has_failed || is_expired) && !is_published {
        zone.publish_again(work, around);
    }
    let refresh = zone.timers(work).map_or(REFRESH, |it| it.refresh);
    work.before_expiry(timers::spread(refresh, u64::from_be_bytes(random_octets())))
}

/// Notes that no primary has a version that can be taken; returns when the zone is tried again.
fn note_failure(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    error: String,
    around: &Surroundings,
) -> Duration {
    count(&around.counters.failed_refreshes, 1);
    let (is_new, is_served) = {
        let mut status = zone.state.lock();
        let former = status.rare_mut().error.replace(error.as_str().into());
        (former.as_deref() != Some(&*error), status.serial.is_some())
    };
    if is_new {
        FAILURES.spend(|left_out| {
            let state = if is_served { "served as it was" } else { "SERVFAIL" };
            tracing::warn!(zone = %zone.apex, error, state, left_out, "a zone was not refreshed");
        });
        let update = Update::Unavailable(LoadError { first: error, count: 0 }); // it was logged
        let _in_order = zone.state.in_order();
        // Where the publisher fails, the server says so by itself.
        let _ = around.publisher.update(&zone.apex, zone.terms.number, update);
    }
    let retry = match zone.timers(work) {
        Some(timers) => timers.retry,
        None => timers::first_retry(work.failures),
    };
    work.failures = work.failures.saturating_add(1);
    work.before_expiry(timers::spread(retry, u64::from_be_bytes(random_octets())))
}
