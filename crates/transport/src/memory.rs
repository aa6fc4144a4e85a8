//! When to give memory back that waiting queries have used.
//!
//! The allocator keeps what was freed for later. That is right for what is used all the time, but a
//! flood of queries for silent upstreams may come once a month.

/// As many waiting queries make a peak: some MiB.
const PEAK_MIN: usize = 1024;

/// Tells when a peak of waiting queries is over.
#[derive(Debug, Default)]
pub struct Peak {
    /// The most queries that waited since memory was given back last.
    most: usize,
    /// Whether [`is_over`](Self::is_over) is to be asked.
    is_ending: bool,
}

impl Peak {
    /// Notes how many queries wait; whether [`is_over`](Self::is_over) is to be asked in some time,
    /// when connections have closed and it is clear that the peak does not go on.
    pub fn note(&mut self, waiting: usize) -> bool {
        self.most = self.most.max(waiting);
        let ends_now = waiting == 0 && self.most >= PEAK_MIN && !self.is_ending;
        self.is_ending |= ends_now;
        ends_now
    }

    /// Whether the peak is over, so that memory is to be given back.
    pub fn is_over(&mut self, waiting: usize) -> bool {
        self.is_ending = false;
        let is_over = waiting < PEAK_MIN;
        if is_over {
            self.most = waiting;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_for_each_peak_that_is_over() {
        let mut peak = Peak::default();
        assert!(!peak.note(PEAK_MIN - 1) && !peak.note(0), "that was no peak");
        assert!(!peak.note(PEAK_MIN) && !peak.note(1));
        assert!(peak.note(0) && !peak.note(0), "it is asked once");
        assert!(!peak.note(2 * PEAK_MIN) && !peak.is_over(2 * PEAK_MIN), "it goes on");
        assert!(peak.note(0) && peak.is_over(3));
        assert!(!peak.note(0), "it was given back");
    }
}
