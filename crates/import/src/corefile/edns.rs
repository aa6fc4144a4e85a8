//! `rewrite edns0 …`: options of queries that upstreams get.

use super::Importer;
use super::lexer::Token;
use super::parser::Line;
use super::source::Kind;
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::ImportError;
use std::fmt::Write;

/// Codes that `zone.forward.options` refuses: the server sends these options itself.
const OWN_CODES: [u16; 5] = [0, 8, 10, 11, 12];
/// Octets of an option's data.
const DATA_BYTES_MAX: usize = 64;
/// Options of a query to an upstream.
const OPTIONS_MAX: usize = 8;

impl Importer<'_> {
    /// Reads `local ACTION CODE DATA`, `nsid ACTION` or `subnet ACTION BITS BITS`.
    pub(super) fn edns_rule(
        &mut self,
        line: &Line,
        words: &[&Token],
        goes_on: bool,
    ) -> Result<(), ImportError> {
        let (kind, action, rest) = match words {
            [kind, action, rest @ ..] => (kind, action.text.to_ascii_lowercase(), rest),
            _ => return Err(line.expected("`local`, `nsid` or `subnet`, and an action")),
        };
        if !matches!(action.as_str(), "set" | "append" | "replace" | "unset") {
            return Err(words[1].expected("`set`, `append`, `replace` or `unset`"));
        }
        let (is_reverted, rest) = match rest {
            [rest @ .., last] if last.text == "revert" => (true, rest),
            rest => (false, rest),
        };
        // Queries have no option of a client that could be there before.
        let is_for_all = matches!(action.as_str(), "set" | "append");
        match (kind.text.to_ascii_lowercase().as_str(), rest) {
            ("local" | "nsid" | "subnet", _) if action == "unset" => {
                let why = "upstreams are asked without the options of clients, whatever they are";
                self.leave(line, Needless, why);
            }
            ("local" | "nsid" | "subnet", _) if action == "replace" => {
                let why = "upstreams are asked without the options of clients, so that there is \
                    none to replace; `set` adds one";
                self.leave(line, Lost, why);
            }
            ("local", [code, data]) => {
                if !is_reverted && !data.text.starts_with('{') {
                    let why = "clients never get the option back, as if the line ended in `revert`";
                    self.leave(line, Differs, why);
                }
                self.local_option(line, code, data)?;
            }
            ("local", _) => return Err(line.expected("a code and data")),
            ("nsid", _) => {
                let why = "the identity of an upstream is not passed on to clients";
                self.leave(line, Lost, why);
            }
            ("subnet", _) => {
                let why = "the network of a client is not passed on to upstreams";
                self.leave(line, Lost, why);
            }
            _ => return Err(kind.expected("`local`, `nsid` or `subnet`")),
        }
        if is_for_all && !goes_on {
            self.current().last_rule = Some(line.place().clone());
        }
        Ok(())
    }

    /// Adds an option whose data are the same for each query.
    fn local_option(&mut self, line: &Line, code: &Token, data: &Token) -> Result<(), ImportError> {
        let digits = code.text.strip_prefix("0x");
        let number = match digits {
            Some(digits) => u16::from_str_radix(digits, 16),
            None => code.text.parse(),
        };
        let number = number.map_err(|_| code.expected("the code of an option"))?;
        let text = data.text.as_str();
        if text.starts_with('{') {
            let why = "upstreams are asked once for all clients, so that no option can say \
                anything of a client or its query";
            self.leave(line, Lost, why);
            return Ok(());
        }
        let octets = match text.strip_prefix("0x") {
            Some(digits) => octets(digits).ok_or_else(|| data.expected("pairs of digits"))?,
            None => text.as_bytes().to_vec(),
        };
        let is_full = self.current().options.len() == OPTIONS_MAX;
        if OWN_CODES.contains(&number) {
            self.leave(line, Lost, "the server sends this option itself, or never");
        } else if octets.len() > DATA_BYTES_MAX || is_full {
            let why = format!(
                "queries have at most {OPTIONS_MAX} options, each of {DATA_BYTES_MAX} octets"
            );
            self.leave(line, Lost, why);
        } else {
            let mut option = format!("{number} 0x");
            octets.iter().for_each(|octet| _ = write!(option, "{octet:02x}")); // never fails
            let (place, what) = (line.place().clone(), line.summary());
            if self.current().changes.iter().any(|it| it.section == "rewrite") {
                let why = "all queries of the block have it, also those that a rule above ends";
                self.leave(line, Differs, why);
            }
            self.current().options.push((option, place, what));
        }
        Ok(())
    }

    /// Reports options of blocks that ask no upstream.
    pub(super) fn check_options(&mut self) {
        let mut reports = Vec::new();
        for block in &self.blocks {
            if !block.sources.iter().any(|source| source.kind == Kind::Forward) {
                reports.extend(block.options.iter().map(|it| (it.1.clone(), it.2.clone())));
            }
        }
        for (place, what) in reports {
            self.leave_at(&place, Needless, what, "the block asks no upstream");
        }
    }
}

/// Returns the octets that pairs of hexadecimal digits stand for.
fn octets(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        digits.chars().map(|it| u8::try_from(it.to_digit(16)?).ok()).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    let is_even = pairs.remainder().is_empty();
    is_even.then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}
