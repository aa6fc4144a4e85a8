//! Search paths that are followed for clients.
//!
//! A cluster's pod asks for several names, until one exists. The first of them, which does not, is
//! answered as an alias of the one that does. Names are looked for in the order in which the pod
//! would ask for them; whether one exists does not depend on the type, so that A and AAAA lead to
//! the same name.
//!
//! Where it cannot be told which name exists, and where none does, the first name is denied as it
//! would be without this: the client goes on by itself, and loses nothing but time.

use super::alias::{append, forwarded_target};
use super::cluster::is_of_cluster;
use super::follow::is_allowed;
use super::walk::Walk;
use super::write::Writer;
use crate::ask::Ask;
use crate::code::claim::claim;
use crate::deferral::{Deferral, To, UpstreamAnswer};
use crate::kept_query;
use crate::reason::Reason;
use crate::snapshot::Snapshot;
use crate::source::local::overlay_of;
use crate::verdict::{Flow, Verdict};
use crate::worker::Worker;
use crate::zones::{ClusterZone, Forward, Source, ZoneEntry};
use std::ops::ControlFlow::{Break, Continue};
use zonda_cache::{Hit, Inserts, Kind};
use zonda_wire::query::flag;
use zonda_wire::{Class, Ede, Full, Owner, Rcode, Section, Type};
use zonda_zone::{LookupName, LookupResult, Zone};

/// Where a flags word has the lower four bits of the response code.
const RCODE: u16 = 0x000f;

/// A name of a search path, as far as this server can tell by itself.
enum Candidate<'s> {
    /// The name does not exist.
    Missing,
    /// This server has the name.
    Here,
    /// Upstreams tell whether it exists.
    Forwarded(&'s Forward),
    /// Whether the name exists cannot be told, or not to this client.
    Unknown,
}

/// What is known of a name that is forwarded.
enum CandidateAnswer {
    /// The name does not exist, and the next one is looked for.
    Missing,
    /// The query ends with this, or waits.
    Flow(Flow),
    /// Whether the name exists cannot be told.
    Unknown,
}

/// Returns where to ask for what a local name, in wire form, is an alias of, or for the name number
/// `search_step` behind it on a search path: the number of a [`Forward`],
/// and the name to ask for.
#[must_use]
pub fn fetched_name(
    snapshot: &Snapshot,
    name: &[u8],
    (qtype, search_step): (Type, Option<u8>),
) -> Option<(u32, LookupName)> {
    let mut name = LookupName::new(name, snapshot.zones.seed());
    if let Some(step) = search_step {
        name = name_at(snapshot, &name, step)?;
        let found = snapshot.zones.find_answering(&name, qtype)?;
        if let Source::Forward(forward) = &snapshot.zones.get(found.index).source {
            return Some((forward.number, name));
        }
    }
    let (found, name) = forwarded_target(snapshot, &name, qtype)?;
    match &snapshot.zones.get(found.index).source {
        Source::Forward(forward) => Some((forward.number, name)),
        _ => None,
    }
}

/// Returns the name number `step` behind the first one of a search path, which begins with a name
/// in wire form; nothing if no cluster has the search path.
fn name_at(snapshot: &Snapshot, name: &LookupName, step: u8) -> Option<LookupName> {
    let found = snapshot.zones.find(name, name.label_count())?;
    let Source::Cluster(zone) = &snapshot.zones.get(found.index).source else { return None };
    let mut wire = Vec::new();
    let asked = zone.cluster.search_names(name)?;
    asked.write(step.into(), &mut wire).then(|| LookupName::new(&wire, snapshot.zones.seed()))
}

/// Whether search paths are followed for questions of a type: not for those about the name itself.
fn is_searched(qtype: Type) -> bool {
    const OF_NAMES: [Type; 8] = [
        Type::ANY,
        Type::RRSIG,
        Type::NSEC,
        Type::CNAME,
        Type::SOA,
        Type::NS,
        Type::DS,
        Type::DNAME,
    ];
    !OF_NAMES.contains(&qtype)
}

