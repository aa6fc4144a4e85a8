//! What a thread counts, second by second.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use zonda_wire::Rcode;

use crate::data;

/// The shortest time distinguished from none, and the longest; nanoseconds.
const LATENCY_NANOS: (u64, u64) = (1_000, 10_000_000_000);

/// Significant decimal digits of a latency.
const LATENCY_DIGITS: u8 = 3;

/// Percentiles that are reported.
const PERCENTILES: [f64; 15] =
    [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999];

/// RCODEs below this have a histogram each; none above is in use, and a server that invents some of
/// the 4,096 that OPT allows takes no more memory for them than for one.
pub const RCODES: usize = 24;

/// Common name of the other RCODEs.
pub const OTHER_RCODES: &str = "other";

/// Returns an empty histogram of nanoseconds.
pub fn histogram() -> Histogram<u64> {
    let (low, high) = LATENCY_NANOS;
    Histogram::new_with_bounds(low, high, LATENCY_DIGITS).expect("the bounds are in order")
}

/// Returns a histogram as it is reported.
pub fn latency_of(histogram: &Histogram<u64>) -> data::Latency {
    if histogram.is_empty() {
        return data::Latency::default();
    }
    let micros = |nanos: u64| nanos as f64 / 1e3;
    data::Latency {
        min: micros(histogram.min()),
        mean: histogram.mean() / 1e3,
        deviation: histogram.stdev() / 1e3,
        max: micros(histogram.max()),
        percentiles: PERCENTILES
            .iter()
            .map(|percent| (*percent, micros(histogram.value_at_percentile(*percent))))
            .collect(),
    }
}

/// What happened in one second, or in a whole run.
#[derive(Clone, Default)]
pub struct Tally {
    /// Queries sent, and their octets.
    pub sent: u64,
    /// Octets of the same.
    pub sent_octets: u64,
    /// Octets of replies in time.
    pub completed_octets: u64,
    /// Queries not answered in time.
    pub lost: u64,
    /// Replies that belong to no query.
    pub unexpected: u64,
    /// Second replies to one query.
    pub duplicate: u64,
    /// Replies after the timeout.
    pub late: u64,
    /// Replies that are none, or to another question.
    pub wrong: u64,
    /// Replies in time that do not say what is expected.
    pub incorrect: u64,
    /// Differences of the first incorrect replies, [`DIFFERENCES_MAX`] at most.
    pub differences: Vec<String>,
    /// Replies that say that something was left out.
    pub truncated: u64,
    /// Delay of queries after their scheduled times; absent until there is one.
    lateness: Option<Box<Histogram<u64>>>,
    /// Time to reply by RCODE, in the end of all from [`RCODES`] on; absent until there is one.
    latencies: Vec<Option<Box<Histogram<u64>>>>,
}

/// Replies whose differences from the expected ones are reported.
const DIFFERENCES_MAX: usize = 10;

impl Tally {
    /// Counts a reply that does not say what is expected, and keeps how it differs, of the first.
    pub fn note_incorrect(&mut self, difference: impl FnOnce() -> String) {
        self.incorrect += 1;
        if self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(difference());
        }
    }

    /// Counts a reply in time.
    pub fn complete(&mut self, rcode: Rcode, octets: usize, latency_nanos: u64) {
        self.completed_octets += octets as u64;
        let place = usize::from(rcode.0).min(RCODES);
        self.make_room(place + 1);
        let latencies = &mut self.latencies[place];
        latencies.get_or_insert_with(|| Box::new(histogram())).saturating_record(latency_nanos);
    }

    /// Has places for RCODEs below `count`.
    fn make_room(&mut self, count: usize) {
        if self.latencies.len() < count {
            self.latencies.resize_with(count, Option::default);
        }
    }

    /// Counts a query by how long after its scheduled time it was sent.
    pub fn leave(&mut self, late_nanos: u64) {
        let lateness = self.lateness.get_or_insert_with(|| Box::new(histogram()));
        lateness.saturating_record(late_nanos);
    }

    /// Returns how long after their scheduled times queries were sent; nothing without a schedule.
    pub fn lateness(&self) -> Option<&Histogram<u64>> {
        self.lateness.as_deref()
    }

    /// Adds what another counted.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_octets += other.sent_octets;
        self.completed_octets += other.completed_octets;
        self.lost += other.lost;
        self.unexpected += other.unexpected;
        self.duplicate += other.duplicate;
        self.late += other.late;
        self.wrong += other.wrong;
        self.incorrect += other.incorrect;
        let room = DIFFERENCES_MAX.saturating_sub(self.differences.len());
        self.differences.extend(other.differences.iter().take(room).cloned());
        self.truncated += other.truncated;
        self.make_room(other.latencies.len());
        let lateness = (&mut self.lateness, &other.lateness);
        let latencies = self.latencies.iter_mut().zip(&other.latencies);
        for (ours, theirs) in latencies.chain([lateness]) {
            if let Some(theirs) = theirs {
                let ours = ours.get_or_insert_with(|| Box::new(histogram()));
                ours.add(theirs.as_ref()).expect("all histograms have the same bounds");
            }
        }
    }

    /// Queries answered in time.
    pub fn completed(&self) -> u64 {
        self.latencies.iter().flatten().map(|histogram| histogram.len()).sum()
    }

    /// Latencies of all replies.
    pub fn latencies(&self) -> Histogram<u64> {
        let mut all = histogram();
        for one in self.latencies.iter().flatten() {
            all.add(one.as_ref()).expect("all histograms have the same bounds");
        }
        all
    }

    /// Latencies by the name of the RCODE.
    pub fn latencies_by_rcode(&self) -> BTreeMap<String, Histogram<u64>> {
        let name = |place| match place {
            RCODES => OTHER_RCODES.to_owned(),
            _ => Rcode(place as _).to_string(),
        };
        let histograms = self.latencies.iter().enumerate();
        let named =
            histograms.filter_map(|(place, one)| Some((name(place), one.as_deref()?.clone())));
        named.collect()
    }

    /// Returns the figures for JSON; what was not sent, drops in socket buffers and reconnects are
    /// added elsewhere.
    pub fn traffic(&self) -> data::Traffic {
        let by_rcode = self.latencies_by_rcode();
        data::Traffic {
            sent: self.sent,
            completed: self.completed(),
            lost: self.lost,
            unsent: 0,
            dropped_by_generator: 0,
            dropped_by_server: 0,
            unexpected: self.unexpected,
            duplicate: self.duplicate,
            late: self.late,
            wrong: self.wrong,
            incorrect: self.incorrect,
            reconnects: 0,
            rcodes: by_rcode.into_iter().map(|(name, one)| (name, one.len())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rcodes_that_a_server_makes_up_are_counted_together() {
        let mut tally = Tally::default();
        for number in 0..4096 {
            tally.complete(Rcode(number), 12, 1000);
        }
        let mut total = Tally::default();
        total.add(&tally);
        let rcodes = total.traffic().rcodes;
        assert_eq!((rcodes["NOERROR"], rcodes["BADCOOKIE"]), (1, 1));
        assert_eq!(rcodes[OTHER_RCODES], 4096 - RCODES as u64);
        assert_eq!((total.completed(), total.latencies().len()), (4096, 4096));
        assert_eq!(total.latencies.iter().flatten().count(), RCODES + 1);
    }
}
