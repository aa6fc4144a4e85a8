//! One round of one server.

use std::sync::Arc;
use std::time::Duration;

use super::Runner;
use crate::load::{End, Mode, Plan};
use crate::suite::bed::Bed;
use crate::suite::contest::{Contest, Seat};
use crate::suite::measure::{self, Generator, MeasureError, QueryRun};
use crate::suite::task::Task;
use crate::suite::{replicate, words};

/// How long a query may take before it counts as lost.
const TIMEOUT: Duration = Duration::from_secs(2);

impl Runner<'_> {
    /// Measures a round and enters it; returns whether other processes disturbed it: then it does
    /// not count.
    pub(super) fn round(
        &mut self,
        seat: Seat<'_>,
        number: usize,
        bed: &mut Bed,
    ) -> Result<bool, String> {
        let plan = self.plan(bed, seat);
        let workload = seat.contest.workload;
        if !workload.cold && workload.task.is_warmed_up() {
            measure::warm_up(&plan, self.run.method.warm_up_secs).map_err(|e| e.to_string())?;
        }
        let work = |bed: &mut Bed| self.work(seat, bed, &plan);
        let round = measure::round(number, bed, workload.task.is_start(), work);
        let mut round = round.map_err(|error| error.to_string())?;
        if self.is_stopped() {
            return Ok(false);
        }
        if workload.any_zone_primary {
            let checked = replicate::check_serials(&plan, bed, &mut round.traffic);
            checked.map_err(|error| error.to_string())?;
        }
        if round.traffic.completed == 0 {
            return Err("answers nothing".to_owned());
        }
        let is_disturbed = round.foreign_cpu > self.run.method.foreign_cpu_max;
        let cell = &mut self.run.cells[seat.cell];
        let line = words::round_line(cell, &seat.contest.place.text(), &round, is_disturbed);
        if is_disturbed {
            cell.discarded += 1;
            self.progress.discarded();
        } else {
            cell.rounds.push(round);
            self.progress.done(self.round_secs(seat.contest));
        }
        self.report(&line);
        Ok(is_disturbed)
    }

    /// Does the work of a round.
    fn work(&self, seat: Seat<'_>, bed: &mut Bed, plan: &Plan) -> Result<QueryRun, MeasureError> {
        let workload = seat.contest.workload;
        match workload.task {
            Task::Updates => Generator::Own.ask(plan, &seat.stock.queries_file),
            Task::Queries => {
                let zone = workload.beside_transfers.as_deref();
                let transfers = zone.map(|zone| replicate::Background::start(plan, zone));
                let transfers = transfers.transpose()?;
                let asked = self.generator.ask(plan, &seat.stock.queries_file)?;
                transfers.map_or(Ok(()), replicate::Background::end)?;
                Ok(asked)
            }
            Task::TransferOut => replicate::transfer_out(plan),
            Task::TransferIn => replicate::start(plan, bed, true),
            Task::Restart => replicate::start(plan, bed, false),
            Task::Propagation => replicate::propagate(plan, bed),
            Task::Notify => replicate::notify(plan, bed),
        }
    }

    /// Returns what is sent in a round.
    pub(super) fn plan(&self, bed: &Bed, seat: Seat<'_>) -> Plan {
        let Contest { workload, place, .. } = seat.contest;
        let cpus = self.ground.load_cpus.clone();
        let threads = self.ground.cpus_used(place).load;
        let after = Some(Duration::from_secs_f64(self.run.method.seconds));
        let rate_max = place.rate.map(|rate| rate as f64);
        Plan {
            mode: Mode::Closed { outstanding: place.outstanding, rate_max },
            threads,
            sockets: place.clients.max(threads),
            end: End { after, runs: workload.cold.then_some(1), ..End::default() },
            timeout: TIMEOUT,
            cpus,
            stop: Arc::clone(&self.stop),
            ..Plan::new(bed.address, seat.stock.queries.clone())
        }
    }
}
