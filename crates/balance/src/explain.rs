//! Why a pool answers a client as it does.
//!
//! An explanation takes the way of the compilation, with the client known, and notes what each step
//! has left: there is one code for both.

use crate::client::ClientNetwork;
use crate::compile::MemberState;
use crate::plan::{Decision, EndWithout, Pick};
use crate::pool::{Order, Pool, WhenAllDown};
use std::cell::RefCell;
use zonda_wire::Type;

/// A step that members have passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Members that are up remain.
    Up,
    /// None is up, and the policy for that decides.
    AllDown(WhenAllDown),
    /// Members remain that do not wait after they have come back.
    Held,
    /// Members with a weight remain.
    Weight,
    /// Members of the lowest priority number remain.
    Failover,
    /// Members remain whose latency is little above the least, in microseconds.
    Latency(u32),
    /// These members, by their numbers in the pool, take less than all queries that come to them:
    /// so many percent.
    Load(Vec<(u32, u8)>),
    /// All members are at one site, or at none, whatever the client prefers.
    OneSite,
    /// Members at the sites remain that the client prefers.
    Sites {
        /// The numbers of the sites that it prefers, the best tier first.
        tiers: Vec<Vec<u16>>,
        /// The bits of the client's network that this depends on.
        scope: u8,
        /// The part of the queries that the members take, in percent: the rest goes to the next
        /// tier.
        percent: u8,
    },
}

/// A step, and the members before and behind it by their numbers in the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedStep {
    /// The step that was passed.
    pub step: Step,
    /// The members that came to it.
    pub before: Vec<u32>,
    /// The members that it has left.
    pub after: Vec<u32>,
}

/// How the steps of a pool end for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// So many of these members answer, by their numbers in the pool, in this order.
    Group {
        /// The members that the steps have left.
        members: Vec<u32>,
        /// How the first of them is found.
        order: Order,
        /// How many of them answer.
        count: usize,
        /// The part of the queries that each is the first for, in percent, where some of them take
        /// less than all that come to them; empty elsewhere.
        percents: Vec<u8>,
    },
    /// Another pool answers.
    Pool(u32),
    /// No member answers.
    Without(EndWithout),
}

/// What a pool does for a client, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The steps that decide.
    pub steps: Vec<PassedStep>,
    /// What they come to.
    pub end: End,
    /// The bits of the client's network that the answer depends on.
    pub scope: u8,
}

/// What is known while an explanation is made.
pub(crate) struct Explained {
    /// The client that it is made for.
    pub client: ClientNetwork,
    /// The steps so far.
    pub steps: Vec<PassedStep>,
    /// The bits of the client's network that they depend on.
    pub scope: u8,
    /// The parts of the queries that members get, as [`End::Group`] has them.
    pub percents: Vec<u8>,
}

impl Explained {
    /// Notes bits of the client's network that a step depends on.
    pub fn note_scope(&mut self, scope: u8) {
        self.scope = self.scope.max(scope);
    }
}

impl Pool {
    /// Tells what the pool does for a client in the states of its members, by number; none if it
    /// has no records of the type.
    #[must_use]
    pub fn explain(
        &self,
        states: &[MemberState],
        rtype: Type,
        client: &ClientNetwork,
    ) -> Option<Explanation> {
        let records = self.records.iter().find(|records| records.rtype == rtype)?;
        let (steps, percents) = (Vec::new(), Vec::new());
        let explained = Explained { client: *client, steps, scope: 0, percents };
        let explained = RefCell::new(explained);
        let decision = self.decide(&self.options(records), states, Some(&explained));
        let Explained { steps, mut scope, percents, .. } = explained.into_inner();
        let end = match decision {
            Decision::Pool(pool) => End::Pool(pool),
            Decision::Without(end) => End::Without(end),
            Decision::Sites(_) => return None, // a client is known, so that its sites are
            Decision::Group(group) => {
                let members = group.members.iter().map(|option| option.member).collect();
                if let Pick::Client(_, v4, v6) = group.pick {
                    scope = scope.max(if client.address.is_ipv4() { v4 } else { v6 });
                }
                End::Group { members, order: self.order, count: group.count, percents }
            }
        };
        Some(Explanation { steps, end, scope })
    }
}
