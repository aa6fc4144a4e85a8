//! The end of a certificate's time.
//!
//! Reads as much of X.509 in DER as lies in front of that: TBSCertificate is a sequence of version
//! (explicit, optional), serial number, algorithm, issuer, validity (section 4.1 of RFC 5280).

/// Tag of a SEQUENCE.
const SEQUENCE: u8 = 0x30;
/// Tag of the explicit version.
const VERSION: u8 = 0xa0;
/// Tag of a UTCTime, whose years have two digits.
const UTC_TIME: u8 = 0x17;
/// Tag of a GeneralizedTime, whose years have four digits.
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the day, counted from 1970-01-01, on which a certificate in DER form ends; `None` where
/// it cannot be read.
#[must_use]
pub fn not_after_days(certificate: &[u8]) -> Option<i64> {
    let certificate = expect(&mut &*certificate, SEQUENCE)?;
    let mut fields = expect(&mut &*certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        element(&mut fields)?;
    }
    element(&mut fields)?; // serial number
    element(&mut fields)?; // algorithm
    element(&mut fields)?; // issuer
    let mut validity = expect(&mut fields, SEQUENCE)?;
    element(&mut validity)?; // not before
    match element(&mut validity)? {
        (UTC_TIME, text) => {
            let (year, rest) = digits(text, 2)?;
            day(if year < 50 { 2000 + year } else { 1900 + year }, rest) // as X.509 has it
        }
        (GENERALIZED_TIME, text) => {
            let (year, rest) = digits(text, 4)?;
            day(year, rest)
        }
        _ => None,
    }
}

/// Takes an element off the front; returns its tag and its content.
fn element<'d>(der: &mut &'d [u8]) -> Option<(u8, &'d [u8])> {
    let (&[tag, first], rest) = der.split_first_chunk()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (octets.iter().fold(0, |len, octet| len << 8 | usize::from(*octet)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    *der = rest;
    Some((tag, content))
}

/// Takes an element of this tag off the front; returns its content.
fn expect<'d>(der: &mut &'d [u8], tag: u8) -> Option<&'d [u8]> {
    element(der).filter(|element| element.0 == tag).map(|element| element.1)
}

/// Returns the number that the first `len` octets write, and what follows.
fn digits(text: &[u8], len: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = text.split_at_checked(len)?;
    let number = std::str::from_utf8(digits).ok().filter(|it| !it.starts_with('+'))?;
    Some((number.parse().ok().filter(|number| *number >= 0)?, rest))
}

/// Returns the days from 1970-01-01 to a day of this year, whose month and day a text begins with.
fn day(year: i64, text: &[u8]) -> Option<i64> {
    let (month, rest) = digits(text, 2)?;
    let (day, _) = digits(rest, 2)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a self-signed certificate that ends on this day.
    fn certificate(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::new(["a.example".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(1999, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, month, day);
        params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_day_on_which_a_certificate_ends_is_read() {
        for ((year, month, day), days) in [
            ((2000, 2, 29), 11_016),
            ((2024, 12, 31), 20_088),
            ((2049, 12, 31), 29_219), // the last year of two digits
            ((2050, 1, 1), 29_220),
            ((2100, 3, 1), 47_541), // no leap year
        ] {
            let certificate = certificate(year, month, day);
            assert_eq!(not_after_days(&certificate), Some(days), "{year}-{month}-{day}");
        }
    }

    #[test]
    fn a_certificate_that_is_cut_or_changed_anywhere_is_read_without_panic() {
        let certificate = certificate(2030, 1, 1);
        for len in 0..certificate.len() {
            let _ = not_after_days(&certificate[..len]);
        }
        for at in 0..certificate.len() {
            for octet in [0, 0x7f, 0x80, 0x84, 0x85, 0xff] {
                let mut changed = certificate.clone();
                changed[at] = octet;
                let _ = not_after_days(&changed);
            }
        }
        assert_eq!(not_after_days(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(digits(b"+1", 2), None);
        assert_eq!(digits(b"-1", 2), None);
    }
}
