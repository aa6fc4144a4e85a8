//! Places on Earth (rfc1876).
//!
//! ```text
//! version 0 | size | horizontal precision | vertical precision | latitude | longitude | altitude
//! ```
//! Sizes are centimetres as digit × 10^digit in one octet; angles are thousandths of a second of
//! arc above 2³¹; the altitude is centimetres above −100 km.

use super::error::Fault;
use super::parse::Tokens;
use std::fmt::{self, Write};

/// Octets of a location.
pub(super) const LEN: usize = 16;
/// Zero degrees.
pub const EQUATOR: u32 = 1 << 31;
/// Thousandths of a second of arc in a degree.
pub const DEGREE: u32 = 3_600_000;
/// Centimetres from the lowest altitude to that of the ellipsoid.
pub const ELLIPSOID: u32 = 10_000_000;
/// The highest altitude: 42 849 672.95 m.
pub const ALTITUDE_MAX: i64 = 4_284_967_295;
/// The largest size: 90 000 km in centimetres.
pub const SIZE_MAX: i64 = 9_000_000_000;
/// Size, horizontal and vertical precision when the text leaves them out: 1 m, 10 km, 10 m.
const DEFAULT_SIZES: [u8; 3] = [0x12, 0x16, 0x13];

/// Reads a location from all tokens left.
pub(super) fn parse(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let latitude = angle(tokens, 90, (b'N', b'S'))?;
    let longitude = angle(tokens, 180, (b'E', b'W'))?;
    let altitude = centimetres(tokens.word()?)
        .filter(|altitude| (-i64::from(ELLIPSOID)..=ALTITUDE_MAX).contains(altitude))
        .ok_or(Fault::Loc)?;
    let mut sizes = DEFAULT_SIZES;
    for size in &mut sizes {
        if tokens.peek().is_some() {
            let value = centimetres(tokens.word()?).ok_or(Fault::Loc)?;
            *size = size_octet(value).ok_or(Fault::Loc)?;
        }
    }
    out.push(0);
    out.extend_from_slice(&sizes);
    out.extend_from_slice(&latitude.to_be_bytes());
    out.extend_from_slice(&longitude.to_be_bytes());
    let raised = altitude + i64::from(ELLIPSOID); // 0 to 2³² − 1 by the filter above
    out.extend_from_slice(&(raised as u32).to_be_bytes());
    Ok(())
}

/// Degrees, then perhaps minutes, then perhaps seconds, then a letter for the hemisphere.
fn angle(
    tokens: &mut Tokens<'_, '_>,
    degrees_max: u32,
    (plus, minus): (u8, u8),
) -> Result<u32, Fault> {
    let mut value = whole(tokens.word()?, degrees_max).ok_or(Fault::Loc)? * DEGREE;
    for unit in 0..3 {
        let word = tokens.word()?;
        if let [letter] = word {
            let letter = letter.to_ascii_uppercase();
            if letter == plus || letter == minus {
                let in_range = value <= degrees_max * DEGREE;
                let sum = if letter == plus { EQUATOR + value } else { EQUATOR - value };
                return if in_range { Ok(sum) } else { Err(Fault::Loc) };
            }
        }
        let part = match unit {
            0 => whole(word, 59).map(|minutes| minutes * 60_000),
            1 => fixed_point(word, 3).filter(|&thousandths| thousandths < 60_000).map(|t| t as u32),
            _ => None,
        };
        value += part.ok_or(Fault::Loc)?;
    }
    Err(Fault::Loc)
}

/// Returns a whole number of at most `max`.
fn whole(word: &[u8], max: u32) -> Option<u32> {
    let value = fixed_point(word, 0)?;
    u32::try_from(value).ok().filter(|&value| value <= max)
}

/// Metres with or without `m`, in centimetres.
fn centimetres(word: &[u8]) -> Option<i64> {
    let number = word.strip_suffix(b"m").or_else(|| word.strip_suffix(b"M")).unwrap_or(word);
    match number.strip_prefix(b"-") {
        Some(below) => fixed_point(below, 2).map(|value| -value),
        None => fixed_point(number, 2),
    }
}

