//! ALIAS records: a name that has the addresses of another one, its target.
//!
//! A question for addresses is answered with those of the target, under the name asked for. The
//! target may lie in zones of this server, behind further aliases, or be known to upstreams alone:
//! then the answer cache has its addresses, or the query waits for them. Nothing is written before
//! a query waits, as a reply lies over its query.
//!
//! Access lists of forwarded zones do not count here: this server asks, not its client. Those of
//! zones with data do, as for other aliases.

use super::follow::{self, ZoneData};
use super::steered::{SteeredAlias, steered_alias};
use super::walk::Walk;
use super::write::{OwnerAt, Writer, owner};
use crate::answer::Answer;
use crate::ask::Ask;
use crate::checkpoint::Checkpoint;
use crate::code::History;
use crate::deferral::{Deferral, To, UpstreamAnswer, write_message};
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::{Flow, Verdict};
use crate::worker::{CHAIN_MAX, Turn, Worker};
use crate::zones::{ClusterNames, ClusterZone, Forward, Source};
use std::ops::ControlFlow::{Break, Continue};
use zonda_cache::{Hit, Inserts, Kind, Onward};
use zonda_cluster::ClusterMatch;
use zonda_wire::query::flag;
use zonda_wire::response::{RecordView, Response};
use zonda_wire::{Class, Ede, Edns, Full, Query, Rcode, Section, Type, name};
use zonda_zone::snapshot::node_flag;
use zonda_zone::{LookupName, LookupResult, Node, Set, Zone};

/// Where a flags word has the lower four bits of the response code.
const RCODE: u16 = 0x000f;

/// Why there are no addresses that upstreams would have to be asked for.
const CANNOT_WAIT: &str =
    "the addresses of an ALIAS record's target are not cached, and this query cannot wait for them";
/// Why there are no addresses behind a CNAME record that is not followed.
const NOT_FOLLOWED: &str = "the target of an ALIAS record leads out of its zone";
/// Why there are no addresses of a name that the user's code has.
const OF_CODE: &str =
    "the target of an ALIAS record is answered by code, which this server does not ask for it";

/// A walk along aliases that are not written.
struct Trail {
    /// The place in the worker's chain of the name that was reached.
    link: usize,
    /// The number of names that were looked up.
    steps: usize,
    /// The least TTL of the records that led here, seconds.
    ttl: u32,
    /// Whether one of these records was an ALIAS record, which leads into any zone.
    is_flattened: bool,
    /// Whether what was fetched for the query has led here: only then may it wait once more, so
    /// that each wait takes it further.
    has_used_answer: bool,
}

