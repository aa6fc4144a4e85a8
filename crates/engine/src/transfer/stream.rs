//! A transfer under way: its messages, made one at a time.

use super::content::{Content, ExpandedZone, WholeZoneReason};
use super::error::TransferError;
use super::expansion::Expansion;
use super::history::ZoneHistory;
use super::state::{RunningTransfer, Slot};
use crate::ask::Ask;
use crate::message::{Now, Peer};
use crate::zones::ClusterZone;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use zonda_wire::query::flag;
use zonda_wire::tsig::StreamSigner;
use zonda_wire::{Name, StreamWriter, Type};
use zonda_zone::{RecordCursor, Zone};

/// A transfer under way. It holds the version of the zone that it began with, and one message.
pub struct Transfer {
    /// The name of the zone.
    apex: Name,
    /// The version of the zone that is sent; until the first message, of a cluster's zone only its
    /// own data.
    zone: Arc<Zone>,
    /// The names of the cluster that the zone is made of, until the first message is made.
    cluster: Option<Arc<ClusterZone>>,
    /// The client, which asks over TCP, and the listener that it has asked.
    peer: Peer,
    /// The type that the client asked for, AXFR or IXFR.
    qtype: Type,
    /// The id of the messages.
    id: [u8; 2],
    /// The flags of the messages.
    flags: u16,
    /// The question with the class, which the first message repeats.
    question: Box<[u8]>,
    /// The size of UDP messages and whether DNSSEC records are wanted, if the client sent OPT.
    edns: Option<(u16, bool)>,
    /// The seconds until the zone expires, if the client asked for them.
    expire_secs: Option<u32>,
    /// Writes the messages.
    writer: StreamWriter,
    /// Signs the messages, if the query was signed.
    signer: Option<StreamSigner>,
    /// The addresses that are sent in place of ALIAS records, until the first message is made.
    expansion: Option<Box<Expansion>>,
    /// The serial of the client, if it has asked for changes.
    from: Option<u32>,
    /// The history of the zone, until the first message is made.
    history: Option<Arc<ZoneHistory>>,
    /// Why the whole zone is sent where changes were asked for.
    fallback: Option<WholeZoneReason>,
    /// The records between the first and the last SOA record.
    content: Content,
    /// What the next message begins with.
    phase: Phase,
    /// When the transfer began, nanoseconds of the monotonic clock.
    began_nanos: u64,
    /// When it has to be whole.
    ends_nanos: u64,
    /// Messages so far.
    messages: u64,
    /// Octets of these messages.
    octets: u64,
    /// Records in these messages.
    records: u64,
    /// The place among all transfers.
    slot: Slot,
}

/// How far a transfer has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was sent.
    First,
    /// The SOA record was sent, and perhaps more records.
    Records,
    /// All but the last SOA record was sent.
    Last,
    /// All messages were made.
    Done,
}

