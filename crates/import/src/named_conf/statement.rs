//! Statements of a named.conf, as far as they can be read without knowing what they mean.
//!
//! A statement is words and blocks up to a `;`; a block is statements between braces. Included
//! files, which may be given by a pattern, are read in place. How deep blocks and files lie within
//! each other, and how much is read altogether, is bounded.

use super::lexer::{Lexer, Token};
use crate::Files;
use crate::error::{ImportError, Place, Problem};
use crate::pattern;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Blocks and files that may lie within each other; a file that includes itself ends here.
const DEPTH_MAX: usize = 64;
/// Files that are read.
const FILES_MAX: usize = 1000;
/// Octets that are read, all files together.
const BYTES_MAX: usize = 64 << 20;

/// Words and blocks up to a `;`, which is at `end`.
#[derive(Debug)]
pub struct Statement {
    /// Elements of the statement; at least one.
    pub elements: Vec<(Element, Place)>,
    /// Place of the final `;`.
    pub end: Place,
}

/// A part of a statement.
#[derive(Debug)]
pub enum Element {
    /// A word or a string.
    Word(String),
    /// An exclamation mark, `!`.
    Not,
    /// A block in braces.
    Block(Vec<Statement>),
}

impl Element {
    /// Whether the element is this very word.
    pub fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Word(word) if word == wanted)
    }

    /// Whether the element is a word or a string.
    pub fn is_word(&self) -> bool {
        matches!(self, Self::Word(_))
    }
}

impl Statement {
    /// Returns the first word; empty when it begins with a block or a `!`.
    pub fn keyword(&self) -> &str {
        match &self.elements[0].0 {
            Element::Word(word) => word,
            _ => "",
        }
    }

    /// Returns the place at which the statement begins.
    pub fn place(&self) -> &Place {
        &self.elements[0].1
    }

    /// Returns the words up to the first block, for messages; a statement of many is cut short.
    pub fn summary(&self) -> String {
        /// Words that are shown.
        const WORDS: usize = 4;
        let mut words = Vec::new();
        for (element, _) in &self.elements {
            match element {
                Element::Word(word) if words.len() < WORDS => words.push(word.as_str()),
                Element::Not => words.push("!"),
                _ => break,
            }
        }
        words.join(" ").escape_debug().to_string()
    }

    /// Whether its one value is this word, alone or in braces.
    pub fn says(&self, value: &str) -> bool {
        let is_it = |word: &str| word.eq_ignore_ascii_case(value);
        match &self.elements[..] {
            [_, (Element::Word(word), _)] => is_it(word),
            [_, (Element::Block(block), _)] => match &block[..] {
                [only] => only.elements.len() == 1 && is_it(only.keyword()),
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns what follows the first word, to be read.
    pub fn arguments(&self) -> Cursor<'_> {
        Cursor { statement: self, next: 1 }
    }

    /// Returns a cursor over the whole statement.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { statement: self, next: 0 }
    }
}

/// Reads the elements of a statement, one after the other.
#[derive(Clone, Copy)]
pub struct Cursor<'s> {
    statement: &'s Statement,
    next: usize,
}

