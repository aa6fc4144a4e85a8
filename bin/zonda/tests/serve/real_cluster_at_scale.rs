//! Thousands of objects of a real API server that change, restart and are cut off, beside CoreDNS.

use crate::real_cluster::{
    ZONES, answers_at, comparison, core_dns_of, number_of, populate, zonda_of,
};
use crate::server::Server;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::cluster::{
    ApiClient, ApiServer, CoreDns, Endpoint, Link, Population, PopulationChange, Port,
    endpoint_slice, external_service, namespace, pod, pod_status,
};
use zonda_testkit::{Question, ask};

/// Services of a cluster that has 5,000 objects; the environment may set another number.
const SERVICES: usize = 2500;
/// Wrong names that are asked.
const WRONG_NAMES: usize = 20_000;
/// Seconds for which objects change; the environment may set another number.
const CHURN_SECONDS: usize = 24;
/// Changes that are made in a second.
const CHANGES_PER_SECOND: u32 = 100;
/// The share of the planned changes that has to be made in time for a long run to be what it says.
const RATE_SHARE_MIN: f64 = 0.95;
/// The share of the planned changes that has to be made in a run of some seconds: a restart of the
/// API server is a great part of it, and tests run beside it.
const RATE_SHARE_MIN_SHORT: f64 = 0.5;
/// Seconds of changes from which a run is long.
const LONG_RUN_SECONDS: usize = 300;
/// Threads that make changes: the API server takes some 10 ms for each.
const WRITERS: usize = 8;
/// The longest delay that the changes of the next second make up for.
const DELAY_MAX: Duration = Duration::from_millis(900);
/// Services of the cluster whose objects change.
const CHURN_SERVICES: usize = 300;
/// How long a server may take until it has all that happened while it was cut off.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(120);
/// A name that stays as it is.
const STEADY: &str = "db-0.db.shop.svc.cluster.local.";

#[test]
fn every_name_of_thousands_of_objects_is_that_of_coredns_before_and_after_changes() {
    let api = ApiServer::start();
    populate(api.client());
    let services = number_of("CLUSTER_SERVICES", SERVICES);
    let begin = Instant::now();
    let mut population = Population::create(api.client(), services, 1);
    let objects = api.client().name_sources();
    println!("{} objects were created in {:.1?}", objects.len(), begin.elapsed());
    assert!(services != SERVICES || objects.len() >= 5000, "{} objects", objects.len());

    let server = zonda_of(api.kubeconfig_file());
    let core_dns = core_dns_of(api.kubeconfig_file());
    mark(api.client(), 1);
    await_mark(&server, &core_dns, 1);
    let comparison = comparison(&server, &core_dns);
    let begin = Instant::now();
    let outcome = comparison.judge(&api.client().name_sources(), ZONES, WRONG_NAMES, 1);
    println!("{} answers were compared in {:.1?}", outcome.questions, begin.elapsed());

    (0..200).for_each(|_| population.change(api.client()));
    mark(api.client(), 2);
    await_mark(&server, &core_dns, 2);
    // Names that are gone are asked too.
    let objects = [objects, api.client().name_sources()].concat();
    let outcome = comparison.judge(&objects, ZONES, WRONG_NAMES / 10, 2);
    println!("{} answers were compared after 200 changes", outcome.questions);
}

