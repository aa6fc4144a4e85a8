//! Access lists: the rules of names put in their place.

use crate::access::{Access, AccessRule, Action, Network, Rule};
use crate::error::Contradiction;
use crate::keys::ACCESS;
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::unknown::nearest;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// An action and the networks it is for; none: everyone.
type Clause = (Action, Vec<Network>);

/// The lists of `[access]`, and what has been made of them.
pub(super) struct Lists {
    named: BTreeMap<String, Vec<Clause>>,
    /// Lists already resolved, so that equal ones are one.
    resolved: HashMap<Vec<AccessRule>, Option<Arc<Access>>>,
}

impl Lists {
    /// Reads the section `[access]`.
    pub fn read<'a>(layers: &Layers<'a>, session: &mut Session<'a>) -> Self {
        let (table, origin) = layers.section(&ACCESS);
        let names = table.into_iter().flatten().map(|(name, _)| name.get_ref());
        let mut reader = Reader::new(session, &ACCESS, table, Vec::new(), origin);
        let mut named = BTreeMap::new();
        for name in names {
            let [key] = ACCESS.keys else { continue };
            let rules: Vec<AccessRule> = reader.read_named(name, key).unwrap_or_default();
            let mut clauses = Vec::with_capacity(rules.len());
            for rule in rules {
                match rule {
                    AccessRule::Rule(action, networks) => clauses.push((action, networks)),
                    AccessRule::List(other) => {
                        reader.contradict(Some(name), Contradiction::ListInList(other));
                    }
                }
            }
            named.insert(name.to_string(), clauses);
        }
        Self { named, resolved: HashMap::new() }
    }

    /// Returns the list that the `access` key of a section stands for; none: everyone is allowed,
    /// or the list is wrong, which is then reported.
    pub fn resolve(
        &mut self,
        reader: &mut Reader<'_, '_>,
        rules: Vec<AccessRule>,
    ) -> Option<Arc<Access>> {
        if let Some(access) = self.resolved.get(&rules) {
            return access.clone();
        }
        let access = match self.expand(&rules) {
            Ok(access) => access.map(Arc::new),
            Err(contradiction) => {
                reader.contradict(Some("access"), contradiction);
                return None;
            }
        };
        self.resolved.insert(rules, access.clone());
        access
    }

    /// Puts the rules of lists in their place, and networks one by one.
    fn expand(&self, rules: &[AccessRule]) -> Result<Option<Access>, Contradiction> {
        let mut access = Vec::new();
        let mut otherwise = None;
        for rule in rules {
            let one;
            let clauses = match rule {
                AccessRule::Rule(action, networks) => {
                    one = [(*action, networks.clone())];
                    &one[..]
                }
                AccessRule::List(name) => self.named(name)?,
            };
            for (action, networks) in clauses {
                if otherwise.is_some() {
                    return Err(Contradiction::RuleBehindAny);
                }
                if networks.is_empty() {
                    otherwise = Some(*action);
                }
                let rules = networks.iter().map(|&network| Rule { network, action: *action });
                access.extend(rules);
            }
        }
        match otherwise {
            Some(otherwise) => Ok(Some(Access { rules: access, otherwise, ..Access::open() })),
            None if rules.is_empty() => Ok(None),
            None => Err(Contradiction::OpenEnded),
        }
    }

    /// Returns the clauses of a list in `[access]`.
    fn named(&self, name: &str) -> Result<&[Clause], Contradiction> {
        let known = || self.named.keys().map(String::as_str);
        self.named.get(name).map(Vec::as_slice).ok_or_else(|| {
            let near = nearest(name, known()).map(str::to_owned);
            Contradiction::UnknownList(name.to_owned(), near)
        })
    }
}
