//! Zones whose feeds send updates by themselves: those of databases and of the program.
//!
//! # Invariants
//! - Such a zone is served unless a file has its name; once none has, it is served again.
//! - Its feed is the only source of changes, so that a feed knows the version that it changes.

use super::ZoneSet;
use super::fed_zone::{FedOwner, FedZone, NewFedZone};
use super::outcome::Outcome;
use super::version::Version;
use crate::feed::Update;
use crate::steering::Pools;
use crate::units::{PRIMARIES, Unit, UnitKey, UnitTerms, already_served};
use crate::zone_set_view::KnownZone;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use zonda_config::{Access, Config};
use zonda_engine::VersionOrigin;
use zonda_wire::Name;
use zonda_zone::{ChangeError, hosts};

impl ZoneSet {
    /// Serves zones of the configuration from what their feeds send, from now on. Returns whether
    /// the terms of any are new.
    pub fn add_stores(&mut self, config: &Config, outcome: &mut Outcome) {
        let owner = FedOwner::Configuration;
        for (zone, store) in config.stores() {
            let Some(name) = zone.name.as_ref().map(Name::to_lowercase) else { continue };
            let source = format!("store {}", store.url).into();
            let access = zone.access.clone();
            let hosts_first = false;
            self.add_fed(NewFedZone { name, source, access, owner, hosts_first }, outcome);
        }
        let primaries: Arc<str> = PRIMARIES.into();
        for (zone, _) in config.secondaries() {
            let Some(name) = zone.name.as_ref().map(Name::to_lowercase) else { continue };
            let (source, access) = (Arc::clone(&primaries), zone.access.clone());
            let hosts_first = false;
            self.add_fed(NewFedZone { name, source, access, owner, hosts_first }, outcome);
        }
        for (zone, _) in config.made_catalogs() {
            let Some(name) = zone.name.as_ref().map(Name::to_lowercase) else { continue };
            let (source, access) = ("members".into(), zone.access.clone());
            let hosts_first = false;
            self.add_fed(NewFedZone { name, source, access, owner, hosts_first }, outcome);
        }
        for (zone, keys) in config.clusters() {
            let names = zone.name.iter().map(Name::to_lowercase).chain(keys.reverse_zones());
            for name in names {
                let (source, access) = ("Kubernetes cluster".into(), zone.access.clone());
                let hosts_first = keys.hosts_first;
                self.add_fed(NewFedZone { name, source, access, owner, hosts_first }, outcome);
            }
        }
    }

    /// Takes zones of the configuration out of service that follow neither a database nor a
    /// cluster any more.
    pub fn drop_stores(&mut self, config: &Config, outcome: &mut Outcome) {
        let names =
            config.stores().filter_map(|(zone, _)| Some(zone.name.as_ref()?.to_lowercase()));
        let of_primaries =
            config.secondaries().filter_map(|(zone, _)| Some(zone.name.as_ref()?.to_lowercase()));
        let of_clusters = config.clusters().flat_map(|(zone, keys)| {
            zone.name.iter().map(Name::to_lowercase).chain(keys.reverse_zones())
        });
        let made = config.made_catalogs();
        let made = made.filter_map(|(zone, _)| Some(zone.name.as_ref()?.to_lowercase()));
        let names = names.chain(of_primaries).chain(of_clusters).chain(made);
        let names: HashSet<Name> = names.collect();
        let gone = |(name, fed): (&Name, &FedZone)| {
            (fed.owner == FedOwner::Configuration && !names.contains(name)).then(|| name.clone())
        };
        let gone: Vec<Name> = self.fed.iter().filter_map(gone).collect();
        gone.iter().for_each(|name| _ = self.remove_fed(name, outcome));
    }

