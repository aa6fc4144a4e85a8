//! Commands about one zone, and the cache.

use super::api_error::{ApiError, reply_of};
use super::names::{canonical, zone_of};
use super::zones::known;
use crate::admin::cache;
use crate::admin::call::Call;
use crate::admin::reply::{Reply, json_reply, parameter};
use crate::feed::secondary_schedule::Prompt;
use crate::zone_commands::CommandError;
use serde_json::json;

/// Has other servers told of the version of a zone once more, if there are such: lego asks for that
/// after each change of any zone.
pub fn notify(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let name = zone_of(call.argument())?;
        known(call, &name)?;
        match call.control.notify_receivers(&name) {
            Ok(_) | Err(CommandError::NoReceivers(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(json_reply(&json!({ "result": "Notification queued" })))
    })
}

/// Has a whole zone transferred from its primaries, and does not wait for that.
pub fn retrieve(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let name = zone_of(call.argument())?;
        known(call, &name)?;
        let asked = call.control.stores.secondaries.refresh(&name, Prompt::Retransfer);
        let Some(_report) = asked else { return Err(CommandError::NotSecondary(name).into()) };
        let result = format!("Added retrieval request for '{name}'");
        Ok(json_reply(&json!({ "result": result })))
    })
}

/// Does nothing, as there is nothing that would have to be put in order.
pub fn rectify(call: &Call<'_>) -> Reply {
    reply_of(|| {
        known(call, &zone_of(call.argument())?)?;
        Ok(json_reply(&json!({ "result": "Rectified" })))
    })
}

/// Removes the cached answers for a name.
pub fn flush(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let name = canonical(&parameter(call.query, "domain").unwrap_or_default())?;
        let flushed = cache::flush(&name, false, call.control);
        Ok(json_reply(&json!({ "count": flushed["removed"], "result": "Flushed cache." })))
    })
}

/// Lists the metadata of a zone, or its keys for signing: there are none.
pub fn nothing_of_zone(call: &Call<'_>) -> Reply {
    reply_of(|| {
        known(call, &zone_of(call.argument())?)?;
        Ok(json_reply(&json!([])))
    })
}

/// Shows metadata of a kind: there is none.
pub fn no_metadata(call: &Call<'_>) -> Reply {
    reply_of(|| {
        known(call, &zone_of(call.argument())?)?;
        let kind = call.second_argument();
        Ok(json_reply(&json!({ "kind": kind, "metadata": [], "type": "Metadata" })))
    })
}

/// Says that a zone has no such key.
pub fn no_key(call: &Call<'_>) -> Reply {
    reply_of(|| {
        known(call, &zone_of(call.argument())?)?;
        Err(ApiError::not_found("the zone has no such key: the server does not sign"))
    })
}

/// Refuses a change of metadata.
pub fn refuse_metadata(call: &Call<'_>) -> Reply {
    reply_of(|| {
        known(call, &zone_of(call.argument())?)?;
        Err(ApiError::refused(
            "zones have no metadata: what a zone may do is said by its [[zone]] section",
        ))
    })
}

/// Refuses a key for signing.
pub fn refuse_key(call: &Call<'_>) -> Reply {
    reply_of(|| {
        known(call, &zone_of(call.argument())?)?;
        Err(ApiError::refused("the server does not sign zones, and has no keys for that"))
    })
}
