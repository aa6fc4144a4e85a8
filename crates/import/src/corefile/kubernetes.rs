//! `kubernetes [ZONES…] { … }`.

use super::Importer;
use super::hosts::fall_through;
use super::key;
use super::parser::Line;
use super::setting::duration;
use super::source::{FallThrough, Kind, Source, ZoneKey};
use crate::document::Effect::{Differs, Lost, Needless};
use crate::document::Value;
use crate::error::ImportError;
use std::path::PathBuf;
use zonda_wire::Name;

/// Longest TTL of the plugin, in seconds.
const TTL_MAX: u64 = 3600;

/// The options of a line being read.
struct Options {
    fall_through: FallThrough,
    keys: Vec<ZoneKey>,
    multicluster: Vec<Name>,
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
        let (keys, multicluster) = (Vec::new(), Vec::new());
        let mut options = Options { fall_through: FallThrough::Never, keys, multicluster };
        for option in &line.block {
            self.cluster_option(option, &mut options)?;
        }
        if let FallThrough::In(zones) = &options.fall_through {
            let names: Vec<String> = zones.iter().map(key::written).collect();
            options.keys.push(("fall-through", names[..].into(), line.place().clone()));
        } else if matches!(options.fall_through, FallThrough::Always) {
            options.keys.push(("fall-through", true.into(), line.place().clone()));
        }
        let (place, what) = (line.place().clone(), line.summary());
        self.current().sources.push(Source {
            kind: Kind::Kubernetes,
            zones,
            except: Vec::new(),
            fall_through: options.fall_through,
            place,
            what,
            file: PathBuf::new(),
            keys: options.keys,
        });
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
            "ttl" => {
                let argument = option.argument("a number of seconds")?;
                let ttl: Option<u64> = argument.text.parse().ok().filter(|ttl| *ttl <= TTL_MAX);
                let ttl = ttl.ok_or_else(|| argument.expected("0 to 3600 seconds"))?;
                add("ttl", format!("{ttl}s").as_str().into());
            }
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
            "multicluster" => {
                to.multicluster = key::all_zones(option.arguments())?;
                let names: Vec<String> = to.multicluster.iter().map(key::written).collect();
                add("multicluster", names[..].into());
            }
            "startup_timeout" => {
                add("startup-timeout", duration(option.duration()?).as_str().into());
            }
            "upstream" | "resyncperiod" => {
                self.leave(option, Needless, "it has had no effect for long");
            }
            "apiserver_qps" | "apiserver_burst" | "apiserver_max_inflight" => {
                self.leave(option, Differs, "few requests are made: objects are followed");
            }
            "transfer" => self.leave(option, Lost, "there are no zone transfers yet"),
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
                for (name, file) in [("certificate", certificate), ("key", key), ("ca-file", ca)] {
                    add(name, (*self.base.join(&file.text).to_string_lossy()).into());
                }
            }
            _ => return Err(option.expected("a certificate, a key and a CA")),
        }
        Ok(())
    }
}
