//! The sections of the zones that catalog zones list.

use crate::access::AccessRule;
use crate::section::{EffectTime, Keys, Kind, Section, section};
use crate::transfer_keys::{HistoryKeys, SecondaryKeys, TransferKeys};
use crate::value::{Percent, Value};
use std::time::Duration;
use zonda_wire::Name;

/// The catalog that lists a zone, and the group that the zone has in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CatalogPlace {
    /// The name of the catalog zone, in lower case.
    pub catalog: Name,
    /// The group, if there is one.
    pub group: Option<String>,
}

impl Value for CatalogPlace {
    fn form() -> String {
        "the name of a catalog, and perhaps a group: \"catalog.example\" or \"catalog.example \
         group signed\""
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (name, group) = match words[..] {
            [name] => (name, None),
            [name, "group", group] => (name, Some(group.to_owned())),
            _ => return None,
        };
        Some(Self { catalog: Name::from_text(name)?.to_lowercase(), group })
    }
}

section! {
    /// The source of a catalog zone (rfc9432) that the server makes: it lists the zones that have
    /// its name as `catalog`. Follows its `[[zone]]`. It is kept in the directory `state`, so that
    /// its serial never goes back; its members have the same ids for as long as they are listed.
    pub struct MembersKeys: Nested "zone.members", Reload;

    /// How often secondaries look for another version, if no NOTIFY reaches them.
    refresh: Duration = "1h", from "1s" to "28d";
    /// How long they wait after an attempt that failed.
    retry: Duration = "10m", from "1s" to "28d";
    /// How long a zone that moves to another catalog of this server is still listed here, with that
    /// catalog as its new owner (the property `coo`): secondaries that see both in this time go on
    /// serving what they have of the zone. Counted anew when the server starts.
    ownership_change: Duration = "1d", from "0s" to "365d";
}

section! {
    /// The zones that a catalog zone lists, its *members* (rfc9432): each is transferred from
    /// primaries and served, from the moment at which the catalog lists it to the one at which it
    /// does not any more. The catalog itself is a `[[zone]]`, mostly one with `[zone.secondary]`.
    /// Several sections of one `name` serve the members of different groups.
    pub struct CatalogKeys: Array "catalog", Reload;

    /// The name of the catalog zone.
    name: Name, like "catalog.example";
    /// The groups whose members are served as this section says (the property `group`). Unset: all
    /// members of which no other section has a group.
    groups: Vec<String>, like "signed, internal";
    /// The share of the members that one version of the catalog may remove or reset, in percent. Up
    /// to 10 members are always removed, unless none of several is left. A version that removes
    /// more is not taken: the former one stays in force, and the log says so, until a later version
    /// removes less, an operator confirms it, or a reload finds a greater share here. It is the
    /// whole catalog's: of several sections of one `name`, one says it, or all say the same.
    removals_max: Percent = "10 %", from "0 %" to "100 %";
    /// Members of the catalog at most, those of all groups together. A version that lists more
    /// zones is not taken: the former one stays in force, and the log says so. Each member takes
    /// some 2 kB of memory besides its records. Of several sections of one `name`, one says it, or
    /// all say the same.
    members_max: u32 = "200000", from "1" to "10000000";
    /// Access list of the members, as in `[[zone]]`.
    access: Vec<AccessRule>, like "allow any";
}

/// Where the members of a catalog are transferred from.
pub const CATALOG_SECONDARY: Section = Section {
    name: "catalog.secondary",
    kind: Kind::Nested,
    takes: EffectTime::Reload,
    doc: &[
        " The primaries of the members of a catalog, with the keys of `[zone.secondary]`. Follows",
        " its `[[catalog]]`. Without it, the members come from where the catalog comes from.",
    ],
    keys: SecondaryKeys::SECTION.keys,
};

/// Which clients the members of a catalog are transferred to.
pub const CATALOG_TRANSFER: Section = Section {
    name: "catalog.transfer",
    kind: Kind::Nested,
    takes: EffectTime::Reload,
    doc: &[
        " The transfers of the members of a catalog to other servers, with the keys of",
        " `[zone.transfer]`. Follows its `[[catalog]]`; it can be written as",
        " `transfer = { to = [\"192.0.2.7\"] }` there.",
    ],
    keys: TransferKeys::SECTION.keys,
};

/// What is kept of former versions of the members of a catalog.
pub const CATALOG_HISTORY: Section = Section {
    name: "catalog.history",
    kind: Kind::Nested,
    takes: EffectTime::Reload,
    doc: &[
        " The history of each member of a catalog, with the keys of `[zone.history]`. Follows its",
        " `[[catalog]]`, and goes with `transfer` there.",
    ],
    keys: HistoryKeys::SECTION.keys,
};
