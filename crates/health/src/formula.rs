//! A state that is calculated from other states.

use std::fmt;

/// Most parentheses of a formula that lie in one another.
const DEPTH_MAX: usize = 16;

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

impl<L> Formula<L> {
    /// Returns the same formula of other leaves.
    ///
    /// # Errors
    /// The first one that a leaf is refused with.
    pub fn try_map<M, E>(&self, map: &mut impl FnMut(&L) -> Result<M, E>) -> Result<Formula<M>, E> {
        let mut all = |parts: &[Self]| {
            parts.iter().map(|part| part.try_map(map)).collect::<Result<Vec<Formula<M>>, E>>()
        };
        Ok(match self {
            Self::AtLeast(least, parts) => Formula::AtLeast(*least, all(parts)?),
            Self::All(parts) => Formula::All(all(parts)?),
            Self::Any(parts) => Formula::Any(all(parts)?),
            Self::Leaf(leaf) => Formula::Leaf(map(leaf)?),
            Self::Not(part) => Formula::Not(Box::new(part.try_map(map)?)),
        })
    }
}

impl Formula<String> {
    /// Reads a formula such as `a and 2 of (b, c, not d)`. Names have no spaces, commas and
    /// parentheses, unless they stand in single quotes. `and` and `or` do not stand beside each
    /// other without parentheses.
    ///
    /// # Errors
    /// What is expected in place of what.
    ///
    /// ```
    /// use zonda_health::Formula;
    ///
    /// let formula = Formula::parse("db and (2 of (a, b, c) or not 'd e')").unwrap();
    /// assert_eq!(formula.to_string(), "all of [db, any of [at least 2 of [a, b, c], not d e]]");
    /// let error = Formula::parse("a and or b").unwrap_err();
    /// assert_eq!(error.to_string(), "expected a name, `not` or `(`, but found `or`");
    /// ```
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        let mut words = Words { rest: text, depth: 0 };
        let formula = words.formula()?;
        match words.next()? {
            None => Ok(formula),
            found => Err(FormulaError::new("the end", found)),
        }
    }
}

/// Why a text is no formula: what is expected, and what is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    expected: &'static str,
    /// The word that is found; none for the end.
    found: Option<String>,
}

impl FormulaError {
    /// The error of a word in a place where something else is expected.
    fn new(expected: &'static str, found: Option<Word<'_>>) -> Self {
        Self { expected, found: found.map(|word| word.text.to_owned()) }
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "expected {}, but found `{found}`", self.expected),
            None => write!(f, "expected {}, but found the end", self.expected),
        }
    }
}

impl std::error::Error for FormulaError {}

/// A word of a formula: a name, a keyword, a comma or a parenthesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word<'t> {
    text: &'t str,
    /// Whether it stands in quotes, so that it is a name.
    is_quoted: bool,
}

/// The words of a formula that are left.
struct Words<'t> {
    rest: &'t str,
    /// How many parentheses are open.
    depth: usize,
}

