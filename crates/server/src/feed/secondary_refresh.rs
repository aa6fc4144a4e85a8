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
/// Leaves no memory to the next refresh that this does not need.
pub fn refresh(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    prompt: Option<Prompt>,
    around: &Surroundings,
) -> Duration {
    let next = refresh_now(zone, work, prompt, around);
    work.settle(Instant::now());
    next
}

/// Refreshes a zone, unless its transfer waits for memory and there is none yet.
fn refresh_now(
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
    let own = work.zone.as_ref().map(|it| it.serial());
    work.rare_mut().announced.note(prompt, own);
    let mut errors = Vec::new();
    let mut found = ask_all(zone, work, prompt, (around, &mut errors));
    // The greatest serial of a version that could not be had: in step with one primary is not
    // enough where another has a newer version.
    let mut failed: Option<u32> = None;
    let (mut is_first, mut is_taken) = (true, false);
    while let Some((soa, primary)) = take_greatest(&mut found, work.source()) {
        if std::mem::take(&mut is_first) {
            zone.state.lock().primary_serial = Some(soa.serial);
        }
        let is_behind = |own: u32| failed.is_some_and(|failed| is_greater(failed, own));
        let own = work.zone.as_ref().map(|it| it.serial());
        if own == Some(soa.serial) {
            note_in_step(zone, work, soa.expire_secs, around); // also if it is transferred anew
        }
        match own.filter(|_| !work.takes_any_serial) {
            Some(own) if own == soa.serial => {
                if is_behind(own) {
                    break;
                }
                return Some(note_success(zone, work, (primary, false), &errors, around));
            }
            Some(own) if !is_greater(soa.serial, own) => {} // it was told when it was asked
            _ => match take_version(zone, work, (primary, soa.serial), prompt, around) {
                Ok(TransferResult::Postponed) => return None,
                Ok(TransferResult::Version) => {
                    is_taken = true;
                    if work.zone.as_ref().is_some_and(|it| is_behind(it.serial())) {
                        break;
                    }
                    return Some(note_success(zone, work, (primary, true), &errors, around));
                }
                Ok(TransferResult::InStep(expire_secs)) => {
                    note_in_step(zone, work, expire_secs, around);
                    let next = note_success(zone, work, (primary, false), &errors, around);
                    return Some(next.min(zone.timers(work).map_or(next, |it| it.retry)));
                }
                Err(error) => {
                    failed = failed.filter(|it| is_greater(*it, soa.serial)).or(Some(soa.serial));
                    note_error(zone, error, &mut errors, around);
                }
            },
        }
    }
    if zone.is_over(around) {
        return Some(Duration::ZERO);
    }
    Some(note_failure(zone, work, (errors, is_taken), around))
}

/// Why nothing is taken from a primary.
struct PrimaryError {
    /// The address and port of the primary.
    address: SocketAddr,
    /// What is wrong, in words.
    words: String,
    /// What kind of error it is.
    kind: ErrorKind,
}

/// What kind of error there is with a primary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorKind {
    /// The primary does not answer: over UDP, which the log tells once for all its zones, or over
    /// TCP, which the line of the transfer that failed tells.
    Silent,
    /// The primary has an older version than the one here.
    Outdated,
    /// The reply is not known to come from a holder of the key.
    Signature,
    /// The reply of the primary, or its version, cannot be taken.
    Refused,
}

impl PrimaryError {
    /// The words by which the error is known again: those of an outdated primary are the same
    /// whatever the serials are.
    fn topic(&self) -> &str {
        if self.kind == ErrorKind::Outdated { "outdated" } else { &self.words }
    }
}

impl ErrorKind {
    /// The kind of a fault of a primary.
    fn of(is_unreachable: bool, is_of_signature: bool) -> Self {
        match (is_unreachable, is_of_signature) {
            (true, _) => Self::Silent,
            (false, true) => Self::Signature,
            (false, false) => Self::Refused,
        }
    }

