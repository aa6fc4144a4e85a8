//! All rules, in order, and what they make of a question.

use crate::change::{Change, FlagChange, Step};
use crate::error::RuleError;
use crate::rule::{CompiledRule, RULES_MAX, RewriteRule};
use crate::text;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use zonda_wire::{Class, Type};

/// Rules that were compiled, in the order in which they are tried.
pub struct RewriteRules(Vec<CompiledRule>);

/// What rules make of a question.
#[derive(Debug)]
pub struct Rewritten {
    /// The question to answer, name, type and class; none if it stays, or if no question can be
    /// made of the new name.
    pub question: Option<Vec<u8>>,
    /// Whether the new name is none.
    pub is_invalid: bool,
    /// What has to be done with the reply.
    pub change: Change,
}

impl Rewritten {
    /// Returns what rules make of a question that change flags of the reply alone.
    fn of_flags(flags: FlagChange) -> Self {
        let change = Change { rules: None, question: Box::default(), steps: Vec::new(), flags };
        Self { question: None, is_invalid: false, change }
    }
}

impl RewriteRules {
    /// Compiles rules.
    ///
    /// # Errors
    /// The place of the first one that is wrong, and what is wrong.
    pub fn new(rules: impl IntoIterator<Item = RewriteRule>) -> Result<Self, (usize, RuleError)> {
        let mut compiled = Vec::new();
        for (place, rule) in rules.into_iter().enumerate() {
            if place == RULES_MAX {
                return Err((place, RuleError::Many(RULES_MAX)));
            }
            compiled.push(CompiledRule::new(rule).map_err(|error| (place, error))?);
        }
        Ok(Self(compiled))
    }

    /// The lists of listeners of the rules that are for the queries of some listeners only.
    pub fn listeners(&self) -> impl Iterator<Item = &[SocketAddr]> {
        self.0.iter().map(|rule| &*rule.rule.listeners).filter(|listeners| !listeners.is_empty())
    }

    /// Returns the rules that are for the queries of all listeners, or of such as `has` says; none
    /// if there are none.
    #[must_use]
    pub fn of_listeners(&self, has: impl Fn(&[SocketAddr]) -> bool) -> Option<Self> {
        let rules = self.0.iter().map(|rule| &rule.rule);
        let rules: Vec<_> =
            rules.filter(|it| it.listeners.is_empty() || has(&it.listeners)).cloned().collect();
        if rules.is_empty() { None } else { Self::new(rules).ok() } // each was compiled before
    }

    /// Returns a rule by its place.
    pub(crate) fn get(&self, place: u16) -> Option<&CompiledRule> {
        self.0.get(usize::from(place))
    }

    /// Tries the rules on a question: its name in wire form and lower case, and its octets as the
    /// client has sent them. `text` is memory for the text of the name. Nothing if no rule is for
    /// it.
    #[inline]
    pub fn apply(
        self: &Arc<Self>,
        name: &[u8],
        question: &[u8],
        (qtype, qclass): (Type, Class),
        text: &mut Vec<u8>,
    ) -> Option<Rewritten> {
        let kind = (qtype, qclass);
        let first = self.0.iter().position(|rule| rule.may_match(name, name, kind))?;
        let mut flags = FlagChange::default();
        for rule in self.0[first..].iter().filter(|rule| rule.may_match(name, name, kind)) {
            if !rule.is_of_flags() {
                return self.apply_from(first, name, question, kind, text);
            }
            flags = flags.after(&rule.rule);
            if !rule.rule.goes_on {
                break;
            }
        }
        Some(Rewritten::of_flags(flags))
    }

    /// Does the work of [`apply`](Self::apply) from the first rule on that may be for the question.
    fn apply_from(
        self: &Arc<Self>,
        first: usize,
        name: &[u8],
        question: &[u8],
        (mut qtype, mut qclass): (Type, Class),
        text: &mut Vec<u8>,
    ) -> Option<Rewritten> {
        let (mut steps, mut wire) = (Vec::new(), Vec::new());
        let (mut is_changed, mut is_met, mut is_invalid) = (false, false, false);
        let mut flags = Some(FlagChange::default());
        text::write(name, text);
        for (place, rule) in self.0.iter().enumerate().skip(first) {
            let now: &[u8] = if wire.is_empty() { name } else { &wire };
            if !rule.may_match(now, name, (qtype, qclass)) {
                continue;
            }
            if rule.matcher.as_ref().is_some_and(|matcher| !matcher.matches(now, text)) {
                continue;
            }
            is_met = true;
            flags = flags.filter(|_| rule.is_of_flags()).map(|flags| flags.after(&rule.rule));
            let made = match (&rule.matcher, &rule.to) {
                (Some(matcher), Some(to)) => matcher.replace(now, text, to),
                _ => None,
            };
            if let Some(made) = made {
                let former = now.to_vec();
                if !text::read(&made, &mut wire) {
                    is_invalid = true;
                    break;
                }
                wire.make_ascii_lowercase(); // length octets are below b'A'
                text::write(&wire, text);
                is_changed = true;
                if rule.rule.maps_back && rule.suffix.is_none() {
                    steps.push(Step::Remap { from: wire.clone().into(), to: former.into() });
                }
            }
            steps.push(Step::Rule(place as u16)); // below RULES_MAX
            is_changed |= rule.rule.to_type.is_some() || rule.rule.to_class.is_some();
            qtype = rule.rule.to_type.unwrap_or(qtype);
            qclass = rule.rule.to_class.unwrap_or(qclass);
            if !rule.rule.goes_on {
                break;
            }
        }
        if !is_met {
            return None;
        }
        if let Some(flags) = flags {
            return Some(Rewritten::of_flags(flags));
        }
        let changed = is_changed && !is_invalid;
        let question_now = changed.then(|| {
            let mut made = if wire.is_empty() { name.to_vec() } else { wire };
            made.extend([qtype.0, qclass.0].iter().flat_map(|word| word.to_be_bytes()));
            made
        });
        if is_invalid {
            steps.clear();
        }
        let (rules, flags) = (Some(Arc::clone(self)), FlagChange::default());
        let change = Change { rules, question: question.into(), steps, flags };
        Some(Rewritten { question: question_now, is_invalid, change })
    }
}

impl PartialEq for RewriteRules {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|rule| &rule.rule).eq(other.0.iter().map(|rule| &rule.rule))
    }
}

impl Eq for RewriteRules {}

impl fmt::Debug for RewriteRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rules", self.0.len())
    }
}
