//! The section of rights to change a zone by messages.

use crate::section::section;
use crate::transfer_value::TransferClient;
use crate::update_value::{DataType, UpdateNames, UpdatePreset};
use std::time::Duration;

section! {
    /// The rights to change a zone by messages (dynamic update, rfc2136); without any, all such
    /// messages are refused. Follows its `[[zone]]`; the rights can be written as
    /// `update = [{ from = ["key acme.example"], names = "zone" }]` there. Goes with `file`, with
    /// `json` if the zone has a `name`, and with `directory`. The zone is `writable` by that. A
    /// change is made if one of the rights that its client has allows it.
    pub struct UpdateKeys: NestedArray "zone.update", Reload;

    /// The clients that have the right: an address or a network, `key` and the name of a key that
    /// the message must be signed with, or both. The address of a message over UDP that is not
    /// signed may be forged.
    from: Vec<TransferClient>, like "key transfer.example, 127.0.0.1";
    /// The names whose records may be changed: `zone`, all of them; `self`, the name of the key;
    /// `subdomain`, that and all below it; `wildcard`, all below it; or those of another name, as
    /// in `name www.example.com`, `subdomain dyn.example.com` and `wildcard dyn.example.com`.
    names: Vec<UpdateNames>, like "zone";
    /// A right that is known by a name: `acme` is for TXT records with a TTL of 5 minutes at most,
    /// at names with the label `_acme-challenge`, as certificates are proven by. `names` may
    /// narrow it down.
    preset: Option<UpdatePreset>, like "acme";
    /// The types of the records. Unset: all but those that must be named, which are SOA, NS, DS,
    /// DNAME, DNSKEY, CDS, CDNSKEY and NSEC3PARAM. RRSIG, NSEC, NSEC3, SIG and NXT cannot be
    /// changed.
    types: Vec<DataType>, like "A, AAAA";
    /// Most records of a type that a name may have when one is added.
    records_per_type: Option<u32>, like "4", from "1" to "65535";
    /// The least TTL of records that are added, in whole seconds.
    ttl_min: Option<Duration>, like "1m", from "1s" to "365d";
    /// The greatest TTL of records that are added, in whole seconds.
    ttl_max: Option<Duration>, like "1h", from "1s" to "365d";
}
