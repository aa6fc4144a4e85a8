//! Answers from zone data (rfc1034#4.3.2).
//!
//! A question walks through at most [`CHAIN_MAX`] names: its own and the targets of the CNAME and
//! DNAME records that it meets. The last name decides the response code (rfc6604#3).

mod additional;
mod alias;
mod proof;
mod write;

pub use alias::alias_of;

use crate::code::Claim;
use crate::code::claim::claim;
use crate::context::{CHAIN_MAX, Context, Verdict};
use crate::deferral::{Deferral, To, UpstreamAnswer};
use crate::hot::Rotation;
use crate::message::Transport;
use crate::reason::Reason;
use crate::zones::{Source, ZoneEntry, ZoneMatch};
use write::{Writer, owner};
use zonda_wire::query::flag;
use zonda_wire::{Full, Owner, Rcode, Section, Type, name};
use zonda_zone::{Found, LookupName, Node, Set, Zone};

/// Answers the query from zone data, the apex of which has so many labels.
#[inline]
pub fn answer<'s>(cx: &mut Context<'s>, zone: &'s Zone, labels: usize) -> Verdict {
    cx.worker.proven.clear();
    cx.keep = cx.query.qtype != Type::ANY; // whose answer depends on the transport
    let mut walk = Walk::new(zone, labels);
    match walk.run(cx) {
        Ok(verdict) => verdict,
        Err(Full) => {
            cx.flags |= flag::TC;
            cx.keep = false; // a client with a larger buffer gets more
            Verdict::Reply(walk.verdict.0, walk.verdict.1)
        }
    }
}

/// Goes on, in zone data, with the chain of an answer of other servers that was written, and that
/// ends with an alias of a name of ours: our data win over theirs.
#[inline(never)] // it would only make the path of zone data longer
pub fn go_on(cx: &mut Context<'_>, reason: Reason) -> Verdict {
    cx.worker.proven.clear();
    let flags = cx.flags;
    if !cx.reply.last_alias(&mut cx.worker.target) {
        return Verdict::Reply(Rcode::NOERROR, reason);
    }
    cx.worker.chain.set(0, &cx.worker.target, cx.snapshot.zones.seed());
    let Some((zone, labels)) = data_for(cx, 0) else {
        let (rcode, reason) = end_of_chain(cx, 0, (Rcode::NOERROR, reason));
        return Verdict::Reply(rcode, reason);
    };
    let mut walk = Walk { hop: 1, is_behind_answer: true, ..Walk::new(zone, labels) };
    let ended = walk.run(cx);
    cx.flags = flags; // AA speaks of the name asked for
    cx.keep = false;
    match ended {
        Ok(Verdict::Reply(rcode, _)) => Verdict::Reply(rcode, reason),
        Ok(verdict) => verdict,
        Err(Full) => {
            cx.flags |= flag::TC;
            Verdict::Reply(walk.verdict.0, reason)
        }
    }
}

/// How a name of the chain ends.
enum Step {
    /// The query is answered.
    Done(Rcode, Reason),
    /// The next name of the chain is in place.
    Next,
    /// What [`Worker::deferral`](crate::context::Worker::deferral) says must be fetched; nothing
    /// was written yet.
    Defer,
}

/// Whether aliases lead from the name asked for to one that others answer for, and the client may
/// have them asked; says what, then.
#[inline(never)] // it would only make the path of zone data longer
fn must_fetch_target(cx: &mut Context<'_>) -> bool {
    let way_out = alias::way_out(cx.snapshot, cx.name, cx.query.qtype);
    let Some((found, name)) = way_out else { return false };
    let entry = cx.snapshot.zones.get(found.index);
    let Source::Forward(forward) = &entry.source else { return false };
    cx.keep = false; // who wants no recursion, or may not have it, gets the aliases alone
    cx.worker.deferral =
        Deferral { is_alias: true, ..Deferral::new(To::Forward(forward.number), name.hash(0)) };
    cx.query.flags & flag::RD != 0 && is_allowed(cx, entry)
}

