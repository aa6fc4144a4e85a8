//! How the members of a pool are checked.

use crate::PoolCheck;
use crate::error::{Contradiction, DerivedMistake, Origin, PoolMistake};
use crate::keys::CheckKeys;
use crate::pool_value::StartState;
use crate::reader::Reader;
use crate::section::Keys;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use zonda_health::{
    Check, CheckError, CommandCheck, DnsCheck, FileCheck, Formula, GrpcCheck, HttpCheck,
    HttpVersion, Identity, Kind, PushCheck, Roots, Start, TcpExchange, Thresholds, TlsError,
    TlsSettings, Trust, UdpExchange,
};
use zonda_wire::{Name, Type};

/// The keys of kinds, of which there must be one.
const KINDS: [&str; 12] = [
    "tcp",
    "tls",
    "http",
    "https",
    "grpc",
    "icmp",
    "dns",
    "udp",
    "program",
    "file",
    "pushed",
    "calculated",
];
/// Keys that all kinds of probes have.
const OF_PROBES: [&str; 7] =
    ["source", "probe-address", "interval", "timeout", "rise", "fall", "start"];
/// Keys that some kinds have.
const MODIFIERS: [&str; 19] = [
    "port",
    "host",
    "method",
    "headers",
    "status",
    "contains",
    "http2",
    "service",
    "send",
    "expect",
    "over-tls",
    "rcodes",
    "answer",
    "recursion",
    "ca-file",
    "verify",
    "certificate-days",
    "client-certificate",
    "client-key",
];
/// Keys that an HTTP request has.
const HTTP: &[&str] = &["port", "host", "method", "headers", "status", "contains", "http2"];
/// Keys that TLS has.
const TLS: &[&str] =
    &["host", "ca-file", "verify", "certificate-days", "client-certificate", "client-key"];

/// A check as it is written.
pub(super) enum WrittenCheck {
    /// Members are probed.
    Probe(PoolCheck),
    /// The states of members are calculated by a formula.
    Calculated(Formula<String>, Origin),
}

/// Reads the check of a pool; none after a mistake, which is then reported.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Option<WrittenCheck> {
    let keys = CheckKeys::read(reader)?;
    let given: Vec<&'static str> = KINDS.into_iter().filter(|key| is_given(&keys, key)).collect();
    let &[kind] = &given[..] else {
        reader.contradict(None, Contradiction::Pool(PoolMistake::CheckKind));
        return None;
    };
    refuse(reader, &keys, kind);
    if let Some(text) = &keys.calculated {
        let formula = Formula::parse(text).map_err(|error| {
            let mistake = PoolMistake::from(DerivedMistake::Formula(error));
            reader.contradict(Some("calculated"), Contradiction::Pool(mistake));
        });
        return Some(WrittenCheck::Calculated(formula.ok()?, reader.origin_of("calculated")));
    }
    let (kind, port) = kind_of(reader, &keys, kind)?;
    let (source_v4, source_v6) = sources(reader, &keys);
    let start = match keys.start {
        StartState::Up => Start::Up,
        StartState::Down => Start::Down,
    };
    let (rise, fall) = (keys.rise, keys.fall);
    let thresholds = Thresholds { rise, fall, start, ..Thresholds::default() };
    let check = Arc::new(Check { kind, source_v4, source_v6 });
    let (interval, timeout) = (keys.interval, keys.timeout);
    let address = keys.probe_address;
    let check = PoolCheck { check, port, address, interval, timeout, thresholds };
    Some(WrittenCheck::Probe(check))
}

/// Whether a kind is given by its key.
fn is_given(keys: &CheckKeys, key: &str) -> bool {
    match key {
        "tcp" => keys.tcp.is_some(),
        "tls" => keys.tls.is_some(),
        "http" => keys.http.is_some(),
        "https" => keys.https.is_some(),
        "grpc" => keys.grpc.is_some(),
        "icmp" => keys.icmp,
        "dns" => keys.dns.is_some(),
        "udp" => keys.udp.is_some(),
        "program" => !keys.program.is_empty(),
        "file" => keys.file.is_some(),
        "pushed" => keys.pushed,
        _ => keys.calculated.is_some(),
    }
}

