//! Zones: those of the flags or the variables first, then those of the file.

use super::access::Lists;
use super::catalogs;
use super::hosts_terms::{hosts_terms, refuse_hosts_terms};
use super::keys::KeyList;
use super::pools::Pools;
use super::secondary_terms::LastSecondary;
use super::source::{FILE_SOURCES, FileSource, Writability, forward, hosts, kubernetes, store};
use super::zone_names::{Restriction, TakenNames, ZonePlace, check_listeners};
use super::{transfers, updates};
use crate::access::Access;
use crate::error::{CatalogMistake, Contradiction, Origin, Problem, SteerMistake};
use crate::keys::{
    CatalogPlace, ForwardKeys, KubernetesKeys, MembersKeys, STEER, SecondaryKeys, StoreKeys,
    ZoneKeys,
};
use crate::kubernetes::SnapshotPlace;
use crate::load::Layers;
use crate::reader::{RawValue, Reader, Session};
use crate::section::{Keys, Section};
use crate::toml::de::DeTable;
use crate::{Listener, SerialRule, Source, SteerRule, Zone, ZoneTerms};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use zonda_wire::Name;

/// Reads all zones. They must not leave `root` or, if it is unset, the directory of the file that
/// names them.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    (lists, pools, keys): (&mut Lists<'_>, &mut Pools, &KeyList),
    root: Option<PathBuf>,
    listeners: &[(Listener, Origin)],
) -> Vec<Zone> {
    let section = &ZoneKeys::SECTION;
    let working_directory = std::env::current_dir().unwrap_or_default();
    let listens_on = listeners.iter().map(|(listener, _)| listener.address).collect();
    let mut found = Zones {
        lists,
        pools,
        keys,
        listens_on,
        working_directory,
        taken: TakenNames::default(),
        place: ZonePlace::default(),
        restriction: Restriction::default(),
        snapshots: HashMap::new(),
        zones: Vec::new(),
        last_secondary: LastSecondary::default(),
        listed_in: Vec::new(),
    };
    let directory = session.source.map_or(Path::new(""), |source| source.directory());
    let file_root: Arc<Path> = found.absolute(root.as_deref().unwrap_or(directory)).into();
    for given in layers.elements(section) {
        let origin = given.origin.clone();
        let Some((name, path)) = given.text.split_once('=') else {
            refuse(session, &given);
            continue;
        };
        let root = match (&root, Path::new(path).parent()) {
            (None, Some(directory)) => found.absolute(directory).into(),
            _ => file_root.clone(),
        };
        let source = if is_json(path) { "json" } else { "file" };
        let by_user = |text| RawValue { text, origin: origin.clone() };
        let mut given = vec![("name", by_user(name)), (source, by_user(path))];
        if layers.flags.writable {
            let origin = Origin::Flag("--writable");
            given.push(("writable", RawValue { text: "true", origin }));
        }
        found.read(&mut Reader::new(session, section, None, given, origin), root, None);
    }
    for given in layers.stores() {
        let origin = given.origin.clone();
        let Some((name, url)) = given.text.split_once('=') else {
            refuse_store(session, &given);
            continue;
        };
        let by_user = |text| RawValue { text, origin: origin.clone() };
        let named = vec![("name", by_user(name))];
        let url = GivenKeys { section: &StoreKeys::SECTION, keys: vec![("url", by_user(url))] };
        let mut reader = Reader::new(session, section, None, named, origin);
        found.read(&mut reader, file_root.clone(), Some(url));
    }
    if let Some((origin, keys)) = layers.forward() {
        let given = vec![("name", RawValue { text: ".", origin: origin.clone() })];
        let to = GivenKeys { section: &ForwardKeys::SECTION, keys };
        let mut reader = Reader::new(session, section, None, given, origin);
        found.read(&mut reader, file_root.clone(), Some(to));
    }
    if let Some(name) = layers.kubernetes() {
        let origin = name.origin.clone();
        let given =
            CLUSTER_BY_FLAG.map(|(key, text)| (key, RawValue { text, origin: origin.clone() }));
        let given = GivenKeys { section: &KubernetesKeys::SECTION, keys: given.into() };
        let mut reader = Reader::new(session, section, None, vec![("name", name)], origin);
        found.read(&mut reader, file_root.clone(), Some(given));
    }
    for (table, origin) in layers.tables(section) {
        let mut reader = Reader::new(session, section, Some(table), Vec::new(), origin);
        found.read(&mut reader, file_root.clone(), None);
    }
    catalogs::refuse_not_made(session, &found.listed_in, &found.zones);
    found.zones
}