    /// Serves a zone from what its feed sends, from now on.
    pub fn add_fed(&mut self, new: NewFedZone, outcome: &mut Outcome) {
        let NewFedZone { name, source, access, owner, hosts_first } = new;
        let terms = self.fed_terms(access, hosts_first);
        let key = UnitKey::of_feed(name.clone(), source);
        let former = self.fed.get(&name);
        // A zone of a catalog that the configuration names is served on, as that says.
        let is_other = |it: &&FedZone| {
            let yields = it.owner == FedOwner::Catalog && owner == FedOwner::Configuration;
            it.owner != owner && !yields
        };
        if let Some(former) = former.filter(is_other) {
            let reason = already_served(&key, &name, &former.unit.key);
            tracing::warn!(reason, "a source of a zone is left out");
            return;
        }
        let is_same = |it: &FedZone| *it.unit.key == key && it.unit.terms == terms;
        if former.is_some_and(|it| it.owner == owner && is_same(it)) {
            return;
        }
        let unit = Unit { key: Arc::new(key), terms };
        let feed = former.map_or(0, |former| former.feed);
        let mut version = self.fed_version(&name);
        // Of records from another source, the feed tells the time until the zone expires.
        let is_transferred = |key: &UnitKey| matches!(key.origin(), VersionOrigin::Transfer);
        version.expiry = match is_transferred(&unit.key) {
            true if former.is_some_and(|it| is_transferred(&it.unit.key)) => version.expiry,
            true => Some(Arc::default()),
            false => None,
        };
        let is_left_out = former.is_some_and(|former| former.is_left_out);
        let zone = FedZone { unit, aside: None, owner, feed, is_left_out };
        self.fed.insert(name.clone(), zone);
        self.serve_fed(&name, version, outcome);
    }

    /// The terms of a zone that a feed sends: those of the zone before, where they are the same.
    fn fed_terms(&mut self, access: Option<Arc<Access>>, hosts_first: bool) -> Arc<UnitTerms> {
        let is_same =
            |last: &Arc<UnitTerms>| last.access == access && last.hosts_first == hosts_first;
        let last = self.last_fed_terms.take().filter(is_same);
        let terms = last.unwrap_or_else(|| {
            let root = Path::new("/").into();
            Arc::new(UnitTerms {
                root,
                access,
                writable: None,
                in_directory: false,
                hosts: hosts::Terms::default(),
                hosts_first,
            })
        });
        Arc::clone(self.last_fed_terms.insert(terms))
    }

    /// Logs which zones of feeds are served from files instead, once for as long as that lasts.
    pub fn warn_of_left_out(&mut self) {
        let mut all = std::mem::take(&mut self.fed);
        for (name, fed) in &mut all {
            let other = self.zone(name).filter(|zone| !zone.unit.is_of_feed());
            if let Some(other) = other.filter(|_| !fed.is_left_out) {
                let reason = already_served(&fed.unit.key, name, &other.unit);
                tracing::warn!(reason, "a source of a zone is left out");
            }
            fed.is_left_out = other.is_some();
        }
        self.fed = all;
    }

    /// Logs which zones are signed whose names would be steered by pools otherwise.
    pub fn warn_of_signed_zones(&self, pools: &mut Pools) {
        pools.warn_of_signed_zones(|name| {
            self.zone(name).and_then(|zone| zone.data()).is_some_and(|zone| zone.is_signed())
        });
    }

    /// Takes zones that catalogs do not list any more out of service.
    pub fn remove_members(&mut self, names: &[Name], outcome: &mut Outcome) {
        for name in names {
            if self.fed.get(name).is_some_and(|fed| fed.owner == FedOwner::Catalog) {
                self.remove_fed(name, outcome);
            }
        }
    }

    /// Takes a zone out of service that the program has given; returns whether there was one.
    pub fn remove_of_program(&mut self, name: &Name, outcome: &mut Outcome) -> bool {
        let is_of_program = self.fed.get(name).is_some_and(|it| it.owner == FedOwner::Program);
        is_of_program && self.remove_fed(name, outcome)
    }

    /// Takes a zone that a feed sends out of service; returns whether there was one.
    fn remove_fed(&mut self, name: &Name, outcome: &mut Outcome) -> bool {
        if self.fed.remove(name).is_none() {
            return false;
        }
        if self.zone(name).is_some_and(|zone| zone.unit.is_of_feed()) {
            self.remove(name, outcome);
        }
        true
    }

