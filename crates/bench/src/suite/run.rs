//! A whole suite, rounds interleaved between servers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fmt, fs, io, process};

use super::bed::{Bed, BedError, Contestant, Ground, Stock};
use super::environment::environment;
use super::place::{Place, SettingError};
use super::spec::{Suite, Workload};
use super::{judge, measure};
use crate::data::{Cell, FORMAT, LoadPoint, Method, Round, Run, Server, Setup, Skipped};
use crate::load::{End, Mode, Pace, Plan};
use crate::server::locate::locate;
use crate::server::{Kind, KindError, Missing};

/// A round counts when other processes used no more than this share of the machine, unless the
/// command line says otherwise.
const FOREIGN_CPU_MAX: f64 = 0.05;
/// How long a query may take before it counts as lost.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How often a round is repeated that others disturbed, before the server goes without it.
const REPEATS_MAX: usize = 3;
/// Most octets of a configuration that are kept for the report.
const FILE_OCTETS_MAX: usize = 4096;

/// What the command line says over the suite.
#[derive(Clone, Debug)]
pub struct Options {
    /// Servers instead of the suite's; the floor takes part in any case.
    pub against: Option<Vec<String>>,
    /// Workloads; none is all.
    pub workloads: Option<Vec<String>>,
    /// Length of one round.
    pub seconds: Option<f64>,
    /// Rounds of each server in each cell.
    pub rounds: Option<usize>,
    /// CPUs of the servers; empty is the first half of those allowed.
    pub server_cpus: Vec<usize>,
    /// CPUs of the load; empty is the other half.
    pub load_cpus: Vec<usize>,
    /// How many queries one call sends: batches for servers to be at their best, one to compare
    /// with figures that were measured with dnsperf.
    pub pace: Pace,
    /// The share of the machine that others may use in a round that counts; 0–1.
    pub foreign_cpu_max: Option<f64>,
}

/// Runs a suite; `say` is told each step as it is done.
pub fn run(suite: &Suite, options: &Options, say: &mut dyn FnMut(&str)) -> Result<Run, SuiteError> {
    let began = Instant::now();
    let ground = Ground::of(options)?;
    let kinds = kinds(suite, options)?;
    let (seconds, rounds) =
        (options.seconds.unwrap_or(suite.seconds), options.rounds.unwrap_or(suite.rounds));
    let mut runner = Runner {
        method: Method {
            seconds,
            rounds,
            warm_up_secs: suite.warm_up_secs,
            pace: match options.pace {
                Pace::Batch => "batch".to_owned(),
                Pace::Dnsperf => "dnsperf".to_owned(),
            },
            server_cpus: ground.server_cpus.clone(),
            load_cpus: ground.load_cpus.clone(),
            foreign_cpu_max: options.foreign_cpu_max.unwrap_or(FOREIGN_CPU_MAX),
        },
        ground,
        pace: options.pace,
        contestants: Vec::new(),
        setups: BTreeMap::new(),
        skipped: Vec::new(),
        say,
    };
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    runner.admit(kinds);
    let cells = runner.workloads(suite, options);
    let _ = fs::remove_dir_all(&runner.ground.folder);
    let cells = cells?;
    Ok(Run {
        format: FORMAT,
        suite: suite.name.clone(),
        title: suite.title.clone(),
        began_unix_secs: since_1970.as_secs(),
        took_secs: began.elapsed().as_secs_f64(),
        environment: environment(),
        servers: runner.servers(),
        method: runner.method,
        skipped: runner.skipped,
        cells,
        published: suite.published.clone(),
    })
}

/// The kinds that take part, the floor first.
fn kinds(suite: &Suite, options: &Options) -> Result<Vec<Kind>, SuiteError> {
    let names = options.against.as_ref().unwrap_or(&suite.servers);
    let mut kinds = names.iter().map(|name| Kind::named(name)).collect::<Result<Vec<_>, _>>()?;
    if !kinds.iter().any(|kind| kind.floor) {
        kinds.extend(Kind::shipped().into_iter().filter(|kind| kind.floor));
    }
    kinds.sort_by_key(|kind| !kind.floor);
    Ok(kinds)
}

impl Ground {
    /// What the options say, or halves of the CPUs that this process may use; a CPU that is the
    /// only one serves both.
    fn of(options: &Options) -> io::Result<Self> {
        let cpus = zonda_netio::process::allowed_cpus()?;
        let (servers, load) = cpus.split_at(cpus.len() / 2);
        let chosen = |given: &[usize], half: &[usize]| {
            if given.is_empty() { half.to_vec() } else { given.to_vec() }
        };
        let folder = env::temp_dir().join(format!("zonda-bench-{}", process::id()));
        fs::create_dir_all(&folder)?;
        let servers = if servers.is_empty() { load } else { servers };
        Ok(Self {
            server_cpus: chosen(&options.server_cpus, servers),
            load_cpus: chosen(&options.load_cpus, load),
            folder,
        })
    }
}

