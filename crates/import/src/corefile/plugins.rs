//! Plugins by name, and the words for those that have no counterpart.

use super::Importer;
use super::parser::Line;
use crate::document::Effect;
use crate::error::{ImportError, Problem};
use crate::tree::fail;
use crate::value::read_duration;
use Effect::{Differs, Lost, Needless};
use std::str::FromStr;
use std::time::Duration;

/// Effect, reason, and the plugins that it is for.
type Group = (Effect, &'static str, &'static [&'static str]);

/// Plugins of which no key comes.
const GROUPS: &[Group] = &[
    (Needless, "ANY is always answered briefly", &["any"]),
    (Needless, "replies have only what clients need", &["minimal"]),
    (Needless, "a loop of forwarded queries is always found, at run time too", &["loop"]),
    (Needless, "there is no plugin that uses them", &["metadata"]),
    (Differs, "`timeout` in [zone.forward] ends a query that takes too long", &["cancel"]),
    (Lost, "sign elsewhere, and serve the signed file", &["dnssec", "sign"]),
    (
        Lost,
        "clients are answered over UDP and TCP only",
        &["tls", "https", "https3", "quic", "grpc_server"],
    ),
    (Lost, "upstreams are reached over UDP, TCP, TLS, HTTPS and QUIC", &["grpc"]),
    (Lost, "this debugging aid has no counterpart", &["erratic", "pprof", "trace"]),
    (Lost, "there is no such log", &["dnstap"]),
    (Lost, "no commands are run at events", &["on"]),
    (Lost, "addresses are not synthesized", &["dns64"]),
    (Lost, "all clients see the same zones", &["view"]),
    (Lost, "pools choose by location: see docs/steering.md", &["geoip"]),
    (
        Lost,
        "records come from files, clusters, and the databases of [zone.store]",
        &["etcd", "route53", "azure", "clouddns", "nomad"],
    ),
    (Lost, "queries are not signed", &["tsig"]),
    (Lost, "addresses of clients are not passed by proxies", &["proxyproto"]),
];

impl Importer<'_> {
    /// Reads the line of a plugin.
    pub(super) fn plugin(&mut self, line: &Line) -> Result<(), ImportError> {
        match line.name() {
            "acl" => self.acl(line),
            "auto" => self.auto(line),
            "autopath" => self.autopath(line),
            "bind" => self.bind(line),
            "bufsize" => self.buffer_size(line),
            "cache" => self.cache(line),
            "chaos" => self.chaos(line),
            "debug" => self.debug(line),
            "errors" => self.errors(line),
            "file" => self.file(line),
            "forward" => self.forward(line),
            "header" => self.header(line),
            "health" => self.health(line),
            "hosts" => self.hosts(line),
            "k8s_external" => self.external(line),
            "kubernetes" => self.kubernetes(line),
            "loadbalance" => self.load_balance(line),
            "local" => self.local(line),
            "log" => self.log(line),
            "multisocket" => self.sockets(line),
            "nsid" => self.nsid(line),
            "prometheus" => self.prometheus(line),
            "ready" => self.ready(line),
            "reload" => self.reload(line),
            "rewrite" => self.rewrite(line),
            "secondary" => self.secondary(line),
            "root" => self.root(line),
            "template" => self.template(line),
            "timeouts" => self.timeouts(line),
            "transfer" => self.transfer(line),
            "whoami" => self.whoami(line),
            name => {
                let known = GROUPS.iter().find(|(_, _, names)| names.contains(&name));
                match known {
                    Some((effect, why, _)) => self.leave(line, *effect, *why),
                    None => self.leave(line, Lost, "this import does not know the plugin"),
                }
                Ok(())
            }
        }
    }
}

impl Line {
    /// Returns the only argument, read as something that has a form in text.
    pub fn parsed<T: FromStr>(&self, wanted: &str) -> Result<T, ImportError> {
        let argument = self.argument(wanted)?;
        argument.text.parse().map_err(|_| argument.expected(wanted))
    }

    /// Returns the only argument, read as a duration.
    pub fn duration(&self) -> Result<Duration, ImportError> {
        const WANTED: &str = "a duration such as `30s`";
        let argument = self.argument(WANTED)?;
        read_duration(&argument.text).ok_or_else(|| argument.expected(WANTED))
    }

    /// Returns at most one argument.
    pub fn optional(&self) -> Result<Option<&super::lexer::Token>, ImportError> {
        match self.arguments() {
            [] => Ok(None),
            [_] => self.argument("an argument").map(Some),
            [_, more, ..] => Err(more.expected("the end of the line")),
        }
    }

    /// Checks that nothing follows the word.
    pub fn alone(&self) -> Result<(), ImportError> {
        match self.arguments().first() {
            Some(more) => Err(more.expected("the end of the line")),
            None => Ok(()),
        }
    }

    /// Checks that the line opens no block.
    pub fn without_block(&self) -> Result<(), ImportError> {
        let Some(inner) = self.block.first() else { return Ok(()) };
        let wanted = format!("no block behind `{}`", self.name().escape_debug());
        let problem = Problem::Expected { wanted, found: "an option".to_owned() };
        Err(fail(inner.place().clone(), problem))
    }
}
