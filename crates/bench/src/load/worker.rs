//! One thread of the generator: sends what is due, reads what has come, gives up what is late.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use zonda_netio::Poller;
use zonda_wire::tsig::{Key, ReplySignature};

use super::check;
use super::clients::Clients;
use super::ledger::{Ledger, Match};
use super::supply::Supply;
use super::tally::Tally;
use super::{LoadError, Mode, Plan};

/// Queries sent by one call.
const SEND_WIDTH: u64 = 64;

/// Queries sent by one call where those of one length are one message, which more of them make
/// longer.
const SEGMENTED_SEND_WIDTH: u64 = 512;

/// Longest wait for a reply; what else is due is looked at in between.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// What the kernel may take to wake a thread: for as long before a query is due, a thread that has
/// a CPU of its own looks for replies without waiting for them.
const WAKE_UP_MAX: Duration = Duration::from_micros(100);

/// How long after its end a thread may still send what fell due before: it was busy or asleep then.
const CATCH_UP_NANOS: u64 = 10_000_000;

/// Calls that read from one client before it is another's turn, however much there is: a server
/// that floods a client cannot delay the run's end. Each takes up to 64 datagrams or 64 KiB.
const RECEIVE_CALLS_MAX: usize = 256;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// What a thread reports of one second.
pub struct Report {
    /// The thread, from 0.
    pub thread: usize,
    /// Whether the thread has ended and reports no more.
    pub is_last: bool,
    /// The second, from 0.
    pub second: u64,
    /// Tally of that second.
    pub tally: Tally,
}

/// What a thread reports at its end.
pub struct ThreadReport {
    /// Moment of the last query or answer; nanoseconds since the run began.
    pub last_nanos: u64,
    /// Moment at which sending was to end; nanoseconds since the run began.
    pub deadline_nanos: u64,
    /// CPU time of the thread.
    pub cpu_secs: f64,
    /// Datagrams that the thread's sockets had no room for.
    pub dropped: u64,
    /// Octets that the kernel gave the smallest of the receive buffers, if datagrams use them.
    pub buffer_octets: Option<usize>,
    /// Number of new connections of the thread's clients.
    pub reconnects: u64,
    /// Number of "port unreachable" errors.
    pub refused: u64,
}

/// A thread's state.
pub struct Worker<'a> {
    /// Plan that the thread follows.
    plan: &'a Plan,
    /// Which queries to send.
    supply: &'a Supply,
    /// Moment at which the run began.
    start: Instant,
    /// Moment at which sending ends; nanoseconds since the run began.
    deadline_nanos: u64,
    /// Moment at which sending of overdue queries ends; none until the deadline is over.
    catch_up_nanos: Option<u64>,
    /// After how long a query is lost.
    timeout_nanos: u64,
    /// Queries that may wait for replies, over all clients.
    outstanding_max: usize,
    /// Waits for replies.
    poller: Poller,
    /// Sockets or connections.
    clients: Clients,
    /// Room for a query that is made when it is sent.
    scratch: Vec<u8>,
    /// Room for a query with its signature.
    signed: Vec<u8>,
    /// Ledgers of waiting queries, one for each client.
    ledgers: Vec<Ledger>,
    /// The client whose turn it is to send.
    turn: usize,
    /// Clients that can be read.
    ready: Vec<usize>,
    /// Clients that were not read to the end.
    unread: Vec<usize>,
    /// Moment of the last expiry of queries.
    swept_nanos: u64,
    /// Moment of the last query or answer.
    last_nanos: u64,
    /// The second that `tally` counts.
    second: u64,
    /// Tally of that second.
    tally: Tally,
    /// Number of the thread, from 0.
    thread: usize,
    /// Takes what happened in each second.
    reports: Sender<Report>,
}

