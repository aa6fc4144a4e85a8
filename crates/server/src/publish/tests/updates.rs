//! Messages that wait in the queue of updates, and panics over them.

use super::{RIGHTS, Served, THREAD, block};
use crate::update::processor::{UpdateBatch, UpdateProcessor, Updates};
use crate::update::queue::UpdateQueue;
use crate::update::recent::RecentUpdates;
use crate::update::request::UpdateResult;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, error::TryRecvError};
use zonda_deferral::{Clock, Deferred, Queue, Replies, ReplyTo, Responder};
use zonda_engine::{Batch, Deferral, DeferredQuery, Now, Outcome, Peer, Resumption, To, Transport};

/// The first octet of a message over which the responder panics.
const POISON: u8 = 0xff;
/// The response code of a message that was carried out.
const NOERROR: u8 = 0;
/// The response code of a message that could not be carried out.
const SERVFAIL: u8 = 2;

/// A responder that replies with the header alone.
struct HeaderResponder;

impl Responder for HeaderResponder {
    fn answer_batch<B: Batch>(&mut self, _: Now, _: &mut B) {}

    fn resume(&mut self, _: Now, query: DeferredQuery<'_>, what: Resumption<'_>) -> Outcome {
        assert!(query.buffer[0] != POISON, "injected by the test");
        let Resumption::Update(outcome) = what else { panic!("no update") };
        query.buffer[3] = outcome.rcode.0 as u8;
        Outcome::Reply(12)
    }
}

/// A processor that panics before it takes messages, so many times.
struct PanickingProcessor(UpdateProcessor<HeaderResponder>, u32);

impl Updates for PanickingProcessor {
    fn begin(&mut self) -> Option<UpdateBatch> {
        if let Some(left) = self.1.checked_sub(1) {
            self.1 = left;
            panic!("injected by the test");
        }
        self.0.begin()
    }

    fn finish(&mut self, updates: UpdateBatch, results: &[Vec<UpdateResult>]) {
        self.0.finish(updates, results);
    }

    fn abandon(&mut self) {
        self.0.abandon();
    }
}

/// What receives the reply to a message.
type Reply = mpsc::Receiver<Vec<u8>>;

/// A message that adds an address to a name of the zone; its first octet is given.
fn message(first: u8) -> (Deferred, Reply) {
    let mut query = vec![first, 0, 0x28, 0, 0, 1, 0, 0, 0, 1, 0, 0];
    query.extend(b"\x07example\x03org\0\0\x06\0\x01");
    query.extend(b"\x01x\x07example\x03org\0\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07");
    let peer = Peer::new(([127, 0, 0, 1], 53).into(), Transport::Tcp, 0);
    let (sender, reply) = mpsc::channel(1);
    let (deferral, reply_to) = (Deferral::new(To::Update, 0), ReplyTo::Connection(sender));
    (Deferred { query, peer, deferral, reply_to }, reply)
}

/// Begins updates with a processor that panics so many times; returns the queue.
fn begin(served: &Served, panics: u32) -> Arc<UpdateQueue> {
    let queue = Arc::<UpdateQueue>::default();
    let processor = UpdateProcessor {
        queue: Arc::clone(&queue),
        snapshot: Arc::clone(&served.snapshot),
        clock: Clock::start(),
        replies: Replies::new(HeaderResponder),
        recent: RecentUpdates::default(),
    };
    let processor = Arc::new(Mutex::new(PanickingProcessor(processor, panics)));
    served.handle.begin_updates(&queue, processor).unwrap();
    queue
}

/// Puts messages into the queue that begin with these octets; returns what receives the replies.
fn put(queue: &UpdateQueue, firsts: &[u8]) -> Vec<Reply> {
    let (mut messages, replies): (Vec<_>, _) = firsts.iter().map(|first| message(*first)).unzip();
    queue.put(&mut messages);
    assert!(messages.is_empty(), "the queue has no room");
    replies
}

/// Waits for the replies, and returns their response codes.
fn codes(replies: Vec<Reply>) -> Vec<u8> {
    let limit = Instant::now() + Duration::from_secs(60);
    let code = |mut reply: Reply| loop {
        match reply.try_recv() {
            Ok(reply) => break reply[3] & 0x0f,
            Err(TryRecvError::Empty) if Instant::now() < limit => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("no reply: {error}"),
        }
    };
    replies.into_iter().map(code).collect()
}

#[test]
fn a_panic_over_one_message_costs_neither_a_reply_nor_the_publisher() {
    let served = Served::start_with("poison", RIGHTS);
    let queue = begin(&served, 0);
    for _ in 0..12 {
        let found = codes(put(&queue, &[1, POISON, 2]));
        assert_eq!(found, [NOERROR, SERVFAIL, NOERROR]);
    }
    let states = served.watchdog.states();
    let (_, state) = states.iter().find(|(name, _)| name == THREAD).unwrap();
    assert_eq!((state.panics, state.is_down), (0, false));
    served.end();
}

#[test]
fn messages_that_wait_while_the_publisher_starts_again_are_carried_out() {
    let served = Served::start_with("again", RIGHTS);
    let queue = begin(&served, 1);
    assert_eq!(codes(put(&queue, &[1])), [NOERROR]);
    served.end();
}

#[test]
fn messages_that_come_while_the_publisher_does_other_work_are_carried_out_behind_it() {
    let served = Served::start_with("meanwhile", RIGHTS);
    let queue = begin(&served, 0);
    let release = block(&served.handle);
    let replies = put(&queue, &[1, 2]);
    release.send(()).unwrap();
    assert_eq!(codes(replies), [NOERROR; 2]);
    served.end();
}

#[test]
fn messages_that_wait_when_updates_end_are_answered() {
    let served = Served::start_with("end", RIGHTS);
    let queue = begin(&served, 0);
    let release = block(&served.handle);
    let mut replies = put(&queue, &[1; 600]);
    release.send(()).unwrap();
    let first = codes(vec![replies.remove(0)]);
    assert_eq!(first, [NOERROR], "it came before the end");
    served.handle.end_updates().unwrap();
    let found = codes(replies);
    assert!(found.iter().all(|code| [NOERROR, SERVFAIL].contains(code)), "{found:?}");
    let mut late = vec![message(1).0];
    queue.put(&mut late);
    assert_eq!(late.len(), 1, "none is taken any more");
    served.end();
}
