//! What is started for one round: upstream, relay, server.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

use super::api::{Api, ApiError};
use super::ground::Ground;
use super::place::{Place, Zone};
use super::spec::{Way, Workload};
use crate::data::Start;
use crate::load::{Form, Queries, QueriesError};
use crate::primary::Primary;
use crate::procfs::{self, Usage};
use crate::relay::{self, Relay};
use crate::server::running::{Question, QuestionError, free_port};
use crate::server::{Kind, LocatedProgram, Role, RunningServer, StartError};
use crate::template::{TemplateError, Values};

/// A server that takes part, with what its kind and this machine say of it.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Kind of the server.
    pub kind: Kind,
    /// Program of the server.
    pub located: LocatedProgram,
}

/// The server behind a forwarder, and what it is given.
struct UpstreamStock {
    /// Server and its program.
    contestant: Contestant,
    /// Role of the server.
    role: String,
    /// Whether it notifies the server that is measured.
    notifies: bool,
    /// Names of the zones.
    zones: Vec<String>,
    /// Folder with the master files.
    folder: PathBuf,
    /// Questions whose answers show that it is up.
    ready: Vec<Question>,
    /// Loss and delay on the way to it.
    way: Option<Way>,
}

/// Reads the questions that show whether a server is up.
fn questions(place: &Place, texts: &[String]) -> Result<Vec<Question>, BedError> {
    place.ready(texts)?.iter().map(|text| Ok(Question::parse(text)?)).collect()
}

/// What all servers of one cell are given: written once.
pub struct Stock {
    /// Names of the zones.
    zones: Vec<String>,
    /// Folder with the master files, named after their zones.
    zones_folder: PathBuf,
    /// Queries of the workload.
    pub queries: Queries,
    /// The queries as a file, a line each.
    pub queries_file: PathBuf,
    /// Questions whose answers show that the server is up.
    ready: Vec<Question>,
    /// Time in which the server must answer.
    start_max: Duration,
    /// The server behind a forwarder.
    upstream: Option<UpstreamStock>,
    /// The API server with the cluster's objects, which runs as long as the contest.
    api: Option<Api>,
    /// Whether [`Primary`] takes the place of the server behind.
    has_any_zone_primary: bool,
    /// Whether each server gets its own copy of the master files.
    is_copied: bool,
}

impl Stock {
    /// Writes zones and queries of a place into `folder`; not all zones once `stop` is set.
    pub fn write(
        workload: &Workload,
        place: &Place,
        upstream: Option<Contestant>,
        (ground, folder): (&Ground, &Path),
        stop: &AtomicBool,
    ) -> Result<Self, BedError> {
        let zones_folder = folder.join("zones");
        let zones = write_zones(&zones_folder, place.zones(&workload.zones)?, stop)?;
        let lines = place.queries(workload)?;
        let form = Form { operation: workload.task.operation(), ..Form::default() };
        let queries = match place.subnets {
            None => Queries::from_lines(&lines, &form),
            Some(clients) => Queries::of_clients(&lines, &form, clients),
        };
        let queries = queries.map_err(BedError::Queries)?;
        let queries_file = folder.join("queries");
        fs::write(&queries_file, &lines)?;
        let ready = questions(place, &workload.ready)?;
        let upstream = match (&workload.upstream, upstream) {
            (Some(spec), Some(contestant)) => {
                let folder = folder.join("upstream-zones");
                let zones = write_zones(&folder, place.zones(&spec.zones)?, stop)?;
                let ready = questions(place, spec.ready.as_ref().unwrap_or(&workload.ready))?;
                let (role, notifies) = (spec.role.clone(), spec.notifies);
                let way = workload.way.clone();
                Some(UpstreamStock { contestant, role, notifies, zones, folder, ready, way })
            }
            _ => None,
        };
        let start_max = Duration::from_secs(workload.start_secs_max);
        let cluster = workload.cluster.as_ref();
        let api =
            cluster.map(|objects| Api::start(objects, place, ground, &folder.join("cluster")));
        let api = api.transpose().map_err(BedError::Api)?;
        Ok(Self {
            zones,
            zones_folder,
            queries,
            queries_file,
            ready,
            start_max,
            upstream,
            api,
            has_any_zone_primary: workload.any_zone_primary,
            is_copied: workload.task.writes_zones(),
        })
    }
}

