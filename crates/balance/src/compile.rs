//! From a pool and the states of its members to a plan.

use crate::explain::{Explained, Step};
use crate::filters::Compilation;
use crate::plan::{Decision, EndWithout, Opt, OptKind, Options, PoolPlan, SHORT, View};
use crate::pool::{Pool, Records, WhenAllDown};
use std::cell::RefCell;
use std::sync::Arc;

/// The state of a member, as far as a choice depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// Whether the member may answer.
    pub is_up: bool,
    /// Whether it was up when any member of the pool last was.
    pub was_up: bool,
    /// The part of its weight that it has at present, in units of 2⁻¹⁶: less than all of it for
    /// some time after it has come back.
    pub part: u32,
    /// The latency of its checks, microseconds; none before one has succeeded.
    pub latency: Option<u32>,
    /// Whether it waits after it has come back: it answers only when no other member is up that
    /// does not.
    pub is_held: bool,
    /// The load of the member, in percent; none if it is not known.
    pub load: Option<u32>,
}

impl MemberState {
    /// The whole of a member's weight.
    pub const WHOLE: u32 = 1 << 16;
    /// A member that is up, with all of its weight.
    pub const UP: Self = Self {
        is_up: true,
        was_up: true,
        part: Self::WHOLE,
        latency: None,
        is_held: false,
        load: None,
    };
    /// A member that is down.
    pub const DOWN: Self = Self { is_up: false, was_up: false, ..Self::UP };
}

impl Pool {
    /// Compiles the pool for the states of its members, by number. What it answers has this TTL in
    /// seconds. `former` is an earlier plan of the same pool, which lends what stays the same.
    ///
    /// # Panics
    /// When there are fewer states than members.
    #[must_use]
    pub fn compile(&self, states: &[MemberState], ttl: u32, former: Option<&PoolPlan>) -> PoolPlan {
        let views = self.records.iter().map(|records| {
            let lent = former.and_then(|plan| plan.view(records.rtype));
            let options = match lent {
                Some(view) => Arc::clone(&view.options),
                None => Arc::new(self.options(records)),
            };
            let decision = self.decide(&options, states, None);
            View { rtype: records.rtype, options, decision }
        });
        let mut views: Vec<View> = views.collect();
        let first = (!views.is_empty()).then(|| views.remove(0));
        PoolPlan { ttl, first, more: views.into() }
    }

    /// The members that can answer for a type.
    pub(crate) fn options(&self, records: &Records) -> Options {
        let (mut octets, mut options) = (Vec::new(), Vec::new());
        for (number, (member, rdata)) in self.members.iter().zip(&records.rdatas).enumerate() {
            let kind = match (member.pool, rdata) {
                (Some(_), Some(_)) => continue, // a pool without such records
                (Some(pool), None) => OptKind::Pool(pool),
                (None, Some(rdata)) if rdata.len() <= SHORT => {
                    let mut octets = [0; SHORT];
                    octets[..rdata.len()].copy_from_slice(rdata);
                    OptKind::Short(rdata.len() as u8, octets)
                }
                (None, Some(rdata)) => {
                    let start = octets.len() as u32; // the configuration is far below 4 GiB
                    octets.extend_from_slice(rdata);
                    OptKind::Long(start, rdata.len() as u16) // RDATA is at most that long
                }
                (None, None) => continue,
            };
            options.push(Opt { member: number as u32, kind });
        }
        Options { octets: octets.into(), options: options.into() }
    }

    /// Decides all that the states of the members decide; for an explanation, also what the client
    /// decides, and notes each step.
    pub(crate) fn decide(
        &self,
        options: &Options,
        states: &[MemberState],
        explained: Option<&RefCell<Explained>>,
    ) -> Decision {
        if options.options.is_empty() {
            return Decision::Without(EndWithout::NoData); // as for any type that a name lacks
        }
        let all = 0..options.options.len() as u32;
        let state = |option: u32| states[options.options[option as usize].member as usize];
        let up: Vec<u32> = all.clone().filter(|option| state(*option).is_up).collect();
        let compilation = Compilation { pool: self, options, states, explained };
        let all_members: Vec<u32> = all.clone().collect();
        compilation.note_before_filters(Step::Up, &all_members, &up);
        let up_is_empty = up.is_empty();
        let members = match (up_is_empty, self.when_all_down) {
            (false, _) => up,
            (true, WhenAllDown::All) => all.collect(),
            (true, WhenAllDown::LastHealthy) => {
                let last: Vec<u32> = all.clone().filter(|it| state(*it).was_up).collect();
                if last.is_empty() { all.collect() } else { last }
            }
            (true, WhenAllDown::Pool(pool)) => return Decision::Pool(pool),
            (true, WhenAllDown::ServFail) => return Decision::Without(EndWithout::ServFail),
            (true, WhenAllDown::NoData) => return Decision::Without(EndWithout::NoData),
            (true, WhenAllDown::Refused) => return Decision::Without(EndWithout::Refused),
        };
        if up_is_empty {
            let step = Step::AllDown(self.when_all_down);
            compilation.note_before_filters(step, &[], &members);
        }
        compilation.decide(members)
    }
}

#[cfg(test)]
mod tests;