impl<'s> Cursor<'s> {
    /// Returns the whole statement.
    pub fn statement(&self) -> &'s Statement {
        self.statement
    }

    /// Returns the next element and its place; `None` at the `;`.
    pub fn peek(&self) -> Option<&'s (Element, Place)> {
        self.statement.elements.get(self.next)
    }

    /// Returns where the next element stands, or the `;`.
    pub fn place(&self) -> &'s Place {
        self.peek().map_or(&self.statement.end, |(_, place)| place)
    }

    /// Whether this word comes next, which is then passed.
    pub fn passes(&mut self, keyword: &str) -> bool {
        let is_next = matches!(self.peek(), Some((Element::Word(word), _))
            if word.eq_ignore_ascii_case(keyword));
        self.next += usize::from(is_next);
        is_next
    }

    /// Whether a `!` comes next, which is then passed.
    pub fn passes_not(&mut self) -> bool {
        let is_next = matches!(self.peek(), Some((Element::Not, _)));
        self.next += usize::from(is_next);
        is_next
    }

    /// Returns the next word.
    pub fn word(&mut self, wanted: &str) -> Result<&'s str, ImportError> {
        match self.peek() {
            Some((Element::Word(word), _)) => {
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.expected(wanted)),
        }
    }

    /// Returns the next word, read as something.
    pub fn value<T>(
        &mut self,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ImportError> {
        let before = *self;
        read(self.word(wanted)?).ok_or_else(|| before.expected(wanted))
    }

    /// Returns the next word, read as a number or the like.
    pub fn parsed<T: FromStr>(&mut self, wanted: &str) -> Result<T, ImportError> {
        self.value(wanted, |word| word.parse().ok())
    }

    /// Returns the next block.
    pub fn block(&mut self, wanted: &str) -> Result<&'s [Statement], ImportError> {
        match self.peek() {
            Some((Element::Block(statements), _)) => {
                self.next += 1;
                Ok(statements)
            }
            _ => Err(self.expected(wanted)),
        }
    }

    /// Reads the final `;`.
    pub fn end(self) -> Result<(), ImportError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.expected("`;`")) }
    }

    /// Returns the error that something else should come next.
    pub fn expected(&self, wanted: &str) -> ImportError {
        let found = match self.peek() {
            Some((Element::Word(word), _)) => format!("`{}`", word.escape_debug()),
            Some((Element::Not, _)) => "`!`".to_owned(),
            Some((Element::Block(_), _)) => "`{`".to_owned(),
            None => "`;`".to_owned(),
        };
        self.problem(Problem::Expected { wanted: wanted.to_owned(), found })
    }

    /// Returns the error that something is wrong here.
    pub fn problem(&self, problem: Problem) -> ImportError {
        ImportError { place: Some(self.place().clone()), problem }
    }
}

/// Reads the statements of a file and of those that it includes.
///
/// # Errors
/// The first thing that is wrong.
pub fn read(path: &Path, files: &mut dyn Files) -> Result<Vec<Statement>, ImportError> {
    let mut reading = FileSet {
        files,
        base: path.parent().unwrap_or(Path::new("")).to_owned(),
        depth: 0,
        count: 0,
        bytes: 0,
    };
    let mut statements = Vec::new();
    reading.read(path, None, &mut statements)?;
    Ok(statements)
}

/// The files of a configuration, being read.
struct FileSet<'r> {
    files: &'r mut dyn Files,
    /// Directory at which relative paths start: that of the first file, until `directory` names
    /// another.
    base: PathBuf,
    /// Blocks and files that lie around what is being read.
    depth: usize,
    /// Files read so far.
    count: usize,
    /// Octets of the files read so far.
    bytes: usize,
}

impl FileSet<'_> {
    /// Appends the statements of a file.
    fn read(
        &mut self,
        path: &Path,
        included: Option<&Place>,
        statements: &mut Vec<Statement>,
    ) -> Result<(), ImportError> {
        let fail = |problem| ImportError { place: included.cloned(), problem };
        self.count += 1;
        if self.count > FILES_MAX {
            return Err(fail(Problem::TooMuch("included files", FILES_MAX)));
        }
        let octets = self.files.read(path);
        let octets = octets.map_err(|error| fail(Problem::Unreadable(path.to_owned(), error)))?;
        self.bytes += octets.len();
        if self.bytes > BYTES_MAX {
            return Err(fail(Problem::TooMuch("octets of configuration", BYTES_MAX)));
        }
        // Old comments may be in any encoding; in a word, what is no text is an error.
        let text = String::from_utf8_lossy(&octets);
        let mut parser = Parser { reading: self, file: path.into(), lexer: Lexer::new(&text) };
        parser.statements(false, statements)
    }

    /// Goes one block or file deeper, which begins at a place.
    fn descend(&mut self, place: &Place) -> Result<(), ImportError> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        let problem = Problem::TooMuch("blocks and files within each other", DEPTH_MAX);
        Err(ImportError { place: Some(place.clone()), problem })
    }
}

