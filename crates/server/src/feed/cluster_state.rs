//! How a zone follows its cluster, for metrics and the admin interface.

use serde_json::{Value, json};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zonda_cluster::Kind;

/// Upper bounds of the buckets of times until a change is answered, milliseconds.
pub const BOUNDS_MILLIS: [u64; 15] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// Times until changes were answered, by buckets.
#[derive(Debug, Default)]
pub struct Times {
    /// How many were at most as long as each bound, and longer than the one before; the last are
    /// longer than all bounds.
    buckets: [AtomicU64; BOUNDS_MILLIS.len() + 1],
    /// The sum of all, microseconds.
    micros: AtomicU64,
}

impl Times {
    /// Counts a time.
    pub fn note(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MILLIS.iter().position(|bound| micros <= bound * 1000);
        self.buckets[bucket.unwrap_or(BOUNDS_MILLIS.len())].fetch_add(1, Relaxed);
        self.micros.fetch_add(micros, Relaxed);
    }

    /// Goes on from what was counted before.
    fn go_on_from(&self, former: &Self) {
        let buckets = self.buckets.iter().zip(&former.buckets);
        go_on(buckets.chain([(&self.micros, &former.micros)]));
    }

    /// Returns the counts of the buckets.
    pub fn counts(&self) -> [u64; BOUNDS_MILLIS.len() + 1] {
        self.buckets.each_ref().map(|bucket| bucket.load(Relaxed))
    }

    /// Returns the sum of all times in seconds.
    pub fn seconds(&self) -> f64 {
        self.micros.load(Relaxed) as f64 / 1e6
    }
}

/// How the objects of a kind are followed.
#[derive(Debug)]
pub struct KindFollowed {
    /// The kind of the objects.
    pub kind: Kind,
    /// Whether changes are received at the moment.
    pub is_followed: AtomicBool,
    /// How often all objects were listed.
    pub lists: AtomicU64,
    /// How often an object was received, in lists too, or that it is gone.
    pub changes: AtomicU64,
    /// How often the API failed.
    pub failures: AtomicU64,
    /// How often an object could not be decoded.
    pub undecodable: AtomicU64,
}

impl KindFollowed {
    /// The word for the kind in metrics and JSON, as the API's paths have it.
    pub fn word(&self) -> &'static str {
        match self.kind {
            Kind::Service => "services",
            Kind::EndpointSlice => "endpointslices",
            Kind::Namespace => "namespaces",
            Kind::Pod => "pods",
            Kind::ServiceImport => "serviceimports",
        }
    }
}

/// How a zone follows its cluster: written by the thread of the feed, read by any thread.
#[derive(Debug)]
pub struct ClusterState {
    /// The kinds of objects that are followed.
    pub kinds: Vec<KindFollowed>,
    /// The services, namespaces, addresses with names, and pods of the version in force.
    pub counts: [AtomicU64; 4],
    /// The moment of the names of the version in force, if they come from the snapshot file or
    /// were chosen otherwise, seconds since 1970; 0 if they are those of the API.
    pub stale_since: AtomicU64,
    /// When the snapshot file was written last, seconds since 1970; 0 if it was not.
    pub written_at: AtomicU64,
    /// Whether the snapshot file is another process's; held while the file is written, as there is
    /// one unfinished file.
    pub is_file_foreign: Arc<Mutex<bool>>,
    /// How often the snapshot file could not be written.
    pub failed_writes: AtomicU64,
    /// Times from the receipt of a change to the publication of its names.
    pub publishing: Times,
    /// Times from what triggered a change of endpoints, as the API tells it, to the publication of
    /// their names.
    pub programming: Times,
}

/// What [`ClusterState::counts`] counts.
pub const COUNTED: [&str; 4] = ["services", "namespaces", "addresses", "pods"];