/// Writes master files until `stop` is set: a million take minutes. Returns all names, also of
/// zones that have no file.
pub(super) fn write_zones(
    folder: &Path,
    zones: Vec<Zone>,
    stop: &AtomicBool,
) -> io::Result<Vec<String>> {
    fs::create_dir_all(folder)?;
    let write = |zone: Zone| {
        if let Some(text) = zone.text.filter(|_| !stop.load(Ordering::Relaxed)) {
            fs::write(folder.join(&zone.name), text)?;
        }
        Ok(zone.name)
    };
    zones.into_iter().map(write).collect()
}

/// A server ready for its round. Dropping it ends every process.
pub struct Bed {
    /// The processes under test, at least one. First, so that they end before what they ask.
    servers: Vec<RunningServer>,
    /// Between server and upstream.
    _relay: Option<Relay>,
    /// The upstream of a forwarder, which runs as long as the server.
    _upstream: Option<RunningServer>,
    /// The primary of any zone, if the zones have that.
    pub primary: Option<Primary>,
    /// Address of the server behind.
    pub upstream_address: Option<SocketAddr>,
    /// How the processes are started.
    launches: Vec<Launch>,
    /// Time in which the server must answer.
    start_max: Duration,
    /// Questions whose answers show that the server is up.
    ready: Vec<Question>,
    /// Address of the first server.
    pub address: SocketAddr,
    /// Cost of the start.
    pub start: Start,
}

/// How a process is started.
struct Launch {
    /// Server of the process.
    contestant: Contestant,
    /// Role of the server.
    role: Role,
    /// What its templates are given.
    values: Values,
    /// Folder of the process.
    folder: PathBuf,
    /// Folder with the master files.
    zones: PathBuf,
    /// Whether the process has its own copy of the master files.
    is_copied: bool,
    /// CPUs of the process.
    cpus: Vec<usize>,
}

impl Launch {
    /// Starts the process, with an empty folder or what is in it.
    fn start(&self, is_fresh: bool) -> Result<RunningServer, BedError> {
        if is_fresh {
            let _ = fs::remove_dir_all(&self.folder);
            make_folder(&self.folder, &self.zones, self.is_copied)?;
        }
        let Self { contestant: Contestant { kind, located }, role, values, folder, .. } = self;
        Ok(RunningServer::start(kind, located, role, values, folder, &self.cpus)?)
    }
}

impl Bed {
    /// Starts everything and waits until the server answers.
    pub fn start(
        contestant: &Contestant,
        role: &Role,
        place: &Place,
        stock: &Stock,
        ground: &Ground,
    ) -> Result<Self, BedError> {
        let folder = ground.folder.join("bed");
        let _ = fs::remove_dir_all(&folder);
        let mut values = place.values.clone();
        if let Some(api) = &stock.api {
            values.set("kubeconfig", api.kubeconfig.display());
        }
        let address = local(free_port()?);
        let primary = stock.has_any_zone_primary.then(|| {
            let primary = Primary::start(free_port()?, &ground.load_cpus)?;
            set_upstream(&mut values, primary.address());
            io::Result::Ok(primary)
        });
        let primary = primary.transpose()?;
        let behind = start_upstream(stock, ground, (&folder, address), &mut values)?;
        let (upstream, relay, upstream_address) = behind;
        let launches = ground.server_cpus.chunks(place.threads).take(place.processes).enumerate();
        let launches = launches.map(|(number, cpus)| Launch {
            contestant: contestant.clone(),
            role: role.clone(),
            values: listening(&values, address, place.threads, &stock.zones),
            folder: folder.join(number.to_string()),
            zones: stock.zones_folder.clone(),
            is_copied: stock.is_copied,
            cpus: cpus.to_vec(),
        });
        let mut bed = Self {
            servers: Vec::new(),
            _relay: relay,
            _upstream: upstream,
            primary,
            upstream_address,
            launches: launches.collect(),
            start_max: stock.start_max,
            ready: stock.ready.clone(),
            address,
            start: Start {
                ready_secs: 0.0,
                cpu_secs: 0.0,
                memory_octets: 0,
                memory_peak_octets: None,
            },
        };
        let ready = bed.start_again(true)?;
        bed.wait_until_idle();
        bed.start = Start {
            ready_secs: ready.as_secs_f64(),
            cpu_secs: bed.usage().cpu_secs(),
            memory_octets: bed.memory_octets(),
            memory_peak_octets: Some(bed.memory_peak_octets()),
        };
        Ok(bed)
    }