impl<'a> Worker<'a> {
    /// Connects clients with these numbers; in closed loop they share `outstanding` queries.
    pub fn new(
        (plan, supply): (&'a Plan, &'a Supply),
        thread: usize,
        (numbers, outstanding): (Range<usize>, usize),
        reports: Sender<Report>,
    ) -> Result<Self, LoadError> {
        let clients = numbers.len();
        let poller = Poller::new().map_err(LoadError::System)?;
        let outstanding_max = match plan.mode {
            Mode::Closed { .. } => outstanding,
            Mode::Open { .. } => usize::MAX,
        };
        // How many a schedule keeps waiting is up to the server.
        let usual = if outstanding_max < usize::MAX { outstanding_max / clients + 1 } else { 0 };
        Ok(Self {
            plan,
            supply,
            start: Instant::now(),
            deadline_nanos: plan.end.after.map_or(u64::MAX, |after| after.as_nanos() as u64),
            catch_up_nanos: None,
            timeout_nanos: plan.timeout.as_nanos() as u64,
            outstanding_max,
            clients: Clients::connect(plan, numbers, &poller)?,
            poller,
            ledgers: (0..clients).map(|_| Ledger::new(usual)).collect(),
            scratch: Vec::new(),
            signed: Vec::new(),
            turn: 0,
            ready: Vec::new(),
            unread: Vec::new(),
            swept_nanos: 0,
            last_nanos: 0,
            second: 0,
            tally: Tally::default(),
            thread,
            reports,
        })
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// When the system refuses to wait or to report CPU time.
    pub fn run(mut self, start: Instant) -> Result<ThreadReport, LoadError> {
        self.start = start;
        loop {
            let now = self.now();
            self.begin_second(now);
            let is_sending = self.is_sending(now);
            let has_more = is_sending && self.send(now);
            self.give_up_late(now);
            if !is_sending && self.ledgers.iter().all(|ledger| ledger.waiting() == 0) {
                break;
            }
            let limit = if has_more { Duration::ZERO } else { self.wait_limit(now) };
            self.receive_within(limit)?;
        }
        self.linger()?;
        self.report(true);
        let cpu = zonda_netio::process::thread_cpu_time().map_err(LoadError::System)?;
        Ok(ThreadReport {
            last_nanos: self.last_nanos,
            deadline_nanos: self.deadline_nanos,
            cpu_secs: cpu.as_secs_f64(),
            dropped: self.clients.dropped(),
            buffer_octets: self.clients.buffer_octets(),
            reconnects: self.clients.reconnects(),
            refused: self.clients.refused(),
        })
    }

    /// Nanoseconds since the run began.
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Whether queries are left to send: until the deadline, and those that the schedule has before
    /// it for a little longer.
    fn is_sending(&mut self, now: u64) -> bool {
        if self.plan.is_stopped() {
            self.deadline_nanos = self.deadline_nanos.min(now);
        }
        match self.supply.next_due_nanos() {
            None => false,
            Some(_) if now < self.deadline_nanos => true,
            Some(due) => {
                let end = *self.catch_up_nanos.get_or_insert(now + CATCH_UP_NANOS);
                self.plan.is_scheduled() && due < self.deadline_nanos && now < end
            }
        }
    }

    /// Returns how long there is nothing to do unless replies come.
    fn wait_limit(&self, now: u64) -> Duration {
        let sweep = self.swept_nanos + self.sweep_every();
        let due = match self.supply.next_due_nanos() {
            Some(due) if now < self.deadline_nanos && due > now => due.min(sweep),
            _ => sweep,
        };
        // After the deadline, nothing but replies and their timeouts is waited for.
        let end = if now < self.deadline_nanos { self.deadline_nanos } else { u64::MAX };
        let nanos = due.min(end).saturating_sub(now);
        let limit = Duration::from_nanos(nanos).min(WAIT_MAX);
        if self.plan.spin { limit.saturating_sub(WAKE_UP_MAX) } else { limit }
    }

    /// Sends what is due, a batch from each client; returns whether there is more.
    fn send(&mut self, mut now: u64) -> bool {
        let last_due = self.deadline_nanos.saturating_sub(1);
        let width = if self.plan.segment { SEGMENTED_SEND_WIDTH } else { SEND_WIDTH };
        let waiting: usize = self.ledgers.iter().map(Ledger::waiting).sum();
        let mut free = self.outstanding_max.saturating_sub(waiting);
        for _ in 0..self.ledgers.len() {
            if free == 0 {
                return false;
            }
            self.clients.reconnect(self.turn, now, &self.poller);
            let room = self.room(self.turn).min(free);
            if room > 0 {
                let numbers = self.supply.take(width.min(room as u64), now.min(last_due));
                if numbers.is_empty() {
                    return false;
                }
                for number in numbers.clone() {
                    self.push(number, now);
                    free -= 1;
                }
                self.clients.send(self.turn);
                self.last_nanos = now;
                // Sending takes time, which is neither the server's nor that of the next client.
                now = self.now();
                self.note_lateness(numbers, now);
            }
            self.turn = (self.turn + 1) % self.ledgers.len();
        }
        free > 0 && (0..self.ledgers.len()).any(|place| self.room(place) > 0)
    }

    /// Queries that a client may send now, if not too many wait already; all clients have an equal
    /// share, and turns when there are more of them than queries.
    fn room(&self, place: usize) -> usize {
        if !self.clients.is_open(place) {
            return 0;
        }
        let ledger = &self.ledgers[place];
        let share = self.outstanding_max.div_ceil(self.ledgers.len());
        share.saturating_sub(ledger.waiting()).min(ledger.room())
    }

    /// Gathers a query for the client whose turn it is.
    fn push(&mut self, number: u64, now: u64) {
        let place = (number % self.plan.queries.count()) as u32; // there are no more places
        let query = self.plan.queries.message(place, &mut self.scratch);
        let sent_nanos = match self.plan.mode {
            Mode::Closed { .. } => now,
            Mode::Open { .. } => self.supply.due_nanos(number),
        };
        let id = self.ledgers[self.turn].enter(place, sent_nanos);
        let query = match &self.plan.key {
            None => query,
            Some(key) => {
                sign(query, id, key, &mut self.signed);
                &self.signed
            }
        };
        self.clients.push(query, id);
        self.tally.sent += 1;
        self.tally.sent_octets += query.len() as u64;
    }

    /// Notes how far behind their schedule queries have left, if they have one.
    fn note_lateness(&mut self, numbers: Range<u64>, now: u64) {
        if self.plan.is_scheduled() {
            for number in numbers {
                self.tally.leave(now.saturating_sub(self.supply.due_nanos(number)));
            }
        }
    }

    /// Counts late and second replies for a while after no query waits any more.
    fn linger(&mut self) -> Result<(), LoadError> {
        let mut now = self.now();
        let end = now + self.plan.linger.as_nanos() as u64;
        while now < end {
            self.begin_second(now);
            self.receive_within(Duration::from_nanos(end - now).min(WAIT_MAX))?;
            now = self.now();
        }
        Ok(())
    }

    /// Waits for replies, and reads those that have come.
    fn receive_within(&mut self, limit: Duration) -> Result<(), LoadError> {
        let limit = if self.unread.is_empty() { limit } else { Duration::ZERO };
        self.ready.clear();
        self.ready.append(&mut self.unread);
        self.ready.extend(self.poller.wait(Some(limit)).map_err(LoadError::System)?);
        self.receive();
        Ok(())
    }

    /// Reads what the ready clients have received.
    fn receive(&mut self) {
        for index in 0..self.ready.len() {
            let place = self.ready[index];
            if self.receive_from(place) {
                self.unread.push(place);
            }
            if self.clients.has_closed(place) {
                self.tally.lost += self.ledgers[place].give_up_before(u64::MAX);
            }
        }
    }

    /// Reads what a client has received; returns whether there is more than it may take now.
    fn receive_from(&mut self, place: usize) -> bool {
        let mut now = self.now();
        for _ in 0..RECEIVE_CALLS_MAX {
            let has_more = self.clients.receive(place, now);
            now = self.now();
            let ledger = &mut self.ledgers[place];
            let (tally, last_nanos) = (&mut self.tally, &mut self.last_nanos);
            let (plan, scratch) = (self.plan, &mut self.scratch);
            let mut book = Book { plan, ledger, tally, scratch, last_nanos };
            let timeout_nanos = self.timeout_nanos;
            self.clients.each_reply(|reply| book.enter(reply, now, timeout_nanos));
            if !has_more {
                return false;
            }
        }
        true
    }

    /// Nanoseconds between two looks for queries that are late.
    fn sweep_every(&self) -> u64 {
        self.timeout_nanos / 16 + 1
    }

    /// Gives up queries whose time is over.
    fn give_up_late(&mut self, now: u64) {
        if now >= self.swept_nanos + self.sweep_every() {
            self.swept_nanos = now;
            let oldest = (now + 1).saturating_sub(self.timeout_nanos);
            self.tally.lost +=
                self.ledgers.iter_mut().map(|ledger| ledger.give_up_before(oldest)).sum::<u64>();
        }
    }

    /// Reports the second that is over, if one is.
    fn begin_second(&mut self, now: u64) {
        if now / SECOND != self.second {
            self.report(false);
            self.second = now / SECOND;
        }
    }

    /// Reports the present second.
    fn report(&mut self, is_last: bool) {
        let (thread, second) = (self.thread, self.second);
        let tally = std::mem::take(&mut self.tally);
        // The receiver is gone only when the run has failed.
        let _ = self.reports.send(Report { thread, is_last, second, tally });
    }
}

/// What a reply changes.
struct Book<'a> {
    /// Plan of the run.
    plan: &'a Plan,
    /// Ledger of the client's waiting queries.
    ledger: &'a mut Ledger,
    /// Tally of the present second.
    tally: &'a mut Tally,
    /// Room for a query that is made again.
    scratch: &'a mut Vec<u8>,
    /// Moment of the last query or answer; nanoseconds since the run began.
    last_nanos: &'a mut u64,
}

