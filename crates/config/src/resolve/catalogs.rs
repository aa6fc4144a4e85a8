//! The zones that catalog zones list.

use super::access::Lists;
use super::keys::KeyList;
use crate::access::{Access, Action};
use crate::error::{
    Advice, CatalogMistake, Contradiction, Origin, Problem, TransferMistake, Warning,
};
use crate::keys::{
    CATALOG_HISTORY, CATALOG_SECONDARY, CATALOG_TRANSFER, CatalogKeys, HistoryKeys, SecondaryKeys,
    ZoneKeys,
};
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::toml::de::DeTable;
use crate::transfer_value::{AliasTransfer, HistoryLimits};
use crate::{Catalog, Listener, MemberTemplate, Source, Zone};
use std::net::SocketAddr;
use std::sync::Arc;
use zonda_wire::Name;

/// Reads how the members of catalogs are served; the catalogs are among `zones`.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    (lists, keys): (&mut Lists<'_>, &KeyList),
    zones: &[Zone],
    listeners: &[(Listener, Origin)],
) -> Vec<Catalog> {
    let section = &CatalogKeys::SECTION;
    let listens_on = listeners.iter().map(|(listener, _)| listener.address).collect();
    let (catalogs, given) = (Vec::new(), Vec::new());
    let mut found = Catalogs { lists, keys, zones, listens_on, catalogs, given };
    for (table, origin) in layers.tables(section) {
        found.read(&mut Reader::new(session, section, Some(table), Vec::new(), origin));
    }
    found.catalogs
}

/// Reports catalogs that list zones, at the places where those say so, and that the server does not
/// make.
pub(super) fn refuse_not_made(
    session: &mut Session<'_>,
    listed_in: &[(Name, Origin)],
    zones: &[Zone],
) {
    for (catalog, origin) in listed_in {
        let is_made = zones.iter().any(|zone| {
            matches!(zone.source, Source::Members(_)) && zone.name.as_ref() == Some(catalog)
        });
        if !is_made {
            let mistake = Contradiction::Catalog(CatalogMistake::NotMade(catalog.clone()));
            session.fail(origin.clone(), Problem::Together(mistake));
        }
    }
}

/// Warns of catalog zones that any client may ask for, as neither their sections nor the listeners
/// name the clients that may: the names of all zones are in them (rfc9432#7).
pub(super) fn warnings(
    layers: &Layers<'_>,
    catalogs: &[Catalog],
    listeners: &[(Listener, Origin)],
) -> Vec<Warning> {
    let is_open = |(listener, _): &(Listener, Origin)| {
        listener.access.as_ref().is_none_or(|list| list.otherwise == Action::Allow)
    };
    if !listeners.iter().any(is_open) {
        return Vec::new();
    }
    let warning = |(zone, origin): (&DeTable<'_>, Origin)| {
        let name: Name = zone.get("name")?.get_ref().as_str()?.parse().ok()?;
        let is_made = zone.contains_key("members");
        let is_catalog = is_made || catalogs.iter().any(|it| is_same(&it.name, &name));
        (is_catalog && !zone.contains_key("access"))
            .then(|| Warning { origin, advice: Advice::OpenCatalog(name.to_lowercase()) })
    };
    layers.tables(&ZoneKeys::SECTION).filter_map(warning).collect()
}

/// The catalogs read so far, and what it takes to read another.
struct Catalogs<'l, 'k> {
    lists: &'l mut Lists<'k>,
    keys: &'l KeyList,
    zones: &'l [Zone],
    /// Addresses on which this server listens.
    listens_on: Vec<SocketAddr>,
    catalogs: Vec<Catalog>,
    /// What sections say of the whole of each catalog, in the same order.
    given: Vec<GivenLimits>,
}

/// What the sections of a catalog say of the whole of it, besides defaults.
#[derive(Default)]
struct GivenLimits {
    removals_max: Option<u8>,
    members_max: Option<u32>,
}

