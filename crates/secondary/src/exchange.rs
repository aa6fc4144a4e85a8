//! Questions to a primary, and its replies, over UDP and TCP.
//!
//! # Invariants
//! - No call takes longer than its limits say, whatever the primary does, and each ends soon after
//!   the server is told to stop.
//! - Memory is bounded by the limits: one message of at most 65,535 octets, and what was taken in,
//!   whose octets are counted without compression. That of all transfers together is bounded by
//!   their [budget](crate::budget), for which a transfer waits: with each message that was taken
//!   in, so that each has what one message holds besides, which counts as up to 10 MiB if its names
//!   are compressed as far as can be, and as less than 1 MiB if it has addresses.

use crate::budget::{Share, octets_of_changes, octets_of_zone};
use crate::fault::Fault;
use crate::hooks::TransferHooks;
use crate::intake::{Counts, Intake, Transferred, serial_of};
use crate::question::Question;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use zonda_wire::tsig::{Key, ReplySignature};
use zonda_wire::{Name, Rcode, StreamFault, StreamMessage, Type};
use zonda_zone::random_octets;

/// How long each attempt over UDP waits for the reply.
const UDP_WAITS: [Duration; 3] =
    [Duration::from_millis(1000), Duration::from_millis(1500), Duration::from_millis(2500)];
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How often it is looked whether the server is to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(200);
/// Octets that a primary must send in each interval of a transfer, lest one that sends next to
/// nothing occupies a thread for as long as a transfer may take.
const OCTETS_MIN: u64 = 10 << 10;
/// The interval in which it must send them.
const PACE_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// Octets of the longest message.
const MESSAGE_BYTES_MAX: usize = u16::MAX as usize;

/// A primary, as a secondary reaches it.
#[derive(Clone, Debug)]
pub struct Primary {
    /// The address and port of the primary.
    pub address: SocketAddr,
    /// The key that both sides have, if messages are signed.
    pub key: Option<Arc<Key>>,
}

/// Bounds on one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most octets of all messages, and of all records in memory; changes may have twice as many.
    pub octets_max: u64,
    /// Most records; changes may have twice as many.
    pub records_max: u64,
    /// How long the whole transfer may take.
    pub time_max: Duration,
    /// How long each message may take.
    pub idle_max: Duration,
}

/// The version that a primary has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoaReply {
    /// The serial of the version.
    pub serial: u32,
    /// The seconds until the zone expires at the primary, if it says that (rfc7314).
    pub expire_secs: Option<u32>,
}

/// A reply that was taken in whole.
#[derive(Debug)]
pub struct Transfer {
    /// What the reply amounts to.
    pub content: Transferred,
    /// The size of the reply.
    pub counts: Counts,
    /// The seconds until the zone expires at the primary, if it says that (rfc7314).
    pub expire_secs: Option<u32>,
    /// The moment at which the question was sent, from which the zone's expiry counts.
    pub asked: Instant,
}

impl Primary {
    /// Asks for the serial of the version that the primary has, over UDP, and over TCP where the
    /// reply is truncated or refused: of catalog zones, Knot DNS tells it over TCP only.
    ///
    /// # Errors
    /// When there is no reply that can be believed.
    pub fn soa(&self, apex: &Name, is_stopped: &dyn Fn() -> bool) -> Result<SoaReply, Fault> {
        match self.soa_over_udp(apex, is_stopped) {
            Err(Fault::Message(StreamFault::Truncated)) => self.soa_over_tcp(apex, is_stopped),
            Err(fault @ Fault::Refused(Rcode::REFUSED)) => {
                self.soa_over_tcp(apex, is_stopped).map_err(|_| fault)
            }
            result => result,
        }
    }

