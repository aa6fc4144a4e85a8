//! Values of the keys of pools.

use crate::section::Shape;
use crate::value::{Value, words};
use std::ops::RangeInclusive;
use zonda_wire::Rcode;

words! {
    /// A step in the choice of a pool's members: a filter, or an order.
    pub enum ChoiceStep {
        /// The filter that leaves the members of the lowest priority number.
        Failover = "failover",
        /// The filter that leaves the members whose checks are answered soonest.
        Latency = "latency",
        /// The filter that leaves the members at the sites that serve the client's place.
        Geo = "geo",
        /// The filter that leaves the members at the site that is nearest to the client.
        Nearest = "nearest",
        /// The filter that leaves the members that the client reaches soonest.
        LearnedLatency = "learned-latency",
        /// The filter by which members with too much to do take fewer queries.
        Load = "load",
        /// The order in which each member is the first equally often.
        RoundRobin = "round-robin",
        /// The order that begins with a member drawn by weight.
        Weighted = "weighted",
        /// The order that begins with a member by the hash of the client's network.
        Hash = "hash",
        /// The order that begins with a member by the hash of the name.
        HashName = "hash-name",
        /// The order of the file.
        InOrder = "in-order",
    }
}

words! {
    /// What a member counts as before its probes have decided.
    pub enum StartState {
        /// The member answers at once.
        Up = "up",
        /// The member answers once it has succeeded often enough.
        Down = "down",
    }
}

words! {
    /// Whether a member that was down answers again by itself.
    pub enum ResumePolicy {
        /// The member answers as soon as it is up.
        Automatic = "automatic",
        /// The member answers once an operator says so, or no other is up.
        Manual = "manual",
    }
}

/// A status of HTTP, or a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRange(pub RangeInclusive<u16>);

impl Value for StatusRange {
    const SHAPE: Shape = Shape::TextOrInteger;

    fn form() -> String {
        "a status from 100 to 599, or a range such as \"200-299\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let range = low.trim().parse().ok()?..=high.trim().parse().ok()?;
        let is_sound = *range.start() >= 100 && *range.end() <= 599 && !range.is_empty();
        is_sound.then_some(Self(range))
    }
}

/// A response code that a check by DNS accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRcode(pub Rcode);

impl Value for CheckRcode {
    fn form() -> String {
        "\"NOERROR\", \"NXDOMAIN\", \"SERVFAIL\", \"REFUSED\", \"FORMERR\" or \"NOTIMP\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let known = [
            Rcode::NOERROR,
            Rcode::NXDOMAIN,
            Rcode::SERVFAIL,
            Rcode::REFUSED,
            Rcode::FORMERR,
            Rcode::NOTIMP,
        ];
        known.into_iter().find(|rcode| rcode.to_string() == text).map(Self)
    }
}

/// How many members of a pool answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerCount(pub zonda_balance::Answers);

impl Value for AnswerCount {
    const SHAPE: Shape = Shape::TextOrInteger;

    fn form() -> String {
        format!("a whole number from 1 to {}, or \"all\"", zonda_balance::ANSWERS_MAX)
    }

    fn from_text(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Self(zonda_balance::Answers::All));
        }
        let count: u8 = text.parse().ok()?;
        let is_sound = (1..=zonda_balance::ANSWERS_MAX).contains(&usize::from(count));
        is_sound.then_some(Self(zonda_balance::Answers::Some(count)))
    }
}

/// What happens when no member of a pool is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllDownPolicy {
    /// All members count as up.
    All,
    /// Members count as up that were up last.
    LastHealthy,
    /// The pool of this name answers.
    Pool(String),
    /// The reply is SERVFAIL.
    ServFail,
    /// The reply says that there are no records.
    NoData,
    /// The reply is REFUSED.
    Refused,
}

impl Value for AllDownPolicy {
    fn form() -> String {
        "\"all\", \"last-healthy\", \"servfail\", \"nodata\", \"refused\" or \"pool:NAME\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(match text {
            "all" => Self::All,
            "last-healthy" => Self::LastHealthy,
            "servfail" => Self::ServFail,
            "nodata" => Self::NoData,
            "refused" => Self::Refused,
            _ => Self::Pool(text.strip_prefix("pool:").filter(|name| !name.is_empty())?.to_owned()),
        })
    }
}
