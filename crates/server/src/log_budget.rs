//! A bound on what one mistake writes into the log.

use std::sync::{Mutex, PoisonError};
use zonda_netio::clock::boot_nanos;

/// Lines of one kind that are written each second. More of them say nothing new, and would fill
/// the disk when every query fails.
const LINES_MAX: u32 = 10;

/// Counts lines of one kind by the second.
pub struct LogBudget(Mutex<Budget>);

/// The present second, and what was written in it.
struct Budget {
    second: u64,
    lines: u32,
    /// Lines left out since the last one that was written.
    left_out: u64,
}

impl LogBudget {
    /// A budget of which no line was used yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Budget { second: 0, lines: 0, left_out: 0 }))
    }

    /// Has `write` write a line, unless there were enough in this second; it is given the number
    /// of such lines that were left out before, if there were some.
    pub fn spend(&self, write: impl FnOnce(Option<u64>)) {
        if let Some(left_out) = self.take(boot_nanos() / 1_000_000_000) {
            write(Some(left_out).filter(|count| *count > 0));
        }
    }

    /// Whether a line may be written in a second, and how many were left out before it.
    fn take(&self, second: u64) -> Option<u64> {
        let mut budget = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if budget.second != second {
            (budget.second, budget.lines) = (second, 0);
        }
        if budget.lines == LINES_MAX {
            budget.left_out += 1;
            return None;
        }
        budget.lines += 1;
        Some(std::mem::take(&mut budget.left_out))
    }
}

impl Default for LogBudget {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_budget_of_a_second_are_counted_by_the_next_one() {
        let budget = LogBudget::new();
        for second in [7, 8] {
            let written = (0..25).filter(|_| budget.take(second).is_some()).count();
            assert_eq!(written, 10);
        }
        assert_eq!(budget.take(9), Some(15));
        assert_eq!(budget.take(9), Some(0));
    }
}