impl Book<'_> {
    /// Judges a reply and counts it. A reply that is wrong leaves its query waiting: the right one
    /// may still come.
    fn enter(&mut self, reply: &[u8], now: u64, timeout_nanos: u64) {
        let Some(id) = check::id_of(reply) else {
            self.tally.wrong += 1;
            return;
        };
        let (query, sent_nanos) = match self.ledger.find(id) {
            Match::Waiting { query, sent_nanos } => (query, sent_nanos),
            Match::Duplicate => return self.tally.duplicate += 1,
            Match::Late => return self.tally.late += 1,
            Match::Unexpected => return self.tally.unexpected += 1,
        };
        let query = self.plan.queries.message(query, self.scratch);
        let Some(header) = check::read(reply, query) else {
            self.tally.wrong += 1;
            return;
        };
        let latency_nanos = now.saturating_sub(sent_nanos);
        if latency_nanos > timeout_nanos {
            self.ledger.give_up(id);
            self.tally.lost += 1;
            self.tally.late += 1;
            return;
        }
        self.ledger.answer(id);
        *self.last_nanos = now;
        self.tally.truncated += u64::from(header.is_truncated);
        let expected = self.plan.expected.as_ref();
        if let Some(expected) = expected.filter(|it| !it.is_expected(query, reply, header)) {
            self.tally.note_incorrect(|| expected.difference(query, reply, header));
        }
        self.tally.complete(header.rcode, reply.len(), latency_nanos);
    }
}

