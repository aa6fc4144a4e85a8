//! The records of a whole zone, as they come.
//!
//! Few stay as they came, which takes least time. Many are kept by the hashes of their owners, so
//! that the zone is made of them bit by bit while they are freed: both are never in memory as a
//! whole together.

use zonda_wire::Name;
use zonda_zone::records::TooManyRecords;
use zonda_zone::{HashSeed, HashedRecords, Record, Records};

/// Octets of memory that few records take at most. Up to here, records and zone may be in memory
/// together; parts by hash would take as much, as each has memory for more records.
pub const FEW_OCTETS_MAX: usize = 1 << 20;

/// The records of a whole zone; the SOA record is the first that comes.
pub enum WholeZone {
    /// Few records, in the order in which they came.
    Few(Box<Records>),
    /// Many records, by the hashes of their owners.
    Many(Box<HashedRecords>),
}

impl Default for WholeZone {
    /// Makes a zone without records, which holds few.
    fn default() -> Self {
        Self::Few(Box::default())
    }
}

impl WholeZone {
    /// Adds a record of the zone with an apex, whose names are hashed by a secret.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn push(
        &mut self,
        record: Record<'_>,
        (apex, seed): (&Name, HashSeed),
    ) -> Result<(), TooManyRecords> {
        let few = match self {
            Self::Few(records) if records.bytes() <= FEW_OCTETS_MAX => {
                return records.push(record, 0);
            }
            Self::Few(records) => std::mem::take(records),
            Self::Many(records) => return records.push(record).map_err(|_| TooManyRecords),
        };
        let mut many = HashedRecords::new(apex, seed);
        let mut moved = few.iter().chain([record]);
        moved.try_for_each(|record| many.push(record)).map_err(|_| TooManyRecords)?;
        *self = Self::Many(Box::new(many));
        Ok(())
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Few(records) => records.len(),
            Self::Many(records) => records.len(),
        }
    }

    /// Returns the octets of memory, at most, that the zone takes at some moment until it is made
    /// besides what its records tell by their number and their octets; few take few.
    #[must_use]
    pub fn bytes_besides(&self) -> u64 {
        match self {
            Self::Few(_) => 0,
            Self::Many(records) => records.bytes_besides() as u64,
        }
    }

    /// Returns the octets that the names between the owners of the records and the apex take in the
    /// zone at least, as far as that is known; a record may have over a hundred of them.
    #[must_use]
    pub fn parents_bytes_least(&self) -> u64 {
        match self {
            Self::Few(_) => 0,
            Self::Many(records) => records.parents_bytes_least() as u64,
        }
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