/// Returns a decimal number with at most `places` digits behind the dot, times 10^`places`.
fn fixed_point(word: &[u8], places: usize) -> Option<i64> {
    let dot = word.iter().position(|&octet| octet == b'.');
    let (integer, fraction) = match dot {
        Some(dot) => (&word[..dot], &word[dot + 1..]),
        None => (word, &b""[..]),
    };
    let too_precise = fraction.len() > places || (dot.is_some() && places == 0);
    if integer.is_empty() || integer.len() > 10 || too_precise {
        return None;
    }
    let zeros = std::iter::repeat_n(&b'0', places - fraction.len());
    integer.iter().chain(fraction).chain(zeros).try_fold(0, |value, &octet| {
        octet.is_ascii_digit().then(|| value * 10 + i64::from(octet - b'0'))
    })
}

/// Returns the octet nearest below a size in centimetres.
#[must_use]
pub fn size_octet(centimetres: i64) -> Option<u8> {
    if !(0..=SIZE_MAX).contains(&centimetres) {
        return None;
    }
    let (mut digit, mut exponent) = (centimetres, 0);
    while digit > 9 {
        digit /= 10;
        exponent += 1;
    }
    Some((digit as u8) << 4 | exponent) // both are at most 9
}

/// Whether sixteen octets are a location of the only version there is.
pub(super) fn check(octets: &[u8]) -> Result<(), Fault> {
    let &[version, size, horizontal, vertical, ref rest @ ..] = octets else {
        return Err(Fault::Truncated);
    };
    let is_size = |octet: u8| octet >> 4 <= 9 && octet & 0x0f <= 9;
    let within = |at: usize, degrees: u32| {
        let value = rest.get(at..).and_then(|tail| tail.first_chunk()).copied();
        value.is_some_and(|v| u32::from_be_bytes(v).abs_diff(EQUATOR) <= degrees * DEGREE)
    };
    let sizes_valid = [size, horizontal, vertical].into_iter().all(is_size);
    let valid = version == 0 && sizes_valid && within(0, 90) && within(4, 180);
    if valid { Ok(()) } else { Err(Fault::Malformed) }
}

/// Degrees, minutes and seconds of both angles, altitude and sizes in metres.
pub(super) fn print(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(parts) = parts(octets) else { return Ok(()) };
    print_angle(parts.latitude, 'N', 'S', f)?;
    print_angle(parts.longitude, 'E', 'W', f)?;
    let altitude = i64::from(parts.altitude) - i64::from(ELLIPSOID);
    let sign = if altitude < 0 { "-" } else { "" };
    write!(f, "{sign}{}.{:02}m", altitude.abs() / 100, altitude.abs() % 100)?;
    for size in parts.sizes {
        let centimetres = centimetres_of(size);
        write!(f, " {}", centimetres / 100)?;
        if !centimetres.is_multiple_of(100) {
            write!(f, ".{:02}", centimetres % 100)?;
        }
        f.write_char('m')?;
    }
    Ok(())
}

/// The parts of a location, as they are on the wire.
pub struct Parts {
    /// Size, horizontal and vertical precision, each digit and exponent.
    pub sizes: [u8; 3],
    /// Thousandths of a second of arc above 2³¹, north.
    pub latitude: u32,
    /// Thousandths of a second of arc above 2³¹, east.
    pub longitude: u32,
    /// Centimetres above −100 km.
    pub altitude: u32,
}

/// Returns the parts of sixteen octets.
#[must_use]
pub fn parts(octets: &[u8]) -> Option<Parts> {
    let &[_, a, b, c, ref rest @ ..] = octets else { return None };
    let u32_at = |at| rest.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four));
    let [latitude, longitude, altitude] = [u32_at(0)?, u32_at(4)?, u32_at(8)?];
    Some(Parts { sizes: [a, b, c], latitude, longitude, altitude })
}

/// Returns the size that digit and exponent are.
#[must_use]
pub fn centimetres_of(size: u8) -> u64 {
    u64::from(size >> 4) * 10_u64.pow(u32::from(size & 0x0f))
}

/// Returns an angle and its hemisphere, and a blank.
fn print_angle(angle: u32, plus: char, minus: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let hemisphere = if angle >= EQUATOR { plus } else { minus };
    let value = angle.abs_diff(EQUATOR);
    let (degrees, minutes) = (value / DEGREE, value / 60_000 % 60);
    let (seconds, thousandths) = (value / 1000 % 60, value % 1000);
    write!(f, "{degrees} {minutes} {seconds}.{thousandths:03} {hemisphere} ")
}

/// Whether sizes of zero have the exponent zero, as text gives them.
pub(super) fn is_canonical(octets: &[u8]) -> bool {
    let sizes = octets.get(1..4).unwrap_or_default();
    sizes.iter().all(|&size| size >> 4 != 0 || size == 0)
}
