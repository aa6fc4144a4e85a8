//! Catalogs that the server makes: they list its zones that say so (rfc9432).
//!
//! # Invariants
//! - A version is on the disk before it is served, so that no serial goes back and no id is given
//!   to another zone.
//! - No member is removed while a file or a directory cannot be read: its zones may be there.
//! - A zone that moves from one catalog to another has the same id in both, and the former one
//!   lists it with its new owner for a time.
//! - A zone that comes or goes costs what differs, whatever the number of zones and of members.

use super::secondary_zone::with_changes;
use super::store_feed::NEXT_NUMBER;
use super::{LoadedZone, Update};
use crate::load::{self, unix_secs};
use crate::publish::{PublisherHandle, ServerState};
use crate::state_directory;
use crate::zone_set::fed_zone::FedOwner;
use crate::zone_set_view::KnownZone;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use zonda_config::{Config, MembersKeys};
use zonda_secondary::catalog::{MemberId, TTL, below, txt};
use zonda_secondary::zone_file::{KeptTimers, StoredZone};
use zonda_secondary::{Catalog, ZoneFile};
use zonda_wire::{Name, Type, rdata};
use zonda_zone::{ChangeSet, Diff, Record, Records, Serial, SerialPolicy, SetChange, Zone};

/// The catalogs that the server makes.
#[derive(Default)]
pub struct CatalogMakers {
    makers: Vec<CatalogMaker>,
    /// The number of changes of listings that were looked at; none where all zones are to be.
    seen: Option<u64>,
    /// The zones that are to be looked at, by their names in lower case: those of these changes
    /// that are not in every catalog yet.
    pending: HashSet<Name>,
    /// When catalogs that could not be made are tried again, and how long that waits.
    retry: Option<(Instant, Duration)>,
}

/// A catalog that the server makes.
struct CatalogMaker {
    /// How it is made.
    keys: Arc<MembersKeys>,
    /// The number by which the publisher knows the feed.
    number: u64,
    /// The file; none where there is no place for it.
    file: Option<ZoneFile>,
    /// Whether the file was read.
    is_read: bool,
    /// What the file held, until the first version is made of it.
    stored: Option<StoredZone>,
    /// The members of the version in force.
    catalog: Catalog,
    /// The version in force.
    zone: Option<Arc<Zone>>,
    /// The number of its records.
    records: usize,
    /// Whether the publisher has the version in force.
    is_published: bool,
    /// The members that another catalog of the server is to list, and since when that is known.
    leaving: HashMap<Name, Instant>,
    /// When the first of these is to be listed here no more.
    next_removal: Option<Instant>,
}

/// The time after which a catalog expires at secondaries, seconds: almost never (rfc9432#4).
const EXPIRE: u32 = 2_147_483_646;

/// How long a catalog that could not be made waits at first, and at most.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Zones that are to be listed, by their names in lower case, and the group of each.
type Members = HashMap<Name, Option<Box<str>>>;

/// Zones that were looked at.
struct LookedAt {
    /// The zones that are to be listed, by the name of the catalog in lower case.
    listed: HashMap<Name, Members>,
    /// The ids of those zones among them that another catalog lists, or has listed.
    ids: HashMap<Name, MemberId>,
    /// The names of all of them in lower case; none where these are all zones of the server.
    names: Option<HashSet<Name>>,
    /// Whether those that are not to be listed are gone: no file or directory may have them.
    may_remove: bool,
}

impl CatalogMakers {
    /// Makes the catalogs of a configuration from now on, and only those. Costs nothing where that
    /// has the same ones.
    pub fn configure(&mut self, config: &Config, publisher: &PublisherHandle) {
        if let Some((at, _)) = &mut self.retry {
            *at = Instant::now(); // what was wrong may have been mended
        }
        let mut former = std::mem::take(&mut self.makers);
        for (zone, keys) in config.made_catalogs() {
            let Some(apex) = zone.name.as_ref().map(Name::to_lowercase) else { continue };
            let place = former.iter().position(|it| *it.catalog.apex() == apex);
            let kept = place.map(|place| former.swap_remove(place));
            let mut maker = match kept {
                Some(kept) if kept.keys == *keys => {
                    self.makers.push(kept);
                    continue;
                }
                Some(kept) => kept,
                None => CatalogMaker::new(config, &apex, keys),
            };
            self.seen = None; // all zones are looked at
            maker.keys = Arc::clone(keys);
            maker.number = NEXT_NUMBER.fetch_add(1, Relaxed);
            (maker.is_published, maker.next_removal) = (false, None);
            // Where the publisher fails, so does the first update.
            let _ = publisher.adopt_feed(vec![apex], maker.number, FedOwner::Configuration);
            self.makers.push(maker);
        }
    }

