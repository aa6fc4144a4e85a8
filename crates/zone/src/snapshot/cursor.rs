//! All records of a zone, some at a time: what a transfer reads.

use super::shard::ShardCursor;
use super::{Node, Zone};
use zonda_wire::Type;
use zonda_wire::name::NAME_BYTES_MAX;

/// A place among the records of one version of a zone.
#[derive(Clone, Debug)]
pub struct RecordCursor {
    /// The number of the shard at hand; none while the apex is.
    shard: Option<u32>,
    /// The nodes of the shard that are done with.
    nodes: ShardCursor,
    /// The sets of the node at hand that are done with.
    sets: usize,
    /// The records of the set at hand that are done with.
    records: usize,
    /// The owner of the node at hand, where its own labels are written before the apex.
    owner: Vec<u8>,
}

impl Default for RecordCursor {
    /// The place before the first record.
    fn default() -> Self {
        let owner = Vec::with_capacity(NAME_BYTES_MAX);
        Self { shard: None, nodes: ShardCursor::default(), sets: 0, records: 0, owner }
    }
}

impl Zone {
    /// Hands over the records from a cursor on, each as owner in lower case, type with TTL, and
    /// data, in no particular order of names, until `take` does not take one, which is then the
    /// next; whether all were taken. The SOA record is left out. Nothing is sorted or copied.
    ///
    /// A cursor belongs to one version of a zone.
    pub fn take_records(
        &self,
        cursor: &mut RecordCursor,
        mut take: impl FnMut(&[u8], (Type, u32), &[u8]) -> bool,
    ) -> bool {
        loop {
            let before = cursor.nodes;
            let node = match cursor.shard {
                None => Some(self.apex_node()),
                Some(shard) => {
                    let shard = self.directory.whole_shard(shard);
                    cursor.nodes.next(shard).map(|(_, node)| node)
                }
            };
            if let Some(node) = node {
                if !cursor.take_of(node, self.apex(), &mut take) {
                    cursor.nodes = before;
                    return false;
                }
                if cursor.shard.is_some() {
                    continue;
                }
            }
            let next = cursor.shard.map_or(0, |shard| shard + 1);
            if next >= self.directory.layout().shards() {
                cursor.nodes = before;
                return true;
            }
            (cursor.shard, cursor.nodes) = (Some(next), ShardCursor::default());
        }
    }
}

impl RecordCursor {
    /// Hands over the rest of a node's records; whether all were taken.
    fn take_of(
        &mut self,
        node: Node<'_>,
        apex: &[u8],
        take: &mut impl FnMut(&[u8], (Type, u32), &[u8]) -> bool,
    ) -> bool {
        self.owner.clear();
        self.owner.extend_from_slice(node.relative_owner());
        self.owner.extend_from_slice(apex);
        for set in node.sets().skip(self.sets) {
            if set.rtype != Type::SOA {
                for rdata in set.rdatas().skip(self.records) {
                    if !take(&self.owner, (set.rtype, set.ttl), rdata) {
                        return false;
                    }
                    self.records += 1;
                }
            }
            (self.sets, self.records) = (self.sets + 1, 0);
        }
        self.sets = 0;
        true
    }
}
