//! `zonda file stats`.

use super::check::{count, serial};
use super::input::Input;
use crate::output::{self, Failure};
use clap::Args;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use zonda_wire::{Name, Type};
use zonda_zone::{JsonZone, Record, order};

/// Count what is in a zone file
///
/// Duplicates count once. Octets are those of owner, type, class, TTL, length and data on the wire
/// without compression.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda file stats example.com.zone
  zonda file stats zones.json")]
pub struct Stats {
    #[command(flatten)]
    input: Input,
}

impl Stats {
    /// Counts.
    ///
    /// # Errors
    /// When the file cannot be read in whole.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let zones = self.input.read_whole()?;
        output::print(|out| zones.iter().try_for_each(|zone| Counts::of(zone).print(zone, out)))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Octets of a record beside its owner and data: type, class, TTL, length.
const FIXED_BYTES: usize = 10;

/// What a zone holds.
#[derive(Default)]
struct Counts {
    records: u64,
    octets: u64,
    sets: u64,
    names: u64,
    delegations: u64,
    signed_delegations: u64,
    wildcards: u64,
    by_type: BTreeMap<Type, u64>,
    largest_set: Option<LargestSet>,
}

/// The set with the most octets.
struct LargestSet {
    owner: Name,
    rtype: Type,
    records: usize,
    octets: usize,
}

impl Counts {
    /// Counts a zone.
    fn of(zone: &JsonZone) -> Self {
        let order = order::canonical_without_duplicates(&zone.records);
        let records: Vec<Record<'_>> =
            order.iter().map(|&index| zone.records.get(index as usize)).collect();
        let mut counts = Self::default();
        for name in records.chunk_by(|a, b| a.owner.eq_ignore_ascii_case(b.owner)) {
            counts.add_name(name, zone);
            name.chunk_by(|a, b| a.rtype == b.rtype).for_each(|set| counts.add_set(set));
        }
        counts
    }

    /// Adds the records of a name.
    fn add_name(&mut self, records: &[Record<'_>], zone: &JsonZone) {
        let owner = records[0].owner; // chunks are not empty
        let has = |rtype: Type| records.iter().any(|record| record.rtype == rtype);
        let is_cut = has(Type::NS) && !owner.eq_ignore_ascii_case(zone.name.as_wire());
        self.names += 1;
        self.delegations += u64::from(is_cut);
        self.signed_delegations += u64::from(is_cut && has(Type::DS));
        self.wildcards += u64::from(owner.starts_with(b"\x01*"));
    }

    /// Adds the records of a name and type.
    fn add_set(&mut self, records: &[Record<'_>]) {
        let Record { owner, rtype, .. } = records[0]; // chunks are not empty
        let octets = records.iter().map(|r| r.owner.len() + FIXED_BYTES + r.rdata.len()).sum();
        self.sets += 1;
        self.records += records.len() as u64;
        self.octets += octets as u64;
        *self.by_type.entry(rtype).or_default() += records.len() as u64;
        if self.largest_set.as_ref().is_none_or(|largest| largest.octets < octets)
            && let Ok(owner) = Name::from_wire(owner)
        {
            let records = records.len();
            self.largest_set = Some(LargestSet { owner, rtype, records, octets });
        }
    }

    /// How the zone proves what does not exist.
    fn signing(&self) -> &'static str {
        let has = |rtype| self.by_type.contains_key(&rtype);
        match () {
            () if !has(Type::DNSKEY) || !has(Type::RRSIG) => "no",
            () if has(Type::NSEC3PARAM) => "yes, with NSEC3",
            () if has(Type::NSEC) => "yes, with NSEC",
            () => "yes, without NSEC or NSEC3",
        }
    }

    /// Prints a line for each.
    fn print(&self, zone: &JsonZone, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "zone         {}", zone.name)?;
        if let Some(serial) = serial(zone) {
            writeln!(out, "serial       {serial}")?;
        }
        writeln!(out, "records      {}", self.records)?;
        writeln!(out, "octets       {}", self.octets)?;
        writeln!(out, "sets         {}", self.sets)?;
        writeln!(out, "names        {}", self.names)?;
        writeln!(out, "delegations  {} ({} with DS)", self.delegations, self.signed_delegations)?;
        writeln!(out, "wildcards    {}", self.wildcards)?;
        writeln!(out, "signed       {}", self.signing())?;
        if let Some(LargestSet { owner, rtype, records, octets }) = &self.largest_set {
            let records = count(*records as u64, "record");
            writeln!(out, "largest set  {owner} {rtype}: {records}, {octets} octets")?;
        }
        let mut by_type: Vec<_> = self.by_type.iter().collect();
        by_type.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        by_type.iter().try_for_each(|(rtype, count)| writeln!(out, "  {rtype:<10} {count}"))
    }
}
