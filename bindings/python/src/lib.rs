//! The native module of the Python package `zonda`.
//!
//! ```text
//! workers ─► Runtime ─ batch ─► Core.take ─► Query, Reply ─► handlers of Python
//!    ▲          │ wakes the event loop                            │
//!    └────── Answerer ◄─ batch ◄─ Core.complete ◄─ Reply ◄────────┘
//! ```
//! The threads of the server never touch Python: they write an octet into a socket that Python's
//! event loop watches. The loop's thread takes a batch of queries, has handlers fill the replies,
//! and gives all of them back at once; while the core writes and sends them, the interpreter is
//! free for other threads.
//!
//! Zones that follow stores do so in threads of the crate `zonda`; a store that is written in
//! Python is called in a thread of Python's.
//!
//! Deliberately absent: coroutines, tasks, decorators, and the order of middleware, which Python
//! does in `python/zonda`.

mod batch;
mod field;
mod flatten;
mod foreign;
mod inbox;
mod log;
mod message;
mod number;
mod own_store;
mod pattern;
mod query;
mod record;
mod reply;
mod server;
mod settings;
mod store;
mod wake;

/// What Python imports as `zonda._core`.
#[pyo3::pymodule]
mod _core {
    use pyo3::prelude::*;

    /// Adds what is no class and no function: the version of the package.
    #[pymodule_init]
    fn add_version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use crate::message::{question, read_reply};
    #[pymodule_export]
    use crate::own_store::Calls;
    #[pymodule_export]
    use crate::pattern::{canonical_pattern, check_suffix};
    #[pymodule_export]
    use crate::query::Query;
    #[pymodule_export]
    use crate::record::Record;
    #[pymodule_export]
    use crate::record::{record_types, register};
    #[pymodule_export]
    use crate::reply::Reply;
    #[pymodule_export]
    use crate::server::Core;
    #[pymodule_export]
    use crate::server::log_lines;
    #[pymodule_export]
    use crate::store::check_zone_name;
    #[pymodule_export]
    use crate::store::{MemoryStore, PostgresStore, RedbStore, RedisStore, Store};
}