/// Reports keys that a kind of check does not have.
fn refuse(reader: &mut Reader<'_, '_>, keys: &CheckKeys, kind: &'static str) {
    let over_tls = if keys.over_tls { TLS } else { &[] };
    let allowed: Vec<&str> = match kind {
        "tcp" => [&["send", "expect", "over-tls"], over_tls].concat(),
        "tls" => TLS.to_vec(),
        "http" => HTTP.to_vec(),
        "https" => [HTTP, TLS].concat(),
        "grpc" => [&["service", "host", "over-tls"], over_tls].concat(),
        "dns" => vec!["port", "rcodes", "answer", "recursion"],
        "udp" => vec!["send", "expect"],
        "program" => vec!["port"],
        _ => Vec::new(),
    };
    let of_probes = OF_PROBES.into_iter().filter(|_| kind == "calculated");
    let known = MODIFIERS.into_iter().chain(of_probes);
    let wrong = known.filter(|key| reader.is_set(key) && !allowed.contains(key));
    for key in wrong.collect::<Vec<_>>() {
        let mistake = PoolMistake::NotOfCheck(key, kind);
        reader.contradict(Some(key), Contradiction::Pool(mistake));
    }
}

/// What a probe does, and the port that it goes to; none after a mistake.
fn kind_of(
    reader: &mut Reader<'_, '_>,
    keys: &CheckKeys,
    kind: &'static str,
) -> Option<(Kind, u16)> {
    let mut on_port = |port: u16| {
        if port == 0 {
            reader.contradict(None, Contradiction::Pool(PoolMistake::PortZero));
        }
        port
    };
    Some(match kind {
        "tcp" => {
            let port = on_port(keys.tcp?);
            (tcp(reader, keys)?, port)
        }
        "tls" => {
            let port = on_port(keys.tls?);
            (Kind::Tls(tls(reader, keys)?), port)
        }
        "http" => {
            let port = on_port(keys.port.unwrap_or(80));
            (Kind::Http(http(reader, keys, "http", keys.http.as_ref()?)?), port)
        }
        "https" => {
            let port = on_port(keys.port.unwrap_or(443));
            let check = http(reader, keys, "https", keys.https.as_ref()?)?;
            (Kind::Http(check.with_tls(tls(reader, keys)?)), port)
        }
        "grpc" => {
            let port = on_port(keys.grpc?);
            (grpc(reader, keys)?, port)
        }
        "icmp" => (Kind::Icmp, 0),
        "dns" => {
            let port = on_port(keys.port.unwrap_or(53));
            (dns(reader, keys)?, port)
        }
        "udp" => {
            let port = on_port(keys.udp?);
            let [send, expect] = [&keys.send, &keys.expect].map(|it| it.as_deref().unwrap_or(""));
            let exchange = UdpExchange::new(send.as_bytes(), expect.as_bytes());
            (Kind::UdpExchange(step(reader, "expect", exchange)?), port)
        }
        "program" => {
            let words: Vec<&str> = keys.program.iter().map(String::as_str).collect();
            let command = step(reader, "program", CommandCheck::new(&words))?;
            (Kind::Command(command), keys.port.unwrap_or(0))
        }
        "file" => (Kind::File(FileCheck { path: keys.file.clone()? }), 0),
        _ => (Kind::Push(PushCheck { name: "".into() }), 0), // the pool's, when it is known
    })
}

/// The addresses that probes come from.
fn sources(
    reader: &mut Reader<'_, '_>,
    keys: &CheckKeys,
) -> (Option<std::net::Ipv4Addr>, Option<std::net::Ipv6Addr>) {
    let (mut v4, mut v6) = (None, None);
    for source in &keys.source {
        let is_second = match source {
            IpAddr::V4(address) => v4.replace(*address).is_some(),
            IpAddr::V6(address) => v6.replace(*address).is_some(),
        };
        if is_second {
            reader.contradict(Some("source"), Contradiction::Pool(PoolMistake::Sources));
        }
    }
    (v4, v6)
}

/// A check by TCP; none after a mistake.
fn tcp(reader: &mut Reader<'_, '_>, keys: &CheckKeys) -> Option<Kind> {
    let (send, expect) = (keys.send.as_deref(), keys.expect.as_deref());
    if send.is_none() && expect.is_none() && !keys.over_tls {
        return Some(Kind::Tcp);
    }
    let [send, expect] = [send, expect].map(|text| text.unwrap_or("").as_bytes());
    let exchange = step(reader, "expect", TcpExchange::new(send, expect))?;
    Some(Kind::TcpExchange(match keys.over_tls {
        true => exchange.with_tls(tls(reader, keys)?),
        false => exchange,
    }))
}

/// A check by gRPC; none after a mistake.
fn grpc(reader: &mut Reader<'_, '_>, keys: &CheckKeys) -> Option<Kind> {
    let service = keys.service.as_deref().unwrap_or("");
    let mut check = step(reader, "service", GrpcCheck::new(service))?;
    if let Some(host) = &keys.host {
        check = step(reader, "host", check.with_host(host))?;
    }
    Some(Kind::Grpc(match keys.over_tls {
        true => check.with_tls(tls(reader, keys)?),
        false => check,
    }))
}