    /// Makes other versions of the catalogs if zones came or went.
    pub fn look(&mut self, publisher: &PublisherHandle) {
        let waits = self.retry.is_some_and(|(at, _)| Instant::now() < at);
        if self.makers.is_empty() || waits || !self.is_due(&publisher.state()) {
            return;
        }
        let Ok(changes) = publisher.take_listings() else { return }; // the server says so by itself
        let state = publisher.state(); // which has these changes, and perhaps later ones
        let former = self.retry.take();
        let is_whole = self.seen.is_none() || changes.is_incomplete;
        self.seen = Some(changes.count());
        self.pending.extend(changes.names);
        self.pending.extend(self.makers.iter().flat_map(CatalogMaker::due));
        let names = Some(std::mem::take(&mut self.pending)).filter(|_| !is_whole);
        let mut zones = LookedAt::new(names, &state);
        let mut has_failed = false;
        let loaded: Vec<_> = self.makers.iter_mut().map(|maker| maker.load(&state)).collect();
        zones.find_ids(&self.makers);
        for (maker, loaded) in self.makers.iter_mut().zip(loaded) {
            match loaded.and_then(|former| maker.update(&former, &zones, publisher)) {
                Ok(put_off) => self.pending.extend(put_off),
                Err(error) => {
                    let catalog = maker.catalog.apex();
                    tracing::error!(%catalog, error, "a catalog keeps its former version");
                    has_failed = true;
                }
            }
        }
        if has_failed {
            match zones.names {
                Some(names) => self.pending.extend(names),
                None => self.seen = None,
            }
            let wait = former.map_or(RETRY_MIN, |(_, wait)| RETRY_MAX.min(2 * wait));
            self.retry = Some((Instant::now() + wait, wait));
        }
    }

    /// Whether there are zones to be looked at, once what has failed has waited.
    fn is_due(&self, state: &ServerState) -> bool {
        let has_removal = || self.makers.iter().any(CatalogMaker::has_due);
        let has_put_off = || (!self.pending.is_empty() || has_removal()) && may_remove(state);
        self.seen != Some(state.listings) || self.retry.is_some() || has_put_off()
    }
}

/// Whether no file or directory may have zones that are not there.
fn may_remove(state: &ServerState) -> bool {
    state.zone_set.failures().next().is_none()
}

impl LookedAt {
    /// Looks at the zones of some names, or at all.
    fn new(names: Option<HashSet<Name>>, state: &ServerState) -> Self {
        let may_remove = may_remove(state);
        let (listed, ids) = (HashMap::new(), HashMap::new());
        let mut looked_at = Self { listed, ids, names: None, may_remove };
        match &names {
            None => state.zone_set.zones().for_each(|zone| looked_at.add(zone)),
            Some(names) => {
                let zones = names.iter().filter_map(|name| state.zone_set.zone(name));
                zones.for_each(|zone| looked_at.add(zone));
            }
        }
        Self { names, ..looked_at }
    }

    /// Adds a zone, if a catalog is to list it.
    fn add(&mut self, zone: &KnownZone) {
        let access = zone.entry.access.as_ref();
        if let Some((catalog, group)) = access.and_then(|it| it.transfers.catalog.clone()) {
            let members = self.listed.entry(catalog).or_default();
            members.insert(zone.entry.apex.to_lowercase(), group);
        }
    }

    /// Leaves out catalogs that are not made, and finds the ids of zones that move from one catalog
    /// to another one.
    fn find_ids(&mut self, makers: &[CatalogMaker]) {
        self.listed.retain(|catalog, _| makers.iter().any(|it| it.catalog.apex() == catalog));
        for maker in makers {
            let Some(members) = self.listed.get(maker.catalog.apex()) else { continue };
            let is_new = |zone: &&Name| maker.catalog.listing(zone).is_none();
            for zone in members.keys().filter(is_new) {
                let id = makers.iter().find_map(|it| it.catalog.listing(zone)).map(|(id, _)| id);
                self.ids.extend(id.map(|id| (zone.clone(), id.clone())));
            }
        }
    }

