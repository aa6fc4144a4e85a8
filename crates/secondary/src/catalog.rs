//! The zones that a catalog zone lists (rfc9432).
//!
//! ```text
//! version.CATALOG              TXT  "2"
//! ID.zones.CATALOG             PTR  the name of a member zone
//! group.ID.zones.CATALOG       TXT  a group that the member is in
//! coo.ID.zones.CATALOG         PTR  the catalog that the member moves to (change of ownership)
//! ```
//! A version of the catalog is taken whole or not at all; one that breaks a rule is *broken*, and
//! what the former one listed stays. A version costs what differs from the former one, whatever the
//! number of members. All other names and types are ignored: properties that are not known here.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use zonda_wire::name::{is_at_or_below, labels};
use zonda_wire::{Name, Type};
use zonda_zone::records::TooManyRecords;
use zonda_zone::{Record, Records, Zone};

/// Octets of a difference between two versions up to which a version is read by what differs.
const DIFF_BYTES_MAX: usize = 64 << 20;
/// Characters of a value that an error repeats.
const VALUE_CHARS_MAX: usize = 40;

/// The time to live of records of catalogs, which no resolver asks for (rfc9432#4.1).
pub const TTL: u32 = 0;

/// What tells a member from every other, and from the same zone listed anew: the label below
/// `zones`, in lower case.
pub type MemberId = Box<[u8]>;

/// A zone as a catalog lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The name of the zone, in lower case.
    pub zone: Name,
    /// The catalog that the zone moves to, in lower case, if it does.
    pub new_catalog: Option<Name>,
    /// The groups of the zone, each once and in order.
    pub groups: Vec<Box<[u8]>>,
}

/// What a version of a catalog has changed about one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingChange {
    /// The id of the member.
    pub id: MemberId,
    /// The listing of the former version, if it had one.
    pub former: Option<Listing>,
    /// The listing of this version, if it has one.
    pub now: Option<Listing>,
}

/// Why a version of a catalog is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogFault {
    /// No version of the schema is given.
    NoVersion,
    /// Several versions of the schema are given.
    SeveralVersions,
    /// A version of the schema that is not 2.
    OtherVersion(String),
    /// Several zones are listed as one member.
    SeveralZones(String),
    /// A member moves to several catalogs.
    SeveralOwners(String),
    /// A zone is listed as several members.
    ListedTwice(Name),
}

impl fmt::Display for CatalogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion => f.write_str("it has no TXT record `version`, so it is no catalog"),
            Self::SeveralVersions => f.write_str("it has several TXT records `version`"),
            Self::OtherVersion(version) => {
                write!(f, "its version is \"{version}\"; only \"2\" is known (rfc9432)")
            }
            Self::SeveralZones(id) => write!(f, "the member {id} has several PTR records"),
            Self::SeveralOwners(id) => write!(f, "the member {id} has several records `coo`"),
            Self::ListedTwice(zone) => write!(f, "the zone {zone} is listed twice"),
        }
    }
}

impl std::error::Error for CatalogFault {}

/// The members of the version of a catalog that was taken last.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The name of the catalog zone, in lower case.
    apex: Name,
    members: HashMap<MemberId, Listing>,
    /// The members by their zones.
    ids: HashMap<Name, MemberId>,
}

impl Catalog {
    /// A catalog without members.
    #[must_use]
    pub fn new(apex: &Name) -> Self {
        Self { apex: apex.to_lowercase(), members: HashMap::new(), ids: HashMap::new() }
    }

