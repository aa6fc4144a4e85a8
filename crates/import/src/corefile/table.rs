//! The table of zones that the server blocks of a listener make together.
//!
//! CoreDNS asks the sources of the block with the longest zone, one after the other; Zonda asks the
//! one source of the longest zone. At every name where the former can change (a zone of a block, a
//! source, an exception) the sources that CoreDNS would ask are worked out. Where they are not the
//! ones of the name above, Zonda gets a zone. Listeners with other zones have a table of their own.

use super::cluster_zones::cluster_trouble;
use super::source::{FallThrough, Kind, Source};
use super::{Block, Importer, key};
use crate::document::Effect::{Differs, Lost};
use crate::error::{ImportError, Place, Problem};
use crate::tree::fail;
use std::collections::{BTreeMap, HashMap};
use zonda_wire::Name;

/// Names of a table at which sources can change.
const NAMES_MAX: usize = 20_000;
/// Names of all tables at which sources can change, each as often as its table has listeners.
const LISTED_MAX: usize = 200_000;

/// The number of a block, and that of a source in it.
pub type SourceId = (usize, usize);

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
#[derive(Clone)]
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
    /// Line of the hosts file whose names come before those of the cluster.
    pub hosts_first: Option<Place>,
    /// Numbers of the views that it is in, in ascending order.
    pub views: Vec<usize>,
}

/// The table of a view, under way.
pub struct Table {
    /// Number of the view.
    pub view: usize,
    /// Zones, those with fewer labels first.
    pub entries: Vec<ZoneEntry>,
    /// Numbers of the entries by the names of their zones.
    numbers: BTreeMap<Vec<u8>, usize>,
    /// Clusters whose names come behind those of a hosts file, each with the line of that.
    pub hosts_first: BTreeMap<SourceId, Place>,
}

/// Names by their order: the number of labels, then their text.
type Names = BTreeMap<(usize, String), Name>;

/// What there is at the names of each block, found once for all views.
type Regions = HashMap<(usize, Name), Region>;

/// The sources and rules at a name.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Region {
    /// Sources that are asked, one after the other.
    pub pieces: Vec<Piece>,
    /// Rules about clients, each with its block.
    access: Vec<(usize, usize)>,
}

impl Region {
    /// Returns the sources without clusters that leave names to them.
    pub fn around_clusters(&self) -> Vec<&Piece> {
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
        let names = self.names_of_views()?;
        let mut known = Regions::new();
        for (view, names) in names.iter().enumerate() {
            let table = self.table(view, names, &mut known);
            self.add_table(table);
        }
        self.report_unreached();
        self.report_uncached();
        self.check_changes()?;
        self.check_transfers();
        self.check_options();
        self.check_special_names();
        self.check_whoami();
        self.join_views();
        Ok(())
    }

    /// Makes the table of a view.
    fn table(&mut self, view: usize, names: &[Name], known: &mut Regions) -> Table {
        let (numbers, hosts_first) = (BTreeMap::new(), BTreeMap::new());
        let mut table = Table { view, entries: Vec::new(), numbers, hosts_first };
        let mut regions: HashMap<&Name, Region> = HashMap::new();
        for name in names {
            let block = self.views.get(view).and_then(|view| view.owner(name));
            let region = block.map_or_else(Region::default, |block| {
                let region = known.entry((block, name.clone()));
                region.or_insert_with(|| self.region(block, name)).clone()
            });
            for piece in &region.pieces {
                let zones = self.reached.entry((piece.block, piece.source)).or_default();
                zones.insert(piece.zone.clone());
            }
            let parent = ancestors(name).find_map(|above| regions.get(&above)).cloned();
            let parent = parent.unwrap_or_default();
            if region != parent {
                self.zone_at(name, &region, &parent, &mut table);
            }
            regions.insert(name, region);
        }
        table
    }

