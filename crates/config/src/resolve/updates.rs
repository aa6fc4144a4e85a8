//! Rights to change zones by messages.

use super::bounds;
use super::keys::KeyList;
use crate::access::Access;
use crate::error::{Contradiction, UpdateMistake};
use crate::keys::UpdateKeys;
use crate::reader::Reader;
use crate::section::Keys;
use crate::update_value::{UpdateGrant, UpdateNames};
use std::sync::Arc;
use std::time::Duration;
use zonda_wire::update::SIGNING_TYPES;
use zonda_wire::{Name, Type, name};

/// The greatest time to live of records by which certificates are proven, unless another is given.
const ACME_TTL_MAX: Duration = Duration::from_secs(300);
/// The greatest time to live that there is (rfc2181#8).
const TTL_MAX: u32 = i32::MAX as u32;

/// Adds to the access list of a zone, if it has one, the rights to change it. `zone` is its name,
/// if that is given.
pub(super) fn with_updates(
    keys: &KeyList,
    reader: &mut Reader<'_, '_>,
    zone: Option<&Name>,
    access: Option<Arc<Access>>,
) -> Option<Arc<Access>> {
    let section = &UpdateKeys::SECTION;
    let elements = reader.nested_elements(section);
    if elements.is_empty() {
        return access;
    }
    let grants = elements.into_iter().filter_map(|(table, origin)| {
        let mut reader = reader.nested_reader(section, (Some(table), origin), Vec::new());
        grant(keys, &mut reader, zone)
    });
    let updates = grants.collect();
    let access = access.map_or_else(Access::open, |access| (*access).clone());
    Some(Arc::new(Access { updates, ..access }))
}

/// Reports rights to change a zone with this key, which cannot be changed by messages.
pub(super) fn refuse(reader: &mut Reader<'_, '_>, key: &'static str) {
    if !reader.nested_elements(&UpdateKeys::SECTION).is_empty() {
        let mistake = UpdateMistake::Source(key);
        reader.contradict(Some("update"), Contradiction::Update(mistake));
    }
}

/// Reads a right.
fn grant(keys: &KeyList, reader: &mut Reader<'_, '_>, zone: Option<&Name>) -> Option<UpdateGrant> {
    let UpdateKeys { from, mut names, preset, types, records_per_type, ttl_min, ttl_max } =
        UpdateKeys::read(reader)?;
    let is_acme = preset.is_some();
    if from.is_empty() {
        refuse_value(reader, None, UpdateMistake::FromNoClient);
    }
    from.iter().for_each(|it| keys.check(reader, "from", it.key.as_ref()));
    if names.is_empty() {
        match is_acme {
            true => names.push(UpdateNames::Zone),
            false => refuse_value(reader, None, UpdateMistake::NoNames),
        }
    }
    let has_keys = from.iter().all(|client| client.key.is_some());
    if !has_keys && names.iter().any(UpdateNames::needs_key) {
        refuse_value(reader, Some("names"), UpdateMistake::NoKey);
    }
    if let Some(zone) = zone {
        let apex = zone.to_lowercase();
        let is_outside = |name: &&Name| !name::is_at_or_below(name.as_wire(), apex.as_wire());
        for name in names.iter().filter_map(UpdateNames::name).filter(is_outside) {
            let mistake = UpdateMistake::Outside(name.clone(), zone.clone());
            refuse_value(reader, Some("names"), mistake);
        }
    }
    if types.is_empty() && reader.is_set("types") {
        refuse_value(reader, Some("types"), UpdateMistake::NoTypes);
    }
    let mut types: Vec<Type> = types.into_iter().map(|rtype| rtype.0).collect();
    for rtype in types.iter().filter(|rtype| SIGNING_TYPES.contains(rtype)) {
        refuse_value(reader, Some("types"), UpdateMistake::Type(*rtype));
    }
    if is_acme && !types.is_empty() {
        reader.contradict(Some("types"), Contradiction::Excludes("preset", "types"));
    }
    if is_acme {
        types = vec![Type::TXT];
    }
    bounds::update(reader, ttl_min, ttl_max);
    let ttl_max = ttl_max.or(is_acme.then_some(ACME_TTL_MAX));
    let ttl_min = secs(reader, "ttl-min", ttl_min).unwrap_or(0);
    let ttl_max = secs(reader, "ttl-max", ttl_max).unwrap_or(TTL_MAX);
    let records_max = records_per_type;
    Some(UpdateGrant { from, names, is_acme, types, records_max, ttl_min, ttl_max })
}

/// Returns a time to live in seconds, of which it must have a whole number.
fn secs(reader: &mut Reader<'_, '_>, key: &'static str, ttl: Option<Duration>) -> Option<u32> {
    let ttl = ttl?;
    if ttl.subsec_nanos() > 0 {
        refuse_value(reader, Some(key), UpdateMistake::Seconds);
    }
    u32::try_from(ttl.as_secs()).ok()
}

/// Reports a mistake at the place of a key, or of the right.
fn refuse_value(reader: &mut Reader<'_, '_>, key: Option<&str>, mistake: UpdateMistake) {
    reader.contradict(key, Contradiction::Update(mistake));
}
