//! Statements that have no counterpart, and what that means.

use super::statement::Statement;
use crate::document::{Effect, ReportLine};
use Effect::{Differs, Lost, Needless};

/// Statements whose value asks for what Zonda does anyway.
const ALWAYS_SO: &[(&str, &str)] = &[
    ("allow-update", "none"),
    ("auth-nxdomain", "no"),
    ("check-names", "ignore"),
    ("dnssec-validation", "no"),
    ("fetches-per-server", "0"),
    ("stale-refresh-time", "0"),
    ("zone-statistics", "no"),
];

/// Why an address that messages are sent from is left out.
pub const SOURCE: &str = "messages leave from the address that the system chooses";

/// Effect, reason, and the statements that it is for.
type Group = (Effect, &'static str, &'static [&'static str]);

/// All that is known not to be carried over.
#[rustfmt::skip] // a list of words, filled like text
const GROUPS: &[Group] = &[
    (Needless, "Zonda writes no such file", &[
        "dump-file", "key-directory", "lock-file", "managed-keys-directory", "memstatistics-file",
        "new-zones-directory", "pid-file", "recursing-file", "secroots-file", "session-keyalg",
        "session-keyfile", "session-keyname", "statistics-file",
    ]),
    (Needless, "commands reach the server on the Unix socket admin.socket", &["controls"]),
    (Needless, "a matter of resolving, which Zonda does not do", &[
        "auth-nxdomain", "fetch-quota-params", "fetches-per-zone",
        "lame-ttl", "max-query-count", "max-query-restarts", "max-recursion-depth",
        "max-recursion-queries", "qname-minimization", "resolver-nonbackoff-tries",
        "resolver-retry-interval", "root-delegation-only", "root-key-sentinel",
        "trust-anchor-telemetry",
    ]),
    (Needless, "replies have only what clients need", &[
        "glue-cache", "message-compression", "minimal-any", "minimal-responses", "preferred-glue",
    ]),
    (Needless, "Zonda finds its own measure for threads, memory and files", &[
        "attach-cache", "automatic-interface-scan", "clients-per-query", "coresize", "datasize",
        "files", "interface-interval", "memstatistics",
        "reserved-sockets", "reuseport", "stacksize", "stale-cache-enable", "tcp-listen-queue",
        "tcp-receive-buffer", "tcp-send-buffer", "udp-receive-buffer", "udp-send-buffer",
        "zone-statistics",
    ]),
    (Needless, "`zonda check` finds mistakes in zones", &[
        "check-dup-records", "check-integrity", "check-mx", "check-mx-cname", "check-names",
        "check-sibling", "check-spf", "check-srv-cname", "check-svcb", "check-wildcard",
    ]),
    (Needless, "a zone of this type is not transferred", &[
        "allow-notify", "allow-transfer", "also-notify", "masters", "max-refresh-time",
        "max-retry-time", "min-refresh-time", "min-retry-time", "notify", "primaries",
        "remote-servers",
    ]),
    (Needless, "a zone of this type is not changed by messages", &[
        "allow-update", "update-policy",
    ]),
    (Needless, "Zonda finds its own measure for transfers", &[
        "ixfr-from-differences", "multi-master", "notify-delay", "notify-rate", "provide-ixfr",
        "request-expire", "request-ixfr", "serial-query-rate", "startup-notify-rate",
        "transfer-format", "transfer-message-size", "transfers-in", "transfers-per-ns",
        "try-tcp-refresh",
    ]),
    (Differs, "`history` in [[zone]] bounds what is kept for IXFR", &[
        "journal", "max-ixfr-ratio", "max-journal-size",
    ]),
    (Differs, "[transfers], and [zone.secondary], have such limits", &[
        "max-transfer-idle-in", "max-transfer-idle-out", "max-transfer-time-in",
        "max-transfer-time-out", "transfers-out",
    ]),
    (Differs, SOURCE, &[
        "notify-source", "notify-source-v6", "transfer-source", "transfer-source-v6",
    ]),
    (Differs, "servers are notified that `also-notify` lists", &["notify-to-soa"]),
    (Needless, "there is no signing that it could be for", &[
        "checkds", "dnskey-sig-validity", "dnssec-dnskey-kskonly", "dnssec-loadkeys-interval",
        "dnssec-secure-to-insecure", "dnssec-update-mode", "serial-update-method",
        "sig-signing-nodes", "sig-signing-signatures", "sig-signing-type",
        "sig-validity-interval", "parental-agents", "parental-source", "parental-source-v6",
        "update-check-ksk", "update-quota",
    ]),
    (Needless, "clients are answered over UDP and TCP only", &[
        "http", "http-listener-clients", "http-port", "http-streams-per-connection", "https-port",
        "tls-port",
    ]),
    (Differs, "answers are not validated, and AD is not set", &[
        "bindkeys-file", "disable-algorithms", "disable-ds-digests", "dnssec-accept-expired",
        "dnssec-must-be-secure", "dnssec-validation", "managed-keys", "max-validations-per-fetch",
        "max-validation-failures-per-fetch", "nta-lifetime", "nta-recheck", "synth-from-dnssec",
        "trust-anchors", "trusted-keys", "validate-except",
    ]),
    (Differs, "after a failure, servers are asked again after a second, then ever later", &[
        "stale-refresh-time",
    ]),
    (Differs, "queries leave from random ports of the address that the system chooses", &[
        "avoid-v4-udp-ports", "avoid-v6-udp-ports", "query-source", "query-source-v6",
        "use-v4-udp-ports", "use-v6-udp-ports",
    ]),
    (Differs, "`outstanding-max` in [zone.forward] is such a limit", &[
        "fetches-per-server",
    ]),
    (Differs, "[tcp] has other limits of time", &[
        "tcp-advertised-timeout", "tcp-initial-timeout", "tcp-keepalive-timeout",
    ]),
    (Lost, "no rights to changes come from this", &[
        "allow-new-zones", "allow-update-forwarding", "tkey-domain", "tkey-gssapi-credential",
        "tkey-gssapi-keytab",
    ]),
    (Lost, "sign elsewhere, and serve the signed file", &[
        "auto-dnssec", "dnssec-policy", "inline-signing",
    ]),
    (Lost, "answers are not rewritten or held back", &[
        "deny-answer-aliases", "dns64", "dns64-contact", "dns64-server",
        "filter-aaaa", "filter-aaaa-on-v4", "filter-aaaa-on-v6", "nxdomain-redirect", "plugin",
        "response-policy", "sortlist",
    ]),
    (Lost, "write a [[catalog]] for each, as docs/replication.md shows", &["catalog-zones"]),
    (Lost, "zones come from files", &["database", "dlz", "dyndb"]),
    (Lost, "who is answered does not depend on the address that was asked", &[
        "allow-query-cache-on", "allow-query-on", "allow-recursion-on",
    ]),
    (Lost, "all servers are asked alike", &[
        "request-nsid", "require-server-cookie", "send-cookie", "server",
    ]),
    (Lost, "such records are like all others", &[
        "max-records", "max-records-per-type", "max-types-per-name", "max-zone-ttl",
    ]),
    (Lost, "there is no such log", &[
        "dnstap", "dnstap-identity", "dnstap-output", "dnstap-version", "responselog",
    ]),
];

/// Returns why a statement is not carried over.
pub fn explain(statement: &Statement) -> ReportLine {
    let keyword = statement.keyword();
    let is_it = |known: &str| known.eq_ignore_ascii_case(keyword);
    if ALWAYS_SO.iter().any(|(known, value)| is_it(known) && statement.says(value)) {
        return because(statement, Needless, "it is always so");
    }
    match GROUPS.iter().find(|(_, _, all)| all.iter().any(|known| is_it(known))) {
        Some((effect, why, _)) => because(statement, *effect, why),
        None => because(statement, Lost, "there is no counterpart that this import knows"),
    }
}

/// Returns a statement that stays behind for a reason.
pub fn because(statement: &Statement, effect: Effect, why: &str) -> ReportLine {
    let place = statement.place().clone();
    ReportLine { place, effect, what: statement.summary(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_statement_is_explained_twice() {
        let mut seen = HashSet::new();
        for keyword in GROUPS.iter().flat_map(|(_, _, all)| *all) {
            assert!(seen.insert(keyword), "{keyword}");
        }
    }
}
