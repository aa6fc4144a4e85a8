//! Zones: their list, one with its RRsets, its export, and changes of its records.

use super::api_error::{ApiError, reply_of};
use super::names::{canonical, zone_of};
use super::pieces::ZonePieces;
use super::rrsets::RrsetWriter;
use super::zone_object::{Background, is_shown};
use super::{body, changes};
use crate::admin::call::Call;
use crate::admin::reply::{Reply, json_reply, parameter, text};
use crate::admin::reply_body::{Pieces, ReplyBody};
use crate::edit::{Edit, EditError};
use crate::zone_set_view::KnownZone;
use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::Value;
use std::io::Write as _;
use std::sync::Arc;
use zonda_engine::VersionOrigin;
use zonda_wire::name::canonical_cmp;
use zonda_wire::{Name, Type};
use zonda_zone::{Zone, ZoneRecord, print};

/// Attempts at changes that depend on records of the zone, which other clients may change
/// meanwhile.
const ATTEMPTS: usize = 20;
/// Zones in one piece of their list.
const ZONES_PER_PIECE: usize = 256;

/// Lists the zones, or the one that is asked for.
pub fn list(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let with_dnssec = flag(call, "dnssec")?;
        let only = parameter(call.query, "zone").filter(|zone| !zone.is_empty());
        let only = only.map(|zone| canonical(&zone)).transpose()?;
        let state = call.control.state();
        let background = Background::of(call.control);
        if let Some(only) = only {
            let zone = state.zone_set().zone(&only).filter(|zone| is_shown(zone));
            let objects = zone.map(|zone| background.summary(zone, with_dnssec));
            return Ok(json_reply(&objects.into_iter().map(Value::Object).collect()));
        }
        let zones = state.zone_set().zones.iter().filter(|zone| is_shown(zone));
        let mut zones: Vec<Arc<KnownZone>> = zones.cloned().collect();
        drop(state);
        zones.sort_by(|a, b| canonical_cmp(a.entry.apex.as_wire(), b.entry.apex.as_wire()));
        let (mut at, mut is_ended) = (0, false);
        let pieces = std::iter::from_fn(move || {
            if is_ended {
                return None;
            }
            let mut piece = if at == 0 { b"[".to_vec() } else { Vec::new() };
            let run = zones.iter().enumerate().skip(at).take(ZONES_PER_PIECE);
            for (place, zone) in run {
                let object = Value::Object(background.summary(zone, with_dnssec));
                let comma = if place > 0 { "," } else { "" };
                let _ = write!(piece, "{comma}{object}"); // a buffer takes everything
            }
            at += ZONES_PER_PIECE;
            is_ended = at >= zones.len();
            if is_ended {
                piece.extend_from_slice(b"]\n");
            }
            Some(piece)
        });
        Ok(in_pieces(Box::new(pieces), "application/json"))
    })
}

/// Shows a zone, with its RRsets unless they are not wanted.
pub fn show(call: &Call<'_>) -> Reply {
    reply_of(|| object(call, &zone_of(call.argument())?, StatusCode::OK))
}

/// The object of a zone as a reply.
///
/// # Errors
/// When there is no such zone, or it has no records to be shown.
pub fn object(call: &Call<'_>, name: &Name, status: StatusCode) -> Result<Reply, ApiError> {
    let with_rrsets = flag(call, "rrsets")?;
    let state = call.control.state();
    let zone = known(call, name)?;
    let object = Background::of(call.control).whole(&zone);
    drop(state);
    let mut reply = match with_rrsets {
        false => json_reply(&Value::Object(object)),
        true => {
            let data = data(&zone, name)?;
            let mut head = Value::Object(object).to_string().into_bytes();
            head.pop(); // the final brace
            head.extend_from_slice(b",\"rrsets\":[");
            in_pieces(rrsets(call, data, head)?, "application/json")
        }
    };
    *reply.status_mut() = status;
    Ok(reply)
}

