//! Values of the keys that tell where clients and sites are.

use crate::section::Shape;
use crate::value::Value;
use zonda_balance::geography::{CityName, Subdivision};
use zonda_geo::{Bias, Continent, CountryCode, Prefix};

/// An angle in degrees, as a text that is a number, so that equal ones are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degrees(String);

impl Degrees {
    /// The angle as a number.
    pub fn value(&self) -> f64 {
        self.0.parse().unwrap_or_default() // it is a number
    }
}

impl Value for Degrees {
    const SHAPE: Shape = Shape::Number;

    fn form() -> String {
        "a number of degrees from -180 to 180, such as 50.1".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let degrees: f64 = text.parse().ok()?;
        (degrees.abs() <= 180.0).then(|| Self(text.to_owned()))
    }
}

/// How much nearer or farther than it is a site counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BiasPercent(pub Bias);

impl Value for BiasPercent {
    const SHAPE: Shape = Shape::Integer;

    fn form() -> String {
        "a whole number from -99 to 99".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        Bias::new(text.parse().ok()?).map(Self)
    }
}

/// A part of a country.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubdivisionCode(pub Subdivision);

impl Value for SubdivisionCode {
    fn form() -> String {
        "a country and a part of it by ISO 3166-2, such as \"US-NY\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (country, code) = text.split_once('-')?;
        let country = country.parse().ok()?;
        let is_code =
            (1..=3).contains(&code.len()) && code.bytes().all(|it| it.is_ascii_alphanumeric());
        is_code.then(|| Self(Subdivision { country, code: code.to_ascii_uppercase().into() }))
    }
}

/// A city, perhaps with its country.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CityText(pub CityName);

impl Value for CityText {
    fn form() -> String {
        "the English name of a city, such as \"Boston\", or with its country \"US-Boston\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let prefix =
            text.split_once('-').filter(|(code, _)| code.bytes().all(|it| it.is_ascii_uppercase()));
        let in_country = prefix.and_then(|(code, name)| {
            Some(CityName { country: Some(CountryCode::from_text(code)?), name: name.into() })
        });
        let city = in_country.unwrap_or_else(|| CityName { country: None, name: text.into() });
        (1..=255).contains(&city.name.len()).then_some(Self(city))
    }
}

impl Value for CountryCode {
    fn form() -> String {
        "the two letters of a country by ISO 3166-1, such as \"GB\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let code = text.parse().ok()?;
        Continent::of_country(code).map(|_| code) // one that there is
    }
}

impl Value for Continent {
    fn form() -> String {
        "\"AF\", \"AN\", \"AS\", \"EU\", \"NA\", \"OC\" or \"SA\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Prefix {
    fn form() -> String {
        "a network whose bits behind the length are 0, such as \"10.1.0.0/16\", or an address"
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
