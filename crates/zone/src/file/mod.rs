//! Master files (rfc1035#5), as operators write them.
//!
//! ```text
//! file ─ source ─► window of text ─ lexer ─► tokens of an entry ─┬─ record ────► Records
//!                                                                ├─ directive ─► other files
//!                                                                └─ generate ──► text ─ lexer …
//! ```
//! Reading goes on behind an error, so that one run shows them all.
//!
//! Deliberately absent: whether records fit together or belong to the zone; checks judge that.

mod directive;
mod generate;
mod include;
mod lexer;
mod problem;
mod record;
mod source;

pub use problem::{DirectiveProblem, FileProblem, Snippet};

use crate::diagnostic::{Diagnostic, Diagnostics, Place, RecordName, Severity};
use crate::disk::{open, open_confined};
use crate::records::Records;
use include::Includes;
use lexer::{ENTRY_BYTES_MAX, Scanned, Shape};
use record::TtlRules;
use source::Source;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_wire::rdata::Token;
use zonda_wire::{Name, Type};

/// How often reading goes on behind a parenthesis that is never closed. Each time may mean to look
/// at the rest of an entry of the greatest length, so this keeps hostile files from taking hours.
const UNCLOSED_MAX: u32 = 100;

/// The byte order mark that some editors put before UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What a reader may do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files may be included from this directory and those below it, symbolic links followed.
    /// `None`: from the directory of the file that is read.
    pub root: Option<PathBuf>,
    /// Whether the file that is read must itself lie in its directory, symbolic links followed, or
    /// below `root`.
    pub is_confined: bool,
    /// Most records that one `$GENERATE` makes.
    pub generate_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { root: None, is_confined: false, generate_max: 1 << 20 }
    }
}

/// Reads a master file. Names without a final dot end at `origin` until the file says otherwise.
///
/// The records are all that could be read; when the diagnostics hold an error, some are missing.
#[must_use]
pub fn read(path: &Path, origin: &Name, options: &Options) -> (Records, Diagnostics) {
    let mut reader = Reader::new(Some(path), options);
    let mut file = FileState::new(path, origin.as_wire());
    let opened = match options.is_confined {
        true => open_confined(path, options.root.as_deref()),
        false => open(path),
    };
    match opened {
        Ok((opened, len)) => {
            reader.records = Records::with_capacity(capacity_for(len));
            reader.read_file(opened, len, &mut file);
        }
        Err(why) => reader.report_file(&file, FileProblem::Unreadable(why)),
    }
    (reader.records, reader.diagnostics)
}

/// Reads the text of a master file that messages call `name`. Files can be included only when the
/// options give a root.
#[must_use]
pub fn read_text(
    text: &[u8],
    name: &Path,
    origin: &Name,
    options: &Options,
) -> (Records, Diagnostics) {
    let mut reader = Reader::new(None, options);
    reader.read_file(text, text.len() as u64, &mut FileState::new(name, origin.as_wire()));
    (reader.records, reader.diagnostics)
}

/// Reads a master file whose text is here already, as [`read`] does; the caller has opened it where
/// the options allow. The records are read into the memory of `memory`.
#[must_use]
pub fn read_opened(
    text: &[u8],
    path: &Path,
    origin: &Name,
    options: &Options,
    memory: Records,
) -> (Records, Diagnostics) {
    let mut reader = Reader::new(Some(path), options);
    let mut file = FileState::new(path, origin.as_wire());
    reader.records = memory.recycled(capacity_for(text.len() as u64));
    reader.read_whole(text, &mut file);
    (reader.records, reader.diagnostics)
}

/// The state of reading a zone, from all its files together.
struct Reader<'o> {
    /// The file that reading began with; `None` for a text.
    top: Option<&'o Path>,
    options: &'o Options,
    records: Records,
    diagnostics: Diagnostics,
    /// Known from the first `$INCLUDE` on.
    includes: Option<Includes>,
    ttl: TtlRules,
    /// The data of the current record.
    rdata: Vec<u8>,
}

