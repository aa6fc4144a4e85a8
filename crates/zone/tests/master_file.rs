//! Master files: what they mean, and what is said of wrong ones.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use zonda_wire::name::Presentation;
use zonda_zone::file::{self, Options};
use zonda_zone::{Diagnostics, Records};

/// Reads a text as the zone `example.org`.
fn read(text: &str) -> (Records, Diagnostics) {
    let origin = "example.org".parse().unwrap();
    let options = Options { generate_max: 100, ..Options::default() };
    file::read_text(text.as_bytes(), Path::new("z"), &origin, &options)
}

/// The records, one a line: line in the file, owner, TTL, type, data in hexadecimal.
fn shown(records: &Records) -> String {
    let show = |index: usize| {
        let record = records.get(index);
        let hex: String = record.rdata.iter().map(|octet| format!("{octet:02x}")).collect();
        let (line, owner) = (records.position(index).line, Presentation(record.owner));
        format!("{line} {owner} {} {} {hex}\n", record.ttl, record.rtype)
    };
    (0..records.len()).map(show).collect()
}

/// Asserts which records a text holds, and that nothing is wrong with it.
#[track_caller]
fn holds(text: &str, expected: &str) {
    let (records, diagnostics) = read(text);
    assert_eq!(diagnostics.to_string(), "", "{text}");
    assert_eq!(shown(&records), expected, "{text}");
}

/// Asserts what is said of a text, and how many records are read nevertheless.
#[track_caller]
fn says(text: &str, records: usize, expected: &str) {
    let (read, diagnostics) = read(text);
    assert_eq!(diagnostics.to_string(), expected, "{text}");
    assert_eq!(read.len(), records, "{text}");
}

#[test]
fn owner_ttl_and_class_may_be_left_out_in_any_order() {
    let text =
        "$TTL 1h\n@ A 1.1.1.1\nw 60 IN A 1.1.1.2\nw IN 61 A 1.1.1.3\n 62 A 1.1.1.4\n\tA 1.1.1.5";
    let expected = "2 example.org. 3600 A 01010101\n\
                    3 w.example.org. 60 A 01010102\n\
                    4 w.example.org. 61 A 01010103\n\
                    5 w.example.org. 62 A 01010104\n\
                    6 w.example.org. 3600 A 01010105\n";
    holds(text, expected);
}

#[test]
fn a_record_bears_the_line_on_which_it_begins() {
    let text = "\u{feff}$TTL 1\n\n; nothing\na TXT ( \"x\" ; y\n\r\n y )\r\nb ( A\n 1.1.1.1 )\n";
    holds(text, "4 a.example.org. 1 TXT 01780179\n7 b.example.org. 1 A 01010101\n");
}

#[test]
fn words_that_look_like_types_or_times_are_names_in_the_first_column() {
    let text = "$TTL 1\nA A 1.1.1.1\n3600 A 1.1.1.1\nIN NS NS";
    let expected = "2 A.example.org. 1 A 01010101\n\
                    3 3600.example.org. 1 A 01010101\n\
                    4 IN.example.org. 1 NS 024e53076578616d706c65036f726700\n";
    holds(text, expected);
}

#[test]
fn origins_are_relative_to_each_other() {
    let text = "$TTL 1\n$ORIGIN a\n@ NS @\n$ORIGIN b\nc A 1.1.1.1\n$ORIGIN .\nx A 1.1.1.1\n";
    let expected = "3 a.example.org. 1 NS 0161076578616d706c65036f726700\n\
                    5 c.b.a.example.org. 1 A 01010101\n\
                    7 x. 1 A 01010101\n";
    holds(text, expected);
}