/// A suite at work.
struct Runner<'a> {
    /// How it measures.
    method: Method,
    /// Where it runs.
    ground: Ground,
    /// See [`Options::pace`].
    pace: Pace,
    /// Servers that are there.
    contestants: Vec<Contestant>,
    /// How each was started, by name.
    setups: BTreeMap<String, Vec<Setup>>,
    /// Servers that are not, and places that this machine is too small for.
    skipped: Vec<Skipped>,
    /// Is told each step.
    say: &'a mut dyn FnMut(&str),
}

impl Runner<'_> {
    /// Looks for each kind's program.
    fn admit(&mut self, kinds: Vec<Kind>) {
        for kind in kinds {
            match locate(&kind) {
                Ok(located) => self.contestants.push(Contestant { kind, located }),
                Err(Missing(reason)) => self.skip(&kind.name, reason),
            }
        }
    }

    /// Says and notes that a server does not take part; once for each reason.
    fn skip(&mut self, server: &str, reason: String) {
        let skipped = Skipped { server: server.to_owned(), reason };
        if !self.skipped.contains(&skipped) {
            (self.say)(&format!("skipped: {}", skipped.reason));
            self.skipped.push(skipped);
        }
    }

    /// Every workload at every place that the machine has the CPUs for.
    fn workloads(&mut self, suite: &Suite, options: &Options) -> Result<Vec<Cell>, SuiteError> {
        let wanted = |workload: &&Workload| match &options.workloads {
            Some(names) => names.contains(&workload.name),
            None => true,
        };
        let mut cells = Vec::new();
        for workload in suite.workloads.iter().filter(wanted) {
            for place in Place::all(workload)? {
                if place.cpus() > self.ground.server_cpus.len() {
                    let (cpus, text) = (place.cpus(), place.text());
                    self.skip("all", format!("{}, {text}: needs {cpus} CPUs", workload.name));
                    continue;
                }
                cells.extend(self.cells(workload, &place, options.against.is_some())?);
            }
        }
        if cells.is_empty() { Err(SuiteError::Nothing) } else { Ok(cells) }
    }

    /// The cells of one place: in each round, every server in turn.
    fn cells(
        &mut self,
        workload: &Workload,
        place: &Place,
        chosen: bool,
    ) -> Result<Vec<Cell>, SuiteError> {
        let contestants = self.contestants_of(workload, chosen);
        let folder = self.ground.folder.join("stock");
        let _ = fs::remove_dir_all(&folder);
        let upstream = self.upstream(workload)?;
        let stock = Stock::write(workload, place, upstream, &folder)?;
        let mut cells: Vec<Cell> =
            contestants.iter().map(|contestant| cell(contestant, workload, place)).collect();
        for number in 0..self.method.rounds {
            for (contestant, cell) in contestants.iter().zip(&mut cells) {
                if cell.unranked.is_none() {
                    self.turn(number, contestant, workload, place, &stock, cell);
                }
            }
        }
        self.latencies(&contestants, workload, place, &stock, &mut cells);
        let floors: Vec<&str> =
            contestants.iter().filter(|c| c.kind.floor).map(|c| &*c.kind.name).collect();
        judge::mark(&mut cells.iter_mut().collect::<Vec<_>>(), |name| floors.contains(&name));
        Ok(cells)
    }

    /// Servers that have a role in the workload.
    fn contestants_of(&mut self, workload: &Workload, chosen: bool) -> Vec<Contestant> {
        let mut all = self.contestants.clone();
        if let (Some(names), false) = (&workload.servers, chosen) {
            all.retain(|contestant| contestant.kind.floor || names.contains(&contestant.kind.name));
        }
        let (able, unable): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|contestant| contestant.role(workload).is_some());
        for Contestant { kind, .. } in unable {
            let reason = format!("{}: has no role `{}`", kind.name, workload.roles.join("` or `"));
            self.skip(&kind.name, reason);
        }
        able
    }

    /// The server behind forwarders.
    fn upstream(&self, workload: &Workload) -> Result<Option<Contestant>, SuiteError> {
        let Some(upstream) = &workload.upstream else { return Ok(None) };
        let kind = Kind::named(&upstream.server)?;
        let located = locate(&kind).map_err(|Missing(reason)| SuiteError::Upstream(reason))?;
        Ok(Some(Contestant { kind, located }))
    }

    /// One round of one server, again when others disturbed it; what fails is noted in the cell.
    fn turn(
        &mut self,
        number: usize,
        contestant: &Contestant,
        workload: &Workload,
        place: &Place,
        stock: &Stock,
        cell: &mut Cell,
    ) {
        for _ in 0..=REPEATS_MAX {
            let round = match self.round(number, contestant, workload, place, stock, cell) {
                Ok(round) => round,
                Err(reason) => {
                    (self.say)(&format!("{}: {}: {reason}", workload.name, cell.server));
                    cell.unranked = Some(reason);
                    return;
                }
            };
            let disturbed = round.foreign_cpu > self.method.foreign_cpu_max;
            (self.say)(&line(cell, &place.text(), &round, disturbed));
            if !disturbed {
                cell.rounds.push(round);
                return;
            }
            cell.discarded += 1;
        }
    }

    /// Starts everything, measures, and ends everything.
    fn round(
        &mut self,
        number: usize,
        contestant: &Contestant,
        workload: &Workload,
        place: &Place,
        stock: &Stock,
        cell: &mut Cell,
    ) -> Result<Round, String> {
        let role = contestant.role(workload).expect("contestants without a role were left out");
        let bed = Bed::start(contestant, role, place, stock, &self.ground);
        let bed = bed.map_err(|error| error.to_string())?;
        if cell.start.is_none() {
            cell.start = Some(bed.start.clone());
            let purpose = [&*workload.name, &place.text()].join(" ").trim_end().to_owned();
            let setup = Setup {
                purpose,
                command: bed.first().command.clone(),
                files: bed.first().files.iter().map(cut).collect(),
            };
            self.setups.entry(contestant.kind.name.clone()).or_default().push(setup);
        }
        let plan = self.plan(&bed, workload, place, stock);
        if !workload.cold {
            measure::warm_up(&plan, self.method.warm_up_secs).map_err(|e| e.to_string())?;
        }
        let round = measure::round(number, &bed, &plan).map_err(|error| error.to_string())?;
        if round.traffic.completed == 0 { Err("answers nothing".to_owned()) } else { Ok(round) }
    }

    /// What is sent in a round.
    fn plan(&self, bed: &Bed, workload: &Workload, place: &Place, stock: &Stock) -> Plan {
        let cpus = self.ground.load_cpus.clone();
        let threads = cpus.len().min(place.clients).min(place.outstanding).max(1);
        let after = Some(Duration::from_secs_f64(self.method.seconds));
        let rate_max = place.rate.map(|rate| rate as f64);
        Plan {
            mode: Mode::Closed { outstanding: place.outstanding, rate_max },
            threads,
            sockets: place.clients.max(threads),
            end: if workload.cold {
                End { runs: Some(1), ..End::default() }
            } else {
                End { after, ..End::default() }
            },
            timeout: TIMEOUT,
            pace: self.pace,
            cpus,
            ..Plan::new(bed.address, stock.queries.clone())
        }
    }

    /// Measures each server's latency below saturation, where the workload asks for it.
    fn latencies(
        &mut self,
        contestants: &[Contestant],
        workload: &Workload,
        place: &Place,
        stock: &Stock,
        cells: &mut [Cell],
    ) {
        let Some(at) = &workload.latency else { return };
        let reference = at.half_of.as_ref().and_then(|name| {
            let rate = saturation(cells.iter().find(|cell| cell.server == *name)?)?;
            Some((format!("50 % of saturation of {name}"), rate / 2.0))
        });
        for (contestant, cell) in contestants.iter().zip(cells) {
            let Some(own) = saturation(cell) else { continue };
            let percents = at.percents.iter();
            let rates = percents
                .map(|&percent| {
                    (format!("{percent} % of saturation"), own * f64::from(percent) / 100.0)
                })
                .chain(reference.clone());
            let points = self.load_points(contestant, workload, place, stock, rates.collect());
            match points {
                Ok(points) => cell.latency_at = points,
                Err(reason) => (self.say)(&format!("{}: latency: {reason}", cell.server)),
            }
        }
    }

    /// One server's latency at these rates.
    fn load_points(
        &mut self,
        contestant: &Contestant,
        workload: &Workload,
        place: &Place,
        stock: &Stock,
        rates: Vec<(String, f64)>,
    ) -> Result<Vec<LoadPoint>, String> {
        let role = contestant.role(workload).expect("contestants without a role were left out");
        let bed = Bed::start(contestant, role, place, stock, &self.ground);
        let bed = bed.map_err(|error| error.to_string())?;
        let plan = self.plan(&bed, workload, place, stock);
        measure::warm_up(&plan, self.method.warm_up_secs).map_err(|error| error.to_string())?;
        let mut points = Vec::new();
        for (label, rate) in rates {
            for _ in 0..=REPEATS_MAX {
                let point = measure::load_point(label.clone(), rate, &bed, &plan);
                let (point, foreign) = point.map_err(|error| error.to_string())?;
                if foreign <= self.method.foreign_cpu_max {
                    (self.say)(&format!("{}: {}", contestant.kind.name, point_line(&point)));
                    points.push(point);
                    break;
                }
            }
        }
        Ok(points)
    }

    /// Those that took part, for the report.
    fn servers(&mut self) -> Vec<Server> {
        let mut servers = Vec::new();
        for Contestant { kind, located } in &self.contestants {
            if let Some(setups) = self.setups.remove(&kind.name) {
                let (name, version) = (kind.name.clone(), located.version.clone());
                servers.push(Server { name, version, is_floor: kind.floor, setups });
            }
        }
        servers
    }
}

