//! `file FILE [ZONES…] { … }`, `auto [ZONES…] { … }` and `secondary [ZONES…] { … }`.

use super::hosts::fall_through;
use super::key;
use super::lexer::Token;
use super::parser::Line;
use super::setting::Scalar;
use super::source::{FallThrough, Kind, Source, ZoneKey};
use super::transfer::{PORT, server};
use super::{Directory, Importer};
use crate::document::Effect::{Differs, Lost, Needless};
use crate::document::Value;
use crate::error::{ImportError, Place};
use crate::value::read_duration;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zonda_wire::Name;

/// Time after which CoreDNS looks at a zone file again by default.
const RELOAD_DEFAULT: Duration = Duration::from_secs(60);
/// Times between two looks at a file.
const RELOADS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));
/// Zone files of a directory that are named one by one.
const FILES_MAX: usize = 10_000;

impl Importer<'_> {
    /// Reads `file`.
    pub(super) fn file(&mut self, line: &Line) -> Result<(), ImportError> {
        let Some((file, zones)) = line.arguments().split_first() else {
            return Err(line.expected("the path of a zone file"));
        };
        let zones = match zones {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        let path = self.current().root.join(&file.text);
        let mut reload = RELOAD_DEFAULT;
        for option in &line.block {
            match option.name() {
                "reload" => reload = option.duration()?,
                "upstream" => self.leave(option, Needless, "it has had no effect for long"),
                "reload_by_mtime" => {
                    self.leave(option, Needless, "a file that is watched is read when it changes");
                }
                "fallthrough" => {
                    fall_through(option)?;
                    self.leave(option, Lost, "names that a zone file lacks do not exist");
                }
                "transfer" => self.former_transfer(option, zones.clone())?,
                _ => self.lose_option(option),
            }
        }
        self.watch(line, reload);
        for zone in zones {
            self.add_file(line, zone, path.clone());
        }
        Ok(())
    }

    /// Reads `secondary`.
    pub(super) fn secondary(&mut self, line: &Line) -> Result<(), ImportError> {
        let zones = match line.arguments() {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        let mut from: Vec<String> = Vec::new();
        for option in &line.block {
            match (option.name(), option.arguments()) {
                ("transfer", [word, servers @ ..]) if word.is("from") => {
                    for server in servers {
                        let server = primary(server)?;
                        if !from.contains(&server) {
                            from.push(server);
                        }
                    }
                }
                ("upstream", _) => {
                    self.leave(option, Needless, "it has had no effect for long");
                }
                ("fallthrough", _) => {
                    fall_through(option)?;
                    self.leave(option, Lost, "names that the zone lacks do not exist");
                }
                _ => self.lose_option(option),
            }
        }
        if from.is_empty() {
            return Err(line.expected("`transfer from` with an address in the block"));
        }
        for zone in zones {
            let keys = vec![("from", Value::from(&from[..]), line.place().clone())];
            self.add_data(line, zone, PathBuf::new(), keys);
        }
        Ok(())
    }

    /// Adds a zone of a file.
    fn add_file(&mut self, line: &Line, zone: Name, file: PathBuf) {
        self.add_data(line, zone, file, Vec::new());
    }

    /// Adds a zone of a file, or of primaries by the keys of `[zone.secondary]`.
    fn add_data(&mut self, line: &Line, zone: Name, file: PathBuf, keys: Vec<ZoneKey>) {
        let (place, what) = (line.place().clone(), line.summary());
        self.current().sources.push(Source {
            kind: Kind::File,
            zones: vec![zone],
            except: Vec::new(),
            fall_through: FallThrough::Never,
            place,
            what,
            file,
            keys,
            next: None,
        });
    }

    /// Has files watched, as `reload` says; 0: not.
    fn watch(&mut self, line: &Line, reload: Duration) {
        if reload.is_zero() {
            return;
        }
        let time = self.time_within(line, reload, RELOADS);
        self.set(("", "watch"), Scalar::Flag(true), line);
        self.set(("", "watch-interval"), Scalar::Time(time), line);
    }

    /// Reads `auto`.
    pub(super) fn auto(&mut self, line: &Line) -> Result<(), ImportError> {
        let zones = key::all_zones(line.arguments())?;
        if !zones.is_empty() && !zones.iter().any(|zone| zone.label_count() == 0) {
            self.leave(line, Differs, "zones are served as their files are called");
        }
        let mut directory = None;
        let mut reload = RELOAD_DEFAULT;
        for option in &line.block {
            match option.name() {
                "directory" => directory = Some(option),
                "reload" => reload = option.duration()?,
                "upstream" => self.leave(option, Needless, "it has had no effect for long"),
                "transfer" => {
                    let zones = match &zones[..] {
                        [] => self.current().zones(),
                        zones => zones.to_vec(),
                    };
                    self.former_transfer(option, zones)?;
                }
                _ => self.lose_option(option),
            }
        }
        let Some(directory) = directory else { return Err(line.expected("`directory`")) };
        let (first, pattern) = match directory.arguments() {
            [first] => (first, None),
            [first, pattern, template] => (first, Some((pattern, template))),
            // An interval of another look stood here before `reload` was an option.
            [first, pattern, template, old] => {
                let time = read_duration(&old.text);
                reload = time
                    .or_else(|| Some(Duration::from_secs(old.text.parse().ok()?)))
                    .ok_or_else(|| old.expected("the end of the line"))?;
                (first, Some((pattern, template)))
            }
            _ => return Err(directory.expected("a directory, a pattern and a template")),
        };
        self.watch(line, reload);
        let path = self.current().root.join(&first.text);
        self.zones_of_directory(directory, &path, pattern)
    }

    /// Adds the zones of a directory: all at once, or, if their files are called otherwise, those
    /// that are there now.
    fn zones_of_directory(
        &mut self,
        line: &Line,
        path: &Path,
        pattern: Option<(&Token, &Token)>,
    ) -> Result<(), ImportError> {
        let around = match pattern {
            None => Some(("db.".to_owned(), String::new())),
            Some((pattern, template)) if template.is("{1}") => affixes(&pattern.text),
            Some(_) => None,
        };
        match around {
            Some((before, behind)) if before.is_empty() && behind == ".zone" => {
                let place: Place = line.place().clone();
                let block = self.blocks.len() - 1;
                let (path, views) = (path.to_owned(), Vec::new());
                self.directories.push(Directory { path, place, block, views });
            }
            Some((before, behind)) => {
                let mut names = match self.files.list(path) {
                    Ok(names) => names,
                    Err(error) => {
                        let path = path.to_string_lossy();
                        let why = format!("{}: {error}", path.escape_debug());
                        self.leave(line, Lost, why);
                        return Ok(());
                    }
                };
                names.sort();
                names.truncate(FILES_MAX);
                for name in names {
                    let zone = name.strip_prefix(&before).and_then(|it| it.strip_suffix(&behind));
                    let zone = zone.filter(|it| !it.is_empty()).and_then(|it| it.parse().ok());
                    if let Some(zone) = zone {
                        let zone: Name = zone;
                        self.add_file(line, zone.to_lowercase(), path.join(&name));
                    }
                }
                let why = "the files that are there now are named one by one; a `directory` has \
                    files called NAME.zone";
                self.leave(line, Differs, why);
            }
            None => {
                let why = "a `directory` has files called NAME.zone: there are no other patterns";
                self.leave(line, Lost, why);
            }
        }
        Ok(())
    }
}

/// Returns the address of a primary, with its port if that is not 53.
fn primary(word: &Token) -> Result<String, ImportError> {
    let server = server(word).ok_or_else(|| word.expected("the address of a primary"))?;
    Ok(if server.port() == PORT { server.ip().to_string() } else { server.to_string() })
}

/// Returns what stands before and behind the name of the zone in a pattern such as `db\.(.*)`.
fn affixes(pattern: &str) -> Option<(String, String)> {
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let pattern = pattern.strip_suffix('$').unwrap_or(pattern);
    let at = ["(.*)", "(.+)"].into_iter().find_map(|mark| pattern.split_once(mark))?;
    Some((literal(at.0)?, literal(at.1)?))
}

/// Returns the text that a regular expression stands for, if it is one text only. A dot is taken
/// for a dot, as patterns of file names and of domain names mean it.
pub fn literal(expression: &str) -> Option<String> {
    let expression = expression.replace("[.]", ".");
    let mut text = String::new();
    let mut characters = expression.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => text.push(characters.next().filter(char::is_ascii_punctuation)?),
            '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}
