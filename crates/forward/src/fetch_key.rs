//! What is asked for, apart from the client that asks.

use zonda_engine::ClientFacts;
use zonda_upstream::Question;
use zonda_wire::query::flag;
use zonda_wire::{Class, Query, Type};

/// The key of a fetch, which is equal for clients that can share its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchKey {
    /// The number of the group that is asked.
    pub group: u32,
    /// The name, in wire form and lower case.
    pub name: Box<[u8]>,
    /// The type that is asked for.
    pub qtype: Type,
    /// The client takes DNSSEC records.
    pub dnssec_ok: bool,
    /// The client takes what was not validated.
    pub checking_disabled: bool,
    /// What the upstreams are told of the client.
    pub facts: ClientFacts,
}

impl FetchKey {
    /// Makes the key for a query about a name, in wire form, of the upstreams of a group, which are
    /// told so much of the client.
    pub fn new((group, facts): (u32, ClientFacts), query: &Query, name: &[u8]) -> Self {
        Self {
            group,
            name: name.to_ascii_lowercase().into(),
            qtype: query.qtype,
            dnssec_ok: query.dnssec_ok(),
            checking_disabled: query.flags & flag::CD != 0,
            facts,
        }
    }

    /// The same key as it is for addresses that an ALIAS record leads to: they are asked for in one
    /// form, whatever the client's query has.
    pub fn for_alias_record(self) -> Self {
        let facts = ClientFacts::NONE;
        Self { dnssec_ok: false, checking_disabled: false, facts, ..self }
    }

    /// Returns the question in the form in which upstreams are asked.
    pub fn question(&self) -> Question<'_> {
        Question {
            name: &self.name,
            qtype: self.qtype,
            qclass: Class::IN,
            dnssec_ok: self.dnssec_ok,
            checking_disabled: self.checking_disabled,
        }
    }

    /// A number that another key has only by accident; `hash` is that of the name.
    pub fn number(&self, hash: u64) -> u64 {
        let flags = u64::from(self.dnssec_ok) << 1 | u64::from(self.checking_disabled);
        let kind = u64::from(self.group) << 18 | u64::from(self.qtype.0) << 2 | flags;
        // Odd: kinds that differ stay different.
        hash ^ self.facts.hash() ^ kind.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Under which the answer is kept; `hash` is that of the name.
    pub fn cache_key(&self, hash: u64) -> zonda_cache::Key<'_> {
        zonda_cache::Key {
            name: &self.name,
            hash,
            qtype: self.qtype,
            qclass: Class::IN,
            source: self.group,
            dnssec_ok: self.dnssec_ok,
            checking_disabled: self.checking_disabled,
            variant: self.facts.variant(),
        }
    }
}