impl Contestant {
    /// The first of the workload's roles that it has.
    fn role(&self, workload: &Workload) -> Option<&crate::server::Role> {
        workload.roles.iter().find_map(|role| self.kind.roles.get(role))
    }
}

/// A cell without rounds.
fn cell(contestant: &Contestant, workload: &Workload, place: &Place) -> Cell {
    Cell {
        server: contestant.kind.name.clone(),
        workload: workload.name.clone(),
        place: place.axes.clone(),
        rounds: Vec::new(),
        discarded: 0,
        unranked: None,
        latency_at: Vec::new(),
        start: None,
    }
}

/// A file for the report, cut to what one reads.
fn cut((name, text): &(String, String)) -> (String, String) {
    if text.len() <= FILE_OCTETS_MAX {
        return (name.clone(), text.clone());
    }
    let is_end = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=FILE_OCTETS_MAX).rev().find(is_end).unwrap_or_default();
    (name.clone(), format!("{}\n… cut: {} octets in all\n", &text[..end], text.len()))
}

/// The median rate of a cell's rounds; none without rounds.
fn saturation(cell: &Cell) -> Option<f64> {
    let rate = |round: &Round| round.traffic.completed as f64 / round.seconds;
    let mut rates: Vec<f64> = cell.rounds.iter().map(rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

/// A latency in one line.
fn point_line(point: &LoadPoint) -> String {
    let value = |wanted: f64| {
        let found = point.latency.percentiles.iter().find(|(percentile, _)| *percentile == wanted);
        found.map_or(0.0, |(_, micros)| *micros)
    };
    format!(
        "{}, {:.0} queries/s: p50 {:.0} µs, p99 {:.0} µs, p99.9 {:.0} µs, {} lost",
        point.label,
        point.rate,
        value(50.0),
        value(99.0),
        value(99.9),
        point.traffic.lost,
    )
}

/// A round in one line.
fn line(cell: &Cell, place: &str, round: &Round, disturbed: bool) -> String {
    let cpu = (round.cpu_user_secs + round.cpu_system_secs) / round.traffic.completed as f64 * 1e6;
    let rate = round.traffic.completed as f64 / round.seconds;
    let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
    let word = if disturbed { ", discarded: others used the machine" } else { "" };
    format!(
        "{}{place}, round {}: {} {cpu:.2} CPU µs/query, {rate:.0} queries/s, {:.0} µs, \
         {} lost, {:.1} % foreign{word}",
        cell.workload,
        round.number + 1,
        cell.server,
        round.latency.mean,
        round.traffic.lost,
        round.foreign_cpu * 100.0,
    )
}

/// Why a suite did not run.
#[derive(Debug)]
pub enum SuiteError {
    /// A server that nobody knows.
    Kind(KindError),
    /// A setting of the suite that is no number.
    Setting(SettingError),
    /// Zones and queries cannot be written.
    Stock(BedError),
    /// The machine.
    System(io::Error),
    /// The server behind forwarders is not there.
    Upstream(String),
    /// No workload, place or server is left.
    Nothing,
}

impl From<KindError> for SuiteError {
    fn from(error: KindError) -> Self {
        Self::Kind(error)
    }
}

impl From<SettingError> for SuiteError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}

impl From<BedError> for SuiteError {
    fn from(error: BedError) -> Self {
        Self::Stock(error)
    }
}

impl From<io::Error> for SuiteError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(error) => error.fmt(f),
            Self::Setting(error) => error.fmt(f),
            Self::Stock(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Upstream(reason) => write!(f, "the upstream is missing: {reason}"),
            Self::Nothing => f.write_str("nothing is left to measure"),
        }
    }
}

impl std::error::Error for SuiteError {}