impl<'t> Words<'t> {
    /// Takes the next word; none at the end.
    fn next(&mut self) -> Result<Option<Word<'t>>, FormulaError> {
        let text = self.rest.trim_start();
        let Some(first) = text.chars().next() else { return Ok(None) };
        let (word, rest, is_quoted) = match first {
            '(' | ')' | ',' => (&text[..1], &text[1..], false),
            '\'' => {
                let (name, rest) = text[1..].split_once('\'').ok_or(FormulaError {
                    expected: "a quote at the end of a name",
                    found: None,
                })?;
                (name, rest, true)
            }
            _ => {
                let ends = |it: char| it.is_whitespace() || "(),".contains(it);
                let end = text.find(ends).unwrap_or(text.len());
                (&text[..end], &text[end..], false)
            }
        };
        self.rest = rest;
        Ok(Some(Word { text: word, is_quoted }))
    }

    /// Takes the next word if it is this one.
    fn takes(&mut self, wanted: &str) -> Result<bool, FormulaError> {
        let before = self.rest;
        let is_it = self.next()?.is_some_and(|word| !word.is_quoted && word.text == wanted);
        if !is_it {
            self.rest = before;
        }
        Ok(is_it)
    }

    /// Reads parts that `and` or `or` connects.
    fn formula(&mut self) -> Result<Formula<String>, FormulaError> {
        let first = self.part()?;
        let (mut parts, mut word) = (vec![first], None);
        loop {
            let next = ["and", "or"].into_iter().find_map(|it| match self.takes(it) {
                Ok(true) => Some(Ok(it)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            });
            let Some(next) = next.transpose()? else { break };
            if *word.get_or_insert(next) != next {
                let expected = "parentheses around parts with `and` beside parts with `or`";
                return Err(FormulaError { expected, found: Some(next.to_owned()) });
            }
            parts.push(self.part()?);
        }
        Ok(match (word, parts.pop()) {
            (None, Some(part)) => part,
            (Some("and"), last) => Formula::All(parts.into_iter().chain(last).collect()),
            (_, last) => Formula::Any(parts.into_iter().chain(last).collect()),
        })
    }

    /// Reads a name, a formula in parentheses, `not` before either, or `N of (…)`.
    fn part(&mut self) -> Result<Formula<String>, FormulaError> {
        const PART: &str = "a name, `not` or `(`";
        let word = self.next()?;
        let Some(Word { text, is_quoted }) = word else {
            return Err(FormulaError::new(PART, None));
        };
        match text {
            _ if is_quoted => Ok(Formula::Leaf(text.to_owned())),
            "not" => {
                self.open()?;
                let part = self.part()?;
                self.depth -= 1;
                Ok(Formula::Not(Box::new(part)))
            }
            "(" => {
                self.open()?;
                let formula = self.formula()?;
                self.close()?;
                Ok(formula)
            }
            "and" | "or" | "of" | ")" | "," => Err(FormulaError::new(PART, word)),
            _ if self.takes("of")? => self.at_least(text),
            _ => Ok(Formula::Leaf(text.to_owned())),
        }
    }

    /// Reads the list behind `N of`.
    fn at_least(&mut self, least: &str) -> Result<Formula<String>, FormulaError> {
        let number = least.parse().ok().filter(|least| *least > 0);
        let least = number.ok_or_else(|| FormulaError {
            expected: "a number above 0 before `of`",
            found: Some(least.to_owned()),
        })?;
        if !self.takes("(")? {
            return Err(FormulaError::new("a list in parentheses behind `of`", self.next()?));
        }
        self.open()?;
        let mut parts = vec![self.formula()?];
        while self.takes(",")? {
            parts.push(self.formula()?);
        }
        self.close()?;
        if least > parts.len() {
            let expected = "at least as many parts as the number before `of` says";
            return Err(FormulaError { expected, found: Some(format!("{} parts", parts.len())) });
        }
        Ok(Formula::AtLeast(least, parts))
    }

    /// Notes one more level.
    fn open(&mut self) -> Result<(), FormulaError> {
        self.depth += 1;
        let expected = "fewer than 16 parentheses in one another";
        match self.depth < DEPTH_MAX {
            true => Ok(()),
            false => Err(FormulaError { expected, found: Some("more".to_owned()) }),
        }
    }

    /// Takes the parenthesis that ends a level.
    fn close(&mut self) -> Result<(), FormulaError> {
        self.depth -= 1;
        match self.next()? {
            Some(Word { text: ")", is_quoted: false }) => Ok(()),
            found => Err(FormulaError::new("`,`, `and`, `or` or `)`", found)),
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

    #[test]
    fn texts_that_are_no_formula_are_refused_with_what_is_expected() {
        for (text, wanted) in [
            ("", "expected a name, `not` or `(`, but found the end"),
            ("a b", "expected the end, but found `b`"),
            (
                "a and b or c",
                "expected parentheses around parts with `and` beside parts with \
              `or`, but found `or`",
            ),
            ("(a", "expected `,`, `and`, `or` or `)`, but found the end"),
            ("2 of a", "expected a list in parentheses behind `of`, but found `a`"),
            ("x of (a)", "expected a number above 0 before `of`, but found `x`"),
            (
                "3 of (a, b)",
                "expected at least as many parts as the number before `of` says, but \
              found `2 parts`",
            ),
            ("'a", "expected a quote at the end of a name, but found the end"),
            ("2 of (a,)", "expected a name, `not` or `(`, but found `)`"),
        ] {
            let error = Formula::parse(text).map(|it| it.to_string()).expect_err(text);
            assert_eq!(error.to_string(), wanted, "{text}");
        }
        assert!(Formula::parse(&"(".repeat(100_000)).is_err());
        assert!(Formula::parse(&"not ".repeat(100_000)).is_err());
    }

    #[test]
    fn keywords_in_quotes_are_names() {
        let formula = Formula::parse("'and' or 2 of ('or',not-a-word, 2of)").expect("a formula");
        assert_eq!(formula.to_string(), "any of [and, at least 2 of [or, not-a-word, 2of]]");
    }
}
