//! The zones of a server, and which of them holds a name.
//!
//! # Invariants
//! - A table never changes; a change makes another that shares what stayed the same
//!   ([`name_table`](crate::name_table)), whatever the number of zones.
//! - No two entries have the same version, so that an answer is known by it to be an entry's; nor
//!   does a service of a cluster, whose version stays while other services change.

use crate::access::{Access, AccessList};
use crate::name_table::{CopiedOctets, NameTable, NameTableOwner, NamedValue};
use crate::reason::Reason;
use crate::transfer::ZoneHistory;
use crate::upstream_options::{ClientFacts, UpstreamOptions};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use zonda_cache::Cache;
use zonda_cluster::Cluster;
use zonda_wire::query::flag;
use zonda_wire::tsig::QuerySignature;
use zonda_wire::{Class, Name, Query, Type};
use zonda_zone::records::TooManyRecords;
use zonda_zone::{BuildError, HashSeed, LookupName, Record, Records, Zone, build};

/// A zone is a name and a source of answers.
pub struct ZoneEntry {
    /// The apex in lower case.
    pub apex: Name,
    /// The source of the zone's answers.
    pub source: Source,
    /// The clients that may ask; all of them when there is no list.
    pub access: Option<Arc<AccessList>>,
    /// A number of its own, under which its queries are counted.
    pub number: u32,
    /// What told the last versions of the zone apart, as far as that is kept for transfers.
    pub history: Option<Arc<ZoneHistory>>,
    /// When the zone expires, if it is transferred from primaries.
    pub expiry: Option<Arc<ZoneExpiry>>,
    /// Whether names in front of the forwarded zone around this one are answered while this one has
    /// no data; a cluster's own names say it once they are known.
    pub hosts_first: bool,
    /// The version of the entry, which no other has: what was answered from it is valid no longer.
    version: u64,
}

/// The moment at which a zone that is transferred from primaries expires, seconds since 1970. It
/// moves while the zone stays the same, whenever that is in step with a primary; 0 while it is not
/// known, as of records that come from elsewhere, until what follows the primaries has them expire.
#[derive(Debug, Default)]
pub struct ZoneExpiry(AtomicU64);

impl ZoneExpiry {
    /// Notes that the zone expires at a moment, seconds since 1970.
    pub fn set(&self, unix_secs: u64) {
        self.0.store(unix_secs, Relaxed);
    }

    /// Returns the seconds that are left at a moment, seconds since 1970; none while the moment at
    /// which the zone expires is not known.
    fn left(&self, unix_secs: u32) -> Option<u32> {
        let moment = Some(self.0.load(Relaxed)).filter(|moment| *moment != 0)?;
        Some(u32::try_from(moment.saturating_sub(unix_secs.into())).unwrap_or(u32::MAX))
    }
}

impl NamedValue for ZoneEntry {
    fn name(&self) -> &Name {
        &self.apex
    }
}

impl ZoneEntry {
    /// An entry of a new version, of the zone with this apex in lower case.
    #[must_use]
    pub fn new(apex: Name, source: Source, access: Option<Arc<AccessList>>, number: u32) -> Self {
        /// The version that was given out last.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let version = LAST.fetch_add(1, Relaxed) + 1;
        let (history, expiry, hosts_first) = (None, None, false);
        Self { apex, source, access, number, history, expiry, hosts_first, version }
    }

    /// The same entry with what told the last versions of the zone apart.
    #[must_use]
    pub fn with_history(self, history: Option<Arc<ZoneHistory>>) -> Self {
        Self { history, ..self }
    }

    /// The same entry with the moment at which the zone expires.
    #[must_use]
    pub fn with_expiry(self, expiry: Option<Arc<ZoneExpiry>>) -> Self {
        Self { expiry, ..self }
    }

    /// The same entry with whether names in front of the forwarded zone around it are answered
    /// while it has no data.
    #[must_use]
    pub fn with_hosts_first(self, hosts_first: bool) -> Self {
        Self { hosts_first, ..self }
    }

