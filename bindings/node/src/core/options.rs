//! What an app's options say of its server.

use std::path::PathBuf;
use std::str::FromStr;

use zonda_config::Flags;
use zonda_runtime::RuntimeConfig;
use zonda_server::{Code, Stores, Texts};

use super::{CoreOptions, error};
use crate::server::{Start, Transports};
use crate::store::duration;

/// How long handlers have time, unless it is said otherwise, milliseconds: clients ask again, or
/// another server, after some 2 to 5 seconds.
const DEADLINE_MILLIS: f64 = 5000.0;
/// Queries that wait for handlers at most, unless it is said otherwise: some 10 MB of queries.
const WAITING_MAX: usize = 65_536;

/// What options say of a server; its code, zones that are no files, and how JavaScript is reached,
/// are still to be added.
pub(super) fn start(options: &CoreOptions) -> napi::Result<Start> {
    let zone = |zone: &Vec<String>| zone.join("=");
    let flags = Flags {
        listen: options.listen.iter().map(|text| listener(text).0.to_owned()).collect(),
        listen_nowhere: options.listens_nowhere,
        zones: options.zones.iter().map(zone).collect(),
        forward: (!options.forward.is_empty()).then(|| options.forward.join(",")),
        workers: options.workers.map(|workers| workers.to_string()),
        ..Flags::default()
    };
    let metrics = options
        .metrics
        .as_deref()
        .map(|text| parsed(text, "metrics must be an address and port such as 127.0.0.1:9153"));
    let deadline = duration(options.deadline.unwrap_or(DEADLINE_MILLIS))?;
    let runtime = RuntimeConfig {
        waiting_max: options.waiting_max.map_or(WAITING_MAX, |queries| queries as usize),
        patience_nanos: u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX),
        wake: Box::new(|| {}),
    };
    Ok(Start {
        file: options.config.as_ref().map(PathBuf::from),
        flags,
        texts: Texts::default(),
        stores: Stores::new(),
        answered: options.listen.iter().map(|text| listener(text).1).collect(),
        metrics: metrics.transpose()?,
        shares_addresses: options.shares_addresses,
        allows_failed_zones: options.allows_failed_zones.unwrap_or(false),
        code: Code::default(),
        runtime,
        ended: Box::new(|| {}),
    })
}

/// An address, and what is answered on it.
fn listener(text: &str) -> (&str, Transports) {
    match (text.strip_prefix("udp://"), text.strip_prefix("tcp://")) {
        (Some(address), _) => (address, Transports { udp: true, tcp: false }),
        (_, Some(address)) => (address, Transports { udp: false, tcp: true }),
        (None, None) => (text, Transports { udp: true, tcp: true }),
    }
}

/// Reads a text; an error has it, and what it must be.
pub(super) fn parsed<T: FromStr>(text: &str, wanted: &str) -> napi::Result<T> {
    text.parse().map_err(|_| error(format!("{wanted}, not `{text}`")))
}