    /// What bounds the lines about primaries with an error of this kind that are passed over:
    /// outdated ones leave those about wrong signatures.
    fn budget(self) -> &'static LogBudget {
        static SIGNATURES: LogBudget = LogBudget::new();
        static PASSED_OVER: LogBudget = LogBudget::new();
        if self == Self::Signature { &SIGNATURES } else { &PASSED_OVER }
    }
}

/// Notes why nothing is taken from a primary.
fn note_error(
    zone: &SecondaryZone,
    error: PrimaryError,
    errors: &mut Vec<PrimaryError>,
    around: &Surroundings,
) {
    let address = around.addresses.shared(error.address);
    zone.state.lock().note_primary(address, Err(&error.words));
    errors.push(error);
}

/// Tells in the log why nothing is taken from primaries, of each once as long as that is so; not
/// where the refresh has failed, as its own line has all of them.
fn tell_errors(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    errors: &[PrimaryError],
    has_failed: bool,
) {
    let told = || errors.iter().filter(|it| it.kind != ErrorKind::Silent);
    for it in told().filter(|_| !has_failed) {
        let is_it = |known: &(_, Box<str>)| (known.0, &*known.1) == (it.address, it.topic());
        if !work.rare().is_some_and(|rare| rare.passed_over.iter().any(is_it)) {
            let (primary, error) = (it.address, &*it.words);
            it.kind.budget().spend(|left_out| {
                let zone = &zone.apex;
                tracing::warn!(%zone, %primary, error, left_out, "a primary was passed over");
            });
        }
    }
    // Nothing is kept of a silent primary, which may have 100,000 zones.
    let passed_over = told().map(|it| (it.address, it.topic().into())).collect();
    work.rare_mut().passed_over = passed_over;
}

/// Transfers a primary's version, unless it was refused not long ago; one that the primary has just
/// told of, or that an operator asks for, is tried again in any case.
fn take_version(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (primary, serial): (&Primary, u32),
    prompt: Option<Prompt>,
    around: &Surroundings,
) -> Result<TransferResult, PrimaryError> {
    let (address, now) = (primary.address, Instant::now());
    let refused = work.rare().and_then(|rare| rare.refused.reason(address, serial, now));
    if let Some(error) = refused.filter(|_| prompt.is_none()) {
        return Err(PrimaryError { address, words: error.to_owned(), kind: ErrorKind::Refused });
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
        let kind = ErrorKind::of(refusal.is_unreachable, refusal.is_of_signature);
        PrimaryError { address, words: refusal.error, kind }
    })
}

/// Asks the primaries for their serials, that which has sent a NOTIFY first: where it has a newer
/// version, only the one besides that the version here came from, whose changes can be had.
fn ask_all<'z>(
    zone: &'z SecondaryZone,
    work: &ZoneWork,
    prompt: Option<Prompt>,
    (around, errors): (&Surroundings, &mut Vec<PrimaryError>),
) -> Vec<(SoaReply, &'z Primary)> {
    let from = match prompt {
        Some(Prompt::Notice(from, _)) => Some(from),
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
        if let Err(error) = may_ask(around, primary.address, is_prompted) {
            let (address, kind) = (primary.address, ErrorKind::Silent);
            note_error(zone, PrimaryError { address, words: error, kind }, errors, around);
            continue;
        }
        match primary.soa(&zone.apex, &|| zone.is_over(around)) {
            Ok(soa) => {
                count(&around.counters.checks, 1);
                note_answer(around, &zone.apex, primary.address);
                let address = around.addresses.shared(primary.address);
                zone.state.lock().note_primary(address, Ok(soa.serial));
                let own = work.zone.as_ref().map(|it| it.serial());
                let is_newer = own.is_none_or(|own| is_greater(soa.serial, own));
                if let Some(own) = own.filter(|own| !is_newer && *own != soa.serial)
                    && !work.takes_any_serial
                {
                    note_error(zone, outdated(primary.address, soa.serial, own), errors, around);
                }
                found.push((soa, primary));
                is_found |= is_newer && is_sender(primary);
                if is_found && is_source(primary) {
                    break;
                }
            }
            Err(Fault::Stopped) => break,
            Err(fault) => {
                if fault.is_of_signature() {
                    count(&around.counters.signature_faults, 1);
                }
                note_fault(around, &zone.apex, primary.address, &fault);
                let kind = ErrorKind::of(fault.is_unreachable(), fault.is_of_signature());
                let (address, words) = (primary.address, fault.to_string());
                note_error(zone, PrimaryError { address, words, kind }, errors, around);
            }
        }
    }
    found
}

