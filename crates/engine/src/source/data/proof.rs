//! Proofs of absence: the NSEC or NSEC3 records that go with an answer.
//!
//! A name is given by its hop in the chain; a zone without NSEC or NSEC3 records has no proofs.
//! Where hashes are iterated too often to be computed, a proof is one record that shows how often.

use super::write::{OwnerAt, Writer};
use zonda_wire::{Full, Owner, Section, Type, name};
use zonda_zone::snapshot::{Denial, NameHash, Nsec3, Sorted};
use zonda_zone::{LookupName, Node, Zone};

/// Writes the proof that a name does not exist: neither itself nor a wildcard that would match it
/// (rfc4035#3.1.3.2, rfc5155#7.2.2).
pub fn name_error(
    writer: &mut Writer<'_, '_, '_>,
    zone: &Zone,
    hop: usize,
    encloser: usize,
) -> Result<(), Full> {
    let mut proof = Proof::new(writer, zone);
    let name = proof.name(hop);
    match zone.denial() {
        Some(Denial::Nsec(places)) => {
            let wildcard = wildcard(name.suffix(encloser));
            proof.nsec_at_or_before(places, name.suffix(0))?;
            proof.nsec_at_or_before(places, wildcard.as_wire())
        }
        Some(Denial::Nsec3(nsec3)) => {
            let encloser = proof.closest_encloser(nsec3, &name, encloser)?;
            proof.nsec3_covering(nsec3, wildcard(name.suffix(encloser)).as_wire())
        }
        Some(Denial::Uncomputed(hash)) => proof.nsec3_of(hash),
        None => Ok(()),
    }
}

/// The name exists, the type does not (rfc4035#3.1.3.1, rfc5155#7.2.3 and #7.2.4).
pub fn no_data(
    writer: &mut Writer<'_, '_, '_>,
    zone: &Zone,
    hop: usize,
    node: Node<'_>,
) -> Result<(), Full> {
    let mut proof = Proof::new(writer, zone);
    let name = proof.name(hop);
    match zone.denial() {
        Some(Denial::Nsec(places)) => match node.signed_set(Type::NSEC) {
            Some(_) => proof.nsec_of(node),
            None => proof.nsec_at_or_before(places, name.suffix(0)),
        },
        Some(Denial::Nsec3(nsec3)) => proof.matching_or_enclosing(nsec3, &name),
        Some(Denial::Uncomputed(hash)) => proof.nsec3_of(hash),
        None => Ok(()),
    }
}

/// A wildcard stands for the name, but does not have the type (rfc4035#3.1.3.4, rfc5155#7.2.5).
pub fn wildcard_no_data(
    writer: &mut Writer<'_, '_, '_>,
    zone: &Zone,
    hop: usize,
    encloser: usize,
    node: Node<'_>,
) -> Result<(), Full> {
    let mut proof = Proof::new(writer, zone);
    let name = proof.name(hop);
    match zone.denial() {
        Some(Denial::Nsec(places)) => {
            match node.set(Type::NSEC) {
                Some(_) => proof.nsec_of(node)?,
                None => {
                    let wildcard = wildcard(name.suffix(encloser));
                    proof.nsec_at_or_before(places, wildcard.as_wire())?;
                }
            }
            proof.nsec_at_or_before(places, name.suffix(0))
        }
        Some(Denial::Nsec3(nsec3)) => {
            let encloser = proof.closest_encloser(nsec3, &name, encloser)?;
            proof.nsec3_matching(nsec3, wildcard(name.suffix(encloser)).as_wire()).map(|_| ())
        }
        Some(Denial::Uncomputed(hash)) => proof.nsec3_of(hash),
        None => Ok(()),
    }
}

/// A wildcard answered: no closer name exists (rfc4035#3.1.3.3, rfc5155#7.2.6).
pub fn expansion(
    writer: &mut Writer<'_, '_, '_>,
    zone: &Zone,
    hop: usize,
    encloser: usize,
) -> Result<(), Full> {
    let mut proof = Proof::new(writer, zone);
    let name = proof.name(hop);
    match zone.denial() {
        Some(Denial::Nsec(places)) => proof.nsec_at_or_before(places, name.suffix(0)),
        Some(Denial::Nsec3(nsec3)) => proof.nsec3_covering(nsec3, name.suffix(encloser - 1)),
        Some(Denial::Uncomputed(hash)) => proof.nsec3_of(hash),
        None => Ok(()),
    }
}

/// A delegation with this owner is signed or proven not to be (rfc4035#3.1.4, rfc5155#7.2.7).
pub fn delegation(
    writer: &mut Writer<'_, '_, '_>,
    zone: &Zone,
    at: OwnerAt,
    cut: Node<'_>,
) -> Result<(), Full> {
    // An unsigned zone cannot vouch for a DS record.
    let Some(denial) = zone.denial() else { return Ok(()) };
    let mut proof = Proof::new(writer, zone);
    let name = proof.name(at.hop);
    let owner = &name.as_wire()[name.as_wire().len() - at.len..];
    if let Some((ds, signatures)) = cut.signed_set(Type::DS) {
        return proof.writer.set(Section::Authority, Owner::Name(owner), ds, signatures);
    }
    match denial {
        Denial::Nsec(_) => proof.nsec_of(cut),
        Denial::Uncomputed(hash) => proof.nsec3_of(hash),
        Denial::Nsec3(nsec3) => {
            let name = LookupName::new(owner, proof.writer.ask.snapshot.zones.seed());
            proof.matching_or_enclosing(nsec3, &name)
        }
    }
}

