//! Times from changes of a cluster's objects to the publication of their names.

use super::cluster_state::ClusterState;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use zonda_cluster::Change;
use zonda_cluster::object::EndpointSlice;
use zonda_kubernetes::Subject;

/// Changes between two versions whose times are counted.
const TRIGGERS_MAX: usize = 1024;

/// The times of changes that have not been published. Objects of a list do not count, nor triggers
/// from before the feed began: they may be of any age.
pub struct ChangeTimes {
    /// When the feed began.
    began: SystemTime,
    /// The subjects of which single changes are received at the moment.
    followed: HashSet<Arc<Subject>>,
    waiting: WaitingTimes,
}

/// The times of changes that are to be published together.
#[derive(Default)]
pub struct WaitingTimes {
    /// When the oldest change was received.
    changed: Option<Instant>,
    /// What triggered the changes.
    triggered: Vec<SystemTime>,
}

impl ChangeTimes {
    /// The times of a feed that begins now.
    pub fn new() -> Self {
        let (followed, waiting) = (HashSet::new(), WaitingTimes::default());
        Self { began: SystemTime::now(), followed, waiting }
    }

    /// Notes that a list of all objects of a subject begins.
    pub fn begin_list(&mut self, subject: &Arc<Subject>) {
        self.followed.remove(subject);
    }

    /// Notes that a list of all objects of a subject has ended.
    pub fn end_list(&mut self, subject: &Arc<Subject>) {
        self.followed.insert(Arc::clone(subject));
    }

    /// Notes when a change came, and what triggered it.
    pub fn note(&mut self, subject: &Arc<Subject>, change: &Change) {
        if !self.followed.contains(subject) {
            return;
        }
        self.waiting.changed.get_or_insert_with(Instant::now);
        if let Change::EndpointSlice(EndpointSlice { trigger_time: Some(time), .. }) = change
            && self.waiting.triggered.len() < TRIGGERS_MAX
            && *time >= self.began
        {
            self.waiting.triggered.push(*time);
        }
    }

    /// Returns the times of the changes so far, which are published now.
    pub fn take(&mut self) -> WaitingTimes {
        std::mem::take(&mut self.waiting)
    }
}

impl WaitingTimes {
    /// Counts how long all changes took, as they have been published.
    pub fn count(self, state: &ClusterState) {
        if let Some(changed) = self.changed {
            state.publishing.note(changed.elapsed());
        }
        for time in self.triggered {
            // A clock that is behind that of the API's writer tells nothing.
            let took = SystemTime::now().duration_since(time);
            took.into_iter().for_each(|took| state.programming.note(took));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;
    use zonda_cluster::Kind;
    use zonda_kubernetes::encode;

    #[test]
    fn only_changes_that_the_feed_has_seen_happen_are_counted() {
        let object = br#"{"kind":"EndpointSlice","metadata":{"name":"a","namespace":"b",
            "labels":{"kubernetes.io/service-name":"c"}},"addressType":"IPv4","endpoints":[]}"#;
        let change = |age: Duration| {
            let mut change = encode::read_object(object).unwrap().unwrap();
            let Change::EndpointSlice(slice) = &mut change else { panic!("{change:?}") };
            slice.trigger_time = Some(SystemTime::now() - age);
            change
        };
        let state = ClusterState::new([Kind::EndpointSlice]);
        let subject = Arc::new(Subject {
            kind: Kind::EndpointSlice,
            labels: String::new(),
            namespace: String::new(),
        });
        let mut times = ChangeTimes::new();
        let mut counted = |is_list: bool, age: Duration| {
            times.begin_list(&subject);
            if !is_list {
                times.end_list(&subject);
            }
            times.note(&subject, &change(age));
            times.take().count(&state);
            let count = |times: [u64; 16]| times.iter().sum::<u64>();
            (count(state.publishing.counts()), count(state.programming.counts()))
        };
        assert_eq!(counted(true, Duration::ZERO), (0, 0), "an object of the first list");
        assert_eq!(counted(false, Duration::ZERO), (1, 1));
        assert_eq!(counted(true, Duration::ZERO), (1, 1), "an object of a further list");
        assert_eq!(counted(false, Duration::from_secs(3600)), (2, 1), "an old trigger");
    }
}
