//! What commands print, word for word.
//!
//! The files in `cli/*.txt` hold commands behind `$`, what they write to standard output, what they
//! write to standard error behind `2>`, and the exit code if it is not 0. `UPDATE=1` writes down
//! what they print now.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use zonda_testkit::golden;

/// Where the files of commands and the zones that they name are.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli")
}

/// Runs a command line without quotes in it.
fn run(line: &str) -> Output {
    let arguments = line.strip_prefix("zonda").unwrap().split_ascii_whitespace();
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.current_dir(directory()).env("COLUMNS", "100").stdin(Stdio::null());
    command.args(arguments).output().unwrap()
}

/// Runs the commands of a file, and compares what they print.
fn check(file: &str) {
    let path = directory().join(file);
    let mut text = String::new();
    for line in std::fs::read_to_string(&path).unwrap().lines() {
        let Some(line) = line.strip_prefix("$ ") else { continue };
        let output = run(line);
        let between = if text.is_empty() { "" } else { "\n" };
        writeln!(text, "{between}$ {line}").unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
        for line in String::from_utf8(output.stderr).unwrap().lines() {
            writeln!(text, "{}", format!("2> {line}").trim_end()).unwrap();
        }
        match output.status.code() {
            Some(0) => {}
            code => writeln!(text, "exit {}", code.unwrap()).unwrap(),
        }
    }
    golden::check(&path, &text);
}

#[test]
fn file_commands_say_what_they_find_and_what_is_wrong() {
    check("file.txt");
}

#[test]
fn a_former_spelling_is_answered_with_the_command_to_type() {
    check("former.txt");
}

#[test]
fn a_check_warns_of_delegations_that_nobody_is_asked_for() {
    check("check.txt");
}

#[test]
fn a_wrong_question_is_told_in_a_line() {
    check("query.txt");
}

#[test]
fn help_says_enough_to_need_no_manual() {
    check("help.txt");
}

#[test]
fn what_is_printed_is_read_again_and_prints_the_same() {
    let printed = run("zonda file print office.zone").stdout;
    let folder = zonda_testkit::process::Folder::new("command-line");
    let again = |name: &str, content: &[u8]| {
        let path = folder.write(name, content);
        run(&format!("zonda file print {}", path.display())).stdout
    };
    assert!(!printed.is_empty());
    assert_eq!(again("printed.zone", &printed), printed);
    let json = run("zonda file convert --to json office.zone").stdout;
    assert_eq!(again("converted.json", &json), printed);
}

#[test]
fn a_reader_that_has_gone_away_changes_no_exit_code_and_makes_nothing_panic() {
    let folder = zonda_testkit::process::Folder::new("gone");
    let named = folder.write("named.conf", "options { notify yes; };\n");
    let lines = [
        "zonda check --config delegated.toml",
        "zonda check --config delegated.toml --print-config",
        "zonda check --config missing.toml",
        "zonda serve --config delegated.toml --print-config",
        "zonda serve --config missing.toml",
        "zonda file check broken.zone",
        "zonda file print office.zone",
        "zonda file print broken.zone",
        "zonda file stats office.zone",
        "zonda zone list --socket missing.sock",
        "zonda query a..b",
        "zonda generate completions bash",
        "zonda bench suite --list",
        "zonda bench compare missing.json missing.json",
        "zonda --help",
        "zonda nothing",
        &format!("zonda import {}", named.display()),
    ];
    for line in lines {
        let read = run(line).status.code();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let arguments = line.strip_prefix("zonda").unwrap().split_ascii_whitespace();
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
        command.current_dir(directory()).stdin(Stdio::null()).args(arguments);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        assert_eq!(command.status().unwrap().code(), read, "{line}");
    }
}

