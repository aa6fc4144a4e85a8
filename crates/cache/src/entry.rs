//! How an entry lies in a log.
//!
//! ```text
//! word 0  place: the hash of all that distinguishes questions
//!      1  qtype 16 | qclass 16 | source 32
//!      2  body octets 16 | name octets 8 | marks 8
//!         | words of the variant 3 | onward 2 | flags 11 | extended error 16
//!      3  stored at 32 | expires at 32                               seconds
//!      4  stale until 32 | no refresh before 32                      seconds
//!      5  records of the three sections 3 × 16 | first TTL's offset 16
//!      6  name in lower case, filled up to a word
//!      …  the variant's value, filled up to a word
//!      …  body, filled up to a word
//!      …  the other TTLs' offsets, four to a word
//! ```
//!
//! Words 2 and 4 change while the entry lies there: the marks count failed refreshes, and a refresh
//! that is under way puts off the next. Each is one word, so a reader sees it before or after.

use crate::index::Place;
use crate::key::VARIANT_BYTES_MAX;
use crate::words::{WORD_BYTES, hold_octets, to_words, words_for};
use crate::{Answer, Freshness, Key, Kind, Lifetime, Onward};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use zonda_wire::{Class, Ede, Type};

/// Words before the name.
pub const HEADER_WORDS: usize = 6;
/// The word that holds the marks.
pub const MARKS_WORD: usize = 2;
/// The word that says when to refresh.
pub const REFRESH_WORD: usize = 4;
/// Most octets that an entry can have: those of the largest message and of the offsets in it.
pub const ENTRY_WORDS_MAX: usize =
    HEADER_WORDS + words_for(256) + words_for(VARIANT_BYTES_MAX) + words_for(65_536) + 1_490;

/// Offsets of TTLs in a word.
const OFFSETS_PER_WORD: usize = WORD_BYTES / size_of::<u16>();
/// The highest count of failures in a row.
pub const FAILURES_MAX: u8 = 15;
/// The bits of the flags that are kept.
const FLAGS: u16 = (1 << 11) - 1;
/// Instead of an extended error's code: there is none.
const NO_EDE: u16 = u16::MAX;

/// All of an entry but its octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Place of the entry in the index.
    pub place: Place,
    /// The type asked for; see [`Key::qtype`].
    pub qtype: Type,
    /// The class asked for.
    pub qclass: Class,
    /// Number of the forward zone that the answer came from.
    pub source: u32,
    /// Whether the question had DO.
    pub dnssec_ok: bool,
    /// Whether the question had CD.
    pub checking_disabled: bool,
    /// Kind of the answer.
    pub kind: Kind,
    /// Failed fetches in a row, up to [`FAILURES_MAX`].
    pub failures: u8,
    /// Flags as in [`Answer::flags`].
    pub flags: u16,
    /// As in [`Answer::onward`].
    pub onward: Option<Onward>,
    /// Words of the variant's value.
    pub variant_words: u8,
    /// Extended error to send with the answer.
    pub ede: Option<Ede>,
    /// Moment of the insertion, seconds.
    pub stored_at: u32,
    /// Moment from which the answer is stale, seconds.
    pub expires_at: u32,
    /// Moment from which the answer is worthless, seconds.
    pub stale_until: u32,
    /// Moment from which the answer should be refreshed if it is popular, until it is stale;
    /// seconds.
    pub refresh_at: u32,
    /// Records in the answer, authority and additional sections.
    pub counts: [u16; 3],
    /// Octets of the name.
    pub name_len: u8,
    /// Octets of the body.
    pub body_len: u16,
    /// Offset of the first TTL in the body, if there is a record.
    pub first_ttl: u16,
}

impl Header {
    /// Returns what an answer to a question will be stored with.
    pub fn new(
        key: &Key<'_>,
        answer: &Answer<'_>,
        (lifetime, freshness): (Lifetime, Freshness),
        first_ttl: u16,
    ) -> Self {
        let Lifetime { now_secs, ttl_secs, stale_secs } = lifetime;
        let expires_at = now_secs.saturating_add(ttl_secs);
        Self {
            place: key.place(),
            qtype: key.qtype,
            qclass: key.qclass,
            source: key.source,
            dnssec_ok: key.dnssec_ok,
            checking_disabled: key.checking_disabled,
            kind: answer.kind,
            failures: 0,
            flags: answer.flags & FLAGS,
            onward: answer.onward,
            variant_words: words_for(key.variant.value.len()) as u8, // at most VARIANT_BYTES_MAX
            ede: answer.ede,
            stored_at: now_secs,
            expires_at,
            stale_until: expires_at.saturating_add(stale_secs),
            refresh_at: expires_at.saturating_sub(freshness.prefetch_secs(ttl_secs)),
            counts: answer.counts,
            name_len: key.name.len() as u8, // a name has at most 255 octets
            body_len: answer.body.len() as u16, // checked when its TTLs were found
            first_ttl,
        }
    }

