//! Records: `[owner] [TTL] [class] type data`, TTL and class in any order (rfc1035#5.1).

use super::problem::{FileProblem, Snippet};
use super::{Entry, FileState, LocatedProblem, Reader, Subject};
use crate::records::Record;
use zonda_wire::rdata::{self, number};
use zonda_wire::{Class, Type, name};

/// The greatest TTL (rfc2181#8).
const TTL_MAX: u32 = i32::MAX as u32;

/// Which TTL a record has that gives none (rfc2308#4).
#[derive(Default)]
pub(super) struct TtlRules {
    /// The TTL of `$TTL`, or else the minimum of the SOA.
    pub(super) default: Option<u32>,
    /// The last TTL that a record gave.
    last: Option<u32>,
    /// Whether a warning has said that `last` was taken.
    warned: bool,
}

/// What stands before the data.
struct Head {
    ttl: Option<u32>,
    rtype: Type,
    /// Index of the first token of the data.
    data_at: usize,
}

impl Reader<'_> {
    /// Reads a record and keeps it.
    pub(super) fn read_record(
        &mut self,
        entry: Entry<'_, '_>,
        file: &mut FileState,
    ) -> Result<(), LocatedProblem> {
        let head_at = if entry.indented {
            self.take_over_owner(entry, file)?;
            0
        } else {
            read_owner(entry, file)?;
            1
        };
        let head = self.read_head(entry, head_at, file)?;
        let of_type =
            |at, problem| LocatedProblem { at, problem, subject: Subject::Record(head.rtype) };
        if head.rtype.is_meta() || head.rtype == Type(0) {
            let at = entry.place_of(head.data_at - 1);
            return Err(of_type(at, FileProblem::MetaType(head.rtype)));
        }

        self.rdata.clear();
        let data = &entry.tokens[head.data_at..];
        rdata::parse(head.rtype, data, &file.origin, &mut self.rdata).map_err(|error| {
            let found = data.get(error.token).map(|token| token.text).unwrap_or_default();
            let at = entry.place_of(head.data_at + error.token);
            of_type(at, FileProblem::Data(error, Snippet::new(found)))
        })?;
        let ttl = match head.ttl {
            Some(ttl) => ttl,
            None => self.implied_ttl(head.rtype, entry, file)?,
        };
        if file.owner_is_wrong {
            return Ok(());
        }
        let record = Record { owner: &file.owner, rtype: head.rtype, ttl, rdata: &self.rdata };
        let stored = self.records.push(record, file.line);
        stored.map_err(|_| of_type(entry.start, FileProblem::TooManyRecords))
    }

    /// The record belongs to the owner of the last one.
    fn take_over_owner(
        &mut self,
        entry: Entry<'_, '_>,
        file: &mut FileState,
    ) -> Result<(), LocatedProblem> {
        if file.owner.is_empty() && !file.owner_is_wrong {
            file.owner_is_wrong = true; // said once, and not for each record that follows
            return Err(LocatedProblem::new(entry.place_of(0), FileProblem::NoOwner));
        }
        if file.owner_is_stale {
            file.owner_is_stale = false;
            let warning = LocatedProblem::new(entry.place_of(0), FileProblem::OwnerBeforeOrigin);
            self.report(file, entry.text, entry.start, warning);
        }
        Ok(())
    }

    /// Reads TTL, class and type. Until there is a type, the line may be of a file that is no zone
    /// and holds a secret, so nothing that is wrong quotes it.
    fn read_head(
        &mut self,
        entry: Entry<'_, '_>,
        from: usize,
        file: &FileState,
    ) -> Result<Head, LocatedProblem> {
        let (mut ttl, mut has_class) = (None, false);
        for (index, token) in entry.tokens.iter().enumerate().skip(from) {
            let unknown = || LocatedProblem::new(token.at, unknown_type(entry, token.text));
            if token.quoted {
                return Err(unknown());
            }
            match token.text {
                b"IN" if !has_class => has_class = true,
                [b'0'..=b'9', ..] if ttl.is_none() => {
                    let secs = number::ttl(token.text).ok_or_else(unknown)?;
                    ttl = Some(self.explicit_ttl(secs, token.at, entry, file));
                }
                text => match Type::from_text(text) {
                    Some(rtype) => return Ok(Head { ttl, rtype, data_at: index + 1 }),
                    None => match class(text) {
                        Some(Class::IN) if !has_class => has_class = true,
                        Some(Class::IN) | None => return Err(unknown()),
                        Some(other) => {
                            return Err(LocatedProblem::new(
                                token.at,
                                FileProblem::WrongClass(other),
                            ));
                        }
                    },
                },
            }
        }
        Err(LocatedProblem::new(entry.place_of(entry.tokens.len()), FileProblem::NoType))
    }

    /// Reads a TTL that a record gives.
    fn explicit_ttl(
        &mut self,
        secs: u32,
        at: usize,
        entry: Entry<'_, '_>,
        file: &FileState,
    ) -> u32 {
        let ttl = self.capped_ttl(secs, at, entry, file);
        self.ttl.last = Some(ttl);
        ttl
    }

    /// Seconds above the greatest TTL count as 0 (rfc2181#8).
    pub(super) fn capped_ttl(
        &mut self,
        secs: u32,
        at: usize,
        entry: Entry<'_, '_>,
        file: &FileState,
    ) -> u32 {
        if secs <= TTL_MAX {
            return secs;
        }
        self.report(
            file,
            entry.text,
            entry.start,
            LocatedProblem::new(at, FileProblem::TtlTooHigh),
        );
        0
    }

    /// The TTL of a record that gives none; `rdata` holds the record's data.
    fn implied_ttl(
        &mut self,
        rtype: Type,
        entry: Entry<'_, '_>,
        file: &FileState,
    ) -> Result<u32, LocatedProblem> {
        if let Some(default) = self.ttl.default {
            return Ok(default);
        }
        let wrong = |problem| LocatedProblem {
            at: entry.place_of(0),
            problem,
            subject: Subject::Record(rtype),
        };
        if let Some(last) = self.ttl.last {
            if !self.ttl.warned {
                self.ttl.warned = true;
                let warning = wrong(FileProblem::TtlOfRecordBefore);
                self.report(file, entry.text, entry.start, warning);
            }
            return Ok(last);
        }
        match self.rdata.last_chunk() {
            Some(minimum) if rtype == Type::SOA => {
                let minimum = u32::from_be_bytes(*minimum).min(TTL_MAX);
                self.ttl.default = Some(minimum);
                self.report(file, entry.text, entry.start, wrong(FileProblem::TtlOfSoa));
                Ok(minimum)
            }
            _ => Err(wrong(FileProblem::NoTtl)),
        }
    }
}

