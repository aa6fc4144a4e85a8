//! Access lists: which clients match an address match list, as rules of which the first that
//! matches decides.
//!
//! In BIND, what a list within a list excludes is only not matched by it: the rest of the outer
//! list is looked at. Rules cannot say that, so they refuse instead, which is reported unless
//! nothing follows. A list is thus never wider than in BIND, but where it excludes a key.

use super::statement::{Cursor, Element, Statement};
use super::value::{Network, network};
use crate::document::{Effect, ReportLine};
use crate::error::{ImportError, Problem};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rules that a list may come down to.
const RULES_MAX: usize = 1 << 16;
/// Rules of one list times rules of another, where only clients in both are served: they are
/// compared within a moment.
const PAIRS_MAX: usize = 1 << 24;
/// Named lists that may lie within each other.
const DEPTH_MAX: usize = 32;

/// Loopback addresses.
const LOOPBACK: &[&str] = &["127.0.0.0/8", "::1"];
/// Private networks, the same as those of `[zone.forward]` (docs/forwarding.md).
const PRIVATE: &[&str] =
    &["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10"];

/// A rule that allows or denies some clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whether the rule is for clients that match.
    pub matches: bool,
    /// Clients that the rule is about.
    pub who: Clients,
}

/// A set of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clients {
    /// All clients there are.
    Any,
    /// Clients of a network.
    Network(Network),
    /// Clients in a list of `[access]`, which neither matches all clients nor excludes any.
    List(String),
}

/// The words of rules: for clients that match, for those that do not, and for all the rest.
pub type Words = (&'static str, &'static str, &'static str);

/// Words of rules for clients that are served.
pub const SERVED: Words = ("allow", "refuse", "refuse any");

/// The access lists of a configuration.
pub struct Acls<'s> {
    /// Definitions by name in lower case: the name as written, and the list.
    defined: HashMap<String, (&'s str, &'s [Statement])>,
    /// Rules of the lists that were needed, by name in lower case.
    resolved: HashMap<String, Vec<Rule>>,
    /// Names of lists that rules mention, as written.
    named: BTreeSet<&'s str>,
    /// Omissions: what rules cannot express.
    pub left: Vec<ReportLine>,
}

impl<'s> Acls<'s> {
    /// Reads the definitions.
    ///
    /// # Errors
    /// When one of them is no `acl NAME { … };`.
    pub fn new(definitions: impl Iterator<Item = Cursor<'s>>) -> Result<Self, ImportError> {
        let mut defined = HashMap::new();
        for mut definition in definitions {
            let name = definition.word("the name of an access list")?;
            let list = definition.block("`{`")?;
            definition.end()?;
            defined.insert(name.to_ascii_lowercase(), (name, list));
        }
        let (resolved, named, left) = (HashMap::new(), BTreeSet::new(), Vec::new());
        Ok(Self { defined, resolved, named, left })
    }

    /// Returns the rules of the clients that are served, for a key `access`; they end with one for
    /// any.
    ///
    /// # Errors
    /// When the list is none, or speaks of one that is not defined.
    pub fn access(&mut self, list: &'s [Statement]) -> Result<Vec<String>, ImportError> {
        let mut rules = Vec::new();
        self.resolve(list, Names::Stay, &mut rules)?;
        Ok(written(&rules, SERVED))
    }

    /// Returns the rules of the clients that are in both of two lists, the first of which is
    /// written at `at`.
    ///
    /// # Errors
    /// As before, and when they are too long.
    pub fn access_of_both(
        &mut self,
        lists: [&'s [Statement]; 2],
        at: &Cursor<'s>,
    ) -> Result<Vec<String>, ImportError> {
        let [first, second] = [self.rules(lists[0])?, self.rules(lists[1])?];
        let is_all = |rules: &[Rule]| {
            matches!(rules.first(), Some(Rule { matches: true, who: Clients::Any }))
        };
        // Names of lists stay where one of both decides.
        if is_all(&second) || first == second {
            return self.access(lists[0]);
        }
        if is_all(&first) {
            return self.access(lists[1]);
        }
        if first.len() * second.len() > PAIRS_MAX {
            let what = "pairs of rules of two access lists";
            return Err(at.problem(Problem::TooMuch(what, PAIRS_MAX)));
        }
        let rules = both(&first, &second);
        if rules.len() > RULES_MAX {
            return Err(at.problem(Problem::TooMuch("rules of two access lists", RULES_MAX)));
        }
        Ok(written(&rules, SERVED))
    }

    /// Returns the rules of a list, without names of other lists.
    ///
    /// # Errors
    /// As before.
    pub fn rules(&mut self, list: &'s [Statement]) -> Result<Vec<Rule>, ImportError> {
        let mut rules = Vec::new();
        self.resolve(list, Names::Expanded { depth: 0 }, &mut rules)?;
        Ok(rules)
    }

    /// Returns the lists for `[access]`, and their rules.
    pub fn named(&self) -> BTreeMap<&'s str, Vec<String>> {
        let rules = |name: &str| {
            let rules = self.resolved.get(&name.to_ascii_lowercase());
            clauses(rules.map_or(&[][..], Vec::as_slice), SERVED)
        };
        self.named.iter().map(|name| (*name, rules(name))).collect()
    }

