//! The sections and keys of signed messages, and of transfers of zones.

use crate::section::section;
use crate::transfer_value::{KeyAlgorithm, KeySecret, RemoteServer, TransferClient};
use crate::value::Size;
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
    /// `directory`, `store`, `secondary` and `kubernetes`.
    pub struct TransferKeys: Nested "zone.transfer", Reload;

    /// The clients that may transfer the zone, over TCP: an address or a network, `key` and the
    /// name of a key that the query must be signed with, or both. All other clients are refused.
    to: Vec<TransferClient>, like "192.0.2.7 key transfer.example, 127.0.0.1";
    /// The servers that are notified of each version of the zone with another serial, and when
    /// the server starts (NOTIFY over UDP, rfc1996): an address, a port unless it is 53, and `key`
    /// with the name of a key that the message is signed with. Each is sent the message again until
    /// it acknowledges it.
    notify: Vec<RemoteServer>, like "192.0.2.7, 192.0.2.8:5353 key transfer.example";
}

section! {
    /// The history of a zone: what told its last versions apart, so that clients of `transfer` get
    /// the changes only (IXFR, rfc1995). Follows its `[[zone]]`; it can be written as
    /// `history = { versions = 100 }` there. Goes with `transfer`. It is kept in memory, and is
    /// empty when the server starts, but for zones with `writable`, whose changes the journal has.
    pub struct HistoryKeys: Nested "zone.history", Reload;

    /// Most versions that are kept beside the one in force; 0 for none.
    versions: u32 = "100", from "0" to "10000";
    /// Most octets of memory that they take.
    bytes: Size = "64 MiB", from "1 KiB" to "3 GiB";
}

section! {
    /// The source of a zone that is transferred from primaries, by AXFR and IXFR, and kept in the
    /// directory `state`. Follows its `[[zone]]`.
    pub struct SecondaryKeys: Nested "zone.secondary", Reload;

    /// The primaries: the address of each, with a port if that is not 53, and `key` with the name
    /// of the key that messages are signed with, if they are. All are asked for the serial that
    /// they have, and the zone comes from the one with the greatest. They may send NOTIFY.
    from: Vec<RemoteServer>, like "192.0.2.1 key transfer.example, 192.0.2.2:5353";
    /// More clients that may send NOTIFY for the zone, in the form of `to` in `transfer`.
    notify_from: Vec<TransferClient>, like "192.0.2.9";
    /// The clients whose messages that change the zone (dynamic update, rfc2136) are forwarded to
    /// the primaries as they came, signatures included; those of all other clients are refused. An
    /// address or a network, `key` and the name of a key that this server has and the message must
    /// be signed with, or both. What a client may change, the primary decides; it sees the address
    /// of this server.
    update_from: Vec<TransferClient>, like "key transfer.example, 192.0.2.0/24";
    /// The least time between two checks of the serial, whatever the SOA record says.
    refresh_min: Duration = "1m", from "1s" to "1d";
    /// The greatest time between two checks of the serial.
    refresh_max: Duration = "28d", from "1s" to "365d";
    /// The least time from a check that failed to the next, whatever the SOA record says.
    retry_min: Duration = "30s", from "1s" to "1d";
    /// The greatest time from a check that failed to the next.
    retry_max: Duration = "14d", from "1s" to "365d";
    /// Octets of memory of the zone at most, and of the records of a transfer; twice as many if
    /// that has changes only. While the zone is larger, the former version is served, and the log
    /// says so.
    size_max: Size = "1 GiB", from "1 KiB" to "3 GiB";
    /// Records of the zone at most, likewise.
    records_max: u32 = "20000000", from "1" to "100000000";
    /// Records of one type at one name at most, likewise; of signatures those over one type. Each
    /// answer with them is as long as they are (CVE-2024-1737). BIND's limit is 100, which zones
    /// with hundreds of addresses or TXT records at a name are over; a message has room for some
    /// 4,000 addresses.
    records_per_set_max: u32 = "1000", from "1" to "65535";
    /// Types of the records of one name at most, those of signatures not counted. They are searched
    /// for the one that a query asks for.
    types_per_name_max: u32 = "100", from "1" to "65535";
    /// How long a transfer may take, the attempt to get changes only included.
    time_max: Duration = "2h", from "1s" to "1d";
    /// How long each message of a transfer may take.
    idle_timeout: Duration = "30s", from "1s" to "1h";
}

section! {
    /// Bounds on transfers of zones to other servers, and on all transfers from primaries.
    pub struct TransfersKeys: Table "transfers", Reload;

    /// Most transfers that run at once; a client that is one too many gets SERVFAIL, and tries
    /// again later.
    at_once: u32 = "10", from "1" to "10000";
    /// Most transfers to one client, by its address, that run at once, so that one secondary cannot
    /// have all places; it gets SERVFAIL as well, and tries again later.
    at_once_per_client: u32 = "8", from "1" to "10000";
    /// How long a transfer may take. The version of the zone that it began with is kept as long.
    time_max: Duration = "2h", from "1s" to "1d";
    /// Octets of memory of all transfers from primaries together, in steps of 1 MiB. A zone whose
    /// records take more than 1 MiB counts as one and a quarter times their octets, 60 octets for
    /// each record, and 4 MiB; where few names have most of the records, as up to 72 octets for
    /// each record and their octets once more; and for each name that has names below it, as twice
    /// its octets and 68 more. Changes, and a smaller zone, count as three times their octets, and
    /// 80 octets for each record. The first MiB of a transfer never waits; one that needs more than
    /// there is waits, if possible before it begins. Of those that need more than 1 MiB, the one
    /// that came first grows in any case, so that a zone may be larger; `size-max` and
    /// `records-max` bound it. Transfers of up to 1 MiB, 16 at a time, come on top.
    memory_max: Size = "1 GiB", from "16 MiB" to "3 GiB";
}