impl Transfer {
    /// The transfer of a zone to the client that asks in `query`, and has the version with the
    /// serial `from` if it asks for changes.
    pub(super) fn new(
        ask: &Ask<'_>,
        query: &[u8],
        (apex, zone): (Name, Arc<Zone>),
        (signer, from): (Option<StreamSigner>, Option<u32>),
        mut slot: Slot,
    ) -> Self {
        /// Octets of an OPT record with the option EXPIRE.
        const OPT_BYTES: usize = 11 + 8;
        let settings = &ask.snapshot.settings;
        let reserved = OPT_BYTES + signer.as_ref().map_or(0, StreamSigner::record_bytes);
        let time_max = u64::try_from(settings.transfers.time_max.as_nanos()).unwrap_or(u64::MAX);
        let began_nanos = ask.now.monotonic_nanos;
        let question = query.get(12..ask.query.question_end()).unwrap_or_default();
        slot.list(RunningTransfer {
            apex: apex.clone(),
            from,
            serial: zone.serial(),
            peer: ask.peer.address,
            key: signer.as_ref().map(|signer| signer.key().name().clone()),
            qtype: ask.query.qtype,
            began_nanos,
            is_changes: AtomicBool::default(),
            messages: AtomicU64::default(),
            octets: AtomicU64::default(),
            records: AtomicU64::default(),
        });
        Self {
            apex,
            zone,
            cluster: None,
            peer: *ask.peer,
            qtype: ask.query.qtype,
            id: query.first_chunk().copied().unwrap_or_default(),
            flags: flag::QR | flag::AA | ask.query.flags & flag::RD,
            question: question.into(),
            edns: ask.query.edns.map(|edns| (settings.udp_bytes_max, edns.dnssec_ok)),
            expire_secs: ask
                .zone
                .filter(|_| ask.query.edns.is_some_and(|edns| edns.expire))
                .and_then(|zone| zone.expire_secs(ask.now.unix_secs)),
            writer: StreamWriter::new(reserved),
            signer,
            expansion: None,
            from,
            history: None,
            fallback: None,
            content: Content::Zone(RecordCursor::default()),
            phase: Phase::First,
            began_nanos,
            ends_nanos: began_nanos.saturating_add(time_max),
            messages: 0,
            octets: 0,
            records: 0,
            slot,
        }
    }

    /// The same transfer of what changed since the version of the client, if there is a history
    /// that reaches back to it and the whole zone is not shorter.
    pub(super) fn with_changes(
        mut self,
        history: Result<Arc<ZoneHistory>, WholeZoneReason>,
    ) -> Self {
        match history {
            Ok(history) => self.history = Some(history),
            Err(reason) => self.fallback = Some(reason),
        }
        self
    }

    /// The same transfer of a zone that has the names of a cluster, if it has any.
    pub(super) fn with_cluster(mut self, cluster: Option<Arc<ClusterZone>>) -> Self {
        self.cluster = cluster;
        self
    }

    /// The same transfer with addresses in place of ALIAS records, if `expands`; they have to be
    /// [looked up](crate::AliasLookup::expand) before the first message.
    pub(super) fn with_expansion(mut self, expands: bool) -> Self {
        self.expansion = expands.then(Box::default);
        self
    }

    /// Returns the version of the zone that is sent, and the addresses that are to be looked up
    /// before the first message, if any are.
    pub(crate) fn expansion(&mut self) -> Option<(&Arc<Zone>, &mut Expansion)> {
        self.expansion.as_deref_mut().map(|expansion| (&self.zone, expansion))
    }

    /// Whether addresses are to be [looked up](crate::AliasLookup::expand) before the first
    /// message.
    #[must_use]
    pub fn needs_addresses(&self) -> bool {
        self.expansion.as_deref().is_some_and(|expansion| !expansion.is_complete())
    }

    /// Makes the records of the names of a cluster, which takes as long as to load a zone. Not in
    /// [`new`](Self::new), where an engine waits.
    fn make_records(&mut self) -> Result<(), TransferError> {
        if let Some(cluster) = self.cluster.take() {
            self.zone = Arc::new(cluster.whole().map_err(|_| TransferError::TooMany)?);
        }
        Ok(())
    }

    /// Decides whether changes are sent. Not in [`new`](Self::new), where an engine waits.
    fn choose_content(&mut self) {
        if let Some(expansion) = self.expansion.take() {
            self.content = Content::Expanded(Box::new(ExpandedZone::new(expansion.into_sets())));
            return;
        }
        let Some((history, from)) = self.history.take().zip(self.from) else { return };
        let Some(diffs) = history.since(from, self.zone.serial()) else {
            self.fallback = Some(WholeZoneReason::HistoryTooShort);
            return;
        };
        self.content = Content::of(diffs, &self.zone);
        match self.content.is_changes() {
            true => self.slot.note_changes(),
            false => self.fallback = Some(WholeZoneReason::ZoneIsShorter),
        }
    }

