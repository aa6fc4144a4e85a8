//! Loads of members, which programs tell.

use super::call::Call;
use super::json_body::JsonBody;
use super::problem::{Problem, problem};
use super::reply::{Reply, json_reply};
use hyper::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a load holds unless the request says it.
const HOLDS: Duration = Duration::from_secs(60);
/// The largest load, percent: loads may be counts of anything in a hundredth of what is usual.
const LOAD_MAX: u64 = 1_000_000;

/// Takes the loads of members.
pub fn tell(call: &Call<'_>) -> Reply {
    match try_tell(call) {
        Ok(reply) => reply,
        Err(found) => problem(&found),
    }
}

/// Takes all loads of a request, or says why it takes none.
fn try_tell(call: &Call<'_>) -> Result<Reply, Problem> {
    let body = JsonBody::read(call.body, &["loads", "for"]).map_err(Problem::bad_request)?;
    let form = || {
        let text = "write `loads` as {\"POOL/MEMBER\": 83}, in percent from 0 to 1000000; `*` \
                    stands for any text";
        Problem::bad_request(text.to_owned())
    };
    let loads = body.value("loads").and_then(Value::as_object).ok_or_else(form)?;
    let lasts = body.duration("for").map_err(Problem::bad_request)?.unwrap_or(HOLDS);
    let load = |(pattern, load): (&String, &Value)| {
        let load = load.as_u64().filter(|load| *load <= LOAD_MAX).ok_or_else(form)?;
        Ok((pattern.clone(), load as u32)) // at most LOAD_MAX
    };
    let loads: Vec<(String, u32)> = loads.iter().map(load).collect::<Result<_, Problem>>()?;
    let (mut members, mut unknown) = (0, Vec::new());
    if let Some(checks) = &call.control.checks {
        for (pattern, load) in &loads {
            let count = checks.set_load(pattern, *load, lasts);
            members += count;
            if count == 0 {
                unknown.push(pattern.as_str());
            }
        }
        checks.publish_loads();
    }
    if members == 0 {
        let named = loads.iter().map(|(pattern, _)| pattern.as_str()).collect::<Vec<_>>();
        let named = named.join(", ");
        let text = format!("no member is called {named}; `zonda pool list` lists all");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text));
    }
    let (lasts, unknown) = (lasts.as_secs_f64(), json!(unknown));
    Ok(json_reply(&json!({ "members": members, "for_secs": lasts, "unknown": unknown })))
}
