//! The continent of each country, for databases that tell countries alone.

use crate::{Continent, CountryCode};

/// Countries by continent, as geonames.org divides them: codes of ISO 3166-1, and `XK` for Kosovo.
const COUNTRIES: [(Continent, &str); 7] = [
    (
        Continent::Africa,
        "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG \
         ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW",
    ),
    (Continent::Antarctica, "AQ BV GS HM TF"),
    (
        Continent::Asia,
        "AE AF AM AZ BD BH BN BT CC CN CX GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK \
         MM MN MO MV MY NP OM PH PK PS QA SA SG SY TH TJ TM TR TW UZ VN YE",
    ),
    (
        Continent::Europe,
        "AD AL AT AX BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI \
         LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK",
    ),
    (
        Continent::NorthAmerica,
        "AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI \
         PA PM PR SV SX TC TT US VC VG VI",
    ),
    (
        Continent::Oceania,
        "AS AU CK FJ FM GU KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TL TO TV UM VU WF WS",
    ),
    (Continent::SouthAmerica, "AR BO BR CL CO EC FK GF GY PE PY SR UY VE"),
];

impl Continent {
    /// Returns the continent of a country, or `None` for a code that ISO 3166-1 does not assign.
    pub fn of_country(country: CountryCode) -> Option<Self> {
        let mut continents = COUNTRIES.iter();
        let (continent, _) = continents
            .find(|(_, countries)| countries.split(' ').any(|code| code == country.as_str()))?;
        Some(*continent)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_country_lies_on_one_continent() {
        let codes: Vec<&str> = COUNTRIES.iter().flat_map(|(_, codes)| codes.split(' ')).collect();
        assert_eq!(codes.len(), 250, "249 of ISO 3166-1 and Kosovo");
        assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), 250);
        assert!(codes.iter().all(|code| code.parse::<CountryCode>().unwrap().as_str() == *code));
        assert_eq!(Continent::of_country("ZZ".parse().unwrap()), None);
    }
}
