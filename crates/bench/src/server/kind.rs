//! What is known of a server: a TOML file, shipped or given.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use super::StartError;
use crate::template::Values;

/// The files in `bench/servers`, in the order in which they are listed.
const SHIPPED: &[&str] = &[
    include_str!("../../../../bench/servers/reflector.toml"),
    include_str!("../../../../bench/servers/zonda.toml"),
    include_str!("../../../../bench/servers/zonda-rust.toml"),
    include_str!("../../../../bench/servers/zonda-node.toml"),
    include_str!("../../../../bench/servers/zonda-dinodns.toml"),
    include_str!("../../../../bench/servers/zonda-python.toml"),
    include_str!("../../../../bench/servers/knot.toml"),
    include_str!("../../../../bench/servers/nsd.toml"),
    include_str!("../../../../bench/servers/gdnsd.toml"),
    include_str!("../../../../bench/servers/bind.toml"),
    include_str!("../../../../bench/servers/pdns.toml"),
    include_str!("../../../../bench/servers/unbound.toml"),
    include_str!("../../../../bench/servers/dnsdist.toml"),
    include_str!("../../../../bench/servers/dnsmasq.toml"),
    include_str!("../../../../bench/servers/coredns.toml"),
    include_str!("../../../../bench/servers/dinodns.toml"),
    include_str!("../../../../bench/servers/dnslib.toml"),
];

/// A server that can be put under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Name of the kind, on the command line and in reports.
    pub name: String,
    /// The program, searched in PATH and the usual folders; `self` is the running one.
    pub program: String,
    /// The environment variable that names the program's file instead.
    pub variable: String,
    /// A package of an interpreter that the program needs besides.
    pub package: Option<Package>,
    /// The command that installs the server. `${cache}` is [`super::install::folder`].
    pub install: String,
    /// Whether that command needs no root's rights and asks nothing, so that it may be run.
    #[serde(default)]
    pub fetch: bool,
    /// The version of the program from which several processes can share an address; none is any.
    pub sharing_since: Option<String>,
    /// Arguments that have the program print its version; none asks for no version.
    #[serde(default)]
    pub version: Vec<String>,
    /// Whether the server is the floor and not a rival.
    #[serde(default)]
    pub floor: bool,
    /// Whether the system confines the installed file (AppArmor), so that a copy must be run.
    #[serde(default)]
    pub confined: bool,
    /// Command lines by role: `authoritative`, `forwarder` and those that suites add.
    pub roles: BTreeMap<String, Role>,
}

/// A package that an interpreter loads.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The environment variable that names the folder.
    pub variable: String,
    /// Folder of the program below [`super::install::folder`], when the variable is not set.
    pub path: PathBuf,
}

/// How to start a server for one role. All texts are templates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Environment variables of the program.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files to write into the server's folder, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl Role {
    /// Writes its files into a folder, filled in; returns names and texts.
    pub fn write_files(
        &self,
        values: &Values,
        folder: &Path,
    ) -> Result<Vec<(String, String)>, StartError> {
        let mut files = Vec::new();
        for (name, text) in &self.files {
            let text = values.fill_lines(text)?;
            fs::write(folder.join(name), &text)?;
            files.push((name.clone(), text));
        }
        Ok(files)
    }
}

impl Kind {
    /// Returns all that are shipped.
    ///
    /// # Panics
    /// Never: a test reads them all.
    pub fn shipped() -> Vec<Self> {
        let parse = |text: &&str| Self::parse(text).expect("shipped files are read by a test");
        SHIPPED.iter().map(parse).collect()
    }

    /// Returns the shipped kind of this name, or what the file of this name says.
    pub fn named(name: &str) -> Result<Self, KindError> {
        if let Some(kind) = Self::shipped().into_iter().find(|kind| kind.name == name) {
            return Ok(kind);
        }
        if !name.ends_with(".toml") {
            return Err(KindError::Unknown(name.to_owned()));
        }
        let path = Path::new(name);
        let text = fs::read_to_string(path).map_err(|e| KindError::Read(path.to_owned(), e))?;
        Self::parse(&text).map_err(|error| KindError::Parse(path.to_owned(), error))
    }

    /// Reads a file's text.
    pub(crate) fn parse(text: &str) -> Result<Self, Box<toml::de::Error>> {
        toml::from_str(text).map_err(Box::new)
    }
}

/// Why there is no such kind.
#[derive(Debug)]
pub enum KindError {
    /// Neither shipped nor a file.
    Unknown(String),
    /// The file cannot be read.
    Read(PathBuf, io::Error),
    /// The file says something else.
    Parse(PathBuf, Box<toml::de::Error>),
}

impl fmt::Display for KindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let known: Vec<String> =
                    Kind::shipped().into_iter().map(|kind| kind.name).collect();
                write!(f, "no server `{name}`; there are {}, or a FILE.toml", known.join(", "))
            }
            Self::Read(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Parse(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for KindError {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_shipped_file_is_read_and_no_name_is_given_twice() {
        let mut names: Vec<String> = Kind::shipped().into_iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), SHIPPED.len());
        names.sort();
        names.dedup();
        assert_eq!(names.len(), SHIPPED.len());
    }

    #[test]
    fn the_program_of_dinodns_runs_on_zonda_with_only_its_import_changed() {
        let program = |kind: &str| Kind::named(kind).unwrap().roles["handler"].files.clone();
        let mut changed = program("dinodns");
        for text in changed.values_mut() {
            assert_eq!(text.matches("require(").count(), 1);
            *text = text.replace("'${package}'", "'${package}/dinodns'");
        }
        assert_eq!(program("zonda-dinodns"), changed);
    }

    #[test]
    fn an_unknown_server_is_reported_with_the_known_ones() {
        let said = Kind::named("djbdns").unwrap_err().to_string();
        assert!(said.starts_with("no server `djbdns`; there are reflector, zonda, "), "{said}");
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let text = "name='a'\nprogram='a'\nvariable='A'\ninstall=''\nthreads=1\n[roles]\n";
        assert!(Kind::parse(text).unwrap_err().to_string().contains("threads"));
    }
}
