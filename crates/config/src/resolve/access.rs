//! Access lists: the rules of names put in their place.

use super::keys::KeyList;
use crate::access::{Access, AccessRule, Clause};
use crate::error::Contradiction;
use crate::keys::ACCESS;
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::unknown::nearest;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The lists of `[access]`, and what has been made of them.
pub(super) struct Lists<'k> {
    keys: &'k KeyList,
    named: BTreeMap<String, Vec<Clause>>,
    /// Lists already resolved, so that equal ones are one.
    resolved: HashMap<Vec<AccessRule>, Option<Arc<Access>>>,
}

impl<'k> Lists<'k> {
    /// Reads the section `[access]`.
    pub fn read<'a>(layers: &Layers<'a>, session: &mut Session<'a>, keys: &'k KeyList) -> Self {
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
                    AccessRule::Rule(clause) => {
                        let unknown = clause.key.as_ref().and_then(|key| keys.unknown(key));
                        unknown.into_iter().for_each(|it| reader.contradict(Some(name), it));
                        clauses.push(clause);
                    }
                    AccessRule::List(other) => {
                        reader.contradict(Some(name), Contradiction::ListInList(other));
                    }
                }
            }
            named.insert(name.to_string(), clauses);
        }
        Self { keys, named, resolved: HashMap::new() }
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
            let clauses = match rule {
                AccessRule::Rule(clause) => {
                    match clause.key.as_ref().and_then(|key| self.keys.unknown(key)) {
                        Some(unknown) => return Err(unknown),
                        None => std::slice::from_ref(clause),
                    }
                }
                AccessRule::List(name) => self.named(name)?,
            };
            for clause in clauses {
                if otherwise.is_some() {
                    return Err(Contradiction::RuleBehindAny);
                }
                if clause.is_for_any() {
                    otherwise = Some(clause.action);
                }
                access.extend(clause.rules());
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