/// The zone data that hold a name of the chain, and how many labels their apex has; none if there
/// are none, or none that the client may see.
fn data_for<'s>(cx: &mut Context<'s>, link: usize) -> Option<(&'s Zone, usize)> {
    let snapshot = cx.snapshot;
    let ZoneMatch { index, labels } =
        snapshot.zones.find_answering(&cx.worker.chain[link], cx.query.qtype)?;
    let entry = snapshot.zones.get(index);
    let is_allowed = is_allowed(cx, entry);
    match data_of(&entry.source, labels) {
        Some(data) if is_allowed => {
            cx.keep &= entry.access.is_none();
            Some(data)
        }
        _ => {
            cx.keep &= is_allowed;
            None
        }
    }
}

/// The data of ours that a zone has, whose apex has so many labels, and how many theirs has: they
/// may be those of a larger zone that lends them. Names in front of them are for clients who ask
/// for these, and do not count.
fn data_of(source: &Source, labels: u8) -> Option<(&Zone, usize)> {
    match source {
        Source::Data(zone) => Some((zone, usize::from(labels))),
        Source::Local(local) => Some((&local.zone, name::labels(local.zone.apex()).count())),
        Source::Forward(_) | Source::Excepted | Source::Unavailable => None,
    }
}

/// How a chain ends that others answered and that leads to a name of the chain of which nothing is
/// said: as it was if nobody may say it to this client, else with a failure.
fn end_of_chain(cx: &Context<'_>, link: usize, end: (Rcode, Reason)) -> (Rcode, Reason) {
    let zones = &cx.snapshot.zones;
    let found = zones.find_answering(&cx.worker.chain[link], cx.query.qtype);
    let entry = found.map(|zone| zones.get(zone.index));
    match entry.map(|entry| (&entry.source, is_allowed(cx, entry))) {
        Some((Source::Unavailable, true)) => (Rcode::SERVFAIL, Reason::ZoneUnavailable),
        // They would have been asked, had the zones not changed meanwhile.
        Some((Source::Forward(_), true)) | None => (Rcode::SERVFAIL, Reason::UpstreamFailed),
        Some(_) => end,
    }
}

/// The name at a hop of the chain.
fn name_at<'n>(cx: &'n Context<'_>, hop: usize) -> &'n LookupName {
    if hop == 0 { cx.name } else { &cx.worker.chain[hop - 1] }
}

/// Whether the client may ask for what a zone holds.
fn is_allowed(cx: &Context<'_>, entry: &ZoneEntry) -> bool {
    entry.allows(cx.peer.address.ip())
}

/// No trace, or the name itself answered.
const EXACT: u8 = 0;
/// Beside the label at which its owner begins: a DNAME was followed. A name has at most 127 labels,
/// and neither a wildcard nor a DNAME stands for the name whose first label is its own.
const BY_DNAME: u8 = 0x80;

/// The way of a query through the zones.
struct Walk<'s> {
    /// The zone that holds the present name.
    zone: &'s Zone,
    /// How many labels its apex has.
    labels: usize,
    /// How many CNAME or DNAME records led here.
    hop: usize,
    /// What answered at each hop, as [`Self::remember`] has it.
    traces: [u8; CHAIN_MAX],
    /// The zone of each hop that left a trace.
    zones: [&'s Zone; CHAIN_MAX],
    /// What a reply that is cut off here says: NXDOMAIN stays NXDOMAIN without its SOA record.
    verdict: (Rcode, Reason),
    /// It is behind what others answered, which is not written again.
    is_behind_answer: bool,
}

impl<'s> Walk<'s> {
    fn new(zone: &'s Zone, labels: usize) -> Self {
        let verdict = (Rcode::NOERROR, Reason::Answered);
        Self {
            zone,
            labels,
            hop: 0,
            traces: [EXACT; CHAIN_MAX],
            zones: [zone; CHAIN_MAX],
            verdict,
            is_behind_answer: false,
        }
    }

