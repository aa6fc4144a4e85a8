//! Queries that are answered later: what must be fetched for them, and what was.

use zonda_cache::Inserts;
use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::{Class, Query, Rcode, Type};

use crate::code::{Elsewhere, History};
use crate::reason::Reason;

/// A query's need for an answer from upstreams or code: what must be fetched before it can be
/// answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deferral {
    /// The upstreams or the code that the query waits for.
    pub to: To,
    /// The query as the engine has read it: its octets are not parsed again while it waits, nor
    /// when it is resumed.
    pub query: Query,
    /// Whether the query's client-subnet option is not believed: the query is kept without it.
    pub hides_subnet: bool,
    /// The hash of the name to ask for, in lower case.
    pub name_hash: u64,
    /// Whether that is not the query's own name, but one that this is an alias of, or one of its
    /// client's search path: [`fetched_name`](crate::fetched_name) tells it.
    pub is_alias: bool,
    /// When the answer cache was found to hold nothing for the question, if it was.
    pub missed_at: Option<Inserts>,
    /// The octets of the query, where rules have changed its question, or aliases have led to
    /// another one: those that were received have the client's.
    pub octets: Option<Box<[u8]>>,
    /// The TSIG record that was cut off an update which is forwarded, if it had one.
    pub signature_record: Option<Box<[u8]>>,
    /// Facts about the query that are needed again when it is resumed.
    pub history: History,
}

impl Deferral {
    /// A deferral for the query's own name, which has this hash. The engine adds the query.
    #[must_use]
    pub fn new(to: To, name_hash: u64) -> Self {
        let (query, history) = (Query::default(), History::default());
        Self {
            to,
            query,
            hides_subnet: false,
            name_hash,
            is_alias: false,
            missed_at: None,
            octets: None,
            signature_record: None,
            history,
        }
    }
}

/// The part of the server that answers a deferred query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The upstreams of a forwarded zone: the number of a [`Forward`](crate::zones::Forward).
    Forward(u32),
    /// The user's code.
    Code(Elsewhere),
    /// The connection that the query came by, which asks [`Engine::take_transfer`] for the messages
    /// of the reply.
    ///
    /// [`Engine::take_transfer`]: crate::Engine::take_transfer
    Transfer,
    /// What changes zones: the message is an update.
    Update,
    /// The primaries of a zone that is transferred from them: the message is an update, which is
    /// forwarded.
    Relay,
}

impl To {
    /// The queue of the queries that it answers: the first one is that of all forwarder threads,
    /// the second one that of updates; those of the runtimes of the user's code follow in the order
    /// of their numbers.
    #[must_use]
    pub fn queue(self) -> QueueId {
        match self {
            Self::Forward(_) => QueueId::FORWARDERS,
            Self::Update | Self::Relay => QueueId::UPDATES,
            Self::Code(elsewhere) => QueueId(elsewhere.runtime.saturating_add(2)),
            Self::Transfer => QueueId::NONE,
        }
    }
}

/// The number of a queue that deferred queries wait in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueId(pub u16);

impl QueueId {
    /// The queue of the forwarder threads.
    pub const FORWARDERS: Self = Self(0);
    /// The queue of messages that change zones.
    pub const UPDATES: Self = Self(1);
    /// A queue that does not exist: no query waits there.
    pub const NONE: Self = Self(u16::MAX);
}

/// The upstreams' answer to a query.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamAnswer<'a> {
    /// The name that it was fetched for, in wire form and lower case; empty with a failure.
    pub name: &'a [u8],
    /// The response code.
    pub rcode: Rcode,
    /// Records in the answer, authority and additional sections of `body`.
    pub counts: [u16; 3],
    /// The octets behind the question, without OPT: its pointers lead into a question of the same
    /// name or into itself.
    pub body: &'a [u8],
    /// A server that is believed to have validated it has done so.
    pub is_authentic: bool,
    /// Whether the body ends with an alias of a name that is in another zone of this server.
    pub goes_on: bool,
    /// The reason that counters and logs give for the answer.
    pub reason: Reason,
    /// The reason in words where there is no answer: UTF-8, for the extended error, at most
    /// [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) octets of which are sent.
    pub text: &'a [u8],
}

impl UpstreamAnswer<'_> {
    /// Whether the answer is about a name, in wire form and lower case. A failure is about any
    /// name.
    #[must_use]
    pub fn is_for(&self, name: &[u8]) -> bool {
        self.name.is_empty() || self.name == name
    }

    /// The message that the body is from: its pointers lead into the question that it was fetched
    /// for, which is of this type.
    #[must_use]
    pub fn message(&self, qtype: Type) -> Vec<u8> {
        let mut message = Vec::with_capacity(HEADER_BYTES + self.name.len() + 4 + self.body.len());
        write_message((self.name, qtype), self.counts, self.body, &mut message);
        message
    }
}

/// Writes over `message` the one that a body is from: its pointers lead into the question, which is
/// for a name, in wire form, and a type.
pub(crate) fn write_message(
    (name, qtype): (&[u8], Type),
    counts: [u16; 3],
    body: &[u8],
    message: &mut Vec<u8>,
) {
    let [answer, authority, additional] = counts;
    let header = [0, flag::QR, 1, answer, authority, additional];
    message.clear();
    message.extend(header.iter().flat_map(|word| word.to_be_bytes()));
    message.extend_from_slice(name);
    message.extend([qtype.0, Class::IN.0].iter().flat_map(|word| word.to_be_bytes()));
    message.extend_from_slice(body);
}

/// What became of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateOutcome {
    /// The response code of the reply.
    pub rcode: Rcode,
    /// The reason that counters and logs give for it.
    pub reason: Reason,
    /// The reason in words, for the extended error; empty where there is nothing to say.
    pub text: String,
}

/// The outcome of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation for each query that is forwarded"
)]
pub enum Outcome {
    /// A reply of so many octets lies in the buffer.
    Reply(usize),
    /// There is no reply.
    Silence,
    /// The query, which still lies in the buffer, is to be resumed once this was fetched.
    Deferred(Deferral),
}

impl Outcome {
    /// Octets of the reply, 0 if there is none.
    #[must_use]
    pub fn reply_bytes(&self) -> usize {
        match self {
            Self::Reply(bytes) => *bytes,
            Self::Silence | Self::Deferred(_) => 0,
        }
    }
}
