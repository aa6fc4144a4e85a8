//! What the stages of one query share.

use crate::code::{HandlerReply, History, Watch};
use crate::deferral::{Deferral, To};
use crate::epilogue::OPT_BYTES_MAX;
use crate::hot::{Hit, HotAnswers, Rotation};
use crate::message::{Now, Peer};
use crate::reason::Reason;
use crate::resumption::Resumption;
use crate::snapshot::Snapshot;
use crate::zones::ZoneMatch;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use zonda_wire::name::NAME_BYTES_MAX;
use zonda_wire::tsig::UnknownKey;
use zonda_wire::{Ede, Query, Rcode, Reply};
use zonda_zone::{HashSeed, LookupName};

/// Most CNAME and DNAME records that are followed for one query; a longer chain is answered as far
/// as it was followed. Ours to choose: resolvers go on by themselves, and stop at 8 to 16.
pub const CHAIN_MAX: usize = 16;

/// Octets of the longest body of a kept answer.
const BODY_BYTES_MAX: usize = u16::MAX as usize;

/// One query on its way through the plan.
pub struct Context<'a> {
    /// The time.
    pub now: Now,
    /// When the query was received; nanoseconds of the monotonic clock.
    pub received_nanos: u64,
    /// Who asks.
    pub peer: &'a Peer,
    /// What is asked.
    pub query: &'a Query,
    /// The name asked for; the root when there is no question.
    pub name: &'a LookupName,
    /// The zone that holds the name.
    pub zone: Option<ZoneMatch>,
    /// The label of the name at which the owner of what answers begins: a wildcard's closest
    /// encloser, a DNAME; 0 where the name itself does.
    pub answering_label: u8,
    /// What to answer from.
    pub snapshot: &'a Snapshot,
    /// The reply under way.
    pub reply: Reply<'a>,
    /// Flags of the reply besides those that every reply has.
    pub flags: u16,
    /// The cookie to send, client's and server's part (rfc7873#4).
    pub cookie: Option<[u8; 24]>,
    /// The client has shown that it receives what we send to its address.
    pub address_proven: bool,
    /// The worker's own state.
    pub worker: &'a mut Worker,
    /// Answers given before.
    pub hot: &'a mut HotAnswers,
    /// The one of them that answers this query.
    pub hit: Option<Hit>,
    /// Whether the answer is the same for every client that asks the same, so that it may be kept.
    pub keep: bool,
    /// How the answer rotates.
    pub rotation: Rotation,
    /// How far it has come.
    pub resumption: Resumption<'a>,
    /// What is known of it from before it was deferred.
    pub history: Option<&'a History>,
    /// The extended error, where it is not the one that goes with the reason.
    pub ede: Option<Ede>,
    /// Octets at the start of [`Worker::body`] that say in words why there is no answer.
    pub text_bytes: usize,
}

/// Which record of a set comes first, as a fraction of 2³² of the set.
#[derive(Default)]
pub struct Turn(u32);

impl Turn {
    /// The first of `count` records this time. Steps of the golden ratio reach all records evenly,
    /// also where other sets take every second or third turn.
    #[inline]
    pub fn next(&mut self, count: u16) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        ((u64::from(self.0) * u64::from(count)) >> 32) as usize
    }
}

/// State of a worker that outlives a query.
pub struct Worker {
    /// The names of a chain of CNAME and DNAME records.
    pub chain: AliasChain,
    /// A name being put together or looked up beside the chain.
    pub scratch: Box<LookupName>,
    /// The target of an alias, written out.
    pub target: Vec<u8>,
    /// The message that a kept answer is from, where it must be read before it is given.
    pub message: Vec<u8>,
    /// What must be fetched for a query that is deferred; kept here, as a verdict that held it
    /// would no longer fit into registers.
    pub deferral: Deferral,
    /// What code in the worker wants to become of a query.
    pub draft: HandlerReply,
    /// Which code is called at the moment.
    pub watch: Arc<Watch>,
    /// An OPT record under way.
    pub opt: [u8; OPT_BYTES_MAX],
    /// The TSIG record of the reply to a query that is signed.
    pub unknown_key: UnknownKey,
    /// The nodes whose proofs the reply has, so that none is written twice.
    pub proven: Proven,
    /// The body of a kept answer, before it is known to be whole and fresh: a reply must not be
    /// written over a query that may still have to be deferred.
    pub body: Box<[u8]>,
    /// Where the last answer that rotates began.
    pub turn: Turn,
    /// Raised with every reply over the rate limit.
    pub slip: u32,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            chain: AliasChain::default(),
            scratch: Box::default(),
            target: Vec::with_capacity(NAME_BYTES_MAX),
            message: Vec::new(),
            deferral: Deferral::new(To::Forward(0), 0),
            draft: HandlerReply::default(),
            watch: Arc::default(),
            opt: [0; OPT_BYTES_MAX],
            unknown_key: UnknownKey::default(),
            proven: Proven::default(),
            body: vec![0; BODY_BYTES_MAX].into(), // not touched before it is used
            turn: Turn::default(),
            slip: 0,
        }
    }
}

/// The names of a chain of aliases, at most [`CHAIN_MAX`]. Its length is that of the longest
/// chain so far; the rest of its capacity is reserved, and not touched.
pub struct AliasChain(Vec<LookupName>);

impl Default for AliasChain {
    fn default() -> Self {
        Self(Vec::with_capacity(CHAIN_MAX))
    }
}

impl Deref for AliasChain {
    type Target = [LookupName];

    #[inline]
    fn deref(&self) -> &[LookupName] {
        &self.0
    }
}

impl AliasChain {
    /// Makes the name in wire form, of any case, the chain's at `link`, which is below
    /// [`CHAIN_MAX`].
    pub fn set(&mut self, link: usize, wire: &[u8], seed: HashSeed) {
        debug_assert!(link < CHAIN_MAX, "link {link}");
        if self.0.len() <= link {
            self.0.resize_with(link + 1, LookupName::default); // within the capacity
        }
        self.0[link].set(wire, seed);
    }
}

/// Most records that prove what is not there, in one reply: one for each wildcard of a chain, and
/// three for its end.
const PROOFS_MAX: usize = CHAIN_MAX + 3;

/// Nodes that the proofs of a reply are from, by their address, as zones number theirs alike.
#[derive(Default)]
pub struct Proven {
    nodes: [usize; PROOFS_MAX],
    count: usize,
}

impl Proven {
    /// Forgets all nodes.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a node; whether it was not there yet.
    pub fn insert(&mut self, node: usize) -> bool {
        let is_new = !self.nodes[..self.count].contains(&node);
        if is_new && self.count < PROOFS_MAX {
            self.nodes[self.count] = node;
            self.count += 1;
        }
        is_new
    }
}

/// How a query ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The reply is sent with this response code.
    Reply(Rcode, Reason),
    /// Nothing is sent.
    Drop(Reason),
    /// What [`Worker::deferral`] says must be fetched. Nothing was written yet.
    Defer,
}

/// What a stage does: end the query, or leave it to the next one.
pub type Flow = ControlFlow<Verdict>;

/// Ends a query with a reply.
#[inline]
pub fn reply(rcode: Rcode, reason: Reason) -> Flow {
    ControlFlow::Break(Verdict::Reply(rcode, reason))
}
