//! A contest: one place of a workload, with the servers that take part.

use super::bed::{Contestant, Stock};
use super::place::Place;
use super::spec::Workload;
use crate::data::{Cell, CpusUsed};
use crate::server::Role;

/// Most octets of a configuration that are kept for the report.
const FILE_OCTETS_MAX: usize = 4096;

/// One place of a workload, with the servers that take part.
pub struct Contest<'a> {
    /// Workload of the contest.
    pub workload: &'a Workload,
    /// Settings of the place.
    pub place: Place,
    /// The servers, the floor first.
    pub contestants: Vec<Contestant>,
}

/// A server's place in a contest, and in the run.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    /// Contest that the server takes part in.
    pub contest: &'a Contest<'a>,
    /// Stock that all servers share.
    pub stock: &'a Stock,
    /// Server of the seat.
    pub contestant: &'a Contestant,
    /// Number of the server's cell in the run.
    pub cell: usize,
}

impl Seat<'_> {
    /// Returns how the server is started here.
    pub fn role(&self) -> &Role {
        let role = self.contestant.role(self.contest.workload);
        role.expect("contestants without a role were left out")
    }
}

impl Contestant {
    /// Returns the first of the workload's roles that it has.
    pub fn role(&self, workload: &Workload) -> Option<&Role> {
        workload.roles.iter().find_map(|role| self.kind.roles.get(role))
    }
}

/// Returns a cell without rounds, of a server that can use as many CPUs as are said.
pub fn cell(contestant: &Contestant, workload: &Workload, place: &Place, cpus: CpusUsed) -> Cell {
    Cell {
        server: contestant.kind.name.clone(),
        workload: workload.name.clone(),
        place: place.axes.clone(),
        unit: workload.task.unit().map(str::to_owned),
        aims: workload.aims.clone(),
        cpus: Some(cpus),
        rounds: Vec::new(),
        discarded: 0,
        unranked: None,
        latency_at: Vec::new(),
        start: None,
    }
}

/// Returns a file for the report, cut to what one reads.
pub fn cut((name, text): &(String, String)) -> (String, String) {
    if text.len() <= FILE_OCTETS_MAX {
        return (name.clone(), text.clone());
    }
    let is_end = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=FILE_OCTETS_MAX).rev().find(is_end).unwrap_or_default();
    (name.clone(), format!("{}\n… cut: {} octets in all\n", &text[..end], text.len()))
}