/// The RRsets of a zone that a request wants, behind a head.
fn rrsets(call: &Call<'_>, data: Arc<Zone>, mut head: Vec<u8>) -> Result<Pieces, ApiError> {
    const TAIL: &[u8] = b"]}\n";
    let mut writer = RrsetWriter::default();
    let only = parameter(call.query, "rrset_name").filter(|name| !name.is_empty());
    let Some(only) = only else {
        let write = move |records: &[ZoneRecord<'_>], out: &mut Vec<u8>| writer.write(records, out);
        return Ok(Box::new(ZonePieces::new(data, head, TAIL, write)));
    };
    let rtype = parameter(call.query, "rrset_type").filter(|rtype| !rtype.is_empty());
    let unknown = |_| ApiError::refused("rrset_type is no type: write one as A or TYPE65280");
    let rtype = rtype.map(|rtype| rtype.parse::<Type>()).transpose().map_err(unknown)?;
    if let Ok(name) = only.parse::<Name>() {
        let is_meant = |it: &ZoneRecord<'_>| rtype.is_none_or(|rtype| it.rtype == rtype);
        let records: Vec<_> = data.records_at(&name).filter(is_meant).collect();
        writer.write(&records, &mut head);
    }
    head.extend_from_slice(TAIL);
    Ok(Box::new(std::iter::once(head)))
}

/// Exports a zone as a master file.
pub fn export(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let name = zone_of(call.argument())?;
        let data = data(&*known(call, &name)?, &name)?;
        let accepts = call.headers.get(ACCEPT).map_or(&[][..], HeaderValue::as_bytes);
        if !accepts.starts_with(b"application/json") {
            let write = |records: &[ZoneRecord<'_>], out: &mut Vec<u8>| print_all(records, out);
            let pieces = ZonePieces::new(data, Vec::new(), b"", write);
            return Ok(in_pieces(Box::new(pieces), "text/plain; charset=us-ascii"));
        }
        let write = |records: &[ZoneRecord<'_>], out: &mut Vec<u8>| {
            let mut lines = Vec::new();
            print_all(records, &mut lines);
            let lines = Value::from(String::from_utf8_lossy(&lines)).to_string();
            out.extend_from_slice(lines.trim_matches('"').as_bytes());
        };
        let pieces = ZonePieces::new(data, b"{\"zone\":\"".to_vec(), b"\"}\n", write);
        Ok(in_pieces(Box::new(pieces), "application/json"))
    })
}

/// Writes records as lines of a master file.
fn print_all(records: &[ZoneRecord<'_>], out: &mut Vec<u8>) {
    for record in records {
        let _ = print::print_record(&record.as_record(), out); // a buffer takes everything
    }
}

/// Changes RRsets of a zone, all of them or none.
pub fn patch(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let name = zone_of(call.argument())?;
        known(call, &name)?;
        let body = body::object(call.body)?;
        let none = || ApiError::refused("No rrsets given in update request");
        let list = body::list(&body, "rrsets").ok_or_else(none)?;
        let changes = changes::read(list, &name, None)?;
        drop(body);
        let is_bound = changes::depend_on_zone(&changes);
        for _ in 0..ATTEMPTS {
            let known = known(call, &name)?;
            let data = data(&known, &name)?;
            let edit = Edit {
                zone: name.clone(),
                sets: changes::sets(&changes, &data),
                if_serial: is_bound.then(|| data.serial()),
                if_life: is_bound.then_some(known.life),
                is_dry_run: false,
                origin: VersionOrigin::Edit,
            };
            match call.control.edit(edit) {
                Ok(_) => return Ok(no_content()),
                Err(EditError::SerialIs(_) | EditError::IsAnother) if is_bound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let text = format!("zone {name} is changed by other clients all the time: try again");
        Err(ApiError { status: StatusCode::SERVICE_UNAVAILABLE, text })
    })
}

/// A zone that is shown.
///
/// # Errors
/// When there is none of the name.
pub fn known(call: &Call<'_>, name: &Name) -> Result<Arc<KnownZone>, ApiError> {
    let state = call.control.state();
    let zone = state.zone_set().zones.value(name).filter(|zone| is_shown(zone)).cloned();
    zone.ok_or_else(|| ApiError::not_found(EditError::NoSuchZone(name.clone()).to_string()))
}

/// The records of a zone.
fn data(zone: &KnownZone, name: &Name) -> Result<Arc<Zone>, ApiError> {
    let data = zone.data().map(Arc::clone);
    // An empty list would have clients add all records anew.
    data.ok_or_else(|| EditError::NotLoaded(name.clone()).into())
}

/// Whether a parameter is `true`, which it is if it is not there.
fn flag(call: &Call<'_>, key: &str) -> Result<bool, ApiError> {
    match parameter(call.query, key).as_deref() {
        None | Some("" | "true" | "1" | "yes") => Ok(true),
        Some("false" | "0" | "no") => Ok(false),
        Some(value) => Err(ApiError::refused(format!(
            "'{key}' request parameter value '{value}' is not supported"
        ))),
    }
}

/// A reply in pieces.
fn in_pieces(pieces: Pieces, kind: &'static str) -> Reply {
    let mut reply = text(StatusCode::OK, String::new());
    *reply.body_mut() = ReplyBody::pieces(pieces);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// The reply to a change that was made.
pub fn no_content() -> Reply {
    let mut reply = text(StatusCode::NO_CONTENT, String::new());
    reply.headers_mut().remove(CONTENT_TYPE);
    reply
}
