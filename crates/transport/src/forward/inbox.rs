//! Deferred queries on their way to the threads that fetch what they need.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use zonda_engine::{Deferral, Peer};
use zonda_netio::{ReplyPath, UdpSocket, Wake};

/// A query that is answered later.
#[derive(Debug)]
pub struct Deferred {
    /// The whole query.
    pub query: Vec<u8>,
    /// Who asks.
    pub peer: Peer,
    /// What is to be fetched.
    pub deferral: Deferral,
    /// How the reply gets to the client.
    pub way: Way,
}

/// How a reply gets to a client.
#[derive(Debug)]
pub enum Way {
    /// From the socket that the query came to.
    Udp(Arc<UdpSocket>, ReplyPath),
    /// To the task of the connection, without its length; nothing stands for no reply.
    Tcp(mpsc::Sender<Vec<u8>>),
}

/// The threads that fetch, as those that receive queries see them: equal questions go to the same
/// thread, so that they can wait together.
#[derive(Clone, Debug, Default)]
pub struct Forwarders {
    /// One for each thread.
    inboxes: Arc<[Arc<Inbox>]>,
}

impl Forwarders {
    /// The threads that take from these.
    #[must_use]
    pub fn new(inboxes: Vec<Arc<Inbox>>) -> Self {
        Self { inboxes: inboxes.into() }
    }

    /// Hands over queries and leaves `deferred` empty.
    pub fn submit(&self, deferred: &mut Vec<Deferred>) {
        debug_assert!(!self.inboxes.is_empty(), "nobody fetches, so nothing is deferred");
        for query in deferred.drain(..) {
            let count = self.inboxes.len().max(1);
            // The upper half, as tables take the lower one.
            let place = (query.deferral.hash >> 32) as usize % count;
            if let Some(inbox) = self.inboxes.get(place) {
                inbox.put(query);
            }
        }
    }
}

/// Queries that one thread is to take.
#[derive(Debug)]
pub struct Inbox {
    /// What came since it was last emptied.
    queries: Mutex<Vec<Deferred>>,
    /// Wakes the thread.
    wake: Wake,
}

impl Inbox {
    /// An empty one.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { queries: Mutex::default(), wake: Wake::new()? }))
    }

    /// What to wait for.
    #[must_use]
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Moves all that has come behind what is in `taken`.
    pub fn take(&self, taken: &mut Vec<Deferred>) {
        self.wake.rest();
        taken.append(&mut self.queries.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Adds a query; wakes the thread if it has taken all others.
    fn put(&self, query: Deferred) {
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = queries.is_empty();
        queries.push(query);
        drop(queries);
        if was_empty {
            self.wake.wake();
        }
    }
}
