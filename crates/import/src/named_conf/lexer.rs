//! Words and signs of a named.conf.

use crate::error::Problem;

/// A piece of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A word, or a string without its quotes.
    Word(String),
    /// An opening brace, `{`.
    Open,
    /// A closing brace, `}`.
    Close,
    /// A semicolon, `;`.
    End,
    /// An exclamation mark, `!`.
    Not,
}

/// A token, and the line and column at which it begins.
pub type PlacedToken = (Token, u32, u32);

/// Cuts a text into tokens.
pub struct Lexer<'t> {
    /// Text that is still to be read.
    rest: &'t str,
    line: u32,
    column: u32,
}

impl<'t> Lexer<'t> {
    /// Begins at the start of the text.
    pub fn new(text: &'t str) -> Self {
        Self { rest: text, line: 1, column: 1 }
    }

    /// Returns where the next character stands: line and column.
    pub fn place(&self) -> (u32, u32) {
        (self.line, self.column)
    }

    /// Returns the next token; `None` at the end of the text.
    ///
    /// # Errors
    /// A problem with what begins at [`Self::place`].
    pub fn next(&mut self) -> Result<Option<PlacedToken>, Problem> {
        self.skip_blanks_and_comments()?;
        let (line, column) = self.place();
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let token = match first {
            '{' => Token::Open,
            '}' => Token::Close,
            ';' => Token::End,
            '!' => Token::Not,
            '"' => return Ok(Some((self.string()?, line, column))),
            _ => return Ok(Some((self.word()?, line, column))),
        };
        self.advance(1);
        Ok(Some((token, line, column)))
    }

    /// Skips blanks and comments in the manner of C, C++ and shells.
    fn skip_blanks_and_comments(&mut self) -> Result<(), Problem> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.advance(blanks);
            if self.rest.starts_with('#') || self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let end = self.rest[2..].find("*/").ok_or(Problem::Open("comment"))?;
                self.advance(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    /// Reads a string in quotes, which may go over several lines; `\"` is a quote.
    fn string(&mut self) -> Result<Token, Problem> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.advance(at + 1);
                    return word(text);
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

    /// Reads a word up to the next blank, sign or comment.
    fn word(&mut self) -> Result<Token, Problem> {
        let ends = |&(at, c): &(usize, char)| {
            c.is_whitespace()
                || "{};!\"#".contains(c)
                || c == '/' && self.rest[at + 1..].starts_with(['/', '*'])
        };
        let end = self.rest.char_indices().find(ends).map_or(self.rest.len(), |(at, _)| at);
        let text = self.rest[..end].to_owned();
        self.advance(end);
        word(text)
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

/// Returns a word, unless it holds what stands for octets that are no text.
fn word(text: String) -> Result<Token, Problem> {
    match text.contains(char::REPLACEMENT_CHARACTER) {
        true => Err(Problem::NotText),
        false => Ok(Token::Word(text)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Tokens as text.
    fn tokens(text: &str) -> Result<Vec<String>, Problem> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        while let Some((token, ..)) = lexer.next()? {
            tokens.push(match token {
                Token::Word(text) => text,
                Token::Open => "{".to_owned(),
                Token::Close => "}".to_owned(),
                Token::End => ";".to_owned(),
                Token::Not => "!".to_owned(),
            });
        }
        Ok(tokens)
    }

    #[test]
    fn comments_of_all_three_kinds_end_words_and_are_skipped() {
        let text = "a/*x*/b // c\nd#e\n/* f\n g */ 10.0.0.0/8//h\n;";
        assert_eq!(tokens(text).unwrap(), ["a", "b", "d", "10.0.0.0/8", ";"]);
    }

    #[test]
    fn signs_need_no_blanks_around_them() {
        let text = "acl x{!10/8;\"a;b\";};";
        let expected = ["acl", "x", "{", "!", "10/8", ";", "a;b", ";", "}", ";"];
        assert_eq!(tokens(text).unwrap(), expected);
    }

    #[test]
    fn a_string_keeps_comments_lines_and_backslashes() {
        assert_eq!(tokens("\"a // b\n\\\"c\\\" \\d\"").unwrap(), ["a // b\n\"c\" \\d"]);
    }

    #[test]
    fn an_unterminated_token_is_reported_where_it_begins() {
        for (text, what, place) in [
            ("a;\n  \"b;\n", "string", (2, 3)),
            ("a;\n /* b;", "comment", (2, 2)),
            ("\"a\\", "string", (1, 1)),
        ] {
            let mut lexer = Lexer::new(text);
            let problem = loop {
                match lexer.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{text}: no problem"),
                    Err(problem) => break problem,
                }
            };
            assert!(matches!(problem, Problem::Open(found) if found == what), "{text}");
            assert_eq!(lexer.place(), place, "{text}");
        }
    }
}