/// Where a trail ends.
enum End<'s> {
    /// Zone data are to answer for the name that was reached.
    Data(ZoneData<'s>),
    /// Other servers answer for the name, and can be asked.
    Upstreams(&'s Forward),
    /// The name is left to the client: a CNAME record has led out of the zone.
    Left,
    /// The addresses cannot be had.
    Failed(Reason),
}

/// What has become known of the addresses of a target.
enum Addresses {
    /// The addresses lie in the worker's buffer for record data.
    Found(Reason),
    /// The target has none.
    None(Reason),
    /// The addresses cannot be had.
    Failed(Rcode, Reason),
    /// An answer of upstreams leads to a name of this server, which is the present one now.
    GoesOn,
    /// The query waits for upstreams.
    Wait,
    /// Upstreams would have to be asked, for which a query cannot wait that has part of its reply.
    /// A client that follows aliases by itself asks for the rest.
    Left,
}

impl<'s> Walk<'_, 's, '_> {
    /// Answers for the present name with the addresses of its ALIAS record's target, if it has
    /// such a record and the question is for addresses.
    #[inline]
    pub(super) fn answer_flattened(
        &mut self,
        node: Node<'s>,
        encloser: Option<usize>,
    ) -> Result<Option<Flow>, Full> {
        match node.flags() & node_flag::ALIAS {
            0 => Ok(None),
            _ => self.flatten(node, encloser),
        }
    }

    /// Does so at a name with an ALIAS record.
    #[inline(never)] // most names have none
    fn flatten(&mut self, node: Node<'s>, encloser: Option<usize>) -> Result<Option<Flow>, Full> {
        let Some(alias) = alias_of(self.zone(), node, self.writer.ask.query.qtype) else {
            return Ok(None);
        };
        let hop = self.hop();
        let (mark, before) = (self.writer.answer.reply.mark(), self.writer.answer.reply.counts());
        let mut trail = Trail {
            link: hop,
            steps: 0,
            ttl: alias.ttl,
            is_flattened: true,
            has_used_answer: false,
        };
        let found = self.look_aside(alias.first(), &mut trail, usize::from(before[0]));
        self.writer.answer.reply.rewind(mark);
        self.writer.worker.proven.clear(); // no proof was written before this one's
        let wants_recursion = self.writer.ask.query.flags & flag::RD != 0;
        let found = match found? {
            Addresses::Left if hop == 0 || wants_recursion => {
                unresolved_because(&mut self.writer, CANNOT_WAIT)
            }
            found => found,
        };
        let reason = match found {
            Addresses::Wait => return Ok(Some(Break(Verdict::Defer))),
            Addresses::Left => return self.done(Rcode::NOERROR, Reason::Answered).map(Some),
            Addresses::Failed(rcode, reason) => {
                self.writer.reuse.forbid(NotReused::NoSource);
                if hop == 0 {
                    self.writer.answer.flags &= !flag::AA;
                }
                return self.done(rcode, reason).map(Some);
            }
            Addresses::Found(reason) => {
                write_addresses(&mut self.writer, hop, trail.ttl)?;
                reason
            }
            Addresses::None(reason) => {
                self.write_soa_for(trail.ttl)?;
                reason
            }
            Addresses::GoesOn => return self.done(Rcode::SERVFAIL, Reason::AliasLoop).map(Some),
        };
        self.remember_expansion(encloser);
        self.prove_expansions()?;
        self.done(Rcode::NOERROR, reason).map(Some)
    }
}

impl<'s> Walk<'_, 's, '_> {
    /// Finds the addresses of a target by a walk of its own, whose records are the caller's to
    /// undo. It asks without DO: signatures of addresses are of another owner's name than that of
    /// the answer, and would only take its room.
    fn look_aside(
        &mut self,
        target: &[u8],
        trail: &mut Trail,
        before: usize,
    ) -> Result<Addresses, Full> {
        let (zone, hop) = self.place();
        let Writer { ask, answer, worker, reuse } = &mut self.writer;
        let edns = ask.query.edns.map(|edns| Edns { dnssec_ok: false, ..edns });
        let query = Query { edns, ..*ask.query };
        let ask = &Ask { query: &query, ..**ask };
        let writer = Writer { ask, answer, worker, reuse: *reuse };
        let mut walk = Walk::beside(writer, zone, hop);
        let _ = walk.go_to(target); // there is room: the walk looks up no name without
        let found = walk.find_addresses(trail, before);
        *reuse = walk.writer.reuse;
        found
    }

    /// Finds the addresses of the present name, to which a trail has led. Records that are written
    /// on the way, behind the first `before` of the answer, are the caller's to undo.
    fn find_addresses(&mut self, trail: &mut Trail, before: usize) -> Result<Addresses, Full> {
        loop {
            match follow_trail(&mut self.writer, trail) {
                End::Data(zone) => {
                    self.enter(zone);
                    if let Some(found) = self.take_from_data(trail, before)? {
                        return Ok(found);
                    }
                }
                End::Upstreams(forward) => match ask_upstreams(&mut self.writer, forward, trail) {
                    Addresses::GoesOn => {}
                    found => return Ok(found),
                },
                End::Failed(reason) => return Ok(Addresses::Failed(Rcode::SERVFAIL, reason)),
                End::Left => return Ok(unresolved_because(&mut self.writer, NOT_FOLLOWED)),
            }
        }
    }

    /// Whether the reply has to wait for upstreams because CNAME or DNAME records lead from the
    /// name asked for to one with an ALIAS record, whose target they have to be asked for; notes
    /// what to fetch, then.
    #[inline(never)] // it would only make the path of zone data longer
    pub(super) fn must_fetch_addresses(&mut self) -> bool {
        let writer = &mut self.writer;
        let (ask, reuse) = (writer.ask, writer.reuse);
        if !is_of_addresses(ask.query.qtype) {
            return false;
        }
        writer.worker.chain.set(0, ask.name.as_wire(), ask.snapshot.zones.seed());
        let must_wait = must_wait_along(writer, false);
        writer.reuse = reuse; // of this, the walk takes note that writes the reply
        must_wait
    }

    /// Takes the addresses that zone data have for the present name; nothing if they lead to
    /// another name, which is the present one then.
    fn take_from_data(
        &mut self,
        trail: &mut Trail,
        before: usize,
    ) -> Result<Option<Addresses>, Full> {
        if self.hop() >= CHAIN_MAX || self.is_loop() {
            return Ok(Some(Addresses::Failed(Rcode::SERVFAIL, Reason::AliasLoop)));
        }
        let verdict = match self.step_apart()? {
            Continue(()) => {
                trail.link = self.hop() - 1;
                return Ok(None);
            }
            Break(verdict) => verdict,
        };
        let Writer { ask, answer, worker, .. } = &mut self.writer;
        let written = answer.reply.records().skip(before);
        take_addresses(written, ask.query.qtype, &mut worker.rdata, &mut trail.ttl);
        let has_any = !worker.rdata.is_empty();
        Ok(Some(match verdict {
            Verdict::Reply(Rcode::NOERROR, reason, _) if has_any => Addresses::Found(reason),
            Verdict::Reply(Rcode::NXDOMAIN, ..)
            | Verdict::Reply(Rcode::NOERROR, Reason::NoData, _) => Addresses::None(Reason::NoData),
            Verdict::Reply(rcode @ (Rcode::SERVFAIL | Rcode::REFUSED), reason, _) => {
                Addresses::Failed(rcode, reason)
            }
            _ => unresolved_because(&mut self.writer, OF_CODE),
        }))
    }
}

/// Whether a reply has to wait for upstreams because an answer of theirs, of which nothing is
/// written yet, leads to the name that is the worker's target, and CNAME or DNAME records from
/// there to one with an ALIAS record, whose target they have to be asked for; notes what to fetch,
/// then.
#[inline(never)] // it would only make the path of upstreams' answers longer
pub fn must_fetch_behind(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> bool {
    if !is_of_addresses(ask.query.qtype) || !ask.snapshot.zones.has_forwards() {
        return false;
    }
    let fetched = ask.progress.upstream_answer();
    let has_used_answer = fetched.is_some_and(|fetched| fetched.name == ask.name.as_wire());
    worker.chain.set(0, &worker.target, ask.snapshot.zones.seed());
    let reuse = Reuse::No(NotReused::Forwarded);
    must_wait_along(&mut Writer { ask, answer, worker, reuse }, has_used_answer)
}

/// Whether a reply has to wait for upstreams that are asked for addresses of an ALIAS record's
/// target, to which aliases lead from the first name of the chain; notes what to fetch, then.
fn must_wait_along(writer: &mut Writer<'_, '_, '_>, has_used_answer: bool) -> bool {
    let (link, steps, ttl, is_flattened) = (0, 0, u32::MAX, false);
    let mut trail = Trail { link, steps, ttl, is_flattened, has_used_answer };
    let must_wait = loop {
        let End::Upstreams(forward) = follow_trail(writer, &mut trail) else { break false };
        if !trail.is_flattened {
            break false;
        }
        match ask_upstreams(writer, forward, &mut trail) {
            Addresses::GoesOn => {}
            Addresses::Wait => break true,
            _ => break false,
        }
    };
    writer.answer.text_bytes = 0;
    must_wait
}

/// The end of a trail whose addresses cannot be had for a reason that the client is told.
fn unresolved_because(writer: &mut Writer<'_, '_, '_>, text: &str) -> Addresses {
    writer.answer.set_text(&mut writer.worker.body, text.as_bytes());
    Addresses::Failed(Rcode::SERVFAIL, Reason::AliasUnresolved)
}

/// Follows CNAME, DNAME and ALIAS records in zone data from the name at the trail's link.
fn follow_trail<'s>(writer: &mut Writer<'_, 's, '_>, trail: &mut Trail) -> End<'s> {
    let (snapshot, qtype) = (writer.ask.snapshot, writer.ask.query.qtype);
    let (zones, crosses) = (&snapshot.zones, snapshot.settings.cross_zone);
    while trail.steps < CHAIN_MAX {
        trail.steps += 1;
        let found = zones.find_answering(writer.name(trail.link + 1), qtype);
        match found.map(|found| &zones.get(found.index).source) {
            None | Some(Source::Excepted) => return upstreams(writer.ask, None),
            Some(Source::Forward(forward)) => return upstreams(writer.ask, Some(&**forward)),
            Some(Source::Unavailable(reason)) => return End::Failed(*reason),
            Some(Source::Data(_) | Source::Local(_) | Source::Cluster(_)) => {}
        }
        let Some(data) = follow::zone_of(writer, trail.link + 1) else {
            return End::Failed(Reason::AccessRefused);
        };
        let (zone, name) = (data.0, writer.name(trail.link + 1));
        let found = zone.find(name, false);
        let (node, encloser) = match found {
            LookupResult::Exact(node) => (Some(node), 0),
            LookupResult::Wildcard { node, encloser } => (Some(node), encloser),
            LookupResult::Referral(_) => {
                let recursion = zones.recursion().map(|entry| &entry.source);
                return match recursion {
                    Some(Source::Forward(forward)) => upstreams(writer.ask, Some(&**forward)),
                    _ => upstreams(writer.ask, None),
                };
            }
            LookupResult::Dname(node) => (Some(node), 0),
            LookupResult::Missing { encloser } => (None, encloser),
        };
        let is_below = matches!(found, LookupResult::Dname(_));
        if data.1.is_some_and(|cluster| !is_in_data(cluster, name)) {
            return End::Data(data);
        }
        let mut substitute = [0; name::NAME_BYTES_MAX];
        let steered = match is_below {
            true => SteeredAlias::None,
            false => steered_alias(writer, trail.link, zone, (node.is_some(), encloser)),
        };
        let name = writer.name(trail.link + 1);
        let next = match (steered, node) {
            (SteeredAlias::Answered, _) | (SteeredAlias::None, None) => None,
            (SteeredAlias::To(target, ttl), _) => Some((target, ttl)),
            (SteeredAlias::None, Some(node)) if is_below => {
                let next = node.set(Type::DNAME);
                next.and_then(|it| {
                    Some((substituted(zone, node, (name, it.first()), &mut substitute)?, it.ttl))
                })
            }
            (SteeredAlias::None, Some(node)) if node.set(qtype).is_some() => None,
            (SteeredAlias::None, Some(node)) => {
                let cname = node.set(Type::CNAME);
                let next = cname.or_else(|| alias_of(zone, node, qtype));
                trail.is_flattened |= next.is_some_and(|next| next.rtype == Type::ALIAS);
                next.map(|next| (next.first(), next.ttl))
            }
        };
        // What is no alias is answered there, as is one that is too long.
        let Some((target, ttl)) = next else { return End::Data(data) };
        trail.ttl = trail.ttl.min(ttl);
        if !trail.is_flattened && !crosses && !name::is_at_or_below(target, zone.apex()) {
            return End::Left;
        }
        writer.worker.chain.set(trail.link, target, zones.seed());
    }
    End::Failed(Reason::AliasLoop)
}

