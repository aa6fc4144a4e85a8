//! `hosts [FILE [ZONES…]] { … }`.

use super::Importer;
use super::key;
use super::parser::Line;
use super::source::{FallThrough, Kind, Source};
use crate::NewFile;
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::{ImportError, Place};
use std::collections::HashSet;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The file that is read where none is named.
const FILE_DEFAULT: &str = "/etc/hosts";
/// TTL of the answers if the line has none, in seconds.
const TTL_DEFAULT: u64 = 3600;
/// The greatest TTL that is taken, in seconds.
const TTL_MAX: u64 = 7 * 86_400;

/// The options of a line being read.
struct Options {
    /// Addresses with their names, given in the Corefile itself.
    entries: Vec<String>,
    /// Names of these addresses, in lower case.
    names: HashSet<String>,
    fall_through: FallThrough,
    /// TTL of the answers, in seconds, and the line that says so.
    ttl: (u64, Place),
    /// The line that says that addresses have no names.
    no_reverse: Option<Place>,
}

impl Importer<'_> {
    /// Reads `hosts`.
    pub(super) fn hosts(&mut self, line: &Line) -> Result<(), ImportError> {
        let (file, zones) = match line.arguments() {
            [] => (None, &[][..]),
            [file, zones @ ..] => (Some(file), zones),
        };
        let is_for_all = zones.is_empty();
        let zones = match is_for_all {
            true => self.current().zones(),
            false => key::all_zones(zones)?,
        };
        let (entries, names) = (Vec::new(), HashSet::new());
        let (fall_through, ttl) = (FallThrough::Never, (TTL_DEFAULT, line.place().clone()));
        let mut options = Options { entries, names, fall_through, ttl, no_reverse: None };
        for option in &line.block {
            self.hosts_option(option, &mut options)?;
        }
        let root = self.current().root.clone();
        let path = root.join(file.map_or(FILE_DEFAULT, |it| it.text.as_str()));
        let hosts = match options.entries.is_empty() {
            true => path.to_string_lossy().into_owned(),
            false => self.new_hosts_file(line, file.map(|_| path.as_path()), &options),
        };
        let is_elsewhere = |it: &&zonda_wire::Name| !key::is_reverse(it) && it.label_count() > 0;
        if !is_for_all && zones.iter().any(|zone| is_elsewhere(&zone)) {
            let why = "names of addresses are known in the zones of the line only";
            self.leave(line, Differs, why);
        }
        let (place, what) = (line.place().clone(), line.summary());
        let (ttl, origin) = options.ttl;
        let ttl = format!("{ttl}s");
        let mut keys = vec![
            ("hosts", hosts.as_str().into(), place.clone()),
            ("hosts-ttl", ttl.as_str().into(), origin),
        ];
        keys.extend(options.no_reverse.map(|origin| ("hosts-reverse", false.into(), origin)));
        self.current().sources.push(Source {
            kind: Kind::Hosts,
            zones,
            except: Vec::new(),
            fall_through: options.fall_through,
            place,
            what,
            file: PathBuf::new(),
            keys,
            next: None,
        });
        Ok(())
    }

    /// Reads an option, or an address with its names.
    fn hosts_option(&mut self, option: &Line, to: &mut Options) -> Result<(), ImportError> {
        match option.name() {
            "fallthrough" => to.fall_through = fall_through(option)?,
            "ttl" => {
                let ttl: u64 = option.parsed("a number of seconds")?;
                to.ttl = (self.within(option, ttl, (0, TTL_MAX)), option.place().clone());
            }
            "reload" => {
                option.duration()?;
                self.leave(option, Needless, "the file is always watched, at `watch-interval`");
            }
            "no_reverse" => to.no_reverse = Some(option.place().clone()),
            "fallthrough_unsupported" => {
                self.leave(option, Lost, "names of the file have no records of other types");
            }
            address if address.parse::<IpAddr>().is_ok() => {
                let names = option.arguments().iter().map(|it| it.text.as_str());
                if names.clone().any(|name| name.contains('*')) {
                    self.leave(option, Lost, "a hosts file has no wildcards: see [override]");
                    return Ok(());
                }
                let mut entry = address.to_owned();
                for name in names {
                    let _ = write!(entry, " {name}"); // never fails
                    to.names.insert(name.trim_end_matches('.').to_ascii_lowercase());
                }
                to.entries.push(entry);
            }
            _ => self.lose_option(option),
        }
        Ok(())
    }

    /// Makes a file of the addresses given in the Corefile, and of those of a file that is named
    /// beside them; returns its path.
    fn new_hosts_file(&mut self, line: &Line, file: Option<&Path>, from: &Options) -> String {
        let mut text = format!("# {}: hosts\n", line.place());
        for entry in &from.entries {
            text.push_str(entry);
            text.push('\n');
        }
        match file {
            None => {
                let why = format!("{FILE_DEFAULT} is not read beside the lines given here");
                self.leave(line, Differs, why);
            }
            Some(path) => match self.files.read(path) {
                Ok(octets) => {
                    append(&mut text, &String::from_utf8_lossy(&octets), &from.names);
                    let why = "the lines that the file has now are copied: changes of it are \
                        not followed";
                    self.leave(line, Differs, why);
                }
                Err(error) => {
                    let path = path.to_string_lossy();
                    let why = format!("{}: {error}", path.escape_debug());
                    self.leave(line, Lost, why);
                }
            },
        }
        // Blocks at several addresses may have the same lines, of one snippet or not.
        let entries = text.split_once('\n').map(|it| it.1);
        let has_same = |it: &&NewFile| it.text.split_once('\n').map(|it| it.1) == entries;
        if let Some(same) = self.new_files.iter().find(has_same) {
            return same.path.to_string_lossy().into_owned();
        }
        let path = format!("hosts/{}.hosts", self.new_files.len() + 1);
        self.new_files.push(NewFile { path: PathBuf::from(&path), text });
        path
    }
}

/// Appends the entries of a hosts file, without names that are known.
fn append(text: &mut String, more: &str, known: &HashSet<String>) {
    for row in more.lines() {
        let row = row.split('#').next().unwrap_or_default();
        let mut words = row.split_whitespace();
        let Some(address) = words.next().filter(|it| it.parse::<IpAddr>().is_ok()) else {
            continue;
        };
        let is_new =
            |name: &&str| !known.contains(&name.trim_end_matches('.').to_ascii_lowercase());
        let names: Vec<&str> = words.filter(is_new).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "{address} {}", names.join(" ")); // never fails
        }
    }
}

/// Reads `fallthrough [ZONES…]`.
pub fn fall_through(option: &Line) -> Result<FallThrough, ImportError> {
    let zones = key::all_zones(option.arguments())?;
    Ok(match zones.is_empty() {
        true => FallThrough::Always,
        false => FallThrough::In(zones),
    })
}