impl Catalogs<'_, '_> {
    /// Reads how the members of some groups of a catalog are served.
    fn read(&mut self, reader: &mut Reader<'_, '_>) {
        let Some(keys) = CatalogKeys::read(reader) else { return };
        let name = keys.name.to_lowercase();
        let access = self.lists.resolve(reader, keys.access);
        let access = self.transfers(reader, access);
        let secondary = self.secondary(reader, &name);
        if !self.zones.iter().any(|zone| zone.name.as_ref().is_some_and(|it| is_same(it, &name))) {
            let mistake = CatalogMistake::NoZone(name.clone());
            reader.contradict(Some("name"), Contradiction::Catalog(mistake));
        }
        let place = self.catalogs.iter().position(|catalog| catalog.name == name);
        let known = place.and_then(|place| self.catalogs.get(place));
        let templates = known.map_or(&[][..], |known| &known.templates);
        let is_taken = |group: &String| templates.iter().any(|it| it.groups.contains(group));
        if keys.groups.is_empty() && templates.iter().any(|it| it.groups.is_empty()) {
            reader.contradict(Some("name"), Contradiction::Catalog(CatalogMistake::Twice(name)));
            return;
        }
        if let Some(group) = keys.groups.iter().find(|group| is_taken(group)) {
            let mistake = CatalogMistake::GroupTwice(group.clone());
            return reader.contradict(Some("groups"), Contradiction::Catalog(mistake));
        }
        let Some(secondary) = secondary else { return };
        let access = Some(KeyList::of_secondary(access.as_deref(), &secondary).into());
        let template = MemberTemplate { groups: keys.groups, secondary, access };
        let place = place.unwrap_or_else(|| {
            let (removals_max, members_max) = (keys.removals_max.0, keys.members_max);
            let name = name.clone();
            self.catalogs.push(Catalog { name, removals_max, members_max, templates: Vec::new() });
            self.given.push(GivenLimits::default());
            self.catalogs.len() - 1
        });
        let known = self.catalogs.get_mut(place).zip(self.given.get_mut(place));
        let Some((catalog, given)) = known else { return };
        catalog.templates.push(template);
        let (share, most) = (keys.removals_max.0, keys.members_max);
        let of_share = (&mut catalog.removals_max, &mut given.removals_max);
        take_given(reader, (&name, "removals-max"), share, of_share);
        let of_most = (&mut catalog.members_max, &mut given.members_max);
        take_given(reader, (&name, "members-max"), most, of_most);
    }

    /// Where the members come from: what the section says, or else where the catalog comes from.
    fn secondary(&self, reader: &mut Reader<'_, '_>, name: &Name) -> Option<Arc<SecondaryKeys>> {
        if let Some((table, origin)) = reader.nested(&CATALOG_SECONDARY) {
            let place = (Some(table), origin);
            let mut nested = reader.nested_reader(&CATALOG_SECONDARY, place, Vec::new());
            return self.keys.secondary(&mut nested, &self.listens_on).map(Arc::new);
        }
        let is_catalog = |zone: &&Zone| zone.name.as_ref().is_some_and(|it| is_same(it, name));
        match self.zones.iter().find(is_catalog).map(|zone| &zone.source) {
            Some(Source::Secondary(keys)) => Some(Arc::clone(keys)),
            _ => {
                let mistake = CatalogMistake::NoPrimaries(name.clone());
                reader.contradict(None, Contradiction::Catalog(mistake));
                None
            }
        }
    }

    /// Adds to the access list of members the clients that they are transferred to.
    fn transfers(
        &self,
        reader: &mut Reader<'_, '_>,
        access: Option<Arc<Access>>,
    ) -> Option<Arc<Access>> {
        let history = reader.nested(&CATALOG_HISTORY);
        let Some((table, origin)) = reader.nested(&CATALOG_TRANSFER) else {
            if history.is_some() {
                let mistake = TransferMistake::HistoryWithoutTransfer;
                reader.contradict(Some("history"), Contradiction::Transfer(mistake));
            }
            return access;
        };
        let (of_history, from) = match history {
            Some((table, origin)) => (Some(table), origin),
            None => (None, Origin::Default),
        };
        let mut nested = reader.nested_reader(&CATALOG_HISTORY, (of_history, from), Vec::new());
        let history = HistoryKeys::read(&mut nested).map(HistoryLimits::from).unwrap_or_default();
        let place = (Some(table), origin);
        let mut nested = reader.nested_reader(&CATALOG_TRANSFER, place, Vec::new());
        self.keys.with_transfers(&mut nested, (history, AliasTransfer::default()), access)
    }
}

/// Takes what a section says of the whole catalog, unless it says nothing; reports what contradicts
/// another section.
fn take_given<V: Copy + PartialEq>(
    reader: &mut Reader<'_, '_>,
    (name, key): (&Name, &'static str),
    value: V,
    (taken, given): (&mut V, &mut Option<V>),
) {
    if !reader.is_set(key) {
        return;
    }
    if given.is_some_and(|given| given != value) {
        let mistake = CatalogMistake::Differs(key, name.clone());
        reader.contradict(Some(key), Contradiction::Catalog(mistake));
    }
    (*taken, *given) = (value, Some(value));
}

/// Whether two names are one, whatever the case of their letters.
fn is_same(one: &Name, other: &Name) -> bool {
    one.to_lowercase() == other.to_lowercase()
}
