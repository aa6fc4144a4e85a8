//! `$ORIGIN`, `$TTL` (rfc2308#4), and which other directive a line is.

use super::problem::{DirectiveProblem, Snippet};
use super::{Entry, FileState, LocatedProblem, Reader};
use zonda_wire::name;
use zonda_wire::rdata::{Token, number};

impl Reader<'_> {
    /// Obeys the directive that the entry is.
    pub(super) fn read_directive(
        &mut self,
        entry: Entry<'_, '_>,
        file: &mut FileState,
    ) -> Result<(), LocatedProblem> {
        let Some(directive) = entry.tokens.first() else { return Ok(()) };
        let is = |name: &[u8]| directive.text.eq_ignore_ascii_case(name);
        if is(b"$ORIGIN") {
            set_origin(entry, file)
        } else if is(b"$TTL") {
            self.set_ttl(entry, file)
        } else if is(b"$INCLUDE") {
            self.include(entry, file)
        } else if is(b"$GENERATE") {
            self.generate(entry, file)
        } else {
            Err(LocatedProblem::new(directive.at, DirectiveProblem::Unknown))
        }
    }

    /// `$TTL time`: the TTL of records that give none.
    fn set_ttl(&mut self, entry: Entry<'_, '_>, file: &FileState) -> Result<(), LocatedProblem> {
        let time = argument(entry, 1, "a time such as 3600 or 1h")?;
        end(entry, 2)?;
        let secs = number::ttl(time.text).ok_or_else(|| {
            LocatedProblem::new(time.at, DirectiveProblem::Ttl(Snippet::new(time.text)))
        })?;
        self.ttl.default = Some(self.capped_ttl(secs, time.at, entry, file));
        Ok(())
    }
}

/// `$ORIGIN name`: what ends relative names.
fn set_origin(entry: Entry<'_, '_>, file: &mut FileState) -> Result<(), LocatedProblem> {
    let name = argument(entry, 1, "a domain name")?;
    end(entry, 2)?;
    file.origin = origin(name, &file.origin)?;
    file.owner_is_stale = !file.owner.is_empty();
    Ok(())
}

/// The name that a token gives as origin, itself relative to the one before.
pub(super) fn origin(token: Token<'_>, before: &[u8]) -> Result<Vec<u8>, LocatedProblem> {
    if token.text == b"@" {
        return Ok(before.to_vec());
    }
    let mut origin = Vec::new();
    name::parse_into(token.text, before, &mut origin)
        .map_err(|error| LocatedProblem::new(token.at, DirectiveProblem::Origin(error)))?;
    Ok(origin)
}

/// Argument number `index` of a directive, which is `what`.
pub(super) fn argument<'t>(
    entry: Entry<'_, 't>,
    index: usize,
    what: &'static str,
) -> Result<Token<'t>, LocatedProblem> {
    let missing =
        || LocatedProblem::new(entry.place_of(index), DirectiveProblem::MissingArgument(what));
    entry.tokens.get(index).copied().ok_or_else(missing)
}

/// Checks that no token stands at `index` or behind it.
pub(super) fn end(entry: Entry<'_, '_>, index: usize) -> Result<(), LocatedProblem> {
    match entry.tokens.get(index) {
        Some(token) => Err(LocatedProblem::new(token.at, DirectiveProblem::ExtraArgument)),
        None => Ok(()),
    }
}
