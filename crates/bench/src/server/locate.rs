//! Where a server's program is on this machine, and which version.

use std::env;
use std::fs;
use std::path::{self, Path, PathBuf};
use std::process::Command;

use super::{Kind, install};

/// A program that is there.
#[derive(Clone, Debug)]
pub struct LocatedProgram {
    /// File of the program.
    pub program: PathBuf,
    /// The folder of the package that it needs, if it needs one.
    pub package: Option<PathBuf>,
    /// Version as the program prints it; empty if it was not asked or printed none.
    pub version: String,
}

/// Why a server cannot take part, and how it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingServer(pub String);

/// Looks for a kind's program and package, and asks for the version.
pub fn locate(kind: &Kind) -> Result<LocatedProgram, MissingServer> {
    let missing = |what: &str| {
        let hint = if kind.fetch { ", or --install" } else { "" };
        let (name, command) = (&kind.name, kind.install_command());
        MissingServer(format!("{name}: {what} is not installed: {command}{hint}"))
    };
    let program = program(kind).ok_or_else(|| missing(&format!("`{}`", kind.program)))?;
    let package = match &kind.package {
        None => None,
        Some(package) => {
            let named = env::var_os(&package.variable).map(PathBuf::from);
            let folder = named.or_else(|| Some(install::folder()?.join(&package.path)));
            // The server runs elsewhere, where a relative path leads nowhere.
            let folder = folder.and_then(|folder| path::absolute(folder).ok());
            let folder = folder.filter(|folder| folder.is_dir());
            Some(folder.ok_or_else(|| missing("its package"))?)
        }
    };
    let version = match &package {
        Some(package) => package_version(package),
        None => printed_version(&program, &kind.version),
    };
    Ok(LocatedProgram { program, package, version })
}

/// Returns the program's file: what the variable says, else the first of that name in PATH, the
/// folders of servers, and where `go install` puts what it builds.
fn program(kind: &Kind) -> Option<PathBuf> {
    if let Some(named) = env::var_os(&kind.variable) {
        let named = PathBuf::from(named);
        return if named.components().count() > 1 {
            named.is_file().then_some(named)
        } else {
            in_folders(named.to_str()?)
        };
    }
    if kind.program == "self" { env::current_exe().ok() } else { in_folders(&kind.program) }
}

/// Returns the first file of this name in PATH, the folders of servers, those of `go install`, and
/// those of the peers of cluster names.
pub fn in_folders(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from);
    let go = env::var_os("GOBIN").map(PathBuf::from);
    let home_go = env::var_os("HOME").map(|home| PathBuf::from(home).join("go/bin"));
    let folders = env::split_paths(&path).chain(usual).chain(go).chain(home_go);
    let folders = folders.chain(install::go_folder()).chain(install::cluster_folders());
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whether several processes of a server can share an address, by its program's version.
pub fn check_sharing(kind: &Kind, located: &LocatedProgram) -> Result<(), MissingServer> {
    let Some(since) = &kind.sharing_since else { return Ok(()) };
    let version = printed_version(&located.program, &["--version".to_owned()]);
    if numbers(&version) >= numbers(since) {
        return Ok(());
    }
    let Kind { name, program, .. } = kind;
    Err(MissingServer(format!(
        "{name}: several processes on one address need {program} {since}; this is {version}"
    )))
}

/// Returns the numbers of a version, for comparing.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|number| number.parse().ok()).collect()
}

/// Returns what a program says of its version.
pub fn printed_version(program: &Path, arguments: &[String]) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    let Ok(output) = Command::new(program).args(arguments).output() else { return String::new() };
    let text = [output.stdout, output.stderr].concat();
    version_in(&String::from_utf8_lossy(&text)).unwrap_or_default().to_owned()
}

/// Returns a package's version: what its manifest of npm says, or the folder that pip has put
/// beside it.
fn package_version(folder: &Path) -> String {
    let text = fs::read(folder.join("package.json")).unwrap_or_default();
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let version = manifest["version"].as_str().map(str::to_owned);
    version.or_else(|| pip_version(folder)).unwrap_or_default()
}

/// Returns the version of a package of Python: `NAME-VERSION.dist-info` stands beside its folder.
fn pip_version(folder: &Path) -> Option<String> {
    let prefix = format!("{}-", folder.file_name()?.to_str()?);
    fs::read_dir(folder.parent()?).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name();
        let version = name.to_str()?.strip_prefix(&prefix)?.strip_suffix(".dist-info")?;
        Some(version.to_owned())
    })
}

/// Returns the first word that holds digits, a dot and digits; from there to the word's end.
fn version_in(text: &str) -> Option<&str> {
    text.split([' ', '\n', '\t', ',', '(', ')']).find_map(|word| {
        let start = word.find(|c: char| c.is_ascii_digit())?;
        let version = &word[start..];
        let rest = version.trim_start_matches(|c: char| c.is_ascii_digit());
        let dotted = rest.strip_prefix('.')?;
        dotted.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn versions_are_found_in_what_servers_print() {
        for (text, version) in [
            ("knotd (Knot DNS), version 3.2.6\n", "3.2.6"),
            ("Nov 21 09:09:36 PowerDNS Authoritative Server 4.7.3 (C) 2001\n", "4.7.3"),
            ("BIND 9.18.49-1~deb12u3-Debian (Extended)\n", "9.18.49-1~deb12u3-Debian"),
            ("CoreDNS-1.15.0\nlinux/amd64, go1.26.8,\n", "1.15.0"),
            ("dnsdist 1.7.3 (Lua 5.1.4 [LuaJIT])\n", "1.7.3"),
        ] {
            assert_eq!(version_in(text), Some(version));
        }
        assert_eq!(version_in("no number, 7 or so\n"), None);
    }

    #[test]
    fn packages_of_npm_and_pip_say_their_versions() {
        let folder = env::temp_dir().join(format!("zonda-bench-packages-{}", std::process::id()));
        let (npm, pip) = (folder.join("npm"), folder.join("pip"));
        for made in [&npm, &pip, &folder.join("pip-1.2.3.dist-info")] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(npm.join("package.json"), r#"{"version": "0.0.13"}"#).unwrap();
        assert_eq!([package_version(&npm), package_version(&pip)], ["0.0.13", "1.2.3"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_program_too_old_to_share_an_address_is_reported_with_its_version() {
        let mut kind = Kind::named("dinodns").unwrap();
        let program = PathBuf::from("echo");
        let located = LocatedProgram { program, package: None, version: String::new() };
        // `echo --version` prints the version of coreutils, which is below 23.1.
        let MissingServer(said) = check_sharing(&kind, &located).unwrap_err();
        assert!(said.starts_with("dinodns: several processes on one address need node 23.1; "));
        kind.sharing_since = Some("1.2".to_owned());
        assert_eq!(check_sharing(&kind, &located), Ok(()));
        assert!(numbers("23.1.0") >= numbers("23.1") && numbers("23.0.9") < numbers("23.1"));
    }

    #[test]
    fn a_missing_program_is_reported_with_how_to_install_it() {
        let mut kind = Kind::named("knot").unwrap();
        kind.program = "no-such-program".to_owned();
        kind.variable = "ZONDA_TEST_NO_SUCH_VARIABLE".to_owned();
        let MissingServer(said) = locate(&kind).unwrap_err();
        assert_eq!(said, "knot: `no-such-program` is not installed: apt-get install knot");
    }
}
