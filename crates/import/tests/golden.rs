//! Whole configurations, and what is made of them: `tests/golden/NAME/in` and `out`. `UPDATE=1`
//! writes `out` anew.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use toml::de::DeTable;
use zonda_config::{Config, Flags};
use zonda_import::{Effect, Files, Import, gdnsd, opengslb, powerdns};

/// Folder in which the inputs seem to lie.
const FOLDER: &str = "/etc/other";

/// The inputs of a case.
struct Inputs(PathBuf);

impl Inputs {
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        let inside = path.strip_prefix(FOLDER).map_err(|_| io::ErrorKind::NotFound)?;
        Ok(self.0.join("in").join(inside))
    }
}

impl Files for Inputs {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(self.real(path)?)
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.real(folder)?)?;
        Ok(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
    }
}

fn case(name: &str) -> Inputs {
    Inputs(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name))
}

/// Imports the inputs of a case.
fn import(name: &str) -> Import {
    let path = |file: &str| Path::new(FOLDER).join(file);
    let mut inputs = case(name);
    match name {
        "opengslb" => opengslb::import(&path("config.yaml"), &mut inputs),
        "opengslb-agent" => opengslb::import(&path("agent.yaml"), &mut inputs),
        "gdnsd" => gdnsd::import(&path("config"), &mut inputs),
        "powerdns" => powerdns::import(&[path("example.com.zone")], None, &mut inputs),
        _ => panic!("there is no case {name}"),
    }
    .unwrap_or_else(|error| panic!("{name}: {error}"))
}

const CASES: &[&str] = &["opengslb", "opengslb-agent", "gdnsd", "powerdns"];

/// The files that an import gives.
fn outputs(import: &Import) -> BTreeMap<PathBuf, String> {
    let report: String = import.report.iter().map(|line| format!("{line}\n")).collect();
    let zones = import.files.iter().map(|file| (file.path.clone(), file.text.clone()));
    let own = [("zonda.toml", import.toml.clone()), ("report.txt", report)];
    zones.chain(own.map(|(name, text)| (name.into(), text))).collect()
}

/// Files below a folder with their texts.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                all.insert(path.strip_prefix(folder).unwrap().to_owned(), text);
            }
        }
    }
    all
}

#[test]
fn configurations_of_other_servers_become_what_is_written_down() {
    for name in CASES {
        let outputs = outputs(&import(name));
        let folder = case(name).0.join("out");
        if std::env::var_os("UPDATE").is_some() {
            let _ = fs::remove_dir_all(&folder); // there may be none yet
            for (path, text) in &outputs {
                let path = folder.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
        let expected = files_below(&folder);
        assert_eq!(expected.keys().collect::<Vec<_>>(), outputs.keys().collect::<Vec<_>>());
        for (path, text) in &outputs {
            let (expected, path) = (&expected[path], path.display());
            assert!(expected == text, "{name}/{path} differs; see `UPDATE=1`:\n{text}");
        }
    }
}

/// A database of locations in place of the one that a configuration names.
const LOCATIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../geo/tests/data/GeoLite2-City-Test.mmdb");

#[test]
fn what_is_made_of_configurations_is_toml_and_can_be_loaded() {
    for name in CASES {
        let import = import(name);
        let folder =
            std::env::temp_dir().join(format!("zonda-import-{name}-{}", std::process::id()));
        for (path, text) in outputs(&import) {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let is_database = |line: &&str| line.starts_with("database = ");
            let text = match text.lines().find(is_database) {
                Some(line) => text.replace(line, &format!("database = {LOCATIONS:?}")),
                None => text,
            };
            fs::write(path, text).unwrap();
        }
        let loaded = Config::load(Some(&folder.join("zonda.toml")), [], &Flags::default());
        fs::remove_dir_all(&folder).unwrap();
        let errors = loaded.err().unwrap_or_default();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let syntax = DeTable::parse(&import.toml);
        assert!(syntax.is_ok(), "{name}: {syntax:?}\n{}", import.toml);
        assert!(errors.is_empty(), "{name}: {errors:#?}\n{}", import.toml);
    }
}

#[test]
fn every_key_of_an_opengslb_configuration_has_its_line() {
    let mut effects = [0; 4];
    for name in ["opengslb", "opengslb-agent"] {
        for line in import(name).report {
            match line.effect {
                Effect::Taken => effects[0] += 1,
                Effect::Works => effects[1] += 1,
                Effect::Lost | Effect::Differs => effects[2] += 1,
                Effect::Needless => effects[3] += 1,
            }
        }
    }
    assert!(effects.iter().all(|count| *count > 5), "{effects:?}");
}
