//! What all forwarder threads know of the upstreams, taken together.

use crate::control::Control;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use zonda_client::Counts;
use zonda_forward::Report;
use zonda_upstream::health::{State, Trouble};
use zonda_upstream::pool::Counters;
use zonda_wire::Rcode;

/// All states, the best one first, and their names.
pub const STATES: [(State, &str); 3] =
    [(State::Up, "up"), (State::Suspect, "suspect"), (State::Down, "down")];

/// Why an upstream is not asked that leads back to this server.
const LOOP: &str = "questions that it is asked come back to this server";

/// All reasons why an upstream is not up, as metrics name them.
pub const TROUBLES: [&str; 6] = ["silent", "unreachable", "lossy", "failing", "untrusted", "loop"];

/// An upstream of a zone, with its state and figures.
#[derive(Default)]
pub struct KnownUpstream {
    /// The name of the zone.
    pub zone: String,
    /// The upstream, as it is configured.
    pub upstream: String,
    /// How many threads see it in each of the [`STATES`].
    pub threads: [u64; 3],
    /// What the thread that thinks the worst of it holds against it.
    trouble: Option<(usize, Trouble)>,
    /// Whether questions to it come back to this server.
    is_looping: bool,
    /// The least of the times that threads expect it to take, nanoseconds.
    rtt_nanos: Option<u64>,
    /// Addresses of the upstream, the one first that is asked first.
    pub addresses: Arc<Vec<SocketAddr>>,
    /// Counts of the connections to the upstream.
    pub connections: Counts,
    /// Queries that wait for the upstream.
    pub outstanding: u64,
    /// Counters of the queries to the upstream.
    pub counters: Counters,
    /// How many of its answers had which response code.
    pub rcodes: BTreeMap<u16, u64>,
    /// How many answers took less than so many nanoseconds, and no less than the bound before.
    pub times: BTreeMap<u64, u64>,
    /// The sum of these times.
    pub times_nanos: u64,
}

/// All upstreams of all zones, in the order of the configuration.
pub fn survey(control: &Control) -> Vec<KnownUpstream> {
    let reports = control.forwarder_queue.reports();
    let state = control.state();
    let mut known = Vec::new();
    for zone in state.zone_set().forwards().iter_served() {
        for (place, (upstream, server)) in zone.upstreams().enumerate() {
            let (zone_name, upstream) = (zone.label(), upstream.to_string());
            let connections = server.connections.counts();
            let addresses = server.connections.addresses();
            let mut one = KnownUpstream {
                zone: zone_name,
                upstream,
                connections,
                addresses,
                ..KnownUpstream::default()
            };
            let own = reports.iter().filter(|report| report.group == zone.group_number());
            own.for_each(|report| one.add(report, place));
            known.push(one);
        }
    }
    known
}

impl KnownUpstream {
    /// Adds what a thread knows of the upstream at a place in its group.
    fn add(&mut self, report: &Report, place: usize) {
        let (Some(member), Some(rcodes)) = (report.members.get(place), report.rcodes.get(place))
        else {
            return;
        };
        let state = STATES.iter().position(|(state, _)| *state == member.health.state());
        let state = state.unwrap_or_default();
        self.threads[state] += 1;
        if let Some(trouble) = member.health.trouble()
            && self.trouble.is_none_or(|(worst, _)| worst < state)
        {
            self.trouble = Some((state, trouble));
        }
        self.is_looping |= report.loops.get(place).is_some_and(|is_looping| *is_looping);
        let rtt = member.rtt.smoothed(report.at);
        self.rtt_nanos = self.rtt_nanos.into_iter().chain(rtt).min();
        self.outstanding += u64::from(member.outstanding);
        for (rcode, count) in rcodes {
            *self.rcodes.entry(*rcode).or_default() += count;
        }
        for (bound, count) in member.rtt.seen() {
            *self.times.entry(bound).or_default() += count;
        }
        self.times_nanos += member.rtt.seen_nanos();
        let (sum, one) = (&mut self.counters, &member.counters);
        sum.sent += one.sent;
        sum.answered += one.answered;
        sum.failed += one.failed;
        sum.redirected += one.redirected;
        sum.truncated += one.truncated;
        sum.edns_failed += one.edns_failed;
        sum.lost += one.lost;
        sum.abandoned += one.abandoned;
        sum.hedges += one.hedges;
        sum.hedges_won += one.hedges_won;
        sum.repeats += one.repeats;
    }

