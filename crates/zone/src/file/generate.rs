//! `$GENERATE range owner [TTL] [class] type data`, BIND's way to write many records at once.
//!
//! In the owner and the data, `$` stands for the number, `${offset,width,base}` for the number plus
//! an offset in another notation, `$$` and `\$` for a dollar. Data in quotes is generated without
//! them, so that it may hold blanks.

use super::directive::argument;
use super::lexer::{self, Scanned};
use super::problem::{DirectiveProblem, FileProblem, Snippet};
use super::{Entry, FileState, LocatedProblem, Reader};
use std::io::Write;
use zonda_wire::Type;
use zonda_wire::rdata::Token;

/// The greatest width of a number.
const WIDTH_MAX: u64 = 255;

/// The numbers to put in, ascending.
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    last: u32,
    step: u32,
}

/// How a number is written.
#[derive(Clone, Copy)]
struct Modifier {
    offset: i64,
    /// Least number of characters.
    width: usize,
    base: u8,
}

impl Reader<'_> {
    /// Makes a record for each number of the range; stops at the first that is wrong. The owner of
    /// the last record before stays that for the next without one.
    pub(super) fn generate(
        &mut self,
        entry: Entry<'_, '_>,
        file: &FileState,
    ) -> Result<(), LocatedProblem> {
        let token = argument(entry, 1, "a range such as 1-10 or 0-100/2")?;
        let range = range(token.text).ok_or_else(|| {
            LocatedProblem::new(token.at, DirectiveProblem::Range(Snippet::new(token.text)))
        })?;
        if (range.last - range.first) / range.step >= self.options.generate_max {
            let problem = DirectiveProblem::RangeTooLong(self.options.generate_max);
            return Err(LocatedProblem::new(token.at, problem));
        }
        let owner = argument(entry, 2, "an owner such as host$")?;
        let template = Template::new(owner, entry.tokens.get(3..).unwrap_or_default());
        let mut made = file.clone();
        let mut text = Vec::new();
        for number in (range.first..=range.last).step_by(range.step as usize) {
            text.clear();
            template.write(number, &mut text)?;
            self.read_made(&text, &mut made).map_err(|wrong| {
                let problem = Box::new(wrong.problem);
                LocatedProblem::new(
                    owner.at,
                    DirectiveProblem::Generated(Snippet::new(&text), problem),
                )
            })?;
        }
        Ok(())
    }

    /// Reads one generated record.
    fn read_made(&mut self, text: &[u8], file: &mut FileState) -> Result<(), LocatedProblem> {
        let mut tokens = Vec::new();
        match lexer::scan(text, 0, true, &mut tokens) {
            Scanned::Entry(shape) => match shape.fault {
                Some((at, problem)) => Err(LocatedProblem::new(at, problem)),
                None => {
                    let indented = shape.indented;
                    self.read_record(Entry { text, start: 0, indented, tokens: &tokens }, file)
                }
            },
            Scanned::Unclosed(at) => Err(LocatedProblem::new(at, FileProblem::UnclosedParenthesis)),
            Scanned::TooLong | Scanned::Incomplete => {
                Err(LocatedProblem::new(0, FileProblem::RecordTooLong(lexer::ENTRY_BYTES_MAX)))
            }
        }
    }
}

/// `first-last` or `first-last/step`.
fn range(text: &[u8]) -> Option<Range> {
    let text = std::str::from_utf8(text).ok()?;
    let (bounds, step) = text.split_once('/').unwrap_or((text, "1"));
    let (first, last) = bounds.split_once('-')?;
    let number = |digits: &str| {
        let plain = digits.bytes().all(|octet| octet.is_ascii_digit());
        digits.parse().ok().filter(|&number: &u32| plain && number <= i32::MAX as u32)
    };
    let range = Range { first: number(first)?, last: number(last)?, step: number(step)? };
    (range.first <= range.last && range.step > 0).then_some(range)
}

/// A record in which numbers are to be put.
struct Template<'a, 't> {
    owner: Token<'t>,
    /// TTL, class and type, in which no numbers are put.
    head: &'a [Token<'t>],
    data: &'a [Token<'t>],
}

