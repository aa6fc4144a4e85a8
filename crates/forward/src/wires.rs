//! The ways to the upstreams: ports for queries over UDP, and connections for every other
//! transport.
//!
//! Deliberately absent: which upstream to ask and when, and what is made of the messages that come
//! back.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::timeout;
use zonda_client::Protocol;
use zonda_engine::{ClientFacts, UpstreamOptions};
use zonda_netio::{Poller, is_exhaustion};
use zonda_upstream::Question;
use zonda_upstream::capability::Jar;
use zonda_upstream::exchange::Form;
use zonda_upstream::query::{append_option, pad, want_authentic};
use zonda_wire::query::option;

use crate::cause::Cause;
use crate::group::{Manner, Server};
use crate::inbox::Inbox;
use crate::ports::{Ports, WaitingQuery};
use crate::random::RandomSource;
use crate::stream::{Patience, StreamAnswer};

/// The ways from one forwarder thread to all upstreams.
pub struct Wires {
    /// The ports that queries over UDP leave from.
    ports: Ports,
    /// The poller that the thread waits for, which is told of new sockets.
    poller: Poller,
    /// The source of ids and of the case of names.
    random: RandomSource,
    /// The I/O runtime, which carries queries over connections.
    runtime: Handle,
    /// The thread's inbox, into which answers over connections are put.
    inbox: Arc<Inbox>,
}

/// A query for an upstream.
pub struct Outgoing<'q> {
    /// The upstream to ask.
    pub server: &'q Server,
    /// The way in which the upstreams of its group are asked over UDP.
    pub manner: Manner,
    /// EDNS options of the query.
    pub options: &'q UpstreamOptions,
    /// What these tell of the client.
    pub facts: ClientFacts,
    /// The question to ask.
    pub question: Question<'q>,
    /// The form in which the query is sent.
    pub form: Form,
    /// The cookies of the upstream.
    pub cookies: &'q mut Jar,
    /// The purpose of the query.
    pub cause: Cause,
    /// How long to wait, if it leaves over a connection.
    pub patience: Patience,
    /// The time now; nanoseconds of the monotonic clock.
    pub now: u64,
}

/// Appends options to a query that asks a question, if it has an OPT record.
fn append(
    (options, facts): (&UpstreamOptions, &ClientFacts),
    question: &Question<'_>,
    form: Form,
    query: &mut Vec<u8>,
) {
    if form.edns {
        let question = (question.name, question.qtype);
        options.write(facts, question, |code, data| append_option(query, code, data));
    }
}

/// The result of sending a query to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The query leaves over a connection.
    OverConnection,
    /// The query leaves from a port, with an id, for an address.
    FromPort(usize, u16, SocketAddr),
    /// The system has no port left.
    WithoutPort,
    /// The upstream has no address, or none that can be reached.
    Unreachable,
}

impl Wires {
    /// No ways yet, and never more than `ports_max` ports.
    pub fn new(ports_max: usize, poller: Poller, runtime: Handle, inbox: Arc<Inbox>) -> Self {
        let (ports, random) = (Ports::new(ports_max), RandomSource::new());
        Self { ports, poller, random, runtime, inbox }
    }

    /// Returns the ports, for queries that wait and messages that arrive there.
    pub fn ports(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// Sends a query, or has it leave with the next departures.
    pub fn send(&mut self, outgoing: Outgoing<'_>) -> Departure {
        let Outgoing { server, manner, options, facts, question, form, .. } = outgoing;
        let Outgoing { cookies, cause, patience, now, .. } = outgoing;
        let case = self.random.case_bits(question.name.len());
        let mut query = self.ports.room();
        if form.over_tcp || !server.over_udp {
            let cookies = cookies.at(server.address(), now);
            question.write((0, form), &case, &cookies, manner.udp_bytes, &mut query);
            append((options, &facts), &question, form, &mut query);
            self.send_over_connection(server, WaitingQuery { cause, form, query }, patience);
            return Departure::OverConnection;
        }
        let Some(address) = server.address() else { return Departure::Unreachable };
        match self.ports.choose((address, manner, now), &self.poller, &mut self.random) {
            Ok((port, id)) => {
                let cookies = cookies.at(Some(address), now);
                question.write((id, form), &case, &cookies, manner.udp_bytes, &mut query);
                append((options, &facts), &question, form, &mut query);
                self.ports.send(port, id, WaitingQuery { cause, form, query });
                Departure::FromPort(port, id, address)
            }
            Err(error) if is_exhaustion(&error) => Departure::WithoutPort,
            Err(_) => {
                server.connections.pass_over(address);
                Departure::Unreachable
            }
        }
    }

    /// Sends a query over a connection. The inbox receives what comes of it.
    fn send_over_connection(&self, server: &Server, mut waiting: WaitingQuery, patience: Patience) {
        if server.is_trusted {
            want_authentic(&mut waiting.query);
        }
        let protocol = server.connections.protocol();
        if waiting.form.edns {
            let query = &mut waiting.query;
            if matches!(protocol, Protocol::Tcp | Protocol::Tls(_)) {
                append_option(query, option::KEEPALIVE, &[]); // rfc7828#3.2.1
            }
            if protocol.is_encrypted() {
                pad(query);
            }
        }
        let (connections, inbox) = (Arc::clone(&server.connections), Arc::clone(&self.inbox));
        self.runtime.spawn(async move {
            let Patience { limit, waits_for_connection } = patience;
            let answer = async {
                match waits_for_connection {
                    true => connections.ask_when_connected(&waiting.query).await,
                    false => connections.ask(&waiting.query).await,
                }
            };
            let message = timeout(limit, answer).await.ok();
            inbox.put(|contents| contents.answers.push(StreamAnswer { waiting, message }));
        });
    }
}
