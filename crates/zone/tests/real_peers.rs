//! Master files mean to Zonda what they mean to BIND and to ldns: both print what they read, and
//! Zonda reads that again.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use zonda_wire::Type;
use zonda_zone::file::{self, Options};

/// Records of every type, each with its wire form; the test of record data explains them.
const TABLE: &str = include_str!("../../wire/tests/rdata.txt");

/// What a zone begins with; ldns gives signatures the TTL that they were made for, one day.
const APEX: &str =
    "$TTL 1d\n$ORIGIN example.org.\n@ SOA ns1 h 1 2 3 4 5\n@ NS ns1\nns1 A 1.1.1.1\n";

/// A record in a form that can be sorted and shown.
type Plain = (String, Type, u32, Vec<u8>);

/// The records that Zonda reads from the text, sorted.
fn ours(text: &str) -> Vec<Plain> {
    let origin = "example.org".parse().unwrap();
    let path = Path::new("text");
    let (records, diagnostics) =
        file::read_text(text.as_bytes(), path, &origin, &Options::default());
    assert!(!diagnostics.has_errors(), "{diagnostics}{text}");
    let owner = |wire: &[u8]| zonda_wire::name::Presentation(wire).to_string();
    let plain = records.iter().map(|r| (owner(r.owner), r.rtype, r.ttl, r.rdata.to_vec()));
    let mut plain: Vec<Plain> = plain.collect();
    plain.sort();
    plain.dedup();
    plain
}

/// Shows the records that only Zonda, or only the peer, has read.
fn check_same(text: &str, printed: &str) {
    let (ours, theirs) = (ours(text), ours(printed));
    let only = |a: &[Plain], b: &[Plain]| -> Vec<Plain> {
        a.iter().filter(|record| !b.contains(record)).cloned().collect()
    };
    assert_eq!(only(&ours, &theirs), only(&theirs, &ours), "ours, theirs, from:\n{text}");
}

/// A file that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("zonda-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs a peer, which must succeed; returns what it prints.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{program}: {error}: `make packages` installs what the tests need")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// What BIND prints after it has read the text.
fn bind(name: &str, text: &str) -> String {
    let file = Scratch::new(name, text);
    let lenient =
        ["-k", "-n", "-m", "-M", "-S", "-r", "-T"].map(|check| [check, "ignore"]).concat();
    let last = ["-i", "none", "-j", "-q", "-o", "-", "example.org", file.0.to_str().unwrap()];
    run("named-compilezone", &[&lenient[..], &last].concat())
}

/// What ldns prints after it has read the text.
fn ldns(name: &str, text: &str) -> String {
    run("ldns-read-zone", &[Scratch::new(name, text).0.to_str().unwrap()])
}

/// A zone with a record for each line of the table; data of `opaque` types as unknown data.
fn every_type(left_out: &[&str], opaque: &[&str]) -> String {
    let mut zone = APEX.to_owned();
    for (number, line) in TABLE.lines().enumerate() {
        let (text, hex) = line.split_once('\t').unwrap_or(("# ", ""));
        let (rtype, _) = text.split_once(' ').unwrap_or((text, ""));
        if rtype == "#" || left_out.contains(&rtype) {
            continue;
        }
        if opaque.contains(&rtype) {
            let hex = hex.trim_matches('-');
            let number_of_type = rtype.parse::<Type>().unwrap().0;
            let len = hex.len() / 2;
            writeln!(zone, "r{number} TYPE{number_of_type} \\# {len} {hex}").unwrap();
        } else {
            writeln!(zone, "r{number} {text}").unwrap();
        }
    }
    zone
}

#[test]
fn real_peers_bind_prints_every_type_as_we_read_it() {
    // A second SOA is refused by both, MD and MF because they are obsolete (rfc973).
    let zone = every_type(&["SOA", "MD", "MF"], &["CLA", "IPN", "ALIAS"]);
    check_same(&zone, &bind("every-type-bind", &zone));
}

#[test]
fn real_peers_bind_reads_every_type_as_we_print_it() {
    // A second SOA and obsolete types are refused, CLA, IPN and ALIAS are unknown to it.
    let zone = every_type(&["SOA", "MD", "MF", "CLA", "IPN", "ALIAS"], &[]);
    let origin = "example.org".parse().unwrap();
    let (records, _) =
        file::read_text(zone.as_bytes(), Path::new("text"), &origin, &Options::default());
    let mut printed = Vec::new();
    zonda_zone::print::print(&records, &mut printed).unwrap();
    check_same(&zone, &bind("printed", str::from_utf8(&printed).unwrap()));
}