    /// Returns the seconds until the zone expires at a server that has it from this one: those that
    /// are left here, or all that the SOA record says if the zone has no primary (rfc7314#3.2).
    /// None if there is no SOA record, or no primary was heard yet. The moment is in seconds since
    /// 1970.
    #[must_use]
    pub fn expire_secs(&self, unix_secs: u32) -> Option<u32> {
        if let Some(expiry) = &self.expiry {
            return expiry.left(unix_secs);
        }
        let zone = match &self.source {
            Source::Data(zone) => zone,
            Source::Local(local) => &local.zone,
            Source::Cluster(cluster) => &cluster.data,
            Source::Forward(_) | Source::Excepted | Source::Unavailable(_) => return None,
        };
        let numbers: &[u8; 8] = zone.soa().0.first().last_chunk()?; // EXPIRE and MINIMUM
        numbers.first_chunk().copied().map(u32::from_be_bytes)
    }

    /// The addresses of the listeners that the zone is at, if it is not at all of them.
    #[must_use]
    pub fn listeners(&self) -> Option<&[SocketAddr]> {
        self.access.as_ref()?.listeners.as_deref()
    }

    /// The version of the entry, which no other has.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the version of what answers a name: that of the entry or, in a cluster, of the
    /// service that the name or a denial of it depends on. None if it has none of its own.
    #[inline]
    #[must_use]
    pub fn version_of(&self, name: &LookupName, is_denial: bool) -> Option<u64> {
        match &self.source {
            Source::Cluster(zone) => zone.version_of(name, is_denial),
            _ => Some(self.version),
        }
    }

    /// Whether upstreams answer for the zone.
    fn is_forward(&self) -> bool {
        matches!(self.source, Source::Forward(_))
    }

    /// Whether a client at an address may ask for records of a type that the zone holds, whose
    /// message has this signature, if any.
    #[must_use]
    pub fn allows(
        &self,
        client: IpAddr,
        signature: Option<&QuerySignature>,
        qtype: Option<Type>,
    ) -> bool {
        let check = |list: &AccessList| list.check(client, signature, qtype);
        self.access.as_deref().is_none_or(|list| check(list) == Access::Allow)
    }
}

/// The source of a zone's answers.
pub enum Source {
    /// Data of this server.
    Data(Arc<Zone>),
    /// Upstreams, which are asked for the answers.
    Forward(Arc<Forward>),
    /// Data of this server, also where a zone around it is forwarded.
    Local(Arc<Local>),
    /// The objects of a Kubernetes cluster.
    Cluster(Arc<ClusterZone>),
    /// No source: the names are kept from being forwarded, and no other zone holds them.
    Excepted,
    /// No data: they could not be loaded, or have expired, so that every answer is SERVFAIL for
    /// this reason.
    Unavailable(Reason),
}

/// The upstreams of a forwarded zone, as the answer path sees them.
pub struct Forward {
    /// Number of this group of upstreams; no other group has it, in former snapshots either.
    pub number: u32,
    /// The answer cache, which forwarded zones may share.
    pub cache: Arc<Cache>,
    /// The options of queries to the upstreams, if these tell something of the client.
    pub options: Option<Arc<UpstreamOptions>>,
    /// Whether nothing is asked for below a name that is known not to exist (rfc8020).
    pub nxdomain_cut: bool,
    /// Names for which no upstream is asked; the first overlay that has a name answers.
    pub overlays: Vec<Overlay>,
}

/// A zone with data inside one that is forwarded.
pub struct Local {
    /// The data of the zone.
    pub zone: Arc<Zone>,
    /// Overlays in front of the data; the first that has a name answers.
    pub overlays: Vec<Overlay>,
}

/// A zone whose names are those of a cluster.
pub struct ClusterZone {
    /// The data of the apex, and of services that are aliases.
    pub data: Arc<Zone>,
    /// The objects of the cluster.
    pub cluster: Cluster,
    /// Which names the zone has.
    pub names: ClusterNames,
    /// Whether a name that the cluster lacks is answered by the zone around this one, if there is
    /// one.
    pub falls_through: bool,
    /// Whether names in front of the forwarded zone around this one, such as those of a hosts file,
    /// are in front of this one too.
    pub hosts_first: bool,
    /// Whether the objects are those of a former time, so that a name that they lack may exist: it
    /// is SERVFAIL.
    pub is_stale: bool,
}

