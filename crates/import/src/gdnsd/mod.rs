//! gdnsd's configuration, and the zone files beside it.
//!
//! Read are `config` with all that it includes, and every file in `zones` beside it. Each DYNA and
//! DYNC record becomes an entry of `steer`, its resource a pool. What is not read: states that an
//! administrator has forced, in `admin_state`.
//!
//! Deliberately absent: resources that no record refers to, which are listed.

mod addresses;
mod datacenters;
mod geoip;
mod options;
mod resources;
mod services;
mod vscf;

use crate::document::{Effect, ReportLine};
use crate::error::{ImportError, Place, Problem};
use crate::master::{self, Dialect, SpecialRecord, ttl_secs};
use crate::steering::{Configuration, Zone, zone_file};
use crate::tree::{Content, Node, expected, fail};
use crate::value::get;
use crate::{Files, Import, NewFile};
use options::Limits;
use resources::Resources;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use zonda_wire::Name;

/// Zone files that are read.
const ZONES_MAX: usize = 100_000;

/// Makes a `zonda.toml` and zone files of the configuration with this path.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn import(path: &Path, files: &mut dyn Files) -> Result<Import, ImportError> {
    let root = vscf::read(path, files)?;
    let Content::Map(pairs) = &root.content else { return Err(expected(&root, "keys")) };
    if let Some((_, place, _)) = pairs.iter().find(|(key, ..)| !TOP.contains(&key.as_str())) {
        let wanted = "`options`, `service_types` or `plugins`".to_owned();
        let found = "another key".to_owned();
        return Err(fail(place.clone(), Problem::Expected { wanted, found }));
    }
    let mut report = Report::default();
    let mut configuration = Configuration::default();
    let options = get(&root, "options")?;
    let limits = options::take(options, &root.place, &mut configuration, &mut report)?;
    let services = services::read(get(&root, "service_types")?, &mut report)?;
    let base = path.parent().unwrap_or(Path::new("")).to_owned();
    let plugins = get(&root, "plugins")?;
    let resources = Resources::new(plugins, services, base.join("geoip"));
    let mut importer = Importer { configuration, report, resources, limits, new_files: Vec::new() };
    importer.zones(&base.join("zones"), files)?;
    importer.resources.tell_unused(&mut importer.report)?;
    let toml = importer.configuration.write(path);
    Ok(Import {
        toml,
        files: importer.new_files,
        report: importer.report.finish(),
        is_followed: false,
    })
}

/// Keys at the top of the configuration.
const TOP: &[&str] = &["options", "service_types", "plugins"];

/// A configuration being carried over.
struct Importer<'t> {
    configuration: Configuration,
    report: Report,
    resources: Resources<'t>,
    limits: Limits,
    /// New zone files.
    new_files: Vec<NewFile>,
}

