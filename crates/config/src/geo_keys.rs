//! The sections and keys that tell where clients and sites are.

use crate::geo_value::{BiasPercent, CityText, Degrees, SubdivisionCode};
use crate::section::section;
use std::path::PathBuf;
use zonda_geo::{Continent, CountryCode, Prefix};

section! {
    /// Where clients are, for the steps `geo` and `nearest` of pools. Members of pools name their
    /// `site`.
    pub struct GeoKeys: Table "geo", Reload;

    /// The database of locations, in MaxMind's format: of cities, of countries, or a flat one with
    /// `country_code`. With several, such as one of cities and one of autonomous systems, the first
    /// that knows something counts. It is read anew when a file changes, at `watch-interval`; one
    /// that cannot be used leaves the former in force.
    database: Vec<PathBuf>, like "GeoLite2-City.mmdb";
    /// A file of networks, a prefix and a site on each line, besides `networks`; `#` begins a
    /// comment. `POST /v1/geo/networks` changes it, and it is read anew when it changes.
    networks_file: Option<PathBuf>, like "/var/lib/zonda/networks.txt";
    /// A file of measured latencies for the step `learned-latency`: a prefix, a site and
    /// milliseconds on each line. `POST /v1/geo/latencies` changes it, and it is read anew when it
    /// changes.
    latencies_file: Option<PathBuf>, like "/var/lib/zonda/latencies.txt";
    /// The site of clients whose location no site serves, and of those without a location.
    default_site: Option<String>, like "fra";
}

section! {
    /// A network whose clients are at a site, whatever the database says; of several around a
    /// client, the longest prefix counts. Follows `[geo]`, or stands in the list `networks` there:
    /// `networks = [{ prefix = "10.1.0.0/16", site = "fra" }]`.
    pub struct GeoNetworkKeys: NestedArray "geo.networks", Reload;

    /// The network of the clients.
    prefix: Prefix, like "10.1.0.0/16";
    /// The site of its clients.
    site: String, like "fra";
}

section! {
    /// A site, if its name is not the IATA code of a city, such as `fra` or `nyc`, or if it serves
    /// other clients than those of its country and continent. Follows `[geo]`, or stands in the
    /// list `sites` there: `sites = [{ name = "east", latitude = 40.7, longitude = -74.0 }]`.
    pub struct GeoSiteKeys: NestedArray "geo.sites", Reload;

    /// The name by which members, networks and `default-site` refer to the site.
    name: String, like "east";
    /// The place of the site, degrees north of the equator. Unset: that of the city whose IATA code
    /// is the name.
    latitude: Option<Degrees>, like "40.7";
    /// The place of the site, degrees east of Greenwich.
    longitude: Option<Degrees>, like "-74.0";
    /// How much nearer or farther than it is the site counts for `nearest`, from -99 to 99: above
    /// 0, the distance is multiplied by 1 - bias/100; below 0, divided by 1 + bias/100.
    bias: BiasPercent = "0";
    /// Countries whose clients the site serves, by ISO 3166-1. With none of this and the keys
    /// below, the site serves the country and the continent of the city that is its name.
    countries: Vec<CountryCode>, like "US";
    /// Continents whose clients the site serves: AF, AN, AS, EU, NA, OC, SA.
    continents: Vec<Continent>, like "NA";
    /// Parts of countries whose clients the site serves, by ISO 3166-2.
    subdivisions: Vec<SubdivisionCode>, like "US-NY";
    /// Cities whose clients the site serves, by the English names that the database has, perhaps
    /// with their country: `US-Boston`.
    cities: Vec<CityText>, like "US-Boston";
    /// Autonomous systems whose clients the site serves, by number.
    asns: Vec<u32>, like "64496";
}
