//! Octets written in hexadecimal, base 32 and base 64 (rfc4648).

use super::error::Fault;
use super::number;
use super::parse::Tokens;

/// Marks an octet that is no digit of an alphabet.
const NO_DIGIT: u8 = 0xff;

/// Returns the value of each digit of an alphabet; with `fold`, of its lower-case form, too.
const fn digit_values(alphabet: &[u8], fold: bool) -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut at = 0;
    while at < alphabet.len() {
        values[alphabet[at] as usize] = at as u8;
        if fold {
            values[alphabet[at].to_ascii_lowercase() as usize] = at as u8;
        }
        at += 1;
    }
    values
}

/// Hexadecimal digits.
static HEX: [u8; 256] = digit_values(b"0123456789ABCDEF", true);
/// Base 32 with extended alphabet (rfc4648#7).
static BASE32: [u8; 256] = digit_values(b"0123456789ABCDEFGHIJKLMNOPQRSTUV", true);
/// Base 64 (rfc4648#4).
static BASE64: [u8; 256] =
    digit_values(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", false);

/// Gathers digits of `BITS` bits into octets.
struct Decoder<'a, const BITS: u32> {
    values: &'static [u8; 256],
    /// Digits not yet written, in its low `held` bits.
    pending: u32,
    held: u32,
    out: &'a mut Vec<u8>,
}

impl<'a, const BITS: u32> Decoder<'a, BITS> {
    /// A decoder that has no digits yet.
    fn new(values: &'static [u8; 256], out: &'a mut Vec<u8>) -> Self {
        Self { values, pending: 0, held: 0, out }
    }

    /// Takes digits up to the first other octet, and returns the rest.
    fn digits<'t>(&mut self, text: &'t [u8]) -> &'t [u8] {
        for (at, &octet) in text.iter().enumerate() {
            let digit = self.values[usize::from(octet)];
            if digit == NO_DIGIT {
                return &text[at..];
            }
            self.pending = (self.pending << BITS) | u32::from(digit);
            self.held += BITS;
            if self.held >= 8 {
                self.held -= 8;
                self.out.push((self.pending >> self.held) as u8);
            }
        }
        &[]
    }

    /// Whether the digits make whole octets: less than a digit is left, and it is zero.
    fn is_complete(&self) -> bool {
        self.held < BITS && self.pending & ((1 << self.held) - 1) == 0
    }
}

/// Reads one or more octets in all tokens left; a pair of digits may be split between two.
pub(super) fn parse_hex(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    let mut decoder = Decoder::<4>::new(&HEX, out);
    decode_hex_word(&mut decoder, tokens.word()?)?;
    while tokens.peek().is_some() {
        decode_hex_word(&mut decoder, tokens.word()?)?;
    }
    let complete = decoder.is_complete() && out.len() > start;
    if complete { Ok(()) } else { Err(Fault::Hex) }
}

/// Reads a word of nothing but hexadecimal digits.
fn decode_hex_word(decoder: &mut Decoder<'_, 4>, word: &[u8]) -> Result<(), Fault> {
    if decoder.digits(word).is_empty() { Ok(()) } else { Err(Fault::Hex) }
}

/// Reads the octets of a single word.
pub(super) fn hex_word(word: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut decoder = Decoder::<4>::new(&HEX, out);
    decode_hex_word(&mut decoder, word)?;
    if decoder.is_complete() { Ok(()) } else { Err(Fault::Hex) }
}

/// Returns the value of a hexadecimal digit.
pub(super) fn hex_digit(octet: u8) -> Option<u8> {
    Some(HEX[usize::from(octet)]).filter(|&digit| digit != NO_DIGIT)
}

/// Writes a length octet and the octets of a word; `-` is none.
pub(super) fn parse_hex_by_length(word: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let digits = if word == b"-" { b"" } else { word };
    with_length(out, |out| hex_word(digits, out))
}

/// Writes a length octet and the octets of a word of base 32, at least one.
pub(super) fn parse_base32_by_length(word: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    with_length(out, |out| {
        let mut decoder = Decoder::<5>::new(&BASE32, out);
        let valid = decoder.digits(word).is_empty() && decoder.is_complete() && word.len() > 1;
        if valid { Ok(()) } else { Err(Fault::Base32) }
    })
}

/// Writes a length octet and what `write` appends.
fn with_length(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let length_at = out.len();
    out.push(0);
    write(out)?;
    let len = out.len() - length_at - 1;
    out[length_at] = u8::try_from(len).map_err(|_| Fault::StringTooLong)?;
    Ok(())
}

/// Reads one or more octets in all tokens left.
pub(super) fn parse_base64(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut decoder = Base64::new(out);
    decoder.word(tokens.word()?)?;
    while tokens.peek().is_some() {
        decoder.word(tokens.word()?)?;
    }
    decoder.finish()
}

/// Appends the octets of a single word in base 64 with padding (rfc4648#4).
///
/// # Errors
/// When it is none.
pub fn base64_word(word: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut decoder = Base64::new(out);
    decoder.word(word)?;
    decoder.finish()
}

/// Reads the octets of a single word; `-` is none.
pub(super) fn parse_dash_base64(word: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    if word == b"-" { Ok(()) } else { base64_word(word, out) }
}

/// Base 64 in several words, padded.
struct Base64<'a> {
    decoder: Decoder<'a, 6>,
    digits: usize,
    padding: usize,
}

impl<'a> Base64<'a> {
    /// A decoder that has read no digits yet.
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { decoder: Decoder::new(&BASE64, out), digits: 0, padding: 0 }
    }

    /// Takes a word: digits, then padding; behind padding only more of it.
    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        let padding = if self.padding == 0 { self.decoder.digits(word) } else { word };
        self.digits += word.len() - padding.len();
        self.padding += padding.len();
        if padding.iter().all(|&octet| octet == b'=') { Ok(()) } else { Err(Fault::Base64) }
    }

    /// Checks that digits and padding make up groups of four.
    fn finish(self) -> Result<(), Fault> {
        let whole = (self.digits + self.padding).is_multiple_of(4) && self.padding < 3;
        let valid = whole && self.digits > 0 && self.decoder.is_complete();
        if valid { Ok(()) } else { Err(Fault::Base64) }
    }
}

/// Data of any type: `\#`, its length, its octets in hexadecimal (rfc3597#5).
pub(super) fn parse_generic(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    tokens.word()?;
    let len = number::decimal(tokens.word()?, u64::from(u16::MAX))?;
    if len > 0 {
        parse_hex(tokens, out)?;
    }
    let exact = (out.len() - start) as u64 == len && tokens.peek().is_none();
    if exact { Ok(()) } else { Err(Fault::Generic) }
}
