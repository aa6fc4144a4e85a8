//! Pools, the states of their members, and what operators say about these.

use super::call::Call;
use super::json_body::JsonBody;
use super::problem::{Problem, problem};
use super::reply::{Reply, json_reply};
use crate::control::Control;
use crate::state_directory;
use crate::steering::checks::ChecksHandle;
use crate::steering::overrides::{ForcedState, Override, unix_seconds};
use crate::steering::states::PoolReport;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::HashMap;
use zonda_balance::MemberState;
use zonda_health::{Health, Outcome};

/// All pools.
pub fn list(control: &Control) -> Value {
    json!({ "pools": described(control, |_| true, false) })
}

/// One pool, with the latest changes of its members.
pub fn one(call: &Call<'_>) -> Reply {
    let name = call.argument();
    match described(call.control, |report| report.config.name == name, true).pop() {
        Some(pool) => json_reply(&pool),
        None => problem(&Problem::new(
            StatusCode::NOT_FOUND,
            format!("there is no pool `{name}`; `zonda pool list` lists all"),
        )),
    }
}

/// What operators have said lately about members.
pub fn actions(control: &Control) -> Value {
    let actions = |checks: &ChecksHandle| {
        checks.states.lock().overrides().actions().cloned().collect::<Vec<_>>()
    };
    json!({ "actions": control.checks.as_ref().map(actions).unwrap_or_default() })
}

/// Has members count as an operator says.
pub fn force(call: &Call<'_>) -> Reply {
    match try_force(call) {
        Ok(reply) => reply,
        Err(found) => problem(&found),
    }
}

/// Does so, or says why not.
fn try_force(call: &Call<'_>) -> Result<Reply, Problem> {
    let keys = ["member", "state", "for", "reason"];
    let body = JsonBody::read(call.body, &keys).map_err(Problem::bad_request)?;
    let text = |key| body.text(key).map_err(Problem::bad_request);
    let pattern = text("member")?.ok_or_else(|| {
        Problem::bad_request("write `member` as \"POOL/MEMBER\"; `*` stands for any text".into())
    })?;
    let word = text("state")?.unwrap_or_default();
    let state = ForcedState::of_word(word);
    if state.is_none() && word != "resume" {
        let text = "write `state` as \"drain\", \"down\", \"up\", \"hold\" or \"resume\"";
        return Err(Problem::bad_request(text.to_owned()));
    }
    let lasts = body.duration("for").map_err(Problem::bad_request)?;
    let (since, by) = (unix_seconds(), if call.is_over_socket { "socket" } else { "token" });
    let reason = text("reason")?.unwrap_or_default().to_owned();
    let until = lasts.map(|time| since.saturating_add(time.as_secs().max(1)));
    let action = json!({
        "at": since,
        "member": pattern,
        "state": word,
        "until": until,
        "reason": reason,
        "by": by,
    });
    let said = state.map(|state| Override { state, since, until, reason, by: by.to_owned() });
    let refused = |text: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text);
    let nothing = || refused(format!("no member is called {pattern}; `zonda pool list` lists all"));
    let checks = call.control.checks.as_ref().ok_or_else(nothing)?;
    let state = call.control.state();
    let directory = state_directory::path(state.config()).map_err(refused)?;
    state_directory::make(&directory).map_err(refused)?;
    let members = checks
        .set_override(pattern, said.as_ref(), (&directory, action))
        .map_err(|error| refused(format!("{}: cannot be written: {error}", directory.display())))?;
    if members.is_empty() {
        return Err(nothing());
    }
    for (pool, member) in &members {
        tracing::info!(pool, member, state = word, by, "an operator has spoken");
    }
    let members = members.iter().map(|(pool, member)| format!("{pool}/{member}"));
    Ok(json_reply(&json!({ "members": members.collect::<Vec<_>>(), "state": word })))
}

/// Some pools, as they are shown.
fn described(
    control: &Control,
    is_meant: impl Fn(&PoolReport<'_>) -> bool,
    with_changes: bool,
) -> Vec<Value> {
    let Some(checks) = &control.checks else { return Vec::new() };
    let (mut pools, mut probed, now) = (Vec::new(), HashMap::new(), unix_seconds());
    checks.prober.each(|it| drop(probed.insert(it.id, describe(it.health, with_changes))));
    let states = checks.states.lock();
    states.each(|report| {
        if !is_meant(&report) {
            return;
        }
        let name = &report.config.name;
        let of_pool = &report.config.pool.members;
        let members = report.config.members.iter().zip(&report.members).zip(of_pool);
        let members = members.map(|((described, member), of_pool)| {
            let unchecked = || json!({ "state": if member.is_healthy { "up" } else { "down" } });
            let mut value = probed.remove(&member.id).unwrap_or_else(unchecked);
            let said = states.overrides().of((name, &described.name), now);
            value["name"] = json!(described.name);
            value["address"] = json!(described.address.map(|address| address.to_string()));
            value["site"] = json!(described.site);
            value["up"] = json!(member.state.is_up);
            value["weight"] = json!(of_pool.weight);
            value["weight_part"] = json!(weight_part(&member.state));
            value["held"] = json!(member.state.is_held);
            value["load"] = json!(member.state.load);
            value["calculated"] =
                json!(described.calculation.as_ref().map(|calculation| &calculation.text));
            value["priority"] = json!(of_pool.priority);
            value["override"] = said.map_or(Value::Null, describe_override);
            value
        });
        pools.push(json!({
            "name": name,
            "state": if report.is_up { "up" } else { "down" },
            "ttl": report.ttl,
            "members": members.collect::<Vec<_>>(),
        }));
    });
    pools
}

/// The part of its weight that a member has at present, from 0 to 1.
fn weight_part(state: &MemberState) -> f64 {
    f64::from(state.part) / f64::from(MemberState::WHOLE)
}

/// What probes have found, as it is shown.
pub fn describe(health: &Health, with_changes: bool) -> Value {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let words = |outcome: &Outcome| match outcome {
        Ok(success) => success.to_string(),
        Err(fault) => fault.to_string(),
    };
    let last = health.last().map(|last| {
        json!({
            "at": seconds(last.at),
            "took_ms": last.took.as_secs_f64() * 1e3,
            "success": last.outcome.is_ok(),
            "result": words(&last.outcome),
        })
    });
    let mut value = json!({
        "state": health.state().word(),
        "since": seconds(health.since()),
        "changes_total": health.changes_total(),
        "last": last,
    });
    if with_changes {
        let changes = health.changes().map(|change| {
            json!({
                "at": seconds(change.at),
                "from": change.from.word(),
                "to": change.to.word(),
                "result": words(&change.why),
            })
        });
        value["changes"] = changes.collect();
    }
    value
}

/// What an operator has said, as it is shown.
fn describe_override(said: &Override) -> Value {
    json!({
        "state": said.state.word(),
        "since": said.since,
        "until": said.until,
        "reason": said.reason,
        "by": said.by,
    })
}
