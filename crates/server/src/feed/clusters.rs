//! The feeds of Kubernetes clusters: one for each zone that has the names of one.
//!
//! A feed runs in a thread of its own, in which all objects are followed. It gathers changes for a
//! moment, makes a snapshot of the names, and sends that to the publisher. While the API cannot be
//! reached, the zone keeps what it has.

use super::Update;
use super::store_feed::{NEXT_NUMBER, StopRequest, lock};
use crate::load;
use crate::publish::{PublisherFailed, PublisherHandle};
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use zonda_cluster::{Builder, Cluster, Kind, Options};
use zonda_config::{ClusterDns, Config, KubernetesKeys, PodNames};
use zonda_engine::zones::{ClusterNames, ClusterZone};
use zonda_kubernetes::{ConnectError, Event, Place, Settings, Subject, follow};
use zonda_wire::Name;
use zonda_zone::Zone;

/// How long changes are gathered: a client that asks for what it has just changed waits for it.
const GATHERING: Duration = Duration::from_millis(10);
/// The least time between two versions of the zones' own data, which have the serial.
const SERIAL_INTERVAL: Duration = Duration::from_secs(1);
/// Events that may wait for the feed; the connections to the API wait then.
const EVENTS_MAX: usize = 1024;
/// How often it is looked whether the feed is to end.
const LOOK: Duration = Duration::from_millis(250);

/// A selector of the labels of slices that belong to imports.
const IMPORTED_SLICES: &str = "multicluster.kubernetes.io/service-name";

/// What a feed follows. Feeds that are equal in this are one.
#[derive(Clone, PartialEq)]
struct Subjects {
    /// The apex in lower case.
    apex: Name,
    keys: Arc<KubernetesKeys>,
}

/// A feed that runs.
struct RunningCluster {
    subjects: Subjects,
    stop: Arc<StopRequest>,
    /// Is closed when the thread has ended.
    ended: Receiver<()>,
}

/// The feeds of all clusters.
#[derive(Default)]
pub struct ClusterFeeds {
    running: Mutex<Vec<RunningCluster>>,
}

impl ClusterFeeds {
    /// Follows the clusters of a configuration from now on, and no former ones. `first` is dropped
    /// by each new feed when its zones have been published once.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn follow(
        &self,
        publisher: &PublisherHandle,
        config: &Config,
        first: &SyncSender<()>,
    ) -> io::Result<()> {
        let wanted: Vec<Subjects> = config
            .clusters()
            .filter_map(|(zone, keys)| {
                let apex = zone.name.as_ref()?.to_lowercase();
                Some(Subjects { apex, keys: Arc::clone(keys) })
            })
            .collect();
        let mut running = lock(&self.running);
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *running).into_iter().partition(|it| wanted.contains(&it.subjects));
        *running = kept;
        end(gone);
        for subjects in wanted {
            if !running.iter().any(|feed| feed.subjects == subjects) {
                running.push(start(subjects, publisher.clone(), first.clone())?);
            }
        }
        Ok(())
    }

    /// Ends all feeds.
    pub fn stop(&self) {
        end(std::mem::take(&mut *lock(&self.running)));
    }
}

impl Drop for ClusterFeeds {
    fn drop(&mut self) {
        lock(&self.running).iter().for_each(|feed| feed.stop.stop());
    }
}

/// Ends feeds, and waits until they have ended.
fn end(feeds: Vec<RunningCluster>) {
    feeds.iter().for_each(|feed| feed.stop.stop());
    feeds.iter().for_each(|feed| _ = feed.ended.recv_timeout(Duration::from_secs(2)));
}

/// Starts a feed in a thread of its own.
fn start(
    subjects: Subjects,
    publisher: PublisherHandle,
    first: SyncSender<()>,
) -> io::Result<RunningCluster> {
    let stop = Arc::<StopRequest>::default();
    let number = NEXT_NUMBER.fetch_add(1, Relaxed);
    let mut names = subjects.keys.reverse_zones();
    names.push(subjects.apex.clone());
    // Where the publisher fails, so does the first update.
    let _ = publisher.adopt_feed(names, number, true);
    let seed = publisher.state().seed;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let feed = ClusterFeed {
        builder: Builder::new(&subjects.apex, seed, options(&subjects.keys)),
        subjects: subjects.clone(),
        publisher,
        number,
        stop: Arc::clone(&stop),
        first: Some(first),
        synced: HashSet::new(),
        failing: HashSet::new(),
        undecodable: 0,
        data: Vec::new(),
        dated: None,
    };
    let (sender, ended) = sync_channel::<()>(0);
    std::thread::Builder::new().name("zonda-cluster".to_owned()).spawn(move || {
        // A panic ends the feed; the zones keep what they have.
        runtime.block_on(feed.run());
        drop(sender);
    })?;
    Ok(RunningCluster { subjects, stop, ended })
}

