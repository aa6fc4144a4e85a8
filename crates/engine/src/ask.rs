//! What is asked, and by which client: what no gate and no source changes.

use crate::hot::Hit;
use crate::message::{Now, Peer};
use crate::option_codes::OptionCodes;
use crate::resumption::Progress;
use crate::snapshot::Snapshot;
use crate::upstream_options::ClientFacts;
use crate::zones::{Forward, ZoneEntry};
use zonda_wire::tsig::QuerySignature;
use zonda_wire::{Opcode, Query, SubnetOption, Type, name};
use zonda_zone::{LookupName, Start};

/// A query on its way through the plan.
pub struct Ask<'a> {
    /// The time at which the query is processed.
    pub now: Now,
    /// The client that asks, and how its message came.
    pub peer: &'a Peer,
    /// The question, and what else the message says.
    pub query: &'a Query,
    /// The network that the query is asked for, as its option tells it, if the sender of that is
    /// believed (rfc7871).
    pub client_subnet: Option<SubnetOption>,
    /// The codes among the query's options on which options of queries to upstreams depend.
    pub option_codes: OptionCodes,
    /// The signature of the query, if it has one that was checked (rfc8945).
    pub signature: Option<&'a QuerySignature>,
    /// The name asked for, in lower case; the root when there is no question.
    pub name: &'a LookupName,
    /// The zone that holds the name, if one does.
    pub zone: Option<&'a ZoneEntry>,
    /// Where the look-up of the name in the zone's data begins.
    pub start: &'a Start<'a>,
    /// The zones, code and settings to answer from.
    pub snapshot: &'a Snapshot,
    /// The hot entry that answers the question, if there is one.
    pub hit: Option<&'a Hit>,
    /// How far the query has come before.
    pub progress: &'a Progress<'a>,
}

impl Ask<'_> {
    /// Whether the client wants DNSSEC records.
    #[inline]
    pub fn dnssec_ok(&self) -> bool {
        self.query.dnssec_ok()
    }

    /// The type of the records that the client asks for; none of a message that does not ask.
    #[inline]
    pub fn question_type(&self) -> Option<Type> {
        (self.query.opcode() == Opcode::QUERY).then_some(self.query.qtype)
    }

    /// Whether the client asks for the reason of the answer, and may be told it.
    #[inline]
    pub fn wants_reason(&self) -> bool {
        self.query.edns.is_some_and(|edns| edns.reason) && self.may_be_told_reasons()
    }

    /// Whether the client may be told the reasons of answers.
    #[cold]
    fn may_be_told_reasons(&self) -> bool {
        let address = self.peer.address.ip();
        self.snapshot.settings.reasons_to.iter().any(|network| network.contains(address))
    }

    /// How many labels of the name stand in front of its zone's apex; all of them if no zone holds
    /// it.
    pub fn labels_below_apex(&self) -> usize {
        let apex = self.zone.map_or(&[0][..], |zone| zone.apex.as_wire());
        self.name.label_count() - name::labels(apex).count()
    }

    /// What the upstreams of a zone are told of the client.
    #[inline]
    pub fn facts_for(&self, forward: &Forward) -> ClientFacts {
        match &forward.options {
            None => ClientFacts::NONE,
            Some(options) => {
                let seed = self.snapshot.zones.seed();
                options.facts(&self.peer.into(), &self.option_codes, seed)
            }
        }
    }

    /// When the query was received; nanoseconds of the monotonic clock.
    #[inline]
    pub fn received_nanos(&self) -> u64 {
        self.progress.history.map_or(self.now.monotonic_nanos, |history| history.received_nanos)
    }
}