    /// Returns the name of the catalog zone, in lower case.
    #[must_use]
    pub fn apex(&self) -> &Name {
        &self.apex
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns how a zone is listed, whose name is in lower case, if it is.
    #[must_use]
    pub fn listing(&self, zone: &Name) -> Option<(&MemberId, &Listing)> {
        let id = self.ids.get(zone)?;
        Some((id, self.members.get(id)?))
    }

    /// Returns the names of all listed zones.
    pub fn zones(&self) -> impl Iterator<Item = &Name> {
        self.ids.keys()
    }

    /// Returns what a version changes; nothing is taken yet. `former` is the version that was taken
    /// last, if it is still there.
    ///
    /// # Errors
    /// When the version is broken.
    pub fn changes(
        &self,
        former: Option<&Zone>,
        next: &Zone,
    ) -> Result<Vec<ListingChange>, CatalogFault> {
        check_version(&self.apex, next)?;
        let diff = former.and_then(|former| former.diff_within(next, DIFF_BYTES_MAX).ok());
        let drafts = match diff {
            Some(diff) => {
                let changed = diff.removed.iter().chain(diff.added.iter());
                let ids = changed.filter_map(|record| self.place(record.owner)).map(|(id, _)| id);
                let mut drafts: BTreeMap<MemberId, MemberRecords> =
                    ids.map(|id| (id, MemberRecords::default())).collect();
                for (id, draft) in &mut drafts {
                    draft.read(&self.apex, id, next);
                }
                drafts
            }
            None => {
                let known = self.members.keys().cloned();
                let mut drafts = known.map(|id| (id, MemberRecords::default())).collect();
                for record in next.records() {
                    self.add(&mut drafts, record.as_record());
                }
                drafts
            }
        };
        self.compare(drafts)
    }

    /// Returns what the records of some members change, as [`push_records`] has made them.
    ///
    /// # Errors
    /// When they break a rule, as none does that was made so.
    pub fn changes_of_records(
        &self,
        records: &Records,
    ) -> Result<Vec<ListingChange>, CatalogFault> {
        let mut drafts = BTreeMap::new();
        records.iter().for_each(|record| self.add(&mut drafts, record));
        self.compare(drafts)
    }

    /// Takes changes that were made of what is listed now.
    pub fn take(&mut self, changes: &[ListingChange]) {
        for ListingChange { id, former, .. } in changes {
            self.members.remove(id);
            if let Some(former) = former {
                self.ids.remove(&former.zone);
            }
        }
        for ListingChange { id, now, .. } in changes {
            if let Some(now) = now {
                self.ids.insert(now.zone.clone(), id.clone());
                self.members.insert(id.clone(), now.clone());
            }
        }
    }

    /// Adds a record to what was found of its member, if it is about one.
    fn add(&self, drafts: &mut BTreeMap<MemberId, MemberRecords>, record: Record<'_>) {
        if let Some((id, property)) = self.place(record.owner) {
            drafts.entry(id).or_default().add(property, record.rtype, record.rdata);
        }
    }

    /// The member that a name is about, and the property of the member.
    fn place(&self, owner: &[u8]) -> Option<(MemberId, Property)> {
        let len = owner.len().checked_sub(self.apex.as_wire().len())?;
        if !is_at_or_below(owner, self.apex.as_wire()) {
            return None;
        }
        let own: Vec<&[u8]> = labels(owner.get(..len)?).collect();
        let (property, id) = match own[..] {
            [id, zones] if zones.eq_ignore_ascii_case(b"zones") => (Property::Zone, id),
            [property, id, zones] if zones.eq_ignore_ascii_case(b"zones") => {
                (Property::of(property)?, id)
            }
            _ => return None,
        };
        Some((id.to_ascii_lowercase().into(), property))
    }

    /// What differs between what is listed and what was found of some members.
    fn compare(
        &self,
        drafts: BTreeMap<MemberId, MemberRecords>,
    ) -> Result<Vec<ListingChange>, CatalogFault> {
        let mut found: HashMap<Name, MemberId> = HashMap::new();
        let mut changes = Vec::new();
        for (id, draft) in drafts {
            let now = draft.finish(&id)?;
            if let Some(now) = &now
                && found.insert(now.zone.clone(), id.clone()).is_some()
            {
                return Err(CatalogFault::ListedTwice(now.zone.clone()));
            }
            let former = self.members.get(&id).cloned();
            changes.push(ListingChange { id, former, now });
        }
        // A zone may have left the member that it was, if that is among what was looked at.
        let is_looked_at = |id: &MemberId| changes.binary_search_by(|it| it.id.cmp(id)).is_ok();
        for zone in found.keys() {
            if self.ids.get(zone).is_some_and(|id| !is_looked_at(id)) {
                return Err(CatalogFault::ListedTwice(zone.clone()));
            }
        }
        changes.retain(|change| change.former != change.now);
        Ok(changes)
    }
}

/// Whether the version of the schema is the one that is known (rfc9432#4.2.1).
fn check_version(apex: &Name, zone: &Zone) -> Result<(), CatalogFault> {
    let Some(name) = below(&[b"version"], apex) else { return Err(CatalogFault::NoVersion) };
    let records: Vec<_> = zone.records_at(&name).collect();
    let mut versions = records.iter().filter(|it| it.rtype == Type::TXT).map(|it| text(it.rdata));
    match (versions.next(), versions.next()) {
        (None, _) => Err(CatalogFault::NoVersion),
        (Some(_), Some(_)) => Err(CatalogFault::SeveralVersions),
        (Some(version), None) if version == b"2" => Ok(()),
        (Some(version), None) => {
            let version = String::from_utf8_lossy(&version);
            Err(CatalogFault::OtherVersion(version.chars().take(VALUE_CHARS_MAX).collect()))
        }
    }
}

/// What a name says of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Property {
    /// The name of the zone.
    Zone,
    /// A group of the zone.
    Group,
    /// The catalog that the zone moves to.
    NewCatalog,
}

