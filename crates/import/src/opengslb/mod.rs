//! OpenGSLB's configuration in YAML.
//!
//! Read are all keys of OpenGSLB 1.1.9, of files that include each other too. Servers become
//! members of a pool for each domain, regions become sites. The report has a line for each key,
//! which says whether it was taken over, works here though it had no effect there, or has no
//! counterpart.
//!
//! Deliberately absent: what an overwatch keeps beside its files (domains and servers that came
//! over its API), and agents: their backends become members, which are checked from here.

mod files;
mod pools;
mod report;
mod settings;
mod source;
mod yaml;

use crate::document::{Effect, ReportLine};
use crate::error::{ImportError, Place};
use crate::steering::Configuration;
use crate::{Files, Import, NewFile};
use files::File;
use std::path::Path;

/// Makes a `zonda.toml` and zone files of a configuration.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn import(path: &Path, files: &mut dyn Files) -> Result<Import, ImportError> {
    let sources = files::read(path, files)?;
    let mut importer = Importer {
        sources: &sources,
        configuration: Configuration::default(),
        files: Vec::new(),
        report: report::keys(&sources),
    };
    importer.settings()?;
    importer.pools()?;
    let order = |line: &ReportLine| (line.place.file.clone(), line.place.line, line.place.column);
    importer.report.sort_by_key(order);
    let toml = importer.configuration.write(path);
    Ok(Import { toml, files: importer.files, report: importer.report, is_followed: false })
}

/// A configuration being carried over.
struct Importer<'s> {
    /// The files, the one that was named first.
    sources: &'s [File],
    configuration: Configuration,
    /// New zone files.
    files: Vec<NewFile>,
    report: Vec<ReportLine>,
}

impl Importer<'_> {
    /// Reports what became of a key, in place of the line that such keys have.
    fn tell_key(&mut self, place: &Place, effect: Effect, key: &str, why: &str) {
        let is_same = |line: &ReportLine| {
            (&line.place.file, line.place.line) == (&place.file, place.line) && line.what == key
        };
        self.report.retain(|line| !is_same(line));
        self.tell(place, effect, key, why);
    }

    /// Reports what became of one value.
    fn tell(&mut self, place: &Place, effect: Effect, what: &str, why: &str) {
        let place = place.clone();
        let (what, why) = (what.escape_debug().to_string(), why.to_owned());
        self.report.push(ReportLine { place, effect, what, why });
    }
}

#[cfg(test)]
mod tests;
