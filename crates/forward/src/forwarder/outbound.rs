//! The side of the upstreams: the ways to them, what is known of them, and what reads their
//! answers.

use zonda_deferral::faults::FaultBudget;
use zonda_upstream::exchange::Action;

use crate::body::BodyReader;
use crate::random::RandomSource;
use crate::upstreams::Upstreams;
use crate::wires::Wires;

/// The side of the upstreams.
pub struct Outbound {
    /// The ways to the upstreams.
    pub wires: Wires,
    /// The groups of upstreams, with what this thread has learnt of them.
    pub upstreams: Upstreams,
    /// The source of chance for exchanges and evictions.
    pub random: RandomSource,
    /// Reads the answers of upstreams.
    pub reader: BodyReader,
    /// Room for a message that was received.
    pub message: Vec<u8>,
    /// Empty room for what an exchange wants done.
    pub actions: Vec<Action>,
    /// How many loops had been found when attempts that loop were last ended.
    pub loops_seen: u64,
    /// Failures to receive from upstreams, of which the log is told as many.
    pub receive_faults: FaultBudget,
}

impl Outbound {
    /// The side of upstreams of which nothing is known yet.
    pub fn new(wires: Wires) -> Self {
        Self {
            wires,
            upstreams: Upstreams::new(),
            random: RandomSource::new(),
            reader: BodyReader::new(),
            message: Vec::new(),
            actions: Vec::new(),
            loops_seen: 0,
            receive_faults: FaultBudget::new(),
        }
    }
}
