//! Rules and templates of server blocks, for the names whose queries the block gets.

use super::listeners::View;
use super::scope::{Borders, Scope};
use super::{Importer, key};
use crate::document::Effect::{self, Differs, Lost};
use crate::document::{Document, Value};
use crate::error::{ImportError, Place};
use zonda_wire::Name;

/// What is said of a rule whose new names can be those of another block.
const MAY_LEAD_ELSEWHERE: &str =
    "names that come of it and belong to another server block are answered by that one's zones";

/// A rule or a template of a server block.
pub struct BlockChange {
    /// The section that it becomes: `rewrite` or `template`.
    pub section: &'static str,
    /// The keys that it has of its own.
    pub keys: Vec<(&'static str, Value)>,
    /// The zones that it is for; none: those of the block.
    pub zones: Option<Vec<Name>>,
    /// Where the names lie that come of it.
    pub target: Target,
    /// Whether it is for all replies, whatever rules come after it.
    pub is_header: bool,
    /// Whether it writes the name of its zone into records.
    pub has_zone: bool,
    /// Place of its first word.
    pub place: Place,
    /// Words of its line.
    pub what: String,
}

impl BlockChange {
    /// Whether queries get another name or type.
    pub fn changes_question(&self) -> bool {
        self.section == "rewrite" && (self.sets_type() || !matches!(self.target, Target::Unchanged))
    }

    /// Whether queries get another type.
    pub fn sets_type(&self) -> bool {
        self.keys.iter().any(|(key, _)| *key == "to-qtype")
    }
}

/// Where the names lie that come of a rule.
pub enum Target {
    /// The rule changes no name.
    Unchanged,
    /// The name is always this one.
    Name(Name),
    /// All names are this one, or end with it.
    Below(Name),
    /// The pattern and the name that is asked for decide.
    Unknown,
}

impl Importer<'_> {
    /// Reports rules that lead to names whose queries another block gets: CoreDNS asks the plugins
    /// of the rule's own block for them.
    pub(super) fn check_changes(&mut self) -> Result<(), ImportError> {
        let borders: Vec<Borders> = self.views.iter().map(Borders::new).collect();
        self.find_scopes(&borders)?;
        let mut reports = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            for change in &block.changes {
                let views = self.views_of(number).iter();
                let views = views.filter_map(|at| self.views.get(*at).zip(borders.get(*at)));
                let mut told: Vec<(Effect, &str)> = Vec::new();
                for verdict in views.filter_map(|view| trouble(&change.target, view, number)) {
                    if !told.contains(&verdict) {
                        told.push(verdict);
                    }
                }
                let words = (change.place.clone(), change.what.clone());
                reports.extend(told.into_iter().map(|(effect, why)| (words.clone(), effect, why)));
            }
        }
        let mut scopes = self.scopes.iter().peekable();
        for (number, block) in self.blocks.iter().enumerate() {
            for (at, change) in block.changes.iter().enumerate() {
                let words = (change.place.clone(), change.what.clone());
                let zones = change.zones.as_deref().unwrap_or_default();
                let (mut is_used, mut is_whole) = (false, true);
                while let Some(scope) = scopes.next_if(|it| (it.block, it.change) == (number, at)) {
                    is_used = true;
                    is_whole &= zones.contains(&scope.zone);
                }
                if !is_used {
                    reports.push((words, Lost, "the block gets no queries for its zones"));
                } else if change.has_zone && !is_whole {
                    reports.push((words, Lost, "`.Zone` is that of the block, which is in it"));
                }
            }
        }
        for block in self.blocks.iter().filter(|block| block.sources.is_empty()) {
            for rule in &block.access {
                let why = "the block has no zone that could carry it: add a `forward`, `file` or \
                    `hosts` to the block";
                reports.push(((rule.place.clone(), rule.rule.clone()), Lost, why));
            }
        }
        for ((place, what), effect, why) in reports {
            self.leave_at(&place, effect, what, why);
        }
        Ok(())
    }

    /// Writes the rules, or the templates, of all blocks.
    pub(super) fn write_changes(&self, document: &mut Document, section: &str) {
        let mut sorted: Vec<(usize, bool, &BlockChange, &Scope)> = Vec::new();
        for scope in &self.scopes {
            let block = self.blocks.get(scope.block);
            let change = block.and_then(|block| block.changes.get(scope.change));
            if let Some(change) = change.filter(|it| it.section == section) {
                sorted.push((scope.block, !change.is_header, change, scope));
            }
        }
        sorted.sort_by_key(|(block, is_later, ..)| (*block, *is_later));
        for (block, _, change, scope) in sorted {
            document.section(&format!("[[{section}]]"), Some(&change.place));
            let written = key::written(&scope.zone);
            match section {
                "template" => document.key("zones", &[written][..], None),
                _ if scope.zone.label_count() > 0 => document.key("zone", &*written, None),
                _ => {}
            }
            if let Some(listen) = self.listen_of(&scope.views) {
                document.key("listen", &listen[..], self.place_of(block));
            }
            if !scope.except.is_empty() {
                let names: Vec<String> = scope.except.iter().map(key::written).collect();
                document.key("except", &names[..], None);
            }
            for (name, value) in &change.keys {
                document.key(name, value.clone(), None);
            }
        }
    }
}

/// Returns what is to be said of a rule of a block, as far as the names of a view are concerned
/// that come of it.
fn trouble(
    target: &Target,
    (view, borders): (&View, &Borders),
    block: usize,
) -> Option<(Effect, &'static str)> {
    match target {
        Target::Name(name) | Target::Below(name) if view.owner(name) != Some(block) => Some((
            Lost,
            "the new name is one of another server block, or of none, whose zones answer for it \
             here",
        )),
        Target::Below(zone) if borders.has_hole_in(zone, block) => {
            Some((Differs, MAY_LEAD_ELSEWHERE))
        }
        Target::Unknown if borders.are_of_several_blocks() => Some((Differs, MAY_LEAD_ELSEWHERE)),
        _ => None,
    }
}
