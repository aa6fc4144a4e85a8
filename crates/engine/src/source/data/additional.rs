//! Records that the client would ask for next: addresses of the names in an answer or a referral
//! (rfc1034#4.3.2 step 6).
//!
//! Addresses of IP version 4 come before those of version 6, and a set that does not fit is passed
//! over: where room is short, most names get an address.

use super::write::{OwnerAt, Writer};
use crate::reuse::NotReused;
use zonda_wire::query::flag;
use zonda_wire::{Full, Owner, Section, Type, name};
use zonda_zone::snapshot::node_flag;
use zonda_zone::{LookupName, LookupResult, Node, Set, Zone};

/// Most targets of MX, SRV, SVCB and HTTPS records whose addresses are added; what a set has beyond
/// is left out.
const TARGETS_MAX: usize = 32;
/// Most servers of a zone or a delegation whose addresses are added; what a set has beyond is left
/// out, which no client misses. A set of 64 KiB has thousands, each of which would be looked up for
/// every query over TCP. Of so many, all glue is sent (rfc9471#2.1).
const SERVERS_MAX: usize = 64;
/// Octets of the shortest record that is added: an address of IP version 4 behind a pointer.
const RECORD_BYTES_MIN: usize = 2 + 10 + 4;

/// Nodes where the zone is not asked: what lies there is not its own.
const NOT_OURS: u8 = node_flag::CUT | node_flag::BELOW_CUT | node_flag::BELOW_DNAME;

/// Whether records of a type lead to names whose addresses are added.
#[inline]
pub fn has_targets(rtype: Type) -> bool {
    matches!(rtype, Type::NS | Type::MX | Type::SRV | Type::SVCB | Type::HTTPS)
}

/// Adds the addresses of the targets of an answer, as far as they fit. The answer is the set of
/// `node` and belongs to the name at a hop.
pub fn of_answer<'s>(
    writer: &mut Writer<'_, 's, '_>,
    zone: &'s Zone,
    (hop, node): (usize, Node<'s>),
    set: Set<'s>,
) {
    let is_service = matches!(set.rtype, Type::SVCB | Type::HTTPS);
    let is_servers = set.rtype == Type::NS;
    // A zone's own servers may lie below its delegations: the root's do (rfc9609#4.2).
    let hidden = if is_servers { node_flag::BELOW_DNAME } else { NOT_OURS };
    let count_max = if is_servers { SERVERS_MAX } else { TARGETS_MAX };
    let mut nodes = Nodes::new(zone, hidden);
    // An SVCB record leads to other SVCB records as well (rfc9460#4.1).
    let types = [Type::A, Type::AAAA, set.rtype];
    for rtype in &types[..2 + usize::from(is_service)] {
        for (number, rdata) in set.rdatas().enumerate().take(count_max) {
            let Some(target) = target(set.rtype, rdata) else { continue };
            if number > 0 && !is_servers && is_repeated(set.rdatas().take(number), set, target) {
                continue;
            }
            if is_service && target == [0] {
                // The owner itself, unless it says that there is no service (rfc9460#2.5).
                if !rdata.starts_with(&[0, 0]) && *rtype != set.rtype {
                    of_owner(writer, (hop, node), set, *rtype);
                }
                continue;
            }
            let Some(found) = nodes.node(writer, number, target) else { continue };
            if *rtype == set.rtype && found.is(node) {
                continue; // stands in the answer
            }
            if write(writer, target, found, *rtype).is_err() {
                writer.reuse.forbid(NotReused::Truncated);
            }
        }
    }
}

/// Adds the addresses that the owner of an answer has itself, unless a record of the answer names
/// the owner.
#[cold]
fn of_owner(
    writer: &mut Writer<'_, '_, '_>,
    (hop, node): (usize, Node<'_>),
    services: Set<'_>,
    rtype: Type,
) {
    let Some((set, signatures)) = node.signed_set(rtype) else { return };
    let name = writer.name(hop).as_wire();
    if is_repeated(services.rdatas(), services, name) {
        return;
    }
    let at = OwnerAt { hop, len: name.len() };
    if writer.set_at(Section::Additional, at, set, signatures).is_err() {
        writer.reuse.forbid(NotReused::Truncated);
    }
}

/// Whether a target stands in some records of a set.
fn is_repeated<'r>(
    mut records: impl Iterator<Item = &'r [u8]>,
    set: Set<'_>,
    wanted: &[u8],
) -> bool {
    records.any(|rdata| {
        target(set.rtype, rdata).is_some_and(|target| target.eq_ignore_ascii_case(wanted))
    })
}

/// Adds the addresses of the first servers of a delegation with this owner. The reply is truncated
/// if those of servers at or below the cut do not fit: the client could not go on without them
/// (rfc9471#3).
pub fn glue(writer: &mut Writer<'_, '_, '_>, zone: &Zone, cut: OwnerAt, servers: Set<'_>) {
    let mut nodes = Nodes::new(zone, node_flag::BELOW_DNAME);
    let mut in_domain = InDomain { cut, known: 0 };
    let counted = || servers.rdatas().enumerate().take(SERVERS_MAX);
    let mut count = 0;
    for (number, target) in counted() {
        if in_domain.learn(writer, number, target) {
            count += 1;
            glue_of(writer, &mut nodes, (number, target), Type::A, flag::TC);
        }
    }
    for (number, target) in counted().filter(|_| count > 0) {
        if in_domain.has(writer, number, target) {
            glue_of(writer, &mut nodes, (number, target), Type::AAAA, flag::TC);
        }
    }
    if count == usize::from(servers.count).min(SERVERS_MAX) {
        return;
    }
    for rtype in [Type::A, Type::AAAA] {
        for (number, target) in counted() {
            if !in_domain.has(writer, number, target) {
                glue_of(writer, &mut nodes, (number, target), rtype, 0);
            }
        }
    }
}

