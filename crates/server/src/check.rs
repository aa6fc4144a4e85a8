//! `zonda check`: all that is wrong with the zones of a configuration.

use crate::load::{read, unix_secs};
use crate::units::{Unit, survey};
use zonda_config::Config;
use zonda_zone::{Diagnostics, HashSeed, JsonFile, JsonZone, build, check};

/// What [`check()`] found.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckReport {
    /// Zones that were read.
    pub zones: u64,
    /// Errors: what keeps a zone from being served, or from being answered as it is meant.
    pub errors: u64,
    /// Warnings.
    pub warnings: u64,
}

/// Reads all zones of a configuration and tells `print` of everything that is wrong, a line each.
pub fn check(config: &Config, print: &mut dyn FnMut(&str)) -> CheckReport {
    let mut checker = Checker { report: CheckReport::default(), print };
    let survey = survey(&config.zones, |_| Vec::new());
    for (_, error) in &survey.unreadable {
        checker.error(&error.first);
    }
    for ignored in &survey.ignored {
        checker.report.warnings += 1;
        (checker.print)(ignored);
    }
    survey.units.iter().for_each(|unit| checker.unit(unit));
    checker.report
}

/// A check under way.
struct Checker<'p> {
    report: CheckReport,
    print: &'p mut dyn FnMut(&str),
}

impl Checker<'_> {
    /// Checks the zones of a unit.
    fn unit(&mut self, unit: &Unit) {
        let JsonFile { zones, diagnostics, .. } = read(unit);
        self.diagnostics(&diagnostics);
        self.report.zones += zones.len() as u64;
        for JsonZone { name, records, .. } in zones.into_iter().filter(|zone| !zone.is_lost()) {
            if unit.is_checked() {
                let found = check::check(&name, &records, unix_secs());
                self.diagnostics(&found);
                if found.has_errors() {
                    continue;
                }
            }
            if let Err(error) = build(&name, &records, HashSeed::random()) {
                let path = unit.key.path.display();
                self.error(&format!("{path}:0:0: error: zone {name}: {error}"));
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