impl Property {
    /// The property with a label, if it is known.
    fn of(label: &[u8]) -> Option<Self> {
        match label {
            _ if label.eq_ignore_ascii_case(b"group") => Some(Self::Group),
            _ if label.eq_ignore_ascii_case(b"coo") => Some(Self::NewCatalog),
            _ => None,
        }
    }
}

/// What was found of a member.
#[derive(Default)]
struct MemberRecords {
    zones: Vec<Name>,
    new_catalogs: Vec<Name>,
    groups: Vec<Box<[u8]>>,
}

impl MemberRecords {
    /// Reads all records of a member of a version.
    fn read(&mut self, apex: &Name, id: &[u8], zone: &Zone) {
        let places: [(Property, &[&[u8]]); 3] = [
            (Property::Zone, &[id, b"zones"]),
            (Property::Group, &[b"group", id, b"zones"]),
            (Property::NewCatalog, &[b"coo", id, b"zones"]),
        ];
        for (property, own) in places {
            let Some(name) = below(own, apex) else { continue }; // no zone has a name so long
            for record in zone.records_at(&name) {
                self.add(property, record.rtype, record.rdata);
            }
        }
    }

    /// Adds a record.
    fn add(&mut self, property: Property, rtype: Type, rdata: &[u8]) {
        let name = || Name::from_wire(rdata).ok().map(|name| name.to_lowercase());
        match (property, rtype) {
            (Property::Zone, Type::PTR) => self.zones.extend(name()),
            (Property::NewCatalog, Type::PTR) => self.new_catalogs.extend(name()),
            (Property::Group, Type::TXT) => self.groups.push(text(rdata).into()),
            _ => {}
        }
    }

    /// The member as it is listed, if a zone is.
    fn finish(mut self, id: &[u8]) -> Result<Option<Listing>, CatalogFault> {
        let id = || String::from_utf8_lossy(id).chars().take(VALUE_CHARS_MAX).collect::<String>();
        if self.zones.len() > 1 {
            return Err(CatalogFault::SeveralZones(id())); // rfc9432#4.1
        }
        if self.new_catalogs.len() > 1 {
            return Err(CatalogFault::SeveralOwners(id())); // rfc9432#4.3.1
        }
        let Some(zone) = self.zones.pop() else { return Ok(None) };
        self.groups.sort();
        self.groups.dedup();
        Ok(Some(Listing { zone, new_catalog: self.new_catalogs.pop(), groups: self.groups }))
    }
}

/// The octets of the strings of a TXT record, one behind the other.
fn text(rdata: &[u8]) -> Vec<u8> {
    let (mut rest, mut text) = (rdata, Vec::new());
    while let Some((len, behind)) = rest.split_first() {
        let (string, behind) = behind.split_at(usize::from(*len).min(behind.len()));
        text.extend_from_slice(string);
        rest = behind;
    }
    text
}

/// Appends the records by which a catalog lists a member: its zone and its groups.
///
/// # Errors
/// When the records take more than 4 GiB together.
pub fn push_records(
    apex: &Name,
    (id, zone, groups): (&[u8], &Name, &[Box<[u8]>]),
    records: &mut Records,
) -> Result<(), TooManyRecords> {
    let Some(owner) = below(&[id, b"zones"], apex) else { return Ok(()) }; // none is listed so
    let (owner, rdata) = (owner.as_wire(), zone.as_wire());
    records.push(Record { owner, rtype: Type::PTR, ttl: TTL, rdata }, 0)?;
    let Some(owner) = below(&[b"group", id, b"zones"], apex) else { return Ok(()) };
    for group in groups {
        let (owner, rdata) = (owner.as_wire(), &txt(group));
        records.push(Record { owner, rtype: Type::TXT, ttl: TTL, rdata }, 0)?;
    }
    Ok(())
}

/// The data of a TXT record with a text, in strings of up to 255 octets.
#[must_use]
pub fn txt(text: &[u8]) -> Vec<u8> {
    let strings = text.chunks(255).flat_map(|it| [&[it.len() as u8], it].concat());
    let rdata: Vec<u8> = strings.collect();
    if rdata.is_empty() { vec![0] } else { rdata }
}

/// A name of some labels below another one, if it is not too long.
#[must_use]
pub fn below(own: &[&[u8]], apex: &Name) -> Option<Name> {
    let mut wire = Vec::with_capacity(apex.as_wire().len() + 80);
    for label in own {
        wire.push(u8::try_from(label.len()).ok().filter(|len| (1..=63).contains(len))?);
        wire.extend_from_slice(label);
    }
    wire.extend_from_slice(apex.as_wire());
    Name::from_wire(&wire).ok()
}
