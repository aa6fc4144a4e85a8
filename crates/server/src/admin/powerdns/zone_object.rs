//! Zones as objects of PowerDNS's API.

use super::names::id_of;
use crate::control::Control;
use crate::feed::secondaries::SecondaryStates;
use crate::units::Content;
use crate::zone_set_view::KnownZone;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use zonda_engine::VersionOrigin;

/// The role of the server for a zone, as PowerDNS calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// The zone is no other server's business.
    Native,
    /// Other servers are notified of the zone.
    Master,
    /// The zone is transferred from primaries.
    Slave,
}

impl ZoneKind {
    /// The word of the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Native => "Native",
            Self::Master => "Master",
            Self::Slave => "Slave",
        }
    }

    /// The kind that a word of a client stands for.
    pub fn of(word: &str) -> Option<Self> {
        Some(match &*word.to_ascii_lowercase() {
            "native" => Self::Native,
            "master" | "primary" => Self::Master,
            "slave" | "secondary" => Self::Slave,
            _ => return None,
        })
    }
}

/// Whether a zone has records that stand in the DNS: names of a hosts file in front of a forwarded
/// zone, and names of a cluster, are no zone of PowerDNS's.
pub fn is_shown(zone: &KnownZone) -> bool {
    !matches!(zone.unit.content, Content::Hosts(_))
        && !matches!(zone.entry.source, zonda_engine::zones::Source::Cluster(_))
}

/// The kind of a zone.
pub fn kind(zone: &KnownZone) -> ZoneKind {
    let access = zone.entry.access.as_ref();
    if zone.unit.origin() == VersionOrigin::Transfer {
        ZoneKind::Slave
    } else if access.is_some_and(|access| !access.transfers.notify.is_empty()) {
        ZoneKind::Master
    } else {
        ZoneKind::Native
    }
}

/// What the objects of zones are made of, beside the zones themselves.
pub struct Background {
    /// How zones follow their primaries.
    secondaries: Arc<SecondaryStates>,
}

impl Background {
    /// What is known now.
    pub fn of(control: &Control) -> Self {
        Self { secondaries: control.stores.secondaries.states() }
    }

    /// The members that a zone has in lists.
    pub fn summary(&self, zone: &KnownZone, with_dnssec: bool) -> Map<String, Value> {
        let apex = zone.entry.apex.to_lowercase();
        let (id, kind) = (id_of(&apex), kind(zone));
        let (mut masters, mut last_check) = (Vec::new(), 0);
        if let Some(state) = self.secondaries.get(&apex) {
            let status = state.lock();
            masters.extend(status.primaries.iter().map(|it| address(*it.address)));
            last_check = status.agreed_at.secs();
        }
        let access = zone.entry.access.as_ref();
        let catalog = access.and_then(|access| access.transfers.catalog.as_ref());
        let catalog = catalog.map(|(name, _)| name.to_lowercase().to_string());
        let serial = zone.data().map_or(0, |data| data.serial());
        let object = json!({
            "account": "",
            "catalog": catalog.unwrap_or_default(),
            "id": id,
            "kind": kind.word(),
            "last_check": last_check,
            "masters": masters,
            "name": apex.to_string(),
            "notified_serial": if kind == ZoneKind::Master { serial } else { 0 },
            "serial": serial,
            "url": format!("/api/v1/servers/localhost/zones/{id}"),
        });
        let mut object = object.as_object().cloned().unwrap_or_default(); // it is one
        if with_dnssec {
            let is_signed = zone.data().is_some_and(|data| data.is_signed());
            object.insert("dnssec".to_owned(), is_signed.into());
            object.insert("edited_serial".to_owned(), serial.into());
        }
        object
    }

    /// All members of a zone but its RRsets.
    pub fn whole(&self, zone: &KnownZone) -> Map<String, Value> {
        let mut object = self.summary(zone, true);
        let more = json!({
            "api_rectify": false,
            "master_tsig_key_ids": [],
            "nsec3narrow": false,
            "nsec3param": "",
            "slave_tsig_key_ids": [],
            "soa_edit": "",
            "soa_edit_api": "DEFAULT",
        });
        object.extend(more.as_object().cloned().unwrap_or_default()); // it is one
        object
    }
}

/// An address, with its port where that is not 53.
fn address(address: SocketAddr) -> String {
    if address.port() == 53 { address.ip().to_string() } else { address.to_string() }
}
