//! `kubernetes [ZONES…] { … }`.

use super::Importer;
use super::hosts::fall_through;
use super::key;
use super::parser::Line;
use super::source::{FallThrough, Kind, Source, ZoneKey};
use crate::document::Effect::{self, Differs, Lost, Needless};
use crate::document::Value;
use crate::error::{ImportError, Place};
use std::path::PathBuf;
use zonda_wire::Name;

/// Longest TTL of the plugin, in seconds.
const TTL_MAX: u64 = 3600;

/// The options of a line being read.
struct Options {
    fall_through: FallThrough,
    keys: Vec<ZoneKey>,
    /// Zones of services that are imported, and the line that says so.
    imported: Option<(Vec<Name>, Place)>,
}

/// Adds the keys that say which names fall through.
pub(super) fn add_fall_through(keys: &mut Vec<ZoneKey>, through: &FallThrough, place: &Place) {
    if !matches!(through, FallThrough::Never) {
        keys.push(("fall-through", true.into(), place.clone()));
    }
    if let FallThrough::In(zones) = through {
        let names: Vec<String> = zones.iter().map(key::written).collect();
        keys.push(("fall-through-zones", names[..].into(), place.clone()));
    }
}

/// Reads the TTL of an option.
pub(super) fn ttl(option: &Line) -> Result<Value, ImportError> {
    let argument = option.argument("a number of seconds")?;
    let ttl: Option<u64> = argument.text.parse().ok().filter(|ttl| *ttl <= TTL_MAX);
    let ttl = ttl.ok_or_else(|| argument.expected("0 to 3600 seconds"))?;
    Ok(format!("{ttl}s").as_str().into())
}

