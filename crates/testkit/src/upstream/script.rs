//! What a scripted upstream does: rules, the first of which that applies to a query decides.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::message::{Edns, Message, name_text};

use super::reply::Reply;

/// A query as rules see it.
#[derive(Clone, Debug)]
pub struct ReceivedQuery {
    /// Number of queries before this one.
    pub number: usize,
    /// The name, in lower case, with the dot at the end.
    pub name: String,
    /// Number of the type.
    pub record_type: u16,
    /// Whether the query came over TCP.
    pub tcp: bool,
    /// Address of the sender.
    pub client: SocketAddr,
    /// Whether the query has an OPT record.
    pub edns: bool,
    /// The DO bit.
    pub dnssec_ok: bool,
    /// The CD bit.
    pub checking_disabled: bool,
    /// Data of the COOKIE option; empty without.
    pub cookie: Vec<u8>,
    /// EDNS options: codes and data.
    pub options: Vec<(u16, Vec<u8>)>,
    /// Whether letters of the name are in upper case.
    pub mixed_case: bool,
    /// A random number.
    pub chance: u64,
    /// The message up to the end of the question.
    octets: Vec<u8>,
}

impl ReceivedQuery {
    /// Reads a query; none if it is no message with a question.
    pub(super) fn read(
        octets: &[u8],
        number: usize,
        (client, tcp): (SocketAddr, bool),
        chance: u64,
    ) -> Option<Self> {
        let message = Message::parse(octets).ok()?;
        let (name, record_type, _) = message.questions.first()?;
        Some(Self {
            number,
            name: name_text(name).to_ascii_lowercase(),
            record_type: *record_type,
            tcp,
            client,
            edns: message.edns.is_some(),
            dnssec_ok: message.edns.as_ref().is_some_and(|edns| edns.dnssec_ok),
            checking_disabled: octets[3] & 0x10 != 0, // it was parsed, so that there is a header
            cookie: message.edns.as_ref().and_then(cookie).unwrap_or_default(),
            options: message.edns.as_ref().map(|edns| edns.options.clone()).unwrap_or_default(),
            mixed_case: name.iter().any(u8::is_ascii_uppercase),
            chance,
            octets: octets[..12 + name.len() + 4].to_vec(),
        })
    }

    /// Header and question as they were sent.
    pub(super) fn question_octets(&self) -> &[u8] {
        &self.octets
    }

    /// True for a share of the queries, in percent.
    pub fn one_of(&self, percent: u64) -> bool {
        self.chance % 100 < percent
    }
}

/// Returns what a COOKIE option holds (rfc7873#4).
fn cookie(edns: &Edns) -> Option<Vec<u8>> {
    let (_, data) = edns.options.iter().find(|(code, _)| *code == 10)?;
    Some(data.clone())
}

/// Makes a reply to a query.
pub(super) type ReplyMaker = Arc<dyn Fn(&ReceivedQuery) -> Reply + Send + Sync>;

/// One thing that is done about a query.
#[derive(Clone)]
pub enum Step {
    /// A pause; see [`wait`].
    Wait(Range<u64>),
    /// A wait for a gate; see [`until`].
    Until(Gate),
    /// A reply; see [`say`].
    Say(ReplyMaker),
    /// A forged reply; see [`forge`].
    Forge(ReplyMaker),
    /// A reply in pieces; see [`trickle`].
    Trickle(ReplyMaker, Duration),
    /// The end of the connection; see [`hang_up`].
    HangUp,
}

/// Waits for so many milliseconds, at random between two bounds.
pub fn wait(millis: Range<u64>) -> Step {
    Step::Wait(millis)
}

/// How often steps that wait at a gate look.
const LOOK: Duration = Duration::from_millis(5);

/// Keeps answers back until a test has seen what it wants to see, however long that takes.
#[derive(Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Lets all pass, those that wait and those that come later.
    pub fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Waits until it is open; `false` if something ends before.
    pub(super) fn pass(&self, has_ended: impl Fn() -> bool) -> bool {
        loop {
            match self.0.load(Ordering::Acquire) {
                true => return true,
                false if has_ended() => return false,
                false => thread::sleep(LOOK),
            }
        }
    }
}

/// Waits until a gate is open. Over UDP, other queries are heard meanwhile.
pub fn until(gate: &Gate) -> Step {
    Step::Until(gate.clone())
}

/// Sends a reply.
pub fn say(reply: Reply) -> Step {
    Step::Say(Arc::new(move |_| reply.clone()))
}

/// Sends a reply that depends on the query.
pub fn tell(make: impl Fn(&ReceivedQuery) -> Reply + Send + Sync + 'static) -> Step {
    Step::Say(Arc::new(make))
}

/// Sends a reply from another port of the same address, and from the same port of another address.
/// Nothing can be forged so over TCP.
pub fn forge(reply: Reply) -> Step {
    Step::Forge(Arc::new(move |_| reply.clone()))
}

/// Sends a reply octet by octet with a pause before each. Over UDP it is sent at once.
pub fn trickle(reply: Reply, pause: Duration) -> Step {
    Step::Trickle(Arc::new(move |_| reply.clone()), pause)
}

/// Closes the connection.
pub fn hang_up() -> Step {
    Step::HangUp
}

/// What is done about some queries.
#[derive(Clone)]
pub struct Rule {
    /// Condition under which the rule applies.
    pub(super) applies: Arc<dyn Fn(&ReceivedQuery) -> bool + Send + Sync>,
    /// Steps, one after the other.
    pub(super) steps: Vec<Step>,
}

/// A condition without its consequence.
pub struct Condition(Arc<dyn Fn(&ReceivedQuery) -> bool + Send + Sync>);

/// If this is so …
pub fn when(applies: impl Fn(&ReceivedQuery) -> bool + Send + Sync + 'static) -> Condition {
    Condition(Arc::new(applies))
}

/// In all other cases …
pub fn always() -> Condition {
    when(|_| true)
}

impl Condition {
    /// … then this is done; without steps, nothing is.
    #[must_use]
    pub fn then(self, steps: impl Into<Vec<Step>>) -> Rule {
        Rule { applies: self.0, steps: steps.into() }
    }
}
