//! Names of zone data whose records a pool chooses.
//!
//! A steered set takes the place of the zone's own set of the type, if it has one; all else at the
//! name is the zone's. The name exists even if the zone's data do not have it. A signed zone is not
//! steered, as no signature would be of the records chosen.

use super::walk::Walk;
use crate::reason::Reason;
use crate::steering::{PoolLabels, SteeredMatch, Steering};
use crate::verdict::Flow;
use zonda_balance::{Choice, ClientNetwork, EndWithout, Outcome, POOL_DEPTH_MAX, View};
use zonda_wire::query::flag;
use zonda_wire::{Full, Rcode, Type};
use zonda_zone::Node;

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
            SteeredMatch::Missing(label) => return self.deny_name(label).map(Some),
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
        let ask = self.writer.ask;
        let (address, prefix) = ask.client_network();
        let (client, more_bits) = ClientNetwork::of_told(address, prefix);
        let (mut pool, mut ttl) = (pool, u32::MAX);
        for _ in 0..POOL_DEPTH_MAX {
            let Some(plan) = steering.pools.get(pool as usize) else { break };
            ttl = ttl.min(plan.ttl);
            let Some(view) = plan.view(rtype) else { return self.no_steered_data() };
            let name = self.writer.worker.chain.name_at(self.hop(), ask.name).as_wire();
            match View::choose(view, &client, name, &mut self.writer.worker.dice) {
                Outcome::Pool(next, scope) => {
                    self.writer.reuse.forbid(crate::reuse::NotReused::Steered);
                    if scope > 0 {
                        self.writer.answer.set_scope(scope + more_bits);
                    }
                    pool = next;
                }
                Outcome::Without(end) => return self.end_without(end),
                Outcome::Members(choice) => {
                    if choice.scope > 0 {
                        self.writer.answer.set_scope(choice.scope + more_bits);
                    }
                    self.writer.chosen(self.hop(), (rtype, ttl), &choice)?;
                    if ask.wants_reason() {
                        self.name_choice(steering, pool, &choice);
                    }
                    if rtype == Type::CNAME && ask.query.qtype != Type::CNAME {
                        return Ok(self.go_to(choice.rdata(0)));
                    }
                    return self.done(Rcode::NOERROR, Reason::Steered);
                }
            }
        }
        self.end_without(EndWithout::ServFail) // the configuration has no circle of pools
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
        self.writer.reuse.forbid(crate::reuse::NotReused::Steered);
        let rcode = match end {
            EndWithout::NoData => return self.no_steered_data(),
            EndWithout::ServFail => Rcode::SERVFAIL,
            EndWithout::Refused => Rcode::REFUSED,
        };
        self.writer.answer.flags &= !flag::AA;
        self.done(rcode, Reason::PoolDown)
    }
}
