//! The `zonda.toml` of what was read.

use super::Importer;
use super::zones::{Source, common_directory};
use crate::document::{Document, key};
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
            Source::Servers(..) => None,
        });
        if let Some(root) = common_directory(files) {
            document.key("root", &*root.to_string_lossy(), None);
        }
        self.write_listeners(&mut document);
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

    /// Writes all zones.
    fn write_zones(&self, document: &mut Document) {
        for zone in &self.zones {
            document.section("[[zone]]", None);
            document.key("name", &*zone.name, Some(&zone.origin));
            match &zone.source {
                Source::File(path, origin) => {
                    document.key("file", &*path.to_string_lossy(), Some(origin));
                    write_access(document, zone.access.as_ref());
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

/// Writes which clients are answered.
fn write_access(document: &mut Document, access: Option<&(Vec<String>, Place)>) {
    if let Some((rules, origin)) = access {
        document.key("access", &rules[..], Some(origin));
    }
}
