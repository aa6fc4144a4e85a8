//! The store that a configuration names.

use std::sync::Arc;
use zonda_config::StoreKeys;
use zonda_store::{Store, StoreError};

/// Opens a store. Servers are connected to when they are needed; a file must be there.
///
/// # Errors
/// Those of [`check_store`], and when the file cannot be opened.
pub fn open_store(keys: &StoreKeys) -> Result<Arc<dyn Store>, StoreError> {
    check_store(keys)?;
    match &keys.url {
        #[cfg(feature = "postgres")]
        zonda_config::StoreUrl::Postgres(url) => {
            let store = zonda_store::PostgresStore::new(url)?.read_max(keys.read_max.0.into());
            Ok(Arc::new(store.compare_every(keys.compare_interval)))
        }
        #[cfg(feature = "redis")]
        zonda_config::StoreUrl::Redis(url) => {
            let store = zonda_store::RedisStore::new(url)?.compare_every(keys.compare_interval);
            let store = store.read_max(keys.read_max.0.into());
            Ok(Arc::new(store.prefix(keys.prefix.clone().unwrap_or_default())))
        }
        #[cfg(feature = "redb")]
        zonda_config::StoreUrl::Redb(file) => {
            let store = zonda_store::RedbStore::open(file)?;
            Ok(Arc::new(store.read_max(keys.read_max.0.into())))
        }
        #[allow(unreachable_patterns, reason = "features leave some kinds of database out")]
        url => Err(not_built(url)),
    }
}

/// Checks whether a store can be opened, as far as that is seen without opening it.
///
/// # Errors
/// When the URL is none, the file is not there, or the program was built without the kind of
/// database.
pub fn check_store(keys: &StoreKeys) -> Result<(), StoreError> {
    match &keys.url {
        #[cfg(feature = "postgres")]
        zonda_config::StoreUrl::Postgres(url) => zonda_store::PostgresStore::new(url).map(drop),
        #[cfg(feature = "redis")]
        zonda_config::StoreUrl::Redis(url) => zonda_store::RedisStore::new(url).map(drop),
        #[cfg(feature = "redb")]
        zonda_config::StoreUrl::Redb(file) => match file.is_file() {
            true => Ok(()),
            false => Err(StoreError::failed(
                "no such file; a program that uses the library writes it, before it is served",
            )),
        },
        #[allow(unreachable_patterns, reason = "features leave some kinds of database out")]
        url => Err(not_built(url)),
    }
}

/// The error of a kind of database that is not built in.
#[allow(dead_code, reason = "with all features, all kinds are built in")]
fn not_built(url: &zonda_config::StoreUrl) -> StoreError {
    let scheme = url.scheme();
    StoreError::failed(format!(
        "this program was built without databases of `{scheme}`, a feature of that name"
    ))
}
