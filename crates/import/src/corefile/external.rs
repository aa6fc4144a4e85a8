//! `k8s_external [ZONES…] { apex LABEL; ttl SECONDS; headless; fallthrough [ZONES…] }`.

use super::Importer;
use super::hosts::fall_through;
use super::key;
use super::kubernetes::{add_fall_through, ttl};
use super::parser::Line;
use super::source::{FallThrough, Kind, Source, ZoneKey};
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::ImportError;
use std::path::PathBuf;
use zonda_wire::Name;

/// Keys of the cluster that zones of external names have, too.
const SHARED_KEYS: [&str; 12] = [
    "kubeconfig",
    "context",
    "endpoint",
    "ca-file",
    "certificate-file",
    "key-file",
    "namespaces",
    "namespace-labels",
    "labels",
    "endpoints",
    "endpoint-pod-names",
    "snapshot",
];

impl Importer<'_> {
    /// Reads `k8s_external`, after all other lines of its block.
    pub(super) fn external(&mut self, line: &Line) -> Result<(), ImportError> {
        let zones = match line.arguments() {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        // The zones of imported services come first.
        let is_cluster = |it: &&Source| it.kind == Kind::Kubernetes && !it.is_external();
        let Some(cluster) = self.current().sources.iter().rfind(is_cluster) else {
            return Err(line.expected("`kubernetes` in the same block"));
        };
        let is_shared = |it: &&ZoneKey| SHARED_KEYS.contains(&it.0);
        let mut keys: Vec<ZoneKey> = cluster.keys.iter().filter(is_shared).cloned().collect();
        let place = line.place().clone();
        keys.push(("external", true.into(), place.clone()));
        let mut through = FallThrough::Never;
        for option in &line.block {
            let place = option.place().clone();
            match option.name() {
                "ttl" => keys.push(("ttl", ttl(option)?, place)),
                "headless" if keys.iter().any(|key| key.0 == "endpoints") => {
                    self.leave(option, Needless, "headless services have no endpoints");
                }
                "headless" => keys.push(("external-headless", true.into(), place)),
                "fallthrough" => through = fall_through(option)?,
                "apex" => {
                    let argument = option.argument("a label")?;
                    let name = argument.text.parse::<Name>();
                    match name.is_ok_and(|name| name.label_count() == 1) {
                        true => {
                            let label = argument.text.trim_end_matches('.');
                            keys.push(("external-apex", label.into(), place));
                        }
                        false => self.leave(option, Lost, "`external-apex` is a single label"),
                    }
                }
                _ => self.lose_option(option),
            }
        }
        add_fall_through(&mut keys, &through, &place);
        if zones.iter().all(key::is_reverse) {
            self.leave(line, Lost, "write a zone that is not of reverse names in front of them");
            return Ok(());
        }
        let why = "a service that has addresses and host names is known by its addresses, and no \
            other names lie below one that has external addresses, but those of its ports";
        self.leave(line, Differs, why);
        let source = Source {
            kind: Kind::Kubernetes,
            zones,
            except: Vec::new(),
            fall_through: through,
            place,
            what: line.summary(),
            file: PathBuf::new(),
            keys,
            next: None,
        };
        self.current().sources.insert(0, source); // before the cluster, as CoreDNS asks it first
        Ok(())
    }
}
