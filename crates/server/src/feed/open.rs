//! The store that a configuration names.

use std::sync::Arc;
use zonda_config::StoreKeys;
use zonda_store::{Store, StoreError};

/// Opens a store. Servers are connected to when they are needed; a file must be there.
///
/// # Errors
/// When the URL is none, the file cannot be opened, or the program was built without the kind of
/// database.
pub fn open_store(keys: &StoreKeys) -> Result<Arc<dyn Store>, StoreError> {
    match &keys.url {
        #[cfg(feature = "postgres")]
        zonda_config::StoreUrl::Postgres(url) => {
            let store = zonda_store::PostgresStore::new(url)?;
            Ok(Arc::new(store.compare_every(keys.compare_interval)))
        }
        #[cfg(feature = "redis")]
        zonda_config::StoreUrl::Redis(url) => {
            let store = zonda_store::RedisStore::new(url)?.compare_every(keys.compare_interval);
            Ok(Arc::new(store.prefix(keys.prefix.clone().unwrap_or_default())))
        }
        #[cfg(feature = "redb")]
        zonda_config::StoreUrl::Redb(file) if !file.exists() => Err(StoreError::failed(format!(
            "{}: no such file; a program that uses the library writes it",
            file.display()
        ))),
        #[cfg(feature = "redb")]
        zonda_config::StoreUrl::Redb(file) => Ok(Arc::new(zonda_store::RedbStore::open(file)?)),
        #[allow(unreachable_patterns, reason = "features leave some kinds of database out")]
        url => Err(StoreError::failed(format!(
            "this program was built without databases of `{}`, a feature of that name",
            url.scheme()
        ))),
    }
}
