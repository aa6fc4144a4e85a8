//! The administrative interface: never open to others without a token.

use super::open;
use crate::Admin;
use crate::error::{Contradiction, Problem};
use crate::keys::AdminKeys;
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::socket::default_socket;
use crate::value::{Toggle, Token, Value};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Reads `[admin]`, and where its token lies if that is a file; its socket is named after the first
/// listener, which is on `first`, if there is one.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    first: Option<SocketAddr>,
) -> Option<(Admin, Option<PathBuf>)> {
    let mut reader = open::<AdminKeys>(layers, session);
    let keys = AdminKeys::read(&mut reader)?;
    let token = match (keys.token, &keys.token_file) {
        (Some(_), Some(_)) => {
            reader.contradict(Some("token-file"), Contradiction::TokenTwice);
            None
        }
        (None, Some(path)) => Some(token_from(&mut reader, path)?),
        (token, None) => token,
    };
    let socket = match keys.socket {
        Some(Toggle(socket)) => socket,
        None => {
            let socket = default_socket(layers.environment, first);
            reader.derive("socket", socket.as_deref());
            socket
        }
    };
    let (Toggle(address), Toggle(bind_statistics)) = (keys.address, keys.bind_statistics);
    let admin = Admin {
        address,
        token,
        is_metrics_only: false,
        socket,
        bind_statistics,
        bind_statistics_clients: keys.bind_statistics_clients,
    };
    if let Some(address) = admin.address_without_token() {
        reader.contradict(Some("address"), Contradiction::NoToken(address));
    }
    Some((admin, keys.token_file))
}

/// The token in the first line of a file.
fn token_from(reader: &mut Reader<'_, '_>, path: &Path) -> Option<Token> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            reader.fail(Some("token-file"), Problem::Unreadable(path.to_owned(), error));
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
        reader.fail(Some("token-file"), problem);
    }
    token
}
