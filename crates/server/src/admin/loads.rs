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

/// Patterns with wildcards in one request: each is compared with all members.
const PATTERNS_MAX: usize = 100;
/// Unknown members that an error names.
const NAMES_MAX: usize = 8;

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
    if loads.iter().filter(|(pattern, _)| pattern.contains(['*', '?'])).count() > PATTERNS_MAX {
        let text = format!("more than {PATTERNS_MAX} of `loads` have `*` or `?`; name the members");
        return Err(Problem::bad_request(text));
    }
    let counts = match &call.control.checks {
        Some(checks) => checks.set_loads(&loads, lasts),
        None => vec![0; loads.len()],
    };
    let members: usize = counts.iter().sum();
    let unknown = loads.iter().zip(&counts).filter(|(_, count)| **count == 0);
    let unknown: Vec<&str> = unknown.map(|((pattern, _), _)| pattern.as_str()).collect();
    if members == 0 {
        let named = unknown.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
        let text = format!("no member is called {named}; `zonda pool list` lists all");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text));
    }
    let (lasts, unknown) = (lasts.as_secs_f64(), json!(unknown));
    Ok(json_reply(&json!({ "members": members, "for_secs": lasts, "unknown": unknown })))
}