/// The name `*` below `encloser`.
fn wildcard(encloser: &[u8]) -> WildcardName {
    let mut wire = [0; name::NAME_BYTES_MAX + 2];
    wire[..2].copy_from_slice(b"\x01*");
    wire[2..2 + encloser.len()].copy_from_slice(encloser);
    WildcardName { wire, len: 2 + encloser.len() }
}

/// A name with `*` as its first label. May be two octets longer than a name: then it cannot exist,
/// and its place in the canonical order still proves so.
struct WildcardName {
    wire: [u8; name::NAME_BYTES_MAX + 2],
    len: usize,
}

impl WildcardName {
    /// The name in wire form.
    fn as_wire(&self) -> &[u8] {
        &self.wire[..self.len]
    }
}

/// Writes the records of one proof, none twice.
struct Proof<'p, 'w, 's, 'b> {
    /// The reply under way.
    writer: &'p mut Writer<'w, 's, 'b>,
    /// The zone that proves.
    zone: &'p Zone,
}

impl<'p, 'w, 's, 'b> Proof<'p, 'w, 's, 'b> {
    /// A proof that nothing is written of.
    fn new(writer: &'p mut Writer<'w, 's, 'b>, zone: &'p Zone) -> Self {
        Self { writer, zone }
    }

    /// The name at a hop of the chain.
    fn name(&self, hop: usize) -> LookupName {
        self.writer.name(hop).clone()
    }

    /// Writes a node's set, unless the proof has it already.
    fn write(&mut self, node: Node<'_>, rtype: Type) -> Result<(), Full> {
        let (relative, apex) = (node.relative_owner(), self.zone.apex());
        if !self.writer.worker.proven.insert(relative.as_ptr().addr()) {
            return Ok(());
        }
        let Some((set, signatures)) = node.signed_set(rtype) else { return Ok(()) };
        let mut owner = [0; name::NAME_BYTES_MAX];
        owner[..relative.len()].copy_from_slice(relative);
        owner[relative.len()..relative.len() + apex.len()].copy_from_slice(apex);
        let owner = &owner[..relative.len() + apex.len()];
        self.writer.set(Section::Authority, Owner::Name(owner), set, signatures)
    }

    /// Writes the NSEC record of a node.
    fn nsec_of(&mut self, node: Node<'_>) -> Result<(), Full> {
        self.write(node, Type::NSEC)
    }

    /// Writes the NSEC record that matches or covers `owner`.
    fn nsec_at_or_before(&mut self, places: &Sorted, owner: &[u8]) -> Result<(), Full> {
        match self.zone.nsec_at_or_before(places, owner) {
            Some(node) => self.write(node, Type::NSEC),
            None => Ok(()),
        }
    }

    /// Writes the NSEC3 record of a hash.
    fn nsec3_of(&mut self, hash: &NameHash) -> Result<(), Full> {
        self.zone.node_of_hash(hash).map_or(Ok(()), |node| self.write(node, Type::NSEC3))
    }

    /// Writes the NSEC3 record that matches `owner`; whether there is one.
    fn nsec3_matching(&mut self, nsec3: &Nsec3, owner: &[u8]) -> Result<bool, Full> {
        let hash: NameHash = nsec3.hash(owner);
        match self.zone.nsec3_at_or_before(nsec3, &hash) {
            Some((node, true)) => self.write(node, Type::NSEC3).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Writes the NSEC3 record that covers `owner`.
    fn nsec3_covering(&mut self, nsec3: &Nsec3, owner: &[u8]) -> Result<(), Full> {
        match self.zone.nsec3_at_or_before(nsec3, &nsec3.hash(owner)) {
            Some((node, _)) => self.write(node, Type::NSEC3),
            None => Ok(()),
        }
    }

    /// Writes the closest encloser proof (rfc5155#7.2.1) and returns the label at which the closest
    /// encloser that has an NSEC3 record begins; `encloser` is where the closest one does.
    fn closest_encloser(
        &mut self,
        nsec3: &Nsec3,
        name: &LookupName,
        encloser: usize,
    ) -> Result<usize, Full> {
        for label in encloser..=name.label_count() {
            if self.nsec3_matching(nsec3, name.suffix(label))? {
                if label > 0 {
                    self.nsec3_covering(nsec3, name.suffix(label - 1))?;
                }
                return Ok(label);
            }
        }
        Ok(encloser)
    }

    /// Writes the NSEC3 record of a name; if an opt-out left it out, the closest encloser proof.
    fn matching_or_enclosing(&mut self, nsec3: &Nsec3, name: &LookupName) -> Result<(), Full> {
        if name.label_count() == self.zone.apex_labels() {
            return self.nsec3_matching(nsec3, name.suffix(0)).map(|_| ());
        }
        self.closest_encloser(nsec3, name, 0).map(|_| ())
    }
}
