//! Corefiles, and what is made of them: `tests/corefile/NAME.corefile` beside `NAME.toml`, the
//! report and new files in `NAME.txt`. `UPDATE=1` writes the results anew.
//!
//! The Corefiles of distributions are their default ones, as they are installed.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use toml::de::DeTable;
use zonda_config::{Config, Flags};
use zonda_import::{Effect, Files, Import, ImportError, corefile};

/// Default Corefiles of distributions, in which nothing may be lost.
const DEFAULTS: &[&str] = &[
    "kubeadm",
    "nodelocal",
    "gke-nodelocal",
    "k3s",
    "kops",
    "eks",
    "aks",
    "openshift",
    "minikube",
];
/// Corefiles of other kinds.
const OTHERS: &[&str] = &["blocks", "ports", "ports-lost", "refused", "templates", "transfers"];

/// A machine with a Corefile.
struct Machine<'t>(&'t str);

impl Files for Machine<'_> {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(match path.to_str().unwrap() {
            "/etc/coredns/Corefile" => self.0,
            "/etc/resolv.conf" => {
                "# a node\nsearch example.com\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n"
            }
            "/etc/hostname" => "node-1\n",
            _ => return Err(io::ErrorKind::NotFound.into()),
        }
        .into())
    }

    fn list(&mut self, _: &Path) -> io::Result<Vec<String>> {
        Ok(vec!["Corefile".to_owned()])
    }
}

/// The environment of the tests.
fn environment(name: &str) -> Option<String> {
    let value = match name {
        "__PILLAR__LOCAL__DNS__" => "169.254.20.10",
        "__PILLAR__DNS__SERVER__" => "10.96.0.10",
        "KUBE_DNS_UPSTREAM_SERVICE_HOST" => "10.96.0.11",
        "REVERSE_DNS" => "198.51.100.9",
        _ => return None,
    };
    Some(value.to_owned())
}

fn import(text: &str) -> Result<Import, ImportError> {
    corefile::import(Path::new("/etc/coredns/Corefile"), &mut Machine(text), &environment)
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corefile").join(name)
}

fn fixture(name: &str) -> String {
    fs::read_to_string(path(&format!("{name}.corefile"))).unwrap()
}

/// A configuration without files of certificates, which are not there.
fn without_certificates(toml: &str) -> String {
    let lines = toml.lines().filter(|line| !line.starts_with("ca-file"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Loads what came of a Corefile, in which files may be missing.
fn load(import: &Import, name: &str) {
    let syntax = DeTable::parse(&import.toml);
    assert!(syntax.is_ok(), "{name}: {syntax:?}\n{}", import.toml);
    let folder = std::env::temp_dir().join(format!("zonda-corefile-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("zonda.toml");
    let servers = folder.join("resolv.conf");
    fs::write(&servers, "nameserver 192.0.2.53\n").unwrap();
    let toml = import.toml.replace("/etc/resolv.conf", servers.to_str().unwrap());
    fs::write(&file, without_certificates(&toml)).unwrap();
    for new in &import.files {
        let path = folder.join(&new.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &new.text).unwrap();
    }
    let loaded = Config::load(Some(&file), [], &Flags::default());
    fs::remove_dir_all(&folder).unwrap();
    let errors: Vec<String> =
        loaded.err().unwrap_or_default().iter().map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{}", import.toml);
}

#[test]
fn corefiles_become_what_is_written_down() {
    for name in DEFAULTS.iter().chain(OTHERS) {
        let import = import(&fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut report = String::new();
        for line in &import.report {
            writeln!(report, "{line}").unwrap();
        }
        for file in &import.files {
            write!(report, "\n{}:\n{}", file.path.display(), file.text).unwrap();
        }
        for (file, text) in
            [(format!("{name}.toml"), &import.toml), (format!("{name}.txt"), &report)]
        {
            if std::env::var_os("UPDATE").is_some() {
                fs::write(path(&file), text).unwrap();
            }
            let expected = fs::read_to_string(path(&file)).unwrap_or_default();
            assert!(expected == *text, "{file} differs; see `UPDATE=1`:\n{text}");
        }
    }
}

#[test]
fn what_is_made_of_a_corefile_can_be_loaded() {
    for name in DEFAULTS.iter().chain(OTHERS) {
        load(&import(&fixture(name)).unwrap(), name);
    }
}

#[test]
fn nothing_of_a_default_corefile_is_lost() {
    for name in DEFAULTS {
        let import = import(&fixture(name)).unwrap();
        let lost: Vec<String> = import.losses().map(ToString::to_string).collect();
        assert!(lost.is_empty(), "{name}: {lost:#?}");
    }
}

#[test]
fn what_remains_of_a_corefile_without_any_one_line_can_be_loaded() {
    let mut loaded = 0;
    for name in DEFAULTS.iter().chain(OTHERS) {
        let text = fixture(name);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for left_out in 0..lines.len() {
            let rest = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
            let text: String = rest.map(|(_, line)| *line).collect();
            if let Ok(import) = import(&text) {
                load(&import, &format!("{name}-{left_out}"));
                loaded += 1;
            }
        }
    }
    assert!(loaded > 150, "{loaded}");
}

#[test]
fn each_thing_that_is_refused_is_told_with_its_line() {
    let import = import(&fixture("refused")).unwrap();
    let lost = |line: u32| {
        import.report.iter().any(|it| it.effect == Effect::Lost && it.place.line == line)
    };
    let missing: Vec<u32> =
        [2, 3, 4, 5, 6, 7, 11, 13, 15, 18, 23, 24, 27, 28, 31, 32, 33, 34, 36, 37, 38]
            .into_iter()
            .filter(|line| !lost(*line))
            .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
