//! Figures of a cell, and cells that were measured side by side.

use super::numbers::{grouped, rate, short, time};
use super::verdict::LOSS_MAX;
use crate::data::{Cell, LoadPoint, LoadShare, Round, Run, Traffic};
use crate::paired::{Relation, Scale, Series};
use crate::statistics::Spread;

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
    /// The 99.9th percentile at the rate below saturation that is the same for all servers, from
    /// the scheduled moment of sending; in microseconds.
    Tail,
    /// Queries lost in a round, as a share of those sent; 0–1.
    Loss,
    /// Share of lost queries at the rate below saturation that is the same for all servers.
    TailLoss,
    /// Memory after the round, in MiB.
    Memory,
    /// Context switches of the server for each thousand answered queries.
    Switches,
    /// Time from start to the first answer, in seconds.
    Ready,
}

/// Figures by which servers and runs are compared, in the order of reports.
pub const COMPARED: [Figure; 9] = [
    Figure::CpuPerQuery,
    Figure::Qps,
    Figure::Loss,
    Figure::Tail,
    Figure::TailLoss,
    Figure::Percentile(50_000),
    Figure::Percentile(99_000),
    Figure::Memory,
    Figure::Ready,
];

/// The share of the base within which figures are level.
const LEVEL_SHARE: f64 = 0.05;

/// Where the reflector's fastest round is more than so many times its slowest, the machine was not
/// the same in all rounds, and what it adds to servers is unknown. In most runs it stays below 1.3.
const FLOOR_SPREAD_MAX: f64 = 1.5;

/// Length of a tick of `/proc/PID/stat`, as all kernels of Linux count for programs.
const TICK_MICROS: f64 = 10_000.0;

impl Figure {
    /// Returns the figure's name in a sentence.
    pub fn name(self) -> String {
        match self {
            Self::CpuPerQuery => "CPU per query".to_owned(),
            Self::Qps => "queries per second".to_owned(),
            Self::LatencyMean => "average latency".to_owned(),
            Self::Percentile(thousandths) => {
                format!("p{} latency at full load", f64::from(thousandths) / 1000.0)
            }
            Self::Tail => "p99.9 latency at one rate for all".to_owned(),
            Self::Loss => "queries lost at full load".to_owned(),
            Self::TailLoss => "queries lost at one rate for all".to_owned(),
            Self::Memory => "memory".to_owned(),
            Self::Switches => "context switches per 1,000 queries".to_owned(),
            Self::Ready => "start to first answer".to_owned(),
        }
    }