    fn run(&mut self, cx: &mut Context<'s>) -> Result<Verdict, Full> {
        loop {
            match self.step(cx)? {
                Step::Done(rcode, reason) => return Ok(Verdict::Reply(rcode, reason)),
                Step::Defer => return Ok(Verdict::Defer),
                Step::Next => {}
            }
            if self.hop == CHAIN_MAX || self.is_loop(cx) || !self.enter_zone(cx) {
                let Some(fetched) = self.fetched_here(cx) else {
                    let verdict = Verdict::Reply(Rcode::NOERROR, Reason::Answered);
                    return self.finish_answer(cx).map(|()| verdict);
                };
                alias::append(cx, fetched)?;
                self.is_behind_answer = true;
                if let Some((rcode, reason)) = self.enter_behind_answer(cx, fetched) {
                    return self.finish_answer(cx).map(|()| Verdict::Reply(rcode, reason));
                }
            }
        }
    }

    /// What was fetched for the present name, unless it was written before.
    fn fetched_here(&self, cx: &Context<'s>) -> Option<&'s UpstreamAnswer<'s>> {
        let fetched = cx.resumption.upstream_answer().filter(|_| !self.is_behind_answer)?;
        fetched.is_for(self.name(cx).as_wire()).then_some(fetched)
    }

    /// Makes the target of the last alias that others answered with the present name; how the query
    /// ends unless that is in zone data that the client may see.
    fn enter_behind_answer(
        &mut self,
        cx: &mut Context<'s>,
        fetched: &UpstreamAnswer<'_>,
    ) -> Option<(Rcode, Reason)> {
        let (link, end) = (self.hop, (fetched.rcode, fetched.reason));
        // The name that follows is one more to look up, and the chain then has CHAIN_MAX.
        let is_full = link + 1 >= CHAIN_MAX;
        if !fetched.goes_on || is_full || !cx.reply.last_alias(&mut cx.worker.target) {
            return Some(end);
        }
        cx.worker.chain.set(link, &cx.worker.target, cx.snapshot.zones.seed());
        self.hop += 1;
        let Some((zone, labels)) = data_for(cx, link) else {
            return Some(end_of_chain(cx, link, end));
        };
        (self.zone, self.labels) = (zone, labels);
        self.is_loop(cx).then_some(end)
    }

    /// Whether something must be fetched before the answer is written, because aliases lead from
    /// the name asked for to one that others answer for, and the client may have them asked.
    #[inline]
    fn leads_out(&self, cx: &mut Context<'s>) -> bool {
        self.hop == 0
            && cx.resumption.upstream_answer().is_none()
            && cx.snapshot.zones.has_forwards()
            && must_fetch_target(cx)
    }

    /// The present name of the chain.
    fn name<'n>(&self, cx: &'n Context<'_>) -> &'n LookupName {
        name_at(cx, self.hop)
    }

    /// Looks up the present name and writes what it gives.
    fn step(&mut self, cx: &mut Context<'s>) -> Result<Step, Full> {
        let at_parent = cx.query.qtype == Type::DS;
        match self.zone.find(self.name(cx), self.labels, at_parent) {
            Found::Exact(node) => self.answer_from(cx, node, None),
            Found::Wildcard { node, encloser } => {
                self.note_owner(cx, encloser);
                self.answer_from(cx, node, Some(encloser))
            }
            Found::Missing { encloser } => {
                let claim = claim(cx.snapshot, self.name(cx), cx.query.qtype);
                if claim.is_own && self.hop > 0 {
                    return self.leave_to_code(cx);
                }
                cx.flags |= flag::AA;
                if claim.exists {
                    return self.end_at_code(cx, claim);
                }
                self.verdict = (Rcode::NXDOMAIN, Reason::NameError);
                self.negative(cx, |walk, cx| proof::name_error(cx, walk.zone, walk.hop, encloser))?;
                Ok(Step::Done(self.verdict.0, self.verdict.1))
            }
            Found::Referral(cut) => self.refer(cx, cut),
            Found::Dname(node) => self.synthesize(cx, node),
        }
    }

