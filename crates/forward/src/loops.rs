//! Upstreams whose questions come back to this server, directly or by way of other servers.
//!
//! An upstream that is not up is sent a question that no client asks: its first label holds a
//! time and the upstream, both hidden by a secret of the process. A query for such a name can only
//! be that question, come back. The upstream is then not asked until a later question is answered
//! without coming back, or for a while.
//!
//! Deliberately absent: a mark in each query, which other servers would not pass on.

use std::fmt;
use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use siphasher::sip::SipHasher24;

use crate::cause::Probe;
use crate::random;

/// Octets of the first label: two numbers in hexadecimal.
const LABEL_BYTES: usize = 32;
/// How late a question may come back, nanoseconds. An attacker that has heard its name can make
/// this server believe in a loop only for so long.
const LATE_MAX_NANOS: u64 = 10_000_000_000;
/// How long a loop is believed in beyond the longest time between two questions, nanoseconds: until
/// the next had time to come back.
const HELD_BEYOND_NANOS: u64 = 4_000_000_000;

/// Rounds of [`LoopQuestions::hide`]: with four, what comes of it cannot be told from random
/// numbers (Luby and Rackoff).
const ROUNDS: std::ops::Range<u8> = 0..4;
/// When the questions to each upstream of a group last came back; all threads share it.
pub struct Loops {
    /// When a loop was last seen, by the place of the upstream; nanoseconds of the monotonic clock,
    /// 0 for never.
    seen_at: Box<[AtomicU64]>,
    /// How long a loop is believed in, nanoseconds.
    held_nanos: u64,
}

impl Loops {
    /// None seen with any of so many upstreams, which are asked again within `probe_nanos_max`.
    #[must_use]
    pub fn new(upstreams: usize, probe_nanos_max: u64) -> Self {
        let seen_at = (0..upstreams).map(|_| AtomicU64::new(0)).collect();
        Self { seen_at, held_nanos: probe_nanos_max + HELD_BEYOND_NANOS }
    }

    /// Whether the upstream at a place must not be asked now; nanoseconds of the monotonic clock.
    #[must_use]
    pub fn holds(&self, place: usize, now: u64) -> bool {
        let seen_at = self.seen_at.get(place).map_or(0, |seen_at| seen_at.load(Relaxed));
        seen_at > 0 && now.saturating_sub(seen_at) < self.held_nanos
    }

    /// Whether a loop is held against any upstream.
    pub fn hold_any(&self, now: u64) -> bool {
        (0..self.seen_at.len()).any(|place| self.holds(place, now))
    }

    /// A question came back; whether that is news.
    pub fn note(&self, place: usize, now: u64) -> bool {
        let is_news = !self.holds(place, now);
        if let Some(seen_at) = self.seen_at.get(place) {
            seen_at.store(now, Relaxed);
        }
        is_news
    }

    /// A question that was sent at `sent_at` was answered: if it did not come back, none do.
    pub fn clear(&self, place: usize, sent_at: u64) {
        if let Some(seen_at) = self.seen_at.get(place)
            && seen_at.load(Relaxed) < sent_at
        {
            seen_at.store(0, Relaxed);
        }
    }
}

/// The questions that show a loop when they come back; all forwarder threads share it.
pub struct LoopQuestions {
    /// Hides when and to which upstream a question was sent.
    secret: SipHasher24,
    /// How many loops were found.
    found: AtomicU64,
}

impl fmt::Debug for LoopQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopQuestions").field("found", &self.found).finish_non_exhaustive()
    }
}

impl Default for LoopQuestions {
    /// Questions with a secret of the system, and no loop.
    fn default() -> Self {
        let secret = SipHasher24::new_with_key(&random::secret());
        Self { secret, found: AtomicU64::new(0) }
    }
}

impl LoopQuestions {
    /// Takes note that a loop was found.
    pub fn count(&self) {
        self.found.fetch_add(1, Relaxed);
    }

    /// How many loops were found.
    pub fn found(&self) -> u64 {
        self.found.load(Relaxed)
    }

    /// The name that an upstream of the zone of `apex` is asked for, in wire form.
    pub fn name(&self, probe: Probe, apex: &[u8]) -> Vec<u8> {
        let upstream = u64::from(probe.group) << 8 | probe.upstream as u64; // at most 64 in a group
        let [first, second] = self.hide([probe.sent_at, upstream]);
        let label = format!("{first:016x}{second:016x}");
        [&[LABEL_BYTES as u8], label.as_bytes(), apex].concat()
    }

