//! The zone file of a command, in either form.

use crate::output::{self, Failure};
use clap::Args;
use std::io::Read;
use std::path::{Path, PathBuf};
use zonda_wire::{Name, Type, name};
use zonda_zone::{Diagnostics, JsonFile, JsonZone, Record, file, json};

/// How much of a file is searched for its SOA record, octets.
const HEAD_BYTES: u64 = 1 << 20;

/// Which file to read.
#[derive(Args)]
pub struct Input {
    /// A master file, or a JSON file of zones if its name ends in .json
    file: PathBuf,
    /// The zone's name, where the file does not say it by $ORIGIN or a SOA record with a whole
    /// name; of a JSON file, the one zone to take
    #[arg(long, value_name = "NAME")]
    origin: Option<Name>,
}

impl Input {
    /// Reads the zones of the file: one of a master file, any number of JSON.
    ///
    /// # Errors
    /// When there is no such file, or it is not known which zone it is.
    pub fn read(&self) -> Result<(Vec<JsonZone>, Diagnostics), String> {
        let file = self.file.display();
        // Asked for here, so that each form of file has the same words for it, and exit code.
        if let Err(error) = std::fs::metadata(&self.file) {
            return Err(format!("{file}: cannot be read: {error}"));
        }
        if self.file.extension().is_some_and(|extension| extension == "json") {
            let JsonFile { mut zones, diagnostics, .. } = json::read(&self.file);
            if let Some(wanted) = &self.origin {
                zones.retain(|zone| zone.name.to_lowercase() == wanted.to_lowercase());
                if zones.is_empty() && !diagnostics.has_errors() {
                    return Err(format!("{file}: there is no zone {wanted} in it"));
                }
            }
            return Ok((zones, diagnostics));
        }
        let name = match &self.origin {
            Some(name) => name.clone(),
            None => name_in(&self.file)?.ok_or_else(|| {
                format!("{file}: the file does not say which zone it is: add --origin NAME")
            })?,
        };
        let (records, diagnostics) = file::read(&self.file, &name, &file::Options::default());
        let errors = diagnostics.errors().cloned();
        Ok((vec![JsonZone { name, sha: None, records, errors }], diagnostics))
    }

    /// Reads the zones of a file without errors; warnings go to standard error.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read_whole(&self) -> Result<Vec<JsonZone>, Failure> {
        let (zones, diagnostics) = self.read()?;
        let told = diagnostics.to_string();
        told.lines().for_each(output::line);
        let because = match diagnostics.error_count() {
            0 => {
                zones.iter().for_each(|zone| self.warn_of_strangers(zone));
                return Ok(zones);
            }
            1 => "the error".to_owned(),
            n => format!("{n} errors"),
        };
        let file = self.file.display();
        Err(Failure::Failed(format!("{file}: not a whole zone, because of {because}")))
    }

    /// Warns of records that are no part of their zone, and so are never served.
    fn warn_of_strangers(&self, zone: &JsonZone) {
        let is_stranger =
            |record: &Record<'_>| !name::is_at_or_below(record.owner, zone.name.as_wire());
        let mut strangers = zone.records.iter().filter(is_stranger);
        let Some(first) = strangers.next() else { return };
        let (file, zone, more) = (self.file.display(), &zone.name, strangers.count());
        let (first, rtype) = (name::Presentation(first.owner), first.rtype);
        let more = if more == 0 { String::new() } else { format!(", and {more} more records,") };
        output::line(format_args!(
            "{file}: warning: {first} {rtype}{more} lies outside the zone {zone} and is not served"
        ));
    }
}

/// The owner of the SOA record at the beginning of a file, if it does not depend on the origin.
fn name_in(file: &Path) -> Result<Option<Name>, String> {
    let mut head = Vec::new();
    let opened = std::fs::File::open(file);
    opened
        .and_then(|opened| opened.take(HEAD_BYTES).read_to_end(&mut head))
        .map_err(|error| format!("{}: cannot be read: {error}", file.display()))?;
    let owner_within = |origin: &str| {
        let origin: Name = origin.parse().ok()?;
        let (records, _) = file::read_text(&head, file, &origin, &file::Options::default());
        let soa = records.iter().find(|record| record.rtype == Type::SOA)?;
        Name::from_wire(soa.owner).ok()
    };
    let [one, two] = ["one.invalid", "two.invalid"].map(owner_within);
    Ok(if one == two { one } else { None })
}