    /// Appends the rules of a list.
    fn resolve(
        &mut self,
        list: &'s [Statement],
        names: Names,
        rules: &mut Vec<Rule>,
    ) -> Result<(), ImportError> {
        for (place, statement) in list.iter().enumerate() {
            let mut cursor = statement.cursor();
            let negated = cursor.passes_not();
            let begin = cursor;
            let mut inner = Vec::new();
            self.element(&mut cursor, negated, names, &mut inner)?;
            cursor.end()?;
            let excludes = inner.iter().any(|rule: &Rule| !rule.matches);
            let is_last = place + 1 == list.len();
            if excludes && (negated || !is_last) && is_list(&begin) {
                self.note(
                    &begin,
                    Effect::Differs,
                    "whom it excludes is refused; \
                    BIND looks whether the rest of the list around it has them",
                );
            }
            let matches = |rule: &Rule| rule.matches && !negated;
            rules.extend(inner.iter().map(|rule| Rule { matches: matches(rule), ..rule.clone() }));
            if rules.len() > RULES_MAX {
                return Err(begin.problem(Problem::TooMuch("rules of an access list", RULES_MAX)));
            }
        }
        Ok(())
    }

    /// Appends the rules of one element, as if no `!` stood before it.
    fn element(
        &mut self,
        cursor: &mut Cursor<'s>,
        negated: bool,
        names: Names,
        rules: &mut Vec<Rule>,
    ) -> Result<(), ImportError> {
        const WANTED: &str = "an address, a network or an access list";
        let begin = *cursor;
        if let Some((Element::Block(list), _)) = cursor.peek() {
            cursor.block(WANTED)?;
            return self.resolve(list, if negated { names.expanded() } else { names }, rules);
        }
        let word = cursor.word(WANTED)?;
        let defined = self.defined.get(&word.to_ascii_lowercase()).copied();
        match (word.to_ascii_lowercase().as_str(), defined) {
            ("any", _) => rules.push(Rule { matches: true, who: Clients::Any }),
            ("none", _) => rules.push(Rule { matches: false, who: Clients::Any }),
            ("localhost", _) => {
                self.note(
                    &begin,
                    Effect::Differs,
                    "stands for loopback addresses; in BIND, for all addresses of the machine",
                );
                rules.extend(networks(LOOPBACK));
            }
            ("localnets", _) => {
                self.note(
                    &begin,
                    Effect::Differs,
                    "stands for private and link-local networks; \
                    in BIND, for those that the machine is in",
                );
                rules.extend(networks(PRIVATE));
            }
            ("key" | "geoip", None) => {
                let why = match (word.eq_ignore_ascii_case("key"), negated) {
                    (true, false) => {
                        "no rule is made of it; write \"allow key NAME\" into `access`"
                    }
                    (true, true) => {
                        "no rule is made of it; write \"refuse key NAME\" into `access`"
                    }
                    (false, _) => "clients are matched by their addresses and keys only",
                };
                self.note(&begin, Effect::Lost, why);
                while cursor.peek().is_some() {
                    cursor.word("a word")?;
                }
            }
            (_, Some((name, list))) => {
                return self.named_list(&begin, (name, list), negated, names, rules);
            }
            (_, None) => match network(word) {
                Some(network) => {
                    rules.push(Rule { matches: true, who: Clients::Network(network) });
                }
                None if word.contains(':') || word.starts_with(|c: char| c.is_ascii_digit()) => {
                    let wanted = "an address, or a network with no bits behind its prefix";
                    return Err(begin.expected(wanted));
                }
                None => return Err(begin.problem(Problem::UnknownList(word.to_owned()))),
            },
        }
        Ok(())
    }

