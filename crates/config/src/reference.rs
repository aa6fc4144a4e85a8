//! The reference page and the commented sample, made of the sections.

use crate::keys::SECTIONS;
use crate::section::{EffectTime, Key, Kind, Section};

/// What stands above the sections of the reference page.
const REFERENCE_HEAD: &str = "\
# Configuration

<!-- Made by `cargo xtask generate` from crates/config/src/keys.rs: edit that file. -->

The server reads one file in [TOML](https://toml.io), which says `version = 1`. Each key may also be
set by an environment variable, and some by a flag; a flag wins over a variable, a variable over the
file. A key, section or `ZONDA_` variable that does not exist is an error, but for those that
Kubernetes sets for a Service. `zonda check` reports all
errors at once; `zonda serve --print-config` shows every value and its origin.

Relative paths in the file start from its directory, those in variables and flags from the working
directory. In a variable, the elements of a list are separated by commas. Where a list is expected,
a single value stands for a list of one.
";

/// What stands above the sections of the sample.
const SAMPLE_HEAD: &str = "\
# Configuration of zonda. Remove the # in front of a key to change it; what is shown is its default,
# or an example where it has none. All keys: docs/reference/config.md.

version = 1
";

/// Returns the files made from the sections: path in the repository, and content.
#[must_use]
pub fn generated_files() -> [(&'static str, String); 2] {
    [("docs/reference/config.md", reference()), ("packaging/zonda.toml", sample())]
}

/// Returns the reference page, in Markdown.
fn reference() -> String {
    let mut page = REFERENCE_HEAD.to_owned();
    for section in SECTIONS {
        let title = match section.kind {
            Kind::Top => "Top of the file".to_owned(),
            _ => format!("`{}`", section.header()),
        };
        let takes = match section.takes {
            EffectTime::Reload => "Changes take effect at a reload.",
            EffectTime::Restart => "Changes take effect at a restart.",
        };
        page += &format!("\n## {title}\n\n{}\n\n{takes}\n", prose(section.doc, ""));
        for key in section.keys {
            let path = if section.name.is_empty() { "" } else { &format!("{}.", section.name) };
            page += &format!("\n### `{path}{}`\n\n{}\n\n", key.name, prose(key.doc, ""));
            page += &facts(section, key);
        }
    }
    page
}

/// Returns the man page zonda.toml(5), in roff, of this date (`YYYY-MM-DD`) and version.
#[must_use]
pub fn man_page(date: &str, version: &str) -> String {
    let mut page = format!(
        ".TH ZONDA.TOML 5 {date} \"zonda {version}\" \"Zonda Manual\"\n\
         .SH NAME\nzonda.toml \\- configuration of the DNS server zonda\n.ad l\n\
         .SH DESCRIPTION\n"
    );
    let (_, description) = REFERENCE_HEAD.split_once("-->\n\n").unwrap_or_default();
    page +=
        &roff(&description.replace("[TOML](https://toml.io)", "TOML").replace("\n\n", "\n.PP\n"));
    for section in SECTIONS {
        let title = match section.kind {
            Kind::Top => "TOP OF THE FILE".to_owned(),
            _ => section.header(),
        };
        let takes = match section.takes {
            EffectTime::Reload => "Changes take effect at a reload.",
            EffectTime::Restart => "Changes take effect at a restart.",
        };
        page += &format!(".SH \"{title}\"\n{}.PP\n{takes}\n", roff(&prose(section.doc, "")));
        for key in section.keys {
            let name = key.name.replace('-', "\\-");
            page += &format!(".TP\n.B {name}\n{}", roff(&prose(key.doc, "")));
            for fact in facts(section, key).lines() {
                page += &format!(".br\n{}", roff(fact.trim_start_matches("- ")));
            }
        }
    }
    page + ".SH FILES\n.I ./zonda.toml\n.br\n.I /etc/zonda/zonda.toml\n\
            .SH \"SEE ALSO\"\n.BR zonda (1),\n.BR zonda\\-serve (1),\n.BR zonda\\-check (1)\n"
}

/// Lines for roff, without the marks of Markdown; requests of its own stay.
fn roff(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        if line == ".PP" {
            return format!("{line}\n");
        }
        let line = line.replace('\\', "\\e").replace('-', "\\-").replace('`', "");
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        format!("{guard}{line}\n")
    });
    lines.collect()
}

/// Returns the bullets under a key: how it is written, its default, its variable.
fn facts(section: &Section, key: &Key) -> String {
    let list = if key.many { "a list; each is " } else { "" };
    let mut facts = format!("- write: {list}{}\n", key.form());
    match key.default {
        Some(_) => facts += &format!("- default: `{}`\n", key.sample()),
        None if key.example.is_some() => facts += &format!("- example: `{}`\n", key.sample()),
        None => {}
    }
    if let Some(variable) = section.variable(key) {
        facts += &format!("- environment: `{variable}`\n");
    }
    facts
}

/// Returns the sample: every key, commented out.
fn sample() -> String {
    let mut sample = SAMPLE_HEAD.to_owned();
    for section in SECTIONS {
        sample += &format!("\n{}\n", prose(section.doc, "# "));
        if section.kind != Kind::Top {
            sample += &format!("#{}\n", section.header());
        }
        for key in section.keys.iter().filter(|key| key.name != "version") {
            let name = match key.name.contains(' ') {
                true => format!("\"{}\"", key.name),
                false => key.name.to_owned(),
            };
            sample += &format!("\n{}\n#{name} = {}\n", prose(key.doc, "# "), key.sample());
        }
    }
    sample
}

/// Returns the lines of a doc comment, each behind `margin`.
fn prose(doc: &[&str], margin: &str) -> String {
    let lines = doc.iter().map(|line| format!("{margin}{}", line.trim_start()));
    lines.collect::<Vec<_>>().join("\n")
}
