//! Why a client gets the answer that it gets.

use super::call::Call;
use super::json_body::JsonBody;
use super::problem::{Problem, problem};
use super::reply::{Reply, json_reply};
use crate::explain::{ExplainedQuery, explain};
use hyper::StatusCode;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use zonda_engine::Transport;
use zonda_geo::Prefix;
use zonda_wire::{Name, Type};

/// The keys of a request.
const KEYS: [&str; 7] = ["name", "type", "client", "subnet", "transport", "listener", "dnssec"];

/// Explains a query.
pub fn answer(call: &Call<'_>) -> Reply {
    let asked = asked(call.body).map_err(Problem::bad_request);
    let refused = |text| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text);
    match asked.and_then(|asked| explain(call.control, &asked).map_err(refused)) {
        Ok(explanation) => json_reply(&explanation),
        Err(found) => problem(&found),
    }
}

/// Reads a request; why it is none otherwise.
fn asked(body: &[u8]) -> Result<ExplainedQuery, String> {
    let body = JsonBody::read(body, &KEYS)?;
    let text = |key| body.text(key);
    let name = text("name")?.ok_or("write `name`, such as \"www.example.com\"")?;
    let name = Name::parse(name.as_bytes(), &[0]).map_err(|error| format!("`name`: {error}"))?;
    let rtype = text("type")?.unwrap_or("A");
    let form = || format!("`type` cannot be \"{rtype}\"; write a type such as A or MX");
    let qtype: Type = rtype.to_ascii_uppercase().parse().map_err(|_| form())?;
    let client = text("client")?.map(|text| {
        let form = || format!("`client` cannot be \"{text}\"; write an address");
        text.parse::<IpAddr>().map_err(|_| form())
    });
    let subnet = text("subnet")?.map(|text| {
        let form = |error| format!("`subnet` cannot be \"{text}\": {error}");
        text.parse::<Prefix>().map_err(form)
    });
    let transport = match text("transport")?.unwrap_or("udp") {
        "udp" => Transport::Udp,
        "tcp" => Transport::Tcp,
        other => return Err(format!("`transport` cannot be \"{other}\"; write udp or tcp")),
    };
    let listener = text("listener")?.map(|text| {
        let form = || format!("`listener` cannot be \"{text}\"; write an address and a port");
        text.parse::<SocketAddr>().map_err(|_| form())
    });
    let dnssec = match body.value("dnssec") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(dnssec)) => *dnssec,
        Some(_) => return Err("`dnssec` is true or false".to_owned()),
    };
    let subnet = subnet.transpose()?.map(|prefix| (prefix.address(), prefix.length()));
    let client = client.transpose()?;
    Ok(ExplainedQuery {
        name,
        qtype,
        client: client.unwrap_or(Ipv4Addr::LOCALHOST.into()),
        subnet,
        transport,
        listener: listener.transpose()?,
        dnssec,
    })
}