/// The error that a primary has an older version, with the first serial, than the one here.
fn outdated(address: SocketAddr, theirs: u32, own: u32) -> PrimaryError {
    let words = format!("it has serial {theirs}, not greater than {own} here: it is outdated");
    PrimaryError { address, words, kind: ErrorKind::Outdated }
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
            .max(work.agreed.1.secs())
            .min(secs_from_now(expire)),
        None => secs_from_now(expire),
    };
    work.agreed = (now_secs().into(), expires_at.into());
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

/// Notes that the zone is in step with a primary, whether its version was published just now, and
/// what is wrong with other primaries; returns when it is refreshed next.
fn note_success(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (primary, is_published): (&Primary, bool),
    errors: &[PrimaryError],
    around: &Surroundings,
) -> Duration {
    tell_errors(zone, work, errors, false);
    work.failures = 0;
    if let Some(rare) = work.rare_if_any() {
        rare.refused.clear();
    }
    let (has_failed, is_expired) = {
        let mut status = zone.state.lock();
        status.primary = Some(around.addresses.shared(primary.address));
        let error = status.rare_if_any().and_then(|rare| rare.error.take());
        (error.is_some(), status.is_expired)
    };
    if has_failed {
        tracing::info!(zone = %zone.apex, "a zone is in step with a primary again");
    }
    if (has_failed || is_expired) && !is_published {
        zone.publish_again(work, around);
    }
    let refresh = zone.timers(work).map_or(REFRESH, |it| it.refresh);
    let next = work.before_expiry(timers::spread(refresh, u64::from_be_bytes(random_octets())));
    let own = work.zone.as_ref().map(|it| it.serial());
    work.rare_mut().announced.next_wait(own).map_or(next, |wait| wait.min(next))
}

/// Notes that no primary has a version that can be taken, or that the greatest one cannot, but
/// another was; returns when the zone is tried again.
fn note_failure(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (errors, is_taken): (Vec<PrimaryError>, bool),
    around: &Surroundings,
) -> Duration {
    count(&around.counters.failed_refreshes, 1);
    let mut lines: Vec<String> =
        errors.iter().map(|it| format!("{}: {}", it.address, it.words)).collect();
    lines.sort(); // which primary was asked first says nothing
    let error = lines.join("; ");
    tell_errors(zone, work, &errors, true);
    let (is_new, is_served) = {
        let mut status = zone.state.lock();
        let former = status.rare_mut().error.replace(error.as_str().into());
        (former.as_deref() != Some(&*error), status.serial.is_some())
    };
    if is_new {
        FAILURES.spend(|left_out| {
            let state = match (is_served, is_taken) {
                (true, true) => "served in another primary's version",
                (true, false) => "served as it was",
                (false, _) => "SERVFAIL",
            };
            tracing::warn!(zone = %zone.apex, error, state, left_out, "a zone was not refreshed");
        });
        let update = Update::Unavailable(LoadError { first: error, count: 0 }); // it was logged
        let _in_order = zone.state.in_order();
        // Where the publisher fails, the server says so by itself.
        let _ = around.publisher.update(&zone.apex, zone.terms.number, update);
    }
    let retry = match zone.timers(work) {
        Some(timers) => timers.retry,
        None => timers::first_retry(work.failures.into()),
    };
    work.failures = work.failures.saturating_add(1);
    work.before_expiry(timers::spread(retry, u64::from_be_bytes(random_octets())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_outdated_primaries_leaves_the_lines_about_wrong_signatures() {
        let is_written = |kind: ErrorKind| {
            let mut is_written = false;
            kind.budget().spend(|_| is_written = true);
            is_written
        };
        assert!((0..100).any(|_| !is_written(ErrorKind::Outdated)), "they are bounded");
        assert!(is_written(ErrorKind::Signature));
    }
}