/// Reads one file.
struct Parser<'p, 'r, 't> {
    reading: &'p mut FileSet<'r>,
    file: Arc<Path>,
    lexer: Lexer<'t>,
}

impl Parser<'_, '_, '_> {
    /// Appends statements up to the end of the block, or of the file.
    fn statements(&mut self, in_block: bool, all: &mut Vec<Statement>) -> Result<(), ImportError> {
        loop {
            let (token, place) = self.token()?;
            let first = match (token, in_block) {
                (None, false) | (Some(Token::Close), true) => return Ok(()),
                (None, true) => return Err(expected("`}`", None, place)),
                (Some(token @ (Token::Close | Token::End)), _) => {
                    return Err(expected("a statement", Some(&token), place));
                }
                (Some(token), _) => (token, place),
            };
            let statement = self.statement(first)?;
            match statement.keyword() {
                "include" if statement.elements.len() > 1 => {
                    self.include(&statement, all)?;
                    continue;
                }
                // named changes to it as soon as it has read it.
                "directory" => {
                    let directory = statement.arguments().word("a directory")?;
                    self.reading.base = self.reading.base.join(directory);
                }
                _ => {}
            }
            all.push(statement);
        }
    }

    /// Reads the rest of a statement, from its first token to the `;`.
    fn statement(&mut self, first: (Token, Place)) -> Result<Statement, ImportError> {
        let mut elements = Vec::new();
        let (mut token, mut place) = first;
        loop {
            let element = match token {
                Token::Word(text) => Element::Word(text),
                Token::Not => Element::Not,
                Token::Open => {
                    let mut block = Vec::new();
                    self.reading.descend(&place)?;
                    self.statements(true, &mut block)?;
                    self.reading.depth -= 1;
                    Element::Block(block)
                }
                Token::End => return Ok(Statement { elements, end: place }),
                Token::Close => return Err(expected("`;`", Some(&Token::Close), place)),
            };
            elements.push((element, place));
            (token, place) = match self.token()? {
                (Some(token), place) => (token, place),
                (None, place) => return Err(expected("`;`", None, place)),
            };
        }
    }

    /// Appends the statements of the files that a pattern stands for.
    fn include(
        &mut self,
        statement: &Statement,
        all: &mut Vec<Statement>,
    ) -> Result<(), ImportError> {
        let mut arguments = statement.arguments();
        let pattern = arguments.word("the path of a file")?;
        arguments.end()?;
        let place = statement.place();
        let FileSet { base, files, .. } = &mut *self.reading;
        let paths = pattern::expand(base, pattern, *files, FILES_MAX).map_err(|error| {
            let problem = Problem::Unreadable(base.join(pattern), error);
            ImportError { place: Some(place.clone()), problem }
        })?;
        self.reading.descend(place)?;
        for path in paths {
            self.reading.read(&path, Some(place), all)?;
        }
        self.reading.depth -= 1;
        Ok(())
    }

    /// Returns the next token and its place; the place of the end, when there is none.
    fn token(&mut self) -> Result<(Option<Token>, Place), ImportError> {
        match self.lexer.next() {
            Ok(Some((token, line, column))) => Ok((Some(token), self.place((line, column)))),
            Ok(None) => Ok((None, self.place(self.lexer.place()))),
            Err(problem) => {
                let place = Some(self.place(self.lexer.place()));
                Err(ImportError { place, problem })
            }
        }
    }

    /// Returns a place in this file.
    fn place(&self, (line, column): (u32, u32)) -> Place {
        Place { file: Arc::clone(&self.file), line, column }
    }
}

/// Returns the error that something else should stand at a place; `None` is the end of the file.
fn expected(wanted: &str, found: Option<&Token>, place: Place) -> ImportError {
    let found = match found {
        Some(Token::Close) => "`}`",
        Some(_) => "`;`",
        None => "the end of the file",
    };
    let problem = Problem::Expected { wanted: wanted.to_owned(), found: found.to_owned() };
    ImportError { place: Some(place), problem }
}
