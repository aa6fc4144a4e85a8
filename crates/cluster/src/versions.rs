//! Versions of what names of services answer, by which a reply that was made before is known to be
//! still right.
//!
//! Services are divided into groups by the hashes of their names. A change of a service gives its
//! group a version that nothing had before, in this cluster or in another one, so that replies with
//! names of another group stay right.

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Groups of services, a power of two: as many as a worker has hot entries, so that a change costs
/// about one hot entry of another service.
const GROUPS: usize = PAGES * PAGE_GROUPS;
/// Pages that the versions of the groups lie in: each published version of a cluster counts a
/// further reference to each page, and copies those in which something has changed.
const PAGES: usize = 64;
/// Groups of a page, whose versions are copied together.
const PAGE_GROUPS: usize = 64;

/// The first version. Versions of other zones, which count from 1, never come so far.
const FIRST: u64 = 1 << 63;

/// Returns a version that nothing had before.
fn new_version() -> u64 {
    /// The number of versions so far.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    FIRST + COUNT.fetch_add(1, Relaxed)
}

/// The versions of all groups of services, and of the data of the cluster's zones.
#[derive(Clone)]
pub(crate) struct Versions {
    pages: Arc<[Arc<[u64; PAGE_GROUPS]>; PAGES]>,
    data: u64,
}

impl Default for Versions {
    fn default() -> Self {
        let version = new_version();
        let page = Arc::new([version; PAGE_GROUPS]);
        Self { pages: Arc::new(array::from_fn(|_| Arc::clone(&page))), data: version }
    }
}

impl Versions {
    /// The group of the service whose name has a hash.
    #[inline]
    fn group(hash: u64) -> usize {
        (hash >> 32) as usize & (GROUPS - 1)
    }

    /// Notes that the service whose name has a hash has changed.
    pub fn change(&mut self, hash: u64) {
        let group = Self::group(hash);
        let page = &mut Arc::make_mut(&mut self.pages)[group / PAGE_GROUPS];
        Arc::make_mut(page)[group % PAGE_GROUPS] = new_version();
    }

    /// Notes that the data have changed.
    pub fn change_data(&mut self) {
        self.data = new_version();
    }

    /// Returns the version of the records of the service whose name has a hash.
    #[inline]
    pub fn of_records(&self, hash: u64) -> u64 {
        let group = Self::group(hash);
        self.pages[group / PAGE_GROUPS][group % PAGE_GROUPS]
    }

    /// Returns the version of a denial below that name, which has records of the data as well. The
    /// newer of two versions is new whenever one of them is.
    #[inline]
    pub fn of_denial(&self, hash: u64) -> u64 {
        self.of_records(hash).max(self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_service_gives_no_other_group_a_new_version() {
        let mut versions = Versions::default();
        let former = versions.clone();
        versions.change(7 << 32);
        assert_ne!(versions.of_records(7 << 32), former.of_records(7 << 32));
        assert_ne!(versions.of_denial(7 << 32), former.of_denial(7 << 32));
        assert_eq!(versions.of_records(8 << 32), former.of_records(8 << 32));
        assert_eq!(versions.of_denial(8 << 32), former.of_denial(8 << 32));
    }

    #[test]
    fn new_data_give_denials_a_new_version_and_records_none() {
        let mut versions = Versions::default();
        versions.change(7 << 32);
        let former = versions.clone();
        versions.change_data();
        assert_eq!(versions.of_records(7 << 32), former.of_records(7 << 32));
        assert_ne!(versions.of_denial(7 << 32), former.of_denial(7 << 32));
        assert_ne!(versions.of_denial(8 << 32), former.of_denial(8 << 32));
    }

    #[test]
    fn two_clusters_have_no_version_in_common() {
        let [one, other] = [Versions::default(), Versions::default()];
        assert_ne!(one.of_records(7 << 32), other.of_records(7 << 32));
    }
}