    /// Appends the next message, behind its length, to `output`; false if there is none, and the
    /// client has all.
    ///
    /// # Errors
    /// When the transfer cannot go on; the connection is to be closed then.
    pub fn next(&mut self, now: Now, output: &mut Vec<u8>) -> Result<bool, TransferError> {
        if self.phase == Phase::Done {
            self.slot.complete();
            return Ok(false);
        }
        if now.monotonic_nanos > self.ends_nanos {
            return Err(TransferError::TimeOut);
        }
        let is_first = self.phase == Phase::First;
        if is_first {
            debug_assert!(!self.needs_addresses(), "the connection looks them up first");
            self.make_records()?;
            self.choose_content();
        }
        self.writer.begin(self.id, self.flags, is_first.then_some(&*self.question));
        let before = self.records;
        self.fill()?;
        if let (true, Some((udp_bytes, dnssec_ok))) = (is_first, self.edns) {
            self.writer.opt(udp_bytes, dnssec_ok, self.expire_secs);
        }
        let message = self.writer.finish();
        if let Some(signer) = &mut self.signer {
            let len = message.len();
            message.resize(len + signer.record_bytes(), 0);
            let signed = signer.sign(message, len, now.unix_secs.into());
            message.truncate(signed.unwrap_or(len));
        }
        output.extend_from_slice(&(message.len() as u16).to_be_bytes()); // the writer bounds it
        output.extend_from_slice(message);
        self.slot.note_message(message.len(), self.records - before);
        (self.messages, self.octets) = (self.messages + 1, self.octets + message.len() as u64);
        Ok(true)
    }

    /// Adds records to a message until it is full or all were sent.
    fn fill(&mut self) -> Result<(), TransferError> {
        if self.phase == Phase::First {
            self.write_soa()?;
            self.phase = Phase::Records;
        }
        if self.phase == Phase::Records {
            let written = self.content.write(&self.zone, &mut self.writer, &mut self.records);
            if let Err(refused) = written {
                let has_any = !self.writer.is_empty();
                return if has_any { Ok(()) } else { Err(TransferError::TooLarge(refused)) };
            }
            self.phase = Phase::Last;
        }
        match self.write_soa() {
            Ok(()) => self.phase = Phase::Done,
            Err(_) if !self.writer.is_empty() => {} // the next message has it
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Adds the SOA record.
    fn write_soa(&mut self) -> Result<(), TransferError> {
        let (soa, _) = self.zone.soa();
        let written = self.writer.record(self.apex.as_wire(), (Type::SOA, soa.ttl), soa.first());
        written.map_err(|_| TransferError::TooLarge(Type::SOA))?;
        self.records += 1;
        Ok(())
    }

    /// Whether all messages were made; the client may not have them yet.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns the name of the zone.
    #[must_use]
    pub fn apex(&self) -> &Name {
        &self.apex
    }

    /// Returns the serial of the version that the client has, if it has asked for changes.
    #[must_use]
    pub fn from(&self) -> Option<u32> {
        self.from
    }

    /// Returns why the whole zone is sent where changes were asked for.
    #[must_use]
    pub fn fallback(&self) -> Option<WholeZoneReason> {
        self.fallback
    }

    /// Returns the serial of the version that is sent.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.zone.serial()
    }

    /// Returns the client.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns the type that the client asked for, AXFR or IXFR.
    #[must_use]
    pub fn qtype(&self) -> Type {
        self.qtype
    }

    /// Whether changes are sent instead of the whole zone.
    #[must_use]
    pub fn is_changes(&self) -> bool {
        self.content.is_changes()
    }

    /// Returns the name of the key that the messages are signed with.
    #[must_use]
    pub fn key(&self) -> Option<&Name> {
        self.signer.as_ref().map(|signer| signer.key().name())
    }

    /// Returns messages, octets and records so far.
    #[must_use]
    pub fn sent(&self) -> [u64; 3] {
        [self.messages, self.octets, self.records]
    }

    /// Returns how many nanoseconds it has taken so far.
    #[must_use]
    pub fn nanos_at(&self, now: Now) -> u64 {
        now.monotonic_nanos.saturating_sub(self.began_nanos)
    }
}
