//! What can be wrong with keys and transfers.

use super::Origin;
use std::fmt;
use std::net::SocketAddr;
use zonda_wire::Name;

/// Values that are sound alone and wrong beside those of keys or zones.
#[derive(Debug)]
pub enum TransferMistake {
    /// A key with neither `secret` nor `secret-file`.
    NoSecret,
    /// A second key of the same name.
    KeyTwice(Name, Origin),
    /// A key that there is not, and the most similar one that there is.
    UnknownKey(Name, Option<String>),
    /// A zone whose source, by its key, has no records to transfer.
    Source(&'static str),
    /// Transfers to no client.
    ToNoClient,
    /// A history without transfers, for which alone it is kept.
    HistoryWithoutTransfer,
    /// A form of transferred ALIAS records without transfers.
    AliasesWithoutTransfer,
    /// A form of transferred ALIAS records of a zone whose source, by its key, has none.
    NoAliases(&'static str),
    /// A zone that is transferred, and from no primary.
    FromNoPrimary,
    /// A primary that is listed twice.
    PrimaryTwice(SocketAddr),
    /// A primary that is this server itself.
    OwnAddress(SocketAddr),
}

impl fmt::Display for TransferMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecret => f.write_str("the key has no secret; write `secret` or `secret-file`"),
            Self::KeyTwice(name, origin) => write!(
                f,
                "the key {name} is given at {origin} already; remove one of them, or give it \
                 another name"
            ),
            Self::UnknownKey(name, None) => {
                write!(f, "there is no key {name}; add a [[key]] with this `name`")
            }
            Self::UnknownKey(name, Some(near)) => {
                write!(f, "there is no key {name}; did you mean {near}?")
            }
            Self::Source(key) => write!(
                f,
                "a zone with `{key}` has no records of its own to transfer; remove `transfer`, or \
                 serve it from `file`, `json`, `directory`, `store`, `secondary` or `kubernetes`"
            ),
            Self::HistoryWithoutTransfer => f.write_str(
                "the history of a zone is kept for clients that it is transferred to, of which \
                 there are none; write `transfer`, or remove `history`",
            ),
            Self::AliasesWithoutTransfer => f.write_str(
                "the zone is transferred to no client; write `transfer`, or remove \
                 `alias-transfer`",
            ),
            Self::NoAliases(key) => {
                write!(f, "a zone with `{key}` has no ALIAS records; remove `alias-transfer`")
            }
            Self::FromNoPrimary => f.write_str(
                "the zone is transferred from no primary; write `from = [\"192.0.2.1\"]`",
            ),
            Self::PrimaryTwice(address) => {
                write!(f, "the primary {address} is listed twice; remove one of them")
            }
            Self::OwnAddress(address) => write!(
                f,
                "{address} is an address of this server, which cannot be its own primary; name \
                 the server that has the zone"
            ),
            Self::ToNoClient => f.write_str(
                "the zone is transferred to no client; write `to = [\"192.0.2.7\"]`, or remove \
                 `transfer`",
            ),
        }
    }
}
