//! The `zonda.toml` of what was read.

use super::Importer;
use super::transfers::Transfers;
use super::updates::{Grant, Updates};
use super::zones::{Source, common_directory};
use crate::document::{Document, Value, key};
use crate::error::Place;
use std::path::Path;

/// Sections that exist once, in the order of the reference.
const SECTIONS: [&str; 10] = [
    "forwarding",
    "special-names",
    "tcp",
    "answers",
    "cache",
    "edns",
    "identity",
    "rate-limit",
    "admin",
    "query-log",
];
/// Keys that every forwarded zone has.
const FORWARD: &str = "zone.forward";

impl Importer<'_> {
    /// Writes the whole configuration.
    pub(super) fn write(&mut self, path: &Path) -> String {
        let comment = format!(
            "Made by `zonda import {}`. Behind each key stands the line that it comes from.\n\
             `zonda check --config FILE` tells whether all is well; what was left out, the command \
             has told.",
            path.display()
        );
        let mut document = Document::new(&comment);
        let files = self.zones.iter().filter_map(|zone| match &zone.source {
            Source::File(path, _) => Some(path.as_path()),
            Source::Servers(..) | Source::Primaries(..) => None,
        });
        if let Some(root) = common_directory(files) {
            document.key("root", &*root.to_string_lossy(), None);
        }
        self.write_listeners(&mut document);
        self.write_keys(&mut document);
        self.write_zones(&mut document);
        let lists = self.acls.named();
        if !lists.is_empty() {
            document.section("[access]", None);
            for (name, rules) in lists {
                document.key(&key(name), &rules[..], None);
            }
        }
        for section in SECTIONS {
            let mut settings = self.settings.extract_if(.., |it| it.section == section).peekable();
            if settings.peek().is_some() {
                document.section(&format!("[{section}]"), None);
            }
            for setting in settings {
                document.key(setting.key, setting.value, Some(&setting.origin));
            }
        }
        document.into_text()
    }

    /// Writes where queries are answered.
    fn write_listeners(&self, document: &mut Document) {
        for listener in &self.listeners {
            document.section("[[listen]]", None);
            document.key("address", &*listener.address.to_string(), listener.origin.as_ref());
            write_access(document, listener.access.as_ref());
        }
    }

    /// Writes the keys that transfers need.
    fn write_keys(&self, document: &mut Document) {
        for key in self.keys.values().filter(|key| key.is_needed) {
            document.section("[[key]]", None);
            document.key("name", &*key.name, Some(key.statement.place()));
            document.key("algorithm", &*key.algorithm, None);
            document.key("secret", key.secret, None);
        }
    }

    /// Writes all zones.
    fn write_zones(&self, document: &mut Document) {
        for zone in &self.zones {
            document.section("[[zone]]", None);
            document.key("name", &*zone.name, Some(&zone.origin));
            match &zone.source {
                Source::File(path, origin) => {
                    document.key("file", &*path.to_string_lossy(), Some(origin));
                    write_access(document, zone.access.as_ref());
                    write_transfers(document, zone.transfers.as_ref());
                    write_updates(document, zone.updates.as_ref());
                }
                Source::Primaries(primaries, origin) => {
                    write_access(document, zone.access.as_ref());
                    write_transfers(document, zone.transfers.as_ref());
                    document.section("[zone.secondary]", None);
                    document.key("from", &primaries.from[..], Some(origin));
                    for (key, value, origin) in &primaries.keys {
                        document.key(key, value.clone(), Some(origin));
                    }
                }
                Source::Servers(servers, origin) => {
                    write_access(document, zone.access.as_ref());
                    document.section("[zone.forward]", None);
                    document.key("to", &servers.to[..], Some(origin));
                    if let Some((file, origin)) = &servers.ca_file {
                        document.key("ca-file", &**file, Some(origin));
                    }
                    let excepted = self.excepted_from(&zone.name);
                    if !excepted.is_empty() {
                        document.key("except", &excepted[..], None);
                    }
                    let common = self.settings.iter().filter(|it| it.section == FORWARD);
                    for setting in common {
                        document.key(setting.key, setting.value.clone(), Some(&setting.origin));
                    }
                }
            }
        }
    }
}

/// Writes the terms of transfers.
fn write_transfers(document: &mut Document, transfers: Option<&Transfers>) {
    let Some(Transfers { to, notify, origin }) = transfers else { return };
    let pairs = [("to", to), ("notify", notify)].into_iter().filter(|(_, all)| !all.is_empty());
    let table = Value::table(pairs.map(|(key, all)| {
        let all: Vec<Value> = all.iter().map(|it| Value::from(&**it)).collect();
        (key, Value::from(all))
    }));
    document.key("transfer", table, Some(origin));
}

/// Writes the rights to change a zone.
fn write_updates(document: &mut Document, updates: Option<&Updates>) {
    let Some(Updates { grants, origin }) = updates else { return };
    let grants: Vec<Value> = grants.iter().map(Grant::to_value).collect();
    document.key("update", Value::from(grants), Some(origin));
}

/// Writes which clients are answered.
fn write_access(document: &mut Document, access: Option<&(Vec<String>, Place)>) {
    if let Some((rules, origin)) = access {
        document.key("access", &rules[..], Some(origin));
    }
}
