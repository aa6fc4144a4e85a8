//! One transfer of a zone: changes where those can be had, else the whole zone.
//!
//! Changes are asked for when there is a version that they can follow, and which came from the same
//! primary: two primaries may have different records under one serial. Unless it is plain that the
//! version cannot be taken, the whole zone is asked for when changes cannot, at once, of the same
//! primary; both together take no longer than one transfer may, but for the time in which they wait
//! for memory, and have one share of the memory of all transfers. A transfer for which there is no
//! memory is postponed, which is no failure. Where a whole zone comes in place of changes, and
//! there is no memory for it, it is asked for as such once there is.

use super::mixed_ttls;
use super::secondary_memory::{estimate, octets_max, postpone};
use super::secondary_state::{RunningIntake, count};
use super::secondary_work::{Fallback, MemoryWait, WITHOUT_CHANGES, ZoneWork};
use super::secondary_zone::{
    KeptVersion, SecondaryZone, Surroundings, now_secs, secs_from_now, with_changes,
};
use super::store_feed::lock;
use super::{LoadedZone, Update};
use crate::load;
use crate::log_budget::LogBudget;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda_secondary::exchange::Transfer;
use zonda_secondary::{
    Budget, ChangesLack, Fault, KeptPlace, Limits, Place, Primary, Question, Share, TransferHooks,
    Transferred, WholeZone,
};
use zonda_zone::{Diff, Zone, is_greater};

/// Bounds the lines about transfers that failed.
static FAILURES: LogBudget = LogBudget::new();

/// What a transfer has brought.
pub enum TransferResult {
    /// A version, which is served now.
    Version,
    /// The version here is that of the primary after all; with the seconds until it expires there,
    /// if the primary says that.
    InStep(Option<u32>),
    /// Nothing yet, as other transfers have the memory: it begins once there is some.
    Postponed,
}

/// Why a transfer brought nothing.
pub struct Refusal {
    /// What is wrong, in words.
    pub error: String,
    /// Whether it will be wrong as long as the primary has this version.
    pub is_of_version: bool,
    /// Whether the primary has sent nothing over TCP, as then for any of its zones.
    pub is_unreachable: bool,
    /// Whether a signature is wrong, or missing in an error.
    pub is_of_signature: bool,
    /// Whether the whole zone may be asked for.
    allows_whole_zone: bool,
    /// What is known of why the primary has sent no changes at all; none where it has.
    without_changes: Option<ChangesLack>,
    /// Whether the primary sends too slowly.
    is_slow: bool,
    /// The memory that there was not, if it is that which was wrong.
    lack: Option<Lack>,
}

/// Memory that there was not.
struct Lack {
    /// The octets that the transfer would have needed so far.
    octets: u64,
    /// Whether the whole zone came where changes were asked for.
    is_of_whole_zone: bool,
}

impl Refusal {
    /// A refusal of a version as such.
    fn of_version(error: String) -> Self {
        Self { is_of_version: true, ..Self::for_now(error) }
    }

    /// A refusal of changes: the whole zone may be sound.
    fn of_changes(error: String) -> Self {
        Self { allows_whole_zone: true, ..Self::for_now(error) }
    }

