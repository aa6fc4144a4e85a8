//! How much is read from a database at a time, and for how long.

#[cfg(any(feature = "postgres", feature = "redb"))]
use super::StoreError;
#[cfg(any(feature = "postgres", feature = "redis"))]
use std::time::Duration;

/// Octets that are read at a time at most, where nothing else is configured.
pub(crate) const READ_MAX: u64 = 1 << 30;
/// How long all records may take to be read.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) const READ_TIME_MAX: Duration = Duration::from_secs(600);

/// Octets of one text of a database at most. Data of 65,535 octets, each written as `\DDD`, are
/// shorter.
#[cfg(feature = "postgres")]
pub(crate) const TEXT_MAX: i32 = 300_000;

/// Counts octets that are read from a database, so that whatever may write to the database cannot
/// take the server's memory.
#[cfg(any(feature = "postgres", feature = "redb"))]
pub(crate) struct ReadLimit {
    max: u64,
    left: u64,
}

#[cfg(any(feature = "postgres", feature = "redb"))]
impl ReadLimit {
    /// Nothing is read yet, of so many octets at most.
    pub fn new(max: u64) -> Self {
        Self { max, left: max }
    }

    /// Counts octets that were read.
    ///
    /// # Errors
    /// When they are more than may be read.
    pub fn count(&mut self, octets: usize) -> Result<(), StoreError> {
        match self.left.checked_sub(octets as u64) {
            Some(left) => self.left = left,
            None => return Err(StoreError::failed(too_large(self.max))),
        }
        Ok(())
    }
}

/// The text of the error of a database that has more than may be read.
pub(crate) fn too_large(max: u64) -> String {
    format!(
        "the database has more than {max} octets for its zones; raise `read-max` of \
         `[zone.store]`, or remove what does not belong there"
    )
}