    /// The catalog that is to list a zone.
    fn owner(&self, zone: &Name) -> Option<&Name> {
        let mut owners = self.listed.iter().filter(|(_, members)| members.contains_key(zone));
        owners.next().map(|(catalog, _)| catalog)
    }

    /// The zones that a catalog lists and is not to list any more, whose members these are.
    fn gone<'c>(&'c self, catalog: &'c Catalog, members: &Members) -> Vec<&'c Name> {
        let is_gone = |zone: &&Name| !members.contains_key(zone);
        match &self.names {
            None => catalog.zones().filter(is_gone).collect(),
            Some(names) => {
                let names = names.iter().filter(is_gone);
                names.filter(|name| catalog.listing(name).is_some()).collect()
            }
        }
    }
}

impl CatalogMaker {
    /// A catalog as the last start has left it.
    fn new(config: &Config, apex: &Name, keys: &Arc<MembersKeys>) -> Self {
        let directory = state_directory::path(config).and_then(|path| {
            let path = path.join("members");
            state_directory::make(&path)?;
            Ok(path)
        });
        let directory = directory.inspect_err(|error| {
            tracing::error!(error, "catalogs are not kept on the disk");
        });
        let file = directory.ok().map(|directory| ZoneFile::new(directory, apex));
        let (catalog, keys) = (Catalog::new(apex), Arc::clone(keys));
        let (is_read, stored, zone, records) = (false, None, None, 0);
        let (is_published, leaving, next_removal) = (false, HashMap::new(), None);
        Self {
            keys,
            number: 0,
            file,
            is_read,
            stored,
            catalog,
            zone,
            records,
            is_published,
            leaving,
            next_removal,
        }
    }

    /// Whether a zone is to be listed here no more, as another catalog has it for long enough.
    fn has_due(&self) -> bool {
        self.next_removal.is_some_and(|at| at <= Instant::now())
    }

    /// The zones that are to be listed here no more, as another catalog has them for long enough.
    fn due(&self) -> impl Iterator<Item = Name> {
        let is_due = |since: &Instant| since.elapsed() >= self.keys.ownership_change;
        let zones = self.leaving.iter().filter(|_| self.has_due());
        zones.filter(move |(_, since)| is_due(since)).map(|(zone, _)| zone.clone())
    }

    /// The version in force, which is that of the file at first.
    fn load(&mut self, state: &ServerState) -> Result<Arc<Zone>, String> {
        match &self.zone {
            Some(zone) => Ok(Arc::clone(zone)),
            None => self.first(state),
        }
    }

    /// Makes another version if the members are not those of the version in force; returns those
    /// whose removal is put off.
    fn update(
        &mut self,
        former: &Zone,
        zones: &LookedAt,
        publisher: &PublisherHandle,
    ) -> Result<Vec<Name>, String> {
        let none = Members::new();
        let members = zones.listed.get(self.catalog.apex()).unwrap_or(&none);
        let gone: Vec<Name> = zones.gone(&self.catalog, members).into_iter().cloned().collect();
        let (leaving, gone) = self.leaving(gone, (members, zones));
        let (gone, put_off) = match zones.may_remove {
            true => (gone, Vec::new()),
            false => (Vec::new(), gone),
        };
        let mut sets = self.soa(former)?;
        sets.extend(self.changes((members, &zones.ids), &leaving, &gone)?);
        let now = unix_secs();
        let serial = Serial::Bump(SerialPolicy::UnixTime(now));
        let changes = ChangeSet { sets, serial };
        let (zone, diff) = former.with(&changes).map_err(|error| error.to_string())?;
        if !diff.is_empty() {
            let zone = Arc::new(zone);
            self.keep(&zone, &diff)?;
            self.records = (self.records + diff.added.len()).saturating_sub(diff.removed.len());
            let listed = self.catalog.changes(Some(former), &zone);
            self.catalog.take(&listed.map_err(|fault| fault.to_string())?);
            (self.zone, self.is_published) = (Some(zone), false);
        }
        gone.iter().for_each(|zone| _ = self.leaving.remove(zone));
        if self.next_removal.is_none() || self.has_due() {
            let first = self.leaving.values().min();
            self.next_removal = first.and_then(|it| it.checked_add(self.keys.ownership_change));
        }
        if !self.is_published
            && let Some(zone) = self.zone.clone()
        {
            let (apex, members) = (self.catalog.apex().clone(), self.catalog.len());
            let (serial, records) = (zone.serial(), self.records);
            let update = Update::Replace(LoadedZone { zone, records, digest: None, expiry: None });
            let updated = publisher.update(&apex, self.number, update);
            updated.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
            self.is_published = true;
            tracing::info!(catalog = %apex, serial, members, "a catalog is made");
        }
        Ok(put_off)
    }

