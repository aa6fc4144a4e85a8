//! Rounds of transfers, changes and starts of zones.
//!
//! What counts as a query of the round is said by [`Task::unit`](super::task::Task::unit).
//!
//! | module | rounds |
//! |---|---|
//! | `transfers` | a client transfers zones; the same beside queries |
//! | `starts` | the server is started with zones on its disk, or without |
//! | `changes` | from an update at the primary to the new version at the server |
//! | `storm` | all zones of a server have a new version, of which it is notified |

mod changes;
mod starts;
mod storm;
mod transfers;

pub use changes::propagate;
pub use starts::start;
pub use storm::{check_serials, notify};
pub use transfers::{Background, transfer_out};

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;
use zonda_netio::process::{pin_thread, thread_cpu_time, use_exact_timers};
use zonda_wire::message::{Message, Question};
use zonda_wire::{Name, Rcode, Type};

use super::measure::{MeasureError, QueryRun};
use crate::data::Traffic;
use crate::load::{Plan, histogram, latency_of};

/// Does work on a CPU of the load; returns the CPU time of it, too.
fn on_load_cpus<T: Send>(
    cpus: &[usize],
    work: impl FnOnce() -> Result<T, MeasureError> + Send,
) -> Result<(T, f64), MeasureError> {
    let pinned = || {
        if !cpus.is_empty() {
            pin_thread(cpus)?;
        }
        use_exact_timers()?;
        let done = work()?;
        Ok((done, thread_cpu_time()?.as_secs_f64()))
    };
    thread::scope(|scope| scope.spawn(pinned).join().expect("no panic"))
}

/// Counts of a round whose queries are no messages.
struct Count {
    /// Queries and replies.
    traffic: Traffic,
    /// Time of each query, nanoseconds.
    times: Histogram<u64>,
}

impl Count {
    /// Counts nothing yet.
    fn new() -> Self {
        Self { traffic: Traffic::default(), times: histogram() }
    }

    /// Counts one that has come to its end.
    fn complete(&mut self, time: Duration) {
        self.traffic.sent += 1;
        self.traffic.completed += 1;
        *self.traffic.rcodes.entry(Rcode::NOERROR.to_string()).or_default() += 1;
        self.times.saturating_record(time.as_nanos() as u64);
    }

    /// Counts one that has not come to its end in time.
    fn lose(&mut self) {
        self.traffic.sent += 1;
        self.traffic.lost += 1;
    }

    /// Returns the result of a round of this length.
    fn finish(self, length: Duration, cpu_secs: f64) -> QueryRun {
        let latency = latency_of(&self.times);
        QueryRun { seconds: length.as_secs_f64(), traffic: self.traffic, latency, cpu_secs }
    }
}

/// Returns the zones that the messages of a plan are about, in their order.
fn zones_of(plan: &Plan) -> Result<Vec<Name>, MeasureError> {
    let mut scratch = Vec::new();
    let zone = |place: u64| {
        let place = u32::try_from(place).ok()?;
        let message = Message::parse(plan.queries.message(place, &mut scratch)).ok()?;
        Some(message.questions.first()?.name.clone())
    };
    let zones: Option<Vec<Name>> = (0..plan.queries.count()).map(zone).collect();
    zones.ok_or(MeasureError::Lacking("messages with the name of a zone"))
}

/// A client that asks a server for serials.
struct SerialClient {
    /// Socket that is connected to the server.
    socket: UdpSocket,
    /// ID of the last question.
    id: u16,
    /// Room for a reply.
    buffer: Vec<u8>,
}

impl SerialClient {
    /// Makes a client of a server; a reply is waited for a second.
    fn connect(server: SocketAddr) -> io::Result<Self> {
        const TIMEOUT: Duration = Duration::from_secs(1);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { socket, id: 0, buffer: vec![0; 4096] })
    }

    /// Asks for the serial of a zone; nothing if the server does not say.
    fn ask(&mut self, zone: &Name) -> Option<u32> {
        self.id = self.id.wrapping_add(1);
        let query = Message::new(self.id, 0, Question::new(zone.clone(), Type::SOA));
        self.socket.send(&query.to_wire()).ok()?;
        loop {
            let len = self.socket.recv(&mut self.buffer).ok()?;
            let Ok(reply) = Message::parse(&self.buffer[..len]) else { continue };
            if reply.id == self.id {
                return serial_in(&reply);
            }
        }
    }
}

/// Returns the serial of the first SOA record of a reply.
fn serial_in(reply: &Message) -> Option<u32> {
    let soa = reply.records.iter().find(|record| record.rtype == Type::SOA)?;
    let serial = soa.rdata.last_chunk::<20>()?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*serial))
}
