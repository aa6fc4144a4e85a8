//! A suite as its TOML file says it.

use serde::{Deserialize, Deserializer, de::Error as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use super::api::Objects;
use super::series::Series;
use super::task::Task;
use crate::data::{Aim, Table};

/// The files in `bench/suites`.
const SHIPPED: &[&str] = &[
    include_str!("../../../../bench/suites/dinodns-coredns.toml"),
    include_str!("../../../../bench/suites/erldns.toml"),
    include_str!("../../../../bench/suites/bind-forward.toml"),
    include_str!("../../../../bench/suites/scale.toml"),
    include_str!("../../../../bench/suites/gslb.toml"),
    include_str!("../../../../bench/suites/cluster.toml"),
    include_str!("../../../../bench/suites/handlers.toml"),
    include_str!("../../../../bench/suites/replication.toml"),
];

/// A suite: what is compared, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Name of the suite on the command line.
    pub name: String,
    /// Heading of the page: the name of the report that it repeats, or of what it measures.
    pub report: Option<String>,
    /// One line that says what is compared.
    pub title: String,
    /// Servers, the floor first.
    pub servers: Vec<String>,
    /// Length of one round, unless the command line says another; above 0, at most a day.
    #[serde(deserialize_with = "seconds")]
    pub seconds: f64,
    /// Rounds of each server in each cell, unless the command line says another number.
    pub rounds: usize,
    /// Load before each round that counts for nothing; at most a day.
    #[serde(deserialize_with = "seconds_or_none")]
    pub warm_up_secs: f64,
    /// Workloads of the suite.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// Tables that the original report printed.
    #[serde(default)]
    pub published: Vec<Table>,
    /// Parts of the report that the suite does not repeat, and why; a line each.
    #[serde(default)]
    pub left_out: Vec<String>,
}

/// A workload: the queries, and the zones or upstreams of the servers. In a file, `like = "NAME"`
/// takes what is not said from a workload above.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name of the workload in reports.
    pub name: String,
    /// Roles of a server: the first of these that its kind has.
    pub roles: Vec<String>,
    /// What is done in a round.
    #[serde(default)]
    pub task: Task,
    /// Figures that Zonda is to reach.
    #[serde(default)]
    pub aims: Vec<Aim>,
    /// Servers, if not those of the suite.
    pub servers: Option<Vec<String>>,
    /// Settings that hold at every place; see [`super::place::Place`].
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The places of the matrix, each with settings of its own; none is one place.
    #[serde(default)]
    pub places: Vec<BTreeMap<String, String>>,
    /// Zones that the server serves.
    #[serde(default)]
    pub zones: Vec<Zones>,
    /// Queries in this order, or what the task has in their place.
    pub queries: Vec<Series>,
    /// The zone that a client transfers again and again while queries are asked; none is none.
    pub beside_transfers: Option<String>,
    /// Questions whose answers show that the server is up, `NAME TYPE`, templates.
    pub ready: Vec<String>,
    /// RCODEs that are as good as each other, as the report takes them.
    #[serde(default)]
    pub alike: Vec<String>,
    /// The server behind a forwarder, or the primary of the zones.
    pub upstream: Option<Upstream>,
    /// Whether [`crate::primary`] takes the place of the server behind.
    #[serde(default)]
    pub any_zone_primary: bool,
    /// The objects of a Kubernetes cluster, which servers read from an API server; none if the
    /// workload has no cluster.
    pub cluster: Option<Objects>,
    /// Loss and delay on the way to the server; none is a direct way.
    pub way: Option<Way>,
    /// Rates below saturation at which latency is measured; none is none. Not of a cache that must
    /// be empty, which it is for a moment only.
    pub latency: Option<LatencyAt>,
    /// Whether the cache is empty when a round begins, and no query is asked twice.
    #[serde(default)]
    pub cold: bool,
    /// Whether a server is started anew for each round. Where loading takes minutes it is started
    /// once, and its rounds follow one another.
    #[serde(default = "yes")]
    pub restart: bool,
    /// How long a server may take to be up.
    #[serde(default = "start_secs")]
    pub start_secs_max: u64,
}

impl Workload {
    /// Returns where latency is measured.
    #[must_use]
    pub fn latency_at(&self) -> Option<&LatencyAt> {
        self.latency.as_ref().filter(|_| !self.cold)
    }
}