#[test]
fn a_man_page_is_made_for_each_command_and_completions_for_each_shell() {
    let folder = zonda_testkit::process::Folder::new("generate");
    let output = Command::new(env!("CARGO_BIN_EXE_zonda"))
        .args(["generate", "man"])
        .arg(folder.path())
        .env("SOURCE_DATE_EPOCH", "1795238400")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    for command in ["zonda", "zonda-serve", "zonda-query", "zonda-file-check", "zonda-zone-list"] {
        let page = page(&format!("man1/{command}.1"));
        let title = format!(".TH {} 1 2026-11-21 \"zonda ", command.to_uppercase());
        assert!(page.lines().any(|line| line.starts_with(&title)), "{page}");
        for section in ["EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"] {
            assert!(page.contains(&format!(".SH \"{section}\"\n")), "{command}: {section}");
        }
        let (_, examples) = page.split_once("EXAMPLES\"\n").unwrap();
        assert!(examples.starts_with(".RS 2\n.EX\nzonda "), "{examples}");
    }
    let formats = page("man5/zonda.toml.5");
    assert!(formats.contains("\n.SH \"[query-log]\"\n") && formats.contains(".B idle\\-timeout\n"));
    if let Some(man) = zonda_testkit::process::installed("groff") {
        for name in ["man1/zonda-query.1", "man5/zonda.toml.5"] {
            let mut command = Command::new(&man);
            command.args(["-man", "-Tutf8", "-ww", "-Kutf8"]).arg(folder.path().join(name));
            let output = command.output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&format!("zonda generate completions {shell}"));
        assert!(String::from_utf8(output.stdout).unwrap().contains("zonda"), "{shell}");
    }
}

/// A gdnsd configuration in a folder, with a zone that refers to it.
fn gdnsd_folder() -> zonda_testkit::process::Folder {
    let folder = zonda_testkit::process::Folder::new("import");
    let config = "plugins => { multifo => { web => [ 192.0.2.1, 192.0.2.2 ] } }\n";
    let zone = "@ SOA ns1 admin 1 7200 1800 259200 900\n@ NS ns1\nns1 A 192.0.2.53\n\
        www 300/30 DYNA multifo!web\nme DYNA reflect\n";
    std::fs::create_dir_all(folder.path().join("gdnsd/zones")).unwrap();
    folder.write("gdnsd/config", config);
    folder.write("gdnsd/zones/example.com", zone);
    folder
}

/// Runs `zonda import` in a folder.
fn import_in(folder: &zonda_testkit::process::Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.current_dir(folder.path()).arg("import").args(arguments).output().unwrap()
}

#[test]
fn an_import_writes_zone_files_beside_the_configuration_and_none_over_another() {
    let folder = gdnsd_folder();
    let first = import_in(&folder, &["gdnsd", "-o", "new/zonda.toml"]);
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    let told = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(told.contains("gdnsd/zones/example.com:5: lost: reflect: "), "{told}");
    let zone = folder.path().join("new/zones/example.com.zone");
    let text = std::fs::read_to_string(&zone).unwrap();
    assert!(text.contains("\n; taken out: www 300/30 DYNA multifo!web\n"), "{text}");
    let toml = std::fs::read_to_string(folder.path().join("new/zonda.toml")).unwrap();
    assert!(toml.contains("file = \"zones/example.com.zone\""), "{toml}");
    std::fs::write(&zone, "; edited\n").unwrap();
    let second = import_in(&folder, &["gdnsd/config", "-o", "new/other.toml"]);
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stderr).contains("example.com.zone"), "{second:?}");
    assert_eq!(std::fs::read_to_string(&zone).unwrap(), "; edited\n");
    assert!(!folder.path().join("new/other.toml").exists());
}

#[test]
fn an_import_with_zone_files_needs_a_place_to_write_them_to() {
    let folder = gdnsd_folder();
    for arguments in [&["gdnsd"][..], &["gdnsd/config", "gdnsd/config", "-o", "x.toml"]] {
        let output = import_in(&folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty() && !folder.path().join("x.toml").exists());
    }
    let several = import_in(&folder, &["gdnsd/config", "x", "-o", "x.toml"]);
    assert!(String::from_utf8_lossy(&several.stderr).contains("--from powerdns"), "{several:?}");
}
