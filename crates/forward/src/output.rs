//! What a turn of a forwarder thread sends once its state is unlocked.

use zonda_deferral::SocketReplies;
use zonda_netio::ReplyBatch;

use crate::departures::Departures;
use crate::inbox::Inbox;

/// Most replies of a turn for which memory is kept until the next.
const REPLIES_KEPT_MAX: usize = 1024;

/// What a turn sends once the state is unlocked: a send may wake its receiver on the same CPU, and
/// the receiver's answer the thread, which would wait for the state then.
#[derive(Default)]
pub struct Output {
    /// Queries to upstreams.
    pub queries: Departures,
    /// Replies to clients.
    pub replies: Vec<SocketReplies>,
    /// Empty batches that were sent before, without their sockets: one that lies idle keeps no
    /// socket of a listener open that is closed.
    pub spare: Vec<ReplyBatch>,
}

impl Output {
    /// Sends all, and lets go of the sockets of clients; queries that the kernel refuses come back
    /// by way of the inbox.
    pub fn send(&mut self, inbox: &Inbox) {
        let refused = self.queries.send();
        if !refused.is_empty() {
            inbox.put(|contents| contents.refused.extend(refused));
        }
        for (socket, mut batch) in self.replies.drain(..) {
            let is_burst = batch.len() > REPLIES_KEPT_MAX; // its memory is as large
            batch.send(&socket);
            if !is_burst {
                self.spare.push(batch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::Arc;
    use zonda_netio::{UdpOptions, UdpSocket};

    #[test]
    fn what_was_sent_keeps_no_socket_open() {
        let bound = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default());
        let (socket, inbox) = (Arc::new(bound.unwrap()), Inbox::new().unwrap());
        let mut output = Output::default();
        output.replies.push((Arc::clone(&socket), ReplyBatch::default()));
        output.send(&inbox);
        assert_eq!((Arc::strong_count(&socket), output.spare.len()), (1, 1));
    }
}
