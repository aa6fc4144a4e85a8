//! Addresses that ALIAS records stand for, looked up without a client's query, to keep
//! the answer cache fresh.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::checkpoint::Checkpoint;
use crate::deferral::{To, UpstreamAnswer};
use crate::message::{Now, Peer};
use crate::option_codes::OptionCodes;
use crate::reason::Reason;
use crate::resumption::{Progress, Resumption};
use crate::snapshot::Snapshot;
use crate::source::data;
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::zones::{Source, ZoneEntry};
use zonda_wire::query::flag;
use zonda_wire::{Class, Places, Query, Rcode, Reply, Section, Type};
use zonda_zone::{LookupName, Start};

/// Octets of the longest message.
const MESSAGE_MAX: usize = u16::MAX as usize;

/// What is known of the addresses that an ALIAS record stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AliasAddresses {
    /// These addresses, as record data, for so many seconds.
    Found(Vec<Box<[u8]>>, u32),
    /// The target has none of the type, for so many seconds.
    None(u32),
    /// The addresses cannot be had.
    Failed(Reason),
    /// Upstreams are to be asked: nothing is known, or what is known is to be replaced.
    Due(AliasQuestion),
}

/// A question for addresses that an ALIAS record leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasQuestion {
    /// The number of the [`Forward`](crate::zones::Forward) whose upstreams are asked.
    pub forward: u32,
    /// The name in wire form and lower case.
    pub name: Box<[u8]>,
    /// The hash of the name.
    pub name_hash: u64,
    /// The type, A or AAAA.
    pub qtype: Type,
}

/// Looks addresses up that ALIAS records stand for, as a client's query does, but past all gates:
/// it is not counted. Has the buffers for that, 128 KiB that are touched as they are needed.
#[derive(Default)]
pub struct AliasLookup {
    worker: Worker,
    places: Places,
    buffer: Vec<u8>,
}

impl AliasLookup {
    /// Looks up the addresses of a name, in wire form and lower case, that has an ALIAS record in a
    /// zone with data, on behalf of a client.
    pub fn look_up(
        &mut self,
        zone: (&Snapshot, &ZoneEntry),
        question: (&[u8], Type),
        client: (Now, &Peer),
    ) -> AliasAddresses {
        self.look_up_after(&Progress::NEW, zone, question, client)
    }

    /// Looks up addresses as [`look_up`](Self::look_up) does, but for no upstream to be asked: what
    /// the answer cache has is taken, also if it is stale, and else the look-up has failed.
    pub fn look_up_known(
        &mut self,
        zone: (&Snapshot, &ZoneEntry),
        question: (&[u8], Type),
        client: (Now, &Peer),
    ) -> AliasAddresses {
        // Upstreams have failed for another name, the root, so that the query does not wait.
        let failure = UpstreamAnswer {
            name: &[0],
            rcode: Rcode::SERVFAIL,
            counts: [0; 3],
            body: &[],
            is_authentic: false,
            goes_on: false,
            reason: Reason::UpstreamFailed,
            text: &[],
        };
        let progress = Progress { resumption: Resumption::Upstream(&failure), ..Progress::NEW };
        self.look_up_after(&progress, zone, question, client)
    }

    /// Looks up addresses as a query does that has come so far.
    fn look_up_after(
        &mut self,
        progress: &Progress<'_>,
        (snapshot, entry): (&Snapshot, &ZoneEntry),
        (owner, qtype): (&[u8], Type),
        (now, peer): (Now, &Peer),
    ) -> AliasAddresses {
        let failed = AliasAddresses::Failed(Reason::ZoneUnavailable);
        let Source::Data(zone) = &entry.source else { return failed };
        let header = [0, flag::RD, 1, 0, 0, 0];
        self.buffer.clear();
        self.buffer.extend(header.iter().flat_map(|word| word.to_be_bytes()));
        self.buffer.extend_from_slice(owner);
        self.buffer.extend([qtype.0, Class::IN.0].iter().flat_map(|word| word.to_be_bytes()));
        let Ok(query) = Query::parse(&self.buffer) else { return failed };
        self.buffer.resize(MESSAGE_MAX, 0);
        let ask = Ask {
            now,
            peer,
            query: &query,
            client_subnet: None,
            option_codes: OptionCodes::default(),
            signature: None,
            name: &LookupName::new(owner, snapshot.zones.seed()),
            zone: Some(entry),
            start: &Start::NONE,
            snapshot,
            hit: None,
            progress,
        };
        let reply = Reply::new(&mut self.buffer, &query, MESSAGE_MAX, &mut self.places);
        let mut answer = Answer::new(reply, true);
        match data::answer(&ask, &mut answer, &mut self.worker, zone) {
            Verdict::Reply(Rcode::NOERROR, ..) => found(&answer, qtype),
            Verdict::Reply(_, reason, _) | Verdict::Drop(reason) => AliasAddresses::Failed(reason),
            Verdict::Defer => due(&self.worker, qtype).unwrap_or(failed),
            Verdict::Transfer | Verdict::GoesOn(_) => failed,
        }
    }
}

/// The addresses in an answer.
fn found(answer: &Answer<'_>, qtype: Type) -> AliasAddresses {
    let (mut addresses, mut ttl, mut ttl_of_all) = (Vec::new(), u32::MAX, u32::MAX);
    for record in answer.reply.records() {
        ttl_of_all = ttl_of_all.min(record.ttl);
        if record.section == Section::Answer && record.rtype == qtype {
            ttl = ttl.min(record.ttl);
            addresses.push(record.raw.into());
        }
    }
    if addresses.is_empty() {
        AliasAddresses::None(ttl_of_all)
    } else {
        AliasAddresses::Found(addresses, ttl)
    }
}

/// What a worker has noted that upstreams are to be asked.
fn due(worker: &Worker, qtype: Type) -> Option<AliasAddresses> {
    let deferral = &worker.deferral;
    let To::Forward(forward) = deferral.to else { return None };
    let name = deferral.history.checkpoint.as_ref().and_then(Checkpoint::target)?.into();
    let name_hash = deferral.name_hash;
    Some(AliasAddresses::Due(AliasQuestion { forward, name, name_hash, qtype }))
}
