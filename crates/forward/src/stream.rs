//! What a forwarder thread asks over connections: upstreams that are asked so in any case, and
//! others when an answer was truncated.
//!
//! Deliberately absent: the connections, which all threads share.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use zonda_client::{Fault, Protocol};
use zonda_deferral::Responder;
use zonda_engine::Now;
use zonda_upstream::check::Failure;
use zonda_upstream::exchange::Outcome;
use zonda_upstream::query::{append_option, pad, want_authentic};
use zonda_wire::query::option;

use crate::group::Server;
use crate::ports::{Cause, Waiting};
use crate::thread::{Forwarder, ForwarderConfig};

/// What came of a query over a connection.
#[derive(Debug)]
pub struct StreamAnswer {
    /// The query.
    waiting: Waiting,
    /// The message; nothing when none came in time.
    message: Option<Result<Vec<u8>, Fault>>,
}

impl<R: Responder, F: FnMut() -> R> Forwarder<R, F> {
    /// Takes what came over a connection. What has not come in time is lost.
    pub(crate) fn read_stream(&mut self, answer: StreamAnswer, now: Now) {
        let StreamAnswer { waiting: Waiting { cause, form, query }, message } = answer;
        match cause {
            Cause::Fetch(attempt) => {
                let outcome = match message {
                    Some(Ok(mut message)) => {
                        if self.receive_answer(attempt, form, &query, &mut message, now) {
                            return;
                        }
                        Outcome::Failed(Failure::Malformed) // the connection gives one answer only
                    }
                    Some(Err(fault)) => outcome(&fault),
                    None => return,
                };
                self.conclude(attempt, outcome, now);
            }
            Cause::Probe(probe) => {
                if let Some(Err(Fault::Certificate(_))) = message {
                    return self.probe_untrusted(probe, now);
                }
                let is_answered = matches!(message, Some(Ok(message))
                    if self.hear_probe(probe, form, &query, &message, now));
                if !is_answered {
                    self.probe_ended(probe, None, now);
                }
            }
            Cause::Check(probe) => {
                if let Some(Ok(message)) = message {
                    self.hear_check(probe, form, &query, &message);
                }
            }
        }
    }
}

/// What a query over a connection waits for, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// How long it waits for its answer at most.
    pub(crate) limit: Duration,
    /// While no connection can be had, it waits for one; else that is told at once.
    pub(crate) waits_for_connection: bool,
}

/// Asks over a connection.
pub(crate) fn send_over_stream(
    config: &ForwarderConfig,
    server: &Server,
    mut waiting: Waiting,
    patience: Patience,
) {
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
    let (connections, inbox) = (Arc::clone(&server.connections), Arc::clone(&config.inbox));
    config.runtime.spawn(async move {
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

/// What becomes of a query for which a connection has no answer. What asking again cannot mend is a
/// failure; the rest is asked again when it is overdue.
fn outcome(fault: &Fault) -> Outcome {
    match fault {
        Fault::Certificate(_) => Outcome::Failed(Failure::Untrusted),
        Fault::Http { status, .. } => Outcome::Failed(Failure::Http(*status)),
        Fault::Flood => Outcome::Failed(Failure::Flood),
        Fault::MediaType(_) | Fault::Malformed | Fault::Rules(_) => {
            Outcome::Failed(Failure::Malformed)
        }
        Fault::NoAddress
        | Fault::Refused
        | Fault::Unreachable(_)
        | Fault::Handshake(_)
        | Fault::Closed
        | Fault::Aborted(_)
        | Fault::Late
        | Fault::Busy => Outcome::Unreachable,
    }
}
