//! The location of a network, as databases tell it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// What is known of the place of a network. A field that nothing is known of is `None` or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// The site that the configuration names for the network, beside what the database knows.
    pub site: Option<SiteId>,
    /// The continent that the network lies on.
    pub continent: Option<Continent>,
    /// The country that the network lies in, or else the one that it is registered in.
    pub country: Option<CountryCode>,
    /// Codes of regions by ISO 3166-2 without the country's, the largest first: `ENG`, `WBK`.
    pub subdivisions: Box<[Box<str>]>,
    /// The name of the city, in English.
    pub city: Option<Box<str>>,
    /// The number of the city at geonames.org.
    pub city_id: Option<u32>,
    /// The number of the autonomous system that announces the network.
    pub asn: Option<u32>,
    /// The place on the globe: that of the city, or a centre of the country.
    pub coordinates: Option<Coordinates>,
}

impl Location {
    /// Returns the location of a network that belongs to a site.
    pub fn of_site(site: SiteId) -> Self {
        Self { site: Some(site), ..Self::default() }
    }

    /// Returns what two locations of one network know together; where both know a field, the first
    /// counts.
    pub fn or(&self, other: &Self) -> Self {
        let regions = [&self.subdivisions, &other.subdivisions];
        let subdivisions = regions[usize::from(self.subdivisions.is_empty())].clone();
        Self {
            site: self.site.or(other.site),
            continent: self.continent.or(other.continent),
            country: self.country.or(other.country),
            subdivisions,
            city: self.city.as_ref().or(other.city.as_ref()).cloned(),
            city_id: self.city_id.or(other.city_id),
            asn: self.asn.or(other.asn),
            coordinates: self.coordinates.or(other.coordinates),
        }
    }
}

/// A site by its number in the caller's list of sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// A country by its two letters of ISO 3166-1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountryCode([u8; 2]);

impl CountryCode {
    /// Returns the two letters, in upper case.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("a code is two letters of ASCII")
    }
}

impl FromStr for CountryCode {
    type Err = CodeError;

    /// Reads two letters in upper or lower case.
    fn from_str(text: &str) -> Result<Self, CodeError> {
        match *text.as_bytes() {
            [first, second] if first.is_ascii_alphabetic() && second.is_ascii_alphabetic() => {
                Ok(Self([first.to_ascii_uppercase(), second.to_ascii_uppercase()]))
            }
            _ => Err(CodeError::Country),
        }
    }
}

impl fmt::Display for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A continent, as databases divide the globe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Continent {
    /// The continent Africa, `AF`.
    Africa,
    /// The continent Antarctica, `AN`.
    Antarctica,
    /// The continent Asia, `AS`.
    Asia,
    /// The continent Europe, `EU`.
    Europe,
    /// North America with Central America and the Caribbean, `NA`.
    NorthAmerica,
    /// Australia and the islands of the Pacific, `OC`.
    Oceania,
    /// South America, `SA`.
    SouthAmerica,
}

impl Continent {
    /// All continents in the order of their codes.
    pub const ALL: [Self; 7] = [
        Self::Africa,
        Self::Antarctica,
        Self::Asia,
        Self::Europe,
        Self::NorthAmerica,
        Self::Oceania,
        Self::SouthAmerica,
    ];

    /// Returns the two letters that databases and configurations write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Africa => "AF",
            Self::Antarctica => "AN",
            Self::Asia => "AS",
            Self::Europe => "EU",
            Self::NorthAmerica => "NA",
            Self::Oceania => "OC",
            Self::SouthAmerica => "SA",
        }
    }
}

impl FromStr for Continent {
    type Err = CodeError;

    /// Reads two letters in upper or lower case.
    fn from_str(text: &str) -> Result<Self, CodeError> {
        let continent =
            Self::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(text));
        continent.ok_or(CodeError::Continent)
    }
}

impl fmt::Display for Continent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is no code of a country or a continent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeError {
    /// Not two letters.
    Country,
    /// Not one of the seven codes.
    Continent,
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Country => "not a country; write its two letters of ISO 3166-1, as in GB",
            Self::Continent => "not a continent; write AF, AN, AS, EU, NA, OC or SA",
        })
    }
}

impl std::error::Error for CodeError {}

/// A point on the globe.
#[derive(Debug, Clone, Copy)]
pub struct Coordinates {
    /// Degrees north of the equator: -90 to 90.
    latitude: f64,
    /// Degrees east of Greenwich: -180 to 180.
    longitude: f64,
}

impl Coordinates {
    /// Returns the point of a latitude and a longitude in degrees, or `None` if there is none.
    pub fn new(latitude: f64, longitude: f64) -> Option<Self> {
        let is_point = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
        // Adding zero makes of -0 the 0 that it is equal to.
        is_point.then_some(Self { latitude: latitude + 0.0, longitude: longitude + 0.0 })
    }

    /// Returns the degrees north of the equator.
    pub fn latitude(self) -> f64 {
        self.latitude
    }

    /// Returns the degrees east of Greenwich.
    pub fn longitude(self) -> f64 {
        self.longitude
    }
}

impl PartialEq for Coordinates {
    fn eq(&self, other: &Self) -> bool {
        self.latitude == other.latitude && self.longitude == other.longitude
    }
}

impl Eq for Coordinates {}

impl Hash for Coordinates {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.latitude.to_bits().hash(state);
        self.longitude.to_bits().hash(state);
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.latitude, self.longitude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_in_either_case() {
        assert_eq!("gb".parse::<CountryCode>().unwrap().to_string(), "GB");
        assert_eq!("eu".parse(), Ok(Continent::Europe));
        for continent in Continent::ALL {
            assert_eq!(continent.as_str().parse(), Ok(continent));
        }
        for text in ["", "G", "GBR", "G1", "é"] {
            assert_eq!(text.parse::<CountryCode>(), Err(CodeError::Country), "{text}");
            assert_eq!(text.parse::<Continent>(), Err(CodeError::Continent), "{text}");
        }
    }

    #[test]
    fn a_point_beyond_the_globe_is_none() {
        assert!(Coordinates::new(90.0, -180.0).is_some());
        for (latitude, longitude) in [(90.1, 0.0), (0.0, 180.1), (f64::NAN, 0.0), (0.0, f64::NAN)] {
            assert_eq!(Coordinates::new(latitude, longitude), None);
        }
        assert_eq!(Coordinates::new(-0.0, 0.0), Coordinates::new(0.0, -0.0));
    }
}
