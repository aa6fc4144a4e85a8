//! Names of a Kubernetes cluster.
//!
//! What the zone's own data have (the apex, services that are aliases) is answered from those; all
//! other names are looked up among the objects, and their records are written for each query.

use super::walk::Walk;
use super::write::{OwnerAt, Writer, owner};
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse, rotates};
use crate::verdict::{Flow, Verdict};
use crate::worker::{Turn, Worker};
use crate::zones::{ClusterNames, ClusterZone};
use std::net::IpAddr;
use std::ops::ControlFlow::Break;
use zonda_cluster::{AddressMatch, Cluster, ClusterMatch, Selection};
use zonda_wire::name::NAME_BYTES_MAX;
use zonda_wire::query::flag;
use zonda_wire::{Class, Full, Owner, Rcode, Reply, Section, Type};
use zonda_zone::{LookupName, LookupResult};

/// Octets of the shortest record that is added to targets: an address of IP version 4 behind a
/// pointer.
const RECORD_BYTES_MIN: usize = 2 + 10 + 4;

/// Whether a cluster has a name or may have it, or its zone's own data have it.
pub fn is_of_cluster(zone: &ClusterZone, name: &LookupName) -> bool {
    let is_in_data = || matches!(zone.data.find(name, false), LookupResult::Exact(_));
    match zone.names {
        ClusterNames::Addresses => match zone.cluster.find_address(name) {
            AddressMatch::Address(_) => true,
            AddressMatch::Missing if zone.is_stale => true,
            AddressMatch::Empty | AddressMatch::InData | AddressMatch::Missing => is_in_data(),
        },
        ClusterNames::Services => match zone.cluster.find(name) {
            ClusterMatch::Missing => zone.is_stale,
            ClusterMatch::InData => is_in_data(),
            ClusterMatch::Empty | ClusterMatch::Service(_) | ClusterMatch::Address(_) => true,
        },
    }
}

/// Whether a reply with a name of a cluster may be put into the hot table, as far as is known
/// before the name is looked up.
#[inline]
pub fn reuse(ask: &Ask<'_>, zone: &ClusterZone) -> Reuse {
    let has_versions = zone.names == ClusterNames::Services && zone.cluster.has_versions();
    match (ask.query.qtype, has_versions && !zone.is_stale) {
        (_, false) => Reuse::No(NotReused::Cluster),
        (Type::ANY, true) => Reuse::No(NotReused::Any),
        (_, true) => Reuse::AS_IT_IS,
    }
}

/// Looks up the name asked for; nothing if the zone's names are those of addresses.
#[inline]
pub fn find<'s>(ask: &Ask<'s>, zone: &'s ClusterZone) -> Option<ClusterMatch<'s>> {
    (zone.names == ClusterNames::Services).then(|| zone.cluster.find(ask.name))
}

/// The answer section of a reply to a question for a name of a cluster.
pub struct ClusterAnswer<'w, 'b> {
    reply: &'w mut Reply<'b>,
    reuse: &'w mut Reuse,
    /// Decides which address comes first, where addresses rotate.
    turn: Option<&'w mut Turn>,
    cluster: &'w Cluster,
    qtype: Type,
    /// The owner of all records.
    owner: Owner<'w>,
}

impl<'w, 'b> ClusterAnswer<'w, 'b> {
    /// The answer for the name at a hop, which is returned as well.
    #[inline]
    pub fn new(
        writer: &'w mut Writer<'_, '_, 'b>,
        hop: usize,
        zone: &'w ClusterZone,
    ) -> (Self, &'w LookupName) {
        let Writer { ask, answer, worker, reuse } = writer;
        let Worker { chain, turn, .. } = &mut **worker;
        let name = chain.name_at(hop, ask.name);
        let answer = Self {
            reply: &mut answer.reply,
            reuse,
            turn: ask.snapshot.settings.rotate.then_some(turn),
            cluster: &zone.cluster,
            qtype: ask.query.qtype,
            owner: owner(OwnerAt { hop, len: name.as_wire().len() }, name),
        };
        (answer, name)
    }

    /// Writes the records of the type asked for that a service has. Returns whether there are any.
    ///
    /// # Errors
    /// When the reply has no room for all of them.
    #[inline]
    pub fn service_records(&mut self, found: Selection<'_>) -> Result<bool, Full> {
        match (self.qtype, found.own_addresses()) {
            (Type::SRV, _) => self.services(found),
            // Most services: an iterator that is a slice, not one that is moved by memcpy.
            (_, Some(own)) => {
                self.addresses(|is_v6| own.iter().copied().filter(move |it| it.is_ipv6() == is_v6))
            }
            (_, None) => self.addresses(|is_v6| found.endpoint_addresses(is_v6)),
        }
    }

