//! Stores: records outside of the server, which a zone follows.

#[cfg(feature = "postgres")]
pub use zonda_store::PostgresStore;
#[cfg(feature = "redb")]
pub use zonda_store::RedbStore;
#[cfg(feature = "redis")]
pub use zonda_store::RedisStore;
pub use zonda_store::{
    Announcer, Changes, MemoryStore, RecordError, RecordSet, Store, StoreError, Watch,
};
