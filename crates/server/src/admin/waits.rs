//! Waits until the secondaries of a zone have a version that an edit has made.

use super::call::Call;
use super::problem::Problem;
use crate::control::Control;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use zonda_secondary::{Fault, Primary};
use zonda_wire::{Name, Rcode};
use zonda_zone::is_greater;

/// Requests that wait at once. Each has a thread, and up to [`THREADS_MAX`] more.
const WAITS_MAX: usize = 16;
/// Threads that ask the secondaries of one request.
const THREADS_MAX: usize = 16;
/// How long one question waits for its reply, where a thread asks several servers.
const QUESTION_MAX: Duration = Duration::from_secs(1);
/// The first pause between two questions to a server. A change is there in some milliseconds.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest pause: each one is twice the one before.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The place of one request that waits.
pub struct WaitPlace<'c> {
    count: &'c AtomicUsize,
}

/// A server that is notified of a zone, and what is known of its version.
struct Secondary {
    server: Primary,
    /// Whether messages to it should be signed with a key that the configuration does not have.
    lacks_key: bool,
    answer: SecondaryAnswer,
}

/// What a server has answered last to the question for the SOA record.
enum SecondaryAnswer {
    /// The version that is waited for, or one between it and that in force here.
    Has(u32),
    /// Another serial: a smaller one, or a greater one than this server has.
    Other(u32, &'static str),
    /// No serial, for this reason.
    None(String),
}

/// A version of a zone that secondaries are to have, and until when.
struct Awaited<'w> {
    control: &'w Control,
    zone: &'w Name,
    serial: u32,
    deadline: Instant,
    /// Whether the client that waits has closed its connection.
    is_gone: &'w AtomicBool,
}

impl<'c> WaitPlace<'c> {
    /// Takes a place for a request, before the zone is changed.
    ///
    /// # Errors
    /// When too many requests wait.
    pub fn take(control: &'c Control) -> Result<Self, Problem> {
        let place = Self { count: &control.admin.waits };
        if place.count.fetch_add(1, Relaxed) < WAITS_MAX {
            return Ok(place);
        }
        control.admin.waits_refused.fetch_add(1, Relaxed);
        let detail = format!(
            "{WAITS_MAX} requests wait for secondaries already, so nothing was changed: try again, \
             or send the request without `wait`"
        );
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail))
    }
}

impl Drop for WaitPlace<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Relaxed);
    }
}

impl Secondary {
    /// Whether the server has the version.
    fn has_version(&self) -> bool {
        matches!(self.answer, SecondaryAnswer::Has(_))
    }

    /// What is known of the server, as the answer of a request shows it.
    fn to_json(&self) -> Value {
        let (serial, error) = match &self.answer {
            SecondaryAnswer::Has(serial) => (Some(*serial), None),
            SecondaryAnswer::Other(serial, error) => (Some(*serial), Some(*error)),
            SecondaryAnswer::None(error) => (None, Some(error.as_str())),
        };
        json!({
            "address": self.server.address.to_string(),
            "serial": serial,
            "has_version": self.has_version(),
            "error": error,
        })
    }

    /// Asks the server, within a time.
    fn ask(&mut self, awaited: &Awaited<'_>, time_max: Duration) {
        if self.lacks_key {
            let error = "the configuration does not have the key of the server".to_owned();
            self.answer = SecondaryAnswer::None(error);
            return;
        }
        let until = awaited.deadline.min(Instant::now() + time_max);
        let is_over = || Instant::now() >= until || awaited.is_vain();
        match self.server.soa_over_udp(awaited.zone, &is_over) {
            Ok(soa) => self.answer = awaited.judge(soa.serial),
            // What the server has said before tells more than a reply that is awaited still.
            Err(Fault::Stopped | Fault::Silence(_)) => {
                if matches!(self.answer, SecondaryAnswer::None(_)) {
                    self.answer = SecondaryAnswer::None("no answer within the time".to_owned());
                }
            }
            Err(fault) => self.answer = SecondaryAnswer::None(text(&fault)),
        }
    }
}

