//! What kept replies of code depend on besides their questions: what a look-up has to try.

use super::keep::Vary;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What a reply depends on besides its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The facts about the client that must be alike.
    pub vary: Vary,
    /// The number of first bits of the client's network, at most 128; none if the code says no
    /// scope, and all bits that are told may count.
    pub scope: Option<u8>,
}

/// What the kept replies of a route depend on: the combinations that a look-up has to try.
#[derive(Default)]
pub struct Dependences([ScopeSet; 3]);

/// A set of scopes, those of the replies with one [`Vary`].
#[derive(Default)]
struct ScopeSet {
    /// Bit *n* of all words: a reply has the scope *n*.
    scopes: [AtomicU64; 2],
    /// Bit 0: a reply has the scope 128. Bit 1: a reply has none.
    others: AtomicU64,
}

/// The number that stands for no scope beside the lengths of a prefix, which are 128 at most.
pub const NO_SCOPE: u8 = 129;

impl Dependences {
    /// Adds what a reply depends on that was inserted.
    pub fn insert(&self, dependence: Dependence) {
        let place = dependence.scope.unwrap_or(NO_SCOPE);
        let word = self.0[dependence.vary as usize].word(place / 64);
        let bit = 1 << (place % 64);
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Returns what the replies depend on, those first that are for the fewest clients: where
    /// scopes overlap, the longest counts.
    pub fn iter(&self) -> impl Iterator<Item = Dependence> {
        Vary::ALL.into_iter().flat_map(|vary| {
            self.0[vary as usize].iter().map(move |scope| Dependence { vary, scope })
        })
    }
}

impl ScopeSet {
    /// The word of this index, below 3.
    fn word(&self, index: u8) -> &AtomicU64 {
        match index {
            0 | 1 => &self.scopes[usize::from(index)],
            _ => &self.others,
        }
    }

    /// The scopes, the longest first; behind them none, if a reply has none.
    fn iter(&self) -> impl Iterator<Item = Option<u8>> {
        let mut words = [0, 1, 2].map(|index| self.word(index).load(Relaxed));
        let has_no_scope = words[2] & 2 != 0;
        words[2] &= 1;
        let mut index = words.len();
        let scopes = std::iter::from_fn(move || {
            while words[..index].last() == Some(&0) {
                index -= 1;
            }
            let word = words[..index].last_mut()?;
            let bit = 63 - word.leading_zeros();
            *word ^= 1 << bit;
            Some(Some((index as u8 - 1) * 64 + bit as u8)) // at most 128
        });
        scopes.chain(has_no_scope.then_some(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_scope_comes_first_and_none_comes_last() {
        let dependences = Dependences::default();
        assert_eq!(dependences.iter().count(), 0);
        let scopes = [None, Some(0), Some(63), Some(64), Some(127), Some(128), Some(24)];
        for vary in [Vary::Subnet, Vary::Nothing, Vary::Subnet] {
            scopes.iter().for_each(|&scope| dependences.insert(Dependence { vary, scope }));
        }
        let sorted = [Some(128), Some(127), Some(64), Some(63), Some(24), Some(0), None];
        let of = |vary| sorted.map(|scope| Dependence { vary, scope });
        let expected = [of(Vary::Nothing), of(Vary::Subnet)].concat();
        assert_eq!(dependences.iter().collect::<Vec<_>>(), expected);
    }
}