    /// The version that the file holds, or one without members if there is no file. No version is
    /// made while the file cannot be read or is not sound: other ids would have every consumer drop
    /// all members.
    fn first(&mut self, state: &ServerState) -> Result<Arc<Zone>, String> {
        let apex = self.catalog.apex().clone();
        let served = (&state.zone_set, state.seed);
        if let (false, Some(file)) = (self.is_read, &mut self.file) {
            let read = file.read();
            self.stored = read.map_err(|error| format!("its file cannot be read: {error}"))?;
            self.is_read = true;
        }
        let kept = self.stored.as_ref().map(|stored| {
            let made = load::make(&apex, &stored.records, false, served);
            let made = made.map_err(|error| error.to_string());
            made.and_then(|it| with_changes(it, &stored.changes).map_err(|it| it.to_string()))
        });
        let unsound = |error| {
            format!(
                "its file is not sound ({error}): restore it, or remove it, which gives all \
                 members new ids"
            )
        };
        let zone = match kept.transpose().map_err(unsound)? {
            Some(kept) => kept.zone,
            None => {
                let made = load::make(&apex, &self.empty(&apex)?, false, served);
                made.map_err(|error| error.to_string())?.zone
            }
        };
        let listed = self.catalog.changes(None, &zone).map_err(|fault| fault.to_string())?;
        self.catalog.take(&listed);
        if self.file.as_ref().is_some_and(|file| !file.holds_version()) {
            self.keep(&zone, &Diff::default())?;
        }
        (self.zone, self.stored) = (Some(Arc::clone(&zone)), None);
        self.records = zone.records().count();
        Ok(zone)
    }

    /// The records of a catalog without members.
    fn empty(&self, apex: &Name) -> Result<Records, String> {
        let mut records = Records::default();
        let soa = self.soa_text(unix_secs());
        let version = below(&[b"version"], apex).ok_or("its name is too long for a catalog")?;
        let all = [
            (apex, Type::SOA, soa.as_str()),
            (apex, Type::NS, "invalid."),
            (&version, Type::TXT, "\"2\""),
        ];
        for (owner, rtype, text) in all {
            let rdata = rdata::from_text(rtype, text).map_err(|error| error.to_string())?;
            // Three records fit.
            let _ =
                records.push(Record { owner: owner.as_wire(), rtype, ttl: TTL, rdata: &rdata }, 0);
        }
        Ok(records)
    }

    /// The data of the SOA record in text.
    fn soa_text(&self, serial: u32) -> String {
        let MembersKeys { refresh, retry, .. } = &*self.keys;
        let (refresh, retry) = (refresh.as_secs(), retry.as_secs());
        format!("invalid. invalid. {serial} {refresh} {retry} {EXPIRE} 0")
    }

    /// The change of the SOA record, if its times are not those of the configuration.
    fn soa(&self, zone: &Zone) -> Result<Vec<SetChange>, String> {
        let text = self.soa_text(zone.serial());
        let rdata = rdata::from_text(Type::SOA, &text).map_err(|error| error.to_string())?;
        if zone.soa().0.first() == &*rdata {
            return Ok(Vec::new());
        }
        let owner = self.catalog.apex().clone();
        let data = vec![rdata.into()];
        Ok(vec![SetChange::Put { owner, rtype: Type::SOA, ttl: TTL, data }])
    }

