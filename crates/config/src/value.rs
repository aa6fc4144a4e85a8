//! Values that keys hold, each read from one text form that file, environment and flags share.

use crate::section::Shape;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use zonda_client::Pin;
use zonda_upstream::{Host, Policy, Transport, Upstream};
use zonda_wire::Name;
use zonda_wire::rdata::base64_word;

/// A value written as one piece of text, number or boolean.
pub(crate) trait Value: Sized {
    /// The TOML type in which the value is written.
    const SHAPE: Shape = Shape::Text;
    /// Whether the value is secret and must not be shown.
    const SECRET: bool = false;

    /// Completes the sentence "write …".
    fn form() -> String;

    /// Reads the text form; none if it is not one.
    fn from_text(text: &str) -> Option<Self>;

    /// Returns the value's size in the unit of its range; none if it has no size.
    fn measure(&self) -> Option<u64> {
        None
    }

    /// Returns the value when it was written in a file of `directory`: only paths change.
    fn relative_to(self, _directory: &Path) -> Self {
        self
    }
}

/// What a key holds: a value, perhaps a value, or a list of values.
pub(crate) trait Field: Sized {
    /// The value, or each of the list.
    type Item: Value;
    /// Whether a list of more than one value may be given.
    const MANY: bool = false;

    /// Takes what was given, which is nothing for a key without default; none if it is required.
    fn gather(items: Vec<Self::Item>) -> Option<Self>;
}

impl<T: Value> Field for T {
    type Item = T;

    fn gather(mut items: Vec<T>) -> Option<Self> {
        items.pop()
    }
}

impl<T: Value> Field for Option<T> {
    type Item = T;

    fn gather(mut items: Vec<T>) -> Option<Self> {
        Some(items.pop())
    }
}

impl<T: Value> Field for Vec<T> {
    type Item = T;
    const MANY: bool = true;

    fn gather(items: Vec<T>) -> Option<Self> {
        Some(items)
    }
}

impl Value for bool {
    const SHAPE: Shape = Shape::Boolean;

    fn form() -> String {
        "true or false".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// Whole numbers differ in nothing but their width.
macro_rules! whole_number {
    ($($type:ty)*) => {$(
        impl Value for $type {
            const SHAPE: Shape = Shape::Integer;

            fn form() -> String {
                "a whole number".into()
            }

            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn measure(&self) -> Option<u64> {
                Some(u64::from(*self))
            }
        }
    )*};
}
whole_number!(u8 u16 u32);

/// Text of 1–255 octets, the length of a character-string (rfc1035#3.3).
impl Value for String {
    fn form() -> String {
        "text of 1 to 255 octets".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        (1..=255).contains(&text.len()).then(|| text.to_owned())
    }
}

impl Value for PathBuf {
    fn form() -> String {
        "a path".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.into())
    }

    fn relative_to(self, directory: &Path) -> Self {
        directory.join(self)
    }
}

impl Value for SocketAddr {
    fn form() -> String {
        "an IP address and a port, such as \"192.0.2.1:53\" or \"[2001:db8::1]:53\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for IpAddr {
    fn form() -> String {
        "an IP address such as \"192.0.2.1\" or \"2001:db8::1\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Name {
    fn form() -> String {
        "a domain name such as \"example.com\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() { None } else { text.parse().ok() }
    }
}

impl Value for Upstream {
    fn form() -> String {
        "the address of a server: \"192.0.2.1\", \"192.0.2.1:5353\", \"[2001:db8::1]:5353\", \
         \"tcp://192.0.2.1\", \"tls://192.0.2.1#dns.example.net\", \
         \"https://192.0.2.1/dns-query#dns.example.net\" or \"quic://192.0.2.1#dns.example.net\""
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// The address of a server, and its port unless that is 53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerAddress(pub SocketAddr);

impl Value for ServerAddress {
    fn form() -> String {
        "the address of a server, and its port if it is not 53: \"192.0.2.1\", \
         \"192.0.2.1:5353\" or \"[2001:db8::1]:5353\""
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let Upstream { transport, host, port, .. } = text.parse().ok()?;
        match host {
            Host::Address(address) if transport == Transport::Udp => {
                Some(Self(SocketAddr::new(address, port)))
            }
            _ => None,
        }
    }
}

/// The SHA-256 hash of a public key as certificates hold it (rfc7858#4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedKey(pub Pin);

impl Value for PinnedKey {
    fn form() -> String {
        "the SHA-256 hash of a public key in base 64, such as \
         \"sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\""
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut octets = Vec::new();
        base64_word(text.strip_prefix("sha256/")?.as_bytes(), &mut octets).ok()?;
        octets.try_into().ok().map(Self)
    }
}

impl Value for Policy {
    fn form() -> String {
        let words = Self::WORDS.map(|(word, _)| format!("\"{word}\""));
        format!("one of {}", words.join(", "))
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, policy)| *policy)
    }
}

impl Value for Duration {
    fn form() -> String {
        "a duration such as \"500 ms\", \"10s\", \"5m\", \"1h\" or \"1d\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 60 * 60 * 1000,
            "d" => 24 * 60 * 60 * 1000,
            _ => return None,
        };
        Some(Self::from_millis(number.checked_mul(millis)?))
    }

    fn measure(&self) -> Option<u64> {
        u64::try_from(self.as_millis()).ok()
    }
}

/// A number of octets, below 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u32);

impl Value for Size {
    fn form() -> String {
        "a size such as \"4096 B\", \"512 KiB\", \"4 MiB\" or \"1 GiB\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        let octets = match unit {
            "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return None,
        };
        u32::try_from(number.checked_mul(octets)?).ok().map(Self)
    }

