//! Dynamic updates: the rights that `allow-update` and `update-policy` give.

use super::Importer;
use super::clauses::Clauses;
use super::statement::{Cursor, Element, Statement};
use super::zones::{Defaults, written};
use crate::document::{Effect, Value};
use crate::error::{ImportError, Place};
use zonda_wire::update::{NAMED_TYPES, SIGNING_TYPES};
use zonda_wire::{Name, Type, name};

/// What differs where a rule names no types.
const FEWER_TYPES: &str = "no types are named: DS, DNAME, DNSKEY, CDS, CDNSKEY and NSEC3PARAM \
    records must be named in `types`";

/// The rights to change a zone, as they are written.
pub struct Updates {
    /// The rights, at least one.
    pub grants: Vec<Grant>,
    /// The place of the statement that gives them.
    pub origin: Place,
}

/// A right to change a zone, as it is written.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    /// The clients that have the right.
    from: Vec<String>,
    /// The names whose records may be changed.
    names: String,
    /// The types of the records; none: all that need not be named.
    types: Vec<String>,
    /// Most records of a type that a name may have.
    records: Option<u32>,
}

impl Grant {
    /// Rights to records of all types, with this number of each.
    fn all_types(from: &[String], names: &str, records: Option<u32>) -> [Self; 2] {
        let named = NAMED_TYPES.iter().map(Type::to_string).collect();
        [Vec::new(), named].map(|types| {
            let (from, names) = (from.to_vec(), names.to_owned());
            Self { from, names, types, records }
        })
    }

    /// Whether this right, which stands behind `former`, would allow more records of a type than
    /// that, although the first rule that is for a name decides in named.
    fn widens(&self, former: &Self) -> bool {
        let Some(bound) = former.records else { return false };
        let is_name = |grant: &Self| grant.names.starts_with("name ");
        let is_apart = is_name(self) && is_name(former) && self.names != former.names;
        let shares_types = match (&*self.types, &*former.types) {
            ([], []) => true,
            ([], listed) | (listed, []) => listed.iter().any(|it| !is_named(it)),
            (one, other) => one.iter().any(|it| other.contains(it)),
        };
        let is_greater = self.records.is_none_or(|records| records > bound);
        self.from == former.from && !is_apart && shares_types && is_greater
    }

    /// The right as a table.
    pub fn to_value(&self) -> Value {
        let list = |all: &[String]| {
            Value::from(all.iter().map(|it| Value::from(&**it)).collect::<Vec<Value>>())
        };
        let mut pairs = vec![("from", list(&self.from)), ("names", Value::from(&*self.names))];
        if !self.types.is_empty() {
            pairs.push(("types", list(&self.types)));
        }
        if let Some(records) = self.records {
            pairs.push(("records-per-type", Value::from(u64::from(records))));
        }
        Value::table(pairs)
    }
}

impl<'s> Importer<'s> {
    /// Reads the rights to change a primary zone.
    pub(super) fn updates(
        &mut self,
        zone: &Name,
        clauses: &mut Clauses<'s>,
        defaults: &Defaults<'s>,
    ) -> Result<Option<Updates>, ImportError> {
        let allow = clauses.take("allow-update")?;
        let policy = clauses.take("update-policy")?;
        let (grants, cursor) = match (policy, allow.or(defaults.allow_update)) {
            (Some(policy), _) => (self.update_policy(zone, policy)?, policy),
            (None, Some(allow)) => (self.allow_update(allow)?, allow),
            (None, None) => return Ok(None),
        };
        let origin = cursor.statement().place().clone();
        Ok((!grants.is_empty()).then_some(Updates { grants, origin }))
    }

    /// Reads `allow-update`: its clients may change everything.
    fn allow_update(&mut self, cursor: Cursor<'s>) -> Result<Vec<Grant>, ImportError> {
        let from = self.transfer_clients(cursor)?;
        Ok(match &*from {
            [] => Vec::new(),
            from => Grant::all_types(from, "zone", None).into(),
        })
    }

    /// Reads `update-policy`.
    fn update_policy(
        &mut self,
        zone: &Name,
        mut cursor: Cursor<'s>,
    ) -> Result<Vec<Grant>, ImportError> {
        let whole = cursor;
        if !matches!(cursor.peek(), Some((Element::Block(_), _))) {
            cursor.word("`local` or `{`")?;
            let why =
                "named makes a key of its own for this: write a [[key]], and `update` with it";
            self.leave(whole, Effect::Lost, why);
            return Ok(Vec::new());
        }
        let rules = cursor.block("`local` or `{`")?;
        cursor.end()?;
        let mut grants = Vec::new();
        for rule in rules {
            let mut words = rule.cursor();
            if words.passes("deny") {
                let why = "nothing is denied in front of what is granted: no right that follows \
                    is carried over";
                self.leave(rule.cursor(), Effect::Lost, why);
                break;
            }
            if !words.passes("grant") {
                return Err(words.expected("`grant` or `deny`"));
            }
            self.grant(zone, (rule, words), &mut grants)?;
        }
        Ok(grants)
    }

