//! What a section of the configuration declares about itself, and the macro that declares it.
//!
//! A key is written once, in `keys.rs`. From that one place come its field, its default, its range,
//! its environment variable, its paragraph in the reference and its line in the sample.

use crate::reader::Reader;

/// How values are written in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Text in quotes.
    Text,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// Text in quotes, or a whole number.
    TextOrInteger,
    /// A number, perhaps with a fraction.
    Number,
    /// A value that is not single: a list, a table, a date, a number in hexadecimal.
    Other,
}

impl Shape {
    /// Whether a value of a key of this shape may be written in another one.
    pub(crate) fn takes(self, written: Self) -> bool {
        self == written
            || self == Self::TextOrInteger && matches!(written, Self::Text | Self::Integer)
            || self == Self::Number && written == Self::Integer
    }
}

/// Where in the file a section stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The keys at the top, before any header.
    Top,
    /// `[name]`, at most once.
    Table,
    /// `[[name]]`, any number of times.
    Array,
    /// `[name]`, with keys the user names; each holds what the section's only key describes.
    Open,
    /// `[array.name]`, at most once in an element of the [`Array`](Self::Array) called `array`.
    Nested,
    /// `[[section.name]]`, any number of times in the section, or element of it, called `section`;
    /// each may also be written as a table in a list.
    NestedArray,
    /// `[array.name]`, with keys the user names, at most once in an element of `array`.
    NestedOpen,
}

impl Kind {
    /// Whether the section stands in another one.
    pub(crate) fn is_nested(self) -> bool {
        matches!(self, Self::Nested | Self::NestedArray | Self::NestedOpen)
    }
}

/// When a changed value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectTime {
    /// Changes take effect at the next reload.
    Reload,
    /// Changes take effect at the next start.
    Restart,
}

/// One section: its place in the file and its keys.
#[derive(Debug)]
pub struct Section {
    /// The word in the header; empty for [`Kind::Top`].
    pub name: &'static str,
    /// Kind of the section.
    pub kind: Kind,
    /// Time at which changes take effect.
    pub takes: EffectTime,
    /// Documentation, a line each.
    pub doc: &'static [&'static str],
    /// Keys of the section, in the order in which they are documented.
    pub keys: &'static [Key],
}

/// One key of a section.
#[derive(Debug)]
pub struct Key {
    /// Name as written in the file: lower case, words joined by `-`.
    pub name: &'static str,
    /// Documentation, a line each.
    pub doc: &'static [&'static str],
    /// Default value, in the text form; none: the key stays unset.
    pub default: Option<&'static str>,
    /// A value to show where there is no default.
    pub example: Option<&'static str>,
    /// Least and greatest value, in the text form.
    pub range: Option<(&'static str, &'static str)>,
    /// Returns how a value is written: "a duration such as …".
    pub form: fn() -> String,
    /// The TOML shape of a value, or of each element of a list.
    pub shape: Shape,
    /// Whether the key holds a list; a single value then stands for a list of one.
    pub many: bool,
    /// Whether the value must not be shown.
    pub secret: bool,
}

impl Section {
    /// Returns the header as it stands in a file; empty for the top.
    #[must_use]
    pub fn header(&self) -> String {
        match self.kind {
            Kind::Top => String::new(),
            Kind::Table | Kind::Open | Kind::Nested | Kind::NestedOpen => {
                format!("[{}]", self.name)
            }
            Kind::Array | Kind::NestedArray => format!("[[{}]]", self.name),
        }
    }

    /// Returns the environment variable that sets `key`, where there is one: sections that repeat
    /// have none for their keys, and the version belongs to a file.
    #[must_use]
    pub fn variable(&self, key: &Key) -> Option<String> {
        let path = match self.kind {
            Kind::Top if key.name == "version" => return None,
            Kind::Top => key.name.to_owned(),
            Kind::Table => format!("{}_{}", self.name, key.name),
            Kind::Array | Kind::Open => return None,
            Kind::Nested | Kind::NestedArray | Kind::NestedOpen => return None,
        };
        Some(format!("ZONDA_{}", path.replace('-', "_").to_uppercase()))
    }

