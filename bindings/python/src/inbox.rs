//! Replies to queries of the program itself that come later.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::wake::Wake;

/// A reply to one of the program's own queries, under the number it was promised by; nothing for
/// silence.
pub type OwnReply = (u64, Option<Vec<u8>>);

/// Waits for replies, and wakes the event loop when there are some.
pub struct Inbox {
    arrived: Arc<Mutex<Vec<OwnReply>>>,
    next: AtomicU64,
    wake: Arc<Wake>,
    /// Waits; started by the first reply that comes later.
    runtime: OnceLock<Runtime>,
}

impl Inbox {
    /// An empty one.
    pub fn new(wake: Arc<Wake>) -> Self {
        let (arrived, next) = (Arc::default(), AtomicU64::new(0));
        Self { arrived, next, wake, runtime: OnceLock::new() }
    }

    /// Waits for a reply, whose octets `message` returns; returns the number under which it will be
    /// here.
    pub fn expect<T: Send + 'static>(
        &self,
        mut reply: mpsc::Receiver<T>,
        message: impl FnOnce(T) -> Vec<u8> + Send + 'static,
    ) -> io::Result<u64> {
        let number = self.number();
        let (arrived, wake) = (Arc::clone(&self.arrived), Arc::clone(&self.wake));
        self.runtime()?.spawn(async move {
            let reply = reply.recv().await.map(message).filter(|reply| !reply.is_empty());
            arrived.lock().unwrap_or_else(PoisonError::into_inner).push((number, reply));
            wake.wake();
        });
        Ok(number)
    }

    /// A number that no other result has.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Has a result be here, from any thread.
    pub fn give(&self, number: u64, reply: Option<Vec<u8>>) {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).push((number, reply));
        self.wake.wake();
    }

    /// Takes out what is here.
    pub fn take(&self) -> Vec<OwnReply> {
        std::mem::take(&mut *self.arrived.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The runtime that waits.
    fn runtime(&self) -> io::Result<&Runtime> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let made =
            Builder::new_multi_thread().worker_threads(1).thread_name("own-queries").build()?;
        Ok(self.runtime.get_or_init(|| made))
    }
}
