//! `zonda check`: all that is wrong with the zones of a configuration.

use crate::delegations::Delegations;
use crate::failed_zones::FailedZone;
#[cfg(feature = "whole")]
use crate::feed::cluster_subjects;
use crate::feed::open::check_store;
use crate::load::{read, unix_secs};
use crate::texts::{Texts, read_text, text_label};
use crate::units::{Unit, survey};
use std::collections::HashSet;
use std::fmt;
use zonda_config::{Config, Zone};
use zonda_wire::Name;
use zonda_zone::{Diagnostics, HashSeed, JsonFile, JsonZone, Records, Severity, build, check};

/// Errors of a zone that are told one by one.
const TOLD_MAX: usize = 20;

/// Zones whose mistakes are all told; of further ones, the first mistake of each is.
const TOLD_ZONES_MAX: usize = 20;

/// What [`check()`] found.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckReport {
    /// Zones: those that were read, and those that other servers answer for.
    pub zones: u64,
    /// Errors: what keeps a zone from being served, or from being answered as it is meant.
    pub errors: u64,
    /// Warnings: what is served, and may not be meant.
    pub warnings: u64,
}

/// Reads all zones of a configuration and tells `print` of everything that is wrong, a line each.
pub fn check(config: &Config, print: &mut dyn FnMut(&str)) -> CheckReport {
    let survey = survey(&config.zones, |_| Vec::new());
    let mut delegations = Delegations::new(config);
    let names = survey.units.iter().filter_map(|unit| unit.key.content.only_zone());
    names.for_each(|name| delegations.add_zone(name));
    let of_names = config.zones.iter().filter(|zone| !zone.terms.steer.is_empty());
    let of_flags = config.steered.iter().map(|(zone, _)| zone);
    let steered = of_names.filter_map(|zone| zone.name.as_ref()).chain(of_flags).collect();
    let report = CheckReport::default();
    let mut checker = Checker { report, config, delegations, steered, print };
    for (zone, store) in config.stores() {
        checker.report.zones += 1;
        if let (Some(name), Err(error)) = (&zone.name, check_store(store)) {
            checker.error(&format!("zone {name}: {}: {error}", store.url));
        }
    }
    checker.report.zones += config.secondaries().count() as u64;
    checker.report.zones += config.made_catalogs().count() as u64;
    #[cfg(feature = "whole")]
    for (zone, keys) in config.clusters() {
        checker.report.zones += 1 + keys.reverse_zones().len() as u64;
        if let (Some(name), Err(error)) = (&zone.name, cluster_subjects::check(keys)) {
            checker.error(&format!("zone {name}: {error}"));
        }
    }
    for (_, error) in &survey.unreadable {
        checker.error(&error.first);
    }
    for ignored in &survey.ignored {
        checker.report.warnings += 1;
        (checker.print)(ignored);
    }
    survey.units.iter().for_each(|unit| checker.unit(unit));
    for warning in checker.delegations.warnings() {
        checker.report.warnings += 1;
        (checker.print)(&warning);
    }
    // A hosts file in front of a forwarded zone was read as a zone of that name.
    let forwarded = config.forwards().filter(|(zone, _)| zone.terms.hosts.is_none()).count();
    checker.report.zones += forwarded as u64;
    checker.report
}

/// Reads the text of a zone that a program gives, as if it were to be served.
///
/// # Errors
/// What keeps it from that, a line each: `example.org. (of the program):3:5: error: …`.
pub fn check_text(name: &Name, text: &str) -> Result<(), String> {
    let (records, diagnostics) = read_text(name, text);
    let wrong = errors(&diagnostics, &text_label(name).display(), [(name, &records)].into_iter());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Reads those texts whose zones' names are among `names`, and tells which of them cannot be
/// served, with all that is wrong.
pub fn check_texts(texts: &Texts, names: &HashSet<Name>) -> Vec<FailedZone> {
    let texts = texts.iter().filter(|(name, _)| names.contains(name));
    let failed = texts.filter_map(|(name, text)| {
        let error = check_text(name, text).err()?;
        Some(FailedZone { name: Some(name.clone()), is_served: false, error })
    });
    failed.collect()
}

/// Reads those zones whose names, in lower case, are among `names`, and tells which of them cannot
/// be served, with all that is wrong.
#[must_use]
pub fn check_zones(zones: &[Zone], names: &HashSet<Name>) -> Vec<FailedZone> {
    let units = survey(zones, |_| Vec::new()).units.into_iter();
    let failed = units.filter_map(|unit| {
        let name = unit.key.content.only_zone()?.to_lowercase();
        let errors = if names.contains(&name) { errors_of_unit(&unit) } else { Vec::new() };
        let (name, is_served, error) = (Some(name), false, errors.join("\n"));
        (!errors.is_empty()).then_some(FailedZone { name, is_served, error })
    });
    failed.collect()
}

/// Tells all mistakes of zones that failed instead of the first of each: reads them again, but not
/// those that have so many zones before them that a developer mends these first.
pub fn tell_all_mistakes(failed: &mut [FailedZone], config: &Config, texts: &Texts) {
    let told = failed.len().min(TOLD_ZONES_MAX);
    let first = &mut failed[..told];
    let names: HashSet<Name> = first.iter().filter_map(|zone| zone.name.clone()).collect();
    let of_texts = check_texts(texts, &names);
    for read in check_zones(&config.zones, &names).into_iter().chain(of_texts) {
        if let Some(zone) = first.iter_mut().find(|zone| zone.name == read.name) {
            zone.error = read.error;
        }
    }
}

/// What keeps the zones of a unit from being served, a line each.
fn errors_of_unit(unit: &Unit) -> Vec<String> {
    let JsonFile { zones, diagnostics, .. } = read(unit);
    let zones = zones.iter().map(|JsonZone { name, records, .. }| (name, records));
    errors(&diagnostics, &unit.key, zones)
}

/// What keeps zones from being served, a line each, as found when `file` was read.
fn errors<'z>(
    diagnostics: &Diagnostics,
    file: &dyn fmt::Display,
    zones: impl Iterator<Item = (&'z Name, &'z Records)>,
) -> Vec<String> {
    let errors = diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let mut wrong: Vec<String> = errors.take(TOLD_MAX).map(ToString::to_string).collect();
    let unlisted = diagnostics.error_count().saturating_sub(wrong.len() as u64);
    if unlisted > 0 {
        wrong.push(format!("and {unlisted} more errors"));
    }
    if wrong.is_empty() {
        wrong.extend(zones.filter_map(|(name, records)| {
            let error = build(name, records, HashSeed::random()).err()?;
            Some(format!("{file}: zone {name}: {error}"))
        }));
    }
    wrong
}

