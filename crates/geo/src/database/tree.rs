//! The search tree of a MaxMind database: from networks to the places of their records.

use crate::table::{Address, Ranges};

/// Most bits of an IPv6 address in front of the IPv4 addresses of a tree of both families.
const V4_PREFIX_BITS: u32 = 96;

/// A tree of nodes, each of which has a record for the next bit 0 and one for 1.
pub struct SearchTree<'a> {
    /// The nodes one behind the other, from the start of the file.
    nodes: &'a [u8],
    /// Number of nodes; a record below it is a node, this number means no data.
    node_count: u32,
    /// Octets of a node: 6, 7 or 8.
    node_octets: usize,
    /// The nodes that were visited, so that a tree with a circle is not followed for ever.
    is_visited: Vec<bool>,
}

/// What a search tree is not.
#[derive(Debug)]
pub enum TreeError {
    /// The file ends within the tree, or the size of its records is unknown.
    Truncated,
    /// Two records lead to the same node, which is a circle or has no end worth waiting for.
    SharedNode,
    /// A path is longer than an address.
    TooDeep,
}

/// The record for no data: values of [`Ranges`] that mean no place.
pub const NO_DATA: u32 = 0;

impl<'a> SearchTree<'a> {
    /// Returns the tree at the start of a file.
    pub fn new(file: &'a [u8], node_count: u32, record_bits: u16) -> Result<Self, TreeError> {
        let node_octets = match record_bits {
            24 | 28 | 32 => usize::from(record_bits) / 4,
            _ => return Err(TreeError::Truncated),
        };
        let octets = node_octets.checked_mul(node_count as usize).ok_or(TreeError::Truncated)?;
        let nodes = file.get(..octets).ok_or(TreeError::Truncated)?;
        Ok(Self { nodes, node_count, node_octets, is_visited: vec![false; node_count as usize] })
    }

    /// Returns the records of all IPv4 and IPv6 addresses of a tree of IPv6. IPv6 networks that are
    /// other names of the IPv4 addresses, as 2002::/16 is, have no data.
    pub fn both_families(&mut self) -> Result<(Ranges<u32>, Ranges<u128>), TreeError> {
        let mut v4_root = 0;
        for _ in 0..V4_PREFIX_BITS {
            if v4_root < self.node_count {
                v4_root = self.record(v4_root, false)?;
            }
        }
        let v6 = self.walk(0, Some(v4_root))?;
        Ok((self.walk(v4_root, None)?, v6))
    }

    /// Returns the records of all IPv4 addresses of a tree of IPv4.
    pub fn v4(&mut self) -> Result<Ranges<u32>, TreeError> {
        self.walk(0, None)
    }

    /// Visits all that lies below a record, in the order of addresses, but not below `skipped`.
    fn walk<A: Address>(
        &mut self,
        root: u32,
        skipped: Option<u32>,
    ) -> Result<Ranges<A>, TreeError> {
        let mut ranges = Ranges::empty();
        let mut stack = vec![(root, A::default(), 0)];
        while let Some((record, start, depth)) = stack.pop() {
            if record >= self.node_count {
                let has_data = record > self.node_count;
                ranges.push(start, if has_data { record } else { NO_DATA });
                continue;
            }
            if skipped == Some(record) && depth > 0 {
                ranges.push(start, NO_DATA);
                continue;
            }
            if depth == A::BITS {
                return Err(TreeError::TooDeep);
            }
            let is_visited = &mut self.is_visited[record as usize];
            if std::mem::replace(is_visited, true) {
                return Err(TreeError::SharedNode);
            }
            let upper = start.plus(1, A::BITS - 1 - depth);
            stack.push((self.record(record, true)?, upper, depth + 1));
            stack.push((self.record(record, false)?, start, depth + 1));
        }
        Ok(ranges)
    }

    /// Returns one of the two records of a node.
    fn record(&self, node: u32, is_one: bool) -> Result<u32, TreeError> {
        let from = node as usize * self.node_octets;
        let node = self.nodes.get(from..from + self.node_octets).ok_or(TreeError::Truncated)?;
        let number = |octets: &[u8], high: u8| {
            octets.iter().fold(u32::from(high), |sum, octet| sum << 8 | u32::from(*octet))
        };
        Ok(match (node.len(), is_one) {
            (6, false) => number(&node[..3], 0),
            (6, true) => number(&node[3..], 0),
            (7, false) => number(&node[..3], node[3] >> 4),
            (7, true) => number(&node[4..], node[3] & 0x0f),
            (_, false) => number(&node[..4], 0),
            (_, true) => number(&node[4..], 0),
        })
    }
}
