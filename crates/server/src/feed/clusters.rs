//! The feeds of Kubernetes clusters: one for each zone that has the names of one.
//!
//! A feed runs in a thread of its own, in which all objects are followed. It gathers changes for a
//! moment, makes a snapshot of the names, and sends that to the publisher. While the API cannot be
//! reached, the zone keeps what it has.

use super::cluster_feed::{ClusterFeed, FeedSetup};
use super::cluster_place::SnapshotPlaces;
use super::cluster_state::ClusterState;
use super::cluster_subjects::{FormerNames, Subjects, followed};
use super::store_feed::{NEXT_NUMBER, StopRequest, lock};
use crate::publish::PublisherHandle;
use crate::zone_set::fed_zone::FedOwner;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zonda_cluster::Kind;
use zonda_config::Config;
use zonda_wire::Name;

/// How long a stop waits for all feeds; a snapshot file may have to be written.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// How long after a failure a feed starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(5);

/// A feed that runs.
struct RunningCluster {
    subjects: Subjects,
    stop: Arc<StopRequest>,
    /// Is closed when the thread has ended.
    ended: Receiver<()>,
    state: Arc<ClusterState>,
}

/// How zones follow their clusters, by their names in lower case.
pub type ClusterStates = HashMap<Name, Arc<ClusterState>>;

/// The feeds of all clusters.
#[derive(Default)]
pub struct ClusterFeeds {
    running: Mutex<Vec<RunningCluster>>,
    /// How zones follow their clusters, for readers, which wait for no feed.
    states: ArcSwap<ClusterStates>,
    /// The places where names are kept.
    places: SnapshotPlaces,
}

impl ClusterFeeds {
    /// How zones follow their clusters, by their names in lower case.
    pub fn states(&self) -> Arc<ClusterStates> {
        self.states.load_full()
    }

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
                let file = self.places.file(config, (&apex, keys));
                Some(Subjects { apex, keys: Arc::clone(keys), file })
            })
            .collect();
        let mut running = lock(&self.running);
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *running).into_iter().partition(|it| wanted.contains(&it.subjects));
        *running = kept;
        end(&gone);
        for subjects in wanted {
            if !running.iter().any(|feed| feed.subjects == subjects) {
                let former = gone.iter().find(|feed| feed.subjects.apex == subjects.apex);
                running.push(start(subjects, publisher.clone(), first.clone(), former)?);
            }
        }
        let states = running.iter().map(|it| (it.subjects.apex.clone(), Arc::clone(&it.state)));
        self.states.store(Arc::new(states.collect()));
        Ok(())
    }

    /// Leaves all snapshot files to another process from now on, or takes them back. Waits for a
    /// write that is under way.
    pub fn leave_files(&self, are_foreign: bool) {
        for feed in &*lock(&self.running) {
            *lock(&feed.state.is_file_foreign) = are_foreign;
        }
    }

    /// Ends all feeds.
    pub fn stop(&self) {
        end(&std::mem::take(&mut *lock(&self.running)));
    }
}

impl Drop for ClusterFeeds {
    fn drop(&mut self) {
        lock(&self.running).iter().for_each(|feed| feed.stop.stop());
    }
}

/// Ends feeds, and waits until they have ended.
fn end(feeds: &[RunningCluster]) {
    feeds.iter().for_each(|feed| feed.stop.stop());
    let limit = Instant::now() + STOP_TIMEOUT;
    for feed in feeds {
        let _ = feed.ended.recv_timeout(limit.saturating_duration_since(Instant::now()));
    }
}

/// Starts a feed in a thread of its own, which starts it again should it fail. The zone may have
/// names of a former feed.
fn start(
    subjects: Subjects,
    publisher: PublisherHandle,
    first: SyncSender<()>,
    former: Option<&RunningCluster>,
) -> io::Result<RunningCluster> {
    let stop = Arc::<StopRequest>::default();
    let number = NEXT_NUMBER.fetch_add(1, Relaxed);
    let mut names = subjects.keys.reverse_zones();
    names.push(subjects.apex.clone());
    // Where the publisher fails, so does the first update.
    let _ = publisher.adopt_feed(names, number, FedOwner::Configuration);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut kinds: Vec<Kind> = Vec::new();
    for subject in followed(&subjects.keys) {
        if !kinds.contains(&subject.kind) {
            kinds.push(subject.kind);
        }
    }
    let mut state = ClusterState::new(kinds);
    let worth = former.map(|it| FormerNames::of(&it.subjects.keys, &subjects.keys));
    let worth = worth.unwrap_or(FormerNames::Foreign);
    if let Some(former) = former {
        // Its thread may write the file still.
        state.is_file_foreign = Arc::clone(&former.state.is_file_foreign);
        state.go_on_from(&former.state);
        if worth != FormerNames::Foreign {
            state.inherit(&former.state);
        }
    }
    let state = Arc::new(state);
    let mut setup = FeedSetup {
        subjects: subjects.clone(),
        publisher,
        number,
        stop: Arc::clone(&stop),
        state: Arc::clone(&state),
        former: worth,
    };
    let (sender, ended) = sync_channel::<()>(0);
    std::thread::Builder::new().name("zonda-cluster".to_owned()).spawn(move || {
        let mut first = Some(first);
        loop {
            let feed = ClusterFeed::new(setup.clone(), first.take());
            let run = AssertUnwindSafe(|| runtime.block_on(feed.run()));
            // After a panic, the zones keep what they have, and all is begun anew.
            let has_ended = catch_unwind(run).unwrap_or(false);
            if has_ended || setup.stop.pause(RESTART_PAUSE) {
                break;
            }
            setup.former = FormerNames::Whole; // the feed has dealt with foreign names first of all
            let kinds = setup.state.kinds.iter();
            kinds.for_each(|it| it.is_followed.store(false, Relaxed));
            tracing::error!(zone = %setup.subjects.apex, "the feed of a cluster starts again");
        }
        drop(sender);
    })?;
    Ok(RunningCluster { subjects, stop, ended, state })
}
