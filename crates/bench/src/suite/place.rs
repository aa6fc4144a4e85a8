//! One place in a workload's matrix, with its settings.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use super::series;
use super::spec::{Workload, Zones};
use crate::template::{TemplateError, Values};

/// Where in the matrix, and what that means. Settings that are no fields here are only values for
/// templates, such as a number of zones.
#[derive(Clone, Debug)]
pub struct Place {
    /// Axis and value, as reports show them.
    pub axes: BTreeMap<String, String>,
    /// All settings, for templates.
    pub values: Values,
    /// Threads of each server process; default 1.
    pub threads: usize,
    /// Server processes on one address; default 1.
    pub processes: usize,
    /// Sockets of the generator; default 100.
    pub clients: usize,
    /// Queries outstanding at most; default 100, as of dnsperf. Many more than 200 do not fit into
    /// the socket buffer that a server gets unless it asks for another, so that they would be lost
    /// in the first moment, and the server would be asked less than its peers until they time out.
    pub outstanding: usize,
    /// Networks of clients that resolvers tell in the queries; default none.
    pub subnets: Option<usize>,
    /// Most queries a second; default no limit.
    pub rate: Option<u64>,
}

/// A zone's name and master file.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Name without the dot at the end.
    pub name: String,
    /// The master file; none is a zone that cannot be loaded.
    pub text: Option<String>,
}

impl Place {
    /// Returns all places of a workload's matrix.
    pub fn all(workload: &Workload) -> Result<Vec<Self>, SettingError> {
        if workload.places.is_empty() {
            return Ok(vec![Self::new(workload, &BTreeMap::new())?]);
        }
        workload.places.iter().map(|axes| Self::new(workload, axes)).collect()
    }

    /// Returns the place with these settings over those of the workload.
    fn new(workload: &Workload, axes: &BTreeMap<String, String>) -> Result<Self, SettingError> {
        let mut values = Values::default();
        for (name, value) in workload.settings.iter().chain(axes) {
            values.set(name, value);
        }
        Ok(Self {
            axes: axes.clone(),
            threads: at_least_one(&values, "threads", 1)?,
            processes: at_least_one(&values, "processes", 1)?,
            clients: at_least_one(&values, "clients", 100)?,
            outstanding: at_least_one(&values, "outstanding", 100)?,
            subnets: setting::<NonZeroUsize>(&values, "subnets")?.map(NonZeroUsize::get),
            rate: setting::<NonZeroU64>(&values, "rate")?.map(NonZeroU64::get),
            values,
        })
    }

    /// CPUs that the servers can use here.
    pub fn cpus(&self) -> usize {
        self.threads * self.processes
    }

    /// Returns what the server serves here.
    pub fn zones(&self, zones: &[Zones]) -> Result<Vec<Zone>, TemplateError> {
        let mut all = Vec::new();
        for zones in zones {
            for number in series::numbers(&self.values, &zones.from, &zones.to, zones.step)? {
                let mut values = self.values.clone();
                series::set_number(&mut values, number);
                let name = values.fill(&zones.name)?;
                values.set("zone", &name);
                let mut text = zones.text.as_ref().map(|text| values.fill(text)).transpose()?;
                for records in &zones.records {
                    text.get_or_insert_default().push_str(&records.lines(&values)?);
                }
                all.push(Zone { name, text });
            }
        }
        Ok(all)
    }

    /// Returns what is asked here, a line each.
    pub fn queries(&self, workload: &Workload) -> Result<String, TemplateError> {
        workload.queries.iter().map(|series| series.lines(&self.values)).collect()
    }

    /// Questions that show whether a server is up here.
    pub fn ready(&self, questions: &[String]) -> Result<Vec<String>, TemplateError> {
        questions.iter().map(|text| self.values.fill(text)).collect()
    }

    /// Returns the axes of the place as a line of text; empty without any.
    pub fn text(&self) -> String {
        let axes: Vec<String> =
            self.axes.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
        axes.join(", ")
    }
}

/// Returns a setting's number, or what it is when it is not set.
fn at_least_one(values: &Values, name: &'static str, unset: usize) -> Result<usize, SettingError> {
    Ok(setting::<NonZeroUsize>(values, name)?.map_or(unset, NonZeroUsize::get))
}

/// Returns a setting's number, if it is set.
fn setting<T: FromStr>(values: &Values, name: &'static str) -> Result<Option<T>, SettingError> {
    let Some(text) = values.scalars.get(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| SettingError { name, value: text.clone() })
}

/// A setting that is no number, or 0.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Name of the setting.
    name: &'static str,
    /// Value of the setting.
    value: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` must be a number above 0, not `{}`", self.name, self.value)
    }
}

impl std::error::Error for SettingError {}