#[test]
fn names_agree_after_changes_restarts_expired_versions_and_cuts_of_the_network() {
    let seconds = number_of("CLUSTER_CHURN_SECONDS", CHURN_SECONDS);
    let mut api = ApiServer::start();
    populate(api.client());
    let mut population = Population::create(api.client(), CHURN_SERVICES, 3);
    let links = [Link::to(api.address()), Link::to(api.address())];
    let [ours, theirs] = [0, 1].map(|number: usize| api.kubeconfig_of_port(links[number].port));
    let (server, core_dns) = (zonda_of(&ours), core_dns_of(&theirs));
    await_mark(&server, &core_dns, 0);

    let (is_over, address) = (AtomicBool::new(false), server.zonda.address);
    let mut objects: BTreeSet<String> = named_objects(&api).collect();
    let mut churn = Churn::through(&links);
    let (asked, wrong) = thread::scope(|scope| {
        let asker = scope.spawn(|| ask_steadily(address, &is_over));
        for second in 0..seconds {
            churn.change_for_a_second(&api, &mut population);
            if second % fault_interval(seconds) == fault_interval(seconds) / 2 {
                churn.fail(&mut api, &mut population);
                objects.extend(named_objects(&api));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        asker.join().unwrap()
    });
    mark(api.client(), 1);
    let late = await_mark(&server, &core_dns, 1);
    let rate = f64::from(churn.changes) / churn.time.as_secs_f64();
    println!(
        "{} changes, {rate:.0} a second, and {} failures; {late:.1?} until Zonda had the last \
         change, and CoreDNS; {asked} questions meanwhile, {} without the right answer",
        churn.changes,
        churn.faults,
        wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:?}");
    let share_min = if seconds < LONG_RUN_SECONDS { RATE_SHARE_MIN_SHORT } else { RATE_SHARE_MIN };
    let rate_min = f64::from(CHANGES_PER_SECOND) * share_min;
    assert!(rate >= rate_min, "{rate:.0} changes a second are too few, {rate_min:.0} are needed");
    objects.extend(named_objects(&api));
    let objects: Vec<Value> =
        objects.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let outcome = comparison(&server, &core_dns).judge(&objects, ZONES, WRONG_NAMES / 10, 3);
    println!("{} answers were compared", outcome.questions);
}

/// Returns all objects that names come from as JSON, without what changes and names nothing: the
/// names of those that are gone in the end are asked too.
fn named_objects(api: &ApiServer) -> impl Iterator<Item = String> {
    api.client().name_sources().into_iter().map(|mut object| {
        let metadata = object["metadata"].take();
        for key in ["name", "namespace", "labels"] {
            object["metadata"][key] = metadata[key].clone();
        }
        object.to_string()
    })
}

/// Returns how many seconds of changes lie between two failures.
fn fault_interval(seconds: usize) -> usize {
    (seconds / 6).clamp(2, 12)
}

/// Changes and failures so far.
struct Churn<'t> {
    /// The networks that lead to the API server.
    links: &'t [Link; 2],
    changes: u32,
    /// How long changes were made.
    time: Duration,
    /// By how much the last changes were late.
    delay: Duration,
    faults: usize,
}

impl<'t> Churn<'t> {
    /// Nothing so far, of servers that follow the API through these networks.
    fn through(links: &'t [Link; 2]) -> Self {
        Self { links, changes: 0, time: Duration::ZERO, delay: Duration::ZERO, faults: 0 }
    }

    /// Makes the changes of a second, by several threads: those of one service by the same, one
    /// after the other. What a former second took longer is taken off.
    fn change_for_a_second(&mut self, api: &ApiServer, population: &mut Population) {
        let second = Duration::from_secs(1);
        let mut shares: [Vec<(Duration, PopulationChange)>; WRITERS] = Default::default();
        for number in 0..CHANGES_PER_SECOND {
            let due = (second * number / CHANGES_PER_SECOND).saturating_sub(self.delay);
            let change = population.next_change();
            shares[change.writer(WRITERS)].push((due, change));
        }
        let begin = Instant::now();
        thread::scope(|scope| {
            for share in &shares {
                scope.spawn(move || {
                    for (due, change) in share {
                        thread::sleep(due.saturating_sub(begin.elapsed()));
                        change.make(api.client());
                    }
                });
            }
        });
        let planned = second - self.delay;
        thread::sleep(planned.saturating_sub(begin.elapsed()));
        self.delay = (begin.elapsed().saturating_sub(planned)).min(DELAY_MAX);
        self.changes += CHANGES_PER_SECOND;
        self.time += begin.elapsed();
    }

    /// Has the next of all failures happen.
    fn fail(&mut self, api: &mut ApiServer, population: &mut Population) {
        let links = self.links;
        let fault = self.faults % 6;
        self.faults += 1;
        match fault {
            0 => api.restart(),
            1 => api.expire_versions(),
            2 => {
                links.iter().for_each(Link::cut);
                self.change_for_a_second(api, population);
                self.change_for_a_second(api, population);
                links.iter().for_each(Link::heal);
            }
            3 => {
                // What happens while they are cut off is not in the API server's memory either.
                links.iter().for_each(Link::cut);
                self.change_for_a_second(api, population);
                api.expire_versions();
                links.iter().for_each(Link::heal);
            }
            4 => {
                api.freeze_api();
                thread::sleep(Duration::from_secs(3));
                api.thaw_api();
            }
            _ => {
                api.kill_api();
                links.iter().for_each(Link::disconnect);
                thread::sleep(Duration::from_secs(1));
                api.start_api();
            }
        }
    }
}

/// Asks for a name that never changes until it is over; returns how often, and wrong answers.
fn ask_steadily(server: SocketAddr, is_over: &AtomicBool) -> (usize, Vec<String>) {
    let (mut asked, mut wrong) = (0, Vec::new());
    let question = Question::new(STEADY, "A").edns(1232);
    while !is_over.load(Ordering::Relaxed) {
        let told = match ask(server, &question) {
            Ok(reply) => reply.answer.first().map_or(reply.rcode_text(), |it| it.data.text.clone()),
            Err(error) => error.to_string(),
        };
        asked += 1;
        if told != "10.244.0.1" && wrong.len() < 10 {
            wrong.push(told);
        }
        thread::sleep(Duration::from_millis(5));
    }
    (asked, wrong)
}

/// Makes a change of each kind of objects, which servers have when they have all before it.
fn mark(client: &ApiClient, number: u8) {
    let address = format!("10.250.0.{number}");
    client.apply(&external_service("shop", "far", &format!("mark-{number}.example.org")));
    let endpoints = [Endpoint::new(&address).hostname("mark")];
    let ports = [Port::tcp("http", 80)];
    client.apply(&endpoint_slice("shop", "portless-1", "portless", &ports, &endpoints));
    client.create(&namespace(&format!("mark-{number}")));
    let pod = pod("shop", &format!("mark-{number}"));
    client.create(&pod);
    client.patch_status(&pod, &pod_status(&[&address]));
}

/// Waits until both servers have a mark, and returns how long each took; the mark 0 is what the
/// cluster has at first.
fn await_mark(server: &Server, core_dns: &CoreDns, number: u8) -> [Duration; 2] {
    let address = format!("10.250.0.{number}");
    let name = |labels: &str| format!("{labels}.cluster.local.");
    let mut expected = vec![
        (name("far.shop.svc"), "CNAME", format!("mark-{number}.example.org.")),
        (name("portless.shop.svc"), "A", address.clone()),
        (name(&format!("mark-{number}.svc")), "A", "NOERROR".to_owned()),
        (name(&format!("{}.shop.pod", address.replace('.', "-"))), "A", address),
    ];
    if number == 0 {
        expected = vec![(STEADY.to_owned(), "A", "10.244.0.1".to_owned())];
    }
    let begin = Instant::now();
    let wait = &|(title, server): (&str, SocketAddr)| {
        for (name, record_type, data) in &expected {
            while answers_at(server, name, record_type) != [data.as_str()] {
                let told = answers_at(server, name, record_type);
                let is_late = begin.elapsed() > CATCH_UP_LIMIT;
                assert!(!is_late, "{title}: {name} is {told:?}, not {data}");
                thread::sleep(Duration::from_millis(20));
            }
        }
        begin.elapsed()
    };
    thread::scope(|scope| {
        let servers = [("Zonda", server.zonda.address), ("CoreDNS", core_dns.address)];
        let waiters = servers.map(|it| scope.spawn(move || wait(it)));
        waiters.map(|it| it.join().unwrap())
    })
}
