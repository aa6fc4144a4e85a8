//! One round of one server.

use std::process;
use std::time::Instant;

use super::bed::Bed;
use super::load::{self, End, LoadError, Order};
use crate::data::Round;
use crate::procfs::{self, Usage};

/// Warms up, then measures. A round is measured as a whole: what the server did before the first
/// and after the last query counts, as it does for everybody.
pub fn round(
    number: usize,
    bed: &Bed,
    order: &Order<'_>,
    warm_up: Option<f64>,
) -> Result<Round, LoadError> {
    if let Some(seconds) = warm_up {
        load::run(&Order { end: End::Once, rate: None, ..order.clone() })?;
        load::run(&Order { end: End::Seconds(seconds), ..order.clone() })?;
    }
    let before = Reading::take(bed);
    let mut counted = load::run(order)?;
    let after = Reading::take(bed);
    let server = after.server.since(&before.server);
    counted.traffic.dropped_by_server = after.server_drops.saturating_sub(before.server_drops);
    Ok(Round {
        number,
        seconds: counted.seconds,
        traffic: counted.traffic,
        latency: counted.latency,
        cpu_user_secs: server.user_secs,
        cpu_system_secs: server.system_secs,
        load_cpu_secs: (after.load_secs - before.load_secs).max(0.0),
        context_switches: server.context_switches,
        memory_octets: bed.memory_octets(),
        foreign_cpu: after.foreign_share_since(&before),
    })
}

/// What the kernel's counters say at one moment.
struct Reading {
    /// When.
    at: Instant,
    /// The server's processes.
    server: Usage,
    /// Datagrams that its sockets dropped.
    server_drops: u64,
    /// CPU time of generators that have ended.
    load_secs: f64,
    /// CPU time of this process and all below it, whether they have ended or not.
    own_secs: f64,
    /// CPU time of the whole machine.
    busy_secs: f64,
}

impl Reading {
    /// Reads them.
    fn take(bed: &Bed) -> Self {
        let load_secs = procfs::ended_children_cpu_secs(process::id());
        Self {
            at: Instant::now(),
            server: bed.usage(),
            server_drops: procfs::socket_drops(bed.address),
            load_secs,
            own_secs: procfs::usage(process::id()).cpu_secs() + load_secs,
            busy_secs: procfs::busy_secs(),
        }
    }

    /// The share of the machine that others have used; 0–1.
    fn foreign_share_since(&self, earlier: &Self) -> f64 {
        let busy = self.busy_secs - earlier.busy_secs;
        let own = self.own_secs - earlier.own_secs;
        let available = (self.at - earlier.at).as_secs_f64() * procfs::cpus() as f64;
        ((busy - own) / available).clamp(0.0, 1.0)
    }
}