/// Writes a query with an id and its signature by a key over `signed`. One that is too long for a
/// signature is left without.
fn sign(query: &[u8], id: u16, key: &Arc<Key>, signed: &mut Vec<u8>) {
    signed.clear();
    signed.extend_from_slice(query);
    if let Some(octets) = signed.first_chunk_mut() {
        *octets = id.to_be_bytes();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let _ = ReplySignature::sign_query(Arc::clone(key), signed, now.as_secs());
}

#[cfg(test)]
mod tests {
    use super::super::{Form, Pace, Queries};
    use super::*;
    use std::net::UdpSocket;
    use std::sync::mpsc;

    /// Returns a server that answers nothing, and a plan for it.
    fn silent_server() -> (UdpSocket, Plan) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let queries = Queries::from_lines("a.example A", &Form::default()).unwrap();
        let plan = Plan::new(server.local_addr().unwrap(), queries);
        (server, plan)
    }

    /// Returns the only thread that follows a plan, with so many clients and queries outstanding.
    fn worker<'a>(plan: &'a Plan, supply: &'a Supply, clients: usize, most: usize) -> Worker<'a> {
        let reports = mpsc::channel().0;
        Worker::new((plan, supply), 0, (0..clients, most), reports).unwrap()
    }

    #[test]
    fn a_flood_of_replies_does_not_keep_a_thread_from_what_else_is_due() {
        let (server, mut plan) = silent_server();
        plan.pace = Pace::Dnsperf;
        let supply = Supply::new(1, None);
        let mut worker = worker(&plan, &supply, 1, 1);
        worker.send(0);
        let (_, client) = server.recv_from(&mut [0; 64]).unwrap();
        for _ in 0..RECEIVE_CALLS_MAX + 10 {
            server.send_to(b"x", client).unwrap();
        }
        worker.receive_within(Duration::from_secs(5)).unwrap();
        assert_eq!(worker.tally.wrong, RECEIVE_CALLS_MAX as u64);
        worker.receive_within(Duration::from_secs(5)).unwrap();
        assert_eq!(worker.tally.wrong, RECEIVE_CALLS_MAX as u64 + 10);
        assert!(worker.unread.is_empty());
    }

    #[test]
    fn the_latency_of_one_client_does_not_begin_while_another_sends() {
        let (_server, plan) = silent_server();
        let supply = Supply::new(640, None);
        let mut worker = worker(&plan, &supply, 10, 640);
        worker.send(0);
        let first_of = |ledger: &Ledger| match ledger.find(0) {
            Match::Waiting { sent_nanos, .. } => sent_nanos,
            other => panic!("{other:?}"),
        };
        let sent: Vec<u64> = worker.ledgers.iter().map(first_of).collect();
        assert!(sent.is_sorted_by(|one, next| one < next), "{sent:?}");
    }

    #[test]
    fn the_time_that_a_batch_takes_to_leave_is_lateness() {
        let is_late = || {
            let (_server, mut plan) = silent_server();
            plan.mode = Mode::Open { rate: 1e8 };
            let supply = Supply::new(SEND_WIDTH, plan.rate());
            let mut worker = worker(&plan, &supply, 1, 0);
            let before = worker.now();
            worker.send(before.max(1000));
            let after = worker.now();
            assert_eq!(worker.tally.sent, SEND_WIDTH);
            let noted = worker.tally.lateness().unwrap().max();
            noted.saturating_sub(before) > after.saturating_sub(noted)
        };
        // A busy machine may take a thread's CPU at any moment.
        assert!((0..21).filter(|_| is_late()).count() > 10);
    }
}