impl ClusterZone {
    /// Returns the version of what a name of a service answers; none while the objects are those of
    /// a former time, or names of another zone are in front of them.
    #[inline]
    #[must_use]
    pub fn version_of(&self, name: &LookupName, is_denial: bool) -> Option<u64> {
        let is_versioned =
            self.names == ClusterNames::Services && !self.is_stale && !self.hosts_first;
        is_versioned.then(|| self.cluster.version_of(name, is_denial)).flatten()
    }

    /// Returns the zone with all its names as records, to transfer it. It takes the time and the
    /// memory of a zone that is loaded.
    ///
    /// # Errors
    /// When there are more records than a zone can have.
    pub fn whole(&self) -> Result<Zone, BuildError> {
        let too_many = |_: TooManyRecords| BuildError::TooLarge;
        let mut records = Records::default();
        for record in self.data.records() {
            records.push(record.as_record(), 0).map_err(too_many)?;
        }
        let apex = Name::from_wire(self.data.apex()).map_err(|_| BuildError::NoSoa)?;
        let mut add = |record: Record<'_>| records.push(record, 0);
        match self.names {
            ClusterNames::Services => self.cluster.each_record(&mut add),
            ClusterNames::Addresses => self.cluster.each_pointer_record(&apex, &mut add),
        }
        .map_err(too_many)?;
        build(&apex, &records, self.cluster.seed())
    }
}

/// Which names of a cluster a zone has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterNames {
    /// The names of services, endpoints and pods.
    Services,
    /// The names of addresses, below `in-addr.arpa` or `ip6.arpa`.
    Addresses,
}

/// Single names with data in front of a zone.
#[derive(Clone)]
pub struct Overlay {
    /// The zone that holds the names. Names without records of their own, and its SOA record, do
    /// not count.
    pub zone: Arc<Zone>,
    /// The reason that queries for the names are counted by; [`Reason::Answered`] for whatever the
    /// data say.
    pub reason: Reason,
}

impl Forward {
    /// Under which a question's answer is kept that depends on what upstreams are told of the
    /// client.
    #[inline]
    #[must_use]
    pub fn cache_key<'n>(
        &self,
        query: &Query,
        name: &'n LookupName,
        facts: &'n ClientFacts,
    ) -> zonda_cache::Key<'n> {
        zonda_cache::Key {
            name: name.as_wire(),
            hash: name.hash(0),
            qtype: query.qtype,
            qclass: query.qclass,
            source: self.number,
            dnssec_ok: query.dnssec_ok(),
            checking_disabled: query.flags & flag::CD != 0,
            variant: facts.variant(),
        }
    }

    /// Under which addresses that an ALIAS record leads to are kept, which are asked for in one
    /// form, whatever the client's query has.
    #[must_use]
    pub fn address_key<'n>(&self, qtype: Type, name: &'n LookupName) -> zonda_cache::Key<'n> {
        zonda_cache::Key {
            name: name.as_wire(),
            hash: name.hash(0),
            qtype,
            qclass: Class::IN,
            source: self.number,
            dnssec_ok: false,
            checking_disabled: false,
            variant: zonda_cache::Variant::default(),
        }
    }
}

/// All zones, found by the longest matching suffix of a name.
#[derive(Clone)]
pub struct ZoneTable {
    entries: NameTable<ZoneEntry>,
    /// The numbers of labels that apexes have, the largest first; without the root's, which is 0.
    depths: Box<[u8]>,
    /// The zone that holds all names, if there is one.
    root: Option<u32>,
    /// Whether aliases may lead to names that upstreams are asked for: any of the zones is
    /// forwarded, or targets of ALIAS records are looked up otherwise.
    has_forwards: bool,
}

/// Most labels of a name, that of the root included.
const LABELS: usize = 128;

/// The one owner of a table of zones, which makes its versions.
pub struct ZoneTableOwner {
    entries: NameTableOwner<ZoneEntry>,
    /// The number of zones by the number of labels of their apexes.
    depths: [u32; LABELS],
    /// The number of zones that upstreams answer for.
    forwards: u32,
    /// Whether upstreams are configured for the targets of ALIAS records.
    has_alias_resolver: bool,
}