/// Whether a name of a search path exists.
fn candidate<'s>(ask: &Ask<'s>, name: &LookupName) -> Candidate<'s> {
    let zones = &ask.snapshot.zones;
    let found = zones.find(name, name.label_count());
    let claim = claim(ask.snapshot, name, ask.query.qtype);
    let Some(found) = found.filter(|_| !claim.is_own && !claim.exists) else {
        return Candidate::Unknown;
    };
    let entry: &ZoneEntry = zones.get(found.index);
    if !is_allowed(ask, entry) {
        return Candidate::Unknown;
    }
    let is_own = ask.zone.is_some_and(|own| own.version() == entry.version());
    let can_be_entered = is_own || ask.snapshot.settings.cross_zone;
    let exists = match &entry.source {
        Source::Forward(it) if overlay_of(name, &it.overlays).is_none() => {
            return Candidate::Forwarded(it);
        }
        Source::Cluster(it) if is_of_cluster(it, name) => Some(true),
        Source::Cluster(it) => (!it.falls_through).then_some(false),
        Source::Data(zone) => exists(ask.snapshot, zone, name),
        Source::Local(it) if overlay_of(name, &it.overlays).is_none() => {
            exists(ask.snapshot, &it.zone, name)
        }
        _ => None,
    };
    match exists {
        Some(false) => Candidate::Missing,
        Some(true) if can_be_entered => Candidate::Here,
        _ => Candidate::Unknown,
    }
}

/// Whether zone data have a name; nothing if other data or servers decide.
fn exists(snapshot: &Snapshot, zone: &Zone, name: &LookupName) -> Option<bool> {
    let (exists, encloser) = match zone.find(name, false) {
        LookupResult::Exact(_) => (true, 0),
        LookupResult::Wildcard { encloser, .. } => (true, encloser),
        LookupResult::Missing { encloser } => (false, encloser),
        LookupResult::Referral(_) | LookupResult::Dname(_) => return None,
    };
    let steering = snapshot.steering.as_deref();
    let steered = steering.and_then(|it| it.names.find(name, zone.apex().len(), encloser));
    steered.is_none().then_some(exists)
}

impl<'s> Walk<'_, 's, '_> {
    /// Answers for the name asked for, which the cluster lacks, with the first one of its client's
    /// search path that exists; nothing if none does, or that cannot be told.
    ///
    /// # Errors
    /// When the reply has no room for the alias.
    #[inline(never)] // most clusters follow no search paths
    pub(super) fn follow_search_path(
        &mut self,
        zone: &'s ClusterZone,
    ) -> Result<Option<Flow>, Full> {
        let ask = self.writer.ask;
        // A name that a cluster of a former time lacks may exist by now.
        if self.hop() > 0 || zone.is_stale || !is_searched(ask.query.qtype) {
            return Ok(None);
        }
        let client = ask.peer.address.ip();
        let Some(asked) = zone.cluster.searched(ask.name, Some(client)) else { return Ok(None) };
        let ttl = zone.cluster.options().ttl;
        let resumed = ask.progress.search_step();
        for step in resumed.unwrap_or(0)..asked.count() as u8 {
            let fetched = ask.progress.upstream_answer().filter(|_| Some(step) == resumed);
            let Worker { target, scratch, .. } = &mut *self.writer.worker;
            if !asked.write(step.into(), target) {
                continue; // the client cannot ask for it either
            }
            scratch.set(target, ask.snapshot.zones.seed());
            match candidate(ask, scratch) {
                Candidate::Missing => {}
                Candidate::Unknown => return Ok(None),
                Candidate::Here => return self.enter_candidate((step, ttl), fetched),
                Candidate::Forwarded(forward) => {
                    match self.ask_upstreams(forward, (step, ttl), fetched)? {
                        CandidateAnswer::Missing => {}
                        CandidateAnswer::Flow(flow) => return Ok(Some(flow)),
                        CandidateAnswer::Unknown => return Ok(None),
                    }
                }
            }
        }
        Ok(None)
    }

    /// Goes on with a name that this server has. What that is itself an alias of may be fetched
    /// first.
    fn enter_candidate(
        &mut self,
        (step, ttl): (u8, u32),
        fetched: Option<&UpstreamAnswer<'_>>,
    ) -> Result<Option<Flow>, Full> {
        let ask = self.writer.ask;
        let scratch = &self.writer.worker.scratch;
        if fetched.is_none()
            && let Some((found, name)) = forwarded_target(ask.snapshot, scratch, ask.query.qtype)
        {
            let entry = ask.snapshot.zones.get(found.index);
            let may_fetch = ask.query.flags & flag::RD != 0 && is_allowed(ask, entry);
            let Source::Forward(forward) = &entry.source else { return Ok(None) };
            return Ok(may_fetch.then(|| self.defer(forward, (step, name.hash(0)), None)));
        }
        self.write_found(ttl)?;
        self.go_to_found().map(Some)
    }

