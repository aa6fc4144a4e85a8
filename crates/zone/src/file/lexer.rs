//! Splits text into entries, and entries into words and strings (rfc1035#5.1).
//!
//! An entry is a line, or several that parentheses join. Nothing is copied: tokens point into the
//! text, their escapes unresolved.

use super::problem::FileProblem;
use zonda_wire::rdata::Token;

/// Most octets of an entry, comments inside its parentheses included. Data of 65 535 octets takes
/// four times as many in the longest notation, `\DDD`.
pub(super) const ENTRY_BYTES_MAX: usize = 1 << 20;

/// What the text holds next.
pub(super) enum Scanned {
    /// An entry; it has no tokens when there are only blanks and comments.
    Entry(Shape),
    /// The end of the text comes before the entry's end, and more text may follow.
    Incomplete,
    /// A parenthesis, this one, is not closed before the end of the file.
    Unclosed(usize),
    /// The entry is longer than [`ENTRY_BYTES_MAX`].
    TooLong,
}

/// An entry without its tokens.
pub(super) struct Shape {
    /// Where the next entry begins.
    pub end: usize,
    /// Number of lines of the entry.
    pub lines: u32,
    /// Whether the entry begins with a blank.
    pub indented: bool,
    /// The first place that cannot be split into tokens.
    pub fault: Option<(usize, FileProblem)>,
}

/// What an octet does outside quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Escape,
    Blank,
    Newline,
    Quote,
    Comment,
    Open,
    Close,
    Control,
}

/// The class of each octet.
static CLASSES: [Class; 256] = {
    let mut classes = [Class::Word; 256];
    let mut octet = 0;
    while octet < 0x20 {
        classes[octet] = Class::Control;
        octet += 1;
    }
    classes[0x7f] = Class::Control;
    classes[b' ' as usize] = Class::Blank;
    classes[b'\t' as usize] = Class::Blank;
    classes[b'\r' as usize] = Class::Blank;
    classes[b'\n' as usize] = Class::Newline;
    classes[b'"' as usize] = Class::Quote;
    classes[b';' as usize] = Class::Comment;
    classes[b'(' as usize] = Class::Open;
    classes[b')' as usize] = Class::Close;
    classes[b'\\' as usize] = Class::Escape;
    classes
};

/// Finds the entry that begins at `start`; `is_last` says that nothing follows the text.
pub(super) fn scan<'t>(
    text: &'t [u8],
    start: usize,
    is_last: bool,
    tokens: &mut Vec<Token<'t>>,
) -> Scanned {
    tokens.clear();
    let mut at = start;
    let mut lines = 0;
    let (mut depth, mut open) = (0_usize, start); // the outermost parenthesis that is open
    let mut glued = false;
    let mut fault = None;
    let indented = text.get(at).is_some_and(|&octet| class(octet) == Class::Blank);
    while let Some(&octet) = text.get(at) {
        let token_start = at;
        match class(octet) {
            Class::Word | Class::Escape => {
                at = word_end(text, at);
                let word = &text[token_start..at];
                tokens.push(Token { text: word, quoted: false, glued, at: token_start });
                glued = true;
                continue;
            }
            Class::Quote => {
                let (end, closed) = string_end(text, at + 1);
                if !closed {
                    fault.get_or_insert((at, FileProblem::UnclosedQuote));
                }
                let string = &text[at + 1..end];
                tokens.push(Token { text: string, quoted: true, glued, at: token_start });
                at = end + usize::from(closed);
                glued = true;
                continue;
            }
            Class::Newline => {
                lines += 1;
                if depth == 0 {
                    return Scanned::Entry(Shape { end: at + 1, lines, indented, fault });
                }
            }
            Class::Comment => at = line_end(text, at) - 1,
            Class::Open => {
                open = if depth == 0 { at } else { open };
                depth += 1;
            }
            Class::Close if depth > 0 => depth -= 1,
            Class::Close => drop(fault.get_or_insert((at, FileProblem::UnopenedParenthesis))),
            Class::Control => drop(fault.get_or_insert((at, FileProblem::ControlOctet(octet)))),
            Class::Blank => {}
        }
        glued = false;
        at += 1;
        if at - start > ENTRY_BYTES_MAX {
            break;
        }
    }
    let too_long = at - start > ENTRY_BYTES_MAX;
    match depth {
        0 if too_long => Scanned::TooLong,
        0 if is_last => Scanned::Entry(Shape { end: at, lines: lines + 1, indented, fault }),
        1.. if too_long || is_last => Scanned::Unclosed(open),
        _ => Scanned::Incomplete,
    }
}

/// What an octet does.
fn class(octet: u8) -> Class {
    CLASSES[usize::from(octet)]
}

/// Where the word that begins at `at` ends.
fn word_end(text: &[u8], mut at: usize) -> usize {
    while let Some(&octet) = text.get(at) {
        match class(octet) {
            Class::Word => at += 1,
            Class::Escape if matches!(text.get(at + 1), None | Some(b'\n')) => return at + 1,
            Class::Escape => at += 2,
            _ => break,
        }
    }
    at
}

/// Where the string that begins at `at` ends, and whether a quote ends it; else the line does.
fn string_end(text: &[u8], mut at: usize) -> (usize, bool) {
    while let Some(&octet) = text.get(at) {
        match octet {
            b'"' => return (at, true),
            b'\n' => return (at, false),
            b'\\' if !matches!(text.get(at + 1), None | Some(b'\n')) => at += 2,
            _ => at += 1,
        }
    }
    (at, false)
}

/// Where the line that `at` is in ends: at its newline, or at the end of the text.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|&octet| octet == b'\n').unwrap_or(rest.len())
}
