//! Bodies of replies: whole, or in pieces that are made as the client takes them.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use tokio::sync::OwnedMutexGuard;

/// Octets of a whole body that are taken at once, so that a slow client has it taken slowly.
const PART_BYTES: usize = 64 << 10;

/// Makes the pieces of a body, each some tens of kilobytes: the thread that writes them to the
/// client writes for other clients as well.
pub type Pieces = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// The body of a reply.
pub struct ReplyBody {
    content: Content,
    /// What becomes true when the last octet has been taken, or the body is dropped.
    is_taken: Option<Arc<AtomicBool>>,
    /// The lock that is held until then.
    held: Option<OwnedMutexGuard<()>>,
}

/// The octets of a body.
enum Content {
    /// All octets; empty once they are taken.
    Whole(Bytes),
    /// The pieces that are left.
    Pieces {
        /// Makes the next piece.
        pieces: Pieces,
        /// Whether the thread looks after other connections before the next piece.
        is_pausing: bool,
    },
}

impl ReplyBody {
    /// A body whose octets are there.
    pub fn whole(octets: Vec<u8>) -> Self {
        Self { content: Content::Whole(octets.into()), is_taken: None, held: None }
    }

    /// A body in pieces, which is whole if there is only one. The first two are made at once: what
    /// costs the first one more than later ones does not keep the thread that writes.
    pub fn pieces(mut pieces: Pieces) -> Self {
        let first = pieces.next().unwrap_or_default();
        let Some(second) = pieces.next() else { return Self::whole(first) };
        let pieces = Box::new([first, second].into_iter().chain(pieces));
        Self { content: Content::Pieces { pieces, is_pausing: false }, is_taken: None, held: None }
    }

    /// Has a flag become true when the body is taken.
    pub fn note_taken(&mut self, is_taken: &Arc<AtomicBool>) {
        self.is_taken = Some(Arc::clone(is_taken));
    }

    /// Holds a lock until the body is taken.
    pub fn hold_until_taken(&mut self, lock: OwnedMutexGuard<()>) {
        self.held = Some(lock);
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.content {
            Content::Whole(octets) if octets.is_empty() => None,
            Content::Whole(octets) => Some(octets.split_to(octets.len().min(PART_BYTES))),
            Content::Pieces { pieces, is_pausing } => {
                if mem::take(is_pausing) {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                *is_pausing = true;
                pieces.next().map(Bytes::from)
            }
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(octets) if octets.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(octets) => SizeHint::with_exact(octets.len() as u64), // usize is no more
            Content::Pieces { .. } => SizeHint::default(),
        }
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        if let Some(is_taken) = &self.is_taken {
            is_taken.store(true, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use http_body_util::BodyExt;
    use std::sync::atomic::AtomicU32;

    /// Pieces of one octet each, and how many were made.
    fn counted(count: u8) -> (Pieces, Arc<AtomicU32>) {
        let made = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&made);
        let count_one = move |octet| {
            counter.fetch_add(1, Relaxed);
            vec![octet]
        };
        (Box::new((0..count).map(count_one)), made)
    }

    #[tokio::test]
    async fn a_piece_is_made_when_the_former_one_is_taken() {
        let (pieces, made) = counted(5);
        let mut body = ReplyBody::pieces(pieces);
        assert_eq!(body.size_hint().exact(), None);
        for number in 0_u8..5 {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), [number].as_slice());
            assert_eq!(made.load(Relaxed), u32::from(number.max(1)) + 1);
        }
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_body_of_one_piece_has_a_length() {
        let body = ReplyBody::pieces(counted(1).0);
        assert_eq!(body.size_hint().exact(), Some(1));
        assert_eq!(body.collect().await.unwrap().to_bytes(), [0].as_slice());
        let body = ReplyBody::pieces(counted(0).0);
        assert!(body.is_end_stream());
    }

    #[tokio::test]
    async fn a_body_tells_when_it_is_taken_and_not_before() {
        let is_taken = Arc::new(AtomicBool::new(false));
        let mut body = ReplyBody::pieces(counted(3).0);
        body.note_taken(&is_taken);
        for _ in 0..3 {
            body.frame().await.unwrap().unwrap();
            assert!(!is_taken.load(Relaxed));
        }
        drop(body);
        assert!(is_taken.load(Relaxed));
    }
}