#[test]
fn a_record_without_ttl_takes_that_of_the_directive_the_last_record_or_the_soa() {
    let soa = "@ SOA a. b. 1 2 3 4 5\n";
    let ttls = |text: &str| read(text).0.iter().map(|record| record.ttl).collect::<Vec<_>>();
    assert_eq!(ttls(&format!("$TTL 9\n{soa}x 7 A 1.1.1.1\nx A 1.1.1.2")), [9, 7, 9]);
    assert_eq!(ttls(&format!("{soa}x 7 A 1.1.1.1\nx A 1.1.1.2")), [5, 7, 5]);
    assert_eq!(ttls("x 7 A 1.1.1.1\nx A 1.1.1.2\n$TTL 8\nx A 1.1.1.3"), [7, 7, 8]);
    says(
        &format!("{soa}x A 1.1.1.1"),
        2,
        "z:1:1: warning: no TTL: the minimum of the SOA record is taken, write $TTL to be sure \
         (example.org. SOA)\n",
    );
    says(
        "x 7 A 1.1.1.1\nx A 1.1.1.2\nx A 1.1.1.3",
        3,
        "z:2:1: warning: no TTL: that of the record before is taken, write $TTL to be sure \
         (x.example.org. A)\n",
    );
    says(
        "x A 1.1.1.1",
        0,
        "z:1:1: error: no TTL: write it, or $TTL at the beginning of the file \
         (x.example.org. A)\n",
    );
    says("x 2147483648 A 1.1.1.1", 1, "z:1:3: warning: a TTL above 2147483647 is taken as 0\n");
}

