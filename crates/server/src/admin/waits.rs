//! Waits until the secondaries of a zone have a version that an edit has made.

use super::problem::Problem;
use crate::control::Control;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use zonda_secondary::Primary;
use zonda_wire::Name;
use zonda_zone::is_greater;

/// Requests that wait at once: each has a thread, and one more for each secondary.
const WAITS_MAX: usize = 16;
/// Secondaries that are asked at once; more are asked when these have the version.
const ASKED_MAX: usize = 16;
/// The first pause between two questions to a secondary. A change is there in some milliseconds.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest pause: each one is twice the one before.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The place of one request that waits.
pub struct WaitPlace<'c> {
    count: &'c AtomicUsize,
}

/// What a secondary has answered to the question for the zone's SOA record.
struct SecondaryVersion {
    address: SocketAddr,
    serial: Option<u32>,
    has_version: bool,
    error: Option<String>,
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

impl SecondaryVersion {
    /// The version as the answer shows it.
    fn to_json(&self) -> Value {
        json!({
            "address": self.address.to_string(),
            "serial": self.serial,
            "has_version": self.has_version,
            "error": self.error,
        })
    }
}

/// Asks the servers that are notified of a zone, whose name is in lower case, for its SOA record
/// until all have a version or a later one, for a time at most. Returns what each answered last,
/// and whether all have the version. Blocks.
pub fn wait(control: &Control, zone: &Name, serial: u32, limit: Duration) -> (Vec<Value>, bool) {
    let deadline = Instant::now() + limit;
    let is_over = || Instant::now() >= deadline || control.is_stopping.load(Relaxed);
    let servers = secondaries(control, zone);
    let mut versions = Vec::with_capacity(servers.len());
    for asked in servers.chunks(ASKED_MAX) {
        thread::scope(|scope| {
            let ask = |server| {
                let ask = move || ask(server, zone, serial, &is_over);
                thread::Builder::new().name("wait".to_owned()).spawn_scoped(scope, ask)
            };
            let threads: Vec<_> =
                asked.iter().map(|server| (server.address, ask(server))).collect();
            for (address, thread) in threads {
                let version = match thread.map(|thread| thread.join()) {
                    Ok(Ok(version)) => version,
                    Ok(Err(_)) => no_version(address, "the thread has failed; see the log"),
                    Err(error) => no_version(address, &format!("no thread: {error}")),
                };
                versions.push(version);
            }
        });
    }
    let has_all = versions.iter().all(|version| version.has_version);
    (versions.iter().map(SecondaryVersion::to_json).collect(), has_all)
}

/// The servers that are notified of a zone, with the keys that they are notified with.
fn secondaries(control: &Control, zone: &Name) -> Vec<Primary> {
    let (state, snapshot) = (control.state(), control.snapshot());
    let access = state.zone_set().zone(zone).and_then(|zone| zone.entry.access.clone());
    let receivers = access.iter().flat_map(|access| &access.transfers.notify);
    let server = |it: &zonda_engine::access::NotifyReceiver| {
        let key = it.key.and_then(|key| snapshot.settings.keys.get(key));
        Primary { address: it.address, key: key.map(Arc::clone) }
    };
    receivers.map(server).collect()
}

/// Asks a server for the SOA record of a zone until it has a version, or the time is over.
fn ask(server: &Primary, zone: &Name, serial: u32, is_over: &dyn Fn() -> bool) -> SecondaryVersion {
    let mut pause = PAUSE_MIN;
    let mut last = no_version(server.address, "no answer within the time");
    loop {
        match server.soa(zone, is_over) {
            Ok(soa) => {
                let has_version = soa.serial == serial || is_greater(soa.serial, serial);
                let serial = Some(soa.serial);
                last = SecondaryVersion { serial, has_version, error: None, ..last };
            }
            Err(_) if is_over() => {} // the time of a question is over, too
            Err(fault) => last = no_version(server.address, &fault.to_string()),
        }
        if last.has_version || is_over() {
            return last;
        }
        thread::sleep(pause);
        pause = PAUSE_MAX.min(pause * 2);
    }
}

/// A server that has not answered.
fn no_version(address: SocketAddr, error: &str) -> SecondaryVersion {
    let error = Some(error.to_owned());
    SecondaryVersion { address, serial: None, has_version: false, error }
}
