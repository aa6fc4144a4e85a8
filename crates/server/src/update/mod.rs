//! Dynamic updates (rfc2136): messages that change zones, from their queue to the reply.
//!
//! ```text
//! engine ─ Deferred ─► UpdateQueue ─► thread: read, group by zone ─► publisher: judge, journal,
//!                                       │                              publish, NOTIFY
//!                                       └◄ one result each ◄───────────────┘
//!                                       └► reply, log, counters
//! ```
//!
//! While the publisher is at work, messages gather in the queue; all that wait are then one commit
//! of the journal and one version of each zone. A message is answered when what it has changed is
//! on the disk and is answered from.
//!
//! | module | what it holds |
//! |---|---|
//! | `queue` | the bounded queue of messages, and what is counted |
//! | `request` | a message that was read, and what became of it |
//! | `judge` | what a message does to a version of a zone |
//! | `recent` | the messages of the last minutes, none of which is carried out twice |
//! | `thread` | the thread that answers |

pub mod judge;
pub mod queue;
pub mod recent;
pub mod request;
pub mod thread;
