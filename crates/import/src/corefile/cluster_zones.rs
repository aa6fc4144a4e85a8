//! Zones of clusters: what stands around them, and the reverse zones that become keys of theirs.

use super::source::Kind;
use super::table::{Piece, Region, SourceId, Table};
use super::whoami::leave_out_zones;
use super::{Importer, key};
use crate::document::Effect::Lost;
use std::collections::HashMap;
use zonda_wire::Name;

impl Importer<'_> {
    /// Has names of a hosts file come before those of a cluster, as they do in front of the
    /// upstreams of the zone around it.
    pub(super) fn put_hosts_first(
        &mut self,
        cluster: &Piece,
        hosts: &Piece,
        parent: &Region,
        to: &mut Table,
    ) {
        let is_forwarded = parent.pieces.last().is_some_and(|it| it.kind == Kind::Forward);
        let (place, what) = self.words_of(hosts);
        if parent.pieces.first() != Some(hosts) || !is_forwarded {
            let why = format!(
                "a hosts file stands before a cluster only if it stands before the upstreams of \
                 the zone around {} too",
                key::written(&cluster.zone)
            );
            return self.leave_at(&place, Lost, what, why);
        }
        to.hosts_first.entry((cluster.block, cluster.source)).or_insert(place);
    }

    /// Adds the zones of a table, those of each cluster joined: its reverse zones are keys of the
    /// first.
    pub(super) fn add_table(&mut self, table: Table) {
        let mut zones = Vec::new();
        let mut reverse: HashMap<SourceId, Vec<(Name, Vec<usize>)>> = HashMap::new();
        for entry in table.entries {
            let Some(piece) = entry.pieces.first().filter(|it| it.kind == Kind::Kubernetes) else {
                zones.push(entry);
                continue;
            };
            let id = (piece.block, piece.source);
            if key::is_reverse(&entry.name) {
                reverse.entry(id).or_default().push((entry.name, entry.access));
            } else {
                zones.push(entry);
            }
        }
        let mut reports = Vec::new();
        for entry in &mut zones {
            let Some(piece) = entry.pieces.first().filter(|it| it.kind == Kind::Kubernetes) else {
                continue;
            };
            let id = (piece.block, piece.source);
            entry.hosts_first = table.hosts_first.get(&id).cloned();
            for (name, access) in reverse.remove(&id).unwrap_or_default() {
                if access != entry.access {
                    let why = "the rules for clients are those of the cluster's first zone";
                    reports.push((piece.clone(), key::written(&name), why));
                }
                match key::network(&name) {
                    Some(_) => entry.reverse.push(name),
                    None => {
                        let why = "the reverse zones of a cluster are those of networks";
                        reports.push((piece.clone(), key::written(&name), why));
                    }
                }
            }
        }
        for (piece, name, why) in reports {
            let (place, _) = self.words_of(&piece);
            self.leave_at(&place, Lost, name, why);
        }
        let lost: Vec<SourceId> = reverse.into_keys().collect();
        for (block, source) in lost {
            let source = &self.blocks[block].sources[source];
            let (place, what) = (source.place.clone(), source.what.clone());
            let why = "the block has reverse zones of the cluster only";
            self.leave_at(&place, Lost, what, why);
        }
        leave_out_zones(&mut zones);
        self.zones.extend(zones);
    }
}

/// Returns why a cluster cannot stand before the sources behind it.
pub(super) fn cluster_trouble(region: &Region, parent: &Region) -> Option<&'static str> {
    let mut behind = region.pieces.iter().skip_while(|piece| piece.kind != Kind::Kubernetes);
    behind.next();
    let behind: Vec<&Piece> = behind.collect();
    if behind.is_empty() {
        return None;
    }
    // What falls through goes to the zone around, whose hosts file is then asked there.
    let around = parent.around_clusters();
    let upstreams = |all: &[&Piece]| -> Vec<Piece> {
        let others = all.iter().filter(|piece| piece.kind != Kind::Hosts);
        others.map(|piece| (*piece).clone()).collect()
    };
    match upstreams(&behind) == upstreams(&around) {
        true => None,
        false => Some(
            "names that the cluster lacks go to the zone around it, not to another plugin for the \
             same zone",
        ),
    }
}
