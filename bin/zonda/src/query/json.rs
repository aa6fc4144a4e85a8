//! A reply as a JSON object.

use super::exchange::Exchange;
use super::text::{SECTIONS, data, flags, printable};
use serde_json::{Value, json};
use std::io::{self, Write};
use zonda_wire::ClientSubnet;
use zonda_wire::message::{Opt, Record};
use zonda_wire::query::option;
use zonda_wire::rdata::print::Hex;

/// Prints a reply.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print(exchange: &Exchange, out: &mut impl Write) -> io::Result<()> {
    let reply = &exchange.reply;
    let questions = reply.questions.iter().map(|question| {
        let (name, class, rtype) = (&question.name, question.qclass, question.qtype);
        json!({"name": name.to_string(), "class": class.to_string(), "type": rtype.to_string()})
    });
    let mut object = json!({
        "status": reply.rcode().to_string(),
        "opcode": reply.opcode().to_string(),
        "id": reply.id,
        "flags": flags(reply).collect::<Vec<_>>(),
        "question": questions.collect::<Vec<_>>(),
        "server": exchange.server.to_string(),
        "transport": exchange.transport,
        "octets": exchange.octets,
        "milliseconds": exchange.elapsed.as_micros() as f64 / 1000.0,
    });
    for (section, title) in SECTIONS {
        object[*title] = reply.section(*section).map(record).collect();
    }
    if let Some(signature) = exchange.signature {
        object["signature"] =
            signature.map_or_else(|it| it.to_string(), |()| "verified".into()).into();
    }
    if let Some(opt) = &reply.opt {
        object["edns"] = edns(opt);
    }
    writeln!(out, "{object:#}")
}

/// A record.
fn record(record: &Record) -> Value {
    json!({
        "name": record.owner.to_string(),
        "ttl": record.ttl,
        "class": record.class.to_string(),
        "type": record.rtype.to_string(),
        "data": data(record).to_string(),
    })
}

/// The OPT record, unknown options by their numbers.
fn edns(opt: &Opt) -> Value {
    let mut object = json!({
        "version": opt.version,
        "octets": opt.udp_bytes,
        "dnssec": opt.dnssec_ok(),
    });
    for (code, octets) in &opt.options {
        let hex = || Value::from(Hex(octets).to_string());
        match *code {
            option::NSID => object["nsid"] = hex(),
            option::COOKIE => object["cookie"] = hex(),
            option::EDE => {
                let code = octets.first_chunk().map(|code| u16::from_be_bytes(*code));
                let text = printable(octets.get(2..).unwrap_or_default());
                object["error"] = json!({"code": code, "text": text});
            }
            option::CLIENT_SUBNET => {
                object["client_subnet"] = match ClientSubnet::parse(octets) {
                    Some(it) => json!({"network": it.to_string(), "scope": it.scope_len}),
                    None => hex(), // of no family, or malformed
                };
            }
            other => object[format!("option{other}")] = hex(),
        }
    }
    object
}
