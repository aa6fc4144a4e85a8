//! Keys of signed messages, and the clients that zones are transferred to.

use super::{bounds, is_own_listener};
use crate::TsigKey;
use crate::access::{Access, Network, TransferTerms};
use crate::error::{Contradiction, Origin, Problem, TransferMistake};
use crate::keys::{SecondaryKeys, TransferKeys, TsigKeys};
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::transfer_value::{
    AliasTransfer, HistoryLimits, KeySecret, RemoteServer, TransferClient,
};
use crate::unknown::nearest;
use crate::value::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_wire::Name;

/// The keys of a configuration.
#[derive(Default)]
pub(super) struct KeyList {
    /// The keys that are sound.
    pub keys: Vec<TsigKey>,
    /// The name of each key, in lower case, and where it was given; also of keys that are not
    /// sound.
    names: Vec<(Name, Origin)>,
    /// The files that hold secrets.
    pub files: Vec<PathBuf>,
}

impl KeyList {
    /// Reads all keys, and the files that hold their secrets.
    pub fn read<'a>(layers: &Layers<'a>, session: &mut Session<'a>) -> Self {
        let (section, mut list) = (&TsigKeys::SECTION, Self::default());
        for (table, origin) in layers.tables(section) {
            list.add(&mut Reader::new(session, section, Some(table), Vec::new(), origin));
        }
        list
    }

    /// Reads one key.
    fn add(&mut self, reader: &mut Reader<'_, '_>) {
        let Some(keys) = TsigKeys::read(reader) else { return };
        let name = keys.name.to_lowercase();
        if let Some((_, first)) = self.names.iter().find(|(other, _)| *other == name) {
            let twice = TransferMistake::KeyTwice(name, first.clone());
            return reader.contradict(Some("name"), Contradiction::Transfer(twice));
        }
        self.names.push((name.clone(), reader.origin_of("name")));
        let secret = match (keys.secret, keys.secret_file) {
            (Some(_), Some(_)) => {
                let twice = Contradiction::Excludes("secret", "secret-file");
                return reader.contradict(Some("secret-file"), twice);
            }
            (Some(secret), None) => Some(secret),
            (None, Some(path)) => {
                let secret = secret_from(reader, &path);
                self.files.push(path);
                secret
            }
            (None, None) => {
                let mistake = Contradiction::Transfer(TransferMistake::NoSecret);
                return reader.contradict(None, mistake);
            }
        };
        let algorithm = keys.algorithm.0;
        self.keys.extend(secret.map(|secret| TsigKey { name, algorithm, secret }));
    }

    /// Adds to the access list of a zone, if it has one, the terms of its transfers, as a section
    /// says, what is kept for them, and how ALIAS records are transferred.
    pub fn with_transfers(
        &self,
        reader: &mut Reader<'_, '_>,
        (history, aliases): (HistoryLimits, AliasTransfer),
        access: Option<Arc<Access>>,
    ) -> Option<Arc<Access>> {
        let Some(keys) = TransferKeys::read(reader) else { return access };
        if keys.to.is_empty() {
            let mistake = Contradiction::Transfer(TransferMistake::ToNoClient);
            reader.contradict(None, mistake);
        }
        keys.to.iter().for_each(|it| self.check(reader, "to", it.key.as_ref()));
        keys.notify.iter().for_each(|it| self.check(reader, "notify", it.key.as_ref()));
        let access = access.map_or_else(Access::open, |access| (*access).clone());
        let transfers = TransferTerms {
            to: keys.to,
            notify: keys.notify,
            history,
            aliases,
            ..access.transfers
        };
        Some(Arc::new(Access { transfers, ..access }))
    }

    /// Reads how a zone is transferred from its primaries; this server listens on `listens_on`.
    pub fn secondary(
        &self,
        reader: &mut Reader<'_, '_>,
        listens_on: &[SocketAddr],
    ) -> Option<SecondaryKeys> {
        let keys = SecondaryKeys::read(reader)?;
        let transfer = |mistake| Contradiction::Transfer(mistake);
        if keys.from.is_empty() {
            reader.contradict(None, transfer(TransferMistake::FromNoPrimary));
        }
        for (place, primary) in keys.from.iter().enumerate() {
            let address = primary.address;
            if keys.from[..place].iter().any(|other| other.address == address) {
                reader.contradict(Some("from"), transfer(TransferMistake::PrimaryTwice(address)));
            }
            if is_own_listener(listens_on, address) {
                reader.contradict(Some("from"), transfer(TransferMistake::OwnAddress(address)));
            }
            self.check(reader, "from", primary.key.as_ref());
        }
        let clients = keys.notify_from.iter();
        clients.for_each(|it| self.check(reader, "notify-from", it.key.as_ref()));
        let clients = keys.update_from.iter();
        clients.for_each(|it| self.check(reader, "update-from", it.key.as_ref()));
        bounds::secondary(reader, &keys);
        Some(keys)
    }

    /// Adds to the access list of a zone, if it has one, the clients that may send NOTIFY for it:
    /// its primaries, and those that are allowed besides; and those whose updates are forwarded.
    pub fn of_secondary(access: Option<&Access>, keys: &SecondaryKeys) -> Access {
        let primary = |primary: &RemoteServer| {
            let address = primary.address.ip().to_canonical();
            let prefix = if address.is_ipv4() { 32 } else { 128 };
            let network = Some(Network { address, prefix });
            TransferClient { network, key: primary.key.clone() }
        };
        let primaries = keys.from.iter().map(primary);
        let mut access = access.cloned().unwrap_or_else(Access::open);
        access.transfers.notify_from = primaries.chain(keys.notify_from.iter().cloned()).collect();
        access.transfers.update_from = keys.update_from.clone();
        access.transfers.primaries = keys.from.iter().map(|primary| primary.address).collect();
        access
    }

    /// Reports the name of a key, in the value of another key, if there is none of its name.
    pub(super) fn check(
        &self,
        reader: &mut Reader<'_, '_>,
        place: &'static str,
        name: Option<&Name>,
    ) {
        if let Some(unknown) = name.and_then(|name| self.unknown(name)) {
            reader.contradict(Some(place), unknown);
        }
    }

    /// Returns what is wrong with the name of a key, in lower case, if there is none of its name.
    pub(super) fn unknown(&self, name: &Name) -> Option<Contradiction> {
        if self.names.iter().any(|(known, _)| known == name) {
            return None;
        }
        let names: Vec<String> = self.names.iter().map(|(name, _)| name.to_string()).collect();
        let near = nearest(&name.to_string(), names.iter().map(String::as_str));
        let mistake = TransferMistake::UnknownKey(name.clone(), near.map(str::to_owned));
        Some(Contradiction::Transfer(mistake))
    }
}

/// Returns the secret in the first line of a file.
fn secret_from(reader: &mut Reader<'_, '_>, path: &Path) -> Option<KeySecret> {
    const KEY: Option<&str> = Some("secret-file");
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            reader.fail(KEY, Problem::Unreadable(path.to_owned(), error));
            return None;
        }
    };
    let secret = KeySecret::from_text(text.lines().next().unwrap_or_default().trim());
    if secret.is_none() {
        let problem = Problem::Value {
            key: format!("the first line of {}", path.display()),
            found: "what it is".to_owned(),
            form: KeySecret::form(),
        };
        reader.fail(KEY, problem);
    }
    secret
}
