//! Zones whose answers come from upstreams.

use crate::Forward;
use crate::OptionData;
use crate::error::{Contradiction, LocalMistake, Problem};
use crate::keys::ForwardKeys;
use crate::mistake::Mistake;
use crate::reader::Reader;
use crate::resolve::bounds;
use crate::section::Keys;
use crate::server_file::{append_servers, present_stamp};
use crate::value::ServerAddress;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use zonda_client::{Tls, Trust, Url};
use zonda_upstream::pool::UPSTREAMS_MAX;
use zonda_upstream::{Host, Upstream};
use zonda_wire::{Name, name};

/// EDNS options of a query to an upstream.
const OPTIONS_MAX: usize = 8;

/// Reads how a zone is forwarded by a server that listens on these addresses.
pub fn read(
    reader: &mut Reader<'_, '_>,
    zone: Option<&Name>,
    listens_on: &[SocketAddr],
) -> Option<Forward> {
    let mut keys = ForwardKeys::read(reader)?;
    let (own_servers, files_stamp) = (keys.to.len(), present_stamp(&keys));
    if let Err(error) = append_servers(&mut keys, listens_on) {
        let key = if reader.is_set("resolv-conf") { "resolv-conf" } else { "to" };
        reader.contradict(Some(key), Contradiction::Servers(Mistake::File(error)));
        return None;
    }
    if keys.resolv_conf_tcp && keys.resolv_conf.is_empty() {
        let needs = Contradiction::Needs("resolv-conf-tcp", "resolv-conf");
        reader.contradict(Some("resolv-conf-tcp"), needs);
    }
    if let Some(zone) = zone {
        refuse_outside(reader, zone, &keys.except);
    }
    if keys.to.is_empty() {
        reader.contradict(None, Contradiction::Servers(Mistake::NoServers));
    }
    refuse_self(listens_on, reader, &keys.to);
    refuse_twice(reader, &keys.to);
    bounds::forward(reader, &keys);
    if keys.to.len() > UPSTREAMS_MAX {
        reader.contradict(Some("to"), Contradiction::Servers(Mistake::Many(keys.to.len())));
    }
    if keys.options.len() > OPTIONS_MAX {
        let many = Mistake::ManyOptions(keys.options.len(), OPTIONS_MAX);
        reader.contradict(Some("options"), Contradiction::Servers(many));
    }
    let subnets = keys.options.iter().filter(|it| matches!(it.data, OptionData::ClientSubnet(..)));
    if subnets.count() > 1 {
        reader.contradict(Some("options"), Contradiction::Servers(Mistake::TwoSubnets));
    }
    let of_clients = keys.options.iter().filter(|option| option.is_conditional);
    let is_any = of_clients.clone().next().is_some();
    let codes = reader.note_option_codes(of_clients.map(|option| option.code));
    if is_any && codes > OPTIONS_MAX {
        let many = Mistake::ManyCodes(codes, OPTIONS_MAX);
        reader.contradict(Some("options"), Contradiction::Servers(many));
    }
    check_bootstrap(listens_on, reader, &keys);
    let trust = trust(reader, &keys)?;
    Some(Forward { keys, trust, own_servers, files_stamp })
}

/// Returns which certificates are trusted; none after a mistake, which is then reported.
fn trust(reader: &mut Reader<'_, '_>, keys: &ForwardKeys) -> Option<Trust> {
    let trust = match (&keys.ca_file, &keys.pins[..]) {
        (None, []) => Trust::PublicRoots,
        (None, pins) => Trust::Pins(pins.iter().map(|pin| pin.0).collect()),
        (Some(path), []) => roots(reader, path)?,
        (Some(_), _) => {
            reader.contradict(Some("pins"), Contradiction::Servers(Mistake::TrustTwice));
            return None;
        }
    };
    let mut encrypted = keys.to.iter().filter(|to| to.transport.is_encrypted()).peekable();
    if encrypted.peek().is_none() && trust != Trust::PublicRoots {
        let key = if keys.ca_file.is_some() { "ca-file" } else { "pins" };
        reader.contradict(Some(key), Contradiction::Servers(Mistake::NothingEncrypted(key)));
    }
    if encrypted.peek().is_none() && keys.trust_ad {
        let mistake = Mistake::NothingEncrypted("trust-ad");
        reader.contradict(Some("trust-ad"), Contradiction::Servers(mistake));
    }
    for upstream in encrypted {
        let subject = upstream.certificate_subject();
        let mistake = if cfg!(not(feature = "encrypted")) {
            Mistake::NotBuilt
        } else if Tls::new(&subject, &trust).is_err() {
            Mistake::NoCertificateName(subject)
        } else if Url::new(&subject, upstream.port, &upstream.path).is_none() {
            Mistake::NoUrl(upstream.path.clone())
        } else {
            continue;
        };
        reader.contradict(Some("to"), Contradiction::Servers(mistake));
    }
    Some(trust)
}

