//! Zones that clients create and remove, as the HTTP interface of the server has them.

use super::api_error::{ApiError, reply_of};
use super::body::{self, Object};
use super::names::{canonical, zone_of};
use super::rrset_change::{Action, RrsetChange};
use super::zone_object::ZoneKind;
use super::zones::{known, no_content, object};
use super::{changes, settings};
use crate::admin::call::Call;
use crate::admin::reply::Reply;
use crate::edit::zones::ZoneError;
use crate::load::LoadError;
use hyper::StatusCode;
use serde_json::Map;
use std::collections::HashMap;
use std::path::Path;
use zonda_wire::{Name, Type};
use zonda_zone::file::{Options, read_text};
use zonda_zone::snapshot::Rdatas;
use zonda_zone::{Records, SetChange};

/// The TTL of NS records that are given by the names of servers alone.
const TTL: u32 = 3600;

/// Creates a zone.
pub fn create(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let body = body::object(call.body)?;
        let name = canonical(body::text(&body, "name")?)?;
        if call.control.state().zone_set().zone(&name).is_some() {
            return Err(ZoneError::Exists(name).into());
        }
        check_kind(&body)?;
        settings::check(&body, &Map::new())?;
        let sets = sets(&body, &name)?;
        drop(body);
        call.control.create_zone(&name, &sets)?;
        object(call, &name, StatusCode::CREATED)
    })
}

/// Removes a zone.
pub fn remove(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let name = zone_of(call.argument())?;
        known(call, &name)?;
        call.control.remove_zone(&name)?;
        Ok(no_content())
    })
}

/// Refuses kinds of which clients create no zones.
fn check_kind(body: &Object) -> Result<(), ApiError> {
    let given = body::text_or_none(body, "kind")?;
    match ZoneKind::of(given) {
        Some(ZoneKind::Native | ZoneKind::Master) => Ok(()),
        Some(ZoneKind::Slave) => Err(ApiError::refused(
            "a zone from primaries is configured: write [zone.secondary] behind its [[zone]]",
        )),
        None if given.is_empty() => Ok(()),
        None => Err(ApiError::refused(format!(
            "zones of kind {given} cannot be created: write Native or Master"
        ))),
    }
}

/// The RRsets of a new zone: those of its master file, the names of its servers, and its `rrsets`.
fn sets(body: &Object, name: &Name) -> Result<Vec<SetChange>, ApiError> {
    let mut draft = ZoneDraft::default();
    let text = body::text_or_none(body, "zone")?;
    if !text.is_empty() {
        for set in sets_of_text(text, name)? {
            draft.put(set, "zone")?;
        }
    }
    let servers = body::texts(body, "nameservers")?;
    let mut data = Rdatas::with_capacity(servers.len());
    for server in servers {
        let wrong = |_| ApiError::refused(format!("Nameserver is not canonical: '{server}'"));
        data.push(canonical(server).map_err(wrong)?.as_wire().into());
    }
    if !data.is_empty() {
        let set = SetChange::Put { owner: name.clone(), rtype: Type::NS, ttl: TTL, data };
        draft.put(set, "nameservers")?;
    }
    let list = body::list(body, "rrsets").unwrap_or_default();
    for RrsetChange { owner, rtype, action } in changes::read(list, name, Some("REPLACE"))? {
        match action {
            Action::Replace(ttl, data) => {
                draft.put(SetChange::Put { owner, rtype, ttl, data }, "rrsets")?;
            }
            Action::Extend(..) | Action::Prune(_) => {
                return Err(ApiError::refused(format!(
                    "RRset {owner} IN {rtype}: a new zone has nothing for EXTEND and PRUNE: use \
                     REPLACE, with all records"
                )));
            }
            Action::Delete if rtype == Type::ANY => {
                return Err(ApiError::refused(format!(
                    "RRset {owner} IN {rtype}: a new zone has nothing to delete"
                )));
            }
            Action::Delete => draft.note(&owner, rtype, "rrsets")?,
            Action::Keep => {}
        }
    }
    Ok(draft.sets)
}

/// The RRsets of a new zone so far.
#[derive(Default)]
struct ZoneDraft {
    sets: Vec<SetChange>,
    /// The member of the body that names an RRset.
    sources: HashMap<(Name, Type), &'static str>,
}

impl ZoneDraft {
    /// Adds an RRset that a member of the body gives, and no other.
    fn put(&mut self, set: SetChange, source: &'static str) -> Result<(), ApiError> {
        if let SetChange::Put { owner, rtype, .. } = &set {
            self.note(owner, *rtype, source)?;
        }
        self.sets.push(set);
        Ok(())
    }

    /// Notes that a member of the body names an RRset: a second one would replace its records.
    fn note(&mut self, owner: &Name, rtype: Type, source: &'static str) -> Result<(), ApiError> {
        let why = match self.sources.insert((owner.clone(), rtype), source) {
            None => return Ok(()),
            Some(former) if former == source => format!("is twice in {source}"),
            Some(former) => format!("is in both {former} and {source}"),
        };
        Err(ApiError::refused(format!("RRset {owner} IN {rtype} {why}: give its records once")))
    }
}

