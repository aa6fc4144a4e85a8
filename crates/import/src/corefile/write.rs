//! The `zonda.toml` of what was read.

use super::edns::QueryOption;
use super::setting::{Scalar, Setting, duration};
use super::source::{Kind, Source};
use super::table::ZoneEntry;
use super::transfer::{TransferRule, transfer_of};
use super::{Block, Directory, Importer, key};
use crate::document::Effect::Lost;
use crate::document::{Document, Value};
use crate::error::Place;
use std::path::{Path, PathBuf};

/// Sections that exist once, in the order of the reference.
const SECTIONS: [&str; 9] =
    ["tcp", "answers", "cache", "edns", "identity", "admin", "metrics", "log", "query-log"];

/// Special names that `local` leaves to upstreams.
const FORWARDED_BESIDE_LOCAL: [&str; 18] = [
    "alt",
    "home.arpa",
    "invalid",
    "local",
    "onion",
    "resolver.arpa",
    "service.arpa",
    "10.in-addr.arpa",
    "100.in-addr.arpa",
    "169.in-addr.arpa",
    "172.in-addr.arpa",
    "192.in-addr.arpa",
    "198.in-addr.arpa",
    "203.in-addr.arpa",
    "d.f.ip6.arpa",
    "e.f.ip6.arpa",
    "8.b.d.0.1.0.0.2.ip6.arpa",
    "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
];

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
        if let Some(root) = self.directory_of_zones() {
            document.key("root", &*root.to_string_lossy(), None);
        }
        let settings = std::mem::take(&mut self.settings);
        write_section(&mut document, "", &settings);
        for (address, place) in &self.listeners {
            document.section("[[listen]]", None);
            document.key("address", &*address.to_string(), Some(place));
        }
        for entry in &self.zones {
            self.write_zone(&mut document, entry, self.listen_of(&entry.views));
        }
        for directory in &self.directories {
            self.write_directory(&mut document, directory, self.listen_of(&directory.views));
        }
        self.write_special_names(&mut document);
        self.write_changes(&mut document, "rewrite");
        self.write_changes(&mut document, "template");
        self.write_whoami(&mut document);
        for section in SECTIONS {
            if settings.iter().any(|it| it.key.0 == section) {
                document.section(&format!("[{section}]"), None);
                write_section(&mut document, section, &settings);
            }
        }
        document.into_text()
    }

    /// Returns the least directory that holds all zone files.
    fn directory_of_zones(&self) -> Option<PathBuf> {
        let files = self.zones.iter().flat_map(|it| &it.pieces);
        let files = files.filter(|it| it.kind == Kind::File);
        let folders = files.filter_map(|it| self.source(it).file.parent().map(Path::to_owned));
        let mut folders = folders.chain(self.directories.iter().map(|it| it.path.clone()));
        let mut common = folders.next()?;
        for folder in folders {
            while !folder.starts_with(&common) {
                common.pop();
            }
        }
        Some(common)
    }

    /// Returns the line of a block's first key.
    pub(super) fn place_of(&self, block: usize) -> Option<&Place> {
        self.blocks.get(block)?.keys.first().map(|key| &key.token.place)
    }

    /// Writes a directory of zone files, which is at some listeners or at all.
    pub(super) fn write_directory(
        &self,
        document: &mut Document,
        directory: &Directory,
        listen: Option<Vec<String>>,
    ) {
        let Directory { path, place, block, .. } = directory;
        document.section("[[zone]]", None);
        document.key("directory", &*path.to_string_lossy(), Some(place));
        if let Some(listen) = listen {
            document.key("listen", &listen[..], self.place_of(*block));
        }
        if let Some(rule) = self.blocks.get(*block).and_then(|it| it.transfers.first()) {
            write_transfer(document, rule);
        }
    }

    /// Writes a zone, which is at some listeners or at all.
    pub(super) fn write_zone(
        &self,
        document: &mut Document,
        entry: &ZoneEntry,
        listen: Option<Vec<String>>,
    ) {
        let sources: Vec<&Source> = entry.pieces.iter().map(|it| self.source(it)).collect();
        let [first, ..] = sources[..] else { return };
        if entry.is_whoami() {
            return; // a template
        }
        document.section("[[zone]]", None);
        document.key("name", &*key::written(&entry.name), Some(&first.place));
        if let Some(listen) = listen {
            let block = entry.pieces.first().map(|piece| piece.block);
            document.key("listen", &listen[..], block.and_then(|block| self.place_of(block)));
        }
        let mut forward = None;
        for source in sources {
            match source.kind {
                Kind::File if source.is_secondary() => forward = Some(source),
                Kind::File => {
                    document.key("file", &*source.file.to_string_lossy(), Some(&source.place));
                }
                Kind::Hosts => write_keys(document, source),
                Kind::Kubernetes | Kind::Forward => forward = Some(source),
                Kind::Whoami => {}
            }
        }
        let is_forwarded = forward.is_some_and(|source| source.kind == Kind::Forward);
        self.write_access(document, entry, is_forwarded);
        let own_block = entry.pieces.first().and_then(|piece| self.blocks.get(piece.block));
        if let Some((_, rule)) = own_block.and_then(|block| transfer_of(block, entry)) {
            write_transfer(document, rule);
        }
        let Some(source) = forward else { return };
        let section = if source.is_secondary() { "secondary" } else { source.kind.plugin() };
        document.section(&format!("[zone.{section}]"), None);
        write_keys(document, source);
        if let Some(place) = &entry.hosts_first {
            document.key("hosts-first", true, Some(place));
        }
        if !entry.reverse.is_empty() {
            let names: Vec<String> = entry.reverse.iter().filter_map(key::network).collect();
            document.key("reverse", &names[..], Some(&source.place));
        }
        if !entry.except.is_empty() {
            let names: Vec<String> = entry.except.iter().map(key::written).collect();
            document.key("except", &names[..], None);
        }
        let block = entry.pieces.first().and_then(|piece| self.blocks.get(piece.block));
        if let (true, Some(block)) = (is_forwarded, block) {
            if let Some((time, place)) = &block.stale_after {
                document.key("stale-after", &*duration(*time), Some(place));
            }
            for (key, time, place) in &block.cache_times {
                document.key(key, &*duration(*time), Some(place));
            }
            if let [first, ..] = &block.options[..] {
                let texts: Vec<String> = block.options.iter().map(QueryOption::text).collect();
                document.key("options", &texts[..], Some(&first.place));
            }
            if let Some((size, place)) = &block.buffer_size {
                document.key("buffer-size", *size, Some(place));
            }
        }
    }

    /// Writes which clients are answered: all of them where no rule says otherwise.
    fn write_access(&self, document: &mut Document, entry: &ZoneEntry, is_forwarded: bool) {
        let block = entry.pieces.first().and_then(|piece| self.blocks.get(piece.block));
        let rules = entry.access.iter().filter_map(|at| block?.access.get(*at));
        let mut written: Vec<String> = Vec::new();
        let mut place: Option<&Place> = None;
        for rule in rules {
            place = place.or(Some(&rule.place));
            written.push(rule.rule.clone());
            if rule.rule.ends_with(" any") {
                break; // no rule behind it is reached
            }
        }
        if written.is_empty() && !is_forwarded {
            return;
        }
        if !written.last().is_some_and(|last| last.ends_with(" any")) {
            written.push("allow any".to_owned());
        }
        document.key("access", &written[..], place);
    }

    /// Returns the blocks that forward the root, those of the first views first.
    fn blocks_with_root(&self) -> impl Iterator<Item = &Block> {
        let roots = self.zones.iter().filter(|entry| entry.name.label_count() == 0);
        let pieces = roots.filter_map(|entry| entry.pieces.last());
        let forwarded = pieces.filter(|piece| piece.kind == Kind::Forward);
        forwarded.filter_map(|piece| self.blocks.get(piece.block))
    }

    /// Reports `local` of some of the blocks that forward the root: special names are forwarded at
    /// all listeners alike.
    pub(super) fn check_special_names(&mut self) {
        let places = || self.blocks_with_root().map(|block| block.plugins.get("local"));
        let places: Vec<Place> = match places().any(|it| it.is_none()) {
            true => places().flatten().cloned().collect(),
            false => Vec::new(),
        };
        for place in places {
            let why = "special names are forwarded at all addresses alike: write `local` in all \
                blocks that forward the root, or in none";
            self.leave_at(&place, Lost, "local", why);
        }
    }

    /// Writes which special names are forwarded.
    fn write_special_names(&self, document: &mut Document) {
        if let Some(block) = self.blocks_with_root().next() {
            document.section("[special-names]", None);
            match block.plugins.get("local") {
                Some(place) => {
                    let names = FORWARDED_BESIDE_LOCAL.map(str::to_owned);
                    document.key("forward", &names[..], Some(place));
                }
                None => document.key("forward", &[".".to_owned()][..], None),
            }
        }
    }
}

/// Writes the clients that a zone is transferred to.
fn write_transfer(document: &mut Document, rule: &TransferRule) {
    document.key("transfer.to", &rule.to[..], Some(&rule.place));
    if !rule.notify.is_empty() {
        document.key("transfer.notify", &rule.notify[..], Some(&rule.place));
    }
}

/// Writes the keys of a section.
fn write_section(document: &mut Document, section: &str, settings: &[Setting]) {
    let of_section = settings.iter().filter(|it| it.key.0 == section);
    for Setting { key: (_, name), value, origin } in of_section {
        let value: Value = Scalar::written(value);
        document.key(name, value, Some(origin));
    }
}

/// Writes the keys that a source has of its own.
fn write_keys(document: &mut Document, source: &Source) {
    for (name, value, place) in &source.keys {
        document.key(name, value.clone(), Some(place));
    }
}
