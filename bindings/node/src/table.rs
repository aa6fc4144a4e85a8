//! Records that a program holds in memory and that need no code of its own: the workers answer from
//! them.
//!
//! A name has what `*` has below its closest ancestor, unless it has records itself. A name without
//! records of a type is NODATA, and one without any is NXDOMAIN.
//!
//! # Invariants
//! - No name of the table is without records.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use zonda_engine::code::{HandlerQuery, HandlerReply, Source};
use zonda_wire::name::NAME_BYTES_MAX;
use zonda_wire::{Name, Section, Type};

/// A record without its owner.
struct Record {
    rtype: Type,
    ttl: u32,
    rdata: Box<[u8]>,
}

/// Names in lower case and wire form, and their records.
type Names = HashMap<Box<[u8]>, Box<[Record]>>;

/// Records by their names.
#[derive(Default)]
pub struct Table {
    /// Read by all workers, and written for the time of one insertion.
    names: RwLock<Names>,
}

impl Table {
    /// Gives a name the records of a draft, in place of those that it had.
    pub fn set(&self, name: &Name, draft: &HandlerReply) {
        let record = |(_, _, rtype, ttl, rdata): (Section, &[u8], Type, u32, &[u8])| Record {
            rtype,
            ttl,
            rdata: rdata.into(),
        };
        let records: Box<[Record]> = draft.records().map(record).collect();
        let name = name.to_lowercase();
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        if records.is_empty() {
            names.remove(name.as_wire());
        } else {
            names.insert(name.as_wire().into(), records);
        }
    }

    /// Forgets all names.
    pub fn clear(&self) {
        self.names.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Source for Table {
    fn answer(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let Some(records) = find(&names, asked.name().as_wire()) else { return draft.nxdomain() };
        draft.no_data();
        let qtype = asked.qtype();
        for record in records.iter().filter(|it| it.rtype == qtype || qtype == Type::ANY) {
            let fixed = (record.rtype, record.ttl);
            if let Err(overfull) = draft.push(Section::Answer, &[], fixed, &record.rdata) {
                return draft.servfail(&overfull.to_string());
            }
        }
    }
}

/// The records of a name, or of the `*` that is closest to it.
fn find<'t>(names: &'t Names, name: &[u8]) -> Option<&'t [Record]> {
    if let Some(records) = names.get(name) {
        return Some(records);
    }
    let mut wildcard = [0; NAME_BYTES_MAX];
    wildcard[..2].copy_from_slice(b"\x01*");
    let mut rest = name;
    while let Some(parent) = zonda_wire::name::parent(rest) {
        let len = 2 + parent.len(); // a label has at least two octets with its length
        wildcard.get_mut(2..len)?.copy_from_slice(parent);
        if let Some(records) = names.get(&wildcard[..len]) {
            return Some(records);
        }
        rest = parent;
    }
    None
}
