//! From records by the hashes of their owners to a snapshot, part by part.
//!
//! 1. *Count*: how many names there are decides how many shards the zone has.
//! 2. *Lay out*: the nodes of some parts become the shards of a branch, or of some branches; the
//!    parts are freed.
//! 3. *Relate*: names that lie deeper than one label are counted at those above them, and marked if
//!    they lie below a delegation or a DNAME. A zone that has none is not read again.
//!
//! What comes out is what [`build()`](super::build()) makes of the same records.

use super::directory::Layout;
use super::directory_builder::{DirectoryBuilder, NodePlace};
use super::hashed_records::{HashedRecords, PARTS, Part, Run};
use super::node::{Node, NodeWriter, node_flag, type_covered};
use super::record_sorter::RecordSorter;
use super::shard::ApexNode;
use super::sort_form::OwnerName;
use super::{BuildError, HIDDEN, TooLarge, Zone};
use crate::lookup_name::LookupName;
use crate::records::Record;
use crate::release::free_in_steps;
use std::collections::BTreeMap;
use std::mem;
use zonda_wire::Type;

/// Sets of a node up to which each name below it is counted where the number stands, behind the
/// sets. Names below other nodes are counted beside these first, so that one name with very many
/// types does not have each of very many names below it take that long.
const SETS_PASSED_MAX: u16 = 16;

impl HashedRecords {
    /// Builds the zone of the records, which are freed while it grows.
    ///
    /// # Errors
    /// When the zone could not be served.
    pub fn build(mut self) -> Result<Zone, BuildError> {
        let apex_has = |rtype| self.of_apex.iter().any(|record| record.rtype == rtype);
        if !apex_has(Type::SOA) {
            return Err(BuildError::NoSoa);
        }
        let is_signed = apex_has(Type::DNSKEY);
        if cfg!(not(feature = "nsec3")) && is_signed && apex_has(Type::NSEC3PARAM) {
            return Err(BuildError::NoNsec3);
        }
        let is_below_dname = apex_has(Type::DNAME);
        let has_parents = self.parts.iter().any(|part| !part.parents.is_empty());
        let builder = DirectoryBuilder::new(Layout::for_names(self.count_names()));
        let apex = self.apex.as_wire().to_vec();
        let mut nodes = NodeBuilder {
            builder,
            apex: &apex,
            is_signed,
            is_below_dname,
            has_aliases: apex_has(Type::ALIAS),
            names: 0,
            apex_children: 0,
            cuts: Vec::new(),
            children: BTreeMap::new(),
        };
        // Each branch has its names in one of so many groups of parts.
        let branches = nodes.builder.branch_count();
        let groups = branches.min(PARTS);
        for group in 0..groups {
            for number in (group..PARTS).step_by(groups) {
                nodes.add(&mem::take(&mut self.parts[number]))?;
            }
            for branch in (group..branches).step_by(groups) {
                nodes.builder.seal(branch)?;
            }
        }
        if has_parents {
            nodes.cuts.sort_unstable();
            nodes.relate(self.seed)?;
        }
        let apex_node = ApexNode::new(&self.take_apex_node(&nodes)?);
        let (names, has_aliases) = (nodes.names, nodes.has_aliases);
        let directory = nodes.builder.finish()?;
        let zone = Zone::new((self.apex, self.seed), apex_node, (directory, names))?;
        Ok(Zone { has_aliases, ..zone }.with_proofs()?)
    }

    /// The number of names below the apex. Different names with one hash count once, which matters
    /// to nothing that depends on the number.
    fn count_names(&self) -> usize {
        let mut hashes: Vec<u64> = Vec::new();
        let mut count = 0;
        for part in &self.parts {
            hashes.clear();
            hashes.extend(part.hashes());
            hashes.sort_unstable();
            hashes.dedup();
            count += hashes.len();
        }
        free_in_steps(hashes);
        count
    }

    /// The octets of the apex's node, whose records are freed.
    fn take_apex_node(&mut self, nodes: &NodeBuilder<'_>) -> Result<Vec<u8>, BuildError> {
        let records = mem::take(&mut self.of_apex);
        let mut sorter = RecordSorter::new(nodes.is_signed);
        let mut flags = if self.has_apex_wildcard { node_flag::WILDCARD_CHILD } else { 0 };
        for record in records.iter() {
            flags |= flag_of(record) & !node_flag::CUT;
            sorter.add(record);
        }
        let mut octets = Vec::new();
        let mut writer = NodeWriter::begin(&mut octets, flags, &[]);
        sorter.write(&mut writer, true, &[])?;
        writer.end(nodes.apex_children);
        Ok(octets)
    }
}