/// A check by DNS; none after a mistake.
fn dns(reader: &mut Reader<'_, '_>, keys: &CheckKeys) -> Option<Kind> {
    let text = keys.dns.as_deref()?;
    let question = text.split_once(char::is_whitespace).and_then(|(name, rtype)| {
        let name = Name::parse(name.as_bytes(), &[0]).ok()?;
        Some((name, rtype.trim().to_ascii_uppercase().parse::<Type>().ok()?))
    });
    let Some((name, qtype)) = question else {
        reader.contradict(Some("dns"), Contradiction::Pool(PoolMistake::Question));
        return None;
    };
    let rcodes = keys.rcodes.iter().map(|rcode| rcode.0).collect();
    let (address, recursion_desired) = (keys.answer, keys.recursion);
    Some(Kind::Dns(DnsCheck { rcodes, address, recursion_desired, ..DnsCheck::new(name, qtype) }))
}

/// The request of a check by HTTP; none after a mistake.
fn http(
    reader: &mut Reader<'_, '_>,
    keys: &CheckKeys,
    path_key: &'static str,
    path: &str,
) -> Option<HttpCheck> {
    let mut check = step(reader, path_key, HttpCheck::new(path))?;
    if keys.http2 {
        check = check.with_version(HttpVersion::Http2);
    }
    if let Some(host) = &keys.host {
        check = step(reader, "host", check.with_host(host))?;
    }
    check = step(reader, "method", check.with_method(&keys.method))?;
    for header in &keys.headers {
        let (name, value) = header.split_once(':').unwrap_or((header, ""));
        check = step(reader, "headers", check.with_header(name.trim(), value.trim()))?;
    }
    let statuses: Vec<_> = keys.status.iter().map(|range| range.0.clone()).collect();
    check = step(reader, "status", check.with_statuses(&statuses))?;
    match &keys.contains {
        Some(text) => step(reader, "contains", check.with_text(text)),
        None => Some(check),
    }
}

/// The result of a step; none after a mistake in a key, which is then reported.
fn step<T>(
    reader: &mut Reader<'_, '_>,
    key: &'static str,
    result: Result<T, CheckError>,
) -> Option<T> {
    let report = |error| {
        reader.contradict(Some(key), Contradiction::Pool(PoolMistake::Check(error)));
    };
    result.map_err(report).ok()
}

/// The settings of TLS; none after a mistake.
fn tls(reader: &mut Reader<'_, '_>, keys: &CheckKeys) -> Option<TlsSettings> {
    let trust = match (&keys.ca_file, keys.verify) {
        (None, true) => Trust::PublicRoots,
        (None, false) => Trust::Any,
        (Some(_), false) => {
            reader.contradict(Some("verify"), Contradiction::Pool(PoolMistake::TrustTwice));
            return None;
        }
        (Some(path), true) => {
            let roots = read_pem(path).and_then(|pem| words(Roots::in_pem(&pem)));
            Trust::Roots(of_file(reader, "ca-file", path, roots)?)
        }
    };
    let mut settings = TlsSettings::new(trust).with_days_min(keys.certificate_days);
    if keys.https.is_none()
        && keys.grpc.is_none()
        && let Some(host) = &keys.host
    {
        let named = words(settings.clone().with_name(host));
        settings = of_file(reader, "host", Path::new(host), named)?;
    }
    match (&keys.client_certificate, &keys.client_key) {
        (None, None) => Some(settings),
        (Some(certificate), Some(key)) => {
            let identity = read_pem(certificate)
                .and_then(|certificates| words(Identity::in_pem(&certificates, &read_pem(key)?)));
            let identity = of_file(reader, "client-certificate", certificate, identity)?;
            Some(settings.with_identity(identity))
        }
        _ => {
            reader.contradict(None, Contradiction::Pool(PoolMistake::HalfIdentity));
            None
        }
    }
}

/// The octets of a PEM file; in words why there are none otherwise.
fn read_pem(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A result whose error is in words.
fn words<T>(result: Result<T, TlsError>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// What was read of a file; none after a mistake, which is then reported.
fn of_file<T>(
    reader: &mut Reader<'_, '_>,
    key: &'static str,
    path: &Path,
    result: Result<T, String>,
) -> Option<T> {
    let report = |error| {
        let mistake = PoolMistake::Certificates(path.to_owned(), error);
        reader.contradict(Some(key), Contradiction::Pool(mistake));
    };
    result.map_err(report).ok()
}
