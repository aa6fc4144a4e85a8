//! State of a worker that outlives a query.

use crate::code::{HandlerReply, NO_TAGS, QueryState, Tags, Watch};
use crate::deferral::{Deferral, To};
use crate::hot::HotTable;
use crate::opt::OPT_BYTES_MAX;
use crate::target_memory::TargetMemory;
use crate::transfer::Transfer;
use std::ops::Deref;
use std::sync::Arc;
use zonda_balance::Dice;
use zonda_rewrite::Revert;
use zonda_wire::name::NAME_BYTES_MAX;
use zonda_wire::tsig::SignatureRecord;
use zonda_zone::{HashSeed, LookupName};

/// Most CNAME and DNAME records that are followed for one query; a longer chain is answered as far
/// as it was followed. No RFC sets it: resolvers go on by themselves, and stop at 8 to 16.
pub const CHAIN_MAX: usize = 16;

/// Octets of the longest body of a cached answer.
const BODY_BYTES_MAX: usize = u16::MAX as usize;

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
    /// A name that is looked up beside the chain.
    pub scratch: Box<LookupName>,
    /// The target of an alias, written out.
    pub target: Vec<u8>,
    /// The message that a cached answer is from, where it must be read before it is given.
    pub message: Vec<u8>,
    /// The owner of a record of that message, written out.
    pub owner: Vec<u8>,
    /// The data of a record of that message, written out.
    pub rdata: Vec<u8>,
    /// The deferral of a query that must wait; kept here, as a verdict that held it would not fit
    /// into registers.
    pub deferral: Deferral,
    /// The reply that code in the worker fills in, and what code has noted about the query; taken
    /// while code runs, by [`Worker::take_handler_reply`]. The reply itself is never moved.
    pub handler_reply: Option<Box<HandlerReply>>,
    /// The query of a reply that aliases lead on, as it was before one was written over it: only
    /// where there is code.
    pub kept_query: Vec<u8>,
    /// Memory for replies behind whose aliases code answers, once there was one.
    pub target_memory: Option<Box<TargetMemory>>,
    /// The places of the guards that a query passes.
    pub guards: Vec<usize>,
    /// The code that is called at the moment.
    pub watch: Arc<Watch>,
    /// The octets of an OPT record under way.
    pub opt: [u8; OPT_BYTES_MAX],
    /// The TSIG record of a query, or of a reply that is not signed.
    pub signature_record: SignatureRecord,
    /// The transfer that a query has begun.
    pub transfer: Option<Box<Transfer>>,
    /// Whether no connection takes the messages of transfers, so that none begins.
    pub refuses_transfers: bool,
    /// The nodes whose proofs the reply has, so that none is written twice.
    pub proven: ProvenNodes,
    /// The body of a cached answer, before it is known to be whole and fresh: a reply must not be
    /// written over a query that may still have to be deferred. Also the text of an extended error.
    pub body: Box<[u8]>,
    /// Where the last answer that rotates began.
    pub turn: Turn,
    /// The random numbers by which members of pools are chosen.
    pub dice: Dice,
    /// The number of replies over the rate limit, which wraps.
    pub slip: u32,
    /// Memory for replies whose questions rules have changed.
    pub revert: Revert,
    /// The worker's own replies that were asked for repeatedly.
    pub hot: HotTable,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            chain: AliasChain::default(),
            scratch: Box::default(),
            target: Vec::with_capacity(NAME_BYTES_MAX),
            message: Vec::new(),
            owner: Vec::new(),
            rdata: Vec::new(),
            deferral: Deferral::new(To::Forward(0), 0),
            handler_reply: Some(Box::default()),
            kept_query: Vec::new(),
            target_memory: None,
            guards: Vec::new(),
            watch: Arc::default(),
            opt: [0; OPT_BYTES_MAX],
            signature_record: SignatureRecord::default(),
            transfer: None,
            refuses_transfers: false,
            proven: ProvenNodes::default(),
            body: vec![0; BODY_BYTES_MAX].into(), // not touched before it is used
            turn: Turn::default(),
            dice: Dice::default(),
            slip: 0,
            revert: Revert::default(),
            hot: HotTable::default(),
        }
    }
}

impl Worker {
    /// Takes the reply that code fills in, which [`Worker::put_handler_reply`] gives back.
    #[inline]
    pub fn take_handler_reply(&mut self) -> Box<HandlerReply> {
        self.handler_reply.take().unwrap_or_default()
    }

    /// Gives back the reply that code has filled in.
    #[inline]
    pub fn put_handler_reply(&mut self, filled: Box<HandlerReply>) {
        self.handler_reply = Some(filled);
    }

    /// The tags that code has added to the query; none while the reply is taken.
    #[inline]
    pub fn tags(&self) -> &Tags {
        self.handler_reply.as_ref().map_or(&NO_TAGS, |filled| &filled.tags)
    }

    /// Forgets the tags of the query, and the values that code has left with it.
    #[inline]
    pub fn clear_notes(&mut self) {
        if let Some(filled) = &mut self.handler_reply {
            filled.tags.clear();
            filled.state.clear();
        }
    }

    /// The values that code has left with the query, to change them.
    #[inline]
    pub fn query_state_mut(&mut self) -> &mut QueryState {
        &mut self.handler_reply.get_or_insert_default().state
    }

    /// The tags that code has added to the query, to change them.
    #[inline]
    pub fn tags_mut(&mut self) -> &mut Tags {
        &mut self.handler_reply.get_or_insert_default().tags
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
    /// The name at a hop: the one asked for, or the target of the alias number `hop`.
    #[inline]
    pub fn name_at<'n>(&'n self, hop: usize, asked: &'n LookupName) -> &'n LookupName {
        if hop == 0 { asked } else { &self.0[hop - 1] }
    }

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
pub struct ProvenNodes {
    nodes: [usize; PROOFS_MAX],
    count: usize,
}

impl ProvenNodes {
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