/// Adds the zones of a directory, if there is one, in which clients create and remove zones; the
/// list then takes no more memory than it needs.
pub(super) fn add_those_of_clients(zones: &mut Vec<Zone>, directory: Option<PathBuf>) {
    zones.extend(directory.map(of_clients));
    zones.shrink_to_fit();
}

/// Returns the zones of a directory in which clients create and remove zones.
fn of_clients(directory: PathBuf) -> Zone {
    let root = directory.as_path().into();
    let terms = ZoneTerms { writable: Some(SerialRule::Increment), ..ZoneTerms::new(root) };
    let (name, source) = (None, Source::Directory(directory));
    Zone { name, source, access: None, terms: terms.into() }
}

/// Whether a zone's file holds JSON.
fn is_json(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "json")
}

/// Reports a zone that was not given as NAME=FILE.
fn refuse(session: &mut Session<'_>, given: &RawValue<'_>) {
    let problem = Problem::Value {
        key: "zone".to_owned(),
        found: format!("\"{}\"", given.text),
        form: "NAME=FILE, such as \"example.com=example.com.zone\"".to_owned(),
    };
    session.fail(given.origin.clone(), problem);
}

/// Reports a zone that was not given as NAME=URL. The text may hold a password.
fn refuse_store(session: &mut Session<'_>, given: &RawValue<'_>) {
    let problem = Problem::Value {
        key: "store".to_owned(),
        found: "the value given".to_owned(),
        form: "NAME=URL, such as \"example.com=redis://127.0.0.1\"".to_owned(),
    };
    session.fail(given.origin.clone(), problem);
}

/// How a cluster is served that a flag names: as by CoreDNS's usual configuration, with the names
/// of addresses in private networks, which upstreams are asked for if the cluster lacks them.
const CLUSTER_BY_FLAG: [(&str, &str); 5] = [
    ("pods", "insecure"),
    ("reverse", "10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16, fc00::/7"),
    ("fall-through", "true"),
    ("fall-through-zones", "in-addr.arpa, ip6.arpa"),
    ("snapshot", "state-directory"),
];

/// Keys of a section nested in a zone's that were given outside of the file.
struct GivenKeys<'a> {
    /// The nested section.
    section: &'static Section,
    /// Keys of the section, with their values.
    keys: Vec<(&'static str, RawValue<'a>)>,
}

/// The keys given in a section nested in a zone's.
struct NestedSection<'a> {
    /// The file's table of the section, if there is one.
    table: Option<&'a DeTable<'a>>,
    /// The place of the section.
    origin: Origin,
    /// Values that were given outside of the file.
    given: Vec<(&'static str, RawValue<'a>)>,
}

impl<'a> NestedSection<'a> {
    /// Finds a section, if anything was given of it.
    fn find(
        section: &'static Section,
        reader: &Reader<'_, 'a>,
        given: Option<&GivenKeys<'a>>,
    ) -> Option<Self> {
        let given = given.filter(|given| given.section.name == section.name);
        let given: Vec<_> = given.map(|it| it.keys.clone()).unwrap_or_default();
        match reader.nested(section) {
            Some((table, origin)) => Some(Self { table: Some(table), origin, given }),
            None if given.is_empty() => None,
            None => Some(Self { table: None, origin: reader.origin_of("name"), given }),
        }
    }

    /// A reader of the section.
    fn reader<'n>(
        self,
        section: &'static Section,
        of_zone: &'n mut Reader<'_, 'a>,
    ) -> Reader<'n, 'a> {
        of_zone.nested_reader(section, (self.table, self.origin), self.given)
    }
}

