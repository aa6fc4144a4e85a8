//! A rule as the configuration has it, and compiled.

use crate::error::RuleError;
use crate::name_match::{MatchKind, Matcher, NameMatch, NewText, Replacement, compile, with_dot};
use crate::regex::bytes::Regex;
use crate::scope::Scope;
use std::net::SocketAddr;
use zonda_wire::{Class, Rcode, Type};

/// Rules of a server.
pub const RULES_MAX: usize = 1_000;

/// A rule: questions that it is for, what it changes of them, and what of the replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteRule {
    /// The names that the rule is for.
    pub scope: Scope,
    /// Pattern of the names; none: all of the scope.
    pub name: Option<NameMatch>,
    /// The type asked for; none: all types.
    pub qtype: Option<Type>,
    /// The class asked for; none: all classes.
    pub qclass: Option<Class>,
    /// The new name, or part of it.
    pub to: Option<String>,
    /// The type to ask for instead.
    pub to_type: Option<Type>,
    /// The class to ask for instead.
    pub to_class: Option<Class>,
    /// Whether the new name is changed back in owners and data of the reply.
    pub maps_back: bool,
    /// Replacements of the owners of records, after that.
    pub owners: Vec<Replacement>,
    /// Replacements of the names in data, after that.
    pub targets: Vec<Replacement>,
    /// The least and the greatest TTL of the reply's records.
    pub ttl: Option<(u32, u32)>,
    /// A response code, and what it becomes.
    pub rcode: Option<(Rcode, Rcode)>,
    /// Flags of the reply's header that are set.
    pub set_flags: u16,
    /// Flags of the reply's header that are cleared.
    pub clear_flags: u16,
    /// Whether the rules that follow are tried as well.
    pub goes_on: bool,
    /// The listeners whose queries the rule is for; none: all of them.
    pub listeners: Vec<SocketAddr>,
}

impl RewriteRule {
    /// Makes a rule for all questions that changes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            scope: Scope::all(),
            name: None,
            qtype: None,
            qclass: None,
            to: None,
            to_type: None,
            to_class: None,
            maps_back: false,
            owners: Vec::new(),
            targets: Vec::new(),
            ttl: None,
            rcode: None,
            set_flags: 0,
            clear_flags: 0,
            goes_on: false,
            listeners: Vec::new(),
        }
    }
}

impl Default for RewriteRule {
    fn default() -> Self {
        Self::new()
    }
}

/// Octets of a name's text.
pub type Text = Box<[u8]>;

/// A rule that was compiled.
#[derive(Debug)]
pub struct CompiledRule {
    /// The rule as it was given.
    pub rule: RewriteRule,
    /// The pattern of names, if there is one.
    pub matcher: Option<Matcher>,
    /// The labels that each name ends with that matches, in wire form.
    tail: Box<[u8]>,
    /// The new name, if the rule has one.
    pub to: Option<NewText>,
    /// The end of a suffix rule's new name and that of its pattern, which takes its place in
    /// replies.
    pub suffix: Option<(Text, Text)>,
    /// Replacements of owners.
    pub owners: Vec<(Regex, NewText)>,
    /// Replacements of names in data.
    pub targets: Vec<(Regex, NewText)>,
    /// Whether flags are all that the rule changes, for all names of its scope.
    is_of_flags: bool,
}

impl CompiledRule {
    /// Compiles a rule.
    pub fn new(rule: RewriteRule) -> Result<Self, RuleError> {
        check(&rule)?;
        let matcher = rule.name.as_ref().map(Matcher::new).transpose()?;
        let tail = matcher.as_ref().and_then(Matcher::tail).unwrap_or_default().into();
        let kind = rule.name.as_ref().map(|name| name.kind);
        let to = match (&matcher, &rule.to) {
            (_, None) => None,
            (Some(Matcher::Regex(regex)), Some(to)) => {
                Some(NewText::of_groups(&with_dot(to.clone()), regex)?)
            }
            (_, Some(to)) => match kind {
                Some(MatchKind::Exact | MatchKind::Suffix) => {
                    Some(NewText::plain(&with_dot(to.clone())))
                }
                _ => Some(NewText::plain(to)),
            },
        };
        let suffix = match (&matcher, &rule.to) {
            (Some(Matcher::Suffix(from)), Some(to)) if rule.maps_back => {
                let to = with_dot(to.to_ascii_lowercase());
                Some((to.into_bytes().into(), from.clone()))
            }
            _ => None,
        };
        let (owners, targets) = (replacements(&rule.owners)?, replacements(&rule.targets)?);
        let changes_question = to.is_some() || rule.to_type.is_some() || rule.to_class.is_some();
        let changes_records = rule.ttl.is_some() || !owners.is_empty() || !targets.is_empty();
        let is_more = changes_question || changes_records || rule.rcode.is_some();
        let is_of_flags = matcher.is_none() && !is_more;
        Ok(Self { rule, matcher, tail, to, suffix, owners, targets, is_of_flags })
    }

    /// Whether the rule is for all names of its scope, and changes flags of the reply alone.
    #[inline]
    pub fn is_of_flags(&self) -> bool {
        self.is_of_flags
    }

    /// Whether the rule may be for a question: the name as it is now, which is not compared whole,
    /// and as the client asks for it, both in wire form and lower case.
    #[inline]
    pub fn may_match(&self, wire: &[u8], asked: &[u8], (qtype, qclass): (Type, Class)) -> bool {
        let is_named = match &self.matcher {
            Some(Matcher::Exact(name)) => name.as_wire() == wire,
            _ => wire.ends_with(&self.tail),
        };
        is_named
            && self.rule.qtype.is_none_or(|it| it == qtype)
            && self.rule.qclass.is_none_or(|it| it == qclass)
            && self.rule.scope.holds(asked)
    }
}

/// Checks that the parts of a rule go together.
fn check(rule: &RewriteRule) -> Result<(), RuleError> {
    let asks = rule.to.is_some() || rule.to_type.is_some() || rule.to_class.is_some();
    let flags = rule.set_flags | rule.clear_flags != 0;
    let answers = !rule.owners.is_empty() || !rule.targets.is_empty();
    if !asks && !flags && rule.ttl.is_none() && rule.rcode.is_none() && !answers {
        return Err(RuleError::Nothing);
    }
    if rule.to.is_some() && rule.name.is_none() {
        return Err(RuleError::ToWithoutName);
    }
    match rule.ttl {
        Some((least, most)) if least > most => Err(RuleError::EmptyRange(least, most)),
        _ => Ok(()),
    }
}

/// Compiles replacements of names in replies.
fn replacements(all: &[Replacement]) -> Result<Vec<(Regex, NewText)>, RuleError> {
    let one = |it: &Replacement| {
        let regex = compile(&it.pattern)?;
        let to = NewText::of_groups(&with_dot(it.to.clone()), &regex)?;
        Ok((regex, to))
    };
    all.iter().map(one).collect()
}
