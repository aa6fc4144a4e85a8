//! Starts of a server with secondary zones.

use std::thread;
use std::time::{Duration, Instant};

use super::storm::wait_for_transfers;
use super::{Count, SerialClient, on_load_cpus, zones_of};
use crate::load::Plan;
use crate::suite::bed::Bed;
use crate::suite::measure::{MeasureError, QueryRun};

/// Zones of which the server is asked whether it has them; it is asked for all zones afterwards.
const SAMPLE: usize = 200;
/// The longest time until the server has a zone of the sample.
const ZONE_MAX: Duration = Duration::from_secs(600);
/// How long the server is left alone between two questions for a zone that it has not.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// Starts the server anew, with an empty folder or with what it has left there, and counts its
/// zones. The round ends when the primary has given all zones away, if they have to be transferred,
/// and the server answers for a sample of them.
///
/// # Errors
/// When the server does not come up in time.
pub fn start(plan: &Plan, bed: &mut Bed, is_fresh: bool) -> Result<QueryRun, MeasureError> {
    let zones = zones_of(plan)?;
    let step = zones.len().div_ceil(SAMPLE).max(1);
    if let Some(primary) = &bed.primary {
        wait_for_transfers(primary, plan); // those of the start before
        if is_fresh {
            primary.raise_serial();
        }
    }
    let ready = bed.start_again(is_fresh).map_err(MeasureError::Bed)?;
    let answered = Instant::now();
    if let Some(primary) = bed.primary.as_ref().filter(|_| is_fresh) {
        wait_for_transfers(primary, plan);
    }
    on_load_cpus(&plan.cpus, || {
        let mut client = SerialClient::connect(bed.address)?;
        for zone in zones.iter().step_by(step) {
            let limit = Instant::now() + ZONE_MAX;
            while client.ask(zone).is_none() && Instant::now() < limit && !plan.is_stopped() {
                thread::sleep(ASK_EVERY);
            }
        }
        Ok(())
    })?;
    let length = ready + answered.elapsed();
    bed.wait_until_idle();
    let mut count = Count::new();
    (0..zones.len()).for_each(|_| count.complete(length));
    Ok(count.finish(length, 0.0))
}
