//! Names of zone data whose records a pool chooses.
//!
//! A steered set takes the place of the zone's own set of the type, if it has one; all else at the
//! name is the zone's. The name exists even if the zone's data do not have it. A signed zone is not
//! steered, as no signature would be of the records chosen.

use super::walk::Walk;
use super::write::Writer;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::steering::{PoolLabels, SteeredMatch, Steering};
use crate::verdict::{Flow, Verdict};
use crate::worker::Worker;
use std::ops::ControlFlow::Break;
use zonda_balance::{Choice, ClientNetwork, Dice, EndWithout, Outcome, POOL_DEPTH_MAX, View};
use zonda_wire::query::flag;
use zonda_wire::{Full, Rcode, Type};
use zonda_zone::{Node, Zone};

/// What a pool, or those that are its members, choose.
enum Chosen<'s> {
    /// The pool has no members of the type.
    NoData,
    /// No member is up: the query ends so.
    Without(EndWithout),
    /// These members, with a TTL in seconds; the number of the pool that has them.
    Members(Choice<'s>, u32, u32),
}

/// Has a pool choose records of a type for the name at a hop, and notes what the reply depends on.
#[inline(always)] // on the path of each steered name
fn choose<'s>(
    writer: &mut Writer<'_, 's, '_>,
    hop: usize,
    steering: &'s Steering,
    (rtype, pool): (Type, u32),
) -> Chosen<'s> {
    let ask = writer.ask;
    let (address, prefix) = ask.client_network();
    let (client, more_bits) = ClientNetwork::of_told(address, prefix);
    let (mut pool, mut ttl) = (pool, u32::MAX);
    let is_repeated = rtype == Type::CNAME && ask.snapshot.zones.has_forwards();
    let mut own_dice = is_repeated.then(|| dice_of(writer, hop));
    for _ in 0..POOL_DEPTH_MAX {
        let Some(plan) = steering.pools.get(pool as usize) else { break };
        ttl = ttl.min(plan.ttl);
        let Some(view) = plan.view(rtype) else { return Chosen::NoData };
        let Worker { chain, dice, .. } = &mut *writer.worker;
        let name = chain.name_at(hop, ask.name).as_wire();
        match View::choose(view, &client, name, own_dice.as_mut().unwrap_or(dice)) {
            Outcome::Pool(next, scope) => {
                writer.reuse.forbid(NotReused::Steered);
                if scope > 0 {
                    writer.answer.set_scope(scope + more_bits);
                }
                pool = next;
            }
            Outcome::Without(end) => return Chosen::Without(end),
            Outcome::Members(choice) => {
                if choice.scope > 0 {
                    writer.answer.set_scope(choice.scope + more_bits);
                }
                return Chosen::Members(choice, ttl, pool);
            }
        }
    }
    Chosen::Without(EndWithout::ServFail) // the configuration has no circle of pools
}

/// The alias that pools choose for a name.
pub(super) enum SteeredAlias<'s> {
    /// No pool chooses what answers a question for addresses.
    None,
    /// What pools choose answers the question, or denies the name.
    Answered,
    /// A pool has chosen a CNAME record with this target, in wire form, and this TTL.
    To(&'s [u8], u32),
}

/// Finds the alias that pools choose for the name at a link of the chain. `is_there` says whether
/// the data of its zone have the name, or the wildcard below the label `encloser`.
pub(super) fn steered_alias<'s>(
    writer: &mut Writer<'_, 's, '_>,
    link: usize,
    zone: &Zone,
    (is_there, encloser): (bool, usize),
) -> SteeredAlias<'s> {
    let ask = writer.ask;
    let steering = ask.snapshot.steering.as_deref().filter(|_| !zone.is_signed());
    let Some(steering) = steering else { return SteeredAlias::None };
    let name = writer.name(link + 1);
    let (label, pools) = match steering.names.find(name, zone.apex().len(), encloser) {
        None => return SteeredAlias::None,
        Some(SteeredMatch::Exact(pools)) => (0, pools),
        Some(SteeredMatch::Wildcard(label, pools)) => (label, pools),
        Some(SteeredMatch::Missing(_)) => return SteeredAlias::Answered,
    };
    let of_type = |rtype| pools.iter().copied().find(|(steered, _)| *steered == rtype);
    let pool = match (of_type(ask.query.qtype), of_type(Type::CNAME)) {
        (None, Some((_, pool))) => pool,
        (None, None) if is_there && label == encloser => return SteeredAlias::None,
        _ => return SteeredAlias::Answered,
    };
    match choose(writer, link + 1, steering, (Type::CNAME, pool)) {
        Chosen::Members(choice, ttl, _) => SteeredAlias::To(choice.rdata(0), ttl),
        Chosen::NoData | Chosen::Without(_) => SteeredAlias::Answered,
    }
}