    /// Returns a value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Qps => format!("{}/s", rate(value)),
            Self::Loss | Self::TailLoss if value == 0.0 => "none".to_owned(),
            Self::Loss | Self::TailLoss if value < 5e-6 => "under 0.001 %".to_owned(),
            Self::Loss | Self::TailLoss => format!("{} %", short(value * 100.0)),
            Self::Memory => format!("{} MiB", short(value)),
            Self::Switches => short(value),
            Self::Ready => format!("{} s", short(value)),
            Self::CpuPerQuery => format!("{} µs", short(value)),
            Self::LatencyMean | Self::Percentile(_) | Self::Tail => time(value),
        }
    }

    /// Whether a larger value is better.
    pub fn more_is_better(self) -> bool {
        self == Self::Qps
    }

    /// Whether the figure is a time from query to reply.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::LatencyMean | Self::Percentile(_) | Self::Tail)
    }

    /// Whether the figure belongs into the few sentences that sum up a run. Latency under full load
    /// does not: it is the length of the queue that the generator keeps.
    pub fn is_headline(self) -> bool {
        self == Self::Tail || !self.is_latency()
    }

    /// Returns how it is compared, and within which margin it is level. Starting any process varies
    /// by some tens of milliseconds, memory comes in arenas, and any server loses single queries.
    pub fn scale(self) -> Scale {
        let ratio = |resolution| Scale::Ratio { level: LEVEL_SHARE, resolution };
        match self {
            Self::Loss | Self::TailLoss => Scale::Difference { level: LOSS_MAX },
            Self::Ready => ratio(0.1),
            Self::Memory => ratio(1.0),
            _ => ratio(0.0),
        }
    }

    /// Returns the margin of [`Self::scale`] as text.
    pub fn margin(self) -> String {
        match self {
            Self::Loss | Self::TailLoss => format!("{} % of the queries", LOSS_MAX * 100.0),
            Self::Ready => format!("{:.0} % or 0.1 s", LEVEL_SHARE * 100.0),
            Self::Memory => format!("{:.0} % or 1 MiB", LEVEL_SHARE * 100.0),
            _ => format!("{:.0} %", LEVEL_SHARE * 100.0),
        }
    }

    /// Whether the figure depends on how fast the machine is just then, as the reflector's does.
    pub fn follows_machine(self) -> bool {
        matches!(self, Self::CpuPerQuery | Self::Qps | Self::LatencyMean | Self::Percentile(_))
    }

    /// Whether a change to this side is for the better.
    pub fn is_better(self, change: f64) -> bool {
        (change > 0.0) == self.more_is_better()
    }

    /// Returns the share of queries that were lost where it was measured; 0–1.
    pub fn loss(self, cell: &Cell) -> f64 {
        let (lost, sent) = match self {
            Self::Tail => lost(common_points(cell).map(|point| &point.traffic)),
            _ => lost(cell.rounds.iter().map(|round| &round.traffic)),
        };
        if sent == 0 { 0.0 } else { lost as f64 / sent as f64 }
    }

    /// Returns the figure over all rounds of a cell.
    pub fn of(self, cell: &Cell) -> Option<Spread> {
        Some(self.series(cell)?.spread())
    }

    /// Returns the figure in each round of a cell. Whether the tail is the server's, the group
    /// knows: see [`Group::series`].
    pub fn series(self, cell: &Cell) -> Option<Series> {
        let points = |value: fn(&LoadPoint) -> Option<f64>| {
            Series::of(common_points(cell).filter_map(value).enumerate())
        };
        match self {
            Self::Tail => points(|point| point.latency.percentile(99.9)),
            Self::TailLoss => points(|point| point.traffic.loss()),
            Self::Ready => Series::of(cell.start.iter().map(|start| (0, start.ready_secs))),
            _ => {
                let value = |round: &Round| Some((round.number, self.of_round(round)?));
                let values: Option<Vec<_>> = cell.rounds.iter().map(value).collect();
                Some(Series::of(values?)?.grained(self.grain(cell)))
            }
        }
    }

    /// Returns how far a round's value may be from the truth, whatever the other rounds say: the
    /// kernel counts CPU time in ticks, which short rounds of few queries have few of.
    fn grain(self, cell: &Cell) -> f64 {
        let queries = cell.rounds.iter().map(|round| round.traffic.completed).min();
        match (self, queries) {
            (Self::CpuPerQuery, Some(queries)) if queries > 0 => TICK_MICROS / queries as f64,
            _ => 0.0,
        }
    }

    /// Returns the figure of one round; `None` when no query was answered or it was not measured.
    fn of_round(self, round: &Round) -> Option<f64> {
        if self == Self::Loss {
            return round.traffic.loss();
        }
        let completed = round.traffic.completed as f64;
        if completed == 0.0 || round.seconds <= 0.0 {
            return None;
        }
        match self {
            // The kernel counts CPU time in ticks: a round too short for one was not measured.
            Self::CpuPerQuery if cpu_secs(round) == 0.0 => None,
            Self::CpuPerQuery => Some(cpu_secs(round) * 1e6 / completed),
            Self::Qps => Some(completed / round.seconds),
            Self::LatencyMean => Some(round.latency.mean),
            Self::Percentile(thousandths) => {
                round.latency.percentile(f64::from(thousandths) / 1000.0)
            }
            Self::Memory => (round.memory_octets > 0).then(|| mebioctets(round.memory_octets)),
            Self::Switches => Some(round.context_switches as f64 * 1000.0 / completed),
            Self::Loss | Self::Tail | Self::TailLoss | Self::Ready => None,
        }
    }
}

/// Returns what was measured below saturation at a rate that does not depend on the server.
pub fn common_points(cell: &Cell) -> impl Iterator<Item = &LoadPoint> {
    cell.latency_at.iter().filter(|point| matches!(point.share, LoadShare::Common { .. }))
}

/// Queries lost, and queries sent.
fn lost<'a>(traffic: impl Iterator<Item = &'a Traffic>) -> (u64, u64) {
    traffic.fold((0, 0), |(lost, sent), of| (lost + of.lost, sent + of.sent))
}

/// CPU time of the server in a round, user and system.
pub fn cpu_secs(round: &Round) -> f64 {
    round.cpu_user_secs + round.cpu_system_secs
}

/// Octets in MiB.
pub fn mebioctets(octets: u64) -> f64 {
    octets as f64 / f64::from(1 << 20)
}

/// Cells of one workload at one place in the matrix, in the order of the run's servers.
pub struct Group<'a> {
    /// Name of the workload.
    pub workload: &'a str,
    /// The place as text; empty for a suite without a matrix.
    pub place: String,
    /// Cells, one for each server.
    pub cells: Vec<&'a Cell>,
    /// Cell of the reflector, if it took part.
    pub floor: Option<&'a Cell>,
}

