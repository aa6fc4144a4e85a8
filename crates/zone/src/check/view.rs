//! The records of a zone in canonical order, by owner, with what cuts and DNAMEs hide.

use crate::order;
use crate::records::{Record, Records};
use zonda_wire::{Type, name};

/// A zone, ready to be checked.
pub(super) struct View<'r> {
    pub(super) records: &'r Records,
    pub(super) apex: &'r [u8],
    /// Seconds since 1970.
    pub(super) now: u32,
    /// Whether the apex has a key, so that everything must be signed.
    pub(super) is_signed: bool,
    /// Records that are not at or below the apex.
    pub(super) outside: Vec<u32>,
    /// The other records in canonical order, duplicates among them.
    order: Vec<u32>,
    /// Where each owner's records begin in `order`; one element more than there are owners.
    starts: Vec<u32>,
    /// How each owner stands in the zone.
    positions: Vec<OwnerPosition>,
    /// Whether an NS record that is not hidden names this owner.
    is_ns_target: Vec<bool>,
}

/// How an owner stands in the zone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerPosition {
    /// The owner's records are answers of this zone.
    Inside,
    /// The zone ends here: other servers answer for it and what is below.
    Cut,
    /// Below a cut or a DNAME, which is this owner.
    Hidden(u32),
}

/// An owner and its records.
#[derive(Clone, Copy)]
pub(super) struct Owner<'v> {
    pub(super) view: &'v View<'v>,
    at: u32,
}

/// What the zone has at the name that a record gives for a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Not in the zone.
    Outside,
    /// An address; glue, if behind a cut.
    Address,
    /// The owner of a CNAME.
    Alias,
    /// A name below a DNAME.
    BelowDname,
    /// The name is behind a zone cut, without glue.
    NoGlue,
    /// The name does not exist, or has no address.
    NoAddress,
}

impl<'r> View<'r> {
    /// Sorts the records.
    pub(super) fn new(apex: &'r [u8], records: &'r Records, now: u32) -> Self {
        let is_inside =
            |&index: &u32| name::is_at_or_below(records.get(index as usize).owner, apex);
        let (order, outside): (Vec<u32>, Vec<u32>) =
            order::canonical(records).into_iter().partition(is_inside);
        let mut starts = Vec::new();
        let mut last: &[u8] = &[];
        for (at, index) in (0..).zip(&order) {
            let owner = records.get(*index as usize).owner;
            if !owner.eq_ignore_ascii_case(last) {
                starts.push(at);
                last = owner;
            }
        }
        starts.push(order.len() as u32); // indexes of records have 32 bits
        let mut view = Self {
            records,
            apex,
            now,
            is_signed: false,
            outside,
            order,
            starts,
            positions: Vec::new(),
            is_ns_target: Vec::new(),
        };
        view.positions = view.find_positions();
        view.is_ns_target = view.find_ns_targets();
        view.is_signed = view.find(apex).is_some_and(|apex| apex.has(Type::DNSKEY));
        view
    }

    /// All owners in canonical order.
    pub(super) fn owners(&self) -> impl Iterator<Item = Owner<'_>> {
        (0..self.starts.len() as u32 - 1).map(|at| Owner { view: self, at })
    }

    /// Returns the owner of a name.
    pub(super) fn find(&self, wanted: &[u8]) -> Option<Owner<'_>> {
        self.place_of(wanted).ok().map(|at| Owner { view: self, at })
    }

    /// The owner with that name, or the one that would stand behind it.
    fn place_of(&self, wanted: &[u8]) -> Result<u32, u32> {
        let owners = &self.starts[..self.starts.len() - 1];
        let name = |start: &u32| self.records.get(self.order[*start as usize] as usize).owner;
        let found = owners.binary_search_by(|start| name::canonical_cmp(name(start), wanted));
        found.map(|at| at as u32).map_err(|at| at as u32)
    }

    /// Whether there is an owner at or below a name.
    fn exists(&self, wanted: &[u8]) -> bool {
        match self.place_of(wanted) {
            Ok(_) => true,
            Err(next) => {
                let next = (next < self.starts.len() as u32 - 1).then_some(next);
                let next = next.map(|at| Owner { view: self, at });
                next.is_some_and(|owner| name::is_at_or_below(owner.name(), wanted))
            }
        }
    }

    /// What is found at a name that ought to have an address.
    pub(super) fn target(&self, wanted: &[u8]) -> Target {
        if !name::is_at_or_below(wanted, self.apex) {
            return Target::Outside;
        }
        let mut ancestor = wanted;
        loop {
            if let Some(owner) = self.find(ancestor) {
                let is_exact = ancestor.len() == wanted.len();
                match owner.hides_below() {
                    Some(by) if by.has(Type::DNAME) && !(is_exact && by.at == owner.at) => {
                        return Target::BelowDname;
                    }
                    Some(by) if by.position() == OwnerPosition::Cut => {
                        let has_glue = is_exact && owner.has_address();
                        return if has_glue { Target::Address } else { Target::NoGlue };
                    }
                    _ if is_exact => return owner.as_target(),
                    _ => {}
                }
            }
            match name::parent(ancestor) {
                Some(parent) if ancestor.len() > self.apex.len() => ancestor = parent,
                _ => return self.wildcard_target(wanted),
            }
        }
    }

    /// What a wildcard has for a name that is not there.
    fn wildcard_target(&self, wanted: &[u8]) -> Target {
        let mut encloser = wanted;
        while !self.exists(encloser) {
            match name::parent(encloser) {
                Some(parent) if encloser.len() > self.apex.len() => encloser = parent,
                _ => return Target::NoAddress,
            }
        }
        let wildcard = [b"\x01*", encloser].concat();
        let exists_itself = encloser.len() == wanted.len(); // an empty non-terminal
        let found = self.find(&wildcard).filter(|_| !exists_itself);
        found.map_or(Target::NoAddress, |owner| owner.as_target())
    }

    /// How each owner stands: canonical order puts what is hidden right behind what hides it.
    fn find_positions(&self) -> Vec<OwnerPosition> {
        let mut positions = Vec::with_capacity(self.starts.len());
        let mut blocker: Option<Owner<'_>> = None;
        for owner in self.owners() {
            if let Some(by) = blocker
                && name::is_at_or_below(owner.name(), by.name())
            {
                positions.push(OwnerPosition::Hidden(by.at));
                continue;
            }
            let is_cut = owner.has(Type::NS) && !owner.is_apex();
            blocker = (is_cut || owner.has(Type::DNAME)).then_some(owner);
            positions.push(if is_cut { OwnerPosition::Cut } else { OwnerPosition::Inside });
        }
        positions
    }

    /// Which owners NS records name.
    fn find_ns_targets(&self) -> Vec<bool> {
        let mut is_target = vec![false; self.positions.len()];
        let visible = self.owners().filter(|owner| !owner.is_hidden());
        for (_, record) in visible.flat_map(|owner| owner.of(Type::NS)) {
            if name::is_at_or_below(record.rdata, self.apex)
                && let Ok(at) = self.place_of(record.rdata)
            {
                is_target[at as usize] = true;
            }
        }
        is_target
    }
}

