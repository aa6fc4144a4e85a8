//! `rewrite edns0 …`: options of queries that upstreams get.

use super::Importer;
use super::change::BlockChange;
use super::lexer::Token;
use super::parser::Line;
use super::source::Kind;
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::{ImportError, Place};
use std::fmt::Write;

/// Codes that `zone.forward.options` refuses: the server sends these options itself.
const OWN_CODES: [u16; 5] = [0, CLIENT_SUBNET, 10, 11, 12];
/// The code of the name server identifier (rfc5001).
const NSID: u16 = 3;
/// The code of the client's network (rfc7871).
const CLIENT_SUBNET: u16 = 8;
/// Octets of an option's data.
const DATA_BYTES_MAX: usize = 64;
/// Options of a query to an upstream, and their codes that depend on the options of clients.
const OPTIONS_MAX: usize = 8;

/// An option of queries to the upstreams of a block.
#[derive(Clone, Debug)]
pub(super) struct QueryOption {
    code: u16,
    /// The data, as `zone.forward.options` has them.
    data: String,
    /// Whether the option is there only if the client's query has one of the code.
    if_present: bool,
    /// The line that sets the option.
    pub place: Place,
    /// The words of the line.
    what: String,
}

impl QueryOption {
    /// The option as `zone.forward.options` has it.
    pub(super) fn text(&self) -> String {
        let end = if self.if_present { " if-present" } else { "" };
        format!("{} {}{end}", self.code, self.data)
    }
}

/// What a rule does with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Changes the option that is there, or adds one.
    Set,
    /// Adds an option, constant data also beside one that is there.
    Append,
    /// Changes the option that is there.
    Replace,
    /// Takes all options of the code out.
    Unset,
}

