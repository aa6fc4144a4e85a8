//! Requests that change the records of a zone, and those about changes that its file lacks.

use super::api;
use super::call::Call;
use super::problem::{Problem, problem};
use super::reply::{Reply, json_reply, parameter, text};
use super::rrsets::version_of;
use super::waits::{self, WaitPlace};
use crate::control::Control;
use crate::edit::flush::FlushError;
use crate::edit::zones::ZoneError;
use crate::edit::{Edit, EditError};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, IF_MATCH, IF_NONE_MATCH, LOCATION};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;
use zonda_engine::VersionOrigin;
use zonda_wire::{Name, Type};
use zonda_zone::{Diff, Records, SetChange, json};

/// Seconds that a request waits for secondaries, unless it says how many.
const WAIT_SECS: u64 = 10;
/// Most seconds that a request may wait.
const WAIT_SECS_MAX: u64 = 60;

/// Changes several sets, all of them or none.
pub fn change(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let sets = json::read_changes(call.body).map_err(|error| Problem::body(&error))?;
        edit(call, sets)
    })
}

/// Puts one set.
pub fn put(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let (owner, rtype) = (owner(call)?, rtype(call)?);
        let set =
            json::read_set(call.body, &owner, rtype).map_err(|error| Problem::body(&error))?;
        edit(call, vec![set])
    })
}

/// Removes one set.
pub fn remove(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let (owner, rtype) = (owner(call)?, rtype(call)?);
        edit(call, vec![SetChange::Remove { owner, rtype }])
    })
}

/// Removes all sets of a name.
pub fn remove_name(call: &Call<'_>) -> Reply {
    reply_of(|| edit(call, vec![SetChange::RemoveName { owner: owner(call)? }]))
}

/// What the file of a zone lacks.
pub fn unflushed(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let zone = zone(call)?;
        let diff = call.control.unflushed_diff(&zone)?;
        Ok(difference(&zone, &diff, false, None))
    })
}

/// Writes changes to the files of zones: of one, or of all.
pub fn flush(query: &str, control: &Control) -> Reply {
    reply_of(|| {
        let flushed =
            |name: &Name, serial: u32| json!({ "zone": name.to_string(), "serial": serial });
        let Some(name) = parameter(query, "zone") else {
            let (mut written, mut failed) = (Vec::new(), Vec::new());
            for (name, result) in control.flush_all() {
                match result {
                    Ok(serial) => written.push(flushed(&name, serial)),
                    Err(error) => failed.push(format!("{name}: {error}")),
                }
            }
            let mut reply = json_reply(&json!({ "flushed": written, "failed": failed }));
            if !failed.is_empty() {
                *reply.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            }
            return Ok(reply);
        };
        let name = zone_name(&name)?;
        let serial = control.flush(&name)?;
        let written: Vec<_> = serial.map(|serial| flushed(&name, serial)).into_iter().collect();
        Ok(json_reply(&json!({ "flushed": written, "failed": [] })))
    })
}

/// Creates a zone.
pub fn create_zone(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let (name, sets) = json::read_new_zone(call.body).map_err(|error| Problem::body(&error))?;
        call.control.create_zone(&name, &sets)?;
        let mut reply = api::zone(&name.to_string(), call.control);
        *reply.status_mut() = StatusCode::CREATED;
        if let Ok(place) = HeaderValue::from_str(&format!("/v1/zones/{name}")) {
            reply.headers_mut().insert(LOCATION, place);
        }
        Ok(reply)
    })
}

/// Removes a zone.
pub fn remove_zone(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let zone = zone(call)?;
        call.control.remove_zone(&zone)?;
        Ok(json_reply(&json!({ "removed": zone.to_string() })))
    })
}

/// Changes the zone of a request.
fn edit(call: &Call<'_>, sets: Vec<SetChange>) -> Result<Reply, Problem> {
    let (zone, (if_serial, if_life)) = (zone(call)?, condition(call)?);
    make_version(call, &zone, |is_dry_run| {
        let origin = VersionOrigin::Edit;
        call.control.edit(Edit { zone: zone.clone(), sets, if_serial, if_life, is_dry_run, origin })
    })
}

/// Has `edit` make a version of a zone, or tell the difference if it is told that the request is a
/// dry run, and answers with the difference; once the secondaries have the version, if the request
/// wants that.
pub fn make_version(
    call: &Call<'_>,
    zone: &Name,
    edit: impl FnOnce(bool) -> Result<Diff, EditError>,
) -> Result<Reply, Problem> {
    let Parameters { is_dry_run, wait } = parameters(call.query)?;
    let place = wait.map(|_| WaitPlace::take(call.control)).transpose()?;
    let diff = edit(is_dry_run)?;
    let versions = wait.map(|limit| waits::wait(call, zone, diff.to, limit));
    drop(place);
    let has_all = versions.as_ref().is_none_or(|(_, has_all)| *has_all);
    let mut reply = difference(zone, &diff, is_dry_run, versions.map(|(versions, _)| versions));
    if !has_all {
        *reply.status_mut() = StatusCode::ACCEPTED; // the version is in force here
    }
    Ok(reply)
}

