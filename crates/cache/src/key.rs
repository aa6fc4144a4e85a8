//! What goes into the cache and what comes out: questions, answers, hits.

use crate::index::Place;
use zonda_wire::query::flag;
use zonda_wire::{Class, Ede, Type};

/// Everything that distinguishes one cached answer from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'n> {
    /// The name asked for, in wire form and lower case.
    pub name: &'n [u8],
    /// A hash of the name with a secret of the process.
    pub hash: u64,
    /// The type asked for.
    pub qtype: Type,
    /// The class asked for.
    pub qclass: Class,
    /// Which forward zone the answer comes from, so that two may differ on a name.
    pub source: u32,
    /// The question had DO: the answer holds DNSSEC records (rfc4035#3.2.1).
    pub dnssec_ok: bool,
    /// The question had CD: the answer was not validated (rfc4035#3.2.2).
    pub checking_disabled: bool,
    /// What the answer depends on besides the question.
    pub variant: Variant<'n>,
}

/// What an answer depends on besides its question, such as the network of the client. The answer is
/// found for just this value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant<'n> {
    /// A hash of the value with a secret of the process; 0 without a value.
    pub hash: u64,
    /// The octets of the value, at most [`VARIANT_BYTES_MAX`]; none if the answer depends on the
    /// question alone. Octets of zero at its end tell no values apart.
    pub value: &'n [u8],
}

/// Most octets of a variant's value.
pub const VARIANT_BYTES_MAX: usize = 56;

/// Where the chain of aliases goes on that an answer of upstreams ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// In zone data of this server, or nowhere.
    Here = 1,
    /// At other upstreams than those that answered. Such an answer is given only with what they say
    /// of the rest of the chain.
    Others = 2,
}

/// Stored instead of the type asked for when an answer holds for every type. No type has it
/// (rfc6895#3.1), but a question may: what is answered to that is never kept.
pub(crate) const EVERY_TYPE: Type = Type(0);

impl Key<'_> {
    /// Returns the question whose answer holds for every type of the name.
    #[inline]
    pub(crate) fn of_every_type(self) -> Self {
        Self { qtype: EVERY_TYPE, ..self }
    }

    /// Returns the question that an answer is stored under: that a name does not exist holds for
    /// all of its types (rfc2308#5), unless an alias led to another name that does not.
    #[inline]
    pub(crate) fn stored_with(self, kind: Kind, counts: [u16; 3]) -> Self {
        if denies_name(kind, counts) { self.of_every_type() } else { self }
    }

    /// Returns where the answer belongs: all types of a name in one bucket, so that a look-up for a
    /// type and for every type fetches one line.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        let class_and_marks = u32::from(self.qclass.0) << 2
            | u32::from(self.dnssec_ok) << 1
            | u32::from(self.checking_disabled);
        let group = mix(
            self.hash ^ self.variant.hash,
            u64::from(self.source) << 32 | u64::from(class_and_marks),
        );
        Place::new(group, mix(group, u64::from(self.qtype.0)))
    }
}

/// Whether an answer of this kind, with so many records in each section, says that the name asked
/// for does not exist, not one that it is an alias of.
#[inline]
pub(crate) fn denies_name(kind: Kind, counts: [u16; 3]) -> bool {
    kind == Kind::NxDomain && counts[0] == 0
}

/// The mark at a denial which holds for the names below, too ([`Cache::find_cut`]): only a forger
/// that saw the query can have made it. RA is set anew in every reply, so that it is free for this.
///
/// [`Cache::find_cut`]: crate::Cache::find_cut
pub const DENIES_BELOW: u16 = flag::RA;

/// Whether an answer of this kind, with these marks and so many records in each section, denies all
/// names below the one asked for (rfc8020#2).
pub(crate) fn denies_below(kind: Kind, flags: u16, counts: [u16; 3]) -> bool {
    flags & DENIES_BELOW != 0 && denies_name(kind, counts)
}

/// Spreads every bit of the hash, and what is added to it, over the result.
#[inline]
fn mix(hash: u64, more: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15; // 2⁶⁴ divided by the golden ratio
    let product = u128::from(hash ^ more.wrapping_mul(ODD)) * u128::from(ODD);
    product as u64 ^ (product >> 64) as u64
}

/// The kind of a cached answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There are records.
    Positive = 0,
    /// The name exists, but not with this type.
    NoData = 1,
    /// A denial of the name.
    NxDomain = 2,
    /// A failure to get an answer (rfc9520).
    Failure = 3,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Positive, Self::NoData, Self::NxDomain, Self::Failure];
}

/// An answer to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'b> {
    /// Kind of the answer.
    pub kind: Kind,
    /// A word that is stored unchanged: AA, AD and the response code, where a header has them, and
    /// [`DENIES_BELOW`]. Only the lower eleven bits are kept.
    pub flags: u16,
    /// Where the chain goes on that the answer ends with; none if it ends with no alias.
    pub onward: Option<Onward>,
    /// Extended error to send with the answer.
    pub ede: Option<Ede>,
    /// Records in the answer, authority and additional sections.
    pub counts: [u16; 3],
    /// The octets behind the question, without OPT. Pointers lead into the question at offset 12 of
    /// the message, or into the body itself, which begins where the question ends.
    pub body: &'b [u8],
}

/// How long an answer is kept. All times of the cache are seconds of one clock that never goes
/// back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Present time, seconds.
    pub now_secs: u32,
    /// Seconds for which the answer is fresh.
    pub ttl_secs: u32,
    /// Seconds after that for which the answer may still be sent when no fresh one is to be had
    /// (rfc8767).
    pub stale_secs: u32,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'t> {
    /// The response code to answer with, and other bits of the header.
    pub flags: u16,
    /// Extended error to send with the failure.
    pub ede: Option<Ede>,
    /// The failure in words, UTF-8; what is beyond [`FAILURE_TEXT_BYTES_MAX`] is cut off. Stands in
    /// place of the body when the failure is found.
    pub text: &'t [u8],
}

/// Most octets of a failure's text.
pub const FAILURE_TEXT_BYTES_MAX: usize = 160;

/// An answer that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Kind of the answer.
    pub kind: Kind,
    /// Flags as in [`Answer::flags`].
    pub flags: u16,
    /// As in [`Answer::onward`].
    pub onward: Option<Onward>,
    /// Extended error to send with the answer.
    pub ede: Option<Ede>,
    /// Records in the answer, authority and additional sections.
    pub counts: [u16; 3],
    /// Octets of the body, or of a failure's text. When they are more than the caller had room for,
    /// none was copied.
    pub body_bytes: usize,
    /// Whether the answer has expired; its TTLs then are
    /// [`stale_ttl_secs`](crate::Freshness::stale_ttl_secs).
    pub is_stale: bool,
    /// Whether the answer should be refreshed: see
    /// [`Cache::claim_refresh`](crate::Cache::claim_refresh).
    pub refresh_due: bool,
}