/// A check under way.
struct Checker<'p> {
    report: CheckReport,
    config: &'p Config,
    delegations: Delegations,
    /// The zones with names that pools answer for.
    steered: HashSet<&'p Name>,
    print: &'p mut dyn FnMut(&str),
}

impl Checker<'_> {
    /// Checks the zones of a unit.
    fn unit(&mut self, unit: &Unit) {
        let JsonFile { zones, diagnostics, .. } = read(unit);
        self.diagnostics(&diagnostics);
        self.report.zones += zones.len() as u64;
        zones.iter().for_each(|zone| self.delegations.add_zone(&zone.name));
        for JsonZone { name, records, .. } in zones.into_iter().filter(|zone| !zone.is_lost()) {
            let is_looked_up = |target: &[u8]| self.config.looks_up_alias(target);
            self.diagnostics(&check::unresolved_aliases(&name, &records, is_looked_up));
            if unit.is_checked() {
                let found = check::check(&name, &records, unix_secs());
                self.diagnostics(&found);
                if found.has_errors() {
                    continue;
                }
            }
            self.delegations.add(&name, &records);
            let path = unit.key.path();
            let path = path.display();
            match build(&name, &records, HashSeed::random()) {
                Ok(zone) if zone.is_signed() && self.steered.contains(&name) => {
                    self.report.warnings += 1;
                    (self.print)(&format!(
                        "{path}:0:0: warning: zone {name} is signed, so that `steer` has no \
                         effect: no signature would be of the records that pools choose; leave out \
                         the signatures, or steer names of a zone below it that has none"
                    ));
                }
                Ok(_) => {}
                Err(error) => self.error(&format!("{path}:0:0: error: zone {name}: {error}")),
            }
        }
    }

    /// Counts and prints an error.
    fn error(&mut self, line: &str) {
        self.report.errors += 1;
        (self.print)(line);
    }

    /// Counts and prints diagnostics.
    fn diagnostics(&mut self, diagnostics: &Diagnostics) {
        self.report.errors += diagnostics.error_count();
        self.report.warnings += diagnostics.warning_count();
        diagnostics.iter().for_each(|diagnostic| (self.print)(&diagnostic.to_string()));
        if diagnostics.unlisted_count() > 0 {
            (self.print)(&format!("and {} more errors and warnings", diagnostics.unlisted_count()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_keeps_a_text_from_being_served_is_told_by_its_line() {
        let name: Name = "example.org".parse().unwrap();
        let told = |text: &str| check_text(&name, text);
        let soa = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n";
        assert_eq!(told(soa), Ok(()));
        assert_eq!(told(&format!("{soa}@ 60 NS nowhere\n")), Ok(()), "a warning keeps nothing");
        let error = told(&format!("{soa}a 60 A 192.0.2\nb 60 AAAA ::x\n")).unwrap_err();
        let lines: Vec<_> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert!(lines[0].starts_with("example.org. (of the program):4:"), "{error}");
        assert!(lines[1].starts_with("example.org. (of the program):5:"), "{error}");
        let error = told("a 60 A 192.0.2.1\n").unwrap_err();
        assert!(error.contains("example.org. (of the program)"), "{error}");
        let many = "a 60 A 192.0.2\n".repeat(30);
        let error = told(&format!("{soa}{many}")).unwrap_err();
        assert!(error.ends_with("\nand 10 more errors"), "{error}");
    }
}