    /// A refusal for now: another attempt may do.
    fn for_now(error: String) -> Self {
        Self {
            error,
            is_of_version: false,
            is_unreachable: false,
            is_of_signature: false,
            allows_whole_zone: false,
            without_changes: None,
            is_slow: false,
            lack: None,
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self {
            error: fault.to_string(),
            is_of_version: fault.is_of_version(),
            is_unreachable: fault.is_unreachable(),
            is_of_signature: fault.is_of_signature(),
            allows_whole_zone: fault.allows_whole_zone(),
            without_changes: fault.without_changes(),
            is_slow: fault.is_slow(),
            lack: match fault {
                Fault::NoMemory { octets, is_of_whole_zone } => {
                    Some(Lack { octets, is_of_whole_zone })
                }
                _ => None,
            },
        }
    }
}

/// Transfers the version of a primary: changes where that can be, else the whole zone. What is
/// known of a wait stays, where the transfer fails, for that from the next primary.
pub fn transfer(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    primary: &Primary,
    around: &Surroundings,
) -> Result<TransferResult, Refusal> {
    let (mut kept, mut octets, mut since, mut fallback) = (None, (0, 0), None, None);
    if let Some(wait) = work.rare_if_any().and_then(|rare| rare.wait.take()) {
        (kept, octets, since) = (Some(wait.kept), (wait.octets, wait.of_changes), wait.since);
        fallback = wait.fallback.filter(|_| wait.primary == primary.address);
    }
    let mut share = around.budget.share(kept);
    let (budget, place) = (Arc::clone(&around.budget), share.place());
    let (began, (whole, of_changes)) = (Instant::now(), octets);
    let start = TransferStart { budget, place, octets: whole, of_changes, since, began };
    let transferred = transfer_within(zone, work, (primary, &start, fallback), &mut share, around);
    if transferred.is_err() {
        share.keep_room(whole);
        work.rare_mut().wait = Some(start.wait(primary, octets, None).into());
    }
    transferred
}

/// The state in which a transfer begins.
struct TransferStart {
    /// The memory of all transfers together.
    budget: Arc<Budget>,
    /// The place of the transfer among all.
    place: Place,
    /// The octets of memory that it is to have before it begins, if it has waited for them.
    octets: u64,
    /// The octets that changes are to have before they are asked for.
    of_changes: u64,
    /// The seconds since 1970 at which it began to wait, if it has.
    since: Option<u64>,
    /// The moment at which it begins.
    began: Instant,
}

impl TransferStart {
    /// The wait for so many octets, and so many for changes, that a transfer leaves to the next
    /// refresh.
    fn wait(
        &self,
        primary: &Primary,
        (octets, of_changes): (u64, u64),
        fallback: Option<Fallback>,
    ) -> MemoryWait {
        let kept = KeptPlace::new(&self.budget, self.place);
        let (since, primary, check_at) = (self.since, primary.address, None);
        MemoryWait { kept, octets, of_changes, check_at, since, primary, fallback }
    }

