//! The syntax of gdnsd's configuration: hashes, arrays and strings.
//!
//! ```text
//! key => value   # `=` does as well
//! key = { inner => [ a, "b c", \100 ] }, ; commas may be left out
//! $include{folder/*}
//! ```
//!
//! Included files are read in place. How deep hashes, arrays and files lie within each other, and
//! how much is read altogether, is bounded.

use crate::Files;
use crate::error::{ImportError, Place, Problem};
use crate::pattern::{expand, is_pattern};
use crate::tree::{Content, Node, fail};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Hashes, arrays and files that may lie within each other.
const DEPTH_MAX: usize = 64;
/// Files that are read.
const FILES_MAX: usize = 1000;
/// Octets that are read, all files together.
const BYTES_MAX: usize = 64 << 20;

/// Reads a file with those that it includes.
///
/// # Errors
/// The first thing that is wrong.
pub fn read(path: &Path, files: &mut dyn Files) -> Result<Node, ImportError> {
    FileSet { files, depth: 0, count: 0, bytes: 0 }.read(path, None)
}

/// The files of a configuration, being read.
struct FileSet<'r> {
    files: &'r mut dyn Files,
    /// Hashes, arrays and files that lie around what is being read.
    depth: usize,
    /// Files read so far.
    count: usize,
    /// Octets of the files read so far.
    bytes: usize,
}

impl FileSet<'_> {
    /// Reads a file, which is named at a place of another.
    fn read(&mut self, path: &Path, named: Option<&Place>) -> Result<Node, ImportError> {
        let wrong = |problem| ImportError { place: named.cloned(), problem };
        self.count += 1;
        if self.count > FILES_MAX {
            return Err(wrong(Problem::TooMuch("included files", FILES_MAX)));
        }
        let octets = self.files.read(path);
        let octets = octets.map_err(|error| wrong(Problem::Unreadable(path.to_owned(), error)))?;
        self.bytes += octets.len();
        if self.bytes > BYTES_MAX {
            return Err(wrong(Problem::TooMuch("octets of configuration", BYTES_MAX)));
        }
        let file: Arc<Path> = path.into();
        let start = Place { file: Arc::clone(&file), line: 1, column: 1 };
        self.descend(&start)?;
        let mut parser = Parser { set: self, file, rest: &octets, line: 1, column: 1 };
        parser.skip_blanks();
        let content = match parser.peek() {
            Some(b'[') => {
                let node = parser.value()?;
                parser.skip_blanks();
                if parser.peek().is_some() {
                    return Err(parser.expected("the end of the file"));
                }
                node.content
            }
            _ => Content::Map(parser.hash(None)?),
        };
        self.depth -= 1;
        Ok(Node { place: start, content })
    }

    /// Goes one hash, array or file deeper.
    fn descend(&mut self, place: &Place) -> Result<(), ImportError> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        let problem = Problem::TooMuch("hashes, arrays and files within each other", DEPTH_MAX);
        Err(fail(place.clone(), problem))
    }
}

/// Reads one file.
struct Parser<'p, 'r, 't> {
    set: &'p mut FileSet<'r>,
    file: Arc<Path>,
    /// Octets that are still to be read.
    rest: &'t [u8],
    line: u32,
    column: u32,
}

