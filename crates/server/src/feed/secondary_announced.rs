//! The version that a primary has told of by NOTIFY before it answers with it.

use super::secondary_schedule::Prompt;
use std::time::Duration;
use zonda_zone::is_greater;

/// The time after which primaries are asked again for the version; each further one is twice as
/// long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How often they are asked again: a primary tells of a version a moment before it answers with it,
/// and a serial that none ever has may have been forged.
const TIMES_MAX: u8 = 3;

/// The version that a primary has told of before it answers with it, if one has: its serial, and
/// how often primaries were asked again.
#[derive(Default)]
pub struct AnnouncedVersion(Option<(u32, u8)>);

impl AnnouncedVersion {
    /// Notes the serial of a NOTIFY message, if that is greater than the one here.
    pub fn note(&mut self, prompt: Option<Prompt>, own: Option<u32>) {
        if let (Some(Prompt::Notice(_, Some(serial))), Some(own)) = (prompt, own)
            && is_greater(serial, own)
        {
            self.0 = Some((serial, 0));
        }
    }

    /// Whether there is no such version.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// How long to wait until the primaries are asked again, if the version is greater than the one
    /// here still.
    pub fn next_wait(&mut self, own: Option<u32>) -> Option<Duration> {
        let is_ahead = |serial| own.is_some_and(|own| is_greater(serial, own));
        let (serial, times) = self.0.take().filter(|it| is_ahead(it.0) && it.1 < TIMES_MAX)?;
        self.0 = Some((serial, times + 1));
        Some(FIRST_WAIT * (1 << times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    /// The waits, in seconds, behind a NOTIFY message with a serial, while the one here is another.
    fn waits(serial: Option<u32>, own: u32) -> Vec<u64> {
        let mut announced = AnnouncedVersion::default();
        let prompt = Prompt::Notice(IpAddr::V4(Ipv4Addr::LOCALHOST), serial);
        announced.note(Some(prompt), Some(own));
        let next = || announced.next_wait(Some(own));
        std::iter::from_fn(next).map(|wait| wait.as_secs()).take(10).collect()
    }

    #[test]
    fn a_version_that_no_primary_has_yet_is_asked_for_three_times_more() {
        assert_eq!(waits(Some(8), 7), [1, 2, 4]);
        assert_eq!(waits(Some(3), u32::MAX), [1, 2, 4], "rfc1982");
        for serial in [Some(7), Some(6), Some(7 + (1 << 31)), None] {
            assert!(waits(serial, 7).is_empty(), "{serial:?}");
        }
    }

    #[test]
    fn a_version_that_has_come_is_asked_for_no_more() {
        let mut announced = AnnouncedVersion::default();
        announced.note(Some(Prompt::Notice(IpAddr::V4(Ipv4Addr::LOCALHOST), Some(8))), Some(7));
        assert!(announced.next_wait(Some(7)).is_some());
        assert_eq!([announced.next_wait(Some(8)), announced.next_wait(Some(7))], [None, None]);
    }
}
