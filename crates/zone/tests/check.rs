//! What is said of zones whose records do not fit together, and what BIND and Knot make of them.
//!
//! The cases stand in `check/*.txt`: a name, the peers' verdicts, lines of the zone `example.org`,
//! and behind `>` what is said, with the number of the line. Unless the lines begin with `bare`, a
//! SOA and an NS record stand before them. `UPDATE=1` writes down what is said now.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use zonda_testkit::golden;
use zonda_testkit::process::Folder;
use zonda_zone::file::{self, Options};
use zonda_zone::{Diagnostics, check};

/// What every zone begins with.
const HEAD: &str = "$ORIGIN example.org.\n$TTL 1h\n";
/// What follows, unless the zone is bare.
const APEX: &str = "@ SOA ns1 hostmaster 1 7200 1800 1209600 300\n@ NS ns1\nns1 A 192.0.2.1\n";
/// When the zones are checked: 2026-01-01.
const NOW: u32 = 1_767_225_600;

/// A zone and its verdicts.
struct Case {
    name: String,
    /// `bind: loads, knot: refuses`.
    verdicts: String,
    lines: Vec<String>,
}

impl Case {
    /// The text of the zone, and how many lines stand before the case's own.
    fn zone(&self) -> (String, u32) {
        let is_bare = self.lines.first().is_some_and(|line| line == "bare");
        let lines = &self.lines[usize::from(is_bare)..];
        let head = if is_bare { HEAD.to_owned() } else { format!("{HEAD}{APEX}") };
        let before = head.lines().count() as u32;
        (format!("{head}{}\n", lines.join("\n")), before)
    }

    /// The findings for this zone.
    fn check(&self) -> Diagnostics {
        let apex = "example.org".parse().unwrap();
        let (text, _) = self.zone();
        let (records, diagnostics) =
            file::read_text(text.as_bytes(), Path::new("z"), &apex, &Options::default());
        assert_eq!(diagnostics.to_string(), "", "{}", self.name);
        check::check(&apex, &records, NOW)
    }

    /// The findings for this zone as text, one a line.
    fn said(&self) -> String {
        let (_, before) = self.zone();
        let mut said = String::new();
        for diagnostic in &self.check() {
            let line = diagnostic.place.line.saturating_sub(before);
            let record = diagnostic.record.as_ref().unwrap();
            let (severity, problem) = (diagnostic.severity, &diagnostic.problem);
            writeln!(said, "> {line}: {severity}: {problem} ({record})").unwrap();
        }
        said
    }
}

/// The files of cases.
fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check");
    let mut files: Vec<_> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 3);
    files
}

/// The cases of a file.
fn cases(file: &Path) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        if let Some(name) = line.strip_prefix("## ") {
            cases.push(Case { name: name.into(), verdicts: String::new(), lines: Vec::new() });
        } else if let Some(verdicts) = line.strip_prefix("= ") {
            cases.last_mut().unwrap().verdicts = verdicts.to_owned();
        } else if !line.is_empty() && !line.starts_with('>') {
            cases.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    cases
}

/// A file of cases with these verdicts.
fn written(cases: &[Case], verdicts: impl Fn(&Case) -> String) -> String {
    let mut text = String::new();
    for case in cases {
        let lines = case.lines.join("\n");
        let (name, said, verdicts) = (&case.name, case.said(), verdicts(case));
        write!(text, "## {name}\n= {verdicts}\n{lines}\n{said}\n").unwrap();
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

#[test]
fn each_case_is_told_in_so_many_words() {
    for file in files() {
        golden::check(&file, &written(&cases(&file), |case| case.verdicts.clone()));
    }
}

#[test]
fn an_error_is_what_a_peer_refuses() {
    for case in files().iter().flat_map(|file| cases(file)) {
        let is_refused = case.verdicts.contains("refuses");
        assert_eq!(case.check().has_errors(), is_refused, "{}", case.name);
    }
}

#[test]
fn real_peers_judge_as_it_is_written_down() {
    let folder = Folder::new("check");
    for file in files() {
        golden::check(
            &file,
            &written(&cases(&file), |case| {
                let path = folder.write("zone", case.zone().0);
                let (bind, knot) = (bind(&path), knot(&path));
                format!("bind: {bind}, knot: {knot}")
            }),
        );
    }
}

#[test]
fn real_peers_sign_zones_in_which_nothing_is_wrong() {
    let apex = "example.org".parse().unwrap();
    for (number, denial) in ["", "-3 -", "-3 aabb -A"].into_iter().enumerate() {
        let folder = Folder::new(&format!("signed-{number}"));
        let directory = folder.path().to_str().unwrap();
        let zone = folder.write("zone", format!("{HEAD}{APEX}{SIGNED}"));
        let zone = zone.to_str().unwrap();
        let (made, said) =
            run("dnssec-keygen", &["-q", "-a", "ECDSAP256SHA256", "-K", directory, "example.org"]);
        assert!(made, "{said}");
        let arguments = ["-P", "-S", "-z", "-o", "example.org", "-K", directory, "-d", directory];
        let denial: Vec<&str> = denial.split_ascii_whitespace().collect();
        let (signed, said) = run("dnssec-signzone", &[&arguments, &denial[..], &[zone]].concat());
        assert!(signed, "{said}");
        let signed = std::fs::read(format!("{zone}.signed")).unwrap();
        let (records, diagnostics) =
            file::read_text(&signed, Path::new("z"), &apex, &Options::default());
        assert_eq!(diagnostics.to_string(), "");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let found = check::check(&apex, &records, now.as_secs() as u32);
        assert_eq!(found.to_string(), "", "{denial:?}\n{}", String::from_utf8_lossy(&signed));
    }
}

/// Records with which a signer has something to do.
const SIGNED: &str = "\
*.w A 192.0.2.1
a.b.c TXT deep
alias CNAME ns1
old DNAME example.com.
open NS ns.open
ns.open A 192.0.2.2
closed NS ns1
closed DS 1 13 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
";

/// Whether a program succeeds, and what it says.
fn run(program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{program}: {error}; Debian's bind9-utils and knot-dnssecutils have the peers")
    });
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// What BIND makes of a zone.
fn bind(zone: &Path) -> &'static str {
    let (loads, said) = run("named-checkzone", &["example.org", zone.to_str().unwrap()]);
    // It has no network here, so it cannot find names of other zones.
    let own = |line: &&str| !line.contains("(out of zone)") && *line != "OK";
    let warnings = said.lines().filter(own).filter(|line| !line.contains("loaded serial")).count();
    match (loads, warnings) {
        (false, _) => "refuses",
        (true, 0) => "loads",
        (true, _) => "warns",
    }
}

/// What Knot makes of a zone.
fn knot(zone: &Path) -> &'static str {
    let zone = zone.to_str().unwrap();
    let (fine, said) = run("kzonecheck", &["-o", "example.org", "-t", &NOW.to_string(), zone]);
    match fine {
        _ if said.contains("Serious semantic error") => "refuses",
        true => "loads",
        false => "warns",
    }
}
