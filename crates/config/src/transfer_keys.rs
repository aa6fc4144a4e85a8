//! The sections and keys of signed messages, and of transfers of zones.

use crate::section::section;
use crate::transfer_value::{KeyAlgorithm, KeySecret, TransferClient};
use std::path::PathBuf;
use std::time::Duration;
use zonda_wire::Name;

section! {
    /// A key with which messages are signed (TSIG, rfc8945), which both sides have. Give `secret`
    /// or `secret-file`. `tsig-keygen` and `keymgr -t` make keys. To change a key without a pause,
    /// add one of another name, let the peers use that, and remove the former one.
    pub struct TsigKeys: Array "key", Reload;

    /// The name of the key, which the peers use as well.
    name: Name, like "transfer.example";
    /// The algorithm that the key is for.
    algorithm: KeyAlgorithm = "hmac-sha256";
    /// The secret in base 64. It is never printed.
    secret: Option<KeySecret>, like "cmVwbGFjZSB0aGlzIGJ5IHdoYXQgdHNpZy1rZXlnZW4gcHJpbnRz";
    /// A file whose first line is the secret in base 64; in place of `secret`. It is read at start
    /// and at each reload.
    secret_file: Option<PathBuf>, like "transfer.key";
}

section! {
    /// The transfers of a zone to its secondaries. Follows its `[[zone]]`; it can be written as
    /// `transfer = { to = ["192.0.2.7 key transfer.example"] }` there. Goes with `file`, `json`,
    /// `directory`, `store` and `kubernetes`.
    pub struct TransferKeys: Nested "zone.transfer", Reload;

    /// The clients that may transfer the zone, over TCP: an address or a network, `key` and the
    /// name of a key that the query must be signed with, or both. All other clients are refused.
    to: Vec<TransferClient>, like "192.0.2.7 key transfer.example, 127.0.0.1";
}

section! {
    /// Bounds on transfers of zones to other servers.
    pub struct TransfersKeys: Table "transfers", Reload;

    /// Most transfers that run at once; a client that is one too many gets SERVFAIL, and tries
    /// again later.
    at_once: u32 = "10", from "1" to "10000";
    /// How long a transfer may take. The version of the zone that it began with is kept as long.
    time_max: Duration = "2h", from "1s" to "1d";
}
