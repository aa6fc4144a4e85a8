//! Queues of queries that the user's code answers in threads of its own.
//!
//! ```text
//! UDP workers, TCP connections ─ deferred queries ─► Runtime ─ batches ─► code
//!            ▲                                       │  ▲ drafts           │
//!            └──── replies over the same socket ◄── Answerer ◄─────────────┘
//! ```
//! A [`Runtime`] holds what waits for code; the code's threads take batches from it and give what
//! they drafted to an [`Answerer`], which has the engine write the replies. What is not answered in
//! time is answered SERVFAIL by a [`Deadlines`] thread.
//!
//! Deliberately absent: the code, and how it is called.

mod answerer;
mod deadlines;
mod runtime;
mod waiting;

pub use answerer::Answerer;
pub use deadlines::{Deadlines, LongCalls, Watchdog};
pub use runtime::{Runtime, RuntimeConfig, RuntimeCounters};
pub use waiting::{PLACE_BYTES, Ticket};
