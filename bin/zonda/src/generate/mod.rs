//! `zonda generate`: files about the command line, for packages.

mod man;

use crate::cli::Cli;
use crate::output::{self, Failure};
use clap::{Args, CommandFactory, Subcommand};
use clap_complete::Shell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use zonda_server::Rfc3339;

/// Write man pages or shell completions
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda generate man /usr/local/share/man
  zonda generate completions bash > /etc/bash_completion.d/zonda")]
pub struct Generate {
    #[command(subcommand)]
    what: What,
}

/// The files that can be generated.
#[derive(Subcommand)]
enum What {
    /// Write a man page for each command, and zonda.toml(5), into man1 and man5 of a directory
    ///
    /// Their date is that of `SOURCE_DATE_EPOCH` (seconds since 1970) if it is set, or else today.
    Man {
        /// The directory, such as /usr/local/share/man
        directory: PathBuf,
    },
    /// Print a shell's completions
    Completions {
        /// The shell to complete commands in
        shell: Shell,
    },
}

impl Generate {
    /// Writes.
    pub fn run(self) -> ExitCode {
        output::end(match self.what {
            What::Man { directory } => man(&directory),
            What::Completions { shell } => completions(shell),
        })
    }
}

/// Writes man pages.
fn man(directory: &Path) -> Result<ExitCode, Failure> {
    let date = date();
    let write = || {
        let [commands, formats] = ["man1", "man5"].map(|section| directory.join(section));
        fs::create_dir_all(&commands)?;
        fs::create_dir_all(&formats)?;
        man::write_all(Cli::command(), &date, &commands)?;
        let page = zonda_config::man_page(&date, zonda_server::VERSION);
        fs::write(formats.join("zonda.toml.5"), page)
    };
    write().map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The date of the pages: that of the source, where a build is to be repeatable.
fn date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let of_source = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|secs| secs.parse().ok());
    let secs = of_source.unwrap_or(since.as_secs());
    let time = Rfc3339(u32::try_from(secs).unwrap_or(u32::MAX)).to_string();
    time.chars().take_while(|c| *c != 'T').collect()
}

/// Prints completions.
fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "zonda", &mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if shell == Shell::Bash {
        text = with_names(&text);
    }
    output::print(|out| std::io::Write::write_all(out, text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the names of the running server's zones, of the first 1000, and the owners of the first
/// ten zones among them that have at most 1000 records, in bash. A larger zone would have to be
/// sorted for it. As bash expands what it completes, only names of plain octets are printed.
const NAMES: &str = r#"
_zonda_zones() {
    local name rest
    zonda zone list 2>/dev/null | while read -r name rest; do
        [[ ${name} =~ ^[A-Za-z0-9._/-]*[.]$ ]] && printf '%s\n' "${name}"
    done
}

_zonda_owners() {
    local zone serial records rest owner last= asked=0
    zonda zone list 2>/dev/null | while read -r zone serial records rest; do
        [[ ${zone} =~ ^[A-Za-z0-9._/-]*[.]$ && ${records} =~ ^[0-9]+$ ]] || continue
        (( records <= 1000 && asked++ < 10 )) || continue
        zonda zone get --zone "${zone}" 2>/dev/null </dev/null | while read -r owner rest; do
            [[ ${owner} == "${last}" || ${owner} == "${zone}" ]] && continue
            last=${owner}
            [[ ${owner} =~ ^[A-Za-z0-9._/-]+$ ]] && printf '%s\n' "${owner}"
        done
    done
}
"#;

/// Has completions of bash ask the running server for the names of its zones, where a command
/// takes one, and for those of records.
fn with_names(completions: &str) -> String {
    let mut text = completions.to_owned();
    let [zones, owners] = ["$(_zonda_zones) ", "$(_zonda_zones) $(_zonda_owners) "];
    for (command, names) in [
        ("show", zones),
        ("get", owners),
        ("set", owners),
        ("unset", owners),
        ("diff", zones),
        ("flush", zones),
        ("reload", zones),
        ("refresh", zones),
        ("retransfer", zones),
        ("notify", zones),
        ("freeze", zones),
        ("thaw", zones),
        ("history", zones),
        ("rollback", zones),
        ("confirm", zones),
    ] {
        let case = format!("        zonda__subcmd__zone__subcmd__{command})\n            opts=\"");
        text = text.replace(&case, &format!("{case}{names}"));
    }
    text + NAMES
}