impl<'a, 't> Template<'a, 't> {
    /// A template from an owner and the tokens behind it.
    fn new(owner: Token<'t>, rest: &'a [Token<'t>]) -> Self {
        let rtype = rest.iter().position(|token| Type::from_text(token.text).is_some());
        let (head, data) = rest.split_at(rtype.map_or(rest.len(), |at| at + 1));
        Self { owner, head, data }
    }

    /// Appends the text of a record. Data that is a single string loses its quotes, and quotes
    /// within it their escapes, so that `"\"one\" two"` is two strings.
    fn write(&self, number: u32, out: &mut Vec<u8>) -> Result<(), LocatedProblem> {
        expand(self.owner, number, false, out)?;
        for token in self.head {
            write_token(*token, None, out)?;
        }
        if let &[only] = self.data {
            out.push(b' ');
            return expand(only, number, only.quoted, out);
        }
        self.data.iter().try_for_each(|token| write_token(*token, Some(number), out))
    }
}

/// Appends a token with what stands around it, and with the number put in if there is one.
fn write_token(
    token: Token<'_>,
    number: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedProblem> {
    let quote: &[u8] = if token.quoted { b"\"" } else { b"" };
    out.extend_from_slice(if token.glued { b"" } else { b" " });
    out.extend_from_slice(quote);
    match number {
        Some(number) => expand(token, number, false, out)?,
        None => out.extend_from_slice(token.text),
    }
    out.extend_from_slice(quote);
    Ok(())
}

/// Appends the text of a token with the number put in; `\"` becomes `"` if wanted.
fn expand(
    token: Token<'_>,
    number: u32,
    quotes_unescaped: bool,
    out: &mut Vec<u8>,
) -> Result<(), LocatedProblem> {
    let mut rest = token.text;
    while let Some((&octet, tail)) = rest.split_first() {
        rest = tail;
        match (octet, tail.first()) {
            (b'\\', Some(&escaped)) => {
                if !(quotes_unescaped && escaped == b'"') {
                    out.push(b'\\');
                }
                out.push(escaped);
                rest = &tail[1..];
            }
            (b'$', Some(b'$')) => {
                out.push(b'$');
                rest = &tail[1..];
            }
            (b'$', Some(b'{')) => {
                let at = token.at + usize::from(token.quoted) + token.text.len() - rest.len();
                let wrong = || LocatedProblem::new(at - 1, DirectiveProblem::Modifier);
                let close = tail.iter().position(|&octet| octet == b'}').ok_or_else(wrong)?;
                let modifier = modifier(&tail[1..close]).ok_or_else(wrong)?;
                write_number(i64::from(number) + modifier.offset, modifier, out);
                rest = &tail[close + 1..];
            }
            (b'$', _) => write_number(i64::from(number), Modifier::PLAIN, out),
            _ => out.push(octet),
        }
    }
    Ok(())
}

impl Modifier {
    /// How `$` alone is written.
    const PLAIN: Self = Self { offset: 0, width: 0, base: b'd' };
}

/// `offset[,width[,base]]`.
fn modifier(text: &[u8]) -> Option<Modifier> {
    let mut parts = std::str::from_utf8(text).ok()?.split(',');
    let offset: i32 = parts.next()?.parse().ok()?;
    let width: u64 = parts.next().unwrap_or("0").parse().ok()?;
    let base = parts.next().unwrap_or("d");
    let valid = width <= WIDTH_MAX && matches!(base, "d" | "o" | "x" | "X" | "n" | "N");
    let base = base.as_bytes().first().copied().filter(|_| valid && parts.next().is_none())?;
    Some(Modifier { offset: offset.into(), width: width as usize, base })
}

/// Appends a number. Below zero, all but decimal notation shows its two's complement of 32 bits.
fn write_number(value: i64, modifier: Modifier, out: &mut Vec<u8>) {
    let width = modifier.width;
    let bits = value as u32;
    let written = match modifier.base {
        b'o' => write!(out, "{bits:0width$o}"),
        b'x' => write!(out, "{bits:0width$x}"),
        b'X' => write!(out, "{bits:0width$X}"),
        b'n' => return write_nibbles(bits, width, b"0123456789abcdef", out),
        b'N' => return write_nibbles(bits, width, b"0123456789ABCDEF", out),
        _ => write!(out, "{value:0width$}"),
    };
    written.expect("a vector takes any octets");
}

/// Appends hexadecimal digits, the lowest first, dots between; the width counts the dots, too.
fn write_nibbles(mut bits: u32, mut width: usize, digits: &[u8; 16], out: &mut Vec<u8>) {
    loop {
        out.push(digits[(bits & 0xf) as usize]);
        bits >>= 4;
        width = width.saturating_sub(1);
        if width > 0 || bits != 0 {
            out.push(b'.');
            width = width.saturating_sub(1);
        }
        if width == 0 && bits == 0 {
            return;
        }
    }
}