    /// Answers with what upstreams have said of a name, or has them asked.
    fn ask_upstreams(
        &mut self,
        forward: &Forward,
        (step, ttl): (u8, u32),
        fetched: Option<&UpstreamAnswer<'_>>,
    ) -> Result<CandidateAnswer, Full> {
        let ask = self.writer.ask;
        let Worker { body, scratch, .. } = &mut *self.writer.worker;
        if let Some(fetched) = fetched {
            return match fetched.rcode {
                // Zones have changed.
                _ if !fetched.is_for(scratch.as_wire()) => Ok(CandidateAnswer::Unknown),
                Rcode::NXDOMAIN => Ok(CandidateAnswer::Missing),
                Rcode::NOERROR => {
                    self.write_found(ttl)?;
                    self.go_to_found().map(CandidateAnswer::Flow)
                }
                rcode => {
                    self.writer.answer.set_text(body, fetched.text);
                    self.done(rcode, fetched.reason).map(CandidateAnswer::Flow)
                }
            };
        }
        let (facts, secs) = (ask.facts_for(forward), ask.now.monotonic_secs());
        let key = forward.cache_key(ask.query, scratch, &facts);
        let found = forward.cache.find_or_moment(&key, secs, body);
        match found {
            Ok(hit) if hit.kind == Kind::Failure => {
                self.writer.answer.text_bytes = hit.body_bytes;
                self.done(Rcode(hit.flags & RCODE), Reason::CachedFailure)
                    .map(CandidateAnswer::Flow)
            }
            Ok(hit) if hit.onward.is_none() && !hit.refresh_due => self.give_cached(&hit, ttl),
            _ if ask.query.flags & flag::RD == 0 => Ok(CandidateAnswer::Unknown),
            found => {
                let hash = scratch.hash(0);
                Ok(CandidateAnswer::Flow(self.defer(forward, (step, hash), found.err())))
            }
        }
    }

    /// Answers with what is cached of a name, whose body the worker has.
    fn give_cached(&mut self, hit: &Hit, ttl: u32) -> Result<CandidateAnswer, Full> {
        let rcode = Rcode(hit.flags & RCODE);
        let reason = match hit.ede {
            Some(Ede::BLOCKED) => Reason::Blocked,
            _ if hit.is_stale => Reason::Stale,
            _ => Reason::Cached,
        };
        if rcode == Rcode::NXDOMAIN {
            return Ok(CandidateAnswer::Missing);
        }
        self.write_found(ttl)?;
        let octets = std::mem::take(&mut self.writer.worker.body);
        let name = std::mem::take(&mut self.writer.worker.target);
        let cached = UpstreamAnswer {
            name: &name,
            rcode,
            counts: hit.counts,
            body: octets.get(..hit.body_bytes).unwrap_or_default(),
            is_authentic: false,
            goes_on: false,
            reason,
            text: b"",
        };
        let appended = append(&mut self.writer, &cached);
        self.writer.worker.body = octets;
        self.writer.worker.target = name;
        appended?;
        self.done(rcode, reason).map(CandidateAnswer::Flow)
    }

    /// Has a name looked up, and the query wait for it.
    fn defer(
        &mut self,
        forward: &Forward,
        (step, name_hash): (u8, u64),
        missed_at: Option<Inserts>,
    ) -> Flow {
        let deferral = Deferral::new(To::Forward(forward.number), name_hash);
        let history = crate::code::History { search_step: Some(step), ..deferral.history.clone() };
        self.writer.worker.deferral = Deferral { is_alias: true, missed_at, history, ..deferral };
        Break(Verdict::Defer)
    }

    /// Writes that the name asked for is an alias of the one found, which lies in the worker's
    /// buffer for targets.
    fn write_found(&mut self, ttl: u32) -> Result<(), Full> {
        let Writer { ask, answer, worker, .. } = &mut self.writer;
        kept_query::keep(ask, answer, worker);
        self.writer.answer.flags |= flag::AA;
        let (fixed, owner) = ((Type::CNAME, Class::IN, ttl), Owner::Question { skip: 0 });
        let target = &self.writer.worker.target;
        self.writer.answer.reply.record(Section::Answer, owner, fixed, target)
    }

    /// Makes the name found the present one.
    fn go_to_found(&mut self) -> Result<Flow, Full> {
        let target = std::mem::take(&mut self.writer.worker.target);
        let flow = self.go_to(&target);
        self.writer.worker.target = target;
        debug_assert!(flow == Continue(()), "the chain has room for its first name");
        Ok(flow)
    }
}
