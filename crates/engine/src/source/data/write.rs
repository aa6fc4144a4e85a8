//! Writing RRsets.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reuse::{NotReused, Reuse, rotates};
use crate::worker::{Turn, Worker};
use zonda_balance::Choice;
use zonda_wire::{Class, Full, Owner, Reply, Section, Type};
use zonda_zone::{LookupName, Set};

/// The reply to one query under way, with what is needed to write sets into it.
pub struct Writer<'w, 's, 'b> {
    /// The query and its client.
    pub ask: &'w Ask<'s>,
    /// The reply under way.
    pub answer: &'w mut Answer<'b>,
    /// The worker's names and buffers.
    pub worker: &'w mut Worker,
    /// Whether the reply may be reused, as far as it is written.
    pub reuse: Reuse,
}

/// The last octets of the name at a hop of the chain, as the owner of a record.
#[derive(Clone, Copy)]
pub struct OwnerAt {
    /// The number of CNAME or DNAME records that led to the name.
    pub hop: usize,
    /// The number of octets of the owner.
    pub len: usize,
}

impl<'w, 's, 'b> Writer<'w, 's, 'b> {
    /// The name at a hop of the chain: the one asked for, or what an alias leads to.
    #[inline]
    pub fn name(&self, hop: usize) -> &LookupName {
        self.worker.chain.name_at(hop, self.ask.name)
    }

    /// Writes a set and, if the client wants them, its signatures.
    ///
    /// # Errors
    /// When both do not fit; then neither is kept (rfc2181#9).
    #[inline]
    pub fn set(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        set: Set<'_>,
        signatures: Option<Set<'_>>,
    ) -> Result<(), Full> {
        let signatures = signatures.filter(|_| self.ask.dnssec_ok());
        write_set(&mut self.answer.reply, section, owner, set, signatures, 0)
    }

    /// Writes a set with the name of a hop, or one above it, as the owner.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    #[inline]
    pub fn set_at(
        &mut self,
        section: Section,
        at: OwnerAt,
        set: Set<'_>,
        signatures: Option<Set<'_>>,
    ) -> Result<(), Full> {
        let signatures = signatures.filter(|_| self.ask.dnssec_ok());
        let owner = owner(at, self.worker.chain.name_at(at.hop, self.ask.name));
        write_set(&mut self.answer.reply, section, owner, set, signatures, 0)
    }

    /// Writes a set that answers the question, beginning with another record each time if sets of
    /// its type rotate.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    #[inline]
    pub fn answer_set(
        &mut self,
        hop: usize,
        set: Set<'_>,
        signatures: Option<Set<'_>>,
    ) -> Result<(), Full> {
        let signatures = signatures.filter(|_| self.ask.dnssec_ok());
        let name = self.worker.chain.name_at(hop, self.ask.name);
        let owner = owner(OwnerAt { hop, len: name.as_wire().len() }, name);
        let rotates = self.ask.snapshot.settings.rotate && set.count > 1 && rotates(set.rtype);
        let is_first = self.answer.reply.body().is_empty();
        let first = if rotates { Turn::next(&mut self.worker.turn, set.count) } else { 0 };
        let reply = &mut self.answer.reply;
        write_set(reply, Section::Answer, owner, set, signatures, first)?;
        if rotates {
            // A hot entry rotates where every record begins with a pointer to the question.
            match self.reuse {
                Reuse::Hot(_) if is_first && matches!(owner, Owner::Question { .. }) => {
                    self.reuse = Reuse::Hot(set.count);
                }
                _ => self.reuse.forbid(NotReused::Rotation),
            }
        }
        Ok(())
    }
}

impl Writer<'_, '_, '_> {
    /// Writes the records of the members that a pool has chosen for the name at a hop.
    ///
    /// # Errors
    /// When not all fit; then none is kept (rfc2181#9).
    pub fn chosen(
        &mut self,
        hop: usize,
        (rtype, ttl): (Type, u32),
        choice: &Choice<'_>,
    ) -> Result<(), Full> {
        self.reuse.forbid(NotReused::Steered);
        let name = self.worker.chain.name_at(hop, self.ask.name);
        let owner = owner(OwnerAt { hop, len: name.as_wire().len() }, name);
        let reply = &mut self.answer.reply;
        let mark = reply.mark();
        let fixed = (rtype, Class::IN, ttl);
        let written = (0..choice.count())
            .try_for_each(|place| reply.record(Section::Answer, owner, fixed, choice.rdata(place)));
        written.inspect_err(|_| reply.rewind(mark))
    }
}

/// The owner that is the last octets of a name at a hop.
#[inline]
pub fn owner(OwnerAt { hop, len }: OwnerAt, name: &LookupName) -> Owner<'_> {
    let wire = name.as_wire();
    let skip = wire.len() - len;
    if hop == 0 && len > 1 {
        Owner::Question { skip: skip as u16 } // a name has at most 255 octets
    } else {
        Owner::Name(&wire[skip..])
    }
}

/// Writes a set from its record number `first` on, and its signatures; neither if both do not fit.
#[inline]
fn write_set(
    reply: &mut Reply<'_>,
    section: Section,
    owner: Owner<'_>,
    set: Set<'_>,
    signatures: Option<Set<'_>>,
    first: usize,
) -> Result<(), Full> {
    let mark = reply.mark();
    let written = records(reply, section, owner, set, first).and_then(|()| match signatures {
        Some(signatures) => records(reply, section, owner, signatures, 0),
        None => Ok(()),
    });
    written.inspect_err(|_| reply.rewind(mark))
}

/// Writes the records of a set from number `first` on.
#[inline]
fn records(
    reply: &mut Reply<'_>,
    section: Section,
    owner: Owner<'_>,
    set: Set<'_>,
    first: usize,
) -> Result<(), Full> {
    let fixed = (set.rtype, Class::IN, set.ttl);
    for rdata in set.rdatas().skip(first) {
        reply.record(section, owner, fixed, rdata)?;
    }
    match first {
        0 => Ok(()),
        _ => rotated_records(reply, section, owner, set, first),
    }
}

/// Writes the records of a set with the first ones last.
#[inline(never)] // it would only make the path of sets that do not rotate longer
fn rotated_records(
    reply: &mut Reply<'_>,
    section: Section,
    owner: Owner<'_>,
    set: Set<'_>,
    count: usize,
) -> Result<(), Full> {
    let fixed = (set.rtype, Class::IN, set.ttl);
    for rdata in set.rdatas().take(count) {
        reply.record(section, owner, fixed, rdata)?;
    }
    Ok(())
}
