//! Memory for replies behind whose aliases code answers.

use crate::code::HandlerReply;
use zonda_wire::Query;
use zonda_zone::LookupName;

/// What is known of a reply behind whose aliases code answers, kept by a worker so that few of them
/// allocate.
#[derive(Default)]
pub struct TargetMemory {
    /// The query of the client.
    pub asked: Vec<u8>,
    /// The query for the target, which is the client's but for its name; empty before the first.
    pub message: Vec<u8>,
    /// Memory for the query for the next target.
    pub next: Vec<u8>,
    /// The query for the target, as it was read.
    pub query: Query,
    /// The target in lower case.
    pub name: LookupName,
    /// The records of the reply so far.
    pub records: HandlerReply,
    /// The text of the extended error so far.
    pub text: Vec<u8>,
    /// The owner of a record.
    pub owner: Vec<u8>,
}