/// The name that a DNAME record of a node, with this target, makes of one below it, if that is not
/// too long (rfc6672#2.2).
fn substituted<'n>(
    zone: &Zone,
    node: Node<'_>,
    (name, target): (&LookupName, &[u8]),
    substitute: &'n mut [u8; name::NAME_BYTES_MAX],
) -> Option<&'n [u8]> {
    let wire = name.as_wire();
    let owner_len = node.relative_owner().len() + zone.apex().len();
    let kept = wire.get(..wire.len().checked_sub(owner_len)?)?;
    let substitute = substitute.get_mut(..kept.len() + target.len())?;
    let (first, last) = substitute.split_at_mut(kept.len());
    first.copy_from_slice(kept);
    last.copy_from_slice(target);
    Some(substitute)
}

/// Whether the data of a cluster's zone answer for a name, such as a service that is an alias.
fn is_in_data(zone: &ClusterZone, name: &LookupName) -> bool {
    match zone.names {
        ClusterNames::Services => matches!(zone.cluster.find(name), ClusterMatch::InData),
        ClusterNames::Addresses => false,
    }
}

/// The ALIAS record of a node, if a question of this type is answered by it. A signed zone has no
/// signature of the addresses, and answers as its records stand.
fn alias_of<'s>(zone: &Zone, node: Node<'s>, qtype: Type) -> Option<Set<'s>> {
    let is_followed = node.flags() & node_flag::ALIAS != 0 && is_of_addresses(qtype);
    if is_followed && !zone.is_signed() { node.set(Type::ALIAS) } else { None }
}

