//! Entries of a zone file: the words of one record or directive, over as many lines as its
//! parentheses take (rfc1035#5.1).

use crate::error::Problem;

/// An entry of the file.
#[derive(Debug)]
pub struct Entry<'t> {
    /// Text of the entry, with its comments and the final line end.
    pub text: &'t str,
    /// Words of the entry; none for blank lines and comments.
    pub words: Vec<Word<'t>>,
}

/// A word of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Word<'t> {
    /// Characters of the word as they are written, without quotes around them.
    pub text: &'t str,
    /// Whether the word stands in quotes.
    pub is_quoted: bool,
    /// Octet of the entry's text at which the word begins, its quote included.
    pub start: usize,
    /// Line of the word, counted from 1.
    pub line: u32,
    /// Column of the word in characters, counted from 1.
    pub column: u32,
}

impl Entry<'_> {
    /// Whether the entry begins with an owner, not with blanks that stand for the one before.
    pub fn has_owner(&self) -> bool {
        self.words.first().is_some_and(|word| word.start == 0)
    }
}

/// Cuts a text into entries.
pub struct Entries<'t> {
    rest: &'t str,
    line: u32,
}

impl<'t> Entries<'t> {
    /// Begins at the start of the text.
    pub fn new(text: &'t str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// Returns the next entry; none at the end.
    ///
    /// # Errors
    /// The problem, and the line and column at which it begins.
    pub fn next(&mut self) -> Result<Option<Entry<'t>>, (Problem, u32, u32)> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut scanner = Scanner { text: self.rest, at: 0, line: self.line, line_start: 0 };
        let words = scanner.words()?;
        let (text, rest) = self.rest.split_at(scanner.at);
        (self.rest, self.line) = (rest, scanner.line);
        Ok(Some(Entry { text, words }))
    }
}

/// Reads the words of one entry.
struct Scanner<'t> {
    text: &'t str,
    /// Octet that comes next.
    at: usize,
    line: u32,
    /// Octet at which the line begins.
    line_start: usize,
}

impl<'t> Scanner<'t> {
    /// Reads words to the end of the entry.
    fn words(&mut self) -> Result<Vec<Word<'t>>, (Problem, u32, u32)> {
        let mut words = Vec::new();
        let mut open = Vec::new(); // places of parentheses
        while let Some(&octet) = self.text.as_bytes().get(self.at) {
            match octet {
                b'\n' => {
                    self.new_line();
                    if open.is_empty() {
                        return Ok(words);
                    }
                }
                b';' => self.skip(|octet| octet != b'\n'),
                b'(' => {
                    open.push((self.line, self.column(self.at)));
                    self.at += 1;
                }
                b')' => {
                    open.pop();
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'"' => words.push(self.quoted()?),
                _ => words.push(self.bare()),
            }
        }
        match open.last() {
            Some((line, column)) => Err((Problem::Open("parenthesis"), *line, *column)),
            None => Ok(words),
        }
    }

    /// Passes a line end.
    fn new_line(&mut self) {
        self.at += 1;
        self.line += 1;
        self.line_start = self.at;
    }

    /// Passes octets for which a condition holds.
    fn skip(&mut self, goes_on: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|octet| !goes_on(*octet)).unwrap_or(rest.len());
    }

    /// Returns the column of an octet of this line.
    fn column(&self, at: usize) -> u32 {
        let before = self.text[self.line_start..at].chars().count();
        u32::try_from(before + 1).unwrap_or(u32::MAX)
    }

    /// Reads a word in quotes, which may have line ends in it.
    fn quoted(&mut self) -> Result<Word<'t>, (Problem, u32, u32)> {
        let (start, line, column) = (self.at, self.line, self.column(self.at));
        self.at += 1;
        while let Some(&octet) = self.text.as_bytes().get(self.at) {
            match octet {
                b'"' => {
                    let text = &self.text[start + 1..self.at];
                    self.at += 1;
                    return Ok(Word { text, is_quoted: true, start, line, column });
                }
                b'\\' => self.escape(),
                b'\n' => self.new_line(),
                _ => self.at += 1,
            }
        }
        Err((Problem::Open("string"), line, column))
    }

    /// Passes a backslash and what it is for.
    fn escape(&mut self) {
        self.at += 1;
        match self.text.as_bytes().get(self.at) {
            Some(b'\n') => self.new_line(),
            Some(_) => self.at += 1,
            None => {}
        }
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    /// Reads a word up to the next blank or sign.
    fn bare(&mut self) -> Word<'t> {
        let (start, line, column) = (self.at, self.line, self.column(self.at));
        while let Some(&octet) = self.text.as_bytes().get(self.at) {
            match octet {
                b'\\' if self.text.as_bytes().get(self.at + 1) == Some(&b'\n') => {
                    self.at += 1;
                    break;
                }
                b'\\' => self.escape(),
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' | b'"' => break,
                _ => self.at += 1,
            }
        }
        Word { text: &self.text[start..self.at], is_quoted: false, start, line, column }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let mut entries = Entries::new(text);
        let mut all = Vec::new();
        while let Some(entry) = entries.next().unwrap() {
            all.push(entry.words.iter().map(|word| word.text.to_owned()).collect());
        }
        all
    }

    #[test]
    fn an_entry_goes_on_within_parentheses_and_strings() {
        let text = "@ SOA a b ( 1 ; serial\n 2\n3 4 5)\n\nx TXT \"a;b\" \"c\nd\" ; no\n\t A 1\\;2";
        let expected: [&[&str]; 4] = [
            &["@", "SOA", "a", "b", "1", "2", "3", "4", "5"],
            &[],
            &["x", "TXT", "a;b", "c\nd"],
            &["A", "1\\;2"],
        ];
        assert_eq!(words(text), expected);
    }

    #[test]
    fn entries_join_to_the_text_that_they_were_cut_from() {
        let text = "a A 1\r\n; c\n b ( x\n y ) z\n\\\n\"q\\\"\" \\";
        let mut entries = Entries::new(text);
        let mut whole = String::new();
        let mut owners = Vec::new();
        while let Some(entry) = entries.next().unwrap() {
            whole.push_str(entry.text);
            owners.push(entry.has_owner());
        }
        assert_eq!(whole, text);
        assert_eq!(owners, [true, false, false, true, true]);
    }

    #[test]
    fn what_does_not_end_is_told_where_it_begins() {
        for (text, place) in [("a (\nb", (1, 3)), ("a\nb \"c\nd", (2, 3))] {
            let mut entries = Entries::new(text);
            let error = loop {
                match entries.next() {
                    Ok(entry) => assert!(entry.is_some()),
                    Err((_, line, column)) => break (line, column),
                }
            };
            assert_eq!(error, place, "{text}");
        }
    }
}