    /// Ends the server's processes and starts them anew, with empty folders or with what they have
    /// left there; waits until the server answers, and returns after how long it does.
    pub fn start_again(&mut self, is_fresh: bool) -> Result<Duration, BedError> {
        self.servers.clear();
        for launch in &self.launches {
            self.servers.push(launch.start(is_fresh)?);
        }
        let mut ready = Duration::ZERO;
        for server in &mut self.servers {
            let waited = server.wait_for_answers(self.address, &self.ready, self.start_max)?;
            ready = ready.max(waited);
        }
        Ok(ready)
    }

    /// Waits until the server's processes have nothing to do.
    pub fn wait_until_idle(&self) {
        self.servers.iter().for_each(|server| server.wait_until_idle(self.start_max));
    }

    /// Returns what the server's processes have used since they began.
    pub fn usage(&self) -> Usage {
        usage(&self.servers)
    }

    /// Returns the memory of the server's processes now.
    pub fn memory_octets(&self) -> u64 {
        memory_octets(&self.servers)
    }

    /// Returns the most memory that the server's processes have had.
    pub fn memory_peak_octets(&self) -> u64 {
        memory_peak_octets(&self.servers)
    }

    /// Datagrams that their sockets have dropped.
    pub fn drops(&self) -> u64 {
        let port = self.address.port();
        self.servers.iter().map(|server| procfs::socket_drops(server.process(), port)).sum()
    }

    /// Returns how the first process was started.
    pub fn first(&self) -> &RunningServer {
        &self.servers[0]
    }
}

/// Returns the sum over processes.
fn usage(servers: &[RunningServer]) -> Usage {
    let mut sum = Usage::default();
    for used in servers.iter().map(|server| procfs::usage_with_ended(server.process())) {
        sum.user_secs += used.user_secs;
        sum.system_secs += used.system_secs;
        sum.context_switches += used.context_switches;
    }
    sum
}

/// Returns the sum over processes.
fn memory_octets(servers: &[RunningServer]) -> u64 {
    servers.iter().map(|server| procfs::memory_octets(server.process())).sum()
}

/// Returns the sum over processes of the most memory that each has had.
fn memory_peak_octets(servers: &[RunningServer]) -> u64 {
    servers.iter().map(|server| procfs::memory_peak_octets(server.process())).sum()
}

/// The server behind, the way to it, and its own address.
type Behind = (Option<RunningServer>, Option<Relay>, Option<SocketAddr>);