    /// Answers from the node of the name, or of the wildcard that stands for it.
    fn answer_from(
        &mut self,
        cx: &mut Context<'s>,
        node: Node<'s>,
        encloser: Option<usize>,
    ) -> Result<Step, Full> {
        cx.flags |= flag::AA;
        let qtype = cx.query.qtype;
        if matches!(qtype, Type::ANY | Type::RRSIG) && !node.is_empty_non_terminal() {
            return self.answer_several(cx, node, encloser);
        }
        if let Some((set, signatures)) = node.signed_set(qtype) {
            self.write(cx, set, signatures)?;
            self.remember_expansion(encloser);
            self.finish_answer(cx)?;
            if additional::has_targets(qtype) {
                additional::of_answer(cx, self.zone, (self.hop, node), set);
            }
            return Ok(Step::Done(Rcode::NOERROR, Reason::Answered));
        }
        // NSEC stands beside a CNAME (rfc4034#4), so a name without it has none to be led to.
        let cname = node.signed_set(Type::CNAME).filter(|_| qtype != Type::NSEC);
        if let Some((cname, signatures)) = cname {
            if self.leads_out(cx) {
                return Ok(Step::Defer);
            }
            self.write(cx, cname, signatures)?;
            self.remember_expansion(encloser);
            return Ok(self.go_to(cx, cname.first()));
        }
        self.no_data(cx, node, encloser)
    }

