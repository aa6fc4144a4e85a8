//! Sends several servers the same questions; reports where one differs from what the rest agree on.
//!
//! A reply has parts, and each part is judged by itself: where RFCs leave room, what a quorum of
//! peers says is right. Where no quorum agrees, anything goes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::thread;

use crate::client::{Question, ask};
use crate::difference::difference;
use crate::generate::{Random, Zone, questions};
use crate::message::{Message, Record};

/// Differences of one kind that are printed in full; the rest is counted.
const EXAMPLES_MAX: usize = 3;

/// A part of a reply that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Response code, extended bits included.
    Rcode,
    /// The header's flags.
    Flags,
    /// The question section with its case.
    Question,
    /// Whether there is OPT, its version and its DO bit.
    Edns,
    /// Records of the answer section.
    Answer,
    /// Records of the authority section.
    Authority,
    /// Records of the additional section.
    Additional,
}

impl Part {
    /// All of them, in the order of a message.
    pub const ALL: [Self; 7] = [
        Self::Rcode,
        Self::Flags,
        Self::Question,
        Self::Edns,
        Self::Answer,
        Self::Authority,
        Self::Additional,
    ];

    /// Returns the part as text that is equal when it means the same: order and compression of
    /// records do not matter.
    ///
    /// None when the part says nothing: what is left in the sections of a truncated reply is a
    /// matter of taste (rfc2181#9).
    pub fn of(self, reply: &Message) -> Option<String> {
        let section = matches!(self, Self::Answer | Self::Authority | Self::Additional);
        if section && reply.truncated() {
            return None;
        }
        let lines = |records: &[Record]| {
            let mut lines: Vec<String> = records.iter().map(ToString::to_string).collect();
            lines.sort();
            lines.join("\n")
        };
        Some(match self {
            Self::Rcode => reply.rcode_text(),
            Self::Flags => reply.flags_text(),
            Self::Question => reply.question_text(),
            Self::Edns => {
                let edns = reply.edns.as_ref();
                format!("{:?}", edns.map(|edns| (edns.version, edns.dnssec_ok)))
            }
            Self::Answer => lines(&reply.answer),
            Self::Authority => lines(&reply.authority),
            Self::Additional => lines(&reply.additional),
        })
    }
}

/// A server that takes part, by the name that reports give it.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Name of the server, such as `NSD`.
    pub name: String,
    /// Address of the server.
    pub address: SocketAddr,
}

/// A question on which the judged server stands against a quorum.
#[derive(Debug)]
pub struct Difference {
    /// Zone that the question is about.
    pub zone: String,
    /// Question that was sent.
    pub question: Question,
    /// Parts that differ from the quorum's.
    pub parts: Vec<Part>,
    /// Reply of the judged server.
    pub ours: Message,
    /// Reply of a peer that agrees with the quorum in the first of the parts.
    pub theirs: Message,
    /// The peers' names, in agreement with that peer about that part.
    pub quorum: Vec<String>,
    /// Address of that peer, for a further question.
    pub peer: SocketAddr,
}

impl Difference {
    /// Returns what the peer answers to a further question.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn ask_peer(&self, name: &str, record_type: &str) -> Message {
        let question = Question::new(name, record_type).edns(4096);
        ask(self.peer, &question).unwrap_or_else(|error| panic!("the peer on {question}: {error}"))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (question, zone, quorum) = (&self.question, &self.zone, self.quorum.join(", "));
        writeln!(f, "{question} (zone {zone}): {:?}; + is what {quorum} say", self.parts)?;
        f.write_str(&difference(&self.ours, &self.theirs))
    }
}

/// A difference that is intended, with the name it has in `docs/differences.md`.
pub struct AcceptedDifference {
    /// Name in the page's table.
    pub name: &'static str,
    /// Whether this part of a difference is of that kind.
    pub applies: fn(&Difference, Part) -> bool,
}

/// What came out of asking.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of questions.
    pub questions: usize,
    /// For how many parts of replies a quorum agreed.
    pub decided: usize,
    /// Differences of the judged server that are not accepted.
    pub differences: Vec<Difference>,
    /// Number of times that each accepted difference was met.
    pub accepted: BTreeMap<&'static str, usize>,
}

impl Outcome {
    /// Returns every kind of difference with its count and some examples; empty when there is none.
    pub fn report(&self) -> String {
        let mut kinds: BTreeMap<String, Vec<&Difference>> = BTreeMap::new();
        for difference in &self.differences {
            let rcodes = (difference.ours.rcode_text(), difference.theirs.rcode_text());
            let kind = format!("{:?}, {} against {}", difference.parts, rcodes.0, rcodes.1);
            kinds.entry(kind).or_default().push(difference);
        }
        let mut text = String::new();
        for (kind, differences) in kinds {
            text.push_str(&format!("==== {} × {kind}\n", differences.len()));
            for difference in differences.iter().take(EXAMPLES_MAX) {
                text.push_str(&format!("{difference}\n"));
            }
        }
        text
    }
}

/// Asks all servers about all zones and compares `judged` with what `quorum` of the peers agree on.
///
/// # Panics
/// When a server does not answer: that is no difference of opinion.
pub fn compare(
    judged: &Contestant,
    peers: &[Contestant],
    quorum: usize,
    zones: &[Zone],
    seed: u64,
    accepted: &[AcceptedDifference],
) -> Outcome {
    let mut random = Random::new(seed);
    let mut outcome = Outcome::default();
    for zone in zones {
        let questions = questions(zone, &mut random);
        let asked = QuestionSet { zone: &zone.name, questions: &questions, view: |reply| reply };
        asked.of(judged, peers, quorum, accepted, &mut outcome);
    }
    outcome
}