    /// Asks for the serial over UDP, within five seconds.
    ///
    /// # Errors
    /// When there is no reply that can be believed, or it is truncated.
    pub fn soa_over_udp(
        &self,
        apex: &Name,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<SoaReply, Fault> {
        let any = match self.address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        for wait in UDP_WAITS {
            let socket = UdpSocket::bind((any, 0))?; // another port each time
            socket.connect(self.address)?;
            let id: [u8; 2] = random_octets();
            let (query, signature) = self.query(Question::Soa, apex, id);
            socket.send(&query)?;
            let (limit, mut wrong) = (Instant::now() + wait, None);
            loop {
                let left = limit.saturating_duration_since(Instant::now());
                if is_stopped() {
                    return Err(Fault::Stopped);
                }
                if left.is_zero() {
                    match wrong {
                        Some(fault) => return Err(fault),
                        None => break,
                    }
                }
                socket.set_read_timeout(Some(left.min(STOP_INTERVAL)))?;
                let len = match socket.recv(&mut buffer) {
                    Ok(len) => len,
                    Err(error) if is_wait(error.kind()) => continue,
                    Err(error) => return Err(error.into()),
                };
                let reply = buffer.get(..len).unwrap_or_default();
                match read_soa(reply, (apex, id), signature.clone().as_mut()) {
                    // It may be forged, and the reply of the primary may follow.
                    Err(Fault::Message(StreamFault::OtherId | StreamFault::Malformed)) => {}
                    Err(
                        fault @ (Fault::Message(StreamFault::NotAReply)
                        | Fault::Message(StreamFault::OtherQuestion)
                        | Fault::Signature(_)),
                    ) => wrong = Some(fault),
                    result => return result,
                }
            }
        }
        Err(Fault::Silence(UDP_WAITS.iter().sum()))
    }

    /// Asks for the serial over TCP.
    fn soa_over_tcp(&self, apex: &Name, is_stopped: &dyn Fn() -> bool) -> Result<SoaReply, Fault> {
        let id: [u8; 2] = random_octets();
        let (query, mut signature) = self.query(Question::Soa, apex, id);
        let mut connection = Connection::open(self.address, is_stopped, CONNECT_MAX)?;
        connection.send(&query)?;
        let mut message = Vec::new();
        connection.receive(&mut message, CONNECT_MAX)?;
        read_soa(&message, (apex, id), signature.as_mut())
    }

    /// Asks for the zone, or for changes of it since the version with a serial. The share of the
    /// budget grows with what comes, where that is more than was reserved. While it waits for that,
    /// nothing is read: the buffers fill, and the primary waits as well, for a time that is its
    /// own. So it is not waited for longer than primaries have patience; then, the connection is
    /// closed from this side, what has come is dropped, and the transfer is to begin anew with
    /// more reserved. The wait is no time of the transfer, and none of the primary's pace.
    ///
    /// Where changes were asked for and the whole zone comes, what that is expected to take is
    /// reserved once its first message has come; if the budget has not so much, nothing waits, and
    /// the connection is closed.
    ///
    /// # Errors
    /// When the reply is not whole, not within the limits, or cannot be believed; when the budget
    /// has no memory for it.
    pub fn transfer(
        &self,
        apex: &Name,
        question: Question<'_>,
        (limits, hooks): (Limits, &TransferHooks<'_>),
        share: &mut Share<'_>,
    ) -> Result<Transfer, Fault> {
        let base = match question {
            Question::Ixfr(soa) => Some(serial_of(soa)?),
            Question::Soa | Question::Axfr => None,
        };
        let id: [u8; 2] = random_octets();
        let (query, mut signature) = self.query(question, apex, id);
        let section = question.section(apex);
        let mut connection = Connection::open(self.address, hooks.is_stopped, limits.time_max)?;
        let asked = connection.begin();
        connection.send(&query)?;
        let (mut intake, mut octets) = (Intake::new(apex, base, limits, hooks.seed), Vec::new());
        loop {
            connection.receive(&mut octets, limits.idle_max)?;
            let message = StreamMessage::read(&octets, id, &section)?;
            check_signature(signature.as_mut(), &message, &octets)?;
            let was_whole_zone = intake.is_unasked_whole_zone();
            let taken = intake.take(message, octets.len());
            (hooks.note_progress)(intake.counts(), intake.serial());
            let is_end = taken?;
            let waited = share.waited();
            raise(share, &intake, was_whole_zone, hooks)?;
            if is_end {
                break;
            }
            connection.note_wait(share.waited() - waited);
        }
        if let Some(signature) = &signature {
            signature.finish()?;
        }
        let (counts, expire_secs) = (intake.counts(), intake.expire_secs());
        Ok(Transfer { content: intake.finish()?, counts, expire_secs, asked })
    }

    /// The query of a question, and what the signatures of the reply are checked with.
    fn query(
        &self,
        question: Question<'_>,
        apex: &Name,
        id: [u8; 2],
    ) -> (Vec<u8>, Option<ReplySignature>) {
        question.query(apex, id, (self.key.as_ref(), now_secs()))
    }
}

/// Has a share be as large as what was taken in, or as the whole zone is expected to be where that
/// begins to come in place of changes.
fn raise(
    share: &mut Share<'_>,
    intake: &Intake,
    was_whole_zone: bool,
    hooks: &TransferHooks<'_>,
) -> Result<(), Fault> {
    let (records, stored) = (intake.counts().records, intake.octets_stored());
    let octets = match intake.has_changes() {
        true => octets_of_changes(records, stored),
        false => octets_of_zone(records, stored, || intake.octets_besides()),
    };
    let is_of_whole_zone = intake.is_unasked_whole_zone();
    let begins = is_of_whole_zone && !was_whole_zone;
    if begins && !share.reserve(octets.max((hooks.whole_zone_octets)())) {
        return Err(Fault::NoMemory { octets, is_of_whole_zone });
    }
    share.raise(octets, hooks).map_err(|fault| match fault {
        Fault::NoMemory { octets, .. } => Fault::NoMemory { octets, is_of_whole_zone },
        fault => fault,
    })
}

/// Reads the reply to the question for the SOA record.
fn read_soa(
    reply: &[u8],
    (apex, id): (&Name, [u8; 2]),
    signature: Option<&mut ReplySignature>,
) -> Result<SoaReply, Fault> {
    let mut message = StreamMessage::read(reply, id, &Question::Soa.section(apex))?;
    check_signature(signature, &message, reply)?;
    if message.rcode() != Rcode::NOERROR {
        return Err(Fault::Refused(message.rcode()));
    }
    if !message.is_authoritative() {
        return Err(Fault::NotAuthoritative);
    }
    let (mut buffer, expire_secs) = (Vec::new(), message.expire_secs());
    while let Some(record) = message.next(&mut buffer)? {
        if record.rtype == Type::SOA && record.owner.eq_ignore_ascii_case(apex.as_wire()) {
            return Ok(SoaReply { serial: serial_of(record.rdata)?, expire_secs });
        }
    }
    Err(Fault::NoSoa)
}

/// Checks the signature of a message, if messages are signed. An error that the primary tells
/// without a signature is told as what it is.
fn check_signature(
    signature: Option<&mut ReplySignature>,
    message: &StreamMessage<'_>,
    octets: &[u8],
) -> Result<(), Fault> {
    let Some(signature) = signature else { return Ok(()) };
    match (message.signature_at(), message.rcode()) {
        (None, Rcode::NOERROR) => {}
        (None, rcode) => return Err(Fault::RefusedUnsigned(rcode)),
        (Some(_), _) => {}
    }
    Ok(signature.check(octets, message.signature_at(), now_secs())?)
}

/// The seconds since 1970, by which signatures are dated.
fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Whether an error says that nothing has come yet.
fn is_wait(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A connection to a primary.
struct Connection<'s> {
    stream: TcpStream,
    /// Whether the server is to stop.
    is_stopped: &'s dyn Fn() -> bool,
    /// The moment at which all must have come, and how long that is from the beginning.
    limit: (Instant, Duration),
    /// How fast the primary sends.
    pace: Pace,
}

/// How fast a primary sends.
struct Pace {
    /// The beginning of the present interval.
    began: Instant,
    /// Octets that came in it.
    octets: u64,
}

impl Pace {
    /// Notes that so many octets have come by a moment.
    ///
    /// # Errors
    /// When too few of them have come in an interval.
    fn note(&mut self, octets: usize, now: Instant) -> Result<(), Fault> {
        self.octets += octets as u64;
        if now.saturating_duration_since(self.began) < PACE_INTERVAL {
            return Ok(());
        }
        if self.octets < OCTETS_MIN {
            return Err(Fault::TooFewOctets(OCTETS_MIN, PACE_INTERVAL));
        }
        *self = Self { began: now, octets: 0 };
        Ok(())
    }
}

impl<'s> Connection<'s> {
    /// Connects to a primary, for no longer than a time.
    fn open(
        address: SocketAddr,
        is_stopped: &'s dyn Fn() -> bool,
        time_max: Duration,
    ) -> Result<Self, Fault> {
        let began = Instant::now();
        let (limit, pace) = ((began + time_max, time_max), Pace { began, octets: 0 });
        let connect_max = CONNECT_MAX.min(time_max).max(STOP_INTERVAL); // it may not be 0
        let stream = TcpStream::connect_timeout(&address, connect_max)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STOP_INTERVAL))?;
        stream.set_write_timeout(Some(CONNECT_MAX))?;
        Ok(Self { stream, is_stopped, limit, pace })
    }

