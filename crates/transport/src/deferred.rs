//! Queries that are answered later, and where they go.

use std::sync::Arc;

use tokio::sync::mpsc;
use zonda_engine::{Deferral, Peer, To};
use zonda_netio::{ReplyBatch, ReplyPath, UdpSocket};

use crate::forward::{Chain, Forwarders};
use crate::handlers::Runtime;
use crate::servfail;

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
    /// What was fetched for it before, if that leads from one zone into another.
    pub chain: Option<Box<Chain>>,
}

/// How a reply gets to a client.
#[derive(Debug)]
pub enum Way {
    /// From the socket that the query came to.
    Udp(Arc<UdpSocket>, ReplyPath),
    /// To the task of the connection, without its length; nothing stands for no reply.
    Tcp(mpsc::Sender<Vec<u8>>),
}

/// Where queries go that are answered later, as those that receive them see it.
#[derive(Clone, Debug, Default)]
pub struct Deferrals {
    /// The threads that ask other servers.
    pub forwarders: Forwarders,
    /// The user's code that runs elsewhere, by the numbers of the runtimes.
    pub runtimes: Arc<[Arc<Runtime>]>,
}

impl From<Forwarders> for Deferrals {
    fn from(forwarders: Forwarders) -> Self {
        Self { forwarders, runtimes: Arc::default() }
    }
}

impl Deferrals {
    /// Hands over queries and leaves `deferred` empty.
    pub fn submit(&self, deferred: &mut Vec<Deferred>) {
        if !self.runtimes.is_empty() {
            self.submit_to_runtimes(deferred);
        }
        if !deferred.is_empty() {
            self.forwarders.submit(deferred);
        }
    }

    /// Hands over the queries that are for the user's code. Those that it has no room for are
    /// answered SERVFAIL.
    fn submit_to_runtimes(&self, deferred: &mut Vec<Deferred>) {
        let mut refused = Vec::new();
        for (number, runtime) in self.runtimes.iter().enumerate() {
            let is_for = |query: &mut Deferred| match query.deferral.to {
                To::Code(elsewhere) => usize::from(elsewhere.runtime) == number,
                To::Forward(_) => false,
            };
            runtime.put(deferred.extract_if(.., is_for), &mut refused);
        }
        for query in refused {
            answer_servfail(query);
        }
    }
}

/// Answers a query as one on which the engine has failed.
#[cold]
fn answer_servfail(Deferred { mut query, way, .. }: Deferred) {
    let len = query.len();
    let len = servfail::write(&mut query, len);
    query.truncate(len);
    match way {
        Way::Tcp(sender) => _ = sender.try_send(query), // it is only gone when the connection is
        Way::Udp(_, _) if query.is_empty() => {}
        Way::Udp(socket, path) => {
            let mut batch = ReplyBatch::default();
            batch.push(path, &query);
            batch.send(&socket);
        }
    }
}