/// Questions about a zone, and how replies are looked at.
pub struct QuestionSet<'a> {
    /// The zone's name.
    pub zone: &'a str,
    /// Questions, in this order.
    pub questions: &'a [Question],
    /// Part of a reply that is compared.
    pub view: fn(Message) -> Message,
}

impl QuestionSet<'_> {
    /// Asks all servers and adds to `outcome` where `judged` differs from what `quorum` of the
    /// peers agree on.
    ///
    /// # Panics
    /// When a server does not answer: that is no difference of opinion.
    pub fn of(
        &self,
        judged: &Contestant,
        peers: &[Contestant],
        quorum: usize,
        accepted: &[AcceptedDifference],
        outcome: &mut Outcome,
    ) {
        outcome.questions += self.questions.len();
        let everybody: Vec<&Contestant> = std::iter::once(judged).chain(peers).collect();
        let mut replies = ask_everybody(&everybody, self.questions);
        replies.iter_mut().for_each(|all| *all = all.drain(..).map(self.view).collect());
        let ours = replies.remove(0);
        for (number, (question, our_reply)) in self.questions.iter().zip(&ours).enumerate() {
            let their_replies: Vec<&Message> = replies.iter().map(|all| &all[number]).collect();
            let votes = vote(our_reply, &their_replies, quorum);
            outcome.decided += votes.decided;
            let Some(theirs) = votes.example else { continue };
            let part = votes.against[0];
            let agrees = |reply: &Message| part.of(reply) == part.of(their_replies[theirs]);
            let names = peers.iter().zip(&their_replies).filter(|(_, reply)| agrees(reply));
            let found = Difference {
                zone: self.zone.to_owned(),
                question: question.clone(),
                parts: votes.against,
                ours: our_reply.clone(),
                theirs: their_replies[theirs].clone(),
                quorum: names.map(|(peer, _)| peer.name.clone()).collect(),
                peer: peers[theirs].address,
            };
            settle(found, accepted, outcome);
        }
    }
}

/// Takes accepted parts out of a difference and keeps what is left.
pub(crate) fn settle(
    mut found: Difference,
    accepted: &[AcceptedDifference],
    outcome: &mut Outcome,
) {
    let mut left = Vec::new();
    for part in &found.parts {
        match accepted.iter().find(|accepted| (accepted.applies)(&found, *part)) {
            Some(kind) => *outcome.accepted.entry(kind.name).or_default() += 1,
            None => left.push(*part),
        }
    }
    if !left.is_empty() {
        found.parts = left;
        outcome.differences.push(found);
    }
}

/// Returns all replies, by contestant and question; contestants are asked at the same time.
fn ask_everybody(everybody: &[&Contestant], questions: &[Question]) -> Vec<Vec<Message>> {
    let ask_one = |contestant: &Contestant| -> Vec<Message> {
        let reply = |question: &Question| {
            ask(contestant.address, question)
                .unwrap_or_else(|error| panic!("{} on {question}: {error}", contestant.name))
        };
        questions.iter().map(reply).collect()
    };
    thread::scope(|scope| {
        let asked: Vec<_> =
            everybody.iter().map(|contestant| scope.spawn(|| ask_one(contestant))).collect();
        let joined = asked.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .map(|replies| replies.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The votes of the peers on one reply.
struct Votes {
    /// Parts about which a quorum agrees.
    decided: usize,
    /// Parts of the reply about which a quorum of peers disagrees with Zonda.
    against: Vec<Part>,
    /// A peer of the quorum against the first of these parts.
    example: Option<usize>,
}

/// Judges a reply part by part.
fn vote(ours: &Message, peers: &[&Message], quorum: usize) -> Votes {
    let mut votes = Votes { decided: 0, against: Vec::new(), example: None };
    for part in Part::ALL {
        let Some(our_text) = part.of(ours) else { continue };
        let said: Vec<Option<String>> = peers.iter().map(|reply| part.of(reply)).collect();
        let agreed = |text: &Option<String>| {
            text.is_some() && said.iter().filter(|other| *other == text).count() >= quorum
        };
        let Some(winner) = said.iter().position(agreed) else { continue };
        votes.decided += 1;
        if said[winner].as_ref() != Some(&our_text) {
            votes.against.push(part);
            votes.example.get_or_insert(winner);
        }
    }
    votes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a reply without records, with these flags and this code.
    fn reply(flags: u16) -> Message {
        let [high, low] = flags.to_be_bytes();
        Message::parse(&[0, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap()
    }

    #[test]
    fn only_a_quorum_decides() {
        let [ok, name_error, refused] = [reply(0x8400), reply(0x8403), reply(0x8405)];
        let against = |peers: &[&Message]| vote(&ok, peers, 3).against;
        assert_eq!(against(&[&name_error, &name_error, &name_error, &ok]), [Part::Rcode]);
        assert_eq!(against(&[&name_error, &name_error, &refused, &ok]), []);
        assert_eq!(against(&[&ok, &ok, &ok, &refused]), []);
    }

    #[test]
    fn an_accepted_difference_is_counted_and_other_differences_stay() {
        let found = Difference {
            zone: "z.".to_owned(),
            question: Question::new("z.", "A"),
            parts: vec![Part::Rcode, Part::Flags],
            ours: reply(0x8000),
            theirs: reply(0x8403),
            quorum: Vec::new(),
            peer: SocketAddr::from(([127, 0, 0, 1], 53)),
        };
        let flags = AcceptedDifference { name: "flags", applies: |_, part| part == Part::Flags };
        let mut outcome = Outcome::default();
        settle(found, &[flags], &mut outcome);
        assert_eq!(outcome.accepted["flags"], 1);
        assert_eq!(outcome.differences[0].parts, [Part::Rcode]);
    }
}