/// Reads the owner name that the entry begins with.
fn read_owner(entry: Entry<'_, '_>, file: &mut FileState) -> Result<(), LocatedProblem> {
    let Some(token) = entry.tokens.first() else { return Ok(()) };
    let parsed = if token.quoted {
        Err(FileProblem::QuotedOwner)
    } else {
        file.owner.clear();
        if token.text == b"@" {
            file.owner.extend_from_slice(&file.origin);
            Ok(())
        } else {
            name::parse_into(token.text, &file.origin, &mut file.owner).map_err(FileProblem::Owner)
        }
    };
    file.owner_is_stale = false;
    file.owner_is_wrong = parsed.is_err();
    parsed.map_err(|problem| {
        file.owner.clear();
        LocatedProblem::new(token.at, problem)
    })
}

/// The class of that name.
fn class(text: &[u8]) -> Option<Class> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// What to say of a word that should be a type.
fn unknown_type(entry: Entry<'_, '_>, text: &[u8]) -> FileProblem {
    if entry.indented && text.starts_with(b"$") {
        FileProblem::IndentedDirective
    } else {
        FileProblem::UnknownType
    }
}

/// Whether a line looks like the beginning of a record or a directive: something in the first
/// column, and a type among the words behind it.
pub(super) fn seems_to_begin(line: &[u8]) -> bool {
    match line.first() {
        None | Some(b' ' | b'\t' | b'\r' | b';' | b'(' | b')' | b'"') => return false,
        Some(b'$') => return true,
        Some(_) => {}
    }
    let words = line.split(|octet| octet.is_ascii_whitespace()).filter(|word| !word.is_empty());
    words.skip(1).take(3).any(|word| Type::from_text(word).is_some())
}