/// Whether a question is for addresses.
fn is_of_addresses(qtype: Type) -> bool {
    matches!(qtype, Type::A | Type::AAAA)
}

/// The upstreams that are asked for addresses of a target: those of the configuration's resolver
/// for ALIAS records, or else those of the zone that holds the name.
fn upstreams<'s>(ask: &Ask<'s>, holding: Option<&'s Forward>) -> End<'s> {
    match ask.snapshot.settings.alias_resolver.as_deref().or(holding) {
        Some(forward) => End::Upstreams(forward),
        None => End::Failed(Reason::AliasUnresolved),
    }
}

/// Takes the addresses of the name at the trail's link from what was fetched for it or from the
/// answer cache, or has the query wait for them.
fn ask_upstreams(
    writer: &mut Writer<'_, '_, '_>,
    forward: &Forward,
    trail: &mut Trail,
) -> Addresses {
    let ask = writer.ask;
    writer.reuse.forbid(NotReused::Forwarded);
    let Worker { chain, body, .. } = &mut *writer.worker;
    let name = chain.name_at(trail.link + 1, ask.name);
    let resumed = ask.progress.upstream_answer();
    if let Some(fetched) = resumed.filter(|fetched| fetched.is_for(name.as_wire())) {
        trail.has_used_answer = true;
        return take_fetched(writer, fetched, trail);
    }
    let key = forward.address_key(ask.query.qtype, name);
    let found = forward.cache.find_or_moment(&key, ask.now.monotonic_secs(), body);
    // A reply lies over its query: one that has begun cannot wait.
    let is_first = trail.link == 0 && writer.answer.reply.body().is_empty();
    let may_wait = is_first && (resumed.is_none() || trail.has_used_answer);
    match found {
        Ok(hit) if hit.kind == Kind::Failure => {
            writer.answer.text_bytes = hit.body_bytes;
            Addresses::Failed(Rcode(hit.flags & RCODE), Reason::CachedFailure)
        }
        // One that is due to be fetched anew is deferred to the forwarder, which gives it at once.
        Ok(hit) if hit.onward != Some(Onward::Others) && !(hit.refresh_due && may_wait) => {
            take_cached(writer, &hit, trail)
        }
        found if may_wait => {
            wait(writer, forward, trail, found.err());
            Addresses::Wait
        }
        _ if is_first => Addresses::Failed(Rcode::SERVFAIL, Reason::UpstreamFailed),
        _ => Addresses::Left,
    }
}

