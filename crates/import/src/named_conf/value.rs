//! Values as a named.conf writes them.

use std::fmt;
use std::net::IpAddr;

/// Reads `yes` and `no`.
pub fn yes_or_no(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" => Some(true),
        "no" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// Reads a time in seconds: a number, units as in `1h30m`, or a duration such as `PT5M` (ISO 8601).
pub fn seconds(word: &str) -> Option<u64> {
    let lower = word.to_ascii_lowercase();
    let Some(duration) = lower.strip_prefix('p') else { return units(&lower, TTL_UNITS) };
    let (date, time) = duration.split_once('t').unwrap_or((duration, ""));
    let part = |text: &str, known| match text {
        "" => Some(0),
        text if text.ends_with(|c: char| c.is_ascii_digit()) => None,
        text => units(text, known),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    part(date, DATE_UNITS)?.checked_add(part(time, TIME_UNITS)?)
}

/// Letters of units and their seconds.
type Units = &'static [(char, u64)];
/// As in a zone file.
const TTL_UNITS: Units = &[('w', 604_800), ('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];
/// Units of a duration's date part; named has months of 31 and years of 365 days.
const DATE_UNITS: Units = &[('y', 31_536_000), ('m', 2_678_400), ('w', 604_800), ('d', 86_400)];
/// Units of a duration's time part.
const TIME_UNITS: Units = &[('h', 3600), ('m', 60), ('s', 1)];

/// Adds up numbers with a unit behind each; a number alone is seconds.
fn units(text: &str, known: Units) -> Option<u64> {
    let mut sum: u64 = 0;
    let mut rest = text;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        let Some(unit) = rest[digits..].chars().next() else {
            return sum.checked_add(number);
        };
        let (_, seconds) = known.iter().find(|(letter, _)| *letter == unit)?;
        sum = sum.checked_add(number.checked_mul(*seconds)?)?;
        rest = &rest[digits + 1..];
        if rest.is_empty() {
            return Some(sum);
        }
    }
}

/// A size of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A size in octets.
    Bytes(u64),
    /// Not said in octets: a percentage, `default`, `unlimited`.
    Relative,
}

/// Reads a size such as `512m`, `90%` or `unlimited`.
pub fn size(word: &str) -> Option<Size> {
    let lower = word.to_ascii_lowercase();
    if lower == "default" || lower == "unlimited" || lower == "0" {
        return Some(Size::Relative);
    }
    if let Some(percent) = lower.strip_suffix('%') {
        return percent.parse::<u8>().ok().map(|_| Size::Relative);
    }
    let (digits, shift) = match lower.chars().next_back()? {
        'k' => (&lower[..lower.len() - 1], 10),
        'm' => (&lower[..lower.len() - 1], 20),
        'g' => (&lower[..lower.len() - 1], 30),
        _ => (&*lower, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).map(Size::Bytes)
}

/// Addresses that share their first bits; the other bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The lowest address.
    pub address: IpAddr,
    /// Number of common bits.
    pub prefix: u8,
}

impl Network {
    /// Whether the network holds all addresses of another.
    pub fn holds(&self, other: &Self) -> bool {
        let (differing, bits) = match (self.address, other.address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits() ^ b.to_bits()), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits(), 128),
            _ => return false,
        };
        let different = differing.checked_shr(bits - u32::from(self.prefix)).unwrap_or(0);
        different == 0 && self.prefix <= other.prefix
    }

    /// Whether the network has one address only.
    pub fn is_single(&self) -> bool {
        self.prefix == if self.address.is_ipv4() { 32 } else { 128 }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        if self.is_single() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

/// Reads an address, or a network such as `10/8` or `2001:db8::/32`.
pub fn network(word: &str) -> Option<Network> {
    let Some((address, prefix)) = word.split_once('/') else {
        let address: IpAddr = word.parse().ok()?;
        return Some(Network { address, prefix: if address.is_ipv4() { 32 } else { 128 } });
    };
    let prefix: u8 = prefix.parse().ok()?;
    let mut whole = address.trim_end_matches('.').to_owned();
    if !address.contains(':') {
        let parts = whole.split('.').count();
        whole.push_str(&".0".repeat(4_usize.saturating_sub(parts)));
    }
    let address: IpAddr = whole.parse().ok()?;
    let (width, bits) = match address {
        IpAddr::V4(v4) => (32, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (128, v6.to_bits()),
    };
    let behind = bits.checked_shl(u32::from(prefix)).unwrap_or(0);
    (prefix <= width && behind == 0).then_some(Network { address, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_three_forms() {
        for (word, expected) in [
            ("300", Some(300)),
            ("1h30m", Some(5400)),
            ("1W", Some(604_800)),
            ("PT5M", Some(300)),
            ("P1DT1S", Some(86_401)),
            ("P2W", Some(1_209_600)),
            ("P", None),
            ("PT", None),
            ("PT5", None),
            ("", None),
            ("h", None),
            ("5x", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("9999999999999999999w", None),
        ] {
            assert_eq!(seconds(word), expected, "{word}");
        }
    }

    #[test]
    fn sizes_are_read_with_their_unit() {
        for (word, expected) in [
            ("1048576", Some(Size::Bytes(1 << 20))),
            ("512M", Some(Size::Bytes(512 << 20))),
            ("2g", Some(Size::Bytes(2 << 30))),
            ("90%", Some(Size::Relative)),
            ("unlimited", Some(Size::Relative)),
            ("k", None),
            ("ä", None),
            ("99999999999999g", None),
        ] {
            assert_eq!(size(word), expected, "{word}");
        }
    }

    #[test]
    fn networks_may_lack_their_zeros_but_not_have_bits_behind_the_prefix() {
        for (word, expected) in [
            ("10/8", Some("10.0.0.0/8")),
            ("192.168./16", Some("192.168.0.0/16")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("::1/128", Some("::1")),
            ("0/0", Some("0.0.0.0/0")),
            ("10.0.0.1/8", None),
            ("10/33", None),
            ("10", None),
            ("10.0.0.0.0/8", None),
            ("fe80::1%eth0", None),
            ("office", None),
        ] {
            let found = network(word).map(|network| network.to_string());
            assert_eq!(found.as_deref(), expected, "{word}");
        }
    }
}
