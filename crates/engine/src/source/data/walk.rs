//! The way of a question through zones, name by name.

use super::follow::ZoneData;
use super::write::{OwnerAt, Writer, owner};
use super::{additional, alias, follow, proof};
use crate::code::Claim;
use crate::code::claim::{claim, has_route, is_of_code};
use crate::deferral::UpstreamAnswer;
use crate::kept_query;
use crate::message::Transport;
use crate::reason::Reason;
use crate::verdict::{Flow, Verdict};
use crate::worker::CHAIN_MAX;
use crate::zones::ClusterZone;
use std::ops::ControlFlow::{Break, Continue};
use zonda_cluster::ClusterMatch;
use zonda_wire::query::flag;
use zonda_wire::{Full, Owner, Rcode, Section, Type, name};
use zonda_zone::{LookupName, LookupResult, Node, Set, Zone};

/// No trace, or the name itself answered.
const EXACT: u8 = 0;
/// Beside the label at which its owner begins: a DNAME was followed. A name has at most 127 labels,
/// and neither a wildcard nor a DNAME stands for the name whose first label is its own.
const BY_DNAME: u8 = 0x80;

/// The way of a query through the zones.
pub struct Walk<'w, 's, 'b> {
    /// The reply under way.
    pub writer: Writer<'w, 's, 'b>,
    /// The zone that holds the present name.
    zone: &'s Zone,
    /// The cluster whose names the zone has, if it has such.
    cluster: Option<&'s ClusterZone>,
    /// What the name asked for stands for in the cluster, if it was looked up and is still to be
    /// answered.
    pub(super) found: Option<ClusterMatch<'s>>,
    /// The number of CNAME or DNAME records that led here.
    hop: usize,
    /// The kind of source that answered at each hop, as [`Self::remember`] has it.
    traces: [u8; CHAIN_MAX],
    /// The zone of each hop that left a trace.
    zones: [&'s Zone; CHAIN_MAX],
    /// The response code of a reply that is cut off here: NXDOMAIN stays that without its SOA
    /// record.
    pub rcode: Rcode,
    /// The reason for a query whose reply is cut off here.
    pub reason: Reason,
    /// Whether upstreams have answered for this name, which is not written again.
    is_behind_answer: bool,
}

impl<'w, 's, 'b> Walk<'w, 's, 'b> {
    /// A walk that begins in a zone with the name asked for.
    #[inline]
    pub fn new(writer: Writer<'w, 's, 'b>, (zone, cluster): ZoneData<'s>) -> Self {
        Self {
            writer,
            zone,
            cluster,
            found: None,
            hop: 0,
            traces: [EXACT; CHAIN_MAX],
            zones: [zone; CHAIN_MAX],
            rcode: Rcode::NOERROR,
            reason: Reason::Answered,
            is_behind_answer: false,
        }
    }

    /// A walk that begins with the first name of the chain, behind an answer of upstreams.
    pub fn behind_answer(writer: Writer<'w, 's, 'b>, zone: ZoneData<'s>) -> Self {
        Self { hop: 1, is_behind_answer: true, ..Self::new(writer, zone) }
    }

    /// A walk beside another one, from its present name in a zone.
    pub(super) fn beside(writer: Writer<'w, 's, 'b>, zone: ZoneData<'s>, hop: usize) -> Self {
        Self { hop, ..Self::new(writer, zone) }
    }

    /// Walks until the query ends.
    ///
    /// # Errors
    /// When the reply has no room for all that answers the question.
    #[inline(always)] // on the shortest path, where most names are answered by one step
    pub fn run(&mut self) -> Result<Verdict, Full> {
        match self.step()? {
            Break(verdict) => Ok(verdict),
            Continue(()) => self.run_behind_alias(),
        }
    }

