//! What the documentation shows is true: its commands run, its configuration loads.
//!
//! The first line of a code block says, behind the language, what becomes of it. The blocks of a
//! page are taken in order, in an empty folder that holds the `examples`:
//!
//! | first line | the block |
//! |---|---|
//! | `zone example.com.zone`, `toml zonda.toml` … | is written to that file |
//! | `toml` | is read as configuration, as are those that are written to a file |
//! | `sh serve` | is started in place of the one before; what follows waits until it serves |
//! | `sh beside` | is started beside those that run, with an admin socket of its own |
//! | `sh test`, `sh fails` | is run, and must succeed or fail |
//! | `sh cluster`, `text cluster` | is left to `bin/zonda/tests/packaging/page.rs` |
//! | `text output` | is what the block before printed; `…` is any text, alone any lines |
//!
//! Ports 5300 and 9153 are replaced by free ones everywhere. JavaScript and Python are run by the
//! tests of their packages (`docs.test.mjs`, `test_docs.py`).
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use zonda_config::{Config, Flags};
use zonda_testkit::process::{Folder, Process, free_port, installed};

const ZONDA: &str = env!("CARGO_BIN_EXE_zonda");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The socket by which commands reach the server of a page.
const ADMIN_SOCKET: &str = "admin.sock";
/// How long a server may take until it serves.
const START_MAX: Duration = Duration::from_secs(20);

/// A fenced block of code.
struct Block {
    line: usize,
    language: String,
    /// What the first line says behind the language.
    note: String,
    text: String,
}

