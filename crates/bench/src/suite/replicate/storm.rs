//! A new version of all zones of a server at once.

use std::thread;
use std::time::{Duration, Instant};

use zonda_wire::Name;

use super::{SerialClient, on_load_cpus, zones_of};
use crate::data::Traffic;
use crate::load::{self, End, Plan};
use crate::primary::Primary;
use crate::suite::bed::Bed;
use crate::suite::measure::{MeasureError, QueryRun};

/// How long no zone may be transferred until the rest counts as lost.
const STALL_MAX: Duration = Duration::from_secs(20);
/// How often it is looked how many zones were transferred.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Time that the server has to put the last zones into force; not part of the length.
const SETTLE: Duration = Duration::from_millis(200);

/// Gives all zones of the primary their next serial, notifies the server of each, and waits until
/// it has transferred as many zones.
///
/// # Errors
/// When there is no primary, or the generator fails.
pub fn notify(plan: &Plan, bed: &Bed) -> Result<QueryRun, MeasureError> {
    let primary = bed.primary.as_ref().ok_or(NO_PRIMARY)?;
    wait_for_transfers(primary, plan); // those of the start
    primary.raise_serial();
    let began = Instant::now();
    let once = End { runs: Some(1), ..End::default() };
    let sent = load::run(&Plan { end: once, ..plan.clone() }, None).map_err(MeasureError::Load)?;
    wait_for_transfers(primary, plan);
    let length = began.elapsed();
    thread::sleep(SETTLE);
    let (seconds, cpu_secs) = (length.as_secs_f64(), sent.cpu_secs);
    Ok(QueryRun { seconds, traffic: sent.traffic, latency: sent.latency, cpu_secs })
}

/// Counts as lost each zone that the server does not have with the primary's serial.
///
/// # Errors
/// When there is no primary, or no socket.
pub fn check_serials(plan: &Plan, bed: &Bed, traffic: &mut Traffic) -> Result<(), MeasureError> {
    let primary = bed.primary.as_ref().ok_or(NO_PRIMARY)?;
    let (zones, serial) = (zones_of(plan)?, primary.serial());
    let (behind, _) = on_load_cpus(&plan.cpus, || Ok(count_behind(plan, zones, serial)?))?;
    traffic.completed = traffic.sent.saturating_sub(behind);
    traffic.lost = behind;
    Ok(())
}

/// Why there is nothing to do.
const NO_PRIMARY: MeasureError = MeasureError::Lacking("`any_zone_primary`");

/// Waits until so many zones were transferred, or none is any more.
pub(super) fn wait_for_transfers(primary: &Primary, plan: &Plan) {
    let (mut before, mut moved) = (0, Instant::now());
    loop {
        let transfers = primary.transfers();
        if transfers != before {
            (before, moved) = (transfers, Instant::now());
        }
        if transfers >= plan.queries.count() || moved.elapsed() > STALL_MAX || plan.is_stopped() {
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Returns how many zones the server has with another serial, after it had some time to put the
/// last ones into force.
fn count_behind(plan: &Plan, mut zones: Vec<Name>, serial: u32) -> std::io::Result<u64> {
    const TURNS: u32 = 10;
    let mut client = SerialClient::connect(plan.server)?;
    for turn in 0..TURNS {
        zones.retain(|zone| client.ask(zone) != Some(serial));
        if zones.is_empty() || plan.is_stopped() {
            break;
        }
        thread::sleep(LOOK_EVERY * (turn + 1) * 4);
    }
    Ok(zones.len() as u64)
}
