//! A whole suite, rounds interleaved between servers.

mod latency;
mod round;

use std::fs;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::bed::{Bed, BedError, Contestant, Stock};
use super::contest::{Contest, Seat, cell, cut};
use super::dnsperf::Dnsperf;
use super::environment::environment;
use super::error::SuiteError;
use super::ground::Ground;
use super::measure::Generator;
use super::place::Place;
use super::progress::{Progress, duration};
use super::spec::{Suite, Workload};
use super::{judge, measure};
use crate::data::{Cell, FORMAT, Method, Run, Server, Setup, SkippedServer};
use crate::server::locate::{self, locate};
use crate::server::{Kind, MissingServer, install};

/// A round counts when other processes used no more than this share of the machine, unless the
/// command line says otherwise.
const FOREIGN_CPU_MAX: f64 = 0.05;
/// How often a disturbed round is repeated, before the server goes without it.
const REPEATS_MAX: usize = 3;
/// How long to wait for a quiet machine before such a repeat.
const QUIET_WAIT: Duration = Duration::from_secs(30);
/// What starting and stopping a server takes, for the estimate.
const START_SECS: f64 = 1.5;

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
    /// Whether servers that are missing are installed, where that takes no root's rights.
    pub install: bool,
    /// Whether dnsperf sends the queries of rounds, to compare with figures that were measured with
    /// it, and not the generator of this crate.
    pub by_dnsperf: bool,
    /// The share of the machine that other processes may use in a round that counts; 0–1.
    pub foreign_cpu_max: Option<f64>,
    /// Flag that ends the suite early when set; what has been measured is kept.
    pub stop: Arc<AtomicBool>,
}

/// An event while a suite runs.
pub enum Step<'a> {
    /// A line about the progress.
    Said(&'a str),
    /// One more round is done; this is all that has been measured.
    Measured(&'a Run),
}

/// Runs a suite; `watch` gets each step as it is done.
///
/// # Errors
/// When nothing can be measured. A server that fails is marked, and the rest goes on.
pub fn run(
    suite: &Suite,
    options: &Options,
    watch: &mut dyn FnMut(Step<'_>),
) -> Result<Run, SuiteError> {
    check_workloads(suite, options)?; // before anything is installed
    let ground = Ground::of(options)?;
    let kinds = kinds(suite, options)?;
    let generator = match options.by_dnsperf {
        true => Generator::Dnsperf(Dnsperf::locate().ok_or(SuiteError::NoDnsperf)?),
        false => Generator::Own,
    };
    let run = empty_run(suite, options, &ground, &generator);
    let (began, progress) = (Instant::now(), Progress::new(0.0));
    let (contestants, stop) = (Vec::new(), Arc::clone(&options.stop));
    let mut runner = Runner { run, ground, generator, contestants, began, progress, stop, watch };
    runner.admit(kinds, options.install);
    let result = runner.hold_all(suite, options);
    let _ = fs::remove_dir_all(&runner.ground.folder);
    result.map(|()| runner.run)
}

/// Whether the suite has all workloads that were asked for.
fn check_workloads(suite: &Suite, options: &Options) -> Result<(), SuiteError> {
    let names = || suite.workloads.iter().map(|workload| workload.name.clone());
    let mut wanted = options.workloads.iter().flatten();
    match wanted.find(|name| !names().any(|known| known == **name)) {
        Some(name) => Err(SuiteError::Workload(name.clone(), names().collect())),
        None => Ok(()),
    }
}

/// Returns a run in which nothing is measured yet.
fn empty_run(suite: &Suite, options: &Options, ground: &Ground, generator: &Generator) -> Run {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let method = Method {
        seconds: options.seconds.unwrap_or(suite.seconds),
        rounds: options.rounds.unwrap_or(suite.rounds),
        warm_up_secs: suite.warm_up_secs,
        pace: match generator {
            Generator::Own => "batch".to_owned(),
            Generator::Dnsperf(dnsperf) => format!("dnsperf {}", dnsperf.version),
        },
        server_cpus: ground.server_cpus.clone(),
        load_cpus: ground.load_cpus.clone(),
        foreign_cpu_max: options.foreign_cpu_max.unwrap_or(FOREIGN_CPU_MAX),
    };
    Run {
        format: FORMAT,
        suite: suite.name.clone(),
        report: suite.report.clone(),
        title: suite.title.clone(),
        began_unix_secs: since_1970.as_secs(),
        took_secs: 0.0,
        environment: environment(),
        method,
        servers: Vec::new(),
        skipped: Vec::new(),
        cells: Vec::new(),
        published: suite.published.clone(),
        left_out: suite.left_out.clone(),
        unfinished_of: None,
    }
}

/// Returns the kinds that take part, the floor first.
fn kinds(suite: &Suite, options: &Options) -> Result<Vec<Kind>, SuiteError> {
    let names = options.against.as_ref().unwrap_or(&suite.servers);
    let mut kinds = names.iter().map(|name| Kind::named(name)).collect::<Result<Vec<_>, _>>()?;
    if !kinds.iter().any(|kind| kind.floor) {
        kinds.extend(Kind::shipped().into_iter().filter(|kind| kind.floor));
    }
    kinds.sort_by_key(|kind| !kind.floor);
    Ok(kinds)
}

/// A suite at work.
struct Runner<'a> {
    /// Run with all that has been measured.
    run: Run,
    /// CPUs and folder of the run.
    ground: Ground,
    /// Generator of the rounds.
    generator: Generator,
    /// Servers that take part.
    contestants: Vec<Contestant>,
    /// Moment at which the suite began.
    began: Instant,
    /// Progress of the suite.
    progress: Progress,
    /// Flag that ends the suite early; see [`Options::stop`].
    stop: Arc<AtomicBool>,
    /// Function that gets each step.
    watch: &'a mut dyn FnMut(Step<'_>),
}

