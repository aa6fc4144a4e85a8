//! The table of zones that all server blocks make together.
//!
//! CoreDNS asks the sources of the block with the longest zone, one after the other; Zonda asks the
//! one source of the longest zone. At every name where the former can change (a zone of a block, a
//! source, an exception) the sources that CoreDNS would ask are worked out. Where they are not the
//! ones of the name above, Zonda gets a zone.

use super::source::{Kind, Source};
use super::{Block, Importer, key};
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::{ImportError, Place, Problem};
use crate::tree::fail;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use zonda_wire::Name;

/// Names at which sources can change.
const NAMES_MAX: usize = 20_000;

/// The number of a block, and that of a source in it.
type SourceId = (usize, usize);

/// A source as it answers for a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Kind of the source.
    pub kind: Kind,
    /// Number of the server block.
    pub block: usize,
    /// Number of the source in the block.
    pub source: usize,
    /// Zone by which it has the name; the root for the kinds that serve any name alike.
    pub zone: Name,
}

/// A zone to be written.
pub struct ZoneEntry {
    /// Name of the zone.
    pub name: Name,
    /// Sources: one, or a hosts file before upstreams.
    pub pieces: Vec<Piece>,
    /// Rules about clients, by their numbers in the block.
    pub access: Vec<usize>,
    /// Reverse zones that a cluster has besides.
    pub reverse: Vec<Name>,
    /// Names in the zone that are left out.
    pub except: Vec<Name>,
}

/// The sources and rules at a name.
#[derive(Clone, Default, PartialEq)]
struct Region {
    pieces: Vec<Piece>,
    access: Vec<(usize, usize)>,
}

impl Region {
    /// Returns the sources without clusters that leave names to them.
    fn around_clusters(&self) -> Vec<&Piece> {
        self.pieces.iter().filter(|piece| piece.kind != Kind::Kubernetes).collect()
    }

    /// Returns the cluster that has the names first.
    fn cluster(&self) -> Option<&Piece> {
        self.pieces.iter().find(|piece| piece.kind == Kind::Kubernetes)
    }
}

