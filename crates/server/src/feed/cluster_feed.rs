//! The feed of a Kubernetes cluster: keeps its zones as its objects are.

use super::Update;
use super::change_times::{ChangeTimes, WaitingTimes};
use super::cluster_file::{self, FileContent, FileError, SnapshotWriter};
use super::cluster_state::ClusterState;
use super::cluster_subjects::{FormerNames, Subjects, followed, namespaces, options, place};
use super::store_feed::StopRequest;
use crate::load;
use crate::load_error::LoadError;
use crate::publish::{PublisherFailed, PublisherHandle, Publishing};
use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zonda_cluster::{Builder, Cluster};
use zonda_engine::zones::{ClusterNames, ClusterZone, Source};
use zonda_kubernetes::{Event, Subject, follow};
use zonda_wire::Name;
use zonda_zone::Zone;

/// How long changes are gathered after a version was published: a client that asks for what it has
/// just changed waits for it. The first change after a pause is published at once. It is shorter
/// than the time for which a busy watch is left to the kernel, so that what was read together is
/// published in the same turn of the thread: each further one costs as much as a change.
const GATHERING: Duration = Duration::from_millis(25);
/// The least time between two versions of the zones' own data, which have the serial.
const SERIAL_INTERVAL: Duration = Duration::from_secs(1);
/// Events that may wait for the feed; the connections to the API wait then.
const EVENTS_MAX: usize = 1024;
/// Events that are taken at once.
const RECEIVED_MAX: usize = 64;
/// How often it is looked whether the feed is to end.
const LOOK: Duration = Duration::from_millis(250);

/// What a feed needs, and needs again when it starts again.
#[derive(Clone)]
pub(super) struct FeedSetup {
    /// What the feed follows.
    pub subjects: Subjects,
    /// What makes zones of updates.
    pub publisher: PublisherHandle,
    /// The number by which the publisher knows the feed.
    pub number: u64,
    /// Asks the feed to end.
    pub stop: Arc<StopRequest>,
    /// What is told of the feed.
    pub state: Arc<ClusterState>,
    /// What the names are worth that the zone has when the feed begins.
    pub former: FormerNames,
}

/// Keeps the zones of a cluster as its objects are.
pub(super) struct ClusterFeed {
    builder: Builder,
    subjects: Subjects,
    publisher: PublisherHandle,
    /// The number by which the publisher knows the feed.
    number: u64,
    stop: Arc<StopRequest>,
    /// Is dropped when the zones have been published once.
    first: Option<SyncSender<()>>,
    /// The subjects of which all objects have been read once.
    synced: HashSet<Arc<Subject>>,
    /// The subjects whose objects are followed at the moment.
    following: HashSet<Arc<Subject>>,
    /// The subjects that cannot be followed at the moment.
    failing: HashSet<Arc<Subject>>,
    /// How many subjects there are.
    subject_count: usize,
    /// The zones' own data, by their names.
    data: Vec<(Name, Arc<Zone>)>,
    /// The address of this machine that the API is reached from, once it is.
    own_address: Option<IpAddr>,
    /// When the data were made.
    dated: Option<Instant>,
    /// Whether names have changed since, so that the serial is to follow.
    is_behind: bool,
    state: Arc<ClusterState>,
    former: FormerNames,
    times: ChangeTimes,
    /// The version that the publisher was given last.
    under_way: Option<Publishing>,
    writer: SnapshotWriter,
}

impl ClusterFeed {
    /// A feed that has no objects yet. `first` is dropped when the zones have been published once.
    pub fn new(setup: FeedSetup, first: Option<SyncSender<()>>) -> Self {
        let FeedSetup { subjects, publisher, number, stop, state, former } = setup;
        let seed = publisher.state().seed;
        Self {
            builder: Builder::new(&subjects.apex, seed, options(&subjects.keys))
                .with_lists_of(namespaces(&subjects.keys)),
            subjects,
            publisher,
            number,
            stop,
            first,
            synced: HashSet::new(),
            following: HashSet::new(),
            subject_count: 0,
            failing: HashSet::new(),
            data: Vec::new(),
            own_address: None,
            dated: None,
            is_behind: false,
            state,
            former,
            times: ChangeTimes::new(),
            under_way: None,
            writer: SnapshotWriter::default(),
        }
    }

