//! PowerDNS's LUA records in zone files.
//!
//! Records whose text is a call of a function that a pool can stand for become pools ([`functions`]
//! has them all); the rest is listed by line. All other records are copied as they are.
//!
//! Deliberately absent: an interpreter of Lua, and PowerDNS's databases, whose zones `pdnsutil
//! list-zone` writes as files.

mod functions;
pub mod lua;
mod url;

use crate::document::{Effect, ReportLine};
use crate::error::{ImportError, Place, Problem};
use crate::master::{self, Dialect, SpecialRecord, ttl_secs};
use crate::steering::{Configuration, Pool, Target, Zone, zone_file};
use crate::tree::fail;
use crate::{Files, Import, NewFile};
use functions::Views;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use zonda_wire::Name;

/// Makes a `zonda.toml` and zone files of zone files. Without `origin`, the name of each zone is
/// the owner of its SOA record.
///
/// # Errors
/// The first thing that is wrong with them.
pub fn import(
    paths: &[PathBuf],
    origin: Option<&Name>,
    files: &mut dyn Files,
) -> Result<Import, ImportError> {
    let mut importer = Importer {
        configuration: Configuration::default(),
        views: Views::default(),
        report: Vec::new(),
        new_files: Vec::new(),
    };
    for path in paths {
        importer.zone(path, origin, files)?;
    }
    let order = |it: &ReportLine| (it.place.file.clone(), it.place.line, it.place.column);
    importer.report.sort_by_key(order);
    let shown = paths.first().map_or(Path::new(""), PathBuf::as_path);
    let toml = importer.configuration.write(shown);
    Ok(Import { toml, files: importer.new_files, report: importer.report, is_followed: false })
}

/// Zones being carried over.
struct Importer {
    configuration: Configuration,
    views: Views,
    report: Vec<ReportLine>,
    /// New zone files.
    new_files: Vec<NewFile>,
}

/// A pool for an owner and a type, which is not in the file yet.
struct SteeredSet {
    owner: Name,
    rtype: String,
    pool: Pool,
}

impl Importer {
    /// Carries over a zone.
    fn zone(
        &mut self,
        path: &Path,
        origin: Option<&Name>,
        files: &mut dyn Files,
    ) -> Result<(), ImportError> {
        let dialect = Dialect { types: &["LUA"], is_gdnsd: false, default_ttl: None };
        let copy = master::copy(path, origin, &dialect, files)?;
        let place = Place { file: path.into(), line: 1, column: 1 };
        let name = copy.zone.to_lowercase().to_string();
        let name = if name == "." { name } else { name.trim_end_matches('.').to_owned() };
        if let Some(first) = self.configuration.zones.iter().find(|zone| zone.name == name) {
            let problem = Problem::Twice(format!("the zone {name}"), first.origin.clone());
            return Err(fail(place, problem));
        }
        let mut found: Vec<SteeredSet> = Vec::new();
        let mut known = HashSet::new();
        for record in &copy.special {
            let Some(steered) = self.record(record)? else { continue };
            match known.insert((steered.owner.to_lowercase(), steered.rtype.clone())) {
                true => found.push(steered),
                false => {
                    let why = "another LUA record of this name and type stands before it";
                    self.tell(&record.place, Effect::Lost, &steered.rtype, why);
                }
            }
        }
        let steer = self.add(found, &copy.zone);
        let file = zone_file(&name);
        self.new_files.push(NewFile { path: PathBuf::from(&file), text: copy.text });
        self.configuration.zones.push(Zone { name, origin: place, file, steer });
        Ok(())
    }

