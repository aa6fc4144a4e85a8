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
        let unit = self.fed_unit(source, access, hosts_first);
        let former = self.fed.get(&name);
        // A zone of a catalog that the configuration names is served on, as that says.
        let is_other = |it: &&FedZone| {
            let yields = it.owner == FedOwner::Catalog && owner == FedOwner::Configuration;
            it.owner != owner && !yields
        };
        if let Some(former) = former.filter(is_other) {
            let reason = already_served(&unit.key, &name, &former.unit.key);
            tracing::warn!(reason, "a source of a zone is left out");
            return;
        }
        let is_same = |it: &FedZone| (&it.unit.key, &it.unit.terms) == (&unit.key, &unit.terms);
        if former.is_some_and(|it| it.owner == owner && is_same(it)) {
            return;
        }
        let feed = former.map_or(0, |former| former.feed);
        let is_left_out = former.is_some_and(|former| former.is_left_out);
        let was_transferred = former.is_some_and(|it| is_transferred(&it.unit.key));
        let mut version = self.take_fed_version(&name);
        // Of records from another source, the feed tells the time until the zone expires.
        version.expiry = match is_transferred(&unit.key) {
            true if was_transferred => version.expiry,
            true => Some(Arc::default()),
            false => None,
        };
        let zone = FedZone { unit, aside: None, owner, feed, is_left_out };
        self.fed.insert(name.clone(), zone);
        self.serve_fed(&name, version, outcome);
    }

    /// Returns the source and the terms of a zone that a feed sends: those of the zone that was
    /// added before it, where they are the same.
    fn fed_unit(
        &mut self,
        source: Arc<str>,
        access: Option<Arc<Access>>,
        hosts_first: bool,
    ) -> Arc<Unit> {
        let key = UnitKey::of_feed(source);
        let has_terms =
            |last: &Arc<Unit>| last.terms.access == access && last.terms.hosts_first == hosts_first;
        let last = self.last_fed_unit.take().filter(has_terms);
        let unit = match last {
            Some(last) if *last.key == key => last,
            last => {
                let terms = last.map(|last| Arc::clone(&last.terms)).unwrap_or_else(|| {
                    let (root, hosts) = (Path::new("/").into(), hosts::Terms::default());
                    let (writable, in_directory) = (None, false);
                    UnitTerms { root, access, writable, in_directory, hosts, hosts_first }.into()
                });
                Arc::new(Unit { key: Arc::new(key), terms })
            }
        };
        Arc::clone(self.last_fed_unit.insert(unit))
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

    /// Returns the serial of a zone as its feed has sent it.
    pub fn fed_serial(&self, name: &Name) -> Option<u32> {
        let data = match &self.fed.get(name)?.aside {
            Some(aside) => aside.data.as_ref(),
            None => self.served_of_feed(name)?.data(),
        };
        Some(data?.serial())
    }

    /// Takes what the feed of a zone has sent, from aside where that is; nothing yet where the feed
    /// has sent none.
    fn take_fed_version(&mut self, name: &Name) -> Version {
        let Some(fed) = self.fed.get_mut(name) else { return Version::awaited() };
        match fed.aside.take() {
            Some(aside) => *aside,
            None => self.served_of_feed(name).map_or_else(Version::awaited, |it| Version::of(it)),
        }
    }

    /// Returns a zone if it is served from what its feed has sent.
    fn served_of_feed(&self, name: &Name) -> Option<&Arc<KnownZone>> {
        self.zone(name).filter(|zone| zone.unit.is_of_feed())
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
        let key = UnitKey::of_feed(Arc::clone(&new.source));
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
        let served = self.served_of_feed(name).map(|zone| Version::of(zone));
        let fed = self.fed.get_mut(name).filter(|fed| fed.feed == feed);
        let Some(fed) = fed else { return Ok(outcome) }; // removed
        let unit = Arc::clone(&fed.unit);
        // What is aside is changed where it is, so that it stays after an error, or a panic.
        let mut served = fed.aside.is_none().then(|| served.unwrap_or_else(Version::awaited));
        let Some(version) = served.as_mut().or(fed.aside.as_deref_mut()) else {
            return Ok(outcome); // there is one of them
        };
        let before = version.data.clone();
        version.take(update)?;
        let (after, error) = (version.data.clone(), version.error.clone());
        match error {
            Some(error) => self.note_failure((&unit, name), after.is_some(), &error, &mut outcome),
            None if before.is_some() && is_same(before.as_ref(), after.as_ref()) => {
                outcome.unchanged.push(name.clone());
            }
            None => outcome.loaded.push(name.clone()),
        }
        let version = served.unwrap_or_else(|| self.take_fed_version(name));
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
        let unit = Arc::clone(&fed.unit);
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
        let mut version = self.take_fed_version(name);
        if version.data.is_none() {
            (version.data, version.records) = (former.data, former.records);
        }
        outcome.removed.retain(|removed| removed != name);
        outcome.loaded.push(name.clone());
        self.serve_fed(name, version, outcome);
    }
}

/// Whether the versions of a zone of this key are transferred.
fn is_transferred(key: &UnitKey) -> bool {
    matches!(key.origin(), VersionOrigin::Transfer)
}

/// Whether two versions of a zone are one.
fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}
