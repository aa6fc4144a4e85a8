//! From a change at the primary to the new version at the secondary.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use zonda_wire::{Message, Name, Rcode};

use super::{Count, SerialClient, on_load_cpus, zones_of};
use crate::load::{Mode, Plan};
use crate::suite::bed::Bed;
use crate::suite::measure::{MeasureError, QueryRun};

/// The longest time until a change counts as lost.
const CHANGE_MAX: Duration = Duration::from_secs(10);
/// How long the secondary is left alone between two questions for its serial.
const ASK_EVERY: Duration = Duration::from_micros(50);

/// Sends the updates of a plan to the primary, one after the other until its time is over, and
/// waits until the secondary has another serial. The time of a change begins when its update is
/// sent.
///
/// # Errors
/// When an update is refused, or there is no primary.
pub fn propagate(plan: &Plan, bed: &Bed) -> Result<QueryRun, MeasureError> {
    let primary = bed.upstream_address.ok_or(MeasureError::Lacking("an upstream"))?;
    let zones = zones_of(plan)?;
    let (began, after) = (Instant::now(), plan.end.after.unwrap_or_default());
    let pause = match plan.mode {
        Mode::Closed { rate_max: Some(rate), .. } => Duration::from_secs_f64(1.0 / rate),
        _ => Duration::ZERO,
    };
    let ((count, length), cpu_secs) = on_load_cpus(&plan.cpus, || {
        let mut count = Count::new();
        let mut updates = UpdateClient::connect(primary)?;
        let mut serials = SerialClient::connect(plan.server)?;
        for place in (0..zones.len()).cycle() {
            let start = Instant::now();
            match change(plan, place, &zones[place], (&mut updates, &mut serials))? {
                Some(time) => count.complete(time),
                None => count.lose(),
            }
            if began.elapsed() >= after || plan.is_stopped() {
                break;
            }
            thread::sleep(pause.saturating_sub(start.elapsed()));
        }
        Ok((count, began.elapsed()))
    })?;
    Ok(count.finish(length, cpu_secs))
}

/// Makes one change; returns the time until the secondary has it, if that is not too long.
fn change(
    plan: &Plan,
    place: usize,
    zone: &Name,
    (updates, serials): (&mut UpdateClient, &mut SerialClient),
) -> Result<Option<Duration>, MeasureError> {
    let before = serials.ask(zone);
    let mut scratch = Vec::new();
    let place = u32::try_from(place).unwrap_or_default(); // a list has no more places
    let message = plan.queries.message(place, &mut scratch);
    let start = Instant::now();
    match updates.send(message)? {
        Some(Rcode::NOERROR) => {}
        Some(rcode) => return Err(MeasureError::Update(rcode)),
        None => return Ok(None),
    }
    loop {
        let serial = serials.ask(zone);
        let time = start.elapsed();
        if serial.is_some() && serial != before {
            return Ok(Some(time));
        }
        if time > CHANGE_MAX || plan.is_stopped() {
            return Ok(None);
        }
        thread::sleep(ASK_EVERY);
    }
}

/// A client that sends updates one after the other.
struct UpdateClient {
    /// Socket that is connected to the primary.
    socket: UdpSocket,
    /// ID of the last update.
    id: u16,
}

impl UpdateClient {
    /// Makes a client of a primary.
    fn connect(primary: SocketAddr) -> Result<Self, MeasureError> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(primary)?;
        socket.set_read_timeout(Some(CHANGE_MAX))?;
        Ok(Self { socket, id: 0 })
    }

    /// Sends an update; returns the response code, if a reply comes.
    fn send(&mut self, update: &[u8]) -> Result<Option<Rcode>, MeasureError> {
        self.id = self.id.wrapping_add(1);
        let mut update = update.to_vec();
        if let Some(id) = update.first_chunk_mut() {
            *id = self.id.to_be_bytes();
        }
        self.socket.send(&update)?;
        let mut buffer = [0; 4096];
        loop {
            let Ok(len) = self.socket.recv(&mut buffer) else { return Ok(None) };
            match Message::parse(&buffer[..len]) {
                Ok(reply) if reply.id == self.id => return Ok(Some(reply.rcode())),
                _ => {}
            }
        }
    }
}