impl ZoneTableOwner {
    /// A table without zones, whose names are hashed with `seed`.
    #[must_use]
    pub fn new(seed: HashSeed) -> Self {
        Self {
            entries: NameTableOwner::new(seed),
            depths: [0; LABELS],
            forwards: 0,
            has_alias_resolver: false,
        }
    }

    /// Notes whether upstreams are configured for the targets of ALIAS records.
    pub fn set_alias_resolver(&mut self, is_there: bool) {
        self.has_alias_resolver = is_there;
    }

    /// Puts a zone in place of the one of its name, if there is one; returns that.
    pub fn put(&mut self, entry: Arc<ZoneEntry>) -> Option<Arc<ZoneEntry>> {
        self.depths[entry.apex.label_count()] += 1;
        self.forwards += u32::from(entry.is_forward());
        let former = self.entries.put(entry);
        former.inspect(|it| self.discount(it))
    }

    /// Removes a zone and returns it.
    pub fn remove(&mut self, apex: &Name) -> Option<Arc<ZoneEntry>> {
        self.entries.remove(apex).inspect(|it| self.discount(it))
    }

    /// Notes that an entry is in the table no longer.
    fn discount(&mut self, entry: &ZoneEntry) {
        self.depths[entry.apex.label_count()] -= 1;
        self.forwards -= u32::from(entry.is_forward());
    }

    /// The entry of the zone with exactly this name in wire form.
    #[must_use]
    pub fn get(&self, apex: &[u8]) -> Option<&Arc<ZoneEntry>> {
        let table = self.entries.table();
        let name = LookupName::new(apex, table.seed());
        table.find(name.hash(0), name.as_wire()).map(|index| table.get(index))
    }

    /// The present version, which is shared with this owner until the next change.
    #[must_use]
    pub fn table(&self) -> ZoneTable {
        let depths = (1..LABELS as u8).rev().filter(|depth| self.depths[usize::from(*depth)] > 0);
        ZoneTable {
            entries: self.entries.table().clone(),
            depths: depths.collect(),
            root: (self.depths[0] > 0)
                .then(|| self.entries.table().index_of(&Name::root()))
                .flatten(),
            has_forwards: self.forwards > 0 || self.has_alias_resolver,
        }
    }

    /// The octets that all changes have copied so far.
    #[must_use]
    pub fn copied(&self) -> CopiedOctets {
        self.entries.copied()
    }
}

/// A zone found for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneMatch {
    /// The zone's index in its table.
    pub index: u32,
    /// Number of labels of the zone's apex.
    pub labels: u8,
}

impl ZoneTable {
    /// A table of `entries`, whose names must differ.
    #[must_use]
    pub fn new(entries: Vec<Arc<ZoneEntry>>, seed: HashSeed) -> Self {
        let mut owner = ZoneTableOwner::new(seed);
        entries.into_iter().for_each(|entry| drop(owner.put(entry)));
        owner.table()
    }

    /// The seed that names looked up here must be hashed with.
    #[inline]
    #[must_use]
    pub fn seed(&self) -> HashSeed {
        self.entries.seed()
    }

    /// Whether aliases may lead to names that upstreams are asked for.
    #[inline]
    #[must_use]
    pub fn has_forwards(&self) -> bool {
        self.has_forwards
    }