/// Returns the certificates in a file, as roots.
fn roots(reader: &mut Reader<'_, '_>, path: &Path) -> Option<Trust> {
    let pem = match std::fs::read(path) {
        Ok(pem) => pem,
        Err(error) => {
            reader.fail(Some("ca-file"), Problem::Unreadable(path.to_owned(), error));
            return None;
        }
    };
    match Trust::in_pem(&pem) {
        Ok(trust) => Some(trust),
        Err(error) => {
            let mistake = Mistake::Certificates(path.to_owned(), error);
            reader.contradict(Some("ca-file"), Contradiction::Servers(mistake));
            None
        }
    }
}

/// Reports names that are excepted from a zone although they are not below its apex.
fn refuse_outside(reader: &mut Reader<'_, '_>, zone: &Name, except: &[Name]) {
    let apex = zone.as_wire();
    for name in except {
        let wire = name.as_wire();
        if wire.len() == apex.len() || !name::is_at_or_below(wire, apex) {
            let outside =
                Contradiction::Local(LocalMistake::ExceptOutside(name.clone(), zone.clone()));
            reader.contradict(Some("except"), outside);
        }
    }
}

/// Reports an upstream that is given a second time, perhaps in other words: it would be asked as if
/// there were two, and counted twice under one name.
fn refuse_twice(reader: &mut Reader<'_, '_>, upstreams: &[Upstream]) {
    let mut seen = HashSet::new();
    for upstream in upstreams {
        let host = match &upstream.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.to_lowercase().to_string(),
        };
        let Upstream { transport, port, path, .. } = upstream;
        let subject = upstream.certificate_subject().to_ascii_lowercase();
        if !seen.insert((transport, host, port, path, subject)) {
            let mistake = Mistake::Twice(upstream.clone());
            reader.contradict(Some("to"), Contradiction::Servers(mistake));
        }
    }
}

/// Reports servers whose addresses cannot be looked up, or only by this server itself.
fn check_bootstrap(listens_on: &[SocketAddr], reader: &mut Reader<'_, '_>, keys: &ForwardKeys) {
    let names = keys.to.iter().filter_map(|to| match &to.host {
        Host::Name(name) => Some(name),
        Host::Address(_) => None,
    });
    let names: Vec<&Name> = names.collect();
    if let ([name, ..], true) = (&names[..], keys.bootstrap.is_empty()) {
        reader
            .contradict(Some("to"), Contradiction::Servers(Mistake::NoBootstrap((*name).clone())));
    }
    if names.is_empty() && !keys.bootstrap.is_empty() {
        reader.contradict(Some("bootstrap"), Contradiction::Servers(Mistake::BootstrapForNothing));
    }
    for ServerAddress(server) in &keys.bootstrap {
        if is_own_listener(listens_on, *server) {
            reader.contradict(
                Some("bootstrap"),
                Contradiction::Servers(Mistake::BootstrapIsSelf(*server)),
            );
        }
    }
}

/// Reports an upstream that is this very server.
fn refuse_self(listens_on: &[SocketAddr], reader: &mut Reader<'_, '_>, upstreams: &[Upstream]) {
    let is_own_listener = |upstream: &&Upstream| match upstream.host {
        Host::Address(address) => {
            is_own_listener(listens_on, SocketAddr::new(address, upstream.port))
        }
        Host::Name(_) => false,
    };
    if let Some(own) = upstreams.iter().find(is_own_listener) {
        let mistake = LocalMistake::ForwardToSelf(own.clone());
        reader.contradict(Some("to"), Contradiction::Local(mistake));
    }
}

/// Whether an address is this very server's. Which addresses a wildcard stands for is known for
/// loopback only; the rest is found when questions come back.
pub(crate) fn is_own_listener(listens_on: &[SocketAddr], server: SocketAddr) -> bool {
    let is_local = server.ip().is_loopback() || server.ip().is_unspecified();
    listens_on.iter().any(|own| {
        own.port() == server.port()
            && (own.ip() == server.ip() || own.ip().is_unspecified() && is_local)
    })
}
