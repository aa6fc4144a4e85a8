//! Hashes of entries that left the small log unasked-for: if one comes back soon, it was missed.
//!
//! Buckets of four fingerprints, youngest first; a new one pushes the oldest out.

use crate::index::Place;

/// Fingerprints in a bucket.
pub const SLOTS: usize = 4;
/// Octets of a bucket.
pub const BUCKET_BYTES: usize = SLOTS * size_of::<u32>();

/// The memory of what is gone.
pub struct Ghosts {
    /// Fingerprints of all buckets; empty before the first is remembered.
    fingerprints: Box<[u32]>,
    buckets: usize,
}

impl Ghosts {
    /// A ghost table without entries.
    pub fn new(buckets: usize) -> Self {
        Self { fingerprints: Box::default(), buckets }
    }

    /// Remembers an entry.
    pub fn insert(&mut self, place: Place) {
        if self.fingerprints.is_empty() {
            self.fingerprints = vec![0; self.buckets * SLOTS].into();
        }
        let bucket = self.bucket(place);
        bucket.rotate_right(1);
        bucket[0] = place.fingerprint();
    }

    /// Whether an entry is remembered; it is forgotten in the same step.
    pub fn take(&mut self, place: Place) -> bool {
        if self.fingerprints.is_empty() {
            return false;
        }
        let bucket = self.bucket(place);
        let Some(at) = bucket.iter().position(|&it| it == place.fingerprint()) else {
            return false;
        };
        bucket[at..].rotate_left(1);
        bucket[SLOTS - 1] = 0;
        true
    }

    /// Removes all fingerprints.
    pub fn clear(&mut self) {
        self.fingerprints = Box::default();
    }

    fn bucket(&mut self, place: Place) -> &mut [u32] {
        let start = place.ghost_bucket(self.buckets) * SLOTS;
        &mut self.fingerprints[start..start + SLOTS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_a_bucket_is_forgotten_first() {
        let mut ghosts = Ghosts::new(1);
        let places: Vec<Place> = (1..=5).map(|i| Place(i << 10)).collect();
        places.iter().for_each(|&place| ghosts.insert(place));
        let taken: Vec<bool> = places.iter().map(|&place| ghosts.take(place)).collect();
        assert_eq!(taken, [false, true, true, true, true]);
        assert!(!ghosts.take(places[4]), "taken twice");
    }
}
