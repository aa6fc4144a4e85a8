//! How many queries may be sent beside those that questions need.
//!
//! Each question earns a part of an extra query, a little under a twentieth by default. A hedge,
//! which asks a second upstream only because the first is slow today, is paid from what is above a
//! reserve; an early repeat of an overdue query may use the reserve, too, so that a lone loss is
//! repeated at once at any rate. Both are given back when a query that they stood in for turns out
//! to be lost: then they were needed.
//!
//! What is given back comes half a second late. Where much is lost, that is too late: at 1,000
//! questions a second, of which upstreams lose 30 %, some 200 repeats are paid before the first is
//! given back. So once the share of lost queries is known to be high, each question earns the
//! repeats that it can be expected to need, too.
//!
//! What cannot be paid is not sent early. A query that stays unanswered beyond doubt is repeated
//! without asking here, and so is one whose upstream failed; that makes debts, which keep hedges
//! from being sent until they are worked off.

/// What an extra query costs.
const COST: i32 = 1000;
/// What a question earns for each percent that is allowed: nine tenths of it, so that of 5 %, 4.5 %
/// are earned and, with 0.3 % lost, which is given back, no more than 5 % are sent.
const EARNED_A_PERCENT: i32 = COST * 9 / 1000;
/// What hedges must leave untouched: early repeats of ten losses in a row.
const RESERVE: i32 = 10 * COST;
/// Most that is saved, and most that is owed.
const LEVEL_MAX: i32 = 2 * RESERVE;

/// Shares are in parts of this.
const WHOLE: i32 = 1 << 16;
/// The share of lost queries from which on each question earns repeats: what is lost by chance does
/// not reach it.
const LOST_MIN: i32 = WHOLE / 16;
/// The share of lost queries that counts at most: a question earns a repeat, and no more.
const LOST_MAX: i32 = WHOLE / 2;
/// A query weighs so little, as a power of two, in the share of those lost.
const LOST_WEIGHT: u32 = 8;

/// The account of extra queries.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The share of queries that were lost, in parts of [`WHOLE`].
    lost: i32,
    /// Level of the account, from −[`LEVEL_MAX`] to [`LEVEL_MAX`]; never above 0 if nothing is
    /// earned.
    level: i32,
    /// Amount that a question earns.
    earned: i32,
}

impl Budget {
    /// Makes a budget of so many extra queries in a hundred questions; 0: none is ever paid for.
    pub fn new(percent: u8) -> Self {
        let earned = i32::from(percent) * EARNED_A_PERCENT;
        Self { lost: 0, level: if earned > 0 { RESERVE } else { 0 }, earned }
    }

    /// Counts a question that came.
    pub fn earn(&mut self) {
        self.add(self.earned + self.expected_repeats());
    }

    /// Counts a query that has ended, and was lost or not.
    pub fn ended(&mut self, is_lost: bool) {
        let target = if is_lost { WHOLE } else { 0 };
        self.lost += (target - self.lost) >> LOST_WEIGHT;
    }

    /// Whether more is lost than by chance.
    #[must_use]
    pub fn much_is_lost(&self) -> bool {
        self.lost >= LOST_MIN
    }

    /// Returns what the repeats cost that a question can be expected to need; nothing while little
    /// is lost.
    fn expected_repeats(&self) -> i32 {
        if !self.much_is_lost() {
            return 0;
        }
        let lost = self.lost.min(LOST_MAX);
        COST * lost / (WHOLE - lost)
    }

    /// Pays for a hedge, if that leaves the reserve untouched.
    #[must_use]
    pub fn pay_hedge(&mut self) -> bool {
        self.level >= RESERVE + COST && self.pay_repeat()
    }

    /// Pays for an early repeat, if there is enough.
    #[must_use]
    pub fn pay_repeat(&mut self) -> bool {
        let enough = self.level >= COST;
        if enough {
            self.add(-COST);
        }
        enough
    }

    /// Counts a query that had to be sent.
    pub fn owe(&mut self) {
        self.add(-COST);
    }

    /// Refunds an extra query that proved to be needed.
    pub fn give_back(&mut self) {
        self.add(COST);
    }

    /// Changes the level within its bounds.
    fn add(&mut self, change: i32) {
        let level_max = if self.earned > 0 { LEVEL_MAX } else { 0 };
        self.level = (self.level + change).clamp(-LEVEL_MAX, level_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hedges_are_a_small_share_of_the_questions_and_leave_the_reserve() {
        for (percent, expected) in [(1, 9), (5, 45), (20, 180), (100, 900)] {
            let mut budget = Budget::new(percent);
            let mut hedges = 0;
            for _ in 0..1000 {
                budget.earn();
                hedges += i32::from(budget.pay_hedge());
            }
            assert_eq!(hedges, expected);
            assert!((0..10).all(|_| budget.pay_repeat()));
            assert!(!budget.pay_repeat());
        }
    }

    #[test]
    fn an_empty_budget_pays_nothing_even_after_a_refund() {
        let mut budget = Budget::new(0);
        for _ in 0..1000 {
            budget.earn();
            budget.give_back();
            assert!(!budget.pay_repeat() && !budget.pay_hedge());
        }
    }

    #[test]
    fn a_fetch_may_repeat_queries_freely_once_much_loss_is_known() {
        for (lost_of_10, repeats) in [(0, 0..=0), (1, 100..=130), (3, 380..=480), (9, 980..=1000)] {
            let mut budget = Budget::new(5);
            (0..5000).for_each(|number| budget.ended(number % 10 < lost_of_10));
            assert!(repeats.contains(&budget.expected_repeats()), "{budget:?}");
        }
        let mut none = Budget::new(0);
        (0..5000).for_each(|_| none.ended(true));
        none.earn();
        assert!(!none.pay_repeat(), "of a budget of nothing, nothing is paid");
    }

    #[test]
    fn debts_are_bounded_and_worked_off_before_the_next_hedge() {
        let mut budget = Budget::new(5);
        (0..1000).for_each(|_| budget.owe());
        (0..444).for_each(|_| budget.earn());
        assert!(!budget.pay_repeat());
        (0..23).for_each(|_| budget.earn());
        assert!(budget.pay_repeat() && !budget.pay_hedge());
    }
}