/// The flag of a node that a record of its name, below the apex, stands for.
fn flag_of(record: Record<'_>) -> u8 {
    match record.rtype {
        Type::NS => node_flag::CUT,
        Type::DNAME => node_flag::DNAME,
        Type::ALIAS => node_flag::ALIAS,
        _ => 0,
    }
}

/// The nodes of a zone while they are built.
struct NodeBuilder<'a> {
    /// The shards of the nodes.
    builder: DirectoryBuilder,
    /// The apex in lower case.
    apex: &'a [u8],
    /// Whether the zone has a key.
    is_signed: bool,
    /// Whether the apex has a DNAME record, below which all names lie.
    is_below_dname: bool,
    /// Whether any name has an ALIAS record.
    has_aliases: bool,
    /// The number of names below the apex.
    names: usize,
    /// The number of names one label below the apex.
    apex_children: u32,
    /// The hashes of names with NS or DNAME records that have names below them; in ascending
    /// order once all nodes are there.
    cuts: Vec<u64>,
    /// How many names lie one label below nodes with more than [`SETS_PASSED_MAX`] sets.
    children: BTreeMap<NodePlace, u32>,
}

/// What a node is to know of those around it.
enum Relation {
    /// One more name lies one label below the node, which has so many sets.
    Child(NodePlace, u16),
    /// The node lies below a delegation or a DNAME, as the flag says.
    Below(NodePlace, u8),
}