impl Importer<'_> {
    /// Decides on all zones.
    pub(super) fn zones(&mut self) -> Result<(), ImportError> {
        let names = self.names()?;
        let mut regions: HashMap<Name, Region> = HashMap::new();
        let mut emitted: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for name in &names {
            let region = self.region(name);
            let parent = ancestors(name).find_map(|above| regions.get(&above)).cloned();
            if region != parent.clone().unwrap_or_default() {
                self.zone_at(name, &region, &parent.unwrap_or_default(), &mut emitted);
            }
            regions.insert(name.clone(), region);
        }
        self.report_unreached(&regions);
        self.report_uncached();
        self.join_clusters();
        self.check_changes();
        self.check_transfers();
        self.check_options();
        self.check_whoami();
        Ok(())
    }

    /// Returns the names at which sources can change, shorter ones first.
    fn names(&self) -> Result<Vec<Name>, ImportError> {
        let mut names: BTreeMap<(usize, String), Name> = BTreeMap::new();
        let mut add = |all: &[Name], place: Option<&Place>| {
            for name in all {
                names.insert((name.label_count(), name.to_string()), name.clone());
            }
            match (names.len() > NAMES_MAX, place) {
                (true, Some(place)) => {
                    Err(fail(place.clone(), Problem::TooMuch("names", NAMES_MAX)))
                }
                _ => Ok(()),
            }
        };
        for block in &self.blocks {
            for key in &block.keys {
                add(&key.zones, Some(&key.token.place))?;
            }
            for source in &block.sources {
                let place = Some(&source.place);
                add(&source.zones, place)?;
                add(&source.except, place)?;
                if let super::source::FallThrough::In(zones) = &source.fall_through {
                    add(zones, place)?;
                }
            }
            for rule in &block.access {
                add(&rule.zones, Some(&rule.place))?;
            }
        }
        Ok(names.into_values().collect())
    }

    /// Returns the block whose queries those for a name are.
    pub(super) fn owner(&self, name: &Name) -> Option<usize> {
        let mut above = std::iter::once(name.clone()).chain(ancestors(name));
        above.find_map(|name| self.owners.get(&name).copied())
    }

    /// Returns the sources that are asked for a name, one after the other.
    pub(super) fn pieces(&self, name: &Name) -> Vec<Piece> {
        let Some(number) = self.owner(name) else { return Vec::new() };
        let Some(block) = self.blocks.get(number) else { return Vec::new() };
        let mut pieces = Vec::new();
        let mut file: Option<Piece> = None;
        for (at, source) in block.sources.iter().enumerate() {
            let Some(zone) = source.zone_of(name).filter(|_| !source.excepts(name)) else {
                continue;
            };
            if source.kind > Kind::File && file.is_some() {
                break;
            }
            let has_apex = matches!(source.kind, Kind::File | Kind::Kubernetes);
            let zone = if has_apex { zone.clone() } else { Name::root() };
            let piece = Piece { kind: source.kind, block: number, source: at, zone };
            if source.kind == Kind::File {
                // All files are one source: the longest zone counts, and the last file of it.
                let labels = |piece: &Piece| piece.zone.label_count();
                file = file.take().filter(|it| labels(it) > labels(&piece)).or(Some(piece));
                continue;
            }
            pieces.push(piece);
            if !source.fall_through.has(name) {
                return pieces;
            }
        }
        pieces.extend(file);
        pieces
    }

    /// Returns the sources and the rules at a name.
    fn region(&self, name: &Name) -> Region {
        let pieces = self.pieces(name);
        let Some(number) = self.owner(name).filter(|_| !pieces.is_empty()) else {
            return Region::default();
        };
        let rules = self.blocks.get(number).map_or(&[][..], |block| &block.access);
        let is_here = |zones: &[Name]| zones.iter().any(|zone| key::is_in(name, zone));
        let here = rules.iter().enumerate().filter(|(_, rule)| is_here(&rule.zones));
        let access = here.map(|(at, _)| (number, at)).collect();
        Region { pieces, access }
    }

    /// Adds the zone that makes a name have its sources, or reports that none does.
    fn zone_at(
        &mut self,
        name: &Name,
        region: &Region,
        parent: &Region,
        emitted: &mut BTreeMap<Vec<u8>, usize>,
    ) {
        if region.pieces.is_empty() {
            return self.leave_out(name, emitted);
        }
        let place = region.pieces.first().map(|piece| self.source(piece).place.clone());
        let Some(place) = place else { return };
        let own = match region.cluster() {
            Some(cluster) => {
                if let Some(why) = cluster_trouble(region, parent) {
                    return self.leave_at(&place, Lost, key::written(name), why);
                }
                let hosts = region.pieces.iter().find(|piece| piece.kind == Kind::Hosts);
                if let Some(hosts) = hosts {
                    self.put_hosts_first(cluster, hosts, parent);
                }
                if parent.cluster() == Some(cluster) && region.access == parent.access {
                    return; // its zone is there: names may fall through to other zones
                }
                vec![cluster.clone()]
            }
            None => self.without_cluster(region, name),
        };
        let is_apex = |piece: &Piece| {
            !matches!(piece.kind, Kind::File | Kind::Kubernetes) || piece.zone == *name
        };
        if !own.iter().all(is_apex) {
            let why = "a zone can be served as a whole only, with one list of rules for clients";
            return self.leave_at(&place, Lost, key::written(name), why);
        }
        let access = region.access.iter().map(|(_, at)| *at).collect();
        emitted.insert(name.as_wire().to_vec(), self.zones.len());
        self.zones.push(ZoneEntry {
            name: name.clone(),
            pieces: own,
            access,
            reverse: Vec::new(),
            except: Vec::new(),
        });
    }

    /// Has names of a hosts file come before those of a cluster, as they do in front of the
    /// upstreams of the zone around it.
    fn put_hosts_first(&mut self, cluster: &Piece, hosts: &Piece, parent: &Region) {
        let is_forwarded = parent.pieces.last().is_some_and(|it| it.kind == Kind::Forward);
        let (place, what) = self.words_of(hosts);
        if parent.pieces.first() != Some(hosts) || !is_forwarded {
            let why = format!(
                "a hosts file stands before a cluster only if it stands before the upstreams of \
                 the zone around {} too",
                key::written(&cluster.zone)
            );
            return self.leave_at(&place, Lost, what, why);
        }
        let keys = &mut self.blocks[cluster.block].sources[cluster.source].keys;
        if !keys.iter().any(|(key, ..)| *key == "hosts-first") {
            keys.push(("hosts-first", true.into(), place));
        }
    }

    /// Returns the sources of a zone: a file, upstreams, or a hosts file before upstreams.
    fn without_cluster(&mut self, region: &Region, name: &Name) -> Vec<Piece> {
        if let [hosts] = &region.pieces[..]
            && hosts.kind == Kind::Hosts
        {
            let (place, what) = self.words_of(hosts);
            let zone = key::written(name);
            let why = format!(
                "names in {zone} that the file lacks do not exist: CoreDNS answers SERVFAIL"
            );
            self.leave_at(&place, Differs, what, why);
        }
        let file = region.pieces.iter().find(|piece| piece.kind == Kind::File);
        let Some(file) = file.cloned() else {
            let mut pieces = region.pieces.clone();
            if let Some(whoami) =
                pieces.pop_if(|it| it.kind == Kind::Whoami && region.pieces.len() > 1)
            {
                let (place, what) = self.words_of(&whoami);
                let why = "names that the hosts file lacks do not exist";
                self.leave_at(&place, Lost, what, why);
                return pieces;
            }
            return region.pieces.clone();
        };
        if let Some(hosts) = region.pieces.iter().find(|piece| piece.kind == Kind::Hosts) {
            let (place, what) = self.words_of(hosts);
            let why = format!("names in {} come from its zone file only", key::written(name));
            self.leave_at(&place, Differs, what, why);
        }
        vec![file]
    }

    /// Leaves a name that no source has out of the zones around it.
    fn leave_out(&mut self, name: &Name, emitted: &BTreeMap<Vec<u8>, usize>) {
        let around: Vec<usize> =
            ancestors(name).filter_map(|above| emitted.get(above.as_wire()).copied()).collect();
        for at in around {
            let Some(entry) = self.zones.get_mut(at) else { continue };
            if entry.pieces.last().is_some_and(|it| matches!(it.kind, Kind::Forward | Kind::Whoami))
            {
                entry.except.push(name.clone());
                continue;
            }
            let around = key::written(&entry.name);
            let block = self.owner(name).and_then(|number| self.blocks.get(number));
            let key = block.and_then(|block| block.keys.first()).map(|it| it.token.place.clone());
            if let Some(place) = key {
                let why = format!("no plugin of the block has it: the zone {around} answers");
                self.leave_at(&place, Lost, key::written(name), why);
            }
        }
    }

    /// Returns the source of a piece.
    pub(super) fn source(&self, piece: &Piece) -> &Source {
        let block: &Block = &self.blocks[piece.block];
        &block.sources[piece.source]
    }

    /// Returns the place and the words of a piece's line.
    fn words_of(&self, piece: &Piece) -> (Place, String) {
        let source = self.source(piece);
        (source.place.clone(), source.what.clone())
    }

    /// Reports sources, and zones of theirs, that no query reaches.
    fn report_unreached(&mut self, regions: &HashMap<Name, Region>) {
        let pieces: Vec<&Piece> = regions.values().flat_map(|it| &it.pieces).collect();
        let mut reports = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let is_own = |zone: &Name| self.owners.get(zone) == Some(&number);
            if !block.keys.iter().flat_map(|key| &key.zones).all(is_own) {
                continue; // its zones are those of another block, which is reported
            }
            for (at, source) in block.sources.iter().enumerate() {
                let own = |piece: &&&Piece| piece.block == number && piece.source == at;
                let mut zones: BTreeSet<&[u8]> = BTreeSet::new();
                let mut count = 0;
                for piece in pieces.iter().filter(own) {
                    count += 1;
                    zones.insert(piece.zone.as_wire());
                }
                let has_apex = matches!(source.kind, Kind::File | Kind::Kubernetes);
                let missing = source.zones.iter().filter(|zone| !zones.contains(zone.as_wire()));
                let missing: Vec<String> =
                    missing.filter(|_| has_apex || count == 0).map(key::written).collect();
                if let Some(zone) = missing.first() {
                    let mut before = block.sources[..at].iter();
                    let (effect, why) = match before.find_map(|it| it.next.as_ref()) {
                        Some(next) => (Lost, format!("in CoreDNS, {next} leaves answers to it")),
                        None => (
                            Needless,
                            format!("no query for {zone} reaches it, in CoreDNS neither"),
                        ),
                    };
                    reports.push((source.place.clone(), source.what.clone(), effect, why));
                }
            }
        }
        for (place, what, effect, why) in reports {
            self.leave_at(&place, effect, what, why);
        }
    }

    /// Joins the zones of each cluster: its reverse zones are keys of the first.
    fn join_clusters(&mut self) {
        let zones = std::mem::take(&mut self.zones);
        let mut reverse: HashMap<SourceId, Vec<(Name, Vec<usize>)>> = HashMap::new();
        for entry in zones {
            let Some(piece) = entry.pieces.first().filter(|it| it.kind == Kind::Kubernetes) else {
                self.zones.push(entry);
                continue;
            };
            let id = (piece.block, piece.source);
            if key::is_reverse(&entry.name) {
                reverse.entry(id).or_default().push((entry.name, entry.access));
            } else {
                self.zones.push(entry);
            }
        }
        let mut reports = Vec::new();
        for entry in &mut self.zones {
            let Some(piece) = entry.pieces.first().filter(|it| it.kind == Kind::Kubernetes) else {
                continue;
            };
            for (name, access) in reverse.remove(&(piece.block, piece.source)).unwrap_or_default() {
                if access != entry.access {
                    let why = "the rules for clients are those of the cluster's first zone";
                    reports.push((piece.clone(), key::written(&name), why));
                }
                match key::network(&name) {
                    Some(_) => entry.reverse.push(name),
                    None => {
                        let why = "the reverse zones of a cluster are those of networks";
                        reports.push((piece.clone(), key::written(&name), why));
                    }
                }
            }
        }
        for (piece, name, why) in reports {
            let (place, _) = self.words_of(&piece);
            self.leave_at(&place, Lost, name, why);
        }
        let lost: Vec<SourceId> = reverse.into_keys().collect();
        for (block, source) in lost {
            let source = &self.blocks[block].sources[source];
            let (place, what) = (source.place.clone(), source.what.clone());
            let why = "the block has reverse zones of the cluster only";
            self.leave_at(&place, Lost, what, why);
        }
    }
}

