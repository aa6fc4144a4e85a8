//! Numbers, times, and numbers that have mnemonics.

use super::error::Fault;
use std::fmt;

/// Mnemonics of DNSSEC algorithms (rfc4034#A.1 and the IANA registry).
pub const ALGORITHMS: &[(u8, &str)] = &[
    (1, "RSAMD5"),
    (2, "DH"),
    (3, "DSA"),
    (4, "ECC"),
    (5, "RSASHA1"),
    (6, "DSA-NSEC3-SHA1"),
    (6, "NSEC3DSA"),
    (7, "RSASHA1-NSEC3-SHA1"),
    (7, "NSEC3RSASHA1"),
    (8, "RSASHA256"),
    (10, "RSASHA512"),
    (12, "ECC-GOST"),
    (12, "ECCGOST"),
    (13, "ECDSAP256SHA256"),
    (14, "ECDSAP384SHA384"),
    (15, "ED25519"),
    (16, "ED448"),
    (252, "INDIRECT"),
    (253, "PRIVATEDNS"),
    (254, "PRIVATEOID"),
];

/// Mnemonics of certificate types (rfc4398#2.1).
pub const CERT_TYPES: &[(u16, &str)] = &[
    (1, "PKIX"),
    (2, "SPKI"),
    (3, "PGP"),
    (4, "IPKIX"),
    (5, "ISPKI"),
    (6, "IPGP"),
    (7, "ACPKIX"),
    (8, "IACPKIX"),
    (253, "URI"),
    (254, "OID"),
];

/// Mnemonics of ways to notify (rfc9859#2).
pub const DSYNC_SCHEMES: &[(u8, &str)] = &[(1, "NOTIFY")];

/// Returns a decimal number of at most `max`, digits only.
pub(super) fn decimal(text: &[u8], max: u64) -> Result<u64, Fault> {
    digits(text).filter(|&value| value <= max).ok_or(Fault::Number(max))
}

/// Returns the value of one or more decimal digits, up to 2⁶⁴ − 1.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, &octet| {
        let digit = octet.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Reads a number of one octet.
pub(super) fn parse_u8(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    out.push(decimal(text, u64::from(u8::MAX))? as u8);
    Ok(())
}

/// Reads a number of two octets.
pub(super) fn parse_u16(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let value = decimal(text, u64::from(u16::MAX))? as u16;
    out.extend_from_slice(&value.to_be_bytes());
    Ok(())
}

/// Reads a number of four octets.
pub(super) fn parse_u32(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let value = decimal(text, u64::from(u32::MAX))? as u32;
    out.extend_from_slice(&value.to_be_bytes());
    Ok(())
}

/// Reads a number of eight octets.
pub(super) fn parse_u64(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    out.extend_from_slice(&decimal(text, u64::MAX)?.to_be_bytes());
    Ok(())
}

/// Four octets of seconds.
pub(super) fn parse_ttl_field(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let secs = ttl(text).ok_or(Fault::Ttl)?;
    out.extend_from_slice(&secs.to_be_bytes());
    Ok(())
}

/// Seconds, as a number or as numbers with units: `3600`, `1h30m`, `2W`.
///
/// `None` when the text is neither, or more than 2³² − 1 seconds.
#[must_use]
pub fn ttl(text: &[u8]) -> Option<u32> {
    if let Some(plain) = digits(text) {
        return u32::try_from(plain).ok();
    }
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let count = rest.iter().take_while(|octet| octet.is_ascii_digit()).count();
        let amount = digits(&rest[..count])?;
        let unit = match rest.get(count)?.to_ascii_lowercase() {
            b'w' => 604_800,
            b'd' => 86_400,
            b'h' => 3_600,
            b'm' => 60,
            b's' => 1,
            _ => return None,
        };
        total = total.checked_add(amount.checked_mul(unit)?)?;
        rest = &rest[count + 1..];
    }
    u32::try_from(total).ok().filter(|_| !text.is_empty())
}

/// Reads a time, modulo 2³² (rfc4034#3.1.5).
pub(super) fn parse_time(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let secs = match text.len() {
        14 => date(text).ok_or(Fault::Time)?,
        _ => decimal(text, u64::from(u32::MAX)).map_err(|_| Fault::Time)? as u32,
    };
    out.extend_from_slice(&secs.to_be_bytes());
    Ok(())
}