#[test]
fn reading_goes_on_behind_an_error() {
    let text = "$TTL 1h\n@ SOA ns1 h ( 1 2\n 3 4 )\n@ MX mx1 10\nw INN A 1.1.1.1\na..b A 1.1.1.1\n \
                A 2.2.2.2\nw A 1.1.1.1\nw CH A 1.1.1.1\nw TXT \"open\nw AAAA 1::2::3\nw";
    let expected = "\
z:3:5: error: minimum: expected data, found the end of the record (example.org. SOA)
z:4:6: error: preference: expected a number from 0 to 65535, found `mx1` (example.org. MX)
z:5:3: error: expected a TTL, IN or a record type
z:6:1: error: the name has an empty label (two dots in a row, or a leading dot)
z:9:3: error: class CH is not served: write IN
z:10:7: error: this quote is not closed on its line
z:11:8: error: ip: expected an IPv6 address such as 2001:db8::1, found `1::2::3` \
(w.example.org. AAAA)
z:12:2: error: the record ends before its type
";
    says(text, 1, expected);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of mistakes and what is said about each")]
fn what_a_record_cannot_be_is_named() {
    for (line, expected) in [
        ("  A 1.1.1.1", "2:3: error: the first record must begin with its owner name"),
        ("\"x\" A 1.1.1.1", "2:1: error: an owner name takes no quotes: write \\032 for blanks"),
        ("x \"A\" 1.1.1.1", "2:3: error: expected a TTL, IN or a record type"),
        ("x 1h30 A 1.1.1.1", "2:3: error: expected a TTL, IN or a record type"),
        ("x 1 2 A 1.1.1.1", "2:5: error: expected a TTL, IN or a record type"),
        ("x IN IN A 1.1.1.1", "2:6: error: expected a TTL, IN or a record type"),
        ("x CLASS4 A 1.1.1.1", "2:3: error: class HS is not served: write IN"),
        (
            "x ANY 1.1.1.1",
            "2:3: error: records of type ANY cannot stand in a zone (x.example.org. ANY)",
        ),
        (
            "x TYPE41 \\# 0",
            "2:3: error: records of type OPT cannot stand in a zone (x.example.org. OPT)",
        ),
        (
            "x TYPE0 \\# 0",
            "2:3: error: records of type TYPE0 cannot stand in a zone (x.example.org. TYPE0)",
        ),
        (
            "x A 1.1.1.1 1.1.1.2",
            "2:13: error: unexpected text behind the record's data, found `1.1.1.2` \
             (x.example.org. A)",
        ),
        (
            "x TYPE65280 abc",
            "2:13: error: this type has no text form: write \\#, a length and hexadecimal, found \
             `abc` (x.example.org. TYPE65280)",
        ),
        (
            "x DS 1 8 2 abcd",
            "2:12: error: digest: expected 32 octets, the length of this kind of digest, found \
             `abcd` (x.example.org. DS)",
        ),
        ("x A 1.1.1.1 )", "2:13: error: no parenthesis is open here"),
        ("x\u{0} A 1.1.1.1", "2:2: error: octet 0 is not text: write \\000 if it is meant"),
        ("$FOO 1", "2:1: error: expected $ORIGIN, $TTL, $INCLUDE or $GENERATE"),
        ("x A 1.1.1.1\n $TTL 1", "3:2: error: a directive must stand at the beginning of the line"),
        ("$TTL", "2:5: error: expected a time such as 3600 or 1h"),
        ("$TTL 1x", "2:6: error: expected seconds, or a time with units such as 1h30m, found `1x`"),
        ("$TTL 1 2", "2:8: error: unexpected text behind the directive"),
        ("$ORIGIN", "2:8: error: expected a domain name"),
        (
            "$ORIGIN a..b",
            "2:9: error: the name has an empty label (two dots in a row, or a leading dot)",
        ),
        ("$INCLUDE f", "2:10: error: no files can be included here"),
        ("$GENERATE", "2:10: error: expected a range such as 1-10 or 0-100/2"),
        (
            "$GENERATE 2-1 a A 1",
            "2:11: error: expected a range such as 1-10 or 0-100/2, found `2-1`",
        ),
        (
            "$GENERATE 1-2/0 a A 1",
            "2:11: error: expected a range such as 1-10 or 0-100/2, found `1-2/0`",
        ),
        ("$GENERATE 1-101 a A 1", "2:11: error: $GENERATE makes at most 100 records"),
        (
            "$GENERATE 1-2 a${0,2,q} A 1",
            "2:16: error: expected ${offset,width,base}, the base one of doxXnN",
        ),
        (
            "$GENERATE 1-2 a${0 A 1",
            "2:16: error: expected ${offset,width,base}, the base one of doxXnN",
        ),
        (
            "$GENERATE 1-2 a$ SOA",
            "2:15: error: mname: expected data, found the end of the record, \
             in the generated `a1 SOA`",
        ),
        (
            "$GENERATE 1-9 a$ A 1.1.1.${248}",
            "2:15: error: ip: expected an IPv4 address such as 192.0.2.1, found `1.1.1.256`, in \
             the generated `a8 A 1.1.1.256`",
        ),
    ] {
        let (_, diagnostics) = read(&format!("$TTL 1\n{line}\n"));
        assert_eq!(diagnostics.to_string(), format!("z:{expected}\n"), "{line}");
    }
}

#[test]
fn an_owner_taken_over_from_before_an_origin_is_warned_about() {
    says(
        "$TTL 1\nx A 1.1.1.1\n$ORIGIN sub\n  A 1.1.1.2\n  A 1.1.1.3\n",
        3,
        "z:4:3: warning: the owner is taken over from before $ORIGIN: write it out\n",
    );
}

#[test]
fn an_open_parenthesis_hides_only_its_own_record() {
    let text = "$TTL 1\n@ SOA ns1 h ( 1\n2 3\n4\n5\n; no end\nx A 1.1.1.1\ny A 1.1.1.2\n";
    says(text, 2, "z:2:13: error: this parenthesis is not closed\n");
    says("$TTL 1\nx A ( 1.1.1.1\n", 0, "z:2:5: error: this parenthesis is not closed\n");
    let text = "$TTL 1\nx A ( 1.1.1.1\ny TXT \"a\nz TXT (\n a )\n";
    let expected = "z:2:5: error: this parenthesis is not closed\n\
                    z:3:7: error: this quote is not closed on its line\n";
    says(text, 1, expected);
}

#[test]
fn reading_ends_when_parentheses_stay_open_again_and_again() {
    let open = "$TTL 1\n".to_owned() + &"x A (\n".repeat(300);
    let (records, diagnostics) = read(&(open + &"y A 1.1.1.1\n".repeat(500_000)));
    assert_eq!((records.len(), diagnostics.error_count()), (0, 102)); // all, and one more
    let last = diagnostics.iter().last().unwrap().to_string();
    assert_eq!(last, "z: error: too many open parentheses: the rest of the file was not read");
}

#[test]
fn a_thousand_diagnostics_are_listed_and_the_rest_counted() {
    let (_, diagnostics) = read(&"x A\n".repeat(1234));
    assert_eq!(diagnostics.error_count(), 1234);
    assert_eq!(diagnostics.to_string().lines().count(), 1001);
    assert!(diagnostics.to_string().ends_with("\nand 234 more\n"));
}

#[test]
fn entries_longer_than_a_window_are_read_and_those_of_a_megabyte_refused() {
    let string = format!("\"{}\"", "x".repeat(250));
    let long = format!("$TTL 1\na TXT (\n{})\nb A 1.1.1.1\n", format!("{string}\n").repeat(200));
    assert_eq!(read(&long).0.get(0).rdata.len(), 200 * 251);
    let commented = long.replace("\n\"", &format!(" ; {}\n\"", "c".repeat(2000)));
    assert_eq!(read(&commented).0.get(0).rdata.len(), 200 * 251);
    let endless = format!("$TTL 1\na TXT {}\nb A 1.1.1.1\n", "x".repeat(3 << 20));
    says(&endless, 1, "z:2:1: error: the record is longer than 1048576 octets\n");
}

#[test]
fn windows_do_not_show_wherever_they_end() {
    // 17 octets a record: windows of a power of two end at every place within one.
    let lines = (0..60_000).map(|number| format!("h{number:05} A 1.1.1.1\n"));
    let text: String = std::iter::once("$TTL 1\n".to_owned()).chain(lines).collect();
    let (records, diagnostics) = read(&text);
    assert_eq!(diagnostics.to_string(), "");
    assert_eq!(records.len(), 60_000);
    for index in 0..records.len() {
        assert_eq!(&records.get(index).owner[..7], format!("\u{6}h{index:05}").as_bytes());
        assert_eq!(records.position(index).line as usize, index + 2);
    }
}

#[test]
fn generate_writes_the_numbers_into_owner_and_data() {
    let text = "$TTL 1\n$GENERATE 8-12/2 h${-8,2,d} 5 IN MX ${1} m${0,3,x}.\n";
    let expected = "2 h00.example.org. 5 MX 0009046d30303800\n\
                    2 h02.example.org. 5 MX 000b046d30306100\n\
                    2 h04.example.org. 5 MX 000d046d30306300\n";
    holds(text, expected);
}

#[test]
fn generate_takes_escaped_quotes_of_quoted_data_as_quotes() {
    let text = "$TTL 1\n$GENERATE 1-1 w$ TXT \"\\\"v=spf1 a:s$ -all\\\"\"\n";
    holds(text, "2 w1.example.org. 1 TXT 10763d7370663120613a7331202d616c6c\n");
}

#[test]
fn what_is_not_a_file_is_not_waited_for() {
    let folder = Folder::new("pipe", &[("zone", "$INCLUDE pipe\n")]);
    let pipe = folder.0.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(folder.read("pipe", None).1, "pipe: error: is not a file\n");
    assert!(folder.read("zone", None).1.ends_with("pipe is not a file\n"));
    let json = zonda_zone::json::read(&pipe);
    assert!(json.zones.is_empty());
    assert!(json.diagnostics.to_string().ends_with(": is not a file\n"));
}

/// A directory with files, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("zonda-{}-{name}", std::process::id()));
        for (file, text) in files {
            let file = path.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self(path)
    }

    /// Reads a file of the directory; messages name files without the directory.
    fn read(&self, file: &str, root: Option<&str>) -> (Records, String) {
        let options = Options { root: root.map(|root| self.0.join(root)), ..Options::default() };
        let origin = "example.org".parse().unwrap();
        let (records, diagnostics) = file::read(&self.0.join(file), &origin, &options);
        let prefix = format!("{}/", self.0.display());
        (records, diagnostics.to_string().replace(&prefix, ""))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn included_files_have_their_own_origin_and_owner() {
    let folder = Folder::new(
        "include",
        &[
            ("z", "$TTL 1\nx A 1.1.1.1\n$INCLUDE sub/a.zone sub\n  A 1.1.1.2\ny A 1.1.1.3\n"),
            ("sub/a.zone", "p A 2.2.2.2\n$INCLUDE \"b.zone\"\nq A 2.2.2.3\n$ORIGIN deep\n"),
            ("sub/b.zone", "r 7 A 3.3.3.3\n$TTL 9\n"),
        ],
    );
    let (records, diagnostics) = folder.read("z", None);
    assert_eq!(diagnostics, "");
    let expected = "2 x.example.org. 1 A 01010101\n\
                    1 p.sub.example.org. 1 A 02020202\n\
                    1 r.sub.example.org. 7 A 03030303\n\
                    3 q.sub.example.org. 9 A 02020203\n\
                    4 x.example.org. 9 A 01010102\n\
                    5 y.example.org. 9 A 01010103\n";
    assert_eq!(shown(&records), expected);
    let files: Vec<_> = (0..6).map(|at| records.position(at).file.file_name().unwrap()).collect();
    assert_eq!(files, ["z", "a.zone", "b.zone", "a.zone", "z", "z"]);
}

#[test]
fn files_outside_the_root_cycles_and_depths_are_refused() {
    let folder = Folder::new(
        "confined",
        &[
            ("in/outside", "$TTL 1\n$INCLUDE ../secret\n$INCLUDE /etc/passwd\n$INCLUDE link\n"),
            ("in/cycle", "$TTL 1\n$INCLUDE ./cycle\nx A 1.1.1.1\n"),
            ("in/missing", "$INCLUDE none\n$INCLUDE .\n$INCLUDE\n"),
            ("secret", "x 1 A 1.1.1.1\n"),
        ],
    );
    std::os::unix::fs::symlink(folder.0.join("secret"), folder.0.join("in/link")).unwrap();
    let outside = "error: this file lies outside the directory that zone files are read from";
    let expected = [2, 3, 4].map(|line| format!("in/outside:{line}:10: {outside}\n")).concat();
    assert_eq!(folder.read("in/outside", None).1, expected);
    let (records, diagnostics) = folder.read("in/outside", Some("."));
    assert_eq!(diagnostics, format!("in/outside:3:10: {outside}\n"));
    assert_eq!(records.len(), 2);

    let (records, diagnostics) = folder.read("in/cycle", None);
    assert_eq!(diagnostics, "in/cycle:2:10: error: this file includes itself\n");
    assert_eq!(records.len(), 1);
    let expected = "in/missing:1:10: error: in/none cannot be read: no such file or directory\n\
                    in/missing:2:10: error: in/. is not a file\n\
                    in/missing:3:9: error: expected a file name\n";
    assert_eq!(folder.read("in/missing", None).1, expected);
    assert_eq!(
        folder.read("absent", None).1,
        "absent: error: cannot be read: no such file or directory\n"
    );
    assert_eq!(folder.read("in", None).1, "in: error: is not a file\n");
}

#[test]
fn files_include_files_sixteen_deep() {
    let names: Vec<String> = (0..18).map(|depth| format!("d{depth}")).collect();
    let texts: Vec<String> = (0..18).map(|depth| format!("$INCLUDE d{}\n", depth + 1)).collect();
    let files = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str));
    let folder = Folder::new("deep", &files.collect::<Vec<_>>());
    let expected = "d16:1:10: error: files include files at most 16 deep\n";
    assert_eq!(folder.read("d0", None).1, expected);
}