    /// Returns the header's words.
    pub fn to_words(self) -> [u64; HEADER_WORDS] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let quad = |fields: [u16; 4]| fields.iter().fold(0, |all, &it| all << 16 | u64::from(it));
        let marks = self.kind as u8
            | u8::from(self.dnssec_ok) << 2
            | u8::from(self.checking_disabled) << 3
            | self.failures << 4;
        let lens_and_marks = u16::from_be_bytes([self.name_len, marks]);
        let onward = self.onward.map_or(0, |onward| onward as u16);
        let flags = u16::from(self.variant_words) << 13 | onward << 11 | self.flags & FLAGS;
        let [an, ns, ar] = self.counts;
        [
            self.place.0,
            pair(u32::from(self.qtype.0) << 16 | u32::from(self.qclass.0), self.source),
            quad([self.body_len, lens_and_marks, flags, self.ede.map_or(NO_EDE, |ede| ede.0)]),
            pair(self.stored_at, self.expires_at),
            pair(self.stale_until, self.refresh_at),
            quad([an, ns, ar, self.first_ttl]),
        ]
    }

    /// Reads the header of an entry, or of anything else that lies there.
    #[inline]
    pub fn read(entry: &[AtomicU64; HEADER_WORDS]) -> Self {
        let [place, question, shape, life, care, counts] =
            entry.each_ref().map(|w| w.load(Relaxed));
        let quarter = |word: u64, nth: u32| (word >> (48 - 16 * nth)) as u16;
        let [name_len, marks] = quarter(shape, 1).to_be_bytes();
        let (flags, ede) = (quarter(shape, 2), quarter(shape, 3));
        let onward = match flags >> 11 & 3 {
            1 => Some(Onward::Here),
            2 => Some(Onward::Others),
            _ => None,
        };
        Self {
            place: Place(place),
            qtype: Type(quarter(question, 0)),
            qclass: Class(quarter(question, 1)),
            source: question as u32,
            dnssec_ok: marks & 1 << 2 != 0,
            checking_disabled: marks & 1 << 3 != 0,
            kind: Kind::ALL[usize::from(marks & 3)],
            failures: marks >> 4,
            flags: flags & FLAGS,
            onward,
            variant_words: (flags >> 13) as u8,
            ede: (ede != NO_EDE).then_some(Ede(ede)),
            stored_at: (life >> 32) as u32,
            expires_at: life as u32,
            stale_until: (care >> 32) as u32,
            refresh_at: care as u32,
            counts: [0, 1, 2].map(|nth| quarter(counts, nth)),
            name_len,
            body_len: quarter(shape, 0),
            first_ttl: quarter(counts, 3),
        }
    }

    /// Whether the question is that of `key`, its name aside.
    #[inline]
    pub fn asks_as(&self, key: &Key<'_>) -> bool {
        self.qtype == key.qtype
            && self.qclass == key.qclass
            && self.source == key.source
            && self.dnssec_ok == key.dnssec_ok
            && self.checking_disabled == key.checking_disabled
            && usize::from(self.name_len) == key.name.len()
            && usize::from(self.variant_words) == words_for(key.variant.value.len())
    }

    /// Returns how many records the body has.
    #[inline]
    fn records(&self) -> usize {
        self.counts.iter().map(|&count| usize::from(count)).sum()
    }

    /// Returns whether an entry, which [asks as](Self::asks_as) a key, has its name and variant.
    #[inline]
    pub fn has_octets_of(&self, entry: &[AtomicU64], key: &Key<'_>) -> bool {
        let variant_start = self.body_start() - usize::from(self.variant_words);
        hold_octets(&entry[HEADER_WORDS..], key.name)
            && (self.variant_words == 0 || hold_octets(&entry[variant_start..], key.variant.value))
    }

    /// Returns where in the entry the body begins.
    #[inline]
    pub fn body_start(&self) -> usize {
        HEADER_WORDS + words_for(usize::from(self.name_len)) + usize::from(self.variant_words)
    }

    /// Returns where in the entry the further TTLs' offsets begin.
    #[inline]
    fn offsets_start(&self) -> usize {
        self.body_start() + words_for(usize::from(self.body_len))
    }

    /// Words of the whole entry.
    #[inline]
    pub fn words(&self) -> usize {
        self.offsets_start() + self.records().saturating_sub(1).div_ceil(OFFSETS_PER_WORD)
    }

    /// Returns where the TTLs stand in the body; `entry` is the whole entry.
    #[inline]
    pub fn ttl_offsets(&self, entry: &[AtomicU64]) -> impl Iterator<Item = u16> {
        let first = (self.records() > 0).then_some(self.first_ttl);
        let more = entry.get(self.offsets_start()..).unwrap_or_default().iter().flat_map(|word| {
            let word = word.load(Relaxed);
            (0..OFFSETS_PER_WORD).map(move |nth| (word >> (16 * nth)) as u16)
        });
        first.into_iter().chain(more.take(self.records().saturating_sub(1)))
    }
}

/// Writes a whole entry to `out`, emptied before.
pub fn write(header: Header, key: &Key<'_>, body: &[u8], offsets: &[u16], out: &mut Vec<u64>) {
    out.clear();
    out.extend_from_slice(&header.to_words());
    out.extend(to_words(key.name));
    out.extend(to_words(key.variant.value));
    out.extend(to_words(body));
    let more = offsets.get(1..).unwrap_or_default().chunks(OFFSETS_PER_WORD);
    out.extend(more.map(|four| four.iter().rev().fold(0, |all, &it| all << 16 | u64::from(it))));
    debug_assert_eq!(out.len(), header.words());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for kind in Kind::ALL {
            let header = Header {
                place: Place(0x0123_4567_89ab_cdef),
                qtype: Type::HTTPS,
                qclass: Class::IN,
                source: u32::MAX - 7,
                dnssec_ok: kind == Kind::NoData,
                checking_disabled: kind != Kind::NoData,
                kind,
                failures: FAILURES_MAX,
                flags: 0x0423,
                onward: (kind == Kind::Positive).then_some(Onward::Others),
                variant_words: kind as u8 * 2,
                ede: (kind == Kind::Failure).then_some(Ede::NETWORK_ERROR),
                stored_at: 1,
                expires_at: u32::MAX,
                stale_until: 0x8000_0000,
                refresh_at: 77,
                counts: [1, 300, 65_535],
                name_len: 255,
                body_len: 65_530,
                first_ttl: 6,
            };
            assert_eq!(Header::read(&header.to_words().map(AtomicU64::new)), header);
        }
    }
}