/// The zones read so far, and what it takes to read another.
struct Zones<'l, 'k> {
    lists: &'l mut Lists<'k>,
    pools: &'l mut Pools,
    /// The keys that clients which zones are transferred to may have.
    keys: &'l KeyList,
    /// Addresses on which this server listens.
    listens_on: Vec<SocketAddr>,
    working_directory: PathBuf,
    /// The names of the zones read so far.
    taken: TakenNames,
    /// The place of the zone that is being read.
    place: ZonePlace,
    /// What restricts zones to listeners.
    restriction: Restriction,
    /// Zones of clusters by the files that they write, and the places where those were given.
    snapshots: HashMap<PathBuf, (Name, Origin)>,
    zones: Vec<Zone>,
    /// The terms of the zone of primaries that was read last, which the next may share.
    last_secondary: LastSecondary,
    /// Catalogs that list zones, and the places where those say so.
    listed_in: Vec<(Name, Origin)>,
}

impl Zones<'_, '_> {
    /// Reads a zone whose files must stay below `root`; `given` was given outside of the file.
    fn read<'a>(
        &mut self,
        reader: &mut Reader<'_, 'a>,
        root: Arc<Path>,
        given: Option<GivenKeys<'a>>,
    ) {
        let Some(mut keys) = ZoneKeys::read(reader) else { return };
        let listeners = std::mem::take(&mut keys.listen);
        check_listeners(reader, &listeners, &self.listens_on);
        self.place.listeners.clone_from(&listeners);
        let before = self.zones.len();
        self.read_source((reader, keys), root, given);
        for zone in self.zones.iter_mut().skip(before) {
            zone.access = self.restriction.restrict(zone.access.take(), listeners.clone());
        }
    }

    /// Reads the source of a zone, of which the other keys were read.
    fn read_source<'a>(
        &mut self,
        (reader, keys): (&mut Reader<'_, 'a>, ZoneKeys),
        root: Arc<Path>,
        given: Option<GivenKeys<'a>>,
    ) {
        let nested = |section| NestedSection::find(section, reader, given.as_ref());
        let forward = nested(&ForwardKeys::SECTION);
        let store = nested(&StoreKeys::SECTION);
        let cluster = nested(&KubernetesKeys::SECTION);
        let secondary = nested(&SecondaryKeys::SECTION);
        let members = nested(&MembersKeys::SECTION);
        let is_forwarded = forward.is_some();
        refuse_hosts_terms(reader, &keys);
        self.place.has_data = !is_forwarded || keys.hosts.is_some();
        let given: Vec<&FileSource> =
            FILE_SOURCES.iter().filter(|source| (source.path)(&keys).is_some()).collect();
        // A hosts file lies in front of a forwarded zone; every other source excludes it.
        let is_overlay = |source: &&FileSource| is_forwarded && source.key == hosts::SOURCE.key;
        let files = given.iter().copied().filter(|source| !is_overlay(source)).count();
        let nested = [&forward, &store, &cluster, &secondary, &members].map(Option::is_some);
        let sources = files + nested.into_iter().filter(|is_given| *is_given).count();
        if sources > 1 {
            reader.contradict(None, Contradiction::SourceCount(sources));
        }
        if let (Some(members), true) = (members, sources == 1) {
            return self.read_members(reader, keys, root, members);
        }
        match (forward, store, cluster, secondary) {
            (Some(it), ..) => return self.read_forward(reader, keys, root, it),
            (None, Some(it), ..) => return self.read_store(reader, keys, root, it),
            (None, None, Some(it), _) => return self.read_cluster(reader, keys, root, it),
            (None, None, None, Some(it)) => return self.read_secondary(reader, keys, root, it),
            (None, None, None, None) if sources > 1 => return,
            (None, None, None, None) => {}
        }
        match given[..] {
            [source] => self.read_file(reader, keys, root, source),
            _ => reader.contradict(None, Contradiction::SourceCount(sources)),
        }
    }

    /// Adds a zone, which shares its terms with the last one where they are the same.
    fn add(
        &mut self,
        (name, source): (Option<Name>, Source),
        access: Option<Arc<Access>>,
        terms: ZoneTerms,
    ) {
        let last = self.zones.last().map(|last| &last.terms).filter(|last| ***last == terms);
        let terms = last.map_or_else(|| Arc::new(terms), Arc::clone);
        self.zones.push(Zone { name, source, access, terms });
    }

    /// Reads a zone from a file or a directory.
    fn read_file(
        &mut self,
        reader: &mut Reader<'_, '_>,
        keys: ZoneKeys,
        root: Arc<Path>,
        source: &FileSource,
    ) {
        if let Some(mistake) = source.name.mistake(keys.name.is_some()) {
            let key = keys.name.is_some().then_some("name");
            return reader.contradict(key, mistake);
        }
        let terms = hosts_terms(&keys);
        let Some(path) = (source.path)(&keys).cloned() else { return };
        if !source.may_lie_anywhere && !self.absolute(&path).starts_with(&root) {
            let outside = Contradiction::OutsideRoot(path.clone(), root.to_path_buf());
            reader.contradict(Some(source.key), outside);
        }
        let can_be_written = match source.writable {
            Writability::Always => true,
            Writability::WithName => keys.name.is_some(),
            Writability::Never => false,
        };
        if keys.writable && !can_be_written {
            reader.contradict(Some("writable"), Contradiction::NotWritable(source.key));
        }
        let access = self.lists.resolve(reader, keys.access);
        let access = if source.key == "hosts" {
            let access = transfers::refuse(reader, ("hosts", keys.alias_transfer), access);
            self.refuse_catalog(reader, "hosts", access)
        } else {
            let aliases = keys.alias_transfer;
            let access = transfers::with_transfers(self.keys, reader, aliases, access);
            self.listed(reader, keys.catalog, access)
        };
        let access = match can_be_written {
            true => updates::with_updates(self.keys, reader, keys.name.as_ref(), access),
            false => {
                updates::refuse(reader, source.key);
                access
            }
        };
        let has_updates = access.as_ref().is_some_and(|access| !access.updates.is_empty());
        let writable = (keys.writable || has_updates).then_some(keys.serial);
        let is_new = keys.name.as_ref().is_none_or(|name| self.take(reader, name.to_lowercase()));
        let steer = match (&keys.name, source.key) {
            (Some(name), "file" | "json") => self.pools.rules(reader, name),
            _ => self.refuse_steering(reader, source.key),
        };
        if is_new {
            let (name, source) = (keys.name, (source.make)(path));
            let hosts_terms = terms;
            let terms = ZoneTerms { hosts_terms, writable, steer, ..ZoneTerms::new(root) };
            self.add((name, source), access, terms);
        }
    }

    /// Reads a forwarded zone.
    fn read_forward<'a>(
        &mut self,
        reader: &mut Reader<'_, 'a>,
        keys: ZoneKeys,
        root: Arc<Path>,
        nested: NestedSection<'a>,
    ) {
        if keys.name.is_none() {
            reader.contradict(None, Contradiction::ForwardWithoutName);
        }
        let terms = hosts_terms(&keys);
        if keys.writable {
            reader.contradict(Some("writable"), Contradiction::NotWritable("forward"));
        }
        let private = keys.access.is_empty().then(Access::of_private_networks);
        let access = match private {
            Some(private) => Some(Arc::new(private)),
            None => self.lists.resolve(reader, keys.access),
        };
        let access = transfers::refuse(reader, ("forward", keys.alias_transfer), access);
        let access = self.refuse_catalog(reader, "forward", access);
        updates::refuse(reader, "forward");
        let is_new = keys.name.as_ref().is_some_and(|name| self.take(reader, name.to_lowercase()));
        let steer = self.refuse_steering(reader, "forward");
        // From one listener to another one, which forwards to other servers.
        let listens_on = match &self.place.listeners[..] {
            [] => &self.listens_on[..],
            listeners => listeners,
        };
        let mut reader = nested.reader(&ForwardKeys::SECTION, reader);
        let forward = forward::read(&mut reader, keys.name.as_ref(), listens_on);
        if let (Some(name), Some(forward), true) = (keys.name, forward, is_new) {
            let (name, source) = (Some(name.to_lowercase()), Source::Forward(Arc::new(forward)));
            let (hosts, hosts_terms) = (keys.hosts, terms);
            let terms = ZoneTerms { hosts, hosts_terms, steer, ..ZoneTerms::new(root) };
            self.add((name, source), access, terms);
        }
    }

    /// Reads a zone whose records are in a database.
    fn read_store<'a>(
        &mut self,
        reader: &mut Reader<'_, 'a>,
        mut keys: ZoneKeys,
        root: Arc<Path>,
        nested: NestedSection<'a>,
    ) {
        if keys.name.is_none() {
            reader.contradict(None, Contradiction::StoreWithoutName);
        }
        let (access, is_new) = self.read_terms((&mut *reader, "store"), &mut keys);
        let access = self.listed(reader, keys.catalog, access);
        let store = store::read(&mut nested.reader(&StoreKeys::SECTION, reader));
        let steer = match &keys.name {
            Some(name) => self.pools.rules(reader, name),
            None => Vec::new(), // it is refused
        };
        if let (Some(name), Some(store), true) = (keys.name, store, is_new) {
            let (name, source) = (Some(name.to_lowercase()), Source::Store(Arc::new(store)));
            self.add((name, source), access, ZoneTerms { steer, ..ZoneTerms::new(root) });
        }
    }

    /// Reads a zone that is transferred from primaries.
    fn read_secondary<'a>(
        &mut self,
        reader: &mut Reader<'_, 'a>,
        mut keys: ZoneKeys,
        root: Arc<Path>,
        nested: NestedSection<'a>,
    ) {
        if keys.name.is_none() {
            reader.contradict(None, Contradiction::SecondaryWithoutName);
        }
        let (access, is_new) = self.read_terms((&mut *reader, "secondary"), &mut keys);
        let access = self.listed(reader, keys.catalog, access);
        let mut nested_reader = nested.reader(&SecondaryKeys::SECTION, reader);
        let secondary = self.keys.secondary(&mut nested_reader, &self.listens_on);
        let steer = match &keys.name {
            Some(name) => self.pools.rules(reader, name),
            None => Vec::new(), // it is refused
        };
        if let (Some(name), Some(secondary), true) = (keys.name, secondary, is_new) {
            let terms = self.last_secondary.terms(access, secondary);
            let (access, source) = (Some(terms.access), Source::Secondary(terms.keys));
            let name = Some(name.to_lowercase());
            self.add((name, source), access, ZoneTerms { steer, ..ZoneTerms::new(root) });
        }
    }

    /// Reads a zone whose names are those of a cluster.
    fn read_cluster<'a>(
        &mut self,
        reader: &mut Reader<'_, 'a>,
        mut keys: ZoneKeys,
        root: Arc<Path>,
        nested: NestedSection<'a>,
    ) {
        if keys.name.is_none() {
            reader.contradict(None, Contradiction::ClusterWithoutName);
        }
        let (access, is_new) = self.read_terms((&mut *reader, "kubernetes"), &mut keys);
        let access = self.refuse_catalog(reader, "kubernetes", access);
        let steer = self.refuse_steering(reader, "kubernetes");
        let mut cluster_reader = nested.reader(&KubernetesKeys::SECTION, reader);
        let cluster = kubernetes::read(&mut cluster_reader, keys.name.as_ref());
        if let (Some(name), Some(cluster), true) = (&keys.name, &cluster, is_new) {
            self.take_snapshot(&mut cluster_reader, name, cluster);
        }
        if let (Some(name), Some(cluster), true) = (keys.name, cluster, is_new) {
            for reverse in cluster.reverse_zones() {
                self.take(reader, reverse);
            }
            let (name, source) = (Some(name.to_lowercase()), Source::Kubernetes(Arc::new(cluster)));
            self.add((name, source), access, ZoneTerms { steer, ..ZoneTerms::new(root) });
        }
    }

    /// Reads a catalog that the server makes.
    fn read_members<'a>(
        &mut self,
        reader: &mut Reader<'_, 'a>,
        mut keys: ZoneKeys,
        root: Arc<Path>,
        nested: NestedSection<'a>,
    ) {
        if keys.name.is_none() {
            reader.contradict(None, Contradiction::ZoneWithoutName);
        }
        let (access, is_new) = self.read_terms((&mut *reader, "members"), &mut keys);
        let access = self.refuse_catalog(reader, "members", access);
        let steer = self.refuse_steering(reader, "members");
        let members = MembersKeys::read(&mut nested.reader(&MembersKeys::SECTION, reader));
        if let (Some(name), Some(members), true) = (keys.name, members, is_new) {
            let (name, source) = (Some(name.to_lowercase()), Source::Members(members.into()));
            self.add((name, source), access, ZoneTerms { steer, ..ZoneTerms::new(root) });
        }
    }

    /// Reads what a zone without files says besides its source, which this key names: its access
    /// list, and whether its name is new. Reports what such a zone cannot have.
    fn read_terms(
        &mut self,
        (reader, key): (&mut Reader<'_, '_>, &'static str),
        keys: &mut ZoneKeys,
    ) -> (Option<Arc<Access>>, bool) {
        if keys.writable {
            reader.contradict(Some("writable"), Contradiction::NotWritable(key));
        }
        updates::refuse(reader, key);
        let access = self.lists.resolve(reader, std::mem::take(&mut keys.access));
        if matches!(key, "kubernetes" | "members") {
            transfers::refuse_aliases(reader, key, keys.alias_transfer);
        }
        let access = transfers::with_transfers(self.keys, reader, keys.alias_transfer, access);
        let name = keys.name.as_ref().map(Name::to_lowercase);
        (access, name.is_some_and(|name| self.take(reader, name)))
    }

    /// Adds to the access list of a zone the catalog that lists it.
    fn listed(
        &mut self,
        reader: &mut Reader<'_, '_>,
        catalog: Option<CatalogPlace>,
        access: Option<Arc<Access>>,
    ) -> Option<Arc<Access>> {
        let Some(catalog) = catalog else { return access };
        self.listed_in.push((catalog.catalog.clone(), reader.origin_of("catalog")));
        let mut access = access.map_or_else(Access::open, |access| (*access).clone());
        access.transfers.catalog = Some(catalog);
        Some(Arc::new(access))
    }

    /// Reports a catalog that lists a zone with this key; returns its access list.
    fn refuse_catalog(
        &self,
        reader: &mut Reader<'_, '_>,
        key: &'static str,
        access: Option<Arc<Access>>,
    ) -> Option<Arc<Access>> {
        if reader.is_set("catalog") {
            let mistake = Contradiction::Catalog(CatalogMistake::Source(key));
            reader.contradict(Some("catalog"), mistake);
        }
        access
    }

    /// Reports names that are steered in a zone with this key, which has no data or no name.
    fn refuse_steering(&self, reader: &mut Reader<'_, '_>, key: &'static str) -> Vec<SteerRule> {
        if reader.nested(&STEER).is_some() {
            let mistake = SteerMistake::Zone(key);
            reader.contradict(Some("steer"), Contradiction::Pool(mistake.into()));
        }
        Vec::new()
    }

    /// Notes that a zone has this name; false if one that was given outside of the file takes its
    /// place.
    fn take(&mut self, reader: &mut Reader<'_, '_>, name: Name) -> bool {
        self.taken.take(reader, name, &self.place)
    }

    /// Notes that a zone writes its snapshot file. One that another zone writes is reported.
    fn take_snapshot(
        &mut self,
        reader: &mut Reader<'_, '_>,
        name: &Name,
        cluster: &KubernetesKeys,
    ) {
        let Some(SnapshotPlace::File(file)) = &cluster.snapshot else { return };
        let own = (name.clone(), reader.origin_of("snapshot"));
        match self.snapshots.entry(self.absolute(file)) {
            Entry::Vacant(entry) => _ = entry.insert(own),
            Entry::Occupied(first) => {
                let (name, origin) = first.get().clone();
                reader.contradict(Some("snapshot"), Contradiction::SnapshotTwice(name, origin));
            }
        }
    }

    /// Returns the path from `/`, its `.` and `..` resolved without asking the file system.
    fn absolute(&self, path: &Path) -> PathBuf {
        let mut clean = PathBuf::new();
        for component in self.working_directory.join(path).components() {
            match component {
                Component::ParentDir => _ = clean.pop(),
                component => clean.push(component),
            }
        }
        clean
    }
}