/// At which rates latency is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyAt {
    /// Percents of the server's own saturation.
    pub percents: Vec<u32>,
    /// A server at half of whose saturation all are measured, so that they stand side by side.
    pub half_of: Option<String>,
}

/// Seconds in a day, of which a round has at most one.
pub const SECONDS_MAX: f64 = 86_400.0;

/// Reads a length of time that is not 0.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let secs = seconds_or_none(deserializer)?;
    if secs > 0.0 { Ok(secs) } else { Err(D::Error::custom("must be more than 0 seconds")) }
}

/// Reads a length of time.
fn seconds_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let secs = f64::deserialize(deserializer)?;
    let is_fit = (0.0..=SECONDS_MAX).contains(&secs);
    if is_fit { Ok(secs) } else { Err(D::Error::custom("must be 0 to 86,400 seconds")) }
}

/// Returns the default of `restart`.
fn yes() -> bool {
    true
}

/// Returns the default of `start_secs_max`.
fn start_secs() -> u64 {
    60
}

/// Zones of one kind, one for each number. `${zone}` is the name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zones {
    /// The name, a template, without the dot at the end.
    pub name: String,
    /// The first number, a template.
    #[serde(default = "one")]
    pub from: String,
    /// The last number, a template.
    #[serde(default = "one")]
    pub to: String,
    /// Step from one number to the next; at least 1.
    #[serde(default = "step")]
    pub step: u64,
    /// The master file, a template; none is a zone that is configured and cannot be loaded.
    pub text: Option<String>,
    /// Records behind the text.
    #[serde(default)]
    pub records: Vec<Series>,
}

/// Returns the default of `from` and `to`.
fn one() -> String {
    "1".to_owned()
}

/// Returns the default of `step`.
fn step() -> u64 {
    1
}

/// The server behind a forwarder, or the primary of the zones.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// Kind of the server, a template.
    pub server: String,
    /// Role of the server.
    #[serde(default = "authoritative")]
    pub role: String,
    /// Whether it notifies the server that is measured.
    #[serde(default)]
    pub notifies: bool,
    /// Zones that the upstream serves.
    pub zones: Vec<Zones>,
    /// Questions whose answers show that the upstream is up, as [`Workload::ready`]; none is those
    /// of the workload.
    pub ready: Option<Vec<String>>,
}

/// Returns the default of an upstream's role.
fn authoritative() -> String {
    "authoritative".to_owned()
}

/// Loss and delay; see [`crate::relay::Way`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Share of queries that are lost; 0–1.
    pub loss: f64,
    /// Bounds of the delay.
    pub delay_millis: (u64, u64),
}

impl Suite {
    /// Returns all that are shipped.
    ///
    /// # Panics
    /// Never: a test reads them all.
    pub fn shipped() -> Vec<Self> {
        let parse = |text: &&str| Self::parse(text).expect("shipped files are read by a test");
        SHIPPED.iter().map(parse).collect()
    }

    /// Returns the shipped suite of this name, or what the file of this name says.
    pub fn named(name: &str) -> Result<Self, SpecError> {
        if let Some(suite) = Self::shipped().into_iter().find(|suite| suite.name == name) {
            return Ok(suite);
        }
        if !name.ends_with(".toml") {
            return Err(SpecError::Unknown(name.to_owned()));
        }
        let path = Path::new(name);
        let text = fs::read_to_string(path).map_err(|e| SpecError::Read(path.to_owned(), e))?;
        Self::parse(&text).map_err(|error| SpecError::Parse(path.to_owned(), error))
    }

    /// Reads a file's text.
    fn parse(text: &str) -> Result<Self, Box<toml::de::Error>> {
        let mut file: toml::Table = toml::from_str(text)?;
        let workloads = file.get_mut("workload").and_then(|workloads| workloads.as_array_mut());
        workloads.map_or(Ok(()), inherit)?;
        Ok(file.try_into()?)
    }
}