/// The blocks of a page, in order.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().zip(1..);
    while let Some((first, line)) = lines.next() {
        let Some(info) = first.trim_start().strip_prefix("```") else { continue };
        let (language, note) = info.split_once(' ').unwrap_or((info, ""));
        let (language, note) = (language.to_owned(), note.to_owned());
        let body = lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```");
        let text = body.map(|line| format!("{line}\n")).collect();
        blocks.push(Block { line, language, note, text });
    }
    blocks
}

/// All pages: the README and what lies under `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![Path::new(ROOT).join("README.md")];
    let mut folders = vec![Path::new(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// A page that is being followed.
struct Reader {
    folder: Folder,
    server: Option<Process>,
    /// Servers that run to the end of the page.
    beside: Vec<Process>,
    /// What the last commands printed.
    output: String,
    dns: String,
    admin: String,
}

impl Reader {
    fn new() -> Self {
        let folder = Folder::new("docs");
        let zones = folder.path().join("examples/zones");
        fs::create_dir_all(&zones).unwrap();
        for entry in fs::read_dir(Path::new(ROOT).join("examples/zones")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), zones.join(entry.file_name())).unwrap();
        }
        let (dns, admin) = (free_port().to_string(), free_port().to_string());
        let (server, beside, output) = (None, Vec::new(), String::new());
        Self { folder, server, beside, output, dns, admin }
    }

    /// Does what a block says; what is wrong otherwise.
    fn follow(&mut self, block: &Block) -> Result<(), String> {
        // The number of a free port may have the other one in it, so that none is in the text
        // while the other one is replaced.
        let text = block.text.replace("5300", "DNS-PORT").replace("9153", &self.admin);
        let text = text.replace("DNS-PORT", &self.dns);
        match (block.language.as_str(), block.note.as_str()) {
            ("sh", "test") => self.run(&text, true),
            ("sh", "fails") => self.run(&text, false),
            ("sh", "serve") => {
                self.server = None;
                self.server = Some(self.start(&text, ADMIN_SOCKET)?);
                Ok(())
            }
            ("sh", "beside") => {
                let socket = format!("beside-{}.sock", self.beside.len());
                self.beside.push(self.start(&text, &socket)?);
                Ok(())
            }
            // Commands for a cluster, and what they print: bin/zonda/tests/packaging/page.rs.
            ("sh" | "text", "cluster") => Ok(()),
            ("text", "output") if matches(&text, &self.output) => Ok(()),
            ("text", "output") => Err(format!("the output is\n{}", self.output)),
            // A file, which the tests of the page's language write and run.
            ("sh", file) if file.ends_with(".sh") => Ok(()),
            ("sh" | "text", note) if !note.is_empty() => Err(format!("what is \"{note}\"?")),
            (_, "") => Ok(()),
            (_, file) => {
                self.folder.write(file, text);
                Ok(())
            }
        }
    }

    /// A shell in the folder, which finds the `zonda` under test and talks to the server of this
    /// socket.
    fn shell(&self, script: &str, socket: &str) -> Command {
        let folder = self.folder.path().display();
        let path = std::env::var("PATH").unwrap_or_default();
        let program = Path::new(ZONDA).parent().unwrap().display();
        let mut shell = Command::new("sh");
        shell.args(["-ec", &format!("cd '{folder}'\n{script}")]);
        shell.env("PATH", format!("{program}:{path}"));
        shell.env("ZONDA_ADMIN_ADDRESS", format!("127.0.0.1:{}", self.admin));
        shell.env("ZONDA_ADMIN_SOCKET", self.folder.path().join(socket));
        shell
    }

    fn run(&mut self, script: &str, succeeds: bool) -> Result<(), String> {
        let output = self.shell(script, ADMIN_SOCKET).output().unwrap();
        self.output = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() == succeeds {
            return Ok(());
        }
        let log = self.server.as_ref().map(|server| server.log("")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}\n{}{errors}\nthe server's log:\n{log}", output.status, self.output))
    }

    /// Starts a server and waits until it serves.
    fn start(&self, command: &str, socket: &str) -> Result<Process, String> {
        let shell = self.shell(&format!("exec env {command}"), socket);
        let log = self.folder.path().join(format!("{socket}.log"));
        let mut server = Process::start(&shell, &log).unwrap();
        let limit = Instant::now() + START_MAX;
        while !self.shell("zonda status", socket).output().unwrap().status.success() {
            if server.ended() || Instant::now() > limit {
                return Err(format!("it does not serve:\n{}", server.log("")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

/// Whether `output` is as `expected`, line by line.
fn matches(expected: &str, output: &str) -> bool {
    let expected: Vec<&str> = expected.lines().collect();
    let output: Vec<&str> = output.lines().collect();
    lines_match(&expected, &output)
}

fn lines_match(expected: &[&str], output: &[&str]) -> bool {
    match (expected, output) {
        ([], rest) => rest.is_empty(),
        (["…", more @ ..], rest) => (0..=rest.len()).any(|skip| lines_match(more, &rest[skip..])),
        ([first, more @ ..], [line, rest @ ..]) => {
            line_matches(first, line) && lines_match(more, rest)
        }
        (_, []) => false,
    }
}

fn line_matches(expected: &str, line: &str) -> bool {
    let Some((start, more)) = expected.split_once('…') else { return expected == line };
    let Some(rest) = line.strip_prefix(start) else { return false };
    (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| line_matches(more, rest)))
}

#[test]
fn dots_stand_for_any_text_and_any_lines() {
    assert!(matches("a … c\n…\nz", "a b c\nx\ny\nz"));
    assert!(matches("…\na", "a"));
    assert!(!matches("a", "a\nb"));
    assert!(!matches("a … c", "a b d"));
}

#[test]
fn what_the_pages_show_happens() {
    for program in ["dig", "curl"] {
        assert!(installed(program).is_some(), "{program} is missing; `make packages` installs it");
    }
    let mut wrong = Vec::new();
    for path in pages() {
        let mut reader = Reader::new();
        for block in blocks(&fs::read_to_string(&path).unwrap()) {
            if let Err(what) = reader.follow(&block) {
                wrong.push(format!("{}:{}: {what}", path.display(), block.line));
                break; // what follows builds on it
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_configuration_that_pages_show_can_be_loaded() {
    let folder = Folder::new("docs");
    let locations = "../../crates/geo/tests/data/GeoLite2-City-Test.mmdb";
    fs::copy(locations, folder.path().join("GeoLite2-City.mmdb")).unwrap();
    folder.write("transfer.key", "c2VjcmV0LW9mLXRoZS10ZXN0LXdpdGgtMzItb2N0ZXRz");
    let mut wrong = Vec::new();
    for path in pages() {
        for block in blocks(&fs::read_to_string(&path).unwrap()) {
            if block.language != "toml" {
                continue;
            }
            let version = if block.text.contains("version = 1") { "" } else { "version = 1\n" };
            let file = folder.write("zonda.toml", format!("{version}{}", block.text));
            if let Err(errors) = Config::load(Some(&file), [], &Flags::default()) {
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                wrong.push(format!("{}:{}:\n{}", path.display(), block.line, errors.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