    /// Runs until the feed is to end or the publisher has ended, which is true; false if a task
    /// that follows objects has ended by itself.
    pub async fn run(mut self) -> bool {
        let (sender, mut events) = mpsc::channel(EVENTS_MAX);
        let followed = followed(&self.subjects.keys);
        self.subject_count = followed.len();
        let mut followers = JoinSet::new();
        for subject in followed {
            followers.spawn(follow(place(&self.subjects.keys), subject, sender.clone()));
        }
        drop(sender);
        if self.restore().is_err() {
            return true;
        }
        let (mut is_changed, mut received) = (true, Vec::with_capacity(RECEIVED_MAX));
        // Timers are set once for each version, not for each event.
        let mut due = pin!(tokio::time::sleep(GATHERING));
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.stop.is_requested() {
            let is_ready = is_changed && self.synced.len() == self.subject_count;
            tokio::select! {
                // First what is due, whatever comes in the meantime.
                biased;
                () = &mut due, if is_ready => {
                    if self.publish().is_err() {
                        return true;
                    }
                    due.as_mut().reset(tokio::time::Instant::now() + GATHERING);
                    is_changed = false;
                }
                count = events.recv_many(&mut received, RECEIVED_MAX) => {
                    if count == 0 {
                        return false;
                    }
                    for (subject, event) in received.drain(..) {
                        is_changed |= self.take(&subject, event);
                    }
                }
                Some(_) = followers.join_next() => return false,
                // Secondaries see the last of several changes by the serial.
                _ = look.tick() => is_changed |= self.is_behind && self.is_serial_due(),
            }
            if let Some(content) = self.writer.due().then(|| self.content()).flatten() {
                let path = self.subjects.file.as_deref();
                self.writer.write_beside(content, path, &self.state);
            }
        }
        self.write_at_end().await;
        true
    }

    /// Takes an event; returns whether names may have changed.
    fn take(&mut self, subject: &Arc<Subject>, event: Event) -> bool {
        let (kind, of_namespace) = (subject.kind, &*subject.namespace);
        let (state, zone) = (Arc::clone(&self.state), self.subjects.apex.clone());
        let Some(followed) = state.of(kind) else { return false };
        match event {
            Event::Begin => {
                followed.lists.fetch_add(1, Relaxed);
                self.builder.begin_list(kind, of_namespace);
                self.times.begin_list(subject);
                false
            }
            Event::Change(change) => {
                followed.changes.fetch_add(1, Relaxed);
                let is_changed = self.builder.take(&change);
                if is_changed {
                    self.times.note(subject, &change);
                }
                is_changed
            }
            Event::Undecodable(id, error) => {
                followed.undecodable.fetch_add(1, Relaxed);
                self.builder.keep(kind, &id);
                let (namespace, name) = (id.namespace, id.name);
                tracing::warn!(
                    %zone, ?kind, namespace, name, error,
                    "an object of a cluster cannot be decoded, its former version is kept"
                );
                false
            }
            Event::Synced => {
                self.builder.end_list(kind, of_namespace);
                self.times.end_list(subject);
                self.synced.insert(Arc::clone(subject));
                true
            }
            Event::Failed(error) => {
                followed.failures.fetch_add(1, Relaxed);
                followed.is_followed.store(false, Relaxed);
                self.following.remove(subject);
                if self.failing.insert(Arc::clone(subject)) {
                    tracing::warn!(
                        %zone, ?kind, namespace = of_namespace, error,
                        "objects of a cluster are not followed"
                    );
                } else {
                    tracing::debug!(
                        %zone, ?kind, namespace = of_namespace, error,
                        "objects of a cluster are not followed"
                    );
                }
                false
            }
            Event::Connected(address) => {
                self.following.insert(Arc::clone(subject));
                let of_kind = self.following.iter().filter(|it| it.kind == kind).count();
                let parts = namespaces(&self.subjects.keys).len().max(1);
                followed.is_followed.store(of_kind == parts, Relaxed);
                if self.failing.remove(subject) {
                    tracing::info!(
                        %zone, ?kind, namespace = of_namespace,
                        "objects of a cluster are followed again"
                    );
                }
                let is_new = address.is_some() && address != self.own_address;
                if is_new {
                    (self.own_address, self.dated) = (address, None);
                }
                is_new
            }
        }
    }

