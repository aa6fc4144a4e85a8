//! `template CLASS TYPE [ZONES…] { … }`, as far as it denies names or gives them addresses.

use super::Importer;
use super::data::literal;
use super::key;
use super::parser::Line;
use crate::document::Effect::{Differs, Lost};
use crate::error::ImportError;
use std::net::IpAddr;
use zonda_wire::Name;

/// Patterns that stand for all names.
const ALL_NAMES: [&str; 4] = [".*", "^.*$", ".+", "^(.*)$"];
/// Names that a template gives addresses.
const NAMES_MAX: usize = 10_000;

/// A template being read.
struct Template<'l> {
    zones: Vec<Name>,
    /// Lines that begin with `match`, without those that stand for all names.
    patterns: Vec<&'l Line>,
    /// Lines that begin with `answer`.
    answers: Vec<&'l Line>,
    denies: bool,
    /// Whether it has what cannot be expressed.
    has_more: bool,
}

impl Importer<'_> {
    /// Reads `template`.
    pub(super) fn template(&mut self, line: &Line) -> Result<(), ImportError> {
        let [class, kind, zones @ ..] = line.arguments() else {
            return Err(line.expected("a class and a type"));
        };
        let zones = match zones {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        let template = read(line, zones);
        let is_in = class.is("IN") || class.is("ANY");
        let is_of_addresses = kind.is("A") || kind.is("AAAA");
        if template.has_more || !is_in {
            self.lose_template(line);
        } else if template.denies && kind.is("ANY") && template.patterns.is_empty() {
            let block = self.blocks.len() - 1;
            for zone in template.zones {
                self.denied.push((zone, block, line.place().clone()));
            }
        } else if template.denies && template.patterns.iter().all(|it| counts_labels(it)) {
            let why = "names with so many labels are forwarded, and denied by the upstream";
            self.leave(line, Differs, why);
        } else if is_of_addresses && !template.denies && !template.answers.is_empty() {
            self.addresses(line, &template, &kind.text);
        } else {
            self.lose_template(line);
        }
        Ok(())
    }

    /// Reports a template that has no counterpart.
    fn lose_template(&mut self, line: &Line) {
        let why = "a template can deny all names of a zone, or give names the same addresses \
            always: nothing else";
        self.leave(line, Lost, why);
    }

    /// Reads a template that gives addresses.
    fn addresses(&mut self, line: &Line, template: &Template<'_>, kind: &str) {
        let addresses: Option<Vec<IpAddr>> =
            template.answers.iter().map(|answer| address(answer, kind)).collect();
        let Some(addresses) = addresses else { return self.lose_template(line) };
        let mut names = Vec::new();
        for pattern in &template.patterns {
            match pattern.arguments() {
                [] => return self.lose_template(line),
                words => {
                    for word in words {
                        match names_of(&word.text, &template.zones) {
                            Some(more) => names.extend(more),
                            None => return self.lose_template(line),
                        }
                    }
                }
            }
        }
        if template.patterns.is_empty() {
            for zone in &template.zones {
                if zone.label_count() == 0 {
                    return self.lose_template(line);
                }
                let zone = key::written(zone);
                names.extend([format!("*.{zone}"), zone]);
            }
        }
        let block = self.blocks.len() - 1;
        for name in names.into_iter().take(NAMES_MAX) {
            let place = line.place().clone();
            let entry = self.overrides.entry(name).or_insert_with(|| (Vec::new(), block, place));
            for address in &addresses {
                if !entry.0.contains(address) {
                    entry.0.push(*address);
                }
            }
        }
        let why = "the names have no records of other types, and are for clients of the zones \
            that are forwarded";
        self.leave(line, Differs, why);
    }

    /// Checks that names are denied, or have addresses, where they are forwarded, and only there.
    pub(super) fn check_templates(&mut self) {
        let denied = std::mem::take(&mut self.denied);
        for (zone, block, place) in denied {
            let is_only_forwarded = self.is_only_forwarded(&zone, block, true);
            match is_only_forwarded {
                true => self.denied.push((zone, block, place)),
                false => {
                    let why = "names can be denied below a `.` that is forwarded, unless another \
                        zone has them";
                    self.leave_at(&place, Lost, format!("template … {zone}"), why);
                }
            }
        }
        let overrides = std::mem::take(&mut self.overrides);
        for (name, (addresses, block, place)) in overrides {
            let zone = name.strip_prefix("*.").unwrap_or(&name).parse::<Name>();
            if zone.is_ok_and(|zone| self.is_only_forwarded(&zone, block, false)) {
                self.overrides.insert(name, (addresses, block, place));
            } else {
                let why = "an [override] is for names that are forwarded, with all of a zone";
                self.leave_at(&place, Lost, format!("template … {name}"), why);
            }
        }
    }
}

