//! What of a server may drift, by how much it did, and what is too much.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use super::Sample;
use super::trend::{self, Trend};
use crate::report::{short, time};

/// Octets of a mebibyte.
const MIB: f64 = 1_048_576.0;

/// Seconds of an hour.
const HOUR_SECS: f64 = 3600.0;

/// A measure that is watched for drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Resident memory of the server, in MiB.
    Memory,
    /// Number of open descriptors.
    Descriptors,
    /// CPUs that are busy with the server.
    Cpus,
    /// Context switches in a second.
    ContextSwitches,
    /// The median time to reply, in microseconds.
    P50,
    /// The 99th percentile of the time to reply.
    P99,
    /// Queries lost, in percent.
    Lost,
}

impl Measure {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Memory,
        Self::Descriptors,
        Self::Cpus,
        Self::ContextSwitches,
        Self::P50,
        Self::P99,
        Self::Lost,
    ];

    /// Returns the value in a sample, if it is known.
    fn of(self, sample: &Sample) -> Option<f64> {
        let server = sample.server.as_ref();
        match self {
            Self::Memory => server.map(|server| server.resident_octets as f64 / MIB),
            Self::Descriptors => server.map(|server| server.descriptors as f64),
            Self::Cpus => server.map(|server| server.cpus),
            Self::ContextSwitches => server.map(|server| server.context_switches_per_sec),
            Self::P50 => sample.latency_micros.percentile(50.0),
            Self::P99 => sample.latency_micros.percentile(99.0),
            Self::Lost => Some(100.0 * sample.lost as f64 / sample.sent.max(1) as f64),
        }
    }

    /// Returns a value as people read it, with its unit.
    fn text(self, value: f64) -> String {
        match self {
            Self::Memory => format!("{} MiB", short(value)),
            Self::Descriptors | Self::Cpus => short(value),
            Self::ContextSwitches => format!("{}/s", short(value)),
            Self::P50 | Self::P99 => time(value),
            Self::Lost => format!("{} %", short(value)),
        }
    }

    /// By how much a value changes, with its sign and unit.
    fn change_text(self, change: f64) -> String {
        let sign = if change < 0.0 { '−' } else { '+' };
        format!("{sign}{}", self.text(change.abs()))
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::Descriptors => "descriptors",
            Self::Cpus => "CPUs",
            Self::ContextSwitches => "switches",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Lost => "lost",
        })
    }
}

/// How a measure went; its slope is per hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Measure that drifts.
    pub measure: Measure,
    /// Trend of the measure.
    pub trend: Trend,
}

/// Returns how each measure went of which there are samples enough.
#[must_use]
pub fn drifts(samples: &[Sample]) -> Vec<Drift> {
    let drift = |measure: Measure| {
        let point = |sample: &Sample| Some((sample.seconds / HOUR_SECS, measure.of(sample)?));
        let points: Vec<(f64, f64)> = samples.iter().filter_map(point).collect();
        Some(Drift { measure, trend: trend::trend(&points)? })
    };
    Measure::ALL.into_iter().filter_map(drift).collect()
}

/// Prints a line for each, of so many samples.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print(drifts: &[Drift], samples: usize, out: &mut impl Write) -> io::Result<()> {
    if drifts.is_empty() {
        let least = trend::POINTS_MIN;
        return writeln!(out, "no drift can be told: {samples} samples, and it takes {least}");
    }
    writeln!(out, "{:<12} {:>12} {:>14}", "", "median", "per hour")?;
    for Drift { measure, trend: Trend { median, slope, is_beyond_noise } } in drifts {
        let word = match is_beyond_noise {
            false => "within noise",
            true if *slope > 0.0 => "rises",
            true => "falls",
        };
        let (median, slope) = (measure.text(*median), measure.change_text(*slope));
        writeln!(out, "{measure:<12} {median:>12} {slope:>14}  {word}")?;
    }
    Ok(())
}

/// The most that measures may rise in an hour; those that are absent may rise at will.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Octets of memory.
    pub memory_max: Option<f64>,
    /// Limit of open descriptors.
    pub descriptors_max: Option<f64>,
    /// The 99th percentile of the time to reply.
    pub p99_max: Option<Duration>,
}

/// A measure that rose beyond noise and by more than it may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excess {
    /// Measure that rose.
    pub measure: Measure,
    /// Rise in an hour.
    pub slope: f64,
    /// Limit of the rise.
    pub limit: f64,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measure, slope, limit } = self;
        let [slope, limit] = [slope, limit].map(|it| measure.text(*it));
        write!(f, "{measure} rises by {slope} an hour, at most {limit} may be")
    }
}

