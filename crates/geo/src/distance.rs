//! Distances on the globe, and which sites are near.

use crate::Coordinates;

/// Mean radius of the earth, km (IUGG).
const EARTH_RADIUS_KM: f64 = 6371.0088;

/// Returns the length of the great circle between two points, km, by the haversine formula. The
/// globe is taken for a sphere, which is wrong by 0.5 % at most.
pub fn distance_km(from: Coordinates, to: Coordinates) -> f64 {
    let (from_latitude, to_latitude) = (from.latitude().to_radians(), to.latitude().to_radians());
    let half_latitude = (to_latitude - from_latitude) / 2.0;
    let half_longitude = (to.longitude() - from.longitude()).to_radians() / 2.0;
    let haversine = half_latitude.sin().powi(2)
        + from_latitude.cos() * to_latitude.cos() * half_longitude.sin().powi(2);
    // Rounding may lead above 1 for points opposite each other.
    2.0 * EARTH_RADIUS_KM * haversine.sqrt().min(1.0).asin()
}

/// How much nearer or farther than it is a site counts, as Route 53 has it: above 0 attracts
/// clients, below 0 repels them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bias(i8);

impl Bias {
    /// Returns the bias of a number from -99 to 99, or `None` for any other.
    pub fn new(percent: i8) -> Option<Self> {
        (-99..=99).contains(&percent).then_some(Self(percent))
    }

    /// Returns the number, -99 to 99.
    pub fn percent(self) -> i8 {
        self.0
    }

    /// Returns the distance that counts: `distance × (1 − bias/100)` above 0, and
    /// `distance / (1 + bias/100)` below.
    pub fn apply(self, distance_km: f64) -> f64 {
        let share = f64::from(self.0) / 100.0;
        if self.0 >= 0 { distance_km * (1.0 - share) } else { distance_km / (1.0 + share) }
    }
}

/// A place that clients are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// The place of the site on the globe.
    pub coordinates: Coordinates,
    /// How much nearer or farther than it is the site counts.
    pub bias: Bias,
}

/// Returns the indices of the `limit` nearest sites, the nearest first; of sites at the same
/// distance the one that stands first in the list.
pub fn nearest_order(from: Coordinates, sites: &[Site], limit: usize) -> Vec<u16> {
    let counted = |site: &Site| site.bias.apply(distance_km(from, site.coordinates));
    let mut order: Vec<(f64, u16)> =
        sites.iter().zip(0..=u16::MAX).map(|(site, index)| (counted(site), index)).collect();
    let limit = limit.min(order.len());
    let compare = |left: &(f64, u16), right: &(f64, u16)| {
        left.0.total_cmp(&right.0).then(left.1.cmp(&right.1))
    };
    if limit < order.len() {
        order.select_nth_unstable_by(limit, compare);
        order.truncate(limit);
    }
    order.sort_unstable_by(compare);
    order.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a point on the globe.
    fn point(latitude: f64, longitude: f64) -> Coordinates {
        Coordinates::new(latitude, longitude).unwrap()
    }

    /// Returns a site at a point.
    fn site(coordinates: Coordinates, bias: i8) -> Site {
        Site { coordinates, bias: Bias::new(bias).unwrap() }
    }

    const FRANKFURT: (f64, f64) = (50.11, 8.68);
    const LONDON: (f64, f64) = (51.51, -0.13);
    const NEW_YORK: (f64, f64) = (40.71, -74.01);
    const AUCKLAND: (f64, f64) = (-36.85, 174.76);

    #[test]
    fn distances_between_cities_are_those_of_an_atlas() {
        let distance = |from: (f64, f64), to: (f64, f64)| {
            distance_km(point(from.0, from.1), point(to.0, to.1))
        };
        for (from, to, kilometres) in [
            (FRANKFURT, LONDON, 637.0),
            (LONDON, NEW_YORK, 5570.0),
            (FRANKFURT, AUCKLAND, 18200.0),
            ((0.0, 179.0), (0.0, -179.0), 222.4),
            ((0.0, 0.0), (0.0, 180.0), 20015.1),
            ((90.0, 0.0), (90.0, 120.0), 0.0),
        ] {
            let found = distance(from, to);
            assert!(
                (found - kilometres).abs() <= 0.005 * kilometres + 1e-6,
                "{found} {kilometres}"
            );
            assert!((found - distance(to, from)).abs() < 1e-9);
        }
        for latitude in -90..=90 {
            let opposite = distance((f64::from(latitude), 10.0), (-f64::from(latitude), -170.0));
            assert!((opposite - 20015.1).abs() < 0.1, "{opposite}");
        }
    }

    #[test]
    fn bias_shrinks_and_stretches_distances_as_route_53_does() {
        for (bias, expected) in
            [(0, 1000.0), (50, 500.0), (99, 10.0), (-50, 2000.0), (-90, 10000.0)]
        {
            assert!((Bias::new(bias).unwrap().apply(1000.0) - expected).abs() < 1e-6, "{bias}");
        }
        assert_eq!((Bias::new(100), Bias::new(-100), Bias::new(i8::MIN)), (None, None, None));
    }

    #[test]
    fn the_nearest_site_comes_first() {
        let sites = [NEW_YORK, AUCKLAND, FRANKFURT, LONDON].map(|at| site(point(at.0, at.1), 0));
        let paris = point(48.86, 2.35);
        assert_eq!(nearest_order(paris, &sites, 9), [3, 2, 0, 1]);
        assert_eq!(nearest_order(paris, &sites, 2), [3, 2]);
        assert_eq!(nearest_order(paris, &sites, 0), [0u16; 0]);
        assert_eq!(nearest_order(paris, &[], 3), [0u16; 0]);
    }

    #[test]
    fn a_bias_puts_a_farther_site_first() {
        let order = |bias| {
            let sites = [site(point(LONDON.0, LONDON.1), 0), site(point(50.11, 8.68), bias)];
            nearest_order(point(48.86, 2.35), &sites, 2)
        };
        assert_eq!(order(0), [0, 1]);
        assert_eq!(order(50), [1, 0]);
        assert_eq!(order(-50), [0, 1]);
    }

    #[test]
    fn sites_at_the_same_distance_keep_their_order() {
        let sites = [site(point(10.0, 10.0), 0); 5];
        assert_eq!(nearest_order(point(0.0, 0.0), &sites, 3), [0, 1, 2]);
    }
}
