//! A state that is calculated from other states.

use std::fmt;

/// A calculation of one state from several; `L` names a check or a pool.
///
/// ```
/// use zonda_health::Formula::{All, AtLeast, Leaf};
///
/// let formula = All(vec![Leaf("database"), AtLeast(2, vec![Leaf("a"), Leaf("b"), Leaf("c")])]);
/// assert!(formula.is_up(&|leaf: &&str| *leaf != "b"));
/// assert!(!formula.is_up(&|leaf: &&str| *leaf != "database"));
/// assert_eq!(formula.to_string(), "all of [database, at least 2 of [a, b, c]]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Formula<L> {
    /// The state of one check or pool.
    Leaf(L),
    /// Up when at least this many parts are up: always with 0, never with more than there are.
    AtLeast(usize, Vec<Formula<L>>),
    /// Up when every part is up, also with no part at all.
    All(Vec<Formula<L>>),
    /// Up when one part is up, so never with no part.
    Any(Vec<Formula<L>>),
    /// Up when the part is not.
    Not(Box<Formula<L>>),
}

impl<L> Formula<L> {
    /// Returns whether the formula is up, given which leaves are.
    ///
    /// The depth of the recursion is that of the formula, which the configuration has written.
    pub fn is_up(&self, leaf_is_up: &impl Fn(&L) -> bool) -> bool {
        let is_up = |part: &Self| part.is_up(leaf_is_up);
        match self {
            Self::Leaf(leaf) => leaf_is_up(leaf),
            Self::AtLeast(least, parts) => {
                parts.iter().filter(|part| is_up(part)).take(*least).count() == *least
            }
            Self::All(parts) => parts.iter().all(is_up),
            Self::Any(parts) => parts.iter().any(is_up),
            Self::Not(part) => !is_up(part),
        }
    }

    /// Calls a function for every leaf, from the left; one that stands twice is visited twice.
    pub fn each_leaf<'f>(&'f self, visit: &mut impl FnMut(&'f L)) {
        match self {
            Self::Leaf(leaf) => visit(leaf),
            Self::AtLeast(_, parts) | Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.each_leaf(visit));
            }
            Self::Not(part) => part.each_leaf(visit),
        }
    }
}

impl<L: fmt::Display> fmt::Display for Formula<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self {
            Self::Leaf(leaf) => return leaf.fmt(f),
            Self::Not(part) => return write!(f, "not {part}"),
            Self::AtLeast(least, parts) => {
                write!(f, "at least {least} of [")?;
                parts
            }
            Self::All(parts) => {
                f.write_str("all of [")?;
                parts
            }
            Self::Any(parts) => {
                f.write_str("any of [")?;
                parts
            }
        };
        for (index, part) in parts.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{part}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::Formula::{self, All, Any, AtLeast, Leaf, Not};

    /// Returns leaves of these numbers.
    fn leaves(numbers: &[u32]) -> Vec<Formula<u32>> {
        numbers.iter().copied().map(Leaf).collect()
    }

    #[test]
    fn at_least_two_of_three_are_up() {
        let formula = AtLeast(2, leaves(&[1, 2, 3]));
        let with = |up: &[u32]| formula.is_up(&|leaf| up.contains(leaf));
        assert!(with(&[1, 3]) && with(&[1, 2, 3]));
        assert!(!with(&[2]) && !with(&[]));
    }

    #[test]
    fn formulas_without_parts_have_a_defined_state() {
        let up = |formula: Formula<u32>| formula.is_up(&|_| true);
        assert!(up(All(Vec::new())) && up(AtLeast(0, Vec::new())));
        assert!(!up(Any(Vec::new())) && !up(AtLeast(1, Vec::new())));
        assert!(!up(AtLeast(3, leaves(&[1, 2]))));
    }

    #[test]
    fn parts_are_nested_and_each_leaf_is_visited() {
        let formula = All(vec![Any(leaves(&[1, 2])), Not(Box::new(Leaf(3)))]);
        assert!(formula.is_up(&|leaf| *leaf == 2));
        assert!(!formula.is_up(&|leaf| *leaf != 1));
        let mut visited = Vec::new();
        formula.each_leaf(&mut |leaf| visited.push(*leaf));
        assert_eq!(visited, [1, 2, 3]);
        assert_eq!(formula.to_string(), "all of [any of [1, 2], not 3]");
    }
}
