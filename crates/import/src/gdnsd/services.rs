//! `service_types`: how members are checked.

use super::{Report, text_of};
use crate::document::Effect;
use crate::error::ImportError;
use crate::steering::{Check, Probe, keys};
use crate::tree::{Node, expected};
use crate::value::{elements, get, pairs, parsed, required};
use std::collections::HashMap;
use std::time::Duration;

/// What a service type says of a member.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// The member is always up.
    Up,
    /// The member is always down.
    Down,
    /// The member is checked.
    Check(Box<Check>),
}

/// Service types by their names.
pub struct Services(HashMap<String, Service>);

/// Folder of the files of `extfile` whose path is not whole.
const STATE_FOLDER: &str = "/var/lib/gdnsd/extfile/";
/// The word in the arguments of `extmon` that stands for the member's address.
const ITEM: &str = "%%ITEM%%";

/// Reads all service types.
pub fn read(types: Option<&Node>, report: &mut Report) -> Result<Services, ImportError> {
    let built_in = [("up", Service::Up), ("default", Service::Up), ("down", Service::Down)];
    let mut all: HashMap<_, _> =
        built_in.into_iter().map(|(name, service)| (name.to_owned(), service)).collect();
    for (name, _, node) in types.map(pairs).transpose()?.unwrap_or_default() {
        all.insert(name.clone(), service(node, report)?);
    }
    Ok(Services(all))
}

impl Services {
    /// Returns the check of a list of service types, of which a pool can have one.
    pub fn check(
        &self,
        types: Option<&Node>,
        report: &mut Report,
    ) -> Result<Option<Check>, ImportError> {
        let mut check: Option<Check> = None;
        for node in types.map(elements).unwrap_or_default() {
            let found = text_of(node).and_then(|name| Some((name, self.0.get(name)?)));
            let (name, service) = found.ok_or_else(|| expected(node, "a service type"))?;
            match (service, &check) {
                (Service::Up, _) => {}
                (Service::Down, _) => {
                    let why = "no check is always down: `zonda pool down` does that";
                    report.tell(&node.place, Effect::Lost, name, why);
                }
                (Service::Check(new), None) => check = Some((**new).clone()),
                (Service::Check(new), Some(first)) if **new == *first => {}
                (Service::Check(_), Some(_)) => {
                    let why = "a pool has one check, here that of the first service type";
                    report.tell(&node.place, Effect::Lost, name, why);
                }
            }
        }
        Ok(check)
    }
}

/// Reads a service type.
fn service(node: &Node, report: &mut Report) -> Result<Service, ImportError> {
    let (plugin, at) = required(node, "plugin")?;
    let mut own: Vec<&str> = Vec::new();
    let mut check = match plugin.as_str() {
        "tcp_connect" => {
            own.push("port");
            let port = parsed(node, "port", "a port")?;
            let (port, _) = port.ok_or_else(|| expected(node, "a `port`"))?;
            Check::new(Probe::Tcp(port))
        }
        "http_status" => {
            own.extend(["port", "url_path", "vhost", "ok_codes"]);
            http(node)?
        }
        "extmon" => {
            own.push("cmd");
            let arguments = get(node, "cmd")?.ok_or_else(|| expected(node, "a `cmd`"))?;
            let argument = |node: &Node| {
                let text = text_of(node).ok_or_else(|| expected(node, "an argument"))?;
                Ok(text.replace(ITEM, keys::check::MEMBER_IN_ARGUMENTS))
            };
            let arguments = elements(arguments).iter().map(argument).collect::<Result<_, _>>()?;
            Check::new(Probe::Program(arguments))
        }
        "extfile" => {
            own.push("file");
            let (file, place) = required(node, "file")?;
            let path = match file.starts_with('/') {
                true => file.clone(),
                false => format!("{STATE_FOLDER}{file}"),
            };
            let why = "its lines need the form that checks by a file read here";
            report.tell(&place, Effect::Differs, &file, why);
            Check::new(Probe::File(path))
        }
        "static" => {
            let is_down = get(node, "state")?.and_then(text_of) == Some("DOWN");
            return Ok(if is_down { Service::Down } else { Service::Up });
        }
        "null" => return Ok(Service::Down),
        _ => {
            report.tell(&at, Effect::Lost, &plugin, "there is no counterpart of this plugin");
            return Ok(Service::Up);
        }
    };
    times(node, &mut check)?;
    for (key, place, _) in pairs(node)? {
        let common = ["plugin", "interval", "timeout", "up_thresh", "down_thresh"];
        if own.contains(&key.as_str()) || common.contains(&key.as_str()) {
            continue;
        }
        let (effect, why) = match key.as_str() {
            "ok_thresh" => {
                (Effect::Differs, "`fall` counts failures in a row: a single success begins anew")
            }
            "direct" => (Effect::Lost, "set `rise` and `fall` to 1 for that"),
            "max_proc" => (Effect::Needless, "there is a bound on probes at the same time"),
            _ => (Effect::Lost, "there is no counterpart that this import knows"),
        };
        report.tell(place, effect, key, why);
    }
    Ok(Service::Check(Box::new(check)))
}

/// Reads a check by HTTP.
fn http(node: &Node) -> Result<Check, ImportError> {
    let path = get(node, "url_path")?.and_then(text_of).unwrap_or("/").to_owned();
    let mut check = Check::new(Probe::Http(path));
    check.port = parsed(node, "port", "a port")?.map(|(port, _)| port).filter(|port| *port != 80);
    check.host = get(node, "vhost")?.and_then(text_of).map(str::to_owned);
    check.status = match get(node, "ok_codes")? {
        None => vec!["200".to_owned()],
        Some(codes) => elements(codes)
            .iter()
            .map(|node| match text_of(node).filter(|text| text.parse::<u16>().is_ok()) {
                Some(text) => Ok(text.to_owned()),
                None => Err(expected(node, "a status code")),
            })
            .collect::<Result<_, _>>()?,
    };
    Ok(check)
}

/// Reads intervals and thresholds.
fn times(node: &Node, check: &mut Check) -> Result<(), ImportError> {
    let number = |key, default: u32| {
        let number = parsed::<u32>(node, key, "a whole number")?;
        Ok::<_, ImportError>(number.map_or(default, |(number, _)| number))
    };
    let interval = number("interval", 10)?;
    let interval = Duration::from_secs(interval.into());
    check.interval = Some(interval);
    let timeout = parsed::<u32>(node, "timeout", "a whole number")?;
    let half = interval / 2;
    check.timeout = Some(timeout.map_or(half, |(secs, _)| Duration::from_secs(secs.into())));
    check.rise = Some(number("up_thresh", 20)?.max(1));
    check.fall = Some(number("down_thresh", 10)?.max(1));
    Ok(())
}
