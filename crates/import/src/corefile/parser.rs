//! Server blocks of a Corefile, with what they import.
//!
//! ```text
//! KEY[,] KEY … {            (NAME) {            import FILE | PATTERN | NAME [ARGUMENT …]
//!     PLUGIN ARGUMENT … {       a snippet
//!         LINE              }
//!     }
//! }
//! ```

use super::Environment;
use super::lexer::{Token, tokens};
use crate::document::{Effect, ReportLine};
use crate::error::{ImportError, Place, Problem};
use crate::tree::{fail, quoted};
use crate::{Files, pattern};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Imports of files and snippets, which one that imports itself would make endless.
const IMPORTS_MAX: usize = 1000;
/// Files that a pattern stands for.
const MATCHES_MAX: usize = 1000;
/// Octets of all files together.
const BYTES_MAX: usize = 4 << 20;
/// Tokens of all files and snippets together.
const TOKENS_MAX: usize = 200_000;
/// Blocks within each other.
const DEPTH_MAX: usize = 8;

/// Tells which files and blocks a parser may read, and what the environment holds.
pub struct Sources<'f> {
    /// The files that can be read.
    pub files: &'f mut dyn Files,
    /// The variables of the environment.
    pub environment: &'f Environment<'f>,
}

/// A server block: the names and ports that it is for, and its plugins.
#[derive(Debug)]
pub struct ServerBlock {
    /// Keys of the block, at least one.
    pub keys: Vec<Token>,
    /// Lines of the block, one for each plugin.
    pub lines: Vec<Line>,
}

/// A line and the block that it opens.
#[derive(Debug)]
pub struct Line {
    /// Words of the line, at least one.
    pub words: Vec<Token>,
    /// Lines of the block in braces; none without one.
    pub block: Vec<Line>,
}

/// Reads a Corefile and all that it imports; lines of the report tell what is empty in it.
///
/// # Errors
/// The first thing that is wrong.
pub fn read(
    path: &Path,
    sources: &mut Sources<'_>,
) -> Result<(Vec<ServerBlock>, Vec<ReportLine>), ImportError> {
    let file: Arc<Path> = path.into();
    let last = Place { file, line: 1, column: 1 };
    let mut parser = Parser {
        files: sources.files,
        environment: sources.environment,
        pending: Vec::new(),
        last,
        snippets: HashMap::new(),
        imports: 0,
        bytes: 0,
        token_count: 0,
        left: Vec::new(),
    };
    let tokens = parser.file(path, None)?;
    parser.push(tokens)?;
    let mut blocks = Vec::new();
    while parser.goes_on()? {
        blocks.extend(parser.block()?);
    }
    Ok((blocks, parser.left))
}

/// The tokens of a Corefile, being read.
struct Parser<'f> {
    files: &'f mut dyn Files,
    environment: &'f Environment<'f>,
    /// Tokens that are still to be read, the next one last.
    pending: Vec<Token>,
    /// Place of the token that was read last.
    last: Place,
    /// Places and tokens of the snippets by their names.
    snippets: HashMap<String, (Place, Vec<Token>)>,
    /// Imports so far.
    imports: usize,
    /// Octets of the files read so far.
    bytes: usize,
    /// Tokens read so far.
    token_count: usize,
    left: Vec<ReportLine>,
}