/// Has the query wait for the addresses of the name at the trail's link, which the answer cache
/// did not hold at a moment if that is given.
fn wait(
    writer: &mut Writer<'_, '_, '_>,
    forward: &Forward,
    trail: &Trail,
    missed_at: Option<Inserts>,
) {
    let name = writer.name(trail.link + 1);
    let deferral = Deferral::new(To::Forward(forward.number), name.hash(0));
    let checkpoint = Some(Checkpoint::AliasTarget(name.as_wire().into()));
    let history = History { checkpoint, ..deferral.history.clone() };
    writer.worker.deferral = Deferral { is_alias: true, missed_at, history, ..deferral };
}

/// Takes the addresses out of what was fetched.
fn take_fetched(
    writer: &mut Writer<'_, '_, '_>,
    fetched: &UpstreamAnswer<'_>,
    trail: &mut Trail,
) -> Addresses {
    let Writer { ask, answer, worker, .. } = writer;
    let Worker { message, body, .. } = &mut **worker;
    if !matches!(fetched.rcode, Rcode::NOERROR | Rcode::NXDOMAIN) {
        answer.set_text(body, fetched.text);
        return Addresses::Failed(Rcode::SERVFAIL, fetched.reason);
    }
    let question = (fetched.name, ask.query.qtype);
    write_message(question, fetched.counts, fetched.body, message);
    take_from_message(writer, fetched.goes_on, fetched.reason, trail)
}

