//! The thread that has messages forwarded to the primaries of their zones, and answers them.

use super::processor::UpdateProcessor;
use super::queue::UpdateQueue;
use super::relay::RelayPool;
use crate::publish::PublisherHandle;
use crate::watchdog::Watchdog;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zonda_deferral::Responder;

/// The name of the thread.
const THREAD: &str = "updates";

/// Has messages carried out by the publisher, and forwarded by a thread, until the queue is closed.
/// It is the last step of a start, as only the queue ends the thread: a start that fails leaves
/// none.
///
/// # Errors
/// When the system has no thread left.
pub fn begin<R: Responder>(
    publisher: &PublisherHandle,
    (queue, processor): (&Arc<UpdateQueue>, Arc<Mutex<UpdateProcessor<R>>>),
    watchdog: &Arc<Watchdog>,
) -> io::Result<()> {
    let of_thread = (Arc::clone(queue), Arc::clone(&processor));
    watchdog.spawn(THREAD, move || run(&of_thread.0, &of_thread.1))?;
    let _ = publisher.begin_updates(queue, processor); // the watchdog has why it fails
    Ok(())
}

/// Forwards and answers messages until the queue is closed, which is due.
fn run<R: Responder>(queue: &Arc<UpdateQueue>, processor: &Mutex<UpdateProcessor<R>>) -> bool {
    let finish = Arc::clone(queue);
    let pool = RelayPool::new(Arc::new(move |relayed| finish.finish_relay(relayed)));
    while let Some(mut batch) = queue.take_relays() {
        // For each message by itself: the publisher waits for the processor as well.
        while let Some(relayed) = batch.relayed.pop_front() {
            lock(processor).answer_relayed(relayed);
        }
        while let Some(message) = batch.messages.pop_front() {
            lock(processor).relay(message, &pool);
        }
    }
    true
}

/// Locks the processor. What a panic has left half done is a reply.
fn lock<R>(processor: &Mutex<UpdateProcessor<R>>) -> MutexGuard<'_, UpdateProcessor<R>> {
    processor.lock().unwrap_or_else(PoisonError::into_inner)
}