/// Starts the server behind a forwarder and the way to it, and says in `values` where to ask; the
/// server that is measured has `address`.
fn start_upstream(
    stock: &Stock,
    ground: &Ground,
    (folder, measured): (&Path, SocketAddr),
    values: &mut Values,
) -> Result<Behind, BedError> {
    let Some(stock_behind) = &stock.upstream else { return Ok((None, None, None)) };
    let UpstreamStock { contestant, zones, ready, way, .. } = stock_behind;
    let role = contestant.kind.roles.get(&stock_behind.role);
    let role = role.ok_or_else(|| BedError::Upstream(stock_behind.role.clone()))?;
    let address = local(free_port()?);
    let mut own = listening(values, address, 1, zones);
    if stock_behind.notifies {
        own.lists.insert(SECONDARIES.to_owned(), vec![measured.port().to_string()]);
    }
    let launch = Launch {
        contestant: contestant.clone(),
        role: role.clone(),
        values: own,
        folder: folder.join("upstream"),
        zones: stock_behind.folder.clone(),
        is_copied: stock.is_copied,
        cpus: ground.load_cpus.clone(),
    };
    let mut running = launch.start(true)?;
    running.wait_until_ready(address, ready, stock.start_max)?;
    let relay = match way {
        None => None,
        Some(way) => {
            let delay = Duration::from_millis(way.delay_millis.0)
                ..=Duration::from_millis(way.delay_millis.1);
            let way = relay::Way { loss: way.loss, delay, seed: 1 };
            Some(Relay::start(address, &way, &ground.load_cpus)?)
        }
    };
    set_upstream(values, relay.as_ref().map_or(address, Relay::address));
    Ok((Some(running), relay, Some(address)))
}

/// Says in `values` where the server behind is asked.
fn set_upstream(values: &mut Values, address: SocketAddr) {
    values.set("upstream_address", address.ip());
    values.set("upstream_port", address.port());
}

/// Name of the list of ports on 127.0.0.1 that a primary notifies.
const SECONDARIES: &str = "secondaries";

/// Returns what a server's templates are given.
pub(super) fn listening(
    values: &Values,
    address: SocketAddr,
    threads: usize,
    zones: &[String],
) -> Values {
    let mut values = values.clone();
    values.set("address", address.ip());
    values.set("port", address.port());
    values.set("threads", threads);
    values.lists.insert("zones".to_owned(), zones.to_vec());
    values.lists.insert(SECONDARIES.to_owned(), Vec::new());
    values
}

/// Makes a folder for a server, with a link `zones` to the master files, or a copy of them.
pub(super) fn make_folder(folder: &Path, zones: &Path, is_copied: bool) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let own = folder.join("zones");
    if !is_copied {
        return symlink(zones, own);
    }
    fs::create_dir(&own)?;
    for entry in fs::read_dir(zones)? {
        let entry = entry?;
        fs::copy(entry.path(), own.join(entry.file_name()))?;
    }
    Ok(())
}

/// Returns the address of a port of 127.0.0.1.
pub(super) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Why there is nothing to measure.
#[derive(Debug)]
pub enum BedError {
    /// A text of the suite asks for what there is not.
    Template(TemplateError),
    /// A question that shows whether a server is up is wrong.
    Question(QuestionError),
    /// The queries of the workload cannot be made.
    Queries(QueriesError),
    /// A file or a port.
    System(io::Error),
    /// A server does not run.
    Start(StartError),
    /// The upstream has not this role.
    Upstream(String),
    /// There is no API server.
    Api(ApiError),
}

impl From<TemplateError> for BedError {
    fn from(error: TemplateError) -> Self {
        Self::Template(error)
    }
}

impl From<QuestionError> for BedError {
    fn from(error: QuestionError) -> Self {
        Self::Question(error)
    }
}

impl From<io::Error> for BedError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<StartError> for BedError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl fmt::Display for BedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(error) => error.fmt(f),
            Self::Question(error) => error.fmt(f),
            Self::Queries(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::Api(error) => error.fmt(f),
            Self::Upstream(role) => write!(f, "the upstream's kind has no role `{role}`"),
        }
    }
}

impl std::error::Error for BedError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, process};

    #[test]
    fn zones_are_written_until_the_suite_is_to_end() {
        let folder = env::temp_dir().join(format!("zonda-bench-bed-{}", process::id()));
        let zone = || Zone { name: "a.test".to_owned(), text: Some("@ 1 NS ns".to_owned()) };
        for (stop, files) in [(true, 0), (false, 1)] {
            let names = write_zones(&folder, vec![zone()], &AtomicBool::new(stop)).unwrap();
            assert_eq!((names.len(), fs::read_dir(&folder).unwrap().count()), (1, files));
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
