//! Man pages of the commands, made of their help: sections as man-pages(7) has them, and examples
//! as they are to be typed.

use clap::Command;
use clap_mangen::Man;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// What all pages belong to.
const MANUAL: &str = "Zonda Manual";

/// Exit codes of commands whose help does not tell their own.
const EXIT_STATUS: &str = "\
.TP
.B 0
Done, and what was to be checked is so.
.TP
.B 1
A check failed, a limit was broken, or the server refused.
.TP
.B 2
The command could not be run: a mistake in it, or a file or server that cannot be reached.
";

/// Files that the commands read and write.
const FILES: &str = "\
.TP
.I ./zonda.toml, /etc/zonda/zonda.toml
The configuration that is read when none is named; see
.BR zonda.toml (5).
.TP
.I /run/zonda/zonda\\-ADDRESS.sock
The socket over which commands reach the server, here of root.
";

/// Environment variables that the commands read.
const ENVIRONMENT: &str = "\
.TP
.B ZONDA_ADMIN_SOCKET
The server's admin socket, unless
.B \\-\\-socket
names it.
.TP
.B ZONDA_\\fIKEY\\fR
A key of the configuration; see
.BR zonda.toml (5).
";

/// Writes the pages of a command and all those below it into a directory.
///
/// # Errors
/// When a file cannot be written.
pub fn write_all(mut command: Command, date: &str, directory: &Path) -> io::Result<()> {
    command = command.disable_help_subcommand(true);
    command.build();
    write_below(&command, date, directory)
}

/// Writes the page of a command, and of those below it.
fn write_below(command: &Command, date: &str, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_below(below, date, directory)?;
    }
    let name = name_of(command);
    fs::write(directory.join(format!("{name}.1")), page(command, date)?)
}

/// The page of a command.
fn page(command: &Command, date: &str) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).title(name_of(command).to_uppercase()).date(date);
    let man = man.source(format!("zonda {}", zonda_server::VERSION)).manual(MANUAL);
    let help = Help::of(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    page.extend(help.rest.as_bytes());
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let exit_status = if help.exit_status.is_empty() { EXIT_STATUS } else { &help.exit_status };
    let sections = [
        ("EXIT STATUS", exit_status),
        ("FILES", FILES),
        ("ENVIRONMENT", ENVIRONMENT),
        ("EXAMPLES", &help.examples),
        ("SEE ALSO", &see_also(command)),
    ];
    for (title, text) in sections.into_iter().filter(|(_, text)| !text.is_empty()) {
        page.extend(format!(".SH \"{title}\"\n{text}").as_bytes());
    }
    Ok(page)
}

/// The name of a command's page.
fn name_of(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The pages of the commands above and below.
fn see_also(command: &Command) -> String {
    let name = name_of(command);
    let above = name.rsplit_once('-').map(|(above, _)| above.to_owned());
    let below = command.get_subcommands().filter(|below| !below.is_hide_set()).map(name_of);
    let names = above.into_iter().chain(below.map(str::to_owned));
    let mut text = String::new();
    for name in names {
        let _ = writeln!(text, ".BR {} (1),", escaped(&name)); // never fails
    }
    text + ".BR zonda.toml (5)\n"
}

/// What stands below the options of a command's help, by the sections of its page.
#[derive(Default)]
struct Help {
    exit_status: String,
    examples: String,
    /// The rest of the text, for the description.
    rest: String,
}

impl Help {
    /// The help of a command: paragraphs, of which lines that are indented are shown as they are.
    fn of(command: &Command) -> Self {
        let text = command.get_after_long_help().or_else(|| command.get_after_help());
        let text = text.map(ToString::to_string).unwrap_or_default();
        let mut help = Self::default();
        for paragraph in text.split("\n\n") {
            if let Some(examples) = paragraph.trim_start().strip_prefix("Examples:\n") {
                help.examples += &literal(examples);
            } else if let Some(codes) = paragraph.trim_start().strip_prefix("Exit code: ") {
                help.exit_status += &filled(codes);
            } else if !paragraph.trim().is_empty() {
                help.rest += ".PP\n";
                help.rest += &filled(paragraph);
            }
        }
        help
    }
}

/// Lines that are filled, but for those that are indented.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut indented = String::new();
    for line in text.lines() {
        if line.starts_with("  ") {
            indented += &format!("{line}\n");
            continue;
        }
        filled += &literal(&std::mem::take(&mut indented));
        filled += &format!("{}\n", escaped(line));
    }
    filled + &literal(&indented)
}

/// Lines as they are, for examples that are copied.
fn literal(lines: &str) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.lines().map(|line| escaped(line.strip_prefix("  ").unwrap_or(line)));
    format!(".RS 2\n.EX\n{}\n.EE\n.RE\n", lines.collect::<Vec<_>>().join("\n"))
}

/// A line without a meaning for roff.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    let is_request = text.starts_with(['.', '\'']);
    if is_request { format!("\\&{text}") } else { text }
}