    fn measure(&self) -> Option<u64> {
        Some(u64::from(self.0))
    }
}

/// A share in whole percent, 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub u8);

impl Value for Percent {
    fn form() -> String {
        "a share such as \"5 %\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        match number_and_unit(text)? {
            (number, "%") => u8::try_from(number).ok().map(Self),
            _ => None,
        }
    }

    fn measure(&self) -> Option<u64> {
        Some(u64::from(self.0))
    }
}

/// Splits "10s" and "10 s" into 10 and "s".
fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.strip_prefix(' ').unwrap_or(unit)))
}

/// The only version of this file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version;

impl Value for Version {
    const SHAPE: Shape = Shape::Integer;

    fn form() -> String {
        "1, the only version there is".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        (text == "1").then_some(Self)
    }
}

/// A value, or `"off"` in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toggle<T>(pub Option<T>);

impl<T: Value> Value for Toggle<T> {
    fn form() -> String {
        format!("{}, or \"off\"", T::form())
    }

    fn from_text(text: &str) -> Option<Self> {
        if text == "off" { Some(Self(None)) } else { T::from_text(text).map(|v| Self(Some(v))) }
    }

    fn relative_to(self, directory: &Path) -> Self {
        Self(self.0.map(|value| value.relative_to(directory)))
    }
}

/// A destination of log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The standard output.
    Stdout,
    /// The standard error, where the server's own log goes.
    Stderr,
    /// Lines appended to this file.
    File(PathBuf),
}

impl Value for Output {
    fn form() -> String {
        "\"stdout\", \"stderr\", the path of a file".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "" => None,
            // The links of these names would lead to a terminal or pipe that need not be openable.
            "stdout" | "/dev/stdout" => Some(Self::Stdout),
            "stderr" | "/dev/stderr" => Some(Self::Stderr),
            path => Some(Self::File(path.into())),
        }
    }

    fn relative_to(self, directory: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(path.relative_to(directory)),
            Self::Stdout | Self::Stderr => self,
        }
    }
}