    /// Tells apart, of the zones that are not to be listed here any more, those that another
    /// catalog has for so short a time that this one tells which, each with that catalog, and
    /// those that are removed.
    fn leaving(
        &mut self,
        gone: Vec<Name>,
        (members, zones): (&Members, &LookedAt),
    ) -> (Vec<(Name, Name)>, Vec<Name>) {
        members.keys().for_each(|zone| _ = self.leaving.remove(zone)); // those that are back
        let (now, mut leaving, mut removed) = (Instant::now(), Vec::new(), Vec::new());
        for zone in gone {
            let Some(owner) = zones.owner(&zone) else {
                removed.push(zone);
                continue;
            };
            let since = *self.leaving.entry(zone.clone()).or_insert(now);
            match now.duration_since(since) < self.keys.ownership_change {
                true => leaving.push((zone, owner.clone())),
                false => removed.push(zone),
            }
        }
        (leaving, removed)
    }

    /// The changes that add members, or change their groups, tell the new owner of those that move
    /// to another catalog, and remove those that are gone.
    fn changes(
        &self,
        (members, ids): (&Members, &HashMap<Name, MemberId>),
        leaving: &[(Name, Name)],
        gone: &[Name],
    ) -> Result<Vec<SetChange>, String> {
        let (mut sets, apex) = (Vec::new(), self.catalog.apex());
        let name = |own: &[&[u8]]| below(own, apex).ok_or("its name is too long for a catalog");
        for zone in gone {
            let Some((id, _)) = self.catalog.listing(zone) else { continue };
            let own: [&[&[u8]]; 3] =
                [&[id, b"zones"], &[b"group", id, b"zones"], &[b"coo", id, b"zones"]];
            for own in own {
                sets.push(SetChange::RemoveName { owner: name(own)? });
            }
        }
        let mut moved = 0;
        for (zone, catalog) in leaving {
            let Some((id, listing)) = self.catalog.listing(zone) else { continue };
            if listing.new_catalog.as_ref() != Some(catalog) {
                let (owner, data) =
                    (name(&[b"coo", id, b"zones"])?, vec![catalog.as_wire().into()]);
                sets.push(SetChange::Put { owner, rtype: Type::PTR, ttl: TTL, data });
                moved += 1;
            }
        }
        if moved > 0 {
            let listed_for = self.keys.ownership_change;
            tracing::info!(
                catalog = %apex,
                zones = moved,
                ?listed_for,
                "zones move to other catalogs"
            );
        }
        for (zone, group) in members {
            let listed = self.catalog.listing(zone);
            if let Some((id, listing)) = listed
                && listing.new_catalog.is_some()
            {
                sets.push(SetChange::RemoveName { owner: name(&[b"coo", id, b"zones"])? });
            }
            let id = match listed {
                Some((id, _)) => id.clone(),
                None => {
                    let (owner, id) = match ids.get(zone) {
                        Some(id) => (name(&[id, b"zones"])?, id.clone()),
                        None => self.new_id()?,
                    };
                    let data = vec![zone.as_wire().into()];
                    sets.push(SetChange::Put { owner, rtype: Type::PTR, ttl: TTL, data });
                    id
                }
            };
            let groups: Vec<Box<[u8]>> =
                group.iter().map(|group| group.as_bytes().into()).collect();
            if listed.map_or(&[][..], |(_, listing)| &listing.groups) != groups {
                let (owner, rtype) = (name(&[b"group", &id, b"zones"])?, Type::TXT);
                sets.push(match groups.first() {
                    Some(group) => {
                        SetChange::Put { owner, rtype, ttl: TTL, data: vec![txt(group).into()] }
                    }
                    None => SetChange::Remove { owner, rtype },
                });
            }
        }
        Ok(sets)
    }

    /// A new member's id, a random one, and the name of its record.
    fn new_id(&self) -> Result<(Name, MemberId), String> {
        let octets = zonda_zone::random_octets::<16>();
        let id: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        let id: MemberId = id.into_bytes().into();
        let owner = below(&[&id, b"zones"], self.catalog.apex());
        Ok((owner.ok_or("its name is too long for a catalog")?, id))
    }

    /// Has the disk hold a version that a difference leads to.
    fn keep(&mut self, zone: &Zone, diff: &Diff) -> Result<(), String> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let timers = KeptTimers { serial: zone.serial(), ..KeptTimers::default() };
        if !file.is_to_be_written_anew() && file.append(std::slice::from_ref(diff), timers).is_ok()
        {
            return Ok(());
        }
        let records = zone.to_records().map_err(|_| "it has over 4 GiB".to_owned())?;
        file.replace(&records, timers).map_err(|error| format!("the disk: {error}"))
    }
}
