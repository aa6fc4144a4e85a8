//! The transfers of a zone to its secondaries, and what is said of them beside `transfer`.

use super::keys::KeyList;
use crate::access::Access;
use crate::error::{Contradiction, Origin, TransferMistake};
use crate::keys::{HistoryKeys, TransferKeys};
use crate::reader::Reader;
use crate::section::Keys;
use crate::transfer_value::{AliasTransfer, HistoryLimits};
use std::sync::Arc;

/// The key that says how ALIAS records are transferred.
const ALIAS_TRANSFER: &str = "alias-transfer";

/// Adds to the access list of a zone the clients that it is transferred to, and how its ALIAS
/// records are.
pub fn with_transfers(
    keys: &KeyList,
    reader: &mut Reader<'_, '_>,
    aliases: AliasTransfer,
    access: Option<Arc<Access>>,
) -> Option<Arc<Access>> {
    let Some((table, origin)) = reader.nested(&TransferKeys::SECTION) else {
        refuse_companions(reader, aliases);
        return access;
    };
    let history = history(reader);
    let mut nested =
        reader.nested_reader(&TransferKeys::SECTION, (Some(table), origin), Vec::new());
    keys.with_transfers(&mut nested, (history, aliases), access)
}

/// Reports transfers of a zone with this key, which has no records; returns its access list.
pub fn refuse(
    reader: &mut Reader<'_, '_>,
    (key, aliases): (&'static str, AliasTransfer),
    access: Option<Arc<Access>>,
) -> Option<Arc<Access>> {
    if reader.nested(&TransferKeys::SECTION).is_some() {
        let mistake = TransferMistake::Source(key);
        reader.contradict(Some("transfer"), Contradiction::Transfer(mistake));
    }
    refuse_companions(reader, aliases);
    access
}

/// Reports how ALIAS records of a zone with this key are transferred, which has none.
pub fn refuse_aliases(reader: &mut Reader<'_, '_>, key: &'static str, aliases: AliasTransfer) {
    if aliases == AliasTransfer::Expanded {
        let mistake = TransferMistake::NoAliases(key);
        reader.contradict(Some(ALIAS_TRANSFER), Contradiction::Transfer(mistake));
    }
}

/// What is kept for transfers of a zone.
fn history(reader: &mut Reader<'_, '_>) -> HistoryLimits {
    let (table, origin) = match reader.nested(&HistoryKeys::SECTION) {
        Some((table, origin)) => (Some(table), origin),
        None => (None, Origin::Default),
    };
    let mut nested = reader.nested_reader(&HistoryKeys::SECTION, (table, origin), Vec::new());
    HistoryKeys::read(&mut nested).map(HistoryLimits::from).unwrap_or_default()
}

/// Reports what is said of transfers of a zone that is transferred to no client. That ALIAS records
/// are sent as they stand may be said of any zone, as the printed configuration does.
fn refuse_companions(reader: &mut Reader<'_, '_>, aliases: AliasTransfer) {
    if reader.nested(&HistoryKeys::SECTION).is_some() {
        let mistake = TransferMistake::HistoryWithoutTransfer;
        reader.contradict(Some("history"), Contradiction::Transfer(mistake));
    }
    if aliases == AliasTransfer::Expanded {
        let mistake = TransferMistake::AliasesWithoutTransfer;
        reader.contradict(Some(ALIAS_TRANSFER), Contradiction::Transfer(mistake));
    }
}