    /// Has the time count from now on, as the question was sent; returns this moment.
    fn begin(&mut self) -> Instant {
        let now = Instant::now();
        self.limit.0 = now + self.limit.1;
        self.pace.began = now;
        now
    }

    /// Notes that nothing was received for a time, through no fault of the primary.
    fn note_wait(&mut self, time: Duration) {
        self.limit.0 += time;
        self.pace.began += time;
    }

    /// Sends a message.
    fn send(&mut self, message: &[u8]) -> Result<(), Fault> {
        let mut framed = (message.len() as u16).to_be_bytes().to_vec(); // a query is short
        framed.extend_from_slice(message);
        Ok(self.stream.write_all(&framed)?)
    }

    /// Receives the next message, which may take no longer than a time.
    fn receive(&mut self, message: &mut Vec<u8>, time_max: Duration) -> Result<(), Fault> {
        let limit = (Instant::now() + time_max, time_max);
        let mut len = [0; 2];
        self.fill(&mut len, limit)?;
        message.clear();
        message.resize(usize::from(u16::from_be_bytes(len)), 0);
        self.fill(message, limit)
    }

    /// Fills a buffer with what comes.
    fn fill(&mut self, buffer: &mut [u8], of_message: (Instant, Duration)) -> Result<(), Fault> {
        let mut filled = 0;
        while filled < buffer.len() {
            if (self.is_stopped)() {
                return Err(Fault::Stopped);
            }
            let now = Instant::now();
            if now >= self.limit.0 {
                return Err(Fault::TooSlow(self.limit.1));
            }
            if now >= of_message.0 {
                return Err(Fault::Silence(of_message.1));
            }
            let len = match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(Fault::Closed),
                Ok(len) => len,
                Err(error) if is_wait(error.kind()) => 0,
                Err(error) => return Err(error.into()),
            };
            filled += len;
            self.pace.note(len, now)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a primary that sends so many octets each second keeps the pace for an hour.
    fn keeps_pace(octets: usize) -> bool {
        let began = Instant::now();
        let mut pace = Pace { began, octets: 0 };
        (1..3600).all(|second| pace.note(octets, began + Duration::from_secs(second)).is_ok())
    }

    #[test]
    fn a_primary_that_sends_a_short_message_now_and_then_is_given_up() {
        assert!(!keeps_pace(2));
        assert!(keeps_pace(100));
    }
}
