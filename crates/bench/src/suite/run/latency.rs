//! Latency below saturation, at rates that follow from what the rounds have found.

use super::{REPEATS_MAX, Runner, START_SECS};
use crate::data::{Cell, LoadShare, Method};
use crate::statistics::median;
use crate::suite::contest::{Contest, Seat};
use crate::suite::{measure, words};

/// The share of a place's rate from which on it was the rate that bound the server, and not the
/// server's own saturation.
const RATE_HELD: f64 = 0.9;

impl Runner<'_> {
    /// Returns what measuring one server's latency once is expected to take.
    pub(super) fn latency_secs(&self, contest: &Contest<'_>) -> f64 {
        contest.workload.latency_at().map_or(0.0, |at| {
            let rates = at.percents.len() + usize::from(at.half_of.is_some());
            let Method { seconds, warm_up_secs, .. } = self.run.method;
            START_SECS + warm_up_secs + rates as f64 * seconds
        })
    }

    /// Measures each server's latency below saturation, where the workload asks for it.
    pub(super) fn latencies(&mut self, seats: &[Seat<'_>]) {
        let Some(Contest { workload, .. }) = seats.first().map(|seat| seat.contest) else { return };
        let Some(at) = workload.latency_at() else { return };
        let reference = at.half_of.as_ref().and_then(|name| {
            let seat = seats.iter().find(|seat| seat.contestant.kind.name == *name)?;
            let rate = saturation(&self.run.cells[seat.cell])?;
            Some((LoadShare::Common { percent: 50, server: name.clone() }, rate / 2.0))
        });
        let rounds = self.run.method.rounds;
        let (turns, times) = if workload.restart { (rounds, 1) } else { (1, rounds) };
        for _ in 0..turns {
            for &seat in seats {
                if self.is_stopped() {
                    return;
                }
                if let Err(reason) = self.latency(seat, &at.percents, reference.as_ref(), times) {
                    self.say(&format!("{}: no latency: {reason}", seat.contestant.kind.name));
                }
            }
        }
    }

    /// Measures one server's latency from one start, so many times at each of its rates and at that
    /// of the reference.
    fn latency(
        &mut self,
        seat: Seat<'_>,
        percents: &[u32],
        reference: Option<&(LoadShare, f64)>,
        times: usize,
    ) -> Result<(), String> {
        let expected_secs = times as f64 * self.latency_secs(seat.contest);
        let Some(own) = saturation(&self.run.cells[seat.cell]) else {
            self.progress.spared(expected_secs);
            return Err("no round says what saturation is".to_owned());
        };
        let is_held = |rate: u64| own >= RATE_HELD * rate as f64;
        if seat.contest.place.rate.is_some_and(is_held) {
            self.progress.spared(expected_secs);
            return Ok(()); // the rounds do not show what the server can do
        }
        let own_rate =
            |&percent: &u32| (LoadShare::Own { percent }, own * f64::from(percent) / 100.0);
        let once = || percents.iter().map(own_rate).chain(reference.cloned());
        let rates: Vec<_> = (0..times).flat_map(|_| once()).collect();
        self.load_points(seat, rates, expected_secs)
    }

    /// Measures one server's latency at these rates, again when other processes disturbed it.
    fn load_points(
        &mut self,
        seat: Seat<'_>,
        rates: Vec<(LoadShare, f64)>,
        expected_secs: f64,
    ) -> Result<(), String> {
        let bed = self.start(seat)?;
        let mut plan = self.plan(&bed, seat);
        // A relay and an upstream run on the load's CPUs.
        let is_shared = |cpu| self.ground.server_cpus.contains(cpu);
        plan.spin = seat.contest.workload.upstream.is_none() && !plan.cpus.iter().any(is_shared);
        let method = self.run.method.clone();
        measure::warm_up(&plan, method.warm_up_secs).map_err(|error| error.to_string())?;
        let expected_secs = expected_secs / rates.len() as f64;
        for (share, rate) in rates {
            for attempt in 0..=REPEATS_MAX {
                if attempt > 0 {
                    self.wait_until_quiet();
                }
                let point = measure::load_point(share.clone(), rate, &bed, &plan);
                let (point, foreign) = point.map_err(|error| error.to_string())?;
                if self.is_stopped() {
                    return Ok(());
                }
                let is_disturbed = foreign > method.foreign_cpu_max;
                let line = words::point_line(&seat.contestant.kind.name, &point, is_disturbed);
                if !is_disturbed {
                    self.run.cells[seat.cell].latency_at.push(point);
                    self.progress.done(expected_secs);
                }
                self.report(&line);
                if !is_disturbed {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Returns the median rate of a cell's rounds; none without rounds.
fn saturation(cell: &Cell) -> Option<f64> {
    median(cell.rounds.iter().map(|round| round.traffic.completed as f64 / round.seconds))
}
