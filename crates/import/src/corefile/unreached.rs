//! Sources of server blocks that no query reaches.

use super::Importer;
use super::key;
use super::source::Kind;
use crate::document::Effect::{Lost, Needless};
use std::collections::HashSet;
use zonda_wire::Name;

impl Importer<'_> {
    /// Reports sources, and zones of theirs, that no query reaches at any listener.
    pub(super) fn report_unreached(&mut self) {
        let views = self.views.iter().flat_map(|view| &view.owners);
        let owned: HashSet<(usize, &Name)> = views.map(|(zone, block)| (*block, zone)).collect();
        let mut reports = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let mut zones = block.keys.iter().flat_map(|key| &key.zones);
            if !zones.all(|zone| owned.contains(&(number, zone))) {
                continue; // its zones are those of another block, which is reported
            }
            for (at, source) in block.sources.iter().enumerate() {
                let reached = self.reached.get(&(number, at));
                let has_apex = matches!(source.kind, Kind::File | Kind::Kubernetes);
                let is_missing = |zone: &_| match reached {
                    Some(zones) => has_apex && !zones.contains(zone),
                    None => true,
                };
                let Some(zone) = source.zones.iter().find(|zone| is_missing(zone)) else {
                    continue;
                };
                let mut before = block.sources[..at].iter();
                let (effect, why) = match before.find_map(|it| it.next.as_ref()) {
                    Some(next) => (Lost, format!("in CoreDNS, {next} leaves answers to it")),
                    None => {
                        let zone = key::written(zone);
                        let why = format!("no query for {zone} reaches it, in CoreDNS neither");
                        (Needless, why)
                    }
                };
                reports.push((source.place.clone(), source.what.clone(), effect, why));
            }
        }
        for (place, what, effect, why) in reports {
            self.leave_at(&place, effect, what, why);
        }
    }
}
