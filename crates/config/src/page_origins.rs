//! Where the keys of pages stand.

use crate::Origin;

/// The origins of the keys that name addresses of single pages, for errors of addresses that
/// cannot be bound. They are no part of what a configuration says: any two are equal.
#[derive(Clone, Debug)]
pub struct PageOrigins {
    /// The origin of `health`.
    pub health: Origin,
    /// The origin of `ready`.
    pub ready: Origin,
    /// The origin of `metrics`.
    pub metrics: Origin,
}

impl PageOrigins {
    /// All origins, to be replaced where the file was made of another one.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Origin> {
        [&mut self.health, &mut self.ready, &mut self.metrics].into_iter()
    }
}

impl PartialEq for PageOrigins {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PageOrigins {}