/// The reply that was found, or that to a problem.
pub fn reply_of(answer: impl FnOnce() -> Result<Reply, Problem>) -> Reply {
    answer().unwrap_or_else(|found| problem(&found))
}

/// The zone of a request.
pub fn zone(call: &Call<'_>) -> Result<Name, Problem> {
    zone_name(call.argument())
}

/// A zone by its name as text.
fn zone_name(given: &str) -> Result<Name, Problem> {
    let name = given.parse::<Name>().map(|name| name.to_lowercase());
    name.map_err(|error| {
        Problem::bad_request(format!("{given} is not the name of a zone: {error}"))
    })
}

/// The name whose records a request is about.
fn owner(call: &Call<'_>) -> Result<Name, Problem> {
    let given = call.second_argument();
    let name = given.parse::<Name>();
    name.map_err(|error| Problem::bad_request(format!("{given} is not a name: {error}")))
}

/// The type of the records that a request is about.
fn rtype(call: &Call<'_>) -> Result<Type, Problem> {
    let given = call.arguments.get(2).copied().unwrap_or_default();
    let rtype = given.parse::<Type>();
    rtype.map_err(|_| Problem::bad_request(format!("no type {given}: write one as A or TYPE65280")))
}

/// The parameters of a request that changes a zone.
#[derive(Debug, PartialEq, Eq)]
struct Parameters {
    /// Whether it only asks for the difference.
    is_dry_run: bool,
    /// How long it waits, at most, until the secondaries have the new version.
    wait: Option<Duration>,
}