/// Adds the addresses of one server; the reply gets `flags` if they do not fit.
fn glue_of(
    writer: &mut Writer<'_, '_, '_>,
    nodes: &mut Nodes<'_>,
    (number, target): (usize, &[u8]),
    rtype: Type,
    flags: u16,
) {
    let Some(node) = nodes.node(writer, number, target) else { return };
    if write(writer, target, node, rtype).is_err() {
        writer.answer.flags |= flags;
        writer.reuse.forbid(NotReused::Truncated);
    }
}

/// The name whose addresses help with a record.
fn target(rtype: Type, rdata: &[u8]) -> Option<&[u8]> {
    match rtype {
        Type::NS => Some(rdata),
        Type::MX => rdata.get(2..),
        Type::SRV => rdata.get(6..), // rfc2782: priority, weight, port
        Type::SVCB | Type::HTTPS => {
            let behind = rdata.get(2..)?; // rfc9460#2.2: priority, target, parameters
            behind.get(..name::wire_len(behind)?)
        }
        _ => None,
    }
}

/// Writes the set of a type that a node has.
#[inline]
fn write(
    writer: &mut Writer<'_, '_, '_>,
    owner: &[u8],
    node: Node<'_>,
    rtype: Type,
) -> Result<(), Full> {
    let Some((set, signatures)) = node.signed_set(rtype) else { return Ok(()) };
    if writer.answer.reply.room() < RECORD_BYTES_MIN {
        return Err(Full);
    }
    writer.set(Section::Additional, Owner::Name(owner), set, signatures)
}

/// Which servers of a delegation lie at or below it.
struct InDomain {
    /// The owner of the delegation.
    cut: OwnerAt,
    /// A bit for each of the first servers.
    known: u32,
}

impl InDomain {
    /// Whether a server does, which is remembered.
    fn learn(&mut self, writer: &Writer<'_, '_, '_>, number: usize, target: &[u8]) -> bool {
        let is_in_domain = self.is(writer, target);
        if is_in_domain && number < TARGETS_MAX {
            self.known |= 1 << number;
        }
        is_in_domain
    }

    /// Whether a server does that was asked about before.
    fn has(&self, writer: &Writer<'_, '_, '_>, number: usize, target: &[u8]) -> bool {
        if number < TARGETS_MAX { self.known & 1 << number != 0 } else { self.is(writer, target) }
    }

    /// Compares the names.
    fn is(&self, writer: &Writer<'_, '_, '_>, target: &[u8]) -> bool {
        let name = writer.name(self.cut.hop).as_wire();
        name::is_at_or_below(target, &name[name.len() - self.cut.len..])
    }
}

/// Targets whose nodes are remembered from one pass over a set to the next; there are rarely more.
const REMEMBERED: usize = 8;

/// Nodes of targets, each looked up once, but for those behind the first [`REMEMBERED`].
struct Nodes<'z> {
    zone: &'z Zone,
    /// Flags of nodes that do not count.
    hidden: u8,
    /// A bit for each target that was looked up.
    known: u32,
    /// The node of each target that was looked up, if the zone has one.
    nodes: [Option<Node<'z>>; REMEMBERED],
}

impl<'z> Nodes<'z> {
    /// The nodes of a zone, before any target is looked up.
    #[inline]
    fn new(zone: &'z Zone, hidden: u8) -> Self {
        Self { zone, hidden, known: 0, nodes: [None; REMEMBERED] }
    }

    /// The node that the zone answers from for target number `number`.
    fn node(
        &mut self,
        writer: &mut Writer<'_, '_, '_>,
        number: usize,
        target: &[u8],
    ) -> Option<Node<'z>> {
        if number >= REMEMBERED {
            return self.find(writer, target);
        }
        if self.known & 1 << number == 0 {
            self.known |= 1 << number;
            self.nodes[number] = self.find(writer, target);
        }
        self.nodes[number]
    }

    /// Looks a target up.
    fn find(&self, writer: &mut Writer<'_, '_, '_>, target: &[u8]) -> Option<Node<'z>> {
        if !name::is_at_or_below(target, self.zone.apex()) {
            return None;
        }
        let lookup: &mut LookupName = &mut writer.worker.scratch;
        lookup.set(target, writer.ask.snapshot.zones.seed());
        match self.zone.node(lookup, 0) {
            Some(node) => (node.flags() & self.hidden == 0).then_some(node),
            None => by_wildcard(self.zone, lookup),
        }
    }
}

/// The node of the wildcard that stands for a name without a node of its own (rfc4592#3.3.1).
#[cold]
fn by_wildcard<'z>(zone: &'z Zone, name: &LookupName) -> Option<Node<'z>> {
    match zone.find(name, false) {
        LookupResult::Wildcard { node, .. } => Some(node),
        _ => None,
    }
}
