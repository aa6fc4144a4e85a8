//! The server itself: what it is, its figures, and its keys of signed messages.

use super::api_error::{ApiError, reply_of};
use super::names::zone_of;
use crate::admin::call::Call;
use crate::admin::metrics::usage;
use crate::admin::reply::{Reply, json_reply, parameter};
use crate::admin::sums::sum;
use crate::control::Control;
use serde_json::{Value, json};
use zonda_config::TsigKey;
use zonda_engine::Transport;
use zonda_engine::counters::{RCODES, TYPES};
use zonda_wire::Rcode;

/// The version of PowerDNS whose API this is: clients tell by it what they may ask for.
const VERSION: &str = "4.9.12";

/// Lists the versions of the API.
pub fn versions(_: &Call<'_>) -> Reply {
    json_reply(&json!([{ "url": "/api/v1", "version": 1 }]))
}

/// Describes version 1 of the API.
pub fn version(_: &Call<'_>) -> Reply {
    json_reply(&json!([{ "api_features": [], "server_url": "/api/v1/servers{/server}" }]))
}

/// Lists the servers: this one.
pub fn list(_: &Call<'_>) -> Reply {
    json_reply(&json!([object()]))
}

/// Shows this server.
pub fn show(_: &Call<'_>) -> Reply {
    json_reply(&object())
}

/// This server as an object.
fn object() -> Value {
    let own = "/api/v1/servers/localhost";
    json!({
        "autoprimaries_url": format!("{own}/autoprimaries{{/autoprimary}}"),
        "config_url": format!("{own}/config{{/config_setting}}"),
        "daemon_type": "authoritative",
        "id": "localhost",
        "type": "Server",
        "url": own,
        "version": VERSION,
        "zones_url": format!("{own}/zones{{/zone}}"),
    })
}

/// Lists settings of PowerDNS, or servers that may add zones: there are none.
pub fn nothing(_: &Call<'_>) -> Reply {
    json_reply(&json!([]))
}

/// Tells figures, or the one that is asked for.
pub fn statistics(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let only = parameter(call.query, "statistic").filter(|name| !name.is_empty());
        let figures = figures(call.control).into_iter();
        let figures = figures.filter(|(name, _)| only.as_ref().is_none_or(|only| only == name));
        let item = |(name, value): (&str, u64)| {
            let value = value.to_string();
            json!({ "name": name, "type": "StatisticItem", "value": value })
        };
        let items: Vec<Value> = figures.map(item).collect();
        match items.is_empty() {
            true => Err(ApiError::refused("Unknown statistic name")),
            false => Ok(json_reply(&items.into())),
        }
    })
}

/// The figures that mean what those of PowerDNS of these names mean.
fn figures(control: &Control) -> Vec<(&'static str, u64)> {
    let engines = control.counters.all();
    let replies_at = |transport: usize, rcode: usize| -> u64 {
        let of_type = |qtype: usize| sum(&engines, |it| &it.replies[transport][qtype][rcode]);
        (0..=TYPES.len()).map(of_type).sum()
    };
    let replies = |is_meant: &dyn Fn(Transport, Rcode) -> bool| -> u64 {
        let all = Transport::ALL.into_iter().enumerate();
        let all = all.flat_map(|it| RCODES.into_iter().enumerate().map(move |rcode| (it, rcode)));
        let meant = all.filter(|((_, transport), (_, rcode))| is_meant(*transport, *rcode));
        meant.map(|((transport, _), (rcode, _))| replies_at(transport, rcode)).sum()
    };
    let of = |wanted: Rcode| replies(&|_, rcode| rcode == wanted);
    vec![
        ("noerror-packets", of(Rcode::NOERROR)),
        ("nxdomain-packets", of(Rcode::NXDOMAIN)),
        ("open-tcp-connections", control.tcp.open_connections() as u64), // usize is no more
        ("real-memory-usage", usage().map_or(0, |(_, resident_bytes)| resident_bytes)),
        ("servfail-packets", of(Rcode::SERVFAIL)),
        ("tcp-answers", replies(&|transport, _| transport == Transport::Tcp)),
        ("udp-answers", replies(&|transport, _| transport == Transport::Udp)),
        ("uptime", control.started.elapsed().as_secs()),
    ]
}

/// Lists the keys of signed messages, without their secrets.
pub fn keys(call: &Call<'_>) -> Reply {
    let state = call.control.state();
    json_reply(&state.config().keys.iter().map(key_object).collect())
}

/// Shows a key, without its secret.
pub fn key(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let (name, state) = (zone_of(call.argument())?, call.control.state());
        let key = state.config().keys.iter().find(|key| key.name == name);
        let missing = || ApiError::not_found(format!("there is no key {name}"));
        key.map(|key| json_reply(&key_object(key))).ok_or_else(missing)
    })
}

/// A key as an object.
fn key_object(key: &TsigKey) -> Value {
    let id = key.name.to_string();
    json!({
        "algorithm": key.algorithm.name(),
        "id": id,
        "key": "",
        "name": id.strip_suffix('.').unwrap_or(&id),
        "type": "TSIGKey",
    })
}

/// Refuses a change of keys.
pub fn refuse_key(_: &Call<'_>) -> Reply {
    reply_of(|| Err(ApiError::refused("keys are configured: write a [[key]] section, and reload")))
}