    /// Returns the names of each view at which sources can change, shorter ones first.
    fn names_of_views(&self) -> Result<Vec<Vec<Name>>, ImportError> {
        let mut directories: HashMap<usize, usize> = HashMap::new();
        for directory in &self.directories {
            *directories.entry(directory.block).or_default() += 1;
        }
        let mut of_views = vec![Names::new(); self.views.len()];
        let mut listed = 0;
        for (block, views) in &self.block_views {
            let Some(it) = self.blocks.get(*block) else { continue };
            let Some(place) = it.keys.first().map(|key| &key.token.place) else { continue };
            let own = names(it)?;
            let more = directories.get(block).copied().unwrap_or_default();
            for view in views {
                let Some(all) = of_views.get_mut(*view) else { continue };
                let listeners = self.views.get(*view).map_or(0, |view| view.listeners.len());
                listed += (own.len() + more) * listeners;
                if self.views.len() > 1 && listed > LISTED_MAX {
                    let problem = Problem::TooMuch("names of zones at each address", LISTED_MAX);
                    return Err(fail(place.clone(), problem));
                }
                all.extend(own.iter().map(|(order, name)| (order.clone(), name.clone())));
                if all.len() > NAMES_MAX {
                    return Err(fail(place.clone(), Problem::TooMuch("names", NAMES_MAX)));
                }
            }
        }
        Ok(of_views.into_iter().map(|names| names.into_values().collect()).collect())
    }

    /// Returns the sources of a block that are asked for a name, one after the other.
    pub(super) fn pieces(&self, number: usize, name: &Name) -> Vec<Piece> {
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

    /// Returns the sources and the rules that a block has at a name.
    fn region(&self, number: usize, name: &Name) -> Region {
        let pieces = self.pieces(number, name);
        if pieces.is_empty() {
            return Region::default();
        }
        let rules = self.blocks.get(number).map_or(&[][..], |block| &block.access);
        let is_here = |zones: &[Name]| zones.iter().any(|zone| key::is_in(name, zone));
        let here = rules.iter().enumerate().filter(|(_, rule)| is_here(&rule.zones));
        let access = here.map(|(at, _)| (number, at)).collect();
        Region { pieces, access }
    }

    /// Adds the zone that makes a name have its sources, or reports that none does.
    fn zone_at(&mut self, name: &Name, region: &Region, parent: &Region, to: &mut Table) {
        if region.pieces.is_empty() {
            return self.leave_out(name, to);
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
                    self.put_hosts_first(cluster, hosts, parent, to);
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
        to.numbers.insert(name.as_wire().to_vec(), to.entries.len());
        to.entries.push(ZoneEntry {
            name: name.clone(),
            pieces: own,
            access,
            reverse: Vec::new(),
            except: Vec::new(),
            hosts_first: None,
            views: vec![to.view],
        });
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
    fn leave_out(&mut self, name: &Name, to: &mut Table) {
        let around: Vec<usize> =
            ancestors(name).filter_map(|above| to.numbers.get(above.as_wire()).copied()).collect();
        let owner = self.views.get(to.view).and_then(|view| view.owner(name));
        for at in around {
            let Some(entry) = to.entries.get_mut(at) else { continue };
            if entry.pieces.last().is_some_and(|it| matches!(it.kind, Kind::Forward | Kind::Whoami))
            {
                entry.except.push(name.clone());
                continue;
            }
            let around = key::written(&entry.name);
            let block = owner.and_then(|number| self.blocks.get(number));
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
    pub(super) fn words_of(&self, piece: &Piece) -> (Place, String) {
        let source = self.source(piece);
        (source.place.clone(), source.what.clone())
    }
}

/// Returns the names at which the sources of a block can change.
fn names(block: &Block) -> Result<Names, ImportError> {
    let mut names = Names::new();
    let mut add = |all: &[Name], place: &Place| {
        for name in all {
            names.insert((name.label_count(), name.to_string()), name.clone());
        }
        match names.len() > NAMES_MAX {
            true => Err(fail(place.clone(), Problem::TooMuch("names", NAMES_MAX))),
            false => Ok(()),
        }
    };
    for key in &block.keys {
        add(&key.zones, &key.token.place)?;
    }
    for source in &block.sources {
        add(&source.zones, &source.place)?;
        add(&source.except, &source.place)?;
        if let FallThrough::In(zones) = &source.fall_through {
            add(zones, &source.place)?;
        }
    }
    for rule in &block.access {
        add(&rule.zones, &rule.place)?;
    }
    Ok(names)
}

/// Returns the names above a name, the nearest first.
pub(super) fn ancestors(name: &Name) -> impl Iterator<Item = Name> {
    let mut wire = Some(name.as_wire().to_vec());
    std::iter::from_fn(move || {
        let above = zonda_wire::name::parent(wire.as_deref()?)?.to_vec();
        let name = Name::from_wire(&above).ok();
        wire = Some(above);
        name
    })
}
