//! `whoami`: the address and the port of the client that asks.

use super::parser::Line;
use super::source::{FallThrough, Kind, Source};
use super::table::{ZoneEntry, ancestors};
use super::{Importer, key};
use crate::document::Document;
use crate::document::Effect::Lost;
use crate::error::ImportError;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use zonda_wire::Name;

/// Records of a reply: the address, and the port below the name of the protocol.
const RECORDS: [&str; 2] = [
    "{{ .Name }} 0 IN {{ .RemoteType }} {{ .Remote }}",
    "_{{ .Protocol }}{{ if ne .Name \".\" }}.{{ end }}{{ .Name }} 0 IN SRV 0 0 {{ .RemotePort }} .",
];

impl Importer<'_> {
    /// Reads `whoami`: what no other plugin of the block has is answered by it.
    pub(super) fn whoami(&mut self, line: &Line) -> Result<(), ImportError> {
        line.alone()?;
        line.without_block()?;
        let zones = self.current().zones();
        let (place, what) = (line.place().clone(), line.summary());
        self.current().sources.push(Source {
            kind: Kind::Whoami,
            zones,
            except: Vec::new(),
            fall_through: FallThrough::Never,
            place,
            what,
            file: PathBuf::new(),
            keys: Vec::new(),
            next: None,
        });
        Ok(())
    }

    /// Reports what templates cannot do: they answer before all zones, and carry no rules.
    pub(super) fn check_whoami(&mut self) {
        let mut reports = Vec::new();
        for entry in self.zones.iter().filter(|entry| entry.is_whoami()) {
            let Some(piece) = entry.pieces.first() else { continue };
            let source = self.source(piece);
            if !entry.access.is_empty() {
                let why = "no rule for clients limits it: its names are those of no zone";
                reports.push((source.place.clone(), source.what.clone(), why));
            }
            if self.directories.iter().any(|it| it.block == piece.block) {
                let why = "it would answer in place of the zones of the directory";
                reports.push((source.place.clone(), source.what.clone(), why));
            }
        }
        for (place, what, why) in reports {
            self.leave_at(&place, Lost, what, why);
        }
    }

    /// Writes the templates of all blocks that tell clients their addresses.
    pub(super) fn write_whoami(&self, document: &mut Document) {
        for entry in self.zones.iter().filter(|entry| entry.is_whoami()) {
            self.write_whoami_of(document, entry, self.listen_of(&entry.views));
        }
    }

    /// Writes the template of a zone.
    pub(super) fn write_whoami_of(
        &self,
        document: &mut Document,
        entry: &ZoneEntry,
        listen: Option<Vec<String>>,
    ) {
        let place = entry.pieces.first().map(|piece| &self.source(piece).place);
        document.section("[[template]]", place);
        document.key("zones", &[key::written(&entry.name)][..], None);
        if let Some(listen) = listen {
            let block = entry.pieces.first().map(|piece| piece.block);
            document.key("listen", &listen[..], block.and_then(|block| self.place_of(block)));
        }
        if !entry.except.is_empty() {
            let names: Vec<String> = entry.except.iter().map(key::written).collect();
            document.key("except", &names[..], None);
        }
        document.key("additional", &RECORDS.map(str::to_owned)[..], None);
    }
}

/// Has templates leave out the other zones of their view, which are inside of theirs.
pub(super) fn leave_out_zones(zones: &mut [ZoneEntry]) {
    let numbers: HashMap<Name, usize> = zones
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.is_whoami())
        .map(|(at, entry)| (entry.name.clone(), at))
        .collect();
    if numbers.is_empty() {
        return;
    }
    let mut inside: Vec<(usize, Name)> = Vec::new();
    for entry in zones.iter().filter(|entry| !entry.is_whoami()) {
        let around = ancestors(&entry.name).filter_map(|above| numbers.get(&above).copied());
        inside.extend(around.map(|at| (at, entry.name.clone())));
    }
    for (at, name) in inside {
        zones.get_mut(at).into_iter().for_each(|entry| entry.except.push(name.clone()));
    }
    for entry in zones.iter_mut().filter(|entry| entry.is_whoami()) {
        entry.except.sort_by_key(Name::label_count);
        let mut outermost: HashSet<Name> = HashSet::new();
        entry.except.retain(|name| {
            let is_inside = ancestors(name).any(|above| outermost.contains(&above));
            !is_inside && outermost.insert(name.clone())
        });
    }
}

impl ZoneEntry {
    /// Whether clients are told their addresses at its names.
    pub fn is_whoami(&self) -> bool {
        self.pieces.first().is_some_and(|piece| piece.kind == Kind::Whoami)
    }
}
