//! Waits for an API server that starts.

use crate::connection::{Get, get};
use crate::error::ConnectError;
use crate::follow::{Event, Subject, follow};
use crate::limits::Limits;
use crate::settings::{Place, Settings};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::channel;
use tokio::time::{sleep, timeout};
use zonda_cluster::Kind;

/// Events of a list that may wait.
const EVENTS_MAX: usize = 1024;

/// How long an API server is left alone that is not ready.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until an API server has sent all objects of these kinds, one kind after the other, and
/// says that it is ready. Blocks, and must not be called in a thread of an asynchronous runtime.
///
/// # Errors
/// Why it has not, when the time is over.
pub fn await_lists(place: &Place, kinds: &[Kind], limit: Duration) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let mut failure = String::new();
    let lists = async {
        for kind in kinds {
            let (sender, mut events) = channel(EVENTS_MAX);
            let (labels, namespace) = (String::new(), String::new());
            let subject = Subject { kind: *kind, labels, namespace };
            runtime.spawn(follow(place.clone(), subject, sender)); // ends with `events`
            failure = format!("it has not sent all objects of the kind {kind:?} in time");
            loop {
                match events.recv().await {
                    Some((_, Event::Synced)) => break,
                    Some((_, Event::Failed(error))) => failure = format!("{kind:?}: {error}"),
                    Some(_) => {}
                    None => return Err(()), // a failure of the task itself
                }
            }
        }
        while let Err(error) = ask_whether_ready(place).await {
            failure = error.to_string();
            sleep(PAUSE).await;
        }
        Ok(())
    };
    let lists = async { timeout(limit, lists).await };
    match runtime.block_on(lists) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(())) | Err(_) => Err(format!("the API server: {failure}")),
    }
}

/// Asks an API server whether it is ready.
async fn ask_whether_ready(place: &Place) -> Result<(), ConnectError> {
    let settings = Settings::read(place)?.with_credential().await?;
    let request = Get { path: "/readyz", accepted: "*/*" };
    get(&settings, request, &Limits::default()).await.map(drop)
}
