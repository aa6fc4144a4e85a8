//! Records as a master file that says everything in one way.
//!
//! One record a line, fields between tabs, names written out, TTLs in seconds, in canonical order,
//! without duplicates. What was printed prints the same again when it is read.

use crate::order;
use crate::records::{Record, Records};
use std::io::{self, Write};
use zonda_wire::rdata::Presentation;
use zonda_wire::{Type, name};

/// Writes all records, SOA first.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print(records: &Records, out: &mut impl Write) -> io::Result<()> {
    let mut order = order::canonical_without_duplicates(records);
    let is_soa = |&index: &u32| records.get(index as usize).rtype == Type::SOA;
    if let Some(at) = order.iter().position(is_soa) {
        order[..=at].rotate_right(1); // only names outside the zone can come before its apex
    }
    order.into_iter().try_for_each(|index| print_record(&records.get(index as usize), out))
}

/// Writes one line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print_record(record: &Record<'_>, out: &mut impl Write) -> io::Result<()> {
    let Record { owner, rtype, ttl, rdata } = *record;
    let owner = name::Presentation(owner);
    writeln!(out, "{owner}\t{ttl}\tIN\t{rtype}\t{}", Presentation { rtype, rdata })
}