/// Where the reader stands in one file.
#[derive(Clone)]
struct FileState {
    path: Arc<Path>,
    /// The line of the current entry.
    line: u32,
    /// What ends relative names.
    origin: Vec<u8>,
    /// The owner of the last record; empty before the first.
    owner: Vec<u8>,
    /// Whether that owner was wrong: records that take it over are read, but not kept.
    owner_is_wrong: bool,
    /// Whether `$ORIGIN` changed since that owner was read.
    owner_is_stale: bool,
    /// How many parentheses were never closed.
    unclosed: u32,
    /// Whether the rest of a line is to be skipped.
    skips_line: bool,
}

impl FileState {
    /// The beginning of a file.
    fn new(path: &Path, origin: &[u8]) -> Self {
        Self {
            path: path.into(),
            line: 1,
            origin: origin.to_vec(),
            owner: Vec::new(),
            owner_is_wrong: false,
            owner_is_stale: false,
            unclosed: 0,
            skips_line: false,
        }
    }
}

/// An entry of a file, with the text that its places count in.
#[derive(Clone, Copy)]
struct Entry<'a, 't> {
    text: &'t [u8],
    /// Where in the text the entry begins.
    start: usize,
    indented: bool,
    tokens: &'a [Token<'t>],
}

/// A problem at a place of the text.
struct LocatedProblem {
    at: usize,
    problem: FileProblem,
    subject: Subject,
}

/// What of an entry is known when something is wrong with it.
#[derive(Clone, Copy)]
enum Subject {
    /// No name is known: the entry may be no record at all, and is not quoted.
    Text,
    /// The owner and the type of a record.
    Record(Type),
}

impl LocatedProblem {
    /// A problem of a text.
    fn new(at: usize, problem: impl Into<FileProblem>) -> Self {
        Self { at, problem: problem.into(), subject: Subject::Text }
    }
}

impl Entry<'_, '_> {
    /// Where token number `index` begins, or the last one ends if there are fewer.
    fn place_of(&self, index: usize) -> usize {
        match (self.tokens.get(index), self.tokens.last()) {
            (Some(token), _) => token.at,
            (None, Some(last)) => last.at + last.text.len() + 2 * usize::from(last.quoted),
            (None, None) => self.start,
        }
    }
}

impl<'o> Reader<'o> {
    /// A reader that has read nothing yet.
    fn new(top: Option<&'o Path>, options: &'o Options) -> Self {
        Self {
            top,
            options,
            records: Records::default(),
            diagnostics: Diagnostics::default(),
            includes: None,
            ttl: TtlRules::default(),
            rdata: Vec::new(),
        }
    }

    /// Reads a file of `len` octets, 0 if that is not known, to its end.
    fn read_file(&mut self, text: impl Read, len: u64, file: &mut FileState) {
        self.records.begin_file(&file.path);
        let mut source = Source::new(text, len);
        let mut is_first = true;
        loop {
            if let Err(error) = source.fill() {
                self.report_file(file, FileProblem::Unreadable(error.into()));
            }
            if is_first && source.text().starts_with(BYTE_ORDER_MARK) {
                source.consume(BYTE_ORDER_MARK.len());
            }
            is_first = false;
            let consumed = self.read_window(source.text(), source.is_last(), file);
            source.consume(consumed);
            if source.is_last() {
                return;
            }
        }
    }

