//! `rewrite …` and `header { … }`: questions and replies that are changed.

use super::Importer;
use super::acl::REWRITTEN;
use super::change::{BlockChange, Target};
use super::lexer::Token;
use super::parser::Line;
use crate::document::Effect::{Differs, Lost, Needless};
use crate::document::Value;
use crate::error::ImportError;
use zonda_rewrite::{MatchKind, NameMatch, Replacement, RewriteRule, RewriteRules};
use zonda_wire::query::flag;
use zonda_wire::{Class, Name, Rcode, Type};

/// The greatest TTL that a range without an end has.
const TTL_MAX: u32 = i32::MAX as u32;
/// Words for the kinds of comparison.
const KINDS: [(&str, MatchKind); 5] = [
    ("exact", MatchKind::Exact),
    ("prefix", MatchKind::Prefix),
    ("suffix", MatchKind::Suffix),
    ("substring", MatchKind::Substring),
    ("regex", MatchKind::Regex),
];
/// Flags of replies that have names.
const FLAGS: [(&str, u16); 3] = [("AA", flag::AA), ("RA", flag::RA), ("RD", flag::RD)];

impl Importer<'_> {
    /// Reads `rewrite [stop | continue] …`, on one line or in a block.
    pub(super) fn rewrite(&mut self, line: &Line) -> Result<(), ImportError> {
        let mut words: Vec<&Token> = line.arguments().iter().collect();
        match words.len() {
            0 | 1 => words.extend(line.block.iter().flat_map(|it| &it.words)),
            _ => line.without_block()?,
        }
        let (mut rule, mut words) = (RewriteRule::new(), &words[..]);
        if let [first, rest @ ..] = words
            && let Some(goes_on) = mode(first)
        {
            (rule.goes_on, words) = (goes_on, rest);
        }
        let [kind, words @ ..] = words else { return Err(line.expected("`name` or `ttl`")) };
        if let Some(last) = self.current().last_rule.clone() {
            let why = format!("no query reaches it: {last} is for all, and has no `continue`");
            self.leave(line, Needless, why);
            return Ok(());
        }
        if let Some((place, what)) = self.current().replacing_rule.take() {
            let why = "queries whose option it replaces go on to the rules below";
            self.leave_at(&place, Differs, what, why);
        }
        match kind.text.to_ascii_lowercase().as_str() {
            "name" => name_rule(line, words, &mut rule)?,
            "type" => {
                let [from, to] = words else { return Err(line.expected("two types")) };
                (rule.qtype, rule.to_type) = (Some(code(from)?), Some(code(to)?));
                if self.current().access.iter().any(|it| it.rule.contains(" type ")) {
                    self.leave(line, Lost, REWRITTEN);
                    return Ok(());
                }
            }
            "class" => {
                let [from, to] = words else { return Err(line.expected("two classes")) };
                (rule.qclass, rule.to_class) = (Some(class(from)?), Some(class(to)?));
            }
            "ttl" => {
                let (name, [range]) = (named(words, 1), rest(words, 1)) else {
                    return Err(line.expected("a name and a TTL"));
                };
                rule.name = Some(name.ok_or_else(|| line.expected("a name and a TTL"))?);
                rule.ttl = Some(ttl_range(range)?);
            }
            "rcode" => {
                let (name, [from, to]) = (named(words, 2), rest(words, 2)) else {
                    return Err(line.expected("a name and two response codes"));
                };
                rule.name = Some(name.ok_or_else(|| line.expected("a name and two codes"))?);
                let (Some(from), Some(to)) = (rcode(from)?, rcode(to)?) else {
                    let why = "response codes above 15 are not rewritten";
                    self.leave(line, Lost, why);
                    return Ok(());
                };
                rule.rcode = Some((from, to));
            }
            "edns0" => return self.edns_rule(line, words, rule.goes_on),
            "cname" => {
                let why = "the target of an alias is not replaced and looked up anew; `answer \
                    value` changes it alone";
                self.leave(line, Lost, why);
                return Ok(());
            }
            _ => return Err(kind.expected("`name`, `type`, `class`, `ttl`, `rcode` or `edns0`")),
        }
        self.add_rule(line, rule);
        Ok(())
    }

    /// Reads `header { response set FLAGS… }`.
    pub(super) fn header(&mut self, line: &Line) -> Result<(), ImportError> {
        line.alone()?;
        if line.block.is_empty() {
            return Err(line.expected("a block with `response set` or `response clear`"));
        }
        let (mut set, mut clear) = (0, 0);
        for option in &line.block {
            let (bits, is_set) = self.header_option(option)?;
            match is_set {
                true => (set, clear) = (set | bits, clear & !bits),
                false => (set, clear) = (set & !bits, clear | bits),
            }
        }
        if self.current().changes.iter().any(|it| it.is_header) {
            self.leave(line, Needless, "of several, the first `header` of a block counts");
        } else if set | clear != 0 {
            let mut rule = RewriteRule::new();
            (rule.set_flags, rule.clear_flags, rule.goes_on) = (set, clear, true);
            self.add_rule(line, rule);
        }
        Ok(())
    }

    /// Reads `response set FLAGS…`; returns the flags of replies, and whether they are set.
    fn header_option(&mut self, option: &Line) -> Result<(u16, bool), ImportError> {
        let (action, flags) = match (option.name().to_ascii_lowercase().as_str(), &*option.words) {
            // CoreDNS has had selectors since 1.11, and refuses lines without them by now.
            ("set" | "clear", [action, flags @ ..]) => {
                self.leave(option, Differs, "it is taken as `response`, which CoreDNS now demands");
                (action, flags)
            }
            ("query" | "response", [_, action, flags @ ..]) => (action, flags),
            ("query" | "response", _) => return Err(option.expected("`set` or `clear`")),
            _ => return Err(option.words[0].expected("`query` or `response`")),
        };
        let is_set = match action.text.to_ascii_lowercase().as_str() {
            "set" => true,
            "clear" => false,
            _ => return Err(action.expected("`set` or `clear`")),
        };
        const WANTED: &str = "`aa`, `ra` or `rd`";
        if flags.is_empty() {
            return Err(option.expected(WANTED));
        }
        let mut bits = 0;
        for word in flags {
            let known = FLAGS.iter().find(|(name, _)| word.text.eq_ignore_ascii_case(name));
            bits |= known.ok_or_else(|| word.expected(WANTED))?.1;
        }
        if option.name().eq_ignore_ascii_case("query") {
            match bits & flag::RD {
                0 => self.leave(option, Needless, "AA and RA mean nothing in queries"),
                _ => {
                    let why = "whether a query wants recursion is for its client to say; upstreams \
                        are always asked for it";
                    self.leave(option, Lost, why);
                }
            }
            bits = 0;
        }
        Ok((bits, is_set))
    }

    /// Adds a rule to the block that is being read, unless it is none here.
    fn add_rule(&mut self, line: &Line, rule: RewriteRule) {
        if let Err((_, error)) = RewriteRules::new([rule.clone()]) {
            return self.leave(line, Lost, error.to_string());
        }
        let target = target(&rule);
        let (place, what) = (line.place().clone(), line.summary());
        let is_header = rule.name.is_none() && rule.set_flags | rule.clear_flags != 0;
        let keys = keys(rule);
        let zones = None;
        self.current().changes.push(BlockChange {
            section: "rewrite",
            keys,
            zones,
            target,
            is_header,
            has_zone: false,
            place,
            what,
        });
    }
}

