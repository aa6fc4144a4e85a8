//! The queries that wait, and what is fetched for them.

use zonda_deferral::Peak;

use crate::fetch::Fetches;
use crate::group::Bounds;
use crate::pending::PendingQuery;
use crate::waiters::Waiters;

/// The queries that wait, and what is fetched for them.
pub struct PendingQueries {
    /// The places of queries that wait.
    pub waiters: Waiters,
    /// The questions that are asked, and their exchanges.
    pub fetches: Fetches,
    /// Queries taken from the inbox and not looked at yet, the next one last.
    pub taken: Vec<PendingQuery>,
    /// The most queries that have waited, or were fetched.
    peak: Peak,
}

impl Default for PendingQueries {
    /// No query yet, and as many places as a configuration has by default.
    fn default() -> Self {
        Self {
            waiters: Waiters::new(Bounds::default().waiting_max),
            fetches: Fetches::default(),
            taken: Vec::new(),
            peak: Peak::default(),
        }
    }
}

impl PendingQueries {
    /// Queries that wait, or fetches if they are more: these go on for what comes late.
    fn under_way(&self) -> usize {
        self.fetches.len().max(self.waiters.held() as usize)
    }

    /// Notes how many there are; returns whether a peak has begun, whose end is to be awaited.
    pub fn note_peak(&mut self) -> bool {
        self.peak.note(self.under_way())
    }

    /// Gives up memory if a peak of queries is over; returns whether it is.
    pub fn shrink_after_peak(&mut self) -> bool {
        let is_over = self.peak.is_over(self.under_way());
        if is_over {
            self.peak.gave_back(self.fetches.shrink());
            self.waiters.shrink();
        }
        is_over
    }
}