/// Declares an enum of words, one of which is the value.
macro_rules! words {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($(#[$word_doc:meta])* $variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$word_doc])* $variant,)*
        }

        impl Value for $name {
            fn form() -> String {
                let words = [$($word),*].map(|word| format!("\"{word}\""));
                format!("one of {}", words.join(", "))
            }

            fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// How a log line is written.
    pub enum LogFormat {
        /// Lines for people to read.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

words! {
    /// What became of a query, for the query log.
    pub enum LogOutcome {
        /// NOERROR with records of an answer, or of a referral, a transfer, an update or a
        /// notification.
        Success = "success",
        /// NXDOMAIN, or NOERROR without records of an answer (rfc2308#2).
        Denial = "denial",
        /// Any other response code, or no reply.
        Error = "error",
    }
}

words! {
    /// How the serial of a zone rises when the zone is changed while it is served.
    pub enum SerialRule {
        /// The present serial plus 1.
        Increment = "increment",
        /// The seconds since 1970, at least the present one plus 1.
        UnixTime = "unixtime",
        /// The day as YYYYMMDD and two digits, at least the present one plus 1.
        Date = "date",
    }
}

words! {
    /// The least important events that are logged.
    pub enum LogLevel {
        /// Errors: something failed.
        Error = "error",
        /// Warnings, and errors.
        Warn = "warn",
        /// Changes of state, and all above.
        Info = "info",
        /// Decisions that led to them, and all above.
        Debug = "debug",
        /// Every step, and all above.
        Trace = "trace",
    }
}

/// A bearer token: 16–256 visible ASCII characters. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Returns the characters, to compare with what a client sent.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

impl Value for Token {
    const SECRET: bool = true;

    fn form() -> String {
        "16 to 256 letters, digits or signs without blanks".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let sound = (16..=256).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_graphic());
        sound.then(|| Self(text.to_owned()))
    }
}

/// The secret from which DNS cookies are made (rfc9018#4). It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct CookieSecret([u8; 16]);

impl CookieSecret {
    /// Returns the octets, to make cookies of.
    #[must_use]
    pub fn reveal(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for CookieSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CookieSecret(hidden)")
    }
}

impl Value for CookieSecret {
    const SECRET: bool = true;

    fn form() -> String {
        "32 hexadecimal digits".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        from_hex(text)?.try_into().ok().map(Self)
    }
}

/// A name server identifier (rfc5001): 1–128 octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nsid(pub Vec<u8>);

impl Value for Nsid {
    fn form() -> String {
        "text, or octets as \"0x\" and hexadecimal digits, of 1 to 128 octets".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let octets = match text.strip_prefix("0x") {
            Some(digits) => from_hex(digits)?,
            None => text.as_bytes().to_vec(),
        };
        (1..=128).contains(&octets.len()).then_some(Self(octets))
    }
}

/// Returns the octets that pairs of hexadecimal digits stand for.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let nibbles: Vec<u32> = digits.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let pairs = nibbles.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| u8::try_from(pair[0] << 4 | pair[1]).ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        let millis = |text| Duration::from_text(text).map(|duration| duration.as_millis());
        for (text, expected) in [
            ("500 ms", Some(500)),
            ("500ms", Some(500)),
            ("10s", Some(10_000)),
            ("5 m", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("1d", Some(86_400_000)),
            ("", None),
            ("10", None),
            ("s", None),
            ("1.5s", None),
            ("-1s", None),
            ("10  s", None),
            ("10 S", None),
            ("18446744073709551615d", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }

    #[test]
    fn sizes_count_in_powers_of_1024_and_stay_below_4_gib() {
        let octets = |text| Size::from_text(text).map(|size| size.0);
        for (text, expected) in [
            ("4096 B", Some(4096)),
            ("4 MiB", Some(4 << 20)),
            ("3GiB", Some(3 << 30)),
            ("4 GiB", None),
            ("4 MB", None),
            ("4096", None),
        ] {
            assert_eq!(octets(text), expected, "{text}");
        }
    }

    #[test]
    fn shares_are_whole_percents() {
        let percent = |text| Percent::from_text(text).map(|percent| percent.0);
        for (text, expected) in [
            ("5 %", Some(5)),
            ("0%", Some(0)),
            ("100 %", Some(100)),
            ("256 %", None),
            ("5", None),
            ("5 percent", None),
            ("0.5 %", None),
            ("%", None),
        ] {
            assert_eq!(percent(text), expected, "{text}");
        }
    }

    #[test]
    fn an_identifier_is_text_or_hexadecimal_octets() {
        let octets = |text| Nsid::from_text(text).map(|nsid| nsid.0);
        for (text, expected) in [
            ("ns1", Some(b"ns1".to_vec())),
            ("0x00fF", Some(vec![0, 255])),
            ("0x0", None),
            ("0xzz", None),
            ("0x", None),
            ("", None),
        ] {
            assert_eq!(octets(text), expected, "{text}");
        }
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let token = Token::from_text("0123456789abcdef").unwrap();
        let secret = CookieSecret::from_text("000102030405060708090a0b0c0d0e0f").unwrap();
        assert_eq!(format!("{token:?} {secret:?}"), "Token(hidden) CookieSecret(hidden)");
    }
}
