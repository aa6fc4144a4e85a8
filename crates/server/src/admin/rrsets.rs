//! The records of a zone that is served, as RRsets in JSON.

use super::call::Call;
use super::reply::{Reply, parameter, text};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;
use zonda_wire::name::is_at_or_below;
use zonda_wire::{Name, Type};
use zonda_zone::{Zone, ZoneRecord, json};

/// Records in one page of the list, unless the request wants fewer or more; a name's records are
/// never spread over two pages.
const PAGE: usize = 1000;
/// Most records in one page, but for those of its last name.
const PAGE_MAX: usize = 100_000;

/// A page of all RRsets of a zone, in canonical order.
pub fn list(call: &Call<'_>) -> Reply {
    let limit = parameter(call.query, "limit").map(|limit| limit.parse::<usize>());
    let Ok(limit) = limit.unwrap_or(Ok(PAGE)) else {
        return text(StatusCode::BAD_REQUEST, "limit must be a number\n".into());
    };
    let after = parameter(call.query, "after").map(|after| after.parse::<Name>());
    let Ok(after) = after.transpose() else {
        return text(StatusCode::BAD_REQUEST, "after must be a name in the zone\n".into());
    };
    in_zone(call, after.as_ref(), |data| match &after {
        None => page(data, data.records(), limit),
        Some(after) => page(data, data.records_behind(after.to_lowercase().as_wire()), limit),
    })
}

/// The RRsets of a name, or one of them.
pub fn of_name(call: &Call<'_>) -> Reply {
    let (name, rtype) = (call.second_argument(), call.arguments.get(2).copied());
    let Ok(name) = name.parse::<Name>() else {
        return text(StatusCode::BAD_REQUEST, format!("{name} is not a name\n"));
    };
    let Ok(rtype) = rtype.map(str::parse::<Type>).transpose() else {
        return text(StatusCode::BAD_REQUEST, "no such type: write one as A or TYPE65280\n".into());
    };
    in_zone(call, Some(&name), |data| {
        let is_meant = |record: &ZoneRecord<'_>| rtype.is_none_or(|rtype| record.rtype == rtype);
        let mut records = data.records_at(&name).filter(is_meant).peekable();
        if records.peek().is_none() {
            let what = rtype.map_or("records".to_owned(), |rtype| format!("{rtype} records"));
            return text(StatusCode::NOT_FOUND, format!("{name} has no {what}\n"));
        }
        page(data, records, usize::MAX)
    })
}

/// Answers from the records of a zone; `name` must lie in it. The answer has the entity tag of the
/// zone's version, and is left out if the client has that version (rfc9110#13.1.2).
fn in_zone(call: &Call<'_>, name: Option<&Name>, answer: impl FnOnce(&Zone) -> Reply) -> Reply {
    let Ok(apex) = call.argument().parse::<Name>() else {
        return text(StatusCode::BAD_REQUEST, "not the name of a zone\n".into());
    };
    let apex = apex.to_lowercase();
    let state = call.control.state();
    let Some(known) = state.zone_set().zone(&apex) else {
        return text(StatusCode::NOT_FOUND, format!("zone {apex} is not served here\n"));
    };
    let data = known.data().map(Arc::clone);
    let Some(data) = data else {
        let why = format!("zone {apex} has no records: it is not loaded\n");
        return text(StatusCode::CONFLICT, why);
    };
    if let Some(name) =
        name.filter(|name| !is_at_or_below(name.to_lowercase().as_wire(), apex.as_wire()))
    {
        return text(StatusCode::BAD_REQUEST, format!("{name} is not in zone {apex}\n"));
    }
    // The serial of another zone may stay as it is when its file changes.
    let Some(tag) = known.writable.and_then(|_| entity_tag(data.serial(), known.life)) else {
        return answer(&data);
    };
    let mut reply = match has_version(call.headers, &tag) {
        true if name.is_none() => not_modified(), // a list is there in any case
        has_version => match answer(&data) {
            reply if reply.status() != StatusCode::OK => return reply,
            _ if has_version => not_modified(),
            reply => reply,
        },
    };
    reply.headers_mut().insert(ETAG, tag);
    reply
}

/// The entity tag of a version of a writable zone: each change raises its serial, which begins anew
/// in another life of the zone (rfc9110#8.8.3).
fn entity_tag(serial: u32, life: u32) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("\"{}\"", tag_of(serial, life))).ok()
}

/// The text of the entity tag of a version, without its quotation marks.
fn tag_of(serial: u32, life: u32) -> String {
    format!("{serial}-{life:08x}")
}

/// The serial and the life of the version with an entity tag, which is without its quotation marks;
/// none for one that no version has.
pub fn version_of(tag: &str) -> Option<(u32, u32)> {
    let (serial, life) = tag.split_once('-')?;
    let (serial, life) = (serial.parse().ok()?, u32::from_str_radix(life, 16).ok()?);
    (tag_of(serial, life) == tag).then_some((serial, life))
}

/// The reply to a client that has the version.
fn not_modified() -> Reply {
    let mut reply = text(StatusCode::NOT_MODIFIED, String::new());
    reply.headers_mut().remove(CONTENT_TYPE); // that of the former answer stays (rfc9110#15.4.5)
    reply
}

/// Whether `If-None-Match` has an entity tag. Pages of one version differ by their address alone.
fn has_version(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let mut tags = given.flat_map(|it| it.split(',')).map(str::trim);
    tags.any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it).as_bytes() == tag.as_bytes())
}

/// A reply with RRsets up to the end of the name with which `limit` records are reached.
fn page<'z>(data: &Zone, records: impl Iterator<Item = ZoneRecord<'z>>, limit: usize) -> Reply {
    let mut records = records.peekable();
    let (mut body, mut count, mut next) = (String::new(), 0, None);
    let limit = if limit == usize::MAX { limit } else { limit.clamp(1, PAGE_MAX) };
    while let Some(first) = records.next() {
        let mut rdatas = vec![first.rdata];
        let is_of_set = |other: &ZoneRecord<'_>| {
            (other.owner.as_wire(), other.rtype, other.ttl)
                == (first.owner.as_wire(), first.rtype, first.ttl)
        };
        while let Some(other) = records.next_if(is_of_set) {
            rdatas.push(other.rdata);
        }
        count += rdatas.len();
        let separator = if body.is_empty() { "\n    " } else { ",\n    " };
        let (owner, rdatas) = (first.owner.as_wire(), rdatas.into_iter());
        let set = json::set_to_text(owner, first.rtype, first.ttl, rdatas);
        let _ = write!(body, "{separator}{set}"); // a string takes everything
        let ends_name = records.peek().is_some_and(|next| next.owner.as_wire() != owner);
        if count >= limit && ends_name {
            next = Name::from_wire(owner).ok().map(|name| name.to_string());
            break;
        }
    }
    let zone = Name::from_wire(data.apex()).unwrap_or_else(|_| Name::root());
    let (zone, next) = (json!(zone.to_string()), json!(next));
    let serial = data.serial();
    let body = format!(
        "{{\n  \"next\": {next},\n  \"rrsets\": [{body}\n  ],\n  \"serial\": {serial},\n  \
         \"zone\": {zone}\n}}\n"
    );
    let mut reply = text(StatusCode::OK, body);
    let kind = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