    /// The seconds for which it has waited for memory before it began, if it has.
    fn waited_secs(&self) -> Option<u64> {
        let began_at = now_secs().saturating_sub(self.began.elapsed().as_secs());
        self.since.map(|since| began_at.saturating_sub(since))
    }
}

/// Transfers the version of a primary with a share of the memory of all transfers.
fn transfer_within(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (primary, start, mut fallback): (&Primary, &TransferStart, Option<Fallback>),
    share: &mut Share<'_>,
    around: &Surroundings,
) -> Result<TransferResult, Refusal> {
    if fallback.is_none()
        && let Some(base) = base_of_changes(work, primary, around)
    {
        match transfer_changes(zone, work, (primary, start, &base), share, around)? {
            ControlFlow::Break(result) => return Ok(result),
            ControlFlow::Continue(reason) => fallback = Some(reason),
        }
        share.give_back(); // the changes are gone
    }
    let octets = start.octets.max(estimate(work.zone.as_deref())).min(octets_max(zone));
    if !share.reserve(octets) {
        postpone(zone, work, start.wait(primary, (octets, start.of_changes), fallback));
        return Ok(TransferResult::Postponed);
    }
    let (limits, spent) = (zone.limits(), fallback.as_ref().map(|it| it.spent));
    let time_max = limits.time_max.saturating_sub(spent.unwrap_or_default());
    let question = (primary, Question::Axfr, Limits { time_max, ..limits });
    let reason = fallback.as_ref().map(|it| it.error.as_str());
    match (attempt(zone, work, question, (start, reason, share), around), fallback) {
        (Err(Refusal { lack: Some(lack), .. }), fallback) => {
            let octets = start.budget.doubled(lack.octets);
            postpone(zone, work, start.wait(primary, (octets, start.of_changes), fallback));
            Ok(TransferResult::Postponed)
        }
        (Ok(taken), fallback) => {
            if let Some(lack) = fallback.and_then(|it| it.without_changes) {
                work.note_without_changes(primary.address, lack, Instant::now());
            }
            Ok(taken)
        }
        (Err(refusal), Some(fallback)) if refusal.error != fallback.error => {
            let error = format!("{}; before that, with changes: {}", refusal.error, fallback.error);
            // Changes have had a part of the time, which is no fault of the version.
            let is_of_version = refusal.is_of_version && !refusal.is_slow;
            Err(Refusal { error, is_of_version, ..refusal })
        }
        (Err(refusal), _) => Err(refusal),
    }
}

/// Asks for changes that follow a version; goes on with why the whole zone is to be asked for now,
/// if it is. Changes wait for the memory that they have lacked, and not for that of the whole zone:
/// another primary may have had it wait that sends no changes.
fn transfer_changes(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (primary, start, base): (&Primary, &TransferStart, &Zone),
    share: &mut Share<'_>,
    around: &Surroundings,
) -> Result<ControlFlow<TransferResult, Fallback>, Refusal> {
    const POSTPONED: ControlFlow<TransferResult, Fallback> =
        ControlFlow::Break(TransferResult::Postponed);
    let mut of_changes = start.of_changes;
    if !share.reserve(of_changes) {
        postpone(zone, work, start.wait(primary, (of_changes, of_changes), None));
        return Ok(POSTPONED);
    }
    let question = (primary, Question::Ixfr(base.soa().0.first()), zone.limits());
    let asked = attempt(zone, work, question, (start, None, share), around);
    let spent = start.began.elapsed().saturating_sub(share.waited());
    match asked {
        Err(Refusal { lack: Some(lack), .. }) => {
            // What would have come is not known: less than twice as much, or it waits anew.
            let mut octets = start.budget.doubled(lack.octets);
            if !lack.is_of_whole_zone {
                of_changes = octets;
            }
            let fallback = lack.is_of_whole_zone.then(|| {
                octets = octets.max(estimate(Some(base))).max(start.octets);
                count(&around.counters.fallbacks, 1);
                let error = "the whole zone came in place of changes".to_owned();
                Fallback { error, without_changes: None, spent }
            });
            postpone(zone, work, start.wait(primary, (octets, of_changes), fallback));
            Ok(POSTPONED)
        }
        Err(Refusal { allows_whole_zone: true, error, without_changes, .. }) => {
            count(&around.counters.fallbacks, 1);
            Ok(ControlFlow::Continue(Fallback { error, without_changes, spent }))
        }
        Err(Refusal { is_slow: true, error, .. }) => {
            // The whole zone may come faster: now, if time is left, or else at the next attempt.
            let pause = zone.timers(work).map_or(Duration::ZERO, |it| it.refresh.max(it.retry));
            let pause = WITHOUT_CHANGES.max(pause.saturating_mul(3));
            work.pause_changes(primary.address, pause, Instant::now());
            if spent >= zone.limits().time_max {
                return Err(Refusal::for_now(error));
            }
            count(&around.counters.fallbacks, 1);
            let without_changes = Some(ChangesLack::Certain);
            Ok(ControlFlow::Continue(Fallback { error, without_changes, spent }))
        }
        Ok(TransferResult::Version) => {
            work.note_changes();
            Ok(ControlFlow::Break(TransferResult::Version))
        }
        result => result.map(ControlFlow::Break),
    }
}

/// The version that changes of a primary are to follow; none if the whole zone is to be asked for.
fn base_of_changes(work: &ZoneWork, primary: &Primary, around: &Surroundings) -> Option<Arc<Zone>> {
    let now = Instant::now();
    let is_late = |until: &Instant| *until > now;
    let is_without = work.is_without_changes(primary.address, now)
        || lock(&around.without_changes).get(&primary.address).is_some_and(is_late);
    let is_source = work.source() == Some(primary.address);
    work.zone.clone().filter(|_| is_source && !is_without && !work.takes_any_serial)
}

/// Asks a question within limits, and takes the reply over; notes what went wrong.
fn attempt(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (primary, question, limits): (&Primary, Question<'_>, Limits),
    (start, fallback, share): (&TransferStart, Option<&str>, &mut Share<'_>),
    around: &Surroundings,
) -> Result<TransferResult, Refusal> {
    let version = work.zone.clone();
    let is_of_changes = matches!(question, Question::Ixfr(_));
    let from = version.as_ref().map(|it| it.serial());
    let intake = Arc::new(RunningIntake::new(primary, is_of_changes, from));
    let hooks = TransferHooks {
        is_stopped: &|| zone.is_over(around),
        note_wait: &|is_waiting| (around.note_wait)(&zone.apex, is_waiting),
        whole_zone_octets: &|| estimate(version.as_deref()),
        note_progress: &|counts, serial| intake.note(counts, serial),
        seed: around.publisher.state().seed,
    };
    {
        let mut status = zone.state.lock();
        let rare = status.rare_mut();
        (rare.intake, rare.memory_wait) = (Some(Arc::clone(&intake)), None);
    }
    let reply = primary.transfer(&zone.apex, question, (limits, &hooks), share);
    let result = match reply {
        Ok(reply) => take(zone, work, reply, (primary, start, fallback), around),
        Err(fault) => {
            if fault.is_of_signature() {
                count(&around.counters.signature_faults, 1);
            }
            if is_of_changes && fault.is_lack_of_changes() {
                let (now, mut without) = (Instant::now(), lock(&around.without_changes));
                without.retain(|_, until| *until > now);
                without.insert(primary.address, now + WITHOUT_CHANGES);
            }
            let mut refusal = Refusal::from(fault);
            refusal.is_unreachable &= intake.received()[0] == 0;
            Err(refusal)
        }
    };
    if let Err(refusal) = &result
        && refusal.lack.is_none()
    {
        count(&around.counters.failed_transfers, 1);
        // What follows changes at once says in its own line why they were not taken.
        if !(is_of_changes && refusal.allows_whole_zone || zone.is_over(around)) {
            log_failure(zone, &intake, (start, fallback), &refusal.error);
        }
    }
    result
}

/// Logs a transfer that brought nothing.
fn log_failure(
    zone: &SecondaryZone,
    intake: &RunningIntake,
    (start, fallback): (&TransferStart, Option<&str>),
    error: &str,
) {
    let [messages, records, octets] = intake.received();
    let key = intake.key.as_ref().map(ToString::to_string);
    FAILURES.spend(|left_out| {
        tracing::warn!(
            zone = %zone.apex,
            primary = %intake.primary,
            key,
            transport = "tcp",
            kind = if intake.is_of_changes { "IXFR" } else { "AXFR" },
            from = intake.from,
            serial = intake.serial(),
            messages,
            records,
            octets,
            seconds = start.began.elapsed().as_secs_f32(),
            waited = start.waited_secs(),
            fallback,
            error,
            left_out,
            "a zone was not transferred from its primary"
        );
    });
}

/// Takes a reply over: keeps it, has the server serve it, and logs the transfer.
fn take(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    reply: Transfer,
    (primary, start, fallback): (&Primary, &TransferStart, Option<&str>),
    around: &Surroundings,
) -> Result<TransferResult, Refusal> {
    let own = work.zone.as_ref().map(|it| it.serial());
    let (loaded, changes) = match reply.content {
        Transferred::UpToDate(serial) if own == Some(serial) => {
            return Ok(TransferResult::InStep(reply.expire_secs));
        }
        Transferred::UpToDate(serial) => {
            let error = format!("it sends no changes, as its serial is {serial}: it is outdated");
            return Err(Refusal::for_now(error));
        }
        content => content_of(zone, work, content, around)?,
    };
    let serial = loaded.zone.serial();
    if own.is_some_and(|own| !is_greater(serial, own)) && !work.takes_any_serial {
        let error = format!("the transfer ends with serial {serial}, which is not greater");
        return Err(Refusal::for_now(error));
    }
    let timers = zone.timers_of(loaded.zone.soa().0.first()).with_expire(reply.expire_secs);
    // The primary counts the time until the zone expires from this question on.
    let expires_at = secs_from_now(timers.expire.saturating_sub(reply.asked.elapsed()));
    let agreed = (now_secs().into(), expires_at.into());
    let source = Some(primary.address);
    let kept = KeptVersion { zone: &loaded.zone, changes: changes.as_deref(), agreed, source };
    zone.keep(work, &kept, around).map_err(|error| match zone.is_over(around) {
        true => Refusal::for_now(error),
        false => Refusal::of_version(error),
    })?;
    work.set_version(&loaded);
    (work.agreed, work.source) = (agreed, Some(around.addresses.shared(primary.address)));
    let records = loaded.records;
    zone.publish(work, Update::Replace(loaded), around);
    {
        let mut status = zone.state.lock();
        status.versions_taken = status.versions_taken.wrapping_add(1);
    }
    let counters = &around.counters;
    count(if changes.is_none() { &counters.whole } else { &counters.changes }, 1);
    count(&counters.octets, reply.counts.octets);
    count(&counters.records, reply.counts.records);
    count(&counters.outside, reply.counts.outside);
    let key = primary.key.as_ref().map(|key| key.name().to_string());
    let outside = Some(reply.counts.outside).filter(|count| *count > 0);
    tracing::info!(
        zone = %zone.apex,
        primary = %primary.address,
        key,
        transport = "tcp",
        kind = if changes.is_none() { "AXFR" } else { "IXFR" },
        from = own,
        serial,
        records_of_zone = records,
        messages = reply.counts.messages,
        records = reply.counts.records,
        octets = reply.counts.octets,
        seconds = start.began.elapsed().as_secs_f32(),
        waited = start.waited_secs(),
        outside,
        fallback,
        "a zone was transferred from its primary"
    );
    Ok(TransferResult::Version)
}

/// The version that a reply leads to, and the changes if there are such.
fn content_of(
    zone: &SecondaryZone,
    work: &ZoneWork,
    content: Transferred,
    around: &Surroundings,
) -> Result<(LoadedZone, Option<Vec<Diff>>), Refusal> {
    let (loaded, changes) = match (content, work.version()) {
        (Transferred::Zone(records), _) => {
            let state = around.publisher.state();
            let (apex, served) = (&zone.apex, &state.zone_set);
            let (made, mixed) = match records {
                WholeZone::Few(records) => (
                    load::make(apex, &records, false, (served, state.seed)),
                    mixed_ttls::in_zone(&records),
                ),
                WholeZone::Many(records) => {
                    let mixed = records.mixed_sets();
                    (load::make_large(apex, *records, served), mixed)
                }
            };
            let made = made.map_err(|error| Refusal::of_version(error.to_string()))?;
            mixed_ttls::tell(apex, mixed);
            (made.packed(), None)
        }
        (Transferred::Changes(changes), Some(base)) => {
            let former = Arc::clone(&base.zone);
            let made = with_changes(base, &changes);
            let made = made.map_err(|error| Refusal::of_changes(error.to_string()))?;
            let mixed = mixed_ttls::in_changes(&former, &made.zone, &changes);
            mixed_ttls::tell(&zone.apex, mixed);
            (made, Some(changes))
        }
        (Transferred::Changes(_) | Transferred::UpToDate(_), _) => {
            return Err(Refusal::of_changes("there is no version to change".to_owned()));
        }
    };
    let limits = zone.limits();
    // A changed zone has room that is not used: the whole one tells whether it is too large.
    let refusal = if changes.is_some() { Refusal::of_changes } else { Refusal::of_version };
    if loaded.records as u64 > limits.records_max {
        return Err(refusal(Fault::TooManyRecords(limits.records_max).to_string()));
    }
    if loaded.zone.bytes() as u64 > limits.octets_max {
        return Err(refusal(Fault::TooManyOctets(limits.octets_max).to_string()));
    }
    zone.crowd_limits()
        .check(&loaded.zone, changes.as_deref())
        .map_err(|fault| Refusal::of_version(fault.to_string()))?;
    Ok((loaded, changes))
}
