//! The network that a query is asked for, and what the reply says of it (rfc7871).
//!
//! A resolver tells the network of its client in an option of the query. Where the resolver is
//! believed, sources may answer by that network, and the reply repeats the option with a scope: the
//! number of the network's first bits that the answer depends on, by which the resolver caches it.

use crate::access::Access;
use crate::answer_facts::AnswerBelow;
use crate::ask::Ask;
use crate::code::HandlerReply;
use crate::deferral::Deferral;
use crate::message::Peer;
use crate::resumption::{HandlerOutcome, Progress, Resumption};
use crate::snapshot::Settings;
use std::net::IpAddr;
use zonda_wire::{Query, SubnetOption};

/// Returns the client-subnet option of a query, if its sender is believed.
#[inline]
pub fn believed(
    query: &Query,
    message: &[u8],
    settings: &Settings,
    peer: &Peer,
) -> Option<SubnetOption> {
    match &query.edns {
        Some(edns) if edns.subnet_at > 0 => read(query, message, settings, peer),
        _ => None,
    }
}

/// Reads the option of a query that has one. That of another version of EDNS may mean something
/// else (rfc6891#6.1.3).
#[cold]
fn read(query: &Query, message: &[u8], settings: &Settings, peer: &Peer) -> Option<SubnetOption> {
    let resolvers = settings.client_subnet.as_ref()?;
    let is_believed = query.edns.is_some_and(|edns| edns.version == 0)
        && resolvers.check(peer.address.ip(), None, None) == Access::Allow;
    is_believed.then(|| query.subnet_option(message)).flatten()
}

impl Ask<'_> {
    /// Returns the network to choose an answer for: an address, and how many of its first bits are
    /// known. That is what the query tells, if it tells one and its sender is believed, else the
    /// whole address that the query has come from. A source that calls this has to
    /// [tell](crate::answer::Answer::set_scope) how many bits counted.
    #[must_use]
    pub fn client_network(&self) -> (IpAddr, u8) {
        match self.client_subnet.and_then(|option| option.network()) {
            Some(network) => (network.address, network.prefix_len),
            None => match self.peer.address.ip().to_canonical() {
                IpAddr::V4(address) => (address.into(), 32),
                IpAddr::V6(address) => (address.into(), 128),
            },
        }
    }

    /// Returns how many bits of the client's network the query tells: the scope of a reply whose
    /// code has looked at the client and does not say at how much of it.
    pub(crate) fn told_bits(&self) -> u8 {
        told_bits(self.client_subnet)
    }
}

/// Returns how many bits of the client's network an option tells.
fn told_bits(option: Option<SubnetOption>) -> u8 {
    option.and_then(|option| option.network()).map_or(0, |network| network.prefix_len)
}

impl Progress<'_> {
    /// Returns the number of bits of the client's network at which code has looked that the query
    /// has passed before.
    #[inline]
    pub(crate) fn code_scope(&self, client_subnet: Option<SubnetOption>) -> u8 {
        let Some(history) = self.history else { return 0 };
        match self.resumption {
            Resumption::Code(HandlerOutcome::Reply(filled)) => {
                history.code_scope.max(filled.scope_of(told_bits(client_subnet)))
            }
            _ => history.code_scope,
        }
    }
}

impl Deferral {
    /// Notes that code is shown an answer to the query: as many bits of the client's network count
    /// for the reply as for that answer.
    pub fn note_below(&mut self, below: &AnswerBelow) {
        let bits = below.facts().map_or(0, |facts| facts.bits_looked_at);
        self.history.code_scope = self.history.code_scope.max(bits);
    }

    /// Notes at how much of the client's network code has looked that leaves the query, whose kept
    /// octets are given, to the answer that it was shown, and the tags that it has added.
    pub fn note_code(&mut self, octets: &[u8], reply: &HandlerReply) {
        let bits = reply.scope_of(told_bits(self.query.subnet_option(octets)));
        self.history.code_scope = self.history.code_scope.max(bits);
        self.history.tags.extend(&reply.tags);
    }
}