impl Importer<'_> {
    /// Reads `local ACTION CODE DATA`, `nsid ACTION` or `subnet ACTION BITS BITS`.
    pub(super) fn edns_rule(
        &mut self,
        line: &Line,
        words: &[&Token],
        goes_on: bool,
    ) -> Result<(), ImportError> {
        let [kind, action, rest @ ..] = words else {
            return Err(line.expected("`local`, `nsid` or `subnet`, and an action"));
        };
        let action = match action.text.to_ascii_lowercase().as_str() {
            "set" => Action::Set,
            "append" => Action::Append,
            "replace" => Action::Replace,
            "unset" => Action::Unset,
            _ => return Err(action.expected("`set`, `append`, `replace` or `unset`")),
        };
        let (is_reverted, rest) = match rest {
            [rest @ .., last] if last.text == "revert" && action != Action::Unset => (true, rest),
            rest => (false, rest),
        };
        let read = match (kind.text.to_ascii_lowercase().as_str(), rest) {
            ("local", [code]) if action == Action::Unset => Some((code_of(code)?, String::new())),
            ("nsid", []) => Some((NSID, "0x".to_owned())),
            ("subnet", []) if action == Action::Unset => Some((CLIENT_SUBNET, String::new())),
            ("local", [code, data]) if action != Action::Unset => {
                self.local_option(line, code, data)?
            }
            ("subnet", [of_v4, of_v6]) if action != Action::Unset => {
                let (of_v4, of_v6) = (bits(of_v4, 32)?, bits(of_v6, 128)?);
                Some((CLIENT_SUBNET, format!("{{client-subnet {of_v4} {of_v6}}}")))
            }
            ("local", _) => return Err(line.expected("a code and data")),
            ("nsid", _) => return Err(line.expected("nothing behind `nsid` and its action")),
            ("subnet", _) => return Err(line.expected("the bits of IPv4 and of IPv6 addresses")),
            _ => return Err(kind.expected("`local`, `nsid` or `subnet`")),
        };
        // CoreDNS ignores a rule whose variable it cannot read, and goes on to the next one.
        let is_of_wildcard = matches!(rest, [_, data] if data.is("{server_ip}"))
            && self.current().addresses.is_empty();
        if is_of_wildcard {
            let why = "at an address that stands for all of the machine, the option is left out, \
                where CoreDNS knows the real one over TCP alone";
            self.leave(line, Differs, why);
        }
        let is_ignored = is_of_wildcard || matches!(rest, [_, data] if is_of_plugin(&data.text));
        let is_appended = match read {
            Some((code, _)) if action == Action::Unset => {
                self.unset_option(line, code);
                false
            }
            Some((code, data)) => {
                if !is_reverted {
                    let why = "clients never get the option back, as if the line ended in `revert`";
                    self.leave(line, Differs, why);
                }
                let has_variable = data.starts_with('{');
                self.add_option(line, action, (code, data));
                // CoreDNS leaves one that the client's query has as it is, and meets the next rule
                // for it; few queries of clients have any.
                action == Action::Append && has_variable
            }
            None => false,
        };
        if is_appended {
            let why = "for a query that has the option, CoreDNS passes that on and meets the next \
                rule: here upstreams get this one for all, and no other rule is met";
            self.leave(line, Differs, why);
        }
        match goes_on {
            true => {}
            false if action == Action::Replace || is_ignored => {
                self.current().replacing_rule = Some((line.place().clone(), line.summary()));
            }
            false => self.current().last_rule = Some(line.place().clone()),
        }
        Ok(())
    }

    /// Reads the code and the data of an option; none if it is lost, which is told.
    fn local_option(
        &mut self,
        line: &Line,
        code: &Token,
        data: &Token,
    ) -> Result<Option<(u16, String)>, ImportError> {
        let number = code_of(code)?;
        let text = data.text.as_str();
        let variable = match text {
            "{qname}" => "{name}",
            "{qtype}" => "{type}",
            "{client_ip}" => "{client-address}",
            "{client_port}" => "{client-port}",
            "{protocol}" => "{transport}",
            "{server_ip}" => "{server-address}",
            "{server_port}" => "{server-port}",
            _ if is_of_plugin(text) => {
                let why = "what other plugins know of a query is not told to upstreams";
                self.leave(line, Lost, why);
                return Ok(None);
            }
            _ if text.starts_with('{') && text.ends_with('}') => {
                return Err(data.expected("a variable such as `{client_ip}`"));
            }
            _ => "",
        };
        let octets = match text.strip_prefix("0x") {
            _ if !variable.is_empty() => Vec::new(),
            Some(digits) => octets(digits).ok_or_else(|| data.expected("pairs of digits"))?,
            None => text.as_bytes().to_vec(),
        };
        if OWN_CODES.contains(&number) {
            self.leave(line, Lost, "the server sends this option itself, or never");
            return Ok(None);
        }
        if octets.len() > DATA_BYTES_MAX {
            let why = format!("options have at most {DATA_BYTES_MAX} octets of data");
            self.leave(line, Lost, why);
            return Ok(None);
        }
        if !variable.is_empty() {
            return Ok(Some((number, variable.to_owned())));
        }
        let mut data = "0x".to_owned();
        octets.iter().for_each(|octet| _ = write!(data, "{octet:02x}")); // never fails
        Ok(Some((number, data)))
    }

    /// Adds an option to the queries of the block's upstreams, or changes the one that they have.
    fn add_option(&mut self, line: &Line, action: Action, (code, data): (u16, String)) {
        let if_present = action == Action::Replace;
        let block = self.current();
        let known = block.options.iter_mut().find(|option| option.code == code);
        match known {
            // What a rule above has added is there for the ones below.
            Some(known) if action != Action::Append => {
                (known.data, known.if_present) = (data, known.if_present && if_present);
                return;
            }
            Some(known) if action == Action::Append && data.starts_with('{') => {
                if known.if_present {
                    let why = "a rule above replaces the option, beside which this adds no other";
                    self.leave(line, Lost, why);
                } else {
                    self.leave(line, Needless, "a rule above has added the option");
                }
                return;
            }
            None if if_present && block.unset_options.contains(&code) => {
                let why = "a rule above takes the option out of all queries";
                return self.leave(line, Needless, why);
            }
            _ => {}
        }
        if block.options.len() == OPTIONS_MAX {
            let why = format!("queries have at most {OPTIONS_MAX} options");
            return self.leave(line, Lost, why);
        }
        if block.changes.iter().any(|it| it.section == "rewrite") {
            let why = "all queries of the block have it, also those that a rule above ends";
            self.leave(line, Differs, why);
        }
        if if_present && !self.has_room_for(code) {
            let why = format!("at most {OPTIONS_MAX} codes of clients' options are replaced");
            return self.leave(line, Lost, why);
        }
        let (place, what) = (line.place().clone(), line.summary());
        self.current().options.push(QueryOption { code, data, if_present, place, what });
    }

    /// Takes an option out that rules above have added.
    fn unset_option(&mut self, line: &Line, code: u16) {
        self.current().unset_options.push(code);
        let options = &mut self.current().options;
        let had = options.len();
        options.retain(|option| option.code != code);
        if options.len() == had {
            let why = "upstreams are asked without the options of clients, whatever they are";
            self.leave(line, Needless, why);
        }
    }

    /// Whether options of one more code can depend on those of clients.
    fn has_room_for(&self, code: u16) -> bool {
        let options = self.blocks.iter().flat_map(|block| &block.options);
        let mut codes: Vec<u16> = options.filter(|it| it.if_present).map(|it| it.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes.contains(&code) || codes.len() < OPTIONS_MAX
    }

    /// Reports options of blocks that ask no upstream, and those that tell of another question than
    /// in CoreDNS.
    pub(super) fn check_options(&mut self) {
        let mut reports = Vec::new();
        for block in &self.blocks {
            let is_of_question = |it: &&QueryOption| ["{name}", "{type}"].contains(&&*it.data);
            if block.changes.iter().any(BlockChange::changes_question) {
                let why = "the name and the type are those that the upstream is asked for, behind \
                    all rules";
                let of_question = block.options.iter().filter(is_of_question);
                reports.extend(of_question.map(|it| (it.clone(), Differs, why)));
            }
            if !block.sources.iter().any(|source| source.kind == Kind::Forward) {
                let why = "the block asks no upstream";
                reports.extend(block.options.iter().map(|it| (it.clone(), Needless, why)));
            }
        }
        for (option, effect, why) in reports {
            self.leave_at(&option.place, effect, option.what, why);
        }
    }
}

/// Whether the data of an option are what another plugin knows of a query.
fn is_of_plugin(data: &str) -> bool {
    data.starts_with('{') && data.ends_with('}') && data.contains('/')
}

/// Reads the code of an option.
fn code_of(code: &Token) -> Result<u16, ImportError> {
    let number = match code.text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => code.text.parse(),
    };
    number.map_err(|_| code.expected("the code of an option"))
}

/// Reads how many bits of an address are told.
fn bits(token: &Token, most: u8) -> Result<u8, ImportError> {
    let number = token.text.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| token.expected(&format!("a number up to {most}")))
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
