//! When to give memory back that waiting queries have used.
//!
//! The allocator keeps what was freed for later. That is right for what is used all the time, but a
//! flood of queries for silent upstreams may come once a month. A peak is over when far fewer
//! queries have waited for some time: a busy server is never without any.

/// As many waiting queries make a peak: some MiB.
const PEAK_MIN: usize = 1024;
/// Far fewer than at a peak are less than this part of them. With a larger part, a load that swings
/// would have its memory given back, and taken again, each time.
const FAR_FEWER: usize = 4;

/// Tells when a peak of waiting queries is over.
#[derive(Debug, Default)]
pub struct Peak {
    /// The most queries for which there may still be memory.
    most: usize,
    /// The most queries that waited since the peak seemed to end.
    most_lately: usize,
    /// Whether [`is_over`](Self::is_over) is to be asked.
    is_ending: bool,
}

impl Peak {
    /// Notes how many queries wait; whether [`is_over`](Self::is_over) is to be asked in some time,
    /// when connections have closed and it is clear that the peak does not go on.
    pub fn note(&mut self, waiting: usize) -> bool {
        self.most = self.most.max(waiting);
        self.most_lately = self.most_lately.max(waiting);
        let ends_now = !self.is_ending && self.exceeds_by_far(waiting);
        if ends_now {
            (self.is_ending, self.most_lately) = (true, waiting);
        }
        ends_now
    }

    /// Whether the peak is over, so that memory is to be given back: few have waited ever since it
    /// seemed to end. [`gave_back`](Self::gave_back) follows then.
    pub fn is_over(&mut self, waiting: usize) -> bool {
        self.is_ending = false;
        self.exceeds_by_far(self.most_lately.max(waiting))
    }

    /// Takes note that memory was given back, except for so many queries. If these are many still,
    /// it is tried again.
    pub fn gave_back(&mut self, left: usize) {
        self.most = left;
    }

    /// Whether the peak was one, and far above a number of queries.
    fn exceeds_by_far(&self, waiting: usize) -> bool {
        self.most >= PEAK_MIN && waiting < self.most / FAR_FEWER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_for_each_peak_that_is_over() {
        let mut peak = Peak::default();
        assert!(!peak.note(PEAK_MIN - 1) && !peak.note(0), "that was no peak");
        assert!(!peak.note(PEAK_MIN) && !peak.note(PEAK_MIN / 4));
        assert!(peak.note(PEAK_MIN / 4 - 1) && !peak.note(0), "it is asked once");
        assert!(!peak.note(2 * PEAK_MIN) && !peak.is_over(2 * PEAK_MIN), "it goes on");
        assert!(peak.note(1) && peak.is_over(3));
        peak.gave_back(3);
        assert!(!peak.note(1), "it was given back");
    }

    #[test]
    fn a_peak_is_over_only_if_few_queries_have_waited_ever_since_it_seemed_to_end() {
        let mut peak = Peak::default();
        assert!(!peak.note(8 * PEAK_MIN) && peak.note(1));
        assert!(!peak.note(2 * PEAK_MIN) && !peak.note(1));
        assert!(!peak.is_over(1), "many have waited meanwhile");
        assert!(peak.note(1) && !peak.note(2 * PEAK_MIN - 1) && peak.is_over(1));
    }

    #[test]
    fn memory_that_cannot_be_given_back_yet_is_tried_again() {
        let mut peak = Peak::default();
        assert!(!peak.note(8 * PEAK_MIN) && peak.note(1) && peak.is_over(1));
        peak.gave_back(7 * PEAK_MIN);
        assert!(peak.note(1) && peak.is_over(1));
    }
}