    /// The serial of a zone as its feed has sent it.
    pub fn fed_serial(&self, name: &Name) -> Option<u32> {
        Some(self.fed_version(name).data?.serial())
    }

    /// What the feed of a zone has sent; nothing yet where there is none.
    fn fed_version(&self, name: &Name) -> Version {
        let Some(fed) = self.fed.get(name) else { return Version::awaited() };
        let served = || {
            let zone = self.zone(name).filter(|zone| zone.unit.is_of_feed());
            zone.map_or_else(Version::awaited, |zone| Version::of(zone))
        };
        fed.aside.as_deref().cloned().unwrap_or_else(served)
    }

    /// Keeps what the feed of a zone has sent, as a file serves the zone from now on.
    pub(super) fn set_aside(&mut self, former: &KnownZone) {
        if !former.unit.is_of_feed() {
            return;
        }
        if let Some(fed) = self.fed.get_mut(&former.entry.apex) {
            fed.aside = Some(Version::of(former).into());
        }
    }

    /// What a zone is served from, if that is anything but the source of a new zone from a feed.
    pub fn other_source(&self, new: &NewFedZone) -> Option<String> {
        let key = UnitKey::of_feed(new.name.clone(), Arc::clone(&new.source));
        let served = self.zone(&new.name).map(|zone| &zone.unit);
        let unit = served.or_else(|| self.fed.get(&new.name).map(|fed| &fed.unit.key))?;
        (**unit != key).then(|| unit.to_string())
    }

    /// Takes updates of these zones from the feed of a number alone, from now on. A feed that was
    /// left behind, as its store did not answer, may still send some.
    pub fn adopt_feed(&mut self, names: &[Name], feed: u64, owner: FedOwner) {
        for name in names {
            let zone = self.fed.get_mut(name).filter(|it| it.owner == owner);
            zone.into_iter().for_each(|zone| zone.feed = feed);
        }
    }

    /// Takes what a feed has for a zone, unless the zone has another feed by now.
    ///
    /// # Errors
    /// When the zone cannot be changed so; it is as it was then.
    pub fn update_fed(
        &mut self,
        name: &Name,
        feed: u64,
        update: Update,
    ) -> Result<Outcome, ChangeError> {
        let mut outcome = Outcome::default();
        let fed = self.fed.get(name).filter(|fed| fed.feed == feed);
        let Some(unit) = fed.map(|fed| fed.unit.clone()) else { return Ok(outcome) }; // removed
        let mut version = self.fed_version(name);
        let before = version.data.clone();
        version.take(update)?;
        match &version.error {
            Some(error) => {
                self.note_failure((&unit, name), version.data.is_some(), error, &mut outcome);
            }
            None if before.is_some() && is_same(before.as_ref(), version.data.as_ref()) => {
                outcome.unchanged.push(name.clone());
            }
            None => outcome.loaded.push(name.clone()),
        }
        self.serve_fed(name, version, &mut outcome);
        Ok(outcome)
    }

    /// Serves a zone from what its feed has sent, unless a file has its name.
    fn serve_fed(&mut self, name: &Name, version: Version, outcome: &mut Outcome) {
        let former = self.zone(name).cloned();
        let Some(fed) = self.fed.get_mut(name) else { return };
        if former.as_ref().is_some_and(|zone| !zone.unit.is_of_feed()) {
            fed.aside = Some(version.into());
            return;
        }
        fed.aside = None;
        let unit = fed.unit.clone();
        self.serve(&unit, name, former.as_deref(), version, outcome);
    }

    /// Serves a zone from its feed again, if it has one, when its file is gone: until the feed has
    /// records, from those of the file.
    pub(super) fn fall_back_to_feed(
        &mut self,
        name: &Name,
        former: Version,
        outcome: &mut Outcome,
    ) {
        if !self.fed.contains_key(name) {
            return;
        }
        let mut version = self.fed_version(name);
        if version.data.is_none() {
            (version.data, version.records) = (former.data, former.records);
        }
        outcome.removed.retain(|removed| removed != name);
        outcome.loaded.push(name.clone());
        self.serve_fed(name, version, outcome);
    }
}

/// Whether two versions of a zone are one.
fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}