impl Runner<'_> {
    /// Whether the suite shall end early.
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Passes a line to `watch`.
    fn say(&mut self, line: &str) {
        (self.watch)(Step::Said(line));
    }

    /// Passes a line to `watch`, with how far the suite is, and what has been measured.
    fn report(&mut self, line: &str) {
        let line = format!("[{}] {line}", self.progress);
        self.say(&line);
        self.run.took_secs = self.began.elapsed().as_secs_f64();
        (self.watch)(Step::Measured(&self.run));
    }

    /// Looks for each kind's program, and installs it if that is wished and possible.
    fn admit(&mut self, kinds: Vec<Kind>, is_installing: bool) {
        for kind in kinds {
            let mut found = locate(&kind);
            if found.is_err() && is_installing && kind.fetch {
                self.say(&format!("installing {}: {}", kind.name, kind.install_command()));
                found = install::install(&kind).map_err(MissingServer).and_then(|()| locate(&kind));
            }
            match found {
                Ok(located) => self.contestants.push(Contestant { kind, located }),
                Err(MissingServer(reason)) => self.skip(&kind.name, reason),
            }
        }
    }

    /// Reports and records that a server does not take part; once for each reason.
    fn skip(&mut self, server: &str, reason: String) {
        let skipped = SkippedServer { server: server.to_owned(), reason };
        if !self.run.skipped.contains(&skipped) {
            self.say(&format!("left out: {skipped}"));
            self.run.skipped.push(skipped);
        }
    }

    /// Holds every contest for which the machine has the CPUs, one after the other.
    fn hold_all(&mut self, suite: &Suite, options: &Options) -> Result<(), SuiteError> {
        let contests = self.contests(suite, options)?;
        let turns: usize = contests.iter().map(|contest| contest.contestants.len()).sum();
        if turns == 0 {
            return Err(SuiteError::Nothing);
        }
        let expected_secs = contests.iter().map(|contest| self.contest_secs(contest)).sum();
        self.progress = Progress::new(expected_secs);
        let Method { seconds, rounds, .. } = self.run.method;
        self.say(&format!(
            "{}: {} tests, {turns} servers in all, {rounds} rounds of {seconds} s each: about {}",
            suite.name,
            contests.len(),
            duration(Duration::from_secs_f64(expected_secs)),
        ));
        // What is kept meanwhile says that it is not all.
        self.run.unfinished_of = Some(contests.len());
        for contest in contests {
            if !self.is_stopped() {
                self.hold(&contest)?;
            }
        }
        if !self.is_stopped() {
            self.run.unfinished_of = None;
            (self.watch)(Step::Measured(&self.run));
        }
        Ok(())
    }

    /// Returns all contests of a suite.
    fn contests<'s>(
        &mut self,
        suite: &'s Suite,
        options: &Options,
    ) -> Result<Vec<Contest<'s>>, SuiteError> {
        let wanted = |workload: &&Workload| match &options.workloads {
            Some(names) => names.contains(&workload.name),
            None => true,
        };
        let mut contests = Vec::new();
        for workload in suite.workloads.iter().filter(wanted) {
            let contestants = self.contestants_of(workload, options.against.is_some());
            for place in Place::all(workload)? {
                if place.cpus() > self.ground.server_cpus.len() {
                    let (cpus, text) = (place.cpus(), place.text());
                    let given = self.ground.server_cpus.len();
                    let name = &workload.name;
                    self.skip(
                        "all",
                        format!(
                            "{name}, {text}: needs {cpus} CPUs for servers, and has {given}; \
                             see --server-cpus"
                        ),
                    );
                    continue;
                }
                if place.subnets.is_some() && options.by_dnsperf {
                    let (name, text) = (&workload.name, place.text());
                    self.skip("all", format!("{name}, {text}: dnsperf tells no client subnets"));
                    continue;
                }
                let contestants = self.able_to_share(&contestants, &place);
                contests.push(Contest { workload, place, contestants });
            }
        }
        Ok(contests)
    }

    /// Returns the contestants that can run as many processes on one address as a place has.
    fn able_to_share(&mut self, contestants: &[Contestant], place: &Place) -> Vec<Contestant> {
        let mut able = contestants.to_vec();
        if place.processes > 1 {
            able.retain(|Contestant { kind, located }| {
                match locate::check_sharing(kind, located) {
                    Ok(()) => true,
                    Err(MissingServer(reason)) => {
                        self.skip(&kind.name, reason);
                        false
                    }
                }
            });
        }
        able
    }

    /// Returns what a contest is expected to take.
    fn contest_secs(&self, contest: &Contest<'_>) -> f64 {
        let each = self.round_secs(contest) + self.latency_secs(contest);
        contest.contestants.len() as f64 * self.run.method.rounds as f64 * each
    }

    /// Returns what one round of one server is expected to take.
    fn round_secs(&self, contest: &Contest<'_>) -> f64 {
        let Method { seconds, warm_up_secs, .. } = self.run.method;
        START_SECS + seconds + if contest.workload.cold { 0.0 } else { warm_up_secs }
    }

    /// Holds one contest: in each round, every server in turn.
    fn hold(&mut self, contest: &Contest<'_>) -> Result<(), SuiteError> {
        let folder = self.ground.folder.join("stock");
        let _ = fs::remove_dir_all(&folder);
        let Contest { workload, place, contestants } = contest;
        let upstream = match upstream(workload, place)? {
            Ok(upstream) => upstream,
            Err(MissingServer(reason)) => {
                self.skip("all", format!("{}: no upstream: {reason}", workload.name));
                return Ok(());
            }
        };
        let stock = Stock::write(workload, place, upstream, (&self.ground, &folder), &self.stop);
        let stock = match stock {
            Err(BedError::Api(error)) => {
                self.skip("all", format!("{}: no API server: {error}", workload.name));
                return Ok(());
            }
            stock => stock?,
        };
        if self.is_stopped() {
            return Ok(());
        }
        self.wait_for_api(contest, &stock);
        let first = self.run.cells.len();
        let cpus = self.ground.cpus_used(place);
        self.run.cells.extend(contestants.iter().map(|one| cell(one, workload, place, cpus)));
        let seat = |(number, contestant)| Seat {
            contest,
            stock: &stock,
            contestant,
            cell: first + number,
        };
        let seats: Vec<Seat<'_>> = contestants.iter().enumerate().map(seat).collect();
        let rounds = self.run.method.rounds;
        let turns = if workload.restart { rounds } else { 1 };
        for turn in 0..turns {
            let numbers = if workload.restart { turn..turn + 1 } else { 0..rounds };
            for &seat in &seats {
                self.turn(seat, numbers.clone());
            }
        }
        self.latencies(&seats);
        self.mark_unmeasured(first);
        let floors: Vec<&str> =
            contestants.iter().filter(|one| one.kind.floor).map(|one| &*one.kind.name).collect();
        let mut cells: Vec<&mut Cell> = self.run.cells[first..].iter_mut().collect();
        judge::mark(&mut cells, |name| floors.contains(&name), &workload.alike);
        if self.is_stopped() {
            self.run.cells.retain(|cell| !cell.rounds.is_empty() || cell.unranked.is_some());
        }
        self.run.took_secs = self.began.elapsed().as_secs_f64();
        (self.watch)(Step::Measured(&self.run));
        Ok(())
    }

    /// Waits until an API server answers all that servers ask it, so that no start waits for that:
    /// a server is started and ended. One that does not come up is reported when it takes part.
    fn wait_for_api(&self, contest: &Contest<'_>, stock: &Stock) {
        let Contest { workload, place, contestants } = contest;
        let first = contestants.iter().find(|one| !one.kind.floor);
        let role = first.and_then(|one| Some((one, one.role(workload)?)));
        if let (Some(_), Some((one, role))) = (&workload.cluster, role) {
            let _ = Bed::start(one, role, place, stock, &self.ground);
        }
    }

    /// Marks cells from `first` on in which no round counts.
    fn mark_unmeasured(&mut self, first: usize) {
        let percent = self.run.method.foreign_cpu_max * 100.0;
        for cell in &mut self.run.cells[first..] {
            if cell.discarded > 0 && cell.rounds.is_empty() && cell.unranked.is_none() {
                cell.unranked = Some(format!(
                    "others used more than {percent} % of the machine in every round; see \
                     --max-foreign"
                ));
            }
        }
    }

    /// Servers that have a role in the workload.
    fn contestants_of(&mut self, workload: &Workload, chosen: bool) -> Vec<Contestant> {
        let mut all = self.contestants.clone();
        if let (Some(names), false) = (&workload.servers, chosen) {
            all.retain(|contestant| contestant.kind.floor || names.contains(&contestant.kind.name));
        }
        let (able, unable): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|contestant| contestant.role(workload).is_some());
        for Contestant { kind, .. } in unable.into_iter().filter(|one| !one.kind.floor) {
            let (name, roles) = (&kind.name, workload.roles.join("` or `"));
            self.skip(name, format!("{name}: has no role `{roles}`"));
        }
        able
    }

    /// Rounds of one server from one start; what fails is noted in its cell.
    fn turn(&mut self, seat: Seat<'_>, numbers: Range<usize>) {
        if self.is_stopped() {
            return;
        }
        let expected_secs = numbers.len() as f64 * self.round_secs(seat.contest);
        if self.run.cells[seat.cell].unranked.is_some() {
            return self.progress.spared(expected_secs);
        }
        if let Err(reason) = self.rounds(seat, numbers) {
            let server = &seat.contestant.kind.name;
            self.say(&format!("{}: {server}: {reason}", seat.contest.workload.name));
            self.run.cells[seat.cell].unranked = Some(reason);
            self.progress.spared(expected_secs);
        }
    }

    /// Starts a server and measures rounds, again when other processes disturbed them.
    fn rounds(&mut self, seat: Seat<'_>, numbers: Range<usize>) -> Result<(), String> {
        let mut kept: Option<Bed> = None;
        for number in numbers {
            for attempt in 0..=REPEATS_MAX {
                if attempt > 0 {
                    self.say_waiting(seat, attempt);
                    self.wait_until_quiet();
                }
                if self.is_stopped() {
                    return Ok(());
                }
                // A cache that must be empty needs a server that was just started.
                let mut bed = match kept.take() {
                    Some(bed) if !seat.contest.workload.cold => bed,
                    old => {
                        drop(old);
                        self.start(seat)?
                    }
                };
                let is_disturbed = self.round(seat, number, &mut bed)?;
                kept = Some(bed);
                if !is_disturbed {
                    break;
                }
                if attempt == REPEATS_MAX {
                    self.progress.spared(self.round_secs(seat.contest));
                }
            }
        }
        Ok(())
    }

    /// Starts a server and what it needs.
    fn start(&mut self, seat: Seat<'_>) -> Result<Bed, String> {
        let Seat { contest: Contest { workload, place, .. }, stock, contestant, .. } = seat;
        let bed = Bed::start(contestant, seat.role(), place, stock, &self.ground);
        let bed = bed.map_err(|error| error.to_string())?;
        let cell = &mut self.run.cells[seat.cell];
        if cell.start.is_none() {
            cell.start = Some(bed.start.clone());
            let purpose = [&*workload.name, &place.text()].join(" ").trim_end().to_owned();
            let (command, files) = (bed.first().command.clone(), &bed.first().files);
            let setup = Setup { purpose, command, files: files.iter().map(cut).collect() };
            self.server(contestant).setups.push(setup);
        }
        Ok(bed)
    }

    /// Returns what the run says of a server, made at its first start.
    fn server(&mut self, contestant: &Contestant) -> &mut Server {
        let Contestant { kind, located } = contestant;
        let servers = &mut self.run.servers;
        let place = servers.iter().position(|server| server.name == kind.name);
        let place = place.unwrap_or_else(|| {
            let (name, version) = (kind.name.clone(), located.version.clone());
            servers.push(Server { name, version, is_floor: kind.floor, setups: Vec::new() });
            servers.len() - 1
        });
        &mut servers[place]
    }

    /// Reports that a round is measured again, as soon as the machine is quiet.
    fn say_waiting(&mut self, seat: Seat<'_>, attempt: usize) {
        let server = &seat.contestant.kind.name;
        let (attempt, attempts) = (attempt + 1, REPEATS_MAX + 1);
        let limit = QUIET_WAIT.as_secs();
        self.say(&format!(
            "{server}: waiting up to {limit} s for other processes, then attempt {attempt} of \
             {attempts}"
        ));
    }

    /// Waits until other processes leave the machine alone, for a while.
    fn wait_until_quiet(&self) {
        measure::wait_until_quiet(self.run.method.foreign_cpu_max, QUIET_WAIT, &self.stop);
    }
}

/// Returns the server behind, if the workload has one and it is there.
fn upstream(
    workload: &Workload,
    place: &Place,
) -> Result<Result<Option<Contestant>, MissingServer>, SuiteError> {
    let Some(upstream) = &workload.upstream else { return Ok(Ok(None)) };
    let kind = Kind::named(&place.values.fill(&upstream.server).map_err(BedError::from)?)?;
    Ok(locate(&kind).map(|located| Some(Contestant { kind, located })))
}
