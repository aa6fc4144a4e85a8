//! Figures of a cell, and cells that were measured side by side.

use super::numbers::{grouped, short};
use super::statistics::Spread;
use crate::data::{Cell, Round, Run};

/// A figure that rounds have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// CPU time of the server for each answered query, in microseconds.
    CpuPerQuery,
    /// Answered queries per second.
    Qps,
    /// The average time from query to reply, in microseconds.
    LatencyMean,
    /// The percentile of latency in thousandths, so that 99900 is p99.9; in microseconds.
    Percentile(u32),
    /// Memory after the round, in MiB.
    Memory,
    /// Context switches of the server for each thousand answered queries.
    Switches,
    /// From start to the first answer, in seconds.
    Ready,
}

/// Figures by which servers and runs are compared, in the order of reports.
pub const COMPARED: [Figure; 6] = [
    Figure::CpuPerQuery,
    Figure::Qps,
    Figure::Percentile(50_000),
    Figure::Percentile(99_000),
    Figure::Memory,
    Figure::Ready,
];

impl Figure {
    /// Its name in a sentence.
    pub fn name(self) -> String {
        match self {
            Self::CpuPerQuery => "CPU per query".to_owned(),
            Self::Qps => "queries per second".to_owned(),
            Self::LatencyMean => "average latency".to_owned(),
            Self::Percentile(thousandths) => {
                format!("p{} latency", f64::from(thousandths) / 1000.0)
            }
            Self::Memory => "memory".to_owned(),
            Self::Switches => "context switches per 1,000 queries".to_owned(),
            Self::Ready => "start to first answer".to_owned(),
        }
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Qps => format!("{}/s", grouped(value)),
            Self::Memory => format!("{} MiB", short(value)),
            Self::Switches => short(value),
            Self::Ready => format!("{} s", short(value)),
            _ => format!("{} µs", short(value)),
        }
    }

    /// Whether a larger value is better.
    pub fn more_is_better(self) -> bool {
        self == Self::Qps
    }

    /// The figure over all rounds of a cell.
    pub fn of(self, cell: &Cell) -> Option<Spread> {
        match self {
            Self::Ready => Spread::of(cell.start.iter().map(|start| start.ready_secs)),
            _ => {
                let values: Option<Vec<f64>> =
                    cell.rounds.iter().map(|round| self.of_round(round)).collect();
                Spread::of(values?)
            }
        }
    }

    /// The figure of one round; none when no query was answered or nobody measured it.
    fn of_round(self, round: &Round) -> Option<f64> {
        let completed = round.traffic.completed as f64;
        if completed == 0.0 || round.seconds <= 0.0 {
            return None;
        }
        match self {
            Self::CpuPerQuery => Some(cpu_secs(round) * 1e6 / completed),
            Self::Qps => Some(completed / round.seconds),
            Self::LatencyMean => Some(round.latency.mean),
            Self::Percentile(thousandths) => {
                percentile(&round.latency.percentiles, f64::from(thousandths) / 1000.0)
            }
            Self::Memory => (round.memory_octets > 0).then(|| mebioctets(round.memory_octets)),
            Self::Switches => Some(round.context_switches as f64 * 1000.0 / completed),
            Self::Ready => None,
        }
    }
}

/// CPU time of the server in a round, user and system.
pub fn cpu_secs(round: &Round) -> f64 {
    round.cpu_user_secs + round.cpu_system_secs
}

/// Octets in MiB.
pub fn mebioctets(octets: u64) -> f64 {
    octets as f64 / f64::from(1 << 20)
}

/// The value of a percentile that is in the list.
pub fn percentile(list: &[(f64, f64)], wanted: f64) -> Option<f64> {
    list.iter().find(|(name, _)| (name - wanted).abs() < 1e-6).map(|(_, value)| *value)
}

/// Cells of one workload at one place in the matrix, in the order of the run's servers.
pub struct Group<'a> {
    /// The workload.
    pub workload: &'a str,
    /// The place as text; empty for a suite without a matrix.
    pub place: String,
    /// One for each server.
    pub cells: Vec<&'a Cell>,
    /// The reflector's, if it took part.
    pub floor: Option<&'a Cell>,
}

impl<'a> Group<'a> {
    /// Cells of servers that may be ranked: no reflector, no odd answers, and rounds that count.
    pub fn ranked(&self) -> impl Iterator<Item = &'a Cell> {
        let floor = self.floor.map(|cell| &cell.server);
        self.cells.iter().copied().filter(move |cell| {
            Some(&cell.server) != floor && cell.unranked.is_none() && !cell.rounds.is_empty()
        })
    }

    /// CPU per query as a multiple of the reflector's in the round of the same number.
    pub fn times_floor(&self, cell: &Cell) -> Option<Spread> {
        let floor = self.floor?;
        Spread::of(cell.rounds.iter().filter_map(|round| {
            let same = floor.rounds.iter().find(|other| other.number == round.number)?;
            let cost = Figure::CpuPerQuery;
            Some(cost.of_round(round)? / cost.of_round(same)?)
        }))
    }
}

/// The groups of a run, in the order of its cells.
pub fn groups(run: &Run) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for cell in &run.cells {
        let place = place(cell);
        let is_floor =
            run.servers.iter().any(|server| server.is_floor && server.name == cell.server);
        let known = groups
            .iter_mut()
            .position(|group| group.workload == cell.workload && group.place == place);
        let index = known.unwrap_or_else(|| {
            let (workload, cells) = (cell.workload.as_str(), Vec::new());
            groups.push(Group { workload, place, cells, floor: None });
            groups.len() - 1
        });
        groups[index].cells.push(cell);
        if is_floor {
            groups[index].floor = Some(cell);
        }
    }
    groups
}

/// A cell's place as text: `threads 2, tier 1`.
pub fn place(cell: &Cell) -> String {
    let axes: Vec<String> =
        cell.place.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
    axes.join(", ")
}
