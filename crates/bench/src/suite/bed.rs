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
        let form = Form::default();
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
                Some(UpstreamStock { contestant, zones, folder, ready, way: workload.way.clone() })
            }
            _ => None,
        };
        let start_max = Duration::from_secs(workload.start_secs_max);
        let cluster = workload.cluster.as_ref();
        let api =
            cluster.map(|objects| Api::start(objects, place, ground, &folder.join("cluster")));
        let api = api.transpose().map_err(BedError::Api)?;
        Ok(Self { zones, zones_folder, queries, queries_file, ready, start_max, upstream, api })
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
    /// Address of the first server.
    pub address: SocketAddr,
    /// Cost of the start.
    pub start: Start,
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
        let (upstream, relay) = start_upstream(stock, ground, &folder, &mut values)?;
        let address = local(free_port()?);
        let mut servers = Vec::new();
        for (number, cpus) in ground.server_cpus.chunks(place.threads).enumerate() {
            if number == place.processes {
                break;
            }
            let values = listening(&values, address, place.threads, &stock.zones);
            let folder = folder_with_zones(&folder, &number.to_string(), &stock.zones_folder)?;
            let Contestant { kind, located } = contestant;
            servers.push(RunningServer::start(kind, located, role, &values, &folder, cpus)?);
        }
        let mut ready = Duration::ZERO;
        for server in &mut servers {
            ready = ready.max(server.wait_until_ready(address, &stock.ready, stock.start_max)?);
        }
        let start = Start {
            ready_secs: ready.as_secs_f64(),
            cpu_secs: usage(&servers).cpu_secs(),
            memory_octets: memory_octets(&servers),
            memory_peak_octets: Some(memory_peak_octets(&servers)),
        };
        Ok(Self { servers, _relay: relay, _upstream: upstream, address, start })
    }

    /// Returns what the server's processes have used since they began.
    pub fn usage(&self) -> Usage {
        usage(&self.servers)
    }

    /// Returns the memory of the server's processes now.
    pub fn memory_octets(&self) -> u64 {
        memory_octets(&self.servers)
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
    for used in servers.iter().map(|server| procfs::usage(server.process())) {
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

/// Starts the server behind a forwarder and the way to it, and says in `values` where to ask.
fn start_upstream(
    stock: &Stock,
    ground: &Ground,
    folder: &Path,
    values: &mut Values,
) -> Result<(Option<RunningServer>, Option<Relay>), BedError> {
    let Some(UpstreamStock { contestant, zones, folder: zones_folder, ready, way }) =
        &stock.upstream
    else {
        return Ok((None, None));
    };
    let Contestant { kind, located } = contestant;
    let role = kind.roles.get("authoritative").ok_or(BedError::Upstream)?;
    let address = local(free_port()?);
    let own = listening(values, address, 1, zones);
    let folder = folder_with_zones(folder, "upstream", zones_folder)?;
    let mut running = RunningServer::start(kind, located, role, &own, &folder, &ground.load_cpus)?;
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
    let asked = relay.as_ref().map_or(address, Relay::address);
    values.set("upstream_address", asked.ip());
    values.set("upstream_port", asked.port());
    Ok((Some(running), relay))
}

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
    values
}

/// Returns a folder for a server, with a link `zones` to the master files.
pub(super) fn folder_with_zones(folder: &Path, name: &str, zones: &Path) -> io::Result<PathBuf> {
    let folder = folder.join(name);
    fs::create_dir_all(&folder)?;
    symlink(zones, folder.join("zones"))?;
    Ok(folder)
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
    /// The upstream has no role `authoritative`.
    Upstream,
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
            Self::Upstream => f.write_str("the upstream's kind has no role `authoritative`"),
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