    /// Reads a rule of `update-policy` behind `grant`.
    fn grant(
        &mut self,
        zone: &Name,
        (rule, mut words): (&'s Statement, Cursor<'s>),
        grants: &mut Vec<Grant>,
    ) -> Result<(), ImportError> {
        let mut key = words;
        let identity = words.word("the name of a key")?;
        let kind = words.word("a kind of rule")?.to_ascii_lowercase();
        let name = match &*kind {
            "zonesub" => None,
            _ => Some(words.parsed::<Name>("a name")?),
        };
        let names = match names(&kind, name.as_ref(), zone) {
            Ok(names) => names,
            Err(why) => {
                self.leave(rule.cursor(), Effect::Lost, why);
                return Ok(());
            }
        };
        if identity.contains('*') {
            let why = "a right is for keys that are named: write one for each";
            self.leave(rule.cursor(), Effect::Lost, why);
            return Ok(());
        }
        let Some(key) = self.needed_key(&mut key)? else { return Ok(()) };
        let from = vec![format!("key {key}")];
        let grant = |types, records| {
            let (from, names) = (from.clone(), names.clone());
            Grant { from, names, types, records }
        };
        let (mut found, mut types) = (Vec::new(), Vec::new());
        if words.peek().is_none() {
            self.leave(rule.cursor(), Effect::Differs, FEWER_TYPES);
            found.push(grant(Vec::new(), None));
        }
        while words.peek().is_some() {
            match words.value("a type", counted_type)? {
                (_, Some(0)) => {
                    self.leave(rule.cursor(), Effect::Lost, "a number is from 1 to 65535");
                }
                (Type::ANY, records) => found.extend(Grant::all_types(&from, &names, records)),
                (rtype, _) if SIGNING_TYPES.contains(&rtype) => {
                    let why = "no client may change records that signing makes";
                    self.leave(rule.cursor(), Effect::Lost, why);
                }
                (rtype, Some(count)) => {
                    found.push(grant(vec![rtype.to_string()], Some(count)));
                }
                (rtype, None) => types.push(rtype.to_string()),
            }
        }
        if !types.is_empty() {
            found.push(grant(types, None));
        }
        self.add_rights(rule, found, grants);
        Ok(())
    }

    /// Adds the rights of a rule to those of the rules before, but those that would undo a number
    /// of records that one of these gives: rights add up.
    fn add_rights(&mut self, rule: &'s Statement, found: Vec<Grant>, grants: &mut Vec<Grant>) {
        for grant in found {
            if grants.iter().any(|former| grant.widens(former)) {
                let why = "rights add up: this one would allow more records than the number that \
                    stands before it";
                self.leave(rule.cursor(), Effect::Lost, why);
            } else {
                grants.push(grant);
            }
        }
    }
}

/// The names of a right by the kind of a rule, and its name, if it has one.
///
/// # Errors
/// Why there is no such right.
fn names(kind: &str, name: Option<&Name>, zone: &Name) -> Result<String, &'static str> {
    let text = name.map(written).unwrap_or_default();
    let top = name.map(|name| name.to_lowercase());
    let zone = zone.to_lowercase();
    let is_in_zone = |it: &Name| name::is_at_or_below(it.as_wire(), zone.as_wire());
    let is_around = |it: &Name| name::is_at_or_below(zone.as_wire(), it.as_wire());
    match (kind, &top) {
        ("zonesub", _) => Ok("zone".to_owned()),
        ("self", _) => Ok("self".to_owned()),
        ("selfsub", _) => Ok("subdomain".to_owned()),
        ("selfwild", _) => Ok("wildcard".to_owned()),
        ("subdomain", Some(top)) if is_around(top) => Ok("zone".to_owned()),
        ("name" | "subdomain" | "wildcard", Some(top)) if is_in_zone(top) => {
            Ok(format!("{kind} {text}"))
        }
        ("name" | "subdomain" | "wildcard", _) => Err("the name is not in the zone"),
        _ => Err("there are no rights of this kind"),
    }
}

/// Whether a type, in text, is among those that a right has to name.
fn is_named(text: &str) -> bool {
    NAMED_TYPES.iter().any(|rtype| rtype.to_string() == text)
}

/// A type, and behind it, in parentheses, how many records of it a name may have.
fn counted_type(word: &str) -> Option<(Type, Option<u32>)> {
    match word.strip_suffix(')').and_then(|word| word.split_once('(')) {
        Some((rtype, count)) => {
            Some((rtype.parse().ok()?, Some(count.parse::<u16>().ok()?.into())))
        }
        None => Some((word.parse().ok()?, None)),
    }
}
