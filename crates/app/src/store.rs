//! Stores: records outside of the server, which a zone follows.

pub use crate::mirror::Mirrors;
#[cfg(feature = "postgres")]
pub use zonda_store::PostgresStore;
#[cfg(feature = "redb")]
pub use zonda_store::RedbStore;
#[cfg(feature = "redis")]
pub use zonda_store::RedisStore;
pub use zonda_store::{
    Announcer, Changes, MemoryStore, RecordError, RecordSet, Store, StoreError, Watch,
};