/// Takes the addresses out of a cached answer, whose body the worker has.
fn take_cached(writer: &mut Writer<'_, '_, '_>, hit: &Hit, trail: &mut Trail) -> Addresses {
    let reason = match hit.ede {
        Some(Ede::BLOCKED) => Reason::Blocked,
        _ if hit.is_stale => Reason::Stale,
        _ => Reason::Cached,
    };
    let rcode = Rcode(hit.flags & RCODE);
    if !matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN) {
        return Addresses::Failed(Rcode::SERVFAIL, Reason::UpstreamInvalid);
    }
    let Writer { ask, worker, .. } = writer;
    let Worker { chain, message, body, .. } = &mut **worker;
    let name = chain.name_at(trail.link + 1, ask.name);
    let body = &body[..hit.body_bytes.min(body.len())];
    write_message((name.as_wire(), ask.query.qtype), hit.counts, body, message);
    take_from_message(writer, hit.onward.is_some(), reason, trail)
}

/// Takes the addresses out of the message that the worker has, which is an answer of upstreams. One
/// that goes on leads to a name of this server, which is then that at the trail's link.
fn take_from_message(
    writer: &mut Writer<'_, '_, '_>,
    goes_on: bool,
    reason: Reason,
    trail: &mut Trail,
) -> Addresses {
    let ask = writer.ask;
    let Worker { chain, message, rdata, target, .. } = &mut *writer.worker;
    let Ok(response) = Response::parse(message) else {
        return Addresses::Failed(Rcode::SERVFAIL, Reason::UpstreamInvalid);
    };
    take_addresses(response.records(), ask.query.qtype, rdata, &mut trail.ttl);
    if !rdata.is_empty() {
        return Addresses::Found(reason);
    }
    if goes_on && response.last_alias(target) {
        chain.set(trail.link, target, ask.snapshot.zones.seed());
        return Addresses::GoesOn;
    }
    Addresses::None(match reason {
        Reason::Stale | Reason::Blocked => reason,
        _ => Reason::NoData,
    })
}

/// Writes the addresses in the answer section of a message over `rdata`, one behind the other, and
/// lowers `ttl` to the least of that section, and to that of a denial (rfc2308#5).
fn take_addresses<'m>(
    records: impl Iterator<Item = RecordView<'m>>,
    qtype: Type,
    rdata: &mut Vec<u8>,
    ttl: &mut u32,
) {
    rdata.clear();
    for record in records.take_while(|record| record.section != Section::Additional) {
        let ttl_max = match record.section {
            Section::Answer => record.ttl,
            _ if record.rtype == Type::SOA && rdata.is_empty() => {
                let minimum =
                    record.raw.last_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
                record.ttl.min(minimum)
            }
            _ => continue,
        };
        *ttl = ttl_max.min(*ttl);
        if record.section == Section::Answer
            && record.rtype == qtype
            && record.raw.len() == address_bytes(qtype)
        {
            rdata.extend_from_slice(record.raw);
        }
    }
}

/// The octets of an address of a type.
fn address_bytes(qtype: Type) -> usize {
    if qtype == Type::A { 4 } else { 16 }
}

/// Writes the addresses that the worker has, as records of the name at a hop.
fn write_addresses(writer: &mut Writer<'_, '_, '_>, hop: usize, ttl: u32) -> Result<(), Full> {
    let Writer { ask, answer, worker, .. } = writer;
    let Worker { chain, rdata, turn, .. } = &mut **worker;
    let (qtype, bytes) = (ask.query.qtype, address_bytes(ask.query.qtype));
    let name = chain.name_at(hop, ask.name);
    let owner = owner(OwnerAt { hop, len: name.as_wire().len() }, name);
    let count = u16::try_from(rdata.len() / bytes).unwrap_or(u16::MAX);
    let rotates = ask.snapshot.settings.rotate && count > 1;
    let first = if rotates { Turn::next(turn, count) } else { 0 };
    let (last, first) = rdata.split_at(first * bytes);
    let (reply, fixed) = (&mut answer.reply, (qtype, Class::IN, ttl));
    let mark = reply.mark();
    let mut addresses = first.chunks_exact(bytes).chain(last.chunks_exact(bytes));
    let written =
        addresses.try_for_each(|address| reply.record(Section::Answer, owner, fixed, address));
    written.inspect_err(|_| reply.rewind(mark))
}
