//! Writing RRsets.

use crate::context::{Context, Turn};
use zonda_wire::{Class, Full, Owner, Reply, Section, Type};
use zonda_zone::LookupName;
use zonda_zone::Set;

/// The last `len` octets of the name at a hop of the chain, as the owner of a record.
#[inline]
pub fn owner(hop: usize, name: &LookupName, len: usize) -> Owner<'_> {
    let wire = name.as_wire();
    let skip = wire.len() - len;
    if hop == 0 && len > 1 {
        Owner::Question { skip: skip as u16 } // a name has at most 255 octets
    } else {
        Owner::Name(&wire[skip..])
    }
}

/// Whether sets of this type begin with another record each time.
#[inline]
pub fn rotates(rtype: Type) -> bool {
    matches!(rtype, Type::A | Type::AAAA)
}

/// Octets of an address record whose owner is a pointer.
pub fn record_bytes(rtype: Type) -> u16 {
    2 + 10 + if rtype == Type::A { 4 } else { 16 }
}

/// Writes whole sets into a reply.
pub struct Writer<'w, 'b> {
    /// The reply.
    pub reply: &'w mut Reply<'b>,
    /// Whether signatures are wanted.
    pub dnssec_ok: bool,
    /// Where sets of addresses begin, if they rotate.
    pub turn: Option<&'w mut Turn>,
}

impl<'w, 'b> Writer<'w, 'b> {
    /// A writer of sets that do not rotate.
    pub fn of(cx: &'w mut Context<'b>) -> Self {
        Self { dnssec_ok: cx.query.dnssec_ok(), reply: &mut cx.reply, turn: None }
    }

    /// Writes a set and, if wanted, its signatures.
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
        let mark = self.reply.mark();
        let written = self.records(section, owner, set).and_then(|()| match signatures {
            Some(signatures) if self.dnssec_ok => self.records(section, owner, signatures),
            _ => Ok(()),
        });
        written.inspect_err(|_| self.reply.rewind(mark))
    }

    /// Writes the records of a set.
    #[inline]
    fn records(&mut self, section: Section, owner: Owner<'_>, set: Set<'_>) -> Result<(), Full> {
        let fixed = (set.rtype, Class::IN, set.ttl);
        let first = match &mut self.turn {
            Some(turn) if set.count > 1 && rotates(set.rtype) => turn.next(set.count),
            _ => 0,
        };
        for rdata in set.rdatas().skip(first).chain(set.rdatas().take(first)) {
            self.reply.record(section, owner, fixed, rdata)?;
        }
        Ok(())
    }
}
