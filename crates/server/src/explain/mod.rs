//! Why a client gets the answer that it gets, step by step.
//!
//! A query of the client is answered by an engine of its own, from the snapshot in force: the reply
//! is the one that a worker would give. What the engine tells of it, and the configuration, become
//! steps in words. Nothing is counted, logged, cached or asked of upstreams; only code that runs in
//! workers is called.
//!
//! | file | what it holds |
//! |---|---|
//! | `question` | the query that is explained |
//! | `steps` | the steps, in words |
//! | `pools` | the pools that chose the records, filter by filter |
//! | `place` | listener, access lists and zones: the way to the source |

mod place;
mod pools;
mod question;
mod steps;

pub use question::ExplainedQuery;

use crate::control::Control;
use place::Place;
use pools::PoolWalk;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use steps::{SEED, Steps};
use zonda_balance::{ClientNetwork, Dice};
use zonda_config::Config;
use zonda_engine::code::NO_HANDLER;
use zonda_engine::counters::Counters;
use zonda_engine::{
    Checkpoint, Deferral, Engine, Event, Outcome, Peer, Reason, Reuse, Snapshot, To,
};
use zonda_wire::message::{Message, Record};
use zonda_wire::query::flag;
use zonda_wire::rdata::print::Presentation;
use zonda_wire::{Rcode, Section, Type};

/// Octets of the longest message.
const MESSAGE_MAX: usize = u16::MAX as usize;
/// What the engine has said about the query.
#[derive(Clone, Copy, Default)]
struct EngineReport {
    /// The response code; none for silence.
    rcode: Option<Rcode>,
    reason: Option<Reason>,
    reuse: Option<Reuse>,
    scope: u8,
    /// The client's network that the engine went by.
    network: Option<(IpAddr, u8)>,
}

/// Explains a query; why it cannot be explained otherwise.
pub fn explain(control: &Control, asked: &ExplainedQuery) -> Result<Value, String> {
    let snapshot = control.snapshot();
    let state = control.state();
    let (config, mut steps) = (state.config(), Steps::default());
    let place = Place::find(config, asked, &mut steps)?;
    let peer = Peer::new(SocketAddr::new(asked.client, 53_000), asked.transport, place.listener);
    let query = asked.message().to_wire();
    let (outcome, reply, told) = answer(&snapshot, control, (&peer, &query));
    place.tell_zones(&snapshot, (config, asked), told.reason, &mut steps);
    let message = Message::parse(&reply).ok();
    let answers = message.as_ref().map(|message| message.section(Section::Answer));
    let answers: Vec<&Record> = answers.into_iter().flatten().collect();
    if let Outcome::Deferred(deferral) = &outcome {
        tell_deferral(&mut steps, (config, &place), (asked, deferral));
    }
    let walk = PoolWalk { control, snapshot: snapshot.at(place.listener), qtype: asked.qtype };
    let network = told.network.map(|(address, prefix)| ClientNetwork { address, prefix });
    let client = network.unwrap_or_else(|| ClientNetwork::of_address(asked.client));
    let ttl_of_pool = walk.tell(&mut steps, (&asked.name, &answers), (&client, told.reason));
    if let Some(message) = &message {
        tell_reply(&mut steps, told, (message, asked), ttl_of_pool);
        tell_reuse(&mut steps, told, &client);
    }
    Ok(json!({
        "name": asked.name.to_string(),
        "type": asked.qtype.to_string(),
        "client": asked.client.to_string(),
        "client_subnet": asked.subnet.map(|(address, bits)| format!("{address}/{bits}")),
        "transport": asked.transport.name(),
        "steps": steps.0,
        "reason": told.reason.map(Reason::name),
        "rcode": told.rcode.map(|rcode| rcode.to_string()),
        "scope": told.scope,
        "answer": message.map(|message| message.records.iter().map(text).collect::<Vec<_>>()),
    }))
}

/// Answers the query with an engine of its own.
fn answer(
    snapshot: &Arc<Snapshot>,
    control: &Control,
    (peer, query): (&Peer, &[u8]),
) -> (Outcome, Vec<u8>, EngineReport) {
    let of_explanation = Arc::new(arc_swap::ArcSwap::new(Arc::clone(snapshot)));
    let mut engine = Engine::new(of_explanation, Arc::new(Counters::idle()));
    engine.set_dice(Dice::new(SEED));
    engine.refuse_transfers();
    let told = Arc::<Mutex<EngineReport>>::default();
    let observed = Arc::clone(&told);
    engine.add_observer(Box::new(move |event: &Event<'_>| {
        let mut told = observed.lock().unwrap_or_else(PoisonError::into_inner);
        let (rcode, reason) = (event.rcode, Some(event.reason));
        let (reuse, scope, network) = (event.reuse, event.scope, Some(event.network));
        *told = EngineReport { rcode, reason, reuse, scope, network };
    }));
    let mut buffer = query.to_vec();
    buffer.resize(MESSAGE_MAX, 0);
    let outcome = engine.answer(control.clock.now(), peer, &mut buffer, query.len());
    buffer.truncate(match &outcome {
        Outcome::Reply(len) => *len,
        _ => 0,
    });
    let told = *told.lock().unwrap_or_else(PoisonError::into_inner);
    (outcome, buffer, told)
}