/// Returns why a cluster cannot stand before the sources behind it.
fn cluster_trouble(region: &Region, parent: &Region) -> Option<&'static str> {
    let mut behind = region.pieces.iter().skip_while(|piece| piece.kind != Kind::Kubernetes);
    behind.next();
    let behind: Vec<&Piece> = behind.collect();
    if behind.is_empty() {
        return None;
    }
    // What falls through goes to the zone around, whose hosts file is then asked there.
    let around = parent.around_clusters();
    let upstreams = |all: &[&Piece]| -> Vec<Piece> {
        let others = all.iter().filter(|piece| piece.kind != Kind::Hosts);
        others.map(|piece| (*piece).clone()).collect()
    };
    match upstreams(&behind) == upstreams(&around) {
        true => None,
        false => Some(
            "names that the cluster lacks go to the zone around it, not to another plugin for the \
             same zone",
        ),
    }
}

/// Returns the names above a name, the nearest first.
fn ancestors(name: &Name) -> impl Iterator<Item = Name> {
    let mut wire = Some(name.as_wire().to_vec());
    std::iter::from_fn(move || {
        let above = zonda_wire::name::parent(wire.as_deref()?)?.to_vec();
        let name = Name::from_wire(&above).ok();
        wire = Some(above);
        name
    })
}
