//! The side of the clients: what they are answered.

use std::sync::Arc;

use arc_swap::ArcSwap;
use zonda_deferral::Responder;
use zonda_engine::Snapshot;

use crate::deliveries::Deliveries;
use crate::inbox::Forwarders;

/// Octets of the longest body.
const BODY_BYTES_MAX: usize = u16::MAX as usize;

/// The side of the clients.
pub struct Clients<R> {
    /// The replies to clients.
    pub deliveries: Deliveries<R>,
    /// Room for the body of a cached answer; empty while that is lent.
    pub body: Box<[u8]>,
    /// Makes responders, one at first and one after each panic.
    make: Box<dyn FnMut() -> R + Send>,
}

impl<R: Responder> Clients<R> {
    /// The side of clients that are answered by what `make` makes.
    pub fn new(
        mut make: impl FnMut() -> R + Send + 'static,
        snapshot: Arc<ArcSwap<Snapshot>>,
        forwarders: Forwarders,
    ) -> Self {
        let deliveries = Deliveries::new(make(), snapshot, forwarders);
        Self { deliveries, body: new_body(), make: Box::new(make) }
    }

    /// Goes on with another responder, after a panic.
    pub fn replace_responder(&mut self) {
        self.deliveries.replace_responder((self.make)());
    }

    /// Makes room for a body again, after a panic that came while it was lent.
    pub fn restore_body(&mut self) {
        if self.body.is_empty() {
            self.body = new_body();
        }
    }
}

/// Room for the body of a cached answer.
fn new_body() -> Box<[u8]> {
    vec![0; BODY_BYTES_MAX].into()
}
