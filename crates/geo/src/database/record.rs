//! The records of a database: any data, and the location that it tells.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::{Continent, Coordinates, CountryCode, Location};

/// Most regions within regions that a location keeps.
const SUBDIVISIONS_MAX: usize = 4;

/// Data of a record, whatever its shape; what no location needs is `Other`.
#[derive(Debug)]
pub enum Data<'a> {
    /// A map in the order of the file.
    Map(Vec<(&'a str, Data<'a>)>),
    /// A list of data.
    List(Vec<Data<'a>>),
    /// A text in UTF-8.
    Text(&'a str),
    /// A number of any type.
    Number(f64),
    /// A truth value, octets, or a number above 64 bits.
    Other,
}

impl<'a> Data<'a> {
    /// Returns the data behind keys of maps within maps.
    fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |data, wanted| match data {
            Data::Map(entries) => {
                entries.iter().find(|(key, _)| key == wanted).map(|(_, data)| data)
            }
            _ => None,
        })
    }

    /// Returns the text behind keys.
    fn text(&self, path: &[&str]) -> Option<&'a str> {
        match self.at(path) {
            Some(Data::Text(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns the number behind keys; flat databases have it as a text at times.
    fn number(&self, path: &[&str]) -> Option<f64> {
        match self.at(path)? {
            Data::Number(number) => Some(*number),
            Data::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns the whole number behind keys.
    fn whole(&self, path: &[&str]) -> Option<u32> {
        let number = self.number(path)?;
        let fits = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
        fits.then_some(number as u32)
    }

    /// Returns the first of several texts that is a code.
    fn code<T: std::str::FromStr>(&self, paths: &[&[&str]]) -> Option<T> {
        paths.iter().find_map(|path| self.text(path)?.parse().ok())
    }

    /// Returns the number of values in the data, itself included.
    pub fn count(&self) -> usize {
        1 + match self {
            Data::Map(entries) => entries.iter().map(|(_, data)| 1 + data.count()).sum(),
            Data::List(list) => list.iter().map(Data::count).sum(),
            _ => 0,
        }
    }

    /// Returns the location that the data tells: in MaxMind's shapes, or flat with `country_code`,
    /// `country`, `continent`, `city`, `latitude`, `longitude` and `asn`.
    pub fn location(&self) -> Location {
        let country: Option<CountryCode> = self.code(&[
            &["country", "iso_code"],
            &["country_code"],
            &["country"],
            &["registered_country", "iso_code"],
        ]);
        let continent = self.code(&[&["continent", "code"], &["continent_code"], &["continent"]]);
        let latitude = self.number(&["location", "latitude"]).or(self.number(&["latitude"]));
        let longitude = self.number(&["location", "longitude"]).or(self.number(&["longitude"]));
        let city = self.text(&["city", "names", "en"]).or(self.text(&["city"]));
        Location {
            site: None,
            continent: continent.or_else(|| country.and_then(Continent::of_country)),
            country,
            subdivisions: self.subdivisions(),
            city: city.map(Box::from),
            city_id: self.whole(&["city", "geoname_id"]),
            asn: self.asn(),
            coordinates: latitude
                .zip(longitude)
                .and_then(|(latitude, longitude)| Coordinates::new(latitude, longitude)),
        }
    }

    /// Returns the codes of regions, the largest first.
    fn subdivisions(&self) -> Box<[Box<str>]> {
        match self.at(&["subdivisions"]) {
            Some(Data::List(list)) => {
                let codes = list.iter().filter_map(|region| region.text(&["iso_code"]));
                codes.take(SUBDIVISIONS_MAX).map(Box::from).collect()
            }
            _ => self.text(&["region_code"]).map(Box::from).into_iter().collect(),
        }
    }

    /// Returns the number of the autonomous system: a number, or a text such as `AS64496`.
    fn asn(&self) -> Option<u32> {
        let key = "autonomous_system_number";
        let number = self.whole(&[key]).or(self.whole(&["traits", key])).or(self.whole(&["asn"]));
        number.or_else(|| self.text(&["asn"])?.strip_prefix("AS")?.parse().ok())
    }
}

impl<'de> Deserialize<'de> for Data<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

/// Takes data of any type.
struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("data of a database")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Data<'de>, E> {
        Ok(Data::Text(text))
    }

    fn visit_str<E>(self, _: &str) -> Result<Data<'de>, E> {
        Ok(Data::Other)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Data<'de>, E> {
        Ok(Data::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Data<'de>, E> {
        Ok(Data::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Data<'de>, E> {
        Ok(Data::Number(number as f64))
    }

    fn visit_u128<E>(self, _: u128) -> Result<Data<'de>, E> {
        Ok(Data::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Data<'de>, E> {
        Ok(Data::Other)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Data<'de>, E> {
        Ok(Data::Other)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Data<'de>, M::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<&str>()? {
            // Names in one language are enough, and they are most of a database.
            if key == "names" {
                entries.push((key, map.next_value_seed(EnglishName)?));
            } else {
                entries.push((key, map.next_value()?));
            }
        }
        Ok(Data::Map(entries))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut sequence: S) -> Result<Data<'de>, S::Error> {
        let mut list = Vec::new();
        while let Some(data) = sequence.next_element()? {
            list.push(data);
        }
        Ok(Data::List(list))
    }
}

/// Takes the English name of a map of names; the other languages are read past.
struct EnglishName;

impl<'de> serde::de::DeserializeSeed<'de> for EnglishName {
    type Value = Data<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Data<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EnglishName {
    type Value = Data<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names by language")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Data<'de>, E> {
        Ok(Data::Text(text))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Data<'de>, M::Error> {
        let mut names = Vec::new();
        while let Some(language) = map.next_key::<&str>()? {
            if language == "en" {
                names.push((language, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Data::Map(names))
    }
}
