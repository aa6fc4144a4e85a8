//! Clients that ask at a pace and do not wait for answers: one that is listened to, and a flood.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::client::Question;
use crate::message::Message;

/// How long the last answers are waited for: longer than servers take to give up.
const PATIENCE: Duration = Duration::from_secs(25);
/// How far the client falls behind before it begins a new schedule: on a machine that does much
/// else it would send more at once than buffers hold.
const BEHIND_MAX: Duration = Duration::from_millis(10);
/// How long a receive call waits before it is seen whether all has come.
const LOOK: Duration = Duration::from_millis(20);

/// Result of a question.
#[derive(Clone, Debug)]
pub struct QueryResult {
    /// Time of the query, since the first.
    pub at: Duration,
    /// Time until the answer, and its response code; none came without.
    pub answer: Option<(Duration, u8)>,
    /// The answer, where its response code is not NOERROR.
    pub failure: Option<Message>,
}

impl QueryResult {
    /// Whether the query had an answer, with NOERROR.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        matches!(self.answer, Some((_, 0)))
    }
}

impl fmt::Display for QueryResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asked at {:?}, ", self.at)?;
        match (&self.answer, &self.failure) {
            (Some((took, _)), Some(failure)) => write!(f, "answered after {took:?}:\n{failure}"),
            (Some((took, rcode)), None) => write!(f, "answered {rcode} after {took:?}"),
            (None, _) => f.write_str("nothing came"),
        }
    }
}

/// Results of many questions.
#[derive(Debug)]
pub struct QueryResults(pub Vec<QueryResult>);

impl QueryResults {
    /// Returns the queries that were sent within a span of time.
    #[must_use]
    pub fn between(&self, from: Duration, to: Duration) -> Self {
        Self(self.0.iter().filter(|asked| (from..to).contains(&asked.at)).cloned().collect())
    }

    /// Returns how many had no answer, or another than NOERROR.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.0.iter().filter(|asked| !asked.is_answered()).count()
    }

    /// Insists that every question had its answer.
    ///
    /// # Panics
    /// When some had not, with what came in its place.
    pub fn check_all_answered(&self) {
        let lost: Vec<_> = self.0.iter().filter(|asked| !asked.is_answered()).collect();
        let told = || lost.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let (count, all) = (lost.len(), self.0.len());
        assert!(count == 0, "{count} of {all} without answer:\n{}", told());
    }

    /// Returns the time that this share of the answers, in percent, stayed within.
    ///
    /// # Panics
    /// When there are none.
    #[must_use]
    pub fn within(&self, percent: usize) -> Duration {
        let mut times: Vec<Duration> = self.0.iter().filter_map(|it| Some(it.answer?.0)).collect();
        times.sort_unstable();
        times[(times.len() * percent / 100).min(times.len() - 1)]
    }
}

/// Asks each question once, so many a second, from one loopback address.
///
/// # Panics
/// When there are more than 65,536 questions, or the system has no socket.
pub fn ask_at_pace(
    server: SocketAddr,
    from: Ipv4Addr,
    a_second: u32,
    questions: impl IntoIterator<Item = Question>,
) -> QueryResults {
    let socket = socket(server, from);
    socket.set_read_timeout(Some(LOOK)).expect("a time to wait is not zero");
    let receiving = socket.try_clone().expect("a descriptor is left");
    let (start, gap) = (Instant::now(), Duration::from_secs(1) / a_second);
    let total = Arc::new(AtomicUsize::new(usize::MAX));
    let expected = Arc::clone(&total);
    let receiver = thread::spawn(move || receive_all(&receiving, start, &expected));
    let (mut sent, mut due) = (Vec::new(), Duration::ZERO);
    for (number, question) in questions.into_iter().enumerate() {
        let id = u16::try_from(number).expect("an id for each question");
        thread::sleep(due.saturating_sub(start.elapsed()));
        let at = start.elapsed();
        sent.push(at);
        let _ = socket.send(&question.to_bytes(id)); // what is not sent is lost
        due = (due + gap).max(at.saturating_sub(BEHIND_MAX));
    }
    total.store(sent.len(), Ordering::Relaxed);
    let received = receiver.join().expect("the receiver does not panic");
    let asked = sent.into_iter().zip(received).map(|(at, answer)| {
        let Some((came, octets)) = answer else {
            return QueryResult { at, answer: None, failure: None };
        };
        let rcode = octets[3] & 0x0f;
        let failure = Message::parse(&octets).ok().filter(|_| rcode != 0);
        QueryResult { at, answer: Some((came.saturating_sub(at), rcode)), failure }
    });
    QueryResults(asked.collect())
}

/// Returns when the first answer to each id came, and what it was. Ends when all are there, or when
/// nothing has come for a while after the last question.
fn receive_all(
    socket: &UdpSocket,
    start: Instant,
    total: &AtomicUsize,
) -> Vec<Option<(Duration, Vec<u8>)>> {
    let mut received = vec![None; 1 << 16];
    let (mut buffer, mut count, mut heard) = ([0; 4096], 0, Instant::now());
    loop {
        let expected = total.load(Ordering::Relaxed);
        if count >= expected || expected < usize::MAX && heard.elapsed() > PATIENCE {
            return received;
        }
        let Ok(length) = socket.recv(&mut buffer) else { continue };
        let slot = &mut received[usize::from(u16::from_be_bytes([buffer[0], buffer[1]]))];
        if length >= 12 && slot.is_none() {
            *slot = Some((start.elapsed(), buffer[..length].to_vec()));
            (count, heard) = (count + 1, Instant::now());
        }
    }
}

/// A client that sends query after query, whatever the answers, until dropped.
pub struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Begins to ask; `name` makes the name of the nth question.
    ///
    /// # Panics
    /// When the system has no socket.
    pub fn start(
        server: SocketAddr,
        from: Ipv4Addr,
        a_second: u32,
        name: impl Fn(u64) -> String + Send + 'static,
    ) -> Self {
        let socket = socket(server, from);
        socket.set_nonblocking(true).expect("a socket can be told not to wait");
        let (stop, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = thread::spawn(move || {
            let (start, mut buffer) = (Instant::now(), [0; 4096]);
            while !stopped.load(Ordering::Relaxed) {
                let number = count.load(Ordering::Relaxed);
                let due = Duration::from_nanos(number * 1_000_000_000 / u64::from(a_second));
                if due > start.elapsed() {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                let question = Question::new(&name(number), "A").recursive();
                let _ = socket.send(&question.to_bytes(number as u16));
                count.store(number + 1, Ordering::Relaxed);
                while socket.recv(&mut buffer).is_ok() {}
            }
        });
        Self { stop, sent, thread: Some(thread) }
    }

    /// Returns how many questions it has sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns a socket of a loopback address, connected to a server.
fn socket(server: SocketAddr, from: Ipv4Addr) -> UdpSocket {
    let socket = UdpSocket::bind((IpAddr::from(from), 0)).expect("an address of ours has a port");
    socket.connect(server).expect("a loopback address has a route");
    socket
}
