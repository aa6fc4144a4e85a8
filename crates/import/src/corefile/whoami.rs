//! `whoami`: the address and the port of the client that asks.

use super::parser::Line;
use super::source::{FallThrough, Kind, Source};
use super::table::ZoneEntry;
use super::{Importer, key};
use crate::document::Document;
use crate::document::Effect::Lost;
use crate::error::ImportError;
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
            let place = entry.pieces.first().map(|piece| &self.source(piece).place);
            document.section("[[template]]", place);
            document.key("zones", &[key::written(&entry.name)][..], None);
            let is_inside = |it: &&ZoneEntry| {
                it.name != entry.name && key::is_in(&it.name, &entry.name) && !it.is_whoami()
            };
            let mut except = entry.except.clone();
            except.extend(self.zones.iter().filter(is_inside).map(|it| it.name.clone()));
            except.sort_by_key(Name::label_count);
            let mut outermost: Vec<Name> = Vec::new();
            for name in except {
                if !outermost.iter().any(|zone| key::is_in(&name, zone)) {
                    outermost.push(name);
                }
            }
            if !outermost.is_empty() {
                let names: Vec<String> = outermost.iter().map(key::written).collect();
                document.key("except", &names[..], None);
            }
            document.key("additional", &RECORDS.map(str::to_owned)[..], None);
        }
    }
}

impl ZoneEntry {
    /// Whether clients are told their addresses at its names.
    pub fn is_whoami(&self) -> bool {
        self.pieces.first().is_some_and(|piece| piece.kind == Kind::Whoami)
    }
}