impl<'a> Group<'a> {
    /// Workload and place.
    pub fn label(&self) -> String {
        match self.place.as_str() {
            "" => self.workload.to_owned(),
            place => format!("{} · {place}", self.workload),
        }
    }

    /// Returns the head of a column for what a query is here: `CPU µs/query` of updates is
    /// `CPU µs/update`.
    pub fn in_unit(&self, head: &str) -> String {
        match self.cells.first().and_then(|cell| cell.unit.as_ref()) {
            None => head.to_owned(),
            Some(unit) => head.replace("queries", &format!("{unit}s")).replace("query", unit),
        }
    }

    /// Returns the cell of a server.
    pub fn cell(&self, server: &str) -> Option<&'a Cell> {
        self.cells.iter().copied().find(|cell| cell.server == server)
    }

    /// Cells of servers that may be compared: no reflector, no odd answers, rounds that count, and
    /// a machine that was steady meanwhile.
    pub fn ranked(&self) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().copied().filter(|cell| self.is_ranked(cell))
    }

    /// Whether this one of the cells may be compared.
    pub fn is_ranked(&self, cell: &Cell) -> bool {
        !self.is_floor(cell) && self.reason_unranked(cell).is_none() && self.unsteady().is_none()
    }

    /// Whether this one of the cells is the reflector's.
    pub fn is_floor(&self, cell: &Cell) -> bool {
        self.floor.is_some_and(|floor| floor.server == cell.server)
    }

    /// Returns why this one of the cells is not compared though it is no reflector's.
    pub fn reason_unranked<'c>(&self, cell: &'c Cell) -> Option<&'c str> {
        let none = "other processes used the machine in every round";
        cell.unranked.as_deref().or_else(|| cell.rounds.is_empty().then_some(none))
    }

    /// Returns why nothing is compared here: the reflector does the same in every round, so that
    /// where its own rounds differ, the machine was not the same in them.
    pub fn unsteady(&self) -> Option<String> {
        let floor = self.floor?;
        let times = |figure: Figure| {
            let spread = Spread::of(floor.rounds.iter().filter_map(|it| figure.of_round(it)))?;
            Some((figure, spread.high / spread.low))
        };
        let worst = [Figure::CpuPerQuery, Figure::Qps].into_iter().filter_map(times);
        let worst = worst.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let (figure, times) = worst.filter(|(_, times)| *times > FLOOR_SPREAD_MAX)?;
        let name = figure.name();
        Some(format!("the reflector's own rounds differ by {} × in {name}", short(times)))
    }

    /// Returns a figure of one of the cells. Where the generator was late at any server, no tail is
    /// shown: to leave out those alone would be to leave out the fastest, whose latency is the
    /// least.
    pub fn figure(&self, figure: Figure, cell: &Cell) -> Option<Spread> {
        Some(self.series(figure, cell)?.spread())
    }

    /// Returns the figure of each round.
    pub fn series(&self, figure: Figure, cell: &Cell) -> Option<Series> {
        if figure == Figure::Tail && !self.late().is_empty() {
            return None;
        }
        figure.series(cell)
    }

    /// Returns how a figure of one of the cells stands to that of another, which is the base.
    pub fn relation(&self, figure: Figure, cell: &Cell, base: &Cell) -> Option<Relation> {
        let (own, base) = (self.series(figure, cell)?, self.series(figure, base)?);
        Some(own.against(&base, figure.scale()))
    }

    /// Ranked servers at which the generator was late at the rate that is the same for all.
    pub fn late(&self) -> Vec<&'a str> {
        let is_late = |cell: &&Cell| common_points(cell).any(|point| point.is_generator_late);
        self.ranked().filter(is_late).map(|cell| &*cell.server).collect()
    }

    /// CPU per query as a multiple of the reflector's in the round of the same number.
    pub fn times_floor(&self, cell: &Cell) -> Option<Spread> {
        let (own, floor) = (Figure::CpuPerQuery.series(cell)?, self.floor?);
        Some(own.grained(0.0).over(&Figure::CpuPerQuery.series(floor)?.grained(0.0))?.spread())
    }
}

/// Returns the groups of a run, in the order of its cells.
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

/// Returns a cell's place as text: `threads 2, zones 10,000`.
pub fn place(cell: &Cell) -> String {
    let value = |value: &str| match value.parse::<u32>() {
        Ok(number) if number >= 10_000 => grouped(number.into()),
        _ => value.to_owned(),
    };
    let axes: Vec<String> =
        cell.place.iter().map(|(axis, of)| format!("{axis} {}", value(of))).collect();
    axes.join(", ")
}
