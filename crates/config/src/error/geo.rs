//! What can be wrong with the places of clients and sites.

use std::fmt;
use std::path::PathBuf;
use zonda_geo::{DatabaseError, TooManyPrefixes};

/// Values that are sound alone and wrong beside those of sites, networks and pools.
#[derive(Debug)]
pub enum GeoMistake {
    /// A database that cannot be used.
    Database(Box<DatabaseError>),
    /// More networks than a table can have.
    TooMany(TooManyPrefixes),
    /// A second site of the same name.
    SiteTwice(String),
    /// A second network of the same prefix.
    NetworkTwice(String),
    /// More sites than there can be.
    TooManySites,
    /// A site that is named and not there, and the most similar name of one.
    UnknownSite(String, Option<String>),
    /// A latitude without a longitude, or the other way round, or a latitude beyond a pole.
    Coordinates,
    /// A step, by its word, that needs to know where clients are.
    Nowhere(&'static str),
    /// A step, by its word, of a pool whose members are at no site.
    WithoutSites(&'static str),
    /// A site that no client would be sent to, by the step of this word.
    Unreachable(&'static str, String),
    /// A step by latency without a file of latencies.
    WithoutLatencies,
    /// A line of a file, by its number, that is not what it should be, and why.
    Line(PathBuf, usize, String),
    /// A file that cannot be read, and why.
    Unreadable(PathBuf, String),
    /// A second step by site, or `nearest` before `geo`.
    Steps,
}

impl fmt::Display for GeoMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => error.fmt(f),
            Self::TooMany(error) => error.fmt(f),
            Self::SiteTwice(name) => write!(f, "site `{name}` is in the list above; keep one"),
            Self::NetworkTwice(prefix) => {
                write!(f, "the network {prefix} is in the list above; keep one of them")
            }
            Self::TooManySites => write!(f, "more than {SITES_MAX} sites; join some of them"),
            Self::UnknownSite(name, Some(near)) => {
                write!(f, "no site `{name}`; did you mean `{near}`?")
            }
            Self::UnknownSite(name, None) => write!(
                f,
                "no site `{name}`; add it to `sites` in [geo], as in `{{ name = \"{name}\", \
                 latitude = 50.1, longitude = 8.7 }}`"
            ),
            Self::Coordinates => f.write_str(
                "a place needs `latitude`, from -90 to 90, and `longitude`, from -180 to 180; \
                 write both of them",
            ),
            Self::Nowhere(step) => write!(
                f,
                "`{step}` needs to know where clients are; write `database` or `networks` in [geo]"
            ),
            Self::WithoutSites(step) => write!(
                f,
                "`{step}` chooses among sites, and no member has a `site`; write them, as in \
                 `{{ address = \"192.0.2.1\", site = \"fra\" }}`"
            ),
            Self::Unreachable(step, name) => write!(
                f,
                "no client would be sent to site `{name}` by `{step}`; write its place in `sites` \
                 of [geo], as in `{{ name = \"{name}\", {} }}`, or its clients in `networks`",
                match *step {
                    "nearest" => "latitude = 50.1, longitude = 8.7",
                    _ => "countries = [\"DE\", \"AT\"]",
                }
            ),
            Self::WithoutLatencies => f.write_str(
                "`learned-latency` needs a file of latencies, which programs write; name it by \
                 `latencies-file` in [geo]",
            ),
            Self::Line(path, line, why) => write!(f, "{}:{line}: {why}", path.display()),
            Self::Unreadable(path, why) => {
                write!(f, "{}: {why}; check the path and its permissions", path.display())
            }
            Self::Steps => f.write_str(
                "`geo` and `nearest` stand in this order and beside each other, each once: `geo` \
                 finds the sites of the client's place, `nearest` orders them by distance; \
                 `learned-latency` takes the place of `nearest`",
            ),
        }
    }
}

/// Most sites of a configuration.
pub const SITES_MAX: usize = 256;