impl Limits {
    /// Returns the measures that have limits, each with the most that it may rise.
    pub fn measures(&self) -> impl Iterator<Item = (Measure, f64)> {
        let p99_max = self.p99_max.map(|limit| limit.as_secs_f64() * 1e6);
        let all = [
            (Measure::Memory, self.memory_max.map(|octets| octets / MIB)),
            (Measure::Descriptors, self.descriptors_max),
            (Measure::P99, p99_max),
        ];
        all.into_iter().filter_map(|(measure, limit)| Some((measure, limit?)))
    }

    /// Returns the limits that were exceeded.
    #[must_use]
    pub fn exceeded_by(&self, drifts: &[Drift]) -> Vec<Excess> {
        let exceeded = |(measure, limit)| {
            let drift = drifts.iter().find(|drift| drift.measure == measure)?;
            let Trend { slope, is_beyond_noise, .. } = drift.trend;
            (is_beyond_noise && slope > limit).then_some(Excess { measure, slope, limit })
        };
        self.measures().filter_map(exceeded).collect()
    }
}

/// Reads a number of octets with its unit: `k`, `M` or `G`, powers of 1024.
///
/// # Errors
/// What was expected.
pub fn parse_octets(text: &str) -> Result<f64, String> {
    let units = [("k", 1024.0), ("M", MIB), ("G", 1024.0 * MIB)];
    let number = |(name, unit): &(&str, f64)| Some((text.strip_suffix(name)?, *unit));
    let (number, unit) = units.iter().find_map(number).unwrap_or((text, 1.0));
    let octets = number.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    octets
        .map(|octets| octets * unit)
        .ok_or_else(|| "expected octets, such as 500k or 2M".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::data::Latency;
    use crate::soak::ServerSample;

    /// Returns a sample after so many minutes: memory grows by 1 MiB in each.
    fn sample(minute: u32) -> Sample {
        let server = ServerSample {
            resident_octets: u64::from(minute) << 20,
            descriptors: 12,
            cpus: 0.5,
            context_switches_per_sec: 1000.0,
        };
        let percentiles = vec![(50.0, 20.0), (99.0, 70.0)];
        Sample {
            seconds: f64::from(minute) * 60.0,
            sent: 1000,
            completed: 1000,
            lost: 0,
            latency_micros: Latency { percentiles, ..Latency::default() },
            server: Some(server),
        }
    }

    #[test]
    fn a_leak_is_reported_per_hour_and_exceeds_only_lower_limits() {
        let drifts = drifts(&(1..=30).map(sample).collect::<Vec<_>>());
        assert_eq!(drifts.len(), Measure::ALL.len());
        let limits = |mib: f64| Limits {
            memory_max: Some(mib * MIB),
            descriptors_max: Some(0.0),
            p99_max: Some(Duration::ZERO),
        };
        assert_eq!(limits(60.1).exceeded_by(&drifts), []);
        let exceeded = limits(59.0).exceeded_by(&drifts);
        assert_eq!(exceeded.len(), 1);
        let text = exceeded[0].to_string();
        assert_eq!(text, "memory rises by 60.0 MiB an hour, at most 59.0 MiB may be");
        let mut text = Vec::new();
        print(&drifts, 12, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("memory           15.5 MiB      +60.0 MiB  rises\n"), "{text}");
        assert!(
            text.contains("p99               70.0 µs       +0.00 µs  within noise\n"),
            "{text}"
        );
    }

    #[test]
    fn times_are_in_the_unit_that_suits_them() {
        let trend = Trend { median: 996_147.2, slope: -1_234.0, is_beyond_noise: true };
        let mut text = Vec::new();
        print(&[Drift { measure: Measure::P99, trend }], 12, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("p99                996 ms       −1.23 ms  falls\n"), "{text}");
        let exceeded = Excess { measure: Measure::P99, slope: 2500.0, limit: 100.0 };
        let text = exceeded.to_string();
        assert_eq!(text, "p99 rises by 2.50 ms an hour, at most 100 µs may be");
    }

    #[test]
    fn a_server_elsewhere_has_latency_only() {
        let samples: Vec<Sample> =
            (1..=30).map(|minute| Sample { server: None, ..sample(minute) }).collect();
        let measures: Vec<Measure> = drifts(&samples).iter().map(|drift| drift.measure).collect();
        assert_eq!(measures, [Measure::P50, Measure::P99, Measure::Lost]);
    }

    #[test]
    fn octets_are_read_with_their_units() {
        assert_eq!(parse_octets("500"), Ok(500.0));
        assert_eq!(parse_octets("1.5k"), Ok(1536.0));
        assert_eq!(parse_octets("2M"), Ok(2.0 * MIB));
        assert!(parse_octets("-1").is_err() && parse_octets("2T").is_err());
    }
}
