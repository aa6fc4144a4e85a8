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
}

impl Output {
    /// Sends all; queries that the kernel refuses come back by way of the inbox.
    pub fn send(&mut self, inbox: &Inbox) {
        let refused = self.queries.send();
        if !refused.is_empty() {
            inbox.put(|contents| contents.refused.extend(refused));
        }
        for (socket, batch) in self.replies.iter_mut().filter(|(_, batch)| !batch.is_empty()) {
            let is_burst = batch.len() > REPLIES_KEPT_MAX;
            batch.send(socket);
            if is_burst {
                *batch = ReplyBatch::default(); // its memory is as large as the burst
            }
        }
    }
}