impl Importer<'_> {
    /// Carries over all zones of a folder; there need not be one.
    fn zones(&mut self, folder: &Path, files: &mut dyn Files) -> Result<(), ImportError> {
        let mut names = files.list(folder).unwrap_or_default();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        if names.len() > ZONES_MAX {
            let problem = Problem::TooMuch("zone files", ZONES_MAX);
            return Err(ImportError { place: None, problem });
        }
        names.iter().try_for_each(|name| self.zone(&folder.join(name), name, files))
    }

    /// Carries over a zone, whose name is that of its file.
    fn zone(
        &mut self,
        path: &Path,
        file_name: &str,
        files: &mut dyn Files,
    ) -> Result<(), ImportError> {
        let place = Place { file: path.into(), line: 1, column: 1 };
        let text = match file_name {
            "ROOT_ZONE" => ".".to_owned(),
            name => name.replace('@', "/"),
        };
        let zone = text.parse::<Name>().map_err(|why| {
            let problem = Problem::NotAName(text.clone(), why);
            ImportError { place: Some(place.clone()), problem }
        })?;
        let default_ttl = Some(self.limits.zones_default_ttl);
        let dialect = Dialect { types: &["DYNA", "DYNC"], is_gdnsd: true, default_ttl };
        let copy = master::copy(path, Some(&zone), &dialect, files)?;
        let name = zone.to_lowercase().to_string();
        let name = if name == "." { name } else { name.trim_end_matches('.').to_owned() };
        let mut steer = Vec::new();
        for record in &copy.special {
            steer.extend(self.record(record, &zone, files)?);
        }
        let file = zone_file(&name);
        self.new_files.push(NewFile { path: PathBuf::from(&file), text: copy.text });
        self.configuration.zones.push(Zone { name, origin: place, file, steer });
        Ok(())
    }

    /// Makes entries of `steer` of a DYNA or DYNC record.
    fn record(
        &mut self,
        record: &SpecialRecord,
        zone: &Name,
        files: &mut dyn Files,
    ) -> Result<Vec<(String, String)>, ImportError> {
        let Some((data, _, place)) = record.data.first() else {
            let found = "nothing".to_owned();
            let wanted = "the name of a plugin".to_owned();
            return Err(fail(record.place.clone(), Problem::Expected { wanted, found }));
        };
        let ttl = self.ttl(record, place)?;
        let (plugin, resource) = data.split_once('!').unwrap_or((data, ""));
        let pools = &mut self.configuration;
        let found =
            self.resources.pools((plugin, resource), ttl, place, pools, &mut self.report, files)?;
        let owner = master::relative(&record.owner, zone);
        let is_dync = record.rtype == "DYNC";
        let mut entries = Vec::new();
        for (types, pool) in found {
            if types == "CNAME" && !is_dync {
                let wanted = "a resource with addresses, or DYNC".to_owned();
                let found = format!("`{}`", data.escape_debug());
                return Err(fail(place.clone(), Problem::Expected { wanted, found }));
            }
            entries.push((format!("{owner} {types}"), pool));
        }
        Ok(entries)
    }

    /// Returns the lowest and highest TTL of a record: `MAX[/MIN]`.
    fn ttl(&self, record: &SpecialRecord, place: &Place) -> Result<(u32, u32), ImportError> {
        let text = record.ttl.as_deref().unwrap_or_default();
        let (highest, lowest) = match text.split_once('/') {
            Some((highest, lowest)) => (ttl_secs(highest), ttl_secs(lowest)),
            None => (ttl_secs(text), ttl_secs(text).map(|ttl| ttl / 2)),
        };
        let (Some(highest), Some(lowest)) = (highest, lowest) else {
            let wanted = "a TTL such as `300` or `300/30`".to_owned();
            let found = format!("`{}`", text.escape_debug());
            return Err(fail(place.clone(), Problem::Expected { wanted, found }));
        };
        let clamp = |ttl: u32| ttl.clamp(self.limits.min_ttl, self.limits.max_ttl);
        Ok((clamp(lowest.min(highest)), clamp(highest)))
    }
}

/// Lines of the report, none twice.
#[derive(Default)]
struct Report {
    lines: Vec<ReportLine>,
    known: HashSet<(Place, String)>,
}

impl Report {
    /// Adds a line.
    fn tell(&mut self, place: &Place, effect: Effect, what: &str, why: &str) {
        let what = what.escape_debug().to_string();
        if self.known.insert((place.clone(), format!("{what}: {why}"))) {
            self.lines.push(ReportLine { place: place.clone(), effect, what, why: why.to_owned() });
        }
    }

    /// Returns all lines in the order of the files.
    fn finish(mut self) -> Vec<ReportLine> {
        let order = |it: &ReportLine| (it.place.file.clone(), it.place.line, it.place.column);
        self.lines.sort_by_key(order);
        self.lines
    }
}

/// Returns the text of a scalar, for what can only be that.
fn text_of(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Scalar(text, _) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