/// Reads whether the rules that follow are tried as well.
fn mode(word: &Token) -> Option<bool> {
    match word.text.to_ascii_lowercase().as_str() {
        "stop" => Some(false),
        "continue" => Some(true),
        _ => None,
    }
}

/// Reads `[KIND] FROM TO [answer …]`.
fn name_rule(line: &Line, words: &[&Token], rule: &mut RewriteRule) -> Result<(), ImportError> {
    let (kind, from, to, mut rest) = match words {
        [from, to] => (MatchKind::Exact, from, to, &[][..]),
        [kind, from, to, rest @ ..] => {
            let word = kind.text.to_ascii_lowercase();
            let known = KINDS.iter().find(|(name, _)| *name == word);
            let known = known.ok_or_else(|| kind.expected("`exact`, `prefix`, `suffix`, …"))?;
            (known.1, from, to, rest)
        }
        _ => return Err(line.expected("a name and another one")),
    };
    let text = match kind {
        MatchKind::Regex => from.text.clone(),
        _ => normal(&from.text),
    };
    rule.name = Some(NameMatch { kind, text });
    rule.to = Some(normal(&to.text));
    rule.maps_back = kind == MatchKind::Exact;
    while let [first, words @ ..] = rest {
        // Behind the first, the word can be left out.
        let words = if first.is("answer") { words } else { rest };
        let [what, words @ ..] = words else { return Err(line.expected("`auto` or `name`")) };
        rest = match (what.text.as_str(), words) {
            ("auto", words) => {
                rule.maps_back = true;
                words
            }
            ("name", [pattern, to, words @ ..]) => {
                rule.owners.push(replacement(pattern, to));
                words
            }
            ("value", [pattern, to, words @ ..]) => {
                rule.targets.push(replacement(pattern, to));
                words
            }
            _ => return Err(what.expected("`auto`, `name FROM TO` or `value FROM TO`")),
        };
    }
    Ok(())
}

