//! The administrative interface: never open to other machines without a token.

use super::open;
use crate::error::{Contradiction, Origin, Problem};
use crate::keys::AdminKeys;
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::socket::default_socket;
use crate::value::{Toggle, Token, Value};
use crate::{Admin, Listener, PageOrigins};
use std::path::{Path, PathBuf};

/// Reads `[admin]`, and the files that hold its tokens; its socket is named after the first
/// listener, if there is one.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    listeners: &[(Listener, Origin)],
) -> Option<(Admin, Vec<PathBuf>)> {
    let mut reader = open::<AdminKeys>(layers, session);
    let keys = AdminKeys::read(&mut reader)?;
    let (key, read_key) = (("token", "token-file"), ("read-token", "read-token-file"));
    let (file, read_file) = (keys.token_file, keys.read_token_file);
    let powerdns_file = keys.powerdns_api_key_file;
    let token = either(&mut reader, key, keys.token, file.as_deref())?;
    let read_token = either(&mut reader, read_key, keys.read_token, read_file.as_deref())?;
    let powerdns_key = ("powerdns-api-key", "powerdns-api-key-file");
    let powerdns_api_key =
        either(&mut reader, powerdns_key, keys.powerdns_api_key, powerdns_file.as_deref())?;
    let socket = match keys.socket {
        Some(Toggle(socket)) => socket,
        None => {
            let first = listeners.first().map(|(listener, _)| listener.address);
            let socket = default_socket(layers.environment, first);
            reader.derive("socket", socket.as_deref());
            socket
        }
    };
    let page_origins = PageOrigins {
        health: reader.origin_of("health"),
        ready: reader.origin_of("ready"),
        metrics: reader.origin_of("metrics"),
    };
    let (Toggle(address), Toggle(bind_statistics)) = (keys.address, keys.bind_statistics);
    let admin = Admin {
        address,
        health: keys.health,
        ready: keys.ready,
        metrics: keys.metrics,
        page_origins,
        lameduck: keys.lameduck,
        token,
        read_token,
        powerdns_api_key,
        is_metrics_only: false,
        socket,
        zones: keys.zones,
        bind_statistics,
        bind_statistics_clients: keys.bind_statistics_clients,
    };
    if let Some(address) = admin.address_without_token() {
        reader.contradict(Some("address"), Contradiction::NoToken(address));
    }
    Some((admin, [file, read_file, powerdns_file].into_iter().flatten().collect()))
}

/// Returns the token of a key, or of the file that another key names; outer `None` when it cannot
/// be read.
fn either(
    reader: &mut Reader<'_, '_>,
    (key, file_key): (&'static str, &'static str),
    token: Option<Token>,
    file: Option<&Path>,
) -> Option<Option<Token>> {
    match (token, file) {
        (Some(_), Some(_)) => {
            reader.contradict(Some(file_key), Contradiction::TokenTwice(key));
            Some(None)
        }
        (None, Some(path)) => token_from(reader, file_key, path).map(Some),
        (token, None) => Some(token),
    }
}

/// Returns the token in the first line of a file, which `key` names.
fn token_from(reader: &mut Reader<'_, '_>, key: &'static str, path: &Path) -> Option<Token> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            reader.fail(Some(key), Problem::Unreadable(path.to_owned(), error));
            return None;
        }
    };
    let token = Token::from_text(text.lines().next().unwrap_or_default());
    if token.is_none() {
        let problem = Problem::Value {
            key: format!("the first line of {}", path.display()),
            found: "the value given".to_owned(),
            form: Token::form(),
        };
        reader.fail(Some(key), problem);
    }
    token
}