    /// Does so where the first step is not on the shortest path.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_apart(&mut self) -> Result<Verdict, Full> {
        match self.step_apart()? {
            Break(verdict) => Ok(verdict),
            Continue(()) => self.run_behind_alias(),
        }
    }

    /// Walks on from an alias that has led to the present name.
    #[inline(never)] // it would only make the path of names that are no aliases longer
    fn run_behind_alias(&mut self) -> Result<Verdict, Full> {
        loop {
            if self.hop == CHAIN_MAX || self.is_loop() || !self.enter_zone() {
                let Some(answer) = self.answer_here() else {
                    self.prove_expansions()?;
                    return Ok(match self.has_code() {
                        true => self.end_at_alias(),
                        false => self.verdict(Rcode::NOERROR, Reason::Answered),
                    });
                };
                alias::append(&mut self.writer, answer)?;
                self.is_behind_answer = true;
                if let Some((rcode, reason)) = self.enter_behind_answer(answer) {
                    self.prove_expansions()?;
                    return Ok(self.verdict(rcode, reason));
                }
            }
            if let Break(verdict) = self.step_apart()? {
                return Ok(verdict);
            }
        }
    }

    /// The end of a chain whose last name is in no zone that the chain may be followed into: code
    /// goes on that has the name.
    #[cold]
    fn end_at_alias(&self) -> Verdict {
        let has_end = self.hop < CHAIN_MAX && !self.is_loop();
        match has_end && is_of_code(self.writer.ask.snapshot, self.name(), self.qtype()) {
            true => Verdict::GoesOn(Reason::Answered),
            false => self.verdict(Rcode::NOERROR, Reason::Answered),
        }
    }

    /// Whether there is code at all.
    #[inline]
    fn has_code(&self) -> bool {
        self.writer.ask.snapshot.handlers.is_some()
    }

    /// The type asked for.
    fn qtype(&self) -> Type {
        self.writer.ask.query.qtype
    }

    /// The end of the query with this response code.
    #[inline]
    pub(super) fn verdict(&self, rcode: Rcode, reason: Reason) -> Verdict {
        Verdict::Reply(rcode, reason, self.writer.reuse)
    }

    /// The end of the walk with this response code.
    #[inline]
    pub(super) fn done(&self, rcode: Rcode, reason: Reason) -> Result<Flow, Full> {
        Ok(Break(self.verdict(rcode, reason)))
    }

    /// The upstreams' answer for the present name, unless it was written before.
    fn answer_here(&self) -> Option<&'s UpstreamAnswer<'s>> {
        let progress = self.writer.ask.progress;
        let answer = progress.upstream_answer().filter(|_| !self.is_behind_answer)?;
        answer.is_for(self.name().as_wire()).then_some(answer)
    }

    /// Makes the target of the last alias that upstreams answered with the present name; how the
    /// query ends unless that is in zone data that the client may see.
    fn enter_behind_answer(&mut self, answer: &UpstreamAnswer<'_>) -> Option<(Rcode, Reason)> {
        let (link, end) = (self.hop, (answer.rcode, answer.reason));
        // The name that follows is one more to look up, and the chain then has CHAIN_MAX.
        let is_full = link + 1 >= CHAIN_MAX;
        let Writer { ask, answer: written, worker, .. } = &mut self.writer;
        if !answer.goes_on || is_full || !written.reply.last_alias(&mut worker.target) {
            return Some(end);
        }
        worker.chain.set(link, &worker.target, ask.snapshot.zones.seed());
        self.hop += 1;
        match follow::zone_of(&mut self.writer, self.hop) {
            Some(zone) => (self.zone, self.cluster) = zone,
            None => return Some(follow::end_of_chain(&self.writer, self.hop, end)),
        }
        self.is_loop().then_some(end)
    }

    /// Whether something must be fetched before the answer is written, because aliases lead from
    /// the name asked for to one that is forwarded, and the client may have it looked up.
    #[inline]
    fn must_wait_for_target(&mut self) -> bool {
        self.hop == 0
            && self.writer.ask.snapshot.leads_on()
            && self.may_wait()
            && (follow::must_fetch_target(&mut self.writer) || self.must_fetch_addresses())
    }

    /// Whether a query may wait for upstreams whose name asked for is an alias; where there is
    /// code, takes note of the query, which code is asked anew.
    #[inline]
    fn may_wait(&mut self) -> bool {
        let Writer { ask, answer, worker, .. } = &mut self.writer;
        kept_query::keep(ask, answer, worker);
        ask.progress.upstream_answer().is_none() && ask.snapshot.zones.has_forwards()
    }

    /// Whether something must be fetched before the alias is written that a pool has chosen for the
    /// name asked for, because it leads to a name with an ALIAS record.
    pub(super) fn must_wait_behind_pool(&mut self) -> bool {
        self.hop == 0
            && self.writer.ask.snapshot.leads_on()
            && self.may_wait()
            && self.must_fetch_addresses()
    }

    /// The zone that holds the present name.
    #[inline]
    pub(super) fn zone(&self) -> &'s Zone {
        self.zone
    }

    /// The present name's zone and hop.
    pub(super) fn place(&self) -> (ZoneData<'s>, usize) {
        ((self.zone, self.cluster), self.hop)
    }

    /// Makes a zone the one that holds the present name.
    pub(super) fn enter(&mut self, (zone, cluster): ZoneData<'s>) {
        (self.zone, self.cluster) = (zone, cluster);
    }

    /// The number of CNAME or DNAME records that led here.
    #[inline]
    pub(super) fn hop(&self) -> usize {
        self.hop
    }

    /// The present name of the chain.
    #[inline]
    pub(super) fn name(&self) -> &LookupName {
        self.writer.name(self.hop)
    }

    /// The last octets of the present name, as the owner of a record.
    #[inline]
    fn owner(&self, len: usize) -> OwnerAt {
        OwnerAt { hop: self.hop, len }
    }

    /// Returns what the routes say about the present name, which the zone does not have, or not
    /// with the type.
    fn claim(&self) -> Claim {
        let ask = self.writer.ask;
        claim(ask.snapshot, self.name(), ask.query.qtype)
    }

    /// Takes a step that is not on the shortest path.
    #[inline(never)] // or there would be a copy of a step in each of its callers
    pub(super) fn step_apart(&mut self) -> Result<Flow, Full> {
        self.step()
    }

    /// Looks up the present name and writes what it gives.
    #[inline(always)] // on the shortest path
    fn step(&mut self) -> Result<Flow, Full> {
        if let Some(cluster) = self.cluster
            && let Some(flow) = self.answer_from_cluster(cluster)?
        {
            return Ok(flow);
        }
        let at_parent = self.writer.ask.query.qtype == Type::DS;
        match self.zone.find_from(self.writer.ask.start, self.name(), at_parent) {
            LookupResult::Exact(node) => self.answer_from(node, None),
            LookupResult::Wildcard { node, encloser } => {
                self.note_owner(encloser);
                self.answer_from(node, Some(encloser))
            }
            LookupResult::Missing { encloser } => self.deny_name(encloser),
            LookupResult::Referral(cut) => self.refer(cut),
            LookupResult::Dname(node) => self.synthesize(node),
        }
    }

    /// Denies a name that is not on the shortest path.
    #[inline(never)] // or there would be a copy of a denial in each of its callers
    pub(super) fn deny_name_apart(&mut self, encloser: usize) -> Result<Flow, Full> {
        self.deny_name(encloser)
    }

    /// The name does not exist, unless code has it (rfc2308#2.1).
    #[inline(always)] // on the shortest path
    fn deny_name(&mut self, encloser: usize) -> Result<Flow, Full> {
        let claim = self.claim();
        if self.hop > 0 && self.has_code() && self.is_left_to_code(claim) {
            return self.leave_to_code();
        }
        if let Some(flow) = self.answer_steered(None, encloser)? {
            return Ok(flow);
        }
        self.writer.answer.flags |= flag::AA;
        if claim.exists {
            return self.end_at_code(claim);
        }
        (self.rcode, self.reason) = (Rcode::NXDOMAIN, Reason::NameError);
        self.write_soa_for(u32::MAX)?;
        if self.writer.ask.dnssec_ok() {
            self.prove_expansions()?;
            proof::name_error(&mut self.writer, self.zone, self.hop, encloser)?;
        }
        self.done(Rcode::NXDOMAIN, Reason::NameError)
    }

    /// Answers from the node of the name, or of the wildcard that stands for it.
    #[inline(always)] // on the shortest path
    fn answer_from(&mut self, node: Node<'s>, encloser: Option<usize>) -> Result<Flow, Full> {
        if let Some(flow) = self.answer_steered(Some(node), encloser.unwrap_or(0))? {
            return Ok(flow);
        }
        self.writer.answer.flags |= flag::AA;
        let qtype = self.writer.ask.query.qtype;
        if matches!(qtype, Type::ANY | Type::RRSIG) && !node.is_empty_non_terminal() {
            return self.answer_several(node, encloser);
        }
        if let Some((set, signatures)) = node.signed_set(qtype) {
            self.writer.answer_set(self.hop, set, signatures)?;
            self.remember_expansion(encloser);
            self.prove_expansions()?;
            if additional::has_targets(qtype) {
                additional::of_answer(&mut self.writer, self.zone, (self.hop, node), set);
            }
            return self.done(Rcode::NOERROR, Reason::Answered);
        }
        // NSEC stands beside a CNAME (rfc4034#4), so a name without it has none to be led to.
        let cname = node.signed_set(Type::CNAME).filter(|_| qtype != Type::NSEC);
        if let Some((cname, signatures)) = cname {
            if self.must_wait_for_target() {
                return Ok(Break(Verdict::Defer));
            }
            self.writer.answer_set(self.hop, cname, signatures)?;
            self.remember_expansion(encloser);
            return Ok(self.go_to(cname.first()));
        }
        match self.answer_flattened(node, encloser)? {
            Some(flow) => Ok(flow),
            None => self.no_data(node, encloser),
        }
    }

    /// Answers ANY and RRSIG: over UDP one set of the name's is enough (rfc8482#4.1), data rather
    /// than proofs.
    fn answer_several(&mut self, node: Node<'s>, encloser: Option<usize>) -> Result<Flow, Full> {
        let ask = self.writer.ask;
        let is_any = ask.query.qtype == Type::ANY;
        let is_signed = self.zone.is_signed();
        let is_proof = |set: &Set<'_>| matches!(set.rtype, Type::NSEC | Type::NSEC3);
        let is_wanted = |set: &Set<'_>| match set.rtype {
            Type::RRSIG => !is_any,
            Type::DS => false, // it speaks of a zone below, and that is not here
            _ => is_any && (is_signed || !is_proof(set)),
        };
        let sets = || node.sets().filter(is_wanted);
        let one = (is_any && ask.peer.transport == Transport::Udp)
            .then(|| sets().find(|set| !is_proof(set)).or_else(|| sets().next()))
            .flatten();
        let mut written = false;
        for set in sets().filter(|set| one.is_none_or(|one| one.rtype == set.rtype)) {
            let signatures = node.signed_set(set.rtype).and_then(|(_, signatures)| signatures);
            self.writer.answer_set(self.hop, set, signatures.filter(|_| is_any))?;
            written = true;
        }
        if !written {
            return self.no_data(node, encloser);
        }
        self.remember_expansion(encloser);
        self.prove_expansions()?;
        self.done(Rcode::NOERROR, Reason::Answered)
    }

    /// Ends with a name that the zone does not have, but code has, or names below it: it exists
    /// (rfc2308#2.2, rfc8020#2). No record of the zone can prove that, as none proves what code
    /// answers; those that it has would deny the name.
    #[cold]
    fn end_at_code(&mut self, claim: Claim) -> Result<Flow, Full> {
        self.note_owner(claim.label);
        self.write_soa()?;
        if self.writer.ask.dnssec_ok() {
            self.prove_expansions()?;
        }
        self.done(Rcode::NOERROR, Reason::NoData)
    }

    /// Whether code may have the target of an alias, which the zone does not have, or not with the
    /// type.
    #[cold]
    fn is_left_to_code(&self, claim: Claim) -> bool {
        claim.is_own || has_route(self.writer.ask.snapshot, self.name(), self.qtype())
    }

    /// Ends a chain in zone data with the alias of a name that code may have, which goes on.
    fn leave_to_code(&mut self) -> Result<Flow, Full> {
        self.prove_expansions()?;
        Ok(Break(Verdict::GoesOn(Reason::Answered)))
    }

    /// The name exists, the type does not (rfc2308#2.2).
    fn no_data(&mut self, node: Node<'s>, encloser: Option<usize>) -> Result<Flow, Full> {
        if self.hop > 0 && self.has_code() && self.is_left_to_code(self.claim()) {
            return self.leave_to_code();
        }
        self.write_soa()?;
        if self.writer.ask.dnssec_ok() {
            self.prove_expansions()?;
            let (writer, zone, hop) = (&mut self.writer, self.zone, self.hop);
            match encloser {
                None => proof::no_data(writer, zone, hop, node)?,
                Some(encloser) => proof::wildcard_no_data(writer, zone, hop, encloser, node)?,
            }
        }
        self.done(Rcode::NOERROR, Reason::NoData)
    }

    /// Refers to the servers of a delegated zone (rfc1034#4.3.2 step 3b).
    fn refer(&mut self, cut: Node<'s>) -> Result<Flow, Full> {
        self.prove_expansions()?;
        let Some(servers) = cut.set(Type::NS) else {
            return self.done(Rcode::SERVFAIL, Reason::ZoneUnavailable);
        };
        let owner_len = cut.relative_owner().len() + self.zone.apex().len();
        let at = self.owner(owner_len);
        self.writer.set_at(Section::Authority, at, servers, None)?;
        if self.writer.ask.dnssec_ok() {
            proof::delegation(&mut self.writer, self.zone, at, cut)?;
        }
        additional::glue(&mut self.writer, self.zone, at, servers);
        let reason = if self.hop == 0 { Reason::Referral } else { Reason::Answered };
        self.done(Rcode::NOERROR, reason)
    }

    /// Follows a DNAME: its record, and the CNAME that it amounts to (rfc6672#3.1).
    fn synthesize(&mut self, node: Node<'s>) -> Result<Flow, Full> {
        self.writer.answer.flags |= flag::AA;
        let Some((dname, signatures)) = node.signed_set(Type::DNAME) else {
            return self.done(Rcode::SERVFAIL, Reason::ZoneUnavailable);
        };
        if self.must_wait_for_target() {
            return Ok(Break(Verdict::Defer));
        }
        let target = dname.first();
        let name = self.name().clone();
        let wire = name.as_wire();
        let owner_len = node.relative_owner().len() + self.zone.apex().len();
        let (kept, owner) = wire.split_at(wire.len() - owner_len);
        let label = name.label_count() - name::labels(owner).count();
        self.note_owner(label);
        let is_repeated = self.has_followed_dname(owner);
        self.remember(label as u8 | BY_DNAME); // a name has at most 127
        if !is_repeated {
            self.writer.set(Section::Answer, Owner::Name(owner), dname, signatures)?;
        }
        if kept.len() + target.len() > name::NAME_BYTES_MAX {
            return self.done(Rcode::YXDOMAIN, Reason::NameTooLong);
        }
        let mut cname = [0; name::NAME_BYTES_MAX];
        cname[..kept.len()].copy_from_slice(kept);
        cname[kept.len()..kept.len() + target.len()].copy_from_slice(target);
        let cname = &cname[..kept.len() + target.len()];
        let fixed = (Type::CNAME, zonda_wire::Class::IN, dname.ttl);
        self.writer.answer.reply.record(Section::Answer, Owner::Name(wire), fixed, cname)?;
        if self.writer.ask.query.qtype == Type::CNAME {
            self.prove_expansions()?;
            return self.done(Rcode::NOERROR, Reason::Answered);
        }
        Ok(self.go_to(cname))
    }

    /// Whether the DNAME record of this owner was followed before: it stands in the answer then.
    fn has_followed_dname(&self, owner: &[u8]) -> bool {
        (0..self.hop).any(|hop| {
            let (trace, zone) = (self.traces[hop], self.zones[hop]);
            let label = usize::from(trace & !BY_DNAME);
            trace & BY_DNAME != 0
                && std::ptr::eq(zone, self.zone)
                && self.writer.name(hop).suffix(label) == owner
        })
    }

    /// Notes what answered at the present hop: [`EXACT`], the label of a wildcard's closest
    /// encloser, or [`BY_DNAME`] with that of a DNAME's owner.
    fn remember(&mut self, trace: u8) {
        // The walk ends at CHAIN_MAX before it looks up a name.
        (self.traces[self.hop], self.zones[self.hop]) = (trace, self.zone);
    }

    /// Makes `target` the present name.
    pub(super) fn go_to(&mut self, target: &[u8]) -> Flow {
        if self.hop < CHAIN_MAX {
            let Writer { ask, worker, .. } = &mut self.writer;
            worker.chain.set(self.hop, target, ask.snapshot.zones.seed());
        }
        self.hop += 1;
        Continue(())
    }

    /// Whether the present name was met before.
    pub(super) fn is_loop(&self) -> bool {
        let target = self.name().as_wire();
        (0..self.hop).any(|hop| self.writer.name(hop).as_wire() == target)
    }

    /// Finds the zone that holds the present name; whether the chain may be followed into it.
    fn enter_zone(&mut self) -> bool {
        let crosses = self.writer.ask.snapshot.settings.cross_zone;
        if !crosses && name::is_at_or_below(self.name().as_wire(), self.zone.apex()) {
            return true;
        }
        if !crosses {
            return false;
        }
        let Some(zone) = follow::zone_of(&mut self.writer, self.hop) else { return false };
        (self.zone, self.cluster) = zone;
        true
    }

    /// Notes where in the name asked for the owner of what answers it begins.
    pub(super) fn note_owner(&mut self, label: usize) {
        if self.hop == 0 {
            self.writer.answer.answering_label = label as u8; // a name has at most 127
        }
    }

    /// Notes that the present name was answered by a wildcard.
    #[inline]
    pub(super) fn remember_expansion(&mut self, encloser: Option<usize>) {
        if let Some(encloser) = encloser {
            self.remember(encloser as u8); // a name has at most 127
        }
    }

    /// Proves, to clients that want it, that no closer name exists than the wildcards that answered
    /// (rfc4035#3.1.3.3).
    #[inline]
    pub(super) fn prove_expansions(&mut self) -> Result<(), Full> {
        if !self.writer.ask.dnssec_ok() {
            return Ok(());
        }
        for hop in 0..CHAIN_MAX.min(self.hop + 1) {
            match self.traces[hop] {
                EXACT | BY_DNAME.. => {}
                encloser => {
                    proof::expansion(&mut self.writer, self.zones[hop], hop, encloser.into())?;
                }
            }
        }
        Ok(())
    }

    /// Writes the SOA record of a negative answer (rfc2308#3).
    #[inline(never)] // or there would be a copy of it in each of its callers
    pub(super) fn write_soa(&mut self) -> Result<(), Full> {
        self.write_soa_for(u32::MAX)
    }

    /// Writes the SOA record of a negative answer that lives for so many seconds at most.
    #[inline(always)] // on the shortest path of names that do not exist
    pub(super) fn write_soa_for(&mut self, ttl_max: u32) -> Result<(), Full> {
        let (mut soa, signatures) = self.zone.soa();
        let rdata = soa.first();
        let minimum = rdata.last_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
        let minimum = minimum.min(ttl_max);
        soa.ttl = soa.ttl.min(minimum);
        let signatures = signatures.map(|mut set| {
            set.ttl = set.ttl.min(minimum);
            set
        });
        let at = self.owner(self.zone.apex().len());
        if signatures.is_none() || !self.writer.ask.dnssec_ok() {
            // No signature follows, whose names would be compressed against those of this record.
            let name = self.writer.name(self.hop);
            if let Owner::Question { skip } = owner(at, name) {
                let fixed = (zonda_wire::Class::IN, soa.ttl);
                return self.writer.answer.reply.soa(Section::Authority, skip, fixed, rdata);
            }
        }
        self.writer.set_at(Section::Authority, at, soa, signatures)
    }
}