impl Parser<'_> {
    /// Whether there is another token, once an import that stands next is carried out.
    fn goes_on(&mut self) -> Result<bool, ImportError> {
        while let Some(token) = self.pending.pop_if(|it| it.starts_line && it.is("import")) {
            self.import(&token)?;
        }
        Ok(!self.pending.is_empty())
    }

    /// Whether the next token has this text.
    fn comes(&self, text: &str) -> bool {
        self.pending.last().is_some_and(|token| token.is(text))
    }

    /// Whether the next token stands on the present line.
    fn line_goes_on(&self) -> bool {
        self.pending.last().is_some_and(|token| !token.starts_line)
    }

    /// Returns the next token.
    fn next(&mut self) -> Option<Token> {
        let token = self.pending.pop()?;
        self.last = token.place.clone();
        Some(token)
    }

    /// Returns the next token with the variables in it replaced.
    fn word(&mut self) -> Option<Token> {
        let mut token = self.next()?;
        for (open, close) in [("{%", "%}"), ("{$", "}")] {
            self.replace_variables(&mut token, open, close);
        }
        self.replace_placeholder(&mut token);
        Some(token)
    }

    /// Replaces a placeholder of NodeLocal DNSCache, as its program does: by what the environment
    /// has of this name, or else by the address of the cluster's DNS or the system's upstreams.
    fn replace_placeholder(&self, token: &mut Token) {
        const MARK: &str = "__PILLAR__";
        let Some(start) = token.text.find(MARK) else { return };
        // Words are joined by two signs, and behind the last one stand two as well.
        let is_of_name = |c: char| c.is_ascii_uppercase() || c == '_';
        let rest = token.text.get(start..).unwrap_or_default();
        let name = &rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())];
        let value = (self.environment)(name).or_else(|| match name {
            "__PILLAR__CLUSTER__DNS__" => (self.environment)("KUBE_DNS_UPSTREAM_SERVICE_HOST"),
            "__PILLAR__UPSTREAM__SERVERS__" => Some("/etc/resolv.conf".to_owned()),
            _ => None,
        });
        if let Some(value) = value {
            token.text = token.text.replace(name, &value);
        }
    }

    /// Replaces variables between two marks; one that is not set is empty, and reported.
    fn replace_variables(&mut self, token: &mut Token, open: &str, close: &str) {
        let (mut text, mut rest) = (String::new(), token.text.as_str());
        while let Some((before, behind)) = rest.split_once(open) {
            let Some((name, behind)) = behind.split_once(close).filter(|it| !it.0.is_empty())
            else {
                break;
            };
            text.push_str(before);
            rest = behind;
            if let Some(value) = (self.environment)(name) {
                text.push_str(&value);
            } else {
                self.left.push(ReportLine {
                    place: token.place.clone(),
                    effect: Effect::Differs,
                    what: quoted(&token.text).trim_matches('`').to_owned(),
                    why: "the variable is not set: it stands for nothing".to_owned(),
                });
            }
        }
        text.push_str(rest);
        token.text = text;
    }

    /// Returns the error that the file ends too early.
    fn end_of_file(&self, wanted: &str) -> ImportError {
        let (wanted, found) = (wanted.to_owned(), "the end of the file".to_owned());
        fail(self.last.clone(), Problem::Expected { wanted, found })
    }

    /// Reads a server block; keeps a snippet for later.
    fn block(&mut self) -> Result<Option<ServerBlock>, ImportError> {
        let keys = self.keys()?;
        let is_open = self.comes("{");
        if let [key] = &keys[..]
            && let Some(name) = key.text.strip_prefix('(').and_then(|it| it.strip_suffix(')'))
        {
            self.snippet(name, key)?;
            return Ok(None);
        }
        if is_open {
            self.next();
            let lines = self.lines(1)?;
            return Ok((!keys.is_empty()).then_some(ServerBlock { keys, lines }));
        }
        let mut lines = Vec::new();
        while self.goes_on()? {
            if self.comes("}") {
                let brace = self.next().map(|it| it.expected("a plugin"));
                return Err(brace.unwrap_or_else(|| self.end_of_file("a plugin")));
            }
            lines.push(self.line(1)?);
        }
        Ok((!keys.is_empty()).then_some(ServerBlock { keys, lines }))
    }

    /// Reads the keys of a block; behind a comma, they go on in the next line.
    fn keys(&mut self) -> Result<Vec<Token>, ImportError> {
        let mut keys = Vec::new();
        loop {
            if !self.goes_on()? {
                return Err(self.end_of_file("the name of a zone"));
            }
            if self.comes("{") && !keys.is_empty() {
                return Ok(keys);
            }
            let Some(mut key) = self.word() else { continue };
            if key.is("{") || key.is("}") {
                return Err(key.expected("the name of a zone"));
            }
            let has_comma = key.text.ends_with(',');
            if has_comma {
                key.text.pop();
            }
            if !key.text.is_empty() {
                keys.push(key);
            }
            if has_comma && self.comes("{") {
                return Err(self.pending.pop().map_or_else(
                    || self.end_of_file("the name of a zone"),
                    |brace| brace.expected("the name of a zone behind the comma"),
                ));
            }
            if !has_comma && !self.line_goes_on() {
                return Ok(keys);
            }
        }
    }

    /// Reads the tokens of a snippet.
    fn snippet(&mut self, name: &str, key: &Token) -> Result<(), ImportError> {
        let open = self.next().ok_or_else(|| self.end_of_file("`{`"))?;
        if !open.is("{") {
            return Err(open.expected("`{`"));
        }
        let (mut tokens, mut depth) = (Vec::<Token>::new(), 1);
        loop {
            let token = self.next().ok_or_else(|| self.end_of_file("`}`"))?;
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            tokens.push(token);
        }
        if let Some(first) = tokens.first_mut() {
            first.starts_line = true;
        }
        let place = key.place.clone();
        if let Some((first, _)) = self.snippets.insert(name.to_owned(), (place.clone(), tokens)) {
            return Err(fail(
                place,
                Problem::Twice(format!("the snippet {}", quoted(name)), first),
            ));
        }
        Ok(())
    }

    /// Reads lines up to the brace that closes them.
    fn lines(&mut self, depth: usize) -> Result<Vec<Line>, ImportError> {
        if depth > DEPTH_MAX {
            let problem = Problem::TooMuch("blocks within each other", DEPTH_MAX);
            return Err(fail(self.last.clone(), problem));
        }
        let mut lines = Vec::new();
        loop {
            if !self.goes_on()? {
                return Err(self.end_of_file("`}`"));
            }
            if self.comes("}") {
                self.next();
                return Ok(lines);
            }
            lines.push(self.line(depth)?);
        }
    }

    /// Reads a line and the block that it opens.
    fn line(&mut self, depth: usize) -> Result<Line, ImportError> {
        let first = self.word().ok_or_else(|| self.end_of_file("a plugin"))?;
        if first.is("{") {
            return Err(first.expected("a plugin"));
        }
        let mut words = vec![first];
        while self.line_goes_on() && !self.comes("{") && !self.comes("}") {
            words.extend(self.word());
        }
        let mut block = Vec::new();
        if self.comes("{") {
            self.next();
            block = self.lines(depth + 1)?;
        }
        Ok(Line { words, block })
    }

    /// Puts what is imported in the place of an `import`.
    fn import(&mut self, import: &Token) -> Result<(), ImportError> {
        self.imports += 1;
        if self.imports > IMPORTS_MAX {
            return Err(fail(import.place.clone(), Problem::TooMuch("imports", IMPORTS_MAX)));
        }
        let mut arguments = Vec::new();
        while self.line_goes_on() && !self.comes("}") {
            arguments.extend(self.word());
        }
        let Some((what, arguments)) = arguments.split_first() else {
            return Err(import.expected("`import` with the path of a file or a snippet"));
        };
        if let Some((_, tokens)) = self.snippets.get(&what.text) {
            let tokens: Result<Vec<Token>, ImportError> =
                tokens.iter().map(|token| with_arguments(token, arguments)).collect();
            return self.push(tokens?);
        }
        if let Some(more) = arguments.first() {
            return Err(more.expected("the end of the line: arguments are for snippets"));
        }
        let mut tokens = Vec::new();
        for path in self.matches(what)? {
            tokens.extend(self.file(&path, Some(&what.place))?);
        }
        self.push(tokens)
    }

    /// Returns the files that a path or pattern stands for; none for a pattern without a match.
    fn matches(&mut self, what: &Token) -> Result<Vec<PathBuf>, ImportError> {
        let base = what.place.file.parent().unwrap_or(Path::new("")).to_owned();
        match pattern::expand(&base, &what.text, self.files, MATCHES_MAX) {
            Ok(paths) if paths.len() > MATCHES_MAX => {
                let problem = Problem::TooMuch("files of a pattern", MATCHES_MAX);
                Err(fail(what.place.clone(), problem))
            }
            Ok(paths) => Ok(paths),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.left.push(ReportLine {
                    place: what.place.clone(),
                    effect: Effect::Needless,
                    what: format!("import {}", quoted(&what.text).trim_matches('`')),
                    why: "no file matches the pattern".to_owned(),
                });
                Ok(Vec::new())
            }
            Err(error) => {
                let problem = Problem::Unreadable(base.join(&what.text), error);
                Err(fail(what.place.clone(), problem))
            }
        }
    }

    /// Returns the tokens of a file.
    fn file(&mut self, path: &Path, from: Option<&Place>) -> Result<Vec<Token>, ImportError> {
        let fail = |problem| ImportError { place: from.cloned(), problem };
        let octets = self.files.read(path);
        let octets = octets.map_err(|error| fail(Problem::Unreadable(path.to_owned(), error)))?;
        self.bytes += octets.len();
        if self.bytes > BYTES_MAX {
            return Err(fail(Problem::TooMuch("octets of configuration", BYTES_MAX)));
        }
        tokens(&path.into(), &String::from_utf8_lossy(&octets))
    }

    /// Puts tokens before those that are still to be read.
    fn push(&mut self, mut tokens: Vec<Token>) -> Result<(), ImportError> {
        self.token_count += tokens.len();
        if self.token_count > TOKENS_MAX {
            return Err(fail(self.last.clone(), Problem::TooMuch("words", TOKENS_MAX)));
        }
        if let Some(next) = self.pending.last_mut() {
            next.starts_line = true;
        }
        tokens.reverse();
        self.pending.append(&mut tokens);
        Ok(())
    }
}