    /// What a name was asked for, if it is one of [`name`](Self::name), in lower case.
    pub fn read(&self, name: &[u8], now: u64) -> Option<Probe> {
        let (len, rest) = name.split_first()?;
        if usize::from(*len) != LABEL_BYTES {
            return None;
        }
        let number =
            |range| u64::from_str_radix(std::str::from_utf8(rest.get(range)?).ok()?, 16).ok();
        let [sent_at, upstream] = self.reveal([number(0..16)?, number(16..LABEL_BYTES)?]);
        let group = u32::try_from(upstream >> 8).ok()?;
        let is_recent = sent_at <= now && now - sent_at < LATE_MAX_NANOS;
        is_recent.then_some(Probe { group, upstream: (upstream & 0xff) as usize, sent_at })
    }

    /// Turns two numbers into two different ones by a Feistel network, which
    /// [`reveal`](Self::reveal) turns back.
    fn hide(&self, numbers: [u64; 2]) -> [u64; 2] {
        let step = |[left, right]: [u64; 2], round| [right, left ^ self.keyed_hash(round, right)];
        ROUNDS.fold(numbers, step)
    }

    /// The two numbers that [`hide`](Self::hide) has made these of.
    fn reveal(&self, numbers: [u64; 2]) -> [u64; 2] {
        let step = |[left, right]: [u64; 2], round| [right ^ self.keyed_hash(round, left), left];
        ROUNDS.rev().fold(numbers, step)
    }

    /// The hash of a number in a round of [`hide`](Self::hide).
    fn keyed_hash(&self, round: u8, number: u64) -> u64 {
        let mut hasher = self.secret;
        hasher.write_u8(round);
        hasher.write_u64(number);
        hasher.finish()
    }
}

/// Whether a name may be one that another server asks for, or this one. Such are passed on even
/// where a loop was found: if no server did, all would believe that it is over.
pub fn is_check(name: &[u8]) -> bool {
    name.split_first().is_some_and(|(len, rest)| {
        let label = rest.get(..LABEL_BYTES).unwrap_or_default();
        usize::from(*len) == LABEL_BYTES && label.iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_upstream_for_a_while_and_no_other_name_does() {
        let probe = Probe { group: 7, upstream: 31, sent_at: 1 << 40 };
        let questions = LoopQuestions::default();
        let read = |name: &[u8], now| questions.read(name, now);
        let mut name = questions.name(probe, b"\x07example\0");
        assert_eq!(&name[LABEL_BYTES + 1..], b"\x07example\0");
        assert_eq!(read(&name, probe.sent_at + 1), Some(probe));
        assert_eq!(read(&name, probe.sent_at + LATE_MAX_NANOS), None);
        assert_eq!(read(&name, probe.sent_at - 1), None);
        name[1] = if name[1] == b'0' { b'1' } else { b'0' };
        assert_eq!(read(&name, probe.sent_at + 1), None);
        for other in [&b""[..], b"\0", b"\x20", b"\x03www\0"] {
            assert_eq!(read(other, 1), None);
        }
    }

    #[test]
    fn a_name_shows_neither_when_nor_to_which_upstream_it_was_sent() {
        let questions = LoopQuestions::default();
        let label = |upstream, sent_at| {
            let octets = questions.name(Probe { group: 7, upstream, sent_at }, b"\0");
            String::from_utf8_lossy(&octets[1..=LABEL_BYTES]).into_owned()
        };
        let labels = [label(1, 1 << 40), label(2, 1 << 40), label(1, (1 << 40) + 1)];
        assert!(labels.iter().all(|label| !label.contains("00000100000")), "{labels:?}");
        for half in [0..16, 16..LABEL_BYTES] {
            let halves = labels.each_ref().map(|label| &label[half.clone()]);
            assert!(halves[0] != halves[1] && halves[0] != halves[2] && halves[1] != halves[2]);
        }
    }

    #[test]
    fn a_loop_is_believed_in_until_a_later_question_is_answered_or_time_has_passed() {
        let loops = Loops::new(2, 1000);
        assert!(loops.note(1, 100));
        assert!(!loops.note(1, 200), "no news");
        assert!(loops.holds(1, 200) && !loops.holds(0, 200) && loops.hold_any(200));
        loops.clear(1, 150);
        assert!(loops.holds(1, 200), "it came back after that was sent");
        loops.clear(1, 300);
        assert!(!loops.holds(1, 300));
        assert!(loops.note(1, 400));
        assert!(loops.holds(1, 400 + 1000) && !loops.holds(1, 400 + 1000 + HELD_BEYOND_NANOS));
    }
}
