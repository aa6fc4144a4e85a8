//! The worker's hot table as a source.

use crate::context::{Context, Flow, reply};
use std::ops::ControlFlow::Continue;

/// Answers with the hot entry of the question, if there is one and it fits.
#[inline]
pub fn answer(cx: &mut Context<'_>) -> Flow {
    let Some(hot) = cx.hit.and_then(|hit| cx.hot.get(hit)) else { return Continue(()) };
    let (meta, body) = hot;
    let mut pieces = [body, &[], &[]];
    if meta.rotation.count > 1 {
        let first = cx.worker.turn.next(meta.rotation.count);
        let bytes = usize::from(meta.rotation.bytes);
        let (set, rest) = body.split_at(bytes * usize::from(meta.rotation.count));
        let (before, from) = set.split_at(first * bytes);
        pieces = [from, before, rest];
    }
    if cx.reply.append_body(pieces, meta.counts).is_err() {
        return Continue(());
    }
    cx.flags |= meta.flags;
    cx.answering_label = meta.answering_label;
    reply(meta.rcode, meta.reason)
}
