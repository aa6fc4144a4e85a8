//! The times at which a zone is refreshed, and expires (rfc1034#4.3.5).

use crate::intake::numbers_of;
use std::time::Duration;

/// The bounds within which the timers of SOA records are obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerBounds {
    /// The least and the greatest refresh time.
    pub refresh: (Duration, Duration),
    /// The least and the greatest retry time.
    pub retry: (Duration, Duration),
}

/// The timers of a zone, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// The time from one check of the serial to the next.
    pub refresh: Duration,
    /// The time from a check that failed to the next.
    pub retry: Duration,
    /// The time for which the zone is served after the last check that did not fail.
    pub expire: Duration,
}

/// The least time for which a zone is served that was transferred.
const EXPIRE_MIN: Duration = Duration::from_secs(2);
/// The first time after which a zone that was never transferred is tried again.
const FIRST_RETRY: Duration = Duration::from_secs(5);
/// The longest time after which a zone that was never transferred is tried again.
const FIRST_RETRY_MAX: Duration = Duration::from_secs(3600);

impl Timers {
    /// The timers of a version with this SOA data, and the seconds until it expires at the primary,
    /// if that says so. The zone does not expire before it is refreshed and tried once more.
    #[must_use]
    pub fn of(soa: &[u8], bounds: &TimerBounds) -> Self {
        let [_, refresh, retry, expire, _] = numbers_of(soa).unwrap_or_default();
        let secs = |secs: u32| Duration::from_secs(secs.into());
        let refresh = secs(refresh).clamp(bounds.refresh.0, bounds.refresh.1);
        let retry = secs(retry).clamp(bounds.retry.0, bounds.retry.1).min(refresh);
        Self { refresh, retry, expire: secs(expire).max(refresh + retry) }
    }

    /// Returns the timers with the time until the zone expires at the primary, which came with a
    /// transfer (rfc7314#4); it is served for long enough to be checked once more.
    #[must_use]
    pub fn with_expire(self, secs: Option<u32>) -> Self {
        match secs {
            Some(secs) => {
                let expire = Duration::from_secs(secs.into()).max(EXPIRE_MIN);
                Self { expire: expire.min(self.expire), ..self }
            }
            None => self,
        }
    }
}

/// A time that is shorter than the given one by up to a tenth, by a number that differs from zone
/// to zone, so that they are not refreshed all at once.
#[must_use]
pub fn spread(time: Duration, random: u64) -> Duration {
    time - time.mul_f64((random % 1024) as f64 / 10_240.0)
}

/// Returns when a zone is tried again that was never transferred, after so many attempts.
#[must_use]
pub fn first_retry(attempts: u32) -> Duration {
    (FIRST_RETRY * 2u32.saturating_pow(attempts.min(16))).min(FIRST_RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: TimerBounds = TimerBounds {
        refresh: (Duration::from_secs(60), Duration::from_secs(1000)),
        retry: (Duration::from_secs(10), Duration::from_secs(500)),
    };

    /// The timers of an SOA record with these times, in seconds.
    fn timers(refresh: u32, retry: u32, expire: u32) -> [u64; 3] {
        let mut soa = vec![0, 0];
        for number in [1, refresh, retry, expire, 7] {
            soa.extend_from_slice(&u32::to_be_bytes(number));
        }
        let Timers { refresh, retry, expire } = Timers::of(&soa, &BOUNDS);
        [refresh, retry, expire].map(|it| it.as_secs())
    }

    #[test]
    fn timers_are_kept_within_bounds_and_no_zone_expires_before_it_is_tried_twice() {
        assert_eq!(timers(300, 100, 4000), [300, 100, 4000]);
        assert_eq!(timers(1, 1, 1), [60, 10, 70]);
        assert_eq!(timers(u32::MAX, u32::MAX, u32::MAX), [1000, 500, u64::from(u32::MAX)]);
    }

    #[test]
    fn a_zone_expires_no_later_than_at_the_primary() {
        let timers = Timers { refresh: secs(10), retry: secs(5), expire: secs(100) };
        assert_eq!(timers.with_expire(Some(40)).expire, secs(40));
        assert_eq!(timers.with_expire(Some(400)).expire, secs(100));
        assert_eq!(timers.with_expire(None).expire, secs(100));
        assert_eq!(timers.with_expire(Some(0)).expire, EXPIRE_MIN, "not before it was served");
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn refreshes_are_spread_over_a_tenth_of_the_time() {
        for random in [0, 1, 1023, u64::MAX] {
            let spread = spread(secs(1000), random);
            assert!((secs(900)..=secs(1000)).contains(&spread), "{spread:?}");
        }
        assert_eq!([0, 1, 2, 60].map(|it| first_retry(it).as_secs()), [5, 10, 20, 3600]);
    }
}
