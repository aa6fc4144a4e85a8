//! How fast messages may be sent: a token bucket, without clocks.

/// The time in which a message more may be sent, milliseconds: 200 a second, as each makes its
/// receiver ask in turn. It bounds how fast all zones are announced at the start.
const GAP_MILLIS: u64 = 5;
/// Messages that may be sent at once after a pause, so that all servers hear of a change together.
pub const BURST: u64 = 50;

/// The rate of messages: [`BURST`] at once, then one each [`GAP_MILLIS`].
#[derive(Default)]
pub struct Rate {
    /// When all messages would have been sent if each had waited for the gap behind the one before.
    spent_until: u64,
}

impl Rate {
    /// When the next message may be sent.
    pub fn free_millis(&self) -> u64 {
        self.spent_until.saturating_sub((BURST - 1) * GAP_MILLIS)
    }

    /// Notes that a message was sent.
    pub fn note_sent(&mut self, now_millis: u64) {
        self.spent_until = self.spent_until.max(now_millis) + GAP_MILLIS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages that are sent at a moment.
    fn sent(rate: &mut Rate, now: u64) -> u64 {
        let mut sent = 0;
        while rate.free_millis() <= now {
            rate.note_sent(now);
            sent += 1;
        }
        sent
    }

    #[test]
    fn fifty_messages_are_sent_at_once_and_then_two_hundred_a_second() {
        let mut rate = Rate::default();
        assert_eq!(sent(&mut rate, 1000), BURST);
        assert_eq!(rate.free_millis(), 1005);
        assert_eq!((1..=1000).map(|it| sent(&mut rate, 1000 + it)).sum::<u64>(), 200);
        assert_eq!(sent(&mut rate, 9000), BURST, "a pause allows no more at once than that");
    }
}