/// Makes the change of a name in replies.
fn replacement(pattern: &Token, to: &Token) -> Replacement {
    Replacement { pattern: pattern.text.clone(), to: normal(&to.text) }
}

/// Returns a text as CoreDNS has it: in lower case, with a final dot.
fn normal(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    if text.ends_with('.') { text } else { format!("{text}.") }
}

/// Reads `[KIND] NAME`, behind which so many words stand.
fn named(words: &[&Token], behind: usize) -> Option<NameMatch> {
    let words = words.get(..words.len().checked_sub(behind)?)?;
    let (kind, name) = match words {
        [name] => (MatchKind::Exact, name),
        [kind, name] => {
            let word = kind.text.to_ascii_lowercase();
            (KINDS.iter().find(|(name, _)| *name == word)?.1, name)
        }
        _ => return None,
    };
    let text = match kind {
        MatchKind::Regex => name.text.clone(),
        _ => normal(&name.text),
    };
    Some(NameMatch { kind, text })
}

/// Returns the last words, so many.
fn rest<'w, 't>(words: &'w [&'t Token], count: usize) -> &'w [&'t Token] {
    words.get(words.len().saturating_sub(count)..).unwrap_or_default()
}

/// Reads a type.
fn code(word: &Token) -> Result<Type, ImportError> {
    word.text.to_ascii_uppercase().parse().map_err(|_| word.expected("a type"))
}

/// Reads a class.
fn class(word: &Token) -> Result<Class, ImportError> {
    word.text.to_ascii_uppercase().parse().map_err(|_| word.expected("a class"))
}

/// Reads a response code; nothing if the header has no room for it.
fn rcode(word: &Token) -> Result<Option<Rcode>, ImportError> {
    let number = word.text.parse::<u16>().ok().filter(|number| *number <= 23).map(Rcode);
    let rcode = number.or_else(|| Rcode::from_mnemonic(&word.text));
    let rcode = rcode.ok_or_else(|| word.expected("a response code"))?;
    Ok((rcode.0 <= 0xf && rcode.mnemonic().is_some()).then_some(rcode))
}

/// Reads `30`, `30-300`, `30-` or `-300`.
fn ttl_range(word: &Token) -> Result<(u32, u32), ImportError> {
    let wrong = || word.expected("a TTL such as `30` or `30-300`");
    let number = |text: &str, open: u32| match text {
        "" => Ok(open),
        text => text.parse::<u32>().map(|secs| secs.min(TTL_MAX)).map_err(|_| wrong()),
    };
    let (least, most) = match word.text.split_once('-') {
        None => (number(&word.text, 0)?, number(&word.text, 0)?),
        Some((least, most)) => (number(least, 0)?, number(most, TTL_MAX)?),
    };
    match least <= most && word.text.bytes().any(|it| it.is_ascii_digit()) {
        true => Ok((least, most)),
        false => Err(wrong()),
    }
}