    /// Keeps the names that a former feed has left, which are newer than those of a snapshot file,
    /// as far as they are of use until all objects are known. Returns whether they are.
    fn keep_former(&self) -> Result<bool, PublisherFailed> {
        let (state, apex) = (self.publisher.state(), &self.subjects.apex);
        let served = self.names().filter_map(|name| {
            let zone = state.zone_set.zone(&name).filter(|zone| zone.unit.is_of_feed())?;
            zone.data()?;
            let names = match &zone.entry.source {
                Source::Cluster(names) => Some((Arc::clone(names), zone.records as usize)),
                _ => None,
            };
            Some((name, names))
        });
        let served: Vec<_> = served.collect();
        let has_names = served.iter().any(|(name, names)| name == apex && names.is_some());
        let former = if has_names { self.former } else { FormerNames::Foreign };
        for (name, names) in served {
            let update = match (former, names) {
                (FormerNames::Whole, Some(_)) => continue,
                (FormerNames::Partial, Some((names, services))) => {
                    let falls_through = self.subjects.keys.falls_through(&name);
                    let (data, cluster) = (Arc::clone(&names.data), names.cluster.clone());
                    let (names, is_stale) = (names.names, true);
                    let hosts_first = self.subjects.keys.hosts_first;
                    let stale =
                        ClusterZone { data, cluster, names, falls_through, hosts_first, is_stale };
                    Update::Cluster(Arc::new(stale), services)
                }
                _ => Update::Expired(LoadError::awaited()),
            };
            let _ = self.publisher.update(&name, self.number, update)?; // no change to refuse
        }
        if former == FormerNames::Partial {
            let now = u64::from(load::unix_secs());
            let _ = self.state.stale_since.compare_exchange(0, now, Relaxed, Relaxed);
        }
        Ok(former != FormerNames::Foreign)
    }

    /// The names of the zones in lower case: those of addresses, and the apex.
    fn names(&self) -> impl Iterator<Item = Name> {
        self.subjects.keys.reverse_zones().into_iter().chain([self.subjects.apex.clone()])
    }