/// Gives each workload with a key `like` what it does not say itself of what the workload of that
/// name, which stands before it, says.
fn inherit(workloads: &mut toml::value::Array) -> Result<(), toml::de::Error> {
    for place in 0..workloads.len() {
        let (before, rest) = workloads.split_at_mut(place);
        let Some(workload) = rest[0].as_table_mut() else { continue };
        let Some(name) = workload.remove("like") else { continue };
        let other = before.iter().rfind(|other| other.get("name") == Some(&name));
        let other = other.and_then(|other| other.as_table());
        let missing = || toml::de::Error::custom(format!("no workload {name:?} above"));
        for (key, value) in other.ok_or_else(missing)? {
            workload.entry(key).or_insert_with(|| value.clone());
        }
    }
    Ok(())
}

/// Why there is no such suite.
#[derive(Debug)]
pub enum SpecError {
    /// Neither shipped nor a file.
    Unknown(String),
    /// The file cannot be read.
    Read(PathBuf, io::Error),
    /// The file says something else.
    Parse(PathBuf, Box<toml::de::Error>),
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let known: Vec<String> =
                    Suite::shipped().into_iter().map(|suite| suite.name).collect();
                write!(f, "no suite `{name}`; there are {}, or a FILE.toml", known.join(", "))
            }
            Self::Read(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Parse(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::server::{Kind, running::Question};
    use crate::suite::place::Place;

    #[test]
    fn what_a_suite_leaves_out_of_its_report_is_listed_in_the_documentation() {
        let page = include_str!("../../../../docs/benchmark-suites.md");
        for suite in Suite::shipped() {
            assert_eq!(suite.left_out.is_empty(), suite.published.is_empty(), "{}", suite.name);
            if !suite.left_out.is_empty() {
                let items: String =
                    suite.left_out.iter().map(|what| format!("- {what}\n")).collect();
                let list = format!("Left out of the report:\n\n{items}\n## ");
                assert!(page.contains(&list), "{}: expected\n{list}", suite.name);
            }
        }
    }

    #[test]
    fn every_shipped_suite_names_shipped_servers_and_asks_readable_questions() {
        let suites = Suite::shipped();
        assert_eq!(suites.len(), SHIPPED.len());
        for suite in suites {
            for workload in &suite.workloads {
                for name in suite.servers.iter().chain(workload.servers.iter().flatten()) {
                    Kind::named(name).unwrap();
                }
                for place in Place::all(workload).unwrap() {
                    for question in place.ready(&workload.ready).unwrap() {
                        Question::parse(&question).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn rows_of_published_tables_are_as_long_as_their_heads() {
        for table in Suite::shipped().into_iter().flat_map(|suite| suite.published) {
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{}: {row:?}", table.title);
            }
        }
    }

    #[test]
    fn times_too_long_to_wait_for_are_refused() {
        let rest = "[[workload]]\nname='a'\nroles=[]\nready=[]\nqueries=[]\n";
        for (secs, warm_up_secs) in [("1e30", "0"), ("0", "0"), ("nan", "0"), ("1", "-1")] {
            let head = "name='s'\ntitle=''\nservers=[]\nrounds=1\n";
            let times = format!("seconds={secs}\nwarm_up_secs={warm_up_secs}\n");
            let said = Suite::parse(&[head, &times, rest].concat()).unwrap_err().to_string();
            assert!(said.contains(" seconds"), "{said}");
        }
    }

    #[test]
    fn a_workload_inherits_another_except_for_its_own_keys() {
        let head = "name='s'\ntitle=''\nservers=[]\nseconds=1.0\nrounds=1\nwarm_up_secs=0.0\n";
        let first = "[[workload]]\nname='a'\nroles=['x']\nready=['a A']\nqueries=[]\n";
        let second = "[[workload]]\nname='b'\nlike='a'\ncold=true\n";
        let suite = Suite::parse(&[head, first, second].concat()).unwrap();
        let [a, b] = &suite.workloads[..] else { panic!("{suite:?}") };
        assert_eq!((&*b.name, &b.roles, &b.ready), ("b", &a.roles, &a.ready));
        assert_eq!((a.cold, b.cold), (false, true));
        let error = Suite::parse(&[head, second].concat()).unwrap_err();
        assert!(error.to_string().contains("no workload"), "{error}");
    }

    #[test]
    fn an_unknown_suite_is_reported_with_the_known_ones() {
        let said = Suite::named("speed").unwrap_err().to_string();
        assert!(said.starts_with("no suite `speed`; there are dinodns-coredns, "), "{said}");
    }
}