/// Returns where the names lie that come of a rule.
fn target(rule: &RewriteRule) -> Target {
    let (Some(name), Some(to)) = (&rule.name, &rule.to) else { return Target::Unchanged };
    let known = match name.kind {
        MatchKind::Exact => Some(to.as_str()),
        MatchKind::Suffix => Some(to.trim_start_matches('.')),
        // Whole labels behind the last group are the end of all names that come of it.
        MatchKind::Regex => {
            let end = to.rsplit_once('}').map_or(to.as_str(), |(_, end)| end);
            match end.len() == to.len() {
                true => Some(end),
                false => end.split_once('.').map(|(_, end)| end),
            }
        }
        MatchKind::Prefix | MatchKind::Substring => None,
    };
    let known = known.filter(|it| !matches!(*it, "" | "."));
    match known.and_then(|it| it.parse::<Name>().ok()) {
        Some(name) if name_is_whole(rule) => Target::Name(name.to_lowercase()),
        Some(name) => Target::Below(name.to_lowercase()),
        None => Target::Unknown,
    }
}

/// Whether the new name of a rule is always the same.
fn name_is_whole(rule: &RewriteRule) -> bool {
    let is_exact = rule.name.as_ref().is_some_and(|name| name.kind == MatchKind::Exact);
    let is_regex = rule.name.as_ref().is_some_and(|name| name.kind == MatchKind::Regex);
    is_exact || is_regex && rule.to.as_ref().is_some_and(|to| !to.contains('}'))
}

/// Returns the keys of a rule.
fn keys(rule: RewriteRule) -> Vec<(&'static str, Value)> {
    let mut keys: Vec<(&'static str, Value)> = Vec::new();
    let has_new_name = rule.to.is_some();
    if let Some(name) = rule.name {
        let word = KINDS.iter().find(|(_, kind)| *kind == name.kind).map_or("exact", |it| it.0);
        keys.push((word, Value::from(name.text.as_str())));
    }
    let mut text = |key, value: Option<String>| {
        keys.extend(value.map(|value| (key, Value::from(value.as_str()))));
    };
    text("qtype", rule.qtype.map(|it| it.to_string()));
    text("qclass", rule.qclass.map(|it| it.to_string()));
    text("to", rule.to);
    text("to-qtype", rule.to_type.map(|it| it.to_string()));
    text("to-qclass", rule.to_class.map(|it| it.to_string()));
    text(
        "ttl",
        rule.ttl.map(|(least, most)| match least == most {
            true => least.to_string(),
            false => format!("{least}-{most}"),
        }),
    );
    text("rcode", rule.rcode.map(|(from, _)| from.to_string()));
    text("to-rcode", rule.rcode.map(|(_, to)| to.to_string()));
    let names = |all: &[Replacement]| -> Vec<String> {
        all.iter().map(|it| format!("{} {}", it.pattern, it.to)).collect()
    };
    let flags = |bits: u16| -> Vec<String> {
        let set = FLAGS.iter().filter(|(_, bit)| bits & bit != 0);
        set.map(|(name, _)| (*name).to_owned()).collect()
    };
    for (key, list) in [
        ("owners", names(&rule.owners)),
        ("targets", names(&rule.targets)),
        ("set-flags", flags(rule.set_flags)),
        ("clear-flags", flags(rule.clear_flags)),
    ] {
        if !list.is_empty() {
            keys.push((key, Value::from(&list[..])));
        }
    }
    if has_new_name && !rule.maps_back {
        keys.push(("restore", Value::from(false)));
    }
    if rule.goes_on {
        keys.push(("stop", Value::from(false)));
    }
    keys
}
