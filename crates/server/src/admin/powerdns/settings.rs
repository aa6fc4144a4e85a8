//! Settings of a zone in bodies: what they say already is taken, and what the server cannot do is
//! refused.

use super::api_error::{ApiError, reply_of};
use super::body::{self, Object};
use super::names::zone_of;
use super::zone_object::{Background, ZoneKind};
use super::zones::{known, no_content};
use crate::admin::call::Call;
use crate::admin::reply::Reply;
use serde_json::{Map, Value};
use zonda_wire::Name;

/// Changes settings of a zone, none of which can differ from what the configuration says.
pub fn put(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let name = zone_of(call.argument())?;
        let zone = known(call, &name)?;
        let body = body::object(call.body)?;
        if body.contains_key("rrsets") {
            return Err(ApiError::refused(
                "records are changed by PATCH: PUT is for the settings of a zone",
            ));
        }
        let present = Background::of(call.control).whole(&zone);
        check_kind(&body, &name, &present)?;
        check(&body, &present)?;
        Ok(no_content())
    })
}

/// Refuses another kind than a zone has.
fn check_kind(body: &Object, name: &Name, present: &Map<String, Value>) -> Result<(), ApiError> {
    let given = body::text_or_none(body, "kind")?;
    let present = present.get("kind").and_then(Value::as_str).unwrap_or_default();
    if given.is_empty() || ZoneKind::of(given).is_some_and(|kind| kind.word() == present) {
        return Ok(());
    }
    Err(ApiError::refused(format!(
        "zone {name} is {present} here, and not {given}: that follows from `transfer` and \
         `secondary` in its [[zone]] section"
    )))
}

/// Refuses settings other than those that a zone has, or than those of any zone where it is new.
///
/// # Errors
/// The first that differs.
pub fn check(body: &Object, present: &Map<String, Value>) -> Result<(), ApiError> {
    let refuse = |key: &str, why: &str| Err(ApiError::refused(format!("'{key}': {why}")));
    let text = |key: &str| present.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_signed = present.get("dnssec").is_some_and(|signed| *signed == Value::Bool(true));
    for key in ["dnssec", "presigned"] {
        if body.get(key).is_some_and(|given| !given.is_null())
            && body::flag(body, key)? != is_signed
        {
            let why = "the server does not sign zones: sign before, and serve what is signed";
            return refuse(key, why);
        }
    }
    if !body::text_or_none(body, "nsec3param")?.is_empty() || body::flag(body, "nsec3narrow")? {
        return refuse("nsec3param", "the server does not sign zones");
    }
    if !body::text_or_none(body, "soa_edit")?.is_empty() {
        return refuse("soa_edit", "replies have the serial of the zone: leave it empty");
    }
    if !body::text_or_none(body, "account")?.is_empty() {
        return refuse("account", "zones have no accounts: leave it empty");
    }
    let catalog = body::text_or_none(body, "catalog")?;
    if !catalog.is_empty() && !catalog.eq_ignore_ascii_case(text("catalog")) {
        return refuse("catalog", "that is said by `catalog` in the [[zone]] section");
    }
    let masters = present.get("masters").and_then(Value::as_array);
    let is_known = |given: &&str| masters.is_some_and(|it| it.iter().any(|it| it == *given));
    if !body::texts(body, "masters")?.iter().all(is_known) {
        return refuse("masters", "primaries are named by `[zone.secondary]` of a [[zone]]");
    }
    for key in ["master_tsig_key_ids", "slave_tsig_key_ids"] {
        if !body::texts(body, key)?.is_empty() {
            return refuse(key, "keys are named by `transfer` and `secondary` of a [[zone]]");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    /// What is wrong with settings for a zone of primaries, which is of a catalog.
    fn wrong(body: &Value) -> String {
        let present = json!({
            "kind": "Slave", "dnssec": false, "catalog": "catalog.test.", "masters": ["192.0.2.1"],
        });
        let (body, present) = (body.as_object().unwrap(), present.as_object().unwrap());
        let name = "example.org".parse().unwrap();
        let checked = check_kind(body, &name, present).and_then(|()| check(body, present));
        checked.err().map(|error| error.text).unwrap_or_default()
    }

    #[test]
    fn settings_that_change_nothing_are_taken() {
        for body in [
            json!({}),
            json!({ "kind": "slave", "soa_edit_api": "INCREASE", "api_rectify": true }),
            json!({ "kind": "Secondary", "account": "", "dnssec": false, "nsec3param": "" }),
            json!({ "masters": ["192.0.2.1"], "catalog": "Catalog.test.", "soa_edit": null }),
            json!({ "masters": [], "master_tsig_key_ids": [], "presigned": false, "serial": 7 }),
        ] {
            assert_eq!(wrong(&body), "", "{body}");
        }
    }

    #[test]
    fn what_the_server_cannot_do_is_refused_with_the_setting() {
        for (body, expected) in [
            (json!({ "kind": "Native" }), "zone example.org. is Slave here, and not Native"),
            (json!({ "kind": "Producer" }), "zone example.org. is Slave here, and not Producer"),
            (json!({ "dnssec": true }), "'dnssec': the server does not sign"),
            (json!({ "nsec3param": "1 0 0 -" }), "'nsec3param': "),
            (json!({ "nsec3narrow": true }), "'nsec3param': "),
            (json!({ "soa_edit": "EPOCH" }), "'soa_edit': "),
            (json!({ "account": "me" }), "'account': "),
            (json!({ "catalog": "other.test." }), "'catalog': "),
            (json!({ "masters": ["192.0.2.2"] }), "'masters': "),
            (json!({ "slave_tsig_key_ids": ["k."] }), "'slave_tsig_key_ids': "),
            (json!({ "dnssec": "yes" }), "Key 'dnssec' not present or not a Bool"),
            (json!({ "kind": 7 }), "Key 'kind' not present or not a String"),
        ] {
            assert!(wrong(&body).starts_with(expected), "{body}: {}", wrong(&body));
        }
    }
}
