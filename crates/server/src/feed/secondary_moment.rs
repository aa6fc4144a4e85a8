//! A moment of a zone of primaries.

/// A moment as each of a hundred thousand zones has several, in half the memory of what the system
/// has: seconds since 1970, until 2106. 0 stands for no moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u32);

impl Moment {
    /// Returns the seconds since 1970; 0 where there is no moment.
    pub fn secs(self) -> u64 {
        self.0.into()
    }
}

impl From<u64> for Moment {
    /// Takes seconds since 1970; a later moment than the last is that.
    fn from(secs: u64) -> Self {
        Self(u32::try_from(secs).unwrap_or(u32::MAX))
    }
}