impl Parser<'_, '_, '_> {
    /// Returns the next octet.
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Passes octets.
    fn advance(&mut self, octets: usize) {
        let (passed, rest) = self.rest.split_at(octets.min(self.rest.len()));
        self.rest = rest;
        for octet in passed {
            match octet {
                b'\n' => (self.line, self.column) = (self.line + 1, 1),
                0x80..=0xbf => {} // behind the first of a character
                _ => self.column += 1,
            }
        }
    }

    /// Passes blanks and comments.
    fn skip_blanks(&mut self) {
        while let Some(octet) = self.peek() {
            match octet {
                b'#' | b';' => {
                    let end = self.rest.iter().position(|octet| *octet == b'\n');
                    self.advance(end.unwrap_or(self.rest.len()));
                }
                octet if octet.is_ascii_whitespace() => self.advance(1),
                _ => return,
            }
        }
    }

    /// Returns where the next octet stands.
    fn place(&self) -> Place {
        Place { file: Arc::clone(&self.file), line: self.line, column: self.column }
    }

    /// Returns the error that something else should stand here.
    fn expected(&self, wanted: &str) -> ImportError {
        let found = match self.peek() {
            None => "the end of the file".to_owned(),
            Some(octet) if octet.is_ascii_graphic() => format!("`{}`", char::from(octet)),
            Some(_) => "something else".to_owned(),
        };
        fail(self.place(), Problem::Expected { wanted: wanted.to_owned(), found })
    }

    /// Reads pairs up to the brace that ends the hash, whose beginning is at `open`, or to the end
    /// of the file.
    fn hash(&mut self, open: Option<&Place>) -> Result<Vec<(String, Place, Node)>, ImportError> {
        let mut pairs = Vec::new();
        let mut known = HashMap::new();
        loop {
            self.skip_blanks();
            match (self.peek(), open) {
                (None, None) => return Ok(pairs),
                (None, Some(open)) => return Err(fail(open.clone(), Problem::Open("hash"))),
                (Some(b'}'), Some(_)) => {
                    self.advance(1);
                    return Ok(pairs);
                }
                _ => {}
            }
            let new = match self.include()? {
                Some((path, place)) => self.merge(&path, &place)?,
                None => vec![self.pair()?],
            };
            for (key, place, node) in new {
                if let Some(first) = known.insert(key.clone(), place.clone()) {
                    let what = format!("`{}`", key.escape_debug());
                    return Err(fail(place, Problem::Twice(what, first)));
                }
                pairs.push((key, place, node));
            }
            self.skip_blanks();
            if self.peek() == Some(b',') {
                self.advance(1);
            }
        }
    }

    /// Reads a key and its value.
    fn pair(&mut self) -> Result<(String, Place, Node), ImportError> {
        let place = self.place();
        let key = self.string("a key")?;
        self.skip_blanks();
        if self.peek() != Some(b'=') {
            return Err(self.expected("`=>`"));
        }
        self.advance(1);
        if self.peek() == Some(b'>') {
            self.advance(1);
        }
        self.skip_blanks();
        Ok((key, place, self.value()?))
    }

    /// Reads a value.
    fn value(&mut self) -> Result<Node, ImportError> {
        let place = self.place();
        if let Some((path, at)) = self.include()? {
            let paths = self.paths(&path, &at)?;
            let [path] = &paths[..] else {
                let found = format!("{} files", paths.len());
                let wanted = "a single file".to_owned();
                return Err(fail(at, Problem::Expected { wanted, found }));
            };
            return self.set.read(path, Some(&at));
        }
        let content = match self.peek() {
            Some(b'{') => {
                self.set.descend(&place)?;
                self.advance(1);
                let pairs = self.hash(Some(&place))?;
                self.set.depth -= 1;
                Content::Map(pairs)
            }
            Some(b'[') => {
                self.set.descend(&place)?;
                self.advance(1);
                let nodes = self.array(&place)?;
                self.set.depth -= 1;
                Content::List(nodes)
            }
            _ => Content::Scalar(self.string("a value")?, false),
        };
        Ok(Node { place, content })
    }

    /// Reads values up to the bracket that ends the array, whose beginning is at `open`.
    fn array(&mut self, open: &Place) -> Result<Vec<Node>, ImportError> {
        let mut nodes = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(fail(open.clone(), Problem::Open("array"))),
                Some(b']') => {
                    self.advance(1);
                    return Ok(nodes);
                }
                Some(_) => nodes.push(self.value()?),
            }
            self.skip_blanks();
            if self.peek() == Some(b',') {
                self.advance(1);
            }
        }
    }

    /// Reads a string, in quotes or without.
    fn string(&mut self, wanted: &str) -> Result<String, ImportError> {
        let place = self.place();
        let is_quoted = self.peek() == Some(b'"');
        let mut octets = Vec::new();
        if is_quoted {
            self.advance(1);
        } else if self.peek() == Some(b'$') {
            return Err(self.expected(wanted));
        }
        loop {
            match self.peek() {
                None if is_quoted => return Err(fail(place, Problem::Open("string"))),
                Some(b'"') if is_quoted => {
                    self.advance(1);
                    break;
                }
                Some(b'\\') => octets.push(self.escape()?),
                Some(octet) if is_quoted || is_bare(octet) => {
                    octets.push(octet);
                    self.advance(1);
                }
                _ if octets.is_empty() => return Err(self.expected(wanted)),
                _ => break,
            }
        }
        String::from_utf8(octets).map_err(|_| fail(place, Problem::NotText))
    }

    /// Reads a backslash and what it is for.
    fn escape(&mut self) -> Result<u8, ImportError> {
        let place = self.place();
        let mut rest = &self.rest[1..];
        let octet = zonda_wire::name::unescape(&mut rest).map_err(|_| {
            let wanted = "a character or three digits (000-255) after the backslash".to_owned();
            fail(place, Problem::Expected { wanted, found: "something else".to_owned() })
        })?;
        self.advance(self.rest.len() - rest.len());
        Ok(octet)
    }

    /// Reads `$include{path}`, if that comes next; returns the path and its place.
    fn include(&mut self) -> Result<Option<(String, Place)>, ImportError> {
        const WORD: &[u8] = b"$include{";
        if !self.rest.starts_with(WORD) {
            return Ok(None);
        }
        let place = self.place();
        self.advance(WORD.len());
        self.skip_blanks();
        let path = self.string("a path")?;
        self.skip_blanks();
        if self.peek() != Some(b'}') {
            return Err(self.expected("`}`"));
        }
        self.advance(1);
        Ok(Some((path, place)))
    }

    /// Returns the pairs of included files.
    fn merge(
        &mut self,
        path: &str,
        place: &Place,
    ) -> Result<Vec<(String, Place, Node)>, ImportError> {
        let mut all = Vec::new();
        for path in self.paths(path, place)? {
            match self.set.read(&path, Some(place))?.content {
                Content::Map(pairs) => all.extend(pairs),
                _ => {
                    let wanted = "a file that holds keys".to_owned();
                    let found = "an array".to_owned();
                    return Err(fail(place.clone(), Problem::Expected { wanted, found }));
                }
            }
        }
        Ok(all)
    }

    /// Returns the files that a path stands for: itself, those of a pattern, or all of a folder.
    fn paths(&mut self, path: &str, place: &Place) -> Result<Vec<PathBuf>, ImportError> {
        let base = self.file.parent().unwrap_or(Path::new("")).to_owned();
        if !is_pattern(path)
            && let Ok(mut names) = self.set.files.list(&base.join(path))
        {
            names.retain(|name| !name.starts_with('.'));
            names.sort();
            return Ok(names.into_iter().map(|name| base.join(path).join(name)).collect());
        }
        expand(&base, path, self.set.files, FILES_MAX)
            .map_err(|error| fail(place.clone(), Problem::Unreadable(base.join(path), error)))
    }
}