    /// Answers ANY and RRSIG: over UDP one set of the name's is enough (rfc8482#4.1), data rather
    /// than proofs.
    fn answer_several(
        &mut self,
        cx: &mut Context<'s>,
        node: Node<'s>,
        encloser: Option<usize>,
    ) -> Result<Step, Full> {
        let is_any = cx.query.qtype == Type::ANY;
        let is_signed = self.zone.is_signed();
        let is_proof = |set: &Set<'_>| matches!(set.rtype, Type::NSEC | Type::NSEC3);
        let is_wanted = |set: &Set<'_>| match set.rtype {
            Type::RRSIG => !is_any,
            Type::DS => false, // it speaks of a zone below, and that is not here
            _ => is_any && (is_signed || !is_proof(set)),
        };
        let sets = || node.sets().filter(is_wanted);
        let one = (is_any && cx.peer.transport == Transport::Udp)
            .then(|| sets().find(|set| !is_proof(set)).or_else(|| sets().next()))
            .flatten();
        let mut written = false;
        for set in sets().filter(|set| one.is_none_or(|one| one.rtype == set.rtype)) {
            let signatures = node.signed_set(set.rtype).and_then(|(_, signatures)| signatures);
            self.write(cx, set, signatures.filter(|_| is_any))?;
            written = true;
        }
        if !written {
            return self.no_data(cx, node, encloser);
        }
        self.remember_expansion(encloser);
        self.finish_answer(cx)?;
        Ok(Step::Done(Rcode::NOERROR, Reason::Answered))
    }

    /// Ends with a name that the zone does not have, but code has, or names below it: it exists
    /// (rfc2308#2.2, rfc8020#2). No record of the zone can prove that, as none proves what code
    /// answers; those that it has would deny the name.
    #[cold]
    fn end_at_code(&mut self, cx: &mut Context<'s>, claim: Claim) -> Result<Step, Full> {
        self.note_owner(cx, claim.label);
        self.negative(cx, |_, _| Ok(()))?;
        Ok(Step::Done(Rcode::NOERROR, Reason::NoData))
    }

    /// Ends a chain with the alias of a name of code, which the client asks for next.
    fn leave_to_code(&self, cx: &mut Context<'s>) -> Result<Step, Full> {
        self.finish_answer(cx)?;
        Ok(Step::Done(Rcode::NOERROR, Reason::Answered))
    }

    /// The name exists, the type does not (rfc2308#2.2).
    fn no_data(
        &mut self,
        cx: &mut Context<'s>,
        node: Node<'s>,
        encloser: Option<usize>,
    ) -> Result<Step, Full> {
        if self.hop > 0 && claim(cx.snapshot, self.name(cx), cx.query.qtype).is_own {
            return self.leave_to_code(cx);
        }
        self.negative(cx, |walk, cx| match encloser {
            None => proof::no_data(cx, walk.zone, walk.hop, walk.labels, node),
            Some(encloser) => proof::wildcard_no_data(cx, walk.zone, walk.hop, encloser, node),
        })?;
        Ok(Step::Done(Rcode::NOERROR, Reason::NoData))
    }

    /// Refers to the servers of a delegated zone (rfc1034#4.3.2 step 3b).
    fn refer(&mut self, cx: &mut Context<'s>, cut: Node<'s>) -> Result<Step, Full> {
        self.prove_expansions(cx)?;
        let Some(servers) = cut.set(Type::NS) else {
            return Ok(Step::Done(Rcode::SERVFAIL, Reason::ZoneUnavailable));
        };
        let owner_len = cut.relative_owner().len() + self.zone.apex().len();
        let name = if self.hop == 0 { cx.name } else { &cx.worker.chain[self.hop - 1] };
        let cut_owner = owner(self.hop, name, owner_len);
        let mut writer =
            Writer { reply: &mut cx.reply, dnssec_ok: cx.query.dnssec_ok(), turn: None };
        writer.set(Section::Authority, cut_owner, servers, None)?;
        if cx.query.dnssec_ok() {
            proof::delegation(cx, self.zone, self.hop, owner_len, cut)?;
        }
        additional::glue(cx, self.zone, self.hop, owner_len, servers);
        let reason = if self.hop == 0 { Reason::Referral } else { Reason::Answered };
        Ok(Step::Done(Rcode::NOERROR, reason))
    }

    /// Follows a DNAME: its record, and the CNAME that it amounts to (rfc6672#3.1).
    fn synthesize(&mut self, cx: &mut Context<'s>, node: Node<'s>) -> Result<Step, Full> {
        cx.flags |= flag::AA;
        let Some((dname, signatures)) = node.signed_set(Type::DNAME) else {
            return Ok(Step::Done(Rcode::SERVFAIL, Reason::ZoneUnavailable));
        };
        let target = dname.first();
        let name = self.name(cx).clone();
        let wire = name.as_wire();
        let owner_len = node.relative_owner().len() + self.zone.apex().len();
        let (kept, owner) = wire.split_at(wire.len() - owner_len);
        let label = name.label_count() - name::labels(owner).count();
        self.note_owner(cx, label);
        let has_met = self.has_met(cx, owner);
        self.remember(label as u8 | BY_DNAME); // a name has at most 127
        if !has_met {
            Writer::of(cx).set(Section::Answer, Owner::Name(owner), dname, signatures)?;
        }
        if kept.len() + target.len() > name::NAME_BYTES_MAX {
            return Ok(Step::Done(Rcode::YXDOMAIN, Reason::NameTooLong));
        }
        let mut cname = [0; name::NAME_BYTES_MAX];
        cname[..kept.len()].copy_from_slice(kept);
        cname[kept.len()..kept.len() + target.len()].copy_from_slice(target);
        let cname = &cname[..kept.len() + target.len()];
        let fixed = (Type::CNAME, zonda_wire::Class::IN, dname.ttl);
        cx.reply.record(Section::Answer, Owner::Name(wire), fixed, cname)?;
        if cx.query.qtype == Type::CNAME {
            self.finish_answer(cx)?;
            return Ok(Step::Done(Rcode::NOERROR, Reason::Answered));
        }
        Ok(self.go_to(cx, cname))
    }

    /// Whether the DNAME record of this owner was followed before: it stands in the answer then.
    fn has_met(&self, cx: &Context<'_>, owner: &[u8]) -> bool {
        (0..self.hop).any(|hop| {
            let (trace, zone) = (self.traces[hop], self.zones[hop]);
            let label = usize::from(trace & !BY_DNAME);
            trace & BY_DNAME != 0
                && std::ptr::eq(zone, self.zone)
                && name_at(cx, hop).suffix(label) == owner
        })
    }

    /// Notes what answered at the present hop: [`EXACT`], the label of a wildcard's closest
    /// encloser, or [`BY_DNAME`] with that of a DNAME's owner.
    fn remember(&mut self, trace: u8) {
        // The walk ends at CHAIN_MAX before it looks up a name.
        (self.traces[self.hop], self.zones[self.hop]) = (trace, self.zone);
    }

    /// Makes `target` the present name.
    fn go_to(&mut self, cx: &mut Context<'_>, target: &[u8]) -> Step {
        if self.hop < CHAIN_MAX {
            cx.worker.chain.set(self.hop, target, cx.snapshot.zones.seed());
        }
        self.hop += 1;
        Step::Next
    }

    /// Whether the present name was met before.
    fn is_loop(&self, cx: &Context<'_>) -> bool {
        let target = self.name(cx).as_wire();
        let earlier = &cx.worker.chain[..self.hop - 1];
        cx.name.as_wire() == target || earlier.iter().any(|name| name.as_wire() == target)
    }

    /// Finds the zone that holds the present name; whether the chain may be followed into it.
    fn enter_zone(&mut self, cx: &mut Context<'s>) -> bool {
        let name = self.name(cx);
        if name::is_at_or_below(name.as_wire(), self.zone.apex())
            && !cx.snapshot.settings.cross_zone
        {
            return true;
        }
        if !cx.snapshot.settings.cross_zone {
            return false;
        }
        let Some((zone, labels)) = data_for(cx, self.hop - 1) else { return false };
        (self.zone, self.labels) = (zone, labels);
        true
    }

    /// Writes a set of the present name.
    fn write(
        &self,
        cx: &mut Context<'_>,
        set: Set<'_>,
        signatures: Option<Set<'_>>,
    ) -> Result<(), Full> {
        let name = if self.hop == 0 { cx.name } else { &cx.worker.chain[self.hop - 1] };
        let turn = cx.snapshot.settings.rotate.then_some(&mut cx.worker.turn);
        let mut writer = Writer { reply: &mut cx.reply, dnssec_ok: cx.query.dnssec_ok(), turn };
        let owner = owner(self.hop, name, name.as_wire().len());
        let start = writer.reply.body().len();
        writer.set(Section::Answer, owner, set, signatures)?;
        if cx.snapshot.settings.rotate && set.count > 1 && write::rotates(set.rtype) {
            // A kept answer rotates where every record begins with a pointer to the question.
            cx.keep &= start == 0 && matches!(owner, Owner::Question { .. });
            cx.rotation = Rotation { count: set.count, bytes: write::record_bytes(set.rtype) };
        }
        Ok(())
    }

    /// Notes where in the name asked for the owner of what answers it begins.
    fn note_owner(&self, cx: &mut Context<'_>, label: usize) {
        if self.hop == 0 {
            cx.answering_label = label as u8; // a name has at most 127
        }
    }

    /// Notes that the present name was answered by a wildcard.
    #[inline]
    fn remember_expansion(&mut self, encloser: Option<usize>) {
        if let Some(encloser) = encloser {
            self.remember(encloser as u8); // a name has at most 127
        }
    }

    /// Ends a positive answer.
    fn finish_answer(&self, cx: &mut Context<'_>) -> Result<(), Full> {
        self.prove_expansions(cx)
    }

    /// Proves that no closer name exists than the wildcards that answered (rfc4035#3.1.3.3).
    fn prove_expansions(&self, cx: &mut Context<'_>) -> Result<(), Full> {
        if !cx.query.dnssec_ok() {
            return Ok(());
        }
        for (hop, zone) in self.zones.iter().enumerate().take(self.hop + 1) {
            match self.traces[hop] {
                EXACT | BY_DNAME.. => {}
                encloser => proof::expansion(cx, zone, hop, usize::from(encloser))?,
            }
        }
        Ok(())
    }

    /// Writes the SOA record of a negative answer (rfc2308#3) and the proof of it.
    fn negative(
        &mut self,
        cx: &mut Context<'s>,
        prove: impl FnOnce(&Self, &mut Context<'s>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let (mut soa, signatures) = self.zone.soa();
        let rdata = soa.first();
        let minimum = rdata.last_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
        soa.ttl = soa.ttl.min(minimum);
        let signatures = signatures.map(|mut set| {
            set.ttl = set.ttl.min(minimum);
            set
        });
        let name = if self.hop == 0 { cx.name } else { &cx.worker.chain[self.hop - 1] };
        let apex = owner(self.hop, name, self.zone.apex().len());
        let mut writer =
            Writer { reply: &mut cx.reply, dnssec_ok: cx.query.dnssec_ok(), turn: None };
        writer.set(Section::Authority, apex, soa, signatures)?;
        if cx.query.dnssec_ok() {
            self.prove_expansions(cx)?;
            prove(self, cx)?;
        }
        Ok(())
    }
}