/// Checks whether what is needed to reach a cluster can be read.
///
/// # Errors
/// What is missing or cannot be read. That this is no pod is no mistake of the file.
pub fn check(keys: &KubernetesKeys) -> Result<(), ConnectError> {
    match Settings::read(&place(keys)) {
        Ok(_) | Err(ConnectError::NotInPod) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What decides which names there are.
fn options(keys: &KubernetesKeys) -> Options {
    Options {
        ttl: u32::try_from(keys.ttl().as_secs()).unwrap_or(u32::MAX),
        pods: match keys.pods {
            PodNames::Disabled => zonda_cluster::PodNames::Disabled,
            PodNames::Insecure => zonda_cluster::PodNames::Insecure,
            PodNames::Verified => zonda_cluster::PodNames::Verified,
        },
        ignores_empty_services: keys.ignore_empty_services,
        has_pod_labels: keys.endpoint_pod_names,
        has_zones: keys.zonal,
        is_multicluster: keys.multicluster,
        namespaces: keys.namespaces.iter().map(|name| name.to_ascii_lowercase()).collect(),
        exposes_known_namespaces: keys.namespace_labels.is_some(),
        is_kube_dns: keys.compatible == ClusterDns::KubeDns,
    }
}

/// Where the API is.
fn place(keys: &KubernetesKeys) -> Place {
    match (&keys.kubeconfig, &keys.endpoint) {
        (Some(file), _) => Place::Kubeconfig(file.clone(), keys.context.clone()),
        (None, Some(url)) => Place::Endpoint {
            url: url.clone(),
            ca: keys.ca_file.clone(),
            client: keys.certificate_file.clone().zip(keys.key_file.clone()),
        },
        (None, None) => Place::Pod,
    }
}

/// The objects that are followed: those of one namespace, if only that one has names.
fn followed(keys: &KubernetesKeys) -> Vec<Subject> {
    let labels = keys.labels.clone().unwrap_or_default();
    let namespace = match &keys.namespaces[..] {
        [namespace] => namespace.clone(),
        _ => String::new(),
    };
    let of_kind = |kind| {
        let labels = match kind {
            Kind::Namespace => keys.namespace_labels.clone().unwrap_or_default(),
            Kind::EndpointSlice if keys.multicluster && labels.is_empty() => {
                IMPORTED_SLICES.to_owned()
            }
            Kind::EndpointSlice if keys.multicluster => format!("{labels},{IMPORTED_SLICES}"),
            _ => labels.clone(),
        };
        Subject { kind, labels, namespace: namespace.clone() }
    };
    let services = if keys.multicluster { Kind::ServiceImport } else { Kind::Service };
    let mut kinds = vec![Kind::Namespace, services, Kind::EndpointSlice];
    if keys.pods == PodNames::Verified {
        kinds.push(Kind::Pod);
    }
    kinds.into_iter().map(of_kind).collect()
}

/// Keeps the zones of a cluster as its objects are.
struct ClusterFeed {
    builder: Builder,
    subjects: Subjects,
    publisher: PublisherHandle,
    /// The number by which the publisher knows the feed.
    number: u64,
    stop: Arc<StopRequest>,
    /// Is dropped when the zones have been published once.
    first: Option<SyncSender<()>>,
    /// The kinds of objects of which all have been read once.
    synced: HashSet<Kind>,
    /// The kinds of objects that cannot be followed at the moment.
    failing: HashSet<Kind>,
    /// How often an object could not be decoded.
    undecodable: u64,
    /// The zones' own data, by their names.
    data: Vec<(Name, Arc<Zone>)>,
    /// When the data were made.
    dated: Option<Instant>,
}

impl ClusterFeed {
    /// Runs until the feed is to end, or the publisher has ended.
    async fn run(mut self) {
        let (sender, mut events) = mpsc::channel(EVENTS_MAX);
        let followed = followed(&self.subjects.keys);
        let kinds = followed.len();
        for subject in followed {
            tokio::spawn(follow(place(&self.subjects.keys), subject, sender.clone()));
        }
        drop(sender);
        let (mut is_stale, mut published) = (true, Instant::now());
        while !self.stop.is_requested() {
            let is_ready = is_stale && self.synced.len() == kinds;
            let due = tokio::time::Instant::from_std(published + GATHERING);
            tokio::select! {
                event = events.recv() => match event {
                    Some((kind, event)) => is_stale |= self.take(kind, event),
                    None => return,
                },
                () = tokio::time::sleep_until(due), if is_ready => {
                    if self.publish().is_err() {
                        return;
                    }
                    (is_stale, published) = (false, Instant::now());
                    self.first = None;
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Takes an event; returns whether names may have changed.
    fn take(&mut self, kind: Kind, event: Event) -> bool {
        match event {
            Event::Begin => self.builder.begin_list(kind),
            Event::Change(change) => {
                self.builder.apply(*change);
                return true;
            }
            Event::Undecodable(id, error) => {
                self.builder.keep(kind, &id);
                self.undecodable += 1;
                let (zone, namespace, name) = (&self.subjects.apex, id.namespace, id.name);
                let count = self.undecodable;
                tracing::warn!(
                    %zone, ?kind, namespace, name, error, count,
                    "an object of a cluster cannot be decoded, its former version is kept"
                );
            }
            Event::Synced => {
                self.builder.end_list(kind);
                self.synced.insert(kind);
                return true;
            }
            Event::Failed(error) => {
                let zone = &self.subjects.apex;
                if self.failing.insert(kind) {
                    tracing::warn!(%zone, ?kind, error, "objects of a cluster are not followed");
                } else {
                    tracing::debug!(%zone, ?kind, error, "objects of a cluster are not followed");
                }
            }
            Event::Connected => {
                if self.failing.remove(&kind) {
                    let zone = &self.subjects.apex;
                    tracing::info!(%zone, ?kind, "objects of a cluster are followed again");
                }
            }
        }
        false
    }

    /// Publishes the names as they are now.
    fn publish(&mut self) -> Result<(), PublisherFailed> {
        let has_changed = self.builder.has_new_aliases();
        let is_old = self.dated.is_none_or(|dated| dated.elapsed() >= SERIAL_INTERVAL);
        if has_changed || is_old {
            self.make_data();
        }
        let cluster = self.builder.snapshot();
        let records = cluster.counts()[0];
        for (name, data) in &self.data {
            let names = match *name == self.subjects.apex {
                true => ClusterNames::Services,
                false => ClusterNames::Addresses,
            };
            let zone = ClusterZone {
                data: Arc::clone(data),
                cluster: Cluster::clone(&cluster),
                names,
                falls_through: self.subjects.keys.falls_through(name),
            };
            let update = Update::Cluster(Arc::new(zone), records);
            let _ = self.publisher.update(name, self.number, update)?; // has no change to refuse
        }
        Ok(())
    }

    /// Makes the zones' own data anew: the apexes, the version of the specification, and services
    /// that are aliases.
    fn make_data(&mut self) {
        self.dated = Some(Instant::now());
        let state = self.publisher.state();
        let own = self.own_address();
        let mut names = self.subjects.keys.reverse_zones();
        names.push(self.subjects.apex.clone());
        for name in names {
            let text = self.builder.data_text(&name, load::unix_secs(), own);
            let base = (&state.zone_set, state.seed);
            if let Update::Replace(loaded) = load::load_text(&name, &text, base) {
                self.data.retain(|(own, _)| *own != name);
                self.data.push((name, loaded.zone));
            }
        }
    }

    /// The address of this server that the API is reached from.
    fn own_address(&self) -> IpAddr {
        let nowhere = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let Ok(settings) = Settings::read(&place(&self.subjects.keys)) else { return nowhere };
        let Ok(host) = settings.host.parse::<IpAddr>() else { return nowhere };
        let any: IpAddr = match host {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        // A socket that is connected sends nothing by that.
        let socket = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect((host, settings.port))?;
            socket.local_addr()
        });
        socket.map_or(nowhere, |address| address.ip())
    }
}
