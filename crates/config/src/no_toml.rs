//! TOML in a program without the feature `file`: no text is read, so that there are no tables. The
//! names are those of the crate `toml`.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;

/// A value with its place, of which there is no instance.
pub struct Spanned<T>(Infallible, PhantomData<T>);

impl<T> Spanned<T> {
    /// Returns the octets that the value takes of the text.
    pub fn span(&self) -> Range<usize> {
        match self.0 {}
    }

    /// Returns the value.
    pub fn get_ref(&self) -> &T {
        match self.0 {}
    }

    /// Returns the value alone.
    pub fn into_inner(self) -> T {
        match self.0 {}
    }
}

/// Tables and values.
pub(crate) mod de {
    use super::{Infallible, PhantomData, Range, Spanned};
    use std::borrow::Cow;

    /// A mistake in a text, of which there is no instance.
    pub struct Error(Infallible);

    /// A table, of which there is no instance.
    pub struct DeTable<'a>(Infallible, PhantomData<&'a str>);

    /// The text of a number, of which there is no instance.
    pub struct Number(Infallible);

    /// A value, of which there is no instance.
    #[allow(missing_docs, reason = "the kinds of TOML")]
    pub enum DeValue<'a> {
        String(Cow<'a, str>),
        Boolean(bool),
        Integer(Number),
        Float(Number),
        Array(Vec<Spanned<DeValue<'a>>>),
        Table(DeTable<'a>),
    }

    /// A key and its value.
    type Entry<'t, 'a> = (&'t Spanned<Cow<'a, str>>, &'t Spanned<DeValue<'a>>);

    impl Error {
        /// Returns the octets that are wrong.
        pub fn span(&self) -> Option<Range<usize>> {
            match self.0 {}
        }

        /// Returns what is wrong.
        pub fn message(&self) -> &str {
            match self.0 {}
        }
    }

    impl<'a> DeTable<'a> {
        /// Reads a text, which no caller has.
        pub fn parse_recoverable(_text: &'a str) -> (Spanned<Self>, Vec<Error>) {
            unreachable!("files are refused before they are read")
        }

        /// Returns the value of a key.
        pub fn get<Q: ?Sized>(&self, _key: &Q) -> Option<&Spanned<DeValue<'a>>> {
            match self.0 {}
        }

        /// Whether there is a key.
        pub fn contains_key<Q: ?Sized>(&self, _key: &Q) -> bool {
            match self.0 {}
        }
    }

    impl<'t, 'a> IntoIterator for &'t DeTable<'a> {
        type Item = Entry<'t, 'a>;
        type IntoIter = std::iter::Empty<Entry<'t, 'a>>;

        fn into_iter(self) -> Self::IntoIter {
            match self.0 {}
        }
    }

    impl<'a> DeValue<'a> {
        /// Returns the table, if the value is one.
        pub fn as_table(&self) -> Option<&DeTable<'a>> {
            match self {
                Self::Table(table) => Some(table),
                _ => None,
            }
        }

        /// Returns the text, if the value is one.
        pub fn as_str(&self) -> Option<&str> {
            match self {
                Self::String(text) => Some(text),
                _ => None,
            }
        }

        /// Returns the elements, if the value is an array.
        pub fn as_array(&self) -> Option<&Vec<Spanned<DeValue<'a>>>> {
            match self {
                Self::Array(elements) => Some(elements),
                _ => None,
            }
        }
    }

    impl Number {
        /// Returns the base that the number is written in.
        pub fn radix(&self) -> u32 {
            match self.0 {}
        }

        /// Returns the digits.
        pub fn as_str(&self) -> &str {
            match self.0 {}
        }
    }
}
