//! Addresses that the client would ask for next (rfc1034#4.3.2 step 6).

use super::write::Writer;
use crate::context::Context;
use zonda_wire::query::flag;
use zonda_wire::{Full, Owner, Section, Type, name};
use zonda_zone::{LookupName, Node, Set, Zone, snapshot::node_flag};

/// Most targets whose addresses are added; what a set has beyond is left out.
const TARGETS_MAX: usize = 32;

/// Adds the addresses of the targets of an answer, as far as they fit.
pub fn of_answer(cx: &mut Context<'_>, zone: &Zone, set: Set<'_>) {
    if !matches!(set.rtype, Type::NS | Type::MX | Type::SRV) {
        return;
    }
    let mut targets = Targets::default();
    for target in set.rdatas().filter_map(|rdata| target(set.rtype, rdata)) {
        let Some(node) = targets.find(cx, zone, target) else { continue };
        let below_cut = node.flags() & (node_flag::BELOW_CUT | node_flag::CUT) != 0;
        if !below_cut && addresses(cx, target, node).is_err() {
            cx.keep = false; // a client with a larger buffer gets more
            return;
        }
    }
}

/// Adds the addresses of the servers of a delegation, whose owner is the last `cut_len` octets of
/// the name at a hop.
///
/// # Errors
/// When the addresses of servers at or below the cut do not fit: the client could not go on without
/// them (rfc9471#3).
pub fn glue(
    cx: &mut Context<'_>,
    zone: &Zone,
    hop: usize,
    cut_len: usize,
    servers: Set<'_>,
) -> Result<(), Full> {
    let is_in_domain = |cx: &Context<'_>, target| {
        let name = if hop == 0 { cx.name } else { &cx.worker.chain[hop - 1] }.as_wire();
        name::is_at_or_below(target, &name[name.len() - cut_len..])
    };
    let mut targets = Targets::default();
    for in_domain in [true, false] {
        for target in servers.rdatas() {
            if is_in_domain(cx, target) != in_domain {
                continue;
            }
            let Some(node) = targets.find(cx, zone, target) else { continue };
            if addresses(cx, target, node).is_err() {
                if in_domain {
                    cx.flags |= flag::TC;
                }
                cx.keep = false; // a client with a larger buffer gets more
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The name whose addresses help with a record.
fn target(rtype: Type, rdata: &[u8]) -> Option<&[u8]> {
    match rtype {
        Type::NS => Some(rdata),
        Type::MX => rdata.get(2..),
        Type::SRV => rdata.get(6..), // rfc2782: priority, weight, port
        _ => None,
    }
}

/// Writes the addresses that a node has.
fn addresses(cx: &mut Context<'_>, owner: &[u8], node: Node<'_>) -> Result<(), Full> {
    for rtype in [Type::A, Type::AAAA] {
        if let Some((set, signatures)) = node.signed_set(rtype) {
            Writer::of(cx).set(Section::Additional, Owner::Name(owner), set, signatures)?;
        }
    }
    Ok(())
}

/// Targets that were looked up, so that none is written twice.
#[derive(Default)]
struct Targets {
    places: [u32; TARGETS_MAX],
    count: usize,
}

impl Targets {
    /// The node of a target within the zone, the first time that it is met.
    fn find<'z>(
        &mut self,
        cx: &mut Context<'_>,
        zone: &'z Zone,
        target: &[u8],
    ) -> Option<Node<'z>> {
        if self.count == TARGETS_MAX || !name::is_at_or_below(target, zone.apex()) {
            return None;
        }
        let lookup: &mut LookupName = &mut cx.worker.scratch;
        lookup.set(target, cx.snapshot.zones.seed());
        let node = zone.node(lookup, 0)?;
        if self.places[..self.count].contains(&node.place()) {
            return None;
        }
        self.places[self.count] = node.place();
        self.count += 1;
        Some(node)
    }
}