    /// Returns all its environment variables. A section that repeats may have one, which lists its
    /// elements; a nested one may have one, which makes an element with it.
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        let word = self.place().map_or(self.name, |(_, word)| word);
        match self.name {
            "listen" | "zone" | "zone.forward" | "zone.store" | "zone.kubernetes" => {
                vec![format!("ZONDA_{}", word.to_uppercase())]
            }
            _ => self.keys.iter().filter_map(|key| self.variable(key)).collect(),
        }
    }

    /// For a nested section: the section that it stands in, and its word there.
    pub(crate) fn place(&self) -> Option<(&'static str, &'static str)> {
        self.name.split_once('.').filter(|_| self.kind.is_nested())
    }

    /// Returns the key called `name`.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Key {
    /// Returns how a value, or each of a list, is written, with its range.
    #[must_use]
    pub fn form(&self) -> String {
        let form = (self.form)();
        match self.range {
            Some((low, high)) => format!("{form}, from {low} to {high}"),
            None => form,
        }
    }

    /// Returns the default or, where there is none, the example, as TOML.
    #[must_use]
    pub fn sample(&self) -> String {
        let text = self.default.or(self.example).unwrap_or_default();
        if self.many {
            self.toml(&split_list(text).collect::<Vec<_>>())
        } else {
            self.toml(&[text])
        }
    }

    /// Returns what the key holds, in the text form, as TOML.
    pub(crate) fn toml(&self, items: &[&str]) -> String {
        let one = |text: &&str| match self.shape {
            Shape::Text => quoted(text),
            Shape::TextOrInteger if !text.bytes().all(|c| c.is_ascii_digit()) => quoted(text),
            Shape::Integer
            | Shape::Boolean
            | Shape::TextOrInteger
            | Shape::Number
            | Shape::Other => (*text).to_owned(),
        };
        let items: Vec<String> = items.iter().map(one).collect();
        if self.many { format!("[{}]", items.join(", ")) } else { items.join(", ") }
    }
}

/// Text as a TOML string on one line.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Returns the elements of a list in the text form: separated by commas, blanks around them left
/// out.
pub(crate) fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// The keys of a section that have been read.
pub(crate) trait Keys: Sized {
    /// The section's declaration.
    const SECTION: Section;

    /// Reads every key, so that all errors are found; none if there was one.
    fn read(reader: &mut Reader<'_, '_>) -> Option<Self>;
}

/// Declares a section: a struct whose fields are its keys, and its [`Section`].
///
/// ```text
/// section! {
///     /// What the section is for.
///     pub struct Tcp: Table "tcp", Reload;
///
///     /// What the key does.
///     idle_timeout: Duration = "10s", from "1s" to "1h";
///     /// A key without default: an `Option`, a list, or (any other type) required.
///     certificate: Option<PathBuf>, like "dns.pem";
/// }
/// ```
macro_rules! section {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident: $kind:ident $word:literal, $takes:ident;
        $(
            $(#[doc = $key_doc:literal])*
            $field:ident: $type:ty $(= $default:literal)? $(, like $example:literal)?
                $(, from $low:literal to $high:literal)?;
        )*
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $key_doc])* pub $field: $type,)*
        }

        impl $crate::section::Keys for $name {
            const SECTION: $crate::section::Section = $crate::section::Section {
                name: $word,
                kind: $crate::section::Kind::$kind,
                takes: $crate::section::EffectTime::$takes,
                doc: &[$($doc),*],
                keys: &[$($crate::section::Key {
                    name: {
                        const NAME: [u8; stringify!($field).len()] =
                            $crate::section::kebab(stringify!($field));
                        $crate::section::ascii(&NAME)
                    },
                    doc: &[$($key_doc),*],
                    default: $crate::section::maybe!($($default)?),
                    example: $crate::section::maybe!($($example)?),
                    range: $crate::section::maybe!($(($low, $high))?),
                    form: <<$type as $crate::value::Field>::Item as $crate::value::Value>::form,
                    shape: <<$type as $crate::value::Field>::Item as $crate::value::Value>::SHAPE,
                    many: <$type as $crate::value::Field>::MANY,
                    secret: <<$type as $crate::value::Field>::Item as $crate::value::Value>::SECRET,
                }),*],
            };

            fn read(reader: &mut $crate::reader::Reader<'_, '_>) -> Option<Self> {
                let mut keys = Self::SECTION.keys.iter();
                $(let $field = reader.read::<$type>(keys.next()?);)*
                Some(Self { $($field: $field?),* })
            }
        }
    };
}
pub(crate) use section;

/// `None`, or `Some` of what is given.
macro_rules! maybe {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(crate) use maybe;

/// Returns a field's name with `-` for `_`.
pub(crate) const fn kebab<const N: usize>(field: &str) -> [u8; N] {
    let mut name = [0; N];
    let mut i = 0;
    while i < N {
        let octet = field.as_bytes()[i];
        name[i] = if octet == b'_' { b'-' } else { octet };
        i += 1;
    }
    name
}

/// Returns the text made of the octets of an identifier.
pub(crate) const fn ascii(octets: &'static [u8]) -> &'static str {
    match std::str::from_utf8(octets) {
        Ok(text) => text,
        Err(_) => panic!("an identifier is UTF-8"),
    }
}
