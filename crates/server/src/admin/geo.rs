//! Networks of sites and measured latencies, which programs tell.

use super::call::Call;
use super::json_body::JsonBody;
use super::problem::{Problem, problem};
use super::reply::{Reply, json_reply};
use crate::control::Control;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use zonda_balance::geography::{Geography, NetworkKey};
use zonda_geo::Prefix;

/// Most milliseconds of a latency.
const LATENCY_MAX_MILLIS: f64 = 60_000.0;

/// Networks whose site is known, by prefix.
pub fn networks(control: &Control) -> Value {
    let state = control.state();
    let geography = &state.config().geography;
    let networks = geography.networks.iter().map(|(prefix, site)| {
        json!({ "prefix": prefix.to_string(), "site": name(geography, site.0 as usize) })
    });
    json!({ "networks": networks.collect::<Vec<_>>() })
}

/// Latencies from networks to sites.
pub fn latencies(control: &Control) -> Value {
    let state = control.state();
    let geography = &state.config().geography;
    let rows = geography.latencies.networks.iter().flat_map(|(network, row)| {
        row.iter().map(|(site, micros)| {
            json!({
                "prefix": format!("{}/{}", network.address, network.length),
                "site": name(geography, usize::from(*site)),
                "ms": f64::from(*micros) / 1e3,
            })
        })
    });
    json!({ "latencies": rows.collect::<Vec<_>>() })
}

/// Changes the networks in the file of them.
pub fn change_networks(call: &Call<'_>) -> Reply {
    reply_of(change(
        call,
        &File {
            key: "networks-file",
            path: |geography| geography.files.networks.clone(),
            has_latency: false,
        },
    ))
}

/// Changes the latencies in the file of them.
pub fn change_latencies(call: &Call<'_>) -> Reply {
    reply_of(change(
        call,
        &File {
            key: "latencies-file",
            path: |geography| geography.files.latencies.clone(),
            has_latency: true,
        },
    ))
}

/// A file that requests change.
struct File {
    /// The key that names the file.
    key: &'static str,
    path: fn(&Geography) -> Option<PathBuf>,
    /// Whether its lines have milliseconds.
    has_latency: bool,
}

/// The lines of a file: the prefix with its place in the order, the site, and what follows it.
type Lines = BTreeMap<(NetworkKey, String), (Prefix, String)>;

/// The reply to a request that was done, or was not.
fn reply_of(result: Result<Value, Problem>) -> Reply {
    match result {
        Ok(value) => json_reply(&value),
        Err(found) => problem(&found),
    }
}

/// The name of a site.
fn name(geography: &Geography, number: usize) -> &str {
    geography.sites.get(number).map_or("", |site| &*site.name)
}

/// Changes a file and has it read.
fn change(call: &Call<'_>, file: &File) -> Result<Value, Problem> {
    let refused = |text: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text);
    let control = call.control;
    let _alone = control.lock_geo_files();
    let geography = std::sync::Arc::clone(&control.state().config().geography);
    let path = (file.path)(&geography)
        .ok_or_else(|| refused(format!("write `{}` in [geo], where this is kept", file.key)))?;
    let mut lines =
        read(&path, file).map_err(|error| refused(format!("{}: {error}", path.display())))?;
    let body = JsonBody::read(call.body, &["set", "remove"]).map_err(Problem::bad_request)?;
    let list = |key: &str| match body.value(key) {
        None => Ok(&[][..]),
        Some(Value::Array(list)) => Ok(&list[..]),
        Some(_) => Err(Problem::bad_request(format!("`{key}` is a list"))),
    };
    let mut removed = 0;
    for prefix in list("remove")? {
        let key = NetworkKey::from(prefix_of(prefix).map_err(Problem::bad_request)?);
        let before = lines.len();
        lines.retain(|(network, _), _| *network != key);
        removed += before - lines.len();
    }
    let sites: HashSet<&str> = geography.sites.iter().map(|site| &*site.name).collect();
    let set = list("set")?;
    for entry in set {
        let (prefix, site, rest) = line_of(entry, (file, &sites)).map_err(Problem::bad_request)?;
        let network = NetworkKey::from(prefix);
        if !file.has_latency {
            lines.retain(|(known, _), _| *known != network); // a network has one site
        }
        lines.insert((network, site), (prefix, rest));
    }
    let mut text = String::from("# Written at requests; comments are lost at the next one.\n");
    for ((_, site), (prefix, rest)) in &lines {
        let _ = writeln!(text, "{prefix} {site}{rest}"); // into memory
    }
    crate::atomic_file::write(&path, text.as_bytes())
        .map_err(|error| refused(format!("{}: cannot be written: {error}", path.display())))?;
    control.reload_locations().map_err(refused)?;
    Ok(json!({ "set": set.len(), "removed": removed, "lines": lines.len() }))
}

/// The network of a value.
fn prefix_of(value: &Value) -> Result<Prefix, String> {
    let text = value.as_str().ok_or("a prefix is text in quotes, such as \"10.1.0.0/16\"")?;
    text.parse().map_err(|error| format!("`{text}`: {error}"))
}

/// The network, the site and what follows on the line of an entry.
fn line_of(
    entry: &Value,
    (file, sites): (&File, &HashSet<&str>),
) -> Result<(Prefix, String, String), String> {
    let prefix = prefix_of(entry.get("prefix").unwrap_or(&Value::Null))?;
    let site = entry.get("site").and_then(Value::as_str).ok_or("write `site` as text in quotes")?;
    if !sites.contains(site) {
        return Err(format!("no site `{site}`; name it in `sites` of [geo], or at a member"));
    }
    let rest = match (file.has_latency, entry.get("ms").and_then(Value::as_f64)) {
        (false, _) => String::new(),
        (true, Some(millis)) if (0.0..=LATENCY_MAX_MILLIS).contains(&millis) => {
            format!(" {millis:.3}")
        }
        (true, _) => return Err("write `ms` as a number from 0 to 60000".to_owned()),
    };
    Ok((prefix, site.to_owned(), rest))
}

/// The lines of a file; none if it is not there.
fn read(path: &std::path::Path, file: &File) -> std::io::Result<Lines> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let mut lines = Lines::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (prefix, site, rest) = match (&words[..], file.has_latency) {
            ([prefix, site], false) => (prefix, site, String::new()),
            ([prefix, site, millis], true) => (prefix, site, format!(" {millis}")),
            _ => continue, // the configuration could not have been loaded
        };
        let Ok(prefix) = prefix.parse::<Prefix>() else { continue };
        lines.insert((NetworkKey::from(prefix), (*site).to_owned()), (prefix, rest));
    }
    Ok(lines)
}
