//! Requests of operators about one zone: refreshes, NOTIFY, freezing, its versions.

use super::api::time;
use super::call::Call;
use super::edits::{make_version, reply_of, zone};
use super::problem::Problem;
use super::reply::{Reply, json_reply};
use crate::edit::versions::HeldVersion;
use crate::zone_commands::CommandError;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

/// Has the primaries of a zone asked at once.
pub fn refresh(call: &Call<'_>) -> Reply {
    refresh_as(call, false)
}

/// Transfers a whole zone from its primaries, whatever its serial.
pub fn retransfer(call: &Call<'_>) -> Reply {
    refresh_as(call, true)
}

/// Refreshes a zone; 202 if that takes long, and goes on.
fn refresh_as(call: &Call<'_>, is_whole: bool) -> Reply {
    reply_of(|| {
        let zone = zone(call)?;
        let report = call.control.refresh_zone(&zone, is_whole)?;
        let Some(report) = report else {
            let mut reply = json_reply(&json!({
                "zone": zone.to_string(), "state": "running",
                "from": null, "serial": null, "primary": null,
            }));
            *reply.status_mut() = StatusCode::ACCEPTED;
            return Ok(reply);
        };
        Ok(json_reply(&json!({
            "zone": zone.to_string(),
            "state": if report.is_transferred { "transferred" } else { "in step" },
            "from": report.former,
            "serial": report.serial,
            "primary": report.primary,
        })))
    })
}

/// Has other servers told of the version of a zone once more.
pub fn notify(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let zone = zone(call)?;
        let (serial, receivers) = call.control.notify_receivers(&zone)?;
        let receivers: Vec<String> = receivers.iter().map(ToString::to_string).collect();
        Ok(json_reply(&json!({
            "zone": zone.to_string(), "serial": serial, "receivers": receivers,
        })))
    })
}

/// Has a zone take no updates and edits.
pub fn freeze(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let zone = zone(call)?;
        let changed = call.control.freeze_zone(&zone)?;
        Ok(json_reply(&json!({ "zone": zone.to_string(), "frozen": true, "changed": changed })))
    })
}

/// Has a zone take updates and edits again.
pub fn thaw(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let zone = zone(call)?;
        let changed = call.control.thaw_zone(&zone)?;
        Ok(json_reply(&json!({ "zone": zone.to_string(), "frozen": false, "changed": changed })))
    })
}

/// Lists the versions of a zone that are held.
pub fn history(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let zone = zone(call)?;
        let versions: Vec<Value> = call.control.versions(&zone)?.iter().map(version).collect();
        Ok(json_reply(&json!({ "zone": zone.to_string(), "versions": versions })))
    })
}

/// A version as JSON.
fn version(version: &HeldVersion) -> Value {
    let made = version.mark.map(|mark| time(UNIX_EPOCH + Duration::from_secs(mark.made_at)));
    json!({
        "serial": version.serial,
        "made": made,
        "origin": version.mark.map(|mark| mark.origin.name()),
        "removed": version.changes.map(|[removed, _]| removed),
        "added": version.changes.map(|[_, added]| added),
    })
}

/// Gives a zone the records of an earlier version.
pub fn rollback(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let (zone, serial) = (zone(call)?, serial(call)?);
        make_version(call, &zone, |is_dry_run| call.control.rollback(&zone, serial, is_dry_run))
    })
}

/// Takes the version of a catalog though it removes many members.
pub fn confirm(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let (zone, serial) = (zone(call)?, serial(call)?);
        let members = call.control.confirm_catalog(&zone, serial)?;
        Ok(json_reply(&json!({
            "zone": zone.to_string(), "serial": serial, "members": members,
        })))
    })
}

/// The serial that a request names behind its zone.
fn serial(call: &Call<'_>) -> Result<u32, Problem> {
    let given = call.second_argument();
    given.parse::<u32>().map_err(|_| {
        Problem::bad_request(format!("{given} is not a serial: it is a number up to 2^32 - 1"))
    })
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        let status = match &error {
            CommandError::NoSuchZone(_) => StatusCode::NOT_FOUND,
            CommandError::NotSecondary(_)
            | CommandError::NoReceivers(_)
            | CommandError::NotLoaded(_)
            | CommandError::NotConfirmed(..)
            | CommandError::NotWritable(_) => StatusCode::CONFLICT,
            CommandError::NotRefreshed(..) => StatusCode::BAD_GATEWAY,
            CommandError::Abandoned(_) | CommandError::HandedOver => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            CommandError::NotKept(_) => StatusCode::INSUFFICIENT_STORAGE,
            CommandError::PublisherFailed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}