    /// Appends the rules of a named list, or its name.
    fn named_list(
        &mut self,
        begin: &Cursor<'s>,
        (name, list): (&'s str, &'s [Statement]),
        negated: bool,
        names: Names,
        rules: &mut Vec<Rule>,
    ) -> Result<(), ImportError> {
        let key = name.to_ascii_lowercase();
        if !self.resolved.contains_key(&key) {
            let depth = names.depth() + 1;
            if depth > DEPTH_MAX {
                let what = "access lists within each other (does one hold itself?)";
                return Err(begin.problem(Problem::TooMuch(what, DEPTH_MAX)));
            }
            let mut own = Vec::new();
            self.resolve(list, Names::Expanded { depth }, &mut own)?;
            self.resolved.insert(key.clone(), own);
        }
        let own = &self.resolved[&key];
        let is_plain = |rule: &Rule| rule.matches && !matches!(rule.who, Clients::Any);
        let is_plain = !own.is_empty() && own.iter().all(is_plain);
        if matches!(names, Names::Stay) && !negated && is_plain && is_usable(name) {
            self.named.insert(name);
            rules.push(Rule { matches: true, who: Clients::List(name.to_owned()) });
            return Ok(());
        }
        rules.extend(own.iter().cloned());
        Ok(())
    }

    /// Notes that something cannot be said in rules.
    fn note(&mut self, at: &Cursor<'s>, effect: Effect, why: &str) {
        let what = match at.peek() {
            Some((Element::Word(word), _)) => word.escape_debug().to_string(),
            _ => "a list in a list".to_owned(),
        };
        self.left.push(ReportLine { place: at.place().clone(), effect, what, why: why.to_owned() });
    }
}

/// How names of lists are written.
#[derive(Clone, Copy)]
enum Names {
    /// The lists are kept as named lists, which rules can name.
    Stay,
    /// Rules of the lists take their place: a list of `[access]` cannot name another.
    Expanded {
        /// Named lists around this one.
        depth: usize,
    },
}

impl Names {
    /// Named lists around this one.
    fn depth(self) -> usize {
        match self {
            Self::Stay => 0,
            Self::Expanded { depth } => depth,
        }
    }

    /// Returns the choice with the lists' rules in their place.
    fn expanded(self) -> Self {
        Self::Expanded { depth: self.depth() }
    }
}

/// Whether what comes next is a list in a list, by name or not.
fn is_list(cursor: &Cursor<'_>) -> bool {
    match cursor.peek() {
        Some((Element::Word(word), _)) => !word.eq_ignore_ascii_case("none"),
        _ => true,
    }
}

/// Whether a name can be a word of a rule.
fn is_usable(name: &str) -> bool {
    !["allow", "refuse", "filter", "drop"].contains(&name)
        && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Returns the rules of the clients that match two lists, neither of which names another.
fn both(first: &[Rule], second: &[Rule]) -> Vec<Rule> {
    let mut rules = Vec::new();
    for Rule { matches, who } in first {
        let mut is_settled = false;
        for rule in second.iter().filter(|_| *matches) {
            if let (false, Some(both)) = (is_settled, overlap(who, &rule.who)) {
                is_settled = both == *who;
                rules.push(Rule { matches: rule.matches, who: both });
            }
        }
        if !is_settled {
            rules.push(Rule { matches: false, who: who.clone() }); // the second does not have them
        }
    }
    while rules.last().is_some_and(|rule| !rule.matches) {
        rules.pop(); // the last rule applies to all other clients
    }
    rules
}

/// Returns the clients that are in both of these.
pub(super) fn overlap(a: &Clients, b: &Clients) -> Option<Clients> {
    match (a, b) {
        (Clients::Any, who) | (who, Clients::Any) => Some(who.clone()),
        (Clients::Network(a), Clients::Network(b)) if a.holds(b) => Some(Clients::Network(*b)),
        (Clients::Network(a), Clients::Network(b)) if b.holds(a) => Some(Clients::Network(*a)),
        _ => None,
    }
}

/// Rules for the clients of these networks.
fn networks(texts: &'static [&str]) -> impl Iterator<Item = Rule> {
    let networks = texts.iter().filter_map(|text| network(text));
    networks.map(|network| Rule { matches: true, who: Clients::Network(network) })
}

/// Rules as they are written, the last one for any.
pub fn written(rules: &[Rule], words: Words) -> Vec<String> {
    let mut written = clauses(rules, words);
    if !rules.iter().any(|rule| matches!(rule.who, Clients::Any)) {
        written.push(words.2.to_owned());
    }
    written
}

/// Rules up to the first one for any; networks of one kind in a row share one.
fn clauses(rules: &[Rule], (matching, other, _): Words) -> Vec<String> {
    let mut clauses: Vec<String> = Vec::new();
    let mut last = None;
    for Rule { matches, who } in rules {
        let word = if *matches { matching } else { other };
        match (who, clauses.last_mut()) {
            (Clients::Network(network), Some(clause)) if last == Some(word) => {
                clause.push_str(&format!(" {network}"));
            }
            (Clients::Network(network), _) => clauses.push(format!("{word} {network}")),
            (Clients::List(name), _) => clauses.push(name.clone()),
            (Clients::Any, _) => {
                clauses.push(format!("{word} any"));
                return clauses;
            }
        }
        last = matches!(who, Clients::Network(_)).then_some(word);
    }
    clauses
}