impl Awaited<'_> {
    /// Whether the server stops.
    fn is_stopping(&self) -> bool {
        self.control.admin.is_stopping.load(Relaxed)
    }

    /// Whether no client is to be told the result: the server stops, or the client has gone.
    fn is_vain(&self) -> bool {
        self.is_stopping() || self.is_gone.load(Relaxed)
    }

    /// Whether the wait has come to its end.
    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline || self.is_vain()
    }

    /// What a serial means. One that is greater than the zone's here is not of a version that this
    /// server has sent: the secondary does not take the changes.
    fn judge(&self, serial: u32) -> SecondaryAnswer {
        if serial == self.serial {
            return SecondaryAnswer::Has(serial);
        }
        if !is_greater(serial, self.serial) {
            return SecondaryAnswer::Other(serial, "it has an earlier version");
        }
        let state = self.control.state();
        let zone = state.zone_set().zone(self.zone).and_then(|zone| zone.data());
        match zone.is_some_and(|zone| !is_greater(serial, zone.serial())) {
            true => SecondaryAnswer::Has(serial),
            false => SecondaryAnswer::Other(
                serial,
                "its serial is greater than the zone's here, so that it does not transfer the zone",
            ),
        }
    }

    /// Asks servers in turn until all have the version or the time is over.
    fn ask_all(&self, servers: &mut [Secondary]) {
        let time_max = if servers.len() > 1 { QUESTION_MAX } else { Duration::MAX };
        let time_max = time_max.min(Duration::from_secs(3600)); // an instant can be that far away
        let mut pause = PAUSE_MIN;
        loop {
            let lacking = servers.iter_mut().filter(|server| !server.has_version());
            lacking.for_each(|server| server.ask(self, time_max));
            if servers.iter().all(Secondary::has_version) || self.is_over() {
                return;
            }
            thread::sleep(pause);
            pause = PAUSE_MAX.min(pause * 2);
        }
    }
}

/// Asks the servers that are notified of a zone, whose name is in lower case, for its SOA record
/// until all have a version, for a time at most, and no longer than the client of the request is
/// there. Returns what each has, and whether all have the version. Blocks.
pub fn wait(call: &Call<'_>, zone: &Name, serial: u32, limit: Duration) -> (Vec<Value>, bool) {
    let (control, is_gone) = (&**call.control, call.is_gone);
    let awaited = Awaited { control, zone, serial, deadline: Instant::now() + limit, is_gone };
    let mut servers = secondaries(control, zone);
    let share = servers.len().div_ceil(THREADS_MAX).max(1);
    thread::scope(|scope| {
        let mut rest: &mut [Secondary] = &mut servers;
        while !rest.is_empty() {
            let (own, behind) = rest.split_at_mut(share.min(rest.len()));
            rest = behind;
            let ask = || awaited.ask_all(own);
            let named = thread::Builder::new().name("wait".to_owned());
            if let Err(error) = named.spawn_scoped(scope, ask) {
                tracing::error!(%error, "no thread asks secondaries for a version");
            }
        }
    });
    if awaited.is_stopping() {
        for server in servers.iter_mut().filter(|server| !server.has_version()) {
            server.answer = SecondaryAnswer::None("this server stops".to_owned());
        }
    }
    let has_all = servers.iter().all(Secondary::has_version);
    (servers.iter().map(Secondary::to_json).collect(), has_all)
}

/// The servers that are notified of a zone, with the keys that they are notified with.
fn secondaries(control: &Control, zone: &Name) -> Vec<Secondary> {
    let snapshot = control.snapshot();
    let index = snapshot.zones.index_of(zone);
    let access = index.and_then(|index| snapshot.zones.get(index).access.clone());
    let receivers = access.iter().flat_map(|access| &access.transfers.notify);
    let secondary = |address: SocketAddr, key: Option<Option<&Arc<_>>>| Secondary {
        server: Primary { address, key: key.flatten().map(Arc::clone) },
        lacks_key: matches!(key, Some(None)),
        answer: SecondaryAnswer::None("it was not asked".to_owned()),
    };
    let keys = &snapshot.settings.keys;
    receivers.map(|it| secondary(it.address, it.key.map(|key| keys.get(key)))).collect()
}

/// Why a server did not tell its serial.
fn text(fault: &Fault) -> String {
    match fault {
        Fault::Refused(Rcode::REFUSED) => "it answers REFUSED: let it answer queries for the zone \
                                           from this server's address, with the key of `notify` \
                                           if there is one"
            .to_owned(),
        Fault::Refused(rcode) | Fault::RefusedUnsigned(rcode) => format!("it answers {rcode}"),
        Fault::NotAuthoritative => "it is not authoritative for the zone".to_owned(),
        fault => fault.to_string(),
    }
}
