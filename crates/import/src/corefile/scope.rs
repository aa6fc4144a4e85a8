//! Zones of rules and templates: the names whose queries their block gets, at each listener.

use super::change::BlockChange;
use super::listeners::View;
use super::table::ancestors;
use super::{Importer, key};
use crate::error::{ImportError, Problem};
use crate::tree::fail;
use std::cmp::Ordering;
use std::collections::HashMap;
use zonda_wire::Name;

/// Names and listeners of all rules and templates, as often as they are written.
const WRITTEN_MAX: usize = 1_000_000;

/// A rule or a template for one zone.
pub(super) struct Scope {
    /// Number of the block.
    pub block: usize,
    /// Number of the rule or template in the block.
    pub change: usize,
    /// Zone of the names that it is for.
    pub zone: Name,
    /// Names in the zone that other blocks get.
    pub except: Vec<Name>,
    /// Numbers of the views that it is in, in ascending order.
    pub views: Vec<usize>,
}

/// The names at which the blocks of a view change, in canonical order.
#[derive(Default)]
pub(super) struct Borders {
    /// Names that a block gets, below a name that it does not get.
    own: HashMap<usize, Vec<Name>>,
    /// Names that a block does not get, below a name that it gets.
    holes: HashMap<usize, Vec<Name>>,
}

impl Borders {
    /// Finds those of a view.
    pub fn new(view: &View) -> Self {
        let mut borders = Self::default();
        let mut keys: Vec<(&Name, usize)> =
            view.owners.iter().map(|(key, at)| (key, *at)).collect();
        keys.sort_by(|a, b| zonda_wire::name::canonical_cmp(a.0.as_wire(), b.0.as_wire()));
        for (key, owner) in keys {
            let above = ancestors(key).find_map(|name| view.owners.get(&name).copied());
            if above == Some(owner) {
                continue;
            }
            borders.own.entry(owner).or_default().push(key.clone());
            if let Some(above) = above {
                borders.holes.entry(above).or_default().push(key.clone());
            }
        }
        borders
    }

    /// Whether another block gets names in a zone whose own name a block gets.
    pub fn has_hole_in(&self, zone: &Name, block: usize) -> bool {
        let holes = self.holes.get(&block).map_or(&[][..], |holes| holes);
        // In canonical order, the names in a zone follow on the name of the zone.
        let is_before = |name: &Name| {
            zonda_wire::name::canonical_cmp(name.as_wire(), zone.as_wire()) == Ordering::Less
        };
        let first = holes.partition_point(is_before);
        holes.get(first).is_some_and(|hole| key::is_in(hole, zone))
    }

    /// Whether several blocks get names.
    pub fn are_of_several_blocks(&self) -> bool {
        self.own.len() > 1
    }

    /// Returns the zones that hold those names of `zones` whose queries a block gets, each with the
    /// names in it that another block gets.
    fn scopes(&self, view: &View, block: usize, zones: &[Name]) -> Vec<(Name, Vec<Name>)> {
        let mut found: Vec<(Name, Vec<Name>)> = Vec::new();
        let mut numbers: HashMap<Name, usize> = HashMap::new();
        let mut add = |zone: &Name| {
            numbers.entry(zone.clone()).or_insert_with(|| {
                found.push((zone.clone(), Vec::new()));
                found.len() - 1
            });
        };
        let own = self.own.get(&block).map_or(&[][..], |own| own);
        for zone in zones {
            if view.owner(zone) == Some(block) {
                add(zone);
            }
            own.iter().filter(|key| key::is_in(key, zone) && *key != zone).for_each(&mut add);
        }
        for hole in self.holes.get(&block).into_iter().flatten() {
            for number in ancestors(hole).filter_map(|above| numbers.get(&above)) {
                let around = found.get_mut(*number);
                around.into_iter().for_each(|(_, except)| except.push(hole.clone()));
            }
        }
        found
    }
}

impl Importer<'_> {
    /// Finds the zones of all rules and templates. One that has the same zone in several views has
    /// it once.
    pub(super) fn find_scopes(&mut self, borders: &[Borders]) -> Result<(), ImportError> {
        let (mut all, mut written) = (Vec::new(), 0);
        for (block, it) in self.blocks.iter().enumerate() {
            for (change, rule) in it.changes.iter().enumerate() {
                let scopes = self.scopes_of((block, change), rule, borders);
                for scope in scopes {
                    let views = scope.views.iter().filter_map(|view| self.views.get(*view));
                    let listeners: usize = views.map(|view| view.listeners.len()).sum();
                    written += 1 + scope.except.len() + listeners;
                    all.push(scope);
                }
                if written > WRITTEN_MAX {
                    let problem = Problem::TooMuch("names and addresses of rules", WRITTEN_MAX);
                    return Err(fail(rule.place.clone(), problem));
                }
            }
        }
        self.scopes = all;
        Ok(())
    }

    /// Finds the zones of a rule or a template in all views.
    fn scopes_of(
        &self,
        (block, change): (usize, usize),
        rule: &BlockChange,
        borders: &[Borders],
    ) -> Vec<Scope> {
        let root = [Name::root()];
        let zones = rule.zones.as_deref().unwrap_or(&root);
        let mut numbers: HashMap<(Name, Vec<Name>), usize> = HashMap::new();
        let mut found: Vec<Scope> = Vec::new();
        for number in self.views_of(block) {
            let view = self.views.get(*number).zip(borders.get(*number));
            let scopes = view.map(|(view, borders)| borders.scopes(view, block, zones));
            for id in scopes.into_iter().flatten() {
                if let Some(scope) = numbers.get(&id).and_then(|at| found.get_mut(*at)) {
                    scope.views.push(*number);
                    continue;
                }
                let (zone, except) = id.clone();
                numbers.insert(id, found.len());
                found.push(Scope { block, change, zone, except, views: vec![*number] });
            }
        }
        found
    }
}