/// Whether an octet stands for itself in a string without quotes.
fn is_bare(octet: u8) -> bool {
    !octet.is_ascii_whitespace() && !b"][}{;#,\"=\\".contains(&octet)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::Memory;

    /// A tree in one line.
    fn text(node: &Node) -> String {
        match &node.content {
            Content::Scalar(text, _) => text.clone(),
            Content::List(nodes) => {
                format!("[{}]", nodes.iter().map(text).collect::<Vec<_>>().join(" "))
            }
            Content::Map(pairs) => {
                let pair = |(key, _, node): &(String, Place, Node)| format!("{key}:{}", text(node));
                format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn parse(files: &[(&str, &str)]) -> Result<String, String> {
        let node = read(Path::new("/g/config"), &mut Memory(files));
        node.map(|node| text(&node)).map_err(|error| error.to_string())
    }

    #[test]
    fn commas_arrows_and_blanks_may_be_left_out() {
        for config in [
            "options = { listen = [ 192.0.2.1, 192.0.2.2 ], }\n",
            "\"options\" => { listen => [ 192.0.2.1 192.0.2.2 ] }",
            "options={listen=[192.0.2.1 192.0.2.2]}; done",
        ] {
            let expected = "{options:{listen:[192.0.2.1 192.0.2.2]}}";
            assert_eq!(parse(&[("/g/config", config)]).unwrap(), expected);
        }
    }

    #[test]
    fn a_string_is_the_same_with_and_without_quotes() {
        for word in ["braces\\{in\\}", "\"braces{in}\"", "braces\\123in\\125"] {
            assert_eq!(parse(&[("/g/config", &format!("a => {word}"))]).unwrap(), "{a:braces{in}}");
        }
    }

    #[test]
    fn files_are_included_as_values_and_as_more_keys() {
        let files = [
            ("/g/config", "a => $include{one} b => { c => d, $include{ \"more\" } $include{x*} }"),
            ("/g/one", "[ 1 2 ]"),
            ("/g/more/e", "e => 3"),
            ("/g/more/f", "f => {}"),
            ("/g/xy", "g => 4"),
        ];
        assert_eq!(parse(&files).unwrap(), "{a:[1 2] b:{c:d e:3 f:{} g:4}}");
    }

    #[test]
    fn a_mistake_is_told_where_it_is() {
        for (config, expected) in [
            ("a => {\n b => c", "/g/config:1:6: the hash that begins here does not end"),
            ("a => [", "/g/config:1:6: the array that begins here does not end"),
            ("a => \"b", "/g/config:1:6: the string that begins here does not end"),
            ("a b", "/g/config:1:3: expected `=>`, found `b`"),
            ("a => 1\na => 2", "/g/config:2:1: `a` is given already, at /g/config:1"),
            ("a => }", "/g/config:1:6: expected a value, found `}`"),
            ("}", "/g/config:1:1: expected a key, found `}`"),
            ("a => \\400", "/g/config:1:6: expected a character or three digits"),
            ("$include{none*}", "/g/config:1:1: /g/none*: entity not found"),
        ] {
            let error = parse(&[("/g/config", config)]).unwrap_err();
            assert!(error.starts_with(expected), "{config}: {error}");
        }
        let error = parse(&[("/g/config", "$include{config}")]).unwrap_err();
        assert!(error.contains("within each other: at most 64"), "{error}");
    }
}