/// The RRsets of a master file.
fn sets_of_text(text: &str, name: &Name) -> Result<Vec<SetChange>, ApiError> {
    // Few octets could make many records: a client that wants these writes them.
    let options = Options { generate_max: 0, ..Options::default() };
    let (records, diagnostics) = read_text(text.as_bytes(), Path::new("zone"), name, &options);
    match diagnostics.errors() {
        Some(errors) => Err(ApiError::refused(LoadError::from(errors.clone()).to_string())),
        None => Ok(sets_of(&records)),
    }
}

/// The RRsets that records in any order make up, each with the TTL of its first record.
fn sets_of(records: &Records) -> Vec<SetChange> {
    let mut places = HashMap::new();
    let mut sets: Vec<SetChange> = Vec::new();
    for record in records.iter() {
        let Ok(owner) = Name::from_wire(record.owner) else { continue }; // it was read as a name
        let owner = owner.to_lowercase();
        let key = (owner.clone(), record.rtype);
        let place = *places.entry(key).or_insert(sets.len());
        match sets.get_mut(place) {
            Some(SetChange::Put { data, .. }) => data.push(record.rdata.into()),
            _ => sets.push(SetChange::Put {
                owner,
                rtype: record.rtype,
                ttl: record.ttl,
                data: vec![record.rdata.into()],
            }),
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    /// The RRsets that a body gives to the zone `example.org`, by name and type; the text of the
    /// error otherwise.
    fn given(body: &Value) -> Result<Vec<String>, String> {
        let zone = "example.org".parse().unwrap();
        let sets = sets(body.as_object().unwrap(), &zone).map_err(|error| error.text)?;
        let shown = |set: &SetChange| match set {
            SetChange::Put { owner, rtype, data, .. } => format!("{owner} {rtype} {}", data.len()),
            _ => panic!("{set:?}"),
        };
        Ok(sets.iter().map(shown).collect())
    }

    /// An element of `rrsets` with one record, or none where `content` is empty.
    fn set(name: &str, rtype: &str, changetype: &str, content: &str) -> Value {
        let records = match content {
            "" => json!([]),
            content => json!([{ "content": content }]),
        };
        json!({ "name": name, "type": rtype, "ttl": 5, "changetype": changetype,
            "records": records })
    }

    #[test]
    fn each_rrset_of_a_new_zone_comes_from_the_member_that_gives_it() {
        let body = json!({
            "zone": "www 60 A 192.0.2.1\nWWW 60 A 192.0.2.2\n",
            "nameservers": ["ns1.example.org.", "ns2.example.org."],
            "rrsets": [
                set("ns1.example.org.", "A", "REPLACE", "192.0.2.3"),
                set("ns1.example.org.", "AAAA", "DELETE", ""),
            ],
        });
        let expected = ["www.example.org. A 2", "example.org. NS 2", "ns1.example.org. A 1"];
        assert_eq!(given(&body).unwrap(), expected);
    }

    #[test]
    fn records_of_a_new_zone_that_would_replace_each_other_are_refused() {
        let www = |changetype, content| set("www.example.org.", "A", changetype, content);
        let ns = set("example.org.", "NS", "REPLACE", "ns2.example.org.");
        let (first, second) = (www("REPLACE", "192.0.2.1"), www("REPLACE", "192.0.2.2"));
        for (body, expected) in [
            (
                json!({ "nameservers": ["ns1.example.org."], "rrsets": [ns] }),
                "RRset example.org. IN NS is in both nameservers and rrsets: \
                 give its records once",
            ),
            (
                json!({ "nameservers": ["ns1.example.org."], "zone": "@ 60 NS ns2\n" }),
                "RRset example.org. IN NS is in both zone and nameservers: give its records once",
            ),
            (
                json!({ "zone": "WWW 60 A 192.0.2.1\n", "rrsets": [second] }),
                "RRset www.example.org. IN A is in both zone and rrsets: give its records once",
            ),
            (
                json!({ "rrsets": [first, www("DELETE", "")] }),
                "RRset www.example.org. IN A is twice in rrsets: give its records once",
            ),
            (
                json!({ "rrsets": [first, second] }),
                "Duplicate RRset www.example.org. IN A with changetype: REPLACE",
            ),
            (
                json!({ "rrsets": [www("EXTEND", "192.0.2.1"), www("EXTEND", "192.0.2.2")] }),
                "RRset www.example.org. IN A: a new zone has nothing for EXTEND and PRUNE: use \
                 REPLACE, with all records",
            ),
            (
                json!({ "rrsets": [www("PRUNE", "192.0.2.1")] }),
                "RRset www.example.org. IN A: a new zone has nothing for EXTEND and PRUNE: use \
                 REPLACE, with all records",
            ),
            (
                json!({ "rrsets": [first, set("www.example.org.", "ANY", "DELETE", "")] }),
                "RRset www.example.org. IN ANY: a new zone has nothing to delete",
            ),
        ] {
            assert_eq!(given(&body), Err(expected.to_owned()), "{body}");
        }
    }
}