    /// Reads a file whose text is here.
    fn read_whole(&mut self, text: &[u8], file: &mut FileState) {
        if text.len() > ENTRY_BYTES_MAX {
            return self.read_file(text, text.len() as u64, file); // an entry may be too long
        }
        self.records.begin_file(&file.path);
        self.read_window(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text), true, file);
    }

    /// Reads the entries of a window; returns how many octets they take.
    fn read_window(&mut self, text: &[u8], is_last: bool, file: &mut FileState) -> usize {
        let mut tokens = Vec::with_capacity(16);
        let mut start = if file.skips_line { self.skip_line(text, file) } else { 0 };
        while start < text.len() && file.unclosed <= UNCLOSED_MAX {
            match lexer::scan(text, start, is_last, &mut tokens) {
                Scanned::Entry(shape) => {
                    self.read_entry(text, start, &shape, &tokens, file);
                    start = shape.end;
                    file.line = file.line.saturating_add(shape.lines);
                }
                Scanned::Incomplete => return start,
                Scanned::Unclosed(open) => {
                    let wrong = LocatedProblem::new(open, FileProblem::UnclosedParenthesis);
                    self.report(file, text, start, wrong);
                    start = self.recover(text, start, file);
                }
                Scanned::TooLong => {
                    let problem = FileProblem::RecordTooLong(ENTRY_BYTES_MAX);
                    self.report(file, text, start, LocatedProblem::new(start, problem));
                    file.skips_line = true;
                    return start + self.skip_line(&text[start..], file);
                }
            }
        }
        text.len()
    }

    /// Skips to the next line; returns where it begins, or the end of the text if it does not.
    fn skip_line(&mut self, text: &[u8], file: &mut FileState) -> usize {
        let end = lexer::line_end(text, 0);
        if end == text.len() {
            return end;
        }
        file.skips_line = false;
        file.line = file.line.saturating_add(1);
        end + 1
    }

    /// Finds the line behind an entry without end on which a record seems to begin.
    fn recover(&mut self, text: &[u8], start: usize, file: &mut FileState) -> usize {
        file.unclosed += 1;
        if file.unclosed > UNCLOSED_MAX {
            self.report_file(file, FileProblem::TooManyUnclosed);
            return text.len();
        }
        let mut at = start;
        loop {
            let end = lexer::line_end(text, at);
            if end == text.len() {
                file.skips_line = at < end; // the line may go on behind the window
                return end;
            }
            at = end + 1;
            file.line = file.line.saturating_add(1);
            if record::seems_to_begin(&text[at..lexer::line_end(text, at)]) {
                return at;
            }
        }
    }

    /// Reads a directive or a record, or reports what keeps it from being one.
    fn read_entry(
        &mut self,
        text: &[u8],
        start: usize,
        shape: &Shape,
        tokens: &[Token<'_>],
        file: &mut FileState,
    ) {
        let Some(first) = tokens.first() else {
            if let Some((at, problem)) = &shape.fault {
                self.report(file, text, start, LocatedProblem::new(*at, problem.clone()));
            }
            return;
        };
        let entry = Entry { text, start, indented: shape.indented, tokens };
        let result = match &shape.fault {
            Some((at, problem)) => Err(LocatedProblem::new(*at, problem.clone())),
            None if !shape.indented && !first.quoted && first.text.starts_with(b"$") => {
                self.read_directive(entry, file)
            }
            None => self.read_record(entry, file),
        };
        if let Err(wrong) = result {
            self.report(file, text, start, wrong);
        }
    }

    /// Reports a problem of the entry that begins at `start`.
    fn report(&mut self, file: &FileState, text: &[u8], start: usize, wrong: LocatedProblem) {
        let before = text.get(start..wrong.at).unwrap_or_default();
        let lines = before.iter().filter(|&&octet| octet == b'\n').count();
        let line_start = before.iter().rposition(|&octet| octet == b'\n').map_or(0, |at| at + 1);
        let place = Place {
            file: file.path.clone(),
            line: file.line.saturating_add(lines as u32), // an entry has at most 2²⁰ octets
            column: (before.len() - line_start) as u32 + 1,
        };
        let owner = Name::from_wire(&file.owner).ok();
        let record = match wrong.subject {
            Subject::Text => None,
            Subject::Record(rtype) => owner.map(|owner| RecordName { owner, rtype: Some(rtype) }),
        };
        self.push(place, record, wrong.problem);
    }

    /// Reports a problem of a file as a whole.
    fn report_file(&mut self, file: &FileState, problem: FileProblem) {
        let place = Place { file: file.path.clone(), line: 0, column: 0 };
        self.push(place, None, problem);
    }

    /// Adds a diagnostic.
    fn push(&mut self, place: Place, record: Option<RecordName>, problem: FileProblem) {
        let severity = if problem.is_warning() { Severity::Warning } else { Severity::Error };
        self.diagnostics.push(Diagnostic { severity, place, record, problem: problem.into() });
    }
}

/// The octets of records to make room for before a file of that length is read. Zones need about as
/// many as their text has; room that stays unused costs no memory, but a copy of the whole does.
fn capacity_for(file_len: u64) -> usize {
    let len = usize::try_from(file_len).unwrap_or(0).min(1 << 30);
    len + len / 4
}
