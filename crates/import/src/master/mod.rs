//! Zone files whose special records are taken out.
//!
//! A file is cut into entries ([`entry`]), which are copied as they are: the new file has all
//! comments and blanks of the old one. Included files are copied in place. An entry that is taken
//! out stays as a comment; where a later entry had its owner from it, the owner is written out.
//!
//! Deliberately absent: a judgement of records, which `zonda check` gives.

mod copy;
mod entry;

pub use copy::{Dialect, SpecialRecord, copy};

use zonda_wire::{Name, name};

/// Returns a name as it is written below a zone that it lies in, in lower case: `@` for the zone's
/// own.
pub fn relative(name: &Name, zone: &Name) -> String {
    let name = &name.to_lowercase();
    let (wire, apex) = (name.as_wire(), zone.as_wire());
    if !name::is_at_or_below(wire, apex) {
        return name.to_string();
    }
    let mut labels = wire[..wire.len() - apex.len()].to_vec();
    if labels.is_empty() {
        return "@".to_owned();
    }
    labels.push(0);
    match Name::from_wire(&labels) {
        Ok(relative) => relative.to_string().trim_end_matches('.').to_owned(),
        Err(_) => name.to_string(), // the labels are those of a name
    }
}

/// Returns the seconds of a TTL as zone files have it: `300`, `5m`, `1h30m`.
pub fn ttl_secs(text: &str) -> Option<u32> {
    let (mut secs, mut number) = (0_u64, None);
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            let next = number.unwrap_or(0_u64).checked_mul(10)?.checked_add(u64::from(digit))?;
            number = Some(next);
            continue;
        }
        let unit = match c.to_ascii_lowercase() {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        secs = secs.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    if text.is_empty() {
        return None;
    }
    u32::try_from(secs.checked_add(number.unwrap_or(0))?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_written_relative_to_their_zone() {
        let zone: Name = "example.com".parse().unwrap();
        for (name, expected) in [
            ("www.example.com", "www"),
            ("A.b.Example.COM", "a.b"),
            ("example.com", "@"),
            ("*.example.com", "*"),
            ("www.example.net", "www.example.net."),
        ] {
            assert_eq!(relative(&name.parse().unwrap(), &zone), expected);
        }
    }

    #[test]
    fn ttls_have_units_or_none() {
        for (text, expected) in [
            ("300", Some(300)),
            ("5m", Some(300)),
            ("1H30M", Some(5400)),
            ("1w", Some(604_800)),
            ("m", None),
            ("5x", None),
            ("", None),
            ("99999999999", None),
        ] {
            assert_eq!(ttl_secs(text), expected, "{text}");
        }
    }
}