#[test]
fn real_peers_ldns_prints_every_type_as_we_read_it() {
    let unknown_to_ldns = [
        "ALIAS", "A6", "AMTRELAY", "AVC", "BRID", "CAA", "CLA", "DOA", "DSYNC", "HHIT", "IPN",
        "KEY", "NINFO", "RESINFO", "RKEY", "TA", "WALLET",
    ];
    // A text with a second SOA is no zone; of the other types ldns prints something else than it
    // has read.
    let left_out = ["SOA", "ATMA", "NSAP-PTR", "NXT", "SIG", "SINK", "WKS"];
    let zone = every_type(&left_out, &unknown_to_ldns);
    check_same(&zone, &ldns("every-type-ldns", &zone));
}

#[test]
fn real_peers_make_the_same_records_of_generate() {
    let lines = [
        "$GENERATE 1-3 a$ A 1.2.3.$",
        "$GENERATE 1-3 a${0,3,d} A 1.2.3.$",
        "$GENERATE 1-3 b${0,3} A 1.2.3.$",
        r"$GENERATE 1-5/2 c${0,3,x}\$$$ A 1.2.3.$",
        "$GENERATE 10-12 ${-2,4,o} 300 IN CNAME ${0,8,n}",
        "$GENERATE 254-257 ${0,0,n} IN 300 CNAME ${0,5,X}.x",
        "$GENERATE 254-257 q${0,1,n}.x CNAME ${0,2,N}.x",
        "$GENERATE 254-257 q${0,5,n} CNAME ${0,6,N}",
        "$GENERATE 1-2 d${-3} A 1.1.1.1",
        "$GENERATE 1-4 d${-3,4} A 1.1.1.1",
        "$GENERATE 1-2 e${-3,4,x} A 1.1.1.1",
        "$GENERATE 1-2 e${-3,4,o} A 1.1.1.1",
        "$GENERATE 1-2 f$ MX \"10 m$\"",
        "$GENERATE 1-2 g$ TXT \"a b ${1}\"",
        "$GENERATE 0-1 @ TXT $",
        "$GENERATE 0-1 h$ TXT c;comment $",
        "$GENERATE 0-1 i$ TXT {$}${0,0,d}",
        r"$GENERATE 0-1 j\032$ TXT x\$y",
        "$GENERATE 1-2 k$ CNAME $.0/24",
        "$generate 1-1 l$ cname m$.",
        "$GENERATE 1-2 l${0,3,d}.sub DNAME $.foo",
        "before A 2.2.2.2\n$GENERATE 1-2 n$ 7 A 1.1.1.1\n  TXT \"still before\"",
        "$TTL 9\n$GENERATE 1-2 o$ A 1.1.1.1\n$ORIGIN sub\n$GENERATE 1-2 p$ NS $",
    ];
    for (number, line) in lines.iter().enumerate() {
        let zone = format!("{APEX}{line}\n");
        check_same(&zone, &bind(&format!("generate-{number}"), &zone));
    }
}

#[test]
fn real_peers_read_words_and_strings_as_we_do() {
    let lines = [
        "x TXT a\"b\"c d\"e f\"",
        "x TXT \"a\"b\"c\"",
        r#"x TXT a\;b "a\"b" c\ d \101 "\000\255" """#,
        "x\\032y TXT (a\n b ; comment ) ( \"\n\"c\")",
        "(\n q ) A 1.1.1.1",
        "IN A 1.1.1.1\n3600 A 1.1.1.1\nTXT IN TXT txt",
        "x 1h IN A 1.1.1.1\ny IN 1h A 2.1.1.1\nz 1w2d3h4m5s A 3.1.1.1\n\tin txt 4",
        "$ORIGIN sub\nx A 1.1.1.1\n$ORIGIN @\n@ A 3.3.3.3\n$ORIGIN .\ny.example.org A 1.1.1.1",
        "$TTL 1h ; x\ny 0 A 1.1.1.1\n$ttl 7\nz a 1.1.1.1",
        "x A 1.1.1.1\r\n\r\n; only a comment\n   \n\t(\n)\ny A 1.1.1.1",
        "*.x TXT *\n\\* TXT a\n_a._b TXT @\n\\@ NS @\n\u{e9} TXT \u{e9}",
        "x HTTPS 1 . alpn=\"h2,h3\" port=53 key667=\"a b\"",
        "x TYPE65280 \\# ( 4 01 02\n0304 )\ny CLASS1 TYPE1 \\# 4 01020304",
    ];
    for (number, line) in lines.iter().enumerate() {
        let zone = format!("{APEX}{line}\n");
        check_same(&zone, &bind(&format!("words-{number}"), &zone));
    }
}
