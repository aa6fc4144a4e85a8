//! Where the cities are that the codes of sites usually name.
//!
//! The codes are those of IATA, of a city (`NYC`) or of its airport (`FRA`). Cities are in the list
//! that many data centres are in; the coordinates are those of the city, to some kilometres.

use crate::{Coordinates, CountryCode};

/// A city that a site may be named after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct City {
    /// The country that the city lies in.
    pub country: CountryCode,
    /// The place of the city on the globe.
    pub coordinates: Coordinates,
}

impl City {
    /// Returns the city of a code of IATA in upper or lower case; `None` if the list lacks it.
    pub fn of_code(code: &str) -> Option<Self> {
        let found = CITIES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(code));
        let (_, country, latitude, longitude) = found?;
        let coordinates = Coordinates::new(*latitude, *longitude)?;
        Some(Self { country: country.parse().ok()?, coordinates })
    }
}

/// Codes, countries, latitudes and longitudes in degrees.
#[rustfmt::skip]
const CITIES: &[(&str, &str, f64, f64)] = &[
    // Africa
    ("ABJ", "CI", 5.35, -4.02), ("ACC", "GH", 5.60, -0.19), ("ADD", "ET", 9.03, 38.74),
    ("ALG", "DZ", 36.75, 3.06), ("CAI", "EG", 30.04, 31.24), ("CMN", "MA", 33.57, -7.59),
    ("CPT", "ZA", -33.92, 18.42), ("DKR", "SN", 14.69, -17.45), ("DUR", "ZA", -29.86, 31.02),
    ("JNB", "ZA", -26.20, 28.05), ("KGL", "RW", -1.94, 30.06), ("LAD", "AO", -8.84, 13.23),
    ("LOS", "NG", 6.52, 3.38), ("MBA", "KE", -4.04, 39.67), ("NBO", "KE", -1.29, 36.82),
    ("TUN", "TN", 36.81, 10.18),
    // Asia
    ("AMM", "JO", 31.95, 35.93), ("AUH", "AE", 24.45, 54.38), ("BAH", "BH", 26.23, 50.59),
    ("BJS", "CN", 39.90, 116.41), ("BKK", "TH", 13.76, 100.50), ("BLR", "IN", 12.97, 77.59),
    ("BOM", "IN", 19.08, 72.88), ("CAN", "CN", 23.13, 113.26), ("CCU", "IN", 22.57, 88.36),
    ("CGK", "ID", -6.21, 106.85), ("CMB", "LK", 6.93, 79.86), ("CTU", "CN", 30.57, 104.07),
    ("DAC", "BD", 23.81, 90.41), ("DEL", "IN", 28.61, 77.21), ("DOH", "QA", 25.29, 51.53),
    ("DXB", "AE", 25.20, 55.27), ("HAN", "VN", 21.03, 105.85), ("HKG", "HK", 22.32, 114.17),
    ("HND", "JP", 35.68, 139.69), ("HYD", "IN", 17.39, 78.49), ("ICN", "KR", 37.57, 126.98),
    ("JED", "SA", 21.49, 39.19), ("JKT", "ID", -6.21, 106.85), ("KHI", "PK", 24.86, 67.00),
    ("KIX", "JP", 34.69, 135.50), ("KTM", "NP", 27.72, 85.32), ("KUL", "MY", 3.15, 101.69),
    ("KWI", "KW", 29.38, 47.98), ("MAA", "IN", 13.08, 80.27), ("MCT", "OM", 23.59, 58.41),
    ("MNL", "PH", 14.60, 120.98), ("NRT", "JP", 35.68, 139.69), ("OSA", "JP", 34.69, 135.50),
    ("PEK", "CN", 39.90, 116.41), ("PVG", "CN", 31.23, 121.47), ("RUH", "SA", 24.71, 46.68),
    ("SEL", "KR", 37.57, 126.98), ("SGN", "VN", 10.82, 106.63), ("SHA", "CN", 31.23, 121.47),
    ("SIN", "SG", 1.35, 103.82), ("SZX", "CN", 22.54, 114.06), ("TAS", "UZ", 41.30, 69.24),
    ("TLV", "IL", 32.09, 34.78), ("TPE", "TW", 25.03, 121.57), ("TYO", "JP", 35.68, 139.69),
    ("ULN", "MN", 47.89, 106.91),
    // Europe
    ("AMS", "NL", 52.37, 4.90), ("ARN", "SE", 59.33, 18.07), ("ATH", "GR", 37.98, 23.73),
    ("BCN", "ES", 41.39, 2.17), ("BEG", "RS", 44.79, 20.45), ("BER", "DE", 52.52, 13.40),
    ("BRU", "BE", 50.85, 4.35), ("BUD", "HU", 47.50, 19.04), ("CDG", "FR", 48.86, 2.35),
    ("CPH", "DK", 55.68, 12.57), ("DUB", "IE", 53.35, -6.26), ("DUS", "DE", 51.23, 6.77),
    ("EDI", "GB", 55.95, -3.19), ("FCO", "IT", 41.90, 12.50), ("FRA", "DE", 50.11, 8.68),
    ("GVA", "CH", 46.20, 6.14), ("HAM", "DE", 53.55, 9.99), ("HEL", "FI", 60.17, 24.94),
    ("IEV", "UA", 50.45, 30.52), ("IST", "TR", 41.01, 28.98), ("KBP", "UA", 50.45, 30.52),
    ("KEF", "IS", 64.15, -21.94), ("LHR", "GB", 51.51, -0.13), ("LIS", "PT", 38.72, -9.14),
    ("LON", "GB", 51.51, -0.13), ("LUX", "LU", 49.61, 6.13), ("MAD", "ES", 40.42, -3.70),
    ("MAN", "GB", 53.48, -2.24), ("MIL", "IT", 45.46, 9.19), ("MOW", "RU", 55.76, 37.62),
    ("MRS", "FR", 43.30, 5.37), ("MUC", "DE", 48.14, 11.58), ("MXP", "IT", 45.46, 9.19),
    ("NUE", "DE", 49.45, 11.08), ("OSL", "NO", 59.91, 10.75), ("OTP", "RO", 44.43, 26.10),
    ("PAR", "FR", 48.86, 2.35), ("PMO", "IT", 38.12, 13.36), ("PRG", "CZ", 50.08, 14.44),
    ("RIX", "LV", 56.95, 24.11), ("ROM", "IT", 41.90, 12.50), ("SKG", "GR", 40.64, 22.94),
    ("SOF", "BG", 42.70, 23.32), ("STO", "SE", 59.33, 18.07), ("STR", "DE", 48.78, 9.18),
    ("SVO", "RU", 55.76, 37.62), ("TLL", "EE", 59.44, 24.75), ("VIE", "AT", 48.21, 16.37),
    ("VNO", "LT", 54.69, 25.28), ("WAW", "PL", 52.23, 21.01), ("ZAG", "HR", 45.81, 15.98),
    ("ZRH", "CH", 47.38, 8.54),
    // North America
    ("ATL", "US", 33.75, -84.39), ("BOS", "US", 42.36, -71.06), ("CHI", "US", 41.88, -87.63),
    ("CLE", "US", 41.50, -81.69), ("CLT", "US", 35.23, -80.84), ("CMH", "US", 39.96, -83.00),
    ("DEN", "US", 39.74, -104.99), ("DFW", "US", 32.78, -96.80), ("DTW", "US", 42.33, -83.05),
    ("EWR", "US", 40.74, -74.17), ("HNL", "US", 21.31, -157.86), ("IAD", "US", 39.04, -77.49),
    ("IAH", "US", 29.76, -95.37), ("JFK", "US", 40.71, -74.01), ("KBN", "US", 36.17, -86.78),
    ("LAS", "US", 36.17, -115.14), ("LAX", "US", 34.05, -118.24), ("MCI", "US", 39.10, -94.58),
    ("MEX", "MX", 19.43, -99.13), ("MIA", "US", 25.76, -80.19), ("MSP", "US", 44.98, -93.27),
    ("NYC", "US", 40.71, -74.01), ("ORD", "US", 41.88, -87.63), ("PDX", "US", 45.52, -122.68),
    ("PHL", "US", 39.95, -75.17), ("PHX", "US", 33.45, -112.07), ("PTY", "PA", 8.98, -79.52),
    ("QRO", "MX", 20.59, -100.39), ("SAN", "US", 32.72, -117.16), ("SEA", "US", 47.61, -122.33),
    ("SFO", "US", 37.77, -122.42), ("SJC", "US", 37.34, -121.89), ("SLC", "US", 40.76, -111.89),
    ("TPA", "US", 27.95, -82.46), ("WAS", "US", 38.91, -77.04), ("YMQ", "CA", 45.50, -73.57),
    ("YTO", "CA", 43.65, -79.38), ("YUL", "CA", 45.50, -73.57), ("YVR", "CA", 49.28, -123.12),
    ("YYC", "CA", 51.05, -114.07), ("YYZ", "CA", 43.65, -79.38),
    // Oceania
    ("ADL", "AU", -34.93, 138.60), ("AKL", "NZ", -36.85, 174.76), ("BNE", "AU", -27.47, 153.03),
    ("CBR", "AU", -35.28, 149.13), ("CHC", "NZ", -43.53, 172.64), ("MEL", "AU", -37.81, 144.96),
    ("PER", "AU", -31.95, 115.86), ("SUV", "FJ", -18.12, 178.45), ("SYD", "AU", -33.87, 151.21),
    ("WLG", "NZ", -41.29, 174.78),
    // South America
    ("ASU", "PY", -25.26, -57.58), ("BOG", "CO", 4.71, -74.07), ("BUE", "AR", -34.60, -58.38),
    ("CCS", "VE", 10.48, -66.90), ("EZE", "AR", -34.60, -58.38), ("FOR", "BR", -3.73, -38.52),
    ("GIG", "BR", -22.91, -43.17), ("GRU", "BR", -23.55, -46.63), ("LIM", "PE", -12.05, -77.04),
    ("MVD", "UY", -34.90, -56.16), ("RIO", "BR", -22.91, -43.17), ("SAO", "BR", -23.55, -46.63),
    ("SCL", "CL", -33.45, -70.67), ("UIO", "EC", -0.18, -78.47),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Continent, distance_km};
    use std::collections::HashSet;

    #[test]
    fn a_code_is_known_in_either_case_and_lies_where_its_city_does() {
        let city = |code: &str| City::of_code(code).unwrap();
        assert_eq!(city("fra").country.as_str(), "DE");
        assert_eq!(city("NYC").country.as_str(), "US");
        let distance = distance_km(city("fra").coordinates, city("nyc").coordinates);
        assert!((6_150.0..6_250.0).contains(&distance), "{distance}");
        assert_eq!(City::of_code("nowhere"), None);
    }

    #[test]
    fn every_code_is_listed_once_in_a_country_of_a_continent() {
        let mut codes = HashSet::new();
        for (code, ..) in CITIES {
            assert!(codes.insert(code), "{code}");
            let city = City::of_code(code).unwrap();
            assert!(Continent::of_country(city.country).is_some(), "{code}");
        }
    }
}