/// Tells what the query would wait for.
fn tell_deferral(
    steps: &mut Steps,
    (config, place): (&Config, &Place),
    (asked, deferral): (&ExplainedQuery, &Deferral),
) {
    let what = match (deferral.is_alias, deferral.history.search_step) {
        (true, Some(_)) => "the next name of the search path",
        (true, None) => "the target of the alias",
        (false, _) => "the name",
    };
    match deferral.to {
        To::Forward(_) => {
            let checkpoint = deferral.history.checkpoint.as_ref();
            let resolver = config.alias_resolver.as_deref();
            let resolver =
                resolver.filter(|_| checkpoint.is_some_and(Checkpoint::is_of_alias_record));
            let forward = resolver.or_else(|| place.forward_of(config, &asked.name));
            let upstreams = forward.map_or_else(
                || "the upstreams of the zone that the alias leads to".to_owned(),
                place::servers,
            );
            let text =
                format!("the answer cache holds nothing for {what}; asked would be {upstreams}");
            steps.add("forward", text);
        }
        To::Transfer => steps.add("transfer", "the zone would be sent".to_owned()),
        To::Update => steps.add("update", "the zone would be changed".to_owned()),
        To::Relay => steps.add("update", "it would be forwarded to a primary".to_owned()),
        To::Code(elsewhere) => {
            let callee = if elsewhere.handler == NO_HANDLER { "middleware" } else { "the handler" };
            steps.add("code", format!("{callee} would be called in its own runtime, and decides"));
        }
    }
}

/// Tells what the reply is, and why its TTL is what it is.
fn tell_reply(
    steps: &mut Steps,
    told: EngineReport,
    (message, asked): (&Message, &ExplainedQuery),
    ttl_of_pool: Option<String>,
) {
    let reason = told.reason.map_or("unknown", Reason::name);
    let count = message.section(Section::Answer).count();
    let rcode = told.rcode.unwrap_or_else(|| message.rcode());
    let truncated = if message.has(flag::TC) { ", truncated: ask again over TCP" } else { "" };
    let records = if count == 1 { "record" } else { "records" };
    steps.add("reply", format!("{rcode}, {count} {records} ({reason}){truncated}"));
    let ttl = message.section(Section::Answer).map(|record| record.ttl).min();
    let negative = || {
        let soa = message.section(Section::Authority).find(|record| record.rtype == Type::SOA)?;
        Some(soa.ttl)
    };
    match (ttl, told.reason) {
        (Some(ttl), Some(Reason::Steered)) => {
            steps.add("ttl", format!("{ttl} s: {}", ttl_of_pool.unwrap_or_default()));
        }
        (Some(ttl), Some(Reason::Cached | Reason::Stale)) => {
            steps.add("ttl", format!("{ttl} s: what is left of the upstream's"));
        }
        (Some(ttl), Some(Reason::Handled | Reason::HandlerCached)) => {
            steps.add("ttl", format!("{ttl} s: as the code says"));
        }
        (Some(ttl), _) => steps.add("ttl", format!("{ttl} s: that of the records")),
        (None, _) => {
            if let Some(ttl) = negative() {
                let what = format!("{} {}", asked.name, asked.qtype);
                let text = format!(
                    "{ttl} s: {what} is denied for the lesser of the SOA's TTL and \
                                    its last field (rfc2308#5)"
                );
                steps.add("ttl", text);
            }
        }
    }
}

/// Tells which caches may hold the reply.
fn tell_reuse(steps: &mut Steps, told: EngineReport, client: &ClientNetwork) {
    match told.reuse {
        Some(Reuse::Hot(_)) => {
            steps.add("hot", "a worker may keep the reply in its table of hot answers");
        }
        Some(Reuse::No(why)) => {
            steps.add("hot", format!("not in the table of hot answers: {}", why.text()));
        }
        None => {}
    }
    if !matches!(told.rcode, Some(Rcode::NOERROR | Rcode::NXDOMAIN)) {
        return; // resolvers keep failures as they like
    }
    let text = match told.scope {
        0 => "a resolver may give the answer to all of its clients".to_owned(),
        bits => {
            let network = zonda_geo::Prefix::new(client.address, bits).map(|it| it.to_string());
            let network = network.unwrap_or_default(); // an address has as many bits
            format!(
                "a resolver may give the answer to its clients in {network}, if it sent the client \
                 subnet"
            )
        }
    };
    steps.add("resolver", text);
}

/// A record as in a zone file.
fn text(record: &Record) -> String {
    let Record { owner, rtype, class, ttl, rdata, .. } = record;
    format!("{owner} {ttl} {class} {rtype} {}", Presentation { rtype: *rtype, rdata })
}
