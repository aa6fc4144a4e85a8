//! Tokens of a Corefile.

use crate::error::{ImportError, Place, Problem};
use std::path::Path;
use std::sync::Arc;

/// A word, brace or string of a Corefile.
#[derive(Clone, Debug)]
pub struct Token {
    /// Text of the token, without the quotes of a string.
    pub text: String,
    /// Place of the first character.
    pub place: Place,
    /// Whether the token is the first of a line.
    pub starts_line: bool,
}

impl Token {
    /// Whether the token has this text.
    pub fn is(&self, text: &str) -> bool {
        self.text == text
    }

    /// Returns the error that something else should stand in place of the token.
    pub fn expected(&self, wanted: &str) -> ImportError {
        let found = crate::tree::quoted(&self.text);
        let problem = Problem::Expected { wanted: wanted.to_owned(), found };
        ImportError { place: Some(self.place.clone()), problem }
    }
}

/// Cuts the text of a file into tokens.
///
/// # Errors
/// A string without an end, or octets that are no text.
pub fn tokens(file: &Arc<Path>, text: &str) -> Result<Vec<Token>, ImportError> {
    let mut lexer = Lexer { rest: text, line: 1, column: 1 };
    let mut tokens = Vec::new();
    let mut starts_line = true;
    loop {
        starts_line |= lexer.skip_blanks_and_comments();
        let place = Place { file: Arc::clone(file), line: lexer.line, column: lexer.column };
        let text = match lexer.rest.chars().next() {
            None => return Ok(tokens),
            Some('"') => lexer.string(),
            Some(_) => Ok(lexer.word()),
        };
        let text = text.and_then(|text| match text.contains(char::REPLACEMENT_CHARACTER) {
            true => Err(Problem::NotText),
            false => Ok(text),
        });
        match text {
            Ok(text) => tokens.push(Token { text, place, starts_line }),
            Err(problem) => return Err(ImportError { place: Some(place), problem }),
        }
        starts_line = false;
    }
}

/// The text of a file, being read.
struct Lexer<'t> {
    /// Text that is still to be read.
    rest: &'t str,
    line: u32,
    column: u32,
}

impl Lexer<'_> {
    /// Skips blanks, comments and ends of lines; returns whether another line begins. A backslash
    /// at the end of a line joins the next one to it.
    fn skip_blanks_and_comments(&mut self) -> bool {
        let mut is_new_line = false;
        loop {
            let first = self.rest.chars().next();
            match first {
                Some('\n') => {
                    is_new_line = true;
                    self.advance(1);
                }
                Some(c) if c.is_whitespace() => self.advance(c.len_utf8()),
                Some('#') => self.advance(self.rest.find('\n').unwrap_or(self.rest.len())),
                Some('\\') if self.rest[1..].starts_with('\n') => self.advance(2),
                Some('\\') if self.rest[1..].starts_with("\r\n") => self.advance(3),
                _ => return is_new_line,
            }
        }
    }

    /// Reads a string in quotes, which may go over several lines; `\"` is a quote.
    fn string(&mut self) -> Result<String, Problem> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.advance(at + 1);
                    return Ok(text);
                }
                '\\' => match characters.next() {
                    Some((_, '"')) => text.push('"'),
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        Err(Problem::Open("string"))
    }

    /// Reads a word up to the next blank or comment.
    fn word(&mut self) -> String {
        let end = self.rest.find(|c: char| c.is_whitespace() || c == '#');
        let text = self.rest[..end.unwrap_or(self.rest.len())].to_owned();
        self.advance(text.len());
        text
    }

    /// Advances by `octets`.
    fn advance(&mut self, octets: usize) {
        let (passed, rest) = self.rest.split_at(octets);
        self.rest = rest;
        for c in passed.chars() {
            (self.line, self.column) = match c {
                '\n' => (self.line + 1, 1),
                _ => (self.line, self.column + 1),
            };
        }
    }
}