impl Importer<'_> {
    /// Reads `kubernetes`.
    pub(super) fn kubernetes(&mut self, line: &Line) -> Result<(), ImportError> {
        let zones = match line.arguments() {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        if zones.iter().all(key::is_reverse) {
            return Err(line.expected("a zone that is not of reverse names"));
        }
        let mut options =
            Options { fall_through: FallThrough::Never, keys: Vec::new(), imported: None };
        for option in &line.block {
            match option.name() {
                "transfer" => self.former_transfer(option, zones.clone())?,
                _ => self.cluster_option(option, &mut options)?,
            }
        }
        self.settle(line, &mut options)?;
        let (imported, place) =
            options.imported.take().unwrap_or((Vec::new(), line.place().clone()));
        if let Some(zone) = imported.iter().find(|zone| !zones.contains(zone)) {
            return Err(
                line.expected(&format!("the zone {} of `multicluster`", key::written(zone)))
            );
        }
        let (imported, own): (Vec<_>, Vec<_>) =
            zones.into_iter().partition(|zone| imported.contains(zone));
        if !imported.is_empty() {
            const OF_OWN: [&str; 4] = ["pods", "zonal", "endpoints", "endpoint-pod-names"];
            let is_set = |key: &ZoneKey| !OF_OWN.contains(&key.0);
            let mut keys: Vec<ZoneKey> =
                options.keys.iter().filter(|it| is_set(it)).cloned().collect();
            keys.push(("multicluster", true.into(), place));
            self.add_cluster(line, imported, options.fall_through.clone(), keys);
        }
        if !own.is_empty() {
            self.add_cluster(line, own, options.fall_through, options.keys);
        }
        Ok(())
    }

    /// Adds a source of the names of a cluster.
    fn add_cluster(
        &mut self,
        line: &Line,
        zones: Vec<Name>,
        fall_through: FallThrough,
        mut keys: Vec<ZoneKey>,
    ) {
        // The names are kept for a start without the API server.
        keys.push(("snapshot", "state-directory".into(), line.place().clone()));
        self.current().sources.push(Source {
            kind: Kind::Kubernetes,
            zones,
            except: Vec::new(),
            fall_through,
            place: line.place().clone(),
            what: line.summary(),
            file: PathBuf::new(),
            keys,
            next: None,
        });
    }

    /// Makes the keys agree with each other, as CoreDNS takes them.
    fn settle(&mut self, line: &Line, options: &mut Options) -> Result<(), ImportError> {
        let has = |name: &str, keys: &[ZoneKey]| keys.iter().any(|(key, ..)| *key == name);
        if has("namespaces", &options.keys) && has("namespace-labels", &options.keys) {
            return Err(line.expected("one of `namespaces` and `namespace_labels`"));
        }
        let is_of_endpoint =
            |key: &str| ["endpoint", "certificate-file", "key-file", "ca-file"].contains(&key);
        let has_kubeconfig = has("kubeconfig", &options.keys);
        if has_kubeconfig || !has("endpoint", &options.keys) {
            let dropped = options.keys.extract_if(.., |(key, ..)| is_of_endpoint(key));
            let dropped: Vec<ZoneKey> = dropped.collect();
            for (key, _, place) in dropped {
                match has_kubeconfig {
                    true => self.leave_at(&place, Needless, key, "the kubeconfig says it"),
                    false => {
                        self.leave_at(&place, Lost, key, "there is no `endpoint` that it is for")
                    }
                }
            }
        }
        if has("endpoints", &options.keys) {
            const OF_ENDPOINTS: [(&str, Effect, &str); 3] = [
                ("zonal", Lost, "with `noendpoints`, CoreDNS refuses it"),
                (
                    "ignore-empty-services",
                    Lost,
                    "with `noendpoints`, CoreDNS takes all services for empty, and denies them",
                ),
                ("endpoint-pod-names", Needless, "with `noendpoints`, there are no such names"),
            ];
            for (key, effect, why) in OF_ENDPOINTS {
                let dropped: Vec<ZoneKey> = options.keys.extract_if(.., |it| it.0 == key).collect();
                for (_, _, place) in dropped {
                    self.leave_at(&place, effect, key, why);
                }
            }
        }
        add_fall_through(&mut options.keys, &options.fall_through, line.place());
        Ok(())
    }

    /// Reads an option.
    fn cluster_option(&mut self, option: &Line, to: &mut Options) -> Result<(), ImportError> {
        let place = option.place().clone();
        let mut add = |key: &'static str, value: Value| to.keys.push((key, value, place.clone()));
        let words =
            || -> Vec<String> { option.arguments().iter().map(|it| it.text.clone()).collect() };
        match option.name() {
            "pods" => {
                let argument = option.argument("`disabled`, `insecure` or `verified`")?;
                if !["disabled", "insecure", "verified"].contains(&argument.text.as_str()) {
                    return Err(argument.expected("`disabled`, `insecure` or `verified`"));
                }
                add("pods", argument.text.as_str().into());
            }
            "ttl" => add("ttl", ttl(option)?),
            "fallthrough" => to.fall_through = fall_through(option)?,
            "kubeconfig" | "endpoint" | "tls" => self.api_server(option, to)?,
            "namespaces" if !option.arguments().is_empty() => {
                add("namespaces", words()[..].into());
            }
            "namespace_labels" if !option.arguments().is_empty() => {
                add("namespace-labels", words().join(" ").as_str().into());
            }
            "labels" if !option.arguments().is_empty() => {
                add("labels", words().join(" ").as_str().into());
            }
            "namespaces" | "namespace_labels" | "labels" => {
                return Err(option.expected("an argument"));
            }
            "endpoint_pod_names" => add("endpoint-pod-names", true.into()),
            "noendpoints" => add("endpoints", false.into()),
            "zonal" => add("zonal", true.into()),
            "ignore" => {
                let argument = option.argument("`empty_service`")?;
                if !argument.is("empty_service") {
                    return Err(argument.expected("`empty_service`"));
                }
                add("ignore-empty-services", true.into());
            }
            "multicluster" => match option.arguments() {
                [] => return Err(option.expected("the zones of imported services")),
                zones => to.imported = Some((key::all_zones(zones)?, place)),
            },
            "startup_timeout" => {
                let why = "the zone is SERVFAIL until its objects are read; other zones are not \
                    kept waiting";
                self.leave(option, Differs, why);
            }
            "upstream" | "resyncperiod" => {
                self.leave(option, Needless, "it has had no effect for long");
            }
            "apiserver_qps" | "apiserver_burst" | "apiserver_max_inflight" => {
                self.leave(option, Differs, "few requests are made: objects are followed");
            }
            _ => self.lose_option(option),
        }
        Ok(())
    }

    /// Reads where the API server is and how it is reached.
    fn api_server(&mut self, option: &Line, to: &mut Options) -> Result<(), ImportError> {
        let place = option.place().clone();
        let mut add = |key: &'static str, value: Value| to.keys.push((key, value, place.clone()));
        match (option.name(), option.arguments()) {
            ("kubeconfig", [file, context @ ..]) => {
                add("kubeconfig", (*self.base.join(&file.text).to_string_lossy()).into());
                if let Some(context) = context.first() {
                    add("context", context.text.as_str().into());
                }
            }
            ("kubeconfig", []) => return Err(option.expected("the path of a kubeconfig")),
            ("endpoint", [url, more @ ..]) => {
                add("endpoint", url.text.as_str().into());
                if !more.is_empty() {
                    self.leave(option, Differs, "the first one is used, as CoreDNS does");
                }
            }
            ("endpoint", []) => return Err(option.expected("the URL of an API server")),
            (_, [certificate, key, ca]) => {
                for (name, file) in
                    [("certificate-file", certificate), ("key-file", key), ("ca-file", ca)]
                {
                    add(name, (*self.base.join(&file.text).to_string_lossy()).into());
                }
            }
            _ => return Err(option.expected("a certificate, a key and a CA")),
        }
        Ok(())
    }
}