    /// Serves what the snapshot file has, if there is one, until all objects are known. A zone that
    /// a former feed has filled keeps what it has, if that is of use.
    fn restore(&mut self) -> Result<(), PublisherFailed> {
        if self.keep_former()? {
            return Ok(());
        }
        let (apex, keys) = (self.subjects.apex.clone(), Arc::clone(&self.subjects.keys));
        let Some(path) = &self.subjects.file.clone() else { return Ok(()) };
        let mut builder = Builder::new(&apex, self.publisher.state().seed, options(&keys));
        let file = path.display();
        let read = cluster_file::read(path, (&apex, &keys), |change| builder.apply(change));
        let written = match read {
            Ok(written) => written,
            Err(FileError::Unreadable(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(()); // the first start
            }
            Err(error) => {
                tracing::error!(zone = %apex, %file, %error, "cannot use a snapshot of a cluster");
                return Ok(());
            }
        };
        self.make_data(Some(&mut builder));
        self.state.stale_since.store(written.max(1), Relaxed);
        let cluster = builder.snapshot();
        self.send(&cluster, WaitingTimes::default()).wait()?;
        let age = Duration::from_secs(u64::from(load::unix_secs()).saturating_sub(written));
        let first = format!(
            "its names are those that {file} had {age:?} ago; the API server has not yet told all \
             objects, and names that the file lacks are SERVFAIL"
        );
        let update = Update::Unavailable(LoadError { first, count: 1 });
        let _ = self.publisher.update(&apex, self.number, update)?; // has no change to refuse
        self.first = None;
        Ok(())
    }

    /// Whether the data are old enough to be made with another serial.
    fn is_serial_due(&self) -> bool {
        self.dated.is_none_or(|dated| dated.elapsed() >= SERIAL_INTERVAL)
    }

    /// Publishes the names as they are now; waits for the first version, and before a further one
    /// for the one before, as each wake of this thread costs as much as a change.
    fn publish(&mut self) -> Result<(), PublisherFailed> {
        if let Some(former) = self.under_way.take() {
            former.wait()?;
        }
        let has_changed = self.builder.has_new_aliases();
        self.is_behind = !(has_changed || self.is_serial_due());
        if !self.is_behind {
            self.make_data(None);
        }
        let cluster = self.builder.snapshot();
        self.state.stale_since.store(0, Relaxed);
        let times = self.times.take();
        let publishing = self.send(&cluster, times);
        match self.first.take() {
            Some(first) => {
                publishing.wait()?;
                drop(first);
            }
            None => self.under_way = Some(publishing),
        }
        self.writer.note_change(self.subjects.file.is_some());
        Ok(())
    }

    /// Sends the names of a version of the cluster to the publisher, and the times of its changes,
    /// which are counted once it is in force.
    fn send(&self, cluster: &Cluster, times: WaitingTimes) -> Publishing {
        let counts = cluster.counts();
        self.state
            .counts
            .iter()
            .zip(counts)
            .for_each(|(it, count)| it.store(count as u64, Relaxed));
        let updates = self.data.iter().map(|(name, data)| {
            let names = match *name == self.subjects.apex {
                true => ClusterNames::Services,
                false => ClusterNames::Addresses,
            };
            let zone = ClusterZone {
                data: Arc::clone(data),
                cluster: cluster.clone(),
                names,
                falls_through: self.subjects.keys.falls_through(name),
                hosts_first: self.subjects.keys.hosts_first,
                is_stale: self.state.stale_since.load(Relaxed) > 0,
            };
            (name.clone(), Update::Cluster(Arc::new(zone), counts[0]))
        });
        let state = Arc::clone(&self.state);
        self.publisher.update_all(self.number, updates.collect(), move || times.count(&state))
    }

    /// What the snapshot file is to have, if all objects are known.
    fn content(&mut self) -> Option<FileContent> {
        let is_known = self.synced.len() == self.subject_count && self.subject_count > 0;
        is_known.then(|| FileContent {
            apex: self.subjects.apex.clone(),
            keys: Arc::clone(&self.subjects.keys),
            cluster: self.builder.snapshot(),
            aliases: self.builder.aliases().clone(),
            written: load::unix_secs().into(),
        })
    }

    /// Writes the snapshot file when the feed ends: with the changes that it lacks, or if there are
    /// none, with the present time as that of its names.
    async fn write_at_end(&mut self) {
        self.writer.wait().await;
        let is_followed = self.state.kinds.iter().all(|kind| kind.is_followed.load(Relaxed));
        let is_due = self.writer.is_behind() || is_followed;
        let content = is_due.then(|| self.content()).flatten();
        if let Some((content, path)) = content.zip(self.subjects.file.as_ref()) {
            cluster_file::write(&content, path, &self.state);
        }
    }

    /// Makes the zones' own data anew: the apexes, the version of the specification, and services
    /// that are aliases; of these objects, or of those that are followed.
    fn make_data(&mut self, restored: Option<&mut Builder>) {
        self.dated = Some(Instant::now());
        let state = self.publisher.state();
        let names: Vec<Name> = self.names().collect();
        let builder = restored.unwrap_or(&mut self.builder);
        builder.note_new_data();
        for name in names {
            let text = builder.data_text(&name, load::unix_secs(), self.own_address);
            let base = (&state.zone_set, state.seed);
            if let Update::Replace(loaded) = load::load_text(&name, &text, base) {
                self.data.retain(|(own, _)| *own != name);
                self.data.push((name, loaded.zone));
            }
        }
    }
}