/// Reads the parameters of a request. What was meant as a dry run must not change anything, so one
/// that is not understood is an error.
fn parameters(query: &str) -> Result<Parameters, Problem> {
    let wrong = || {
        let detail = format!(
            "this request takes either `dry-run`, without a value, or `wait=secondaries`, also \
             with `wait-max=SECONDS`, 1 to {WAIT_SECS_MAX}"
        );
        Problem::bad_request(detail)
    };
    let (mut is_dry_run, mut is_waited, mut secs) = (false, false, None);
    for part in query.split('&').filter(|_| !query.is_empty()) {
        match part.split_once('=').unwrap_or((part, "")) {
            ("dry-run", "") if part == "dry-run" && !is_dry_run => is_dry_run = true,
            ("wait", "secondaries") if !is_waited => is_waited = true,
            ("wait-max", value) if secs.is_none() => {
                let value = value.parse::<u64>().ok();
                secs = Some(value.filter(|it| (1..=WAIT_SECS_MAX).contains(it)).ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
    }
    if is_waited && is_dry_run || secs.is_some() && !is_waited {
        return Err(wrong());
    }
    let wait = is_waited.then(|| Duration::from_secs(secs.unwrap_or(WAIT_SECS)));
    Ok(Parameters { is_dry_run, wait })
}

/// The version that the zone must have: its serial, and its life if the client gives the entity tag
/// of a version (rfc9110#13.1.1). A serial alone has no quotation marks: it would be an entity tag
/// with them, and one that no version has, as another zone of the name may have the serial.
fn condition(call: &Call<'_>) -> Result<(Option<u32>, Option<u32>), Problem> {
    if call.headers.contains_key(IF_NONE_MATCH) {
        let detail =
            "If-None-Match is not answered here: If-Match has the version that is expected";
        return Err(Problem::bad_request(detail.to_owned()));
    }
    let mut given = call.headers.get_all(IF_MATCH).iter();
    let (first, more) = (given.next(), given.next());
    let Some(first) = first else { return Ok((None, None)) };
    let unread = || {
        let detail = "If-Match has neither one entity tag, such as \"7-1f8a02c3\", nor one serial, \
                      such as 7 without quotation marks";
        Problem::bad_request(detail.to_owned())
    };
    let text = first.to_str().ok().filter(|_| more.is_none()).map(str::trim);
    let text = text.ok_or_else(unread)?;
    if text == "*" {
        return Ok((None, None)); // the zone exists
    }
    let Some(tag) = text.strip_prefix('"') else {
        return Ok((Some(text.parse().map_err(|_| unread())?), None));
    };
    let tag = tag.strip_suffix('"').filter(|tag| !tag.contains('"')).ok_or_else(unread)?;
    let (serial, life) = version_of(tag).ok_or_else(|| {
        let detail = format!(
            "no version of a zone has the entity tag \"{tag}\": read the zone again, and repeat \
             the change; If-Match has a serial alone without quotation marks"
        );
        Problem::new(StatusCode::PRECONDITION_FAILED, detail)
    })?;
    Ok((Some(serial), Some(life)))
}

/// A difference as JSON, with what the secondaries have of the version if that was asked for.
fn difference(
    zone: &Name,
    diff: &Diff,
    is_dry_run: bool,
    secondaries: Option<Vec<Value>>,
) -> Reply {
    let secondaries = secondaries
        .map_or_else(String::new, |it| format!(",\n  \"secondaries\": {}", Value::from(it)));
    let body = format!(
        "{{\n  \"zone\": {},\n  \"dry_run\": {is_dry_run},\n  \"from\": {},\n  \"to\": {},\n  \
         \"removed\": [{}],\n  \"added\": [{}]{secondaries}\n}}\n",
        json!(zone.to_string()),
        diff.from,
        diff.to,
        sets(&diff.removed),
        sets(&diff.added),
    );
    let mut reply = text(StatusCode::OK, body);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Records, which are in canonical order, as the sets that they make up.
fn sets(records: &Records) -> String {
    let mut records = records.iter().peekable();
    let mut list = String::new();
    while let Some(first) = records.next() {
        let mut rdatas = vec![first.rdata];
        let key = (first.owner, first.rtype, first.ttl);
        while let Some(next) = records.next_if(|next| (next.owner, next.rtype, next.ttl) == key) {
            rdatas.push(next.rdata);
        }
        let separator = if list.is_empty() { "\n    " } else { ",\n    " };
        let set = json::set_to_text(first.owner, first.rtype, first.ttl, rdatas.into_iter());
        let _ = write!(list, "{separator}{set}"); // a string takes everything
    }
    if list.is_empty() { list } else { list + "\n  " }
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Self {
        let status = match &error {
            EditError::NoSuchZone(_) => StatusCode::NOT_FOUND,
            EditError::NotLoaded(_)
            | EditError::NotWritable(_)
            | EditError::OfPrimaries(_)
            | EditError::Frozen(_)
            | EditError::NoSuchVersion(..)
            | EditError::IsInForce(_)
            | EditError::Conflict(_) => StatusCode::CONFLICT,
            EditError::SerialIs(_) | EditError::IsAnother => StatusCode::PRECONDITION_FAILED,
            EditError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            EditError::Journal(_) => StatusCode::INSUFFICIENT_STORAGE,
            EditError::HandedOver => StatusCode::SERVICE_UNAVAILABLE,
            EditError::PublisherFailed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut found = Self::new(status, error.to_string());
        match &error {
            EditError::SerialIs(serial) => found.members.push(("serial", json!(serial))),
            EditError::Refused(refused) => {
                let name = refused.owner.to_string();
                let name = name.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(&name);
                let set = json!({ "name": name, "type": refused.rtype.to_string() });
                found.members.push(("rrset", set));
                found.members.push(("rule", json!(refused.rule.to_string())));
            }
            _ => {}
        }
        found
    }
}

impl From<ZoneError> for Problem {
    fn from(error: ZoneError) -> Self {
        let status = match &error {
            ZoneError::NoDirectory | ZoneError::Exists(_) | ZoneError::Configured(..) => {
                StatusCode::CONFLICT
            }
            ZoneError::Name(_) | ZoneError::Zone(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ZoneError::Refused(refused) => return EditError::Refused(refused.clone()).into(),
            ZoneError::NoSuchZone(_) => StatusCode::NOT_FOUND,
            ZoneError::Io(..) => StatusCode::INSUFFICIENT_STORAGE,
            ZoneError::NotPublished(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<FlushError> for Problem {
    fn from(error: FlushError) -> Self {
        let status = match &error {
            FlushError::NoSuchZone(_) => StatusCode::NOT_FOUND,
            FlushError::Refused(_) => StatusCode::CONFLICT,
            FlushError::Io(..) => StatusCode::INSUFFICIENT_STORAGE,
        };
        Self::new(status, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_an_edit_are_understood_or_refused() {
        let wait = |secs| Some(Duration::from_secs(secs));
        let understood = [
            ("", false, None),
            ("dry-run", true, None),
            ("wait=secondaries", false, wait(10)),
            ("wait=secondaries&wait-max=1", false, wait(1)),
            ("wait-max=60&wait=secondaries", false, wait(60)),
        ];
        for (query, is_dry_run, wait) in understood {
            let read = parameters(query).map_err(|problem| problem.detail);
            assert_eq!(read, Ok(Parameters { is_dry_run, wait }), "{query}");
        }
        let refused = [
            "dry-run=1",
            "dry-run=",
            "dryrun",
            "wait",
            "wait=all",
            "wait-max=5",
            "&",
            "dry-run&",
            "wait=secondaries&wait-max=0",
            "wait=secondaries&wait-max=61",
            "dry-run&dry-run",
            "wait=secondaries&dry-run",
            "wait=secondaries&wait-max=1&wait-max=2",
            "wait=secondaries&wait=secondaries",
            "wait=secondaries&wait-max=-1",
        ];
        for query in refused {
            assert!(parameters(query).is_err(), "{query}");
        }
    }
}