/// Reads the lines of a template.
fn read(line: &Line, zones: Vec<Name>) -> Template<'_> {
    let mut template = Template {
        zones,
        patterns: Vec::new(),
        answers: Vec::new(),
        denies: false,
        has_more: false,
    };
    for option in &line.block {
        match (option.name(), option.arguments()) {
            ("match", words) => {
                let is_all = |word: &super::lexer::Token| ALL_NAMES.contains(&word.text.as_str());
                if !words.iter().any(is_all) {
                    template.patterns.push(option);
                }
            }
            ("answer", _) => template.answers.push(option),
            ("rcode", [code]) if code.is("NXDOMAIN") => template.denies = true,
            ("rcode", [code]) if code.is("NOERROR") => {}
            ("authority", _) => {} // the record that says how long to remember
            ("fallthrough", []) => {}
            _ => template.has_more = true,
        }
    }
    template.has_more |= template.denies && !template.answers.is_empty();
    template
}

/// Whether a pattern is for names with so many labels more than a zone has, which keeps names of
/// search paths from upstreams.
fn counts_labels(pattern: &Line) -> bool {
    let is_one = |text: &str| {
        let rest = text.strip_prefix("^(?:[^.]+\\.){");
        let rest = rest.and_then(|it| it.split_once(",}"));
        rest.is_some_and(|(number, zone)| {
            let zone = zone.strip_suffix('$').and_then(literal);
            number.parse::<u8>().is_ok() && zone.is_some_and(|it| it.parse::<Name>().is_ok())
        })
    };
    pattern.arguments().iter().all(|word| is_one(&word.text))
}

/// Returns the address of `answer "{{ .Name }} TTL IN TYPE ADDRESS"`.
fn address(answer: &Line, kind: &str) -> Option<IpAddr> {
    let words: Vec<&str> = answer.arguments().iter().map(|it| it.text.as_str()).collect();
    let text = words.join(" ").replace("{{", "{{ ").replace("}}", " }}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let record = words.strip_prefix(&["{{", ".Name", "}}"])?;
    let data = match record {
        [ttl, "IN", of, data] | ["IN", ttl, of, data] if *of == kind => {
            ttl.parse::<u32>().ok()?;
            data
        }
        ["IN", of, data] if *of == kind => data,
        _ => return None,
    };
    let address: IpAddr = data.parse().ok()?;
    (address.is_ipv4() == (kind == "A")).then_some(address)
}

/// Returns the names, as `[override]` has them, that a regular expression stands for.
fn names_of(pattern: &str, zones: &[Name]) -> Option<Vec<String>> {
    let pattern = pattern.strip_prefix("(?i)").unwrap_or(pattern);
    let whole = pattern.strip_suffix('$')?;
    let beginnings: [(&str, bool, bool); 7] = [
        ("^(.*\\.)?", true, true),
        ("^(.*[.])?", true, true),
        ("(^|\\.)", true, true),
        ("(^|[.])", true, true),
        ("^.*\\.", false, true),
        ("^(.*)\\.", false, true),
        ("^", true, false),
    ];
    let found = beginnings.iter().find(|(beginning, ..)| whole.starts_with(beginning));
    let (rest, itself, below) = match found {
        Some((beginning, itself, below)) => (whole.get(beginning.len()..)?, *itself, *below),
        None => (whole.strip_prefix("\\.").or_else(|| whole.strip_prefix("[.]"))?, false, true),
    };
    let name: Name = literal(rest)?.strip_suffix('.')?.parse().ok()?;
    let is_here = zones.iter().any(|zone| key::is_in(&name, zone));
    if name.label_count() == 0 || !is_here {
        return None;
    }
    let name = key::written(&name.to_lowercase());
    let below = below.then(|| format!("*.{name}"));
    Some(below.into_iter().chain(itself.then_some(name)).collect())
}