    /// Writes the addresses of the type asked for, beginning with another one each time if they
    /// rotate; for ANY, those of one family. Returns whether there are any.
    ///
    /// # Errors
    /// When the reply has no room for all of them.
    fn addresses<I: Iterator<Item = IpAddr> + Clone>(
        &mut self,
        of_family: impl Fn(bool) -> I,
    ) -> Result<bool, Full> {
        let (rtype, found) = match self.qtype {
            Type::A => (Type::A, of_family(false)),
            Type::AAAA => (Type::AAAA, of_family(true)),
            Type::ANY if of_family(false).next().is_some() => (Type::A, of_family(false)),
            Type::ANY => (Type::AAAA, of_family(true)),
            _ => return Ok(false),
        };
        let mut first = 0;
        if let Some(turn) = self.turn.as_deref_mut().filter(|_| rotates(rtype)) {
            let count = u16::try_from(found.clone().count()).unwrap_or(u16::MAX);
            if count > 1 {
                first = turn.next(count);
                // A hot entry rotates where every record begins with a pointer to the question.
                if let Reuse::Hot(_) = self.reuse {
                    *self.reuse = Reuse::Hot(count);
                }
            }
        }
        let (reply, owner, ttl) = (&mut *self.reply, self.owner, self.cluster.options().ttl);
        let (mark, mut has_any) = (reply.mark(), false);
        for address in found.clone().skip(first).chain(found.take(first)) {
            has_any = true;
            let written = record(reply, Section::Answer, owner, (address, ttl));
            written.inspect_err(|_| reply.rewind(mark))?;
        }
        Ok(has_any)
    }

    /// Writes SRV records, and the addresses of their targets as far as they fit. Returns whether
    /// there are any.
    ///
    /// # Errors
    /// When the reply has no room for all SRV records.
    fn services(&mut self, found: Selection<'_>) -> Result<bool, Full> {
        let (reply, owner, cluster) = (&mut *self.reply, self.owner, self.cluster);
        let (mark, ttl) = (reply.mark(), cluster.options().ttl);
        let (priority, weight) = match cluster.options().is_kube_dns {
            true => (10_u16, 10),
            false => (0, found.weight()),
        };
        let fixed = (Type::SRV, Class::IN, ttl);
        let mut target = TargetName::default();
        let mut has_any = false;
        let written = found.each_target(|label, port| {
            has_any = true;
            target.set(label, &found.service.labels, cluster);
            let mut rdata = [0; 6 + NAME_BYTES_MAX];
            rdata[..2].copy_from_slice(&priority.to_be_bytes());
            rdata[2..4].copy_from_slice(&weight.to_be_bytes());
            rdata[4..6].copy_from_slice(&port.to_be_bytes());
            let name = target.as_wire();
            rdata[6..6 + name.len()].copy_from_slice(name);
            reply.record(Section::Answer, owner, fixed, &rdata[..6 + name.len()])
        });
        written.inspect_err(|_| reply.rewind(mark))?;
        if has_any {
            // What does not fit is left out: the client asks for it.
            let added = found.each_target_address(|label, address| {
                if reply.room() < RECORD_BYTES_MIN {
                    return Err(Full);
                }
                target.set(label, &found.service.labels, cluster);
                record(reply, Section::Additional, Owner::Name(target.as_wire()), (address, ttl))
            });
            if added.is_err() {
                self.reuse.forbid(NotReused::Truncated);
            }
        }
        Ok(has_any)
    }
}

impl<'s> Walk<'_, 's, '_> {
    /// Answers for the present name from a cluster; nothing if the zone's own data are to answer.
    ///
    /// # Errors
    /// When the reply has no room for all that answers the question.
    #[inline(never)] // it would only make the path of zone data longer
    pub(super) fn answer_from_cluster(
        &mut self,
        zone: &'s ClusterZone,
    ) -> Result<Option<Flow>, Full> {
        if zone.names == ClusterNames::Addresses {
            return self.answer_from_addresses(zone);
        }
        let (hop, found) = (self.hop(), self.found.take());
        let (mut answer, name) = ClusterAnswer::new(&mut self.writer, hop, zone);
        let found = found.unwrap_or_else(|| zone.cluster.find(name));
        let is_versioned = match found {
            // A denial behind which other zones were asked depends on theirs, too.
            ClusterMatch::Missing => !zone.falls_through && zone.cluster.is_denied_by_service(name),
            ClusterMatch::Service(_) => true,
            ClusterMatch::InData | ClusterMatch::Empty | ClusterMatch::Address(_) => false,
        };
        if hop > 0 || !is_versioned {
            answer.reuse.forbid(NotReused::Cluster);
        }
        let has_answered = match found {
            ClusterMatch::InData => return Ok(None),
            ClusterMatch::Empty => false,
            ClusterMatch::Missing => {
                return match self.follow_search_path(zone)? {
                    Some(flow) => Ok(Some(flow)),
                    None => self.end_without_name(zone),
                };
            }
            ClusterMatch::Address(address) => {
                let address = std::iter::once(address);
                answer.addresses(|is_v6| address.clone().filter(move |it| it.is_ipv6() == is_v6))?
            }
            ClusterMatch::Service(found) => answer.service_records(found)?,
        };
        self.writer.answer.flags |= flag::AA;
        Ok(Some(match has_answered {
            true => self.done(Rcode::NOERROR, Reason::Answered)?,
            false => Break(self.end_without_data()?),
        }))
    }

