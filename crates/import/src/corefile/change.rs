//! Rules and templates of server blocks, for the names whose queries the block gets.

use super::{Importer, key};
use crate::document::Effect::{Differs, Lost};
use crate::document::{Document, Value};
use crate::error::Place;
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
    pub(super) fn check_changes(&mut self) {
        let mut reports = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            for change in &block.changes {
                let words = (change.place.clone(), change.what.clone());
                match &change.target {
                    Target::Name(name) | Target::Below(name)
                        if self.owner(name) != Some(number) =>
                    {
                        let why = "the new name is one of another server block, or of none, whose \
                            zones answer for it here";
                        reports.push((words, Lost, why));
                    }
                    Target::Below(zone) if self.has_inside(zone, number) => {
                        reports.push((words, Differs, MAY_LEAD_ELSEWHERE));
                    }
                    Target::Unknown if self.has_inside(&Name::root(), number) => {
                        reports.push((words, Differs, MAY_LEAD_ELSEWHERE));
                    }
                    _ => {}
                }
                let scopes = self.scopes(number, change.zones.as_deref());
                let words = (change.place.clone(), change.what.clone());
                let zones = change.zones.as_deref().unwrap_or_default();
                if scopes.is_empty() {
                    reports.push((words, Lost, "the block gets no queries for its zones"));
                } else if change.has_zone && scopes.iter().any(|(zone, _)| !zones.contains(zone)) {
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
    }

    /// Whether another block gets queries for names in a zone.
    fn has_inside(&self, zone: &Name, block: usize) -> bool {
        self.owners.iter().any(|(name, owner)| *owner != block && key::is_in(name, zone))
    }

    /// Returns the zones that hold those names of `zones` whose queries a block gets, each with the
    /// names in it that another block gets.
    fn scopes(&self, block: usize, zones: Option<&[Name]>) -> Vec<(Name, Vec<Name>)> {
        let root = [Name::root()];
        let above = |name: &Name| {
            let parent = zonda_wire::name::parent(name.as_wire())?;
            self.owner(&Name::from_wire(parent).ok()?)
        };
        let mut found: Vec<Name> = Vec::new();
        for zone in zones.unwrap_or(&root) {
            if self.owner(zone) == Some(block) && !found.contains(zone) {
                found.push(zone.clone());
            }
            let mut own: Vec<&Name> = self.owners.keys().collect();
            own.retain(|key| key::is_in(key, zone) && *key != zone);
            own.retain(|key| self.owner(key) == Some(block) && above(key) != Some(block));
            own.sort_by(|a, b| zonda_wire::name::canonical_cmp(a.as_wire(), b.as_wire()));
            for key in own {
                if !found.contains(key) {
                    found.push(key.clone());
                }
            }
        }
        let without = |zone: &Name| {
            let mut except: Vec<Name> = self.owners.keys().cloned().collect();
            except.retain(|key| key::is_in(key, zone) && key != zone);
            except.retain(|key| self.owner(key) != Some(block) && above(key) == Some(block));
            except.sort_by(|a, b| zonda_wire::name::canonical_cmp(a.as_wire(), b.as_wire()));
            except
        };
        found.into_iter().map(|zone| (zone.clone(), without(&zone))).collect()
    }

    /// Writes the rules, or the templates, of all blocks.
    pub(super) fn write_changes(&self, document: &mut Document, section: &str) {
        for (number, block) in self.blocks.iter().enumerate() {
            let of_section = || block.changes.iter().filter(|it| it.section == section);
            let first = of_section().filter(|it| it.is_header);
            for change in first.chain(of_section().filter(|it| !it.is_header)) {
                for (zone, except) in self.scopes(number, change.zones.as_deref()) {
                    document.section(&format!("[[{section}]]"), Some(&change.place));
                    let written = key::written(&zone);
                    match section {
                        "template" => document.key("zones", &[written][..], None),
                        _ if zone.label_count() > 0 => document.key("zone", &*written, None),
                        _ => {}
                    }
                    if !except.is_empty() {
                        let names: Vec<String> = except.iter().map(key::written).collect();
                        document.key("except", &names[..], None);
                    }
                    for (name, value) in &change.keys {
                        document.key(name, value.clone(), None);
                    }
                }
            }
        }
    }
}
