//! Asks two servers of cluster names the same questions; each difference is a finding.

use std::thread;

use crate::client::{Question, ask};
use crate::cluster::ClusterZones;
use crate::cluster::questions;
use crate::differential::{AcceptedDifference, Contestant, Difference, Outcome, Part, settle};
use crate::message::Message;

/// Threads that ask at the same time.
const THREADS: usize = 4;
/// Type of SOA records.
const SOA: u16 = 6;
/// Place of the serial number in the text of a SOA record.
const SERIAL: usize = 2;

/// Two servers of one cluster's names.
pub struct ClusterComparison<'a> {
    /// Server that is judged.
    pub ours: Contestant,
    /// Server that it should answer like.
    pub theirs: Contestant,
    /// Part of a reply that is compared, such as [`without_serials`].
    pub view: fn(Message) -> Message,
    /// Differences that are intended.
    pub accepted: &'a [AcceptedDifference],
}

impl ClusterComparison<'_> {
    /// Asks about every name of these objects, as the API server lists them, and about `wrong`
    /// wrong names of this seed.
    ///
    /// # Panics
    /// When an answer differs in a way that is not accepted, or a server does not answer; the
    /// message has the differences and the seed.
    pub fn judge(
        &self,
        objects: &[serde_json::Value],
        zones: ClusterZones<'_>,
        wrong: usize,
        seed: u64,
    ) -> Outcome {
        let outcome = self.compare(zones.cluster, &questions(objects, zones, wrong, seed));
        let (asked, different) = (outcome.questions, outcome.differences.len());
        assert!(
            different == 0,
            "{different} of {asked} answers differ\n{}\nThe wrong names are of the seed {seed}",
            outcome.report()
        );
        outcome
    }

    /// Asks both servers these questions about a zone, over TCP too where a reply is truncated.
    ///
    /// # Panics
    /// When a server does not answer.
    pub fn compare(&self, zone: &str, questions: &[Question]) -> Outcome {
        let part = questions.len().div_ceil(THREADS).max(1);
        let found = thread::scope(|scope| {
            let askers: Vec<_> = questions
                .chunks(part)
                .map(|part| {
                    scope.spawn(|| part.iter().filter_map(|it| self.ask(zone, it)).collect())
                })
                .collect();
            let joined = askers.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|found| found.unwrap_or_else(|why| std::panic::resume_unwind(why)))
                .collect::<Vec<Vec<Difference>>>()
        });
        let mut outcome = Outcome { questions: questions.len(), ..Outcome::default() };
        outcome.decided = questions.len() * Part::ALL.len();
        for difference in found.into_iter().flatten() {
            settle(difference, self.accepted, &mut outcome);
        }
        outcome
    }

    /// Asks both servers one question; returns what they differ in, if they do.
    fn ask(&self, zone: &str, question: &Question) -> Option<Difference> {
        let reply = |of: &Contestant, question: &Question| {
            let reply = ask(of.address, question)
                .unwrap_or_else(|error| panic!("{} on {question}: {error}", of.name));
            (self.view)(reply)
        };
        let mut question = question.clone();
        let mut replies = [&self.ours, &self.theirs].map(|of| reply(of, &question));
        let mut parts = differing(&replies);
        if replies.iter().any(Message::truncated) {
            // Each server has a limit of its own for UDP.
            question = question.over_tcp();
            replies = [&self.ours, &self.theirs].map(|of| reply(of, &question));
            parts = differing(&replies);
        }
        if parts.is_empty() {
            return None;
        }
        let [ours, theirs] = replies;
        let (zone, quorum) = (zone.to_owned(), vec![self.theirs.name.clone()]);
        Some(Difference { zone, question, parts, ours, theirs, quorum, peer: self.theirs.address })
    }
}

/// Returns the parts in which two replies differ.
fn differing([ours, theirs]: &[Message; 2]) -> Vec<Part> {
    let differs = |part: &Part| match (part.of(ours), part.of(theirs)) {
        (Some(ours), Some(theirs)) => ours != theirs,
        _ => false,
    };
    Part::ALL.into_iter().filter(differs).collect()
}

/// Returns a reply in which SOA records have no serial number: each server counts on its own.
pub fn without_serials(mut reply: Message) -> Message {
    for record in reply.answer.iter_mut().chain(&mut reply.authority) {
        if record.record_type == SOA {
            let mut fields: Vec<&str> = record.data.text.split(' ').collect();
            if let Some(serial) = fields.get_mut(SERIAL) {
                *serial = "SERIAL";
            }
            record.data.text = fields.join(" ");
        }
    }
    reply
}