    /// Answers for the present name from the addresses of a cluster; nothing if the zone's own data
    /// are to answer.
    fn answer_from_addresses(&mut self, zone: &'s ClusterZone) -> Result<Option<Flow>, Full> {
        self.writer.reuse.forbid(NotReused::Cluster);
        let name = self.writer.name(self.hop());
        if name.label_count() == self.zone().apex_labels() {
            return Ok(None);
        }
        match zone.cluster.find_address(name) {
            AddressMatch::InData => Ok(None),
            AddressMatch::Address(address) => self.answer_pointers(&zone.cluster, address),
            AddressMatch::Empty => Ok(Some(Break(self.end_without_data()?))),
            AddressMatch::Missing => self.end_without_name(zone),
        }
    }

    /// Answers with the names of an address.
    fn answer_pointers(
        &mut self,
        cluster: &Cluster,
        address: IpAddr,
    ) -> Result<Option<Flow>, Full> {
        if !matches!(self.writer.ask.query.qtype, Type::PTR | Type::ANY) {
            return Ok(Some(Break(self.end_without_data()?)));
        }
        let name = self.writer.worker.chain.name_at(self.hop(), self.writer.ask.name);
        let owner = owner(OwnerAt { hop: self.hop(), len: name.as_wire().len() }, name);
        let reply = &mut self.writer.answer.reply;
        let (mark, fixed) = (reply.mark(), (Type::PTR, Class::IN, cluster.options().ttl));
        let written = cluster.each_pointer(address, |label, service| {
            let mut target = TargetName::default();
            target.set(label, service, cluster);
            reply.record(Section::Answer, owner, fixed, target.as_wire())
        });
        written.inspect_err(|_| reply.rewind(mark))?;
        self.writer.answer.flags |= flag::AA;
        self.done(Rcode::NOERROR, Reason::Answered).map(Some)
    }

    /// Ends with a name that has no records of the type.
    ///
    /// # Errors
    /// When the reply has no room for the SOA record.
    pub(super) fn end_without_data(&mut self) -> Result<Verdict, Full> {
        self.writer.answer.flags |= flag::AA;
        self.write_soa()?;
        Ok(self.verdict(Rcode::NOERROR, Reason::NoData))
    }

    /// Ends with a name that does not exist, as far as is known.
    fn end_without_name(&mut self, zone: &ClusterZone) -> Result<Option<Flow>, Full> {
        match zone.is_stale {
            true => self.done(Rcode::SERVFAIL, Reason::ZoneUnavailable),
            false => self.deny_name_apart(0),
        }
        .map(Some)
    }
}

/// Writes the record of an address.
fn record(
    reply: &mut Reply<'_>,
    section: Section,
    owner: Owner<'_>,
    (address, ttl): (IpAddr, u32),
) -> Result<(), Full> {
    match address {
        IpAddr::V4(v4) => reply.record(section, owner, (Type::A, Class::IN, ttl), &v4.octets()),
        IpAddr::V6(v6) => reply.record(section, owner, (Type::AAAA, Class::IN, ttl), &v6.octets()),
    }
}

/// The name of a service or of an endpoint.
struct TargetName {
    octets: [u8; NAME_BYTES_MAX],
    len: usize,
}

impl Default for TargetName {
    fn default() -> Self {
        Self { octets: [0; NAME_BYTES_MAX], len: 0 }
    }
}

impl TargetName {
    /// Makes it the name of the labels of an endpoint, if it has any, of those of a service, and of
    /// a cluster. A name that would be too long is that of the service.
    fn set(&mut self, endpoint: &[u8], service: &[u8], cluster: &Cluster) {
        self.len = 0;
        let (infix, apex) = (cluster.infix(), cluster.apex().as_wire());
        let rest = service.len() + infix.len() + apex.len();
        if endpoint.len() + rest <= NAME_BYTES_MAX {
            self.push(endpoint);
        }
        [service, infix, apex].into_iter().for_each(|it| self.push(it));
    }

    /// Appends octets; the whole is at most as long as a name can be.
    fn push(&mut self, octets: &[u8]) {
        self.octets[self.len..self.len + octets.len()].copy_from_slice(octets);
        self.len += octets.len();
    }

    /// Returns the name in wire form.
    fn as_wire(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}
