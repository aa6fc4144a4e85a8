//! Transfers of zones out of the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zonda_netio::process::pin_thread;
use zonda_wire::Name;

use super::{Count, on_load_cpus, zones_of};
use crate::load::Plan;
use crate::suite::measure::{MeasureError, QueryRun};
use crate::transfer::{TransferError, transfer};

/// The longest transfer.
const TRANSFER_MAX: Duration = Duration::from_secs(60);

/// Transfers the zones of the plan, one after the other, until its time is over; at least one.
///
/// # Errors
/// When a zone is not transferred whole.
pub fn transfer_out(plan: &Plan) -> Result<QueryRun, MeasureError> {
    let zones = zones_of(plan)?;
    let (began, after) = (Instant::now(), plan.end.after.unwrap_or_default());
    let ((count, length), cpu_secs) = on_load_cpus(&plan.cpus, || {
        let mut count = Count::new();
        for zone in zones.iter().cycle() {
            let start = Instant::now();
            transfer(plan.server, zone, TRANSFER_MAX).map_err(MeasureError::Transfer)?;
            count.complete(start.elapsed());
            if began.elapsed() >= after || plan.is_stopped() {
                break;
            }
        }
        Ok((count, began.elapsed()))
    })?;
    Ok(count.finish(length, cpu_secs))
}

/// A client that transfers a zone again and again while something else is measured.
pub struct Background {
    /// Flag that ends it after the transfer under way.
    stop: Arc<AtomicBool>,
    /// Returns the number of transfers.
    thread: JoinHandle<Result<u64, TransferError>>,
}

impl Background {
    /// Begins to transfer.
    ///
    /// # Errors
    /// When the name is none.
    pub fn start(plan: &Plan, zone: &str) -> Result<Self, MeasureError> {
        let zone: Name = zone.parse().map_err(|_| MeasureError::Lacking("the name of a zone"))?;
        let (server, cpus, stop) = (plan.server, plan.cpus.clone(), Arc::<AtomicBool>::default());
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let _ = pin_thread(&cpus); // elsewhere it transfers as well
            repeat(server, &zone, &stopped)
        });
        Ok(Self { stop, thread })
    }

    /// Ends after the transfer under way.
    ///
    /// # Errors
    /// When a transfer failed.
    pub fn end(self) -> Result<(), MeasureError> {
        self.stop.store(true, Ordering::Relaxed);
        let transfers = self.thread.join().expect("no panic");
        transfers.map(drop).map_err(MeasureError::Transfer)
    }
}

/// Transfers a zone until it is stopped; returns how often.
fn repeat(server: SocketAddr, zone: &Name, stop: &AtomicBool) -> Result<u64, TransferError> {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        transfer(server, zone, TRANSFER_MAX)?;
        count += 1;
    }
    Ok(count)
}
