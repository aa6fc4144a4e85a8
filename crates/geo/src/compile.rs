//! From locations and own networks to the table of one purpose.

use std::collections::HashMap;

use crate::table::AddressValues;
use crate::{Database, Location, Prefix, PrefixTable, SiteId, TooManyPrefixes};

/// The value of an address that lies in no own network.
const NO_SITE: u32 = 0;

impl PrefixTable {
    /// Makes the table of what `classify` says of each location: which order of sites, which
    /// members of a pool. It is called once for each location of the database that an address has,
    /// with each number of `networks` that addresses there have; networks beside one another with
    /// the same value become one, so that scopes are wide where locations do not matter.
    ///
    /// Among the networks, the longest prefix counts: an address within has its number as the site
    /// of its location. An address without a location has the default one, in which nothing is
    /// known.
    ///
    /// # Errors
    /// There are more than [`PREFIXES_MAX`](crate::PREFIXES_MAX) networks, or the table would
    /// take more than 8 GiB.
    pub fn compile(
        database: Option<&Database>,
        networks: &[(Prefix, SiteId)],
        classify: impl FnMut(&Location) -> u32,
    ) -> Result<Self, TooManyPrefixes> {
        let mut classes = Classes { classify, of_pair: HashMap::new() };
        let mut number_of_site: HashMap<SiteId, u32> = HashMap::new();
        // The site of each own network, found by its number less 1.
        let mut sites = Vec::new();
        let mut prefixes = Vec::new();
        for &(prefix, site) in networks {
            let number = *number_of_site.entry(site).or_insert_with(|| {
                sites.push(site);
                sites.len() as u32
            });
            prefixes.push((prefix, number));
        }
        let own = AddressValues::new(prefixes, NO_SITE)?;
        let nowhere = AddressValues::new([], NO_SITE)?;
        let unknown = [Location::default()];
        let (located, locations) = match database {
            Some(database) => (database.values(), database.locations()),
            None => (&nowhere, &unknown[..]),
        };
        let combined =
            own.combined(located, |own, location| classes.of((own, location), (&sites, locations)));
        Self::of_values(&combined)
    }
}

/// The classes of locations, each found once.
struct Classes<F> {
    /// Tells the class of a location.
    classify: F,
    /// Classes so far, by the numbers of the own network's site and of the location.
    of_pair: HashMap<(u32, u32), u32>,
}

impl<F: FnMut(&Location) -> u32> Classes<F> {
    /// Returns the class of a location by its number, within an own network or none.
    fn of(&mut self, pair: (u32, u32), (sites, locations): (&[SiteId], &[Location])) -> u32 {
        let classify = &mut self.classify;
        let class = self.of_pair.entry(pair);
        *class.or_insert_with(|| {
            let (own, location) = (pair.0, &locations[pair.1 as usize]);
            match own.checked_sub(1) {
                None => classify(location),
                Some(own) => {
                    let site = Some(sites[own as usize]);
                    classify(&Location { site, ..location.clone() })
                }
            }
        })
    }
}