/// Returns a token of a snippet with the arguments of its import in place of `{args[N]}`.
fn with_arguments(token: &Token, arguments: &[Token]) -> Result<Token, ImportError> {
    const MARK: &str = "{args[";
    let (mut text, mut rest) = (String::new(), token.text.as_str());
    while let Some((before, behind)) = rest.split_once(MARK) {
        let Some((number, behind)) = behind.split_once("]}") else { break };
        let argument = number.parse().ok().and_then(|number: usize| arguments.get(number));
        let Some(argument) = argument else {
            let count = arguments.len();
            return Err(token.expected(&format!("one of the {count} arguments of the import")));
        };
        text.push_str(before);
        text.push_str(&argument.text);
        rest = behind;
    }
    text.push_str(rest);
    Ok(Token { text, ..token.clone() })
}

impl Line {
    /// Returns the first word.
    pub fn name(&self) -> &str {
        self.words.first().map_or("", |word| &word.text)
    }

    /// Returns the words behind the first.
    pub fn arguments(&self) -> &[Token] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns the place of the first word.
    pub fn place(&self) -> &Place {
        &self.words[0].place // there is one at least
    }

    /// Returns the words for messages, cut short.
    pub fn summary(&self) -> String {
        /// Characters that are shown.
        const SHOWN: usize = 60;
        let words: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        let text = words.join(" ");
        let shown: String = text.chars().take(SHOWN).collect();
        let rest = if shown.len() < text.len() { "…" } else { "" };
        format!("{}{rest}", shown.escape_debug())
    }

    /// Returns the only argument.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn argument(&self, wanted: &str) -> Result<&Token, ImportError> {
        match self.arguments() {
            [argument] => Ok(argument),
            [] => Err(self.expected(wanted)),
            [_, more, ..] => Err(more.expected("the end of the line")),
        }
    }

    /// Returns the error that something is missing at the end of the line.
    pub fn expected(&self, wanted: &str) -> ImportError {
        let (wanted, found) = (wanted.to_owned(), "the end of the line".to_owned());
        fail(self.place().clone(), Problem::Expected { wanted, found })
    }
}
