//! Dynamic updates (rfc2136): messages that change zones, from their queue to the reply.
//!
//! ```text
//! engine ─ Deferred ─► UpdateQueue ─► publisher: read, group by zone, judge, journal, publish,
//!                          │             NOTIFY, reply, log, counters
//!                          └► thread: relay to a primary, reply
//! ```
//!
//! While the publisher is at work, messages gather in the queue; all that wait are then one commit
//! of the journal and one version of each zone. A message is answered when what it has changed is
//! on the disk and is answered from. The publisher reads and answers messages itself: each thread
//! more on their way would be two changes of thread for each message.
//!
//! | module | what it holds |
//! |---|---|
//! | `queue` | the bounded queue of messages, and what is counted |
//! | `processor` | the update processor, which reads and answers messages |
//! | `request` | a message that was read, and what became of it |
//! | `judge` | what a message does to a version of a zone |
//! | `relay` | messages for zones of primaries, which are forwarded to them |
//! | `relay_queue` | which of these is next, so that no primary takes all threads |
//! | `recent` | the messages of the last minutes, none of which is carried out twice |
//! | `thread` | the thread that has messages forwarded |

pub mod judge;
pub mod processor;
pub mod queue;
pub mod recent;
pub mod relay;
mod relay_queue;
pub mod request;
pub mod thread;
