//! Waits for an API server that starts.

use crate::follow::{Event, Subject, follow};
use crate::settings::Place;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::channel;
use tokio::time::timeout;
use zonda_cluster::Kind;

/// Events of a list that may wait.
const EVENTS_MAX: usize = 1024;

/// Waits until an API server has sent all objects of these kinds, one kind after the other. Blocks,
/// and must not be called in a thread of an asynchronous runtime.
///
/// # Errors
/// Why it has not, when the time is over.
pub fn await_lists(place: &Place, kinds: &[Kind], limit: Duration) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let mut failure = "the API server does not send all objects in time".to_owned();
    let lists = async {
        for kind in kinds {
            let (sender, mut events) = channel(EVENTS_MAX);
            let (labels, namespace) = (String::new(), String::new());
            let subject = Subject { kind: *kind, labels, namespace };
            runtime.spawn(follow(place.clone(), subject, sender)); // ends with `events`
            while let Some((_, event)) = events.recv().await {
                match event {
                    Event::Synced => break,
                    Event::Failed(error) => failure = error,
                    _ => {}
                }
            }
        }
    };
    let lists = async { timeout(limit, lists).await };
    runtime.block_on(lists).map_err(|_| failure)
}