impl<'v> Owner<'v> {
    /// Returns the owner's name.
    pub(super) fn name(self) -> &'v [u8] {
        self.view.records.get(self.first() as usize).owner
    }

    /// Returns the index of the owner's first record.
    pub(super) fn first(self) -> u32 {
        self.indexes()[0]
    }

    /// Returns the indexes of the owner's records, by type.
    fn indexes(self) -> &'v [u32] {
        let at = self.at as usize;
        let [start, end] = [self.view.starts[at], self.view.starts[at + 1]];
        &self.view.order[start as usize..end as usize] // no owner is without records
    }

    /// Returns the owner's records with their indexes.
    pub(super) fn records(self) -> impl Iterator<Item = (u32, Record<'v>)> {
        self.indexes().iter().map(move |&index| (index, self.view.records.get(index as usize)))
    }

    /// Returns the owner's records of a type, found by halving: a name may have thousands of types.
    pub(super) fn of(self, rtype: Type) -> impl Iterator<Item = (u32, Record<'v>)> {
        let record = move |index: u32| self.view.records.get(index as usize);
        let rank = |index: &u32| order::rank(record(*index).rtype);
        let wanted = order::rank(rtype);
        let all = self.indexes();
        let start = all.partition_point(|index| rank(index) < wanted);
        let end = all.partition_point(|index| rank(index) <= wanted);
        all[start..end].iter().map(move |&index| (index, record(index)))
    }

    /// Returns the owner's types, each once, with the first record of the type.
    pub(super) fn types(self) -> impl Iterator<Item = (u32, Type)> + Clone {
        let rtype = move |index: u32| self.view.records.get(index as usize).rtype;
        let sets = self.indexes().chunk_by(move |&a, &b| rtype(a) == rtype(b));
        sets.map(move |set| (set[0], rtype(set[0])))
    }

    /// Whether the owner has records of a type.
    pub(super) fn has(self, rtype: Type) -> bool {
        self.of(rtype).next().is_some()
    }

    /// Whether the owner has an address.
    fn has_address(self) -> bool {
        self.has(Type::A) || self.has(Type::AAAA)
    }

    /// Returns what the owner is for a record that names it.
    fn as_target(self) -> Target {
        match () {
            () if self.has_address() || self.has(Type::ALIAS) => Target::Address,
            () if self.has(Type::CNAME) => Target::Alias,
            () => Target::NoAddress,
        }
    }

    /// Whether the owner is the zone's apex.
    pub(super) fn is_apex(self) -> bool {
        self.name().len() == self.view.apex.len()
    }

    /// Whether the owner's first label is an asterisk.
    pub(super) fn is_wildcard(self) -> bool {
        self.name().starts_with(b"\x01*")
    }

    /// Returns how the owner stands in the zone.
    pub(super) fn position(self) -> OwnerPosition {
        self.view.positions[self.at as usize]
    }

    /// Whether the owner is below a zone cut or a DNAME.
    pub(super) fn is_hidden(self) -> bool {
        matches!(self.position(), OwnerPosition::Hidden(_))
    }

    /// The cut or DNAME that hides what is below this owner.
    fn hides_below(self) -> Option<Self> {
        match self.position() {
            OwnerPosition::Hidden(by) => Some(Self { view: self.view, at: by }),
            OwnerPosition::Cut => Some(self),
            OwnerPosition::Inside => self.has(Type::DNAME).then_some(self),
        }
    }

    /// The cut or DNAME above this owner, if it is hidden.
    pub(super) fn hidden_by(self) -> Option<Self> {
        self.hides_below().filter(|by| by.at != self.at)
    }

    /// Whether an NS record that is not hidden names it.
    pub(super) fn is_ns_target(self) -> bool {
        self.view.is_ns_target[self.at as usize]
    }

    /// Whether its answers come from this zone, so that they are to be signed.
    pub(super) fn is_authoritative_for(self, rtype: Type) -> bool {
        match self.position() {
            OwnerPosition::Inside => true,
            OwnerPosition::Cut => matches!(rtype, Type::DS | Type::NSEC),
            OwnerPosition::Hidden(_) => false,
        }
    }
}