    /// The worst that is held against it, in words.
    fn trouble(&self) -> Option<String> {
        let in_words = |(_, trouble): (usize, Trouble)| trouble.to_string();
        let is_looping = self.is_looping.then(|| LOOP.to_owned());
        is_looping.or_else(|| self.trouble.map(in_words))
    }

    /// The worst that is held against it, one of [`TROUBLES`].
    pub fn reason(&self) -> Option<&'static str> {
        let reason = |(_, trouble)| match trouble {
            Trouble::Silent => "silent",
            Trouble::Unreachable => "unreachable",
            Trouble::Lossy(_) => "lossy",
            Trouble::Failing(_) => "failing",
            Trouble::Untrusted => "untrusted",
        };
        let is_looping = self.is_looping.then_some("loop");
        is_looping.or_else(|| self.trouble.map(reason))
    }

    /// How many answers took at most so many nanoseconds, for each power of two in turn.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let sums = self.times.iter().scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((*bound, *sum))
        });
        sums.filter(|(bound, _)| bound.is_power_of_two())
    }

    /// How many answers there were whose time is known.
    pub fn answers_timed(&self) -> u64 {
        self.times.values().sum()
    }

    /// Returns the times of answers, as metrics have them.
    fn describe_times(&self) -> Value {
        let answers = self.answers_timed();
        let last = json!({ "le_seconds": Value::Null, "count": answers });
        let buckets = self
            .buckets()
            .map(|(bound, count)| json!({ "le_seconds": bound as f64 / 1e9, "count": count }));
        json!({
            "count": answers,
            "sum_seconds": self.times_nanos as f64 / 1e9,
            "buckets": buckets.chain([last]).collect::<Vec<_>>(),
        })
    }

    /// Returns the upstream as `/v1/upstreams` shows it.
    fn describe(&self) -> Value {
        let threads = STATES.iter().zip(self.threads);
        let threads = threads.map(|((_, name), count)| ((*name).to_owned(), Value::from(count)));
        let rcodes = self.rcodes.iter();
        let rcodes = rcodes.map(|(rcode, count)| (Rcode(*rcode).to_string(), Value::from(*count)));
        json!({
            "zone": self.zone,
            "upstream": self.upstream,
            "addresses": self.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "threads": Value::Object(threads.collect()),
            "trouble": self.trouble(),
            "rtt_ms": self.rtt_nanos.map(|nanos| nanos as f64 / 1e6),
            "rtt": self.describe_times(),
            "outstanding": self.outstanding,
            "sent": self.counters.sent,
            "answered": self.counters.answered,
            "failed": self.counters.failed,
            "redirected": self.counters.redirected,
            "truncated": self.counters.truncated,
            "edns_failed": self.counters.edns_failed,
            "lost": self.counters.lost,
            "abandoned": self.counters.abandoned,
            "hedges": self.counters.hedges,
            "hedges_won": self.counters.hedges_won,
            "repeats": self.counters.repeats,
            "rcodes": Value::Object(rcodes.collect()),
            "connections": json!({
                "open": self.connections.open,
                "opened": self.connections.opened,
                "resumed": self.connections.resumed,
                "failed": self.connections.failed,
                "reused": self.connections.reused,
                "flooded": self.connections.flooded,
                "late": self.connections.late,
                "failure": self.connections.fault.as_ref().map(ToString::to_string),
            }),
        })
    }
}

/// All upstreams, for people.
pub fn list(control: &Control) -> Value {
    let upstreams = survey(control);
    json!({ "upstreams": upstreams.iter().map(KnownUpstream::describe).collect::<Vec<_>>() })
}
