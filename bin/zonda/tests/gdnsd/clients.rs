//! Random clients, and what both servers answer them.

use super::beside::{ServerPair, ZONE};
use zonda_testkit::difference::difference;
use zonda_testkit::differential::Part;
use zonda_testkit::generate::Random;
use zonda_testkit::{Message, Question, ask};

/// The number of the option CLIENT-SUBNET (rfc7871#6).
const CLIENT_SUBNET: u16 = 8;
/// Differences that are printed.
const SHOWN_MAX: usize = 5;

/// The network of a client as a resolver tells it: a random prefix of a random length, most of them
/// of the lengths that resolvers use; none of every tenth client.
pub fn random_subnet(random: &mut Random) -> Option<Vec<u8>> {
    if random.one_in(10) {
        return None;
    }
    let is_v4 = !random.one_in(3);
    let (family, usual, bits) = if is_v4 { (1, 24, 32) } else { (2, 56, 128) };
    let length = if random.one_in(3) { random.below(bits + 1) } else { usual };
    let octets = (random.bits() as u128) << 64 | u128::from(random.bits());
    // Of IPv6, one address in two is within the networks that are given to clients.
    let octets = if !is_v4 && random.one_in(2) { octets >> 3 | 1 << 125 } else { octets };
    Some(subnet(family, length as u8, octets))
}

/// The option's data for the first bits of an address, which begins at the highest bit.
pub fn subnet(family: u8, length: u8, address: u128) -> Vec<u8> {
    let kept = if length == 0 { 0 } else { address & u128::MAX << (128 - u32::from(length)) };
    let octets = usize::from(length.div_ceil(8));
    [&[0, family, length, 0], &kept.to_be_bytes()[..octets]].concat()
}

/// A name in the zone with the case of its letters at random, as resolvers send it.
pub fn random_case(name: &str, random: &mut Random) -> String {
    let turned = |letter: char| match random.one_in(2) {
        true => letter.to_ascii_uppercase(),
        false => letter,
    };
    format!("{name}.{ZONE}").chars().map(turned).collect()
}

/// What both servers answer to one client.
pub struct Answers {
    pub question: Question,
    pub ours: Message,
    pub theirs: Message,
}

impl Answers {
    /// Asks both.
    pub fn of(beside: &ServerPair, name: &str, record_type: &str, subnet: Option<&[u8]>) -> Self {
        let mut question = Question::new(name, record_type);
        if let Some(data) = subnet {
            question = question.option(CLIENT_SUBNET, data);
        }
        let [ours, theirs] = [beside.zonda, beside.gdnsd.address].map(|server| {
            ask(server, &question).unwrap_or_else(|error| panic!("{server}, {question}: {error}"))
        });
        Self { question, ours, theirs }
    }

    /// The client subnet of a reply with its scope.
    pub fn subnet_of(reply: &Message) -> Option<&[u8]> {
        let options = &reply.edns.as_ref()?.options;
        let (_, data) = options.iter().find(|(code, _)| *code == CLIENT_SUBNET)?;
        Some(data)
    }

    /// The parts in which the replies differ, of these.
    pub fn differing(&self, parts: &[Part]) -> Vec<Part> {
        let differs = |part: &Part| part.of(&self.ours) != part.of(&self.theirs);
        parts.iter().copied().filter(differs).collect()
    }

    /// Both replies as text.
    pub fn shown(&self) -> String {
        let [ours, theirs] = [&self.ours, &self.theirs].map(Self::subnet_of);
        let lines = difference(&self.ours, &self.theirs);
        format!("{}, Zonda's {ours:?}, gdnsd's {theirs:?}\n{lines}", self.question)
    }
}

/// What was found to differ, of which some is kept to be shown.
#[derive(Default)]
pub struct Differences {
    count: usize,
    shown: Vec<String>,
}

impl Differences {
    pub fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(what());
        }
    }

    /// Fails unless there are none.
    pub fn assert_none(&self) {
        assert!(self.count == 0, "{} differences\n{}", self.count, self.shown.join("\n"));
    }
}
