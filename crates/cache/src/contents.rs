//! Kinds of cached answers, for counting them.

use crate::{Kind, key::EVERY_TYPE};
use std::ops::AddAssign;
use zonda_wire::Type;

/// Types that are counted apart: the common ones. All other types share one counter more.
const TYPES: usize = 256;
/// Where answers without records begin.
const NODATA: usize = TYPES + 1;
/// Where denials of a name are.
const NXDOMAIN: usize = 2 * (TYPES + 1);
/// Where failures are.
const FAILURE: usize = NXDOMAIN + 1;
/// Kinds that are counted apart.
const PLACES: usize = FAILURE + 1;

/// How many answers there are of each kind and type; nothing before the first was counted.
#[derive(Clone, Debug, Default)]
pub struct Contents(Option<Box<[u32; PLACES]>>);

/// Answers of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Kind of the answers.
    pub kind: Kind,
    /// The type asked for, below 256. `None` stands for all other types, and for what is not
    /// counted by type: names that do not exist, and failures.
    pub qtype: Option<Type>,
    /// Number of the answers, at least one.
    pub answers: u64,
}

impl PartialEq for Contents {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Contents {}

impl Contents {
    /// Returns what there is, type by type: answers with records, those without, denials, failures.
    pub fn iter(&self) -> impl Iterator<Item = Content> {
        let counts = self.0.iter().flat_map(|counts| counts.iter());
        let places = counts.enumerate().filter(|(_, answers)| **answers > 0);
        places.map(|(place, answers)| {
            let (kind, qtype) = match place {
                ..NODATA => (Kind::Positive, place),
                NODATA..NXDOMAIN => (Kind::NoData, place - NODATA),
                NXDOMAIN => (Kind::NxDomain, TYPES),
                _ => (Kind::Failure, TYPES),
            };
            let qtype = u8::try_from(qtype).ok().map(|qtype| Type(qtype.into()));
            Content { kind, qtype, answers: u64::from(*answers) }
        })
    }

    /// Counts one answer more.
    pub(crate) fn add(&mut self, kind: Kind, qtype: Type) {
        let count = &mut self.counts()[place(kind, qtype)];
        *count = count.saturating_add(1);
    }

    /// Counts one answer less.
    pub(crate) fn subtract(&mut self, kind: Kind, qtype: Type) {
        let count = &mut self.counts()[place(kind, qtype)];
        debug_assert!(*count > 0, "{kind:?} {qtype}");
        *count = count.saturating_sub(1);
    }

    /// Returns the counts, to be changed.
    fn counts(&mut self) -> &mut [u32; PLACES] {
        self.0.get_or_insert_with(|| Box::new([0; PLACES]))
    }
}

impl AddAssign<&Self> for Contents {
    fn add_assign(&mut self, other: &Self) {
        let Some(more) = &other.0 else { return };
        for (count, more) in self.counts().iter_mut().zip(more.iter()) {
            *count = count.saturating_add(*more);
        }
    }
}

/// Returns the place of a kind.
fn place(kind: Kind, qtype: Type) -> usize {
    debug_assert!(qtype != EVERY_TYPE || kind == Kind::NxDomain);
    let qtype = usize::from(qtype.0).min(TYPES);
    match kind {
        Kind::Positive => qtype,
        Kind::NoData => NODATA + qtype,
        Kind::NxDomain => NXDOMAIN,
        Kind::Failure => FAILURE,
    }
}
