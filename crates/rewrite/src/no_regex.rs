//! Regular expressions in a program without the feature `expressions`: none can be compiled. The
//! names are those of the crate `regex`.

use std::fmt;

/// Why a text is no regular expression: this program was built without them.
#[derive(Clone, Debug, PartialEq)]
pub struct Error;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this program was built without regular expressions: switch on the feature `server`",
        )
    }
}

/// Expressions over octets.
pub mod bytes {
    use super::Error;
    use std::convert::Infallible;
    use std::marker::PhantomData;

    /// An expression, of which there is no instance.
    #[derive(Clone, Debug)]
    pub struct Regex(Infallible);

    /// The groups of a match, of which there is no instance.
    pub struct Captures<'h>(Infallible, PhantomData<&'h [u8]>);

    /// A group of a match, of which there is no instance.
    #[derive(Clone, Copy)]
    pub struct Match<'h>(Infallible, PhantomData<&'h [u8]>);

    /// The settings of an expression.
    pub struct RegexBuilder;

    impl RegexBuilder {
        /// Takes the text of an expression.
        pub fn new(_pattern: &str) -> Self {
            Self
        }

        /// Sets whether characters may be any of Unicode.
        pub fn unicode(&mut self, _is_on: bool) -> &mut Self {
            self
        }

        /// Sets the bound of the memory of the expression.
        pub fn size_limit(&mut self, _octets: usize) -> &mut Self {
            self
        }

        /// Makes no expression.
        ///
        /// # Errors
        /// Always: the feature is not there.
        pub fn build(&self) -> Result<Regex, Error> {
            Err(Error)
        }
    }

    impl Regex {
        /// Whether a text matches.
        pub fn is_match(&self, _text: &[u8]) -> bool {
            match self.0 {}
        }

        /// Returns the groups of a text that matches.
        pub fn captures<'h>(&self, _text: &'h [u8]) -> Option<Captures<'h>> {
            match self.0 {}
        }

        /// Returns the number of groups.
        pub fn captures_len(&self) -> usize {
            match self.0 {}
        }

        /// Returns the names of groups.
        pub fn capture_names(&self) -> std::iter::Empty<Option<&str>> {
            match self.0 {}
        }

        /// Returns the text of the expression.
        pub fn as_str(&self) -> &str {
            match self.0 {}
        }
    }

    impl<'h> Captures<'h> {
        /// Returns a group by its number.
        pub fn get(&self, _number: usize) -> Option<Match<'h>> {
            match self.0 {}
        }

        /// Returns a group by its name.
        pub fn name(&self, _name: &str) -> Option<Match<'h>> {
            match self.0 {}
        }
    }

    impl<'h> Match<'h> {
        /// Returns the octets of the group.
        pub fn as_bytes(&self) -> &'h [u8] {
            match self.0 {}
        }
    }
}
