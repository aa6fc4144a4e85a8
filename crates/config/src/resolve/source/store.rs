//! Zones whose records are in a database.

use crate::StoreUrl;
use crate::error::Contradiction;
use crate::keys::StoreKeys;
use crate::reader::Reader;
use crate::section::Keys;

/// Reads where the records of a zone are. Keys that the kind of database does not have are
/// reported.
pub fn read(reader: &mut Reader<'_, '_>) -> Option<StoreKeys> {
    let keys = StoreKeys::read(reader)?;
    let mut refuse = |key| {
        if reader.is_set(key) {
            reader.contradict(Some(key), Contradiction::NotOfStore(key, keys.url.scheme()));
        }
    };
    match keys.url {
        StoreUrl::Redis(_) => {}
        StoreUrl::Postgres(_) => refuse("prefix"),
        StoreUrl::Redb(_) => ["prefix", "compare-interval"].into_iter().for_each(refuse),
    }
    Some(keys)
}
