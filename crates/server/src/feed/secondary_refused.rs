//! Versions of primaries that a secondary has refused, so that they are not transferred again and
//! again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Versions that were refused, one of each primary at most.
#[derive(Default)]
pub struct RefusedVersions(Vec<RefusedVersion>);

/// A version that was refused, though all of it may have been transferred.
struct RefusedVersion {
    primary: SocketAddr,
    serial: u32,
    /// How often it was refused.
    times: u32,
    /// The moment until which it is not transferred again.
    until: Instant,
    /// Why it was refused, in words.
    error: String,
}

impl RefusedVersions {
    /// Why a primary's version is not transferred now, if that is so.
    pub fn reason(&self, primary: SocketAddr, serial: u32, now: Instant) -> Option<&str> {
        let is_it = |it: &&RefusedVersion| (it.primary, it.serial) == (primary, serial);
        let refused = self.0.iter().find(is_it).filter(|it| now < it.until)?;
        Some(&refused.error)
    }

    /// Notes that a primary's version was refused: it is transferred again after twice the time
    /// `least`, then twice as long each time, and after `most` at last.
    pub fn add(
        &mut self,
        (primary, serial): (SocketAddr, u32),
        error: &str,
        (least, most): (Duration, Duration),
        now: Instant,
    ) {
        let former = self.0.iter().position(|it| it.primary == primary);
        let former = former.map(|place| self.0.swap_remove(place));
        let times = former.filter(|it| it.serial == serial).map_or(1, |it| it.times + 1);
        let wait = least.saturating_mul(1 << times.min(20)).min(most.max(least));
        let (until, error) = (now + wait, error.to_owned());
        self.0.push(RefusedVersion { primary, serial, times, until, error });
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets all of them: a version was taken.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_refused_version_is_transferred_again_after_twice_as_long_each_time_and_another_at_once() {
        let primary = SocketAddr::from(([192, 0, 2, 1], 53));
        let (mut refused, mut now) = (RefusedVersions::default(), Instant::now());
        let (least, most) = (Duration::from_secs(30), Duration::from_secs(300));
        for wait in [60, 120, 240, 300, 300].map(Duration::from_secs) {
            refused.add((primary, 7), "too large", (least, most), now);
            let last = now + wait - Duration::from_millis(1);
            assert_eq!(refused.reason(primary, 7, last), Some("too large"));
            assert_eq!(refused.reason(primary, 7, now + wait), None);
            assert_eq!(refused.reason(primary, 8, now), None);
            now += wait;
        }
        refused.add((primary, 8), "too large", (least, most), now);
        assert_eq!(refused.reason(primary, 8, now + 2 * least), None, "it counts anew");
        assert_eq!(refused.0.len(), 1);
        refused.clear();
        assert_eq!(refused.reason(primary, 8, now), None);
    }
}
