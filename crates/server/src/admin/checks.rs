//! What probes of members have found, and states that programs push.

use super::call::Call;
use super::json_body::JsonBody;
use super::pools::describe;
use super::problem::{Problem, problem};
use super::reply::{Reply, json_reply};
use crate::control::Control;
use crate::steering::checks::ChecksHandle;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use zonda_health::{Push, TargetId};

/// How long a pushed state holds unless the request says it.
const HOLDS: Duration = Duration::from_secs(30);

/// All targets that are probed, each once, with the members that it decides about.
pub fn list(control: &Control) -> Value {
    let Some(checks) = &control.checks else { return json!({ "checks": [] }) };
    let mut members = BTreeMap::<TargetId, String>::new();
    checks.states.lock().each(|report| {
        let of_pool = report.config.members.iter().zip(&report.members);
        members.extend(of_pool.map(|(described, member)| {
            (member.id, format!("{}/{}", report.config.name, described.name))
        }));
    });
    let mut targets = Vec::<(Value, Value, Vec<String>)>::new();
    checks.prober.each(|status| {
        let target = status.target;
        let Some(member) = members.remove(&status.id) else { return };
        let key = json!({
            "kind": target.check.kind.word(),
            "address": target.address.to_string(),
            "port": Some(target.port).filter(|port| *port > 0),
            "check": format!("{:?}", target.check.kind),
        });
        match targets.iter_mut().find(|(known, ..)| *known == key) {
            Some((.., members)) => members.push(member),
            None => targets.push((key, describe(status.health, true), vec![member])),
        }
    });
    let calculated = calculated(checks);
    let merged = targets.into_iter().map(|(key, mut value, mut members)| {
        members.sort_unstable();
        for word in ["kind", "address", "port"] {
            value[word] = key[word].clone();
        }
        value["members"] = json!(members);
        value
    });
    json!({ "checks": merged.chain(calculated).collect::<Vec<_>>() })
}

/// The members whose states are calculated.
fn calculated(checks: &ChecksHandle) -> Vec<Value> {
    let mut found = Vec::new();
    checks.states.lock().each(|report| {
        for (described, member) in report.config.members.iter().zip(&report.members) {
            let Some(calculation) = &described.calculation else { continue };
            found.push(json!({
                "kind": "calculated",
                "formula": calculation.text,
                "state": if member.is_healthy { "up" } else { "down" },
                "members": [format!("{}/{}", report.config.name, described.name)],
            }));
        }
    });
    found
}

/// Takes the state of members that a program has found.
pub fn push(call: &Call<'_>) -> Reply {
    match try_push(call) {
        Ok(reply) => reply,
        Err(found) => problem(&found),
    }
}

/// Does so, or says why not.
fn try_push(call: &Call<'_>) -> Result<Reply, Problem> {
    let keys = ["member", "up", "for", "reason"];
    let body = JsonBody::read(call.body, &keys).map_err(Problem::bad_request)?;
    let bad = |text: &str| Problem::bad_request(text.to_owned());
    let text = |key| body.text(key).map_err(Problem::bad_request);
    let form = "write `member` as \"POOL/ADDRESS\", or \"POOL/*\" for all of its members";
    let (name, member) = text("member")?.and_then(|it| it.rsplit_once('/')).ok_or(bad(form))?;
    let address = match member {
        "*" => None,
        address => Some(address.parse::<IpAddr>().map_err(|_| bad(form))?),
    };
    let Some(Value::Bool(is_up)) = body.value("up") else {
        return Err(bad("write `up` as true or false"));
    };
    let holds = body.duration("for").map_err(Problem::bad_request)?;
    let (is_up, expires_in) = (*is_up, holds.unwrap_or(HOLDS));
    let push = Push { name, address, is_up, text: text("reason")?.unwrap_or(""), expires_in };
    let count = call.control.checks.as_ref().map_or(0, |checks| checks.prober.push(&push));
    if count == 0 {
        let text = format!(
            "no pool `{name}` with `pushed` in its check has such a member; `zonda pool list` \
             lists all"
        );
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text));
    }
    Ok(json_reply(&json!({ "members": count, "up": is_up, "for_secs": expires_in.as_secs_f64() })))
}
