//! `log [NAMES…] [FORMAT] { class … }`.

use super::key;
use super::parser::Line;
use super::setting::{Scalar, Setting};
use super::{Block, Importer};
use crate::document::Effect::Differs;
use crate::error::{ImportError, Place};
use zonda_wire::Name;

/// What may become of a query, in words that CoreDNS has, too, and means nearly the same by.
const OUTCOMES: [&str; 3] = ["success", "denial", "error"];

/// The queries that a line has logged.
#[derive(Clone, Debug)]
pub(super) struct LoggedQueries {
    /// The names, with all names below them; at least one.
    zones: Vec<Name>,
    /// What became of them, in the order of [`OUTCOMES`].
    outcomes: Vec<&'static str>,
    /// The place of the line.
    place: Place,
    /// The words of the line.
    what: String,
}

impl Importer<'_> {
    /// Reads `log`.
    pub(super) fn log(&mut self, line: &Line) -> Result<(), ImportError> {
        let mut zones = Vec::new();
        for argument in line.arguments() {
            match argument.text.contains(['{', ' ', '>']) {
                true => self.leave(line, Differs, "lines are as query-log.format says"),
                false => zones.extend(key::zones(argument)?),
            }
        }
        let mut classes = Vec::new();
        for option in &line.block {
            match option.name() {
                "class" => classes.extend(option.arguments().iter().map(|it| it.text.as_str())),
                _ => self.lose_option(option),
            }
        }
        let is_any = classes.is_empty() || classes.contains(&"all");
        if !is_any {
            let why = "a denial behind an alias, or without SOA record, is `denial`, and a \
                transfer, an update or a notification is what its response code says";
            self.leave(line, Differs, why);
        }
        let outcomes = OUTCOMES.into_iter().filter(|it| is_any || classes.contains(it));
        let outcomes = outcomes.collect();
        let own = self.current().zones();
        let is_own = |zone: &Name| own.iter().any(|own| key::is_in(zone, own));
        let (mut inside, outside): (Vec<_>, Vec<_>) = zones.into_iter().partition(is_own);
        // Names above those of the block stand for all that it has.
        let is_below = |own: &&Name| outside.iter().any(|zone| key::is_in(own, zone));
        inside.extend(own.iter().filter(is_below).cloned());
        if line.arguments().is_empty() || inside.is_empty() && outside.is_empty() {
            inside = own;
        }
        let (place, what) = (line.place().clone(), line.summary());
        if !inside.is_empty() {
            let zones = inside;
            self.current().logged.push(LoggedQueries { zones, outcomes, place, what });
        }
        Ok(())
    }

    /// Has queries logged: those for the names of each line, whatever the line of another block
    /// leaves out.
    pub(super) fn settle_log(&mut self) {
        let logged: Vec<LoggedQueries> =
            self.blocks.iter().flat_map(|it| it.logged.iter().cloned()).collect();
        let Some(first) = logged.first() else { return };
        let names: Vec<Name> = unique(logged.iter().flat_map(|it| &it.zones));
        let is_above = |zone: &&Name| names.iter().any(|name| key::is_in(zone, name));
        let unlogged = |block: &Block| -> Vec<Name> {
            let logs = |zone: &&Name| {
                block.logged.iter().any(|it| it.zones.iter().any(|name| key::is_in(zone, name)))
            };
            block.zones().iter().filter(|zone| !logs(zone)).cloned().collect()
        };
        let unlogged: Vec<Name> = self.blocks.iter().flat_map(unlogged).collect();
        let (both, except): (Vec<Name>, Vec<Name>) =
            unique(unlogged.iter().filter(is_above)).into_iter().partition(|it| names.contains(it));
        let has = |outcome: &&str| logged.iter().any(|it| it.outcomes.contains(outcome));
        let outcomes: Vec<String> =
            OUTCOMES.iter().filter(|it| has(it)).map(|it| (*it).to_owned()).collect();
        let origin = first.place.clone();
        let texts = |names: &[Name]| names.iter().map(key::written).collect::<Vec<_>>();
        let mut set = |key, value| {
            let (key, origin) = (("query-log", key), origin.clone());
            self.settings.push(Setting { key, value, origin });
        };
        set("output", Scalar::Text("stdout".to_owned()));
        if outcomes.len() < OUTCOMES.len() {
            set("outcomes", Scalar::List(outcomes.clone()));
        }
        if names != [Name::root()] {
            set("zones", Scalar::List(texts(&names)));
        }
        if !except.is_empty() {
            set("except", Scalar::List(texts(&except)));
        }
        for LoggedQueries { outcomes: own, zones, place, what } in logged {
            if own.len() < outcomes.len() {
                let why = "query-log.outcomes is for all names that are logged";
                self.leave_at(&place, Differs, what.clone(), why);
            }
            if zones.iter().any(|zone| both.contains(zone)) {
                let why = "queries for the names are logged at all addresses";
                self.leave_at(&place, Differs, what, why);
            }
        }
    }
}

/// The names, each once.
fn unique<'n>(names: impl Iterator<Item = &'n Name>) -> Vec<Name> {
    let mut all: Vec<Name> = Vec::new();
    for name in names {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}