    /// Makes a pool of a LUA record; none if it is reported as lost.
    fn record(&mut self, record: &SpecialRecord) -> Result<Option<SteeredSet>, ImportError> {
        let Some(((rtype, _, _), code)) = record.data.split_first() else {
            let wanted = "a type and a text in quotes".to_owned();
            let found = "nothing".to_owned();
            return Err(fail(record.place.clone(), Problem::Expected { wanted, found }));
        };
        let rtype = rtype.to_ascii_uppercase();
        let name = record.owner.to_lowercase().to_string();
        let name = match rtype.as_str() {
            "A" => name.trim_end_matches('.').to_owned(),
            other => format!("{}-{}", name.trim_end_matches('.'), other.to_ascii_lowercase()),
        };
        let mut text = String::new();
        for (word, _, place) in code {
            text.push_str(&unescaped(word).ok_or_else(|| fail(place.clone(), Problem::NotText))?);
        }
        let shown = format!("LUA {rtype}");
        if rtype == "LUA" {
            let why = "settings that other records include have to be run";
            self.tell(&record.place, Effect::Lost, &shown, why);
            return Ok(None);
        }
        let expression = match lua::read(&text) {
            Ok(expression) => expression,
            Err(error) => {
                self.tell(&record.place, Effect::Lost, &shown, &error.to_string());
                return Ok(None);
            }
        };
        let mut context = functions::Context {
            rtype: &rtype,
            name: &name,
            place: &record.place,
            configuration: &mut self.configuration,
            views: &mut self.views,
            notes: Vec::new(),
        };
        let made = context.pool(&expression);
        let notes = std::mem::take(&mut context.notes);
        match made {
            Ok(mut pool) => {
                for (effect, what, why) in notes {
                    self.tell(&record.place, effect, &what, &why);
                }
                pool.ttl = record.ttl.as_deref().and_then(ttl_secs).map(|ttl| (ttl, ttl));
                Ok(Some(SteeredSet { owner: record.owner.clone(), rtype, pool }))
            }
            Err(why) => {
                self.tell(&record.place, Effect::Lost, &shown, &why);
                Ok(None)
            }
        }
    }

    /// Adds pools to the file; those of A and AAAA at one name share one where they are alike.
    fn add(&mut self, found: Vec<SteeredSet>, zone: &Name) -> Vec<(String, String)> {
        let mut joined: Vec<(SteeredSet, String)> = Vec::new();
        for steered in found {
            let is_address = |rtype: &str| rtype == "A" || rtype == "AAAA";
            let partner = joined.iter_mut().find(|(first, types)| {
                first.owner.to_lowercase() == steered.owner.to_lowercase()
                    && is_address(types)
                    && is_address(&steered.rtype)
                    && first.pool.is_like(&steered.pool)
                    && !has_pools(&first.pool)
            });
            match partner {
                Some((first, types)) => {
                    first.pool.members.extend(steered.pool.members);
                    if first.rtype == "AAAA" {
                        first.pool.name = first.pool.name.trim_end_matches("-aaaa").to_owned();
                    }
                    "A,AAAA".clone_into(types);
                }
                None => {
                    let types = steered.rtype.clone();
                    joined.push((steered, types));
                }
            }
        }
        let mut steer = Vec::new();
        for (steered, types) in joined {
            let owner = master::relative(&steered.owner, zone);
            let pool = self.configuration.pools.add(steered.pool);
            steer.push((format!("{owner} {types}"), pool));
        }
        steer
    }

    /// Reports what became of a record.
    fn tell(&mut self, place: &Place, effect: Effect, what: &str, why: &str) {
        let place = place.clone();
        let (what, why) = (what.escape_debug().to_string(), why.to_owned());
        self.report.push(ReportLine { place, effect, what, why });
    }
}

/// Whether members of a pool are pools.
fn has_pools(pool: &Pool) -> bool {
    pool.members.iter().any(|member| matches!(member.target, Target::Pool(_)))
}

/// Returns a word of a zone file without its escapes; none if it is no text then.
fn unescaped(word: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        octets.push(match first {
            b'\\' => zonda_wire::name::unescape(&mut rest).ok()?,
            octet => *octet,
        });
    }
    String::from_utf8(octets).ok()
}

#[cfg(test)]
mod tests;