    /// The zone at an index.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> &Arc<ZoneEntry> {
        self.entries.get(index)
    }

    /// Finds the zone whose apex a name is.
    #[must_use]
    pub fn with_apex(&self, name: &LookupName) -> Option<&Arc<ZoneEntry>> {
        let found = self.find(name, name.label_count()).map(|found| self.get(found.index));
        found.filter(|zone| zone.apex.as_wire() == name.as_wire())
    }

    /// The zone through which any name can be looked up: that of the root, if it is forwarded.
    #[inline]
    #[must_use]
    pub fn recursion(&self) -> Option<&ZoneEntry> {
        let entry = self.get(self.root?);
        matches!(entry.source, Source::Forward(_)).then_some(entry)
    }

    /// All zones, by index.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ZoneEntry>> {
        self.entries.iter()
    }

    /// The index of the zone with exactly this name.
    #[must_use]
    pub fn index_of(&self, apex: &Name) -> Option<u32> {
        self.entries.index_of(apex)
    }

    /// The zone that holds `name`: the one with the longest matching apex of at most `labels_max`
    /// labels.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &LookupName, labels_max: usize) -> Option<ZoneMatch> {
        for &labels in &self.depths {
            if usize::from(labels) <= labels_max
                && let Some(index) = self.at(name, labels.into())
            {
                return Some(ZoneMatch { index, labels });
            }
        }
        self.root.map(|index| ZoneMatch { index, labels: 0 })
    }

    /// The zone that answers a question for `name`. DS records lie above the cut (rfc4035#3.1.4.1),
    /// so at an apex they are the parent's, if this server has it.
    #[inline]
    #[must_use]
    pub fn find_answering(&self, name: &LookupName, qtype: Type) -> Option<ZoneMatch> {
        let labels = name.label_count();
        let found = self.find(name, labels);
        if qtype == Type::DS
            && labels > 0
            && found.is_some_and(|zone| usize::from(zone.labels) == labels)
        {
            return self.find(name, labels - 1).or(found);
        }
        found
    }

    /// The zone that answers a question for a name in wire form, and the name's hash.
    #[must_use]
    pub fn answering(&self, name: &[u8], qtype: Type) -> Option<(&ZoneEntry, u64)> {
        let name = LookupName::new(name, self.seed());
        let entry: &ZoneEntry = self.get(self.find_answering(&name, qtype)?.index);
        Some((entry, name.hash(0)))
    }

    /// The zone whose apex is the last `labels` labels of `name`.
    #[inline]
    fn at(&self, name: &LookupName, labels: usize) -> Option<u32> {
        let label = name.label_count() - labels;
        self.entries.find(name.hash(label), name.suffix(label))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SEED: HashSeed = HashSeed(1);

    fn entry(apex: &str, number: u32) -> Arc<ZoneEntry> {
        let apex = apex.parse().unwrap();
        Arc::new(ZoneEntry::new(apex, Source::Unavailable(Reason::ZoneUnavailable), None, number))
    }

    fn found(table: &ZoneTable, name: &str) -> Option<String> {
        let name = LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED);
        let found = table.find(&name, name.label_count())?;
        Some(table.get(found.index).apex.to_string())
    }

    #[test]
    fn the_longest_matching_zone_wins() {
        let names = ["example", "a.b.example", "c.example"];
        let table = ZoneTable::new(names.iter().map(|name| entry(name, 0)).collect(), SEED);
        assert_eq!(found(&table, "x.a.B.example"), Some("a.b.example.".into()));
        assert_eq!(found(&table, "b.example"), Some("example.".into()));
        assert_eq!(found(&table, "xc.example"), Some("example.".into()));
        assert_eq!(found(&table, "other"), None);
        assert_eq!(found(&table, "."), None);
    }

    #[test]
    fn the_root_zone_holds_every_name() {
        let table = ZoneTable::new(vec![entry(".", 0)], SEED);
        assert_eq!(found(&table, &"a.".repeat(127)), Some(".".into()));
        assert_eq!(found(&table, "."), Some(".".into()));
    }

    #[test]
    fn a_table_knows_the_depths_the_root_and_the_forwards_of_its_present_zones() {
        let mut owner = ZoneTableOwner::new(SEED);
        owner.put(entry("a.b.example", 0));
        owner.put(entry(".", 1));
        let (former, apex) = (owner.table(), "a.b.example".parse().unwrap());
        assert_eq!(found(&former, "x.a.b.example"), Some("a.b.example.".into()));
        assert_eq!(owner.remove(&apex).unwrap().number, 0);
        owner.remove(&Name::root());
        let table = owner.table();
        assert!(table.depths.is_empty() && table.root.is_none() && !table.has_forwards());
        assert_eq!(found(&table, "x.a.b.example"), None);
        assert_eq!((&*former.depths, former.root), (&[3][..], Some(1)));
    }

    #[test]
    fn no_two_entries_have_the_same_version() {
        let (one, other) = (entry("example", 0), entry("example", 0));
        assert_ne!(one.version(), other.version());
    }
}