impl NodeBuilder<'_> {
    /// Adds the nodes of the names of a part.
    fn add(&mut self, part: &Part) -> Result<(), BuildError> {
        let mut runs: Vec<Run> = part.runs().collect();
        runs.sort_unstable();
        let mut sorter = RecordSorter::new(self.is_signed);
        for same_hash in runs.chunk_by_mut(|one, other| one.hash == other.hash) {
            let is_one_name = |runs: &[Run]| {
                runs.windows(2).all(|pair| part.owner(pair[0]) == part.owner(pair[1]))
            };
            if !is_one_name(same_hash) {
                same_hash.sort_by(|one, other| part.owner(*one).cmp(part.owner(*other)));
            }
            for of_name in same_hash.chunk_by(|one, other| part.owner(*one) == part.owner(*other)) {
                self.add_node(part, of_name, &mut sorter)?;
            }
        }
        free_in_steps(runs);
        Ok(())
    }

    /// Adds the node of a name that has these runs, at least one.
    fn add_node<'p>(
        &mut self,
        part: &'p Part,
        runs: &[Run],
        sorter: &mut RecordSorter<'p>,
    ) -> Result<(), BuildError> {
        let Some(first) = runs.first() else { return Ok(()) };
        let owner = part.owner(*first);
        let parent = runs.iter().find(|run| run.is_parent());
        let mut flags = parent.map_or(0, |parent| part.parents.flags(*parent));
        if self.is_below_dname {
            flags |= node_flag::BELOW_DNAME;
        }
        let mut is_nsec3_only = parent.is_none();
        for record in runs.iter().flat_map(|run| part.records(*run)) {
            flags |= flag_of(record);
            is_nsec3_only &= type_covered(record.rtype, record.rdata) == Type::NSEC3;
            sorter.add(record);
        }
        self.has_aliases |= flags & node_flag::ALIAS != 0;
        self.names += 1;
        if usize::from(owner[0]) + 1 == owner.len() {
            self.apex_children += 1;
        }
        if parent.is_some() && flags & (node_flag::CUT | node_flag::DNAME) != 0 {
            self.cuts.push(first.hash);
        }
        let (hash, hidden) = match is_nsec3_only {
            true => (first.hash ^ HIDDEN, node_flag::NSEC3_ONLY),
            false => (first.hash, 0),
        };
        let apex = self.apex;
        self.builder.push(hash, |out| {
            let mut writer = NodeWriter::begin(out, flags | hidden, owner);
            sorter.write(&mut writer, false, apex)?;
            writer.end_with(parent.map(|_| 0));
            Ok(())
        })
    }

    /// Has each node know how many names lie one label below it, and whether it lies below a
    /// delegation or a DNAME, of which the topmost counts.
    fn relate(&mut self, seed: crate::HashSeed) -> Result<(), TooLarge> {
        let (mut name, mut relations) = (LookupName::default(), Vec::new());
        let apex_labels = LookupName::new(self.apex, seed).label_count();
        for shard in 0..self.builder.layout().shards() {
            for (place, node) in self.builder.nodes_of(shard) {
                let relative = node.relative_owner();
                if usize::from(relative[0]) + 1 == relative.len() {
                    continue; // one label below the apex
                }
                name.set(OwnerName::new(relative, self.apex)?.as_wire(), seed);
                if let Some((place, parent)) = self.find(&name, 1) {
                    relations.push(Relation::Child(place, parent.set_count()));
                }
                if !self.is_below_dname
                    && let Some(flag) = self.flag_below(&name, name.label_count() - apex_labels)
                {
                    relations.push(Relation::Below(place, flag));
                }
            }
            for relation in relations.drain(..) {
                match relation {
                    Relation::Child(parent, ..=SETS_PASSED_MAX) => {
                        self.builder.count_children(parent, 1);
                    }
                    Relation::Child(parent, _) => {
                        *self.children.entry(parent).or_default() += 1;
                    }
                    Relation::Below(place, flag) => self.builder.add_flags(place, flag),
                }
            }
        }
        for (parent, count) in mem::take(&mut self.children) {
            self.builder.count_children(parent, count);
        }
        Ok(())
    }

    /// The node of the suffix of a name that begins at a label, below the apex.
    fn find(&self, name: &LookupName, label: usize) -> Option<(NodePlace, Node<'_>)> {
        let suffix = name.suffix(label);
        let relative = &suffix[..suffix.len() - self.apex.len()];
        self.builder.find(name.hash(label), |owner| owner == relative)
    }

    /// The flag of a name, so many labels below the apex, that lies below a delegation or a DNAME.
    fn flag_below(&self, name: &LookupName, depth: usize) -> Option<u8> {
        if self.cuts.is_empty() {
            return None;
        }
        (1..depth).rev().find_map(|label| {
            self.cuts.binary_search(&name.hash(label)).ok()?;
            let flags = self.find(name, label)?.1.flags();
            match flags & (node_flag::CUT | node_flag::DNAME) {
                0 => None,
                of if of & node_flag::CUT != 0 => Some(node_flag::BELOW_CUT),
                _ => Some(node_flag::BELOW_DNAME),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::hashed_records::part_of;
    use super::super::node::SETS_PASSED;
    use super::super::{Node, build};
    use super::*;
    use crate::lookup_name::HashSeed;
    use crate::records::Records;
    use std::collections::BTreeMap;
    use zonda_wire::Name;

    const SEED: HashSeed = HashSeed(7);

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// Records of a zone, the SOA record first.
    struct ZoneRecords(Records);

    impl ZoneRecords {
        fn new() -> Self {
            let numbers = [7, 3600, 600, 86_400, 300].map(u32::to_be_bytes).concat();
            let names = [name("ns.example"), name("host.example")];
            let soa = [names[0].as_wire(), names[1].as_wire(), &numbers].concat();
            let mut records = Self(Records::default());
            records.add("example", Type::SOA, 60, &soa);
            records
        }

        fn add(&mut self, owner: &str, rtype: Type, ttl: u32, rdata: &[u8]) {
            let owner = name(owner);
            self.0.push(Record { owner: owner.as_wire(), rtype, ttl, rdata }, 0).unwrap();
        }

        /// The records by the hashes of their owners.
        fn hashed(&self) -> HashedRecords {
            let mut hashed = HashedRecords::new(&name("example"), SEED);
            self.0.iter().for_each(|record| hashed.push(record).unwrap());
            hashed
        }
    }

    /// The octets of all nodes, by owner.
    fn nodes(zone: &Zone) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let octets = |node: Node<'_>| (node.relative_owner().to_vec(), node.octets().to_vec());
        zone.nodes().map(octets).collect()
    }

    /// Records of all kinds, of so many names and more; those of one name do not all follow each
    /// other.
    fn records_of_all_kinds(names: u32) -> ZoneRecords {
        let mut records = ZoneRecords::new();
        let target = name("host-1.example");
        let target = target.as_wire();
        let text = |len: usize| [&[200_u8][..], &[b'a'; 200]].concat().repeat(len);
        records.add("*.example", Type::MX, 60, &[&[0, 9][..], target].concat());
        for number in 0..names {
            let (host, address) = (format!("host-{number}.example"), number.to_be_bytes());
            records.add(&host, Type::A, 60, &address);
            match number % 41 {
                0 => records.add(&format!("b.a.{host}"), Type::A, 60, &address),
                1 => records.add(&format!("*.{host}"), Type::TXT, 60, b"\x02hi"),
                2 => records.add(&host, Type::TXT, 60, &text(1 + number as usize % 3)), // LONG, too
                3 => {
                    records.add(&host, Type::NS, 60, target);
                    records.add(&format!("glue.{host}"), Type::A, 60, &address);
                    records.add(&format!("x.glue.{host}"), Type::A, 60, &address);
                }
                4 => {
                    records.add(&host, Type::DNAME, 60, target);
                    records.add(&format!("below.{host}"), Type::NS, 60, target);
                }
                5 => records.add(&format!("alias-{number}.example"), Type::CNAME, 60, target),
                _ => {}
            }
        }
        records.add("host-2.example", Type::TXT, 60, &text(300));
        for number in (0..names).step_by(7) {
            let host = format!("Host-{number}.example");
            records.add(&host, Type::A, 30 + number % 9, &(number + 1).to_be_bytes());
            records.add(&host, Type::A, 60, &number.to_be_bytes()); // once more
        }
        records
    }

    #[test]
    fn a_zone_of_one_or_of_many_branches_has_the_nodes_that_it_has_when_built_of_a_list() {
        for names in [200, 3_000, 16_000, 60_000] {
            let records = records_of_all_kinds(names);
            let zone = records.hashed().build().unwrap();
            let expected = build(&name("example"), &records.0, SEED).unwrap();
            assert!(nodes(&zone) == nodes(&expected), "the nodes differ for {names} names");
            assert_eq!(zone.bytes(), expected.bytes());
            assert_eq!(zone.name_count(), expected.name_count());
            let mut hosts = (0..names).step_by(17).map(|number| format!("host-{number}.example"));
            assert!(hosts.all(|host| zone.records_at(&name(&host)).next().is_some()));
        }
    }

    #[test]
    fn names_with_one_hash_have_their_own_records() {
        let hash = 0x0123_4567_89ab_cdef;
        let mut hashed = ZoneRecords::new().hashed();
        let part = &mut hashed.parts[part_of(hash)];
        for (label, address) in [(b'a', 1_u8), (b'b', 2), (b'a', 3), (b'b', 4)] {
            let rdata = &[192, 0, 2, address];
            let owner = &[1, label][..];
            part.push_apart((hash, owner), Record { owner, rtype: Type::A, ttl: 60, rdata });
        }
        let zone = hashed.build().unwrap();
        let last = |node: Node<'_>| node.set(Type::A).unwrap().rdatas().map(|it| it[3]).collect();
        let found: BTreeMap<&[u8], Vec<u8>> =
            zone.nodes().skip(1).map(|node| (node.relative_owner(), last(node))).collect();
        assert_eq!(found, [(&b"\x01a"[..], vec![1, 3]), (b"\x01b", vec![2, 4])].into());
        assert_eq!(zone.name_count(), 3);
    }

    #[test]
    fn names_below_one_with_very_many_types_are_counted_in_steps_of_their_number() {
        let (mut records, types, names) = (ZoneRecords::new(), 4_000, 3_000);
        for number in 0..types {
            records.add("large.example", Type(1_000 + number), 60, &[7]);
        }
        for number in 0..names {
            records.add(&format!("n{number}.large.example"), Type::A, 60, &[192, 0, 2, 1]);
        }
        SETS_PASSED.set(0);
        let zone = records.hashed().build().unwrap();
        let most = usize::from(types) + names * usize::from(SETS_PASSED_MAX);
        assert!(SETS_PASSED.get() <= most, "{} sets", SETS_PASSED.get());
        let large = zone.nodes().find(|node| node.relative_owner() == b"\x05large").unwrap();
        assert_eq!(large.child_count(), names as u32);
    }

    #[test]
    fn records_of_which_most_are_of_one_name_count_as_more_by_what_their_sorting_takes() {
        let (mut one, mut many) = (ZoneRecords::new(), ZoneRecords::new());
        for number in 0..30_000_u32 {
            one.add("large.example", Type::A, 60, &number.to_be_bytes());
            many.add(&format!("n{number}.example"), Type::A, 60, &number.to_be_bytes());
        }
        let (one, many) = (one.hashed().bytes_besides(), many.hashed().bytes_besides());
        assert!(one >= 30_000 * (72 + 9 + 15 + 4), "{one}");
        assert!(many <= one / 2, "{many}");
    }
}