/// Returns the seconds since 1970 of `YYYYMMDDHHmmSS`, modulo 2³².
fn date(text: &[u8]) -> Option<u32> {
    let part = |from: usize, to: usize| digits(text.get(from..to)?);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let in_range = year >= 1970 && (1..=month_days).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_since_1970(year, month, day);
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) as u32)
}

/// Days from 1970-01-01 to a date, counting years from March so that leap days come last.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_of_years = years * 365 + years / 4 - years / 100 + years / 400;
    days_of_years + (months * 153 + 2) / 5 + day - 1 - 719_468
}

/// Reads one octet: a number or an algorithm's mnemonic.
pub(super) fn parse_algorithm(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    out.push(number_or_mnemonic(text, u64::from(u8::MAX), ALGORITHMS)? as u8);
    Ok(())
}

/// Two octets: a number or the mnemonic of a kind of certificate.
pub(super) fn parse_cert_type(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let value = number_or_mnemonic(text, u64::from(u16::MAX), CERT_TYPES)? as u16;
    out.extend_from_slice(&value.to_be_bytes());
    Ok(())
}

/// Reads one octet: a number or the mnemonic of a way to notify.
pub(super) fn parse_dsync_scheme(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    out.push(number_or_mnemonic(text, u64::from(u8::MAX), DSYNC_SCHEMES)? as u8);
    Ok(())
}

/// Returns a number of at most `max`, or the number behind a mnemonic of the table, case ignored.
pub(super) fn number_or_mnemonic<N: Copy + Into<u64>>(
    text: &[u8],
    max: u64,
    table: &[(N, &str)],
) -> Result<u64, Fault> {
    if let Some(value) = digits(text) {
        return if value <= max { Ok(value) } else { Err(Fault::Number(max)) };
    }
    let known = table.iter().find(|known| known.1.as_bytes().eq_ignore_ascii_case(text));
    known.map(|known| known.0.into()).ok_or(Fault::Mnemonic)
}

/// Returns the number that at most eight octets are.
pub(super) fn value_of(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |value, &octet| value << 8 | u64::from(octet))
}

/// `YYYYMMDDHHmmSS` in UTC of four octets (rfc4034#3.2).
pub(super) fn print_time(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let secs = value_of(octets);
    let (year, month, day) = date_of(secs / 86_400);
    let (hour, minute, second) = (secs / 3600 % 24, secs / 60 % 60, secs % 60);
    write!(f, "{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

/// Year, month and day of a number of days since 1970-01-01; months are counted from March.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let months = (5 * of_year + 2) / 153;
    let day = of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    (era * 400 + year + u64::from(month < 3), month, day)
}

/// Returns the first mnemonic of a number in the table, or the number.
pub(super) fn print_mnemonic<N: Copy + Into<u64>>(
    octets: &[u8],
    table: &[(N, &str)],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let number = value_of(octets);
    match table.iter().find(|known| known.0.into() == number) {
        Some(known) => f.write_str(known.1),
        None => write!(f, "{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_live_are_numbers_or_sums_of_units() {
        for (text, secs) in [
            ("0", Some(0)),
            ("3600", Some(3600)),
            ("1h30m", Some(5400)),
            ("1W2D", Some(777_600)),
            ("1w2d3h4m5s", Some(788_645)),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("9999999999999999999999", None),
            ("7102w", None),
            ("", None),
            ("h", None),
            ("1h30", None),
            ("1x", None),
            ("-1", None),
        ] {
            assert_eq!(ttl(text.as_bytes()), secs, "{text}");
        }
    }

    #[test]
    fn dates_are_counted_from_1970_modulo_two_to_the_32() {
        for (text, secs) in [
            ("19700101000000", Some(0)),
            ("20030322173103", Some(1_048_354_263)),
            ("20000229235959", Some(951_868_799)),
            ("21060207062816", Some(0)),
            ("20010229000000", None),
            ("20011301000000", None),
            ("20010101240000", None),
            ("19691231235959", None),
            ("2001010100000x", None),
        ] {
            assert_eq!(date(text.as_bytes()), secs, "{text}");
        }
    }
}