impl ClusterState {
    /// The state of a feed of these kinds that begins.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Self {
        let followed = |kind| KindFollowed {
            kind,
            is_followed: AtomicBool::default(),
            lists: AtomicU64::default(),
            changes: AtomicU64::default(),
            failures: AtomicU64::default(),
            undecodable: AtomicU64::default(),
        };
        Self {
            kinds: kinds.into_iter().map(followed).collect(),
            counts: Default::default(),
            stale_since: AtomicU64::default(),
            written_at: AtomicU64::default(),
            is_file_foreign: Arc::default(),
            failed_writes: AtomicU64::default(),
            publishing: Times::default(),
            programming: Times::default(),
        }
    }

    /// Takes over what was told of the names of a former feed, as they stay.
    pub fn inherit(&self, former: &Self) {
        let counts = self.counts.iter().zip(&former.counts);
        let moments =
            [(&self.stale_since, &former.stale_since), (&self.written_at, &former.written_at)];
        go_on(counts.chain(moments));
    }

    /// Goes on from what a former feed of the zone has counted, so that no counter falls.
    pub fn go_on_from(&self, former: &Self) {
        self.publishing.go_on_from(&former.publishing);
        self.programming.go_on_from(&former.programming);
        go_on([(&self.failed_writes, &former.failed_writes)]);
        for own in &self.kinds {
            let Some(former) = former.of(own.kind) else { continue };
            go_on([
                (&own.lists, &former.lists),
                (&own.changes, &former.changes),
                (&own.failures, &former.failures),
                (&own.undecodable, &former.undecodable),
            ]);
        }
    }

    /// How the objects of a kind are followed.
    pub fn of(&self, kind: Kind) -> Option<&KindFollowed> {
        self.kinds.iter().find(|followed| followed.kind == kind)
    }

    /// The state as JSON; `time` writes moments.
    pub(crate) fn to_json(&self, time: impl Fn(u64) -> String) -> Value {
        let moment = |secs: &AtomicU64| Some(secs.load(Relaxed)).filter(|it| *it > 0).map(&time);
        let kinds = self.kinds.iter().map(|it| {
            json!({
                "kind": it.word(),
                "followed": it.is_followed.load(Relaxed),
                "lists": it.lists.load(Relaxed),
                "changes": it.changes.load(Relaxed),
                "failures": it.failures.load(Relaxed),
                "undecodable": it.undecodable.load(Relaxed),
            })
        });
        let counts = COUNTED.iter().zip(&self.counts);
        let counts = counts.map(|(word, count)| ((*word).to_owned(), count.load(Relaxed).into()));
        json!({
            "stale_since": moment(&self.stale_since),
            "snapshot_written": moment(&self.written_at),
            "kinds": kinds.collect::<Vec<_>>(),
            "names": counts.collect::<serde_json::Map<String, Value>>(),
        })
    }
}

/// Has each number begin with another one.
fn go_on<'n>(numbers: impl IntoIterator<Item = (&'n AtomicU64, &'n AtomicU64)>) {
    for (own, former) in numbers {
        own.store(former.load(Relaxed), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_counter_falls_when_a_feed_with_other_settings_takes_the_place_of_one() {
        let former = ClusterState::new([Kind::Service, Kind::Pod]);
        former.publishing.note(Duration::from_millis(3));
        former.programming.note(Duration::from_millis(70));
        former.failed_writes.store(2, Relaxed);
        former.kinds[0].changes.store(9, Relaxed);
        let next = ClusterState::new([Kind::Namespace, Kind::Service]);
        next.go_on_from(&former);
        next.publishing.note(Duration::from_millis(4));
        let times = |times: &Times| (times.counts().iter().sum::<u64>(), times.seconds());
        assert_eq!(times(&next.publishing), (2, 0.007));
        assert_eq!(times(&next.programming), times(&former.programming));
        assert_eq!(next.failed_writes.load(Relaxed), 2);
        let changes = next.kinds.iter().map(|it| it.changes.load(Relaxed));
        assert_eq!(changes.collect::<Vec<_>>(), [0, 9], "those of the same kind");
    }
}