/// Random numbers that are the same when the query has waited for what the choice leads to: they
/// come of when it was received, by which port, its id and the name.
#[cold]
fn dice_of(writer: &Writer<'_, '_, '_>, hop: usize) -> Dice {
    let (ask, octets) = (writer.ask, writer.answer.reply.buffer());
    let id = octets.first_chunk().map_or(0, |id| u64::from(u16::from_be_bytes(*id)));
    let of_client = id << 16 | u64::from(ask.peer.address.port());
    Dice::new(ask.received_nanos() ^ of_client << 32 ^ writer.name(hop).hash(0))
}

impl<'s> Walk<'_, 's, '_> {
    /// Answers for the present name if it is steered, or exists because a name below it is.
    /// `node` is what the zone's data would answer from, and `encloser` the label at which the
    /// closest encloser in them begins; 0 if they have the name.
    #[inline]
    pub(super) fn answer_steered(
        &mut self,
        node: Option<Node<'s>>,
        encloser: usize,
    ) -> Result<Option<Flow>, Full> {
        match self.writer.ask.snapshot.steering.as_deref() {
            Some(steering) => self.steer(steering, node, encloser),
            None => Ok(None),
        }
    }

    /// Does so where names are steered.
    #[inline(never)] // it would only make the path of other zone data longer
    fn steer(
        &mut self,
        steering: &'s Steering,
        node: Option<Node<'s>>,
        encloser: usize,
    ) -> Result<Option<Flow>, Full> {
        let zone_bytes = self.zone().apex().len();
        let found = steering.names.find(self.name(), zone_bytes, encloser);
        let Some(found) = found.filter(|_| !self.zone().is_signed()) else { return Ok(None) };
        let (label, pools) = match found {
            SteeredMatch::Exact(pools) => (0, pools),
            SteeredMatch::Wildcard(label, pools) => (label, pools),
            SteeredMatch::Missing(label) => return self.deny_name_apart(label).map(Some),
        };
        let qtype = self.writer.ask.query.qtype;
        let of_type = |rtype| pools.iter().copied().find(|(steered, _)| *steered == rtype);
        let wanted = match qtype {
            Type::ANY => pools.first().copied(), // one set is enough (rfc8482#4.1)
            qtype => of_type(qtype),
        };
        let answered = wanted.or_else(|| of_type(Type::CNAME));
        if answered.is_none() && node.is_some() && label == encloser {
            return Ok(None); // the zone's data have the other types
        }
        if label > 0 {
            self.note_owner(label);
        }
        self.writer.answer.flags |= flag::AA;
        match answered {
            Some((rtype, pool)) => self.answer_from_pool(steering, rtype, pool).map(Some),
            None => self.no_steered_data().map(Some),
        }
    }

    /// Answers with what a pool chooses for a type, which is the one asked for or CNAME.
    fn answer_from_pool(
        &mut self,
        steering: &'s Steering,
        rtype: Type,
        pool: u32,
    ) -> Result<Flow, Full> {
        let (hop, is_alias) = (self.hop(), rtype == Type::CNAME);
        let is_alias = is_alias && self.writer.ask.query.qtype != Type::CNAME;
        let (choice, ttl, pool) = match choose(&mut self.writer, hop, steering, (rtype, pool)) {
            Chosen::NoData => return self.no_steered_data(),
            Chosen::Without(end) => return self.end_without(end),
            Chosen::Members(choice, ttl, pool) => (choice, ttl, pool),
        };
        if is_alias && self.must_wait_behind_pool() {
            return Ok(Break(Verdict::Defer));
        }
        self.writer.chosen(hop, (rtype, ttl), &choice)?;
        if self.writer.ask.wants_reason() {
            self.name_choice(steering, pool, &choice);
        }
        if is_alias {
            return Ok(self.go_to(choice.rdata(0)));
        }
        self.done(Rcode::NOERROR, Reason::Steered)
    }

    /// Puts the names of the pool and of the members that are chosen into the worker's body, as far
    /// as there is room.
    #[cold]
    fn name_choice(&mut self, steering: &Steering, pool: u32, choice: &Choice<'_>) {
        let labels = steering.labels.as_ref().and_then(|labels| labels.get(pool as usize));
        let Some(PoolLabels { pool, members }) = labels else { return };
        let names = (0..choice.count()).map(|place| members.get(choice.member(place) as usize));
        self.writer.answer.add_text(&mut self.writer.worker.body, format_args!("pool {pool}:"));
        for name in names.flatten() {
            self.writer.answer.add_text(&mut self.writer.worker.body, format_args!(" {name}"));
        }
    }

    /// Ends with a name that has no records of the type.
    fn no_steered_data(&mut self) -> Result<Flow, Full> {
        self.write_soa()?;
        self.done(Rcode::NOERROR, Reason::NoData)
    }

    /// Ends as the policy of a pool without a member that is up says.
    #[cold]
    fn end_without(&mut self, end: EndWithout) -> Result<Flow, Full> {
        self.writer.reuse.forbid(NotReused::Steered);
        let rcode = match end {
            EndWithout::NoData => return self.no_steered_data(),
            EndWithout::ServFail => Rcode::SERVFAIL,
            EndWithout::Refused => Rcode::REFUSED,
        };
        self.writer.answer.flags &= !flag::AA;
        self.done(rcode, Reason::PoolDown)
    }
}
